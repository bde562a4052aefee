"""`/usage`, `/pause` and `/resume`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from agent.budget.messages import (
    PRICE_UNKNOWN,
    amount_words,
    budget_name,
    free_words,
    money,
    percent,
)
from agent.budget.service import UsageFigures, UsageService, grouped, largest_first
from bot.people.register import called, gone
from memory.records.messages import DEFAULT_AGENT, Role
from memory.records.rows import Person
from memory.records.usage import MICROS, BudgetUnit, Pause, Period, Scope, UsageSum, added, zone_for

if TYPE_CHECKING:
    from bot.commands.command import CommandCall, Tools

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


async def usage(tools: Tools, asked: CommandCall) -> str:
    """Return the person's own view; the owner also sees everybody's."""
    person, service = asked.person, tools.usage
    if asked.message.is_group:
        return IN_PRIVATE
    await service.flush()  # figures of the last seconds wait in memory
    zone = zone_for(Scope.PERSON, person.time_zone, service.host_zone)
    shows_money = person.role is not Role.GUEST
    at = tools.clock.now()
    today = added(await service.used(Period.DAY, person_id=person.id, zone=zone))
    models = await service.used(Period.MONTH, ("model",), person_id=person.id, zone=zone)
    lines = [
        f"**Today**: {used_words(today, shows_money=shows_money)}",
        f"**This month**: {used_words(added(models), shows_money=shows_money)}",
    ]
    if len(models) > 1:
        named = grouped(models, lambda group: group.model)
        lines += ["", "This month by model:", *_listed(named, {}, shows_money=shows_money)]
    elif models:
        lines.append(f"All by {models[0].model}.")
    parts = [
        lines,
        await _budget_lines(service, person, zone, at=at, shows_money=shows_money),
    ]
    if person.role is Role.OWNER:
        parts += [await _all_lines(service), _brake_lines(service)]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


async def pause(tools: Tools, asked: CommandCall) -> str:
    """Pause, and say what was done."""
    return PAUSED if await tools.usage.pause() else PAUSED_ALREADY


async def resume(tools: Tools, asked: CommandCall) -> str:
    """Resume, and say what was done."""
    return await resumed(tools.usage)


async def resumed(usage: UsageService) -> str:
    """Resume by a command or the button, and say what was done."""
    done = await usage.resume()
    if not done:
        return NOT_PAUSED
    if not done.lifted:
        return CLOCK_TRUSTED
    if Pause.HAND in done.lifted:
        return "I go on, with what was written meanwhile first."
    return "I go on. What was used up to now is no longer held against me."


async def _budget_lines(
    usage: UsageService, person: Person, zone: tzinfo, *, at: datetime, shows_money: bool
) -> list[str]:
    lines = []
    for one in await usage.standings(person):
        # What all may spend together would tell a member what others spent.
        is_own = one.limit.scope is Scope.PERSON
        if not is_own and person.role is not Role.OWNER:
            continue
        unit = one.limit.unit
        used = f"{percent(one.share)} used"
        if shows_money or unit is BudgetUnit.TOKENS:
            amounts = f"{amount_words(unit, one.used)} of {amount_words(unit, one.limit.amount)}"
            used = f"{amounts} ({percent(one.share)})"
        free = free_words(one.limit, one.end_ms, at=at, zone=zone if is_own else usage.host_zone)
        name = budget_name(one.limit, one.subject, own=is_own)
        lines.append(f"- {name}: {used}, free again {free}")
    return ["Budgets:", *lines] if lines else []


async def _all_lines(usage: UsageService) -> list[str]:
    groups = await usage.used(Period.MONTH, ("person", "purpose"))
    if not groups:
        return []
    people = grouped(groups, lambda group: group.person_id)
    purposes = grouped(groups, lambda group: group.purpose)
    lines = [f"**Everybody, this month**: {used_words(added(groups))}"]
    if len(people) > 1:
        lines += _listed(people, {key: usage.name_of(key) for key in people})
    if len(purposes) > 1:
        lines += ["", "For what:", *_listed(purposes, {})]
    return lines


def _brake_lines(usage: UsageService) -> list[str]:
    if usage.budget is None:
        return []
    lines = [
        f"⚠️ Paused: {one.words or 'by you'}. Send `/resume` and I go on." for one in usage.pauses()
    ]
    for agent, hour in usage.hours().items():
        limit = usage.budget.brakes.of(agent).hour_tokens_max
        whose = "" if agent == DEFAULT_AGENT else f" of the agent `{agent}`"
        if limit:
            lines.append(
                f"The last hour{whose}: {hour:,} tokens; at {limit:,} I stop and ask you first."
            )
    return lines


def names_of(people: Callable[[], Sequence[Person]]) -> Callable[[str], str]:
    """Return what says how a person is called where the owner reads of several."""

    def name_of(person_id: str) -> str:
        names = {str(id): name for id, name in called(people()).items()}
        return {"": NOBODY_IN_PARTICULAR, **names}.get(person_id) or gone(person_id)

    return name_of


# --- words ---------------------------------------------------------------------------------------


def used_words(one: UsageSum, *, shows_money: bool = True) -> str:
    """Return "12 calls, 34,210 tokens (12 % from a cache), $0.12"."""
    if not one.calls:
        return "nothing"
    calls = "1 call" if one.calls == 1 else f"{one.calls:,} calls"
    cached = f" ({percent(one.cached / one.prompt)} from a cache)" if one.cached else ""
    price = f", {cost_words(one)}" if shows_money else ""
    return f"{calls}, {one.tokens:,} tokens{cached}{price}"


def cost_words(one: UsageSum | UsageFigures) -> str:
    """Return the money, and what is not in it."""
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
    """Return the largest first; what is left over as one line."""
    order = [(key, sums[key]) for key in largest_first(sums)]
    shown, rest = order[:SHOWN_IN_CHAT_MAX], order[SHOWN_IN_CHAT_MAX:]
    lines = []
    for key, one in shown:
        price = f", {cost_words(one)}" if shows_money else ""
        lines.append(f"- {names.get(key, key) or 'unknown'}: {one.tokens:,} tokens{price}")
    if rest:
        lines.append(f"- {len(rest)} more: {sum(one.tokens for _, one in rest):,} tokens")
    return lines
