"""How a file goes out to Telegram: as a picture or as a document, with which caption, and what a
refusal means. Called by `bot.telegram`; knows nothing of the library."""

from __future__ import annotations

from collections.abc import Sequence

from agent.signatures import picture_of
from bot.channel import FileOut, MessagePart
from bot.markup import Part, telegram_parts

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
    """Whether Telegram shows it as a picture; all else goes as a document."""
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
    return [_message(part) for part in (first, *rest)]


def upload_s(file: FileOut, *, usual_s: float) -> float:
    """Seconds that one upload may take."""
    return usual_s + len(file.content) / BYTES_A_S


def is_about_markup(error: str) -> bool:
    """Whether a refusal is about the caption's markup, so that it may go plain."""
    return any(word in error.lower() for word in _ABOUT_MARKUP)


def is_about_picture(error: str) -> bool:
    """Whether a refusal is about the picture itself, so that it may go as a document."""
    return any(word in error.upper() for word in ("PHOTO", "IMAGE")) and "RIGHTS" not in (
        error.upper()
    )


def why_refused(error: str) -> str:
    """The end of a sentence for the person: why a file did not arrive."""
    said = error.lower()
    if "too large" in said or "too big" in said:
        return "Telegram takes no file of more than 50 MB from a bot"
    if "rights" in said or "forbidden" in said:
        return f"Telegram does not let me send files in this chat ({error})"
    return f"Telegram refuses it ({error})"


def _message(part: Part) -> MessagePart:
    return MessagePart(markup=part.markup, source=part.source)
