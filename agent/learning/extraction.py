"""Extraction: facts worth knowing about people, found in what they said.

Called by the idle timer once a conversation is silent, and by compaction before it drops something.
A cheap model proposes and judges; code lets pass what rests on a person's own line
(`agent.learning.proposals`). The conversation is never touched.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice

import structlog

from agent.learning.evidence import keys
from agent.learning.proposals import FactRefusal, FoundFacts, Judge, plain
from agent.models.client import AnswerUnreadable, read_answer
from agent.prompt.assemble import from_template
from agent.prompt.tokens import estimate_tokens
from memory.facts.store import SqliteFacts
from memory.records.errors import BrokenAnswer, ContextTooLong
from memory.records.facts import StoredFact, Storing, Whose
from memory.records.messages import ConversationId, Role
from memory.records.ports import CheapModel
from memory.records.section import ExtractionSettings
from memory.records.text import one_line
from memory.records.transcript import ModelTraits
from memory.records.usage import Charge, Purpose, Scope, zone_for
from memory.records.words import read_list
from memory.stores.lines import SpokenLine, SpokenStretch, SqliteLines

log = structlog.get_logger()

KNOWN_MAX = 20
"""Known facts of each speaker that are shown."""
SPEAKERS_MAX = 8
"""People whose known facts are looked up: those who spoke last."""
QUERY_CHARS_MAX = 1_000
LOOKS_MAX = 6
"""Of one call that looks at everything."""
OLDER_LOOKS_MAX = 2
"""Beside the look at the newest exchanges, once a conversation is silent."""
PASSES_MAX = 200
"""Stretches of one call, with those of which no model is asked."""
LINE_CHARS_MAX, ANSWER_LINE_CHARS_MAX, KNOWN_CHARS_MAX = 1_500, 500, 300
"""Characters of one line that are shown: of a person, of the assistant, of a known fact."""
WINDOW_SHARE = 0.8
"""Of what a window leaves for a prompt; the rest is for tokens that were guessed too low."""

Texts = Callable[[], Mapping[str, str]]
"""The templates as they are now: `agent.prompt.templates.PromptLibrary.texts`."""


class Skipped(StrEnum):
    """Why no model was asked."""

    PRIVATE = "memory is off"
    NOTHING_NEW = "nothing new"
    NOBODY = "nobody spoke whose words are remembered"
    TOO_SHORT = "too few messages"
    SMALL_TALK = "nothing but small talk"
    DEMO = "the demo model cannot do it"


_NO_USE_IN_GOING_ON = frozenset(
    {Skipped.PRIVATE, Skipped.NOTHING_NEW, Skipped.TOO_SHORT, Skipped.DEMO}
)
"""Nothing is left, or what is left stays for later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """What came of it. `superseded` are new facts that closed an old one; `asked` counts model
    calls; `upto` is the last message that was there to look at."""

    conversation: ConversationId
    skipped: Skipped | None = None
    stored: tuple[StoredFact, ...] = ()
    superseded: tuple[StoredFact, ...] = ()
    refreshed: tuple[StoredFact, ...] = ()
    refused: tuple[FactRefusal, ...] = ()
    asked: int = 0
    upto: int = 0


# --- the work ----------------------------------------------------------------------------------


