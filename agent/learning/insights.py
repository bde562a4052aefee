"""Insights made after a turn: what is needed just now, and how tools are better used.

By a cheap model, or by rules where none can be asked; in the background. `memory.facts.insights`
keeps them. What a page, a tool or the reply says must not steer: code compares each note with what
the person wrote and how the tools fared.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import structlog
from pydantic import Field

from agent.budget.ledger import background_charge
from agent.guards.tool_call_text import called_name
from agent.learning.evidence import has_foreign_address, is_carried, keys
from agent.models.client import ModelAnswer, plain_text, read_answer
from agent.prompt.assemble import from_template
from agent.prompt.templates import harmless
from memory.facts.insights import Basis, Insights, SqliteInsights
from memory.facts.secrets import secret_in
from memory.facts.similarity import says_no
from memory.records.errors import AssistantError, StorageError
from memory.records.messages import Origin, PersonId, Role, TurnInput
from memory.records.ports import CheapModel, Clock, TurnEnd
from memory.records.text import clean, one_line
from memory.records.transcript import Answered, Said, ToolCall, ToolResult
from memory.records.usage import Purpose
from memory.records.words import fold, is_unbordered, unbordered_runs, words
from memory.stores.lines import own_words

log = structlog.get_logger()

NOTES_MAX, NOTE_CHARS_MAX = 3, 150
"""Of each kind, and characters of one (SPEC §9)."""
REASON_CHARS_MAX, OUTSIDE_REASON_CHARS_MAX = 110, 60
"""Of an error that is quoted; an error that somebody else wrote says less."""
SAID_CHARS_MAX, FOREIGN_CHARS_MAX = 20_000, 60_000
"""Of what the person wrote, and of what others did, that is looked at."""
USES_MAX = 20
WORDS_MIN = 10
"""A message of fewer words in a turn without tools says nothing."""
SENTENCE_CHARS_MAX = 400
ANSWER_TOKENS = 400
MESSAGE_CHARS_MAX, REPLY_CHARS_MAX = 2_000, 1_500


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


class InsightMaker:
    """Makes the notes after each turn that may have something in it."""

    def __init__(
        self,
        store: SqliteInsights,
        model: CheapModel | None,
        texts: Callable[[], Mapping[str, str]],
        clock: Clock,
    ) -> None:
        """`model` None: rules alone. `texts` is `agent.prompt.templates.PromptLibrary.texts`."""
        self._store = store
        self._model = model
        self._texts = texts
        self._clock = clock

    async def after(self, turn: TurnInput, end: TurnEnd) -> MadeInsights | None:
        """Make notes; None where there is nothing to make any of. A model in trouble, and an
        answer that cannot be read, leave it to the rules. Raise StorageError.
        """
        if turn.role is Role.GUEST or turn.origin is not Origin.CHAT:
            return None
        if turn.task is not None or turn.report is not None:
            return None
        if turn.message.is_group:
            return None  # what is noted of a person is shown in no group (SPEC §9)
        material = material_of(end, person_id=turn.person_id)
        if not material.uses and material.words < WORDS_MIN:
            return None
        basis = Basis(run_id=end.turn.run_id, generation=await self._store.generation())
        current = await self._store.current(end.conversation, self._clock.now())
        if current is None:
            return None
        made = await self._by_model(turn, material, current)
        if made is None:
            # What is new goes before what still holds.
            pins = pins_by_rules(material.said)
            tips = recommendations_by_rules(material.uses)
            if not pins and not tips:
                return None
            rules = self._insights([*pins, *current.pins], [*tips, *current.recommendations])
            made = MadeInsights(by="rules", insights=rules)
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
        """None where the model could only make things up, has no room, or is in trouble."""
        if self._model is None:
            return None
        lane = turn.message.address.key
        minutes = max(self._now_ms() - current.updated_ms, 0) // 60_000
        notes = [f"- pin: {note}" for note in current.pins]
        notes += [f"- recommendation: {note}" for note in current.recommendations]
        try:
            traits = await self._model.traits(lane)
            tokens_max = traits.output_tokens(ANSWER_TOKENS)
            prompt = from_template(
                self._texts(),
                "insights",
                CURRENT="\n".join([f"{minutes} min old:", *notes]) if notes else "(none)",
                MESSAGE=material.said[:MESSAGE_CHARS_MAX] or "(nothing of their own)",
                REPLY=material.reply[:REPLY_CHARS_MAX],
                TOOLS="\n".join(f"- {use.line}" for use in material.uses) or "(none)",
            )
            if traits.demo or prompt.tokens > traits.window - tokens_max:
                return None
            charge = background_charge(Purpose.INSIGHTS, turn)
            answer = await self._model.ask(prompt.user, charge, tokens_max=tokens_max)
            found = read_answer(answer, FoundInsights)
        except StorageError:
            raise
        except AssistantError as trouble:
            log.info("insights.by_rules", why=str(trouble))
            return None
        # In a thread: what tools returned may be long.
        return await asyncio.to_thread(self._carried, found, material, current)

    def _carried(self, found: FoundInsights, material: Material, current: Insights) -> MadeInsights:
        """Keep what was noted before, and what the turn carries."""
        foreign = _keys_of(material.foreign)
        steering = foreign | _keys_of([material.reply])
        fared = "\n".join([material.said, *(use.line for use in material.uses)])

        def is_pin(note: str) -> bool:
            return is_carried(note, by=material.said, foreign=steering)

        def is_recommendation(note: str) -> bool:
            is_of_a_tool = any(fold(use.name) in fold(note) for use in material.uses)
            return is_of_a_tool and is_carried(note, by=fared, foreign=foreign)

        def kept(
            notes: Sequence[object], is_good: Callable[[str], bool], old: Sequence[str]
        ) -> list[str]:
            texts = (tidy(text) for one in notes if isinstance(text := plain_text(one), str))
            own = "\n".join([fared, *old])
            return [
                note
                for note in texts
                if note and (note in old or (is_good(note) and not has_foreign_address(note, own)))
            ]

        insights = self._insights(
            kept(found.pins, is_pin, current.pins),
            kept(found.recommendations, is_recommendation, current.recommendations),
        )
        count = len(insights.pins) + len(insights.recommendations)
        dropped = len(found.pins) + len(found.recommendations) - count
        return MadeInsights(by="model", insights=insights, dropped=dropped)

    def _insights(self, pins: Sequence[str], recommendations: Sequence[str]) -> Insights:
        return Insights(
            pins=tuple(dict.fromkeys(pins))[:NOTES_MAX],
            recommendations=tuple(dict.fromkeys(recommendations))[:NOTES_MAX],
            updated_ms=self._now_ms(),
        )

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)


# --- what a turn shows -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """One call and what came of it. `trouble` is why it failed, shortened; empty if it did not."""

    name: str
    arguments: str
    trouble: str = ""

    @property
    def line(self) -> str:
        """Return how it is told to a model."""
        return (
            f"{self.name} {self.arguments}: {f'failed: {self.trouble}' if self.trouble else 'ok'}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What of a turn notes may be made of: what the person wrote, how tools fared, and what was
    said by others (`foreign`: texts that tools brought in, and what somebody else wrote)."""

    said: str
    reply: str
    uses: tuple[ToolUse, ...]
    foreign: tuple[str, ...] = ()

    @property
    def words(self) -> int:
        """Of the person; characters of scripts without blanks count in twos."""
        folded = fold(self.said)
        return len(words(folded)) + sum(len(run) + 1 for run in unbordered_runs(folded)) // 2


