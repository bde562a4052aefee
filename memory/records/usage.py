"""What model calls cost, and what they may: the values, and what is needed of others.

Money is in integer micro-dollars throughout. Made and read by `agent.budget.budget`, kept by
`memory`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memory.records.errors import Permanent
from memory.records.messages import DEFAULT_AGENT, ConversationId, PersonId, RunId
from memory.records.transcript import Usage

MICROS = 1_000_000
"""Micro-dollars in a dollar."""

NOBODY = PersonId("")
_NO_CONVERSATION = ConversationId("")
_NO_TURN = RunId("")


class SpendingRefused(Permanent):
    """A model call was not made: a budget is used up, or the bot is paused. Fit for a person.

    `passes` and `free_at_ms` are those of the Allowance.
    """

    def __init__(self, message: str, *, passes: bool = True, free_at_ms: int | None = None) -> None:
        super().__init__(message)
        self.passes = passes
        self.free_at_ms = free_at_ms


class Purpose(StrEnum):
    """What a model was asked for."""

    CHAT = "chat"
    HEARTBEAT = "heartbeat"
    JOB = "job"
    SUBAGENT = "subagent"
    EXTRACTION = "extraction"
    COMPACTION = "compaction"
    INSIGHTS = "insights"


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """Whose a model call is. `lane` is an address key, `job` empty outside of jobs; `run_id` is the
    turn, empty for work behind the scenes. `time_zone` is the person's, empty: this machine's."""

    purpose: Purpose
    person_id: PersonId = NOBODY
    is_owner: bool = False
    lane: str = ""
    conversation: ConversationId = _NO_CONVERSATION
    run_id: RunId = _NO_TURN
    job: str = ""
    agent: str = DEFAULT_AGENT
    time_zone: str = ""


class CallState(StrEnum):
    """How sure the figures of a call are. `open` is still being made."""

    OPEN = "open"
    COUNTED = "counted"
    ESTIMATED = "estimated"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One recorded call. `micros` None: the model is in no price table. `guessed` is the sum of
    tokens that was estimated before the call."""

    id: int
    at_ms: int
    charge: Charge
    model: str
    usage: Usage
    micros: int | None
    guessed: int
    state: CallState

    @property
    def tokens(self) -> int:
        """Prompt and answer together; cached ones count too."""
        return self.usage.prompt + self.usage.completion


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """US dollars a token. `input` or `output` None: not known; the others fall back to `input`."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None

    def cost(self, usage: Usage) -> float | None:
        """Dollars; None when a rate is not known. Cached tokens are a part of the prompt's."""
        if self.input is None or self.output is None:
            return None
        cached = min(usage.cached, usage.prompt)
        read = self.input if self.cache_read is None else self.cache_read
        fresh = usage.prompt - cached
        return fresh * self.input + cached * read + usage.completion * self.output


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """One model. `window` and `output_max` are in tokens, 0 where the table does not say.

    `tiers` are higher rates for long prompts: from more than so many tokens on, lowest first.
    `effort`: it has a setting for how long it thinks. `caching`: prompts may be cached. `vision`:
    it sees pictures.
    """

    provider: str
    rates: Rates = field(default_factory=Rates)
    tiers: tuple[tuple[int, Rates], ...] = ()
    window: int = 0
    output_max: int = 0
    effort: bool = False
    caching: bool = False
    vision: bool = False

    def cost(self, usage: Usage) -> float | None:
        """Dollars of one call; None when the table has no rates for this model."""
        rates = self.rates
        for above, higher in self.tiers:
            if usage.prompt > above:
                rates = higher
        return rates.cost(usage)


FREE = Price(provider="local", rates=Rates(input=0.0, output=0.0))
"""Models on one's own machine. Their windows depend on how the server was started."""


def micros_of(price: Price | None, usage: Usage) -> int | None:
    """Return what a call costs; None where that is not known."""
    dollars = None if price is None else price.cost(usage)
    return None if dollars is None else round(dollars * MICROS)


# --- limits ------------------------------------------------------------------------------------


class Scope(StrEnum):
    """Whose calls a budget counts."""

    PERSON = "person"
    AGENT = "agent"
    JOB = "job"
    BOT = "bot"


