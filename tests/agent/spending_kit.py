"""What the tests of spending share: a clock that moves when told to, and a budget over a real
database with the real price table."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from agent.budget.budget import Budget, BudgetOptions
from agent.budget.circuit_breaker import BrakeOptions, Brakes
from agent.models.catalog import PriceTable
from memory.database.connection import Database
from memory.records.errors import StorageFull
from memory.records.messages import PersonId, RunId
from memory.records.transcript import Usage
from memory.records.usage import (
    Account,
    Allowance,
    BudgetUnit,
    Changes,
    Charge,
    Limit,
    Notice,
    Period,
    Purpose,
    Scope,
    Spent,
)
from memory.stores.usage import SqliteUsage
from tests.laid import lay

NOON = datetime(2026, 8, 3, 12, 0, tzinfo=UTC)
MODEL, CHEAP, STRANGE = "gpt-4.1", "gpt-4.1-nano", "somebody/unheard-of"
BERLIN = ZoneInfo("Europe/Berlin")


class HandClock:
    """Wall and monotonic time, each moved by hand; sleepers wake when it has passed."""

    def __init__(self, start: datetime = NOON, *, up_s: float = 0.0) -> None:
        self._now = start
        self._up_s = up_s
        self._moved = asyncio.Event()
        self.sleepers = 0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._up_s

    async def sleep(self, seconds: float) -> None:
        until = self._up_s + seconds
        self.sleepers += 1
        try:
            while self._up_s < until:
                await self._moved.wait()
        finally:
            self.sleepers -= 1

    def move(self, seconds: float) -> None:
        self._up_s += seconds
        self.jump(seconds)

    def jump(self, seconds: float) -> None:
        """The wall clock alone: somebody set it."""
        self._now += timedelta(seconds=seconds)
        self._moved.set()
        self._moved = asyncio.Event()

    def set(self, moment: datetime) -> None:
        """Time passes up to a moment."""
        self.move((moment - self._now).total_seconds())


class Ledger(SqliteUsage):
    """The real one; it counts its transactions, and its disk can be full."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.commits = 0
        self.is_full = False

    async def put(self, changes: Changes, sums: Sequence[Account] = ()) -> Sequence[Spent]:
        if self.is_full:
            raise StorageFull("the disk is full")
        self.commits += 1
        return await super().put(changes, sums)


@dataclass(slots=True, kw_only=True)
class Purse:
    """A budget that runs, and what it told."""

    budget: Budget
    ledger: Ledger
    clock: HandClock
    told: list[Notice] = field(default_factory=list)

    async def ask(
        self, charge: Charge, *, tokens_in: int = 1_000, tokens_out: int = 1_000, cheap: str = ""
    ) -> Allowance:
        return await self.budget.before(
            charge, model=MODEL, cheap_model=cheap, tokens_in=tokens_in, tokens_out=tokens_out
        )

    async def spend(self, charge: Charge, tokens: int, *, model: str = MODEL) -> Allowance:
        """A call that takes exactly so many tokens: nothing of it is a surprise."""
        allowance = await self.budget.before(charge, model=model, tokens_in=tokens, tokens_out=0)
        if allowance.reservation is not None:
            await self.budget.after(allowance.reservation, Usage(prompt=tokens))
        return allowance

    async def settled(self) -> list[Notice]:
        """What was told, once the writer had its time."""
        for _ in range(3):
            self.clock.move(1)
            await asyncio.sleep(0.005)
            for _ in range(5_000):
                if self.budget.is_quiet or self.clock.sleepers:
                    break
                await asyncio.sleep(0.001)
        return self.told


@asynccontextmanager
async def purse(
    path: Path,
    *limits: Limit,
    clock: HandClock | None = None,
    options: BudgetOptions | None = None,
    brake: BrakeOptions | None = None,
) -> AsyncIterator[Purse]:
    clock = clock or HandClock()
    lay(path)
    async with (
        Database.open(path, clock=clock) as database,
        purse_on(database, *limits, clock=clock, options=options, brake=brake) as one,
    ):
        yield one


@asynccontextmanager
async def purse_on(
    database: Database,
    *limits: Limit,
    clock: HandClock,
    options: BudgetOptions | None = None,
    brake: BrakeOptions | None = None,
) -> AsyncIterator[Purse]:
    told: list[Notice] = []

    async def tell(notice: Notice) -> None:
        told.append(notice)

    ledger = Ledger(database)
    budget = Budget(
        ledger,
        PriceTable().find,
        Brakes(brake or BrakeOptions(enabled=False), clock),
        options=replace(options or BudgetOptions(input_margin=1.0), limits=limits),
        clock=clock,
        host_zone=UTC,
        tell=tell,
    )
    async with budget.running():
        yield Purse(budget=budget, ledger=ledger, clock=clock, told=told)


def charge(
    person: str = "p1",
    *,
    run: str = "",
    job: str = "",
    agent: str = "default",
    purpose: Purpose = Purpose.CHAT,
    zone: str = "",
    is_owner: bool = False,
) -> Charge:
    return Charge(
        purpose=purpose,
        person_id=PersonId(person),
        is_owner=is_owner,
        lane="telegram:5",
        run_id=RunId(run),
        job=job,
        agent=agent,
        time_zone=zone,
    )


def limit(
    amount: int,
    *,
    scope: Scope = Scope.PERSON,
    period: Period = Period.DAY,
    unit: BudgetUnit = BudgetUnit.TOKENS,
    of: str = "",
) -> Limit:
    return Limit(scope=scope, period=period, unit=unit, amount=amount, of=of)
