"""One kind of trouble, told once however often it is met. Called by channels."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from agent.ports import Clock

log = structlog.get_logger()

PAUSES_S = (1.0, 2.0, 5.0, 10.0, 30.0)


class Outage:
    """Told when it begins and when it is over; the pauses in between grow."""

    def __init__(self, event: str, clock: Clock, *, pauses_s: Sequence[float] = PAUSES_S) -> None:
        self._event = event
        self._pauses_s = pauses_s
        self._clock = clock
        self.tries = 0

    def tell(self, why: str, **facts: str) -> None:
        """Says so, if it is new."""
        if self.tries == 0:
            log.warning(self._event, why=why, **facts)
        self.tries += 1

    async def wait(self, why: str, *, at_least_s: float = 0.0, **facts: str) -> None:
        """Says so, if it is new, and waits; longer where the platform names a time."""
        pause_s = self._pauses_s[min(self.tries, len(self._pauses_s) - 1)]
        self.tell(why, **facts)
        await self._clock.sleep(max(pause_s, at_least_s))

    def over(self) -> None:
        """It went well."""
        if self.tries:
            log.info(f"{self._event}.over", tries=self.tries)
        self.tries = 0
