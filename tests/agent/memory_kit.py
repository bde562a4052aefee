"""A `Castle` whose assistant remembers: the tools of memory over the real stores.

Tools that the App has built already are not made again.
"""

from __future__ import annotations

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from agent.tools.groups.memory import FactTools, PersonContext
from agent.tools.groups.notes import Notes, NoteTools, ProfileTools
from agent.tools.tool import tools_of
from agent.tools.workspace import Workspace
from agent.turn.assistant import Assistant
from bot.app.app import App
from memory.facts.profile import SqliteProfiles
from memory.facts.store import SqliteFacts
from memory.records.facts import (
    Category,
    Fact,
    FactSource,
    NewFact,
    Recalled,
    RecallWanted,
    StoredFact,
    Whose,
)
from memory.records.messages import ConversationId, PersonId
from memory.search.archive import SqliteArchive
from memory.search.indexes import Indexes
from memory.search.vectors import Embedding
from tests.agent.attack_kit import PEOPLE, Castle
from tests.agent.house import GROUP
from tests.agent.obedient import ObedientModel

ADA, BOB = PEOPLE[0].id, PEOPLE[1].id
ADAS = Whose(person_id=ADA)
BOBS = Whose(person_id=BOB)
BOBS_IN_GROUP = Whose(person_id=BOB, scope=GROUP.key)
MEMORY_TABLES = {
    "facts": "id, person_id, scope, text, category, valid_from_ms, valid_to_ms, superseded_by",
    "tombstones": "*",
    "profiles": "*",
    "profile_changes": "*",
}
"""What has to stay of each; that a fact was of use may be counted."""


class RememberingCastle(Castle):
    """`Castle` with memory. What is in it is put there by `remembers` and `knows` once it is
    `attacked`, and counts as the state that has to stay by `begins_now`."""

    facts: SqliteFacts
    profiles: SqliteProfiles
    archive: SqliteArchive
    off: frozenset[ConversationId] = frozenset()

    def _put_together(self, app: App, workspace: Workspace, model: ObedientModel) -> Assistant:
        indexes = Indexes(self.database, embedding=Embedding(enabled=False))
        self.facts = SqliteFacts(self.database, indexes)
        self.profiles = SqliteProfiles(self.database)
        self.archive = SqliteArchive(self.database)
        home = PersonContext(
            clock=self.clock,
            name_of=lambda person_id: {one.id: one.name for one in PEOPLE}[person_id],
            zone_of=lambda person_id: ZoneInfo("Europe/Berlin"),
            is_private=self._is_private,
        )
        made = [
            *tools_of(FactTools(self.facts, self.archive, home)),
            *tools_of(NoteTools(Notes(workspace), home)),
            *tools_of(ProfileTools(self.profiles, home)),
        ]
        known = set(self.made.toolbox.names)
        self.extra = [tool for tool in made if tool.card.name not in known]
        self.recalled = ShownFacts(self.facts)
        return super()._put_together(app, workspace, model)

    async def _is_private(self, conversation: ConversationId) -> bool:
        return conversation in self.off

    @property
    def tool_names(self) -> set[str]:
        """Of all tools there are."""
        return {*self.made.toolbox.names, *(tool.card.name for tool in self.extra)}

    async def remembers(
        self, text: str, of: Whose = ADAS, *, category: Category = "background"
    ) -> StoredFact:
        """A fact that its person stored."""
        names = {person.id: person.name for person in PEOPLE}
        stored = await self.facts.store(
            NewFact(
                whose=of,
                text=self.filled(text),
                category=category,
                source=FactSource.PERSON,
                speaker=names[of.person_id],
                asked=True,
            )
        )
        assert stored.fact is not None, stored.why
        return stored.fact

    async def knows(self, path: str, value: str, *, of: PersonId = ADA) -> None:
        """A part of a profile."""
        await self.profiles.update(of, path, self.filled(value), reason="said so")

    async def _state(self) -> dict[str, str]:
        found = await super()._state()
        for table, columns in MEMORY_TABLES.items():
            found[table] = repr(await self.rows(f"select {columns} from {table} order by 1, 2"))
        return found


@dataclass(frozen=True, slots=True)
class ShownFacts:
    """Implements Recall: what fits a message of facts, and nothing else."""

    facts: SqliteFacts

    async def recall(self, wanted: RecallWanted) -> Recalled:
        of = Whose(person_id=wanted.person_id, scope=wanted.scope)
        found = await self.facts.search(of, wanted.text, k=5)
        return Recalled(
            facts=tuple(
                Fact(
                    id=fact.key,
                    text=fact.text,
                    category=fact.category,
                    speaker=fact.speaker if wanted.scope else "",
                )
                for fact in found
            )
        )
