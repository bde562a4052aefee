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
from functools import partial
from typing import Any, TypeVar

import aiosqlite

T = TypeVar("T")

_TOGETHER_MAX = 32
"""Functions whose callers hear of their ends together: the first waits for the last."""


class WorkLine:
    """Runs functions on the connection, one after the other, in the order of the calls."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._asked: deque[_QueuedWork] = deque()
        self._is_called = False
        self._stays_open = False

    @classmethod
    @asynccontextmanager
    async def open(cls, connect: Callable[[], sqlite3.Connection]) -> AsyncIterator[WorkLine]:
        """Raises what `connect` raises. What was asked for before the end is done before it."""
        connection = aiosqlite.Connection(connect, iter_chunk_size=64)
        try:
            await connection
        except BaseException:
            # The thread ends by itself, but with a last word to the event loop, which must still
            # be there. An open connection would hang the process at its exit.
            await asyncio.to_thread(connection._thread.join)
            raise
        line = cls(connection)
        try:
            yield line
        finally:
            if line._stays_open:
                _leave_open(connection)
                if (stopped := connection.stop()) is not None:
                    await stopped
            else:
                await connection.close()

    def stay_open(self) -> None:
        """Never close the connection. The last one that closes has SQLite move the `-wal` into the
        main file, and half a `-wal` would destroy it; while one stays open, both are left alone."""
        self._stays_open = True

    async def run(self, work: Callable[..., T], *args: object) -> T:
        """Calls `work(connection, *args)` in the thread.

        A call that was queued runs to its end, also when its caller is cancelled meanwhile.
        """
        asked = _QueuedWork(
            partial(work, self._connection._conn, *args), self._loop.create_future()
        )
        self._asked.append(asked)
        if not self._is_called:
            self._is_called = True
            self._connection._tx.put_nowait((None, self._work_off))
        result: T = await asked.future
        return result

    def _work_off(self) -> None:
        """In the thread: all that waits, in bites."""
        # First, so that what is asked for from now on calls again: for nothing at worst.
        self._is_called = False
        while self._asked:
            ended = [self._asked.popleft() for _ in range(min(len(self._asked), _TOGETHER_MAX))]
            for asked in ended:
                asked.run()
            self._loop.call_soon_threadsafe(_tell, ended)


def _leave_open(connection: aiosqlite.Connection) -> None:
    # Python closes what nobody holds any more, at its end too: so somebody holds it for good.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection._connection))
    connection._connection = None


class _QueuedWork:
    """A function on its way through the thread."""

    __slots__ = ("_error", "_value", "_work", "future")

    def __init__(self, work: Callable[[], object], future: asyncio.Future[Any]) -> None:
        self._work = work
        self._value: object = None
        self._error: BaseException | None = None
        self.future = future

    def run(self) -> None:
        """In the thread."""
        try:
            self._value = self._work()
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
            self._error = error

    def tell(self) -> None:
        """In the event loop; whoever was cancelled does not want to hear it."""
        if self.future.done():
            return
        if self._error is None:
            self.future.set_result(self._value)
        else:
            self.future.set_exception(self._error)


def _tell(ended: list[_QueuedWork]) -> None:
    for asked in ended:
        asked.tell()
