"""What a call tells whoever gets it that nobody meant for them: counted, not judged by its looks.

A secret can leave in pieces, as letters, as names of fields, or by which of many things is chosen.
So values are compared whole, and each free choice costs bits. Pure; added up by `agent.told`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any

from agent.plain_words import PLAIN_WORDS

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
DAY_BITS, NEAR_DAY_BITS, TIME_BITS = 10.5, 4.0, 8.0
"""Of a day within a year or two, of one within a week of today or of another; and of a time."""
FORMS, FORM_BITS, ODD_FORM_BITS = frozenset({"", "Z", ":00", ":00Z"}), 2.0, 8.0
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


def _spelled(chars: int) -> Cost:
    return Cost(bits=CHAR_BITS * chars, spelled=CHAR_BITS * chars)


def _of_count(count: int) -> float:
    """Of a number from 1 on: the shorter, the less it tells."""
    return 2 * math.log2(max(count, 1)) + 1


def _of_choice(many: int) -> float:
    return math.log2(max(many, 1))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands in a list of the like."""

    among: int
    number: int


# --- what is known -------------------------------------------------------------------------------

_WORD = re.compile(r"[^\W_]+")
_VALUE = re.compile(r"[\w@.+/:=~-]+")
_EDGES = ".,:;"


class Texts:
    """Texts in which values are looked for as wholes: never as a part of a word."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._texts = tuple(text for text in texts if text)

    @cached_property
    def _all(self) -> str:
        return "\n".join(self._texts)

    @cached_property
    def _folded(self) -> str:
        return self._all.casefold()

    @cached_property
    def words(self) -> frozenset[str]:
        """All words, in lower case."""
        return frozenset(_WORD.findall(self._folded))

    @cached_property
    def in_order(self) -> tuple[str, ...]:
        """All words as they come, in lower case."""
        return tuple(_WORD.findall(self._folded))

    def hold(self, value: str) -> bool:
        """Whether it stands there exactly so."""
        return _whole(value).search(self._all) is not None

    def hold_alike(self, value: str) -> bool:
        """Whether it stands there in any case."""
        return _whole(value.casefold()).search(self._folded) is not None

    def place(self, value: str) -> Place | None:
        """Where it stands among values that look like it."""
        folded = value.casefold()
        look = _look(folded)
        for number, text in enumerate(self._texts):
            alike = _alike(text.casefold()).get(look, {})
            if folded in alike:
                return Place(hash_of(number, look), alike[folded])
        return None


def hash_of(number: int, look: tuple[int, bool, bool]) -> int:
    """A number for a list: that of its text, and how its values look."""
    size, digits, signs = look
    return ((number * 100_000 + size) * 2 + digits) * 2 + signs


def _whole(value: str) -> re.Pattern[str]:
    before = r"(?<!\w)" if value[:1].isalnum() or value[:1] == "_" else ""
    after = r"(?!\w)" if value[-1:].isalnum() or value[-1:] == "_" else ""
    return re.compile(before + re.escape(value) + after)


def _look(value: str) -> tuple[int, bool, bool]:
    return len(value), any(map(str.isdigit, value)), not value.isalnum()


def _alike(text: str) -> dict[tuple[int, bool, bool], dict[str, int]]:
    """The different values of a text by their looks, numbered as they come."""
    found: dict[tuple[int, bool, bool], dict[str, int]] = {}
    for match in _VALUE.finditer(text):
        value = match[0].strip(_EDGES)
        if value:
            alike = found.setdefault(_look(value), {})
            alike.setdefault(value, len(alike))
    return found


@dataclass(frozen=True, kw_only=True)
class Known:
    """What the reader of a call may be told. `own` are the person's words of this turn, `earlier`
    those of before, `sent` what it was told already, `listed` what it told us itself."""

    own: Texts = field(default_factory=Texts)
    earlier: Texts = field(default_factory=Texts)
    sent: Texts = field(default_factory=Texts)
    listed: Texts = field(default_factory=Texts)
    today: date = date(1970, 1, 1)


# --- the shape of arguments ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the schema of a tool declares: names of fields in their order, those that must be
    given, and of each value out of a fixed choice how many there are to choose from."""

    names: Mapping[str, int]
    required: frozenset[str]
    choices: Mapping[str, int]
    texts: Texts = field(default_factory=Texts)
    """What it says of itself: the reader wrote it."""

    @classmethod
    def of(cls, schema: Mapping[str, Any]) -> Shape:
        """Of a JSON schema, whatever its depth."""
        names: dict[str, int] = {}
        required: set[str] = set()
        texts: list[str] = []
        choices: dict[str, int] = {}
        # What stands under a choice of shapes need not be given, whatever it calls required.
        nodes: list[tuple[Any, bool]] = [(schema, True)]
        while nodes:
            node, is_firm = nodes.pop(0)
            if isinstance(node, list):
                nodes.extend((one, False) for one in node)
                consts = [
                    one["const"] for one in node if isinstance(one, Mapping) and "const" in one
                ]
                for value in consts:
                    choices[str(value)] = max(len(consts), choices.get(str(value), 0))
            if not isinstance(node, Mapping):
                continue
            texts += [text for key in _SAYS if isinstance(text := node.get(key), str)]
            properties = node.get("properties")
            if isinstance(properties, Mapping):
                for name in properties:
                    names.setdefault(str(name), len(names))
            needed = node.get("required")
            if isinstance(needed, list) and is_firm:
                required.update(str(name) for name in needed)
            allowed = node["enum"] if isinstance(node.get("enum"), list) else []
            allowed = [node["const"]] if "const" in node else allowed
            for value in allowed:
                choices[str(value)] = max(len(allowed), choices.get(str(value), 0))
            if isinstance(properties, Mapping):
                nodes.extend((one, is_firm) for one in properties.values())
            others = ((key, one) for key, one in node.items() if key != "properties")
            nodes.extend((one, is_firm and key == "items") for key, one in others)
        return cls(names=names, required=frozenset(required), choices=choices, texts=Texts(texts))


