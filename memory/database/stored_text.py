"""Values as text that SQLite takes and gives back: JSON, and plain text."""

from __future__ import annotations

import json
from typing import Any


def dump(value: Any) -> str:
    """JSON on one line, readable in any script."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if _is_unicode(text):
        return text
    # Half of a surrogate pair, as models and platforms sometimes write: only an escape keeps it.
    return json.dumps(value, separators=(",", ":"))


def storable(text: str) -> str:
    """The text with `?` in place of what is not Unicode (half surrogate pairs)."""
    return text if _is_unicode(text) else text.encode("utf-8", "replace").decode("utf-8")


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
