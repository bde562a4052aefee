"""What jobs will do and cost is told beforehand, without any effect, and in plain words."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agent.skills.skill import SkillState
from bot.cli.schedule.render import clock_note, cost_words, pace_words
from bot.commands.jobs.messages import takes_words
from memory.database.connection import Database
from memory.records.errors import AssistantError
from memory.records.jobs import (
    OPERATOR,
    At,
    Cron,
    Due,
    Every,
    Job,
    JobKind,
    JobRef,
    RecurrenceUnit,
    SetBy,
    SlotState,
    Taken,
    Taking,
    What,
)
from memory.records.messages import PersonId, RunId
from memory.records.ports import NewRun
from memory.records.schedule import Estimate, Pace, RunCost
from memory.records.transcript import Usage
from memory.records.usage import CallState, Changes, Charge, ModelCall, Purpose
from memory.stores.jobs import SqliteJobs
from memory.stores.usage import SqliteUsage
from scheduler.kinds.dry_run import RUNS_COUNTED, RUNS_MIN, DryRun, PastCosts, next_shift
from tests.bot.jobs_kit import BRIEFING, Workshop
from tests.fakes import FixedClock
from tests.scheduler.jobs_kit import job
from tests.scheduler.service_kit import BERLIN, MORNING

J1 = JobRef("j1")


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Workshop]:
    shop = Workshop(tmp_path)
    async with shop.opened():
        yield shop


async def kept(
    shop: Workshop, text: str = "water", when: str = "every day at 9", **more: Any
) -> Job:
    return await shop.jobs.add(shop.draft(when, text=text, **more), by=OPERATOR)


async def works(shop: Workshop, when: str = "every day at 9") -> Job:
    return await kept(shop, "look for rain", when, kind=JobKind.AGENT)


async def dry_run(shop: Workshop, *, with_model: bool = False) -> DryRun:
    return await shop.dry_runs.dry_run(J1, by=OPERATOR, with_model=with_model)


# --- details --------------------------------------------------------------------------------------


async def test_a_job_shows_its_next_runs_and_its_last_ones(shop: Workshop) -> None:
    await kept(shop)
    await shop.to(MORNING + timedelta(hours=1))

    shown = await shop.dry_runs.details(JobRef("water"), by=OPERATOR)

    assert [(run.due.slot, run.state.value) for run in shown.runs] == [("2026-06-01T09:00", "told")]
    assert [one.due.slot for one in shown.next_runs][:2] == ["2026-06-02T09:00", "2026-06-03T09:00"]


async def test_a_job_whose_zone_is_gone_is_listed_shown_and_tested(shop: Workshop) -> None:
    await works(shop)
    with closing(sqlite3.connect(shop.path)) as connection:
        connection.execute("update jobs set runs_when = replace(runs_when, 'Europe/', 'Mars/')")
        connection.commit()

    (listed,) = (await shop.jobs.list(by=OPERATOR)).jobs

    assert listed.job.when.zone == "Mars/Berlin"
    assert "Mars/Berlin" in (await shop.dry_runs.details(J1, by=OPERATOR)).trouble
    assert "Mars/Berlin" in (await dry_run(shop)).trouble
    assert [key for key, _ in (await shop.dry_runs.forecast(days=2.0)).troubles] == ["j1"]


# --- dry runs -------------------------------------------------------------------------------------


async def test_a_test_shows_all_of_a_run_and_has_no_effect(shop: Workshop) -> None:
    await works(shop)
    await shop.notifications.set_quiet_hours(PersonId("p1"), (22 * 60, 9 * 60 + 30))
    before = dump(shop.path)

    found = await dry_run(shop)

    assert (found.sent.system, found.sent.user) == ("You are a helper.", "look for rain")
    assert (found.sent.model, found.sent.tokens, found.heard) == ("fake/model", 1_200, None)
    first = found.next_runs[0]
    assert (first.due.slot, first.fate) == ("2026-06-01T09:00", "held")
    assert first.told_ms == ms("2026-06-01T09:30+02:00")
    assert found.estimate is not None
    assert found.estimate.a_day.dollars == pytest.approx(0.01)
    assert shop.stage.asked == []
    assert dump(shop.path) == before


async def test_a_test_shows_the_runs_around_the_next_change_of_clocks(shop: Workshop) -> None:
    made = await kept(shop, when="30 2 * * *")

    shift = (await dry_run(shop)).shift

    assert shift is not None
    assert shift.at.isoformat() == "2026-10-25T02:00:00+01:00"
    assert shift.runs[0].due.at_ms == ms("2026-10-25T02:30+02:00")
    assert clock_note(shift.runs[0].due, made) == "clocks are set back: this time comes twice"


async def test_a_test_with_the_model_says_what_it_would_do(shop: Workshop) -> None:
    await works(shop)

    heard = (await dry_run(shop, with_model=True)).heard

    assert heard is not None
    assert (heard.text, [one.name for one in heard.wishes]) == ("Nothing today.", ["list_events"])
    (turn,) = shop.stage.asked
    assert turn.job is not None
    assert turn.conversation == "", "no conversation was opened for it"


async def test_a_test_says_what_would_keep_a_job_from_running(shop: Workshop) -> None:
    await shop.add(
        job("skill:gone", kind=JobKind.SKILL, set_by=SetBy.SKILL, what=What(skill="gone"))
    )

    assert "there is no skill 'gone'" in (await dry_run(shop, with_model=True)).trouble


# --- forecasts ------------------------------------------------------------------------------------


async def test_a_simulation_shows_all_that_would_fire_with_its_cost(shop: Workshop) -> None:
    await kept(shop)
    await works(shop, "every Monday at 18:00")
    before = dump(shop.path)

    found = await shop.dry_runs.forecast(days=7.0)

    agent = [run.due.slot for run in found.runs if run.job.kind is JobKind.AGENT]
    assert (len(found.runs), agent) == (8, ["2026-06-01T18:00"])
    assert (found.calls, found.tokens, found.unpriced) == (3, 9_000, 0)
    assert found.dollars == pytest.approx(0.01)
    assert dump(shop.path) == before


async def test_heartbeats_are_foreseen_only_if_there_is_something_to_look_at(
    shop: Workshop,
) -> None:
    beat = Every(count=30, unit=RecurrenceUnit.MINUTE, start=MORNING, zone="Europe/Berlin")
    await shop.add(
        job("heartbeat", when=beat, kind=JobKind.HEARTBEAT, set_by=SetBy.BOT, what=What())
    )

    empty = await shop.dry_runs.forecast(days=1.0)
    shop.has_beats("- look after the oven")
    full = await shop.dry_runs.forecast(days=0.2)

    assert empty.runs == ()
    assert [run.fate for run in full.runs][:4] == ["told", "told", "told", "digest"]


@pytest.mark.parametrize(
    ("days", "since", "words"),
    [(0.0, None, "366 days"), (400.0, None, "366 days"), (7.0, "2020-01-01T00:00+00:00", "over")],
)
async def test_a_span_that_cannot_be_looked_at_is_refused(
    shop: Workshop, days: float, since: str | None, words: str
) -> None:
    begin = None if since is None else datetime.fromisoformat(since)
    with pytest.raises(AssistantError, match=words):
        await shop.dry_runs.forecast(days=days, since=begin)


# --- cost -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("skill", ["other", "quarantined"])
async def test_of_a_skill_that_may_not_be_used_no_cost_is_told(shop: Workshop, skill: str) -> None:
    waits = replace(BRIEFING, name="quarantined", state=SkillState.QUARANTINED)
    shop.skills = (*shop.skills, waits)

    with pytest.raises(AssistantError, match="skill"):
        await shop.dry_runs.skill_estimate(skill)


@pytest.mark.parametrize(
    ("runs", "dollars", "is_once", "said"),
    [
        (3.0, 0.01, False, "a run, 3 runs a day: about $0.030 a day with m"),
        (0.714, 0.01, False, "a run, 5 runs a week: about $0.0071 a day with m"),
        (0.033, 0.01, False, "a run, 12 runs a year: about $0.00033 a day with m"),
        (2.0, None, False, "a run, 2 runs a day: about 2,000 tokens a day with m; price unknown"),
        (0.003, 0.01, True, ", once: about $0.010 with m"),
        (0.003, None, True, ", once: price unknown with m"),
    ],
)
def test_what_a_job_takes_is_one_line(
    runs: float, dollars: float | None, is_once: bool, said: str
) -> None:
    a_day = Pace(runs=runs, tokens=1_000 * runs, dollars=dollars and dollars * runs)
    cost = RunCost(calls=1, tokens=1_000, dollars=dollars)

    when = At(moment=MORNING, zone="UTC") if is_once else None
    line = takes_words(job(when=when), Estimate(cost=cost, a_day=a_day, model="m"))

    assert line.startswith("about 1,000 tokens")
    assert line.endswith(said)


def test_an_unknown_price_is_said_so() -> None:
    a_day = Pace(runs=4.0, tokens=4_000.0, dollars=None)
    cost = RunCost(calls=1, tokens=1_000, dollars=None)

    assert pace_words(Estimate(cost=cost, a_day=a_day)) == (
        "It will take 4,000 tokens a day, 120,000 a month; price unknown. One run (1 call of a "
        "model): price unknown (1,000 tokens)."
    )
    assert cost_words(None, 0) == "nothing"


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("2026-03-29T01:00", "set forward"),
        ("2026-10-25T00:30", "comes twice"),
        ("2026-10-25T01:30", "the second"),
        ("2026-03-29T07:00", "CEST instead of CET"),
        ("2026-06-01T07:00", ""),
        ("2026-03-29T00:30", ""),
    ],
)
def test_what_a_change_of_clocks_does_to_a_run_is_said(at: str, words: str) -> None:
    due = Due(slot="", at_ms=ms(f"{at}+00:00"))

    note = clock_note(due, job(when=Cron(expression="0 9 * * *", zone=BERLIN.key)))

    assert (words in note) if words else not note


def test_the_next_change_of_clocks_is_found_to_the_minute() -> None:
    assert next_shift(MORNING, BERLIN) == datetime(2026, 10, 25, 1, 0, tzinfo=UTC)
    assert next_shift(MORNING, ZoneInfo("Asia/Kolkata")) is None


def ms(at: str) -> int:
    return int(datetime.fromisoformat(at).timestamp() * 1000)


def dump(path: Path) -> list[str]:
    """All that is stored."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


