"""What was used and what it cost, by whom and for what; the owner's pause and its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta, tzinfo
from typing import get_args
from zoneinfo import ZoneInfo

from agent.budget.budget import Budget
from memory.records.messages import PersonId, Role
from memory.records.ports import Clock
from memory.records.rows import Person
from memory.records.usage import (
    NOBODY,
    SLOT_MS,
    Charge,
    Dimension,
    Pause,
    Paused,
    Period,
    Purpose,
    Scope,
    Standing,
    UsageFigures,
    UsageQuery,
    UsageSum,
    added,
    bounds,
)
from memory.stores.usage import SqliteUsage

DAYS, DAYS_MAX = 30, 3_660
"""How far back a report looks, unless it is told otherwise."""

BY = ("day", "person", "chat", "job", "agent", "model", "purpose")
"""By what a report can be, in the order in which it is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow(UsageFigures):
    """The sum of one day, person, chat, …"""

    key: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRow:
    """How a budget stands, in its unit."""

    scope: str
    subject: str
    name: str
    period: str
    unit: str
    used: int
    held: int
    amount: int
    share: float
    free_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRow:
    """Why the bot stands still."""

    kind: str
    since_ms: int
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReport:
    """What was used from the day `since` to the day `until`. `off` is how far estimates were off.
    Of a running bot: its budgets, why it stands still, and the tokens of the last hour."""

    since: str
    until: str
    zone: str
    total: UsageFigures
    off: float
    by: Mapping[str, tuple[UsageRow, ...]]
    budgets: tuple[BudgetRow, ...]
    paused: tuple[PauseRow, ...]
    hour: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """What a resume ended; `clock`: this machine's clock was doubted, and is trusted now."""

    lifted: frozenset[Pause] = frozenset()
    clock: bool = False

    def __bool__(self) -> bool:
        return bool(self.lifted) or self.clock


