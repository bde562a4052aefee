"""A clock whose pauses pass at once and are kept."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta


class QuickClock:
    def __init__(self) -> None:
        self.passed = 0.0
        self.pauses: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 1, 5, 9, 0, tzinfo=UTC) + timedelta(seconds=self.passed)

    def monotonic(self) -> float:
        return self.passed

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.passed += seconds
        await asyncio.sleep(0)
