"""Facts as a model proposes them, and the judgement of each against what was really said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from pydantic import AliasChoices, Field, ValidationError, model_validator

from agent.learning.evidence import (
    has_foreign_address,
    is_about_another,
    is_asked_or_quoted,
    is_covered,
    is_pasted,
    is_turned_round,
    shares_words,
)
from agent.models.client import ModelAnswer, PlainText
from memory.facts.similarity import stands_in
from memory.records.facts import (
    CATEGORIES,
    FACT_CHARS_MAX,
    FactSource,
    NewFact,
    StoredFact,
    Whose,
    fact_id_of,
)
from memory.records.words import fold, squeezed, without_name
from memory.stores.lines import SpokenStretch

ITEMS_MAX = 50
"""Of one answer that are read."""


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
    NOT_ASSERTED = "asked, of somebody else, or within quotation marks"
    NOT_CARRIED = "the line does not carry it"
    BY_STORE = "refused by the store"


class FoundFact(ModelAnswer):
    """One fact that a model proposes: `certainty` that the person states it as true of now,
    `contradicts` the known fact that no longer holds because of it.

    A template of one's own (`prompts/extraction.md` in the workspace) may still ask for the former
    names of both.
    """

    text: PlainText = Field(min_length=1)
    category: PlainText = ""
    certainty: float = Field(ge=0, le=1, validation_alias=AliasChoices("certainty", "confidence"))
    speaker: PlainText = ""
    quote: PlainText = Field(min_length=1)
    contradicts: PlainText | None = Field(
        default=None, validation_alias=AliasChoices("contradicts", "replaces")
    )


class FoundFacts(ModelAnswer):
    """All of them. One that cannot be read does not spoil the others; it is counted."""

    facts: tuple[FoundFact, ...]
    unreadable: int = 0

    @model_validator(mode="before")
    @classmethod
    def _readable_ones(cls, data: Any) -> Any:
        """Find the list that was wanted, also without what is to be around it."""
        if isinstance(data, Mapping) and ("facts" in data or "quote" not in data):
            data = data.get("facts", data)
        if isinstance(data, Mapping) and "quote" in data:
            data = [data]
        items = [] if data is None else data
        if not isinstance(items, list):
            return {"facts": items}
        good: list[FoundFact] = []
        for item in items[:ITEMS_MAX]:
            try:
                good.append(FoundFact.model_validate(item))
            except ValidationError:
                continue
        if items and not good:
            return {"facts": items[:1]}  # what is wrong with it is what is told
        return {"facts": good, "unreadable": len(items) - len(good)}


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
        """Return for each the fact as it may be stored, or why it may not be."""
        return [self._verdict(one) for one in found]

    def _verdict(self, found: FoundFact) -> NewFact | FactRefusal:
        text = " ".join(found.text.split())
        if found.certainty < self._confidence_min:
            return FactRefusal.UNSURE
        if len(text) > FACT_CHARS_MAX:
            return FactRefusal.TOO_LONG
        wanted = plain(found.speaker)
        label = next((one for one in self._speakers if plain(one) == wanted), None)
        if label is None and len(self._speakers) == 1 and wanted in _ANYBODY:
            label = next(iter(self._speakers))
        if label is None:
            return FactRefusal.NO_SPEAKER
        own = [line for line in self._stretch.own() if line.speaker == label]
        line = next((one for one in own if stands_in(found.quote, one.text)), None)
        if line is None:
            return FactRefusal.NO_QUOTE
        outside = (o.text for o in self._stretch.outside if o.message_id < line.message_id)
        # A name tells no fact, be it "Dr. No", "U1" or "Will".
        told = without_name(text, label)
        if is_pasted(found.quote, outside):
            return FactRefusal.PASTED
        if is_turned_round(found.quote, line.text, told):
            return FactRefusal.TURNED_ROUND
        if has_foreign_address(told, "\n".join(one.text for one in own)):
            return FactRefusal.NOT_CARRIED
        if is_asked_or_quoted(found.quote, line.text):
            return FactRefusal.NOT_ASSERTED
        if is_about_another(found.quote, line.text, text):
            return FactRefusal.NOT_ASSERTED
        year = datetime.fromtimestamp(line.at_ms / 1000, UTC).year
        if not shares_words(told, found.quote):
            return FactRefusal.NOT_CARRIED
        if not is_covered(told, line.text, speaker=label, year=year):
            return FactRefusal.NOT_CARRIED
        of = Whose(person_id=self._speakers[line.speaker].id, scope=self._stretch.scope)
        named = fact_id_of(found.contradicts or "")
        known = None if named is None else self._known.get(named)
        category = plain(found.category)
        return NewFact(
            whose=of,
            text=text,
            # What a model makes up is background.
            category=next((c for c in CATEGORIES if category in {c, f"{c}s"}), "background"),
            source=FactSource.MESSAGE,
            confidence=found.certainty,
            message_id=line.message_id,
            run_id=line.run_id,
            quote=" ".join(found.quote.split())[:FACT_CHARS_MAX],
            speaker=line.speaker if of.scope else "",
            valid_from_ms=line.at_ms,
            replaces=known.id if known is not None and known.whose == of else None,
        )


_ANYBODY = frozenset({"", "user", "the user", "person", "the person", "speaker", "i", "me"})
"""Where one person speaks, each of these is that one."""


def plain(text: str) -> str:
    """Return a short text as it is compared."""
    return squeezed(fold(text)).strip(" .,:;!?=()")
