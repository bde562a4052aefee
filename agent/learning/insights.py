"""Short notes for the next half hour of a conversation: what is needed, and how tools fare.

Made after a turn, in the background, by a cheap model or by rules; kept in the database, so that a
restart loses nothing. They belong to one conversation and are shown nowhere else.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import structlog
from pydantic import Field

from agent.learning.proposals import ModelAnswer, plain_text, read_answer
from agent.prompt.assemble import Prompt, from_template
from memory.database.connection import Database
from memory.database.stored_text import dump
from memory.facts.tombstones import generation
from memory.records.errors import AssistantError, StorageError
from memory.records.messages import ConversationId, Origin, Role, RunId, TurnInput
from memory.records.ports import CheapModel, Clock, TurnEnd
from memory.records.usage import Charge, Purpose
from memory.records.words import fold, unbordered_runs, words

if TYPE_CHECKING:
    from agent.learning.insight_rules import Material

log = structlog.get_logger()

PINS_SHOWN, RECOMMENDATIONS_SHOWN = 2, 1
PIN_MIN, RECOMMENDATION_MIN = 0.1, 0.05
"""What a note's relevance must be more than."""
BEGINS_ALIKE, FIRST_WORDS = 0.2, 3
"""What is added where one of the message's first words occurs."""
CHARS_MAX = 800
"""Added to a prompt in all."""
ANSWER_TOKENS = 400
MESSAGE_CHARS_MAX, REPLY_CHARS_MAX = 2_000, 1_500

_NOTED = """
select pins, recommendations, updated_ms, is_private
from conversations left join insights on conversation_id = id where id = ?
"""
_IS_ERASED = "select exists (select 1 from turns where run_id = ? and erased_ms is not null)"
_PUT = """
insert into insights (conversation_id, pins, recommendations, updated_ms)
select id, ?, ?, ? from conversations where id = ? and not is_private
on conflict (conversation_id) do update set pins = excluded.pins,
    recommendations = excluded.recommendations, updated_ms = excluded.updated_ms
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insights:
    """The notes of a conversation; `updated_ms` 0: there were never any."""

    pins: tuple[str, ...] = ()
    recommendations: tuple[str, ...] = ()
    updated_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What notes are made of: a turn, when something had been forgotten so many times."""

    run_id: RunId
    generation: int


