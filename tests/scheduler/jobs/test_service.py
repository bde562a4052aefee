"""The job service: one place checks a job before it is kept or changed, whoever asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory.records.errors import Permanent
from memory.records.jobs import (
    OPERATOR,
    Asker,
    Job,
    JobKind,
    JobRef,
    MisfirePolicy,
    SetBy,
    SlotState,
    What,
)
from memory.records.messages import PersonId, Role
from memory.records.schedule import JobChanges, TimeAsked
from scheduler.clock.misfire import NAGS_MAX
from scheduler.jobs import service
from scheduler.jobs.rules import JobRefused, NotYours, UnknownJob
from scheduler.jobs.service import MADE_UP
from scheduler.jobs.times import TimeReader
from tests.scheduler.service_kit import ANN, BEN, BENS, BY_ANN, BY_BEN, MORNING, Services

NOON = datetime(2026, 6, 1, 10, 0, tzinfo=UTC)
TUESDAY_5PM = datetime(2026, 6, 2, 15, 0, tzinfo=UTC)


@pytest.fixture
async def all_of_it(tmp_path: Path) -> AsyncIterator[Services]:
    async with Services(tmp_path).opened() as one:
        yield one


async def keys(all_of_it: Services, person_id: PersonId | None = ANN) -> list[str]:
    return [job.key for job in await all_of_it.jobs.of(person_id)]


# --- times ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        *(("tomorrow at 9", True), ("every day at 8", True), ("every day at 5", True)),
        *(("in 10 minutes", False), ("in 3 days", False), ("every 2 hours", False)),
        *(("tomorrow at 9 Asia/Tokyo", False), ("2026-07-01T17:00Z", False), ("purple", False)),
    ],
)
async def test_the_zone_is_asked_for_where_the_time_is_not_the_same_everywhere(
    all_of_it: Services, text: str, asks: bool
) -> None:
    times = TimeReader(
        all_of_it.people.zone,
        clock=all_of_it.clock,
        is_open=lambda person_id: person_id == ANN,
        ask_zone=lambda person_id: "In which zone?",
    )
    found, sentence = times.read(ANN, text), times.find(ANN, f"remind me to call Bob {text}")

    answers = [found, *([sentence.answer] if sentence else [])]
    assert [one == TimeAsked(text="In which zone?", for_zone=True) for one in answers] == [
        asks
    ] * len(answers)
    assert times.read(BEN, text) == all_of_it.jobs.times.read(BEN, text)


# --- keeping --------------------------------------------------------------------------------------


async def test_one_that_comes_late_says_since_when_it_was_due(all_of_it: Services) -> None:
    await all_of_it.want("tomorrow at 5pm")
    await all_of_it.to(TUESDAY_5PM + timedelta(hours=2))

    (text,) = all_of_it.texts()
    assert text == "call Bob\n\n_(late by 2 h: it was due Tue 2 Jun, 17:00)_"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"deliver_to": BENS}, "no chat of this person"),
        ({"person_id": PersonId("p3"), "deliver_to": "telegram:7"}, "Guests"),
        ({"person_id": PersonId("nobody")}, "Nobody"),
        ({"what": What(text="  ")}, "words"),
        ({"what": What(text="x" * 5_000)}, "4,000"),
        ({"nag_s": 5}, "after a minute"),
    ],
)
async def test_what_nobody_may_have_is_not_kept(
    all_of_it: Services, more: dict[str, Any], why: str
) -> None:
    with pytest.raises(JobRefused, match=why):
        await all_of_it.want("tomorrow at 5pm", **more)

    assert await keys(all_of_it, None) == []


async def test_nobody_sets_up_a_job_of_somebody_else(all_of_it: Services) -> None:
    with pytest.raises(NotYours):
        await all_of_it.jobs.add(all_of_it.draft("tomorrow at 5pm"), by=BY_BEN)

    assert await keys(all_of_it, None) == []


@pytest.mark.parametrize(
    "when", ["* * * * *", "*/4 * * * *", "0,3 9 1 1 *", "every minute", "every 4 minutes"]
)
async def test_what_asks_a_model_runs_every_five_minutes_at_most_however_it_is_written(
    all_of_it: Services, when: str
) -> None:
    slow = await all_of_it.want("every 5 minutes", text="look", kind=JobKind.AGENT)
    with pytest.raises(JobRefused, match="5 minutes"):
        await all_of_it.want(when, text="look", kind=JobKind.AGENT)
    with pytest.raises(JobRefused, match="5 minutes"):
        await moved(all_of_it, slow, when)

    assert await all_of_it.want(when)


async def test_who_wants_all_that_was_missed_gets_it_however_late(all_of_it: Services) -> None:
    job = await all_of_it.want("every day at 9", missed=MisfirePolicy.ALL)
    asked = await all_of_it.want("every day at 9", text="tea", missed=MisfirePolicy.ASK)
    usual = await all_of_it.want("every day at 9", text="coffee")

    within = [one.missed_within_s for one in (job, asked, usual)]
    assert within == [None, None, 12 * 3600]


# --- names ----------------------------------------------------------------------------------------


async def test_names_are_made_of_the_words_and_are_never_the_same(all_of_it: Services) -> None:
    names = [(await all_of_it.want("tomorrow at 5pm", text=text)).name for text in (
        "call Bob", "call Bob", "Call bob", "<b>evil</b>\n## Heading", "x" * 200
    )]  # fmt: skip

    assert names[:3] == ["call Bob", "call Bob 2", "Call bob 3"]
    assert names[3] == "b evil /b Heading"
    assert len(names[4]) <= 80


@pytest.mark.parametrize("name", ["heartbeat", "Heartbeat", "skill:weekly-digest"])
async def test_no_other_job_takes_a_name_of_ours(all_of_it: Services, name: str) -> None:
    job = await all_of_it.want("tomorrow at 5pm", name=name)

    assert job.name.casefold() != name.casefold()
    with pytest.raises(JobRefused, match="I use that name myself"):
        await all_of_it.jobs.add(all_of_it.draft("in 2 hours", name=name), by=OPERATOR)


# --- looking --------------------------------------------------------------------------------------


async def test_a_job_is_found_by_its_key_or_by_how_its_name_begins(all_of_it: Services) -> None:
    one = await all_of_it.want("tomorrow at 5pm")
    other = await all_of_it.want("tomorrow at 6pm", text="cake")
    find = all_of_it.jobs.find

    assert (await find(one.key, by=BY_ANN)).id == one.id
    assert (await find(JobRef("CAK"), by=BY_ANN)).id == other.id
    assert (await find(one.key, by=OPERATOR)).id == one.id
    for wrong, why in (("c", "Several"), ("j99", "no job"), ("", "no job")):
        with pytest.raises(UnknownJob, match=why):
            await find(JobRef(wrong), by=BY_ANN)
    with pytest.raises(UnknownJob, match="no job"):
        await find(one.key, by=BY_BEN)


async def test_a_job_shows_as_many_runs_as_are_left(all_of_it: Services) -> None:
    often = await all_of_it.want("every day at 12:00")
    twice = await all_of_it.want("every day at 12:00, 2 times")
    ends = await all_of_it.want("every day at 12:00 until Wednesday")

    now = [all_of_it.jobs.status(job) for job in (often, twice, ends)]
    assert [len(one.due) for one in now] == [3, 2, 3]
    paused = all_of_it.jobs.status(await all_of_it.jobs.pause(often.key, by=BY_ANN))
    assert (paused.due, paused.once_resumed) == ((), often.next)


async def test_no_due_time_is_shown_twice_where_the_first_began_within_a_second(
    all_of_it: Services,
) -> None:
    all_of_it.clock.move(0.123_456)
    job = await all_of_it.want("every 5 minutes")

    dues = [due.at_ms for due in all_of_it.jobs.status(job).due]
    assert len(set(dues)) == 3


# --- changing -------------------------------------------------------------------------------------


async def moved(all_of_it: Services, job: Job, when: str, *, by: Asker = BY_ANN) -> Job:
    return await all_of_it.jobs.update(job.key, JobChanges(time=all_of_it.time(when)), by=by)


async def test_what_is_changed_is_changed_whole_or_not_at_all(all_of_it: Services) -> None:
    job = await all_of_it.want("in 2 hours", nag_s=600)
    changes = JobChanges(
        time=all_of_it.time("every day at 9"), text="else", missed=MisfirePolicy.SKIP
    )

    with pytest.raises(JobRefused, match="due once"):
        await all_of_it.jobs.update(job.key, changes, by=BY_ANN)

    assert await all_of_it.now(job) == job


async def test_what_settings_and_skills_want_is_not_changed_by_hand(all_of_it: Services) -> None:
    await all_of_it.heartbeats.ensure()
    beat = await all_of_it.heartbeats.of(ANN, "default")
    assert beat is not None
    skill = await all_of_it.want(
        "every day at 12:00", kind=JobKind.SKILL, what=What(skill="news"), set_by=SetBy.SKILL
    )
    jobs = all_of_it.jobs

    for by in (BY_ANN, OPERATOR):
        with pytest.raises(JobRefused, match="/heartbeat"):
            await moved(all_of_it, beat, "every day at 9", by=by)
        with pytest.raises(JobRefused, match="skills disable news"):
            await jobs.update(skill.key, JobChanges(text="else"), by=by)
        with pytest.raises(JobRefused, match="skills disable news"):
            await jobs.remove(skill.key, by=by)
    for change in (jobs.pause, jobs.remove):
        with pytest.raises(JobRefused, match="/heartbeat"):
            await change(beat.key, by=BY_ANN)
    assert not (await jobs.pause(skill.key, by=BY_ANN)).enabled
    assert not (await jobs.pause(beat.key, by=OPERATOR)).enabled
    assert await jobs.remove(skill.key, by=OPERATOR), "it stood still"


async def test_who_is_a_guest_by_now_changes_nothing(all_of_it: Services) -> None:
    job = await all_of_it.want("tomorrow at 5pm")
    all_of_it.people.roles[ANN] = Role.GUEST

    with pytest.raises(JobRefused, match="Guests"):
        await all_of_it.jobs.update(job.key, JobChanges(text="else"), by=BY_ANN)
    with pytest.raises(JobRefused, match="Guests"):
        await all_of_it.jobs.run_now(job.key, by=BY_ANN)
    await all_of_it.to(TUESDAY_5PM)
    assert all_of_it.texts() == []
    assert "guest" in all_of_it.failed[0][1]


async def test_a_tool_has_no_words(all_of_it: Services) -> None:
    job = await all_of_it.want("every day at 12:00", kind=JobKind.TOOL, what=What(tool="search"))

    with pytest.raises(JobRefused, match="calls a tool"):
        await all_of_it.jobs.update(job.key, JobChanges(text="else"), by=BY_ANN)


async def test_a_job_of_other_times_begins_anew(all_of_it: Services) -> None:
    job = await all_of_it.want("every day at 9 for 2 times")
    for day in (1, 2):
        await all_of_it.to(datetime(2026, 6, day, 7, 0, tzinfo=UTC))
    ran = await all_of_it.now(job)
    assert (ran.runs, ran.next) == (2, None)
    await all_of_it.store.put(replace(ran, failures=4, not_before_ms=10**13))

    await moved(all_of_it, job, "every day at 9 for 2 times")

    kept = await all_of_it.now(job)
    assert (kept.runs, kept.failures, kept.not_before_ms) == (0, 0, 0)
    for day in (3, 4, 5):
        await all_of_it.to(datetime(2026, 6, day, 7, 0, tzinfo=UTC))
    assert len(all_of_it.texts()) == 4


async def test_a_job_that_is_to_come_once_is_made_up_for_however_late(all_of_it: Services) -> None:
    daily = await all_of_it.want("every day at 9")
    again = await all_of_it.want("tomorrow at 5pm", text="water the plants")

    once = await moved(all_of_it, daily, "tomorrow at 18:00")
    daily = await moved(all_of_it, again, "every day at 9")

    assert (once.missed_within_s, daily.missed_within_s) == (None, 12 * 3600)


# --- going on -------------------------------------------------------------------------------------


async def test_a_reminder_that_stood_still_before_its_time_keeps_it(all_of_it: Services) -> None:
    job = await all_of_it.want("tomorrow at 5pm")
    await all_of_it.jobs.snooze(job, "1d", key="later-1")
    later = await all_of_it.now(job)

    await all_of_it.jobs.pause(job.key, by=BY_ANN)

    assert (await all_of_it.jobs.resume(job.key, by=BY_ANN)).next == later.next


async def test_a_reminder_that_stood_still_over_its_time_is_sent_when_it_goes_on(
    all_of_it: Services,
) -> None:
    job = await all_of_it.want("tomorrow at 5pm")
    await all_of_it.jobs.pause(job.key, by=BY_ANN)
    assert await all_of_it.to(datetime(2026, 6, 3, 12, 0, tzinfo=UTC)) == 0

    await all_of_it.jobs.resume(job.key, by=BY_ANN)
    await all_of_it.timetable.look()
    await all_of_it.timetable.look()

    assert all_of_it.texts() == ["call Bob"]


async def test_what_failed_and_was_stopped_is_tried_again_when_it_goes_on(
    all_of_it: Services,
) -> None:
    job = await all_of_it.want("tomorrow at 5pm")
    stopped = replace(job, next=None, enabled=False, paused="it failed 5 times", failures=5)
    await all_of_it.store.put(stopped)

    resumed = await all_of_it.jobs.resume(job.key, by=BY_ANN)

    assert resumed.next is not None
    assert (resumed.failures, resumed.next.at_ms) == (0, int(MORNING.timestamp() * 1000))


async def test_what_is_over_does_not_go_on(all_of_it: Services) -> None:
    done = await all_of_it.want("tomorrow at 5pm")
    await all_of_it.store.put(replace(done, next=None))
    often = await all_of_it.want("every day at 9 for 2 times")
    until = await all_of_it.want("every day at 9 until 3 June", text="water the plants")
    for day in (1, 2):
        await all_of_it.to(datetime(2026, 6, day, 7, 0, tzinfo=UTC))
    for job in (done, often):
        with pytest.raises(JobRefused, match="is over"):
            await all_of_it.jobs.resume(job.key, by=BY_ANN)

    await all_of_it.jobs.pause(until.key, by=BY_ANN)
    all_of_it.clock.move(10 * 86_400)
    with pytest.raises(JobRefused, match="until which"):
        await all_of_it.jobs.resume(until.key, by=BY_ANN)
    assert all_of_it.jobs.status(await all_of_it.now(until)).once_resumed is None


async def test_what_is_run_by_hand_is_none_of_the_runs_that_were_wanted(
    all_of_it: Services,
) -> None:
    job = await all_of_it.want("every day at 9 for 2 times")
    for _ in range(3):
        assert (await all_of_it.jobs.run_now(job.key, by=BY_ANN)).outbox_id is not None
        all_of_it.clock.move(1)
    for day in (1, 2, 3):
        await all_of_it.to(datetime(2026, 6, day, 7, 0, tzinfo=UTC))

    assert len(all_of_it.texts()) == 3 + 2


# --- reminders ------------------------------------------------------------------------------------


async def test_a_reminder_nags_until_it_is_done(all_of_it: Services) -> None:
    job = await all_of_it.want("tomorrow at 5pm", nag_s=600)
    for minutes in (0, 5, 10, 20):
        await all_of_it.to(TUESDAY_5PM + timedelta(minutes=minutes))
    assert all_of_it.texts() == ["call Bob"] * 3

    assert await all_of_it.jobs.done(await all_of_it.now(job))
    await all_of_it.to(TUESDAY_5PM + timedelta(hours=3))
    assert all_of_it.texts() == ["call Bob"] * 3


async def test_a_reminder_that_nobody_sees_does_not_nag_for_ever(all_of_it: Services) -> None:
    await all_of_it.want("in 1 minute", nag_s=60)
    for _ in range(NAGS_MAX + 20):
        all_of_it.clock.move(60)
        await all_of_it.timetable.look()

    assert len(all_of_it.texts()) == NAGS_MAX + 1


async def test_what_failed_and_is_done_or_put_off_waits_for_nothing(all_of_it: Services) -> None:
    job = await all_of_it.want("in 1 minute", nag_s=60)
    failing = replace(job, enabled=False, paused="it failed", failures=5, not_before_ms=10**13)
    await all_of_it.store.put(failing)

    await all_of_it.jobs.snooze(failing, "10m", key="later-1")
    later = await all_of_it.now(job)
    assert (later.enabled, later.failures, later.not_before_ms) == (True, 0, 0)
    await all_of_it.jobs.done(failing)
    done = await all_of_it.now(job)
    assert (done.next, done.paused, done.failures) == (None, "", 0)
    assert await keys(all_of_it) == []


async def test_of_what_runs_again_and_again_one_reminder_is_put_off_once(
    all_of_it: Services,
) -> None:
    often = await all_of_it.want("every day at 12:00")
    await all_of_it.to(NOON)

    for _ in range(2):
        await all_of_it.jobs.snooze(often, "10m", key="later-1")
        all_of_it.clock.move(60)

    assert len(await keys(all_of_it)) == 2


# --- misfires -------------------------------------------------------------------------------------


async def missed(all_of_it: Services) -> tuple[Job, str]:
    """A job whose person is asked about yesterday's run."""
    job = await all_of_it.want("every day at 12:00", kind=JobKind.AGENT, missed=MisfirePolicy.ASK)
    await all_of_it.to(NOON + timedelta(hours=2))
    ((_, ((_, dues),)),) = all_of_it.missed
    return job, dues.last.slot