PRICE, LONG = 1e-6, 10_000
DAY = timedelta(days=1)


async def priced(lane: str, usage: Usage) -> float | None:
    """A dollar for a million tokens; longer prompts cost twice as much."""
    dear = 2 if usage.prompt > LONG else 1
    return (usage.prompt + usage.completion) * PRICE * dear


class Ledger:
    """A job that ran at times, with the calls of its runs."""

    def __init__(self, database: Database, clock: FixedClock, kept: Job) -> None:
        self._jobs, self._usage = SqliteJobs(database), SqliteUsage(database)
        self._clock = clock
        self._calls = 0
        self.job = kept
        self.past = PastCosts(self._jobs, self._usage, priced)

    async def ran(self, *prompts: int, is_over: bool = True) -> None:
        """One run, a day later, of calls with prompts of so many tokens."""
        self._clock.move(DAY.total_seconds())
        due = Due(slot=f"{self._clock.now():%Y-%m-%dT%H:%M}", at_ms=self.now_ms)
        run = NewRun(
            run_id=RunId(f"job-{self.job.id}:{due.slot}"),
            lane=f"job:{self.job.id}",
            by=self.job.person_id,
            payload={},
        )
        taking = Taking(
            job_id=self.job.id, due=due, next=self.job.next, state=SlotState.TAKEN, run=run
        )
        assert isinstance(await self._jobs.take(taking, of=self.job), Taken)
        await self._usage.put(Changes(calls=[self._call(prompt) for prompt in prompts]))
        if is_over:
            await self._jobs.end(self.job.id, due.slot, SlotState.SILENT)
        found = await self._jobs.get(self.job.id)
        assert found is not None
        self.job = found

    @property
    def now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)

    def _call(self, prompt: int) -> ModelCall:
        self._calls += 1
        return ModelCall(
            id=self._calls,
            at_ms=self.now_ms,
            charge=Charge(purpose=Purpose.JOB, person_id=self.job.person_id, job=self.job.name),
            model="fake/model",
            usage=Usage(prompt=prompt, completion=10),
            micros=None,
            guessed=prompt,
            state=CallState.COUNTED,
        )


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    clock = FixedClock()
    async with Database.open(tmp_path / "hearthbot.db", clock=clock) as database:
        due = Due(slot="first", at_ms=int(clock.now().timestamp() * 1000))
        kept = await SqliteJobs(database).add(job("rain", kind=JobKind.AGENT), due)
        assert kept is not None
        yield Ledger(database, clock, kept)


