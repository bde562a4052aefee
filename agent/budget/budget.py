"""What a model call may cost, asked before it is made, and what it did cost, kept for ever.

Called around each model call: `before`, then `after` or `failed`. Decisions are made in memory,
between two awaits, so that none sees half of another; what was decided is durable before a call
that is on a budget begins. Where there is no budget, nothing is waited for: rows are written
together, a moment later.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import tzinfo
from enum import IntEnum

import structlog

from agent.budget.circuit_breaker import (
    Brakes,
    HandPause,
    Usual,
    brake_words,
    source_of,
    trip_notice,
)
from agent.budget.ledger import Books, Bound, CallWish, Tell
from agent.budget.messages import busy_words, free_words, refusal_words, warning_words
from memory.records.errors import BrokenAnswer, ModelTimeout
from memory.records.messages import PersonId
from memory.records.ports import Clock
from memory.records.transcript import Usage
from memory.records.usage import (
    NOBODY,
    Allowance,
    BudgetUnit,
    CallState,
    Charge,
    Level,
    Limit,
    ModelCall,
    Notice,
    Pause,
    Paused,
    Period,
    Price,
    Purpose,
    Reservation,
    Scope,
    Spent,
    Standing,
    Verdict,
    account_of,
    as_estimated,
    micros_of,
    subject_of,
    zone_for,
)
from memory.stores.usage import SqliteUsage

log = structlog.get_logger()

TOKENS_MAX = 1_000_000_000
"""Of one call: what providers report beyond is nonsense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetOptions:
    """The limits, and how they are kept.

    `warn_share` warns once, from `lean_share` on prompts are kept small. A call waits up to
    `wait_s_max` seconds for others that hold what is left. `output_usual` tokens are expected of a
    model that nothing is known of; `input_margin` is by how much a count of the prompt may be too
    low. Rows that nobody waits for are written `flush_s` seconds later, together.
    """

    limits: tuple[Limit, ...] = ()
    warn_share: float = 0.8
    lean_share: float = 0.95
    wait_s_max: float = 30.0
    output_usual: int = 1_000
    input_margin: float = 1.15
    flush_s: float = 1.0


