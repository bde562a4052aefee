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

CHAR_BITS = 6.5
"""Of a character that is known from nowhere: a letter, a digit or a common sign."""
CALL_BITS, KNOWN_BITS, SIGN_BITS, EARLIER_BITS = 1.0, 1.0, 1.0, 3.0
"""Of making a call at all; of a word that the person just wrote; of a comma; and of a word from
the person's earlier messages, or that the reader was told before."""
DATE_BITS, NEAR_DATE_BITS, TIME_BITS = 10.0, 4.0, 8.0
"""Of a day within a year or two, of another within a week of it, and of an hour and minutes."""
LEAP_BITS = 2.0
"""So much of a leap over words of the person is free: sentences have little words."""
NEAR_DAYS = 7
DAYS_BACK, DAYS_AHEAD = 400, 800
LIST_LARGE = 1_000
"""A value picked out of more than so many counts twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What telling something tells. `picks` are values chosen from what the reader listed itself,
    the last of which is the place `last`: going on in its order is no choice."""

    bits: float = 0.0
    picks: int = 0
    last: Place | None = None

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            bits=self.bits + other.bits,
            picks=self.picks + other.picks,
            last=other.last or self.last,
        )


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

    def place(self, value: str) -> tuple[Place, int]:
        """Where it stands among values that look like it, and how many those are."""
        folded = value.casefold()
        look = _look(folded)
        for number, text in enumerate(self._texts):
            alike = _alike(text.casefold()).get(look, {})
            if folded in alike:
                return Place(hash_of(number, look), alike[folded]), len(alike)
        return Place(-1, -1), len(self.words)


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

    @classmethod
    def of(cls, schema: Mapping[str, Any]) -> Shape:
        """Of a JSON schema, whatever its depth."""
        names: dict[str, int] = {}
        required: set[str] = set()
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
        return cls(names=names, required=frozenset(required), choices=choices)


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
        total += Cost(bits=math.log2(math.comb(values, others)))
    for path, value in new.items():
        total += counted.part(path, value)
    return total


def _is_same(path: Path, value: Any, before: Mapping[Path, Any]) -> bool:
    return path in before and before[path] == value and type(before[path]) is type(value)


class _Counting:
    """The parts of one call, one after the other."""

    def __init__(self, shape: Shape, known: Known, last: Place | None) -> None:
        self._shape = shape
        self._known = known
        self._last = last
        self._days: list[date] = []
        self._at = 0

    def part(self, path: Path, value: Any) -> Cost:
        if isinstance(value, tuple):
            return Cost(bits=self._of_names(value))
        if path[-1:] != ("=",):
            return Cost(bits=1.0 + 2 * math.log2(value + 1))  # how long a list is
        if value is None or isinstance(value, bool):
            return Cost(bits=1.0)
        text = str(value)
        if text in self._shape.choices:
            return Cost(bits=math.log2(max(self._shape.choices[text], len(self._shape.choices))))
        return self._of_text(text)

    def _of_names(self, names: Sequence[str]) -> float:
        """Which fields are given, and in which order."""
        shape = self._shape
        many = len(shape.names)
        free = [name for name in names if name in shape.names and name not in shape.required]
        bits = math.log2(math.comb(max(many, 1), min(len(free), many)))
        highest = -1
        for name in names:
            if name not in shape.names:
                bits += self._of_text(name).bits
                continue
            bits += math.log2(many) if shape.names[name] < highest else 0.0
            highest = max(highest, shape.names[name])
        return bits

    def _of_text(self, text: str) -> Cost:
        known = self._known
        value = text.strip()
        if not value:
            return Cost(bits=KNOWN_BITS + CHAR_BITS * len(text))
        around = Cost(bits=CHAR_BITS * (len(text) - len(value)))
        if known.own.hold_alike(value):
            case = 0.0 if known.own.hold(value) else case_bits(value)
            return around + Cost(bits=self._of_own(value) + case)
        if known.listed.hold_alike(value):
            case = 0.0 if known.listed.hold(value) else case_bits(value)
            return around + self._picked(value) + Cost(bits=case)
        if known.sent.hold_alike(value):
            case = 0.0 if known.sent.hold(value) else case_bits(value)
            return around + Cost(bits=EARLIER_BITS + case)
        left, bits = self._without_dates(value)
        return sum((self._of_run(run) for run in _RUN.findall(left)), around + Cost(bits=bits))

    def _of_own(self, value: str) -> float:
        """Of what the person just wrote: going on in its order tells little, to leap tells how
        far."""
        said, meant = self._known.own.in_order, _WORD.findall(value.casefold())
        if not meant:
            return KNOWN_BITS
        places = [n for n in range(len(said)) if said[n : n + len(meant)] == tuple(meant)]
        ahead = next((n for n in places if n >= self._at), None)
        leap = len(said) if ahead is None else ahead - self._at + 1
        self._at = (ahead if ahead is not None else places[0] if places else 0) + len(meant)
        return KNOWN_BITS + max(0.0, math.log2(max(leap, 1)) - LEAP_BITS)

    def _picked(self, value: str) -> Cost:
        place, among = self._known.listed.place(value)
        goes_on = self._last is not None and place == Place(self._last.among, self._last.number + 1)
        self._last = place if place.number >= 0 else None
        picks = 0 if goes_on else 1 if among <= LIST_LARGE else 2
        return Cost(picks=picks, bits=KNOWN_BITS, last=self._last)

    def _without_dates(self, value: str) -> tuple[str, float]:
        """The rest of a text, and what the days in it cost: "Friday" has to be worked out."""
        bits = 0.0
        left = value
        for match in _DATE.finditer(value):
            day = _day(match["day"])
            if day is None or not self._is_near_today(day):
                continue
            near = any(abs((day - one).days) <= NEAR_DAYS for one in self._days)
            bits += NEAR_DATE_BITS if near else DATE_BITS
            bits += 0.0 if (match["time"] or "")[:5] in _ENDS_OF_DAY else TIME_BITS
            self._days.append(day)
            left = left.replace(match[0], "", 1)
        return left, bits

    def _is_near_today(self, day: date) -> bool:
        today = self._known.today
        return today - timedelta(DAYS_BACK) <= day <= today + timedelta(DAYS_AHEAD)

    def _of_run(self, run: str) -> Cost:
        """Of a word, of blanks, or of signs."""
        known = self._known
        if run == " ":
            return Cost()
        if not run[0].isalnum():
            each = [SIGN_BITS, *[math.log2(len(_SIGNS))] * (len(run) - 1)]
            signs = zip(run, each, strict=True)
            return Cost(bits=sum(bits if c in _SIGNS else CHAR_BITS for c, bits in signs))
        folded, case = run.casefold(), Cost(bits=case_bits(run) - 1.0)
        if folded in known.own.words:
            return case + Cost(bits=self._of_own(run))
        if folded in known.listed.words:
            return case + self._picked(run)
        was_said = run.isalpha() and len(run) > 1 and folded in known.earlier.words
        if was_said or folded in known.sent.words:
            return case + Cost(bits=EARLIER_BITS)
        return Cost(bits=CHAR_BITS * len(run))


