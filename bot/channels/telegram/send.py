"""What is put into a chat of Telegram: texts, files and reactions, each by its call.

Called by `bot.channels.telegram.channel`, which says what became of a post. The rules for files,
without the library, stand in `bot.channels.telegram.send`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

import structlog
import telegram
from telegram.constants import ParseMode
from telegram.error import BadRequest, TelegramError

from agent.files.sniff import picture_of
from bot.channels.base import (
    DeliveryRefused,
    FileOut,
    InDoubt,
    MessagePart,
    NotSent,
    Reacted,
    Reaction,
)
from bot.channels.telegram.api import TelegramWeb, meaning, why
from bot.channels.telegram.wire import inline_keyboard
from bot.markup.render import telegram_parts
from bot.settings.schema.values import REACTIONS, telegram_reaction
from memory.records.messages import Address

# --- telegram sending ---------------------------------------------------------------------------
#
# How a file goes out to Telegram: as a picture or as a document, with which caption, and what a
# refusal means. Called by `bot.channels.telegram.channel`; knows nothing of the library.

CAPTION_UNITS_MAX = 1_024 - 24
"""Telegram's limit in UTF-16 units, less room for the mark of a second copy."""

FILE_BYTES_MAX = 50_000_000
"""What the Bot API takes of a bot."""

PHOTO_BYTES_MAX = 10_000_000
PHOTO_SIDES_MAX = 10_000
"""Of width and height together, in pixels."""
PHOTO_RATIO_MAX = 20

BYTES_A_S = 50_000
"""So slow an upload may be."""

_FENCES = ("```", "~~~")
_ABOUT_MARKUP = ("parse", "entit", "tag")


def is_photo(file: FileOut) -> bool:
    """Return whether Telegram shows it as a picture; all else goes as a document."""
    if len(file.content) > PHOTO_BYTES_MAX:
        return False
    picture = picture_of(file.content)
    if picture is None or picture.shown == "gif" or not picture.width:
        return False
    longer, shorter = sorted((picture.width, picture.height), reverse=True)
    return longer + shorter <= PHOTO_SIDES_MAX and longer <= PHOTO_RATIO_MAX * shorter


def captioned(text: str, *, limit: int) -> Sequence[MessagePart]:
    """The caption, perhaps blank, and what is left as messages of at most `limit` units."""
    parts = telegram_parts(text, limit=CAPTION_UNITS_MAX)
    if not parts:
        return [MessagePart(markup="", source="")]
    first, rest = parts[0], parts[1:]
    left = text[len(first.source) :]
    # Cut anew the rest makes fewer messages; but what stands in a fence is none without its fence.
    if rest and text.startswith(first.source) and not any(fence in text for fence in _FENCES):
        rest = telegram_parts(left, limit=limit)
    return [MessagePart(markup=part.markup, source=part.source) for part in (first, *rest)]


def why_refused(error: str) -> str:
    """The end of a sentence for the person: why a file did not arrive."""
    said = error.lower()
    if "too large" in said or "too big" in said:
        return "Telegram takes no file of more than 50 MB from a bot"
    if "rights" in said or "forbidden" in said:
        return f"Telegram does not let me send files in this chat ({error})"
    return f"Telegram refuses it ({error})"


log = structlog.get_logger()

NOT_OUR_MARKUP = ("not found", "not modified", "can't be edited", "rights", "upgraded")
"""Refusals of a place or a message, where the same text without markup would fare no better."""

_NO_PREVIEW: Final[Mapping[str, Any]] = {"link_preview_options": {"is_disabled": True}}
"""Telegram opens no address of a text by itself: a model may have been led to write one that tells
somebody something, and a preview needs no tap."""


async def posted_text(web: TelegramWeb, method: str, part: MessagePart, **where: Any) -> Any:
    """Return what the call answered; plain where the markup is refused. Raises TelegramError."""
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
    """Return what the call answered: a picture where Telegram shows it as one, else a document.

    Raises TelegramError.
    """
    if is_photo(file):
        try:
            return await _with_caption(web, "photo", to, file, part)
        except BadRequest as error:
            said = str(error).upper()
            is_about_picture = "PHOTO" in said or "IMAGE" in said
            if not is_about_picture or "RIGHTS" in said:
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
    limit_s = web.call_s + len(file.content) / BYTES_A_S
    send = partial(web.call_within, limit_s, f"send{kind.capitalize()}")
    if not part.source.strip():
        return await send(upload)
    try:
        return await send(upload | marked)
    except BadRequest as error:
        if not any(word in str(error).lower() for word in _ABOUT_MARKUP):
            raise
        log.warning("telegram.markup_refused", why=why(error))
        return await send(upload | {"caption": part.source})


async def put_reaction(web: TelegramWeb, address: Address, message_id: str, emoji: str) -> Reaction:
    """Telegram has a list of reactions; the nearest is taken."""
    sign = telegram_reaction(emoji)
    if not sign:
        return DeliveryRefused(
            reason=f"Telegram has no reaction {emoji!r}; it has {' '.join(REACTIONS)}"
        )
    if not message_id.isascii() or not message_id.isdecimal():
        return DeliveryRefused(reason=f"there is no message {message_id!r} in this chat")
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
            case DeliveryRefused(reason=reason):
                return DeliveryRefused(
                    reason=f"Telegram does not take this reaction here ({reason})"
                )
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
