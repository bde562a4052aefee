"""One place checks a job before it is kept, whoever asks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from memory.records.jobs import Job, JobKind, Missed, What, WhenQuiet
from memory.records.messages import PersonId, Role
from scheduler.clock.misfire import NAGS_MAX
from scheduler.clock.timetable import Timetable
from scheduler.jobs.service import Book, JobRefused, Wanted
from scheduler.kinds.message import Hearer, MessageKind, spell_s
from tests.scheduler.jobs_kit import Office

MORNING = datetime(2026, 6, 1, 6, 0, tzinfo=UTC)  # Monday, 08:00 in Berlin
BERLIN = ZoneInfo("Europe/Berlin")
ANN = PersonId("p1")
LANE = "telegram:5"


class Chats:
    """Implements Hearing."""

    def __init__(self) -> None:
        self.people = {"p1": Role.OWNER, "p2": Role.MEMBER, "p3": Role.GUEST}
        self.lanes = {"p1": {LANE}, "p2": {"telegram:6"}, "p3": {"telegram:7"}}

    def person(self, person_id: PersonId) -> Hearer | None:
        role = self.people.get(person_id)
        return None if role is None else Hearer(id=person_id, role=role, name=person_id)

    def may_hear(self, person_id: PersonId, lane: str) -> bool:
        return lane in self.lanes.get(person_id, ())

    def agent_at(self, lane: str) -> str:
        return "default"

    def is_group(self, lane: str) -> bool:
        return False


class Desk:
    """A book over an office whose reminders are the real ones."""

    book: Book

    def __init__(self, path: Path) -> None:
        self.office = Office(path, start=MORNING)
        self.chats = Chats()
        self.changes = 0

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Desk]:
        async with self.office.opened() as office:
            kind = MessageKind(self.chats, lambda person_id: BERLIN)
            office.timetable = Timetable(
                office.store,
                dict.fromkeys(JobKind, kind),
                office.timetable._hears,
                clock=office.clock,
            )
            self.book = Book(
                office.store,
                self.chats,
                lambda person_id: BERLIN,
                clock=office.clock,
                changed=self._changed,
            )
            yield self

    async def _changed(self) -> None:
        self.changes += 1

    async def remind(self, when: str, text: str = "call Bob", **more: Any) -> Job:
        wanted = Wanted(
            person_id=ANN,
            kind=JobKind.MESSAGE,
            what=What(text=text),
            reading=self.book.read_or_refuse(ANN, when),
            deliver_to=LANE,
        )
        return await self.book.add(replace(wanted, **more))


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with Desk(tmp_path).opened() as one:
        yield one


async def test_a_reminder_is_kept_as_it_was_read_and_sent_at_its_time(desk: Desk) -> None:
    job = await desk.remind("tomorrow at 5pm")

    assert job.next is not None
    assert job.next.slot == "2026-06-02T17:00"
    assert (job.new.name, job.new.missed, job.new.missed_within_s) == (
        "call Bob",
        Missed.ONCE,
        None,
    )
    await desk.office.to(datetime(2026, 6, 2, 15, 0, tzinfo=UTC))
    assert desk.office.texts() == ["call Bob"]
    assert desk.changes == 1


async def test_one_that_comes_late_says_since_when_it_was_due(desk: Desk) -> None:
    await desk.remind("tomorrow at 5pm")
    await desk.office.to(datetime(2026, 6, 2, 17, 0, tzinfo=UTC))

    (text,) = desk.office.texts()
    assert text == "call Bob\n\n_(late by 2 h: it was due Tue 2 Jun, 17:00)_"


async def test_what_is_due_again_and_again_shows_its_next_runs(desk: Desk) -> None:
    job = await desk.remind("every weekday at 8:30", "stand up")

    slots = [due.slot for due in desk.book.next_runs(job)]
    assert slots == ["2026-06-01T08:30", "2026-06-02T08:30", "2026-06-03T08:30"]
    assert job.new.missed_within_s == 12 * 3600


@pytest.mark.parametrize("when", ["yesterday at 5", "purple", ""])
async def test_a_time_that_is_none_is_refused_with_a_sentence(desk: Desk, when: str) -> None:
    with pytest.raises(JobRefused) as refused:
        await desk.remind(when)

    assert str(refused.value)
    assert await desk.book.of(None) == []


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"deliver_to": "telegram:6"}, "no chat of this person"),
        ({"person_id": PersonId("p3"), "deliver_to": "telegram:7"}, "Guests"),
        ({"person_id": PersonId("nobody")}, "Nobody"),
        ({"what": What(text="  ")}, "words"),
        ({"what": What(text="x" * 5_000)}, "4,000"),
        ({"nag_s": 5}, "after a minute"),
    ],
)
async def test_what_nobody_may_have_is_not_kept(desk: Desk, more: dict[str, Any], why: str) -> None:
    with pytest.raises(JobRefused, match=why):
        await desk.remind("tomorrow at 5pm", **more)

    assert await desk.book.of(None) == []


async def test_what_repeats_does_not_nag_and_asks_a_model_not_all_the_time(desk: Desk) -> None:
    with pytest.raises(JobRefused, match="due once"):
        await desk.remind("every day at 9", nag_s=600)
    with pytest.raises(JobRefused, match="5 minutes"):
        await desk.remind("every 2 minutes", kind=JobKind.AGENT)


async def test_names_are_made_of_the_words_and_are_never_the_same(desk: Desk) -> None:
    names = [(await desk.remind("tomorrow at 5pm", text)).new.name for text in (
        "call Bob", "call Bob", "Call bob", "<b>evil</b>\n## Heading", "x" * 200
    )]  # fmt: skip

    assert names[:3] == ["call Bob", "call Bob 2", "Call bob 3"]
    assert names[3] == "b evil /b Heading"
    assert len(names[4]) <= 80


async def test_a_job_is_found_by_its_key_or_by_how_its_name_begins(desk: Desk) -> None:
    one, other = await desk.remind("tomorrow at 5pm"), await desk.remind("tomorrow at 6pm", "cake")

    assert (await desk.book.find(ANN, one.key)).id == one.id
    assert (await desk.book.find(ANN, "CAK")).id == other.id
    for wrong, why in (("c", "Several"), ("j99", "no job"), ("", "no job")):
        with pytest.raises(JobRefused, match=why):
            await desk.book.find(ANN, wrong)
    with pytest.raises(JobRefused, match="no job"):
        await desk.book.find(PersonId("p2"), one.key)


async def test_a_job_is_paused_resumed_moved_reworded_and_removed(desk: Desk) -> None:
    job = await desk.remind("every day at 9", "tea")
    paused = await desk.book.pause(job)
    assert await desk.office.to(MORNING + timedelta(days=2)) == 0

    resumed = await desk.book.resume(paused)
    assert resumed.next is not None
    assert resumed.next.slot == "2026-06-03T09:00"
    moved = await desk.book.move(resumed, desk.book.read_or_refuse(ANN, "every day at 10"))
    await desk.book.reword(moved, "green tea")
    await desk.office.to(datetime(2026, 6, 3, 8, 0, tzinfo=UTC))
    assert desk.office.texts() == ["green tea"]

    await desk.book.remove(await desk.book.find(ANN, job.key))
    assert await desk.book.of(ANN) == []


async def test_a_reminder_nags_until_it_is_done(desk: Desk) -> None:
    job = await desk.remind("tomorrow at 5pm", nag_s=600)
    at = datetime(2026, 6, 2, 15, 0, tzinfo=UTC)
    for minutes in (0, 5, 10, 20):
        await desk.office.to(at + timedelta(minutes=minutes))
    assert desk.office.texts() == ["call Bob"] * 3

    await desk.book.done(await desk.book.find(ANN, job.key))
    await desk.office.to(at + timedelta(hours=3))
    assert desk.office.texts() == ["call Bob"] * 3


async def test_a_reminder_that_nobody_sees_does_not_nag_for_ever(desk: Desk) -> None:
    await desk.remind("in 1 minute", nag_s=60)
    for _ in range(NAGS_MAX + 20):
        desk.office.clock.move(60)
        await desk.office.timetable.look()

    assert len(desk.office.texts()) == NAGS_MAX + 1


async def test_a_reminder_is_put_off(desk: Desk) -> None:
    job = await desk.remind("tomorrow at 5pm")
    at = datetime(2026, 6, 2, 15, 0, tzinfo=UTC)
    await desk.office.to(at)
    await desk.book.snooze(await desk.book.find(ANN, job.key), at + timedelta(minutes=10))
    await desk.office.to(at + timedelta(minutes=10))
    assert desk.office.texts() == ["call Bob"] * 2

    daily = await desk.remind("every day at 9", "tea")
    later = await desk.book.snooze(daily, at + timedelta(minutes=40))
    assert later.id != daily.id
    await desk.office.to(at + timedelta(minutes=40))
    assert desk.office.texts()[-1] == "tea"
    assert (await desk.book.find(ANN, daily.key)).next == daily.next


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(59, "59 s"), (61, "1 min"), (119, "119 s"), (180, "3 min"), (7_300, "2 h"), (200_000, "2 d")],
)
def test_a_delay_is_told_roughly(seconds: int, words: str) -> None:
    assert spell_s(seconds) == words


# --- going on, and how often ----------------------------------------------------------------------


async def test_a_reminder_that_stood_still_over_its_time_is_sent_when_it_goes_on(
    desk: Desk,
) -> None:
    job = await desk.remind("tomorrow at 5pm")
    paused = await desk.book.pause(job)
    assert await desk.office.to(datetime(2026, 6, 3, 12, 0, tzinfo=UTC)) == 0

    await desk.book.resume(paused)
    await desk.office.timetable.look()
    await desk.office.timetable.look()

    assert desk.office.texts() == ["call Bob"]


async def test_a_reminder_that_stood_still_before_its_time_keeps_it(desk: Desk) -> None:
    job = await desk.remind("tomorrow at 5pm")
    later = await desk.book.snooze(job, datetime(2026, 6, 4, 12, 0, tzinfo=UTC))

    resumed = await desk.book.resume(await desk.book.pause(later))

    assert resumed.next == later.next


async def test_what_failed_and_was_stopped_is_tried_again_when_it_goes_on(desk: Desk) -> None:
    job = await desk.remind("tomorrow at 5pm")
    stopped = replace(job, next=None, enabled=False, paused="it failed 5 times", failures=5)
    await desk.office.store.put(stopped)

    resumed = await desk.book.resume(stopped)

    assert resumed.next is not None
    assert (resumed.failures, resumed.next.at_ms) == (0, int(MORNING.timestamp() * 1000))


async def test_what_is_over_does_not_go_on(desk: Desk) -> None:
    done = replace(await desk.remind("tomorrow at 5pm"), next=None)
    often = await desk.remind("every day at 9 for 2 times")
    ran = replace(often, runs=2)
    until = await desk.remind("every day at 9 until 3 June", "water the plants")
    for job in (done, ran):
        with pytest.raises(JobRefused, match="is over"):
            await desk.book.resume(job)

    desk.office.clock.move(10 * 86_400)
    with pytest.raises(JobRefused, match="until which"):
        await desk.book.resume(until)


@pytest.mark.parametrize(
    "when", ["* * * * *", "*/4 * * * *", "0,3 9 1 1 *", "every minute", "every 4 minutes"]
)
async def test_what_asks_a_model_runs_every_five_minutes_at_most_however_it_is_written(
    desk: Desk, when: str
) -> None:
    slow = await desk.remind("every 5 minutes", "look", kind=JobKind.AGENT)
    with pytest.raises(JobRefused, match="5 minutes"):
        await desk.remind(when, "look", kind=JobKind.AGENT)
    with pytest.raises(JobRefused, match="5 minutes"):
        await desk.book.move(slow, desk.book.read_or_refuse(ANN, when))

    assert await desk.remind(when)


async def test_a_job_of_other_times_begins_anew(desk: Desk) -> None:
    job = await desk.remind("every day at 9 for 2 times")
    for day in (1, 2):
        await desk.office.to(datetime(2026, 6, day, 7, 0, tzinfo=UTC))
    ran = await desk.office.store.get(job.id)
    assert ran is not None
    assert (ran.runs, ran.next) == (2, None)
    failing = replace(ran, failures=4, not_before_ms=10**13)

    moved = await desk.book.move(
        failing, desk.book.read_or_refuse(ANN, "every day at 9 for 2 times")
    )

    kept = await desk.office.store.get(job.id)
    assert kept is not None
    assert (kept.runs, moved.failures, kept.not_before_ms) == (0, 0, 0)
    for day in (3, 4, 5):
        await desk.office.to(datetime(2026, 6, day, 7, 0, tzinfo=UTC))
    assert len(desk.office.texts()) == 4


async def test_a_job_that_is_to_come_once_is_made_up_for_however_late(desk: Desk) -> None:
    daily = await desk.remind("every day at 9")
    once = await desk.book.move(daily, desk.book.read_or_refuse(ANN, "tomorrow at 18:00"))
    again = await desk.remind("tomorrow at 5pm", "water the plants")
    daily = await desk.book.move(again, desk.book.read_or_refuse(ANN, "every day at 9"))

    assert (once.new.missed_within_s, daily.new.missed_within_s) == (None, 12 * 3600)


async def test_a_reminder_that_nags_gets_no_times_that_come_again(desk: Desk) -> None:
    job = await desk.remind("in 2 hours", nag_s=600)

    with pytest.raises(JobRefused, match="due once"):
        await desk.book.move(job, desk.book.read_or_refuse(ANN, "every day at 9"))


@pytest.mark.parametrize("name", ["heartbeat", "Heartbeat", "skill:weekly-digest"])
async def test_no_other_job_takes_a_name_of_ours(desk: Desk, name: str) -> None:
    job = await desk.remind("tomorrow at 5pm", name=name)

    assert job.new.name.casefold() != name.casefold()


async def test_what_failed_and_is_done_or_put_off_waits_for_nothing(desk: Desk) -> None:
    job = await desk.remind("in 1 minute", nag_s=60)
    failing = replace(job, enabled=False, paused="it failed", failures=5, not_before_ms=10**13)
    await desk.office.store.put(failing)

    later = await desk.book.snooze(failing, MORNING + timedelta(minutes=10))
    assert (later.enabled, later.failures, later.not_before_ms) == (True, 0, 0)
    done = await desk.book.done(failing)
    assert (done.next, done.paused, done.failures) == (None, "", 0)
    assert await desk.book.of(ANN) == []


async def test_what_is_run_by_hand_is_none_of_the_runs_that_were_wanted(desk: Desk) -> None:
    job = await desk.remind("every day at 9 for 2 times")
    for _ in range(3):
        assert await desk.office.timetable.run_now(job) is not None
        desk.office.clock.move(1)
    for day in (1, 2, 3):
        await desk.office.to(datetime(2026, 6, day, 7, 0, tzinfo=UTC))

    assert len(desk.office.texts()) == 3 + 2


async def test_a_guest_has_no_jobs_any_more(desk: Desk) -> None:
    await desk.remind("tomorrow at 5pm")
    desk.chats.people["p1"] = Role.GUEST
    await desk.office.to(datetime(2026, 6, 2, 15, 0, tzinfo=UTC))

    assert desk.office.texts() == []
    assert "guest" in desk.office.failed[0][1]


async def test_who_wants_all_that_was_missed_gets_it_however_late(desk: Desk) -> None:
    job = await desk.remind("every day at 9", missed=Missed.ALL)
    asked = await desk.remind("every day at 9", "water the plants", missed=Missed.ASK)

    assert (job.new.missed_within_s, asked.new.missed_within_s) == (None, None)


async def test_no_due_time_is_shown_twice_where_the_first_began_within_a_second(
    desk: Desk,
) -> None:
    desk.office.clock.move(0.123_456)
    job = await desk.remind("every 5 minutes")

    dues = [due.at_ms for due in desk.book.next_runs(job)]
    assert len(set(dues)) == 3


async def test_a_job_gets_another_name_and_other_rules(desk: Desk) -> None:
    await desk.remind("every day at 8", "stand up")
    job = await desk.remind("every day at 9")

    ruled = await desk.book.rule(job, name="Stand up", missed=Missed.ALL, quiet=WhenQuiet.DROP)
    same = await desk.book.rule(ruled, name=ruled.new.name, quiet=None)

    assert (ruled.new.name, ruled.new.missed, ruled.new.quiet) == (
        "Stand up 2",
        Missed.ALL,
        WhenQuiet.DROP,
    )
    assert ruled.new.missed_within_s is None
    assert same == await desk.office.store.get(job.id)
