"""The anomaly brake: too many tokens too fast, and no model is called until the owner says so.

Counts the tokens of sixty one-minute buckets by a clock that never goes back. Pure: what of it is
stored, `agent.budget.budget` stores; `HandPause` is the owner's own pause.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass

from memory.records.messages import DEFAULT_AGENT
from memory.records.ports import Clock
from memory.records.transcript import Usage
from memory.records.usage import (
    BudgetUnit,
    Charge,
    ModelCall,
    Notice,
    NoticeButton,
    Pause,
    Paused,
    Purpose,
)

MINUTE_S = 60
RESUME = NoticeButton("Go on", "brake:resume", "/resume")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrakeOptions:
    """When it trips. Tokens count prompt and answer.

    The hour is the last `minutes` buckets. A burst is the mean of the last `burst_minutes`; the
    baseline is the mean of those minutes before in which anything was used, and counts once there
    are `baseline_minutes_min` of them and it is at least `baseline_tokens_min`. Until then
    `baseline_presumed` stands in for it: a busy minute of one person, who writes three times, with
    two requests of 2,500 tokens for each. 0 as `hour_tokens_max` or `burst_factor` switches that
    rule off.

    What a person asks for has a pace of its own: it is set against the presumed baseline at least,
    and only once there is another, and its tokens count by `by_hand_weight`.
    """

    enabled: bool = True
    minutes: int = 60
    hour_tokens_max: int = 500_000
    burst_minutes: int = 2
    burst_factor: float = 3.0
    baseline_tokens_min: int = 1_000
    baseline_minutes_min: int = 10
    baseline_presumed: int = 15_000
    by_hand_weight: float = 0.5


BY_HAND = "by hand"
"""The source of what somebody asked for who is there: bounded by how fast a person writes."""


def source_of(charge: Charge) -> str:
    """For whom a call counts: BY_HAND, or the job, or what else asks by itself."""
    if charge.job:
        return f"job {charge.job}"
    is_asked_for = charge.purpose in {Purpose.CHAT, Purpose.SUBAGENT}
    return BY_HAND if is_asked_for else str(charge.purpose)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rush:
    """The figures of one moment. `baseline` and the bursts are tokens a minute; a baseline of 0 is
    too thin to compare with. `burst` is that of everything, `unattended` of all that nobody is
    there for, and `largest` of what asks most among that."""

    hour: int
    burst: float
    unattended: float
    largest: float
    baseline: float


class Brake:
    """Counts, trips, and stays tripped until it is released."""

    def __init__(self, options: BrakeOptions, clock: Clock, agent: str = DEFAULT_AGENT) -> None:
        self._options = options
        self._clock = clock
        self._agent = agent
        self._buckets: deque[tuple[int, Counter[str]]] = deque()
        self._paused: Paused | None = None

    @property
    def paused(self) -> Paused | None:
        """Why nothing goes, or None."""
        return self._paused

    @property
    def hour_tokens_max(self) -> int:
        """Return what the hour may have; 0 when there is no such limit."""
        return self._options.hour_tokens_max if self._options.enabled else 0

    def restore(self, minutes: Mapping[int, int], paused: Paused | None) -> Paused | None:
        """Takes up what was before the start: tokens by minute since the epoch, and the last pause
        or release. Minutes from before a release do not count, nor those of the future (the clock
        was wrong). Returns a pause that was due but never stored."""
        now_ms = self._now_ms()
        released_ms = paused.since_ms if paused is not None and not paused.is_on else 0
        now_minute, here = now_ms // 60_000, self._minute()
        counted = {
            here - (now_minute - minute): tokens
            for minute, tokens in minutes.items()
            if minute <= now_minute and minute * 60_000 >= min(released_ms, now_ms)
        }
        # Who asked for them is not known any more: a start is no reason to stop anybody.
        self._buckets = deque((at, Counter({BY_HAND: counted[at]})) for at in sorted(counted))
        self._forget()
        if paused is not None and paused.is_on and self._options.enabled:
            self._paused = paused
            return None
        return self._check()

    def add(self, tokens: int, *, source: str = "") -> Paused | None:
        """Counts what a call used, for `source_of` its charge. The pause, when this is what tripped
        it."""
        minute = self._minute()
        if not self._buckets or self._buckets[-1][0] != minute:
            self._buckets.append((minute, Counter()))
        self._buckets[-1][1][source] += tokens
        self._forget()
        return self._check()

    def release(self) -> Paused:
        """Goes on: what was used up to now is no longer held against it."""
        self._paused = None
        self._buckets.clear()
        return Paused(kind=Pause.BRAKE, since_ms=self._now_ms(), is_on=False, agent=self._agent)

    def rush(self) -> Rush:
        """Return how much is used at this moment."""
        self._forget()
        options, begin = self._options, self._minute() - self._options.burst_minutes
        recent: Counter[str] = Counter()
        for at, used in self._buckets:
            if at > begin:
                recent.update(used)
        before = [used.total() for at, used in self._buckets if at <= begin]
        active = [used for used in before if used > 0]
        baseline = sum(active) / len(active) if active else 0.0
        is_thin = len(active) < options.baseline_minutes_min
        by_themselves = [used for source, used in recent.items() if source != BY_HAND]
        return Rush(
            hour=recent.total() + sum(before),
            burst=recent.total() / options.burst_minutes,
            unattended=sum(by_themselves) / options.burst_minutes,
            largest=max(by_themselves, default=0) / options.burst_minutes,
            baseline=0.0 if is_thin or baseline < options.baseline_tokens_min else baseline,
        )

    # --- steps ---------------------------------------------------------------------------------

    def _check(self) -> Paused | None:
        if self._paused is not None or not self._options.enabled:
            return None
        why, rush, options = "", self.rush(), self._options
        factor, presumed = options.burst_factor, options.baseline_presumed
        if rush.baseline:
            by_hand = (rush.burst - rush.unattended) * options.by_hand_weight
            is_burst = rush.unattended > factor * rush.baseline or (
                rush.unattended + by_hand > factor * max(rush.baseline, presumed)
            )
        else:
            # While little is known each job is looked at for itself: several may have been missed
            # and come at once, and only one that runs wild takes so much.
            is_burst = rush.largest > factor * presumed
        if 0 < options.hour_tokens_max <= rush.hour:
            why = (
                f"{rush.hour:,} tokens were used in the last {options.minutes} minutes; the limit "
                f"is {options.hour_tokens_max:,}"
            )
        elif factor > 0 and is_burst:
            usual = rush.baseline or presumed
            of = "" if rush.baseline else ", presumed as too few are known yet"
            why = (
                f"{rush.burst:,.0f} tokens a minute were used in the last {options.burst_minutes} "
                f"minutes, {rush.burst / usual:.1f} times as many as in the active minutes before "
                f"({usual:,.0f}{of}); the limit is {factor:g} times"
            )
        if not why:
            return None
        why += "" if self._agent == DEFAULT_AGENT else f" (the agent `{self._agent}`)"
        self._paused = Paused(
            kind=Pause.BRAKE, since_ms=self._now_ms(), words=why, agent=self._agent
        )
        return self._paused

    def _minute(self) -> int:
        return int(self._clock.monotonic() // MINUTE_S)

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)

    def _forget(self) -> None:
        oldest = self._minute() - self._options.minutes
        while self._buckets and self._buckets[0][0] <= oldest:
            self._buckets.popleft()


class Brakes:
    """One brake for each agent: one that runs wild stops no other (SPEC §4)."""

    def __init__(self, options: BrakeOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._by_agent = {DEFAULT_AGENT: Brake(options, clock)}

    def of(self, agent: str) -> Brake:
        """That of an agent."""
        found = self._by_agent.get(agent)
        if found is None:
            found = self._by_agent[agent] = Brake(self._options, self._clock, agent)
        return found

    @property
    def by_agent(self) -> Mapping[str, Brake]:
        """Of all agents that have asked for anything of late, `default` first."""
        return self._by_agent

    @property
    def paused(self) -> tuple[Paused, ...]:
        """Why which agents stand still."""
        return tuple(one.paused for one in self._by_agent.values() if one.paused is not None)

    def restore(
        self, minutes: Mapping[str, Mapping[int, int]], pauses: Mapping[str, Paused]
    ) -> list[Paused]:
        """As `Brake.restore`, by agent."""
        agents = dict.fromkeys([*self._by_agent, *minutes, *pauses])
        tripped = (
            self.of(agent).restore(minutes.get(agent, {}), pauses.get(agent)) for agent in agents
        )
        return [one for one in tripped if one is not None]


def trip_notice(paused: Paused) -> Notice:
    """Return what the owner is told, once for each time."""
    return Notice(
        key=f"brake/{paused.since_ms}"
        + ("" if paused.agent == DEFAULT_AGENT else f"/{paused.agent}"),
        text=f"⚠️ I have stopped asking models: {paused.words}. Reminders still come. If this was "
        "meant, send `/resume` and I go on; `/usage` shows what used it.",
        buttons=(RESUME,),
    )


def brake_words(paused: Paused, *, is_owner: bool) -> str:
    """Return what somebody who writes meanwhile is told."""
    if is_owner:
        return (
            f"I have paused myself: {paused.words}. Send `/resume` and I go on; `/usage` shows "
            "what used it."
        )
    return (
        "I am pausing for the moment, because more was used than is usual. The owner has been told "
        "and can let me go on; please try again later."
    )


class HandPause:
    """The owner's own pause: no new turn and nothing unasked, until it is over.

    The turn engine waits on it before it begins a turn; whoever starts something unasked looks.
    """

    def __init__(self) -> None:
        self._paused: Paused | None = None
        self._over = asyncio.Event()
        self._over.set()

    @property
    def paused(self) -> Paused | None:
        """Since when, or None."""
        return self._paused

    async def over(self) -> None:
        """Returns at once when there is no pause, else when it ends."""
        await self._over.wait()

    def put(self, paused: Paused) -> None:
        """Begins it, or ends it."""
        if paused.is_on:
            self._paused = paused
            self._over.clear()
        else:
            self._paused = None
            self._over.set()


# --- usual --------------------------------------------------------------------------------------
#
# What calls of a kind usually take: learned from those that were made. Used by
# `agent.budget.budget`.

KINDS_KEPT_MAX = 500
STEP = 0.2
"""How much the newest call counts in what is usual."""


class Usual:
    """Moving means by model and purpose."""

    def __init__(self, output_usual: int) -> None:
        """`output_usual` tokens are expected of a model that nothing is known of."""
        self._output_usual = output_usual
        self._kinds: dict[tuple[str, Purpose], tuple[float, float]] = {}
        self._typical: dict[Purpose, tuple[float, float]] = {}

    def usage(self, model: str, purpose: Purpose, tokens_in: int, tokens_out: int) -> Usage:
        """Return what to expect of a call whose answer has `tokens_out` at most."""
        output, cached = self._kinds.get((model, purpose), (float(self._output_usual), 0.0))
        return Usage(
            prompt=tokens_in,
            completion=min(tokens_out, round(output)),
            cached=int(tokens_in * cached),
        )

    def typical(self, purpose: Purpose, unit: BudgetUnit) -> float:
        """Return what one call for this has cost of late; 0 when none was made."""
        tokens, micros = self._typical.get(purpose, (0.0, 0.0))
        return tokens if unit is BudgetUnit.TOKENS else micros

    def learn(self, call: ModelCall) -> None:
        """A call that the provider counted."""
        usage, purpose = call.usage, call.charge.purpose
        if len(self._kinds) >= KINDS_KEPT_MAX:
            self._kinds.clear()
        key = call.model, purpose
        now = float(usage.completion), min(1.0, usage.cached / max(usage.prompt, 1))
        former = self._kinds.get(key, (float(self._output_usual), 0.0))
        self._kinds[key] = _moved(former, now)
        cost = float(call.tokens), float(call.micros or 0)
        self._typical[purpose] = _moved(self._typical.get(purpose, cost), cost)


def _moved(former: tuple[float, float], now: tuple[float, float]) -> tuple[float, float]:
    return (
        former[0] + STEP * (now[0] - former[0]),
        former[1] + STEP * (now[1] - former[1]),
    )
