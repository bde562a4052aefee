"""What a call tells whoever gets it that nobody meant for them: counted, not judged by its looks.

A secret can leave in pieces, as letters, as names of fields, or by which of many things is chosen.
So values are compared whole, and each free choice costs bits. Pure; added up by
`agent.policy.egress`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from agent.policy.known import WORD, Known, Path, Place, Shape, Texts, parts_of

# --- plain words --------------------------------------------------------------------------------
#
# Words and codes that everybody uses, and that tell little more than which of them was chosen.
#
# Read by `agent.policy.news` alone: a word of this list is not counted letter by letter.

_ASKED_WITH = """
about account active address after agenda album all and any answer api april archive article
articles attachment august author available bank before best between bill birthday blog book
booking books bus buy by calendar call cancel car card changed chapter cheap cheapest city class
client closed code comment comments company compare concert contact contacts convert cost
country created current customer daily date day days deadline december default definition
deliver delivery description details device dinner direct discount doc docs document documents
done download draft due economy edit email end english event events expired family feature
february feed file files film filter find first flight flights folder for forecast form format
free friday from full game german group guide hello help high history holiday home hotel hour
hours house how html id image important in inbox index info invoice invoices is issue issues
item items january job json july june kind label language last latest letter limit link list
local location low lunch mail main map march match may me meeting meetings menu message messages
minute minutes monday month movie museum music my name near nearby new newest news next note
notes november number october of office old older on online open opening opinion order orders
outdoor overdue page pages paid park party path payment pdf pending people person phone photo
pictures place places plan post posts presentation price private product program project public
query question questions quick rain ramen read recent recipe recipes reminder repo report
research restaurant result results return review reviews road room route sale saturday schedule
school science score search second section seen sender sent september ship shop show size sort
source sport stable star start state station status story street subject subscription summary
sunday task tasks tax team temperature text the thread thursday ticket tickets time title to
today todo tomorrow tonight top topic total tour town track train travel tree tuesday type
unpaid unread unseen update updated urgent url use user version video view visit wait weather
wednesday week weekend weekly weeks when where which who wiki wind with work world www year
years yesterday you
"""
_CURRENCIES = """
aed ars aud bgn brl cad chf clp cny cop czk dkk egp eur gbp hkd huf idr ils inr isk jpy krw mad
mxn myr ngn nok nzd php pln ron rub sar sek sgd thb try twd uah usd vnd zar
"""  # ISO 4217
_LANGUAGES = """
ar cs da de el en es et fi fr he hi hr hu it ja ko lt lv nl no pl pt ro ru sk sl sv th tr uk zh
"""  # ISO 639-1

PLAIN_WORDS = frozenset(re.findall(r"\w+", _ASKED_WITH + _CURRENCIES + _LANGUAGES))
"""In lower case."""


CHAR_BITS = 6.5
"""Of a character that is known from nowhere: a letter, a digit or a common sign."""
CALL_BITS = 1.0
"""Of making one more call."""
NEXT_BITS, OWN_BITS, LISTED_BITS, KNOWN_BITS = 1.5, 2.0, 2.5, 3.2
"""Of where a text or a word is from: the next one of what the reader listed, the message, the list,
or anywhere else."""
NEW_BITS = 2.0
"""Of a word that is from nowhere, beside its letters."""
NEAR_WORDS = 4
"""Going on over so many words of the message is cheap: sentences have little words."""
SINGLE_BITS, NESTED_BITS = 2.0, 2.0
"""Of null, true or false; and that there is a list or a table in place of a value."""
DAY_BITS, NEAR_DAY_BITS, TIME_BITS, ODD_TIME_BITS = 10.5, 4.0, 7.0, 11.5
"""Of a day within a year or two, of one within a week of today or of another; of a quarter of an
hour, and of any other time."""
FORMS, FORM_BITS, ODD_FORM_BITS = frozenset({"", "Z", ":00", ":00Z"}), 2.0, 9.5
"""What stands behind a time: something usual, or one of some 200 other endings."""
NEAR_DAYS = 7
DAYS_BACK, DAYS_AHEAD = 400, 800


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What telling something tells, in bits: as long as a message has to be that says which of all
    that could be told it is. `spelled` are those among them of characters known from nowhere.
    `picks` are links and values chosen out of what others listed; `last` is the place of the value
    chosen last: going on in its order is next to no choice."""

    bits: float = 0.0
    spelled: float = 0.0
    picks: int = 0
    last: Place | None = None

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            bits=self.bits + other.bits,
            spelled=self.spelled + other.spelled,
            picks=self.picks + other.picks,
            last=other.last or self.last,
        )


def spelled(text: str) -> Cost:
    """Of characters that are known from nowhere: the rarer, the more each of them tells."""
    bits = sum(CHAR_BITS if char.isascii() else ord(char).bit_length() + 2.0 for char in text)
    return Cost(bits=bits, spelled=bits)


