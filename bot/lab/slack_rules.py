"""The settings of the Slack stand-in: scopes, limits of pace, and how strict it is.

Called by `bot.lab.slack` and its parts. The tiers and scopes are those of the public reference.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

_BOT_SCOPES = """
    app_mentions:read assistant:write channels:history channels:join channels:manage channels:read
    chat:write commands files:read files:write groups:history groups:read groups:write im:history
    im:read im:write mpim:history mpim:read mpim:write reactions:read reactions:write team:read
    users:read users:read.email
"""
BOT_SCOPES = frozenset(_BOT_SCOPES.split())
APP_SCOPES = frozenset({"connections:write"})
_SUBSCRIPTIONS = """
    app_home_opened app_mention assistant_thread_context_changed assistant_thread_started
    file_shared member_joined_channel member_left_channel message.channels message.groups
    message.im message.mpim reaction_added reaction_removed
"""
SUBSCRIPTIONS = frozenset(_SUBSCRIPTIONS.split())
TIERS = {1: 1, 2: 20, 3: 50, 4: 100}
"""Requests a minute that a tier allows at least, for one method in one workspace."""


@dataclass(slots=True, kw_only=True)
class SlackRules:
    """How the stand-in behaves; each may be changed while it runs."""

    bot_scopes: set[str] = field(default_factory=lambda: set(BOT_SCOPES))
    app_scopes: set[str] = field(default_factory=lambda: set(APP_SCOPES))
    subscribed: set[str] = field(default_factory=lambda: set(SUBSCRIPTIONS))
    limits: bool = False
    workspace_per_minute: float | None = None
    """One more bucket, over all methods together; it counts even while `limits` is off."""
    edit_window_s: float | None = None
    missing_thread: Literal["unthread", "refuse"] = "unthread"
    """Slack posts a reply to a message that is gone into the channel, without a word."""
    stream_lasts_s: float | None = None
    trigger_lasts_s: float = 3.0
    blocks_chars_max: int = 13_200
    echo: bool = True
    """Whether the bot's own messages come back to it as events, as in Slack."""
    token_error: str | None = None
    """What every use of the bot token gets, such as `token_revoked` or `account_inactive`."""

    def change(self, **wanted: Any) -> None:
        """Set by name; lists become sets where a set is kept. Raises TypeError on other names."""
        for name, value in wanted.items():
            if name not in self.__dataclass_fields__:
                raise TypeError(f"no such setting: {name}")
            setattr(self, name, set(value) if isinstance(value, list) else value)


@dataclass(slots=True)
class _SlackBucket:
    level: float
    at: float


class SlackLimits:
    """Token buckets: a method's tier, 1/s a channel for posts, and one over all if wished."""

    POST = (1.0, 3.0)
    BUCKETS_MAX = 10_000

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[tuple[str, str], _SlackBucket] = {}

    def wait_s(self, method: str, *, tier: int, channel: str, rules: SlackRules) -> int:
        """Take one call, or say in how many whole seconds it may be tried again."""
        asked: list[tuple[tuple[str, str], tuple[float, float]]] = []
        if rules.workspace_per_minute is not None:
            per_minute = rules.workspace_per_minute
            asked.append((("*", ""), (per_minute / 60.0, max(1.0, per_minute))))
        if rules.limits and method == "chat.postMessage":
            asked.append(((method, channel), self.POST))
        elif rules.limits:
            asked.append(((method, ""), (TIERS[tier] / 60.0, float(TIERS[tier]))))
        now = self._clock()
        wait = 0.0
        taken = []
        for key, (rate, burst) in asked:
            bucket = self._bucket(key, burst=burst, now=now)
            bucket.level = min(burst, bucket.level + (now - bucket.at) * rate)
            bucket.at = now
            wait = max(wait, (1.0 - bucket.level) / rate)
            taken.append(bucket)
        if wait > 1e-9:
            return max(1, math.ceil(wait))
        for bucket in taken:
            bucket.level -= 1.0
        return 0

    def _bucket(self, key: tuple[str, str], *, burst: float, now: float) -> _SlackBucket:
        if key not in self._buckets and len(self._buckets) > self.BUCKETS_MAX:
            idle = [name for name, bucket in self._buckets.items() if now - bucket.at > 120.0]
            for name in idle:
                del self._buckets[name]
        return self._buckets.setdefault(key, _SlackBucket(burst, now))
