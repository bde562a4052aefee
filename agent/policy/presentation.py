"""What a person reads of a call before they agree to it: exact, and safe from what stands in it.

A card is made of rows. Each begins with words of ours, or with a name that the tool gave; a value
stays in its own row, or goes on behind a bar, so that it begins no row itself. What is not seen is
spelled out, and what is left out is said at its place. Pure; used by `agent.policy.approval` and by
the cards that ask.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from agent.guards.repetition import BREAK, pieces, visible
from agent.tools.arguments import ArgumentsWrong, parse_arguments
from agent.tools.tool import COMMAND, Caller, Needs, Tool, ToolCard

SHOWN_CHARS_MAX = 2_400
"""Of all values together, about: a card is one message on every platform."""

VALUE_CHARS_MIN = 60
"""What each value gets at least, however many there are."""

SAYS_CHARS_MAX = 1_200
"""Of each row in which a tool says what will happen."""

NAME_CHARS_MAX = 60
ROWS_MAX = 24
"""Arguments that are shown; of more, the middle ones are left out and counted."""

NO_ARGUMENTS = "(nothing further)"

_BAR = "  | "
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]+")


def as_called(card: ToolCard, arguments: str) -> Mapping[str, Any] | str:
    """The arguments as the tool will get them; the text itself where it cannot be read."""
    try:
        parsed = parse_arguments(card.arguments, arguments)
    except ArgumentsWrong:
        return arguments
    if isinstance(parsed, BaseModel):
        return values_of(parsed)
    return parsed if isinstance(parsed, dict) else arguments


def needs_of(tool: Tool, arguments: Any, caller: Caller) -> Needs:
    """Return what a call needs: refused, where it has to be shown whole and no card can.

    Raise AssistantError as `Tool.needs` does.
    """
    needs = tool.needs(arguments, caller)
    if needs.whole and not is_whole(values_of(arguments), says=needs.shows):
        return Needs(refused=needs.whole)
    return replace(needs, whole="")


def values_of(arguments: BaseModel) -> Mapping[str, Any]:
    """Return what of the arguments was given, as a card shows it."""
    return arguments.model_dump(mode="json", exclude_unset=True)


def rows(called: Mapping[str, Any] | str, *, says: Sequence[str] = ()) -> list[str]:
    """Lines that name each value; the rows in which a tool `says` what will happen come first.

    The value that stands in the first of these is not shown a second time.
    """
    lines: list[str] = []
    for row in says:
        if _fits(row, SAYS_CHARS_MAX):
            lines.append(visible(row))
        else:
            lines += _cut_rows("what will happen", row, room=SAYS_CHARS_MAX, kind="characters")
    if isinstance(called, str):
        return [*lines, *_text_rows("arguments", called, room=SHOWN_CHARS_MAX)]
    values = _left(called, says)
    rooms = _rooms(values)
    lines += _all_rows(values[: ROWS_MAX // 2], rooms)
    rest = values[ROWS_MAX // 2 :]
    if len(values) > ROWS_MAX:
        lines.append(f"[… {len(values) - ROWS_MAX} of {len(values)} arguments left out …]")
        rest = values[-(ROWS_MAX // 2) :]
    return [*lines, *_all_rows(rest, rooms)] or [NO_ARGUMENTS]


def is_whole(called: Mapping[str, Any], *, says: Sequence[str] = ()) -> bool:
    """Return whether a card shows all of a call, with nothing left out."""
    values = _left(called, says)
    rooms = _rooms(values)
    return (
        all(_fits(row, SAYS_CHARS_MAX) for row in says)
        and len(values) <= ROWS_MAX
        and all(_fits(name, NAME_CHARS_MAX) for name, _ in values)
        and all(_fits(_written(value), rooms[name], breaks="\n") for name, value in values)
    )


def fenced(lines: Sequence[str]) -> str:
    """A code block that nothing in it can close."""
    body = "\n".join(lines)
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{body}\n{fence}"


# --- which values, and how much of each ---------------------------------------------------------

Named = tuple[str, Any]


def _left(called: Mapping[str, Any], says: Sequence[str]) -> list[Named]:
    first = says[0] if says else ""
    said = next((name for name, value in called.items() if _is_said(value, first)), None)
    return [(name, value) for name, value in called.items() if name != said]


def _is_said(value: Any, row: str) -> bool:
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        return row == f"{COMMAND}{shlex.join(value)}"
    return isinstance(value, str) and bool(value) and value in {row, row.partition(": ")[2]}


def _rooms(values: Sequence[Named]) -> dict[str, int]:
    """Return what each value may take: the short ones what they need, the others the rest in equal
    parts."""
    costs = {name: _cost(_written(value), SHOWN_CHARS_MAX) for name, value in values}
    rooms: dict[str, int] = {}
    left, count = SHOWN_CHARS_MAX, min(len(values), ROWS_MAX)
    for name in sorted(costs, key=lambda one: costs[one]):
        rooms[name] = max(left // max(count, 1), VALUE_CHARS_MIN)
        left, count = max(left - min(costs[name], rooms[name]), 0), count - 1
    return rooms


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


# --- rows --------------------------------------------------------------------------------------


def _all_rows(values: Sequence[Named], rooms: Mapping[str, int]) -> list[str]:
    lines: list[str] = []
    for name, value in values:
        shown, room, written = _name(name), rooms[name], _written(value)
        if isinstance(value, str):
            lines += _text_rows(shown, value, room=room)
        elif _fits(written, room):
            lines.append(f"{shown}: {visible(written)}")
        else:
            lines += _cut_rows(shown, written, room=room, kind="characters of JSON")
    return lines


def _text_rows(name: str, text: str, *, room: int) -> list[str]:
    if not _fits(text, room, breaks="\n"):
        return _cut_rows(name, text, room=room, kind="characters")
    if "\n" not in text:
        return [f'{name}: "{visible(text)}"']
    return [f"{name}, {len(text):,} characters:", *_behind_bars(text)]


def _cut_rows(name: str, text: str, *, room: int, kind: str) -> list[str]:
    """Head and tail, each line behind a bar, and between them what no value can write: a line
    without one. Two thirds of the room are the beginning's; what has to be spelled out takes more
    of it."""
    head = _taken(text, room * 2 // 3)
    tail = _taken(reversed(text[head:]), room // 3)
    left_out = len(text) - head - tail
    return [
        f"{name}, {len(text):,} {kind}, the middle left out:",
        *_behind_bars(text[:head]),
        f"  [… {left_out:,} characters left out …]",
        *_behind_bars(text[len(text) - tail :]),
    ]


def _behind_bars(text: str) -> list[str]:
    shown = "".join(shown for _, shown in pieces(text, breaks="\n"))
    return [f"{_BAR}{line}" for line in shown.split("\n")]


def _name(name: str) -> str:
    if not _fits(name, NAME_CHARS_MAX):
        head = visible(name[: _taken(name, NAME_CHARS_MAX)])
        return f'"{head}…" (a name of {len(name):,} characters)'
    return name if _PLAIN_NAME.fullmatch(name) else f'"{visible(name)}"'


# --- widths -----------------------------------------------------------------------------------


def _fits(text: str, room: int, *, breaks: str = BREAK) -> bool:
    return _cost(text, room, breaks=breaks) <= room


def _cost(text: str, room: int, *, breaks: str = "\n") -> int:
    """The width of a text as shown; of a long one only that it is more than the room."""
    width = 0
    for _, shown in pieces(text, breaks=breaks):
        width += _width(shown)
        if width > room:
            break
    return width


def _taken(letters: Iterable[str], room: int) -> int:
    """Return how many signs of the beginning fit."""
    taken = width = 0
    for count, shown in pieces(letters, breaks="\n"):
        width += _width(shown)
        if width > room:
            break
        taken += count
    return taken


def _width(shown: str) -> int:
    return len(shown) + shown.count("\n") * len(_BAR)
