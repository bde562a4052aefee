"""Why a provider's cache could serve less than the whole former request: in plain words.

Pure; called by `agent.inspecting`, on what two requests held.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.prefix import TOOLS, tools_part
from agent.sent import HISTORY, Sent, SentLayer

DATE_AND_TIME = "date and time"

SOME = 4
"""Of many names, so many are told."""


def why(changed: str, now: Sent, former: Sent | None) -> str:
    """Which part broke the prefix, and why, as far as the two requests say; empty for none.

    `changed` is what the guard named (`agent.prefix.Prefix.first_changed`).
    """
    if not changed:
        return ""
    if former is None:
        return f"{changed}: another text than in the request before"
    if changed == TOOLS:
        return f"{TOOLS}: {_why_tools(now, former)}"
    layer = next((one for one in now.in_system if one.name == changed), None)
    before = next((one for one in former.in_system if one.name == changed), None)
    if layer is not None and (before is None or before.digest != layer.digest):
        return f"{layer.name}: {_why_layer(layer, before)}"
    names = {one.name for one in now.in_system}
    if gone := [one.name for one in former.in_system if one.name not in names]:
        return f"{_some(gone)}: no longer there, so that what follows moved up"
    if layer is not None:
        return f"{layer.name}: it stands in another place"
    return f"{HISTORY}: {_why_history(changed, now, former)}"


def _why_tools(now: Sent, former: Sent) -> str:
    if moved := _came_and_went(now.tool_names, former.tool_names):
        return moved
    if former.last_digests and former.last_digests[0] == tools_part(()).digest:
        return "the request before offered none, for it asked to sum up"
    if now.tool_names != former.tool_names:
        return "they stand in another order"
    return "a description or parameter changed"


def _why_layer(layer: SentLayer, before: SentLayer | None) -> str:
    if before is None:
        return "it was not there before"
    if layer.name == DATE_AND_TIME:
        return (
            "it changes with every minute, and stands before the history "
            '(prompt.turn_layers = "system")'
        )
    moved = _came_and_went(layer.sources, before.sources)
    if len(layer.sources) == len(before.sources) == 1 and moved:
        return f"its text is from {layer.sources[0]} now, not from {before.sources[0]}"
    return moved or f"its text changed ({_some(layer.sources)})"


def _why_history(changed: str, now: Sent, former: Sent) -> str:
    if now.sent_from is not None:
        summed_up = any(layer.name == "previous conversation" for layer in now.layers)
        why = "they were summed up" if summed_up else "there was no room"
        return f"older messages are no longer sent, for {why}"
    if now.shortened_to != former.shortened_to:
        return "old tool results are sent shortened from now on"
    return f"{changed} differs from what was sent before"


def _came_and_went(now: Sequence[str], before: Sequence[str]) -> str:
    came = [name for name in now if name not in before]
    went = [name for name in before if name not in now]
    parts = [f"{_some(names)} {verb}" for names, verb in ((came, "came"), (went, "went")) if names]
    return ", ".join(parts)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SOME} more" if len(names) > SOME else ""
    return ", ".join(names[:SOME]) + more if names else "no source"
