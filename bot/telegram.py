"""Telegram, by python-telegram-bot with a poll loop of our own. The only file that knows it.

The library's own Updater confirms an update about 10 ms after it arrives, while handlers still
run (DESIGN §2); here an update is in the inbox before the next offset confirms it.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Literal, Self

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

from agent.attached_ports import FileUnavailable
from agent.errors import SettingsWrong, StorageError, Temporary
from agent.messages import (
    QUOTE_CHARS_MAX,
    SOMEBODY_ELSE,
    Address,
    Attachment,
    IncomingMessage,
    forwarded_from,
)
from agent.ports import Clock
from bot.channel import (
    AlbumPart,
    Delivery,
    EditOutcome,
    FileOut,
    Ignored,
    InDoubt,
    MessageGone,
    MessagePart,
    NotSent,
    Pressed,
    Reacted,
    Reaction,
    Refused,
    Sent,
    Understood,
)
from bot.door import Door, Knock
from bot.markup import telegram_parts
from bot.odd_json import read_json
from bot.outage import Outage, Trouble
from bot.pace import Pace, Rates
from bot.telegram_files import TelegramFiles, why_not
from bot.telegram_raw import (
    ALLOWED_UPDATES,
    Sketch,
    callback_answer,
    from_payload,
    inline_keyboard,
    is_id,
    last_id,
    to_payload,
    topic,
    update_id,
)
from bot.telegram_reactions import REACTIONS, telegram_reaction
from bot.telegram_sending import (
    FILE_BYTES_MAX,
    captioned,
    is_about_markup,
    is_about_picture,
    is_photo,
    upload_s,
    why_refused,
)

log = structlog.get_logger()

TEXT_UNITS_MAX = 4_096 - 24
"""Telegram's limit in UTF-16 units, less room for the mark of a second copy."""

CONFLICT_PAUSES_S = (5.0, 15.0, 30.0, 60.0)

POLL_SLACK_S = 5.0
"""What the answer to a long poll may be late before the connection counts as dead. With the
poll's own 30 s this is well inside the watchdog's 120 s (SPEC §3)."""

CALL_LIMITS = 3
"""A call may take so many times `send_timeout_s` in all: the library's limit is one of silence."""

NOT_OUR_MARKUP = ("not found", "not modified", "can't be edited", "rights", "upgraded")
"""Refusals of a place or a message, where the same text without markup would fare no better."""

GroupPolicy = Literal["mention", "all", "off"]


_COMMAND = re.compile(r"/[A-Za-z0-9_]+(?:@([A-Za-z0-9_]+))?(?!\S)")

REVOKED = (
    "Telegram no longer accepts the token: it was revoked. Set the new one and start again; "
    "nothing that was stored is lost."
)


class TelegramRefused(SettingsWrong):
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
    stall_s: float = 120.0
    send_timeout_s: float = 20.0
    rates: Rates = field(default_factory=Rates)
    ack_reaction: str = ""