async def test_a_kill_between_the_answer_and_the_run_loses_no_run(all_of_it: Services) -> None:
    job, slot = await missed(all_of_it)
    await all_of_it.store.end(job.id, slot, SlotState.SKIPPED, note=MADE_UP)

    assert await all_of_it.jobs.settle(job, slot, make_up=True), "the press comes again"
    assert not await all_of_it.jobs.settle(job, slot, make_up=True)

    assert all_of_it.taken == ["call Bob"]


# --- what a job will take -------------------------------------------------------------------------


@pytest.mark.parametrize("slow", [True, False])
async def test_an_estimate_that_fails_or_takes_long_is_left_out(
    all_of_it: Services, slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def told(job: Job) -> str:
        await asyncio.Event().wait()
        return ""

    draft = all_of_it.draft("in 2 hours")
    all_of_it.estimate = "about 9,000 tokens a run"
    assert await all_of_it.jobs.estimate(draft) == all_of_it.estimate
    assert await all_of_it.jobs.estimate(replace(draft, deliver_to=BENS)) == "", "it is refused"

    all_of_it.estimate = Permanent("no model")
    if slow:
        all_of_it.jobs._estimate = told
        monkeypatch.setattr(service, "ESTIMATE_S_MAX", 0)
    assert await all_of_it.jobs.estimate(draft) == ""
