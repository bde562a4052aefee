"""The local TurnEngine: one turn at a time in a lane, each step recorded before the next.

A newer message may steer the running turn, /stop ends it, and a crash resumes it from its last
recorded step. Called by `agent.assistant`; the port is in `agent.ports`.
"""

from __future__ import annotations

import asyncio
import bisect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Literal, Self

import structlog

from agent.errors import StepUnknown, StorageError, TurnChanged, TurnStopped
from agent.messages import OutboxId, RunId
from agent.ports import (
    Clock,
    Journal,
    Json,
    NewRun,
    Program,
    Redo,
    RunStatus,
    StepRecord,
    StoredRun,
    TurnEnd,
)

log = structlog.get_logger()

QueuePolicy = Literal["steer", "followup", "collect"]

RESUMES_MAX = 10
"""Resumptions without one new step, after which a turn is given up: it kills the process."""

STORAGE_PAUSES_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Pauses between tries while the disk is full or the database is locked; the last one repeats."""

CANCEL_WAIT_S = 2.0
"""How long `cancel` waits for a turn to close (case AG-07: stopped within 2 s)."""

TIME_LIMIT = "time limit"
BY_PERSON = "stopped by the person"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """Seconds and counts of SPEC §2.5 and §8.7."""

    parallel: int = 64
    queue: QueuePolicy = "steer"
    collect_s: float = 1.5
    turn_s: float = 300.0


@dataclass(slots=True)
class _Waiting:
    """A run in its lane; `steers` names the run during whose tool it arrived."""

    stored: StoredRun
    steers: RunId | None = None

    def __lt__(self, other: _Waiting) -> bool:
        return self.stored.seq < other.stored.seq


@dataclass(slots=True)
class _Lane:
    key: str
    waiting: list[_Waiting] = field(default_factory=list)
    active: _Context | None = None
    worker: asyncio.Task[None] | None = None


class _Suspended(BaseException):
    """Unwinds a turn that waits for a signal. Not an Exception: no program may swallow it."""


class LocalEngine:
    """Implements `agent.ports.TurnEngine` over a Journal, in this process.

    An async context manager: leaving it parks what still runs.
    """

    def __init__(
        self,
        journal: Journal,
        program: Program,
        *,
        clock: Clock,
        deliver: Callable[[Sequence[tuple[str, OutboxId]]], None],
        limits: EngineLimits | None = None,
    ) -> None:
        self._journal = journal
        self._program = program
        self._clock = clock
        self._deliver = deliver
        self._limits = limits or EngineLimits()
        self._lanes: dict[str, _Lane] = {}
        self._suspended: dict[RunId, StoredRun] = {}
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
        await self.stop(0)
        await self._group.__aexit__(kind, error, traceback)

    # --- the port -----------------------------------------------------------------------------

    async def start(self) -> None:
        """Takes up what is unfinished; then submissions run."""
        unfinished = await self._journal.unfinished()
        self._accepting = True
        for stored in unfinished:
            if stored.status is RunStatus.SUSPENDED:
                self._suspended[stored.run.run_id] = stored
            else:
                self._enqueue(stored)

    async def submit(self, run: NewRun) -> bool:
        """Stores a run and queues it. False if its id is known. Raises StorageError."""
        stored = await self._journal.submit(run)
        if stored is None:
            return False
        self._enqueue(stored)
        return True

    async def edit(self, lane: str, message_id: str, payload: Json) -> bool:
        """Replaces the payload of a run that has not begun."""
        run_id = await self._journal.replace(lane, message_id, payload)
        if run_id is None:
            return False
        for waiting in self._lane(lane).waiting:
            if waiting.stored.run.run_id == run_id:
                stored = waiting.stored
                waiting.stored = replace(stored, run=replace(stored.run, payload=payload))
        return True

    async def signal(self, key: str, value: Json) -> bool:
        """Wakes the run that waits for `key`."""
        run_id = await self._journal.signal(key, value)
        if run_id is None:
            return False
        stored = self._suspended.pop(run_id, None)
        if stored is not None:
            self._enqueue(stored)
        return True

    async def cancel(self, lane: str) -> int:
        """Ends the running turn of the lane and all that wait in it; returns how many."""
        self._revive_suspended(lane)
        found = self._lanes.get(lane)
        if found is None:
            return 0
        active = found.active
        ended = [waiting.stored.run.run_id for waiting in found.waiting]
        for waiting in found.waiting:
            waiting.stored = replace(waiting.stored, stopping=BY_PERSON)
        if active is not None and not active.stop_reason:
            active.stop(BY_PERSON)
            ended.append(active.run_id)
        for run_id in ended:
            await self._journal.stopping(run_id, BY_PERSON)
        if active is not None:
            await active.closed_within(CANCEL_WAIT_S)
        return len(ended)

    async def stop(self, drain_s: float) -> None:
        """No new turns; waits `drain_s` seconds for running ones, parks the rest."""
        self._accepting = False
        workers = [lane.worker for lane in self._lanes.values() if lane.worker is not None]
        if not workers:
            return
        _, late = await asyncio.wait(workers, timeout=drain_s)
        for worker in late:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    # --- what others may look at --------------------------------------------------------------

    def waiting(self) -> int:
        """Turns that run or wait."""
        return sum(len(lane.waiting) + (lane.active is not None) for lane in self._lanes.values())

    def busy(self, lane: str | None = None) -> bool:
        """Whether a turn runs or waits (in this lane)."""
        return any(
            entry.worker is not None for key, entry in self._lanes.items() if lane in {None, key}
        )

    async def idle(self, lane: str | None = None) -> None:
        """Returns once nothing (in this lane) runs or waits."""
        while workers := [
            entry.worker
            for key, entry in self._lanes.items()
            if entry.worker is not None and lane in {None, key}
        ]:
            await asyncio.wait(workers)

    # --- lanes --------------------------------------------------------------------------------

    def _lane(self, key: str) -> _Lane:
        return self._lanes.setdefault(key, _Lane(key=key))

    def _enqueue(self, stored: StoredRun) -> None:
        lane = self._lane(stored.run.lane)
        waiting = _Waiting(stored)
        if self._limits.queue == "steer" and lane.active is not None:
            waiting.steers = lane.active.steered_by(stored.run)
        bisect.insort(lane.waiting, waiting)
        if lane.worker is None and self._accepting:
            lane.worker = self._group.create_task(self._work(lane), name=f"lane {lane.key}")

    def _revive_suspended(self, lane: str) -> None:
        for stored in [s for s in self._suspended.values() if s.run.lane == lane]:
            del self._suspended[stored.run.run_id]
            self._enqueue(stored)

    async def _work(self, lane: _Lane) -> None:
        try:
            while lane.waiting and self._accepting:
                async with self._slots:
                    await self._collect()
                    if self._accepting and lane.waiting:
                        await self._run(lane, lane.waiting.pop(0).stored)
        finally:
            lane.worker = None
            if not lane.waiting:
                self._lanes.pop(lane.key, None)

    async def _collect(self) -> None:
        if self._limits.queue == "collect":
            await self._clock.sleep(self._limits.collect_s)

    async def _run(self, lane: _Lane, stored: StoredRun) -> None:
        """One run to its end; while storage is in trouble, again from its last step."""
        tries = 0
        while True:
            try:
                return await self._attempt(lane, stored)
            except StorageError as trouble:
                pause_s = STORAGE_PAUSES_S[min(tries, len(STORAGE_PAUSES_S) - 1)]
                tries += 1
                log.error("turn.storage", run=stored.run.run_id, why=str(trouble), again_s=pause_s)
            finally:
                if lane.active is not None:
                    lane.active.close()
                    lane.active = None
            await self._clock.sleep(pause_s)

    async def _attempt(self, lane: _Lane, stored: StoredRun) -> None:
        run = stored.run
        records = await self._journal.begin(run.run_id)
        ctx = _Context(self._journal, run, records, self._program.steps, self._taker(lane))
        lane.active = ctx
        if stored.stopping:
            ctx.stop(stored.stopping)
        with structlog.contextvars.bound_contextvars(turn=run.run_id):
            try:
                end = await self._end_of(stored, ctx)
            except _Suspended:
                self._suspended[run.run_id] = stored
                return
            self._deliver(await self._journal.finish(run.run_id, end))

    async def _end_of(self, stored: StoredRun, ctx: _Context) -> TurnEnd:
        """The turn's door: whatever goes wrong inside becomes an honest end."""
        run = stored.run
        if stored.resumes > RESUMES_MAX:
            log.error("turn.given_up", resumes=stored.resumes)
            return self._program.failed(run.run_id, run.payload, None)
        loop = asyncio.get_running_loop()
        limit = loop.call_later(self._limits.turn_s, ctx.stop, TIME_LIMIT)
        try:
            return await self._program.run(ctx, run.payload)
        except StorageError:
            raise
        except Exception as error:  # the turn's door (STYLE §6)
            log.exception("turn.failed")
            return self._program.failed(run.run_id, run.payload, error)
        finally:
            limit.cancel()

    def _taker(self, lane: _Lane) -> _Taker:
        """How a turn takes the messages that steer it out of its lane, and puts them back."""

        def take(run: NewRun, *, first: bool) -> list[_Waiting]:
            everything = first and self._limits.queue == "collect"
            taken = [
                waiting
                for waiting in lane.waiting
                if not waiting.stored.stopping
                and waiting.stored.run.by == run.by
                and (everything or waiting.steers == run.run_id)
            ]
            lane.waiting = [waiting for waiting in lane.waiting if waiting not in taken]
            return taken

        def give_back(taken: list[_Waiting]) -> None:
            for waiting in taken:
                bisect.insort(lane.waiting, waiting)

        return _Taker(take=take, give_back=give_back)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taker:
    take: Callable[..., list[_Waiting]]
    give_back: Callable[[list[_Waiting]], None]


