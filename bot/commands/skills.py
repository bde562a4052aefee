"""Skills for their owner: the answers of `hearthbot skills`, as JSON objects, and `/skills`.

Operations are served on the private socket, which is the owner's alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agent.skills.checks import tests_file
from agent.skills.matching import SCORE_MIN, near_misses
from agent.skills.service import SkillService
from agent.skills.skill import Problem, Skill, SkillMode, SkillRefused, SkillSet, SkillState
from agent.skills.why import SkillVerdict, SkillWhy, near_words
from bot.commands.skill_messages import (
    KINDS,
    PLACES,
    approving_words,
    counted,
    state_words,
    when_words,
)
from bot.commands.typed import slash
from bot.rpc import Emit, Operation
from memory.records.messages import IncomingMessage, Role
from memory.records.rows import Person, SkillRecord

Json = dict[str, Any]

SEEN_BY = "hearthbot schedule list"
SHOWN_IN_CHAT = 5
"""Of each kind, the most important first; `/skills all` shows more."""
SHOWN_IN_CHAT_MAX = 40
CHAT_CHARS = 70
CHAT_CHARS_IN_FULL = 100
LISTED_CHARS = 250
NEAR_SHARE = 0.5
"""Of the score that is needed: what reaches so much is worth a word."""


def skill_operations(skills: SkillService) -> Mapping[str, Operation]:
    """What is offered on the private socket, and to a command where no bot runs."""
    asked = {
        "skills.list": _list,
        "skills.show": _show,
        "skills.why": _why,
        "skills.tested": _tested,
        "skills.test": _test,
        "skills.install": _install,
        "skills.approve": _approve,
        "skills.enable": _enable,
        "skills.remove": _remove,
        "skills.playbook.set": _set_playbook,
        "skills.playbook.remove": _remove_playbook,
    }

    def bound(do: Callable[[SkillService, Json], Awaitable[Json]]) -> Operation:
        async def operation(request: Json, emit: Emit) -> Json:
            return await do(skills, request)

        return operation

    return {name: bound(do) for name, do in asked.items()}


# --- looking -----------------------------------------------------------------------------------


async def _list(skills: SkillService, request: Json) -> Json:
    """`skills` by kind and name, `shadowed` (hidden by a stronger one) and `problems`."""
    found = await skills.list()
    kinds = list(SkillMode)
    by_kind = sorted(found.skills.skills, key=lambda one: (kinds.index(one.kind), one.name))
    stronger = {one.name: one.location for one in found.skills.skills}
    broken = [problem for one in found.tests.values() for problem in one.problems]
    return {
        "skills": [
            {**_row(one, found.records.get(one.name)), "tests": len(found.tests[one.name].tests)}
            for one in by_kind
        ],
        "shadowed": [
            {"name": one.name, "location": one.location, "by": stronger[one.name]}
            for one in found.skills.shadowed
        ],
        "problems": _problems((*found.skills.problems, *broken)),
    }


async def _show(skills: SkillService, request: Json) -> Json:
    """Everything about one skill."""
    found = await skills.show(str(request["name"]))
    skill, record = found.skill, found.record
    return {
        **_row(skill, record),
        "kind_words": KINDS[skill.kind],
        "front_matter": _front_matter(skill),
        "text": skill.text,
        "files": [{"name": name, "bytes": size} for name, size in found.files],
        "digest": skill.digest,
        "origin": record.origin if record is not None else "",
        "findings": list(found.findings),
        "approving": approving_words(skill) if skill.state is SkillState.QUARANTINED else "",
        "tests": [{"message": one.message, "match": one.must_match} for one in found.tests.tests],
        "hides": [one.location for one in found.hides],
        "problems": _problems(found.problems),
    }


async def _why(skills: SkillService, request: Json) -> Json:
    """Each skill's `verdict` on a message with reasons, `near` for what came close, the `rules` of
    the settings and what is wrong with rules."""
    text = str(request["text"])
    found = await skills.why(text)
    return {
        "text": text,
        "skills": await asyncio.to_thread(lambda: [_verdict(one, text) for one in found.skills]),
        "rules": [
            {
                "source": one.rule.source,
                "fits": one.fits,
                "reason": one.reason,
                "skills": list(one.rule.skills),
                "plugins": list(one.rule.plugins),
                "instruction": one.rule.instruction,
            }
            for one in found.rules
        ],
        "problems": list(found.problems),
        "score_needed": SCORE_MIN,
    }


async def _tested(skills: SkillService, request: Json) -> Json:
    return {"names": list(await skills.tested(str(request["name"])))}


async def _test(skills: SkillService, request: Json) -> Json:
    name = str(request["name"])
    skill = await skills.find(name)
    tests, results = await skills.test(name)
    return {
        "name": name,
        "file": tests_file(skill),
        "results": [
            {
                "message": one.test.message,
                "line": one.test.line,
                "must_match": one.test.must_match,
                "passed": one.passed,
                "reasons": list(one.reasons),
            }
            for one in results
        ],
        "problems": _problems(tests.problems),
    }


# --- changing: `text` says what was done, `warnings` what to look at ----------------------------


async def _install(skills: SkillService, request: Json) -> Json:
    made = await skills.install(Path(str(request["path"])), replace_it=bool(request["replace"]))
    return {
        **{key: value for key, value in asdict(made).items() if key != "digest"},
        "text": f"{made.name} is installed ({counted(len(made.files), 'file')}), and in "
        "quarantine: it is not used until you approve it.\n"
        f"Look at it: hearthbot skills show {made.name}\n"
        f"Approve it: hearthbot skills approve {made.name}",
    }


async def _approve(skills: SkillService, request: Json) -> Json:
    name = str(request["name"])
    before = await skills.find(name)
    skill = await skills.approve(name, digest=str(request["digest"]))
    needed = before.state is SkillState.QUARANTINED
    text = f"{name} is approved." if needed else f"{name} needs no approval."
    if skill.state is SkillState.OFF:
        text += f" It runs by the clock once it is enabled: hearthbot skills enable {name}"
    else:
        text += f" It is {_state(skill)}."
    return {"name": name, "state": skill.state.value, "text": text}


async def _enable(skills: SkillService, request: Json) -> Json:
    name, enabled = str(request["name"]), bool(request["enabled"])
    skill = await skills.enable(name, enabled=enabled)
    assert skill.schedule is not None, "what has no schedule is refused"
    when = when_words(skill.schedule)
    if not enabled:
        text = f"{name} is off."
    elif skill.is_used:
        text = f"{name} is on: {when}. It is among the jobs within a minute: {SEEN_BY}"
    else:
        text = f"{name} is switched on ({when}), but it is {_state(skill)}."
    return {"name": name, "state": skill.state.value, "text": text}


async def _remove(skills: SkillService, request: Json) -> Json:
    name = str(request["name"])
    if not await skills.remove(name):
        raise SkillRefused(f"there is no skill {name[:64]!r}, so nothing was removed")
    return await _removed(skills, name)


async def _set_playbook(skills: SkillService, request: Json) -> Json:
    """What is None stays as it was."""
    name = str(request["name"])
    wanted = {key: request.get(key) for key in ("description", "keywords", "text", "priority")}
    skill, is_new, warnings = await skills.set_playbook(name, **wanted)
    done = "stored" if is_new else "changed"
    return {
        "name": name,
        "is_new": is_new,
        "keywords": list(skill.keywords),
        "warnings": list(warnings),
        "text": f"The playbook {name} is {done} and in use. It comes in when a message has one "
        f"of: {', '.join(skill.keywords)}",
    }


async def _remove_playbook(skills: SkillService, request: Json) -> Json:
    name = str(request["name"])
    if not await skills.remove_playbook(name):
        raise SkillRefused(f"there is no stored playbook {name[:64]!r}: nothing was removed")
    return await _removed(skills, name)


async def _removed(skills: SkillService, name: str) -> Json:
    rest = (await skills.now()).get(name)
    text = f"{name} is removed."
    if rest is not None:
        text += f" Another one of this name is there now: {rest.location}, {_state(rest)}."
    return {"name": name, "text": text}


# --- pieces ------------------------------------------------------------------------------------


def _row(skill: Skill, record: SkillRecord | None) -> Json:
    """What the list shows of a skill."""
    short = len(skill.description) <= LISTED_CHARS
    return {
        "name": skill.name,
        "description": skill.description if short else skill.description[:LISTED_CHARS] + "…",
        "kind": skill.kind.value,
        "place": PLACES[skill.place],
        "location": skill.location,
        "priority": skill.priority,
        "state": skill.state.value,
        "reason": state_words(skill, record),
        "when": when_words(skill.schedule) if skill.schedule is not None else "",
    }


def _front_matter(skill: Skill) -> Json:
    """What the file sets, without what it leaves out."""
    schedule = skill.schedule
    said = {
        "description": skill.description,
        "keywords": list(skill.keywords),
        "patterns": list(skill.patterns),
        "instruction": skill.instruction,
        "auto_invoke": [{"tool": one.tool, "args": dict(one.args)} for one in skill.auto_invoke],
        "required_tools": list(skill.required_tools),
        "allowed_tools": list(skill.allowed_tools) if skill.allowed_tools is not None else None,
        "max_steps": skill.max_steps,
        "no_tools": skill.no_tools,
        "full_context": skill.full_context,
        "schedule": when_words(schedule) if schedule is not None else "",
        "notify": schedule.notify if schedule is not None else "",
        "deliver_to": schedule.deliver_to if schedule is not None else "",
        "missing": list(skill.missing),
        "version": skill.version,
        "license": skill.license,
        "compatibility": skill.compatibility,
    }
    kept = {"allowed_tools"} if skill.allowed_tools is not None else set()
    return {key: value for key, value in said.items() if value or key in kept}


def _problems(problems: Iterable[Problem]) -> list[Json]:
    """Each problem once."""
    keys = ("skill", "file", "line", "severity", "text")
    return [{key: getattr(one, key) for key in keys} for one in dict.fromkeys(problems)]


def _verdict(one: SkillWhy, text: str) -> Json:
    """What became of a skill for a message. `near` says how one that was not picked came close."""
    return {
        "name": one.skill.name,
        "kind": one.skill.kind.value,
        "place": PLACES[one.skill.place],
        "state": one.skill.state.value,
        "verdict": one.verdict.value,
        "reasons": list(one.reasons),
        "near": _near(one, text),
        "score": one.score,
    }


def _near(one: SkillWhy, text: str) -> list[str]:
    if one.verdict is SkillVerdict.PICKED:
        return []
    if one.verdict is SkillVerdict.CANNOT:
        return list(one.reasons[1:])
    if one.skill.is_playbook:
        return [near_words(miss) for miss in near_misses(one.skill.keywords, text)]
    if one.score is not None and one.score >= NEAR_SHARE * SCORE_MIN:
        return list(one.reasons[:1])
    return []


def _state(skill: Skill) -> str:
    is_waiting = skill.state is SkillState.QUARANTINED
    return "in quarantine" if is_waiting else state_words(skill, None)


# --- in a chat ---------------------------------------------------------------------------------

_HEADINGS = {
    SkillMode.PLAYBOOK: "Playbooks, which come in when a message is about them:",
    SkillMode.SKILL: "Skills, which I read when one fits:",
    SkillMode.CLOCK: "By the clock:",
}


async def skills_reply(
    service: SkillService, message: IncomingMessage, person: Person, *, in_full: bool = False
) -> str:
    """What the bot can do here, for `/skills`; the owner alone sees what waits. Names how many
    more there are, and where."""
    skills = await service.now()
    for_owner = person.role is Role.OWNER and not message.is_group
    most = SHOWN_IN_CHAT_MAX if in_full else SHOWN_IN_CHAT
    chars = CHAT_CHARS_IN_FULL if in_full else CHAT_CHARS
    lines: list[str] = []
    left = 0
    for kind, heading in _HEADINGS.items():
        of_kind = [one for one in skills.used if one.kind is kind]
        if of_kind:
            lines += ["", heading, *(_chat_line(one, chars) for one in of_kind[:most])]
        if (more := len(of_kind) - most) > 0:
            lines += [f"and {more} more"]
            left += more
    if left and not in_full:
        lines += ["", f"`{slash(message.address.channel)}skills all` shows all of them."]
    elif left and for_owner:
        lines += ["", "In a terminal, hearthbot skills list shows all of them."]
    lines += ["", *_unused_lines(skills, for_owner=for_owner)]
    return "\n".join(lines).strip()


def _chat_line(skill: Skill, chars: int) -> str:
    about = skill.description
    if len(about) > chars:
        # Some scripts have no blanks to cut at.
        about = (about[:chars].rpartition(" ")[0] or about[:chars]) + " …"
    when = f" ({when_words(skill.schedule)})" if skill.schedule is not None else ""
    return f"• {skill.name}{when} – {about}"


def _unused_lines(skills: SkillSet, *, for_owner: bool) -> list[str]:
    unused = [one for one in skills.skills if not one.is_used]
    waiting = [one.name for one in unused if one.state is SkillState.QUARANTINED]
    lines = []
    if not skills.used:
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
    broken = {problem.skill for problem in skills.problems if skills.get(problem.skill) is None}
    if for_owner and broken:
        lines.append(f"{counted(len(broken), 'skill')} cannot be read: hearthbot skills list")
    return lines
