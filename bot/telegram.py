"""Telegram, by python-telegram-bot with a poll loop of our own. The only file that knows it.

The library's own Updater confirms an update about 10 ms after it arrives, while handlers still
run (DESIGN §2); here an update is in the inbox before the next offset confirms it.
"""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Literal, Self

import httpx
import structlog
import telegram
from telegram.constants import ChatAction, ParseMode
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)
from telegram.request import HTTPXRequest
from telegram.warnings import PTBUserWarning

from agent.errors import Permanent, StorageError
from agent.messages import QUOTE_CHARS_MAX, Address, Attachment, IncomingMessage
from agent.ports import Clock
from bot.channel import (
    Delivery,
    EditOutcome,
    Ignored,
    InDoubt,
    MessageGone,
    MessagePart,
    NotSent,
    Refused,
    Sent,
    Understood,
)
from bot.door import Door, Knock
from bot.markup import telegram_parts
from bot.pace import Pace, Rates

log = structlog.get_logger()

ALLOWED_UPDATES = ["message", "edited_message", "my_chat_member"]

TEXT_UNITS_MAX = 4_096 - 24
"""Telegram's limit in UTF-16 units, less room for the mark of a second copy."""

TROUBLE_PAUSES_S = (1.0, 2.0, 5.0, 10.0, 30.0)
CONFLICT_PAUSES_S = (5.0, 15.0, 30.0, 60.0)

POLL_SLACK_S = 5.0
"""What the answer to a long poll may be late before the connection counts as dead. With the
poll's own 30 s this is well inside the watchdog's 120 s (SPEC §3)."""

GroupPolicy = Literal["mention", "all", "off"]


