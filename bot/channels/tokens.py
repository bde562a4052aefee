"""What a refused token comes to: at the start it ends the bot, later it is waited out.

Called by the channels. The owner hears of a lasting refusal, and of its end, by another channel.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog

from bot.channels.base import ChannelTrouble, Outage
from bot.people.access import Access
from memory.records.errors import SettingsWrong, StorageError
from memory.records.ports import Clock
from memory.records.rows import NewMessage

log = structlog.get_logger()

REFUSALS = 3
"""Refusals in a row after which a token counts as wrong; one may be the platform's own trouble."""

PAUSES_S = (1.0, 2.0, 5.0, 15.0, 60.0, 180.0)
"""Pauses between tries with a token that is refused; the last one repeats."""

REFUSED = (
    "⚠️ {why} Until that is mended I receive nothing from {platform} and can send nothing there. "
    "I keep trying."
)
TAKEN = "{platform} accepts my token again. What was waiting is coming now."


class TokenRefused(SettingsWrong):
    """A platform does not accept a token; the text says which, and what to do."""


class TokenNotices:
    """Tells the owner by another channel that a platform refuses its token: once when it begins,
    and once when it is over."""

    def __init__(self, access: Access, say: Callable[[NewMessage], Awaitable[None]]) -> None:
        self._access = access
        self._say = say
        self._lanes: dict[str, str] = {}
        """The chat where each channel's refusal was told."""

    async def refused(self, channel: str, error: TokenRefused) -> None:
        """Tell the owner, unless told already or there is no other channel."""
        owner = self._access.owner_id()
        if channel in self._lanes or owner is None:
            return
        text = REFUSED.format(why=error, platform=channel.capitalize())
        try:
            chats = await self._access.ways_to(owner)
            lane = next((chat for chat in chats if not chat.startswith(f"{channel}:")), None)
            if lane is not None:
                await self._say(NewMessage(lane=lane, text=text))
                self._lanes[channel] = lane
        except StorageError as trouble:
            log.warning("token.untold", why=str(trouble))

    async def taken(self, channel: str) -> None:
        """Tell that it is over, in the chat where the refusal was told."""
        lane = self._lanes.get(channel)
        if lane is None:
            return
        try:
            text = TAKEN.format(platform=channel.capitalize())
            await self._say(NewMessage(lane=lane, text=text))
            del self._lanes[channel]
        except StorageError as trouble:
            log.warning("token.untold", why=str(trouble))


class PlatformToken:
    """One token, and whether its platform accepts it now."""

    def __init__(self, channel: str, *, clock: Clock, notices: TokenNotices | None = None) -> None:
        """`channel` is whose token it is; without `notices` only the log tells of refusals."""
        self._channel = channel
        self._notices = notices
        self._outage = Outage(f"{channel}.token_refused", clock, pauses_s=PAUSES_S)
        self._has_worked = False

    @property
    def trouble(self) -> ChannelTrouble | None:
        """The refusal, while it lasts."""
        return self._outage.trouble

    async def taken(self) -> None:
        """Note that the platform accepted it."""
        self._has_worked = True
        was_refused = self._outage.tries > 0
        self._outage.over()
        if was_refused and self._notices is not None:
            await self._notices.taken(self._channel)

    async def refused(self, why: str, error: TokenRefused) -> None:
        """Wait until it may be tried again. Raises the error if it has not worked since the start
        and was refused several times in a row."""
        lasts = self._outage.tries + 1 >= REFUSALS
        if lasts and not self._has_worked:
            self._outage.tell(why)
            raise error
        if lasts and self._notices is not None:
            await self._notices.refused(self._channel, error)
        await self._outage.wait(why)
