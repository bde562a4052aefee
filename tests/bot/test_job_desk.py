"""What one run of a job takes, learned from its last ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from memory.database.connection import Database
from memory.records.jobs import Due, Job, JobKind, SlotState, Taken, Taking
from memory.records.messages import RunId
from memory.records.ports import NewRun
from memory.records.transcript import Usage
from memory.records.usage import CallState, Changes, Charge, ModelCall, Purpose
from memory.stores.jobs import SqliteJobs
from memory.stores.usage import SqliteUsage
from scheduler.kinds.dry_run import RUNS_COUNTED, RUNS_MIN, PastCosts
from tests.fakes import FixedClock
from tests.scheduler.jobs_kit import job

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
