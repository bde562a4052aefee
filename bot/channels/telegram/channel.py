"""Telegram as a channel, by python-telegram-bot: what goes out, and the ways in put together.

Only this file and its neighbours `telegram_*` know the library. An update is in the inbox before
Telegram is told that it arrived (`bot.channels.telegram.updates`).
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import structlog
from telegram.constants import ChatAction
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Forbidden,
    RetryAfter,
    TelegramError,
)

from agent.files.values import FileUnavailable
from bot.channels.base import (
    Channel,
    ChannelTrouble,
    Delivery,
    DeliveryRefused,
    EditOutcome,
    FileOut,
    InDoubt,
    MessageGone,
    MessagePart,
    NotSent,
    Pressed,
    Reacted,
    Reaction,
    SentMessage,
    Understood,
)
from bot.channels.telegram.api import (
    CommandMenus,
    Menus,
    TelegramFiles,
    TelegramWeb,
    meaning,
    seconds,
    why,
    why_not,
)
from bot.channels.telegram.parse import NAME, TelegramParser
from bot.channels.telegram.send import (
    FILE_BYTES_MAX,
    captioned,
    keyboard,
    posted_file,
    posted_text,
    put_reaction,
    where_to,
    why_refused,
)
from bot.channels.telegram.updates import TelegramUpdates
from bot.channels.telegram.wire import (
    ALLOWED_UPDATES,
    TelegramSketch,
    callback_answer,
    inline_keyboard,
    is_id,
    to_payload,
    update_id,
)
from bot.channels.throttle import SendThrottle
from bot.channels.tokens import PlatformToken, TokenNotices
from bot.channels.wire import read_json
from bot.inbox.intake import InboundEvent, Intake
from bot.markup.render import telegram_parts
from bot.settings.schema.settings import TelegramSettings
from memory.records.errors import StorageError, Temporary
from memory.records.messages import Address, Attachment, IncomingMessage
from memory.records.ports import Clock
from memory.records.rows import StoredEvent

log = structlog.get_logger()

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - a header's name

TEXT_UNITS_MAX = 4_096 - 24
"""Telegram's limit in UTF-16 units, less room for the mark of a second copy."""


