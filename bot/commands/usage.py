"""What was used and what it cost: `/usage`, `hearthbot usage`, `/pause` and `/resume`.

Built by `bot.app`; its operations are served on the private socket, which is the owner's alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, get_args
from zoneinfo import ZoneInfo

from agent.budget.budget import Budget
from agent.budget.circuit_breaker import RESUME
from agent.budget.messages import amount_words, budget_name, free_words
from bot.commands.prompt_messages import PRICE_UNKNOWN, money, percent
from bot.people.register import called, gone
from bot.rpc import Emit, Operation
from memory.records.messages import DEFAULT_AGENT, IncomingMessage, PersonId, Role
from memory.records.ports import Clock
from memory.records.rows import Person
from memory.records.spending import (
    MICROS,
    NOBODY,
    SLOT_MS,
    Charge,
    Dimension,
    Pause,
    Period,
    Purpose,
    Scope,
    Standing,
    Unit,
    UsageQuery,
    UsageSum,
    bounds,
    zone_for,
)

Json = dict[str, Any]

DAYS, DAYS_MAX = 30, 3_660
"""How far back `hearthbot usage` looks, unless it is told otherwise."""

SHOWN_IN_CHAT_MAX = 8
BY = ("day", "person", "chat", "job", "agent", "model", "purpose")
"""What can be asked for, in the order in which it is shown."""

IN_PRIVATE = "What you used is nobody else's business: send `/usage` to me in a private chat."
PAUSED = (
    "Paused. I store what is written to me and start nothing by myself until you send `/resume`; "
    "what is being answered now is finished. Reminders still come."
)
PAUSED_ALREADY = "I am paused already. Send `/resume` and I go on."
NOT_PAUSED = "Nothing was paused."
CLOCK_TRUSTED = "I trust this machine's clock from now on, and go on."
NOBODY_IN_PARTICULAR = "nobody in particular"
FOR_OWNER = "That is for the owner."


@dataclass(slots=True)
class _Sum:
    """Groups added up."""

    calls: int = 0
    prompt: int = 0
    completion: int = 0
    cached: int = 0
    micros: int = 0
    unpriced: int = 0
    estimated: int = 0

    def add(self, group: UsageSum) -> None:
        self.calls += group.calls
        self.prompt += group.prompt
        self.completion += group.completion
        self.cached += group.cached
        self.micros += group.micros
        self.unpriced += group.unpriced
        self.estimated += group.estimated

    @property
    def tokens(self) -> int:
        return self.prompt + self.completion


class UsageDesk:
    """Answers what a person asks about usage, and does what the owner decides."""

    def __init__(
        self,
        sums: Callable[[UsageQuery], Awaitable[Sequence[UsageSum]]],
        budget: Budget | None,
        people: Callable[[], Sequence[Person]],
        *,
        clock: Clock,
        host_zone: str,
        resumed: Callable[[], Awaitable[None]] | None = None,
        trust: Callable[[], bool] = lambda: False,
    ) -> None:
        """`budget` None: no bot runs here, and only what is stored can be told. `people` are those
        who are let in, for their names. `resumed` is called when a pause is over, so that what it
        held goes on at once. `trust` declares this machine's clock right, and returns whether it
        was doubted."""
        self._sums = sums
        self._budget = budget
        self._people = people
        self._clock = clock
        self._host_zone: tzinfo = ZoneInfo(host_zone)
        self._resumed = resumed
        self._trust = trust

    @property
    def is_paused(self) -> bool:
        """Whether the owner has paused everything."""
        return self._budget is not None and self._budget.hand.paused is not None

    # --- in a chat -----------------------------------------------------------------------------

    async def tell(self, message: IncomingMessage, person: Person) -> str:
        """What `/usage` says: the person's own view; the owner also sees everybody's."""
        if message.is_group:
            return IN_PRIVATE
        await self._up_to_date()
        zone = zone_for(Scope.PERSON, person.time_zone, self._host_zone)
        shows_money = person.role is not Role.GUEST
        own = await self._own_lines(person, zone, shows_money=shows_money)
        budgets = await self._budget_lines(person, zone, shows_money=shows_money)
        parts = [own, budgets]
        if person.role is Role.OWNER:
            parts += [await self._all_lines(), self._brake_lines()]
        return "\n\n".join("\n".join(lines) for lines in parts if lines)

    async def pause(self, person: Person) -> str:
        """What `/pause` does: new turns and everything unasked wait."""
        if person.role is not Role.OWNER:
            return FOR_OWNER
        return await self._pause()

    async def resume(self, person: Person) -> str:
        """What `/resume` and the button do: all goes on, what the brake held too."""
        if person.role is not Role.OWNER:
            return FOR_OWNER
        return await self._resume()

    async def pressed(self, data: str, person: Person) -> str | None:
        """What comes of a tapped button; None when it is none of ours."""
        return await self.resume(person) if data == RESUME.data else None

    # --- on the command line -------------------------------------------------------------------

    async def report(self, *, days: int = DAYS, by: Sequence[str] = BY) -> Json:
        """What was used on the last `days` days by this machine's clock, today among them.

        `total`, and `by` each dimension its rows, with `key`, `name` and figures (`micros` are
        millionths of a dollar; `unpriced` calls are not in them); `budgets` with their share,
        `paused` and `hour` of a running bot, and `off`, how far estimates were off.
        """
        await self._up_to_date()
        now = self._clock.now()
        first = now.astimezone(self._host_zone) - timedelta(days=min(days, DAYS_MAX) - 1)
        since_ms, _ = bounds(Period.DAY, first, self._host_zone)
        until_ms = bounds(Period.DAY, now, self._host_zone)[1]
        whole = await self._groups(since_ms, until_ms, ())
        counted = sum(group.counted_tokens for group in whole)
        rows = {one: await self._rows(one, since_ms, until_ms) for one in BY if one in by}
        return {
            "since": self._day(since_ms),
            "until": self._day(until_ms - 1),
            "zone": str(self._host_zone),
            "total": _figures(_added(whole)),
            "off": sum(group.off_tokens for group in whole) / counted if counted else 0.0,
            "by": rows,
            "budgets": [_budget_row(one, self._names()) for one in await self._all_standings()],
            "paused": self._pauses(),
            "hour": sum(self._hours().values()) if self._budget else None,
        }

    async def set_paused(self, *, paused: bool) -> Json:
        """The same as `/pause` and `/resume`, for the terminal; `text` says what was done."""
        return {"text": await (self._pause() if paused else self._resume())}

    # --- steps ---------------------------------------------------------------------------------

    async def _pause(self) -> str:
        assert self._budget is not None, "commands come to a running bot"
        return PAUSED if await self._budget.pause() else PAUSED_ALREADY

    async def _resume(self) -> str:
        assert self._budget is not None, "commands come to a running bot"
        lifted = await self._budget.resume()
        was_doubted = self._trust()
        if not lifted and not was_doubted:
            return NOT_PAUSED
        if self._resumed is not None:
            await self._resumed()
        if was_doubted and not lifted:
            return CLOCK_TRUSTED
        if Pause.HAND in lifted:
            return "I go on, with what was written meanwhile first."
        return "I go on. What was used up to now is no longer held against me."

    async def _up_to_date(self) -> None:
        if self._budget is not None:
            await self._budget.flush()

    async def _groups(
        self,
        since_ms: int,
        until_ms: int,
        by: tuple[Dimension, ...],
        person_id: PersonId = NOBODY,
    ) -> Sequence[UsageSum]:
        wanted = UsageQuery(since_ms=since_ms, until_ms=until_ms, by=by, person_id=person_id)
        return await self._sums(wanted)

    async def _rows(self, by: str, since_ms: int, until_ms: int) -> list[Json]:
        """The largest first, days in their order."""
        dimension: Dimension = "slot" if by == "day" else _dimension(by)
        groups = await self._groups(since_ms, until_ms, (dimension,))
        found = _by(groups, lambda group: self._key(by, group))
        order = sorted(found.items(), key=lambda pair: (-pair[1].micros, -pair[1].tokens, pair[0]))
        if by == "day":
            order = sorted(found.items())
        names = self._names()
        return [{"key": key, "name": _named(by, key, names), **_figures(one)} for key, one in order]

    def _key(self, by: str, group: UsageSum) -> str:
        if by == "day":
            return self._day(group.slot * SLOT_MS)
        values = {
            "person": group.person_id,
            "chat": group.lane,
            "job": group.job,
            "agent": group.agent,
            "model": group.model,
            "purpose": group.purpose,
        }
        return str(values[by])

    def _day(self, ms: int) -> str:
        return datetime.fromtimestamp(ms / 1000, UTC).astimezone(self._host_zone).date().isoformat()

    def _names(self) -> Mapping[str, str]:
        named = {str(id): name for id, name in called(self._people()).items()}
        return {"": NOBODY_IN_PARTICULAR, **named}

    async def _own_lines(self, person: Person, zone: tzinfo, *, shows_money: bool) -> list[str]:
        now = self._clock.now()
        day, month = bounds(Period.DAY, now, zone), bounds(Period.MONTH, now, zone)
        today = _added(await self._groups(*day, (), person.id))
        models = await self._groups(*month, ("model",), person.id)
        lines = [
            f"**Today**: {_said(today, shows_money=shows_money)}",
            f"**This month**: {_said(_added(models), shows_money=shows_money)}",
        ]
        if len(models) > 1:
            named = _by(models, lambda group: group.model)
            lines += ["", "This month by model:", *_listed(named, {}, shows_money=shows_money)]
        elif models:
            lines.append(f"All by {models[0].model}.")
        return lines

    async def _budget_lines(self, person: Person, zone: tzinfo, *, shows_money: bool) -> list[str]:
        if self._budget is None:
            return []
        standings = await self._budget.standings(_charge_of(person))
        lines = []
        for one in standings:
            is_own = one.limit.scope is Scope.PERSON
            if not is_own and person.role is not Role.OWNER:
                continue
            where = zone if is_own else self._host_zone
            free = free_words(one.limit, one.end_ms, at=self._clock.now(), zone=where)
            name = budget_name(one.limit, one.subject, own=is_own)
            if shows_money or one.limit.unit is Unit.TOKENS:
                unit = one.limit.unit
                used = f"{amount_words(unit, one.used)} of {amount_words(unit, one.limit.amount)}"
                lines.append(f"- {name}: {used} ({percent(one.share)}), free again {free}")
            else:
                lines.append(f"- {name}: {percent(one.share)} used, free again {free}")
        if not lines:
            return []
        return ["Budgets:", *lines]

    async def _all_lines(self) -> list[str]:
        now = self._clock.now()
        month = bounds(Period.MONTH, now, self._host_zone)
        groups = await self._groups(*month, ("person", "purpose"))
        if not groups:
            return []
        people = _by(groups, lambda group: group.person_id)
        purposes = _by(groups, lambda group: group.purpose)
        lines = [f"**Everybody, this month**: {_said(_added(groups))}"]
        if len(people) > 1:
            names = self._names()
            lines += _listed(people, {key: _person_named(key, names) for key in people})
        if len(purposes) > 1:
            lines += ["", "For what:", *_listed(purposes, {})]
        return lines

    def _brake_lines(self) -> list[str]:
        if self._budget is None:
            return []
        lines = [
            f"⚠️ Paused: {words or 'by you'}. Send `/resume` and I go on."
            for words in (row["words"] for row in self._pauses())
        ]
        for agent, hour in self._hours().items():
            limit = self._budget.brakes.of(agent).hour_tokens_max
            whose = "" if agent == DEFAULT_AGENT else f" of the agent `{agent}`"
            if limit:
                lines.append(
                    f"The last hour{whose}: {hour:,} tokens; at {limit:,} I stop and ask you first."
                )
        return lines

    def _hours(self) -> dict[str, int]:
        """Tokens of the last hour, by agent."""
        if self._budget is None:
            return {}
        return {agent: one.rush().hour for agent, one in self._budget.brakes.by_agent.items()}

    def _pauses(self) -> list[Json]:
        if self._budget is None:
            return []
        found = [*self._budget.brakes.paused, self._budget.hand.paused]
        return [
            {"kind": one.kind.value, "since_ms": one.since_ms, "words": one.words}
            for one in found
            if one is not None
        ]

    async def _all_standings(self) -> list[Standing]:
        """Of the whole bot and of each person and agent that any budget is about."""
        if self._budget is None:
            return []
        found: dict[tuple[str, str], Standing] = {}
        agents = {limit.of for limit in self._budget.limits if limit.scope is Scope.AGENT}
        jobs = {limit.of for limit in self._budget.limits if limit.scope is Scope.JOB}
        charges = [_charge_of(person) for person in self._people()]
        charges += [Charge(purpose=Purpose.CHAT, agent=name) for name in agents]
        charges += [Charge(purpose=Purpose.JOB, job=name) for name in jobs]
        for charge in charges or [Charge(purpose=Purpose.CHAT)]:
            for one in await self._budget.standings(charge):
                found.setdefault((one.limit.key, one.subject), one)
        return list(found.values())


def usage_operations(desk: UsageDesk) -> Mapping[str, Operation]:
    """What is offered on the private socket, and to a command where no bot runs."""

    def asked(do: Callable[[Json], Awaitable[Json]]) -> Operation:
        async def operation(request: Json, emit: Emit) -> Json:
            return await do(request)

        return operation

    return {
        "usage.report": asked(
            lambda r: desk.report(days=max(1, int(r["days"])), by=[str(one) for one in r["by"]])
        ),
        "usage.pause": asked(lambda r: desk.set_paused(paused=True)),
        "usage.resume": asked(lambda r: desk.set_paused(paused=False)),
    }


# --- steps ---------------------------------------------------------------------------------------


def _charge_of(person: Person) -> Charge:
    return Charge(
        purpose=Purpose.CHAT,
        person_id=person.id,
        is_owner=person.role is Role.OWNER,
        time_zone=person.time_zone,
    )


def _dimension(by: str) -> Dimension:
    return next(one for one in get_args(Dimension) if one == by)


def _added(groups: Iterable[UsageSum]) -> _Sum:
    total = _Sum()
    for group in groups:
        total.add(group)
    return total


def _by(groups: Iterable[UsageSum], key: Callable[[UsageSum], str]) -> dict[str, _Sum]:
    found: dict[str, _Sum] = {}
    for group in groups:
        found.setdefault(key(group), _Sum()).add(group)
    return found


def _figures(one: _Sum) -> Json:
    return {
        "calls": one.calls,
        "prompt": one.prompt,
        "completion": one.completion,
        "cached": one.cached,
        "micros": one.micros,
        "unpriced": one.unpriced,
        "estimated": one.estimated,
    }


def _budget_row(one: Standing, names: Mapping[str, str]) -> Json:
    is_persons = one.limit.scope is Scope.PERSON
    return {
        "scope": one.limit.scope.value,
        "subject": one.subject,
        "name": _person_named(one.subject, names) if is_persons else one.subject,
        "period": one.limit.period.value,
        "unit": one.limit.unit.value,
        "used": one.used,
        "held": one.held,
        "amount": one.limit.amount,
        "share": round(one.share, 4),
        "free_at_ms": one.end_ms,
    }


def _named(by: str, key: str, names: Mapping[str, str]) -> str:
    if by == "person":
        return _person_named(key, names)
    return key or {"job": "no job", "chat": "no chat"}.get(by, "unknown")


def _person_named(person_id: str, names: Mapping[str, str]) -> str:
    return names[person_id] if person_id in names else gone(person_id)


# --- words ---------------------------------------------------------------------------------------


def _said(one: _Sum, *, shows_money: bool = True) -> str:
    """ "12 calls, 34,210 tokens (12 % from a cache), $0.12"."""
    if not one.calls:
        return "nothing"
    calls = "1 call" if one.calls == 1 else f"{one.calls:,} calls"
    cached = f" ({percent(one.cached / one.prompt)} from a cache)" if one.cached else ""
    price = f", {cost_words(one.micros, one.calls, one.unpriced)}" if shows_money else ""
    return f"{calls}, {one.tokens:,} tokens{cached}{price}"


def cost_words(micros: int, calls: int, unpriced: int) -> str:
    """The money, and what is not in it."""
    if unpriced == calls:
        return PRICE_UNKNOWN
    known = money(micros / MICROS)
    if not unpriced:
        return known
    return f"{known} and {unpriced:,} {'call' if unpriced == 1 else 'calls'} of unknown price"


def _listed(
    sums: Mapping[str, _Sum], names: Mapping[str, str], *, shows_money: bool = True
) -> list[str]:
    """The largest first; what is left over as one line."""
    order = sorted(sums.items(), key=lambda pair: (-pair[1].micros, -pair[1].tokens, pair[0]))
    shown, rest = order[:SHOWN_IN_CHAT_MAX], order[SHOWN_IN_CHAT_MAX:]
    lines = []
    for key, one in shown:
        price = f", {cost_words(one.micros, one.calls, one.unpriced)}" if shows_money else ""
        lines.append(f"- {names.get(key, key) or 'unknown'}: {one.tokens:,} tokens{price}")
    if rest:
        lines.append(f"- {len(rest)} more: {sum(one.tokens for _, one in rest):,} tokens")
    return lines
