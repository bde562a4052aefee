"""How payloads reach the app: three seconds to take each, else again at once, after 1 and 5 min.

Called by `bot.lab.slack`; the two ways are sockets (`bot.lab.slack_sockets`) and HTTP
(`bot.lab.slack_http`). Nothing is ordered: a later event may come first, as in Slack.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from bot.lab.faults import FaultAction, FaultTable
from bot.lab.slack_state import Json

ACK_S = 3.0
RETRY_AFTER_S = (0.0, 60.0, 300.0)
_SUMMED = ("type", "subtype", "channel", "ts", "thread_ts", "user", "text", "deleted_ts")


def twice() -> FaultAction:
    """A fault of `event`: the payload is sent twice at the same moment."""
    return FaultAction(kind="twice")


def lose_ack() -> FaultAction:
    """A fault of `event`: sent and taken, but Slack does not see the acknowledgement."""
    return FaultAction(kind="lose_ack")


def forged() -> FaultAction:
    """A fault of `event`, over HTTP: signed with another secret."""
    return FaultAction(kind="forged")


def stale(seconds: float = 600.0) -> FaultAction:
    """A fault of `event`, over HTTP: signed rightly, but that long ago."""
    return FaultAction(kind="stale", seconds=seconds)


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One sending: `failure` is Slack's reason for the next one, empty when it was taken."""

    number: int
    at: float
    via: str = ""
    fault: str | None = None
    failure: str | None = None
    status: int | None = None
    ended_at: float | None = None


@dataclass(slots=True, kw_only=True)
class Delivery:
    """A payload on its way; `lost` means that Slack has given it up."""

    id: str
    kind: str
    payload: Json
    about: Json
    state: Literal["pending", "taken", "lost"] = "pending"
    attempts: list[Attempt] = field(default_factory=list)
    answer: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOutcome:
    """What became of one sending."""

    failure: str = ""
    via: str = ""
    status: int | None = None
    answer: Any = None
    retry: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """One payload for one way."""

    kind: str
    payload: Json
    number: int = 0
    reason: str = ""
    fault: FaultAction | None = None


class PayloadCarrier(Protocol):
    """Carries one payload to the app, and waits for it to be taken; never raises."""

    async def send(self, sending: Sending, *, within_s: float) -> DeliveryOutcome: ...


class Deliveries:
    """Everything that is told to the app, with its attempts."""

    def __init__(
        self,
        *,
        faults: FaultTable,
        hold: Callable[[float | None], Awaitable[bool]],
        changed: Callable[[], None],
        cap: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ack_s = ACK_S
        self.retry_scale = 1.0
        self.retries_max = len(RETRY_AFTER_S)
        self.all: deque[Delivery] = deque(maxlen=cap)
        self.pending: dict[str, Delivery] = {}
        self.way: PayloadCarrier | None = None
        self.answered: Callable[[Delivery], None] | None = None
        self._faults = faults
        self._hold = hold
        self._changed = changed
        self._clock = clock
        # Owned by this object: each removes itself, the rest is ended in `close`.
        self._tasks: set[asyncio.Task[None]] = set()
        self._count = 0

    def deliver(self, kind: str, payload: Json) -> str:
        """Send this from now on; returns the event's id, or one of ours where Slack has none."""
        self._count += 1
        delivery = Delivery(
            id=str(payload.get("event_id") or f"lab-{self._count}"),
            kind=kind,
            payload=payload,
            about=_about(kind, payload),
        )
        self.all.append(delivery)
        self.pending[delivery.id] = delivery
        self._start(delivery)
        return delivery.id

    def again(self, delivery_id: str) -> None:
        """Send something once more although it was taken or given up."""
        self._start(self.find(delivery_id))

    def find(self, delivery_id: str) -> Delivery:
        """By id; raises LookupError."""
        for delivery in reversed(self.all):
            if delivery.id == delivery_id:
                return delivery
        raise LookupError(f"nothing was delivered under {delivery_id!r}")

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5.0)

    def _start(self, delivery: Delivery) -> None:
        task = asyncio.get_running_loop().create_task(self._carry(delivery))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, delivery: Delivery) -> None:
        reason = ""
        tries = 1 + (self.retries_max if delivery.kind == "events_api" else 0)
        for number in range(tries):
            if number:
                last = RETRY_AFTER_S[min(number, len(RETRY_AFTER_S)) - 1]
                await asyncio.sleep(last * self.retry_scale)
            outcome = await self._attempt(delivery, number, reason)
            if not outcome.failure:
                delivery.state, delivery.answer = "taken", outcome.answer
                break
            reason = outcome.failure
            if not outcome.retry:
                break
        if delivery.state == "pending":
            delivery.state = "lost"
        self.pending.pop(delivery.id, None)
        if self.answered is not None:
            self.answered(delivery)
        self._changed()

    async def _attempt(self, delivery: Delivery, number: int, reason: str) -> DeliveryOutcome:
        attempt = Attempt(number=number, at=self._clock())
        delivery.attempts.append(attempt)
        fault = self._faults.take("event", {**delivery.about, "attempt": number})
        if fault is not None:
            attempt.fault = fault.kind
            if fault.kind == "hold":
                await self._hold(fault.seconds)
        self._changed()
        sending = Sending(
            kind=delivery.kind,
            payload=delivery.payload,
            number=number,
            reason=reason,
            fault=fault,
        )
        outcome = await self._send(sending)
        attempt.via, attempt.failure, attempt.status = outcome.via, outcome.failure, outcome.status
        attempt.ended_at = self._clock()
        self._changed()
        return outcome

    async def _send(self, sending: Sending) -> DeliveryOutcome:
        kind = sending.fault.kind if sending.fault is not None else ""
        if self.way is None or kind == "drop":
            return DeliveryOutcome(failure="timeout")
        if kind == "twice":
            both = await asyncio.gather(
                self.way.send(sending, within_s=self.ack_s),
                self.way.send(sending, within_s=self.ack_s),
            )
            return next((one for one in both if not one.failure), both[0])
        outcome = await self.way.send(sending, within_s=self.ack_s)
        if kind == "lose_ack":
            return DeliveryOutcome(failure="timeout", via=outcome.via, status=outcome.status)
        return outcome


def _about(kind: str, payload: Json) -> Json:
    """What a fault may ask for: the event's own fields, or those of a command or click."""
    event = payload.get("event")
    inner = event if isinstance(event, dict) else payload
    found = {name: inner[name] for name in _SUMMED if name in inner}
    for name in ("command", "channel_id", "user_id", "event_id"):
        if name in payload:
            found[name] = payload[name]
    return {"kind": kind, **found}
