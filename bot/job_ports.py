"""What the desk of jobs needs of others: `scheduler` and `agent` implement it. See `bot.jobs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from zoneinfo import ZoneInfo

from agent.foreseen import Ahead, Pace, RunCost
from agent.jobbook import JobWish, TimeRead
from agent.messages import PersonId, TurnInput
from agent.rehearsing import Heard, Rehearsal
from agent.scheduled import BrokenJob, Due, Job, JobRun, Missed, Taken, WhenQuiet


class JobOrders(Protocol):
    """Looks at all jobs and changes them; `scheduler.orders.Orders` is one. Raises Permanent with a
    sentence for what cannot be, StorageError."""

    async def of(self, person_id: PersonId | None = None) -> Sequence[Job]: ...
    async def broken(self) -> Sequence[BrokenJob]: ...
    async def find(self, name: str) -> Job: ...
    async def runs(self, job: Job, *, limit: int) -> Sequence[JobRun]: ...
    def read(self, person_id: PersonId, text: str) -> TimeRead: ...
    async def require_free(
        self, person_id: PersonId, name: str, *, but: int | None = None
    ) -> None: ...
    async def add(self, wish: JobWish) -> Job: ...
    def preview(self, wish: JobWish) -> Job: ...
    async def move(self, job: Job, time: TimeRead) -> Job: ...
    async def reword(self, job: Job, text: str) -> Job: ...

    async def rule(
        self, job: Job, *, name: str, missed: Missed | None, quiet: WhenQuiet | None
    ) -> Job: ...
    async def pause(self, job: Job) -> Job: ...
    async def resume(self, job: Job) -> Job: ...
    async def remove(self, job: Job) -> None: ...
    async def run(self, job: Job) -> Taken | None: ...
    def once_resumed(self, job: Job) -> Due | None: ...
    def next_runs(self, job: Job, *, n: int, after: datetime | None = None) -> Sequence[Due]: ...


class JobOutlook(Protocol):
    """Looks ahead; `scheduler.orders.Outlook` is one. Raises Permanent, StorageError."""

    async def jobs(self) -> Sequence[Job]: ...
    async def ahead(
        self, *, since: datetime | None, days: float, costs: Mapping[int, RunCost]
    ) -> Ahead: ...
    async def told_at(self, job: Job, dues: Sequence[Due]) -> Ahead: ...
    def pace(self, job: Job, cost: RunCost | None) -> Pace: ...


class PastRuns(Protocol):
    """What runs of a job have taken; `bot.job_desk.RunsCounted` is one. Raises StorageError."""

    async def cost(self, job: Job) -> RunCost | None:
        """Of one run, by its last ones; None where there are too few."""


class JobTurns(Protocol):
    """The turn that a job would run, without effect; `scheduler.orders.JobTurns` is one."""

    async def turn(self, job: Job) -> TurnInput | None:
        """None where a fixed text is sent. Raises Permanent where it could not run."""


class Rehearses(Protocol):
    """What would be sent, and said; `agent.rehearsing.Rehearsing` is one."""

    async def rehearse(self, turn: TurnInput | None) -> Rehearsal: ...
    async def ask(self, turn: TurnInput) -> Heard: ...


class SkillPreviews(Protocol):
    """The job of a skill, also before it is one; `scheduler.skill_jobs.SkillJobs` is one."""

    async def preview(self, name: str) -> Job: ...


class HasName(Protocol):
    """A person."""

    @property
    def name(self) -> str: ...


class JobPeople(Protocol):
    """Whose jobs are, and where their results go."""

    def owner(self) -> PersonId | None: ...
    def person(self, person_id: PersonId) -> HasName | None: ...
    async def home_of(self, person_id: PersonId) -> str: ...
    def zone(self, person_id: PersonId) -> ZoneInfo: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsals:
    """What a job would do, without doing it."""

    turns: JobTurns
    stage: Rehearses
    skills: SkillPreviews
