"""Answers that one person alone sees in a channel of Slack. Called by `bot.slack`.

Slack gives an address with each command, under which it can be answered so, five times within
thirty minutes. Whoever has it writes in our name, so it is kept in memory alone: after a restart,
or once it is used up, the person is answered by a whisper, and where that cannot be, directly.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import structlog

from agent.messages import Address
from agent.ports import Clock
from bot.asides import reader_of
from bot.channel import Delivery, InDoubt, MessagePart, NotSent, Sent
from bot.slack_fields import text_of
from bot.slack_posting import channel_of, posted_text, refused
from bot.slack_raw import Kind, Sketch
from bot.slack_web import Limited, NoAnswer, SaidNo, SlackWeb

log = structlog.get_logger()

GOOD_FOR_S = 1_800.0 - 30.0
"""Slack takes answers for thirty minutes; one that is on its way should come in time."""
USES_MAX = 5
KEPT_MAX = 1_000

CHARS_MAX = 4_000
"""Of a message that is edited nowhere else either; one that is full is sent without a word about
where it belongs."""

SEEN_ONCE = "aside"
"""In place of a message's id: nobody can change what only one person saw, or look for it."""

DIRECTLY = "_This answers a command of yours in a channel, where I cannot reach you alone._\n\n"

_TEXT_ALONE: dict[str, Any] = {
    "response_type": "ephemeral",
    "replace_original": False,
    "unfurl_links": False,
    "unfurl_media": False,
}


@dataclass(slots=True)
class _Url:
    """Where a command can be answered, and how often still."""

    chat_id: str
    user: str
    url: str
    until_s: float
    left: int = USES_MAX


class Asides:
    """Says things to one person of a channel."""

    def __init__(self, web: SlackWeb, *, base_url: str, clock: Clock) -> None:
        self._web = web
        self._host = urlsplit(base_url).hostname or ""
        self._clock = clock
        self._urls: deque[_Url] = deque(maxlen=KEPT_MAX)

    def heard(self, found: Sketch, payload: Mapping[str, Any]) -> None:
        """Keeps where a command of somebody who is let in can be answered. Before it is acted
        on."""
        url = text_of(payload, "response_url")
        if found.kind is not Kind.COMMAND or not found.is_group or not self._is_slacks(url):
            return
        until_s = self._clock.monotonic() + GOOD_FOR_S
        kept = _Url(chat_id=found.chat_id, user=found.sender, url=url, until_s=until_s)
        self._urls.append(kept)

    async def say(self, address: Address, part: MessagePart) -> Delivery:
        """One message to the reader of a place of `bot.asides`, by the best way that works."""
        try:
            if await self._answered(address, part) or await self._whispered(address, part):
                return Sent(message_id=SEEN_ONCE)
            return await self._directly(address, part)
        except Limited as error:
            return NotSent(reason=str(error), retry_after_s=error.seconds)
        except SaidNo as error:
            return refused(error)
        except NoAnswer as error:
            why = str(error)
            return NotSent(reason=why) if error.surely_not else InDoubt(reason=why)

    async def _answered(self, address: Address, part: MessagePart) -> bool:
        """Under an address that came with a command. Raises Limited, NoAnswer."""
        while (kept := self._newest(address)) is not None:
            kept.left -= 1
            try:
                await self._web.respond(kept.url, text=part.markup, **_TEXT_ALONE)
            except SaidNo as error:
                log.info("slack.aside_refused", why=str(error))
                kept.left = 0
            else:
                return True
        return False

    async def _whispered(self, address: Address, part: MessagePart) -> bool:
        """Only members of a channel can be whispered to, and only where we are one. Raises
        SlackTrouble."""
        where = {"channel": channel_of(address), "user": reader_of(address)}
        try:
            await posted_text(self._web, "chat.postEphemeral", replace(part, mark=""), where)
        except SaidNo as error:
            if error.is_about_us:
                raise
            log.info("slack.aside_refused", why=str(error))
            return False
        return True

    async def _directly(self, address: Address, part: MessagePart) -> Delivery:
        """In the person's own chat with us. Raises SlackTrouble."""
        told = replace(part, mark="")
        if len(part.markup) + len(DIRECTLY) <= CHARS_MAX:
            told = replace(
                told, markup=f"{DIRECTLY}{part.markup}", source=f"{DIRECTLY}{part.source}"
            )
        await posted_text(self._web, "chat.postMessage", told, {"channel": reader_of(address)})
        return Sent(message_id=SEEN_ONCE)

    def _newest(self, address: Address) -> _Url | None:
        """The last of this person's in this channel that is good still; the others are
        forgotten."""
        now_s = self._clock.monotonic()
        good = [kept for kept in self._urls if kept.left > 0 and kept.until_s > now_s]
        self._urls = deque(good, maxlen=KEPT_MAX)
        place = (address.chat_id, reader_of(address))
        return next((one for one in reversed(good) if (one.chat_id, one.user) == place), None)

    def _is_slacks(self, url: str) -> bool:
        """Whether an address is on Slack's own side, wherever its Web API is."""
        try:
            parts = urlsplit(url)
            host = parts.hostname or ""
        except ValueError:
            return False
        if host == self._host:
            return parts.scheme in {"http", "https"}
        return parts.scheme == "https" and host.endswith(f".{self._host}")
