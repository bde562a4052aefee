"""One SQLite connection on a thread of its own: all that this package knows about aiosqlite.

Its public calls hop to the thread and back once a statement, so that a cancellation between two
of them leaves half a transaction open. Here whole functions hop, and all that wait at the same
moment hop together: a hop costs more than most of what is read. That takes the library's queue,
and a function in it that nobody waits for; a test pins how that behaves.
"""

from __future__ import annotations

import asyncio
import ctypes
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import aiosqlite

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
    """Runs functions on the connection, in the order of the calls: those that wait at the same
    moment together, by `settle`, up to `together_max`."""

    def __init__(
        self, connection: aiosqlite.Connection, settle: Settle, *, together_max: int
    ) -> None:
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
        connection = aiosqlite.Connection(connect, iter_chunk_size=64)
        try:
            await connection
        except BaseException:
            # The thread ends by itself, but with a last word to the event loop, which must still
            # be there. An open connection would hang the process at its exit.
            await asyncio.to_thread(connection._thread.join)
            raise
        line = cls(connection, settle, together_max=together_max)
        try:
            yield line
        finally:
            if line._stays_open:
                # Python closes what nobody holds any more, at its end too: so somebody holds it
                # for good.
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection._connection))
                connection._connection = None
                if (stopped := connection.stop()) is not None:
                    await stopped
            else:
                await connection.close()

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
            self._connection._tx.put_nowait((None, self._work_off))
        return await future

    def _work_off(self) -> None:
        """In the thread: all that waits, in bites."""
        # First, so that what is asked for from now on calls again: for nothing at worst.
        self._is_called = False
        while self._waiting:
            count = min(len(self._waiting), self._together_max)
            together = [self._waiting.popleft() for _ in range(count)]
            try:
                self._settle(self._connection._conn, together)
            except BaseException as error:  # noqa: BLE001 - raised where each was asked for
                for work in together:
                    if not work.settled:
                        work.fail(error)
            self._loop.call_soon_threadsafe(_tell, together)


def _tell(ended: list[QueuedWork[Any]]) -> None:
    for work in ended:
        work.tell()
