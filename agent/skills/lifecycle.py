"""Changes to skills: what is installed, written, approved, enabled or removed, one at a time.

Called by the tools of the group `skills` and by the commands of the owner. Whatever comes in waits
in quarantine until the owner has approved exactly this content. Each change may be made again
after a kill: what is there already as it is wanted stays as it is, an approval included.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import NamedTemporaryFile

from agent.skills.install import (
    Installed,
    Prepared,
    prepare_change,
    prepare_install,
    prepare_new,
    remove_skill,
)
from agent.skills.library import SkillShelf, playbook_digest
from agent.skills.parser import FILE_BYTES_MAX, Unreadable
from agent.skills.places import SKILL_FILE, read_file
from agent.skills.playbooks import fault_of, keyword_warnings, tidied
from agent.skills.reader import playbook_text
from agent.skills.skill import Place, Shelf, Skill, SkillState
from memory.records.errors import Permanent
from memory.records.ports import SkillRecords
from memory.records.rows import SkillRecord, StoredPlaybook

WAITING_MAX = 50
"""Skills that may wait for approval at once, before the assistant may write no more of them."""

WRITTEN = "written by the assistant"
CHANGED = "changed by the assistant"
INSTALLED = "installed"

FORMER = ".former"
"""Where the text of a skill in use is kept when the assistant replaces or deletes it."""

_BY_HAND = frozenset({Place.SHIPPED, Place.USER})
"""Places that nothing here writes to."""


class SkillRefused(Permanent):
    """A change that cannot be made; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class _Change:
    """Something new for the workspace: how it is made ready, and what must hold for it first."""

    prepare: Callable[[], Prepared]
    origin: str
    check: Callable[[Shelf, Prepared], None]


