"""A store over which a process dies."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from memory.stores.outbox import SqliteOutbox


class Dying:
    """A store whose process dies at one of its writes: before it, or right after it."""

    def __init__(self, store: SqliteOutbox, *, at: int, after: bool, writes: Sequence[str]) -> None:
        self._store = store
        self._left = at
        self._after = after
        self._writes = writes
        self.dead = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in self._writes:
            return method

        async def write(*arguments: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left == 0 and self._after:
                await method(*arguments, **named)
            if self._left <= 0:
                self.dead.set()
                await asyncio.Event().wait()  # nothing of this process goes on
            return await method(*arguments, **named)

        return write
