"""All skills there are now: of the workspace, the database, the person's folder, and the shipped.

A change in a file shows within `LOOK_EVERY_S`; what the database holds is kept for five minutes,
or until `dropped` says that something changed. Called by the prompt and by the tools of skills.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256

import structlog

from agent.skills.places import PlaceScan, SkillFolders, scan
from agent.skills.reader import DESCRIPTION_MAX, is_name
from agent.skills.skill import (
    FindProgram,
    Machine,
    Problem,
    Severity,
    Skill,
    SkillPlace,
    SkillSet,
    SkillState,
    lacking,
)
from memory.records.errors import StorageError
from memory.records.ports import Clock, SkillRecords
from memory.records.rows import SkillRecord, StoredPlaybook

LOOK_EVERY_S = 2.0
KEPT_S = 300.0
"""How long playbooks and decisions of the database are used before they are asked for again."""
RETRY_S = 10.0
"""After a failure of the database, with what was known before in use."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """What the database holds. Until it could be read once, `are_known` is false."""

    playbooks: tuple[StoredPlaybook, ...] = ()
    records: Mapping[str, SkillRecord] = field(default_factory=dict)
    are_known: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    """All that the skills are made of: what is equal makes equal ones."""

    scans: Mapping[SkillPlace, PlaceScan] = field(default_factory=dict)
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    decisions: Decisions = field(default_factory=Decisions)


class SkillLibrary:
    """Knows which skills there are. One for the whole bot; may be asked by many turns at once.

    `env` and `find_program` say what the machine has; `given` names, for each skill, the
    variables that the owner set for it alone.
    """

    def __init__(
        self,
        folders: SkillFolders,
        records: SkillRecords,
        *,
        clock: Clock,
        env: Mapping[str, str],
        given: Mapping[str, Collection[str]] | None = None,
        find_program: FindProgram = shutil.which,
        system: str = sys.platform,
    ) -> None:
        self._folders = folders
        self._records = records
        self._clock = clock
        self._machine = Machine(env=env, find_program=find_program, system=system)
        self._given = {} if given is None else given
        self._lock = asyncio.Lock()
        self._seen = _Snapshot()
        self._skills = SkillSet()
        self._told: frozenset[Problem] = frozenset()
        self._look_at = self._ask_at = float("-inf")
        self._drops = 0

    async def current(self) -> SkillSet:
        """The skills there are. The same object while nothing changes. Does not raise."""
        if self._clock.monotonic() < self._look_at:
            return self._skills
        async with self._lock:
            now, drops = self._clock.monotonic(), self._drops
            if now < self._look_at:
                return self._skills
            decisions, ask_at = self._seen.decisions, self._ask_at
            if now >= ask_at:
                try:
                    playbooks = await self._records.playbooks()
                    records = {one.name: one for one in await self._records.records()}
                    decisions = Decisions(
                        playbooks=tuple(playbooks), records=records, are_known=True
                    )
                    kept_s = KEPT_S
                except StorageError as error:
                    log.warning("skills.records_unreadable", why=str(error))
                    kept_s = RETRY_S
                ask_at = now + kept_s
            seen = await asyncio.to_thread(self._looked, decisions)
            if seen != self._seen:
                self._seen, self._skills = seen, _skill_set(seen)
            if drops == self._drops:  # Else something changed since: the next call looks again.
                self._look_at, self._ask_at = now + LOOK_EVERY_S, ask_at
            current = frozenset(self._skills.problems)
            for problem in sorted(current - self._told, key=str):
                log.warning(
                    "skills.problem",
                    skill=problem.skill,
                    where=f"{problem.file}:{problem.line}",
                    severity=problem.severity.value,
                    problem=problem.text,
                )
            self._told = current
            return self._skills

    def dropped(self) -> None:
        """Something was changed through a tool or command: the next `current` looks afresh."""
        self._look_at = self._ask_at = float("-inf")
        self._drops += 1

    def _looked(self, decisions: Decisions) -> _Snapshot:
        scans = dict(self._seen.scans)
        # Shipped skills are part of the program: they change with a restart.
        if SkillPlace.SHIPPED not in scans:
            scans[SkillPlace.SHIPPED] = scan(SkillPlace.SHIPPED, self._folders.shipped, PlaceScan())
        watched = {
            SkillPlace.WORKSPACE: self._folders.workspace,
            SkillPlace.USER: self._folders.user,
        }
        for place, root in watched.items():
            if root is not None:
                scans[place] = scan(place, root, scans.get(place, PlaceScan()))
        # Each program is looked for once.
        machine = replace(self._machine, find_program=cache(self._machine.find_program))
        missing = {
            path: lacking(found.reading.requires, machine, given=self._given.get(skill.name, ()))
            for one in scans.values()
            for path, found in one.found.items()
            if (skill := found.reading.skill) is not None
        }
        return _Snapshot(scans=scans, missing=missing, decisions=decisions)


def playbook_digest(playbook: StoredPlaybook) -> str:
    """Name the content of a stored playbook, as a folder's digest does for a file."""
    content = repr(replace(playbook, updated_ms=0))
    return sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


