"""Puts together what is remembered: facts, profiles, documents, the archive, and what a cheap model
makes of finished turns. Called by `bot.app` and `bot.wiring.parts`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo

from agent.history import window as history
from agent.history.compaction import CompactionOptions, SqliteCompactor
from agent.history.summaries import Summaries
from agent.history.window import last_request, sent_size, since_compaction
from agent.learning.extraction import ExtractionOptions, Extractor
from agent.learning.insights import InsightMaker, SqliteInsights
from agent.prompt.templates import Library
from agent.subagents.background import Background, BackgroundOptions
from agent.tools.former_files import KeepsFormer
from agent.tools.knowledge import KnowledgeTools
from agent.tools.memory import memory_tools
from agent.tools.notes import Notes
from agent.tools.profile import Household
from agent.tools.tool import Tool, tools_of
from agent.tools.workspace import Workspace
from agent.turn.aftermath import Ended, Work
from agent.turn.steps.model import Payment
from bot.commands.memory import MemoryDesk, PrivateDesk, Remembered
from bot.commands.memory_erasure import ErasingDesk
from bot.commands.memory_service import MemoryOffice, OfficeOptions
from bot.commands.undo import UndoDesk
from bot.inbox.ports import Person
from bot.outbox.outbox import Outbox
from bot.people.access import Access
from bot.people.timezone import zone_of
from bot.settings.schema.sections import HistorySettings
from bot.wiring.model_pool import ModelPool
from bot.wiring.options import host_zone
from bot.wiring.spending import Workplace
from memory.database.connection import Database
from memory.erasure.erase import Forgetting
from memory.erasure.run import Premises
from memory.facts.export import Carrying, as_json
from memory.facts.profile import SqliteProfiles
from memory.facts.recall import Insight, Parts, SqliteOverviews, SqliteRecall
from memory.facts.secrets import secret_in
from memory.facts.store import SqliteFacts
from memory.records import words
from memory.records.facts import Coming, CompactionWanted, Exchange, RecallWanted
from memory.records.messages import ConversationId, PersonId, Role
from memory.records.ports import History
from memory.search.archive import SqliteArchive
from memory.search.documents import SqliteDocuments
from memory.search.indexes import Indexes
from memory.search.vectors import Embedding
from memory.stores.compactions import SqliteCompactions
from memory.stores.conversations import SqliteConversations
from memory.stores.heartbeats import SqliteIdle
from memory.stores.lines import SqliteLines
from memory.stores.people import AboutPeople
from memory.stores.private import SqlitePrivate
from memory.stores.sessions import SqliteSessions
from memory.stores.undo import SqliteFormerFiles, SqliteTurnsDone

EXCHANGES_RECALLED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Memories:
    """What is stored of people, by who asks for it."""

    embedding: Embedding
    facts: SqliteFacts
    profiles: SqliteProfiles
    documents: SqliteDocuments
    archive: SqliteArchive
    insights: SqliteInsights
    compactions: SqliteCompactions
    sessions: SqliteSessions
    idle: SqliteIdle
    recall: SqliteRecall


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What a person may do with what is remembered of them, in a chat or on this machine."""

    remembered: Remembered
    forgetting: Forgetting
    erasing: ErasingDesk
    private: PrivateDesk
    desk: MemoryDesk
    undo: UndoDesk
    office: MemoryOffice


