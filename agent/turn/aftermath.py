"""What follows from a turn once its end is stored: work behind the scenes that nobody waits for.

The engine calls `Aftermath.ended`. What a kill cuts off here is not lost: each work looks at what
is stored, and is asked again after the next turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import structlog

from memory.records.errors import AssistantError
from memory.records.messages import ConversationId, TurnInput
from memory.records.ports import NewRun, TurnEnd

log = structlog.get_logger()

AT_ONCE = 4
"""Conversations that are worked on together."""
WAITING_MAX = 1_000
"""Turns that wait for it; what is beyond is passed over, with a line in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedTurn:
    """A turn of a person that is over."""

    turn: TurnInput
    end: TurnEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """One thing that is done after each turn. `name` is for the log."""

    name: str
    run: Callable[[EndedTurn], Awaitable[object]]


class Aftermath:
    """Runs each work after each turn, in order within a conversation. An async context manager."""

    def __init__(self, works: Sequence[FollowUp]) -> None:
        self._works = tuple(works)
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._last: dict[ConversationId, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._open = False

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop(0)
        await self._group.__aexit__(kind, error, traceback)

    def ended(self, run: NewRun, end: TurnEnd) -> None:
        """Called by the engine. Of subagents nothing follows: their parents' turns tell of them."""
        if run.child_of is not None or not self._open or not end.turn.entries:
            return
        if len(self._tasks) >= WAITING_MAX:
            log.warning("aftermath.full", turn=run.run_id)
            return
        try:
            turn = TurnInput.from_json(run.payload)
        except (KeyError, TypeError, ValueError):
            return  # no version of ours wrote it; the turn was told so
        key = end.conversation
        task = self._group.create_task(
            self._follow(EndedTurn(turn=turn, end=end), self._last.get(key)), name="aftermath"
        )
        self._tasks.add(task)
        self._last[key] = task
        task.add_done_callback(lambda done: self._forget(key, done))

    async def idle(self) -> None:
        """Returns once nothing is left to do."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def stop(self, drain_s: float) -> None:
        """Takes nothing more; waits so many seconds for what runs, and leaves the rest."""
        self._open = False
        if self._tasks and drain_s > 0:
            await asyncio.wait(set(self._tasks), timeout=drain_s)
        for task in list(self._tasks):
            task.cancel()

    def _forget(self, key: ConversationId, done: asyncio.Task[None]) -> None:
        self._tasks.discard(done)
        if self._last.get(key) is done:
            del self._last[key]

    async def _follow(self, ended: EndedTurn, former: asyncio.Task[None] | None) -> None:
        if former is not None:
            await asyncio.wait([former])
        async with self._slots:
            for work in self._works:
                with structlog.contextvars.bound_contextvars(turn=ended.end.turn.run_id):
                    try:
                        await work.run(ended)
                    except AssistantError as trouble:
                        log.warning("aftermath.trouble", work=work.name, why=str(trouble))
                    except Exception:
                        log.exception("aftermath.failed", work=work.name)
