"""A stored update of Telegram as a message: what was said, where, and whether it is for us.

Called by `bot.channels.telegram.channel`. An update comes from outside, and what the library raises
for an odd one is not documented; whatever it is ends as a ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import telegram

from bot.channels.base import AlbumPart, Ignored, Pressed, Understood
from bot.channels.telegram.api import seconds
from bot.channels.telegram.wire import FORWARDED_BEFORE, from_payload, is_id, topic
from memory.records.messages import (
    QUOTE_CHARS_MAX,
    SOMEBODY_ELSE,
    Address,
    Attachment,
    IncomingMessage,
    forwarded_from,
)
from memory.records.rows import NewMessage

# --- telegram odd -------------------------------------------------------------------------------
#
# Kinds of Telegram messages that are neither text nor a file: places and contacts become text, the
# others have a name. Called before the library reads an update: it fails where one lacks a field.

CHARS_MAX = 200
"""Of a name or an address, which somebody else may have written."""

_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "checklist": "checklists",
        "contact": "this contact",
        "dice": "dice",
        "game": "games",
        "giveaway": "giveaways",
        "giveaway_winners": "giveaways",
        "invoice": "invoices",
        "location": "this place",
        "paid_media": "paid media",
        "poll": "polls",
        "story": "stories",
        "venue": "this place",
    }
)
_HOLDERS = ("message", "edited_message")


@dataclass(frozen=True, slots=True, kw_only=True)
class OddKind:
    """`text` is what a message of such a kind says, `name` what it is where that is nothing.
    `source` names where its words come from, empty where they are the sender's own: who shares a
    contact or a venue passes on names that somebody else chose (threat T12)."""

    name: str = ""
    text: str = ""
    source: str = ""


def without_odd_kinds(update: dict[str, Any]) -> tuple[dict[str, Any], OddKind]:
    """The update without them, also in what its message replies to; and what it had. Never
    raises."""
    for holder in _HOLDERS:
        body = update.get(holder)
        if not isinstance(body, dict):
            continue
        bare = _bare(body)
        if isinstance(body.get("reply_to_message"), dict):
            bare["reply_to_message"] = _bare(body["reply_to_message"])
        name = next((_NAMES[key] for key in _NAMES if body.get(key) is not None), "")
        text, source = _place(body) or _contact(body.get("contact")) or ("", "")
        return {**update, holder: bare}, OddKind(name=name, text=text, source=source)
    return update, OddKind()


def _bare(body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in _NAMES}


def _place(body: dict[str, Any]) -> tuple[str, str] | None:
    """Text and source. Coordinates are the sender's own; title and address of a venue are not."""
    found = body.get("venue")
    venue = found if isinstance(found, dict) else {}
    at = body.get("location") or venue.get("location")
    if not isinstance(at, dict):
        return None
    latitude, longitude = at.get("latitude"), at.get("longitude")
    if not _is_degrees(latitude, 90) or not _is_degrees(longitude, 180):
        return None
    text = f"location: {latitude}, {longitude}"
    named = ", ".join(filter(None, (_line(venue.get(key)) for key in ("title", "address"))))
    return (f"{text} ({named})", "the listing of a place") if named else (text, "")


def _contact(found: object) -> tuple[str, str] | None:
    if not isinstance(found, dict):
        return None
    name = " ".join(filter(None, (_line(found.get(key)) for key in ("first_name", "last_name"))))
    shown = ", ".join(filter(None, (name, _line(found.get("phone_number")))))
    return (f"contact: {shown}", "a shared contact") if shown else None


def _is_degrees(value: object, most: int) -> bool:
    return type(value) in {int, float} and -most <= value <= most  # type: ignore[operator]


def _line(value: object) -> str:
    """On one line, whole characters alone."""
    if not isinstance(value, str):
        return ""
    whole = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return " ".join(whole.split())[:CHARS_MAX]


NAME = "telegram"
"""The channel, as addresses name it."""

CANNOT_READ = "I cannot read {kind}: tell me in words, or by a picture, what you want of me."

GroupPolicy = Literal["mention", "all", "off"]

