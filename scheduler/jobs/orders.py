"""All jobs of the bot, as its owner handles them on the command line: to look at, to change, and to
see beforehand what they will do. Called by `bot.commands.job_service`; what one person does with
their own jobs is `scheduler.jobs.clerk`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol
from zoneinfo import ZoneInfo

from agent.skills.skill import SkillState
from memory.records.errors import Permanent
from memory.records.jobs import (
    BrokenJob,
    Due,
    Job,
    JobKind,
    JobRun,
    JobStore,
    Missed,
    SetBy,
    Taken,
    Tellings,
    WhenQuiet,
    list_name,
)
from memory.records.messages import ConversationId, JobOrder, PersonId, TurnInput
from memory.records.ports import Clock
from memory.records.schedule import Ahead, JobWish, Pace, RunCost, TimeRead
from scheduler.clock.timetable import Kind, upcoming
from scheduler.jobs.forecast import Listener, Rules, Span, ahead, pace
from scheduler.jobs.service import Book, JobRefused, reading_of, time_read, wanted
from scheduler.jobs.skill_jobs import Shelves
from scheduler.kinds.agent_turn import (
    LIST_CHARS_MAX,
    AgentKind,
    SkillGone,
    SkillKind,
    SkillWork,
    ToolKind,
    Turns,
)
from scheduler.kinds.message import Hearing
from scheduler.notify.quiet_hours import QuietHours
from scheduler.notify.trivial import has_tasks


class Runs(Protocol):
    """Runs a job beside its times; `scheduler.clock.timetable.Timetable` is one."""

    async def run_now(self, job: Job) -> Taken | None: ...


class NeedsBot(Permanent):
    """Only a running bot can do this."""


class Orders:
    """Looks at jobs and changes them, whoever they belong to. Raises JobRefused, StorageError."""

    def __init__(
        self, book: Book, store: JobStore, *, clock: Clock, timetable: Runs | None = None
    ) -> None:
        """Without a `timetable` no bot runs here, and none is run by hand."""
        self._book = book
        self._store = store
        self._clock = clock
        self._timetable = timetable

    async def of(self, person_id: PersonId | None = None) -> Sequence[Job]:
        """Of a person (or all), those that are over left out."""
        return await self._book.of(person_id)

    async def broken(self) -> Sequence[BrokenJob]:
        """Rows that cannot be read."""
        return await self._store.broken()

    async def find(self, name: str) -> Job:
        """By its key, or how its name begins."""
        return await self._book.find(None, name)

    async def runs(self, job: Job, *, limit: int) -> Sequence[JobRun]:
        """Its newest runs."""
        return await self._book.runs(job, limit=limit)

    def read(self, person_id: PersonId, text: str) -> TimeRead:
        """How a time is read, with its next runs. Nothing is kept."""
        return time_read(self._book.read_or_refuse(person_id, text))

    async def require_free(self, person_id: PersonId, name: str, *, but: int | None = None) -> None:
        """Raises JobRefused with the job that has this name, if it is another one than `but`."""
        await self._book.require_free(person_id, name, but=but)

    async def add(self, wish: JobWish) -> Job:
        """Keeps one."""
        return await self._book.add(wanted(wish))

    def preview(self, wish: JobWish) -> Job:
        """The job that it would be. Raises JobRefused."""
        return self._book.preview(wanted(wish))

    async def move(self, job: Job, time: TimeRead) -> Job:
        """Gives it other times."""
        _must_be_a_persons(job, "times")
        return await self._book.move(job, reading_of(time))

    async def reword(self, job: Job, text: str) -> Job:
        """Gives it other words."""
        _must_be_a_persons(job, "words")
        return await self._book.reword(job, text)

    async def rule(
        self, job: Job, *, name: str, missed: Missed | None, quiet: WhenQuiet | None
    ) -> Job:
        """Gives it another name or other rules."""
        _must_be_a_persons(job, "rules")
        return await self._book.rule(job, name=name, missed=missed, quiet=quiet)

    async def pause(self, job: Job) -> Job:
        """Stops it until it is resumed."""
        return await self._book.pause(job)

    async def resume(self, job: Job) -> Job:
        """Lets it go on from now."""
        return await self._book.resume(job)

    async def remove(self, job: Job) -> None:
        """Drops it with its history."""
        if job.new.set_by is SetBy.SKILL and job.enabled:
            raise JobRefused(
                f"{job.key} comes from the skill {job.new.what.skill} and would come again. "
                f"Switch that off: hearthbot skills disable {job.new.what.skill}"
            )
        await self._book.remove(job)

    async def run(self, job: Job) -> Taken | None:
        """Runs it now, beside its times. Raises NeedsBot."""
        if self._timetable is None:
            raise NeedsBot("No bot is running on this home, and only a running one runs jobs.")
        return await self._timetable.run_now(job)

    def once_resumed(self, job: Job) -> Due | None:
        """When a job that stands still would run next if it were resumed now; None: never."""
        return self._book.once_resumed(job)

    def next_runs(self, job: Job, *, n: int, after: datetime | None = None) -> Sequence[Due]:
        """The next due times of a job, within its limits; as if it were on, where it stands still.
        Raises ZoneUnknown, CronWrong."""
        if job.next is None:
            return ()
        new, now = job.new, self._clock.now()
        left = n if new.max_runs is None else min(n, max(new.max_runs - job.runs, 1))
        if after is not None:
            found = upcoming(new.when, after=after, n=left)
        elif job.enabled and job.next.at_ms >= _ms(now):
            later = upcoming(new.when, after=_moment(job.next.at_ms), n=left - 1)
            found = (job.next, *later)
        else:
            found = upcoming(new.when, after=now, n=left)
        return [due for due in found if new.expires_ms is None or due.at_ms < new.expires_ms]


def _must_be_a_persons(job: Job, what: str) -> None:
    if job.new.set_by is SetBy.SKILL:
        raise JobRefused(
            f"The {what} of {job.key} stand in its skill: change the SKILL.md of "
            f"{job.new.what.skill}."
        )
    if job.new.kind is JobKind.HEARTBEAT:
        raise JobRefused(
            f"The {what} of the heartbeat are in the settings ([heartbeat]) and in HEARTBEAT.md."
        )


# --- looking ahead -----------------------------------------------------------------------------


class Outlook:
    """Looks ahead at all jobs. Raises StorageError."""

    def __init__(
        self,
        store: JobStore,
        tellings: Tellings,
        zone: Callable[[PersonId], ZoneInfo],
        *,
        clock: Clock,
        rules: Callable[[], Awaitable[Rules]],
    ) -> None:
        """`rules` as they are now: the list of the heartbeat is looked at each time."""
        self._store = store
        self._tellings = tellings
        self._zone = zone
        self._clock = clock
        self._rules = rules

    async def jobs(self) -> Sequence[Job]:
        """All that may fire."""
        kept = await self._store.kept()
        return [job for job in kept if job.enabled and job.next is not None]

    async def ahead(
        self, *, since: datetime | None, days: float, costs: Mapping[int, RunCost]
    ) -> Ahead:
        """What would fire from `since` (now) on. Raises JobRefused for a time that is over."""
        now = self._clock.now()
        begin = max(since, now) if since is not None else now
        if since is not None and since < now - timedelta(minutes=1):
            raise JobRefused("What is over cannot be looked at ahead: --from takes a time to come.")
        try:
            until = begin + timedelta(days=days)
        except OverflowError:
            raise JobRefused(
                "The calendar ends before that: --from takes an earlier day."
            ) from None
        jobs = await self.jobs()
        listeners = {one: await self._listener(one) for one in {j.new.person_id for j in jobs}}
        span = Span(now=now, since=begin, until=until)
        return ahead(jobs, span, listeners, rules=await self._rules(), costs=costs)

    async def told_at(self, job: Job, dues: Sequence[Due]) -> Ahead:
        """What would become of these due times of one job alone."""
        if not dues:
            return Ahead()
        now = self._clock.now()
        alone = replace(job, enabled=True, next=dues[0], not_before_ms=0)
        span = Span(now=now, since=now, until=_moment(dues[-1].at_ms) + timedelta(seconds=1))
        listeners = {job.new.person_id: await self._listener(job.new.person_id)}
        rules = replace(await self._rules(), heartbeats=True)
        return ahead([alone], span, listeners, rules=rules, costs={})

    def pace(self, job: Job, cost: RunCost | None) -> Pace:
        """How often it runs a day, and what that takes. Raises ZoneUnknown, CronWrong."""
        return pace(job.new.when, cost, now=self._clock.now())

    async def _listener(self, person_id: PersonId) -> Listener:
        zone, hours = self._zone(person_id), await self._tellings.quiet_hours(person_id)
        midnight = self._clock.now().astimezone(zone).replace(hour=0, minute=0, second=0)
        told = await self._tellings.count(person_id, since_ms=_ms(midnight))
        quiet = None if hours is None else QuietHours(from_minute=hours[0], to_minute=hours[1])
        return Listener(zone=zone, quiet=quiet, told_today=told)


# --- the turn of a job, without running it ------------------------------------------------------


class BeatLists:
    """HEARTBEAT.md of each agent, read and never written."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace

    async def text(self, agent: str) -> str:
        """Empty where there is none."""
        return await asyncio.to_thread(self._read, agent)

    async def have_tasks(self, agents: Iterable[str]) -> bool:
        """Whether there is anything to look at for one of them."""
        return any([has_tasks(await self.text(agent)) for agent in agents])

    def _read(self, agent: str) -> str:
        path = self._workspace / list_name(agent)
        try:
            text = path.read_text(encoding="utf-8-sig", errors="replace")
        except OSError:
            return ""
        return text[:LIST_CHARS_MAX]