class Period(StrEnum):
    """How long a budget lasts: days and months are those of a person, else of this machine."""

    TURN = "turn"
    DAY = "day"
    MONTH = "month"


class BudgetUnit(StrEnum):
    """What a budget is measured in."""

    MONEY = "money"
    TOKENS = "tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One budget. `of` is the id of a person, or the name of an agent or job; empty: each of them.

    `amount` is in micro-dollars or tokens. One with an `of` stands in for the general one.
    """

    scope: Scope
    period: Period
    unit: BudgetUnit
    amount: int
    of: str = ""

    @property
    def key(self) -> str:
        """Return which budget it is, whatever its amount."""
        return f"{self.scope}/{self.of}/{self.period}/{self.unit}"


class Account(NamedTuple):
    """What is counted together: calls of `subject` from `start_ms` on and before `end_ms`; of one
    turn where `run_id` is set (then the times are 0)."""

    scope: Scope
    subject: str
    run_id: str
    start_ms: int
    end_ms: int

    def holds(self, charge: Charge, at_ms: int) -> bool:
        """Return whether a call counts here."""
        if subject_of(self.scope, charge) != self.subject:
            return False
        if self.run_id:
            return charge.run_id == self.run_id
        return self.start_ms <= at_ms < self.end_ms


def subject_of(scope: Scope, charge: Charge) -> str | None:
    """Whose budget of this scope a call is on; None when it is on none."""
    match scope:
        case Scope.PERSON:
            return charge.person_id or None
        case Scope.AGENT:
            return charge.agent or None
        case Scope.JOB:
            return charge.job or None
        case Scope.BOT:
            return ""


def account_of(limit: Limit, charge: Charge, *, at: datetime, host_zone: tzinfo) -> Account | None:
    """Where a call at this moment counts for a limit; None where the limit is not about it."""
    subject = subject_of(limit.scope, charge)
    if subject is None or (limit.of and limit.of != subject):
        return None
    if limit.period is Period.TURN:
        return Account(limit.scope, subject, charge.run_id, 0, 0) if charge.run_id else None
    zone = zone_for(limit.scope, charge.time_zone, host_zone)
    start_ms, end_ms = bounds(limit.period, at, zone)
    return Account(limit.scope, subject, "", start_ms, end_ms)


def zone_for(scope: Scope, time_zone: str, host_zone: tzinfo) -> tzinfo:
    """A person's days are their own; everything else goes by this machine."""
    if scope is not Scope.PERSON or not time_zone:
        return host_zone
    try:
        return ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return host_zone


def bounds(period: Period, at: datetime, zone: tzinfo) -> tuple[int, int]:
    """Epoch milliseconds of the day's or month's first moment, and of the next one's.

    Where summer time takes midnight away, the day begins right after the gap.
    """
    local = at.astimezone(zone)
    if period is Period.MONTH:
        first = local.replace(day=1)
        following = (first + timedelta(days=32)).replace(day=1)
    else:
        first = local
        following = local + timedelta(days=1)
    return _midnight(first, zone), _midnight(following, zone)


def _midnight(day: datetime, zone: tzinfo) -> int:
    start = datetime(day.year, day.month, day.day, tzinfo=zone)
    return int(start.astimezone(UTC).timestamp() * 1000)


# --- what comes of asking ----------------------------------------------------------------------


class Verdict(StrEnum):
    """Whether a call may be made, and by which model."""

    GO = "go"
    CHEAP = "cheap"
    REFUSE = "refuse"


class Level(StrEnum):
    """How much a prompt may hold. `lean`: the budget has room for a small one only."""

    NORMAL = "normal"
    LEAN = "lean"


