"""`/usage`, `/pause` and `/resume`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo

from agent.budget.circuit_breaker import RESUME
from agent.budget.messages import (
    PRICE_UNKNOWN,
    amount_words,
    budget_name,
    free_words,
    money,
    percent,
)
from agent.budget.service import UsageService, grouped, largest_first
from bot.people.register import called, gone
from memory.records.messages import DEFAULT_AGENT, IncomingMessage, Role
from memory.records.ports import Clock
from memory.records.rows import Person
from memory.records.usage import (
    MICROS,
    BudgetUnit,
    Pause,
    Period,
    Scope,
    UsageFigures,
    UsageSum,
    added,
    zone_for,
)

SHOWN_IN_CHAT_MAX = 8
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


class UsageCommand:
    """Answers what a person asks about usage, and does what the owner decides."""

    def __init__(self, usage: UsageService, *, clock: Clock) -> None:
        self._usage = usage
        self._clock = clock

    @property
    def is_paused(self) -> bool:
        """Whether the owner has paused everything."""
        return self._usage.is_paused

    async def tell(self, message: IncomingMessage, person: Person) -> str:
        """`/usage`: the person's own view; the owner also sees everybody's."""
        if message.is_group:
            return IN_PRIVATE
        await self._usage.flush()
        zone = zone_for(Scope.PERSON, person.time_zone, self._usage.host_zone)
        shows_money = person.role is not Role.GUEST
        own = await self._own_lines(person, zone, shows_money=shows_money)
        budgets = await self._budget_lines(person, zone, shows_money=shows_money)
        parts = [own, budgets]
        if person.role is Role.OWNER:
            parts += [await self._all_lines(), self._brake_lines()]
        return "\n\n".join("\n".join(lines) for lines in parts if lines)

    async def pause(self, person: Person) -> str:
        """`/pause`."""
        return await paused(self._usage) if person.role is Role.OWNER else FOR_OWNER

    async def resume(self, person: Person) -> str:
        """`/resume`, and the button."""
        return await resumed(self._usage) if person.role is Role.OWNER else FOR_OWNER

    async def pressed(self, data: str, person: Person) -> str | None:
        """What comes of a tapped button; None when it is none of ours."""
        return await self.resume(person) if data == RESUME.data else None

    async def _own_lines(self, person: Person, zone: tzinfo, *, shows_money: bool) -> list[str]:
        today = added(await self._usage.used(Period.DAY, person_id=person.id, zone=zone))
        models = await self._usage.used(Period.MONTH, ("model",), person_id=person.id, zone=zone)
        lines = [
            f"**Today**: {used_words(today, shows_money=shows_money)}",
            f"**This month**: {used_words(added(models), shows_money=shows_money)}",
        ]
        if len(models) > 1:
            named = grouped(models, lambda group: group.model)
            lines += ["", "This month by model:", *_listed(named, {}, shows_money=shows_money)]
        elif models:
            lines.append(f"All by {models[0].model}.")
        return lines

    async def _budget_lines(self, person: Person, zone: tzinfo, *, shows_money: bool) -> list[str]:
        lines = []
        for one in await self._usage.standings(person):
            is_own = one.limit.scope is Scope.PERSON
            if not is_own and person.role is not Role.OWNER:
                continue
            where = zone if is_own else self._usage.host_zone
            free = free_words(one.limit, one.end_ms, at=self._clock.now(), zone=where)
            name = budget_name(one.limit, one.subject, own=is_own)
            if shows_money or one.limit.unit is BudgetUnit.TOKENS:
                unit = one.limit.unit
                used = f"{amount_words(unit, one.used)} of {amount_words(unit, one.limit.amount)}"
                lines.append(f"- {name}: {used} ({percent(one.share)}), free again {free}")
            else:
                lines.append(f"- {name}: {percent(one.share)} used, free again {free}")
        if not lines:
            return []
        return ["Budgets:", *lines]

    async def _all_lines(self) -> list[str]:
        groups = await self._usage.used(Period.MONTH, ("person", "purpose"))
        if not groups:
            return []
        people = grouped(groups, lambda group: group.person_id)
        purposes = grouped(groups, lambda group: group.purpose)
        lines = [f"**Everybody, this month**: {used_words(added(groups))}"]
        if len(people) > 1:
            lines += _listed(people, {key: self._usage.name_of(key) for key in people})
        if len(purposes) > 1:
            lines += ["", "For what:", *_listed(purposes, {})]
        return lines

    def _brake_lines(self) -> list[str]:
        if self._usage.budget is None:
            return []
        lines = [
            f"⚠️ Paused: {one.words or 'by you'}. Send `/resume` and I go on."
            for one in self._usage.pauses()
        ]
        for agent, hour in self._usage.hours().items():
            limit = self._usage.budget.brakes.of(agent).hour_tokens_max
            whose = "" if agent == DEFAULT_AGENT else f" of the agent `{agent}`"
            if limit:
                lines.append(
                    f"The last hour{whose}: {hour:,} tokens; at {limit:,} I stop and ask you first."
                )
        return lines


async def paused(usage: UsageService) -> str:
    """Pause, and say what was done."""
    return PAUSED if await usage.pause() else PAUSED_ALREADY


async def resumed(usage: UsageService) -> str:
    """Resume, and say what was done."""
    done = await usage.resume()
    if not done:
        return NOT_PAUSED
    if not done.lifted:
        return CLOCK_TRUSTED
    if Pause.HAND in done.lifted:
        return "I go on, with what was written meanwhile first."
    return "I go on. What was used up to now is no longer held against me."


def names_of(people: Callable[[], Sequence[Person]]) -> Callable[[str], str]:
    """Return what says how a person is called where the owner reads of several."""

    def name_of(person_id: str) -> str:
        names = {str(id): name for id, name in called(people()).items()}
        return {"": NOBODY_IN_PARTICULAR, **names}.get(person_id) or gone(person_id)

    return name_of


# --- words ---------------------------------------------------------------------------------------


def used_words(one: UsageSum, *, shows_money: bool = True) -> str:
    """ "12 calls, 34,210 tokens (12 % from a cache), $0.12"."""
    if not one.calls:
        return "nothing"
    calls = "1 call" if one.calls == 1 else f"{one.calls:,} calls"
    cached = f" ({percent(one.cached / one.prompt)} from a cache)" if one.cached else ""
    price = f", {cost_words(one)}" if shows_money else ""
    return f"{calls}, {one.tokens:,} tokens{cached}{price}"


def cost_words(one: UsageFigures) -> str:
    """The money, and what is not in it."""
    if one.unpriced == one.calls:
        return PRICE_UNKNOWN
    known = money(one.micros / MICROS)
    if not one.unpriced:
        return known
    calls = "call" if one.unpriced == 1 else "calls"
    return f"{known} and {one.unpriced:,} {calls} of unknown price"


def _listed(
    sums: Mapping[str, UsageSum], names: Mapping[str, str], *, shows_money: bool = True
) -> list[str]:
    """The largest first; what is left over as one line."""
    order = [(key, sums[key]) for key in largest_first(sums)]
    shown, rest = order[:SHOWN_IN_CHAT_MAX], order[SHOWN_IN_CHAT_MAX:]
    lines = []
    for key, one in shown:
        price = f", {cost_words(one)}" if shows_money else ""
        lines.append(f"- {names.get(key, key) or 'unknown'}: {one.tokens:,} tokens{price}")
    if rest:
        lines.append(f"- {len(rest)} more: {sum(one.tokens for _, one in rest):,} tokens")
    return lines
