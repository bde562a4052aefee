"""A reply goes out: stored, sent, retried, marked (SPEC §2.7). Called by the engine and the door.

Every reply is a row with an id before anything is sent. Rows of one address go out in order; a
part that was sent is never sent again; one whose fate is unknown is sent once more, marked.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self, assert_never

import structlog

from agent.errors import StorageError
from agent.messages import Address, OutboxId, RunId
from agent.ports import Clock, Draft
from bot.channel import (
    Channel,
    Delivery,
    EditOutcome,
    InDoubt,
    LookedUp,
    MessageGone,
    MessagePart,
    NotSent,
    Refused,
    RemembersButtons,
    Sent,
    SettlesDoubt,
)
from bot.drafts import LiveDraft, Unseen
from bot.ports import NewMessage, OutboxState, OutboxStore, OutPart, OutRow, PartState
from bot.revisions import Revisions, RevisionStore

log = structlog.get_logger()

REPEATED = "\n\n(may be repeated)"
"""Ends the second copy of a message whose first fate is unknown."""

BACK_OFF_S = (1.0, 2.0, 5.0, 15.0, 60.0)
"""Pauses between tries of a send that surely did not arrive; the last one repeats."""

LOOKS_MAX = 6
"""Tries of a row after which a doubt is no longer looked up: some minutes."""

REMEMBERED_S = 86_400.0
"""Buttons that are older are not told anew after a restart."""

DONE = frozenset({PartState.SENT, PartState.UNKNOWN, PartState.FAILED})


class _Superseded(Exception):
    """What was about to be sent is to read otherwise, and nothing of it went out yet."""


@dataclass(slots=True)
class _Lane:
    rows: deque[OutboxId] = field(default_factory=deque)
    worker: asyncio.Task[None] | None = None


class Outbox:
    """Delivers rows and keeps drafts. An async context manager; leaving it stops all sending."""

    def __init__(
        self,
        store: RevisionStore,
        channels: Mapping[str, Channel],
        *,
        clock: Clock,
        clean: Callable[[str], str] = str,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`clean` takes secrets out of whatever is shown (SPEC §15)."""
        self._store = store
        self._channels = channels
        self._clean = clean
        self._clock = clock
        self._chance = chance
        self._lanes: dict[str, _Lane] = {}
        self._drafts: dict[RunId, LiveDraft] = {}
        self._group = asyncio.TaskGroup()
        self._accepting = False
        self._to_revise: set[OutboxId] = set()
        self._revisions = Revisions(
            store,
            channels,
            clock=clock,
            clean=clean,
            pause_s=self._pause,
            spawn=self._group.create_task,
            deliver=self._queue,
        )

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop(0)
        await self._group.__aexit__(kind, error, traceback)

    async def start(self) -> None:
        """Takes up what a former process left."""
        self._accepting = True
        for row in await self._store.open_rows():
            self._queue(row.lane, row.id)
        for lane, outbox_id in await self._store.to_revise():
            self._revisions.take_up(lane, outbox_id)
        for channel in self._channels.values():
            if isinstance(channel, RemembersButtons):
                await self._remind(channel, channel.name)

    async def _remind(self, channel: RemembersButtons, name: str) -> None:
        """Tells a channel which messages of a former process can be pressed."""
        since_ms = int((self._clock.now().timestamp() - REMEMBERED_S) * 1000)
        for row in await self._store.with_buttons(name, since_ms=since_ms):
            last = row.parts[-1] if row.parts else None
            if last is not None and last.message_id:
                part = MessagePart(
                    markup=last.markup, source=last.source, buttons=self._cleaned(row).buttons
                )
                channel.remember(Address.parse(row.lane), last.message_id, part)

    def deliver(self, rows: Sequence[tuple[str, OutboxId]]) -> None:
        """Rows (address key, id) that are ready now. Returns at once."""
        for lane, outbox_id in rows:
            self._queue(lane, outbox_id)

    async def say(self, message: NewMessage) -> None:
        """A message of its own: stored, then on its way."""
        await self.post(message)

    async def post(self, message: NewMessage) -> OutboxId:
        """As `say`; the id is what `revise` wants."""
        outbox_id = await self._store.add(message)
        self._queue(message.lane, outbox_id)
        return outbox_id

    async def revise(self, outbox_id: OutboxId, text: str) -> None:
        """Makes a message read so, without buttons: stored, then on its way. With a blank text the
        buttons alone go.

        One that is not sent yet goes out so; one that is gone stays away. Raises StorageError, and
        may be called again.
        """
        lane = await self._store.revise(outbox_id, text)
        if lane is None:
            return
        if (waiting := self._lanes.get(lane)) is not None and outbox_id in waiting.rows:
            self._to_revise.add(outbox_id)
        if self._accepting:
            self._revisions.take_up(lane, outbox_id)

    async def stop(self, drain_s: float) -> None:
        """Waits `drain_s` seconds for what is on its way; the rest goes on at the next start."""
        self._accepting = False
        workers = [lane.worker for lane in self._lanes.values() if lane.worker is not None]
        workers += self._revisions.tasks()
        drafts = [task for draft in self._drafts.values() if (task := draft.task) is not None]
        for draft in self._drafts.values():
            draft.close()
        if not workers and not drafts:
            return
        _, late = await asyncio.wait([*workers, *drafts], timeout=drain_s)
        for task in late:
            task.cancel()
        await asyncio.gather(*workers, *drafts, return_exceptions=True)

    async def idle(self, lane: str | None = None) -> None:
        """Returns once nothing (in this lane) is on its way."""
        while workers := self._workers(lane):
            await asyncio.wait(workers)

    def waiting(self) -> int:
        """Rows on their way."""
        return sum(len(lane.rows) for lane in self._lanes.values())

    def busy(self, lane: str | None = None) -> bool:
        """Whether something (in this lane) is on its way."""
        return bool(self._workers(lane))

    def lanes(self) -> list[str]:
        """Where something is on its way."""
        sending = [key for key, entry in self._lanes.items() if entry.worker is not None]
        return list(dict.fromkeys([*sending, *self._revisions.lanes()]))

    def _workers(self, lane: str | None) -> list[asyncio.Task[None]]:
        sending = [
            entry.worker
            for key, entry in self._lanes.items()
            if entry.worker is not None and lane in {None, key}
        ]
        return sending + self._revisions.tasks(lane)

    async def counts(self) -> dict[str, int]:
        """Rows by state."""
        return await self._store.counts()

    # --- drafts (agent.ports.Drafts) ---------------------------------------------------------

    def open(self, run_id: RunId, address: Address) -> Draft:
        """The draft of a run; the same one while it is open."""
        draft = self._drafts.get(run_id)
        channel = self._channels.get(address.channel)
        if channel is None:
            return Unseen()
        if draft is None:
            draft = LiveDraft(
                run_id,
                address,
                channel,
                store=self._store,
                spawn=self._group.create_task,
                clean=self._clean,
            )
            self._drafts[run_id] = draft
        return draft

    def close(self, run_id: RunId) -> None:
        """No further update. The draft is forgotten once its last call has returned."""
        draft = self._drafts.get(run_id)
        if draft is None:
            return
        draft.close()
        if draft.task is None:
            del self._drafts[run_id]
        else:
            draft.task.add_done_callback(lambda _: self._drafts.pop(run_id, None))

    # --- delivering ----------------------------------------------------------------------------

    def _queue(self, key: str, outbox_id: OutboxId) -> None:
        lane = self._lanes.setdefault(key, _Lane())
        lane.rows.append(outbox_id)
        if lane.worker is None and self._accepting:
            lane.worker = self._group.create_task(self._work(key, lane), name=f"outbox {key}")

    async def _work(self, key: str, lane: _Lane) -> None:
        try:
            while lane.rows and self._accepting:
                await self._deliver(lane.rows[0])
                self._to_revise.discard(lane.rows.popleft())
        finally:
            lane.worker = None
            if not lane.rows:
                self._lanes.pop(key, None)

    async def _deliver(self, outbox_id: OutboxId) -> None:
        tries = 0
        while True:
            try:
                return await self._deliver_row(outbox_id)
            except _Superseded:
                continue
            except StorageError as trouble:
                await self._rest(tries, trouble)
                tries += 1

    async def _deliver_row(self, outbox_id: OutboxId) -> None:
        row = await self._store.row(outbox_id)
        if row is None or row.state is not OutboxState.READY:
            return
        address = Address.parse(row.lane)
        channel = self._channels.get(address.channel)
        if channel is None:
            log.error("outbox.no_channel", row=outbox_id, channel=address.channel)
            return
        if await self._draft_done(row.run_id):
            row = await self._store.row(outbox_id) or row
        await self._not_before(row)
        if row.revision is not None or outbox_id in self._to_revise:
            self._to_revise.discard(outbox_id)
            row = await self._store.adopt(outbox_id) or row
        sending = _Sending(
            self._cleaned(row),
            address,
            channel,
            self._store,
            rest=self._rest,
            is_revised=lambda: outbox_id in self._to_revise,
        )
        again_s = await sending.plan()
        while (part := sending.next_open()) is not None:
            if again_s is not None:
                await self._again(sending, again_s)
            again_s = await sending.advance(part)
        if row.revision is not None or outbox_id in self._to_revise:
            self._revisions.take_up(row.lane, outbox_id)
        log.info("outbox.ended", row=outbox_id, state=sending.end_state(), parts=len(sending.parts))

    def _cleaned(self, row: OutRow) -> OutRow:
        buttons = tuple(
            tuple(replace(button, label=self._clean(button.label)) for button in buttons)
            for buttons in row.buttons
        )
        return replace(row, text=self._clean(row.text), buttons=buttons)

    async def _again(self, sending: _Sending, again_s: float) -> None:
        """Waits before the next try, which is kept: a restart does not hurry it."""
        pause_s = max(again_s, 0.0) or self._pause(sending.attempts)
        tell = log.debug if sending.attempts else log.warning  # once, not at each try
        tell("outbox.again", row=sending.row_id, why=sending.reason, again_s=pause_s)
        await sending.postpone(self._clock.now().timestamp(), pause_s)
        await self._clock.sleep(pause_s)

    async def _rest(self, tries: int, trouble: StorageError) -> None:
        if tries == 0:
            log.error("outbox.storage", why=str(trouble))
        await self._clock.sleep(self._pause(tries))

    async def _draft_done(self, run_id: RunId | None) -> bool:
        """Whether a draft was on its way meanwhile, so that the row may have changed."""
        draft = self._drafts.get(run_id) if run_id is not None else None
        if draft is None or draft.task is None:
            return False
        await asyncio.wait([draft.task])
        return True

    async def _not_before(self, row: OutRow) -> None:
        wait_s = row.not_before_ms / 1000 - self._clock.now().timestamp()
        if wait_s > 0:
            await self._clock.sleep(min(wait_s, 3600))

    def _pause(self, tries: int) -> float:
        """Back-off with jitter: between half of the step and the whole."""
        return BACK_OFF_S[min(tries, len(BACK_OFF_S) - 1)] * (0.5 + self._chance() / 2)


