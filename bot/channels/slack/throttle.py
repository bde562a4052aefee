"""One bucket for all edits of a workspace (SPEC §3). Called by `bot.channels.slack.channel`.

Slack counts a method's calls over the whole workspace, so replies that are written at the same
time share them: the more there are, the slower each grows.
"""

from __future__ import annotations

from agent.budget.rate_limit import TokenBucket
from memory.records.ports import Clock

BURST = 10.0
"""Edits that may follow each other at once."""

WRITTEN_S = 20.0
"""A message that was not edited for so long is not being written any more."""

PATIENCE_S = 1.0
"""An edit waits so long at most for its turn; later it is tried again, with newer text."""

SHARE = 0.8
"""What growing replies take of the limit; the rest is for their last edits."""


class EditPace:
    """Says when the next edit may go out. A rate of 0 is no limit."""

    def __init__(self, per_minute: float, *, clock: Clock) -> None:
        self._clock = clock
        rate, now = per_minute / 60.0, clock.monotonic()
        self._bucket = TokenBucket(rate=rate, size=BURST, now=now) if rate > 0 else None
        self._not_before = 0.0
        self._written: dict[str, float] = {}

    async def turn(self, message: str) -> float | None:
        """None: now. Otherwise in how many seconds it is worth another try."""
        now = self._clock.monotonic()
        self._note(message, now)
        wait_s = max(self._bucket.wait_s(1, now) if self._bucket else 0.0, self._not_before - now)
        if wait_s > PATIENCE_S:
            return wait_s
        if self._bucket:
            self._bucket.take(1, now)
        if wait_s > 0:
            await self._clock.sleep(wait_s)
        return None

    def pause(self, seconds: float) -> None:
        """Slack asked for a pause of all edits."""
        self._not_before = self._clock.monotonic() + seconds

    def every(self, wished_s: float) -> float:
        """Seconds between two edits of one message, so that all that grow get along."""
        if self._bucket is None:
            return wished_s
        now = self._clock.monotonic()
        growing = sum(now - at < WRITTEN_S for at in self._written.values())
        if self._bucket.level(now) > BURST / 2 and growing <= 1:
            return wished_s
        return max(wished_s, max(growing, 1) / (self._bucket.rate * SHARE))

    def _note(self, message: str, now: float) -> None:
        self._written = {one: at for one, at in self._written.items() if now - at < WRITTEN_S} | {
            message: now
        }