_SAYS = ("title", "description")
NO_SHAPE = Shape(names={}, required=frozenset(), choices={})

Path = tuple[str | int, ...]


def parts_of(arguments: Any) -> dict[Path, Any]:
    """Each value by its place. A mapping is the tuple of its names there, a list its length."""
    found: dict[Path, Any] = {}
    todo: list[tuple[Path, Any]] = [((), arguments)]
    while todo:
        path, value = todo.pop(0)
        match value:
            case dict():
                found[path] = tuple(map(str, value))
                todo.extend(((*path, str(name)), one) for name, one in value.items())
            case list() | tuple():
                found[path] = len(value)
                todo.extend(((*path, number), one) for number, one in enumerate(value))
            case _:
                found[(*path, "=")] = value
    return found


def words_of(arguments: Any) -> Iterator[str]:
    """All values of a call, for what its reader knows afterwards."""
    for path, value in parts_of(arguments).items():
        if path[-1:] == ("=",) and value is not None and not isinstance(value, bool):
            yield str(value)


# --- what it costs -------------------------------------------------------------------------------


def cost_of_call(
    arguments: Any, shape: Shape, known: Known, *, former: Any = None, last: Place | None = None
) -> Cost:
    """Of the arguments of a call. `former` are those of the call before it to the same tool: what
    stays the same tells nothing, unless all does. `last` is where the last picked value stands."""
    parts, before = parts_of(arguments), parts_of(former)
    before = {} if parts == before else before
    counted = _Counting(shape, known, last)
    new = {path: value for path, value in parts.items() if not _is_same(path, value, before)}
    total = Cost(bits=CALL_BITS)
    if before:  # which of the values are new
        values, others = (sum(path[-1:] == ("=",) for path in of) for of in (parts, new))
        total += Cost(bits=_of_some(others, values) - math.log2((values + 1) / max(values, 1)))
    for path, value in new.items():
        total += counted.part(path, value)
    return total


