"""Skills as tools, commands and the command line use them: what there is, why, and each change.

Whatever comes in waits in quarantine until the owner has approved exactly this content. Each change
may be made again after a kill: what is there already as it is wanted stays as it is, an approval
included.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent.skills.checks import TESTS_FILE, TriggerReport, TriggerTests, has_tests, tests_of, tried
from agent.skills.install import (
    InstalledSkill,
    Prepared,
    prepare_change,
    prepare_install,
    prepare_new,
    remove_skill,
    write_former,
)
from agent.skills.library import SkillLibrary, playbook_digest
from agent.skills.parser import FILE_BYTES_MAX, Unreadable
from agent.skills.places import SKILL_FILE, read_file
from agent.skills.rules import Rule
from agent.skills.skill import Problem, Skill, SkillPlace, SkillRefused, SkillSet, SkillState
from agent.skills.suspicious import (
    fault_of,
    keyword_warnings,
    looked_through,
    playbook_of,
    playbook_warnings,
    tidied,
)
from agent.skills.why import Explanation, why
from memory.records.rows import SkillRecord, StoredPlaybook
from memory.stores.switches import SqliteSkillRecords

WAITING_MAX = 50
"""Skills that may wait for approval at once, before the assistant may write no more of them."""

WRITTEN = "written by the assistant"
CHANGED = "changed by the assistant"
INSTALLED = "installed"
SET_BY_OWNER = "set by its owner"

_BY_HAND = frozenset({SkillPlace.SHIPPED, SkillPlace.USER})
"""Places that nothing here writes to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillList:
    """All skills, what was decided about each, and its trigger tests, both by name."""

    skills: SkillSet
    records: Mapping[str, SkillRecord]
    tests: Mapping[str, TriggerTests]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillDetails:
    """One skill, to be read before it is approved.

    `files` are names with sizes, `findings` what in them should make one look twice, `hides` the
    skills of the same name that are not used because of this one.
    """

    skill: Skill
    record: SkillRecord | None
    files: tuple[tuple[str, int], ...]
    findings: tuple[str, ...]
    tests: TriggerTests
    hides: tuple[Skill, ...]
    problems: tuple[Problem, ...]


