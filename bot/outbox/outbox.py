"""A reply goes out: stored, sent, retried, marked (SPEC §2.7). Called by the engine and the intake.

Every reply is a row with an id before anything is sent. Rows of one address go out in order; a
part that was sent is never sent again; one whose fate is unknown is sent again, marked. A row ends
when it has arrived, when the platform says that it never can, or after a day of tries.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

import structlog

from bot.channels.base import Channel, ChannelTrouble, MessagePart, Outage
from bot.outbox.delivery import RowDelivery, Superseded, Undelivered, untold
from bot.outbox.drafts import REPEATED, DetachedDraft, LiveDraft
from bot.outbox.edits import Revisions
from bot.outbox.files import OutgoingFiles
from memory.records.errors import StorageError
from memory.records.messages import Address, OutboxId, RunId
from memory.records.ports import Clock, Draft
from memory.records.rows import NewMessage, OutboxState, OutFile, OutRow

__all__ = ["BACK_OFF_S", "REPEATED", "NewFile", "Outbox"]
from memory.stores.outbox import SqliteOutbox

log = structlog.get_logger()

BACK_OFF_S = (1.0, 2.0, 5.0, 15.0, 60.0, 300.0)
"""Pauses between tries of a send (SPEC §2.7); the last one repeats."""

REMEMBERED_S = 86_400.0
"""Buttons that are older are not told anew after a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file to be sent: under which name, where it stands in the workspace, and what is in it."""

    name: str
    path: str
    content: bytes


@dataclass(slots=True)
class _SendQueue:
    rows: deque[OutboxId] = field(default_factory=deque)
    worker: asyncio.Task[None] | None = None


class Outbox:
    """Delivers rows and keeps drafts. An async context manager; leaving it stops all sending."""

    def __init__(
        self,
        store: SqliteOutbox,
        channels: Mapping[str, Channel],
        *,
        clock: Clock,
        clean: Callable[[str], str] = str,
        chance: Callable[[], float] = random.random,
        copies: OutgoingFiles | None = None,
        undelivered: Undelivered = untold,
    ) -> None:
        """`clean` takes secrets out of whatever is shown (SPEC §15); without `copies` no file can
        be sent. `undelivered` tells the owner what was given up."""
        self._store = store
        self._copies = copies
        self._undelivered = undelivered
        self._refusals = {name: Outage("outbox.paused", clock) for name in channels}
        self._copying = asyncio.Lock()
        self._channels = channels
        self._clean = clean
        self._clock = clock
        self._chance = chance
        self._lanes: dict[str, _SendQueue] = {}
        self._drafts: dict[RunId, LiveDraft] = {}
        self._group = asyncio.TaskGroup()
        self._accepting = False
        self._to_revise: set[OutboxId] = set()
        self._faulty: list[tuple[str, OutboxId]] = []
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
        await self._sweep()
        for row in await self._store.open_rows():
            self._queue(row.lane, row.id)
        await self.catch_up()
        since_ms = int((self._clock.now().timestamp() - REMEMBERED_S) * 1000)
        for channel in self._channels.values():
            for row in await self._store.with_buttons(channel.name, since_ms=since_ms):
                last = row.parts[-1] if row.parts else None
                if last is not None and last.message_id:
                    buttons = self._cleaned(row).buttons
                    part = MessagePart(markup=last.markup, source=last.source, buttons=buttons)
                    channel.remember(Address.parse(row.lane), last.message_id, part)

    def deliver(self, rows: Sequence[tuple[str, OutboxId]]) -> None:
        """Rows (address key, id) that are ready now. Returns at once."""
        for lane, outbox_id in rows:
            self._queue(lane, outbox_id)

    async def try_again(self) -> None:
        """Take up rows whose delivery a fault of ours ended; later, as it would come again."""
        faulty, self._faulty = self._faulty, []
        self.deliver(faulty)

    async def say(self, message: NewMessage) -> None:
        """A message of its own: stored, then on its way."""
        await self.post(message)

    async def post(self, message: NewMessage) -> OutboxId:
        """As `say`; the id is what `revise` wants."""
        outbox_id = await self._store.add(message)
        self._queue(message.lane, outbox_id)
        return outbox_id

    async def post_file(self, lane: str, file: NewFile, *, caption: str = "") -> OutboxId:
        """A file of its own, with Markdown under it: copied and stored, then on its way. What is
        done to the original after that changes nothing. Raises StorageError."""
        assert self._copies is not None, "this outbox has no place for files"
        async with self._copying:
            digest = await asyncio.to_thread(self._copies.keep, file.content)
            kept = OutFile(
                digest=digest, name=file.name, path=file.path, size_bytes=len(file.content)
            )
            outbox_id = await self._store.add(NewMessage(lane=lane, text=caption, file=kept))
        self._queue(lane, outbox_id)
        return outbox_id

    async def _sweep(self) -> None:
        """Removes copies that nothing needs any more."""
        if self._copies is None:
            return
        async with self._copying:
            needed = {file.digest for file in await self._store.files()}
            await asyncio.to_thread(self._copies.sweep, needed)

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

    async def catch_up(self) -> None:
        """Takes up messages that are to read otherwise, as was stored. Raises StorageError."""
        if self._accepting:
            for lane, outbox_id in await self._store.to_revise():
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
        """Returns once nothing (for this chat) is on its way."""
        while workers := self._workers(lane):
            await asyncio.wait(workers)

    def waiting(self) -> int:
        """Rows on their way, and those that a fault of ours holds up."""
        return sum(len(lane.rows) for lane in self._lanes.values()) + len(self._faulty)

    def busy(self, lane: str | None = None) -> bool:
        """Return whether something (for this chat) is on its way."""
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

    def troubles(self) -> dict[str, ChannelTrouble]:
        """Return the channels through which nothing goes out until the owner mends something."""
        found = {name: outage.trouble for name, outage in self._refusals.items()}
        return {name: trouble for name, trouble in found.items() if trouble is not None}

    # --- drafts (memory.records.ports.Drafts) -----------------------------------------------

    def open(self, run_id: RunId, address: Address) -> Draft:
        """The draft of a run; the same one while it is open."""
        draft = self._drafts.get(run_id)
        channel = self._channels.get(address.channel)
        if channel is None:
            return DetachedDraft()
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
        lane = self._lanes.setdefault(key, _SendQueue())
        lane.rows.append(outbox_id)
        if lane.worker is None and self._accepting:
            lane.worker = self._group.create_task(self._work(key, lane), name=f"outbox {key}")

    async def _work(self, key: str, lane: _SendQueue) -> None:
        try:
            while lane.rows and self._accepting:
                try:
                    await self._deliver(lane.rows[0])
                except Exception:  # whatever it is, it ends this delivery and not the bot
                    log.exception("outbox.fault", row=lane.rows[0], again="later, or at a start")
                    self._faulty.append((key, lane.rows[0]))
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
            except Superseded:
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
        draft = self._drafts.get(row.run_id) if row.run_id is not None else None
        if draft is not None and draft.task is not None:
            await asyncio.wait([draft.task])  # it may change the row meanwhile
            row = await self._store.row(outbox_id) or row
        wait_s = row.not_before_ms / 1000 - self._clock.now().timestamp()
        if wait_s > 0:
            await self._clock.sleep(min(wait_s, 3600))
        if row.revision is not None or outbox_id in self._to_revise:
            self._to_revise.discard(outbox_id)
            row = await self._store.adopt(outbox_id) or row
        sending = RowDelivery(
            self._cleaned(row),
            channel,
            self._store,
            copies=self._copies,
            undelivered=self._undelivered,
            rest=self._rest,
            is_revised=lambda: outbox_id in self._to_revise,
        )
        again_s = await sending.plan()
        while (part := sending.next_open()) is not None:
            if again_s is not None:
                if sending.is_ours:
                    self._refusals[address.channel].tell(sending.reason, channel=address.channel)
                if sending.is_over():
                    await sending.give_up()
                    break
                await self._again(sending, again_s)
            again_s = await sending.advance(part)
        if sending.end_state() is OutboxState.SENT:
            self._refusals[address.channel].over()
        if row.revision is not None or outbox_id in self._to_revise:
            self._revisions.take_up(row.lane, outbox_id)
        log.info("outbox.ended", row=outbox_id, state=sending.end_state(), parts=len(sending.parts))
        self.deliver(sending.notices)
        if row.file is not None:
            await self._sweep()

    def _cleaned(self, row: OutRow) -> OutRow:
        buttons = tuple(
            tuple(replace(button, label=self._clean(button.label)) for button in buttons)
            for buttons in row.buttons
        )
        file = row.file and replace(row.file, name=self._clean(row.file.name))
        return replace(row, text=self._clean(row.text), buttons=buttons, file=file)

    async def _again(self, sending: RowDelivery, again_s: float) -> None:
        """Wait before the next try; its time is stored, so a restart does not hurry it."""
        pause_s = max(again_s, 0.0) or self._pause(sending.attempts)
        tell = log.debug if sending.attempts else log.warning  # once, not at each try
        tell("outbox.again", row=sending.row_id, why=sending.reason, again_s=pause_s)
        await sending.postpone(self._clock.now().timestamp(), pause_s)
        await self._clock.sleep(pause_s)

    async def _rest(self, tries: int, trouble: StorageError) -> None:
        if tries == 0:
            log.error("outbox.storage", why=str(trouble))
        await self._clock.sleep(self._pause(tries))

    def _pause(self, tries: int) -> float:
        """Back-off with jitter: between half of the step and the whole."""
        return BACK_OFF_S[min(tries, len(BACK_OFF_S) - 1)] * (0.5 + self._chance() / 2)
