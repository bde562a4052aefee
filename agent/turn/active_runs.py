"""One turn while it runs: the steps it has made, what steers it, and who stops it; and the
conversation queue that it waits in.

Made and closed by `agent.turn.engine`; a program sees it as `memory.records.ports.TurnContext`.
"""

from __future__ import annotations

import asyncio
import bisect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from memory.records.errors import StepUnknown, StorageError, TurnChanged, TurnStopped
from memory.records.messages import PersonId, RunId
from memory.records.ports import Journal, Json, NewRun, Redo, StepFunction, StepRecord, StoredRun
from memory.records.section import QueuePolicy


@dataclass(slots=True)
class QueuedRun:
    """A run in its queue. A `fresh` one was never begun, so another turn may take its message in;
    `steers` names the turn during whose tool it arrived."""

    stored: StoredRun
    fresh: bool
    steers: RunId | None = None

    def __lt__(self, other: QueuedRun) -> bool:
        return self.stored.seq < other.stored.seq


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
        queue: ConversationQueue,
        *,
        begun: bool = False,
    ) -> None:
        """`begun`: it was stored as begun, just now, so that it has no steps yet."""
        self.stored = stored
        self.stop_reason = stored.stopping
        self._journal = journal
        self._functions = functions
        self._queue = queue
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
        self, name: str, arguments: object, *, redo: Redo = "repeat", listens: bool = False
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
            task = asyncio.ensure_future(self._functions[name](self, arguments))
            with self._in_flight(task, listens=listens):
                output = await task
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
        taken = self._queue.take(self.stored.run, first=first)
        if not taken:
            return []
        output = {"messages": [waiting.stored.run.payload for waiting in taken]}
        joined = [waiting.stored.run.run_id for waiting in taken]
        try:
            await self.write_down()
            await self._journal.record(self.run_id, n, "receive", output, joined=joined)
        except StorageError:
            self._queue.give_back(taken)
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

    @contextmanager
    def limited(self, seconds: float, reason: str) -> Iterator[None]:
        """Stop the turn for this reason once so much time has passed inside."""
        limit = asyncio.get_running_loop().call_later(seconds, self.stop, reason)
        try:
            yield
        finally:
            limit.cancel()

    def hears(self, run: NewRun) -> bool:
        """Return whether `run` may steer this turn now: same person, and a tool is running."""
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

    @contextmanager
    def _in_flight(self, task: asyncio.Task[Json], *, listens: bool) -> Iterator[None]:
        """A step's task while it is awaited: `stop` cancels just that.

        It is awaited in any case: when this turn is parked, the await hands the cancellation on to
        it.
        """
        self._tasks.add(task)
        self._listening += listens
        try:
            yield
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling() > 0:  # parked
                raise
            self._go_on()
            raise RuntimeError("a step was cancelled, by nobody here") from None
        finally:
            self._listening -= listens
            self._tasks.discard(task)


@dataclass(slots=True)
class ConversationQueue:
    """A conversation queue: the turns of one chat (`key` is its address key), one at a time."""

    key: str
    policy: QueuePolicy
    parent: str = ""
    """The key of the conversation whose subagent runs in here."""
    waiting: list[QueuedRun] = field(default_factory=list)
    active: RunningTurn | None = None
    worker: asyncio.Task[None] | None = None
    is_held: bool = False
    """Its next turn waits for the end of the owner's pause."""

    def add(self, stored: StoredRun, *, fresh: bool) -> None:
        """Queue a run, in order of submission.

        One that was begun before (not `fresh`) never steers another. When a new one does, whatever
        the same person sent before and still waits goes with it: no text overtakes another (case
        CH-15).
        """
        bisect.insort(self.waiting, QueuedRun(stored, fresh=fresh))
        active = self.active
        if not fresh or self.policy != "steer" or not stored.run.steers:
            return
        if active is None or not active.hears(stored.run):
            return
        for waiting in self._joinable(stored.run):
            waiting.steers = active.run_id

    def take(self, run: NewRun, *, first: bool) -> list[QueuedRun]:
        """Remove and return what steers `run` now; `first` when it has just begun."""
        collecting = first and self.policy == "collect" and run.steers
        taken = [w for w in self._joinable(run) if collecting or w.steers == run.run_id]
        self.waiting = [waiting for waiting in self.waiting if waiting not in taken]
        return taken

    def give_back(self, taken: Sequence[QueuedRun]) -> None:
        """Put them back into their places."""
        for waiting in taken:
            bisect.insort(self.waiting, waiting)

    def stop(self, reason: str, *, by: PersonId | None) -> list[RunId]:
        """Ends all that runs or waits, or what is this person's; returns what was not ending
        already."""
        ended = []
        for waiting in self.waiting:
            if not waiting.stored.stopping and by in {None, waiting.stored.run.by}:
                waiting.stored = replace(waiting.stored, stopping=reason)
                ended.append(waiting.stored.run.run_id)
        active = self.active
        if active is not None and not active.stop_reason and by in {None, active.stored.run.by}:
            active.stop(reason)
            ended.append(active.run_id)
        return ended

    def edit(self, run_id: RunId, payload: Json) -> bool:
        """Replaces the payload of a run that is still here."""
        found: list[QueuedRun | RunningTurn] = [
            waiting for waiting in self.waiting if waiting.stored.run.run_id == run_id
        ]
        if self.active is not None and self.active.run_id == run_id:
            found.append(self.active)
        for holder in found:
            run = replace(holder.stored.run, payload=payload)
            holder.stored = replace(holder.stored, run=run)
        return bool(found)

    def _joinable(self, run: NewRun) -> list[QueuedRun]:
        return [
            waiting
            for waiting in self.waiting
            if waiting.fresh and not waiting.stored.stopping and waiting.stored.run.by == run.by
            if waiting.stored.run.steers
        ]