def material_of(end: TurnEnd, *, person_id: PersonId) -> Material:
    """Return that of a finished turn. Forwarded and quoted text is not said, nor what others said
    meanwhile."""
    said: list[str] = []
    foreign: list[str] = []
    uses: list[ToolUse] = []
    calls: dict[str, ToolCall] = {}
    for entry in end.turn.entries:
        match entry:
            case Said(by=by) if by in {"", person_id} and (text := own_words(entry)):
                said.append(text)
            case Said() | ToolResult(untrusted=True):
                foreign.append(entry.text if isinstance(entry, Said) else entry.content)
            case Answered():
                calls.update((call.id, call) for call in entry.calls)
            case _:
                pass
        if isinstance(entry, ToolResult) and (call := calls.get(entry.call_id)) is not None:
            chars_max = OUTSIDE_REASON_CHARS_MAX if entry.untrusted else REASON_CHARS_MAX
            why = one_line(harmless(clean(entry.content[:2_000])), chars_max=chars_max)
            uses.append(
                ToolUse(
                    name=one_line(clean(called_name(call)), chars_max=64),
                    arguments=one_line(clean(call.arguments[:400]), chars_max=120),
                    trouble="" if entry.ok else why or "no reason was given",
                )
            )
    return Material(
        said="\n".join(said)[:SAID_CHARS_MAX],
        reply=end.reply,
        uses=tuple(uses[-USES_MAX:]),
        foreign=tuple(foreign),
    )


def tidy(note: str) -> str:
    """Return a note as it may be kept and shown: one harmless line; empty for a secret."""
    text = one_line(harmless(clean(note).strip().lstrip("-*• ")), chars_max=NOTE_CHARS_MAX)
    return "" if secret_in(text) else text


def pins_by_rules(said: str) -> list[str]:
    """Return the person's own sentences that name a need or a number, or say no: bounds that can be
    told without a model. A question names none ("Must I bring a passport?")."""
    found: list[str] = []
    for match in _SENTENCE.finditer(said):
        sentence = match.group().strip()
        if not sentence or sentence.endswith(("?", "？")) or len(sentence) > SENTENCE_CHARS_MAX:
            continue
        said_words = {word.text for word in words(fold(sentence))}
        if said_words & _NEEDS or any(map(str.isdigit, sentence)) or says_no(sentence):
            found.append(tidy(sentence if is_unbordered(sentence) else sentence.rstrip(".;")))
    return list(islice(dict.fromkeys(note for note in found if note), NOTES_MAX))


_NEED_WORDS = """
must need needs needed require requires required prefer prefers preferred rather only budget
deadline limit max maximum allergic vegetarian vegan muss müssen brauche bevorzuge lieber nur
höchstens spätestens dois préfère seulement debo necesito prefiero solo
"""
_NEEDS = frozenset(_NEED_WORDS.split())
_SENTENCE = re.compile(r"[^.!?;\n。！？]*(?:\.(?=\S)[^.!?;\n。！？]*)*[.!?;。！？]?")


def recommendations_by_rules(uses: Sequence[ToolUse]) -> list[str]:
    """Return what failed, and why; the newest first."""
    failed = (tidy(f"{use.name} failed: {use.trouble}") for use in reversed(uses) if use.trouble)
    return list(islice(dict.fromkeys(note for note in failed if note), NOTES_MAX))


def _keys_of(texts: Sequence[str]) -> AbstractSet[str]:
    return keys("\n".join(texts)[:FOREIGN_CHARS_MAX])
