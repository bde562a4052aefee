"""Numbers, units and names as people write them, and patterns made of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from fractions import Fraction

from scheduler.timetext.pieces import Found, Piece, ReadingContext, Rule

ONES = (
    *("zero", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen"),
    *("fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_ORDINAL_ONES = (
    *("zeroth", "first", "second", "third", "fourth", "fifth", "sixth"),
    *("seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth", "thirteenth"),
    *("fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth"),
)

WORD = rf"(?:(?:{'|'.join(TENS)})(?:[- ](?:{'|'.join(ONES[1:10])}))?|{'|'.join(ONES)})"
NUMBER = rf"(?:\d{{1,4}}|{WORD})"
_SOME = (
    rf"half an?|(?:a )?quarter of an?|three quarters of an?|{WORD}|(?:a )?couple(?: of)?"
    r"|(?:a )?few|an?"
)
COUNT = rf"(?:\d{{1,4}}(?:\.\d{{1,2}})?|\d/\d|(?:{_SOME})\b)(?: and (?:an? )?half(?: an)?)?"
ORDINAL = (
    r"(?:\d{1,3}(?:st|nd|rd|th)"
    rf"|(?:twenty|thirty)[- ](?:{'|'.join(_ORDINAL_ONES[1:10])})"
    rf"|{'|'.join(_ORDINAL_ONES[1:])}|twentieth|thirtieth)"
)

_UNITS = {
    "second": r"sec(?:ond)?s?",
    "minute": r"min(?:ute)?s?|m(?=\b)|'",
    "hour": r"h(?:ou)?rs?|h(?=\b)",
    "day": r"days?|d(?=\b)",
    "week": r"w(?:ee)?ks?",
    "fortnight": r"fortnights?",
    "month": r"months?",
    "quarter": r"quarters?|qtrs?",
    "year": r"y(?:ea)?rs?",
}
UNIT = rf"(?:{'|'.join(_UNITS.values())})"

_MONTHS = (
    *("jan(?:uary)?", "feb(?:ruary)?", "mar(?:ch)?", "apr(?:il)?", "may", "june?", "july?"),
    *("aug(?:ust)?", "sep(?:t(?:ember)?)?", "oct(?:ober)?", "nov(?:ember)?", "dec(?:ember)?"),
)
MONTH = rf"(?:(?:{'|'.join(_MONTHS)})\b\.?)"
MONTH_GLUED = rf"(?:{'|'.join(_MONTHS)})"
_MONTH_STARTS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

_WEEKDAYS = (
    *("mon(?:day)?", "tue(?:s(?:day)?)?", "wed(?:s|nesday|nsday)?", "thu(?:rs?(?:day)?)?"),
    *("fri(?:day)?", "sat(?:urday)?", "sun(?:day)?"),
)
WEEKDAY = rf"(?:(?:{'|'.join(_WEEKDAYS)})\b\.?)"
WEEKDAYS = rf"(?:(?:{'|'.join(f'{day}s?' for day in _WEEKDAYS)})\b\.?)"
_WEEKDAY_STARTS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]

YEAR = r"(?:[12]\d{3})"


def number(text: str) -> int:
    """Of digits, or of words to ninety-nine."""
    if text.isdigit():
        return int(text)
    total = 0
    for word in re.split(r"[-\s]+", text):
        total += (TENS.index(word) + 2) * 10 if word in TENS else ONES.index(word)
    return total


def quantity(text: str) -> Fraction:
    """Of `COUNT`: a few are three, a couple two."""
    words, half = re.subn(r"\s+and\s+(?:an?\s+)?half(?:\s+an)?$", "", text)
    return _whole(" ".join(words.split())) + (Fraction(1, 2) if half else 0)


def _whole(text: str) -> Fraction:
    if text in {"a", "an", "the"}:
        return Fraction(1)
    if text.startswith("half"):
        return Fraction(1, 2)
    if "quarter" in text:
        return Fraction(3 if text.startswith("three") else 1, 4)
    if "couple" in text:
        return Fraction(2)
    if "few" in text:
        return Fraction(3)
    if re.fullmatch(r"[\d./]+", text):
        return Fraction(0) if text.endswith("/0") else Fraction(text)
    return Fraction(number(text))


def ordinal(text: str) -> int:
    """Of `ORDINAL`."""
    if text[0].isdigit():
        return int(text[:-2])
    if text in {"twentieth", "thirtieth"}:
        return 20 if text == "twentieth" else 30
    *tens, last = re.split(r"[-\s]+", text)
    return sum((TENS.index(word) + 2) * 10 for word in tens) + _ORDINAL_ONES.index(last)


def unit(text: str) -> str:
    """The unit's name in full: second, minute, …, fortnight, quarter, year."""
    return next(name for name, pattern in _UNITS.items() if re.fullmatch(pattern, text))


def month(text: str) -> int:
    """January is 1."""
    return _MONTH_STARTS.index(text[:3]) + 1


def weekday(text: str) -> int:
    """Monday is 0."""
    return _WEEKDAY_STARTS.index(text[:3])


def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of whole words, in which a space is any white space."""
    spaced = pattern.replace(" ", r"\s+")
    return re.compile(rf"(?<![\w:/.])(?:{spaced})(?!\w)(?!['’]\w)")


Make = Callable[[re.Match[str], ReadingContext], Piece | None]


def rule(pattern: str, make: Make) -> Rule:
    """A rule of one pattern; `make` may decline."""
    searched = compiled(pattern)

    def found(text: str, start: int, scope: ReadingContext) -> Found:
        match = searched.match(text, start)
        if match and (piece := make(match, scope)) is not None:
            yield match.end(), piece

    return found


# --- saying -------------------------------------------------------------------------------------
#
# How times are said back, so that a person sees how they were read.

DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)


def day_words(day: date) -> str:
    """Tuesday 1 December 2026."""
    return f"{DAY_NAMES[day.weekday()]} {day.day} {MONTH_NAMES[day.month - 1]} {day.year}"


def moment_words(moment: datetime) -> str:
    """On Tuesday 1 December 2026 at 17:00; with seconds where it has some."""
    return f"on {day_words(moment)} at {time_words(moment.time())}"


def time_words(at: time) -> str:
    """17:00."""
    return f"{at:%H:%M:%S}" if at.second else f"{at:%H:%M}"


def ordinal_words(number: int) -> str:
    """1st, 2nd, last."""
    if number < 0:
        return "last" if number == -1 else f"{ordinal_words(-number)} to last"
    ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def listed(words: Sequence[str]) -> str:
    """With commas, and an "and" before the last."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
