"""Facts as a model proposes them: read leniently, and judged against what was really said.

Called by `agent.learning.extraction`. Pure; long texts from outside make it slow, so it is for a
thread.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from agent.learning.assertions import is_asserted
from agent.learning.evidence import (
    is_carried,
    is_covered,
    is_pasted,
    is_turned_round,
    keys,
    stands_in,
)
from memory.records.errors import Temporary
from memory.records.facts import (
    CATEGORIES,
    FACT_CHARS_MAX,
    Category,
    FactSource,
    NewFact,
    StoredFact,
    Whose,
    fact_id_of,
)
from memory.records.rows import Person
from memory.records.words import fold, squeezed, without_name
from memory.stores.lines import SpokenLine, SpokenStretch

# --- answers ------------------------------------------------------------------------------------
#
# A model's answer in JSON, read at the edge: for extraction, insights and compaction.
#
# Small models wrap it in words and fences, forget a bracket, or write objects where texts are
# wanted. What can mean one thing only is taken; the rest is refused with words that a model can act
# on.

ANSWER_CHARS_MAX = 50_000
STARTS_MAX = 40
"""Places of one answer at which an object may begin that are tried."""
BRACKETS_MAX = 300


class AnswerUnreadable(Temporary):
    """What came is not the wanted JSON. The text says what is wrong, and never quotes the answer:
    it may be shown to the model that is asked again, and stand in the log."""


class ModelAnswer(BaseModel):
    """Base of what is wanted: frozen, unknown fields passed over, numbers taken for texts."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)


Wanted = TypeVar("Wanted", bound=BaseModel)


def read_answer(text: str, model: type[Wanted]) -> Wanted:
    """The answer as `model` wants it. Raises AnswerUnreadable.

    The last whole object that fits counts: before it a model may think aloud, or say its example
    again. Only where there is none is the text repaired. What ends in the middle of a string was
    cut off, and is never completed.
    """
    if len(text) > ANSWER_CHARS_MAX:
        raise AnswerUnreadable("The answer is far too long: write one short JSON object.")
    why = ""
    for value in _values(text):
        try:
            return model.model_validate(value)
        except ValidationError as error:
            why = why or _readable(error)
        except RecursionError:
            why = why or "The answer is nested too deeply."
    raise AnswerUnreadable(why or "The answer holds no JSON object that is whole.")


def plain_text(value: Any) -> Any:
    """The one text that an object or a list of one stands for; anything else as it is.

    `{"timestamp": …, "summary": "asked about X"}` is "asked about X" (case ME-03).
    """
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, Mapping):
        texts = [value[name] for name in _TEXT_NAMES if isinstance(value.get(name), str)]
        return texts[0] if len(texts) == 1 else value
    return value


PlainText = Annotated[str, BeforeValidator(plain_text)]
"""A text, also where a model wrote an object around it."""

_TEXT_NAMES = ("text", "summary", "content", "value", "fact", "quote", "statement", "name")


def _values(text: str) -> Iterator[Any]:
    """What the answer may be, the likeliest first."""
    text = text.strip()
    whole = _loaded(text)
    if isinstance(whole, str):  # an object, encoded twice
        whole = _loaded(whole)
    if isinstance(whole, dict | list):
        yield whole
        return
    yield from reversed(list(_within(text)))
    yield from _repaired(text)


