"""The local TurnEngine: one turn of a conversation at a time, each step recorded before the next.

A newer message may steer the running turn, /stop ends it, and a crash resumes it from its last
recorded step. Called by `agent.turn.assistant`; the port is in `memory.records.ports`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, repeat
from types import TracebackType
from typing import Self

import structlog

from agent.budget.circuit_breaker import HandPause
from agent.turn.active_runs import ConversationQueue, QueuedRun, RunningTurn, Suspended
from memory.records.errors import StorageError
from memory.records.messages import OutboxId, PersonId, RunId
from memory.records.ports import (
    Clock,
    Journal,
    Json,
    NewRun,
    RunStatus,
    StoredRun,
    TurnEnd,
    TurnProgram,
)
from memory.records.section import TurnsSettings

log = structlog.get_logger()

RESUMES_MAX = 10
"""Resumptions without one new step, after which a turn is given up: it kills the process."""

STORAGE_PAUSES_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Pauses between tries while the disk is full or the database is locked; the last one repeats."""

CANCEL_WAIT_S = 2.0
"""How long `cancel` waits for a turn to close (case AG-07: stopped within 2 s)."""

TIME_LIMIT = "time limit"
BY_PERSON = "stopped by the person"
PARENT_ENDED = "nobody waits for it any more"


