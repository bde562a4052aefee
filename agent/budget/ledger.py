"""The books of `agent.budget.budget`: what each account has, and what waits to be written.

In memory all is changed at once; the rows follow together, in order, as one transaction at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import NamedTuple

import structlog

from memory.records.errors import AssistantError, StorageError
from memory.records.messages import ConversationId, Role, RunId, TurnInput
from memory.records.ports import Clock
from memory.records.transcript import Usage
from memory.records.usage import (
    Account,
    BudgetUnit,
    CallState,
    Changes,
    Charge,
    Limit,
    ModelCall,
    Notice,
    Paused,
    Purpose,
    Reservation,
    Spent,
)
from memory.stores.usage import SqliteUsage

log = structlog.get_logger()

Tell = Callable[[Notice], Awaitable[None]]
"""Hands a notice to its person, durably. May raise AssistantError: it is called again later."""

ACCOUNTS_KEPT_MAX = 500
PAUSE_S_MAX = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallWish:
    """A call that somebody wants: what it usually takes, and the most: a prompt that was counted
    too low, and an answer of `tokens_out`. `micros` None: the price is not known, and budgets of
    money cannot count it."""

    model: str
    usual: Usage
    micros: int | None
    tokens_out: int
    most_tokens: int
    most_micros: int
    prompt_micros: int
    """Of the most, what is the prompt's."""

    def cut_to(self, room: Spent) -> CallWish:
        """The same with an answer so long that the most fits into the room; twice the usual answer
        it may always have, for one that is cut helps nobody."""
        by_tokens = self.tokens_out - max(0, self.most_tokens - room.tokens)
        answer_micros = self.most_micros - self.prompt_micros
        by_money = self.tokens_out
        if answer_micros > 0:
            left = max(0, room.micros - self.prompt_micros)
            by_money = self.tokens_out * left // answer_micros
        least = min(self.tokens_out, 2 * self.usual.completion)
        tokens_out = max(least, min(self.tokens_out, by_tokens, by_money))
        share = tokens_out / self.tokens_out if self.tokens_out else 1.0
        return replace(
            self,
            tokens_out=tokens_out,
            most_tokens=self.most_tokens - self.tokens_out + tokens_out,
            most_micros=self.prompt_micros + int(answer_micros * share),
        )

    def needed(self, unit: BudgetUnit, *, most: bool = False) -> int:
        """In tokens or micro-dollars."""
        if unit is BudgetUnit.TOKENS:
            return self.most_tokens if most else self.usual.prompt + self.usual.completion
        return self.most_micros if most else self.micros or 0


class Total:
    """What an account has: settled calls, and what open ones hold. `tight` counts those that hold
    less than they may take."""

    __slots__ = ("_held", "_spent", "tight")

    def __init__(self, spent: Spent) -> None:
        self._spent = spent
        self._held = Spent(0, 0)
        self.tight = 0

    def spent(self, unit: BudgetUnit) -> int:
        """By calls that are over."""
        return self._spent.tokens if unit is BudgetUnit.TOKENS else self._spent.micros

    def held(self, unit: BudgetUnit) -> int:
        """By calls that are being made."""
        return self._held.tokens if unit is BudgetUnit.TOKENS else self._held.micros

    @property
    def is_held(self) -> bool:
        """Return whether a call that is being made counts here."""
        return bool(self.tight or self._held.tokens or self._held.micros)

    def spend(self, call: ModelCall) -> None:
        """Adds a call that is over."""
        spent = self._spent
        self._spent = Spent(spent.tokens + call.tokens, spent.micros + (call.micros or 0))

    def hold(self, reservation: Reservation, sign: int = 1) -> None:
        """Sets aside, or with -1 gives back."""
        held = self._held
        self._held = Spent(
            held.tokens + sign * reservation.held_tokens,
            held.micros + sign * reservation.held_micros,
        )
        self.tight += sign * reservation.tight


class Bound(NamedTuple):
    """A limit that a call is on, where it counts, and by whose clock."""

    limit: Limit
    account: Account
    total: Total
    zone: tzinfo


@dataclass(slots=True)
class OpenCall:
    """A call that is being made, with the totals that hold it."""

    reservation: Reservation
    bound: tuple[Bound, ...]
    totals: list[Total]


