"""What the reader of a call may be told: texts in which values are looked for as wholes, and the
shape of a tool's arguments. Used by `agent.policy.news` and `agent.policy.sites`, which count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands in a list of the like."""

    among: int
    number: int


# --- what is known -------------------------------------------------------------------------------

WORD = re.compile(r"[^\W_]+")
_VALUE = re.compile(r"[\w@.+/:=~-]+")
_EDGES = ".,:;"


class Texts:
    """Texts in which values are looked for as wholes: never as a part of a word."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._texts = tuple(text for text in texts if text)

    @cached_property
    def _all(self) -> str:
        return "\n".join(self._texts)

    @cached_property
    def _folded(self) -> str:
        return self._all.lower()

    @cached_property
    def words(self) -> frozenset[str]:
        """All words, in lower case."""
        return frozenset(WORD.findall(self._folded))

    @cached_property
    def in_order(self) -> tuple[str, ...]:
        """All words as they come, in lower case."""
        return tuple(WORD.findall(self._folded))

    def hold(self, value: str) -> bool:
        """Whether it stands there exactly so."""
        return _whole(value).search(self._all) is not None

    def hold_alike(self, value: str) -> bool:
        """Whether it stands there in any case."""
        return _whole(value.lower()).search(self._folded) is not None

    def place(self, value: str) -> Place | None:
        """Where it stands, written just so, among values that look like it."""
        look = _look(value)
        for number, text in enumerate(self._texts):
            alike = _alike(text).get(look, {})
            if value in alike:
                return Place(hash_of(number, look), alike[value])
        return None

    @cached_property
    def places(self) -> int:
        """At how many words something may begin."""
        return len(self.in_order)


def hash_of(number: int, look: tuple[int, bool, bool]) -> int:
    """A number for a list: that of its text, and how its values look."""
    size, digits, signs = look
    return ((number * 100_000 + size) * 2 + digits) * 2 + signs


def _whole(value: str) -> re.Pattern[str]:
    before = r"(?<!\w)" if value[:1].isalnum() or value[:1] == "_" else ""
    after = r"(?!\w)" if value[-1:].isalnum() or value[-1:] == "_" else ""
    return re.compile(before + re.escape(value) + after)


def _look(value: str) -> tuple[int, bool, bool]:
    return len(value), any(map(str.isdigit, value)), not value.isalnum()


def _alike(text: str) -> dict[tuple[int, bool, bool], dict[str, int]]:
    """The different values of a text by their looks, numbered as they come."""
    found: dict[tuple[int, bool, bool], dict[str, int]] = {}
    for match in _VALUE.finditer(text):
        value = match[0].strip(_EDGES)
        if value:
            alike = found.setdefault(_look(value), {})
            alike.setdefault(value, len(alike))
    return found


@dataclass(frozen=True, kw_only=True)
class Known:
    """What the reader of a call may be told. `own` are the person's words of this turn, `earlier`
    those of before, `sent` what it was told already, `listed` what it told us itself."""

    own: Texts = field(default_factory=Texts)
    earlier: Texts = field(default_factory=Texts)
    sent: Texts = field(default_factory=Texts)
    listed: Texts = field(default_factory=Texts)
    today: date = date(1970, 1, 1)


# --- the shape of arguments ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the schema of a tool declares: names of fields in their order, those that must be
    given, and of each value out of a fixed choice how many there are to choose from."""

    names: Mapping[str, int]
    required: frozenset[str]
    choices: Mapping[str, int]
    texts: Texts = field(default_factory=Texts)
    """What it says of itself: the reader wrote it."""

    @classmethod
    def of(cls, schema: Mapping[str, Any]) -> Shape:
        """Of a JSON schema, whatever its depth."""
        names: dict[str, int] = {}
        needed = schema.get("required")
        required = {str(name) for name in needed} if isinstance(needed, list) else set()
        texts: list[str] = []
        choices: dict[str, int] = {}
        # Only of the whole is it sure what must be given: further in, which part is meant is open.
        nodes: list[Any] = [schema]
        while nodes:
            node = nodes.pop(0)
            if isinstance(node, list):
                nodes.extend(node)
                consts = [
                    one["const"] for one in node if isinstance(one, Mapping) and "const" in one
                ]
                for value in consts:
                    choices[str(value)] = max(len(consts), choices.get(str(value), 0))
            if not isinstance(node, Mapping):
                continue
            texts += [text for key in _SAYS if isinstance(text := node.get(key), str)]
            properties = node.get("properties")
            if isinstance(properties, Mapping):
                for name in properties:
                    names.setdefault(str(name), len(names))
            allowed = node["enum"] if isinstance(node.get("enum"), list) else []
            allowed = [node["const"]] if "const" in node else allowed
            for value in allowed:
                choices[str(value)] = max(len(allowed), choices.get(str(value), 0))
            if isinstance(properties, Mapping):
                nodes.extend(properties.values())
            nodes.extend(one for key, one in node.items() if key != "properties")
        return cls(names=names, required=frozenset(required), choices=choices, texts=Texts(texts))


_SAYS = ("title", "description")
NO_SHAPE = Shape(names={}, required=frozenset(), choices={})

Path = tuple[str | int, ...]


def parts_of(arguments: Any) -> dict[Path, Any]:
    """Each value by its place. A mapping is the tuple of its names there, a list its length."""
    found: dict[Path, Any] = {}
    todo: list[tuple[Path, Any]] = [((), arguments)]
    while todo:
        path, value = todo.pop(0)
        match value:
            case dict():
                found[path] = tuple(map(str, value))
                todo.extend(((*path, str(name)), one) for name, one in value.items())
            case list() | tuple():
                found[path] = len(value)
                todo.extend(((*path, number), one) for number, one in enumerate(value))
            case _:
                found[(*path, "=")] = value
    return found


def words_of(arguments: Any) -> Iterator[str]:
    """All values of a call, for what its reader knows afterwards."""
    for path, value in parts_of(arguments).items():
        if path[-1:] == ("=",) and value is not None and not isinstance(value, bool):
            yield str(value)