def _is_same(path: Path, value: Any, before: Mapping[Path, Any]) -> bool:
    return path in before and before[path] == value and type(before[path]) is type(value)


def _of_some(some: int, many: int) -> float:
    """Of which ones of many."""
    return math.log2(many + 1) + math.log2(math.comb(max(many, some), some))


class _Counting:
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
        if text in self._shape.choices:
            of = max(self._shape.choices[text], len(self._shape.choices))
            return Cost(bits=1.0 + _of_choice(of))
        return self.text(text)

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
            total += Cost(bits=_of_choice(len(shape.names)) if shape.names[name] < highest else 0.0)
            highest = max(highest, shape.names[name])
        return total

    def text(self, text: str) -> Cost:
        """Of a value, or of the name of a field."""
        known, value = self._known, text.strip()
        around = _spelled(len(text) - len(value))
        words = len(_WORD.findall(value))
        if not value:
            return Cost(bits=NEW_BITS) + around
        if known.own.hold_alike(value):
            return around + self._of_own(value) + _of_case(value, known.own)
        if known.listed.hold_alike(value):
            return around + self._picked(value) + _of_case(value, known.listed)
        if known.sent.hold_alike(value):
            bits = KNOWN_BITS + _of_choice(len(known.sent.words)) + _of_count(words)
            return around + Cost(bits=bits) + _of_case(value, known.sent)
        left, days = self._without_dates(value)
        runs = (self._of_run(run) for run in _RUN.findall(left))
        return sum(runs, around + Cost(bits=KNOWN_BITS + days))

    def _of_own(self, value: str) -> Cost:
        """Of what the person just wrote: where it begins, and over how many words it goes. Going on
        in its order tells little."""
        said, meant = self._known.own.in_order, _WORD.findall(value.casefold())
        if not meant:
            return Cost(bits=OWN_BITS + _of_choice(len(said)))
        places = [n for n in range(len(said)) if said[n : n + len(meant)] == tuple(meant)]
        ahead = next((n for n in places if n >= self._at), None)
        is_near = ahead is not None and ahead - self._at < NEAR_WORDS
        leap = 1.0 + _of_choice(NEAR_WORDS if is_near else len(said))
        self._at = (ahead if ahead is not None else places[0] if places else 0) + len(meant)
        return Cost(bits=OWN_BITS + leap + min(_of_count(len(meant)), 1 + _of_choice(len(said))))

    def _picked(self, value: str) -> Cost:
        place = self._known.listed.place(value)
        goes_on = None not in {place, self._last} and place == _after(self._last)
        self._last = place
        bits = LISTED_BITS + _of_choice(len(self._known.listed.words))
        if place is None:  # a phrase, which may end anywhere
            bits += _of_count(len(_WORD.findall(value)))
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
            bits += NEAR_DAY_BITS + _of_choice(len(self._days)) if near else DAY_BITS
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
        bits = 2.0 + (0.0 if time in _ENDS_OF_DAY else TIME_BITS)
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
            kept = sum(char in _SIGNS for char in run)
            return Cost(bits=1.0 + kept * _of_choice(2 * len(_SIGNS))) + _spelled(len(run) - kept)
        folded, case = run.casefold(), Cost(bits=case_bits(run) - 0.5)
        if folded in known.own.words:
            return case + self._of_own(run)
        if folded in known.listed.words:
            return case + self._picked(run)
        is_plain = run.isalpha() and len(run) > 1
        for texts in (self._shape.texts, known.sent, *((known.earlier,) if is_plain else ())):
            if folded in texts.words:
                return case + Cost(bits=LISTED_BITS + _of_choice(len(texts.words)))
        if folded in PLAIN_WORDS:
            return case + Cost(bits=NEW_BITS + _of_choice(len(PLAIN_WORDS)))
        return case + Cost(bits=NEW_BITS) + _spelled(len(run))


