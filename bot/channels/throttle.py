"""A platform's limits on sending, kept before it has to complain. Called by channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from agent.budget.rate_limit import TokenBucket
from memory.records.ports import Clock

CHATS_MAX = 2_000
"""Chats whose pace is remembered; the least recently used are forgotten."""

K = TypeVar("K")
V = TypeVar("V")


def keep_newest(kept: dict[K, V], key: K, value: V, *, most: int) -> None:
    """Keep a value as the newest, and forget the oldest beyond so many."""
    kept.pop(key, None)
    if len(kept) >= most:
        del kept[next(iter(kept))]
    kept[key] = value


@dataclass(slots=True)
class _ChatRate:
    bucket: TokenBucket | None
    not_before: float = 0.0


CHAT_BURST = 3
"""Messages that may follow each other at once in a private chat."""


class SendThrottle:
    """Says when the next message of a chat may go out.

    Telegram's documented limits are about one a second in a chat, 20 a minute in a group and 30 a
    second in all; short bursts are borne.
    """

    def __init__(
        self, clock: Clock, *, per_chat: float, total: float, per_group_minute: float = 0
    ) -> None:
        """Messages a second in one chat, a second in all, a minute in one group; 0: no limit."""
        self._clock = clock
        self._per_chat = per_chat
        self._per_group_minute = per_group_minute
        self._chats: dict[str, _ChatRate] = {}
        self._all = self._bucket(total, total)

    async def wait(self, chat_id: str, *, is_group: bool) -> None:
        """Returns when a message may be sent."""
        now = self._clock.monotonic()
        chat = self._chats.get(chat_id)
        if chat is None:
            per_minute = self._per_group_minute
            rate, burst = (
                (per_minute / 60, per_minute) if is_group else (self._per_chat, CHAT_BURST)
            )
            chat = _ChatRate(self._bucket(rate, burst))
        keep_newest(self._chats, chat_id, chat, most=CHATS_MAX)
        wait_s = max(0.0, chat.not_before - now)
        for bucket in (chat.bucket, self._all):
            if bucket is not None:
                wait_s = max(wait_s, bucket.wait_s(1, now))
                bucket.take(1, now)
        if wait_s > 0:
            await self._clock.sleep(wait_s)

    def pause(self, chat_id: str, seconds: float) -> None:
        """The platform asked for a pause in this chat."""
        chat = self._chats.get(chat_id)
        if chat is not None:
            chat.not_before = self._clock.monotonic() + seconds

    def _bucket(self, rate: float, burst: float) -> TokenBucket | None:
        if rate <= 0:
            return None
        return TokenBucket(rate=rate, size=burst, now=self._clock.monotonic())


# --- edits on Slack ------------------------------------------------------------------------------

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
        written = {one: at for one, at in self._written.items() if now - at < WRITTEN_S}
        self._written = written | {message: now}
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