def _loaded(text: str) -> Any:
    """The JSON value, raw line breaks within strings let pass; None when it is none."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


_DECODER = json.JSONDecoder(strict=False)


def _within(text: str) -> Iterator[Any]:
    """The whole objects and lists that stand in a text, in order."""
    at = 0
    for _ in range(STARTS_MAX):
        at = _next_start(text, at)
        if at < 0:
            return
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
        else:
            yield value


def _next_start(text: str, at: int) -> int:
    starts = [found for sign in "{[" if (found := text.find(sign, at)) >= 0]
    return min(starts, default=-1)


def _repaired(text: str) -> Iterator[Any]:
    """What json-repair makes of it from the first bracket on."""
    start = _next_start(text, 0)
    brackets = text.count("{") + text.count("[")
    # Over many open brackets the library takes seconds, and no answer that is wanted has them.
    if start < 0 or brackets > BRACKETS_MAX or _ends_in_a_string(text[start:]):
        return
    import json_repair

    try:
        value = json_repair.loads(text[start:])
    except (ValueError, RecursionError):
        return
    yield from reversed(value) if isinstance(value, list) and text[start] == "{" else [value]


def _ends_in_a_string(text: str) -> bool:
    return text.replace("\\\\", "").replace('\\"', "").count('"') % 2 == 1


PROBLEMS_SHOWN_MAX = 3


def _readable(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    words = "; ".join(_problems(problems[:PROBLEMS_SHOWN_MAX]))
    return f"The answer does not have the wanted form: {words}."


def _problems(problems: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for problem in problems:
        # Names of unknown fields are passed over, so each part is one of ours or a number.
        where = ".".join(str(part) for part in problem["loc"]) or "the whole"
        message = "is missing" if problem["type"] == "missing" else str(problem["msg"]).lower()
        yield f"{where}: {message}"


class FactRefusal(StrEnum):
    """Why a proposed fact was not stored."""

    UNREADABLE = "unreadable"
    UNSURE = "unsure"
    TOO_MANY = "too many"
    TOO_LONG = "too long"
    NO_SPEAKER = "not of somebody who spoke"
    NO_QUOTE = "the quote is in no line of theirs"
    PASTED = "the quote was pasted from elsewhere"
    TURNED_ROUND = "a not was left out, or put in"
    NOT_ASSERTED = "asked, supposed, wished, over, told by others or to be worked on"
    NOT_CARRIED = "the line does not carry it"
    BY_STORE = "refused by the store"


class FoundFact(ModelAnswer):
    """One fact that a model proposes."""

    text: PlainText = Field(min_length=1)
    category: PlainText = ""
    confidence: float = Field(ge=0, le=1)
    speaker: PlainText = ""
    quote: PlainText = Field(min_length=1)
    replaces: PlainText | None = None


class FoundFacts(ModelAnswer):
    """All of them. One that cannot be read does not spoil the others; it is counted."""

    facts: tuple[FoundFact, ...]
    unreadable: int = 0

    @model_validator(mode="before")
    @classmethod
    def _readable_ones(cls, data: Any) -> Any:
        items = _items(data)
        if items is None:
            return data
        good: list[FoundFact] = []
        for item in items[:_ITEMS_MAX]:
            try:
                good.append(FoundFact.model_validate(item))
            except ValidationError:
                continue
        if items and not good:
            return {"facts": items[:1]}  # what is wrong with it is what is told
        return {"facts": good, "unreadable": len(items) - len(good)}


_ITEMS_MAX = 50


def _items(data: Any) -> list[Any] | None:
    """The list that was wanted, also without what is to be around it; None when there is none."""
    if isinstance(data, Mapping):
        data = data if "facts" not in data and "quote" in data else data.get("facts", data)
        if data is None:
            return []
        if isinstance(data, Mapping):
            return [data] if "quote" in data else None
    return data if isinstance(data, list) else None


class Judge:
    """Decides which proposed facts rest on what somebody said in one stretch."""

    def __init__(
        self, stretch: SpokenStretch, known: Mapping[int, StoredFact], *, confidence_min: float
    ) -> None:
        """`known` are the facts that were shown, by id: no other one can be replaced."""
        self._stretch = stretch
        self._known = known
        self._confidence_min = confidence_min
        self._speakers = stretch.speakers()

    def verdicts(self, found: Sequence[FoundFact]) -> list[NewFact | FactRefusal]:
        """For each the fact as it may be stored, or why it may not be."""
        return [self._verdict(one) for one in found]

    def _verdict(self, found: FoundFact) -> NewFact | FactRefusal:
        text = " ".join(found.text.split())
        if found.confidence < self._confidence_min:
            return FactRefusal.UNSURE
        if len(text) > FACT_CHARS_MAX:
            return FactRefusal.TOO_LONG
        label = self._speaker(found.speaker)
        if label is None:
            return FactRefusal.NO_SPEAKER
        line = next((one for one in self._own(label) if stands_in(found.quote, one.text)), None)
        if line is None or line.person is None:
            return FactRefusal.NO_QUOTE
        why = self._why_not(text, found.quote, line)
        return self._new(found, text, line, line.person) if why is None else why

    def _why_not(self, text: str, quote: str, line: SpokenLine) -> FactRefusal | None:
        outside = self._stretch.outside
        # A name tells no fact, be it "Dr. No", "U1" or "Will".
        told = without_name(text, line.speaker)
        if is_pasted(quote, (one.text for one in outside if one.message_id < line.message_id)):
            return FactRefusal.PASTED
        if is_turned_round(quote, line.text, told):
            return FactRefusal.TURNED_ROUND
        own = "\n".join(one.text for one in self._own(line.speaker))
        foreign = self._outside_keys.union(
            *(keys(one.text) for one in self._stretch.lines if one.speaker != line.speaker)
        )
        if not is_carried(told, by=line.text, own=own, foreign=foreign, names=self._speakers):
            return FactRefusal.NOT_CARRIED
        if not is_asserted(quote, line.text, told):
            return FactRefusal.NOT_ASSERTED
        year = datetime.fromtimestamp(line.at_ms / 1000, UTC).year
        if not is_covered(told, line.text, speaker=line.speaker, year=year):
            return FactRefusal.NOT_CARRIED
        return None

    @cached_property
    def _outside_keys(self) -> frozenset[str]:
        return frozenset().union(*(keys(one.text) for one in self._stretch.outside))

    def _new(self, found: FoundFact, text: str, line: SpokenLine, person: Person) -> NewFact:
        of = Whose(person_id=person.id, scope=self._stretch.scope)
        wanted = fact_id_of(found.replaces or "")
        known = None if wanted is None else self._known.get(wanted)
        return NewFact(
            whose=of,
            text=text,
            category=_category(found.category),
            source=FactSource.MESSAGE,
            confidence=found.confidence,
            message_id=line.message_id,
            run_id=line.run_id,
            quote=" ".join(found.quote.split())[:FACT_CHARS_MAX],
            speaker=line.speaker if of.scope else "",
            valid_from_ms=line.at_ms,
            replaces=known.id if known is not None and known.whose == of else None,
        )

    def _speaker(self, named: str) -> str | None:
        """The label that is meant. Where one person speaks, "the user" is that one."""
        wanted = _plain(named)
        for label in self._speakers:
            if _plain(label) == wanted:
                return label
        is_plain = len(self._speakers) == 1 and wanted in _ANYBODY
        return next(iter(self._speakers)) if is_plain else None

    def _own(self, label: str) -> Iterator[SpokenLine]:
        return (line for line in self._stretch.own() if line.speaker == label)


_ANYBODY = frozenset({"", "user", "the user", "person", "the person", "speaker", "i", "me"})


def _category(named: str) -> Category:
    """What a model calls it; what it makes up is background."""
    wanted = _plain(named)
    return next((one for one in CATEGORIES if wanted in {one, f"{one}s"}), "background")


def _plain(text: str) -> str:
    return squeezed(fold(text)).strip(" .,:;!?=()")
