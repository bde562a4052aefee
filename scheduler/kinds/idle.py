"""Conversations that have fallen silent: what is left to do in them is done once, then they rest.

The timers are in the database, so a restart forgets none. `bot.app` enters `IdleTimers` and says
what is done (facts are looked for); whoever takes in a message asks `IdleReset` first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import structlog

from memory.records.errors import AssistantError, StorageError, Temporary
from memory.records.messages import ConversationId
from memory.records.ports import Clock
from memory.stores.schedule import IdleTimer, SqliteIdle

log = structlog.get_logger()

PAUSES_S = (5 * 60.0, 30 * 60.0, 120 * 60.0, 24 * 3600.0)
"""After the first failure, the second, …; the last one for all that follow."""
DUE_MAX = 100
"""Timers that are looked at together, and worked on in one pass at most."""
LOOK_S_MIN, LOOK_S_MAX = 0.5, 30.0
"""Bounds of the pause between two looks; within them it is a tenth of the silence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleOptions:
    """`idle_s` is the silence after a turn, `act_s_max` the longest that one act may take, both in
    seconds; after `tries_max` failures one is given up until somebody speaks again."""

    idle_s: float = 300.0
    act_s_max: float = 600.0
    tries_max: int = 5


class IdleTimers:
    """Acts on silent conversations, one at a time, beside everything else. An async context
    manager: what runs at its end is cut off, and its timer stays open.

    `act` succeeds (then the timer is closed, unless somebody has spoken meanwhile) or raises: it is
    tried again later. It may be called again for the same messages, by a kill in between.
    """

    def __init__(
        self,
        store: SqliteIdle,
        act: Callable[[ConversationId], Awaitable[object]],
        clock: Clock,
        *,
        options: IdleOptions,
        busy: Callable[[str], bool],
    ) -> None:
        """`busy` says whether a turn runs at an address, or nothing may be begun there now."""
        self._store = store
        self._act = act
        self._clock = clock
        self._options = options
        self._busy = busy
        self._group = asyncio.TaskGroup()
        self._task: asyncio.Task[None] | None = None
        self._is_in_trouble = False

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._task = self._group.create_task(self._run(), name="idle timers")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._task is not None:
            self._task.cancel()
        await self._group.__aexit__(kind, error, traceback)

    async def work_off(self) -> int:
        """Act on all that is due now; return on how many. Raise StorageError."""
        acted: set[ConversationId] = set()
        moved = await self._store.steady(now_ms=self._now_ms(), ahead_ms=int(PAUSES_S[-1] * 1000))
        if moved:
            log.warning("idle.clock_set_back", conversations=moved)
        while len(acted) < DUE_MAX:
            # Asked anew each time: an act takes a while, and somebody may have spoken meanwhile.
            idle_ms = int(self._options.idle_s * 1000)
            due = await self._store.due(now_ms=self._now_ms(), idle_ms=idle_ms, limit=DUE_MAX)
            fresh = (timer for timer in due if timer.conversation not in acted)
            timer = next((timer for timer in fresh if not self._busy(timer.lane)), None)
            if timer is None:
                break
            acted.add(timer.conversation)
            with structlog.contextvars.bound_contextvars(conversation=timer.conversation):
                try:
                    async with asyncio.timeout(self._options.act_s_max):
                        await self._act(timer.conversation)
                except StorageError:
                    raise
                except TimeoutError:
                    await self._later(timer, why=f"It took over {self._options.act_s_max:.0f} s.")
                except AssistantError as trouble:
                    wished_s = trouble.retry_after_s if isinstance(trouble, Temporary) else None
                    await self._later(timer, why=str(trouble), wished_s=wished_s or 0.0)
                except Exception:
                    log.exception("idle.broke")
                    await self._later(timer, why="It broke; the traceback stands above.")
                else:
                    await self._store.close(timer.conversation, touched_ms=timer.touched_ms)
        return len(acted)

    async def _run(self) -> None:
        look_s = min(max(self._options.idle_s / 10, LOOK_S_MIN), LOOK_S_MAX)
        while True:
            try:
                await self.work_off()
            except StorageError as trouble:
                if not self._is_in_trouble:
                    log.warning("idle.trouble", why=str(trouble))
                self._is_in_trouble = True
            else:
                if self._is_in_trouble:
                    log.info("idle.trouble.over")
                self._is_in_trouble = False
            await self._clock.sleep(look_s)

    async def _later(self, timer: IdleTimer, *, why: str, wished_s: float = 0.0) -> None:
        tries = timer.tries + 1
        if tries >= self._options.tries_max:
            log.warning("idle.given_up", tries=tries, why=why)
            await self._store.close(timer.conversation, touched_ms=timer.touched_ms)
            return
        pause_s = max(PAUSES_S[min(tries, len(PAUSES_S)) - 1], min(wished_s, PAUSES_S[-1]))
        log.warning("idle.put_off", tries=tries, minutes=round(pause_s / 60), why=why)
        until_ms = self._now_ms() + int(pause_s * 1000)
        await self._store.put_off(
            timer.conversation, touched_ms=timer.touched_ms, until_ms=until_ms
        )

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)


class IdleReset:
    """Begins a new conversation where the last one has been silent for long (SPEC §10).

    Asked when a message comes in, before its conversation is looked up; the old one is closed, so
    that what is left to do in it is due at once.
    """

    def __init__(
        self,
        store: SqliteIdle,
        start_new: Callable[[str], Awaitable[object]],
        clock: Clock,
        *,
        after_hours: float,
        busy: Callable[[str], bool],
    ) -> None:
        """`after_hours` 0: never. `busy` as for `IdleTimers`: what runs keeps its conversation."""
        self._store = store
        self._start_new = start_new
        self._clock = clock
        self._after_ms = int(after_hours * 3_600_000)
        self._busy = busy

    async def __call__(self, lane: str) -> bool:
        """Return whether a new one was begun. Raise StorageError."""
        if self._after_ms <= 0 or self._busy(lane):
            return False
        touched_ms = await self._store.last_touched(lane)
        now_ms = int(self._clock.now().timestamp() * 1000)
        if touched_ms is None or now_ms - touched_ms < self._after_ms:
            return False
        await self._start_new(lane)
        log.info("idle.reset", lane=lane, hours=round((now_ms - touched_ms) / 3_600_000))
        return True