_KINDS = ("document", "voice", "audio", "video", "video_note", "animation", "sticker")
_COMMAND = re.compile(r"/[A-Za-z0-9_]+(?:@([A-Za-z0-9_]+))?(?!\S)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramParser:
    """Who we are to those who write, and which of a group's messages are for us."""

    bot: telegram.Bot
    policy: GroupPolicy
    bot_id: int
    username: str
    """Ours, without the @. Empty before Telegram was asked: then the one stored with an update."""

    def understand(self, payload: str) -> Understood:
        """A stored update as a message. Raises ValueError when it cannot be read.

        Each error named here was seen in the fuzz test.
        """
        try:
            raw, username = from_payload(payload)
            raw, told = without_odd_kinds(raw)
            update = telegram.Update.de_json(raw, self.bot)
            if update.callback_query is not None:
                return self._press(update.callback_query)
            message = update.message or update.edited_message
            if message is None:
                return Ignored(reason="not a message")
            edited = update.message is None
            return self._message(message, told, edited=edited, us=self.username or username)
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

    def _message(
        self, message: telegram.Message, told: OddKind, *, edited: bool, us: str
    ) -> Understood:
        sender = message.from_user
        if sender is None or sender.is_bot:
            return Ignored(reason="not from a person")
        text = _text(message.text or message.caption) or told.text
        found = [("photo", message.photo[-1])] if message.photo else []
        found += [(kind, item) for kind in _KINDS if (item := getattr(message, kind)) is not None]
        attachments = tuple(
            Attachment(
                kind=kind,
                ref=_text(item.file_id),
                name=_text(getattr(item, "file_name", None)),
                size_bytes=int(item.file_size or 0),
                seconds=int(seconds(getattr(item, "duration", None) or 0)),
            )
            for kind, item in found
        )
        if told.text and edited:
            return Ignored(reason="a place that moves")  # a live location does so every few seconds
        if not text and not attachments:
            return _not_read(message, "" if edited else told.name)
        is_group = message.chat.type != "private"
        mentions = self._mentions(message, us)
        forwarded = _forwarded(message) or (forwarded_from(told.source) if told.source else "")
        reply = _reply(message)
        quote = message.quote.text if message.quote else reply and (reply.text or reply.caption)
        reason = self._not_for_us(mentions, "" if forwarded else text, us) if is_group else ""
        album = _text(message.media_group_id)
        if reason and not (album and self.policy == "mention"):
            return Ignored(reason=reason)
        read = IncomingMessage(
            address=_address(message),
            message_id=_id(message.message_id),
            sender_id=_id(sender.id),
            sender_name=_text(sender.full_name),
            text=text,
            attachments=attachments,
            quote=_text(quote)[:QUOTE_CHARS_MAX],
            sent_at_ms=int(message.date.timestamp() * 1000),
            is_group=is_group,
            mentions_bot=mentions,
            edited=edited,
            chat_title=_text(message.chat.title),
            forwarded=forwarded,
            sender_language=_text(sender.language_code),
            reply_to=_id(reply.message_id) if reply else "",
        )
        return AlbumPart(message=read, album=album, addressed=not reason) if album else read

    def _press(self, query: telegram.CallbackQuery) -> Understood:
        message = query.message
        if query.from_user.is_bot or message is None or query.data is None:
            return Ignored(reason="not a button of ours")
        if message.chat.type != "private" and self.policy == "off":
            return Ignored(reason="groups are off")
        return Pressed(
            address=_address(message),
            message_id=_id(message.message_id),
            sender=f"{NAME}:{_id(query.from_user.id)}",
            data=_text(query.data),
            press_id=_text(query.id),
        )

    def _not_for_us(self, mentions: bool, text: str, us: str) -> str:
        """Why a group's message is left alone; empty when it is for us."""
        command = _COMMAND.match(text)
        if command is not None and command[1] and command[1].lower() != us.lower():
            return "for another bot"
        match self.policy:
            case "off":
                return "groups are off"
            case "all":
                return ""
            case "mention":
                return "" if mentions or command is not None else "not addressed"

    def _mentions(self, message: telegram.Message, us: str) -> bool:
        """Return whether the bot is meant: by @name, by a link to it, by a command, or by a
        reply."""
        reply = _reply(message)
        replied_to = reply.from_user if reply is not None else None
        if replied_to is not None and replied_to.id == self.bot_id:
            return True
        ours = f"@{us}".lower()
        entities = {**message.parse_entities(), **message.parse_caption_entities()}
        for entity, words in entities.items():
            if entity.type == "text_mention" and entity.user and entity.user.id == self.bot_id:
                return True
            if entity.type == "mention" and words.lower() == ours:
                return True
            if entity.type == "bot_command" and words.lower().endswith(ours):
                return True
        return False


def _address(message: telegram.MaybeInaccessibleMessage) -> Address:
    # A message that is old comes without anything but its place.
    thread_id = None
    if isinstance(message, telegram.Message):
        thread_id = topic(message.is_topic_message, message.message_thread_id)
    return Address(channel=NAME, chat_id=_id(message.chat.id), thread_id=thread_id)


def _not_read(message: telegram.Message, kind: str) -> Ignored:
    """In a private chat it is said once what of a message cannot be read; a service message says
    nothing that anybody wrote."""
    if not kind or message.chat.type != "private" or message.from_user is None:
        return Ignored(reason="nothing to read in it")
    lane = _address(message).key
    return Ignored(
        reason=f"cannot be read: {kind}",
        sender=f"{NAME}:{_id(message.from_user.id)}",
        reply=NewMessage(lane=lane, text=CANNOT_READ.format(kind=kind)),
    )


def _reply(message: telegram.Message) -> telegram.Message | None:
    """Return what a message replies to. In a topic every message "replies" to the service message
    that opened the topic: that is no reply."""
    reply = message.reply_to_message
    return None if reply is None or reply.forum_topic_created is not None else reply


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


def _forwarded(message: telegram.Message) -> str:
    """Whose words a message holds that its sender did not write; empty where the sender did."""
    match message.forward_origin:
        case None:
            # Who wrote what was sent in the sender's name without being forwarded: an inline bot
            # (whose result the sender only picks), a bot of their business, a channel.
            bot = message.via_bot or message.sender_business_bot
            if bot is not None:
                called = f"@{_text(bot.username)}" if bot.username else _text(bot.full_name)
                return forwarded_from(f"the bot {called}")
            if message.sender_chat is not None:
                return forwarded_from(_text(message.sender_chat.effective_name))
            return SOMEBODY_ELSE if message.api_kwargs.get(FORWARDED_BEFORE) else ""
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
