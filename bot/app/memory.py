"""Builds what is remembered of people: recall, what a cheap model makes of finished turns, and what
a person may do with all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from functools import cached_property, partial
from typing import TYPE_CHECKING

from agent.budget.ledger import background_charge
from agent.history.compaction import SqliteCompactor
from agent.history.summaries import Summaries
from agent.learning.extraction import Extractor
from agent.learning.insights import InsightMaker
from agent.prompt import tokens
from agent.subagents.background import Background, BackgroundOptions
from agent.turn.aftermath import EndedTurn, FollowUp
from bot.commands.memory.commands import MemoryCommands
from bot.commands.memory.erasure import ForgetQuestions
from bot.people.timezone import zone_of
from bot.settings.options import host_zone
from memory.database.premises import Premises
from memory.erasure.erase import Forgetting
from memory.facts.insights import SqliteInsights
from memory.facts.profile import SqliteProfiles
from memory.facts.recall import SqliteRecall
from memory.facts.store import SqliteFacts
from memory.records import words
from memory.records.facts import CompactionWanted
from memory.records.usage import Purpose
from memory.search.archive import SqliteArchive
from memory.search.documents import SqliteDocuments
from memory.search.indexes import Indexes
from memory.search.vectors import Embedding
from memory.service import MemoryService
from memory.stores.compactions import SqliteCompactions
from memory.stores.lines import SqliteLines
from memory.stores.people import AboutPeople
from memory.stores.schedule import SqliteIdle
from memory.stores.sessions import SqliteSessions
from scheduler.kinds.idle import IdleOptions, IdleTimers

if TYPE_CHECKING:
    from bot.app.app import App


class Memories:
    """What is remembered of people, and what is done with it."""

    def __init__(self, app: App) -> None:
        self.app = app

    @cached_property
    def embedding(self) -> Embedding:
        """Return the embedder; nothing heavy is loaded before something is searched."""
        return Embedding(enabled=self.app.settings.memory.embeddings)

    @cached_property
    def facts(self) -> SqliteFacts:
        """Return what is known about people."""
        indexes = Indexes(self.app.database, embedding=self.embedding)
        return SqliteFacts(self.app.database, indexes)

    @cached_property
    def profiles(self) -> SqliteProfiles:
        """Fixed values about people."""
        return SqliteProfiles(self.app.database)

    @cached_property
    def documents(self) -> SqliteDocuments:
        """Documents that can be searched."""
        return SqliteDocuments(self.app.database, embedding=self.embedding)

    @cached_property
    def archive(self) -> SqliteArchive:
        """Old conversations."""
        return SqliteArchive(self.app.database, embedding=self.embedding)

    @cached_property
    def insights(self) -> SqliteInsights:
        """Pins and recommendations of a conversation."""
        return SqliteInsights(self.app.database, minutes=self.app.settings.memory.insights_minutes)

    @cached_property
    def sessions(self) -> SqliteSessions:
        """Conversations as their owner sees them."""
        return SqliteSessions(self.app.database, erased=self.app.conversations.reread)

    @cached_property
    def recall(self) -> SqliteRecall:
        """Build what finds memories for a prompt."""
        return SqliteRecall(
            about=AboutPeople(self.app.database),
            facts=self.facts,
            facts_max=self.app.settings.memory.recalled,
            insights=self.insights,
            coming=self.app.calendar.events.coming,
            archive=self.archive,
            documents=self.documents,
        )

    @cached_property
    def background(self) -> Background:
        """Build what asks the cheap model."""
        options = BackgroundOptions(
            cheap_model=self.app.settings.llm.cheap_model, redact=self.app.redact
        )
        return Background(self.app.models, options=options, payment=self.app.payment)

    @cached_property
    def extractor(self) -> Extractor:
        """Build what looks for facts in conversations."""
        return Extractor(
            SqliteLines(self.app.database, self.app.access.person),
            self.facts,
            self.background,
            self.app.library.texts,
            options=self.app.settings.memory.extraction,
        )

    @cached_property
    def compactor(self) -> SqliteCompactor:
        """Build what sums up what is older in a conversation."""
        return SqliteCompactor(
            SqliteCompactions(self.app.database),
            self.app.models,
            Summaries(self.background, self.app.library.texts),
            host_zone=zone_of(host_zone()) or UTC,
            options=self.app.settings.history,
            now_ms=self.app.database.now_ms,
            extract=self.extractor.everything
            if self.app.settings.memory.extraction.enabled
            else None,
        )

    def follow_ups(self) -> Sequence[FollowUp]:
        """Build what is made of finished turns, behind the scenes, in this order: summaries, the
        archive, insights."""
        compactor, archive = self.compactor, self.archive
        insights = InsightMaker(
            self.insights, self.background, self.app.library.texts, self.app.clock
        )

        async def compact(ended: EndedTurn) -> None:
            turn = ended.turn
            if turn.job is None:
                where = ended.end.conversation
                charge = background_charge(Purpose.COMPACTION, turn, where)
                await compactor.compact(CompactionWanted(charge=charge))

        async def index(ended: EndedTurn) -> None:
            await archive.index_new()

        async def note(ended: EndedTurn) -> None:
            await insights.after(ended.turn, ended.end)

        # The look at the history mostly reads alone, and lets the reply's own writes go first.
        made = [FollowUp(name="compaction", run=compact), FollowUp(name="archive", run=index)]
        if self.app.settings.memory.insights:
            made.append(FollowUp(name="insights", run=note))
        return made

    @cached_property
    def premises(self) -> Premises:
        """Return the folders where words of people may stand."""
        return Premises(
            root=self.app.home.path,
            workspace=self.app.home.workspace,
            backups=self.app.home.backups,
        )

    @cached_property
    def service(self) -> MemoryService:
        """Return what a person may see and change of their memories."""
        app = self.app
        return MemoryService(
            app.database,
            facts=self.facts,
            profiles=self.profiles,
            documents=self.documents,
            conversations=app.conversations,
            forgetting=Forgetting(
                app.database,
                self.facts,
                app.conversations,
                premises=self.premises,
                clock=app.clock,
                rebuilds=[self.archive.rebuild, partial(drop_known_texts, self.embedding)],
                revised=app.outbox.catch_up if app.is_running else None,
            ),
            premises=self.premises,
        )

    @cached_property
    def questions(self) -> ForgetQuestions:
        """Return what asks before it erases."""
        app = self.app
        return app.entered(
            ForgetQuestions(self.service, app.outbox, clock=app.clock, root=app.home.path)
        )

    @cached_property
    def commands(self) -> MemoryCommands:
        """Return what answers `/memory`."""
        return MemoryCommands(self.service, self.questions, host_zone=host_zone())

    def idle_timers(self) -> IdleTimers:
        """Build what looks for facts in conversations that have fallen silent."""
        app = self.app
        return IdleTimers(
            SqliteIdle(app.database),
            self.extractor,
            app.clock,
            options=IdleOptions(idle_s=app.settings.memory.extraction.idle_seconds),
            busy=lambda lane: app.acts_not() or app.engine.busy(lane),
        )


async def drop_known_texts(embedding: Embedding) -> None:
    """Keep nothing of texts that is there only to be quick; it comes back with the next turn."""
    tokens.drop_known()
    words.drop_known()
    embedding.drop_known()