class Extractor:
    """Looks at what was said since the last look, and stores what holds.

    The cursor moves only when a look came to its end: what a broken answer or a model in trouble
    leaves is looked at again, and the messages stay searchable whatever happens (case ME-01).
    """

    def __init__(
        self,
        lines: SqliteLines,
        facts: SqliteFacts,
        model: CheapModel,
        texts: Texts,
        *,
        options: ExtractionSettings,
    ) -> None:
        self._lines = lines
        self._facts = facts
        self._model = model
        self._texts = texts
        self._options = options

    async def __call__(self, conversation: ConversationId) -> Sequence[Extracted]:
        """Look at what was said since the last look: at older exchanges, the oldest first, as far
        as the bound allows, and at the newest ones always. What is between them stays for the next
        call, and with it the newest ones, for the cursor passes nothing that was not looked at.

        Raises AnswerUnreadable after two answers that cannot be read, ForgottenMeanwhile where
        something was forgotten while the model was asked, what `CheapModel.ask` raises, and
        StorageError. May be called again for the same messages: nothing is stored twice.
        """
        looks: list[Extracted] = []
        trouble: AnswerUnreadable | None = None
        newest_max = self._options.max_turns
        try:
            looks, left = await self._oldest_first(
                conversation, looks_max=OLDER_LOOKS_MAX, spared=newest_max
            )
        except AnswerUnreadable as error:
            # What no model can make sense of must not hide for ever what was said after it.
            left, trouble = True, error
        newest = self._lines.since_last_look(conversation, exchanges_max=newest_max)
        looks.append(await self._look(newest, moves=not left))
        if trouble is not None:
            raise trouble
        return looks

    async def everything(self, conversation: ConversationId) -> Sequence[Extracted]:
        """Look at all that was not looked at, the oldest first, one look after the other: before
        something is dropped from what is sent. Raises as above; what was looked at by then stays
        so."""
        looks, _ = await self._oldest_first(conversation, looks_max=LOOKS_MAX, spared=0)
        return looks

    async def _oldest_first(
        self, conversation: ConversationId, *, looks_max: int, spared: int
    ) -> tuple[list[Extracted], bool]:
        """Look at all but the newest `spared` exchanges, as far as the bound allows; return also
        whether some of it is left."""
        looks: list[Extracted] = []
        asked = 0
        for _ in range(PASSES_MAX):
            waiting = await self._lines.waiting(conversation) - spared
            if waiting <= 0 or asked >= looks_max:
                return looks, waiting > 0
            n = self._options.max_turns
            # Of these nothing more comes; what is last of all may be too short for a look yet.
            n = min(waiting, n) if spared else n
            look = await self._look(self._lines.next_to_look_at(conversation, exchanges_max=n))
            if look.skipped in _NO_USE_IN_GOING_ON:
                break
            looks.append(look)
            asked += look.skipped is None
        return looks, True

    async def _look(self, reading: Awaitable[SpokenStretch], *, moves: bool = True) -> Extracted:
        """`moves` tells whether the cursor does: all before the stretch was looked at."""
        generation = await self._facts.generation()  # before anything is read
        stretch = await reading
        conversation = stretch.conversation
        skipped = self._reason_to_skip(stretch)
        traits = ModelTraits() if skipped else await self._model.traits(stretch.lane)
        if skipped is None and traits.demo:
            skipped = Skipped.DEMO
        if skipped is not None:
            if moves and skipped in {Skipped.NOBODY, Skipped.SMALL_TALK}:
                await self._lines.looked_at(conversation, upto=stretch.upto)
            log.debug("extraction.skipped", conversation=conversation, why=skipped)
            return Extracted(conversation=conversation, skipped=skipped, upto=stretch.upto)
        # What is known of those who speak, the most relevant first, then the newest: what is
        # corrected need not share a word with its correction.
        known: dict[int, StoredFact] = {}
        for label, person in list(stretch.speakers().items())[-SPEAKERS_MAX:]:
            said = " ".join(line.text for line in stretch.own() if line.speaker == label)
            of = Whose(person_id=person.id, scope=stretch.scope)
            likely = await self._facts.search(of, said[-QUERY_CHARS_MAX:], k=KNOWN_MAX)
            theirs = {fact.id: fact for fact in (*likely, *await self._facts.list(of))}
            known.update(islice(theirs.items(), KNOWN_MAX))
        found, asked = await self._ask(stretch, known, traits)
        judge = Judge(stretch, known, confidence_min=self._options.confidence_min)
        refused = [FactRefusal.UNREADABLE] * found.unreadable
        made: dict[Storing, list[StoredFact]] = {kind: [] for kind in Storing}
        for verdict in await asyncio.to_thread(judge.verdicts, found.facts):
            if isinstance(verdict, FactRefusal):
                refused.append(verdict)
            elif sum(map(len, made.values())) >= self._options.facts_max:
                refused.append(FactRefusal.TOO_MANY)
            else:
                stored = await self._facts.store(replace(verdict, generation=generation))
                if stored.fact is None:
                    refused.append(FactRefusal.BY_STORE)
                else:
                    made[stored.outcome].append(stored.fact)
        if moves:
            await self._lines.looked_at(conversation, upto=stretch.upto)
        # Counts, and never a text.
        log.info(
            "extraction.done",
            conversation=conversation,
            lines=len(stretch.lines),
            asked=asked,
            stored=len(made[Storing.STORED]),
            superseded=len(made[Storing.SUPERSEDED]),
            refreshed=len(made[Storing.REFRESHED]),
            refused=dict(Counter(one.name.lower() for one in refused)),
        )
        return Extracted(
            conversation=conversation,
            stored=tuple(made[Storing.STORED]),
            superseded=tuple(made[Storing.SUPERSEDED]),
            refreshed=tuple(made[Storing.REFRESHED]),
            refused=tuple(refused),
            asked=asked,
            upto=stretch.upto,
        )

    def _reason_to_skip(self, stretch: SpokenStretch) -> Skipped | None:
        own = stretch.own()
        if stretch.is_private:
            return Skipped.PRIVATE
        if not stretch.has_news:
            return Skipped.NOTHING_NEW
        if not own:
            return Skipped.NOBODY
        if len(stretch.lines) < self._options.min_messages and not stretch.is_full:
            return Skipped.TOO_SHORT  # of a full one there will never be more
        simple = {plain(entry) for entry in read_list(self._texts().get("words_simple", ""))}
        if not any(keys(line.text) and plain(line.text) not in simple for line in own):
            return Skipped.SMALL_TALK
        return None

    async def _ask(
        self, stretch: SpokenStretch, known: Mapping[int, StoredFact], traits: ModelTraits
    ) -> tuple[FoundFacts, int]:
        """Ask, and once more where what came cannot be used; return also how often."""
        tokens_max = traits.output_tokens(_ANSWER_TOKENS + _FACT_TOKENS * self._options.facts_max)
        room = int((traits.window - tokens_max) * WINDOW_SHARE)
        prompt = self._prompt(stretch, known.values(), room=room)
        last = stretch.own()[-1].person
        assert last is not None, "own lines have a person"
        charge = Charge(
            purpose=Purpose.EXTRACTION,
            person_id=last.id,
            is_owner=last.role is Role.OWNER,
            lane=stretch.lane,
            conversation=stretch.conversation,
            time_zone=last.time_zone,
        )
        try:
            text = await self._model.ask(prompt, charge, tokens_max=tokens_max)
            return read_answer(text, FoundFacts), 1
        except (AnswerUnreadable, BrokenAnswer) as error:
            again = f"{prompt}\n\n{_AGAIN.format(why=error)}"
        text = await self._model.ask(again, charge, tokens_max=tokens_max)
        return read_answer(text, FoundFacts), 2

    def _prompt(self, stretch: SpokenStretch, facts: Iterable[StoredFact], *, room: int) -> str:
        """As large as fits into `room` tokens: without the oldest lines, then without known facts.

        Raises ContextTooLong where not even one line of a person fits.
        """
        lines = list(stretch.lines)
        known = [
            f"{fact.key} {f'{one_line(fact.speaker)}: ' if fact.speaker else ''}"
            f"{one_line(fact.text, chars_max=KNOWN_CHARS_MAX)}"
            for fact in facts
        ]
        while True:
            made = from_template(
                self._texts(),
                "extraction",
                SPEAKERS="; ".join(stretch.speakers()),
                KNOWN_FACTS="\n".join(known) or "(none)",
                CONVERSATION=_conversation(lines),
                FACTS_MAX=str(self._options.facts_max),
            )
            if (over := made.tokens - room) <= 0:
                return made.user
            # Without as many of the oldest as make up for so many tokens; whether any could go.
            # The last line of a person and what follows it stay.
            tokens = over
            last_own = max(at for at, line in enumerate(lines) if line.person is not None)
            gone = 0
            while gone < last_own and tokens > 0:
                tokens -= estimate_tokens(_shown(lines[gone]))
                gone += 1
            lines, dropped = lines[gone:], gone > 0
            if not dropped and not known:
                raise ContextTooLong(
                    f"Looking for facts takes about {made.tokens} tokens; the model has {room}."
                )
            if not dropped:
                known.pop()