class UsageService:
    """Adds up what was used, and pauses and resumes what asks models. Raises StorageError."""

    def __init__(
        self,
        store: SqliteUsage,
        budget: Budget | None,
        people: Callable[[], Sequence[Person]],
        *,
        name_of: Callable[[str], str],
        clock: Clock,
        host_zone: str,
        resumed: Callable[[], Awaitable[None]] | None = None,
        trust: Callable[[], bool] = lambda: False,
    ) -> None:
        """`budget` None: no bot runs here, and only what is stored can be told. `people` are those
        who are let in, `name_of` what a person is called. `resumed` is called when a pause is over,
        so that what it held goes on at once. `trust` declares this machine's clock right, and
        returns whether it was doubted."""
        self._store = store
        self._people = people
        self.name_of = name_of
        self._clock = clock
        self._resumed = resumed
        self._trust = trust
        self.budget = budget
        self.host_zone: tzinfo = ZoneInfo(host_zone)

    @property
    def is_paused(self) -> bool:
        """Return whether the owner has paused everything."""
        return self.budget is not None and self.budget.hand.paused is not None

    async def flush(self) -> None:
        """Return once all that was used is stored."""
        if self.budget is not None:
            await self.budget.flush()

    async def used(
        self,
        period: Period,
        by: tuple[Dimension, ...] = (),
        *,
        person_id: PersonId = NOBODY,
        zone: tzinfo | None = None,
    ) -> Sequence[UsageSum]:
        """Return what was used in this day or month, of one person where one is named, as far as it
        is stored: `flush` stores the rest."""
        since_ms, until_ms = bounds(period, self._clock.now(), zone or self.host_zone)
        return await self._store.groups(
            UsageQuery(since_ms=since_ms, until_ms=until_ms, by=by, person_id=person_id)
        )

    async def report(self, *, days: int = DAYS, by: Sequence[str] = BY) -> UsageReport:
        """Tell what was used on the last `days` days by this machine's clock, today among them."""
        await self.flush()
        now = self._clock.now()
        first = now.astimezone(self.host_zone) - timedelta(days=min(days, DAYS_MAX) - 1)
        since_ms, _ = bounds(Period.DAY, first, self.host_zone)
        until_ms = bounds(Period.DAY, now, self.host_zone)[1]
        whole = added(await self._store.groups(UsageQuery(since_ms=since_ms, until_ms=until_ms)))
        return UsageReport(
            since=self._day(since_ms),
            until=self._day(until_ms - 1),
            zone=str(self.host_zone),
            total=UsageFigures(**_figures(whole)),
            off=whole.off_tokens / whole.counted_tokens if whole.counted_tokens else 0.0,
            by={one: await self._rows(one, since_ms, until_ms) for one in BY if one in by},
            budgets=await self._budgets(),
            paused=tuple(
                PauseRow(kind=one.kind.value, since_ms=one.since_ms, words=one.words)
                for one in self.pauses()
            ),
            hour=sum(self.hours().values()) if self.budget else None,
        )

    async def standings(self, person: Person) -> Sequence[Standing]:
        """Return how the budgets stand that a message of a person would be on."""
        return [] if self.budget is None else await self.budget.standings(_charge_of(person))

    def hours(self) -> Mapping[str, int]:
        """Tokens of the last hour, by agent."""
        if self.budget is None:
            return {}
        return {agent: one.rush().hour for agent, one in self.budget.brakes.by_agent.items()}

    def pauses(self) -> Sequence[Paused]:
        """Why the bot stands still, or parts of it."""
        if self.budget is None:
            return []
        found = [*self.budget.brakes.paused, self.budget.hand.paused]
        return [one for one in found if one is not None]

    async def pause(self) -> bool:
        """Have new turns and everything unasked wait. False when they do already."""
        assert self.budget is not None, "only a running bot can be paused"
        return await self.budget.pause()

    async def resume(self) -> Resumed:
        """Have all go on, what the brake held too."""
        assert self.budget is not None, "only a running bot can be resumed"
        done = Resumed(lifted=await self.budget.resume(), clock=self._trust())
        if done and self._resumed is not None:
            await self._resumed()
        return done

    # --- steps ---------------------------------------------------------------------------------

    async def _rows(self, by: str, since_ms: int, until_ms: int) -> tuple[UsageRow, ...]:
        """Return the largest first, days in their order."""
        dimension: Dimension = (
            "slot" if by == "day" else next(one for one in get_args(Dimension) if one == by)
        )
        query = UsageQuery(since_ms=since_ms, until_ms=until_ms, by=(dimension,))
        field = {"person": "person_id", "chat": "lane"}.get(by, by)

        def key(group: UsageSum) -> str:
            return self._day(group.slot * SLOT_MS) if by == "day" else str(getattr(group, field))

        found = grouped(await self._store.groups(query), key)
        names = {"job": "no job", "chat": "no chat"}
        return tuple(
            UsageRow(
                key=key,
                name=self.name_of(key) if by == "person" else key or names.get(by, "unknown"),
                **_figures(found[key]),
            )
            for key in (sorted(found) if by == "day" else largest_first(found))
        )

    def _day(self, ms: int) -> str:
        return datetime.fromtimestamp(ms / 1000, UTC).astimezone(self.host_zone).date().isoformat()

    async def _budgets(self) -> tuple[BudgetRow, ...]:
        """Return those of the whole bot and of each person, agent and job that any is about."""
        if self.budget is None:
            return ()
        charges = [_charge_of(person) for person in self._people()]
        for limit in self.budget.limits:
            if limit.scope is Scope.AGENT:
                charges.append(Charge(purpose=Purpose.CHAT, agent=limit.of))
            elif limit.scope is Scope.JOB:
                charges.append(Charge(purpose=Purpose.JOB, job=limit.of))
        found: dict[tuple[str, str], BudgetRow] = {}
        for charge in charges or [Charge(purpose=Purpose.CHAT)]:
            for one in await self.budget.standings(charge):
                is_persons = one.limit.scope is Scope.PERSON
                row = BudgetRow(
                    scope=one.limit.scope.value,
                    subject=one.subject,
                    name=self.name_of(one.subject) if is_persons else one.subject,
                    period=one.limit.period.value,
                    unit=one.limit.unit.value,
                    used=one.used,
                    held=one.held,
                    amount=one.limit.amount,
                    share=round(one.share, 4),
                    free_at_ms=one.end_ms,
                )
                found.setdefault((one.limit.key, one.subject), row)
        return tuple(found.values())


def grouped(groups: Iterable[UsageSum], key: Callable[[UsageSum], str]) -> Mapping[str, UsageSum]:
    """Add up by a key."""
    found: dict[str, list[UsageSum]] = {}
    for group in groups:
        found.setdefault(key(group), []).append(group)
    return {name: added(sums) for name, sums in found.items()}


def largest_first(sums: Mapping[str, UsageSum]) -> Sequence[str]:
    """Order keys by money, then by tokens."""
    return sorted(sums, key=lambda key: (-sums[key].micros, -sums[key].tokens, key))


def _figures(one: UsageSum) -> dict[str, int]:
    return {field.name: getattr(one, field.name) for field in fields(UsageFigures)}


def _charge_of(person: Person) -> Charge:
    return Charge(
        purpose=Purpose.CHAT,
        person_id=person.id,
        is_owner=person.role is Role.OWNER,
        time_zone=person.time_zone,
    )