class TelegramRefused(Permanent):
    """Telegram does not accept the token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramOptions:
    """What the channel needs of the settings. Times in seconds."""

    token: str
    base_url: str = "https://api.telegram.org"
    group_policy: GroupPolicy = "mention"
    streaming: bool = True
    stream_every_s: float = 1.0
    stream_every_group_s: float = 3.0
    poll_timeout_s: int = 30
    send_timeout_s: float = 20.0
    rates: Rates = field(default_factory=Rates)


class TelegramChannel:
    """Implements `bot.channel.Channel`, and takes updates in. An async context manager."""

    name = "telegram"

    def __init__(self, options: TelegramOptions, *, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._pace = Pace(options.rates, clock=clock)
        self._username = ""
        self._bot_id = int(options.token.partition(":")[0])
        self._bot = telegram.Bot(
            options.token,
            base_url=f"{options.base_url}/bot",
            base_file_url=f"{options.base_url}/file/bot",
            request=_request(options.send_timeout_s, connections=64),
            get_updates_request=_request(options.poll_timeout_s + POLL_SLACK_S, connections=1),
        )
        # The library would have every raw call made by its named method; the raw one is the point.
        warnings.filterwarnings("ignore", message="Please use 'Bot.", category=PTBUserWarning)

    async def __aenter__(self) -> Self:
        for request in self._bot._request:  # Bot.initialize also calls getMe, which may fail
            await request.initialize()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for request in self._bot._request:
            await request.shutdown()

    @property
    def source(self) -> str:
        """The inbox's name for this bot's updates."""
        return f"telegram:{self._bot_id}"

    @property
    def username(self) -> str:
        """The bot's @name without the @; empty until `connect`."""
        return self._username

    # --- coming in -------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Asks who we are, as long as it takes. Raises TelegramRefused for a bad token."""
        tries = 0
        while True:
            try:
                me = await self._raw("getMe")
            except (InvalidToken, Forbidden) as error:
                raise TelegramRefused(
                    "Telegram does not accept the token (telegram.token). Ask @BotFather for the "
                    "right one with /token, and put it into config.toml or "
                    "HEARTHBOT_TELEGRAM__TOKEN."
                ) from error
            except TelegramError as error:
                pause_s = TROUBLE_PAUSES_S[min(tries, len(TROUBLE_PAUSES_S) - 1)]
                if tries == 0:
                    log.warning("telegram.unreachable", why=_why(error))
                tries += 1
                await self._clock.sleep(pause_s)
                continue
            self._username = str(me.get("username") or "")
            log.info("telegram.connected", bot=self._username)
            return

    async def announce(self, commands: Sequence[tuple[str, str]]) -> None:
        """Registers the command menu; failing that, the bot works without one."""
        menu = [{"command": name, "description": text} for name, text in commands]
        try:
            await self._raw("setMyCommands", commands=menu)
        except TelegramError as error:
            log.warning("telegram.no_menu", why=_why(error))

    async def poll(self, door: Door) -> None:
        """Long polling until cancelled. Raises TelegramRefused when the token is taken back."""
        poll = _Poll(self, door, self._clock)
        await poll.run()

    async def fetch_waiting(self, door: Door) -> None:
        """Takes in what waits at Telegram now, and confirms it; for `run --once`."""
        offset: int | None = None
        while updates := await self.get_updates(offset, timeout_s=0):
            await self.take(door, updates)
            offset = int(updates[-1]["update_id"]) + 1

    async def take(self, door: Door, updates: Sequence[dict[str, Any]]) -> None:
        """Stores updates, then acts on them. Raises StorageError before anything is confirmed."""
        stored = await door.store([self._knock(update) for update in updates])
        await door.handle(self, stored)

    def _knock(self, update: dict[str, Any]) -> Knock:
        """Who and where, read with care: a stranger's update is not looked at any further."""
        sketch = _Sketch.of(update)
        return Knock(
            source=self.source,
            event_id=str(update.get("update_id")),
            address=Address(channel=self.name, chat_id=sketch.chat, thread_id=sketch.thread),
            sender=f"{self.name}:{sketch.sender}" if sketch.sender else None,
            is_group=sketch.is_group,
            payload=json.dumps(update, ensure_ascii=False),
        )

    def understand(self, payload: str) -> Understood:
        """A stored update as a message. Raises ValueError when it cannot be read."""
        try:
            update = telegram.Update.de_json(json.loads(payload), self._bot)
            message = update.message or update.edited_message
            if message is None:
                return Ignored(reason="not a message")
            return self._message(message, edited=update.edited_message is not None)
        except (AttributeError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error

    def _message(self, message: telegram.Message, *, edited: bool) -> Understood:
        sender = message.from_user
        if sender is None or sender.is_bot:
            return Ignored(reason="not from a person")
        text = message.text or message.caption or ""
        attachments = _attachments(message)
        if not text and not attachments:
            return Ignored(reason="nothing to read in it")
        is_group = message.chat.type in {"group", "supergroup"}
        mentions = self._mentions(message, text)
        if is_group and (reason := self._not_for_us(mentions, text)):
            return Ignored(reason=reason)
        return IncomingMessage(
            address=Address(
                channel=self.name,
                chat_id=str(message.chat.id),
                thread_id=_topic(message.is_topic_message, message.message_thread_id),
            ),
            message_id=str(message.message_id),
            sender_id=str(sender.id),
            sender_name=sender.full_name,
            text=text,
            attachments=attachments,
            quote=_quote(message),
            sent_at_ms=int(message.date.timestamp() * 1000),
            is_group=is_group,
            mentions_bot=mentions,
            edited=edited,
            chat_title=message.chat.title or "",
        )

    def _not_for_us(self, mentions: bool, text: str) -> str:
        match self._options.group_policy:
            case "off":
                return "groups are off"
            case "all":
                return ""
            case "mention":
                if mentions or (text.startswith("/") and "@" not in text.split(maxsplit=1)[0]):
                    return ""
                return "not addressed"

    def _mentions(self, message: telegram.Message, text: str) -> bool:
        """Whether the bot is meant: by @name, by a link to it, by a command, or by a reply."""
        reply = message.reply_to_message
        if reply is not None and reply.from_user is not None and reply.from_user.id == self._bot_id:
            return not _is_topic_start(reply)
        ours = f"@{self._username}".lower()
        entities = {**message.parse_entities(), **message.parse_caption_entities()}
        for entity, words in entities.items():
            if entity.type == "text_mention" and entity.user and entity.user.id == self._bot_id:
                return True
            if entity.type == "mention" and words.lower() == ours:
                return True
            if entity.type == "bot_command" and words.lower().endswith(ours):
                return True
        return False

    # --- going out -------------------------------------------------------------------------------

    def stream_every(self, address: Address) -> float | None:
        """Seconds between edits; groups more slowly, for all of them share one limit."""
        if not self._options.streaming:
            return None
        if _is_group(address):
            return self._options.stream_every_group_s
        return self._options.stream_every_s

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
        where = _where(address)
        try:
            sent = await self._marked_up("sendMessage", part, **where)
        except RetryAfter as error:
            seconds = _seconds(error.retry_after)
            self._pace.pause(address.chat_id, seconds)
            return NotSent(reason="Telegram asks for a pause", retry_after_s=seconds)
        except ChatMigrated as error:
            return await self.send(replace(address, chat_id=str(error.new_chat_id)), part)
        except (BadRequest, Forbidden, InvalidToken) as error:
            return Refused(reason=_why(error))
        except TelegramError as error:
            if isinstance(error, NetworkError) and _surely_not_sent(error):
                return NotSent(reason=_why(error))
            return InDoubt(reason=_why(error))
        if not isinstance(sent, dict) or "message_id" not in sent:
            return InDoubt(reason="Telegram's answer could not be read")
        return Sent(message_id=str(sent["message_id"]))

    async def edit(self, address: Address, message_id: str, part: MessagePart) -> EditOutcome:
        """Makes a message read so."""
        where = {"chat_id": address.chat_id, "message_id": int(message_id)}
        try:
            await self._marked_up("editMessageText", part, **where)
        except RetryAfter as error:
            return NotSent(
                reason="Telegram asks for a pause", retry_after_s=_seconds(error.retry_after)
            )
        except BadRequest as error:
            if "not modified" in str(error).lower():
                return Sent(message_id=message_id)
            if "to edit not found" in str(error) or "can't be edited" in str(error):
                return MessageGone()
            return Refused(reason=_why(error))
        except (Forbidden, InvalidToken) as error:
            return Refused(reason=_why(error))
        except TelegramError as error:
            return InDoubt(reason=_why(error))
        return Sent(message_id=message_id)

    async def typing(self, address: Address) -> None:
        """Shows "typing" for about five seconds."""
        try:
            await self._raw("sendChatAction", action=ChatAction.TYPING, **_where(address))
        except TelegramError as error:
            log.debug("telegram.typing", why=_why(error))

    async def _marked_up(self, method: str, part: MessagePart, **where: Any) -> Any:
        try:
            return await self._raw(method, text=part.markup, parse_mode=ParseMode.HTML, **where)
        except BadRequest as error:
            if "parse entities" not in str(error) and "too long" not in str(error):
                raise
            log.warning("telegram.markup_refused", why=_why(error))
            return await self._raw(method, text=part.source, **where)

    async def _raw(self, method: str, **arguments: Any) -> Any:
        """The library's request layer and errors, without making objects that nobody reads."""
        return await self._bot.do_api_request(method, api_kwargs=arguments)

    async def get_updates(
        self, offset: int | None, *, timeout_s: int | None = None
    ) -> list[dict[str, Any]]:
        """One long poll of `poll_timeout_s`, unless another time is given."""
        timeout_s = self._options.poll_timeout_s if timeout_s is None else timeout_s
        arguments: dict[str, Any] = {"timeout": timeout_s, "allowed_updates": ALLOWED_UPDATES}
        if offset is not None:
            arguments["offset"] = offset
        async with asyncio.timeout(timeout_s + 2 * POLL_SLACK_S):
            updates = await self._bot.do_api_request(
                "getUpdates", api_kwargs=arguments, read_timeout=timeout_s + POLL_SLACK_S
            )
        if not isinstance(updates, list):
            raise NetworkError(f"getUpdates answered with {type(updates).__name__}, not a list")
        return updates

    async def set_webhook(self, url: str, *, secret: str) -> None:
        """Has Telegram post updates to `url`, as long as it takes. Raises TelegramRefused."""
        tries = 0
        while True:
            try:
                await self._raw(
                    "setWebhook", url=url, secret_token=secret, allowed_updates=ALLOWED_UPDATES
                )
            except BadRequest as error:
                raise TelegramRefused(
                    f"Telegram refuses the address in telegram.webhook_url: {error}"
                ) from error
            except TelegramError as error:
                log.warning("telegram.webhook_not_set", why=_why(error))
                await self._clock.sleep(TROUBLE_PAUSES_S[min(tries, len(TROUBLE_PAUSES_S) - 1)])
                tries += 1
                continue
            return

    def forget_webhook(self) -> Any:
        """Polling needs that no webhook is set; waiting updates are kept."""
        return self._raw("deleteWebhook", drop_pending_updates=False)


class _Poll:
    """The poll loop: store, then confirm by the next offset; every trouble is waited out."""

    def __init__(self, channel: TelegramChannel, door: Door, clock: Clock) -> None:
        self._channel = channel
        self._door = door
        self._clock = clock
        self._offset: int | None = None
        self._troubles = 0
        self._conflicts = 0

    async def run(self) -> None:
        while True:
            try:
                updates = await self._channel.get_updates(self._offset)
            except (InvalidToken, Forbidden) as error:
                raise TelegramRefused(
                    "Telegram no longer accepts the token: it was revoked. Set the new one and "
                    "start again; nothing that was stored is lost."
                ) from error
            except Conflict as error:
                await self._conflict(error)
                continue
            except RetryAfter as error:
                await self._clock.sleep(_seconds(error.retry_after))
                continue
            except (TelegramError, TimeoutError) as error:
                await self._trouble(error)
                continue
            self._recovered()
            if updates:
                await self._take(updates)

    async def _take(self, updates: list[dict[str, Any]]) -> None:
        """Confirmed only once stored; while storage is in trouble, Telegram keeps them for us."""
        try:
            await self._channel.take(self._door, updates)
        except StorageError as error:
            await self._trouble(error)
            return
        self._offset = int(updates[-1]["update_id"]) + 1

    async def _conflict(self, error: Conflict) -> None:
        if "webhook" in str(error).lower():
            log.warning("telegram.webhook_removed", why="polling is set, so the webhook goes")
            try:
                await self._channel.forget_webhook()
            except TelegramError as trouble:
                await self._trouble(trouble)
            return
        pause_s = CONFLICT_PAUSES_S[min(self._conflicts, len(CONFLICT_PAUSES_S) - 1)]
        self._conflicts += 1
        log.error(
            "telegram.conflict",
            why="another copy of this bot is running with the same token",
            fix="stop the other copy, or give this one a token of its own",
            again_s=pause_s,
        )
        await self._clock.sleep(pause_s)

    async def _trouble(self, error: Exception) -> None:
        pause_s = TROUBLE_PAUSES_S[min(self._troubles, len(TROUBLE_PAUSES_S) - 1)]
        if self._troubles == 0:
            log.warning("telegram.trouble", why=_why(error))
        self._troubles += 1
        if not (isinstance(error, TimedOut) and self._troubles == 1):
            await self._clock.sleep(pause_s)

    def _recovered(self) -> None:
        if self._troubles > 1 or self._conflicts:
            log.info("telegram.recovered", after=self._troubles + self._conflicts)
        self._troubles = self._conflicts = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sketch:
    """Sender and chat of a raw update, whatever its shape."""

    sender: str = ""
    chat: str = "0"
    thread: str | None = None
    is_group: bool = False

    @classmethod
    def of(cls, update: dict[str, Any]) -> _Sketch:
        """Reads defensively: anything unforeseen makes a sketch of nobody."""
        for kind in ALLOWED_UPDATES:
            body = update.get(kind)
            if not isinstance(body, dict):
                continue
            sender, chat = body.get("from"), body.get("chat")
            if not isinstance(sender, dict) or not isinstance(chat, dict):
                continue
            if not isinstance(sender.get("id"), int) or not isinstance(chat.get("id"), int):
                continue
            return cls(
                sender=str(sender["id"]),
                chat=str(chat["id"]),
                thread=_topic(body.get("is_topic_message"), body.get("message_thread_id")),
                is_group=chat.get("type") != "private",
            )
        return cls()


class ServerFailed(NetworkError):
    """An HTTP status of 500 and above. The library would make it a text, and log the page."""

    def __init__(self, status: int) -> None:
        super().__init__(f"Telegram answered with HTTP status {status}")
        self.status = status


class _Request(HTTPXRequest):
    """The library's HTTP client, with the status of a failing server kept."""

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        status, payload = await super().do_request(*args, **kwargs)
        if status >= 500:
            raise ServerFailed(status)
        return status, payload


def _request(read_timeout_s: float, *, connections: int) -> HTTPXRequest:
    return _Request(
        connection_pool_size=connections,
        read_timeout=read_timeout_s,
        write_timeout=read_timeout_s,
        connect_timeout=10.0,
        pool_timeout=read_timeout_s,
        httpx_kwargs={"trust_env": True},
    )


def _where(address: Address) -> dict[str, Any]:
    where: dict[str, Any] = {"chat_id": address.chat_id}
    if address.thread_id is not None:
        where["message_thread_id"] = int(address.thread_id)
    return where


def _is_group(address: Address) -> bool:
    return address.chat_id.startswith("-")


def _topic(is_topic: object, thread: object) -> str | None:
    """A topic is a conversation of its own; a thread of replies in a plain group is not."""
    return str(thread) if is_topic and isinstance(thread, int) else None


def _is_topic_start(reply: telegram.Message) -> bool:
    """In a topic every message "replies" to the service message that opened the topic."""
    return reply.forum_topic_created is not None


def _quote(message: telegram.Message) -> str:
    if message.quote is not None:
        return message.quote.text[:QUOTE_CHARS_MAX]
    reply = message.reply_to_message
    if reply is None or _is_topic_start(reply):
        return ""
    return (reply.text or reply.caption or "")[:QUOTE_CHARS_MAX]


def _attachments(message: telegram.Message) -> tuple[Attachment, ...]:
    found: list[Attachment] = []
    if message.photo:
        largest = message.photo[-1]
        found.append(
            Attachment(kind="photo", ref=largest.file_id, size_bytes=largest.file_size or 0)
        )
    for kind in ("document", "voice", "audio", "video", "video_note", "animation", "sticker"):
        item = getattr(message, kind)
        if item is not None:
            found.append(
                Attachment(
                    kind=kind,
                    ref=item.file_id,
                    name=getattr(item, "file_name", None) or "",
                    size_bytes=item.file_size or 0,
                    seconds=_whole_seconds(getattr(item, "duration", None)),
                )
            )
    return tuple(found)


def _whole_seconds(duration: Any) -> int:
    """The library gives seconds as a number, or as a time span in later versions."""
    if duration is None:
        return 0
    return int(duration.total_seconds() if hasattr(duration, "total_seconds") else duration)


def _seconds(retry_after: Any) -> float:
    return float(
        retry_after.total_seconds() if hasattr(retry_after, "total_seconds") else retry_after
    )


def _surely_not_sent(error: NetworkError) -> bool:
    """Whether Telegram cannot have taken the request: no connection was made, or it answered
    that it failed. A gateway's 502 or 504 says nothing about what stands behind it."""
    if isinstance(error, ServerFailed):
        return error.status in {500, 503}
    cause = error.__cause__
    return isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def _why(error: Exception) -> str:
    """One line without the request's URL, which holds the token."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