_ANSWER_TOKENS, _FACT_TOKENS = 100, 160
_AGAIN = "Your last answer could not be used: {why} Answer with one JSON object and nothing else."


# --- what is shown -----------------------------------------------------------------------------


def _conversation(lines: Sequence[SpokenLine]) -> str:
    """Numbered, with the day where it changes, for "tomorrow" has to become a date."""
    people = [line.person for line in lines if line.person is not None]
    zone = zone_for(Scope.PERSON, people[-1].time_zone if people else "", UTC)
    shown: list[str] = []
    day = ""
    for number, line in enumerate(lines, start=1):
        today = f"{datetime.fromtimestamp(line.at_ms / 1000, zone):%A, %Y-%m-%d}"
        if today != day:
            shown.append(f"({today})")
            day = today
        shown.append(f"[{number}] {line.speaker}: {_shown(line)}")
    return "\n".join(shown)


def _shown(line: SpokenLine) -> str:
    """Further lines are set in, so that none can pose as the line of somebody else."""
    chars_max = LINE_CHARS_MAX if line.person is not None else ANSWER_LINE_CHARS_MAX
    text = line.text if len(line.text) <= chars_max else f"{line.text[: chars_max - 1]}…"
    return "\n    ".join(text.splitlines()) or "(no words of their own)"
