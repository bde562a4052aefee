"""One kind of trouble, told once however often it is met. Called by channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

import structlog

from memory.records.ports import Clock

log = structlog.get_logger()

PAUSES_S = (1.0, 2.0, 5.0, 10.0, 30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelTrouble:
    """What is wrong just now, and since when; for `hearthbot status`."""

    since: datetime
    why: str
    """A few words, without addresses that hold a secret."""


class Outage:
    """Told when it begins and when it is over; the pauses in between grow."""

    def __init__(self, event: str, clock: Clock, *, pauses_s: Sequence[float] = PAUSES_S) -> None:
        self._event = event
        self._pauses_s = pauses_s
        self._clock = clock
        self.tries = 0
        self.trouble: ChannelTrouble | None = None
        """None: all is well."""

    def tell(self, why: str, **facts: str) -> None:
        """Says so, if it is new."""
        if self.tries == 0:
            log.warning(self._event, why=why, **facts)
            self.trouble = ChannelTrouble(since=self._clock.now(), why=why)
        self.tries += 1

    async def wait(
        self,
        why: str,
        *,
        at_least_s: float = 0.0,
        wished_s: float | None = None,
        facts: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Says so, if it is new, and waits; longer where the platform names a time, or for just
        as long as it wishes."""
        pause_s = self._pauses_s[min(self.tries, len(self._pauses_s) - 1)]
        self.tell(why, **facts)
        await self._clock.sleep(max(pause_s, at_least_s) if wished_s is None else wished_s)

    def over(self) -> None:
        """It went well."""
        if self.tries:
            log.info(f"{self._event}.over", tries=self.tries)
        self.forget()

    def forget(self) -> None:
        """It is over, which is told in other words."""
        self.tries = 0
        self.trouble = None
