"""What is said about budgets: warnings, refusals, and when it is free again. Pure.

Used by `agent.budget.budget`, and wherever amounts of money or shares are told.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from memory.records.usage import MICROS, BudgetUnit, Charge, Limit, Period, Scope

_FOR = {Period.TURN: "one answer", Period.DAY: "today", Period.MONTH: "this month"}

RAISE_OWNER = "To raise it, change [[budget.limits]] in config.toml and restart me."
RAISE_AGENTS = (
    "To raise it, change [[budget.limits]], or the agent's budget, in config.toml and restart me."
)
RAISE_OTHERS = "The owner can raise it."
CALM = "Reminders still come."
PRICE_UNKNOWN = "price unknown"


def money(dollars: float) -> str:
    """Dollars with two figures that count, or cents once there are some: $0.00043, $1.20."""
    if dollars <= 0:
        return "$0"
    if dollars >= 0.995:
        return f"${dollars:,.2f}"
    decimals = 2
    while decimals < 12 and dollars * 10 ** (decimals - 1) < 0.995:
        decimals += 1
    return f"${dollars:.{decimals}f}"


def percent(share: float) -> str:
    """A share from 0 to 1: 42 %, 1.7 %, below that 0.03 %."""
    value = share * 100
    if value == 0 or value >= 9.95:
        return f"{value:.0f} %"
    return f"{value:.1f} %" if value >= 0.095 else f"{value:.2f} %"


def amount_words(unit: BudgetUnit, amount: int) -> str:
    """ "12,000 tokens", "$0.12", and "$0.0004" where there are no cents."""
    if unit is BudgetUnit.TOKENS:
        return f"{amount:,} tokens"
    if amount >= MICROS // 100 or amount == 0:
        return f"${amount / MICROS:,.2f}"
    return f"${amount / MICROS:.6f}".rstrip("0")


def budget_name(limit: Limit, subject: str, *, own: bool) -> str:
    """ "your budget for today", "the budget of the job backup for this month"."""
    until = _FOR[limit.period]
    match limit.scope:
        case Scope.PERSON:
            whose = "your budget" if own else f"the budget of {subject}"
        case Scope.AGENT:
            whose = f"the budget of the agent {subject}"
        case Scope.JOB:
            whose = f"the budget of the job {subject}"
        case Scope.BOT:
            whose = "the budget of the whole bot"
    return f"{whose} for {until}"


def free_words(limit: Limit, end_ms: int, *, at: datetime, zone: tzinfo) -> str:
    """When a budget is free again, as the end of a sentence."""
    if limit.period is Period.TURN:
        return "with the next message"
    local = datetime.fromtimestamp(end_ms / 1000, UTC).astimezone(zone)
    clock = f"{local:%H:%M} ({getattr(zone, 'key', None) or local.tzname()})"
    if local.date() == at.astimezone(zone).date() + timedelta(days=1):
        return f"tomorrow at {clock}"
    return f"on {local.day} {local:%B} at {clock}"


def warning_words(limit: Limit, subject: str, *, used: int, free: str) -> str:
    """At four fifths: said once."""
    name = budget_name(limit, subject, own=limit.scope is Scope.PERSON)
    share = used * 100 // limit.amount
    return (
        f"{_upper(name)} is {share} % used: {amount_words(limit.unit, used)} of "
        f"{amount_words(limit.unit, limit.amount)}. It is free again {free}; until then I get by "
        "with less, and stop asking models once it is used up. `/usage` shows more."
    )


def refusal_words(
    limit: Limit, charge: Charge, subject: str, *, used: int, needed: int, free: str
) -> str:
    """At the end: which budget, how much, when it is free again, and how to raise it."""
    name = _upper(budget_name(limit, subject, own=subject == charge.person_id))
    of = f"{amount_words(limit.unit, used)} of {amount_words(limit.unit, limit.amount)}"
    owners = RAISE_AGENTS if limit.scope is Scope.AGENT else RAISE_OWNER
    raised = owners if charge.is_owner else RAISE_OTHERS
    if needed > limit.amount:
        most = amount_words(limit.unit, needed)
        whole = amount_words(limit.unit, limit.amount)
        return (
            f"{name} is too small for an answer here: one may take {most}, and it is {whole} in "
            f"all. {raised} {CALM}"
        )
    if used >= limit.amount:
        spent = f"{name} is used up: {of}."
    else:
        spent = (
            f"{name} has no room for this: {of} are used, and it would take about "
            f"{amount_words(limit.unit, needed)}."
        )
    return f"{spent} It is free again {free}. {raised} {CALM}"


def busy_words(limit: Limit, charge: Charge, subject: str) -> str:
    """When others have taken what is left, and may give some of it back."""
    name = budget_name(limit, subject, own=subject == charge.person_id)
    return (
        f"What is left of {name} is taken by answers that are being made right now. Please try "
        "again in a minute."
    )


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