# --- from what was seen to the skills ----------------------------------------------------------


def _skill_set(seen: _Snapshot) -> SkillSet:
    skills: dict[str, Skill] = {}
    shadowed: list[Skill] = []
    problems: list[Problem] = []
    for one in seen.scans.values():
        problems += one.problems
        problems += (problem for found in one.found.values() for problem in found.reading.problems)
    if not seen.decisions.are_known:
        problems.append(_UNKNOWN)
    for place in SkillPlace:
        found = _stored(seen, problems) if place is SkillPlace.STORED else _scanned(place, seen)
        # Of two with one name, the one whose folder is called so comes first.
        for skill in sorted(
            found, key=lambda one: (one.folder is None or one.folder.name != one.name, one.location)
        ):
            state = _state(skill, seen.decisions)
            first = skills.setdefault(skill.name, replace(skill, state=state))
            if first.location != skill.location:
                shadowed.append(replace(skill, state=state))
                if first.place is place:
                    text = f"{skill.name} is the name of {first.location} too, which is used"
                    problems.append(
                        Problem(
                            skill=skill.name,
                            file=skill.location,
                            text=text,
                            severity=Severity.WARNING,
                        )
                    )
    return SkillSet(
        skills=tuple(sorted(skills.values(), key=lambda skill: (-skill.priority, skill.name))),
        problems=tuple(problems),
        shadowed=tuple(shadowed),
    )


_UNKNOWN = Problem(
    skill="",
    file="database",
    text="what the owner decided about skills cannot be read: those of the workspace wait for it",
)


def _scanned(place: SkillPlace, seen: _Snapshot) -> list[Skill]:
    found = seen.scans.get(place, PlaceScan()).found
    return [
        replace(skill, digest=one.digest, missing=seen.missing.get(path, ()))
        for path, one in found.items()
        if (skill := one.reading.skill) is not None
    ]


def _stored(seen: _Snapshot, problems: list[Problem]) -> list[Skill]:
    skills = []
    for playbook in seen.decisions.playbooks:
        location = f"stored:{playbook.name}"
        if not is_name(playbook.name):
            text = "its name must be lower-case letters, digits and hyphens"
            problems.append(Problem(skill=playbook.name, file=location, text=text))
            continue
        skills.append(
            Skill(
                name=playbook.name,
                description=playbook.description[:DESCRIPTION_MAX],
                text=playbook.text,
                place=SkillPlace.STORED,
                location=location,
                digest=playbook_digest(playbook),
                keywords=playbook.keywords,
                priority=playbook.priority,
                required_tools=playbook.required_tools,
            )
        )
    return skills


def _state(skill: Skill, decisions: Decisions) -> SkillState:
    record = decisions.records.get(skill.name)
    # Put there by hand, or approved as it is now. A record without digest pins nothing.
    is_approved = decisions.are_known
    if record is not None:
        is_approved = record.approved and record.digest in {"", skill.digest}
    if skill.place is not SkillPlace.SHIPPED and not is_approved:
        return SkillState.QUARANTINED
    if skill.missing:
        return SkillState.MISSING
    if skill.schedule is not None and (record is None or not record.enabled):
        return SkillState.OFF
    return SkillState.USABLE
