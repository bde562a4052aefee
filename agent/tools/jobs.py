"""The tool schedule_job: something that is done later, or again and again, by itself.

A person always agrees first: they are shown how the time was read, when it runs next, what it does
and where it goes. One call of a tool is agreed to with exactly its arguments, and then runs without
a model (SPEC §11).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import Field, field_validator

from agent.policy.approval import Allowed, AskFirst, NotAllowed, Policy, Verdict, decide
from agent.policy.presentation import is_whole, needs_of, values_of
from agent.policy.tool_access import MAKES_JOBS, UNATTENDED_ALONE
from agent.tools.arguments import Arguments, ArgumentsWrong, parse_arguments
from agent.tools.events import (
    IfMissed,
    InQuiet,
    Readings,
    ScheduleRefused,
    call_of,
    read_rows,
    require_member,
    rule_rows,
    rules_of,
    saved_words,
)
from agent.tools.tool import Caller, Effect, Needs, Tool, ToolCard, Trust
from memory.records.errors import AssistantError, StorageError
from memory.records.job_specs import At
from memory.records.jobs import JobKind, What, WhenQuiet
from memory.records.messages import Role
from memory.records.schedule import JobBook, JobWish

TEXT_CHARS_MAX = 4_000
ARGUMENTS_CHARS_MAX = 8_000

ASKS_ONCE = "it is done later, by itself"
ASKS_OFTEN = "it runs again and again by itself"
TOO_LONG = (
    "the arguments are too long to be shown whole to the person, who has to agree to exactly them: "
    "put what is long into a file, and name that"
)

NOT_ALONE = frozenset({"schedule", "discovery", "agents"})
"""Groups whose tools make no sense as the one call of a job."""


class ScheduleArguments(Arguments):
    """Of schedule_job: one of instructions, message, skill and tool."""

    when: Annotated[
        str,
        Field(
            min_length=1,
            max_length=300,
            description="in the person's words, ISO, or cron text: 'every weekday at 8'",
        ),
    ]
    instructions: Annotated[
        str,
        Field(
            default="",
            max_length=TEXT_CHARS_MAX,
            description="what you shall do each time; nobody is there then",
        ),
    ]
    message: Annotated[
        str, Field(default="", max_length=TEXT_CHARS_MAX, description="a fixed text to send")
    ]
    skill: Annotated[str, Field(default="", max_length=100, description="a skill to follow")]
    tool: Annotated[str, Field(default="", max_length=128, description="one tool to call")]
    arguments: Annotated[
        dict[str, Any], Field(default_factory=dict, description="the arguments of that tool")
    ]
    name: Annotated[str, Field(default="", max_length=80)]
    missed: IfMissed
    quiet: InQuiet

    @field_validator("arguments", mode="before")
    @classmethod
    def _read(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value or "{}")
        except (ValueError, RecursionError):
            return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What a job may be made of. `reached` finds a tool that a run may have, `skill` raises
    AssistantError for one that cannot be used."""

    reached: Callable[[str, Caller], Tool | None]
    skill: Callable[[str], Awaitable[object]]
    policy: Policy


