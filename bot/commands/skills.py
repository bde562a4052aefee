"""The skills of a home as its owner sees and changes them: `hearthbot skills` and `/skills`.

Built by `bot.app`; its operations are served on the private socket, which is the owner's alone.
Answers are JSON objects; what each holds stands at the method that makes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.skills.checks import TESTS_FILE, has_tests, tests_file, tests_of, tried
from agent.skills.library import SkillShelf
from agent.skills.lifecycle import SkillRefused, Workshop
from agent.skills.matching import SCORE_MIN
from agent.skills.playbooks import playbook_warnings
from agent.skills.rules import Rule
from agent.skills.skill import Place, Shelf, Skill, SkillState
from agent.skills.why import why
from bot.commands.skill_messages import (
    CLOCK,
    PLAYBOOK,
    SKILL,
    approving_words,
    counted,
    kind_of,
    kind_words,
    state_words,
    when_words,
)
from bot.commands.skill_views import (
    front_matter_of,
    looked_through,
    problems_of,
    result_of,
    row_of,
    rule_of,
    verdict_of,
)
from bot.commands.typed import slash
from bot.rpc import Emit, Operation
from memory.records.messages import IncomingMessage, Role
from memory.records.rows import Person, StoredPlaybook

Json = dict[str, Any]

SET_BY_OWNER = "set by its owner"
SEEN_BY = "hearthbot schedule list"
SHOWN_IN_CHAT = 5
"""Of each kind, the most important first; `/skills all` shows more."""
SHOWN_IN_CHAT_MAX = 40
CHAT_CHARS = 70
CHAT_CHARS_IN_FULL = 100


class SkillDesk:
    """Answers what a person asks about skills, and does what the owner decides."""

    def __init__(self, shelf: SkillShelf, workshop: Workshop, rules: Sequence[Rule] = ()) -> None:
        """`rules` are the force-include rules of the settings."""
        self._shelf = shelf
        self._workshop = workshop
        self._rules = tuple(rules)

    # --- looking -------------------------------------------------------------------------------

    async def listed(self) -> Json:
        """`skills` by kind and name, `shadowed` (hidden by a stronger one of the same
        name) and `problems`."""
        shelf = await self._afresh()
        records = await self._workshop.all_records()
        skills = sorted(shelf.skills, key=lambda one: (_KINDS.index(kind_of(one)), one.name))
        tests = await asyncio.to_thread(lambda: {one.name: tests_of(one) for one in skills})
        broken = [problem for one in tests.values() for problem in one.problems]
        return {
            "skills": [
                {**row_of(one, records.get(one.name)), "tests": len(tests[one.name].tests)}
                for one in skills
            ],
            "shadowed": [
                {"name": one.name, "location": one.location, "by": _location(shelf, one.name)}
                for one in shelf.shadowed
            ],
            "problems": problems_of((*shelf.problems, *broken)),
        }

    async def shown(self, name: str) -> Json:
        """Everything about one skill. Raises SkillRefused, with what is wrong with a broken one."""
        shelf = await self._afresh()
        skill = _found(shelf, name)
        record = await self._workshop.record(name)
        files, found = await asyncio.to_thread(looked_through, skill)
        tests = await asyncio.to_thread(tests_of, skill)
        mine = [problem for problem in shelf.problems if problem.skill == skill.name]
        return {
            **row_of(skill, record),
            "kind_words": kind_words(kind_of(skill)),
            "front_matter": front_matter_of(skill),
            "text": skill.text,
            "files": files,
            "digest": skill.digest,
            "origin": record.origin if record is not None else "",
            "findings": found,
            "approving": approving_words(skill) if skill.state is SkillState.QUARANTINED else "",
            "tests": [{"message": one.message, "match": one.must_match} for one in tests.tests],
            "hides": [one.location for one in shelf.shadowed if one.name == skill.name],
            "problems": problems_of((*mine, *tests.problems)),
        }

    async def why(self, text: str) -> Json:
        """For one message: each skill's `verdict` with reasons, `near` for what came close, the
        `rules` of the settings and what is wrong with rules."""
        shelf = await self._afresh()
        found = await asyncio.to_thread(why, shelf, self._rules, text)
        verdicts = await asyncio.to_thread(lambda: [verdict_of(one, text) for one in found.skills])
        return {
            "text": text,
            "skills": verdicts,
            "rules": [rule_of(one) for one in found.rules],
            "problems": list(found.problems),
            "score_needed": SCORE_MIN,
        }

    async def tested(self, name: str) -> Json:
        """`names` of the skills that have trigger tests; of one alone. Raises SkillRefused."""
        shelf = await self._afresh()
        if not name:
            has = await asyncio.to_thread(lambda: [one for one in shelf.skills if has_tests(one)])
            return {"names": sorted(one.name for one in has)}
        skill = _found(shelf, name)
        if not has_tests(skill):
            where = f"beside {skill.location}" if skill.folder else "beside a SKILL.md"
            raise SkillRefused(
                f"{name} has no trigger tests: they stand in a file {TESTS_FILE} {where}"
            )
        return {"names": [name]}

    async def test(self, name: str) -> Json:
        """The `results` of a skill's trigger tests, and the `problems` of their file."""
        shelf = await self._shelf.current()
        skill = _found(shelf, name)
        tests, results = await asyncio.to_thread(tried, skill, shelf, self._rules)
        return {
            "name": name,
            "file": tests_file(skill),
            "results": [result_of(one) for one in results],
            "problems": problems_of(tests.problems),
        }

    # --- changing ------------------------------------------------------------------------------

    async def install(self, path: str, *, replace_it: bool) -> Json:
        """`text` says what was done, `warnings` what to look at before approving it."""
        made = await self._workshop.install(Path(path), replace_it=replace_it)
        files = counted(len(made.files), "file")
        return {
            "name": made.name,
            "files": list(made.files),
            "warnings": list(made.warnings),
            "text": f"{made.name} is installed ({files}), and in quarantine: it is not used until "
            f"you approve it.\nLook at it: hearthbot skills show {made.name}\n"
            f"Approve it: hearthbot skills approve {made.name}",
        }

    async def approve(self, name: str, digest: str) -> Json:
        """Approves what was looked at. Raises SkillRefused when that is not there any more."""
        before = _found(await self._afresh(), name)
        skill = await self._workshop.approve(name, digest=digest)
        needed = before.state is SkillState.QUARANTINED
        text = f"{name} is approved." if needed else f"{name} needs no approval."
        if skill.state is SkillState.OFF:
            text += f" It runs by the clock once it is enabled: hearthbot skills enable {name}"
        else:
            text += f" It is {_state(skill)}."
        return {"name": name, "state": skill.state.value, "text": text}

    async def enable(self, name: str, *, enabled: bool) -> Json:
        """Switches a skill that runs by the clock."""
        skill = await self._workshop.enable(name, enabled=enabled)
        assert skill.schedule is not None, "the workshop refuses what has no schedule"
        when = when_words(skill.schedule)
        if not enabled:
            text = f"{name} is off."
        elif skill.is_used:
            text = f"{name} is on: {when}. It is among the jobs within a minute: {SEEN_BY}"
        else:
            text = f"{name} is switched on ({when}), but it is {_state(skill)}."
        return {"name": name, "state": skill.state.value, "text": text}

    async def remove(self, name: str) -> Json:
        """Takes away a skill of the workspace or a stored playbook. Raises SkillRefused."""
        if not await self._workshop.remove(name):
            raise SkillRefused(f"there is no skill {name[:64]!r}, so nothing was removed")
        return await self._removed(name)

    async def put_playbook(self, wanted: Mapping[str, Any]) -> Json:
        """Stores a playbook of the owner, in use at once; what is None stays as it was.

        Raises SkillRefused.
        """
        name = str(wanted["name"])
        known = (await self._afresh()).get(name)
        if known is not None and known.place is not Place.STORED:
            known = None
        playbook = _playbook(name, wanted, known)
        is_new = await self._workshop.put_playbook(playbook, approved=True, origin=SET_BY_OWNER)
        skill = _found(await self._afresh(), name)
        hidden = [one.place.value for one in self._shadowed(await self._shelf.current(), name)]
        warnings = playbook_warnings(playbook)
        if hidden:
            warnings = (f"it is used instead of the {hidden[0]} skill of this name", *warnings)
        done = "stored" if is_new else "changed"
        return {
            "name": name,
            "is_new": is_new,
            "keywords": list(skill.keywords),
            "warnings": list(warnings),
            "text": f"The playbook {name} is {done} and in use. It comes in when a message has one "
            f"of: {', '.join(skill.keywords)}",
        }

    async def remove_playbook(self, name: str) -> Json:
        """Takes away a stored playbook. Raises SkillRefused."""
        if not await self._workshop.remove_playbook(name):
            raise SkillRefused(f"there is no stored playbook {name[:64]!r}: nothing was removed")
        return await self._removed(name)

    async def _removed(self, name: str) -> Json:
        rest = (await self._afresh()).get(name)
        text = f"{name} is removed."
        if rest is not None:
            text += f" Another one of this name is there now: {rest.location}, {_state(rest)}."
        return {"name": name, "text": text}

    # --- in a chat -----------------------------------------------------------------------------

    async def tell(self, message: IncomingMessage, person: Person, *, in_full: bool = False) -> str:
        """What the bot can do here, for `/skills`; the owner alone sees what waits. Names how many
        more there are, and where."""
        shelf = await self._afresh()
        for_owner = person.role is Role.OWNER and not message.is_group
        most = SHOWN_IN_CHAT_MAX if in_full else SHOWN_IN_CHAT
        lines: list[str] = []
        left = 0
        for kind, heading in _HEADINGS.items():
            of_kind = [one for one in shelf.used if kind_of(one) == kind]
            if of_kind:
                lines += ["", heading, *(_chat_line(one, in_full) for one in of_kind[:most])]
            if (more := len(of_kind) - most) > 0:
                lines += [f"and {more} more"]
                left += more
        if left and not in_full:
            lines += ["", f"`{slash(message.address.channel)}skills all` shows all of them."]
        elif left and for_owner:
            lines += ["", "In a terminal, hearthbot skills list shows all of them."]
        lines += ["", *_unused_lines(shelf, for_owner=for_owner)]
        return "\n".join(lines).strip()

    # --- steps ---------------------------------------------------------------------------------

    async def _afresh(self) -> Shelf:
        """Who asks has perhaps just changed a file."""
        self._shelf.dropped()
        return await self._shelf.current()

    @staticmethod
    def _shadowed(shelf: Shelf, name: str) -> list[Skill]:
        return [one for one in shelf.shadowed if one.name == name]