async def test_too_few_runs_tell_nothing(ledger: Ledger) -> None:
    for _ in range(RUNS_MIN - 1):
        await ledger.ran(1000)

    assert await ledger.past.cost(ledger.job) is None


async def test_the_mean_of_the_runs_counts(ledger: Ledger) -> None:
    await ledger.ran(1000)
    await ledger.ran(1000, 2000)
    await ledger.ran(1000, 2000, 5000)

    cost = await ledger.past.cost(ledger.job)

    assert cost is not None
    assert (cost.calls, cost.tokens) == (2, 12_060 // 3)
    assert cost.dollars == pytest.approx(12_060 / 3 * PRICE)


async def test_a_run_at_work_is_not_counted_yet(ledger: Ledger) -> None:
    for _ in range(RUNS_MIN):
        await ledger.ran(1000)
    await ledger.ran(9000, is_over=False)

    cost = await ledger.past.cost(ledger.job)

    assert cost is not None
    assert cost.tokens == 1010


async def test_only_the_newest_runs_count(ledger: Ledger) -> None:
    await ledger.ran(500_000)
    for _ in range(RUNS_COUNTED):
        await ledger.ran(1000)

    cost = await ledger.past.cost(ledger.job)

    assert cost is not None
    assert cost.tokens == 1010


async def test_many_short_prompts_are_not_priced_as_one_long_one(ledger: Ledger) -> None:
    for _ in range(RUNS_MIN):
        await ledger.ran(*[LONG] * 5)

    cost = await ledger.past.cost(ledger.job)

    assert cost is not None
    assert cost.dollars == pytest.approx(5 * (LONG + 10) * PRICE)
