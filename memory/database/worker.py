"""One SQLite connection on a thread of its own.

Whole functions hop to the thread and back: a hop for each statement would leave half a transaction
open where a call is cancelled between two of them. All that wait at the same moment hop together,
since a hop costs more than most of what is read.
"""

from __future__ import annotations

import asyncio
import ctypes
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class QueuedWork(Generic[T]):
    """A function on its way through the thread. What is `alone` runs between transactions."""

    __slots__ = ("alone", "error", "function", "future", "settled", "value")
    value: T

    def __init__(
        self, function: Callable[[sqlite3.Connection], T], future: asyncio.Future[T], *, alone: bool
    ) -> None:
        self.function = function
        self.future = future
        self.alone = alone
        self.error: BaseException | None = None
        self.settled = False

    def succeed(self, value: T) -> None:
        self.value = value
        self.settled = True

    def fail(self, error: BaseException) -> None:
        """Have it raised where the work was asked for."""
        self.error = error
        self.settled = True

    def tell(self) -> None:
        """In the event loop; whoever was cancelled does not want to hear it."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.value)
        else:
            self.future.set_exception(self.error)


Settle = Callable[[sqlite3.Connection, list[QueuedWork[Any]]], None]
"""Runs all of these in the thread, and has each succeed or fail."""


class WorkLine:
    """The thread of one connection, and the works that wait for it."""

    def __init__(
        self,
        thread: ThreadPoolExecutor,
        connection: sqlite3.Connection,
        settle: Settle,
        *,
        together_max: int,
    ) -> None:
        self._thread = thread
        self._connection = connection
        self._settle = settle
        self._together_max = together_max
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[QueuedWork[Any]] = deque()
        self._is_called = False
        self._stays_open = False

    @classmethod
    @asynccontextmanager
    async def open(
        cls, connect: Callable[[], sqlite3.Connection], settle: Settle, *, together_max: int
    ) -> AsyncIterator[WorkLine]:
        """Raises what `connect` raises. What was asked for before the end is done before it."""
        thread = ThreadPoolExecutor(max_workers=1)
        opening = thread.submit(connect)
        try:
            connection = await asyncio.wrap_future(opening)
        except BaseException:
            # Cancelled while it was opened: nobody else would close it.
            thread.submit(_close, opening)
            await asyncio.to_thread(thread.shutdown)
            raise
        line = cls(thread, connection, settle, together_max=together_max)
        try:
            yield line
        finally:
            if line._stays_open:
                # Python closes what nobody holds any more, at its end too: so somebody holds it
                # for good.
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
            else:
                await asyncio.wrap_future(thread.submit(connection.close))
            await asyncio.to_thread(thread.shutdown)

    def stay_open(self) -> None:
        """Never close the connection. The last one that closes has SQLite move the `-wal` into the
        main file, and half a `-wal` would destroy it; while one stays open, both are left alone."""
        self._stays_open = True

    async def run(self, function: Callable[[sqlite3.Connection], T], *, alone: bool = False) -> T:
        """Return what the function returns. What was queued runs to its end, also when its caller
        is cancelled meanwhile."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting.append(QueuedWork(function, future, alone=alone))
        if not self._is_called:
            self._is_called = True
            self._thread.submit(self._work_off)
        return await future

    def _work_off(self) -> None:
        """In the thread: all that waits, in bites."""
        # First, so that what is asked for from now on calls again: for nothing at worst.
        self._is_called = False
        while self._waiting:
            count = min(len(self._waiting), self._together_max)
            together = [self._waiting.popleft() for _ in range(count)]
            try:
                self._settle(self._connection, together)
            except BaseException as error:  # noqa: BLE001 - raised where each was asked for
                for work in together:
                    if not work.settled:
                        work.fail(error)
            self._loop.call_soon_threadsafe(_tell, together)


def _tell(ended: list[QueuedWork[Any]]) -> None:
    for work in ended:
        work.tell()


def _close(opening: Future[sqlite3.Connection]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