class Workshop:
    """Changes what the shelf shows. One for the whole bot."""

    def __init__(self, shelf: SkillShelf, records: SkillRecords, folder: Path) -> None:
        """`folder` is the workspace's `skills`."""
        self._shelf = shelf
        self._records = records
        self._folder = folder
        self._lock = asyncio.Lock()

    # --- files ---------------------------------------------------------------------------------

    async def install(self, source: Path, *, replace_it: bool = False) -> Installed:
        """A skill from a folder or archive, in quarantine. Raises InstallRefused, StorageError.

        Its warnings say also which skill of the same name it takes the place of.
        """
        before = await self._afresh()
        installed = await self._bring_in(
            _Change(
                lambda: prepare_install(source, self._folder, replace=replace_it),
                INSTALLED,
                _check_one_place,
            )
        )
        hidden, now = before.get(installed.name), (await self._afresh()).get(installed.name)
        told = keyword_warnings(now.keywords) if now is not None else ()
        if hidden is not None and hidden.place is not Place.WORKSPACE:
            is_hidden = now is not None and now.place is Place.WORKSPACE
            told = (_takes_its_place(hidden, is_hidden=is_hidden), *told)
        return replace(installed, warnings=(*told, *installed.warnings))

    async def create(self, name: str, text: str) -> Installed:
        """A new SKILL.md by the assistant, in quarantine. Raises SkillRefused, InstallRefused."""
        shelf = await self._afresh()
        known = shelf.get(name)
        if known is not None and await asyncio.to_thread(_is_text_of, known, text):
            return Installed(name=name, digest=known.digest, files=(SKILL_FILE,))
        _check_new(shelf, name)
        return await self._bring_in(
            _Change(
                lambda: prepare_new(self._folder, name, text),
                WRITTEN,
                lambda shelf, prepared: _check_new(shelf, name),
            )
        )

    async def change(self, name: str, text: str) -> Installed:
        """New text by the assistant for a skill of the workspace: in quarantine again.

        A text that was in use is kept in `.former`. Raises SkillRefused, InstallRefused.
        """
        known = await self._own(name)
        if await asyncio.to_thread(_is_text_of, known, text):
            return Installed(name=name, digest=known.digest, files=(SKILL_FILE,))
        await self._keep_former(known)
        return await self._bring_in(
            _Change(
                lambda: prepare_change(self._folder, name, text), CHANGED, lambda shelf, new: None
            )
        )

    # --- playbooks -----------------------------------------------------------------------------

    async def put_playbook(self, playbook: StoredPlaybook, *, approved: bool, origin: str) -> bool:
        """Stores a playbook in the database; True when it is new. Raises SkillRefused."""
        playbook = _checked(playbook)
        async with self._lock:
            known = (await self._afresh()).get(playbook.name)
            if known is not None and known.place is Place.WORKSPACE:
                raise SkillRefused(
                    f"{playbook.name} is a skill of the workspace, which would hide the playbook: "
                    "take another name"
                )
            is_same = known is not None and known.digest == playbook_digest(playbook)
            if is_same and not approved:
                return False
            await self._record(
                playbook.name, playbook_digest(playbook), approved=approved, origin=origin
            )
            is_new = await self._records.put_playbook(playbook)
            self._shelf.dropped()
            return is_new

    async def create_playbook(self, playbook: StoredPlaybook) -> None:
        """A new playbook by the assistant, in quarantine. Raises SkillRefused."""
        playbook = _checked(playbook)
        shelf = await self._afresh()
        known = shelf.get(playbook.name)
        if known is None or known.digest != playbook_digest(playbook):
            _check_new(shelf, playbook.name)
        await self.put_playbook(playbook, approved=False, origin=WRITTEN)

    async def change_playbook(self, playbook: StoredPlaybook) -> None:
        """Another content by the assistant: in quarantine again. Raises SkillRefused.

        A text that was in use is kept in `.former`.
        """
        playbook = _checked(playbook)
        known = await self._own(playbook.name)
        if known.digest != playbook_digest(playbook):
            await self._keep_former(known)
        await self.put_playbook(playbook, approved=False, origin=CHANGED)

    # --- taking away ---------------------------------------------------------------------------

    async def remove(self, name: str) -> bool:
        """Takes away a skill of the workspace, else a stored playbook; False if there is neither.

        Raises SkillRefused for what is shipped or shared.
        """
        async with self._lock:
            known = (await self._afresh()).get(name)
            if known is not None:
                _check_own(known)
            if await asyncio.to_thread(remove_skill, self._folder, name):
                await self._forgotten(name)
                return True
            return await self._playbook_removed(name)

    async def remove_playbook(self, name: str) -> bool:
        """The same for a stored playbook alone."""
        async with self._lock:
            return await self._playbook_removed(name)

    async def remove_written(self, name: str) -> bool:
        """`remove` for the assistant: only what it wrote itself. Raises SkillRefused."""
        known = (await self._afresh()).get(name)
        if known is None:
            return False
        _check_own(known)
        record = await self._known(name)
        if record is None or record.origin != WRITTEN:
            raise SkillRefused(
                f"{name} was not written by the assistant, so only its owner can remove it: "
                f"hearthbot skills remove {name}"
            )
        await self._keep_former(known)
        return await self.remove(name)

    # --- decisions of the owner ----------------------------------------------------------------

    async def approve(self, name: str, *, digest: str = "") -> Skill:
        """The owner has looked at it: at `digest`, or if that is empty at what is there now.

        Raises SkillRefused when there is none, or it changed since it was looked at.
        """
        async with self._lock:
            skill = await self._found(name)
            if digest and digest != skill.digest:
                raise SkillRefused(
                    f"{name} was changed since you looked at it, and is not approved: look again "
                    f"with `hearthbot skills show {name}`"
                )
            if skill.state is not SkillState.QUARANTINED:
                return skill
            if not skill.digest:
                raise SkillRefused(
                    f"{name} has too many or too large files to be approved as it is: nobody could "
                    "tell whether one of them changed. Make it smaller"
                )
            await self._record(name, skill.digest, approved=True)
            return await self._found(name)

    async def enable(self, name: str, *, enabled: bool) -> Skill:
        """Lets a skill with a schedule run, or stops it. Raises SkillRefused."""
        async with self._lock:
            skill = await self._found(name)
            if skill.schedule is None:
                raise SkillRefused(
                    f"{name} has no schedule, so there is nothing to switch: it is used whenever "
                    "it fits"
                )
            record = await self._known(name) or SkillRecord(name=name)
            await self._records.put_record(replace(record, enabled=enabled))
            return await self._found(name)

    async def record(self, name: str) -> SkillRecord | None:
        """What was decided about a skill; None for one that was put there by hand."""
        return await self._known(name)

    async def all_records(self) -> Mapping[str, SkillRecord]:
        """All decisions, by name."""
        return {one.name: one for one in await self._records.records()}

    # --- steps ---------------------------------------------------------------------------------

    async def _bring_in(self, change: _Change) -> Installed:
        async with self._lock:
            prepared = await asyncio.to_thread(change.prepare)
            try:
                change.check(await self._afresh(), prepared)
                # Before it is in its place: a kill must not leave a skill that nobody knows to be
                # new, and so would be taken for the owner's own.
                await self._record(
                    prepared.skill.name,
                    prepared.installed.digest,
                    approved=False,
                    origin=change.origin,
                )
                installed = await asyncio.to_thread(prepared.place)
            finally:
                await asyncio.to_thread(prepared.discard)
            self._shelf.dropped()
            return installed

    async def _playbook_removed(self, name: str) -> bool:
        before = (await self._afresh()).get(name)
        if not await self._records.remove_playbook(name):
            return False
        if before is None or before.place is Place.STORED:
            await self._forgotten(name)
        self._shelf.dropped()
        return True

    async def _forgotten(self, name: str) -> None:
        """The decision goes with its skill, unless another one of this name comes to light: what
        nothing is known about counts as put there by hand, and would be trusted."""
        rest = (await self._afresh()).get(name)
        if rest is None or rest.place in _BY_HAND:
            await self._records.remove_record(name)
        else:
            await self._record(name, "", approved=False)
        self._shelf.dropped()

    async def _keep_former(self, known: Skill) -> None:
        if known.is_used or known.state is SkillState.OFF:
            text = await asyncio.to_thread(_former_text, known)
            await asyncio.to_thread(_write_former, self._folder / FORMER, known.name, text)

    async def _record(
        self, name: str, digest: str, *, approved: bool, origin: str | None = None
    ) -> None:
        known = await self._known(name) or SkillRecord(name=name)
        if origin == CHANGED and known.origin == WRITTEN:
            origin = WRITTEN
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

    async def _afresh(self) -> Shelf:
        self._shelf.dropped()
        return await self._shelf.current()

    async def _found(self, name: str) -> Skill:
        skill = (await self._afresh()).get(name)
        if skill is None:
            raise SkillRefused(f"there is no skill {_said(name)}; `hearthbot skills list` has all")
        return skill

    async def _own(self, name: str) -> Skill:
        """A skill that can be changed here. Raises SkillRefused."""
        skill = await self._found(name)
        _check_own(skill)
        return skill


