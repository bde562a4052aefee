"""What doors and tools ask for is done in the book: once for each call, whatever comes again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory.records.errors import Permanent
from memory.records.jobs import Job, JobKind, Missed, SetBy, SlotState, What
from memory.records.messages import RunId
from memory.records.schedule import JobWish, NoTime, TimeAsked, TimeRead
from scheduler.jobs.clerk import LEFT_OUT, MADE_UP
from scheduler.jobs.service import JobRefused
from tests.scheduler.clerk_kit import ANN, BEN, LANE, Counter

NOON = datetime(2026, 6, 1, 10, 0, tzinfo=UTC)


@pytest.fixture
async def counter(tmp_path: Path) -> AsyncIterator[Counter]:
    async with Counter(tmp_path).opened() as one:
        yield one


async def states(counter: Counter, job: Job) -> list[tuple[SlotState, str]]:
    return [(run.state, run.note) for run in await counter.clerk.runs(job, limit=10)]


async def test_times_are_read_asked_about_or_refused(counter: Counter) -> None:
    read = counter.clerk.read(ANN, "every weekday at 8")
    assert isinstance(read, TimeRead)
    assert [f"{one:%a %H:%M}" for one in read.next] == ["Tue 06:00", "Wed 06:00", "Thu 06:00"]
    asked = counter.clerk.read(ANN, "every day at 6:30")
    assert isinstance(asked, TimeAsked)
    assert [one.sentence for one in asked.options] == ["every day at 06:30", "every day at 18:30"]
    assert isinstance(counter.clerk.read(ANN, "blue"), NoTime)


async def test_a_sentence_is_parted_into_its_time_and_the_rest(counter: Counter) -> None:
    found = counter.clerk.find_time(ANN, "tomorrow at 5 call Bob")

    assert found is not None
    assert isinstance(found.answer, TimeRead)
    assert (found.rest, found.answer.sentence) == (
        "call Bob",
        "once, on Tuesday 2 June 2026 at 17:00",
    )
    assert counter.clerk.find_time(ANN, "call Bob") is None


async def test_of_one_call_there_is_one_job_however_often_it_is_made(counter: Counter) -> None:
    first = await counter.want("in 2 hours", run_id=RunId("r1#a"))
    counter.clock.move(40)
    again = await counter.want("in 2 hours", run_id=RunId("r1#a"))
    other = await counter.want("in 2 hours", run_id=RunId("r1#b"))

    assert again == first
    assert [job.key for job in await counter.clerk.of(ANN)] == [first.key, other.key]


async def test_a_job_shows_as_many_runs_as_are_left(counter: Counter) -> None:
    often = await counter.want("every day at 12:00")
    twice = await counter.want("every day at 12:00, 2 times")
    ends = await counter.want("every day at 12:00 until Wednesday")

    assert [len(counter.clerk.due(job)) for job in (often, twice, ends)] == [3, 2, 3]
    assert counter.clerk.due(await counter.clerk.pause(often)) == []


async def test_a_reminder_that_was_put_off_comes_once_more(counter: Counter) -> None:
    once = await counter.want("today at 12:00", text="once")
    await counter.to(NOON)

    await counter.clerk.snooze(once, NOON + timedelta(minutes=10), key="later-1")
    await counter.clerk.snooze(once, NOON + timedelta(minutes=10), key="later-1")
    await counter.to(NOON + timedelta(minutes=10))
    await counter.to(NOON + timedelta(minutes=20))

    assert counter.texts() == ["once", "once"]


async def test_of_what_runs_again_and_again_one_reminder_is_put_off_once(counter: Counter) -> None:
    often = await counter.want("every day at 12:00", text="often")
    await counter.to(NOON)

    await counter.clerk.snooze(often, NOON + timedelta(minutes=10), key="later-1")
    await counter.clerk.snooze(often, NOON + timedelta(minutes=11), key="later-1")
    assert len(await counter.clerk.of(ANN)) == 2
    await counter.to(NOON + timedelta(minutes=30))

    assert [text.partition("\n")[0] for text in counter.texts()] == ["often", "often"]
    (left,) = await counter.clerk.of(ANN)
    assert left.next is not None
    assert left.next.slot == "2026-06-02T12:00"


async def missed(counter: Counter) -> tuple[Job, str]:
    """A job whose person is asked about yesterday's run."""
    job = await counter.want("every day at 12:00", kind=JobKind.AGENT, missed=Missed.ASK)
    await counter.to(NOON + timedelta(hours=2))
    ((_, (run,)),) = counter.missed
    return job, run.last.slot


