"""JSON from outside, read so that nothing in it can stop who reads. Called by the channels."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
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
        return json.loads(
            _cut_deep(text),
            parse_int=lambda digits: int(digits) if len(digits) <= DIGITS_MAX else 0,
        )


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


# --- what strangers write -----------------------------------------------------------------------

_LINK = re.compile(r"/link(?:@[A-Za-z0-9_]{1,64})?[ \t]{1,9}([A-Za-z0-9]{8})[ \t\n]{0,9}", re.ASCII)


def link_code(text: object) -> str:
    """Return the code of a message that is `/link CODE` and nothing else; empty for any other.

    This is all that is ever read of a stranger's words, and it is kept nowhere.
    """
    found = _LINK.fullmatch(text) if isinstance(text, str) else None
    return found[1].upper() if found else ""


# --- single fields ------------------------------------------------------------------------------

Json = Mapping[str, Any]

TEXT_CHARS_MAX = 200_000
"""Slack cuts a message at 40,000; whatever is much longer did not come from there."""

ID = re.compile(r"[A-Z][A-Z0-9]{1,30}")
_TS = re.compile(r"[0-9]{1,16}\.[0-9]{1,12}")
WORD = re.compile(r"[A-Za-z0-9._:-]{1,120}")


def is_direct(channel: str) -> bool:
    """Whether a conversation is a direct message: only these have an id that begins with D."""
    return channel.startswith("D")


def text_of(holder: Json, name: str) -> str:
    """A text, empty where there is none; half characters become marks that can be stored."""
    value = holder.get(name)
    if not isinstance(value, str):
        return ""
    value = value[:TEXT_CHARS_MAX]
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def needed_id(holder: Json, name: str) -> str:
    """An id as Slack makes them. Raises ValueError."""
    return needed(holder, name, ID)


def needed_direct(holder: Json, name: str) -> str:
    """The id of a direct message. Raises ValueError."""
    channel = needed_id(holder, name)
    if not is_direct(channel):
        raise ValueError(f"{name} is no direct message")
    return channel


def needed_ts(holder: Json, name: str) -> str:
    """A message's time, which is its id. Raises ValueError."""
    return needed(holder, name, _TS)


def needed(holder: Json, name: str, form: re.Pattern[str]) -> str:
    """A text of this form. Raises ValueError."""
    value = holder.get(name)
    if not isinstance(value, str) or form.fullmatch(value) is None:
        raise ValueError(f"no {name}")
    return value


def part(holder: Json, name: str) -> Json:
    """An object within it. Raises ValueError."""
    value = holder.get(name)
    if not isinstance(value, dict):
        raise ValueError(f"no {name}")
    return value