class LocalEngine:
    """Implements `memory.records.ports.TurnEngine` over a Journal, in this process.

    An async context manager: leaving it parks what still runs.
    """

    def __init__(
        self,
        journal: Journal,
        program: TurnProgram,
        *,
        clock: Clock,
        deliver: Callable[[Sequence[tuple[str, OutboxId]]], None],
        limits: TurnsSettings | None = None,
        held: HandPause | None = None,
        ended: Callable[[NewRun, TurnEnd], None] | None = None,
        troubled: Callable[[NewRun, StorageError], None] | None = None,
    ) -> None:
        """While it is `held`, no turn begins; what runs goes on. `ended` is called for each
        turn whose end is stored, `troubled` for each that waits for storage; both return at once
        and raise nothing."""
        self._journal = journal
        self._program = program
        self._clock = clock
        self._deliver = deliver
        self._limits = limits or TurnsSettings()
        self._held = held
        self._ended = ended
        self._troubled = troubled
        self._stopping = asyncio.Event()
        self._went_held = asyncio.Event()
        self._queues: dict[str, ConversationQueue] = {}
        self._suspended: dict[RunId, StoredRun] = {}
        self._woken: set[RunId] = set()
        self._children: dict[RunId, NewRun] = {}
        self._beginning: set[str] = set()
        self._slots = asyncio.Semaphore(self._limits.parallel)
        self._group = asyncio.TaskGroup()
        self._accepting = False

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._park(0)
        await self._group.__aexit__(kind, error, traceback)

    # --- the port -----------------------------------------------------------------------------

    async def start(self) -> None:
        """Takes up what is unfinished; then submissions run."""
        unfinished = await self._journal.unfinished()
        self._accepting = True
        here = {w.stored.run.run_id for queue in self._queues.values() for w in queue.waiting}
        for stored in unfinished:
            self._know(stored.run)
            if stored.status is RunStatus.SUSPENDED and not stored.stopping:
                self._suspended[stored.run.run_id] = stored
            elif stored.run.run_id not in here:
                self._queued(stored, fresh=False)
        for queue in self._queues.values():
            self._work_on(queue)

    async def submit(self, run: NewRun) -> bool:
        """Stores a run and queues it. False if its id is known. Raises StorageError."""
        # Whether a run in this queue waits for nothing: its begin can be stored with it.
        begins = (
            self._accepting
            and (self._held is None or self._held.paused is None)
            and self._limits.queue != "collect"
            and run.lane not in self._queues
            and run.lane not in self._beginning
            and not self._slots.locked()
        )
        if begins:
            self._beginning.add(run.lane)
        try:
            stored = await self._journal.submit(run, begins=begins)
        finally:
            if begins:
                self._beginning.discard(run.lane)
        if stored is None:
            return False
        queue = self._queued(stored)
        if self._accepting:
            queue.worker = queue.worker or self._group.create_task(self._work(queue))
        return True

    def adopt(self, stored: StoredRun) -> None:
        """Queues a run that was stored in a transaction of somebody else's, such as the clock's.

        Where the engine has not started yet, `start` finds it.
        """
        if self._accepting:
            self._work_on(self._queued(stored))

    async def edit(self, lane: str, message_id: str, payload: Json) -> bool:
        """Replaces the payload of a run that has not begun, nor joined another."""
        run_id = await self._journal.replace(lane, message_id, payload)
        found = self._queues.get(lane)
        return run_id is not None and found is not None and found.edit(run_id, payload)

    async def signal(self, key: str, value: Json) -> bool:
        """Wakes the run that waits for `key`."""
        run_id = await self._journal.signal(key, value)
        if run_id is None:
            return False
        self._wake(run_id)
        return True

    async def cancel(self, lane: str, *, by: PersonId | None = None) -> int:
        """End the running turn of a conversation, all that wait there and their subagents, of one
        person alone where `by` names one; returns how many."""
        children = [run.lane for run in self._children.values() if _parent_lane(run) == lane]
        keys = [lane, *children]
        active = [found.active for key in keys if (found := self._queues.get(key)) is not None]
        ended = [run_id for key in keys for run_id in self._end_queue(key, BY_PERSON, by=by)]
        await self._write_stopping(ended, BY_PERSON)
        closing = [turn for turn in active if turn is not None and turn.run_id in ended]
        await asyncio.gather(*(turn.closed_within(CANCEL_WAIT_S) for turn in closing))
        return len(ended)

    async def stop(self, drain_s: float) -> None:
        """No new turns; waits `drain_s` seconds for running ones, parks the rest.

        That they ended here is not held against them: they did not kill the process.
        """
        parked = await self._park(drain_s)
        try:
            if parked:
                await self._journal.parked(parked)
        except StorageError as trouble:
            log.warning("turn.park_not_written", why=str(trouble))

    async def _park(self, drain_s: float) -> Sequence[RunId]:
        """Return which turns were cut off."""
        self._accepting = False
        self._stopping.set()
        workers = self._workers()
        if not workers:
            return ()
        _, late = await asyncio.wait(workers, timeout=drain_s)
        running = [queue for queue in self._queues.values() if queue.worker in late]
        parked = [queue.active.run_id for queue in running if queue.active is not None]
        for worker in late:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        return parked

    # --- what others may look at --------------------------------------------------------------

    def waiting(self) -> int:
        """Turns that run or wait."""
        return sum(
            len(queue.waiting) + (queue.active is not None) for queue in self._queues.values()
        )

    def lanes(self) -> frozenset[str]:
        """Where a turn runs, waits or is suspended; of a subagent's, where its result goes."""
        suspended = (stored.run.lane for stored in self._suspended.values())
        parents = (_parent_lane(run) for run in self._children.values())
        return frozenset([*self._queues, *suspended, *parents])

    def busy(self, lane: str | None = None) -> bool:
        """Return whether a turn runs or waits (in this queue, or for a turn of it); what the
        owner's pause holds back does not count."""
        return bool(self._workers(lane, held=False))

    async def idle(self, lane: str | None = None) -> None:
        """Return once nothing (in this queue, or for a turn of it) runs or waits; what the owner's
        pause holds back does not count."""
        while workers := self._workers(lane, held=False):
            self._went_held.clear()
            held = asyncio.ensure_future(self._went_held.wait())
            try:
                await asyncio.wait([*workers, held], return_when=asyncio.FIRST_COMPLETED)
            finally:
                held.cancel()

    # --- queues -------------------------------------------------------------------------------

    def _know(self, run: NewRun) -> None:
        if run.child_of is not None:
            self._children[run.run_id] = run

    def _queued(self, stored: StoredRun, *, fresh: bool = True) -> ConversationQueue:
        """Put a run into its queue, which is returned. A `fresh` one was never begun."""
        self._know(stored.run)
        made = ConversationQueue(
            key=stored.run.lane, policy=self._limits.queue, parent=_parent_lane(stored.run)
        )
        queue = self._queues.setdefault(stored.run.lane, made)
        queue.add(stored, fresh=fresh)
        return queue

    def _work_on(self, queue: ConversationQueue) -> None:
        if queue.waiting and queue.worker is None and self._accepting:
            queue.worker = self._group.create_task(self._work(queue), name=f"lane {queue.key}")

    def _wake(self, run_id: RunId) -> None:
        """A run that the journal has queued again, as its signal came."""
        stored = self._suspended.pop(run_id, None)
        if stored is None:  # it is still unwinding, and finds itself here
            self._woken.add(run_id)
        else:
            self._work_on(self._queued(stored, fresh=False))

    def _end_queue(self, key: str, reason: str, *, by: PersonId | None) -> list[RunId]:
        """Tell all that runs, waits or is suspended in a queue to end; return what it was."""
        for stored in list(self._suspended.values()):
            if stored.run.lane == key and by in {None, stored.run.by}:
                del self._suspended[stored.run.run_id]
                self._work_on(self._queued(stored, fresh=False))
        found = self._queues.get(key)
        return [] if found is None else found.stop(reason, by=by)

    async def _write_stopping(self, ended: Sequence[RunId], reason: str) -> None:
        try:
            for run_id in ended:
                await self._journal.stopping(run_id, reason)
        except StorageError as trouble:
            # They end all the same; only a kill before their end could revive them.
            log.error("turn.stop_not_written", why=str(trouble))

    def _workers(self, key: str | None = None, *, held: bool = True) -> list[asyncio.Task[None]]:
        return [
            queue.worker
            for queue in self._queues.values()
            if queue.worker is not None
            and not queue.worker.done()
            and (held or not queue.is_held)
            and key in {None, queue.key, queue.parent}
        ]

    async def _work(self, queue: ConversationQueue) -> None:
        """Run what waits in a queue, one turn after the other; while storage is in trouble, a turn
        again from its last step."""
        try:
            while queue.waiting and self._accepting:
                await self._may_begin(queue, queue.waiting[0])
                # Debounce: wait a moment for the rest of what somebody types in several messages.
                next_one = queue.waiting[0]
                stored = next_one.stored
                collects = next_one.fresh and stored.run.steers and not stored.stopping
                if self._limits.queue == "collect" and collects:
                    await self._clock.sleep(self._limits.collect_s)
                async with self._slots:
                    if not queue.waiting or not self._accepting:
                        continue
                    with self._active(queue, queue.waiting.pop(0)) as turn:
                        for pause_s in chain(STORAGE_PAUSES_S, repeat(STORAGE_PAUSES_S[-1])):
                            try:
                                await self._run_turn(queue, turn)
                                break
                            except StorageError as trouble:
                                log.error(
                                    "turn.storage",
                                    run=turn.run_id,
                                    why=str(trouble),
                                    again_s=pause_s,
                                )
                                if self._troubled is not None:
                                    self._troubled(turn.stored.run, trouble)
                            await self._clock.sleep(pause_s)
        finally:
            queue.worker = None
            if not queue.waiting:
                self._queues.pop(queue.key, None)

    async def _may_begin(self, queue: ConversationQueue, next_one: QueuedRun) -> None:
        """Waits while the owner has paused everything, unless the run is only to be ended."""
        held = self._held
        if held is None or held.paused is None or next_one.stored.stopping:
            return
        queue.is_held = True
        self._went_held.set()
        over = asyncio.ensure_future(held.over())
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait([over, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            queue.is_held = False
            over.cancel()
            stopping.cancel()

    @contextmanager
    def _active(self, queue: ConversationQueue, taken: QueuedRun) -> Iterator[RunningTurn]:
        begun = taken.fresh and taken.stored.status is RunStatus.RUNNING
        turn = RunningTurn(self._journal, taken.stored, self._program.steps, queue, begun=begun)
        self._woken.discard(turn.run_id)
        queue.active = turn
        try:
            yield turn
        finally:
            queue.active = None
            turn.close()

    async def _run_turn(self, queue: ConversationQueue, turn: RunningTurn) -> None:
        """Run a turn from its last step on. Whatever goes wrong inside becomes an honest end; only
        StorageError is raised."""
        await turn.begin()
        run = turn.stored.run
        with structlog.contextvars.bound_contextvars(turn=turn.run_id):
            try:
                if turn.stored.resumes > RESUMES_MAX:
                    log.error("turn.given_up", resumes=turn.stored.resumes)
                    end = self._program.failed(run, None)
                else:
                    limit_s = self._limits.limit_s if run.limit_s is None else run.limit_s
                    with turn.limited(limit_s, TIME_LIMIT):
                        end = await self._program.run(turn, run.payload)
            except Suspended:
                # The queue is free, unless the turn was woken or stopped while it unwound.
                stored = replace(turn.stored, stopping=turn.stop_reason)
                if turn.stop_reason or turn.run_id in self._woken:
                    queue.add(stored, fresh=False)
                else:
                    self._suspended[turn.run_id] = stored
                return
            except StorageError:
                raise
            except Exception as error:  # a turn's entry (STYLE §7)
                log.exception("turn.failed")
                end = self._program.failed(run, error)
            finished = await self._journal.finish(turn.run_id, end, steps=turn.unwritten)
            self._deliver(finished.ready)
            if self._ended is not None:
                self._ended(run, end)
            # What an end that is stored sets going; and subagents end whose result nobody awaits.
            self._children.pop(turn.run_id, None)
            for woken in finished.woken:
                self._wake(woken)
            if finished.followed is not None:
                self._work_on(self._queued(finished.followed))
            awaited = [
                run.lane
                for run in self._children.values()
                if run.child_of is not None
                and run.child_of.waits
                and run.child_of.run_id == turn.run_id
            ]
            ended = [one for key in awaited for one in self._end_queue(key, PARENT_ENDED, by=None)]
            await self._write_stopping(ended, PARENT_ENDED)


def _parent_lane(run: NewRun) -> str:
    return "" if run.child_of is None else run.child_of.lane
