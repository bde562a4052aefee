"""Rows and records: a column is a field of the same name.

A column `due.slot` is the field `slot` of the record in the field `due`, and a field of several
values is JSON text. What a row does not say, or leaves null, has the record's default.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, cast

from memory.records.codec import from_json, types_of

# --- stored text --------------------------------------------------------------------------------
#
# Values as text that SQLite takes and gives back: JSON, and plain text.


def dump(value: Any) -> str:
    """Return JSON on one line, readable in any script; a record is a list of its fields."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_in_order)
    if text == storable(text):
        return text
    # Half of a surrogate pair, as models and platforms sometimes write: only an escape keeps it.
    return json.dumps(value, separators=(",", ":"), default=_in_order)


def storable(text: str) -> str:
    """Return the text with `?` in place of what is not Unicode (half surrogate pairs)."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text


def _in_order(record: Any) -> list[Any]:
    return [getattr(record, field.name) for field in fields(record)]


T = TypeVar("T")


def to_row(record: Any) -> dict[str, Any]:
    """Return the fields of a record as named parameters; a record within it has its own row."""
    values: dict[str, Any] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, str):
            values[field.name] = storable(value)
        elif isinstance(value, tuple | dict):
            values[field.name] = dump(value)
        elif not is_dataclass(value):
            values[field.name] = value
    return values


def named(cursor: sqlite3.Cursor) -> Iterator[dict[str, Any]]:
    """Yield rows by the names of their columns."""
    names = [column[0] for column in cursor.description]
    return (dict(zip(names, row, strict=True)) for row in cursor)


def records(kind: type[T], cursor: sqlite3.Cursor) -> list[T]:
    """Return a record of each row."""
    return [record(kind, row) for row in named(cursor)]


def first(kind: type[T], cursor: sqlite3.Cursor) -> T | None:
    """Return the record of the first row, if there is one."""
    return next((record(kind, row) for row in named(cursor)), None)


@cache
def _within(prefix: str, names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((name, name.removeprefix(prefix)) for name in names if name.startswith(prefix))


def record(kind: type[T], row: Mapping[str, Any], **more: Any) -> T:
    """Return the record of a row, with fields that the row does not say.

    Raise KeyError, TypeError or ValueError for a row that no version of ours wrote.
    """
    data: dict[str, Any] = {}
    for one in types_of(cast("Hashable", kind)):
        if one.name in more:
            continue
        value = row.get(one.name)
        if one.kind is not None and one.name not in row:
            parts = {inner: row[name] for name, inner in _within(f"{one.name}.", tuple(row))}
            if any(part is not None for part in parts.values()):
                more[one.name] = record(one.kind, parts)
        elif value is not None and not (one.structured and value == ""):
            data[one.name] = json.loads(value) if one.structured else value
    return from_json(kind, data, **more)