def skill_operations(desk: SkillDesk) -> Mapping[str, Operation]:
    """What is offered on the private socket, and to a command where no bot runs."""

    def asked(do: Callable[[Json], Awaitable[Json]]) -> Operation:
        async def operation(request: Json, emit: Emit) -> Json:
            return await do(request)

        return operation

    return {
        "skills.list": asked(lambda r: desk.listed()),
        "skills.show": asked(lambda r: desk.shown(str(r["name"]))),
        "skills.why": asked(lambda r: desk.why(str(r["text"]))),
        "skills.tested": asked(lambda r: desk.tested(str(r["name"]))),
        "skills.test": asked(lambda r: desk.test(str(r["name"]))),
        "skills.install": asked(
            lambda r: desk.install(str(r["path"]), replace_it=bool(r["replace"]))
        ),
        "skills.approve": asked(lambda r: desk.approve(str(r["name"]), str(r["digest"]))),
        "skills.enable": asked(lambda r: desk.enable(str(r["name"]), enabled=bool(r["enabled"]))),
        "skills.remove": asked(lambda r: desk.remove(str(r["name"]))),
        "skills.playbook.set": asked(desk.put_playbook),
        "skills.playbook.remove": asked(lambda r: desk.remove_playbook(str(r["name"]))),
    }


