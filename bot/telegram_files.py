"""Files that people sent in Telegram: where one lies, and how it is fetched.

Called by `bot.telegram`, which knows the library; the Bot API gives files of 20 MB at most.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from agent.attached_ports import FileUnavailable
from bot.downloads import Downloads, too_large

HOST = "Telegram"

_PATH = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_. -]*(?:/[A-Za-z0-9_-][A-Za-z0-9_. -]*)*")
"""Relative, and without steps upwards. A Bot API server of one's own may name a place on its disk
instead: that is not gone to."""


class TelegramFiles:
    """The files of one bot."""

    def __init__(self, root: str, *, silence_s: float) -> None:
        """`root` is the address that ends in the bot's token."""
        self._root = root
        self._downloads = Downloads(host=HOST, silence_s=silence_s)

    async def fetch(self, about: Any, *, bytes_max: int) -> bytes:
        """The file that an answer of getFile is about. Raises FileUnavailable, Temporary."""
        path = about.get("file_path") if isinstance(about, dict) else None
        if not isinstance(path, str) or not _PATH.fullmatch(path):
            raise FileUnavailable("Telegram does not say where it lies")
        size = about.get("file_size")
        if isinstance(size, int) and size > bytes_max:
            raise too_large(bytes_max)
        return await self._downloads.get(f"{self._root}/{quote(path)}", bytes_max=bytes_max)


def why_not(said: str) -> str:
    """What Telegram says to getFile, as the end of a sentence."""
    lowered = said.lower()
    if "too big" in lowered:
        return "it is too large: Telegram gives a bot files of 20 MB at most"
    if "file_id" in lowered or "temporarily unavailable" in lowered or "not found" in lowered:
        return "Telegram does not have it any more"
    return "Telegram refuses it"