@dataclass(frozen=True, slots=True, kw_only=True)
class Afterthoughts:
    """What is made of finished turns, behind the scenes."""

    extractor: Extractor
    compactor: SqliteCompactor
    insights: InsightMaker
    archive: SqliteArchive
    conversations: SqliteConversations
    models: ModelPool
    with_insights: bool
    limits: HistorySettings
    now_ms: Callable[[], int]

    def works(self) -> Sequence[Work]:
        """What follows from each turn, in this order."""
        # The look at the history mostly reads alone, and lets the reply's own writes go first.
        made = [Work(name="compaction", run=self._compact), Work(name="archive", run=self._index)]
        if self.with_insights:
            made.append(Work(name="insights", run=self._note))
        return made

    async def _index(self, ended: Ended) -> None:
        await self.archive.index_new()

    async def _compact(self, ended: Ended) -> None:
        turn, conversation = ended.turn, ended.end.conversation
        if turn.job is not None or await self._is_short(turn.message.address.key, conversation):
            return
        await self.compactor.compact(
            CompactionWanted(
                conversation=conversation,
                lane=turn.message.address.key,
                person_id=turn.person_id,
                is_owner=turn.role is Role.OWNER,
                time_zone=turn.time_zone,
            )
        )

    async def _is_short(self, lane: str, conversation: ConversationId) -> bool:
        """Whether nothing is to be summed up for certain: then nobody looks closer, which would
        read all of it anew. What was read for the turn is known here."""
        history = await self.conversations.history(conversation)
        sent = since_compaction(history)[0].entries
        messages, tokens = sent_size(sent, history.shortened_to)
        window = (await self.models.at(lane)).traits.window
        if max(tokens, last_request(sent)) > window * self.limits.window_share:
            return False
        if self._is_just_summed_up(history):
            return True
        return messages <= self.limits.messages_max and tokens <= self.limits.tokens_max

    def _is_just_summed_up(self, history: History) -> bool:
        """So lately that only a window in danger makes it be done again."""
        if history.compaction is None:
            return False
        passed_ms = self.now_ms() - history.compaction.made_ms
        return 0 <= passed_ms < self.limits.compact_every_s * 1000

    async def _note(self, ended: Ended) -> None:
        await self.insights.after(ended.turn, ended.end)


def memories_of(
    place: Workplace,
    database: Database,
    *,
    coming: Callable[[RecallWanted], Awaitable[Sequence[Coming]]] | None = None,
    erased: Callable[[], None] | None = None,
) -> Memories:
    """Over one open database. Nothing heavy is loaded before it is searched."""
    settings = place.settings.memory
    embedding = Embedding(enabled=settings.embeddings)
    facts = SqliteFacts(database, Indexes(database, embedding=embedding))
    profiles = SqliteProfiles(database, refusal=_secret)
    documents = SqliteDocuments(database, embedding=embedding)
    archive = SqliteArchive(database, embedding=embedding)
    insights = SqliteInsights(database, minutes=settings.insights_minutes)

    async def earlier(wanted: RecallWanted) -> Sequence[Exchange]:
        return await archive.search(
            wanted.person_id,
            wanted.place,
            wanted.text,
            k=EXCHANGES_RECALLED,
            before=wanted.history_from,
            conversation=wanted.conversation,
        )

    async def noted(wanted: RecallWanted) -> Insight:
        pins, recommendations = await insights.relevant(
            wanted.conversation, wanted.text, wanted.now
        )
        return Insight(pins=tuple(pins), recommendations=tuple(recommendations))

    recall = SqliteRecall(
        database,
        facts=facts,
        facts_max=settings.recalled,
        parts=Parts(
            about=AboutPeople(database),
            insight=noted,
            coming=coming,
            exchanges=earlier,
            chunks=documents.recalled,
        ),
    )
    return Memories(
        embedding=embedding,
        facts=facts,
        profiles=profiles,
        documents=documents,
        archive=archive,
        insights=insights,
        compactions=SqliteCompactions(database),
        sessions=SqliteSessions(database, erased=erased),
        idle=SqliteIdle(database),
        recall=recall,
    )


class _KnownTexts:
    """Implements `memory.erasure.erase.Rebuilds`: what is kept of texts only to be quick."""

    def __init__(self, embedding: Embedding) -> None:
        self._drops = (
            history.drop_known,
            words.drop_known,
            embedding.drop_known,
        )

    async def rebuild(self) -> None:
        """Keeps nothing; it comes back with the next turn."""
        for drop in self._drops:
            drop()