_RUN = re.compile(r"[^\W_]+|_+|[^\w\s]+|\s+")
_SIGNS = frozenset(",.-_/:'\"@#&?+()")
_DATE = re.compile(
    r"(?<!\d)(?P<day>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?P<time>\d{2}:\d{2})(?::(?:00|59)(?:\.0+)?)?(?:Z|[+-]\d{2}:00)?)?(?!\d)"
)
_ENDS_OF_DAY = frozenset({"", "00:00", "23:59"})


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
    {
        *("api", "article", "articles", "blog", "books", "doc", "docs", "en", "feed", "forecast"),
        *("format", "html", "id", "index", "json", "lang", "language", "latest", "news", "page"),
        *("pages", "product", "products", "q", "query", "question", "questions", "rss", "search"),
        *("section", "stable", "title", "tree", "v1", "v2", "v3", "version", "weather", "wiki"),
        *("www", "xml"),
    }
)
"""Words of addresses that tell nothing but which of them was chosen."""
_NUMBERED = re.compile(r"[\d.]+|\[.*")


def site_of(address: str) -> str:
    """Whose place an address is, as near as its name tells: the last two parts of it."""
    match = _ADDRESS.match(address.strip())
    host = match["host"].casefold() if match else ""
    return host if _NUMBERED.fullmatch(host) else ".".join(host.rstrip(".").split(".")[-2:])


def cost_of_address(address: str, known: Known) -> Cost:
    """Of asking for a page whose address no person wrote and no page named: the name of its site is
    free, all that stands before and behind it is told to whoever keeps it."""
    match = _ADDRESS.fullmatch(address.strip())
    if match is None or _NUMBERED.fullmatch(match["host"]):
        return Cost(bits=CHAR_BITS * len(address))
    before = match["host"].casefold().removesuffix(site_of(address))
    counting = _Counting(NO_SHAPE, known, None)
    total = Cost(bits=CALL_BITS)
    for run in [*_RUN.findall(before), *_RUN.findall(match["rest"])]:
        if run.casefold() in known.sent.words:
            total += Cost(bits=KNOWN_BITS + case_bits(run) - 1.0)
        elif run.casefold() in _USUAL:
            total += Cost(bits=math.log2(len(_USUAL)) + case_bits(run) - 1.0)
        elif run[0].isalnum() or any(c not in _BORDERS for c in run):
            total += counting._of_text(run)
        else:
            total += Cost(bits=math.log2(len(_BORDERS)) * (len(run) - 1))
    return total


_BORDERS = "/?&=.-_%#"
"""Signs between the words of an address: one tells next to nothing, a row of them whatever it is
to tell."""


def case_bits(text: str) -> float:
    """Of writing it in lower case, in capitals or with a capital at the beginning of each word: one
    of these few; else each letter tells something."""
    if text.islower() or text.isupper() or text.istitle() or text.capitalize() == text:
        return 1.0
    return max(1.0, float(sum(char.isalpha() for char in text)))