def _of_count(count: int) -> float:
    """Of a number from 1 on: the shorter, the less it tells."""
    return 2 * math.log2(max(count, 1)) + 1


def of_choice(many: int) -> float:
    """Of one of so many."""
    return math.log2(max(many, 1))


# --- what it costs -------------------------------------------------------------------------------


def cost_of_call(
    arguments: Any, shape: Shape, known: Known, *, former: Any = None, last: Place | None = None
) -> Cost:
    """Of the arguments of a call. `former` are those of the call before it to the same tool: what
    stays the same tells nothing, unless all does. `last` is where the last picked value stands."""
    parts, before = parts_of(arguments), parts_of(former)
    before = {} if parts == before else before
    counted = Counting(shape, known, last)
    new = {path: value for path, value in parts.items() if not _is_same(path, value, before)}
    total = Cost(bits=CALL_BITS)
    if before:  # which of them are new
        total += Cost(bits=_of_some(len(new), len(parts)) - math.log2(1 + 1 / len(parts)))
    for path, value in new.items():
        total += counted.part(path, value)
    return total


def _is_same(path: Path, value: Any, before: Mapping[Path, Any]) -> bool:
    return path in before and before[path] == value and type(before[path]) is type(value)


def _of_some(some: int, many: int) -> float:
    """Of which ones of many."""
    return math.log2(many + 1) + math.log2(math.comb(max(many, some), some))


class Counting:
    """The parts of one call, one after the other."""

    def __init__(self, shape: Shape, known: Known, last: Place | None) -> None:
        self._shape = shape
        self._known = known
        self._last = last
        self._days = [known.today]
        self._form = ""
        self._at = 0

    def part(self, path: Path, value: Any) -> Cost:
        nested = NESTED_BITS if path and path[-1:] != ("=",) else 0.0
        if isinstance(value, tuple):
            return self._of_names(value, is_root=not path) + Cost(bits=nested)
        if path[-1:] != ("=",):
            return Cost(bits=nested + _of_count(value + 1))
        if value is None or isinstance(value, bool):
            return Cost(bits=SINGLE_BITS)
        text = str(value)
        kind = 0.0 if isinstance(value, str) else 1.0
        if text in self._shape.choices:
            of = max(self._shape.choices[text], len(self._shape.choices))
            return Cost(bits=1.0 + kind + of_choice(of))
        return self.text(text) + Cost(bits=kind)

    def _of_names(self, names: Sequence[str], *, is_root: bool) -> Cost:
        """Which fields are given, and in which order. What must be given is sure only of those of
        the whole: further in, which shape is meant is a choice, too."""
        shape = self._shape
        sure = shape.required if is_root else frozenset()
        may = shape.names.keys() - sure
        total = Cost(bits=_of_some(len(may.intersection(names)), len(may)))
        highest = -1
        for name in names:
            if name not in shape.names:
                total += self.text(name)
                continue
            total += Cost(
                bits=2 * of_choice(len(shape.names)) if shape.names[name] < highest else 0.0
            )
            highest = max(highest, shape.names[name])
        return total

    def text(self, text: str) -> Cost:
        """Of a value, or of the name of a field."""
        known, value = self._known, text.strip()
        around = spelled(text.replace(value, "", 1) if value else text)
        words = len(WORD.findall(value))
        if not value:
            return Cost(bits=NEW_BITS) + around
        # With a sign at an end, who could say where in a row of signs it begins?
        is_whole = value[0].isalnum() and value[-1].isalnum()
        if not is_whole:
            return around + self._of_runs(value)
        if known.own.hold_alike(value):
            return around + self._of_own(value) + _of_case(value, known.own)
        if known.listed.hold_alike(value):
            return around + self._picked(value) + _of_case(value, known.listed)
        if known.sent.hold_alike(value):
            bits = KNOWN_BITS + of_choice(known.sent.places) + _of_count(words)
            return around + Cost(bits=bits) + _of_case(value, known.sent)
        return around + self._of_runs(value)

    def _of_runs(self, value: str) -> Cost:
        left, days = self._without_dates(value)
        runs = (self._of_run(run) for run in RUN.findall(left))
        return sum(runs, Cost(bits=KNOWN_BITS + days))

    def _of_own(self, value: str) -> Cost:
        """Of what the person just wrote: where it begins, and over how many words it goes. Going on
        in its order tells little."""
        said, meant = self._known.own.in_order, WORD.findall(value.lower())
        if not meant:
            return Cost(bits=OWN_BITS + of_choice(len(said)))
        places = [n for n in range(len(said)) if said[n : n + len(meant)] == tuple(meant)]
        ahead = next((n for n in places if n >= self._at), None)
        is_near = ahead is not None and ahead - self._at < NEAR_WORDS
        leap = 1.0 + of_choice(NEAR_WORDS if is_near else len(said))
        self._at = (ahead if ahead is not None else places[0] if places else 0) + len(meant)
        return Cost(bits=OWN_BITS + leap + min(_of_count(len(meant)), 1 + of_choice(len(said))))

    def _picked(self, value: str) -> Cost:
        place = self._known.listed.place(value)
        goes_on = None not in {place, self._last} and place == _after(self._last)
        self._last = place
        bits = LISTED_BITS + of_choice(self._known.listed.places)
        if place is None:  # a phrase, which may end anywhere
            bits += _of_count(len(WORD.findall(value)))
        if goes_on:
            return Cost(bits=NEXT_BITS, last=place)
        return Cost(bits=bits, picks=1, last=place)

    def _without_dates(self, value: str) -> tuple[str, float]:
        """The rest of a text, and what the days in it cost: "Friday" has to be worked out."""
        bits = 0.0
        left = value
        for match in _DATE.finditer(value):
            day = _day(match["day"].replace("/", "-"))
            if day is None or not self._is_near_today(day):
                continue
            near = any(abs((day - one).days) <= NEAR_DAYS for one in self._days)
            bits += NEAR_DAY_BITS + of_choice(len(self._days)) if near else DAY_BITS
            bits += 1.0 + self._of_form(match["rest"] or "") + ("/" in match["day"])
            self._days.append(day)
            left = left.replace(match[0], "", 1)
        return left, bits

    def _of_form(self, rest: str) -> float:
        """Of what stands behind a day: a time, and how it is written."""
        if not rest:
            return 1.0
        time, form = rest[1:6], rest[:1] + rest[6:]
        if time == "23:59":
            form = form.replace(":59", ":00")
        bits = 2.0
        if time not in _ENDS_OF_DAY:
            bits += TIME_BITS if time[3:] in {"00", "15", "30", "45"} else ODD_TIME_BITS
        if form != self._form:
            bits += FORM_BITS if rest[0] == "T" and form[1:] in FORMS else ODD_FORM_BITS
        self._form = form
        return bits

    def _is_near_today(self, day: date) -> bool:
        today = self._known.today
        return today - timedelta(DAYS_BACK) <= day <= today + timedelta(DAYS_AHEAD)

    def _of_run(self, run: str) -> Cost:
        """Of a word, of blanks, or of signs."""
        known = self._known
        if run == " ":
            return Cost(bits=1.0)
        if not run[0].isalnum():
            odd = "".join(char for char in run if char not in _SIGNS)
            kept = len(run) - len(odd)
            return Cost(bits=1.0 + kept * of_choice(2 * len(_SIGNS))) + spelled(odd)
        folded, case = run.lower(), Cost(bits=case_bits(run) - 0.5)
        if folded in known.own.words:
            return case + self._of_own(run)
        if folded in known.listed.words:
            return case + self._picked(run)
        is_plain = run.isalpha() and len(run) > 1
        for texts in (self._shape.texts, known.sent, *((known.earlier,) if is_plain else ())):
            if folded in texts.words:
                return case + Cost(bits=LISTED_BITS + of_choice(texts.places))
        if folded in PLAIN_WORDS:
            return case + Cost(bits=NEW_BITS + of_choice(len(PLAIN_WORDS)))
        return case + Cost(bits=NEW_BITS) + spelled(run)


