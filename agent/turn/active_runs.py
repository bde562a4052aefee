"""One turn while it runs: the steps it has made, what steers it, and who stops it.

Made and closed by `agent.turn.engine`; a program sees it as `memory.records.ports.TurnContext`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from memory.records.errors import StepUnknown, StorageError, TurnChanged, TurnStopped
from memory.records.messages import RunId
from memory.records.ports import Journal, Json, NewRun, Redo, StepFunction, StepRecord, StoredRun


@dataclass(slots=True)
class QueuedRun:
    """A run in its lane. A `fresh` one was never begun, so another turn may take its message in;
    `steers` names the turn during whose tool it arrived."""

    stored: StoredRun
    fresh: bool
    steers: RunId | None = None

    def __lt__(self, other: QueuedRun) -> bool:
        return self.stored.seq < other.stored.seq


class Steering(Protocol):
    """The lane, as its turn sees it."""

    def take(self, run: NewRun, *, first: bool) -> list[QueuedRun]:
        """Removes and returns what steers `run` now; `first` when it has just begun."""

    def give_back(self, taken: Sequence[QueuedRun]) -> None:
        """Puts them back into their places."""


class Suspended(BaseException):
    """Unwinds a turn that waits for the signal `key`. Not an Exception: no program may swallow
    it."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class RunningTurn:
    """Implements `memory.records.ports.TurnContext` for one run, over all attempts in this process.

    What a step returned stays in memory until it is written, so that trouble with the storage
    costs another write, and never another call. It is written before the next step begins, or with
    the end of the turn: so the last one costs no transaction of its own.
    """

    def __init__(
        self,
        journal: Journal,
        stored: StoredRun,
        functions: Mapping[str, StepFunction],
        steering: Steering,
        *,
        begun: bool = False,
    ) -> None:
        """`begun`: it was stored as begun, just now, so that it has no steps yet."""
        self.stored = stored
        self.stop_reason = stored.stopping
        self._journal = journal
        self._functions = functions
        self._steering = steering
        self._begun = begun
        self._records: dict[int, StepRecord] = {}
        self._unwritten: list[StepRecord] = []
        self._writing = asyncio.Lock()
        self._known_to = -1
        self._next = 0
        self._first_receive = True
        self._listening = 0
        self._tasks: set[asyncio.Task[Json]] = set()
        self._closed = asyncio.Event()

    @property
    def run_id(self) -> RunId:
        return self.stored.run.run_id

    async def step(
        self, name: str, arguments: Json, *, redo: Redo = "repeat", listens: bool = False
    ) -> Json:
        """See `memory.records.ports.TurnContext.step`."""
        n = self._take_number()
        known = self._record(n, name)
        output = known.output if known is not None else None
        if output is None:
            if known is not None and redo == "once":
                raise StepUnknown(name)
            await self.write_down()
            self._go_on()
            if redo == "once":
                await self._journal.intend(self.run_id, n, name)
                self._records[n] = StepRecord(n=n, name=name, output=None)
                self._go_on()
            output = await self._call(name, arguments, listens=listens)
            self._records[n] = StepRecord(n=n, name=name, output=output)
            self._unwritten.append(self._records[n])
        if redo != "repeat" or self._tasks:
            # Not to be run again if we die now; or others run beside it, perhaps for long.
            await self.write_down()
        return output

    async def receive(self) -> Sequence[Json]:
        """See `memory.records.ports.TurnContext.receive`. An empty one is not written: its number
        tells."""
        n = self._take_number()
        first, self._first_receive = self._first_receive, False
        known = self._record(n, "receive")
        if known is not None and known.output is not None:
            return list(known.output["messages"])
        if n <= self._known_to or self.stop_reason:
            return []
        taken = self._steering.take(self.stored.run, first=first)
        if not taken:
            return []
        output = {"messages": [waiting.stored.run.payload for waiting in taken]}
        joined = [waiting.stored.run.run_id for waiting in taken]
        try:
            await self.write_down()
            await self._journal.record(self.run_id, n, "receive", output, joined=joined)
        except StorageError:
            self._steering.give_back(taken)
            raise
        self._records[n] = StepRecord(n=n, name="receive", output=output)
        return list(output["messages"])

    async def wait(self, key: str) -> Json:
        """See `memory.records.ports.TurnContext.wait`."""
        n = self._take_number()
        known = self._record(n, "wait")
        if known is not None and known.output is not None:
            return known.output
        await self.write_down()
        self._go_on()
        value = await self._journal.signalled(key)
        if value is None and await self._journal.suspend(self.run_id, key):
            raise Suspended(key)
        value = value if value is not None else await self._journal.signalled(key)
        if value is None:
            raise TurnChanged(f"the signal {key} was there and is gone")
        await self._journal.record(self.run_id, n, "wait", value)
        self._records[n] = StepRecord(n=n, name="wait", output=value)
        return value

    # --- for the engine -----------------------------------------------------------------------

    async def begin(self) -> None:
        """Opens an attempt: the program runs from its start, and what is known returns."""
        if not self._begun:
            self._records = dict(await self._journal.begin(self.run_id))
            self._begun = True
        self._known_to = max(self._records, default=-1)
        self._next = 0
        self._first_receive = True

    async def write_down(self) -> None:
        """Records the finished steps that are not recorded yet. Who comes meanwhile waits: their
        step may not begin before."""
        async with self._writing:
            while self._unwritten:
                step = self._unwritten[0]
                assert step.output is not None
                await self._journal.record(self.run_id, step.n, step.name, step.output)
                self._unwritten.remove(step)

    @property
    def unwritten(self) -> Sequence[StepRecord]:
        """Finished steps that are not recorded yet."""
        return tuple(self._unwritten)

    def stop(self, reason: str) -> None:
        """Cancels the steps in flight; every later step raises TurnStopped."""
        if self.stop_reason:
            return
        self.stop_reason = reason
        for task in self._tasks:
            task.cancel()

    def hears(self, run: NewRun) -> bool:
        """Whether `run` may steer this turn now: same person, and a tool is running."""
        return self._listening > 0 and not self.stop_reason and run.by == self.stored.run.by

    def close(self) -> None:
        """The turn has ended, or waits."""
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

    def _go_on(self) -> None:
        if self.stop_reason:
            raise TurnStopped(self.stop_reason)

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
            if current is not None and current.cancelling() > 0:  # parked
                raise
            self._go_on()
            raise RuntimeError(f"the step {name} was cancelled, by nobody here") from None
        finally:
            self._listening -= listens
            self._tasks.discard(task)
