"""What a run found is told, failures are waited out, and a job that keeps failing is stopped."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from memory.database.connection import Database
from memory.records.jobs import Due, Job, JobKind, SetBy, SlotState, Taken, Taking
from memory.records.messages import RunId
from memory.records.ports import JobEnd, NewRun
from memory.records.rows import NewMessage
from scheduler.clock.outcomes import ASKED, FAILURES_MAX, PUT_OFF_S, Outcomes
from scheduler.clock.timetable import UNASKED
from tests.fakes import FixedClock
from tests.scheduler.jobs_kit import at, job
from tests.scheduler.notify.test_delivery import NOON, Desk


class Office:
    """Outcomes over a real store."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.stopped: list[tuple[str, str]] = []
        self.beats: list[tuple[str, str]] = []
        self.outcomes = Outcomes(
            desk.jobs,
            desk.notifier,
            clock=desk.clock,
            stopped=self._stopped,
            beat=self._beat,
        )

    async def _stopped(self, job: Job, why: str) -> None:
        self.stopped.append((job.name, why))

    async def _beat(self, job: Job, outcome: str, why: str) -> None:
        self.beats.append((outcome, why))

    async def run(
        self, one: Job, *, ok: bool = True, text: str = "", silent: bool = False
    ) -> JobEnd:
        """Takes the job's next slot, and ends its turn as the journal does."""
        fresh = await self.desk.jobs.get(one.id)
        assert fresh is not None
        assert fresh.next is not None
        due = fresh.next
        following = None if fresh.when.__class__.__name__ == "At" else _after(due)
        run = NewRun(
            run_id=RunId(f"job-{one.id}:{due.slot}"), lane="job:1", by=one.person_id, payload={}
        )
        taking = Taking(job_id=one.id, due=due, next=following, state=SlotState.TAKEN, run=run)
        assert isinstance(await self.desk.jobs.take(taking, of=fresh), Taken)
        state = "failed" if not ok else "silent" if silent else "found"
        result = json.dumps({"text": text, "tainted": False}) if state == "found" else None
        sql = "update job_runs set state = ?, result = ?, note = ?, ended_ms = ? where slot = ?"
        ended = 1 if state == "silent" else None
        values = (state, result, "" if ok else text, ended, due.slot)
        await self.desk.database.write(lambda c: c.execute(sql, values).rowcount)
        return JobEnd(job_id=one.id, slot=due.slot, ok=ok, text=text, silent=silent)

    async def puts_off(self, one: Job, *, anew: bool = True, free_at_ms: int | None = None) -> Job:
        """As the journal writes it where no model may be asked."""
        end = await self.run(one, ok=False, text="no credit")
        result = json.dumps({"anew": anew, "free_at_ms": free_at_ms})
        sql = "update job_runs set state = 'skipped', result = ? where slot = ?"
        await self.desk.database.write(lambda c: c.execute(sql, (result, end.slot)).rowcount)
        await self.outcomes.ended(end)
        fresh = await self.desk.jobs.get(one.id)
        assert fresh is not None
        return fresh

    async def ends(self, one: Job, **how: object) -> Job:
        await self.outcomes.ended(await self.run(one, **how))  # type: ignore[arg-type]
        fresh = await self.desk.jobs.get(one.id)
        assert fresh is not None
        return fresh


def _after(due: Due) -> Due:
    return Due(slot=f"{due.slot}'", at_ms=due.at_ms + 1_000)


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    clock, path = FixedClock(NOON), tmp_path / "hearthbot.db"
    async with Database.open(path, clock=clock) as database:
        yield Office(Desk(database, clock, path))


def look(**more: object) -> Job:
    return job("look", kind=JobKind.AGENT, set_by=SetBy.SKILL, **more)  # type: ignore[arg-type]


async def test_a_result_that_a_kill_left_untold_is_told_at_the_start_and_once(
    office: Office,
) -> None:
    one = await office.desk.add(look())
    await office.run(one, text="The backup failed.")

    await office.outcomes.catch_up()
    await office.outcomes.catch_up()

    assert office.desk.texts() == ["The backup failed."]


