"""What a recorded call means, whichever way it was written: its tool, and what that was given.

Read as leniently as the toolbox reads it that runs it: what it takes for a call of a tool is one
here too. Pure.
"""

from __future__ import annotations

from typing import Any

from agent.loose_json import read_object
from agent.transcript import ToolCall

TOOL_CALL = "tool_call"
"""The tool by which any other can be called."""


def called_name(call: ToolCall) -> str:
    """The tool that a call means: that within a tool_call."""
    if call.name != TOOL_CALL:
        return call.name
    inner = read_object(call.arguments)
    return call.name if inner is None else str(inner.get("name", "")).strip()


def called_arguments(call: ToolCall) -> dict[str, Any]:
    """What the tool that is meant was given; what cannot be read is one value without a name."""
    given = read_object(call.arguments)
    if given is not None and call.name == TOOL_CALL:
        inner = given.get("arguments") or {}
        given = read_object(inner) if isinstance(inner, str) else inner
    return given if isinstance(given, dict) else {"": call.arguments}
