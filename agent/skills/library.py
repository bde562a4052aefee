"""All skills there are now: of the workspace, the database, the person's folder, and the shipped.

A change in a file shows within `LOOK_EVERY_S`; what the database holds is kept for five minutes,
or until `dropped` says that something changed. Called by the prompt and by the tools of skills.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256

import structlog

from agent.skills.places import FoundSkill, Look, Places, look
from agent.skills.reader import DESCRIPTION_MAX, is_name
from agent.skills.skill import (
    FindProgram,
    Machine,
    Place,
    Problem,
    Severity,
    Skill,
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

_TRUSTED = frozenset({Place.SHIPPED})
_STRONGEST_FIRST = (Place.WORKSPACE, Place.STORED, Place.USER, Place.SHIPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """What the database holds. Until it could be read once, `are_known` is false."""

    playbooks: tuple[StoredPlaybook, ...] = ()
    records: Mapping[str, SkillRecord] = field(default_factory=dict)
    are_known: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """All that a shelf is made of: an equal one makes an equal shelf."""

    looks: Mapping[Place, Look] = field(default_factory=dict)
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    decisions: Decisions = field(default_factory=Decisions)


class SkillLibrary:
    """Knows which skills there are. One for the whole bot; may be asked by many turns at once.

    `env` and `find_program` say what the machine has; `given` names, for each skill, the
    variables that the owner set for it alone.
    """

    def __init__(
        self,
        places: Places,
        records: SkillRecords,
        *,
        clock: Clock,
        env: Mapping[str, str],
        given: Mapping[str, Collection[str]] | None = None,
        find_program: FindProgram = shutil.which,
        system: str = sys.platform,
    ) -> None:
        self._places = places
        self._records = records
        self._clock = clock
        self._machine = Machine(env=env, find_program=find_program, system=system)
        self._given = {} if given is None else given
        self._lock = asyncio.Lock()
        self._seen = _Seen()
        self._shelf = SkillSet()
        self._told: frozenset[Problem] = frozenset()
        self._look_at = self._ask_at = float("-inf")
        self._drops = 0

    async def current(self) -> SkillSet:
        """The skills there are. The same object while nothing changes. Does not raise."""
        if self._clock.monotonic() < self._look_at:
            return self._shelf
        async with self._lock:
            if self._clock.monotonic() >= self._look_at:
                await self._renew()
            return self._shelf

    def dropped(self) -> None:
        """Something was changed through a tool or command: the next `current` looks afresh."""
        self._look_at = self._ask_at = float("-inf")
        self._drops += 1

    async def _renew(self) -> None:
        now, drops = self._clock.monotonic(), self._drops
        decisions, ask_at = self._seen.decisions, self._ask_at
        if now >= ask_at:
            decisions, kept_s = await self._asked()
            ask_at = now + kept_s
        seen, shelf = await asyncio.to_thread(self._looked, decisions)
        self._seen, self._shelf = seen, shelf
        if drops == self._drops:  # Else something changed since: the next call looks again.
            self._look_at, self._ask_at = now + LOOK_EVERY_S, ask_at
        self._tell(shelf.problems)

    async def _asked(self) -> tuple[Decisions, float]:
        """What the database holds, and for how many seconds that serves."""
        try:
            playbooks, records = await self._records.playbooks(), await self._records.records()
        except StorageError as error:
            log.warning("skills.records_unreadable", why=str(error))
            return self._seen.decisions, RETRY_S
        decisions = Decisions(
            playbooks=tuple(playbooks),
            records={record.name: record for record in records},
            are_known=True,
        )
        return decisions, KEPT_S

    def _looked(self, decisions: Decisions) -> tuple[_Seen, SkillSet]:
        before = self._seen
        looks = self._looks(before)
        missing = self._missing(looks.values())
        seen = _Seen(looks=looks, missing=missing, decisions=decisions)
        return seen, self._shelf if seen == before else _shelf(seen)

    def _looks(self, before: _Seen) -> Mapping[Place, Look]:
        # Shipped skills are part of the program: they change with a restart.
        shipped = before.looks.get(Place.SHIPPED) or look(
            Place.SHIPPED, self._places.shipped, Look()
        )
        looks = {Place.SHIPPED: shipped}
        watched = {Place.WORKSPACE: self._places.workspace, Place.USER: self._places.user}
        for place, root in watched.items():
            if root is not None:
                looks[place] = look(place, root, before.looks.get(place, Look()))
        return looks

    def _missing(self, looks: Iterable[Look]) -> Mapping[str, tuple[str, ...]]:
        """What is lacking, by the skill's path. Each program is looked for once."""
        machine = replace(self._machine, find_program=cache(self._machine.find_program))
        return {
            path: clauses
            for one in looks
            for path, found in one.found.items()
            if (skill := found.reading.skill) is not None
            and (
                clauses := lacking(
                    found.reading.requires, machine, given=self._given.get(skill.name, ())
                )
            )
        }

    def _tell(self, problems: Iterable[Problem]) -> None:
        current = frozenset(problems)
        for problem in sorted(current - self._told, key=str):
            log.warning(
                "skills.problem",
                skill=problem.skill,
                where=f"{problem.file}:{problem.line}",
                severity=problem.severity.value,
                problem=problem.text,
            )
        self._told = current