class ScheduleJob(Tool):
    """Makes a job, once a person agreed to exactly that."""

    card = ToolCard(
        name="schedule_job",
        description=(
            "Have something done later or again and again by itself: instructions for you, a fixed "
            "message, a skill, or one call of a tool; its result goes to this chat. The person is "
            "asked first. For one reminder use remind_me."
        ),
        arguments=ScheduleArguments,
        group="schedule",
        effect=Effect.PERSON,
        redo="idempotent",
        trust=Trust.OURS,
        status="scheduling it …",
    )

    def __init__(self, book: JobBook, readings: Readings, abilities: Abilities) -> None:
        self._book = book
        self._readings = readings
        self._abilities = abilities

    def needs(self, arguments: ScheduleArguments, caller: Caller) -> Needs:
        """See Tool: it is always asked about, each time; of members their owner is asked, but
        for what is their own. Raises ScheduleRefused for what cannot be kept."""
        require_member(caller)
        kind, what = self._what(arguments, caller)
        time = self._readings.of(arguments, caller, arguments.when)
        rows = (
            *read_rows(time, self._book.zone(caller.person_id)),
            *_does(kind, what),
            *rule_rows(arguments.missed, arguments.quiet),
            f"goes to: {'this group' if caller.is_group else 'this chat'} ({caller.address.key})",
        )
        if kind is JobKind.TOOL and not is_whole(values_of(arguments), says=rows):
            raise ScheduleRefused(TOO_LONG)
        asks = ASKS_ONCE if isinstance(time.when, At) else ASKS_OFTEN
        is_own = self._is_own(kind, what, caller)
        return Needs(asks=asks, is_own=is_own, once_only=True, shows=rows)

    async def cost(self, arguments: ScheduleArguments, caller: Caller) -> str:
        """See Tool."""
        try:
            kind, what = self._what(arguments, caller)
            time = self._readings.of(arguments, caller, arguments.when)
        except AssistantError:
            return ""  # `needs` says why
        wish = JobWish(
            person_id=caller.person_id,
            kind=kind,
            what=what,
            time=time,
            deliver_to=caller.address.key,
        )
        told = await self._book.foretell(wish)
        return f"takes: {told}" if told else ""

    async def run(self, arguments: ScheduleArguments, caller: Caller) -> str:
        """How it was read, and when it runs next, as it is kept."""
        require_member(caller)
        kind, what = self._what(arguments, caller)
        time = self._readings.of(arguments, caller, arguments.when)
        if kind is JobKind.SKILL:
            await self._abilities.skill(what.skill)
        missed, quiet = rules_of(arguments.missed, arguments.quiet)
        job = await self._book.add(
            JobWish(
                person_id=caller.person_id,
                kind=kind,
                what=what,
                time=time,
                deliver_to=caller.address.key,
                name=arguments.name.strip(),
                missed=missed,
                quiet=quiet or WhenQuiet.DEFER,
                run_id=call_of(arguments, caller, self.card.name),
            )
        )
        return f"Saved as {job.key} ({job.new.name}). {saved_words(self._book, job, time)}"

    def _what(self, arguments: ScheduleArguments, caller: Caller) -> tuple[JobKind, What]:
        """Raises ScheduleRefused, with how it can be."""
        given = {
            "instructions": arguments.instructions.strip(),
            "message": arguments.message.strip(),
            "skill": arguments.skill.strip(),
            "tool": arguments.tool.strip(),
        }
        named = [name for name, value in given.items() if value]
        if "skill" in named and named in (["instructions", "skill"], ["skill"]):
            text = given["instructions"]
            return JobKind.SKILL, What(skill=given["skill"], text=text)
        if len(named) != 1:
            raise ScheduleRefused(
                "give exactly one of instructions, message, skill and tool (a skill may have "
                f"instructions besides), not {' and '.join(named) or 'none'}"
            )
        if arguments.arguments and "tool" not in named:
            raise ScheduleRefused("arguments are for a tool; name it")
        if "tool" in named:
            return JobKind.TOOL, self._call(given["tool"], arguments.arguments, caller)
        if "message" in named:
            return JobKind.MESSAGE, What(text=given["message"], outside=caller.tainted)
        return JobKind.AGENT, What(text=given["instructions"])

    def _call(self, name: str, arguments: Mapping[str, Any], caller: Caller) -> What:
        """One call that this person may have made when nobody is there. Raises ScheduleRefused."""
        later = _later(caller)
        tool = self._abilities.reached(name, later)
        fits = (
            tool is not None
            and tool.card.group not in NOT_ALONE
            and name not in MAKES_JOBS | UNATTENDED_ALONE
            and tool.card.group != "agents"
        )
        if tool is None or not fits:
            raise ScheduleRefused(
                f"{name[:60]!r} is no tool that a job may call by itself; use instructions"
            )
        text = json.dumps(arguments, ensure_ascii=False)
        if len(text) > ARGUMENTS_CHARS_MAX:
            raise ScheduleRefused(
                f"the arguments have more than {ARGUMENTS_CHARS_MAX:,} characters"
            )
        verdict = self._verdict(tool, text, later)
        if isinstance(verdict, NotAllowed):
            raise ScheduleRefused(f"{name} cannot be scheduled: {verdict.why}")
        return What(tool=name, arguments=text)

    def _verdict(self, tool: Tool, arguments: str, later: Caller) -> Verdict:
        """Targets are shown to the person, word for word: nothing has to be read before."""
        needs, policy = _needs_of(tool, arguments, later), self._abilities.policy
        return decide(policy, tool.card, needs, later, seen=lambda target: True, always=False)

    def _is_own(self, kind: JobKind, what: What, caller: Caller) -> bool:
        """Whether it concerns the member who wishes for it alone, who then agrees to it themselves
        (SPEC §4): it goes to their own chat, and is no call that acts outside or that the owner has
        to agree to. Instructions are followed with that member's rights, and ask as in a chat."""
        if caller.role is not Role.MEMBER or caller.is_group or caller.unattended:
            return False
        if kind is not JobKind.TOOL:
            return True
        later = _later(caller)
        tool = self._abilities.reached(what.tool, later)
        if tool is None or tool.card.effect not in {Effect.NONE, Effect.PERSON}:
            return False
        verdict = self._verdict(tool, what.arguments, later)
        return isinstance(verdict, Allowed) or (
            isinstance(verdict, AskFirst) and not verdict.owner_alone
        )


def _later(caller: Caller) -> Caller:
    """The same person when nobody is there."""
    return replace(caller, unattended=True, makes_jobs=False)


def _needs_of(tool: Tool, arguments: str, caller: Caller) -> Needs:
    try:
        parsed = parse_arguments(tool.card.arguments, arguments)
    except ArgumentsWrong as error:
        raise ScheduleRefused(f"the arguments of {tool.card.name} are wrong: {error}") from error
    try:
        return needs_of(tool, parsed, caller)
    except StorageError:
        raise
    except AssistantError as error:
        raise ScheduleRefused(f"{tool.card.name}: {error}") from error


def _does(kind: JobKind, what: What) -> list[str]:
    match kind:
        case JobKind.MESSAGE:
            return [f"sends: {_line(what.text)}"]
        case JobKind.SKILL:
            return [f"follows the skill: {what.skill}"]
        case JobKind.TOOL:
            return [f"calls: {what.tool} {what.arguments}"]
        case _:
            return [f"follows: {_line(what.text)}"]


def _line(text: str) -> str:
    """The beginning; all of it stands among the arguments, which are shown too."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 200 else f"{flat[:200]}…"
