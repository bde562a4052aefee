"""What is said about skills in plain words: by `hearthbot skills` and by `/skills`. Pure."""

from __future__ import annotations

from agent.skills.skill import Skill, SkillMode, SkillPlace, SkillSchedule, SkillState
from memory.records.rows import SkillRecord

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
    """Whether it is used; if not, why, and what to do about it."""
    match skill.state:
        case SkillState.USABLE:
            return "in use"
        case SkillState.QUARANTINED:
            return f"waits for your approval ({_waits_because(record)})"
        case SkillState.MISSING:
            return f"not usable here: {'; '.join(skill.missing) or 'something is missing'}"
        case SkillState.OFF:
            return "off"


def _waits_because(record: SkillRecord | None) -> str:
    if record is None:
        return "what was decided about it cannot be read"
    if record.approved:
        return "its files changed since it was approved"
    return record.origin or "it is new"


def when_words(schedule: SkillSchedule) -> str:
    """`0 6 * * * (Europe/Berlin)`, `every 15 minutes`, `at 2026-05-01T09:00`."""
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
    """What the owner says yes to."""
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
    """`1 skill`, `2 skills`."""
    return f"{count} {one if count == 1 else many or one + 's'}"