class _Context:
    """Implements `agent.ports.TurnContext` for one attempt of one run."""

    def __init__(
        self,
        journal: Journal,
        run: NewRun,
        records: Mapping[int, StepRecord],
        functions: Mapping[str, Callable[[_Context, Json], Awaitable[Json]]],
        taker: _Taker,
    ) -> None:
        self._journal = journal
        self._run = run
        self._records = records
        self._recorded_to = max(records, default=-1)
        self._functions = functions
        self._taker = taker
        self._next = 0
        self._first_receive = True
        self._listening = 0
        self._tasks: set[asyncio.Task[Json]] = set()
        self._closed = asyncio.Event()
        self.stop_reason = ""

    @property
    def run_id(self) -> RunId:
        return self._run.run_id

    async def step(
        self, name: str, arguments: Json, *, redo: Redo = "repeat", listens: bool = False
    ) -> Json:
        """See `agent.ports.TurnContext.step`."""
        n = self._take_number()
        known = self._record(n, name)
        if known is not None and known.output is not None:
            return known.output
        if known is not None and redo == "once":
            raise StepUnknown(name)
        if self.stop_reason:
            raise TurnStopped(self.stop_reason)
        if redo == "once":
            await self._journal.intend(self.run_id, n, name)
        output = await self._call(name, arguments, listens=listens)
        await self._journal.record(self.run_id, n, name, output)
        return output

    async def receive(self) -> Sequence[Json]:
        """See `agent.ports.TurnContext.receive`. An empty one is not written: its number tells."""
        n = self._take_number()
        first, self._first_receive = self._first_receive, False
        known = self._record(n, "receive")
        if known is not None and known.output is not None:
            return list(known.output["messages"])
        if n <= self._recorded_to or self.stop_reason:
            return []
        taken = self._taker.take(self._run, first=first)
        if not taken:
            return []
        messages = [waiting.stored.run.payload for waiting in taken]
        joined = [waiting.stored.run.run_id for waiting in taken]
        try:
            await self._journal.record(
                self.run_id, n, "receive", {"messages": messages}, joined=joined
            )
        except StorageError:
            self._taker.give_back(taken)
            raise
        return messages

    async def wait(self, key: str) -> Json:
        """See `agent.ports.TurnContext.wait`."""
        n = self._take_number()
        known = self._record(n, "wait")
        if known is not None and known.output is not None:
            return known.output
        if self.stop_reason:
            raise TurnStopped(self.stop_reason)
        value = await self._journal.signalled(key)
        if value is None and await self._journal.suspend(self.run_id, key):
            raise _Suspended
        value = value if value is not None else await self._journal.signalled(key)
        if value is None:
            raise TurnChanged(f"the signal {key} was there and is gone")
        await self._journal.record(self.run_id, n, "wait", value)
        return value

    # --- for the engine -----------------------------------------------------------------------

    def stop(self, reason: str) -> None:
        """Cancels the steps in flight; every later step raises TurnStopped."""
        if self.stop_reason:
            return
        self.stop_reason = reason
        for task in self._tasks:
            task.cancel()

    def steered_by(self, run: NewRun) -> RunId | None:
        """The id of this run if `run` may steer it now: same person, and a tool is running."""
        listening = self._listening > 0 and not self.stop_reason
        return self.run_id if listening and run.by == self._run.by else None

    def close(self) -> None:
        self._closed.set()

    async def closed_within(self, seconds: float) -> bool:
        """Waits until the turn is closed, at most so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._closed.wait()
        except TimeoutError:
            return False
        return True

    # --- inside -------------------------------------------------------------------------------

    def _take_number(self) -> int:
        n = self._next
        self._next += 1
        return n

    def _record(self, n: int, name: str) -> StepRecord | None:
        known = self._records.get(n)
        if known is not None and known.name != name:
            raise TurnChanged(
                f"step {n} of turn {self.run_id} was recorded as {known.name!r}, "
                f"but this version of the program asks for {name!r}"
            )
        return known

    async def _call(self, name: str, arguments: Json, *, listens: bool) -> Json:
        """Runs the step function in a task of its own, so that `stop` can end just that.

        The task is awaited here in any case: when this turn is parked, the await hands the
        cancellation on to it.
        """
        task = asyncio.ensure_future(self._functions[name](self, arguments))
        self._tasks.add(task)
        self._listening += listens
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            parked = current is not None and current.cancelling() > 0
            if self.stop_reason and not parked:
                raise TurnStopped(self.stop_reason) from None
            raise
        finally:
            self._listening -= listens
            self._tasks.discard(task)