# --- what must hold ----------------------------------------------------------------------------


def _checked(playbook: StoredPlaybook) -> StoredPlaybook:
    """The playbook as it will be stored. Raises SkillRefused with the first thing wrong."""
    tidy = tidied(playbook)
    if wrong := fault_of(tidy):
        raise SkillRefused(wrong)
    return tidy


def _check_new(shelf: Shelf, name: str) -> None:
    """The assistant may take no name that is taken, and leave no heap for the owner to read."""
    known = shelf.get(name)
    if known is not None and known.place in _BY_HAND:
        # It would hide the other one, from the moment that it is written.
        raise SkillRefused(
            f"{name} is the name of a {known.place.value} skill, and a new one would take its "
            "place: take another name. Its owner can replace it by hand"
        )
    if known is not None:
        raise SkillRefused(f"there is a skill {name} already: change it, or take another name")
    waiting = [one for one in shelf.skills if one.state is SkillState.QUARANTINED]
    if len(waiting) >= WAITING_MAX:
        raise SkillRefused(
            f"{len(waiting)} skills wait for their owner's approval already: `hearthbot skills "
            "list` shows them, to be approved or removed first"
        )


def _check_one_place(shelf: Shelf, prepared: Prepared) -> None:
    """One name, one folder: a record belongs to a name."""
    known = shelf.get(prepared.skill.name)
    if known is None or known.place is not Place.WORKSPACE or known.folder is None:
        return
    if known.folder != prepared.final:
        raise SkillRefused(
            f"{known.location} has the name {known.name} too: rename or remove that one first"
        )


def _check_own(skill: Skill) -> None:
    if skill.place in _BY_HAND:
        raise SkillRefused(
            f"{skill.name} is a {skill.place.value} skill and cannot be changed or removed here; a "
            f"skill of the same name in workspace/skills is used instead of it"
        )
    if skill.folder is not None and skill.folder.name != skill.name:
        raise SkillRefused(
            f"{skill.name} lies in a folder of another name ({skill.location}): its owner can "
            "change or remove that folder by hand"
        )


def _takes_its_place(hidden: Skill, *, is_hidden: bool) -> str:
    what = "a stored playbook" if hidden.place is Place.STORED else f"a {hidden.place.value} skill"
    until = "; until then neither of them is used" if is_hidden else ""
    return (
        f"{hidden.name} is the name of {what} too: once approved, this one is used instead{until}"
    )


# --- texts -------------------------------------------------------------------------------------


def _is_text_of(skill: Skill, text: str) -> bool:
    """Whether this is what the skill's file in the workspace holds already."""
    if skill.place is not Place.WORKSPACE or skill.folder is None:
        return False
    try:
        data = read_file(str(skill.folder / SKILL_FILE), bytes_max=FILE_BYTES_MAX)
    except (OSError, Unreadable):
        return False
    return data == text.encode("utf-8", "replace")


def _former_text(skill: Skill) -> bytes:
    if skill.folder is None:
        return playbook_text(skill).encode("utf-8", "replace")
    try:
        return read_file(str(skill.folder / SKILL_FILE), bytes_max=FILE_BYTES_MAX)
    except OSError as error:
        raise SkillRefused(
            f"{skill.location} cannot be read ({error.strerror}), and is left as it is"
        ) from error


def _write_former(folder: Path, name: str, text: bytes) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(folder / f"{name}.md")
    except OSError as error:
        raise SkillRefused(
            f"the former text of {name} cannot be kept in {folder} ({error.strerror}), so nothing "
            "was changed"
        ) from error


def _said(name: str) -> str:
    return repr(name if len(name) <= 64 else f"{name[:63]}…")
