"""Signs that nobody sees, spelled out: what a person is shown of a text is all that there is of it.

Pure. Used for the cards by which people are asked, and wherever a name of others stands in a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

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
    """How many signs each piece stands for, and how it is shown; from either end."""
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