class TelegramChannel:
    """Implements `bot.channel.Channel`, and takes updates in. An async context manager."""

    name = "telegram"

    def __init__(self, options: TelegramOptions, *, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._pace = Pace(options.rates, clock=clock)
        self._username = ""
        self._bot_id = int(options.token.partition(":")[0])
        self.network = Outage("telegram.trouble", clock)
        self.conflict = Outage("telegram.conflict", clock, pauses_s=CONFLICT_PAUSES_S)
        self._unreachable = Outage("telegram.unreachable", clock)
        self._webhook_not_set = Outage("telegram.webhook_not_set", clock)
        tls = _tls(options.base_url)
        self._polling = _request(options.poll_timeout_s + POLL_SLACK_S, connections=1, tls=tls)
        self._bot = telegram.Bot(
            options.token,
            base_url=f"{options.base_url}/bot",
            base_file_url=f"{options.base_url}/file/bot",
            request=_request(options.send_timeout_s, connections=64, tls=tls),
            get_updates_request=self._polling,
        )
        self._files = TelegramFiles(
            f"{options.base_url}/file/bot{options.token}", silence_s=options.send_timeout_s
        )
        # The library would have every raw call made by its named method; the raw one is the point.
        warnings.filterwarnings("ignore", message="Please use 'Bot.", category=PTBUserWarning)
        # Times come as numbers or as spans (`_seconds`); which of them it is need not be told.
        warnings.filterwarnings("ignore", message=".*datetime.timedelta", category=PTBUserWarning)

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

    @property
    def trouble(self) -> Trouble | None:
        """What keeps messages from coming in just now (`bot.channel.TellsTrouble`)."""
        outages = (self._unreachable, self._webhook_not_set, self.conflict, self.network)
        return next((one.trouble for one in outages if one.trouble is not None), None)

    @property
    def stall_s(self) -> float:
        """So long without an answer to a poll, and its connections are made anew."""
        return self._options.stall_s

    # --- coming in -------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Asks who we are, as long as it takes. Raises TelegramRefused for a bad token."""
        outage = self._unreachable
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
                await _wait(outage, error)
                continue
            if isinstance(me, dict):
                outage.forget()
                self._username = str(me.get("username") or "")
                log.info("telegram.connected", bot=self._username)
                return
            await _wait(outage, NetworkError("getMe answered with something else"))

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
        """Takes in what waits at Telegram now, and confirms it; for `run --once`.

        Raises Temporary when Telegram does not give it now.
        """
        offset: int | None = None
        while True:
            try:
                updates = await self.get_updates(offset, timeout_s=0)
            except Conflict as error:
                raise Temporary(
                    "Telegram gives its messages to another copy of this bot, or to the webhook "
                    "that is set. Stop that copy, or let `hearthbot run` remove the webhook."
                ) from error
            except (TelegramError, TimeoutError) as error:
                raise Temporary(f"Telegram cannot be asked now: {_why(error)}") from error
            if not updates:
                return
            await self.take(door, updates)
            last = last_id(updates)
            if last is None:
                return
            offset = last + 1

    async def take(self, door: Door, updates: Sequence[Any]) -> None:
        """Stores updates, then acts on them. Raises StorageError before anything is confirmed."""
        whole = [update for update in updates if update_id(update) is not None]
        if len(whole) < len(updates):
            log.error("telegram.without_id", updates=len(updates) - len(whole))
        stored = await door.store([self._knock(update) for update in whole])
        await door.handle(self, stored)

    def _knock(self, update: dict[str, Any]) -> Knock:
        """Who and where, read with care: a stranger's update is not looked at any further."""
        sketch = Sketch.of(update)
        return Knock(
            source=self.source,
            event_id=str(update_id(update)),
            address=Address(channel=self.name, chat_id=sketch.chat, thread_id=sketch.thread),
            sender=f"{self.name}:{sketch.sender}" if sketch.sender else None,
            is_group=sketch.is_group,
            link=sketch.link,
            is_press=sketch.is_press,
            payload=to_payload(update, username=self._username),
        )

    def understand(self, payload: str) -> Understood:
        """A stored update as a message. Raises ValueError when it cannot be read.

        What the library raises for an odd update is not documented; each error named here was
        seen in the fuzz test.
        """
        try:
            raw, username = from_payload(payload)
            update = telegram.Update.de_json(raw, self._bot)
            if update.callback_query is not None:
                return self._press(update.callback_query)
            message = update.message or update.edited_message
            if message is None:
                return Ignored(reason="not a message")
            edited = update.message is None
            return self._message(message, edited=edited, us=self._username or username)
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            OSError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as error:
            raise ValueError(type(error).__name__) from error

    def _message(self, message: telegram.Message, *, edited: bool, us: str) -> Understood:
        sender = message.from_user
        if sender is None or sender.is_bot:
            return Ignored(reason="not from a person")
        text = _text(message.text or message.caption)
        attachments = _attachments(message)
        if not text and not attachments:
            return Ignored(reason="nothing to read in it")
        is_group = message.chat.type != "private"
        mentions = self._mentions(message, us)
        forwarded = _forwarded(message)
        reason = self._not_for_us(mentions, "" if forwarded else text, us) if is_group else ""
        album = _text(message.media_group_id)
        if reason and not (album and self._options.group_policy == "mention"):
            return Ignored(reason=reason)
        read = IncomingMessage(
            address=Address(
                channel=self.name,
                chat_id=_id(message.chat.id),
                thread_id=topic(message.is_topic_message, message.message_thread_id),
            ),
            message_id=_id(message.message_id),
            sender_id=_id(sender.id),
            sender_name=_text(sender.full_name),
            text=text,
            attachments=attachments,
            quote=_quote(message),
            sent_at_ms=int(message.date.timestamp() * 1000),
            is_group=is_group,
            mentions_bot=mentions,
            edited=edited,
            chat_title=_text(message.chat.title),
            forwarded=forwarded,
        )
        return AlbumPart(message=read, album=album, addressed=not reason) if album else read

    def _press(self, query: telegram.CallbackQuery) -> Understood:
        message = query.message
        if query.from_user.is_bot or message is None or query.data is None:
            return Ignored(reason="not a button of ours")
        if message.chat.type != "private" and self._options.group_policy == "off":
            return Ignored(reason="groups are off")
        # A message that is old comes without anything but its place.
        whole = message if isinstance(message, telegram.Message) else None
        return Pressed(
            address=Address(
                channel=self.name,
                chat_id=_id(message.chat.id),
                thread_id=topic(whole.is_topic_message, whole.message_thread_id) if whole else None,
            ),
            message_id=_id(message.message_id),
            sender=f"{self.name}:{_id(query.from_user.id)}",
            data=_text(query.data),
            press_id=_text(query.id),
        )

    def _not_for_us(self, mentions: bool, text: str, us: str) -> str:
        """Why a group's message is left alone; empty when it is for us."""
        command = _COMMAND.match(text)
        if command is not None and command[1] and command[1].lower() != us.lower():
            return "for another bot"
        match self._options.group_policy:
            case "off":
                return "groups are off"
            case "all":
                return ""
            case "mention":
                return "" if mentions or command is not None else "not addressed"

    def _mentions(self, message: telegram.Message, us: str) -> bool:
        """Whether the bot is meant: by @name, by a link to it, by a command, or by a reply."""
        reply = message.reply_to_message
        replied_to = reply.from_user if reply is not None and not _is_topic_start(reply) else None
        if replied_to is not None and replied_to.id == self._bot_id:
            return True
        ours = f"@{us}".lower()
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

        def post(to: Address) -> Awaitable[Any]:
            return self._marked_up("sendMessage", part, **_where(to), **_keyboard(part))

        return await self._delivered(address, post, why=_why)

    async def _delivered(
        self,
        address: Address,
        post: Callable[[Address], Awaitable[Any]],
        *,
        why: Callable[[Exception], str],
    ) -> Delivery:
        """What became of a post; `why` says a refusal in words."""
        try:
            sent = await post(address)
        except RetryAfter as error:
            seconds = _seconds(error.retry_after)
            self._pace.pause(address.chat_id, seconds)
            return NotSent(reason="Telegram asks for a pause", retry_after_s=seconds)
        except ChatMigrated as error:
            moved = replace(address, chat_id=str(error.new_chat_id))
            return await self._delivered(moved, post, why=why)
        except (BadRequest, Forbidden, InvalidToken) as error:
            return Refused(reason=why(error))
        except TelegramError as error:
            if isinstance(error, NetworkError) and _surely_not_sent(error):
                return NotSent(reason=_why(error))
            return InDoubt(reason=_why(error))
        if not isinstance(sent, dict) or "message_id" not in sent:
            return InDoubt(reason="Telegram's answer could not be read")
        return Sent(message_id=str(sent["message_id"]))

    # --- files and reactions (bot.channel.SendsFiles, Reacts, Acknowledges) -----------------------

    def captioned(self, text: str) -> Sequence[MessagePart]:
        """A caption, and what is left as messages."""
        return captioned(text, limit=TEXT_UNITS_MAX)

    async def send_file(self, address: Address, file: FileOut, part: MessagePart) -> Delivery:
        """As a picture where Telegram shows it as one, else as a document."""
        if len(file.content) > FILE_BYTES_MAX:
            return Refused(reason=why_refused("too large"))

        async def post(to: Address) -> Any:
            if is_photo(file):
                try:
                    return await self._with_caption("photo", to, file, part)
                except BadRequest as error:
                    if not is_about_picture(str(error)):
                        raise
                    log.info("telegram.no_picture", why=_why(error))
            return await self._with_caption("document", to, file, part)

        return await self._delivered(address, post, why=lambda error: why_refused(_why(error)))

    async def _with_caption(
        self, kind: Literal["photo", "document"], to: Address, file: FileOut, part: MessagePart
    ) -> Any:
        upload = {kind: telegram.InputFile(file.content, filename=file.name), **_where(to)}
        marked = {"caption": part.markup, "parse_mode": ParseMode.HTML}
        send = partial(
            self._within, upload_s(file, usual_s=self._call_s), f"send{kind.capitalize()}"
        )
        if not part.source.strip():
            return await send(upload)
        try:
            return await send(upload | marked)
        except BadRequest as error:
            if not is_about_markup(str(error)):
                raise
            log.warning("telegram.markup_refused", why=_why(error))
            return await send(upload | {"caption": part.source})

    async def react(self, address: Address, message_id: str, emoji: str) -> Reaction:
        """Telegram has a list of reactions; the nearest is taken."""
        sign = telegram_reaction(emoji)
        if not sign:
            return Refused(
                reason=f"Telegram has no reaction {emoji!r}; it has {' '.join(REACTIONS)}"
            )
        if not message_id.isascii() or not message_id.isdecimal():
            return Refused(reason=f"there is no message {message_id!r} in this chat")
        try:
            await self._raw(
                "setMessageReaction",
                chat_id=address.chat_id,
                message_id=int(message_id),
                reaction=[{"type": "emoji", "emoji": sign}],
            )
        except RetryAfter as error:
            return NotSent(
                reason="Telegram asks for a pause", retry_after_s=_seconds(error.retry_after)
            )
        except (BadRequest, Forbidden, InvalidToken) as error:
            return Refused(reason=f"Telegram does not take this reaction here ({_why(error)})")
        except TelegramError as error:
            return NotSent(reason=_why(error))
        return Reacted(shown=sign)

    async def acknowledge(self, message: IncomingMessage) -> None:
        """The reaction of `telegram.ack_reaction`, if there is one."""
        if not self._options.ack_reaction:
            return
        done = await self.react(message.address, message.message_id, self._options.ack_reaction)
        if not isinstance(done, Reacted):
            log.debug("telegram.not_acknowledged", why=done.reason)

    async def edit(self, address: Address, message_id: str, part: MessagePart) -> EditOutcome:
        """Makes a message read so; the buttons that it has go unless they are named again."""
        where: dict[str, Any] = {"chat_id": address.chat_id, "message_id": int(message_id)}
        if any(part.buttons):
            where["reply_markup"] = inline_keyboard(part.buttons)
        try:
            await self._marked_up("editMessageText", part, **where)
        except RetryAfter as error:
            seconds = _seconds(error.retry_after)
            self._pace.pause(address.chat_id, seconds)
            return NotSent(reason="Telegram asks for a pause", retry_after_s=seconds)
        except ChatMigrated:
            return MessageGone()
        except BadRequest as error:
            # Whatever else is wrong with this message, a new one may do; if that is refused too,
            # the row ends there.
            not_modified = "not modified" in str(error).lower()
            return Sent(message_id=message_id) if not_modified else MessageGone()
        except (Forbidden, InvalidToken) as error:
            return Refused(reason=_why(error))
        except TelegramError as error:
            return InDoubt(reason=_why(error))
        return Sent(message_id=message_id)

    async def remove(self, address: Address, message_id: str) -> EditOutcome:
        """Takes a message away (`bot.channel.Removes`); one of ours, for two days."""
        try:
            await self._raw("deleteMessage", chat_id=address.chat_id, message_id=int(message_id))
        except RetryAfter as error:
            seconds = _seconds(error.retry_after)
            return NotSent(reason="Telegram asks for a pause", retry_after_s=seconds)
        except ChatMigrated:
            return MessageGone()
        except (BadRequest, Forbidden, InvalidToken) as error:
            return (
                MessageGone() if "not found" in str(error).lower() else Refused(reason=_why(error))
            )
        except TelegramError as error:
            return InDoubt(reason=_why(error))
        return Sent(message_id=message_id)

    async def fetch(self, attachment: Attachment, *, bytes_max: int) -> bytes:
        """The whole file that came with a message (`bot.channel.FetchesFiles`)."""
        try:
            about = await self._raw("getFile", file_id=attachment.ref)
        except RetryAfter as error:
            wait_s = _seconds(error.retry_after)
            raise Temporary("Telegram asks for a pause", retry_after_s=wait_s) from error
        except (BadRequest, Forbidden, InvalidToken) as error:
            raise FileUnavailable(why_not(str(error))) from error
        except TelegramError as error:
            raise Temporary(_why(error)) from error
        return await self._files.fetch(about, bytes_max=bytes_max)

    async def typing(self, address: Address) -> None:
        """Shows "typing" for about five seconds."""
        try:
            await self._raw("sendChatAction", action=ChatAction.TYPING, **_where(address))
        except TelegramError as error:
            log.debug("telegram.typing", why=_why(error))

    async def answered(self, pressed: Pressed, text: str) -> None:
        """Ends the turning wheel on the button (`bot.channel.AnswersPresses`)."""
        shown = callback_answer(text)
        try:
            await self._raw("answerCallbackQuery", callback_query_id=pressed.press_id, **shown)
        except TelegramError as error:
            log.debug("telegram.press_unanswered", why=_why(error))

    async def _marked_up(self, method: str, part: MessagePart, **where: Any) -> Any:
        try:
            return await self._raw(
                method, text=part.markup, parse_mode=ParseMode.HTML, **_NO_PREVIEW, **where
            )
        except BadRequest as error:
            if any(words in str(error).lower() for words in NOT_OUR_MARKUP):
                raise
            log.warning("telegram.markup_refused", why=_why(error))
            return await self._raw(method, text=part.source, **_NO_PREVIEW, **where)

    async def _raw(self, method: str, **arguments: Any) -> Any:
        """The library's request layer and errors, without making objects that nobody reads."""
        return await self._within(self._call_s, method, arguments)

    @property
    def _call_s(self) -> float:
        return CALL_LIMITS * self._options.send_timeout_s

    async def _within(self, limit_s: float, method: str, arguments: dict[str, Any]) -> Any:
        try:
            async with asyncio.timeout(limit_s):
                return await self._bot.do_api_request(method, api_kwargs=arguments)
        except TimeoutError as error:
            raise TimedOut from error

    async def get_updates(self, offset: int | None, *, timeout_s: int | None = None) -> list[Any]:
        """One long poll of `poll_timeout_s`, unless another time is given."""
        timeout_s = self._options.poll_timeout_s if timeout_s is None else timeout_s
        arguments: dict[str, Any] = {"timeout": timeout_s, "allowed_updates": list(ALLOWED_UPDATES)}
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
        outage = self._webhook_not_set
        wanted = {"url": url, "secret_token": secret, "allowed_updates": list(ALLOWED_UPDATES)}
        while True:
            try:
                await self._raw("setWebhook", **wanted)
                outage.over()
                return
            except BadRequest as error:
                raise TelegramRefused(
                    f"Telegram refuses the address in telegram.webhook_url: {error}"
                ) from error
            except (InvalidToken, Forbidden) as error:
                raise TelegramRefused(REVOKED) from error
            except TelegramError as error:
                await _wait(outage, error)

    async def renew_polling(self) -> None:
        """Gives the connections of the polls up, and has the next one make its own."""
        try:
            async with asyncio.timeout(POLL_SLACK_S):
                await self._polling.shutdown()
        except TimeoutError:
            log.debug("telegram.connection_left")
        await self._polling.initialize()

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
        self._timeouts = 0
        self._heard_at = self._renewed_at = clock.monotonic()
        self._network = channel.network
        self._conflict = channel.conflict
        self._storage = Outage("telegram.not_stored", clock)
        self._webhook = Outage("telegram.webhook_removed", clock, pauses_s=CONFLICT_PAUSES_S)

    async def run(self) -> None:
        while True:
            try:
                updates = await self._channel.get_updates(self._offset)
            except (InvalidToken, Forbidden) as error:
                raise TelegramRefused(REVOKED) from error
            except Conflict as error:
                await self._in_conflict(error)
            except (TimedOut, TimeoutError) as error:
                await self._in_silence(error)
            except TelegramError as error:
                await _wait(self._network, error)
            else:
                self._timeouts = 0
                self._heard_at = self._renewed_at = self._clock.monotonic()
                for outage in (self._network, self._conflict, self._webhook):
                    outage.over()
                if updates:
                    await self._take(updates)

    async def _in_silence(self, error: Exception) -> None:
        """One alone is no outage: a connection that was idle for long may just be dead. After many
        of them it may be our own connections that no longer work, so they are made anew."""
        self._timeouts += 1
        now = self._clock.monotonic()
        since = max(self._heard_at, self._renewed_at)
        if now - since >= self._channel.stall_s and not _is_unconnected(error):
            tell = log.warning if since == self._heard_at else log.debug
            tell("telegram.polling_restarted", silent_s=round(now - self._heard_at))
            await self._channel.renew_polling()
            self._renewed_at = now
        if self._timeouts > 1:
            await _wait(self._network, error)

    async def _take(self, updates: list[Any]) -> None:
        """Confirmed only once stored; while storage is in trouble, Telegram keeps them for us."""
        try:
            await self._channel.take(self._door, updates)
        except StorageError as error:
            await _wait(self._storage, error)
            return
        self._storage.over()
        last = last_id(updates)
        if last is None:
            await _wait(self._network, NetworkError("no update has an id"))
        else:
            self._offset = last + 1

    async def _in_conflict(self, error: Conflict) -> None:
        if "webhook" not in str(error).lower():
            await _wait(
                self._conflict,
                error,
                meaning="another copy of this bot is running with the same token",
                fix="stop the other copy, or give this one a token of its own",
            )
            return
        again = self._webhook.tries > 0
        try:
            await self._channel.forget_webhook()
        except TelegramError as trouble:
            await _wait(self._network, trouble)
            return
        if again:  # somebody sets it as often as we remove it
            await _wait(self._webhook, error)
        else:
            self._webhook.tries = 1
            log.warning("telegram.webhook_removed", why="polling is set, so the webhook goes")


class ServerFailed(NetworkError):
    """An HTTP status of 500 and above. The library would make it a text, and log the page."""

    def __init__(self, status: int) -> None:
        super().__init__(f"Telegram answered with HTTP status {status}")
        self.status = status


class _Request(HTTPXRequest):
    """The library's HTTP client, with the status of a failing server kept, and careful reading."""

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        """The library's own would log what it cannot read, people's messages included."""
        try:
            answer = read_json(payload.decode("utf-8", "replace"))
        except ValueError:
            raise TelegramError("the answer could not be read") from None
        if not isinstance(answer, dict):
            raise TelegramError("the answer is not an object")
        if not isinstance(answer.get("parameters"), dict):
            answer.pop("parameters", None)
        return {"result": None, **answer, "description": str(answer.get("description") or "")}

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        status, payload = await super().do_request(*args, **kwargs)
        if status >= 500:
            raise ServerFailed(status)
        if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:  # the library would call it a failure
            raise BadRequest("Request Entity Too Large")
        return status, payload


def _tls(url: str) -> ssl.SSLContext:
    """One for both clients, as reading the certificates takes a while; without TLS, none are."""
    if url.startswith("http:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.create_ssl_context()


def _request(read_timeout_s: float, *, connections: int, tls: ssl.SSLContext) -> HTTPXRequest:
    return _Request(
        connection_pool_size=connections,
        read_timeout=read_timeout_s,
        write_timeout=read_timeout_s,
        connect_timeout=10.0,
        pool_timeout=read_timeout_s,
        httpx_kwargs={"trust_env": True, "verify": tls},
    )


_NO_PREVIEW: Final[Mapping[str, Any]] = {"link_preview_options": {"is_disabled": True}}
"""Telegram opens no address of a text by itself: a model may have been led to write one that tells
somebody something, and a preview needs no tap."""


def _keyboard(part: MessagePart) -> dict[str, Any]:
    """Buttons under the message; or under the chat, each of which sends its text and which are
    gone after one tap. A message can have but one of them."""
    if any(part.buttons):
        return {"reply_markup": inline_keyboard(part.buttons)}
    if not part.keyboard:
        return {}
    return {
        "reply_markup": {
            "keyboard": [[{"text": text}] for text in part.keyboard],
            "resize_keyboard": True,
            "one_time_keyboard": True,
        }
    }


async def _wait(outage: Outage, error: Exception, **facts: str) -> None:
    """Waits out a trouble, for as long as Telegram wishes where it says so."""
    wished_s = _seconds(error.retry_after) if isinstance(error, RetryAfter) else None
    await outage.wait(_why(error), wished_s=wished_s, facts=facts)


def _where(address: Address) -> dict[str, Any]:
    where: dict[str, Any] = {"chat_id": address.chat_id}
    if address.thread_id is not None:
        where["message_thread_id"] = int(address.thread_id)
    return where


def _is_group(address: Address) -> bool:
    return address.chat_id.startswith("-")


def _is_topic_start(reply: telegram.Message) -> bool:
    """In a topic every message "replies" to the service message that opened the topic."""
    return reply.forum_topic_created is not None


def _text(value: object) -> str:
    """The library takes whatever stands in the update; the core is promised text."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError("not a text")
    try:
        value.encode()
    except UnicodeEncodeError:  # half a character: nobody could store or send it
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def _id(value: object) -> str:
    if not is_id(value):
        raise TypeError("not an id")
    return str(value)


def _quote(message: telegram.Message) -> str:
    if message.quote is not None:
        return _text(message.quote.text)[:QUOTE_CHARS_MAX]
    reply = message.reply_to_message
    if reply is None or _is_topic_start(reply):
        return ""
    return _text(reply.text or reply.caption)[:QUOTE_CHARS_MAX]


def _forwarded(message: telegram.Message) -> str:
    """From whom a message was forwarded; empty when it was not."""
    match message.forward_origin:
        case None:
            return ""
        case telegram.MessageOriginUser(sender_user=user):
            return forwarded_from(_text(user.full_name))
        case telegram.MessageOriginHiddenUser(sender_user_name=name):
            return forwarded_from(_text(name))
        case telegram.MessageOriginChat(sender_chat=chat):
            return forwarded_from(_text(chat.effective_name))
        case telegram.MessageOriginChannel(chat=chat):
            return forwarded_from(_text(chat.effective_name))
        case _:  # a kind that the library does not know yet
            return SOMEBODY_ELSE


def _attachments(message: telegram.Message) -> tuple[Attachment, ...]:
    found = [_attachment("photo", message.photo[-1])] if message.photo else []
    for kind in ("document", "voice", "audio", "video", "video_note", "animation", "sticker"):
        item = getattr(message, kind)
        if item is not None:
            found.append(_attachment(kind, item))
    return tuple(found)


def _attachment(kind: str, item: Any) -> Attachment:
    return Attachment(
        kind=kind,
        ref=_text(item.file_id),
        name=_text(getattr(item, "file_name", None)),
        size_bytes=int(item.file_size or 0),
        seconds=_whole_seconds(getattr(item, "duration", None)),
    )


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


def _is_unconnected(error: Exception) -> bool:
    """Whether there is no way to Telegram at all: no connection that could be made anew."""
    return isinstance(error.__cause__, httpx.ConnectError | httpx.ConnectTimeout)


def _why(error: Exception) -> str:
    """One line without the request's URL, which holds the token."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