class SkillService:
    """All that can be asked and changed about the skills of one home. One for the whole bot."""

    def __init__(
        self,
        library: SkillLibrary,
        records: SqliteSkillRecords,
        folder: Path,
        rules: Sequence[Rule] = (),
    ) -> None:
        """`folder` is the workspace's `skills`, `rules` the force-include rules of the settings."""
        self._library = library
        self._records = records
        self._folder = folder
        self._rules = tuple(rules)
        self._lock = asyncio.Lock()

    # --- looking -------------------------------------------------------------------------------

    async def now(self) -> SkillSet:
        """The skills there are, looked at afresh: who asks has perhaps just changed a file."""
        self._library.dropped()
        return await self._library.current()

    async def find(self, name: str) -> Skill:
        """Return the skill of a name. Raise SkillRefused, with what is wrong with a broken one."""
        return _found(await self.now(), name)

    async def list(self) -> SkillList:
        """Return all skills, with decisions and tests."""
        skills = await self.now()
        tests = await asyncio.to_thread(lambda: {one.name: tests_of(one) for one in skills.skills})
        return SkillList(skills=skills, records=await self.records(), tests=tests)

    async def show(self, name: str) -> SkillDetails:
        """Return all about one skill. Raise SkillRefused."""
        skills = await self.now()
        skill = _found(skills, name)
        files, findings = await asyncio.to_thread(looked_through, skill)
        tests = await asyncio.to_thread(tests_of, skill)
        mine = (problem for problem in skills.problems if problem.skill == skill.name)
        return SkillDetails(
            skill=skill,
            record=(await self.records()).get(name),
            files=files,
            findings=findings,
            tests=tests,
            hides=tuple(one for one in skills.shadowed if one.name == skill.name),
            problems=(*mine, *tests.problems),
        )

    async def why(self, text: str) -> Explanation:
        """Explain for each skill and rule whether a message would bring it in."""
        return await asyncio.to_thread(why, await self.now(), self._rules, text)

    async def tested(self, name: str = "") -> tuple[str, ...]:
        """Name the skills that have trigger tests; of one alone. Raise SkillRefused."""
        skills = await self.now()
        if not name:
            found = await asyncio.to_thread(lambda: [s for s in skills.skills if has_tests(s)])
            return tuple(sorted(one.name for one in found))
        skill = _found(skills, name)
        if not has_tests(skill):
            where = f"beside {skill.location}" if skill.folder else "beside a SKILL.md"
            raise SkillRefused(
                f"{name} has no trigger tests: they stand in a file {TESTS_FILE} {where}"
            )
        return (name,)

    async def test(self, name: str) -> TriggerReport:
        """Run a skill's trigger tests, as if it were in use. Raise SkillRefused."""
        skills = await self._library.current()
        return await asyncio.to_thread(tried, _found(skills, name), skills, self._rules)

    async def records(self) -> Mapping[str, SkillRecord]:
        """Return what was decided about skills, by name; what was put there by hand has none."""
        return {one.name: one for one in await self._records.records()}

    # --- files ---------------------------------------------------------------------------------

    async def install(self, source: Path, *, replace_it: bool = False) -> InstalledSkill:
        """Take in a skill from a folder or archive. Raise InstallRefused, StorageError.

        Its warnings say also which skill of the same name it takes the place of.
        """
        before = await self.now()
        installed = await self._bring_in(
            lambda: prepare_install(source, self._folder, replace=replace_it),
            INSTALLED,
            _check_one_place,
        )
        hidden, now = before.get(installed.name), (await self.now()).get(installed.name)
        told = keyword_warnings(now.keywords) if now is not None else ()
        if hidden is not None and hidden.place is not SkillPlace.WORKSPACE:
            is_hidden = now is not None and now.place is SkillPlace.WORKSPACE
            is_stored = hidden.place is SkillPlace.STORED
            what = "a stored playbook" if is_stored else f"a {hidden.place.value} skill"
            until = "; until then neither of them is used" if is_hidden else ""
            takes = (
                f"{hidden.name} is the name of {what} too: once approved, this one is used instead"
            )
            told = (f"{takes}{until}", *told)
        return replace(installed, warnings=(*told, *installed.warnings))

    async def create(self, name: str, text: str) -> InstalledSkill:
        """Write a new SKILL.md for the assistant. Raise SkillRefused, InstallRefused."""
        skills = await self.now()
        if same := await _same_text(skills.get(name), text):
            return same
        _check_new(skills, name)
        return await self._bring_in(
            lambda: prepare_new(self._folder, name, text),
            WRITTEN,
            lambda skills, prepared: _check_new(skills, name),
        )

    async def change(self, name: str, text: str) -> InstalledSkill:
        """Write new text for the assistant into a skill of the workspace: in quarantine again.

        A text that was in use is kept in `.former`. Raise SkillRefused, InstallRefused.
        """
        known = await self._own(name)
        if same := await _same_text(known, text):
            return same
        await self._keep_former(known)
        return await self._bring_in(
            lambda: prepare_change(self._folder, name, text), CHANGED, lambda skills, prepared: None
        )

    # --- playbooks -----------------------------------------------------------------------------

    async def set_playbook(
        self,
        name: str,
        *,
        description: str | None = None,
        keywords: Sequence[str] | None = None,
        text: str | None = None,
        priority: int | None = None,
    ) -> tuple[Skill, bool, tuple[str, ...]]:
        """Store a playbook of the owner, in use at once; what is None stays as it was.

        Return it, whether it is new, and what to look at. Raise SkillRefused.
        """
        known = (await self.now()).get(name)
        playbook = StoredPlaybook(name=name, description="", keywords=(), text="")
        if known is not None and known.place is SkillPlace.STORED:
            playbook = playbook_of(known)
        playbook = replace(
            playbook,
            description=playbook.description if description is None else description,
            keywords=playbook.keywords if keywords is None else tuple(keywords),
            text=playbook.text if text is None else text,
            priority=playbook.priority if priority is None else priority,
        )
        is_new = await self.put_playbook(playbook, approved=True, origin=SET_BY_OWNER)
        skills = await self.now()
        warnings = playbook_warnings(playbook)
        hidden = next((one.place.value for one in skills.shadowed if one.name == name), "")
        if hidden:
            warnings = (f"it is used instead of the {hidden} skill of this name", *warnings)
        return _found(skills, name), is_new, warnings

    async def put_playbook(self, playbook: StoredPlaybook, *, approved: bool, origin: str) -> bool:
        """Store a playbook in the database; True when it is new. Raise SkillRefused."""
        playbook = _checked(playbook)
        async with self._lock:
            known = (await self.now()).get(playbook.name)
            if known is not None and known.place is SkillPlace.WORKSPACE:
                raise SkillRefused(
                    f"{playbook.name} is a skill of the workspace, which would hide the playbook: "
                    "take another name"
                )
            digest = playbook_digest(playbook)
            if known is not None and known.digest == digest and not approved:
                return False
            await self._record(playbook.name, digest, approved=approved, origin=origin)
            is_new = await self._records.put_playbook(playbook)
            self._library.dropped()
            return is_new

    async def create_playbook(self, playbook: StoredPlaybook) -> None:
        """Store a new playbook of the assistant, in quarantine. Raise SkillRefused."""
        playbook = _checked(playbook)
        skills = await self.now()
        known = skills.get(playbook.name)
        if known is None or known.digest != playbook_digest(playbook):
            _check_new(skills, playbook.name)
        await self.put_playbook(playbook, approved=False, origin=WRITTEN)

    async def change_playbook(self, playbook: StoredPlaybook) -> None:
        """Store other content of the assistant: in quarantine again. Raise SkillRefused.

        A text that was in use is kept in `.former`.
        """
        playbook = _checked(playbook)
        known = await self._own(playbook.name)
        if known.digest != playbook_digest(playbook):
            await self._keep_former(known)
        await self.put_playbook(playbook, approved=False, origin=CHANGED)

    # --- taking away ---------------------------------------------------------------------------

    async def remove(self, name: str) -> bool:
        """Take away a skill of the workspace, else a stored playbook; False if there is neither.

        Raise SkillRefused for what is shipped or shared.
        """
        async with self._lock:
            known = (await self.now()).get(name)
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
        """`remove` for the assistant: only what it wrote itself. Raise SkillRefused."""
        known = (await self.now()).get(name)
        if known is None:
            return False
        _check_own(known)
        record = (await self.records()).get(name)
        if record is None or record.origin != WRITTEN:
            raise SkillRefused(
                f"{name} was not written by the assistant, so only its owner can remove it: "
                f"hearthbot skills remove {name}"
            )
        await self._keep_former(known)
        return await self.remove(name)

    # --- decisions of the owner ----------------------------------------------------------------

    async def approve(self, name: str, *, digest: str = "") -> Skill:
        """Let a skill be used, at `digest`, or if that is empty as it is now.

        Raise SkillRefused when there is none, or it changed since it was looked at.
        """
        async with self._lock:
            skill = await self.find(name)
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
            return await self.find(name)

    async def enable(self, name: str, *, enabled: bool) -> Skill:
        """Let a skill with a schedule run, or stop it. Raise SkillRefused."""
        async with self._lock:
            skill = await self.find(name)
            if skill.schedule is None:
                raise SkillRefused(
                    f"{name} has no schedule, so there is nothing to switch: it is used whenever "
                    "it fits"
                )
            record = (await self.records()).get(name) or SkillRecord(name=name)
            await self._records.put_record(replace(record, enabled=enabled))
            return await self.find(name)

    # --- steps ---------------------------------------------------------------------------------

    async def _bring_in(
        self,
        prepare: Callable[[], Prepared],
        origin: str,
        check: Callable[[SkillSet, Prepared], None],
    ) -> InstalledSkill:
        async with self._lock:
            prepared = await asyncio.to_thread(prepare)
            try:
                check(await self.now(), prepared)
                # Before it is in its place: a kill must not leave a skill that nobody knows to be
                # new, and so would be taken for the owner's own.
                name, digest = prepared.skill.name, prepared.installed.digest
                await self._record(name, digest, approved=False, origin=origin)
                installed = await asyncio.to_thread(prepared.place)
            finally:
                await asyncio.to_thread(prepared.discard)
            self._library.dropped()
            return installed

    async def _playbook_removed(self, name: str) -> bool:
        before = (await self.now()).get(name)
        if not await self._records.remove_playbook(name):
            return False
        if before is None or before.place is SkillPlace.STORED:
            await self._forgotten(name)
        self._library.dropped()
        return True

    async def _forgotten(self, name: str) -> None:
        """The decision goes with its skill, unless another one of this name comes to light: what
        nothing is known about counts as put there by hand, and would be trusted."""
        rest = (await self.now()).get(name)
        if rest is None or rest.place in _BY_HAND:
            await self._records.remove_record(name)
        else:
            await self._record(name, "", approved=False)
        self._library.dropped()

    async def _keep_former(self, known: Skill) -> None:
        if known.is_used or known.state is SkillState.OFF:
            await asyncio.to_thread(write_former, self._folder, known)

    async def _record(
        self, name: str, digest: str, *, approved: bool, origin: str | None = None
    ) -> None:
        known = (await self.records()).get(name) or SkillRecord(name=name)
        if origin is None or (origin == CHANGED and known.origin == WRITTEN):
            origin = known.origin
        await self._records.put_record(
            replace(known, digest=digest, approved=approved, origin=origin)
        )

    async def _own(self, name: str) -> Skill:
        """A skill that can be changed here. Raises SkillRefused."""
        skill = await self.find(name)
        _check_own(skill)
        return skill


