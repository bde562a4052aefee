"""Single fields of what Slack sends, read so that a missing or odd one is an error or nothing.

Called by `bot.slack_raw` and whatever else of Slack reads a payload.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

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