def playbook_digest(playbook: StoredPlaybook) -> str:
    """Names the content of a stored playbook, as a folder's digest does for a file."""
    return _digest(playbook)


# --- from what was seen to the shelf -----------------------------------------------------------


def _shelf(seen: _Seen) -> SkillSet:
    skills: dict[str, Skill] = {}
    shadowed: list[Skill] = []
    problems = [problem for one in seen.looks.values() for problem in _problems(one)]
    if not seen.decisions.are_known:
        problems.append(_UNKNOWN)
    for place in _STRONGEST_FIRST:
        for skill in sorted(_of(place, seen, problems), key=_own_folder_first):
            first = skills.setdefault(skill.name, skill)
            if first is not skill:
                shadowed.append(skill)
                if first.place is place:
                    problems.append(_twice(skill, first))
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


def _of(place: Place, seen: _Seen, problems: list[Problem]) -> Iterable[Skill]:
    if place is Place.STORED:
        return [
            replace(skill, state=_state(skill, seen.decisions))
            for playbook in seen.decisions.playbooks
            if (skill := _stored(playbook, problems)) is not None
        ]
    found = seen.looks.get(place, Look()).found
    return [
        _dressed(skill, one, seen, seen.missing.get(path, ()))
        for path, one in found.items()
        if (skill := one.reading.skill) is not None
    ]


def _dressed(skill: Skill, found: FoundSkill, seen: _Seen, missing: tuple[str, ...]) -> Skill:
    whole = replace(skill, digest=found.digest, missing=missing)
    return replace(whole, state=_state(whole, seen.decisions))


def _state(skill: Skill, decisions: Decisions) -> SkillState:
    record = decisions.records.get(skill.name)
    if skill.place not in _TRUSTED and not _is_approved(skill, record, decisions):
        return SkillState.QUARANTINED
    if skill.missing:
        return SkillState.MISSING
    if skill.schedule is not None and (record is None or not record.enabled):
        return SkillState.OFF
    return SkillState.USABLE


def _is_approved(skill: Skill, record: SkillRecord | None, decisions: Decisions) -> bool:
    """Put there by hand, or approved as it is now. A record without digest pins nothing."""
    if record is None:
        return decisions.are_known
    return record.approved and record.digest in {"", skill.digest}


def _own_folder_first(skill: Skill) -> tuple[bool, str]:
    """Of two with one name, the one whose folder is called so."""
    is_own = skill.folder is not None and skill.folder.name == skill.name
    return not is_own, skill.location


def _problems(one: Look) -> Iterable[Problem]:
    yield from one.problems
    for found in one.found.values():
        yield from found.reading.problems


def _twice(skill: Skill, first: Skill) -> Problem:
    text = f"{skill.name} is the name of {first.location} too, which is used"
    return Problem(skill=skill.name, file=skill.location, text=text, severity=Severity.WARNING)


def _stored(playbook: StoredPlaybook, problems: list[Problem]) -> Skill | None:
    if not is_name(playbook.name):
        text = "its name must be lower-case letters, digits and hyphens"
        problems.append(Problem(skill=playbook.name, file=f"stored:{playbook.name}", text=text))
        return None
    return Skill(
        name=playbook.name,
        description=playbook.description[:DESCRIPTION_MAX],
        text=playbook.text,
        place=Place.STORED,
        location=f"stored:{playbook.name}",
        digest=_digest(playbook),
        keywords=playbook.keywords,
        priority=playbook.priority,
        required_tools=playbook.required_tools,
    )


def _digest(playbook: StoredPlaybook) -> str:
    content = repr(replace(playbook, updated_ms=0))
    return sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
