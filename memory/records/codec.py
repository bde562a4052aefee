"""Records built from stored JSON, by the types of their fields.

What an earlier version wrote is read too: a field that it did not know has its default, and a key
that a later one added is passed over. pydantic would do the same, at ten times the price for each
entry of a long history.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import (
    Any,
    NamedTuple,
    NewType,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

T = TypeVar("T")
Convert = Callable[[Any], Any]


class FieldType(NamedTuple):
    """A field of a record. Its value is of the type `exact`, or made by `convert`, or taken as it
    is. `kind` is the record that it holds, if it holds one; a `structured` value is JSON text in a
    column."""

    name: str
    exact: type[Any] | None
    convert: Convert | None
    optional: bool
    required: bool
    kind: type[Any] | None
    structured: bool


def from_json(
    kind: type[T], data: Mapping[str, Any] | list[Any] | tuple[Any, ...], **known: Any
) -> T:
    """Return the record of a JSON object, or of a list in the order of its fields, with fields that
    are known already.

    Raise KeyError for a field that is missing, TypeError or ValueError for a value of another kind.
    """
    types = types_of(cast("Hashable", kind))
    if isinstance(data, list | tuple):
        data = dict(zip((one.name for one in types), data, strict=False))
    if not isinstance(data, Mapping):
        raise TypeError(f"{data!r:.40} stands where {kind.__name__} should")
    values = known
    for name, exact, convert, optional, required, *_ in types:
        value = data.get(name)
        if name in known:
            continue
        if value is None:
            if optional and (required or name in data):
                values[name] = None
            elif required:
                raise KeyError(name)
        elif exact is not None and not isinstance(value, exact):
            # SQLite keeps any text in a column of numbers, and a damaged row may hold anything.
            raise TypeError(f"{value!r:.40} stands where {exact.__name__} should")
        else:
            values[name] = value if convert is None else convert(value)
    return kind(**values)


@cache
def types_of(kind: Hashable) -> tuple[FieldType, ...]:
    """Return what is known of the fields of a record, worked out once."""
    assert isinstance(kind, type)
    hints = get_type_hints(kind)
    found = []
    for field in fields(cast("Any", kind)):
        hint, optional = _without_none(hints[field.name])
        found.append(
            FieldType(
                name=field.name,
                exact=hint if hint is str or hint is int else None,
                convert=_converter(hint),
                optional=optional,
                required=field.default is MISSING and field.default_factory is MISSING,
                kind=cast("type[Any]", hint) if is_dataclass(hint) else None,
                structured=is_dataclass(hint) or get_origin(hint) in {tuple, dict},
            )
        )
    return tuple(found)


def _without_none(hint: Any) -> tuple[Any, bool]:
    while isinstance(hint, NewType):
        hint = hint.__supertype__
    if get_origin(hint) not in {Union, UnionType}:
        return hint, False
    args = get_args(hint)
    others = [one for one in args if one is not NoneType]
    inner = _without_none(others[0])[0] if len(others) == 1 else hint
    return inner, len(others) < len(args)


def _converter(hint: Any) -> Convert | None:
    kind: Any = _without_none(hint)[0]
    if is_dataclass(kind):
        return partial(from_json, cast("type[Any]", kind))
    if get_origin(kind) is tuple:
        item, *rest = get_args(kind)
        if rest != [...] or (convert := _converter(item)) is None:
            return tuple
        return lambda values: tuple(map(convert, values))
    if not isinstance(kind, type):
        return None
    if issubclass(kind, tuple):
        return lambda values: kind(*values)
    return kind if issubclass(kind, Enum) or kind is bool else None
