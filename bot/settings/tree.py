"""The settings as a tree: what belongs at a path, whatever model is at the root.

Besides sections with their keys there are lists of tables (`[[prompt.force_include]]`), tables
under names of the owner's choice (`[skills.NAME]`: a section whose `__pydantic_extra__` says what
they hold) and keys that take a table of such names (`env`). Called by
`bot.settings.schema.settings` and by what reads and explains it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

KeyPath = tuple[str, ...]
Loc = tuple[str | int, ...]
"""A key path, or a place within its value: `("prompt", "force_include", 2, "patterns", 1)`."""

Node = type[BaseModel] | FieldInfo
"""What can stand somewhere in the settings: a table with keys, or what a key or an item takes."""

ANY_NAME = "*"
"""In a path, where a name of the owner's choice stands."""


def section_of(field: FieldInfo) -> type[BaseModel] | None:
    """The section behind a field, None where the field is a key."""
    return _model(field.annotation)


def tables_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return what each table of a list of tables holds; None where the field is no such list."""
    return _model(get_args(field.annotation)[0]) if _is_list(field) else None


@cache
def tables_by_name(model: type[BaseModel]) -> type[BaseModel] | None:
    """Return what the tables hold that a section takes under names of the owner's choice, if it
    does."""
    if model.model_config.get("extra") != "allow":
        return None
    extra = get_type_hints(model, include_extras=True)["__pydantic_extra__"]
    return _model(get_args(extra)[1])


def is_map(field: FieldInfo) -> bool:
    """Return whether a key takes a table whose names are the owner's."""
    return get_origin(field.annotation) is Mapping


def is_secret(node: Node) -> bool:
    """Return whether a key takes a secret, or a table of them."""
    if not isinstance(node, FieldInfo):
        return False
    return node.annotation is SecretStr or (
        is_map(node) and FieldInfo.from_annotation(_part(node, 1)).annotation is SecretStr
    )


def below(node: Node, name: str) -> Node | None:
    """Return what a name means in a table; in a list of tables, in any of them."""
    model = tables_of(node) if isinstance(node, FieldInfo) else node
    if model is not None:
        field = model.model_fields.get(name)
        return tables_by_name(model) if field is None else section_of(field) or field
    is_entry = isinstance(node, FieldInfo) and is_map(node)
    return _node(_part(node, 1)) if is_entry else None


def item_of(node: Node) -> Node | None:
    """Return what one item of a list is; None where there is no list."""
    is_list = isinstance(node, FieldInfo) and _is_list(node)
    return _node(_part(node, 0)) if is_list else None


def node_at(root: Node, loc: Loc) -> Node | None:
    """Return what belongs at a place; None where nothing does."""
    node: Node | None = root
    for part in loc:
        if node is None:
            return None
        node = below(node, part) if isinstance(part, str) else item_of(node)
    return node


def keys_of(model: type[BaseModel], path: KeyPath = ()) -> Iterator[tuple[KeyPath, FieldInfo]]:
    """Every key with its path, in the order of the model; those of lists of tables are not."""
    for name, field in model.model_fields.items():
        if section := section_of(field):
            yield from keys_of(section, (*path, name))
        else:
            yield (*path, name), field
    if named := tables_by_name(model):
        yield from keys_of(named, (*path, ANY_NAME))


def sections_of(model: type[BaseModel], path: KeyPath = ()) -> Iterator[KeyPath]:
    """The paths of the tables that hold keys, or tables under names of the owner's choice."""
    fields = model.model_fields
    inner = {name: section for name in fields if (section := section_of(fields[name]))}
    if len(inner) < len(fields) or tables_by_name(model):
        yield path
    for name, section in inner.items():
        yield from sections_of(section, (*path, name))


def secrets_of(value: object) -> Iterator[str]:
    """Every secret in settings that have been read, wherever it stands; empty ones too."""
    match value:
        case SecretStr():
            yield value.get_secret_value()
        case BaseModel():
            for _, inner in value:
                yield from secrets_of(inner)
        case Mapping():
            for inner in value.values():
                yield from secrets_of(inner)
        case tuple():
            for inner in value:
                yield from secrets_of(inner)


def _is_list(field: FieldInfo) -> bool:
    return get_origin(field.annotation) is tuple


def _part(node: Node, at: int) -> Any:
    """One of the types that a list or a table is made of."""
    return get_args(node.annotation)[at] if isinstance(node, FieldInfo) else None


def _node(kind: Any) -> Node:
    return _model(kind) or FieldInfo.from_annotation(kind)


def _model(kind: object) -> type[BaseModel] | None:
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None