# --- steps ---------------------------------------------------------------------------------------


def _playbook(name: str, wanted: Mapping[str, Any], known: Skill | None) -> StoredPlaybook:
    def said(key: str, former: Any) -> Any:
        return former if wanted.get(key) is None else wanted[key]

    return StoredPlaybook(
        name=name,
        description=str(said("description", known.description if known else "")),
        keywords=tuple(said("keywords", known.keywords if known else ())),
        text=str(said("text", known.text if known else "")),
        priority=int(said("priority", known.priority if known else 0)),
        required_tools=known.required_tools if known else (),
    )


def _found(shelf: Shelf, name: str) -> Skill:
    skill = shelf.get(name)
    if skill is not None:
        return skill
    wrong = [str(problem) for problem in shelf.problems if problem.skill == name]
    if wrong:
        raise SkillRefused("\n".join([f"The skill {name} is broken, and not used:", *wrong]))
    raise SkillRefused(f"there is no skill {name[:64]!r}; `hearthbot skills list` has all")


def _location(shelf: Shelf, name: str) -> str:
    skill = shelf.get(name)
    return skill.location if skill is not None else ""


def _state(skill: Skill) -> str:
    return (
        state_words(skill, None) if skill.state is not SkillState.QUARANTINED else "in quarantine"
    )


# --- in a chat ---------------------------------------------------------------------------------

_HEADINGS = {
    PLAYBOOK: "Playbooks, which come in when a message is about them:",
    SKILL: "Skills, which I read when one fits:",
    CLOCK: "By the clock:",
}
_KINDS = list(_HEADINGS)


def _chat_line(skill: Skill, in_full: bool) -> str:
    about = skill.description
    chars = CHAT_CHARS_IN_FULL if in_full else CHAT_CHARS
    if len(about) > chars:
        # Some scripts have no blanks to cut at.
        about = (about[:chars].rpartition(" ")[0] or about[:chars]) + " …"
    when = f" ({when_words(skill.schedule)})" if skill.schedule is not None else ""
    return f"• {skill.name}{when} – {about}"


def _unused_lines(shelf: Shelf, *, for_owner: bool) -> list[str]:
    unused = [one for one in shelf.skills if not one.is_used]
    waiting = [one.name for one in unused if one.state is SkillState.QUARANTINED]
    lines = []
    if not shelf.used:
        lines.append("No skill is in use.")
    if for_owner and waiting:
        more = len(waiting) - SHOWN_IN_CHAT
        names = ", ".join(waiting[:SHOWN_IN_CHAT]) + (f" and {more} more" if more > 0 else "")
        lines.append(
            f"Waiting for your approval: {names}. In a terminal: hearthbot skills show "
            f"{waiting[0]}, then hearthbot skills approve {waiting[0]}"
        )
    others = len(unused) - len(waiting) if for_owner else len(unused)
    if others:
        how = "in a terminal, hearthbot skills list shows them" if for_owner else "the owner sees"
        what = "which, and why" if not for_owner else "and says why"
        be = "is" if others == 1 else "are"
        lines.append(f"{others} more {be} not in use: {how} {what}.")
    broken = {problem.skill for problem in shelf.problems if shelf.get(problem.skill) is None}
    if for_owner and broken:
        lines.append(f"{counted(len(broken), 'skill')} cannot be read: hearthbot skills list")
    return lines
