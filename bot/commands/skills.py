"""`/skills`: what the bot can do here, and for its owner what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.skills.skill import Skill, SkillMode, SkillPlace, SkillSchedule, SkillSet, SkillState
from bot.markup.command_text import slash
from memory.records.messages import IncomingMessage, Role
from memory.records.rows import Person, SkillRecord

if TYPE_CHECKING:
    from agent.skills.service import SkillService

SHOWN_IN_CHAT = 5
"""Of each kind, the most important first; `/skills all` shows more."""
SHOWN_IN_CHAT_MAX = 40
CHAT_CHARS = 70
CHAT_CHARS_IN_FULL = 100


_HEADINGS = {
    SkillMode.PLAYBOOK: "Playbooks, which come in when a message is about them:",
    SkillMode.SKILL: "Skills, which I read when one fits:",
    SkillMode.CLOCK: "By the clock:",
}


async def skills_reply(
    service: SkillService, message: IncomingMessage, person: Person, *, in_full: bool = False
) -> str:
    """Return what the bot can do here, for `/skills`; the owner alone sees what waits. Name how
    many more there are, and where."""
    skills = await service.now()
    for_owner = person.role is Role.OWNER and not message.is_group
    most = SHOWN_IN_CHAT_MAX if in_full else SHOWN_IN_CHAT
    chars = CHAT_CHARS_IN_FULL if in_full else CHAT_CHARS
    lines: list[str] = []
    left = 0
    for kind, heading in _HEADINGS.items():
        of_kind = [one for one in skills.used if one.kind is kind]
        if of_kind:
            lines += ["", heading]
            for one in of_kind[:most]:
                about = one.description
                if len(about) > chars:
                    # Some scripts have no blanks to cut at.
                    about = (about[:chars].rpartition(" ")[0] or about[:chars]) + " …"
                when = f" ({when_words(one.schedule)})" if one.schedule is not None else ""
                lines.append(f"• {one.name}{when} – {about}")
        if (more := len(of_kind) - most) > 0:
            lines += [f"and {more} more"]
            left += more
    if left and not in_full:
        lines += ["", f"`{slash(message.address.channel)}skills all` shows all of them."]
    elif left and for_owner:
        lines += ["", "In a terminal, hearthbot skills list shows all of them."]
    lines += ["", *_unused_lines(skills, for_owner=for_owner)]
    return "\n".join(lines).strip()


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


# --- words, for chat and terminal alike ---------------------------------------------------------

PLACES = {
    SkillPlace.WORKSPACE: "workspace",
    SkillPlace.STORED: "database",
    SkillPlace.USER: "shared folder",
    SkillPlace.SHIPPED: "shipped",
}
KINDS = {
    SkillMode.PLAYBOOK: "a playbook: its instructions join the prompt when a message has one of "
    "its keywords",
    SkillMode.SKILL: "a skill: the prompt names it, and the assistant reads it when it fits",
    SkillMode.CLOCK: "runs by the clock, once it is enabled",
}
"""For somebody who has read no page about it."""


def state_words(skill: Skill, record: SkillRecord | None) -> str:
    """Return whether it is used; if not, why, and what to do about it."""
    match skill.state:
        case SkillState.USABLE:
            return "in use"
        case SkillState.QUARANTINED:
            if record is None:
                why = "what was decided about it cannot be read"
            elif record.approved:
                why = "its files changed since it was approved"
            else:
                why = record.origin or "it is new"
            return f"waits for your approval ({why})"
        case SkillState.MISSING:
            return f"not usable here: {'; '.join(skill.missing) or 'something is missing'}"
        case SkillState.OFF:
            return "off"


def when_words(schedule: SkillSchedule) -> str:
    """Return `0 6 * * * (Europe/Berlin)`, `every 15 minutes`, `at 2026-05-01T09:00`."""
    if schedule.cron:
        when = schedule.cron
    elif schedule.interval_minutes:
        hours, minutes = divmod(schedule.interval_minutes, 60)
        every = counted(schedule.interval_minutes, "minute") if minutes else counted(hours, "hour")
        when = f"every {every}"
    else:
        when = f"at {schedule.at}"
    return f"{when} ({schedule.timezone})" if schedule.timezone else when


def approving_words(skill: Skill) -> str:
    """Return what the owner says yes to."""
    what = {
        SkillMode.PLAYBOOK: "its instructions join the prompt whenever a message has one of its "
        "keywords",
        SkillMode.SKILL: "its description stands in every prompt, and its instructions are "
        "followed when it fits",
        SkillMode.CLOCK: "it can be enabled, and then its instructions run by themselves",
    }[skill.kind]
    return (
        f"Approving it means: {what}, for everybody who may talk with the bot. They count as your "
        "own words. Approved is exactly what it holds now: after any change it waits again."
    )


def counted(count: int, one: str, many: str = "") -> str:
    """Return `1 skill`, `2 skills`."""
    return f"{count} {one if count == 1 else many or one + 's'}"
