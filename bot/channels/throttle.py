"""A platform's limits on sending, kept before it has to complain. Called by channels."""

from __future__ import annotations

from dataclasses import dataclass

from agent.budget.rate_limit import TokenBucket
from memory.records.ports import Clock

CHATS_MAX = 2_000
"""Chats whose pace is remembered; the least recently used are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRates:
    """Messages per second in one chat, per minute in one group, per second in all; 0 is no limit.

    Telegram's documented limits: about one a second per chat, 20 a minute per group, 30 a second
    in total; short bursts are borne.
    """

    per_chat: float = 1.0
    per_group_minute: float = 20.0
    total: float = 30.0


@dataclass(slots=True)
class _ChatRate:
    bucket: TokenBucket | None
    not_before: float = 0.0


CHAT_BURST = 3
"""Messages that may follow each other at once in a private chat."""


class SendThrottle:
    """Says when the next message of a chat may go out."""

    def __init__(self, rates: SendRates, *, clock: Clock) -> None:
        self._rates = rates
        self._clock = clock
        self._chats: dict[str, _ChatRate] = {}
        self._all = self._bucket(rates.total, rates.total)

    async def wait(self, chat_id: str, *, is_group: bool) -> None:
        """Returns when a message may be sent."""
        now = self._clock.monotonic()
        chat = self._chat(chat_id, is_group=is_group)
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

    def _chat(self, chat_id: str, *, is_group: bool) -> _ChatRate:
        chat = self._chats.pop(chat_id, None)
        if chat is None:
            if len(self._chats) >= CHATS_MAX:
                del self._chats[next(iter(self._chats))]
            rate, burst = (
                (self._rates.per_group_minute / 60, self._rates.per_group_minute)
                if is_group
                else (self._rates.per_chat, CHAT_BURST)
            )
            chat = _ChatRate(self._bucket(rate, burst))
        self._chats[chat_id] = chat
        return chat

    def _bucket(self, rate: float, burst: float) -> TokenBucket | None:
        if rate <= 0:
            return None
        return TokenBucket(rate=rate, size=burst, now=self._clock.monotonic())