async def test_what_was_missed_is_made_up_for_once(counter: Counter) -> None:
    job, slot = await missed(counter)

    assert await counter.clerk.settle(job, slot, make_up=True)
    assert not await counter.clerk.settle(job, slot, make_up=True)
    assert not await counter.clerk.settle(job, slot, make_up=False)

    assert counter.taken == ["call Bob"]
    assert [state for state, _ in await states(counter, job)] == [
        SlotState.TOLD,
        SlotState.SKIPPED,
    ]


async def test_what_was_missed_is_left_out(counter: Counter) -> None:
    job, slot = await missed(counter)

    assert await counter.clerk.settle(job, slot, make_up=False)
    assert not await counter.clerk.settle(job, slot, make_up=True)
    assert not await counter.clerk.settle(job, "2020-01-01T12:00", make_up=True)

    assert counter.taken == []
    assert await states(counter, job) == [(SlotState.SKIPPED, LEFT_OUT)]


async def test_a_kill_between_the_answer_and_the_run_loses_no_run(counter: Counter) -> None:
    job, slot = await missed(counter)
    await counter.store.end(job.id, slot, SlotState.SKIPPED, note=MADE_UP)

    assert await counter.clerk.settle(job, slot, make_up=True), "the press comes again"
    assert not await counter.clerk.settle(job, slot, make_up=True)

    assert counter.taken == ["call Bob"]


async def test_what_settings_and_skills_want_is_not_changed_by_hand(counter: Counter) -> None:
    beat = await counter.want("every 30 minutes", kind=JobKind.HEARTBEAT, set_by=SetBy.BOT)
    skill = await counter.want(
        "every day at 12:00", kind=JobKind.SKILL, what=What(skill="news"), set_by=SetBy.SKILL
    )

    with pytest.raises(JobRefused, match="/heartbeat"):
        await counter.clerk.remove(beat)
    with pytest.raises(JobRefused, match="skills disable news"):
        await counter.clerk.remove(skill)
    assert not (await counter.clerk.pause(skill)).enabled


async def test_a_tool_has_no_words(counter: Counter) -> None:
    job = await counter.want("every day at 12:00", kind=JobKind.TOOL, what=What(tool="web_search"))

    with pytest.raises(JobRefused, match="calls a tool"):
        await counter.clerk.reword(job, "else")


async def test_what_nags_stays_once(counter: Counter) -> None:
    job = await counter.want("tomorrow at 12:00", nag_s=600)
    often = counter.clerk.read(ANN, "every day at 12:00")
    assert isinstance(often, TimeRead)

    with pytest.raises(JobRefused, match="due once"):
        await counter.clerk.move(job, often)


@pytest.mark.parametrize(
    ("text", "kept"), [("22:00-07:00", "22:00-07:00"), ("22-7", "22:00-07:00"), ("", "")]
)
async def test_quiet_hours_are_kept_as_they_are_read(
    counter: Counter, text: str, kept: str
) -> None:
    await counter.clerk.set_quiet_hours(ANN, "1-2")

    assert await counter.clerk.set_quiet_hours(ANN, text) == kept
    assert await counter.clerk.quiet_hours(ANN) == kept
    assert await counter.clerk.quiet_hours(BEN) == ""


async def test_what_is_no_span_of_the_day_is_refused(counter: Counter) -> None:
    with pytest.raises(Permanent, match="22:00-07:00"):
        await counter.clerk.set_quiet_hours(ANN, "at night")


# --- what a job will take -------------------------------------------------------------------------


async def test_what_a_job_takes_is_told_before_it_is_kept(counter: Counter) -> None:
    seen: list[Job] = []

    async def told(job: Job) -> str:
        seen.append(job)
        return "about 9,000 tokens a run"

    assert await counter.clerk.foretell(wish(counter)) == ""
    counter.clerk.foretold = told

    assert await counter.clerk.foretell(wish(counter)) == "about 9,000 tokens a run"
    assert [job.new.what.text for job in seen] == ["sum up the news"]
    assert list(await counter.clerk.of(ANN)) == []


@pytest.mark.parametrize("slow", [True, False])
async def test_an_estimate_that_fails_or_takes_long_is_left_out(
    counter: Counter, slow: bool
) -> None:
    async def told(job: Job) -> str:
        if slow:
            await asyncio.Event().wait()
        raise Permanent("no model")

    counter.clerk.foretold = told
    counter.clerk.foretold_s = 0 if slow else 60

    assert await counter.clerk.foretell(wish(counter)) == ""


def wish(counter: Counter) -> JobWish:
    time = counter.clerk.read(ANN, "every day at 12:00")
    assert isinstance(time, TimeRead)
    what = What(text="sum up the news")
    return JobWish(person_id=ANN, kind=JobKind.AGENT, what=what, time=time, deliver_to=LANE)
