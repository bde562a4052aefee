"""Repeated tool calls that are refused, answers in which a person would see nothing, and signs that
nobody sees, spelled out.

Small counters, used by the loop. Hidden text is in `memory.records.text`.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby

from memory.records.transcript import ToolCall, ToolResult

# --- calls that repeat themselves --------------------------------------------------------------

SAME_RESULT_MAX = 3
_CYCLE_CALLS = 4

_Key = tuple[str, str]


class RepeatGuard:
    """Refuses a call that keeps giving the same result, and two calls that alternate.

    For each call: `refusal` before it is run, `saw` once it has a result (also for a refused
    one). Calls of one answer may all be asked about before any is seen. A result that changes
    starts the count anew, so polling goes on.
    """

    def __init__(self) -> None:
        self._results: dict[_Key, str] = {}
        self._same: Counter[_Key] = Counter()
        self._open: Counter[_Key] = Counter()
        self._last: list[tuple[_Key, str]] = []
        self._refused: set[str] = set()

    @property
    def should_sum_up(self) -> bool:
        """Return whether a call was refused: the model is to answer with what there is."""
        return bool(self._refused)

    def refusal(self, call: ToolCall) -> str | None:
        """A note for the model instead of a result, or None: the call may run."""
        key = _key(call)
        if self._same[key] + self._open[key] >= SAME_RESULT_MAX:
            why = f"this call was made {SAME_RESULT_MAX} times with the same result"
        # Whether two full periods A-B-A-B lie behind, and this call would begin a third.
        elif (
            len(self._last) == _CYCLE_CALLS
            and self._last[:2] == self._last[2:]
            and self._last[0][0] == key != self._last[1][0]
        ):
            why = "this call and another one take turns, with the same results"
        else:
            self._open[key] += 1
            return None
        self._refused.add(call.id)
        return f"Not run: {why}. Do not repeat it; answer with what you have."

    def saw(self, call: ToolCall, result: ToolResult) -> None:
        """Count a result; that of a refused call changes nothing."""
        if call.id in self._refused:
            return
        key = _key(call)
        digest = hashlib.sha256(result.content.encode("utf-8", "replace")).hexdigest()
        self._open[key] = max(self._open[key] - 1, 0)
        self._same[key] = self._same[key] + 1 if self._results.get(key) == digest else 1
        self._results[key] = digest
        self._last = [*self._last, (key, digest)][-_CYCLE_CALLS:]


def _key(call: ToolCall) -> _Key:
    """Name and arguments; the order of parameters and blanks between them do not count."""
    try:
        arguments = json.dumps(json.loads(call.arguments), sort_keys=True)
    except (ValueError, RecursionError):
        arguments = call.arguments.strip()
    return call.name, arguments


# --- empty answers -----------------------------------------------------------------------------

_MARKUP = frozenset("*_~`#>|=+-\\")
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def is_empty(text: str) -> bool:
    """Return whether a person would see nothing: blanks, invisible characters, markup without
    words."""
    return all(
        letter in _MARKUP
        or letter.isspace()
        or letter in _BLANK_LETTERS
        or unicodedata.category(letter) in {"Cf", "Cc", "Mn", "Me"}
        for letter in text
    )


# --- signs --------------------------------------------------------------------------------------
#
# Signs that nobody sees, spelled out: what a person is shown of a text is all that there is of it.
#
# Pure. Used for the cards by which people are asked, and wherever a name of others stands in a
# line.

BLANKS_MIN, BREAKS_MIN, SAME_MIN = 20, 8, 80
"""So many of a sign in a row are shown as their number: padding pushes nothing out of sight."""

BREAK = "⏎"
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Printable by their class, and yet nothing is seen of them."""

_OURS = frozenset("‹⏎␠")
"""Signs of ours, which no value can use as such."""


def visible(text: str) -> str:
    """The text on one line, with everything that is not seen, or turns the direction of what
    follows, named: `‹U+202E›`; line breaks as `⏎`, and long runs of one sign as `‹␠×3,000›`."""
    return "".join(shown for _, shown in pieces(text, breaks=BREAK))


def pieces(letters: Iterable[str], *, breaks: str = BREAK) -> Iterator[tuple[int, str]]:
    """Yield how many signs each piece stands for, and how it is shown; from either end."""
    for letter, same in groupby(letters):
        count = sum(1 for _ in same)
        if count >= {" ": BLANKS_MIN, "\n": BREAKS_MIN}.get(letter, SAME_MIN):
            sign = {" ": "␠", "\n": BREAK}.get(letter) or _spelled(letter).strip("‹›")
            run = f"‹{sign}×{count:,}›"
            yield count, f"\n{run}\n" if letter == "\n" == breaks else run
        else:
            yield from [(1, breaks if letter == "\n" else _spelled(letter))] * count


def _spelled(letter: str) -> str:
    # Variation selectors are printable, too, and change how the sign before them looks.
    is_selector = "\ufe00" <= letter <= "\ufe0f" or "\U000e0100" <= letter <= "\U000e01ef"
    is_hidden = letter in _FILLERS or letter in _OURS or not letter.isprintable()
    return f"‹U+{ord(letter):04X}›" if is_hidden or is_selector else letter
