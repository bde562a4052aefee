"""Whether a finding is news, or was told already (SPEC §11). Pure; called by `scheduler.telling`.

The same moment may be longer ago now, and the time of looking may differ. Any other time, date,
number or sign makes it news: told twice is a nuisance, swallowed is a loss.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

SAME_COSINE = 0.9
"""So alike are two findings that say the same, if nothing telling differs (SPEC §11)."""

WORDS_CHANGED = 2
"""Of two texts of the same words but these, in the same places, they are what changed."""


def finding(text: str, *, now: datetime) -> str:
    """The text as it is kept and compared: case, blanks, markup and the marks that end sentences
    evened, the time of looking left out, and behind each age the moment that it means."""
    flat = unicodedata.normalize("NFC", text.casefold()).translate(_PLAIN)
    lines = (" ".join(line.split()) for line in flat.splitlines())
    flat = _BULLETS.sub("", "\n".join(line for line in lines if line))
    for seen in _LOOKED:
        flat = seen.sub(r"\g<how>…", flat)
    flat = _EMPHASIS.sub("", flat)
    flat = _UNIT_BLANK.sub("", _DASHES.sub(" ", flat))
    flat = " ".join(_ENDS.sub("", flat).split())
    return _AGE.sub(lambda match: _dated(match[0], now), flat)


def is_told(
    text: str,
    former: Iterable[str],
    *,
    now: datetime,
    likeness: Callable[[str, str], float] | None = None,
) -> bool:
    """Whether one of the `former` findings (see `finding`) says the same.

    With `likeness` (a cosine) also one in other words, unless something telling differs: a number,
    a comparison, a negation, a day, or one or two words where all others are the same.
    """
    new = _read(finding(text, now=now))
    return any(_says_the_same(_read(old), new, likeness) for old in former)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A finding as it was said, the same without its ages, and these, each as the moment that was
    meant and by how much it may be wrong, in seconds."""

    said: str
    rest: str
    moments: tuple[tuple[int, int], ...]


def _says_the_same(old: _Read, new: _Read, likeness: Callable[[str, str], float] | None) -> bool:
    if old.said == new.said:
        return True
    if not _are_the_same(old.moments, new.moments):
        return False
    if old.rest == new.rest:
        return True
    if likeness is None or _telling(old.rest) != _telling(new.rest):
        return False
    if _changed_in_place(old.rest.split(), new.rest.split()):
        return False
    return likeness(old.said, new.said) >= SAME_COSINE


# --- what may differ -----------------------------------------------------------------------------

_PLAIN = {
    **dict.fromkeys(map(ord, "\u2010\u2011\u2212"), "-"),
    **dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff\ufe0e\ufe0f")),
    **str.maketrans("“”„’‘", '"""\'\''),
}

_BULLETS = re.compile(r"^(?:[-*+•>]|#{1,6}) (?!\d)", re.M)
_EMPHASIS = re.compile(
    r"(?<!\w)(?:\*{1,3}|_{1,3}|`{1,3}|~~)(?=[\w(\[\"'+-])|(?<=\S)[*_`]{1,3}(?!\w)"
)
_DASHES = re.compile(r" [-–—]{1,3} (?!\d)")
_UNIT_BLANK = re.compile(r"(?<=\d) (?=[%°€$£])")
_ENDS = re.compile(r"(?<![.,;:!])[.,;:!]+(?=\s|$)")

_CLOCK = (
    r"(?:\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?: ?[ap]\.?m\b\.?)?(?: ?(?:z|utc|gmt)\b)?"
    r"|\d{1,2} ?[ap]\.?m\b\.?)"
)
_STAMP = rf"(?:\d{{4}}-\d\d-\d\d(?:(?:t|,? ){_CLOCK}(?:[+-]\d\d:?\d\d)?)?|{_CLOCK})"
_STOPS = r"(?= ?(?:$|[)\].,:;!]))"
_LOOKED = (
    re.compile(
        rf"(?P<how>\b(?:(?:last )?(?:checked|looked)|last (?:check|look)|current time|time now)"
        rf"(?: (?:at|on|is|was)|:)? ){_STAMP}{_STOPS}",
        re.M,
    ),
    re.compile(rf"(?P<how>(?:^|[(\[])(?:as of|as at) ){_STAMP}{_STOPS}", re.M),
)
"""The time of looking, where nothing but that can be meant: "(checked 10:05)"."""

_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_LENGTH = (
    r"\d{1,6}(?:\.\d{1,3})? ?"
    r"(?:s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?)\b"
)
_AGE = re.compile(rf"\b{_LENGTH}(?:,? (?:and )?{_LENGTH}){{0,2}} ago\b")
_DATED = re.compile(r" ago@(-?\d{1,14})/(\d{1,6})")
_ONE_LENGTH = re.compile(r"(\d+(?:\.\d+)?) ?([smhdw])")


def _dated(age: str, now: datetime) -> str:
    """An age with the moment it means now, and the length of its smallest unit."""
    lengths = [(float(n), _UNITS_S[unit]) for n, unit in _ONE_LENGTH.findall(age)]
    moment = now.timestamp() - sum(n * unit for n, unit in lengths)
    return f"{age}@{round(moment)}/{lengths[-1][1]}"


def _read(found: str) -> _Read:
    moments = tuple((int(at), int(unit)) for at, unit in _DATED.findall(found))
    said = _DATED.sub(" ago", found)
    return _Read(said=said, rest=_AGE.sub("… ago", said), moments=moments)


def _are_the_same(old: Sequence[tuple[int, int]], new: Sequence[tuple[int, int]]) -> bool:
    return len(old) == len(new) and all(
        abs(at - other) <= max(unit, other_unit)
        for (at, unit), (other, other_unit) in zip(old, new, strict=True)
    )


# --- what tells one finding from another ---------------------------------------------------------

_NUMBERS = re.compile(
    r"[-+±<>≤≥=≠~€$£]{0,3}\d+(?:[.,:/-]\d+)*[%°€$£]?|[<>≤≥≠=↑↓→←±]|[^\W\d]+(?:'t)?"
)
_WORDS = frozenset(
    [
        "no",
        "not",
        "never",
        "none",
        "nobody",
        "nothing",
        "nor",
        "without",
        "cannot",
        "can't",
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
        "thirty",
        "forty",
        "fifty",
        "sixty",
        "seventy",
        "eighty",
        "ninety",
        "hundred",
        "thousand",
        "million",
        "half",
        "twice",
        "first",
        "second",
        "third",
        "last",
        "next",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "today",
        "tomorrow",
        "yesterday",
        "tonight",
        "up",
        "down",
        "open",
        "opened",
        "closed",
        "online",
        "offline",
        "failed",
        "failing",
        "succeeded",
        "passed",
        "rose",
        "fell",
        "rises",
        "falls",
        "higher",
        "lower",
        "above",
        "below",
        "late",
        "early",
        "more",
        "less",
        "won",
        "lost",
        "gained",
        "added",
        "removed",
        "before",
        "after",
    ]
)
"""Words that turn what is said into something else while a cosine stays high."""


def _telling(said: str) -> list[str]:
    """Numbers with their signs and units, comparisons, and such words, in their order."""
    found = _NUMBERS.findall(said)
    return [one for one in found if not one[0].isalpha() or one in _WORDS or one.endswith("n't")]


def _changed_in_place(old: Sequence[str], new: Sequence[str]) -> bool:
    """Mail from Ana, mail from Ben: not other words for the same."""
    if len(old) != len(new):
        return False
    return sum(one != other for one, other in zip(old, new, strict=True)) <= WORDS_CHANGED
