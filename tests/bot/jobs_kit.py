"""A desk of jobs over a real store, for its tests and those of its commands."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from agent.skills.skill import Skill, SkillPlace, SkillSchedule, SkillSet, SkillState
from agent.trace.dry_run import NO_MODEL, Heard, Rehearsal
from bot.commands.job_messages import Rehearsals
from bot.commands.job_service import JobDesk, job_operations
from bot.rpc import Operation
from memory.database.connection import Database
from memory.records.messages import PersonId, Role, TurnInput
from memory.records.schedule import RunCost
from memory.records.transcript import ToolCall, Usage
from memory.stores.jobs import SqliteJobs
from memory.stores.notifications import SqliteTellings
from scheduler.jobs.forecast import Rules
from scheduler.jobs.orders import JobTurns, Orders, Outlook
from scheduler.jobs.service import Book
from scheduler.jobs.skill_jobs import SkillJobs
from scheduler.kinds.message import Hearer
from tests.fakes import FixedClock
from tests.scheduler.jobs_kit import Office

MORNING = datetime(2026, 6, 1, 6, 0, tzinfo=UTC)  # Monday, 08:00 in Berlin
LANE = "telegram:5"
BERLIN = ZoneInfo("Europe/Berlin")
COST = RunCost(calls=3, tokens=9_000, dollars=0.01)

BRIEFING = Skill(
    name="briefing",
    description="d",
    text="Look at the day.",
    place=SkillPlace.SHIPPED,
    location="shipped/skills/briefing/SKILL.md",
    required_tools=("list_events",),
    state=SkillState.OFF,
    schedule=SkillSchedule(cron="0 6 * * *"),
)


class Home:
    """Implements Hearing, JobPeople and the owner's chats."""

    def __init__(self) -> None:
        self.whose: str | None = "p1"
        self.home = LANE

    def owner(self) -> PersonId | None:
        return None if self.whose is None else PersonId(self.whose)

    def person(self, person_id: PersonId) -> Hearer | None:
        known = {"p1": "Ann", "p2": "Bob"}
        if person_id not in known:
            return None
        return Hearer(id=person_id, role=Role.OWNER, name=known[person_id])

    async def home_of(self, person_id: PersonId) -> str:
        return self.home

    def zone(self, person_id: PersonId) -> ZoneInfo:
        return BERLIN

    def may_hear(self, person_id: PersonId, lane: str) -> bool:
        return lane == LANE

    def agent_at(self, lane: str) -> str:
        return "default"

    def is_group(self, lane: str) -> bool:
        return False


class Stage:
    """Implements Rehearses: shows the turn's own words, and keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[TurnInput] = []

    async def rehearse(self, turn: TurnInput | None) -> Rehearsal:
        if turn is None or (turn.job is not None and turn.job.call is not None):
            return NO_MODEL
        return Rehearsal(
            system="You are a helper.",
            user=turn.message.text,
            tools=("list_events", "nothing_to_report"),
            tokens=1_200,
            model="fake/model",
            cost=COST,
        )

    async def ask(self, turn: TurnInput) -> Heard:
        self.asked.append(turn)
        wish = ToolCall(id="1", name="list_events", arguments="{}")
        usage = Usage(prompt=1_200, completion=20)
        return Heard(text="Nothing today.", wishes=(wish,), usage=usage, dollars=0.002)


class Workshop:
    """All of it; may be opened with or without a running bot."""

    desk: JobDesk
    book: Book
    tellings: SqliteTellings

    def __init__(self, path: Path, *, start: datetime = MORNING) -> None:
        self.office = Office(path, start=start)
        self.people = Home()
        self.stage = Stage()
        self.beats = ""
        self.skills: Sequence[Skill] = (BRIEFING,)

    @property
    def clock(self) -> FixedClock:
        return self.office.clock

    async def current(self) -> SkillSet:
        return SkillSet(skills=tuple(self.skills))

    async def _list(self, agent: str) -> str:
        return self.beats

    async def _rules(self) -> Rules:
        return Rules(daily_max=3, heartbeats=bool(self.beats))

    @asynccontextmanager
    async def opened(self, *, running: bool = True) -> AsyncIterator[Workshop]:
        async with (
            self.office.opened() as office,
            Database.open(office.path, clock=office.clock) as database,
        ):
            store, clock = SqliteJobs(database), office.clock
            self.tellings = SqliteTellings(database)
            changed = office.timetable.changed
            self.book = Book(store, self.people, self.people.zone, clock=clock, changed=changed)
            skills = SkillJobs(store, self, self.people, clock=clock, changed=changed)
            timetable = office.timetable if running else None
            self.desk = JobDesk(
                Orders(self.book, store, clock=clock, timetable=timetable),
                Outlook(store, self.tellings, self.people.zone, clock=clock, rules=self._rules),
                Rehearsals(
                    turns=JobTurns(self.people, self, self._list), stage=self.stage, skills=skills
                ),
                self.people,
                clock=clock,
            )
            yield self

    def operations(self) -> Mapping[str, Operation]:
        return job_operations(self.desk)

    async def ask(self, operation: str, **arguments: Any) -> Any:
        """The answer; texts that come as events are put under `texts`."""
        texts: dict[str, str] = {}

        def emit(event: dict[str, Any]) -> None:
            texts[event["part"]] = texts.get(event["part"], "") + event["text"]

        answer = await self.operations()[operation](arguments, emit)
        return {**answer, "texts": texts} if texts else answer