class TelegramChannel(Channel):
    """Telegram for one bot: sends, and takes updates in. An async context manager."""

    name = NAME

    def __init__(
        self,
        settings: TelegramSettings,
        *,
        clock: Clock,
        dated: Callable[[str | None], None] | None = None,
        notices: TokenNotices | None = None,
        menus: Callable[[], Menus] = dict,
    ) -> None:
        """`dated` gets Telegram's time with each of its answers; `notices` tell of a refused
        token; `menus` says who sees which commands."""
        self._settings = settings
        self._pace = SendThrottle(
            clock,
            per_chat=settings.rate_per_chat,
            per_group_minute=settings.rate_per_group_minute,
            total=settings.rate_total,
        )
        self._username = ""
        token = settings.token.get_secret_value()
        self._bot_id = int(token.partition(":")[0])
        self.web = TelegramWeb(
            token,
            base_url=settings.base_url,
            timeout_s=settings.send_timeout_s,
            poll_s=settings.poll_timeout_s,
            dated=dated,
        )
        self._menus = CommandMenus(self.web, menus)
        self.updates = TelegramUpdates(
            self.web,
            PlatformToken(self.name, clock=clock, notices=notices),
            clock=clock,
            stall_s=settings.stall_s,
        )
        self._files = TelegramFiles(
            f"{settings.base_url}/file/bot{token}", silence_s=settings.send_timeout_s
        )

    async def __aenter__(self) -> Self:
        await self.web.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.web.close()

    @property
    def source(self) -> str:
        """The inbox's name for this bot's updates."""
        return f"telegram:{self._bot_id}"

    @property
    def username(self) -> str:
        """The bot's @name without the @; empty until `connect`."""
        return self._username

    @property
    def trouble(self) -> ChannelTrouble | None:
        """Return what keeps messages from coming in just now."""
        return self.updates.trouble

    # --- coming in -------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Asks who we are, as long as it takes. Raises TelegramRefused for a bad token."""
        self._username = await self.updates.who_we_are()
        log.info("telegram.connected", bot=self._username)

    async def serve(self, inbox: Intake) -> None:
        """Take updates in until cancelled. Raise SettingsWrong (also within an ExceptionGroup) for
        a token that Telegram does not accept, or an address that cannot be listened on."""
        await self.connect()
        async with asyncio.TaskGroup() as group:
            menus = group.create_task(self._menus.keep())
            if self._settings.mode == "webhook":
                await self.listen(inbox)
            else:
                await self.poll(inbox)
            menus.cancel()

    async def poll(self, inbox: Intake) -> None:
        """Poll until cancelled: store, then confirm by the next offset, then act.

        The library's own Updater confirms an update about 10 ms after it arrives, while handlers
        still run. A token that is refused meanwhile is waited out.
        """
        while True:
            updates = await self.updates.polled()
            if not updates:
                continue
            try:
                stored = await self._store(inbox, updates)
            except StorageError as trouble:
                await self.updates.not_stored(trouble)
                continue
            await self.updates.confirm(updates)
            await inbox.handle(self, stored)
            self._menus.look()

    async def listen(self, inbox: Intake) -> None:
        """Take what Telegram posts to the webhook, until cancelled. Raise SettingsWrong where
        nothing can listen, or Telegram refuses the address.

        The settings made sure that there is a secret and an address.
        """
        from aiohttp import web  # here: where updates are asked for, nobody waits for it

        from bot.channels.wire import RefusalLog, listening

        wanted, secret = self._settings, self._settings.webhook_secret.get_secret_value()
        refusals = RefusalLog("webhook.refused", "the secret is missing or wrong")
        one_at_a_time = asyncio.Lock()  # so that their order is kept

        async def receive(request: web.Request) -> web.Response:
            """Check the secret before a byte of the body is read, store, then confirm."""
            given = request.headers.get(SECRET_HEADER, "").encode(errors="surrogateescape")
            if not hmac.compare_digest(given, secret.encode()):
                refusals.tell()
                return web.Response(status=403)
            try:
                update = read_json((await request.read()).decode(errors="replace"))
            except ValueError:
                update = None
            if update_id(update) is None:
                return web.Response(status=400)
            try:
                async with one_at_a_time:
                    await self.take(inbox, [update])
            except StorageError as error:
                log.error("webhook.storage", why=str(error))
                return web.Response(status=503)
            return web.Response(status=200)

        path, at = urlsplit(wanted.webhook_url).path or "/", wanted.webhook_listen
        async with listening(receive, path=path, listen=at, setting="telegram.webhook_listen"):
            await self.updates.set_webhook(wanted.webhook_url, secret=secret)
            log.info("webhook.listening", listen=at, updates=ALLOWED_UPDATES)
            await self.updates.keep_webhook(wanted.webhook_url, secret=secret)

    async def fetch_waiting(self, inbox: Intake) -> None:
        """Takes in what waits at Telegram now, and confirms it; for `run --once`.

        Raises TelegramRefused; Temporary when Telegram does not give it now.
        """
        await self.connect()
        await self.updates.fetch_waiting(partial(self.take, inbox))

    async def take(self, inbox: Intake, updates: Sequence[Any]) -> None:
        """Stores updates, then acts on them. Raises StorageError before anything is confirmed."""
        await inbox.handle(self, await self._store(inbox, updates))
        self._menus.look()

    async def _store(self, inbox: Intake, updates: Sequence[Any]) -> Sequence[StoredEvent]:
        whole = [update for update in updates if update_id(update) is not None]
        if len(whole) < len(updates):
            log.error("telegram.without_id", updates=len(updates) - len(whole))
        return await inbox.store([self._inbound(update) for update in whole])

    def _inbound(self, update: dict[str, Any]) -> InboundEvent:
        """Who and where, read with care: a stranger's update is not looked at any further."""
        sketch = TelegramSketch.of(update)
        return InboundEvent(
            source=self.source,
            event_id=str(update_id(update)),
            address=Address(channel=self.name, chat_id=sketch.chat, thread_id=sketch.thread),
            sender=f"{self.name}:{sketch.sender}" if sketch.sender else None,
            is_group=sketch.is_group,
            link=sketch.link,
            is_press=sketch.is_press,
            sender_name=sketch.name,
            payload=to_payload(update, username=self._username),
        )

    def understand(self, payload: str) -> Understood:
        """A stored update as a message. Raises ValueError when it cannot be read."""
        reading = TelegramParser(
            bot=self.web.bot,
            policy=self._settings.group_policy,
            bot_id=self._bot_id,
            username=self._username,
        )
        return reading.understand(payload)

    # --- going out -------------------------------------------------------------------------------

    def stream_every(self, address: Address) -> float | None:
        """Seconds between edits; groups more slowly, for all of them share one limit."""
        if not self._settings.streaming:
            return None
        if _is_group(address):
            return self._settings.stream_every_group_s
        return self._settings.stream_every_s

    def parts(self, text: str) -> Sequence[MessagePart]:
        """Markdown as Telegram messages."""
        return [
            MessagePart(markup=part.markup, source=part.source)
            for part in telegram_parts(text, limit=TEXT_UNITS_MAX)
        ]

    async def ready(self, address: Address) -> None:
        """Waits for the limits of this chat, of groups, and of the bot."""
        await self._pace.wait(address.chat_id, is_group=_is_group(address))

    async def send(self, address: Address, part: MessagePart) -> Delivery:
        """One new message; plain where the markup is refused."""

        def post(to: Address) -> Awaitable[Any]:
            return posted_text(self.web, "sendMessage", part, **where_to(to), **keyboard(part))

        return await self._delivered(address, post)

    async def _delivered(
        self,
        address: Address,
        post: Callable[[Address], Awaitable[Any]],
        *,
        may_move: bool = True,
    ) -> Delivery:
        """Send a post, once more if the group has a new id, and return what became of it."""
        try:
            sent = await post(address)
        except ChatMigrated as error:
            if not may_move:
                return DeliveryRefused(
                    reason="Telegram says that this group's new id is outdated too"
                )
            moved = replace(address, chat_id=str(error.new_chat_id))
            return await self._delivered(moved, post, may_move=False)
        except TelegramError as error:
            return self._failed(address, error)
        if not isinstance(sent, dict) or not is_id(sent.get("message_id")):
            return InDoubt(reason="Telegram's answer could not be read")
        return SentMessage(message_id=str(sent["message_id"]))

    # --- files and reactions ----------------------------------------------------------------------

    def captioned(self, text: str) -> Sequence[MessagePart]:
        """A caption, and what is left as messages."""
        return captioned(text, limit=TEXT_UNITS_MAX)

    async def send_file(self, address: Address, file: FileOut, part: MessagePart) -> Delivery:
        """As a picture where Telegram shows it as one, else as a document."""
        if len(file.content) > FILE_BYTES_MAX:
            return DeliveryRefused(reason=why_refused("too large"))

        def post(to: Address) -> Awaitable[Any]:
            return posted_file(self.web, to, file, part)

        done = await self._delivered(address, post)
        return (
            DeliveryRefused(reason=why_refused(done.reason))
            if isinstance(done, DeliveryRefused)
            else done
        )

    async def react(self, address: Address, message_id: str, emoji: str) -> Reaction:
        """Telegram has a list of reactions; the nearest is taken."""
        return await put_reaction(self.web, address, message_id, emoji)

    async def acknowledge(self, message: IncomingMessage) -> None:
        """The reaction of `telegram.ack_reaction`, if there is one."""
        if not self._settings.ack_reaction:
            return
        done = await self.react(message.address, message.message_id, self._settings.ack_reaction)
        if not isinstance(done, Reacted):
            log.debug("telegram.not_acknowledged", why=done.reason)

    async def edit(self, address: Address, message_id: str, part: MessagePart) -> EditOutcome:
        """Makes a message read so; the buttons that it has go unless they are named again."""
        where: dict[str, Any] = {"chat_id": address.chat_id, "message_id": int(message_id)}
        if any(part.buttons):
            where["reply_markup"] = inline_keyboard(part.buttons)
        try:
            await posted_text(self.web, "editMessageText", part, **where)
        except ChatMigrated:
            return MessageGone()
        except TelegramError as error:
            done = self._failed(address, error)
            if not isinstance(done, DeliveryRefused) or not isinstance(error, BadRequest):
                return done
            # Whatever else is wrong with this message, a new one may do; if that is refused too,
            # the row ends there.
            not_modified = "not modified" in str(error).lower()
            return SentMessage(message_id=message_id) if not_modified else MessageGone()
        return SentMessage(message_id=message_id)

    async def remove(self, address: Address, message_id: str) -> EditOutcome:
        """Takes a message away; one of ours, for two days."""
        try:
            await self.web.call(
                "deleteMessage", chat_id=address.chat_id, message_id=int(message_id)
            )
        except ChatMigrated:
            return MessageGone()
        except TelegramError as error:
            done = self._failed(address, error)
            is_gone = isinstance(done, DeliveryRefused) and "not found" in str(error).lower()
            return MessageGone() if is_gone else done
        return SentMessage(message_id=message_id)

    def _failed(
        self, address: Address, error: TelegramError
    ) -> NotSent | InDoubt | DeliveryRefused:
        """Return what a failure means; a pause that Telegram asks for holds for the whole chat."""
        if isinstance(error, RetryAfter):
            self._pace.pause(address.chat_id, seconds(error.retry_after))
        return meaning(error)

    async def fetch(self, attachment: Attachment, *, bytes_max: int) -> bytes:
        """The whole file that came with a message."""
        try:
            about = await self.web.call("getFile", file_id=attachment.ref)
        except RetryAfter as error:
            wait_s = seconds(error.retry_after)
            raise Temporary("Telegram asks for a pause", retry_after_s=wait_s) from error
        except (BadRequest, Forbidden) as error:  # a token is refused by mistake too
            raise FileUnavailable(why_not(str(error))) from error
        except TelegramError as error:
            raise Temporary(why(error)) from error
        return await self._files.fetch(about, bytes_max=bytes_max)

    async def typing(self, address: Address) -> None:
        """Shows "typing" for about five seconds."""
        try:
            await self.web.call("sendChatAction", action=ChatAction.TYPING, **where_to(address))
        except TelegramError as error:
            log.debug("telegram.typing", why=why(error))

    async def answered(self, pressed: Pressed, text: str) -> None:
        """Ends the turning wheel on the button."""
        shown = callback_answer(text)
        try:
            await self.web.call("answerCallbackQuery", callback_query_id=pressed.press_id, **shown)
        except TelegramError as error:
            log.debug("telegram.press_unanswered", why=why(error))


def _is_group(address: Address) -> bool:
    return address.chat_id.startswith("-")
