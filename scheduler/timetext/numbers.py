"""Numbers, units and names as people write them, the patterns made of them, and times said back."""

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
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ORDINAL_ONES = (
    *("zeroth", "first", "second", "third", "fourth", "fifth", "sixth"),
    *("seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth", "thirteenth"),
    *("fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth"),
)
_VALUES: dict[str, Fraction] = {
    **{word: Fraction(number) for number, word in enumerate(ONES)},
    **{word: Fraction(number) for number, word in enumerate(_ORDINAL_ONES)},
    **{word: Fraction(10 * number) for number, word in enumerate(TENS, 2)},
    **{"twentieth": Fraction(20), "thirtieth": Fraction(30)},
    **{"couple": Fraction(2), "few": Fraction(3), "half": Fraction(1, 2)},
    **{"quarter": Fraction(1, 4), "three quarters": Fraction(3, 4)},
}

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
MONTH_GLUED = rf"(?:{'|'.join(_MONTHS)})"
MONTH = rf"(?:{MONTH_GLUED}\b\.?)"

_WEEKDAYS = (
    *("mon(?:day)?", "tue(?:s(?:day)?)?", "wed(?:s|nesday|nsday)?", "thu(?:rs?(?:day)?)?"),
    *("fri(?:day)?", "sat(?:urday)?", "sun(?:day)?"),
)
WEEKDAY = rf"(?:(?:{'|'.join(_WEEKDAYS)})\b\.?)"
WEEKDAYS = rf"(?:(?:{'|'.join(f'{day}s?' for day in _WEEKDAYS)})\b\.?)"

YEAR = r"(?:[12]\d{3})"

DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)


def value(text: str) -> Fraction:
    """Return the value of a COUNT, a NUMBER or an ORDINAL: "21st", "half an", "2 and a half"; "a"
    and "the" are one, a few are three."""
    said, _, half = " ".join(text.split()).partition(" and ")
    more = Fraction(1, 2) if half else Fraction(0)
    if said in {"a", "an", "the"}:
        return 1 + more
    if digits := re.match(r"\d+(?:[./]\d+)?", said):
        return (Fraction(0) if said.endswith("/0") else Fraction(digits[0])) + more
    if said.startswith("three quarters"):
        return _VALUES["three quarters"] + more
    words = re.split(r"[-\s]", said)
    return sum((_VALUES[word] for word in words if word in _VALUES), more)


def whole(text: str) -> int:
    """Return the value of a NUMBER or an ORDINAL."""
    return int(value(text))


def unit(text: str) -> str:
    """Return the unit's name in full: second, minute, …, fortnight, quarter, year."""
    return next(name for name, pattern in _UNITS.items() if re.fullmatch(pattern, text))


def month(text: str) -> int:
    """Return the number of a month: January is 1."""
    return [name[:3].lower() for name in MONTH_NAMES].index(text[:3]) + 1


def weekday(text: str) -> int:
    """Return the number of a weekday: Monday is 0."""
    return [name[:3].lower() for name in DAY_NAMES].index(text[:3])


def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern of whole words, in which a space is any white space."""
    spaced = pattern.replace(" ", r"\s+")
    return re.compile(rf"(?<![\w:/.])(?:{spaced})(?!\w)(?!['’]\w)")


Make = Callable[[re.Match[str], ReadingContext], Piece | None]


def rule(pattern: str, make: Make) -> Rule:
    """Return a rule of one pattern; `make` may decline."""
    searched = compiled(pattern)

    def found(text: str, start: int, scope: ReadingContext) -> Found:
        match = searched.match(text, start)
        if match and (piece := make(match, scope)) is not None:
            yield match.end(), piece

    return found


# --- saying -------------------------------------------------------------------------------------
#
# How times are said back, so that a person sees how they were read.


def day_words(day: date) -> str:
    """Return `Tuesday 1 December 2026`: in English, whatever the machine's locale."""
    return f"{DAY_NAMES[day.weekday()]} {day.day} {MONTH_NAMES[day.month - 1]} {day.year}"


def moment_words(moment: datetime) -> str:
    """Return `on Tuesday 1 December 2026 at 17:00`; with seconds where it has some."""
    return f"on {day_words(moment)} at {time_words(moment.time())}"


def time_words(at: time) -> str:
    """Return `17:00`; with seconds where it has some."""
    return f"{at:%H:%M:%S}" if at.second else f"{at:%H:%M}"


def ordinal_words(number: int) -> str:
    """Return `1st`, `2nd`; of -1 `last`."""
    if number < 0:
        return "last" if number == -1 else f"{ordinal_words(-number)} to last"
    ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def listed(words: Sequence[str]) -> str:
    """Return words with commas, and an "and" before the last."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
