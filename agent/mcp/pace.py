"""How often a server is given its way: a list that keeps changing is read at growing distances,
and what is wrong with it is said once a minute. Used by `agent.mcp.session` and `servers`."""

from __future__ import annotations

import math
from typing import Any

import structlog

from agent.mcp.values import Timing

_log = structlog.get_logger(__name__)


class Pace:
    """After a quiet time a changed list is read at once; while changes keep coming, after pauses
    that double. Times are seconds of one clock."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._reads = 0
        self._read_at = -math.inf

    def wait_s(self, now: float) -> float:
        """How long from now a change waits to be read; at most 0 where it need not."""
        return self._read_at + self._timing.reread_pause_s(self._reads) - now

    def read(self, now: float) -> None:
        """The list is read now, because it is said to have changed."""
        is_quiet = now - self._read_at > self._timing.quiet_s
        self._reads = 1 if is_quiet else self._reads + 1
        self._read_at = now


class Warnings:
    """What is wrong with one server, into the log: each kind once in so many seconds."""

    def __init__(self, server: str, timing: Timing) -> None:
        self._server = server
        self._every_s = timing.warn_s
        self._said_at: dict[str, float] = {}

    def warn(self, event: str, *, now: float, **facts: Any) -> None:
        """Whatever is passed over is said with the first look after that time."""
        if now - self._said_at.get(event, -math.inf) >= self._every_s:
            self._said_at[event] = now
            _log.warning(event, server=self._server, **facts)
