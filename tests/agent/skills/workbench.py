"""A library and its service over real folders and a real database, for what changes skills."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agent.skills.library import SkillLibrary
from agent.skills.places import SkillFolders
from agent.skills.service import SkillService
from agent.skills.skill import Skill, SkillSet
from memory.database.connection import Database
from memory.records.rows import SkillRecord, StoredPlaybook
from memory.stores.switches import SqliteSkillRecords
from tests.fakes import FixedClock


class Workbench:
    """The skills of one home. Everything is looked at afresh when a test asks."""

    def __init__(self, root: Path, database: Database, clock: FixedClock) -> None:
        self.folder = root / "workspace" / "skills"
        self.shipped = root / "shipped"
        self.user = root / "user"
        for place in (self.folder, self.shipped, self.user):
            place.mkdir(parents=True, exist_ok=True)
        self.database = database
        self.records = SqliteSkillRecords(database)
        self.clock = clock
        self.start()

    def start(self) -> None:
        """A new process over the same files."""
        places = SkillFolders(workspace=self.folder, shipped=self.shipped, user=self.user)
        self.library = SkillLibrary(places, self.records, clock=self.clock, env={})
        self.service = SkillService(self.library, self.records, self.folder)

    async def now(self) -> SkillSet:
        self.library.dropped()
        return await self.library.current()

    async def skill(self, name: str) -> Skill:
        found = (await self.now()).get(name)
        assert found is not None, f"no skill {name}"
        return found

    async def record(self, name: str) -> SkillRecord | None:
        return (await self.service.records()).get(name)

    async def text(self, name: str) -> str:
        return (await self.skill(name)).text

    def in_folder(self) -> set[str]:
        """What stands in the workspace's skills, hidden entries too."""
        return {path.name for path in self.folder.iterdir()}


@asynccontextmanager
async def workbench(root: Path) -> AsyncIterator[Workbench]:
    clock = FixedClock()
    async with Database.open(root / "hearthbot.db", clock=clock) as database:
        yield Workbench(root, database, clock)


def playbook(name: str = "mine", *keywords: str, **more: object) -> StoredPlaybook:
    given: dict[str, object] = {"description": "About it", "text": "Do it.", **more}
    return StoredPlaybook(name=name, keywords=keywords or ("expenses",), **given)  # type: ignore[arg-type]
