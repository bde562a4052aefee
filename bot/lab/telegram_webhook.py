"""The webhook side of the Telegram stand-in: posts updates to the bot, and again until taken.

Called by `bot.lab.telegram`.
"""

import asyncio
import time
from collections.abc import Callable

import aiohttp

from bot.lab.telegram_state import Json, Updates

WEBHOOK_TIMEOUT_S = 30.0
WEBHOOK_BACKOFF_S_MAX = 5.0


class WebhookSender:
    """Posts the pending updates one by one, in order, each until it is taken."""

    def __init__(self, updates: Updates, *, backoff_s: float, changed: Callable[[], None]) -> None:
        self.url = ""
        self._secret = ""
        self._updates = updates
        self._changed = changed
        self._backoff_s = backoff_s
        self._more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._error: Json = {}

    def point(self, url: str, secret: str) -> None:
        """Send to this address from now on; an empty one stops."""
        self._stop()
        self.url, self._secret, self._error = url, secret, {}
        if url:
            # Owned by this object: ended in `_stop`, awaited in `close`.
            self._task = asyncio.get_running_loop().create_task(self._run())

    def wake(self) -> None:
        self._more.set()

    def info(self) -> Json:
        plain: Json = {
            "url": self.url,
            "has_custom_certificate": False,
            "pending_update_count": len(self._updates),
        }
        if self._updates.allowed:
            plain["allowed_updates"] = self._updates.allowed
        return plain | self._error

    async def close(self) -> None:
        task = self._task
        self._stop()
        if task is not None:
            await asyncio.wait([task], timeout=5.0)

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        limit = aiohttp.ClientTimeout(total=WEBHOOK_TIMEOUT_S)
        wait_s = self._backoff_s
        updates = self._updates
        async with aiohttp.ClientSession(timeout=limit) as session:
            while True:
                update = updates.first()
                if update is None:
                    self._more.clear()
                    await self._more.wait()
                elif await self._post(session, update):
                    updates.done(update)
                    wait_s = self._backoff_s
                    self._changed()
                else:
                    await asyncio.sleep(wait_s)
                    wait_s = min(WEBHOOK_BACKOFF_S_MAX, wait_s * 2)

    async def _post(self, session: aiohttp.ClientSession, update: Json) -> bool:
        headers = {"X-Telegram-Bot-Api-Secret-Token": self._secret} if self._secret else {}
        try:
            async with session.post(self.url, json=update, headers=headers) as response:
                await response.read()
                status = response.status
        except (aiohttp.ClientError, TimeoutError) as wrong:
            self._fail(f"Connection failed: {wrong}")
            return False
        if not 200 <= status < 300:
            self._fail(f"Wrong response from the webhook: {status} {response.reason}")
            return False
        return True

    def _fail(self, why: str) -> None:
        self._error = {"last_error_date": int(time.time()), "last_error_message": why}
        self._changed()
