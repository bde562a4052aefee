"""Marks that tell a provider up to where a prompt will be sent again, so that its cache keeps it.

Used on requests in OpenAI's form: by `litellm`, which translates the marks for each provider, and
by `wire` for a server that hands them on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent.transcript import Entry, Note

MARK = {"type": "ephemeral"}


def takes_marks(name: str) -> bool:
    """Whether a model caches what is marked: Claude, wherever it runs.

    Gemini keeps prefixes without being told. Marks would make litellm create a cache there, in
    requests of its own, for each prompt that differs, and it is paid for by the hour.
    """
    return "claude" in name.lower()


def mark(arguments: dict[str, Any], entries: Sequence[Entry]) -> None:
    """Marks the last tool, the system message, and the newest message that will be sent again.

    Notes at the end are for this one request. Three of the four marks that are allowed.
    """
    if arguments.get("tools"):
        arguments["tools"][-1]["cache_control"] = dict(MARK)
    for message in arguments["messages"][:1]:
        if message["role"] == "system":
            text = message["content"]
            message["content"] = [{"type": "text", "text": text, "cache_control": dict(MARK)}]
    passing = 0
    for entry in reversed(entries):
        if not isinstance(entry, Note):
            break
        passing += bool(entry.text)
    for message in reversed(arguments["messages"]):
        if message["role"] == "system":
            return
        parts = message.get("content")
        if message["role"] == "user" and isinstance(parts, list):
            if len(parts) > passing:
                parts[-1 - passing]["cache_control"] = dict(MARK)
                return
            passing -= len(parts)
        else:
            message["cache_control"] = dict(MARK)
            return
