"""Changes to skills: what is installed, written, approved, enabled or removed, one at a time.

Called by the tools of the group `skills` and by the commands of the owner. Whatever comes in waits
in quarantine until the owner has approved exactly this content.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from agent.errors import Permanent
from agent.ports import SkillRecords
from agent.skills.installing import (
    Installed,
    Prepared,
    prepare_change,
    prepare_install,
    prepare_new,
    remove_skill,
)
from agent.skills.reading import is_name
from agent.skills.shelf import SkillShelf, playbook_digest
from agent.skills.skill import Place, Skill
from agent.stored import SkillRecord, StoredPlaybook

PLAYBOOK_CHARS_MAX = 20_000
KEYWORDS_MAX, KEYWORD_CHARS_MAX = 50, 100
PRIORITY_MAX = 1_000


class SkillRefused(Permanent):
    """A change that cannot be made; the text says why and what to do."""


class Workshop:
    """Changes what the shelf shows. One for the whole bot."""

    def __init__(self, shelf: SkillShelf, records: SkillRecords, folder: Path) -> None:
        """`folder` is the workspace's `skills`."""
        self._shelf = shelf
        self._records = records
        self._folder = folder
        self._lock = asyncio.Lock()

    async def install(self, source: Path, *, replace_it: bool = False) -> Installed:
        """A skill from a folder or archive, in quarantine. Raises InstallRefused, StorageError."""
        return await self._bring_in(
            lambda: prepare_install(source, self._folder, replace=replace_it), origin="installed"
        )

    async def create(self, name: str, text: str) -> Installed:
        """A new SKILL.md by the assistant, in quarantine. Raises InstallRefused."""
        shelf = await self._shelf.current()
        if shelf.get(name) is not None:
            raise SkillRefused(f"there is a skill {name} already: change it, or take another name")
        return await self._bring_in(
            lambda: prepare_new(self._folder, name, text), origin="written by the assistant"
        )

    async def change(self, name: str, text: str) -> Installed:
        """New text for a skill of the workspace: in quarantine again. Raises InstallRefused."""
        return await self._bring_in(
            lambda: prepare_change(self._folder, name, text), origin="changed by the assistant"
        )

    async def put_playbook(self, playbook: StoredPlaybook, *, approved: bool, origin: str) -> bool:
        """Stores a playbook in the database; True when it is new. Raises SkillRefused."""
        _check_playbook(playbook)
        async with self._lock:
            known = (await self._shelf.current()).get(playbook.name)
            if known is not None and known.place is Place.WORKSPACE:
                raise SkillRefused(
                    f"{playbook.name} is a skill of the workspace, which would hide the playbook: "
                    "take another name"
                )
            await self._record(
                playbook.name, playbook_digest(playbook), approved=approved, origin=origin
            )
            is_new = await self._records.put_playbook(playbook)
            self._shelf.dropped()
            return is_new

    async def remove(self, name: str) -> bool:
        """Takes away a stored playbook or a skill of the workspace; False if there is neither."""
        async with self._lock:
            removed = await self._records.remove_playbook(name)
            removed = await asyncio.to_thread(remove_skill, self._folder, name) or removed
            if removed:
                await self._records.remove_record(name)
            self._shelf.dropped()
            return removed

    async def approve(self, name: str) -> Skill:
        """The owner has looked at it as it is now. Raises SkillRefused when there is none."""
        async with self._lock:
            skill = await self._found(name)
            await self._record(name, skill.digest, approved=True)
            self._shelf.dropped()
            return await self._found(name)

    async def enable(self, name: str, *, enabled: bool) -> Skill:
        """Lets a skill with a schedule run, or stops it. Raises SkillRefused."""
        async with self._lock:
            skill = await self._found(name)
            if skill.schedule is None:
                raise SkillRefused(f"{name} has no schedule, so there is nothing to switch")
            record = await self._known(name) or SkillRecord(name=name)
            await self._records.put_record(replace(record, enabled=enabled))
            self._shelf.dropped()
            return await self._found(name)

    async def _bring_in(self, prepare: Callable[[], Prepared], *, origin: str) -> Installed:
        async with self._lock:
            prepared = await asyncio.to_thread(prepare)
            try:
                # Before it is in its place: a kill must not leave a skill that nobody knows to be
                # new, and so would be taken for the owner's own.
                await self._record(
                    prepared.skill.name, prepared.installed.digest, approved=False, origin=origin
                )
                installed = await asyncio.to_thread(prepared.place)
            finally:
                await asyncio.to_thread(prepared.discard)
            self._shelf.dropped()
            return installed

    async def _record(
        self, name: str, digest: str, *, approved: bool, origin: str | None = None
    ) -> None:
        known = await self._known(name) or SkillRecord(name=name)
        await self._records.put_record(
            replace(
                known,
                digest=digest,
                approved=approved,
                origin=known.origin if origin is None else origin,
            )
        )

    async def _known(self, name: str) -> SkillRecord | None:
        return next((one for one in await self._records.records() if one.name == name), None)

    async def _found(self, name: str) -> Skill:
        skill = (await self._shelf.current()).get(name)
        if skill is None:
            raise SkillRefused(f"there is no skill {name!r}; `hearthbot skills list` shows all")
        return skill


def _check_playbook(playbook: StoredPlaybook) -> None:
    """Raises SkillRefused with the first thing that is wrong."""
    if not is_name(playbook.name):
        raise SkillRefused("the name must be 1 to 64 lower-case letters, digits and hyphens")
    if not playbook.text.strip():
        raise SkillRefused("a playbook needs instructions")
    if len(playbook.text) > PLAYBOOK_CHARS_MAX:
        raise SkillRefused(f"the instructions are longer than {PLAYBOOK_CHARS_MAX:,} characters")
    if not [keyword for keyword in playbook.keywords if keyword.strip()]:
        raise SkillRefused("a playbook needs at least one keyword, or it would never be used")
    if len(playbook.keywords) > KEYWORDS_MAX:
        raise SkillRefused(f"more than {KEYWORDS_MAX} keywords")
    if any(len(keyword) > KEYWORD_CHARS_MAX for keyword in playbook.keywords):
        raise SkillRefused(f"a keyword is longer than {KEYWORD_CHARS_MAX} characters")
    if abs(playbook.priority) > PRIORITY_MAX:
        raise SkillRefused(f"the priority must lie between -{PRIORITY_MAX} and {PRIORITY_MAX}")