# --- what must hold ----------------------------------------------------------------------------


def _found(skills: SkillSet, name: str) -> Skill:
    skill = skills.get(name)
    if skill is not None:
        return skill
    wrong = [str(problem) for problem in skills.problems if problem.skill == name]
    if wrong:
        raise SkillRefused("\n".join([f"The skill {name} is broken, and not used:", *wrong]))
    raise SkillRefused(f"there is no skill {name[:64]!r}; `hearthbot skills list` has all")


def _checked(playbook: StoredPlaybook) -> StoredPlaybook:
    """The playbook as it will be stored. Raises SkillRefused with the first thing wrong."""
    tidy = tidied(playbook)
    if wrong := fault_of(tidy):
        raise SkillRefused(wrong)
    return tidy


def _check_new(skills: SkillSet, name: str) -> None:
    """The assistant may take no name that is taken, and leave no heap for the owner to read."""
    known = skills.get(name)
    if known is not None and known.place in _BY_HAND:
        # It would hide the other one, from the moment that it is written.
        raise SkillRefused(
            f"{name} is the name of a {known.place.value} skill, and a new one would take its "
            "place: take another name. Its owner can replace it by hand"
        )
    if known is not None:
        raise SkillRefused(f"there is a skill {name} already: change it, or take another name")
    waiting = [one for one in skills.skills if one.state is SkillState.QUARANTINED]
    if len(waiting) >= WAITING_MAX:
        raise SkillRefused(
            f"{len(waiting)} skills wait for their owner's approval already: `hearthbot skills "
            "list` shows them, to be approved or removed first"
        )


def _check_one_place(skills: SkillSet, prepared: Prepared) -> None:
    """One name, one folder: a record belongs to a name."""
    known = skills.get(prepared.skill.name)
    if known is None or known.place is not SkillPlace.WORKSPACE or known.folder is None:
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


# --- texts -------------------------------------------------------------------------------------


async def _same_text(skill: Skill | None, text: str) -> InstalledSkill | None:
    """Return what is installed, if this is what the skill's file in the workspace holds already."""
    if skill is None or skill.place is not SkillPlace.WORKSPACE or skill.folder is None:
        return None
    file = str(skill.folder / SKILL_FILE)
    try:
        data = await asyncio.to_thread(read_file, file, bytes_max=FILE_BYTES_MAX)
    except (OSError, Unreadable):
        return None
    if data != text.encode("utf-8", "replace"):
        return None
    return InstalledSkill(name=skill.name, digest=skill.digest, files=(SKILL_FILE,))