class SqliteInsights:
    """Keeps the notes of conversations. Raises StorageError."""

    def __init__(self, database: Database, *, minutes: float = 30.0) -> None:
        """`minutes` is how long notes are used after their last update."""
        self._database = database
        self._used_ms = int(minutes * 60_000)

    async def current(self, conversation: ConversationId, now: datetime) -> Insights | None:
        """Those still in use, maybe none; None where memory is off or there is no such talk."""
        row = await self._database.read(lambda c: c.execute(_NOTED, (conversation,)).fetchone())
        if row is None or row[3]:
            return None
        pins, recommendations, updated_ms, _ = row
        # Also of a future that a clock set back has left behind.
        if updated_ms is None or abs(_ms(now) - updated_ms) > self._used_ms:
            return Insights()
        return Insights(
            pins=_texts(pins), recommendations=_texts(recommendations), updated_ms=updated_ms
        )

    async def generation(self) -> int:
        """How often something was forgotten so far."""
        return await self._database.read(generation)

    async def put(
        self, conversation: ConversationId, insights: Insights, *, basis: Basis | None = None
    ) -> None:
        """Replaces the notes as a whole; nothing where memory is off, or where something was
        forgotten that they may tell of."""
        texts = (dump(list(insights.pins)), dump(list(insights.recommendations)))
        values = (*texts, insights.updated_ms, conversation)

        def work(connection: sqlite3.Connection) -> None:
            if basis is None or _stands(connection, basis):
                connection.execute(_PUT, values)

        await self._database.write(work)

    async def relevant(
        self, conversation: ConversationId, text: str, now: datetime
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The pins and recommendations that fit a message, best first (SPEC §9)."""
        insights = await self.current(conversation, now)
        if insights is None:
            return (), ()
        pins = best(insights.pins, text, above=PIN_MIN, k=PINS_SHOWN)
        recommendations = best(
            insights.recommendations, text, above=RECOMMENDATION_MIN, k=RECOMMENDATIONS_SHOWN
        )
        room = CHARS_MAX - sum(len(pin) for pin in pins)
        return pins, tuple(one for one in recommendations if len(one) <= room)


def _stands(connection: sqlite3.Connection, basis: Basis) -> bool:
    """A turn may have been erased before its notes were begun."""
    (is_erased,) = connection.execute(_IS_ERASED, (basis.run_id,)).fetchone()
    return not is_erased and generation(connection) == basis.generation


def best(notes: Sequence[str], text: str, *, above: float, k: int) -> tuple[str, ...]:
    """The `k` notes of the highest relevance, if it is more than `above`; ties in their order."""
    scored = [(relevance(note, text), note) for note in notes]
    fitting = sorted((one for one in scored if one[0] > above), key=lambda one: -one[0])
    return tuple(note for _, note in fitting[:k])


def relevance(note: str, text: str) -> float:
    """Words shared ÷ words in the message, + 0.2 if one of its first three words occurs."""
    asked, noted = _words(text), set(_words(note))
    if not asked:
        return 0.0
    share = len(set(asked) & noted) / len(set(asked))
    return share + (BEGINS_ALIKE if noted.intersection(asked[:FIRST_WORDS]) else 0.0)


def _words(text: str) -> list[str]:
    """In order; of scripts without blanks each character."""
    folded = fold(text)
    return [word.text for word in words(folded)] + [
        char for run in unbordered_runs(folded) for char in run
    ]


def _texts(stored: str) -> tuple[str, ...]:
    return tuple(str(one) for one in json.loads(stored))


def _ms(now: datetime) -> int:
    return int(now.timestamp() * 1000)


# --- how they are made -------------------------------------------------------------------------


class FoundInsights(ModelAnswer):
    """What a model answers; what is no text in its lists is passed over."""

    pins: list[object] = Field(max_length=50)
    recommendations: list[object] = Field(max_length=50)


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeInsights:
    """Notes that were made. `dropped` counts those that nothing in the turn carries."""

    by: Literal["model", "rules"]
    insights: Insights
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class InsightOptions:
    """`words_min`: a message of fewer words in a turn without tools says nothing."""

    words_min: int = 10


class InsightMaker:
    """Makes the notes after each turn that may have something in it."""

    def __init__(
        self,
        store: SqliteInsights,
        model: CheapModel | None,
        texts: Callable[[], Mapping[str, str]],
        clock: Clock,
        *,
        options: InsightOptions | None = None,
    ) -> None:
        """`model` None: rules alone. `texts` is `agent.prompt.templates.PromptLibrary.texts`."""
        self._store = store
        self._model = model
        self._texts = texts
        self._clock = clock
        self._options = options or InsightOptions()

    async def after(self, turn: TurnInput, end: TurnEnd) -> MadeInsights | None:
        """Makes notes, or None where there is nothing to make any of. A model in trouble, and an
        answer that cannot be read, leave it to the rules. Raises StorageError.
        """
        if turn.role is Role.GUEST or turn.origin is not Origin.CHAT:
            return None
        if turn.task is not None or turn.report is not None:
            return None
        if turn.message.is_group:
            return None  # what is noted of a person is shown in no group (SPEC §9)
        # Here, not above: its tables of words take a start a while, and no turn has ended then.
        from agent.learning.insight_rules import material_of

        material = material_of(end, person_id=turn.person_id)
        if not material.uses and material.words < self._options.words_min:
            return None
        basis = Basis(run_id=end.turn.run_id, generation=await self._store.generation())
        current = await self._store.current(end.conversation, self._clock.now())
        if current is None:
            return None
        made = await self._by_model(turn, material, current) or self._by_rules(material, current)
        if made is None:
            return None
        await self._store.put(end.conversation, made.insights, basis=basis)
        log.info(
            "insights.noted",
            conversation=end.conversation,
            by=made.by,
            pins=len(made.insights.pins),
            recommendations=len(made.insights.recommendations),
            dropped=made.dropped,
        )
        return made

    async def _by_model(
        self, turn: TurnInput, material: Material, current: Insights
    ) -> MadeInsights | None:
        if self._model is None:
            return None
        try:
            found = await self._asked(self._model, turn, material, current)
        except StorageError:
            raise
        except AssistantError as trouble:
            log.info("insights.by_rules", why=str(trouble))
            return None
        if found is None:
            return None
        return await asyncio.to_thread(self._carried, found, material, current)

    async def _asked(
        self, model: CheapModel, turn: TurnInput, material: Material, current: Insights
    ) -> FoundInsights | None:
        """None where the model could only make things up, or has no room."""
        lane = turn.message.address.key
        traits = await model.traits(lane)
        tokens_max = traits.output_tokens(ANSWER_TOKENS)
        prompt = self._prompt(material, current)
        if traits.demo or prompt.tokens > traits.window - tokens_max:
            return None
        charge = Charge(
            purpose=Purpose.INSIGHTS,
            person_id=turn.person_id,
            is_owner=turn.role is Role.OWNER,
            lane=lane,
            conversation=turn.conversation,
            agent="default",
            time_zone=turn.time_zone,
        )
        answer = await model.ask(prompt.user, charge, tokens_max=tokens_max)
        return read_answer(answer, FoundInsights)

    def _prompt(self, material: Material, current: Insights) -> Prompt:
        uses = (
            f"- {use.name} {use.arguments}: {f'failed: {use.trouble}' if use.trouble else 'ok'}"
            for use in material.uses
        )
        return from_template(
            self._texts(),
            "insights",
            CURRENT=self._shown(current),
            MESSAGE=material.said[:MESSAGE_CHARS_MAX] or "(nothing of their own)",
            REPLY=material.reply[:REPLY_CHARS_MAX],
            TOOLS="\n".join(uses) or "(none)",
        )

    def _shown(self, current: Insights) -> str:
        """With their age."""
        if not current.pins and not current.recommendations:
            return "(none)"
        minutes = max(self._now_ms() - current.updated_ms, 0) // 60_000
        lines = [f"- pin: {note}" for note in current.pins]
        lines += [f"- recommendation: {note}" for note in current.recommendations]
        return "\n".join([f"{minutes} min old:", *lines])

    def _carried(self, found: FoundInsights, material: Material, current: Insights) -> MadeInsights:
        """What the turn carries. For a thread: what tools returned may be long."""
        pins, recommendations = _notes(found.pins), _notes(found.recommendations)
        good = [note for note in pins if material.carries_pin(note, current.pins)]
        useful = [
            note
            for note in recommendations
            if material.carries_recommendation(note, current.recommendations)
        ]
        insights = self._insights(good, useful)
        kept = len(insights.pins) + len(insights.recommendations)
        dropped = len(found.pins) + len(found.recommendations) - kept
        return MadeInsights(by="model", insights=insights, dropped=dropped)

    def _by_rules(self, material: Material, current: Insights) -> MadeInsights | None:
        """What is new goes before what still holds; None where nothing is new."""
        from agent.learning.insight_rules import pins_by_rules, recommendations_by_rules

        pins = pins_by_rules(material.said)
        recommendations = recommendations_by_rules(material.uses)
        if not pins and not recommendations:
            return None
        insights = self._insights(
            [*pins, *current.pins], [*recommendations, *current.recommendations]
        )
        return MadeInsights(by="rules", insights=insights)

    def _insights(self, pins: Sequence[str], recommendations: Sequence[str]) -> Insights:
        from agent.learning.insight_rules import NOTES_MAX

        return Insights(
            pins=tuple(dict.fromkeys(pins))[:NOTES_MAX],
            recommendations=tuple(dict.fromkeys(recommendations))[:NOTES_MAX],
            updated_ms=self._now_ms(),
        )

    def _now_ms(self) -> int:
        return _ms(self._clock.now())


def _notes(found: Sequence[object]) -> list[str]:
    """What is a text, as it may be kept."""
    from agent.learning.insight_rules import tidy

    plain = (plain_text(one) for one in found)
    return [note for one in plain if isinstance(one, str) and (note := tidy(one))]
