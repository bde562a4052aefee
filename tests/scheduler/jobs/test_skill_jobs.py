"""Skills with a schedule become jobs, are kept as jobs, and stop when their skill does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.skills.skill import Problem, Skill, SkillPlace, SkillSchedule, SkillSet, SkillState
from memory.records.jobs import Job, JobKind, SetBy, SlotState
from scheduler.jobs.skill_jobs import BY_US, SkillJobs
from tests.scheduler.jobs_kit import Office
from tests.scheduler.service_kit import ANN, People

MORNING = datetime(2026, 6, 1, 3, 0, tzinfo=UTC)  # Monday, 05:00 in Berlin
DAY = timedelta(days=1)
HOME = "telegram:5"


def skill(name: str = "briefing", **schedule: Any) -> Skill:
    when = SkillSchedule(**(schedule or {"cron": "0 6 * * *"}))
    return Skill(
        name=name,
        description="d",
        text="t",
        place=SkillPlace.SHIPPED,
        location=f"shipped/skills/{name}/SKILL.md",
        schedule=when,
    )


class Around:
    """Skills and an owner as the jobs need them; a store that is real."""

    jobs: SkillJobs

    def __init__(self, path: Path) -> None:
        self.office = Office(path, start=MORNING)
        self.shelf = SkillSet()
        self.people = People()
        self.people.lanes[ANN] = {HOME, "slack:D1"}
        self.people.home = HOME
        self.alarms = 0

    async def current(self) -> SkillSet:
        return self.shelf

    def put(self, *skills: Skill, problems: tuple[Problem, ...] = ()) -> None:
        self.shelf = SkillSet(skills=skills, problems=problems)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Around]:
        async def changed() -> None:
            self.alarms += 1

        async with self.office.opened() as office:
            self.jobs = SkillJobs(
                office.store, self.current, self.people, clock=office.clock, changed=changed
            )
            yield self

    async def job(self, name: str = "briefing") -> Job:
        kept = {one.name: one for one in await self.office.store.kept()}
        return kept[f"skill:{name}"]


@pytest.fixture
async def around(tmp_path: Path) -> AsyncIterator[Around]:
    async with Around(tmp_path).opened() as opened:
        yield opened


async def test_a_skill_that_is_enabled_becomes_a_job_of_the_owner(around: Around) -> None:
    around.put(skill())

    problems = await around.jobs.sync()

    job = await around.job()
    assert (problems, around.alarms) == ([], 1)
    assert (job.kind, job.set_by, job.what.skill) == (
        JobKind.SKILL,
        SetBy.SKILL,
        "briefing",
    )
    assert (job.person_id, job.deliver_to) == ("p1", HOME)
    assert job.next is not None
    assert job.next.slot == "2026-06-01T06:00", "on the wall of its owner"


@pytest.mark.parametrize(
    "schedule", [{"cron": "0 6 * * *"}, {"interval_minutes": 15}, {"at": "2026-06-03T09:00"}]
)
async def test_to_sync_again_changes_nothing(around: Around, schedule: dict[str, Any]) -> None:
    around.put(skill(**schedule))
    await around.jobs.sync()
    before = await around.job()

    around.office.clock.move(90)
    await around.jobs.sync()

    assert await around.job() == before
    assert around.alarms == 1


@pytest.mark.parametrize("state", [SkillState.OFF, SkillState.QUARANTINED, SkillState.MISSING])
async def test_a_skill_that_is_not_used_any_more_stops_its_job_and_goes_on_later(
    around: Around, state: SkillState
) -> None:
    around.put(skill())
    await around.jobs.sync()

    around.put(replace(skill(), state=state))
    await around.jobs.sync()
    stands = await around.job()
    await around.jobs.sync()

    assert around.alarms == 2
    assert not stands.enabled
    assert stands.paused in BY_US

    around.office.clock.move(3 * DAY.total_seconds())
    around.put(skill())
    await around.jobs.sync()
    went_on = await around.job()
    assert (went_on.id, went_on.enabled, went_on.paused) == (stands.id, True, "")
    assert went_on.next is not None
    assert went_on.next.slot == "2026-06-04T06:00", "what passed meanwhile is not made up for"


async def test_a_skill_that_went_away_stops_its_job_and_keeps_its_ledger(around: Around) -> None:
    around.put(skill())
    await around.jobs.sync()
    job = await around.job()
    await around.office.to(MORNING + timedelta(hours=1))

    around.put()
    await around.jobs.sync()

    assert await around.office.store.runs(job.id, limit=5)
    assert await around.office.to(MORNING + 2 * DAY) == 0


async def test_a_skill_nobody_enabled_makes_no_job(around: Around) -> None:
    around.put(replace(skill(), state=SkillState.OFF))

    await around.jobs.sync()
    assert await around.office.store.kept() == []


async def test_another_time_moves_the_job(around: Around) -> None:
    around.put(skill())
    await around.jobs.sync()

    around.put(skill(cron="30 7 * * 1-5", timezone="America/New_York"))
    await around.jobs.sync()

    job = await around.job()
    assert job.next is not None
    assert job.next.slot == "2026-06-01T07:30"
    assert job.when.zone == "America/New_York"


async def test_what_was_paused_by_hand_stays_so(around: Around) -> None:
    around.put(skill())
    await around.jobs.sync()
    await around.office.store.put(replace(await around.job(), enabled=False, paused="by hand"))

    around.put(replace(skill(), state=SkillState.OFF))
    await around.jobs.sync()
    around.put(skill())
    await around.jobs.sync()

    assert (await around.job()).paused == "by hand"


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ({"cron": "0 25 * * *"}, "At character 3"),
        ({"cron": "0 6 * * *", "timezone": "Europe/Nowhere"}, "Europe/Nowhere"),
        ({"interval_minutes": 2}, "too often"),
        ({"interval_minutes": 999_999}, "too long"),
        ({"at": "some day"}, "no time in ISO form"),
        ({"at": "2020-01-01T09:00"}, "its time is over"),
    ],
)
async def test_what_is_wrong_is_named_with_the_file_and_takes_no_other_with_it(
    around: Around, schedule: dict[str, Any], words: str
) -> None:
    around.put(skill("bad", **schedule), skill())

    (problem,) = await around.jobs.sync()

    assert (await around.job()).enabled
    assert words in problem.text
    assert str(problem).startswith("shipped/skills/bad/SKILL.md: ")


async def test_a_time_that_became_wrong_stops_the_job_until_it_is_mended(around: Around) -> None:
    around.put(skill())
    await around.jobs.sync()

    around.put(skill(cron="99 * * * *"))
    await around.jobs.sync()
    assert not (await around.job()).enabled

    around.put(skill())
    await around.jobs.sync()
    assert (await around.job()).enabled


async def test_results_go_to_a_chat_of_the_owner_and_to_no_other(around: Around) -> None:
    around.put(
        skill("mine", cron="0 6 * * *", deliver_to="slack:D1"),
        skill("theirs", cron="0 6 * * *", deliver_to="telegram:999"),
    )

    problems = await around.jobs.sync()

    assert (await around.job("mine")).deliver_to == "slack:D1"
    assert (await around.job("theirs")).deliver_to == HOME
    assert ["telegram:999" in str(one) for one in problems] == [True]


async def test_without_an_owner_or_a_private_chat_nothing_is_kept_and_it_is_said(
    around: Around,
) -> None:
    around.put(skill())
    around.people.has_owner = False
    without_owner = await around.jobs.sync()
    around.people.has_owner, around.people.home = True, ""
    without_chat = await around.jobs.sync()

    assert "no owner" in without_owner[0].text
    assert "no private chat" in without_chat[0].text
    assert await around.office.store.kept() == []


async def test_while_decisions_cannot_be_read_nothing_is_stopped(around: Around) -> None:
    around.put(skill())
    await around.jobs.sync()
    unknown = Problem(skill="", file="database", text="cannot be read")

    around.put(replace(skill(), state=SkillState.OFF), problems=(unknown,))

    await around.jobs.sync()
    assert (await around.job()).enabled


@pytest.mark.parametrize(
    ("notify", "state"), [("false", "silent"), ("", "found"), ("yes", "found")]
)
async def test_a_result_that_nobody_wants_to_hear_is_kept_and_not_told(
    around: Around, notify: str, state: str
) -> None:
    around.office.kind.makes_turn = True
    around.put(skill(cron="0 6 * * *", notify=notify))
    await around.jobs.sync()
    job = await around.job()
    await around.office.to(MORNING + timedelta(hours=1))
    (run,) = await around.office.store.runs(job.id, limit=1)
    await around.office.store.end(job.id, run.due.slot, SlotState.FOUND, result="a finding")

    ended = await around.jobs.keep_untold()

    (kept,) = await around.office.store.runs(job.id, limit=1)
    assert (ended, kept.state) == (int(state == "silent"), state)
    assert kept.result == "a finding"
