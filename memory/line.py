"""One SQLite connection on a thread of its own: all that this package knows about aiosqlite.

Its public calls hop to the thread and back once a statement, so that a cancellation between two
of them leaves half a transaction open. Here a whole function hops, by what aiosqlite's public
calls are made of (`_execute`); a test pins how that behaves.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import aiosqlite

T = TypeVar("T")


class Line:
    """Runs functions on the connection, one after the other, in the order of the calls."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    @classmethod
    @asynccontextmanager
    async def open(cls, connect: Callable[[], sqlite3.Connection]) -> AsyncIterator[Line]:
        """Raises what `connect` raises. What was asked for before the end is done before it."""
        connection = aiosqlite.Connection(connect, iter_chunk_size=64)
        try:
            await connection
        except BaseException:
            # The thread ends by itself, but with a last word to the event loop, which must still
            # be there. An open connection would hang the process at its exit.
            await asyncio.to_thread(connection._thread.join)
            raise
        try:
            yield cls(connection)
        finally:
            await connection.close()

    async def run(self, work: Callable[..., T], *args: object) -> T:
        """Calls `work(connection, *args)` in the thread.

        A call that was queued runs to its end, also when its caller is cancelled meanwhile.
        """
        connection = self._connection
        result: T = await connection._execute(work, connection._conn, *args)  # type: ignore[no-untyped-call]
        return result
