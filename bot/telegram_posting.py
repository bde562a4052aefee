"""What is put into a chat of Telegram: texts, files and reactions, each by its call.

Called by `bot.telegram`, which says what became of a post. The rules for files, without the
library, stand in `bot.telegram_sending`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Literal

import structlog
import telegram
from telegram.constants import ParseMode
from telegram.error import BadRequest, TelegramError

from agent.messages import Address
from bot.channel import FileOut, InDoubt, MessagePart, NotSent, Reacted, Reaction, Refused
from bot.telegram_answers import meaning, why
from bot.telegram_raw import inline_keyboard
from bot.telegram_reactions import REACTIONS, telegram_reaction
from bot.telegram_sending import is_about_markup, is_about_picture, is_photo, upload_s
from bot.telegram_web import TelegramWeb

log = structlog.get_logger()

NOT_OUR_MARKUP = ("not found", "not modified", "can't be edited", "rights", "upgraded")
"""Refusals of a place or a message, where the same text without markup would fare no better."""

_NO_PREVIEW: Final[Mapping[str, Any]] = {"link_preview_options": {"is_disabled": True}}
"""Telegram opens no address of a text by itself: a model may have been led to write one that tells
somebody something, and a preview needs no tap."""


async def posted_text(web: TelegramWeb, method: str, part: MessagePart, **where: Any) -> Any:
    """What the call answered; plain where the markup is refused. Raises TelegramError."""
    try:
        return await web.call(
            method, text=part.markup, parse_mode=ParseMode.HTML, **_NO_PREVIEW, **where
        )
    except BadRequest as error:
        if any(words in str(error).lower() for words in NOT_OUR_MARKUP):
            raise
        log.warning("telegram.markup_refused", why=why(error))
        return await web.call(method, text=part.source, **_NO_PREVIEW, **where)


async def posted_file(web: TelegramWeb, to: Address, file: FileOut, part: MessagePart) -> Any:
    """What the call answered: a picture where Telegram shows it as one, else a document.

    Raises TelegramError.
    """
    if is_photo(file):
        try:
            return await _with_caption(web, "photo", to, file, part)
        except BadRequest as error:
            if not is_about_picture(str(error)):
                raise
            log.info("telegram.no_picture", why=why(error))
    return await _with_caption(web, "document", to, file, part)


async def _with_caption(
    web: TelegramWeb,
    kind: Literal["photo", "document"],
    to: Address,
    file: FileOut,
    part: MessagePart,
) -> Any:
    upload = {kind: telegram.InputFile(file.content, filename=file.name), **where_to(to)}
    marked = {"caption": part.markup, "parse_mode": ParseMode.HTML}
    send = partial(web.call_within, upload_s(file, usual_s=web.call_s), f"send{kind.capitalize()}")
    if not part.source.strip():
        return await send(upload)
    try:
        return await send(upload | marked)
    except BadRequest as error:
        if not is_about_markup(str(error)):
            raise
        log.warning("telegram.markup_refused", why=why(error))
        return await send(upload | {"caption": part.source})


async def put_reaction(web: TelegramWeb, address: Address, message_id: str, emoji: str) -> Reaction:
    """Telegram has a list of reactions; the nearest is taken."""
    sign = telegram_reaction(emoji)
    if not sign:
        return Refused(reason=f"Telegram has no reaction {emoji!r}; it has {' '.join(REACTIONS)}")
    if not message_id.isascii() or not message_id.isdecimal():
        return Refused(reason=f"there is no message {message_id!r} in this chat")
    try:
        await web.call(
            "setMessageReaction",
            chat_id=address.chat_id,
            message_id=int(message_id),
            reaction=[{"type": "emoji", "emoji": sign}],
        )
    except TelegramError as error:
        match meaning(error):
            case NotSent() as later:
                return later
            case InDoubt(reason=reason):  # it may be repeated without harm
                return NotSent(reason=reason)
            case Refused(reason=reason):
                return Refused(reason=f"Telegram does not take this reaction here ({reason})")
    return Reacted(shown=sign)


def keyboard(part: MessagePart) -> dict[str, Any]:
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


def where_to(address: Address) -> dict[str, Any]:
    """An address as calls want it."""
    where: dict[str, Any] = {"chat_id": address.chat_id}
    if address.thread_id is not None:
        where["message_thread_id"] = int(address.thread_id)
    return where