def rights_of(
    place: Workplace,
    database: Database,
    memories: Memories,
    conversations: SqliteConversations,
    *,
    access: Access,
    outbox: Outbox,
    workspace: Workspace,
) -> Rights:
    """`erasing` has to be entered."""
    home, clock = place.home, place.clock
    premises = Premises(root=home.path, workspace=home.workspace, backups=home.backups)
    remembered = Remembered(
        facts=memories.facts,
        profiles=memories.profiles,
        documents=memories.documents,
        overviews=SqliteOverviews(database),
        carrying=Carrying(database, premises),
    )
    forgetting = Forgetting(
        database,
        memories.facts,
        conversations,
        premises=premises,
        clock=clock,
        indexes=[memories.archive, _KnownTexts(memories.embedding)],
        revised=outbox.catch_up,
    )
    erasing = ErasingDesk(forgetting, outbox, clock=clock, root=home.path)
    private = PrivateDesk(SqlitePrivate(database, conversations, memories.sessions, premises))
    return Rights(
        remembered=remembered,
        forgetting=forgetting,
        erasing=erasing,
        private=private,
        desk=MemoryDesk(
            remembered, erasing, clock=clock, host_zone=host_zone(), is_off=private.is_private
        ),
        undo=UndoDesk(
            SqliteTurnsDone(database),
            memories.facts,
            memories.profiles,
            SqliteFormerFiles(database),
            workspace,
            clock=clock,
            host_zone=host_zone(),
        ),
        office=MemoryOffice(
            remembered,
            forgetting,
            lambda: access.directory.people,
            as_json=as_json,
            options=OfficeOptions(root=home.path, host_zone=host_zone()),
        ),
    )


def household_of(place: Workplace, access: Access, conversations: SqliteConversations) -> Household:
    """What tools have to know of people and chats."""
    return Household(
        clock=place.clock,
        name_of=lambda person_id: _name(access, person_id),
        zone_of=lambda person_id: zone_for(access, person_id),
        is_private=conversations.is_private,
    )


def remembering_tools(
    memories: Memories, workspace: Workspace, former: KeepsFormer, *, household: Household
) -> Sequence[Tool]:
    """The groups `memory` and `knowledge`."""
    return (
        *memory_tools(
            memories.facts,
            memories.profiles,
            memories.archive,
            Notes(workspace, former),
            household=household,
        ),
        *tools_of(KnowledgeTools(memories.documents, workspace, household)),
    )


def afterthoughts_of(
    place: Workplace,
    database: Database,
    memories: Memories,
    conversations: SqliteConversations,
    *,
    access: Access,
    models: ModelPool,
    library: Library,
    background: Background,
) -> Afterthoughts:
    """What the cheap model makes of finished turns."""
    settings = place.settings
    chosen = settings.memory.extraction
    extractor = Extractor(
        SqliteLines(database, lambda person_id: person_of(access, person_id)),
        memories.facts,
        background,
        library.texts,
        options=ExtractionOptions(
            exchanges_max=chosen.max_turns,
            messages_min=chosen.min_messages,
            confidence_min=chosen.confidence_min,
            facts_max=chosen.facts_max,
        ),
    )
    history = settings.history
    compactor = SqliteCompactor(
        memories.compactions,
        models,
        Summaries(background, library.texts),
        host_zone=zone_of(host_zone()) or UTC,
        options=CompactionOptions(
            tokens_max=history.tokens_max,
            window_share=history.window_share,
            messages_max=history.messages_max,
            every_s=history.compact_every_s,
            tail_tokens=history.tail_tokens,
            tail_exchanges=history.tail_exchanges,
            confidence_min=history.boundary_confidence,
            summary_tokens=history.summary_tokens,
        ),
        now_ms=database.now_ms,
        extract=extractor.everything if chosen.enabled else None,
    )
    return Afterthoughts(
        extractor=extractor,
        compactor=compactor,
        insights=InsightMaker(memories.insights, background, library.texts, place.clock),
        archive=memories.archive,
        conversations=conversations,
        models=models,
        with_insights=settings.memory.insights,
        limits=history,
        now_ms=database.now_ms,
    )


def background_of(
    place: Workplace, models: ModelPool, *, payment: Payment, redact: Callable[[str], str]
) -> Background:
    """The cheap model."""
    options = BackgroundOptions(cheap_model=place.settings.llm.cheap_model, redact=redact)
    return Background(models, options=options, payment=payment)


def person_of(access: Access, person_id: PersonId) -> Person | None:
    """Who somebody is now; None for who was removed."""
    return next((one for one in access.directory.people if one.id == person_id), None)


def zone_for(access: Access, person_id: PersonId) -> tzinfo:
    """The person's, else this machine's."""
    person = person_of(access, person_id)
    named = zone_of(person.time_zone) if person is not None else None
    return named or zone_of(host_zone()) or UTC


def _name(access: Access, person_id: PersonId) -> str:
    person = person_of(access, person_id)
    return person.name if person is not None else ""


def _secret(text: str) -> str:
    """Why a text may not be kept; empty for what may."""
    kind = secret_in(text)
    return f"It holds {kind}, and secrets are not kept." if kind else ""