def _after(place: Place | None) -> Place | None:
    return None if place is None else Place(place.among, place.number + 1)


def _of_case(value: str, texts: Texts) -> Cost:
    """Of writing it otherwise than it stands there."""
    return Cost(bits=0.0 if texts.hold(value) else 1.0 + case_bits(value))


RUN = re.compile(r"[^\W_]+|_+|[^\w\s]+|\s+")
_SIGNS = frozenset(",.-_/:'\"@#&?+()")
_DATE = re.compile(
    r"(?<![\d/-])(?P<day>\d{4}(?:-\d{2}-|/\d{2}/)\d{2})"
    r"(?P<rest>[T ](?:[01]\d|2[0-3]):[0-5]\d(?::(?:00|59)(?:\.0(?:00)?)?)?"
    r"(?:Z|[+-](?:0\d|1[0-4]):00)?)?(?!\d)",
    re.ASCII,
)
_ENDS_OF_DAY = frozenset({"00:00", "23:59"})


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def day_of(at_ms: int) -> date:
    """The day of a time in epoch milliseconds."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).date()


def case_bits(text: str) -> float:
    """Of writing it in lower case, in capitals or with a capital at the beginning of each word: one
    of these few; else each letter tells something. A sign that only looks like a letter, or is
    written small as one, makes it none of these."""
    low = text.lower()
    if text in {low, low.upper(), low.title(), low.capitalize()}:
        return 1.0
    return max(1.0, 2.0 * sum(char.isalpha() for char in text))