class Books:
    """Accounts and open calls. Written by `flush`, or a moment later by `write_on`."""

    def __init__(self, ledger: SqliteUsage, clock: Clock, *, flush_s: float, tell: Tell) -> None:
        self._ledger = ledger
        self._clock = clock
        self._flush_s = flush_s
        self._tell = tell
        self._writing = asyncio.Lock()
        self._wake = asyncio.Event()
        self._next_id = 1
        self._open: dict[int, OpenCall] = {}
        self._accounts: dict[Account, Total] = {}
        self._known: set[str] = set()
        self._untold: list[Notice] = []
        # What waits to be written.
        self._calls: dict[int, ModelCall] = {}
        self._dropped: set[int] = set()
        self._notices: list[Notice] = []
        self._told: list[str] = []
        self._pauses: dict[tuple[str, str], Paused] = {}
        self._settled_meanwhile: list[ModelCall] = []

    def begin(self, next_id: int, known: Iterable[str], untold: Iterable[Notice]) -> None:
        """Takes up what was stored; notices that nobody was told are told now."""
        self._next_id = next_id
        self._known = set(known)
        self._untold = list(untold)
        if self._untold:
            self._wake.set()

    # --- calls ---------------------------------------------------------------------------------

    def reserve(
        self, charge: Charge, wish: CallWish, *, tight: bool, bound: Sequence[Bound]
    ) -> OpenCall:
        """Opens a call and sets aside what it may take."""
        call = ModelCall(
            id=self._next_id,
            at_ms=int(self._clock.now().timestamp() * 1000),
            charge=charge,
            model=wish.model,
            usage=wish.usual,
            micros=wish.micros,
            guessed=wish.usual.prompt + wish.usual.completion,
            state=CallState.OPEN,
        )
        self._next_id += 1
        reservation = Reservation(
            call=call,
            held_tokens=wish.needed(BudgetUnit.TOKENS, most=not tight),
            held_micros=wish.needed(BudgetUnit.MONEY, most=not tight),
            tight=tight,
        )
        opened = OpenCall(
            reservation=reservation,
            bound=tuple(bound),
            # All in which it counts: also those of the same person in another time zone.
            totals=[
                total
                for account, total in self._accounts.items()
                if account.holds(charge, call.at_ms)
            ],
        )
        for total in opened.totals:
            total.hold(reservation)
        self._open[call.id] = opened
        self._write_later(call)
        return opened

    def settle(self, reservation: Reservation, call: ModelCall) -> OpenCall | None:
        """Closes a call with its figures; None when it was closed before."""
        opened = self._open.pop(call.id, None)
        if opened is None:
            return None
        for total in opened.totals:
            total.hold(reservation, -1)
            total.spend(call)
        self._settled_meanwhile.append(call)
        self._write_later(call)
        return opened

    def release(self, reservation: Reservation) -> bool:
        """Forgets a call that cost nothing; False when it was closed before."""
        number = reservation.call.id
        opened = self._open.pop(number, None)
        if opened is None:
            return False
        for total in opened.totals:
            total.hold(reservation, -1)
        self._calls.pop(number, None)
        self._dropped.add(number)
        self._wake.set()
        return True

    # --- accounts ------------------------------------------------------------------------------

    def totals(self, accounts: Sequence[Account]) -> list[Total] | None:
        """Those of all accounts; None unless all are loaded."""
        found = [self._accounts.get(account) for account in accounts]
        loaded = [total for total in found if total is not None]
        return loaded if len(loaded) == len(found) else None

    async def load(self, accounts: Sequence[Account]) -> None:
        """Adds up what is stored of those that are not known yet. Raises StorageError."""
        async with self._writing:
            missing = [one for one in dict.fromkeys(accounts) if one not in self._accounts]
            if not missing:
                return
            # Drop what is past, and all that nobody uses once there are many: it is loaded again.
            is_full = len(self._accounts) >= ACCOUNTS_KEPT_MAX
            now_ms = int(self._clock.now().timestamp() * 1000)
            self._accounts = {
                account: total
                for account, total in self._accounts.items()
                if total.is_held
                or not (is_full or (not account.run_id and account.end_ms <= now_ms))
            }
            for account, spent in zip(missing, await self._write(missing), strict=True):
                total = Total(spent)
                for call in self._settled_meanwhile:
                    if account.holds(call.charge, call.at_ms):
                        total.spend(call)
                for opened in self._open.values():
                    call = opened.reservation.call
                    if account.holds(call.charge, call.at_ms):
                        total.hold(opened.reservation)
                        opened.totals.append(total)
                self._accounts[account] = total

    # --- notices and pauses --------------------------------------------------------------------

    def knows(self, key: str) -> bool:
        """Return whether a notice of this key was made."""
        return key in self._known

    def announce(self, notice: Notice) -> None:
        """Stores it and tells it, once for its key."""
        if notice.key in self._known:
            return
        self._known.add(notice.key)
        self._notices.append(notice)
        self._wake.set()

    def change(self, paused: Paused) -> None:
        """Stores a pause, or its end, in a moment."""
        self._pauses[paused.kind, paused.agent] = paused
        self._wake.set()

    async def store(self, paused: Paused) -> None:
        """The same, and it is stored when this returns. Raises StorageError; then it is not."""
        async with self._writing:
            await self._ledger.put(Changes(pauses=(paused,)))
            self._pauses.pop((paused.kind, paused.agent), None)

    # --- writing -------------------------------------------------------------------------------

    async def flush(self) -> None:
        """All that waits is written when this returns. Raises StorageError; it waits on then."""
        async with self._writing:
            await self._write(())

    async def write_on(self) -> None:
        """Writes what waits, and tells the notices: until it is cancelled."""
        pause_s = self._flush_s
        while True:
            await self._wake.wait()
            await self._clock.sleep(pause_s)
            self._wake.clear()
            try:
                await self.flush()
                while self._untold:
                    await self._tell(self._untold[0])
                    self._told.append(self._untold.pop(0).key)
                if self._told:
                    await self.flush()
            except AssistantError as error:
                if pause_s == self._flush_s:
                    log.warning("usage.waits", why=str(error))
                pause_s = min(PAUSE_S_MAX, max(pause_s, 0.5) * 2)
                self._wake.set()
            else:
                pause_s = self._flush_s

    @property
    def is_quiet(self) -> bool:
        """Return whether nothing is left to be written or told."""
        waits = (self._calls, self._dropped, self._notices, self._told, self._pauses, self._untold)
        return not (any(waits) or self._writing.locked())

    async def close(self) -> None:
        """The last flush. Calls that are still open become estimates at the next start."""
        try:
            await self.flush()
        except StorageError as error:
            log.warning("usage.lost", why=str(error), calls=len(self._calls))

    def _write_later(self, call: ModelCall) -> None:
        self._calls[call.id] = call
        self._wake.set()

    async def _write(self, sums: Sequence[Account]) -> Sequence[Spent]:
        """One transaction. Called with `_writing` held; what could not be written waits on."""
        changes = Changes(
            calls=tuple(self._calls.values()),
            dropped=tuple(self._dropped),
            notices=tuple(self._notices),
            told=tuple(self._told),
            pauses=tuple(self._pauses.values()),
        )
        self._settled_meanwhile = []
        if not changes and not sums:
            return ()
        self._calls, self._dropped, self._notices = {}, set(), []
        self._told, self._pauses = [], {}
        try:
            spent = await self._ledger.put(changes, sums)
        except BaseException:
            # What was changed since stands; what was written after all is written again.
            for call in changes.calls:
                if call.id not in self._dropped:
                    self._calls.setdefault(call.id, call)
            self._dropped |= set(changes.dropped)
            self._notices = [*changes.notices, *self._notices]
            self._told = [*changes.told, *self._told]
            for paused in changes.pauses:
                self._pauses.setdefault((paused.kind, paused.agent), paused)
            self._wake.set()
            raise
        self._untold += changes.notices
        return spent


