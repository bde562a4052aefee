"""Values as text that SQLite takes and gives back: JSON, and plain text."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any


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