class Budget:
    """Asked before each model call, inside of `running`."""

    def __init__(
        self,
        ledger: SqliteUsage,
        find_price: Callable[[str], Awaitable[Price | None]],
        brakes: Brakes,
        *,
        options: BudgetOptions,
        clock: Clock,
        host_zone: tzinfo,
        tell: Tell,
    ) -> None:
        """`find_price` finds what a model costs by the name it is asked under; None: not known.
        `host_zone` is this machine's, for all days but a person's."""
        self._ledger = ledger
        self._find_price = find_price
        self._brakes = brakes
        self._options = options
        self._clock = clock
        self._host_zone = host_zone
        self._books = Books(ledger, clock, flush_s=options.flush_s, tell=tell)
        self._usual = Usual(options.output_usual)
        self._freed = asyncio.Event()
        self.hand = HandPause()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Budget]:
        """Settles what a dead process left, and writes what is left at the end.

        Raises StorageError.
        """
        now_ms = self._now_ms()
        found = await self._ledger.open(minutes_from_ms=now_ms - 3_600_000)
        if found.settled:
            log.info("usage.settled_by_estimate", calls=found.settled)
        self._books.begin(found.next_id, found.notices_known, found.notices_untold)
        brakes: dict[str, Paused] = {}
        for paused in found.pauses:
            if paused.kind is Pause.HAND:
                self.hand.put(paused)
            else:
                brakes[paused.agent] = paused
        for tripped in self._brakes.restore(found.minutes, brakes):
            self._trip(tripped)
        writing = asyncio.create_task(self._books.write_on())
        try:
            yield self
        finally:
            writing.cancel()
            with suppress(asyncio.CancelledError):
                await writing
            await self._books.close()

    # --- around a call -------------------------------------------------------------------------

    async def before(
        self, charge: Charge, *, model: str, cheap_model: str = "", tokens_in: int, tokens_out: int
    ) -> Allowance:
        """Return whether a call may be made. `tokens_in` is the counted prompt with its tools,
        `tokens_out` the longest answer. What is allowed has to be settled by `after` or `failed`.

        Raises StorageError when a budget cannot be kept.
        """
        if paused := self._brakes.of(charge.agent).paused:
            words = brake_words(paused, is_owner=charge.is_owner)
            return Allowance(verdict=Verdict.REFUSE, words=words)
        wishes = [await self._wish(charge.purpose, model, tokens_in, tokens_out)]
        limits = self._limits_of(charge)
        if not limits:
            opened = self._books.reserve(charge, wishes[0], tight=False, bound=())
            return Allowance(
                verdict=Verdict.GO,
                model=model,
                tokens_out=tokens_out,
                reservation=opened.reservation,
            )
        if cheap_model and cheap_model != model:
            wishes.append(await self._wish(charge.purpose, cheap_model, tokens_in, tokens_out))
        return await self._within(charge, limits, wishes)

    async def after(
        self, reservation: Reservation, usage: Usage, *, model: str = ""
    ) -> ModelCall | None:
        """Settles a call by what the provider counted, or by the estimate where it did not say.

        `model` is the one that answered, where another one stood in. Returns the row; None when it
        was settled before. Raises nothing, and settles also when it is cancelled.
        """
        call = reservation.call
        # Without what cannot be.
        prompt = min(max(usage.prompt, 0), TOKENS_MAX)
        counted = Usage(
            prompt=prompt,
            completion=min(max(usage.completion, 0), TOKENS_MAX),
            cached=min(max(usage.cached, 0), prompt),
        )
        if not (counted.prompt or counted.completion):
            return self.abandoned(reservation)
        answered = model or call.model
        try:
            price = await self._find_price(answered)
        except asyncio.CancelledError:
            self.abandoned(reservation)
            raise
        micros = micros_of(price, counted)
        return self._settle(
            reservation,
            replace(call, model=answered, usage=counted, micros=micros, state=CallState.COUNTED),
        )

    def abandoned(self, reservation: Reservation) -> ModelCall | None:
        """Settles a call that was given up on the way, by the estimate: it may be on the bill."""
        return self._settle(reservation, as_estimated(reservation.call))

    def failed(self, reservation: Reservation) -> None:
        """Releases a call that the provider refused or that never reached it: it cost nothing."""
        if self._books.release(reservation):
            self._wake_waiting()

    def ended(self, reservation: Reservation, error: BaseException) -> None:
        """Settles a call that raised: by the estimate where it may be on the bill, for it was
        stopped or broke off on the way; else it cost nothing."""
        if isinstance(error, asyncio.CancelledError | ModelTimeout | BrokenAnswer):
            self.abandoned(reservation)
        else:
            self.failed(reservation)

    async def level(self, charge: Charge) -> Level:
        """Return how much the prompt of the next call may hold. Raises StorageError."""
        limits = self._limits_of(charge)
        for limit, _, total, _ in await self._bound(charge, limits) if limits else ():
            left = limit.amount - total.spent(limit.unit) - total.held(limit.unit)
            typical = self._usual.typical(charge.purpose, limit.unit)
            if left < max(typical, limit.amount * (1 - self._options.lean_share)):
                return Level.LEAN
        return Level.NORMAL

    # --- looking -------------------------------------------------------------------------------

    @property
    def limits(self) -> tuple[Limit, ...]:
        """All that are set."""
        return self._options.limits

    @property
    def is_quiet(self) -> bool:
        """Return whether nothing is left to be written or told."""
        return self._books.is_quiet

    @property
    def brakes(self) -> Brakes:
        """For their figures."""
        return self._brakes

    async def standings(self, charge: Charge) -> Sequence[Standing]:
        """Return how the budgets stand that a call of this charge would be on; those of turns only
        where it has one. Raises StorageError."""
        limits = self._limits_of(charge)
        return [
            Standing(
                limit=limit,
                subject=account.subject,
                used=total.spent(limit.unit),
                held=total.held(limit.unit),
                end_ms=account.end_ms,
            )
            for limit, account, total, _ in await self._bound(charge, limits)
        ]

    async def flush(self) -> None:
        """Writes what waits to be written: for whoever reads the rows. Raises StorageError."""
        await self._books.flush()

    # --- standing still ------------------------------------------------------------------------

    async def pause(self) -> bool:
        """The owner's pause; False when there is one. Raises StorageError."""
        if self.hand.paused is not None:
            return False
        paused = Paused(kind=Pause.HAND, since_ms=self._now_ms())
        await self._books.store(paused)
        self.hand.put(paused)
        log.info("pause.begun")
        return True

    async def resume(self) -> frozenset[Pause]:
        """Ends every pause, the brake's too; returns which there were. Raises StorageError."""
        lifted = set()
        for paused in self._brakes.paused:
            await self._books.store(replace(paused, since_ms=self._now_ms(), is_on=False, words=""))
            self._brakes.of(paused.agent).release()
            lifted.add(Pause.BRAKE)
        if self.hand.paused is not None:
            over = Paused(kind=Pause.HAND, since_ms=self._now_ms(), is_on=False)
            await self._books.store(over)
            self.hand.put(over)
            lifted.add(Pause.HAND)
        log.info("pause.over", lifted=sorted(lifted))
        return frozenset(lifted)

    # --- steps ---------------------------------------------------------------------------------

    async def _wish(
        self, purpose: Purpose, model: str, tokens_in: int, tokens_out: int
    ) -> CallWish:
        price = await self._find_price(model)
        usual = self._usual.usage(model, purpose, tokens_in, tokens_out)
        most = Usage(prompt=int(tokens_in * self._options.input_margin) + 1, completion=tokens_out)
        return CallWish(
            model=model,
            usual=usual,
            micros=micros_of(price, usual),
            tokens_out=tokens_out,
            most_tokens=most.prompt + most.completion,
            most_micros=micros_of(price, most) or 0,
            prompt_micros=micros_of(price, replace(most, completion=0)) or 0,
        )

    async def _within(
        self, charge: Charge, limits: Sequence[Limit], wishes: Sequence[CallWish]
    ) -> Allowance:
        """Down the ladder: this model, the cheap one, no. Waits for what others may give back."""
        gives_up_at = self._clock.monotonic() + self._options.wait_s_max
        while True:
            bound = await self._bound(charge, limits)
            freed = self._freed
            fits = [_fit(bound, wish) for wish in wishes]
            for wish, (fit, _) in zip(wishes, fits, strict=True):
                if fit is _Fit.BUSY and self._clock.monotonic() < gives_up_at:
                    break  # A better model is worth a moment.
                if fit <= _Fit.TIGHT:
                    return await self._allow(
                        charge, bound, wish, wishes[0], tight=fit is _Fit.TIGHT
                    )
            else:
                worst = next((one for one in fits if one[0] is _Fit.BUSY), fits[-1])
                return self._refuse(charge, bound[worst[1]], wishes[-1], fit=worst[0])
            # Until a call is settled, or it is time to give up.
            waking = asyncio.ensure_future(freed.wait())
            sleeping = asyncio.ensure_future(
                self._clock.sleep(max(0.0, gives_up_at - self._clock.monotonic()))
            )
            try:
                await asyncio.wait({waking, sleeping}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (waking, sleeping):
                    task.cancel()
                await asyncio.gather(waking, sleeping, return_exceptions=True)
            if paused := self._brakes.of(charge.agent).paused:
                words = brake_words(paused, is_owner=charge.is_owner)
                return Allowance(verdict=Verdict.REFUSE, words=words)

    async def _allow(
        self,
        charge: Charge,
        bound: Sequence[Bound],
        wish: CallWish,
        first: CallWish,
        *,
        tight: bool,
    ) -> Allowance:
        if tight:
            # What the fullest budgets of tokens and of money have left.
            left = {unit: [10**15] for unit in BudgetUnit}
            for limit, _, total, _ in bound:
                left[limit.unit].append(
                    limit.amount - total.spent(limit.unit) - total.held(limit.unit)
                )
            cut = wish.cut_to(Spent(min(left[BudgetUnit.TOKENS]), min(left[BudgetUnit.MONEY])))
            tight = _fit(bound, cut)[0] is _Fit.TIGHT
        else:
            cut = wish
        opened = self._books.reserve(charge, cut, tight=tight, bound=bound)
        warnings = self._warn(bound, wish.usual.prompt + wish.usual.completion, wish.micros or 0)
        try:
            await self._books.flush()
        except BaseException:
            self.failed(opened.reservation)
            raise
        verdict = Verdict.GO if wish is first else Verdict.CHEAP
        return Allowance(
            verdict=verdict,
            model=wish.model,
            tokens_out=cut.tokens_out,
            reservation=opened.reservation,
            warnings=warnings,
        )

    def _refuse(self, charge: Charge, bound: Bound, wish: CallWish, *, fit: _Fit) -> Allowance:
        limit, account, total, _ = bound
        log.info("budget.refused", budget=limit.key, purpose=charge.purpose, busy=fit is _Fit.BUSY)
        if fit is _Fit.BUSY:
            words = busy_words(limit, charge, account.subject)
            return Allowance(verdict=Verdict.REFUSE, words=words)
        needed = wish.needed(limit.unit)
        words = refusal_words(
            limit,
            charge,
            account.subject,
            used=total.spent(limit.unit),
            needed=needed,
            free=self._free(bound),
        )
        return Allowance(
            verdict=Verdict.REFUSE,
            words=words,
            passes=limit.period is not Period.TURN and needed <= limit.amount,
            free_at_ms=account.end_ms or None,
        )

    def _warn(self, bound: Iterable[Bound], tokens: int, micros: int) -> tuple[Notice, ...]:
        """A notice for each budget that comes to its share now, once in its period."""
        notices = []
        for one in bound:
            limit, account, total, _ = one
            more = tokens if limit.unit is BudgetUnit.TOKENS else micros
            used = total.spent(limit.unit) + more
            key = f"warn/{limit.key}/{account.subject}/{account.run_id or account.start_ms}"
            is_due = 0 < limit.amount * self._options.warn_share <= used
            if not is_due or self._books.knows(key):
                continue
            is_persons = limit.scope is Scope.PERSON
            free = self._free(one)
            text = warning_words(limit, account.subject, used=used, free=free)
            person_id = PersonId(account.subject) if is_persons else NOBODY
            notice = Notice(key=key, text=text, person_id=person_id)
            self._books.announce(notice)
            log.info("budget.warned", budget=limit.key)
            notices.append(notice)
        return tuple(notices)

    def _settle(self, reservation: Reservation, call: ModelCall) -> ModelCall | None:
        opened = self._books.settle(reservation, call)
        if opened is None:
            return None
        if call.state is CallState.COUNTED:
            self._usual.learn(call)
        self._warn(opened.bound, 0, 0)
        brake = self._brakes.of(call.charge.agent)
        if tripped := brake.add(call.tokens, source=source_of(call.charge)):
            self._trip(tripped)
        self._wake_waiting()
        return call

    def _trip(self, paused: Paused) -> None:
        log.warning("brake.tripped", why=paused.words)
        self._books.change(paused)
        self._books.announce(trip_notice(paused))
        self._wake_waiting()

    def _limits_of(self, charge: Charge) -> tuple[Limit, ...]:
        """Return the limits that a call is on: of one person, agent or job the special one, else
        the general."""
        found: dict[tuple[Scope, Period, BudgetUnit], Limit] = {}
        for limit in self._options.limits:
            subject = subject_of(limit.scope, charge)
            if subject is None or limit.of not in ("", subject):
                continue
            key = limit.scope, limit.period, limit.unit
            if limit.of or key not in found:
                found[key] = limit
        return tuple(found.values())

    async def _bound(self, charge: Charge, limits: Sequence[Limit]) -> list[Bound]:
        """Each limit with its account, as it stands now: nothing is awaited once all are known."""
        while True:
            at = self._clock.now()
            wanted = [
                (limit, account)
                for limit in limits
                if (account := account_of(limit, charge, at=at, host_zone=self._host_zone))
            ]
            totals = self._books.totals([account for _, account in wanted])
            if totals is not None:
                return [
                    Bound(
                        limit,
                        account,
                        total,
                        zone_for(limit.scope, charge.time_zone, self._host_zone),
                    )
                    for (limit, account), total in zip(wanted, totals, strict=True)
                ]
            await self._books.load([account for _, account in wanted])

    def _wake_waiting(self) -> None:
        self._freed.set()
        self._freed = asyncio.Event()

    def _free(self, bound: Bound) -> str:
        return free_words(bound.limit, bound.account.end_ms, at=self._clock.now(), zone=bound.zone)

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)


class _Fit(IntEnum):
    """How a call fits into its budgets: with its longest answer; with a shorter one; only
    once others give back what they hold; not at all."""

    FITS = 0
    TIGHT = 1
    BUSY = 2
    NO = 3


def _fit(bound: Sequence[Bound], wish: CallWish) -> tuple[_Fit, int]:
    """Return how it fits into the fullest of them, and which that is.

    Only one call at a time may be tight in an account. So a budget is never passed by more than
    what one call takes beyond its estimate.
    """
    fullest = (_Fit.FITS, 0)
    for number, (limit, _, total, _) in enumerate(bound):
        room = limit.amount - total.spent(limit.unit)
        left = room - total.held(limit.unit)
        usual, most = wish.needed(limit.unit), wish.needed(limit.unit, most=True)
        if most <= left or most == 0:  # What costs nothing goes on where nothing is left.
            continue
        if usual <= left and not total.tight:
            fit = _Fit.TIGHT
        else:
            fit = _Fit.BUSY if usual <= room and total.is_held else _Fit.NO
        if fit > fullest[0]:
            fullest = fit, number
    return fullest
