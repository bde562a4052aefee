"""Telegram's menus of commands: one for everybody, and another one in the private chats of people
who may type more. Called by `bot.channels.telegram.channel`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import structlog

from bot.channels.telegram.api import TelegramWeb

log = structlog.get_logger()

Menu = tuple[tuple[str, str], ...]
"""Names and descriptions, which Telegram shows as plain text."""

Menus = Mapping[str, Menu]
"""By the id of a private chat; that of everybody else is under EVERYBODY."""

EVERYBODY = ""


class CommandMenus:
    """Registers what has changed. Without a menu the bot works all the same: what fails is told in
    the log, and not tried again before the next start."""

    def __init__(self, web: TelegramWeb) -> None:
        self._web = web
        self._due = asyncio.Event()

    def look(self) -> None:
        """People may have come, gone, or been given another role. Returns at once."""
        self._due.set()

    async def keep(self, wanted: Callable[[], Menus]) -> None:
        """Has the menus as they are wanted, until cancelled."""
        told: Menus = {}
        while True:
            self._due.clear()
            now = dict(wanted())
            for chat in dict.fromkeys((*now, *told)):
                if now.get(chat) != told.get(chat):
                    await self._put(chat, now.get(chat, ()))
            told = now
            await self._due.wait()

    async def _put(self, chat: str, menu: Menu) -> None:
        """An empty one: the chat has that of everybody again."""
        rows = [{"command": name, "description": text} for name, text in menu]
        failed = await self._web.put_menu(chat, rows)
        if not failed:
            return
        # Somebody who was let in and has never opened the chat has none: nothing to look after.
        tell = log.warning if chat == EVERYBODY else log.info
        tell("telegram.no_menu", chat=chat, why=failed)
