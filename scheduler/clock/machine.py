"""The real clock, and the check whether it can be right. Tests pass their own.

A machine whose clock has no battery starts in 1970; one that was set wrong may start in 2030. By
such a clock everything stored would be old, or nothing due. So it is compared with the last thing
stored and with the time in answers of Telegram and Slack. While it is doubted, time goes on from
the last known moment; whoever acts by the clock or removes by age asks `doubt` and waits.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

import structlog

from memory.records.ports import Clock

log = structlog.get_logger()

OFF_MAX = timedelta(hours=1)
"""How far the clock may be off a platform's time, or behind the last thing stored: more than two
machines ever differ, less than a wrong time zone would make."""

AHEAD_MAX = timedelta(days=2)
"""How far it may be ahead of the last thing stored before a platform has told the time. That takes
some seconds; a machine that was off for longer waits for it."""

ALONE_MAX = timedelta(days=30)
"""The same if no platform is set up that could tell the time."""


class SystemClock:
    """Implements `memory.records.ports.Clock`."""

    def now(self) -> datetime:
        """Return the current moment in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class CheckedClock:
    """A clock that is believed while it can be right. Implements `memory.records.ports.Clock`.

    Make it before the database is opened: it remembers the time of the `file`, which opening
    changes.
    """

    def __init__(self, clock: Clock, *, file: Path | None = None, is_trusted: bool = False) -> None:
        """`file` was written by the same machine; `is_trusted`: the owner says that it is right."""
        self._clock = clock
        self._is_trusted = is_trusted
        self._written = _written(file) if file is not None else None
        self._base: datetime | None = None
        self._since_s = 0.0
        self._ahead_max = OFF_MAX
        self._by = ""

    def now(self) -> datetime:
        """Return the machine's time, or while it is doubted the last known plus what passed."""
        now = self._clock.now()
        if self._base is None:
            return now
        believed = self._base + timedelta(seconds=self._clock.monotonic() - self._since_s)
        if not -OFF_MAX <= now - believed <= self._ahead_max:
            return believed
        self._believe()  # somebody has set it right
        return now

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._clock.sleep(seconds)

    @property
    def doubt(self) -> str:
        """Why the machine's clock is not believed, for the owner; empty if it is."""
        believed = self.now()
        if self._base is None:
            return ""
        now = self._clock.now()
        side = "ahead of" if now > believed else "behind"
        return (
            f"This machine's clock says {now:%d %B %Y, %H:%M} UTC, which is "
            f"{_span(abs(now - believed))} {side} {self._by}. Until it is corrected I run no jobs "
            "or reminders, make no backup and remove nothing; I still answer what you write. If "
            "the clock is right, send `/resume`."
        )

    def compare(self, stored_ms: int | None, *, is_told: bool) -> None:
        """Compare with the last thing stored; `is_told`: a platform will tell the time."""
        now = self._clock.now()
        stored = None if stored_ms is None else datetime.fromtimestamp(stored_ms / 1000, UTC)
        self._ahead_max = AHEAD_MAX if is_told else ALONE_MAX
        if self._is_trusted:
            return
        if stored is not None and not -OFF_MAX <= now - stored <= self._ahead_max:
            # A machine that was off for days is told the time in a moment: that is no trouble yet.
            self._doubt(stored, "the last thing I stored", is_trouble=now < stored or not is_told)
        elif self._written is not None and self._written - now > OFF_MAX:
            self._doubt(self._written, "the last change to its own database")

    def told(self, by: str, date: str | None) -> None:
        """Compare with the `Date` header of a platform's answer."""
        try:
            moment = parsedate_to_datetime(date or "")
        except ValueError:
            return
        if self._is_trusted or moment.tzinfo is None:
            return
        self._ahead_max = OFF_MAX
        if abs(self._clock.now() - moment) <= OFF_MAX:
            self._believe()
        else:
            self._doubt(moment, f"{by}'s time")

    def trust(self) -> bool:
        """Believe the clock, as the owner says it is right. Return whether it was doubted."""
        was_doubted = bool(self.doubt)
        self._is_trusted |= was_doubted
        self._believe()
        return was_doubted

    def _doubt(self, known: datetime, by: str, *, is_trouble: bool = True) -> None:
        is_new = self._base is None or by != self._by
        self._base, self._by = known, by
        self._since_s = self._clock.monotonic()
        if is_new:
            tell = log.error if is_trouble else log.info
            tell("clock.doubted", machine=f"{self._clock.now():%FT%TZ}", why=self.doubt)

    def _believe(self) -> None:
        if self._base is not None:
            log.warning("clock.believed", machine=f"{self._clock.now():%FT%TZ}")
        self._base = None


def checked(clock: Clock) -> CheckedClock:
    """Return the clock itself if it is checked already, else wrapped."""
    return clock if isinstance(clock, CheckedClock) else CheckedClock(clock)


def _written(file: Path) -> datetime | None:
    """Return when the database or its `-wal` was last changed."""
    moments = []
    for path in (file, file.with_name(f"{file.name}-wal")):
        try:
            moments.append(path.stat().st_mtime)
        except OSError:
            continue
    return datetime.fromtimestamp(max(moments), UTC) if moments else None


def _span(span: timedelta) -> str:
    hours = round(span / timedelta(hours=1))
    return f"{hours} h" if hours < 48 else f"{hours // 24:,} days"