def _after(place: Place | None) -> Place | None:
    return None if place is None else Place(place.among, place.number + 1)


def _of_case(value: str, texts: Texts) -> Cost:
    """Of writing it otherwise than it stands there."""
    return Cost(bits=0.0 if texts.hold(value) else 1.0 + case_bits(value))


_RUN = re.compile(r"[^\W_]+|_+|[^\w\s]+|\s+")
_SIGNS = frozenset(",.-_/:'\"@#&?+()")
_DATE = re.compile(
    r"(?<![\d/-])(?P<day>\d{4}(?:-\d{2}-|/\d{2}/)\d{2})"
    r"(?P<rest>[T ]\d{2}:\d{2}(?::(?:00|59)(?:\.0(?:00)?)?)?(?:Z|[+-]\d{2}:00)?)?(?!\d)"
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


# --- addresses -----------------------------------------------------------------------------------

_ADDRESS = re.compile(r"(?:https?://)?(?P<host>[^/?#:@\s]+)(?P<rest>[^\s]*)", re.IGNORECASE)
_USUAL = frozenset(
    re.findall(
        r"\w+",
        """api article articles blog books doc docs en feed forecast format html id index json lang
    language latest news page pages product products q query question questions rss search section
    stable title tree v1 v2 v3 version weather wiki www xml""",
    )
)
"""Words of addresses that tell nothing but which of them was chosen."""
_NUMBERED = re.compile(r"[\d.]+|\[.*")


def site_of(address: str) -> str:
    """Whose place an address is, as near as its name tells: the last two parts of it."""
    match = _ADDRESS.match(address.strip())
    host = match["host"].casefold() if match else ""
    return host if _NUMBERED.fullmatch(host) else ".".join(host.rstrip(".").split(".")[-2:])


def cost_of_address(address: str, known: Known, *, former: str = "") -> Cost:
    """Of asking for a page whose address no person wrote and no page named: the name of its site is
    free, all that stands before and behind it is told to whoever keeps it. `former` is the address
    that this site was asked for last."""
    match = _ADDRESS.fullmatch(address.strip())
    if match is None or _NUMBERED.fullmatch(match["host"]):
        return _spelled(len(address))
    counting = _Counting(NO_SHAPE, known, None)
    total = Cost(bits=CALL_BITS)
    runs, before = _runs_of(address), _runs_of(former)
    pairs = enumerate(zip(runs, before, strict=False))
    same = next((place for place, (one, other) in pairs if one != other), len(before))
    if before and same < len(runs):
        total += Cost(bits=1.0 if same == len(before) - 1 else 1.0 + _of_choice(len(before)))
        runs = runs[same:]
    for run in runs:
        if run.casefold() in _USUAL:
            total += Cost(bits=1.0 + _of_choice(len(_USUAL)) + case_bits(run) - 1.0)
        elif run[0].isalnum() or any(char not in _BORDERS for char in run):
            total += counting.text(run)
        else:
            total += Cost(bits=_of_choice(len(_BORDERS)) * (len(run) - 1))
    return total


def _runs_of(address: str) -> list[str]:
    """The words and signs of an address, without the name of its site."""
    match = _ADDRESS.fullmatch(address.strip())
    if match is None:
        return []
    before = match["host"].casefold().removesuffix(site_of(address))
    return [*_RUN.findall(before), *_RUN.findall(match["rest"])]


_BORDERS = "/?&=.-_%#()"
"""Signs between the words of an address: one tells next to nothing, a row of them whatever it is
to tell."""


def case_bits(text: str) -> float:
    """Of writing it in lower case, in capitals or with a capital at the beginning of each word: one
    of these few; else each letter tells something."""
    if text.islower() or text.isupper() or text.istitle() or text.capitalize() == text:
        return 1.0
    return max(1.0, float(sum(char.isalpha() for char in text)))
