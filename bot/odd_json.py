"""JSON from outside, read so that nothing in it can stop who reads. Called by the channels."""

from __future__ import annotations

import json
import re
from typing import Any

DEPTH_MAX = 64
"""Levels of nesting that are kept of JSON which is too deep to be read as a whole. A message
that replies to another one has about ten."""

DIGITS_MAX = 400

_MARKS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def read_json(text: str) -> Any:
    """As json.loads; what is nested too deeply becomes null, and absurdly long numbers 0.

    Raises ValueError for what is not JSON, and nothing else.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except (RecursionError, ValueError):
        return json.loads(_cut_deep(text), parse_int=_bounded)


def _bounded(digits: str) -> int:
    return int(digits) if len(digits) <= DIGITS_MAX else 0


def _cut_deep(text: str) -> str:
    kept: list[str] = []
    depth = start = 0
    for found in _MARKS.finditer(text):
        mark = found[0]
        if mark in "[{":
            depth += 1
            if depth == DEPTH_MAX + 1:
                kept.append(text[start : found.start()])
        elif mark in "]}":
            if depth == DEPTH_MAX + 1:
                kept.append("null")
                start = found.end()
            depth -= 1
    if depth > DEPTH_MAX:
        return ""  # it never ends, so it is not JSON
    kept.append(text[start:])
    return "".join(kept)
