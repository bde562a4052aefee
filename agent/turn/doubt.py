"""Calls of which nobody knows whether they were done, and what their person is told of each.

The program died in the middle of them, and they may not be repeated (SPEC §6). The model is told by
a result, and may keep silent about it; so code tells the person. Called by `agent.turn.assistant`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from agent.policy.presentation import visible
from agent.tools.arguments import ArgumentsWrong
from agent.tools.discovery import resolved
from agent.turn.steps.tools import UNKNOWN_FATE
from memory.records.text import one_line
from memory.records.transcript import Answered, Entry, ToolCall, ToolResult

ASKED_CHARS_MAX = 120
"""Of what was asked, as the person is reminded of it."""

DOUBT = (
    "I was stopped while trying to {what}, and I do not know whether it was done: please look "
    "before you ask for it again."
)

Named = Callable[[str], str]
"""What a tool does, in plain words that go on after "trying to"."""


def nameless(tool: str) -> str:
    """Where nobody has words for it."""
    return "use a tool"


def doubts(entries: Sequence[Entry], named: Named, *, is_shared: bool) -> list[str]:
    """A sentence of Markdown for each such call of a turn, in order. Where others read along
    (`is_shared`) it does not say with which arguments."""
    return [DOUBT.format(what=_what(call, named, is_shared)) for call in _doubted(entries)]


def _doubted(entries: Sequence[Entry]) -> list[ToolCall]:
    found = []
    calls: dict[str, ToolCall] = {}  # ids may come again from one answer to another
    for entry in entries:
        match entry:
            case Answered():
                calls = {call.id: call for call in entry.calls}
            # A server could write the same words: its results are never ours.
            case ToolResult(content=content, ok=False, untrusted=False) if content == UNKNOWN_FATE:
                if (call := calls.get(entry.call_id)) is not None:
                    found.append(call)
            case _:
                pass
    return found


def _what(call: ToolCall, named: Named, is_shared: bool) -> str:
    try:
        meant = resolved(call)
    except ArgumentsWrong:
        meant = call
    what = named(meant.name)
    asked = "" if is_shared else _asked(meant.arguments)
    return f"{what} (`{asked}`)" if asked else what


def _asked(arguments: str) -> str:
    """The values in one short line, which ends no span of code."""
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        values = arguments
    if isinstance(values, dict):
        values = ", ".join(f"{name}: {_value(value)}" for name, value in values.items())
    shown = one_line(visible(_value(values)), chars_max=ASKED_CHARS_MAX)
    return shown.replace("`", "'").strip()


def _value(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return " ".join(value)
    return json.dumps(value, ensure_ascii=False)