class _Sending:
    """One row on its way: its parts, in order, each through its states."""

    def __init__(
        self,
        row: OutRow,
        address: Address,
        channel: Channel,
        store: OutboxStore,
        *,
        rest: Callable[[int, StorageError], Awaitable[None]],
        is_revised: Callable[[], bool],
    ) -> None:
        self._row = row
        self._rest = rest
        self._is_revised = is_revised
        self._address = address
        self._channel = channel
        self._store = store
        self.parts: list[OutPart] = list(row.parts)
        self.attempts = row.attempts
        self.reason = ""

    @property
    def row_id(self) -> OutboxId:
        return self._row.id

    async def plan(self) -> float | None:
        """Splits the text once; a former process may have done so, or left a streamed first part.

        The first part that needs a send is stored as SENDING in the same transaction, and sent;
        the answer is as that of `advance`.
        """
        if self.parts and all(part.source for part in self.parts):
            return None
        streamed = self.parts[0] if self.parts else None
        wanted = self._channel.parts(self._row.text)
        self.parts = [
            OutPart(n=n, markup=part.markup, source=part.source) for n, part in enumerate(wanted)
        ]
        if streamed is not None and self.parts:
            self.parts[0] = replace(
                self.parts[0], state=streamed.state, message_id=streamed.message_id
            )
        if self.parts and self.parts[0].state is PartState.READY and not self.parts[0].message_id:
            await self._ready()
            self.parts[0] = replace(self.parts[0], state=PartState.SENDING)
            await self._store.plan(self._row.id, self.parts)
            return await self._settle(self.parts[0], await self._send(self.parts[0]))
        if self.parts:
            await self._store.plan(self._row.id, self.parts)
        else:
            await self._store.mark(self._row.id, end=OutboxState.SENT)
        return None

    def next_open(self) -> OutPart | None:
        """The first part that is not done."""
        return next((part for part in self.parts if part.state not in DONE), None)

    async def advance(self, part: OutPart) -> float | None:
        """One try of one part. Seconds to wait before the next (0: back off), None: go on."""
        if part.message_id:
            return await self._edit(part)
        match part.state:
            case PartState.READY:
                await self._ready()
                part = await self._mark(part, PartState.SENDING)
            case PartState.SENDING | PartState.DOUBTFUL | PartState.RESENDING:
                found = await self._looked_up(part)
                if not isinstance(found, Refused):
                    return await self._settle_by(part, found)
                if part.state is PartState.RESENDING:
                    await self._give_up(part, "its fate is unknown twice")
                    return None
                await self._channel.ready(self._address)
                part = await self._mark(part, PartState.RESENDING)
            case PartState.SENT | PartState.UNKNOWN | PartState.FAILED:
                return None
            case other:
                assert_never(other)
        return await self._settle(part, await self._send(part))

    async def _ready(self) -> None:
        """Waits for the platform's limits. Raises _Superseded."""
        await self._channel.ready(self._address)
        is_unseen = all(p.state is PartState.READY and not p.message_id for p in self.parts)
        if is_unseen and self._is_revised():
            raise _Superseded

    async def _looked_up(self, part: OutPart) -> LookedUp:
        """What the platform says of a send in doubt; Refused where it cannot be asked."""
        channel = self._channel
        if not isinstance(channel, SettlesDoubt) or self.attempts >= LOOKS_MAX:
            return Refused(reason="nobody can tell")
        mark = self._row.mark(part.n)
        return await channel.look_up(self._address, mark, since_ms=self._row.created_ms)

    async def _settle_by(self, part: OutPart, found: LookedUp) -> float | None:
        """Ends a doubt by what was found; seconds to wait where that is not known yet."""
        match found:
            case Sent(message_id=message_id):
                # The first message of a turn may stand there as a draft: an edit completes it.
                is_draft = part.n == 0 and self._row.run_id is not None
                state = PartState.READY if is_draft else PartState.SENT
                await self._mark(replace(part, message_id=message_id), state)
            case NotSent():
                await self._mark(part, PartState.READY)
            case InDoubt(reason=reason):
                self.reason = reason
                return 0.0
            case Refused():
                raise AssertionError("was handled before")
            case other:
                assert_never(other)
        return None

    async def postpone(self, now_s: float, pause_s: float) -> None:
        """Keeps when the next try may be."""
        self.attempts += 1
        await self._store.postpone(
            self._row.id, not_before_ms=int((now_s + pause_s) * 1000), attempts=self.attempts
        )

    def end_state(self) -> OutboxState:
        """What the row is once all parts are done."""
        states = {part.state for part in self.parts}
        if PartState.FAILED in states:
            return OutboxState.FAILED
        return OutboxState.UNKNOWN if PartState.UNKNOWN in states else OutboxState.SENT

    async def _send(self, part: OutPart) -> Delivery:
        message = replace(
            self._message(part),
            mark=self._row.mark(part.n),
            keyboard=self._row.keyboard if self._is_last(part) else (),
        )
        if part.state is PartState.RESENDING:
            message = replace(
                message,
                markup=part.markup.rstrip() + REPEATED,
                source=part.source.rstrip() + REPEATED,
            )
        return await self._channel.send(self._address, message)

    def _message(self, part: OutPart) -> MessagePart:
        buttons = self._row.buttons if self._is_last(part) else ()
        return MessagePart(markup=part.markup, source=part.source, buttons=buttons)

    def _is_last(self, part: OutPart) -> bool:
        return part.n == len(self.parts) - 1

    async def _edit(self, part: OutPart) -> float | None:
        outcome: EditOutcome = await self._channel.edit(
            self._address, part.message_id, self._message(part)
        )
        match outcome:
            case Sent():
                await self._mark(part, PartState.SENT)
            case MessageGone():
                await self._mark(replace(part, message_id=""), PartState.READY)
            case NotSent(reason=reason, retry_after_s=after_s):
                self.reason = reason
                return after_s or 0.0
            case InDoubt(reason=reason):
                self.reason = reason
                return 0.0
            case Refused(reason=reason):
                await self._fail(reason)
            case other:
                assert_never(other)
        return None

    async def _settle(self, part: OutPart, outcome: Delivery) -> float | None:
        second = part.state is PartState.RESENDING
        match outcome:
            case Sent(message_id=message_id):
                await self._mark(replace(part, message_id=message_id), PartState.SENT)
            case NotSent(reason=reason, retry_after_s=after_s):
                self.reason = reason
                await self._mark(part, PartState.DOUBTFUL if second else PartState.READY)
                return after_s or 0.0
            case InDoubt(reason=reason) if second:
                await self._give_up(part, reason)
            case InDoubt(reason=reason):
                self.reason = reason
                log.warning("outbox.doubt", row=self._row.id, part=part.n, why=reason)
                await self._mark(part, PartState.DOUBTFUL)
                return 0.0
            case Refused(reason=reason):
                await self._fail(reason)
            case other:
                assert_never(other)
        return None

    async def _mark(self, part: OutPart, state: PartState) -> OutPart:
        marked = replace(part, state=state)
        self.parts[part.n] = marked
        await self._keep(marked, end=self.end_state() if self.next_open() is None else None)
        return marked

    async def _keep(self, *parts: OutPart, end: OutboxState | None) -> None:
        """Stores what became of parts, while storage is in trouble again and again: what is known
        now would be in doubt if the row were read anew."""
        tries = 0
        while True:
            try:
                return await self._store.mark(self._row.id, *parts, end=end, reason=self.reason)
            except StorageError as trouble:
                await self._rest(tries, trouble)
                tries += 1

    async def _give_up(self, part: OutPart, reason: str) -> None:
        self.reason = reason
        log.error("outbox.unknown", row=self._row.id, part=part.n, why=reason)
        await self._mark(part, PartState.UNKNOWN)

    async def _fail(self, reason: str) -> None:
        self.reason = reason
        log.error("outbox.refused", row=self._row.id, why=reason)
        failed = [
            replace(part, state=PartState.FAILED) for part in self.parts if part.state not in DONE
        ]
        for part in failed:
            self.parts[part.n] = part
        await self._keep(*failed, end=OutboxState.FAILED)