class Nowhere:
    """Implements `scheduler.kinds.agent_turn.OpensConversations`: opens none."""

    async def start_new(self, lane: str) -> ConversationId:
        """No conversation."""
        return ConversationId("")


class _Readable:
    """Implements `scheduler.kinds.agent_turn.Skills`: also one that is not enabled yet, so that its
    cost can be told before it is."""

    def __init__(self, shelf: Shelves) -> None:
        self._shelf = shelf

    async def work(self, name: str) -> SkillWork:
        """Raises SkillGone."""
        skill = (await self._shelf.current()).get(name)
        if skill is None or skill.state not in {SkillState.USABLE, SkillState.OFF}:
            raise SkillGone(f"the skill {name} is not there, or not to be used")
        return SkillWork(
            text=skill.text.strip(),
            full_context=skill.full_context,
            no_tools=skill.no_tools,
            required_tools=skill.required_tools,
            max_steps=skill.max_steps or 0,
        )


class JobTurns:
    """Makes the turn that a job would run, with no effect."""

    def __init__(
        self, hearing: Hearing, shelf: Shelves, beat_list: Callable[[str], Awaitable[str]]
    ) -> None:
        """`beat_list` is the text of an agent's HEARTBEAT.md."""
        self._turns = Turns(hearing, Nowhere())
        self._beat_list = beat_list
        self._kinds: Mapping[JobKind, Kind] = {
            JobKind.AGENT: AgentKind(self._turns),
            JobKind.SKILL: SkillKind(self._turns, _Readable(shelf)),
            JobKind.TOOL: ToolKind(self._turns),
        }

    async def turn(self, job: Job) -> TurnInput | None:
        """None for one that sends a fixed text. Raises TargetGone, SkillGone."""
        due = job.next or Due(slot="now", at_ms=0)
        if job.new.kind is JobKind.MESSAGE:
            return None
        if job.new.kind is JobKind.HEARTBEAT:
            order = JobOrder(job_id=job.id, slot=due.slot, name=job.new.name, is_heartbeat=True)
            taking = await self._turns.taking(job, due, await self._beat_list(job.new.agent), order)
        else:
            taking = await self._kinds[job.new.kind](job, due, late_s=0)
        assert taking.run is not None, "what is no message is a turn"
        return TurnInput.from_json(taking.run.payload)


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
