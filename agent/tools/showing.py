"""What a person reads of a call before they agree to it: exact, and safe from what stands in it.

Pure; used by `agent.tools.policy` and by the cards that ask.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from agent.tools.arguments import ArgumentsWrong, parse_arguments
from agent.tools.tool import ToolCard

SHOWN_CHARS_MAX = 2_400
"""Of all values together, about: a card is one message on every platform."""

VALUE_CHARS_MIN = 60
"""What each value gets at least, however many there are."""

SAYS_CHARS_MAX = 1_200
NAME_CHARS_MAX = 60
ROWS_MAX = 24
"""Arguments that are shown; of more, the middle ones are left out and counted."""

NO_ARGUMENTS = "(nothing further)"

_BAR = "  | "
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Printable by their class, and yet nothing is seen of them."""


def visible(text: str) -> str:
    """The text on one line, with everything that is not seen, or turns the direction of what
    follows, named: `‹U+202E›`."""
    return "".join(_piece(text, at) for at in range(len(text)))


def as_called(card: ToolCard, arguments: str) -> Mapping[str, Any] | str:
    """The arguments as the tool will get them; the text itself where it cannot be read."""
    try:
        parsed = parse_arguments(card.arguments, arguments)
    except ArgumentsWrong:
        return arguments
    if isinstance(parsed, BaseModel):
        return parsed.model_dump(mode="json", exclude_unset=True)
    return parsed if isinstance(parsed, dict) else arguments


def rows(called: Mapping[str, Any] | str, *, says: str = "") -> list[str]:
    """Lines that name each value; what a tool `says` of the call comes first.

    A value that is that very line is not shown a second time.
    """
    lines = _says_rows(says) if says else []
    if isinstance(called, str):
        return [*lines, *_text_rows("arguments", called, room=SHOWN_CHARS_MAX)]
    first = says.partition("\n")[0]
    left = [(name, value) for name, value in called.items() if not _is_said(value, first)]
    room = max(SHOWN_CHARS_MAX // max(min(len(left), ROWS_MAX), 1), VALUE_CHARS_MIN)
    for name, value in left[: ROWS_MAX // 2]:
        lines += _value_rows(name, value, room=room)
    rest = left[ROWS_MAX // 2 :]
    if len(left) > ROWS_MAX:
        lines.append(f"[… {len(left) - ROWS_MAX} of {len(left)} arguments left out …]")
        rest = left[-(ROWS_MAX // 2) :]
    for name, value in rest:
        lines += _value_rows(name, value, room=room)
    return lines or [NO_ARGUMENTS]


def fenced(lines: Sequence[str]) -> str:
    """A code block that nothing in it can close."""
    body = "\n".join(lines)
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{body}\n{fence}"


# --- one value ---------------------------------------------------------------------------------


def _says_rows(says: str) -> list[str]:
    if len(says) <= SAYS_CHARS_MAX:
        return [visible(line) for line in says.split("\n")]
    return _cut_rows("what will run", says, room=SAYS_CHARS_MAX, kind="characters")


def _is_said(value: Any, line: str) -> bool:
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        return line == shlex.join(value)
    return bool(line) and value == line


def _value_rows(name: str, value: Any, *, room: int) -> list[str]:
    if isinstance(value, str):
        return _text_rows(_name(name), value, room=room)
    written = json.dumps(value, ensure_ascii=False, default=str)
    if _fits(written, room):
        return [f"{_name(name)}: {visible(written)}"]
    return _cut_rows(_name(name), written, room=room, kind="characters of JSON")


def _text_rows(name: str, text: str, *, room: int) -> list[str]:
    if not _fits(text, room):
        return _cut_rows(name, text, room=room, kind="characters")
    if "\n" not in text:
        return [f'{name}: "{visible(text)}"']
    lines = [_BAR + visible(line) for line in text.split("\n")]
    return [f"{name}, {len(text):,} characters:", *lines]


def _cut_rows(name: str, text: str, *, room: int, kind: str) -> list[str]:
    """Head and tail, each line behind a bar, and between them what no value can write: a line
    without one."""
    head, tail = _ends(text, room)
    left_out = len(text) - head - tail
    return [
        f"{name}, {len(text):,} {kind}, the middle left out:",
        *(_BAR + visible(line) for line in text[:head].split("\n")),
        f"  [… {left_out:,} characters left out …]",
        *(_BAR + visible(line) for line in text[len(text) - tail :].split("\n")),
    ]


def _fits(text: str, room: int) -> bool:
    return len(text) <= room and _taken(text, range(len(text)), room) == len(text)


def _ends(text: str, room: int) -> tuple[int, int]:
    """How many characters of the beginning and of the end are shown: two thirds of the room are
    the beginning's, and what has to be spelled out takes more of it."""
    head = _taken(text, range(len(text)), room * 2 // 3)
    tail = _taken(text, range(len(text) - 1, head, -1), room // 3)
    return head, tail


def _taken(text: str, places: Iterable[int], room: int) -> int:
    taken = width = 0
    for at in places:
        width += _cost(text, at)
        if width > room:
            break
        taken += 1
    return taken


def _cost(text: str, at: int) -> int:
    return len(_BAR) + 1 if text[at] == "\n" else len(_piece(text, at))


def _piece(text: str, at: int) -> str:
    letter = text[at]
    return f"‹U+{ord(letter):04X}›" if _is_hidden(letter) else letter


def _is_hidden(letter: str) -> bool:
    if letter in _FILLERS or not letter.isprintable():
        return True
    return "\ufe00" <= letter <= "\ufe0f" or "\U000e0100" <= letter <= "\U000e01ef"


def _name(name: str) -> str:
    if not _fits(name, NAME_CHARS_MAX):
        head = name[: _taken(name, range(len(name)), NAME_CHARS_MAX)]
        return f'"{visible(head)}…" (a name of {len(name):,} characters)'
    return name if _PLAIN_NAME.fullmatch(name) else f'"{visible(name)}"'