class NoticeButton(NamedTuple):
    """What can be tapped under a notice; `data` comes back, `text` does the same when typed."""

    label: str
    data: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A sentence for a person, told once for each `key`; `person_id` empty: for the owner."""

    key: str
    text: str
    person_id: PersonId = NOBODY
    buttons: tuple[NoticeButton, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """What a call that is being made may use of its budgets: they are charged what is held until
    it is settled; `tight`: only the usual answer had room, not the longest one."""

    call: ModelCall
    held_tokens: int
    held_micros: int
    tight: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The answer to a call that is about to be made.

    `model` is the one to ask for an answer of `tokens_out` at most (fewer than wished where little
    is left), with a `reservation` to settle; refused: `words` for the person, and when it is
    possible again (epoch milliseconds; None: waiting does not help). `passes`: the same call may be
    allowed later; of a turn's own budget, or of one too small for it, it never is.
    """

    verdict: Verdict
    model: str = ""
    tokens_out: int = 0
    reservation: Reservation | None = None
    words: str = ""
    passes: bool = True
    free_at_ms: int | None = None
    warnings: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a budget stands: `used` and `held` in the unit of its limit."""

    limit: Limit
    subject: str
    used: int
    held: int
    end_ms: int

    @property
    def share(self) -> float:
        """From 0 up; more than 1 when an estimate was too low."""
        return self.used / self.limit.amount if self.limit.amount else 1.0


# --- what is needed of others ------------------------------------------------------------------


class Spent(NamedTuple):
    """The sum of an account. Calls without a known price are in `tokens` alone."""

    tokens: int
    micros: int


class Pause(StrEnum):
    """Why the bot stands still: the anomaly brake, or its owner."""

    BRAKE = "brake"
    HAND = "hand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """A pause; `words` say why. Not `is_on`: it ended at `since_ms`. The brake's is that of one
    `agent`."""

    kind: Pause
    since_ms: int
    is_on: bool = True
    words: str = ""
    agent: str = DEFAULT_AGENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What is to be stored in one transaction: rows new or changed, rows to be dropped, notices
    to be told and those that were, and pauses."""

    calls: Sequence[ModelCall] = ()
    dropped: Sequence[int] = ()
    notices: Sequence[Notice] = ()
    told: Sequence[str] = ()
    pauses: Sequence[Paused] = ()

    def __bool__(self) -> bool:
        return bool(self.calls or self.dropped or self.notices or self.told or self.pauses)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetStart:
    """What is known at start. `minutes` are, by agent, the tokens of each minute since the epoch
    that are asked for, `settled` how many calls of a dead process were settled by estimate."""

    next_id: int
    settled: int = 0
    minutes: dict[str, dict[int, int]] = field(default_factory=dict)
    notices_known: frozenset[str] = frozenset()
    notices_untold: tuple[Notice, ...] = ()
    pauses: tuple[Paused, ...] = ()


def as_estimated(call: ModelCall) -> ModelCall:
    """The call with the figures of its estimate, for good."""
    return replace(call, state=CallState.ESTIMATED)


# --- sums ---------------------------------------------------------------------------------------

SLOT_MS = 900_000
"""A quarter of an hour: every time zone's days are made of whole ones."""

Dimension = Literal["slot", "person", "chat", "job", "agent", "model", "purpose"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageQuery:
    """Calls from `since_ms` on and before `until_ms`, added up by some of the dimensions; of one
    person where `person_id` is set."""

    since_ms: int
    until_ms: int
    by: tuple[Dimension, ...] = ()
    person_id: PersonId = NOBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageFigures:
    """A sum as people read it. `micros` are millionths of a dollar; `unpriced` calls have no known
    price and are not in them; `estimated` ones have figures of our own, or are still being made."""

    calls: int = 0
    prompt: int = 0
    completion: int = 0
    cached: int = 0
    micros: int = 0
    unpriced: int = 0
    estimated: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSum(UsageFigures):
    """One sum. What was not asked for is empty.

    `slot` is in quarters of an hour since the epoch. Of the calls that the provider counted,
    `off_tokens` of `counted_tokens` were estimated wrong before.
    """

    slot: int = 0
    person_id: PersonId = NOBODY
    lane: str = ""
    job: str = ""
    agent: str = ""
    model: str = ""
    purpose: str = ""
    counted_tokens: int = 0
    off_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Prompt and answer together."""
        return self.prompt + self.completion


def added(sums: Iterable[UsageSum]) -> UsageSum:
    """Return the figures of several sums together, without what they were of."""
    several = tuple(sums)
    figures = (
        *("calls", "prompt", "completion", "cached", "micros", "unpriced", "estimated"),
        *("counted_tokens", "off_tokens"),
    )
    return UsageSum(**{name: sum(getattr(one, name) for one in several) for name in figures})
