"""Regular expressions that come from settings and skills: checked before use, and held to a time.

The dialect is that of Python's `re`, which every pattern must satisfy. The search is done by the
`regex` library, because it alone can be told to stop; the only module that knows it. What ships
with the program, and is tried by its tests, is searched for by `re`. Called by
`agent.skills.rules`.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Protocol

from agent.errors import Permanent

CHARS_MAX = 1_000
REPEATS_MAX = 10_000
"""How often the counts of a pattern may multiply to: `(a{99}){99}` is all right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternFault:
    """Why a pattern cannot be used. `position` counts from 1; 0 means the pattern as a whole."""

    text: str
    position: int = 0

    def __str__(self) -> str:
        """`missing ), unterminated subpattern (character 3)`."""
        return f"{self.text} (character {self.position})" if self.position else self.text


class PatternWrong(Permanent):
    """The pattern cannot be used; `fault` says where and why."""

    def __init__(self, fault: PatternFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


class TooSlow(Permanent):
    """The pattern did not come to an end in its time: on this text it never will."""


class Hit(Protocol):
    """What a search gives: the text that was hit."""

    def group(self) -> str: ...


class _Compiled(Protocol):
    def search(self, text: str, *, timeout: float) -> Hit | None: ...


def fault_of(pattern: str) -> PatternFault | None:
    """What is wrong with a pattern; None if nothing is."""
    if len(pattern) > CHARS_MAX:
        return PatternFault(text=f"it is longer than {CHARS_MAX:,} characters")
    try:
        _compiled_by_re(pattern)
    except re.error as error:
        return PatternFault(text=error.msg, position=0 if error.pos is None else error.pos + 1)
    except OverflowError:
        return PatternFault(text="a repetition count is too large")
    except RecursionError:
        return PatternFault(text="too many brackets stand within each other")
    if comment := _COMMENT.search(pattern):
        # They could hide from the count below what a repetition stands behind.
        return PatternFault(text="leave out comments and (?x)", position=comment.start() + 1)
    if _repeats(pattern) > REPEATS_MAX:
        # The engine unrolls counts: (a{1000}){1000} would take gigabytes.
        return PatternFault(text=f"its repetitions multiply to more than {REPEATS_MAX:,}")
    return None


class Pattern:
    """A pattern ready for use, in any case of letters."""

    def __init__(self, pattern: str, *, is_ours: bool = False) -> None:
        """`is_ours`: it ships with the program, so that no limit of time is needed. Raises
        PatternWrong for what `fault_of` finds."""
        fault = fault_of(pattern)
        if fault is not None:
            raise PatternWrong(fault)
        self._compiled: _Compiled = _Unlimited(pattern) if is_ours else _compiled(pattern)

    def found(self, text: str, *, limit_s: float) -> str | None:
        """The piece of the text that fits, or None. Raises TooSlow after about `limit_s`."""
        try:
            hit = self._compiled.search(text, timeout=limit_s)
        except TimeoutError as error:
            raise TooSlow(f"no end within {limit_s:g} s") from error
        return hit.group() if hit is not None else None


class _Unlimited:
    """A pattern that comes to its end by itself: `re` keeps the other threads waiting for a moment,
    where `regex` would hand over to them in the middle of each search."""

    def __init__(self, pattern: str) -> None:
        self._pattern = _compiled_by_re(pattern)

    def search(self, text: str, *, timeout: float) -> Hit | None:
        return self._pattern.search(text)


def _compiled_by_re(pattern: str) -> re.Pattern[str]:
    with warnings.catch_warnings():
        # `[[a]` may mean something else one day; today it is what its author has tried.
        warnings.simplefilter("ignore")
        return re.compile(pattern, re.IGNORECASE)


def _compiled(pattern: str) -> _Compiled:
    # Loaded here: most bots have no patterns of their own, and it takes a twentieth of the start.
    import regex  # type: ignore[import-untyped]

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made: _Compiled = regex.compile(pattern, regex.IGNORECASE | regex.VERSION0)
    except (regex.error, RecursionError, OverflowError) as error:
        raise PatternWrong(PatternFault(text=f"the search cannot read it: {error}")) from error
    return made


_COMMENT = re.compile(r"\(\?(?:#|[a-zA-Z]*x)")
_COUNT = re.compile(r"\{(\d*)(?:(,)(\d*))?\}")


def _repeats(pattern: str) -> int:
    """How large the pattern is with its counts written out; brackets multiply what is in them.

    Never less than it is: what is not understood counts as a character.
    """
    sizes, last = [0], 0
    at = 0
    while at < len(pattern):
        character = pattern[at]
        count = _COUNT.match(pattern, at) if character == "{" else None
        step = 1
        if count is not None and (count[1] or count[3]):
            times = max(int(count[1] or 0), int(count[3] or 0), 1)
            sizes[-1] += last * (times - 1)
            last, step = last * times, len(count[0])
        elif character == "(":
            sizes.append(0)
            last = 0
        elif character == ")" and len(sizes) > 1:
            last = max(sizes.pop(), 1)
            sizes[-1] += last
        else:
            step = _atom_length(pattern, at)
            last = last if character in "*+?" else 1
            sizes[-1] += 1
        at += step
    return sum(sizes)


def _atom_length(pattern: str, at: int) -> int:
    """How many characters make one atom: an escape, a whole set, or one."""
    if pattern[at] == "\\":
        return 2
    if pattern[at] != "[":
        return 1
    end = at + 1
    if pattern[end : end + 1] == "^":
        end += 1
    end += 1  # a first ] is a member of the set
    while end < len(pattern) and pattern[end] != "]":
        end += 2 if pattern[end] == "\\" else 1
    return end + 1 - at