# --- charge -------------------------------------------------------------------------------------
#
# On whose account a turn's model calls go. Called by the steps `begin` and `model`.


def charge_of(run_id: RunId, turn: TurnInput) -> Charge:
    """A subagent's calls go on the person's account, and on a turn's budget of its own."""
    purpose = Purpose.CHAT
    if turn.task is not None:
        purpose = Purpose.SUBAGENT
    elif turn.job is not None:
        purpose = Purpose.HEARTBEAT if turn.job.is_heartbeat else Purpose.JOB
    return Charge(
        purpose=purpose,
        person_id=turn.person_id,
        is_owner=turn.role is Role.OWNER,
        lane=turn.message.address.key,
        conversation=turn.conversation,
        run_id=run_id,
        job="" if turn.job is None else turn.job.name,
        agent=turn.agent,
        time_zone=turn.time_zone,
    )


def background_charge(
    purpose: Purpose, turn: TurnInput, conversation: ConversationId | None = None
) -> Charge:
    """Return on whose account work goes that nobody waits for, in the turn's conversation or in
    the one that it joined."""
    return Charge(
        purpose=purpose,
        person_id=turn.person_id,
        is_owner=turn.role is Role.OWNER,
        lane=turn.message.address.key,
        conversation=turn.conversation if conversation is None else conversation,
        time_zone=turn.time_zone,
    )