async def test_failures_are_waited_out_longer_each_time_and_end_with_a_success(
    office: Office,
) -> None:
    one = await office.desk.add(look())
    waits = []
    for _ in range(4):
        one = await office.ends(one, ok=False, text="the provider is down")
        waits.append(one.not_before_ms / 1000 - office.desk.clock.now().timestamp())
    assert waits == [60, 300, 900, 3600]
    assert (one.failures, one.enabled, office.stopped) == (4, True, [])

    one = await office.ends(one, silent=True)

    assert (one.failures, one.not_before_ms) == (0, 0)


async def test_after_five_failures_in_a_row_a_job_is_stopped_with_one_notice(
    office: Office,
) -> None:
    one = await office.desk.add(look())
    for _ in range(FAILURES_MAX):
        one = await office.ends(one, ok=False, text="no such skill")

    assert not one.enabled
    assert one.paused == "it failed 5 times in a row: no such skill"
    assert office.stopped == [("look", one.paused)]
    assert await office.desk.jobs.due(2**53, limit=9) == []


async def test_what_runs_once_and_fails_is_tried_again(office: Office) -> None:
    soon = at(office.desk.clock.now() + timedelta(minutes=1))
    one = await office.desk.add(look(when=soon))
    slot = one.next.slot if one.next else ""

    one = await office.ends(one, ok=False, text="busy")
    assert one.next is not None
    assert one.next.slot == f"{slot}+1"
    one = await office.ends(one, ok=False, text="busy")
    assert one.next is not None
    assert one.next.slot == f"{slot}+2"
    one = await office.ends(one, text="Done at last.")

    assert one.next is None
    assert office.desk.texts() == ["Done at last."]


async def test_a_failure_that_a_kill_left_uncounted_is_counted_at_the_start(
    office: Office,
) -> None:
    soon = at(office.desk.clock.now() + timedelta(minutes=1))
    one = await office.desk.add(look(when=soon))
    await office.run(one, ok=False, text="busy")

    await office.outcomes.catch_up()
    await office.outcomes.catch_up()

    fresh = await office.desk.jobs.get(one.id)
    assert fresh is not None
    assert (fresh.failures, fresh.next is not None) == (1, True)


class Killed(Exception):
    """The process ends here."""


