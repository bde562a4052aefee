"""JSON objects as models write them: read in one way, whoever has to know what a call means.

What runs a call, what counts it and what looks back at it would else each see another call. Pure.
"""

from __future__ import annotations

import json
import re
from typing import Any


def read_object(text: str) -> dict[str, Any] | None:
    """The object that a model wrote; no text at all is an empty one. None where it is no object.

    Also in a fence, encoded twice, and repaired where it can mean only one thing.
    """
    text = _without_fence(text.strip())
    if not text:
        return {}
    data = _loaded(text)
    if isinstance(data, str):  # an object, encoded twice
        data = _loaded(data)
    if data is None:
        data = _repaired(text)
    return data if isinstance(data, dict) else None


def _without_fence(text: str) -> str:
    fenced = re.fullmatch(r"```(?:json)?\s*\n(.*)\n```", text, re.DOTALL)
    return fenced[1].strip() if fenced else text


def _loaded(text: str) -> Any:
    """The JSON value; raw line breaks within strings are let pass. None when it is no JSON."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _repaired(text: str) -> Any:
    """What json-repair makes of it, if that is the only thing it can mean; else None.

    Never completed: what lacks a bracket or a quote may have been cut by the output limit.
    Never changed: letters and digits stay as they are, and each string stands in the original.
    """
    if not (text.startswith("{") and text.endswith("}") and _closed(text)):
        return None
    import json_repair

    try:
        data = json_repair.loads(text)
    except (ValueError, RecursionError):
        return None
    same_words = _words(text) == _words(json.dumps(data, ensure_ascii=False))
    return data if same_words and all(_stands_in(part, text) for part in _strings(data)) else None


def _closed(text: str) -> bool:
    quote = '"' if '"' in text else "'"
    bare = text.replace("\\\\", "").replace("\\" + quote, "")
    balanced = text.count("{") == text.count("}") and text.count("[") == text.count("]")
    return balanced and bare.count(quote) % 2 == 0


_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}


def _words(text: str) -> list[str]:
    """Letters and digits in order, without escapes, with Python's literals as JSON's."""
    found = re.findall(r"[^\W_]+", re.sub(r"\\[nrtbf]", " ", text))
    return [_PYTHON_WORDS.get(word, word) for word in found]


def _strings(data: Any) -> list[str]:
    if isinstance(data, str):
        return [data]
    if isinstance(data, list):
        return [part for item in data for part in _strings(item)]
    if isinstance(data, dict):
        return [*data, *(part for item in data.values() for part in _strings(item))]
    return []


def _stands_in(part: str, text: str) -> bool:
    return part in text or json.dumps(part, ensure_ascii=False)[1:-1] in text