async def test_a_kill_just_after_a_failure_was_counted_does_not_count_it_twice(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    soon = at(office.desk.clock.now() + timedelta(minutes=1))
    one = await office.desk.add(look(when=soon))
    end = await office.run(one, ok=False, text="busy")
    count = office.desk.jobs.failed

    async def count_and_die(*args: object, **how: object) -> None:
        await count(*args, **how)  # type: ignore[arg-type]
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(office.desk.jobs, "failed", count_and_die)
        with pytest.raises(Killed):
            await office.outcomes.ended(end)
    await office.outcomes.catch_up()

    fresh = await office.desk.jobs.get(one.id)
    assert fresh is not None
    assert (fresh.failures, fresh.next is not None) == (1, True)


async def test_what_is_put_off_is_no_failure_and_comes_again_as_often_as_is_needed(
    office: Office,
) -> None:
    soon = at(office.desk.clock.now() + timedelta(minutes=1))
    one = await office.desk.add(look(when=soon, max_runs=1))
    waits = []
    for _ in range(FAILURES_MAX + 2):
        one = await office.puts_off(one)
        assert one.next is not None
        waits.append(one.next.at_ms / 1000 - office.desk.clock.now().timestamp())
        assert (one.enabled, one.failures, one.not_before_ms, one.runs) == (True, 0, 0, 0)
    one = await office.ends(one, ok=False, text="busy")
    assert one.next is not None, "a slot of its own, whatever was tried before"
    one = await office.ends(one, text="Done at last.")

    assert waits == [*PUT_OFF_S, *[PUT_OFF_S[-1]] * 4]
    assert (one.next, office.stopped) == (None, [])
    assert office.desk.texts() == ["Done at last."]


async def test_what_is_put_off_waits_until_a_budget_is_free_or_the_job_is_due_before(
    office: Office,
) -> None:
    now_ms = int(office.desk.clock.now().timestamp() * 1000)
    once = await office.desk.add(look(when=at(office.desk.clock.now() + timedelta(minutes=1))))
    often = await office.desk.add(job("often", kind=JobKind.AGENT))
    often_next = often.next

    once = await office.puts_off(once, free_at_ms=now_ms + 3_600_000)
    often = await office.puts_off(often, free_at_ms=now_ms + 10**9)

    assert once.next is not None
    assert once.next.at_ms == now_ms + 3_600_000
    assert often_next is not None
    assert often.next == _after(often_next)


async def test_what_had_changed_something_is_not_done_anew(office: Office) -> None:
    soon = at(office.desk.clock.now() + timedelta(minutes=1))
    one = await office.puts_off(await office.desk.add(look(when=soon)), anew=False)

    assert (one.next, one.failures, office.stopped) == (None, 0, [])


async def test_what_a_kill_left_put_off_comes_again_once(office: Office) -> None:
    soon = at(office.desk.clock.now() + timedelta(minutes=1))
    one = await office.desk.add(look(when=soon, max_runs=3))
    await office.run(one, ok=False, text="no credit")
    sql = """update job_runs set state = 'skipped', result = '{"anew": true}'"""
    await office.desk.database.write(lambda c: c.execute(sql).rowcount)

    await office.outcomes.catch_up()
    await office.outcomes.catch_up()

    fresh = await office.desk.jobs.get(one.id)
    assert fresh is not None
    assert fresh.next is not None
    assert (fresh.runs, fresh.next.slot.partition("+")[2]) == (0, "1")


async def test_a_heartbeat_that_is_put_off_beats_again_in_its_time(office: Office) -> None:
    one = await office.desk.add(job("beat", kind=JobKind.HEARTBEAT, set_by=SetBy.BOT))
    due = one.next

    one = await office.puts_off(one)

    assert due is not None
    assert one.next == _after(due)
    assert office.beats == [("put off", "no credit")]


async def test_a_job_that_was_removed_meanwhile_tells_nothing(office: Office) -> None:
    one = await office.desk.add(look())
    end = await office.run(one, text="Too late.")
    await office.desk.jobs.remove(one.id)

    await office.outcomes.ended(end)

    assert office.desk.texts() == []


async def test_what_came_of_a_heartbeat_is_kept_for_who_asks_why(office: Office) -> None:
    beat = job("beat", kind=JobKind.HEARTBEAT, set_by=SetBy.BOT)
    one = await office.desk.add(beat)
    await office.ends(one, text="Rent is due.")
    await office.ends(one, silent=True)
    await office.ends(one, ok=False, text="busy")

    assert office.beats == [("told", "Rent is due."), ("silent", ""), ("failed", "busy")]


# --- questions about what was missed -------------------------------------------------------------


async def _unasked(office: Office) -> Job:
    one = await office.desk.add(look())
    assert one.next is not None
    taking = Taking(job_id=one.id, due=one.next, next=None, state=SlotState.ASKED, note=UNASKED)
    assert isinstance(await office.desk.jobs.take(taking, of=one), Taken)
    return one


async def test_what_nobody_was_asked_so_far_is_asked_from_the_start_on_and_once(
    office: Office,
) -> None:
    one, jobs = await _unasked(office), office.desk.jobs
    card = NewMessage(lane="telegram:5", text="Shall I make up for it?")

    await office.outcomes.catch_up()
    await office.outcomes.catch_up()
    untold = await jobs.missed()
    await jobs.tell_missed(untold, (), asked=ASKED)  # there is no chat yet
    await office.outcomes.catch_up()
    again = await jobs.missed()
    await jobs.tell_missed(again, [card], asked=ASKED)
    await office.outcomes.catch_up()

    assert [(dues.job_id, dues.last, dues.count) for dues in untold] == [(one.id, one.next, 1)]
    assert again == untold
    assert await jobs.missed() == []
    assert [run.note for run in await jobs.runs(one.id, limit=1)] == [ASKED]
