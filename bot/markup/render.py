"""What a model wrote, made fit to send: Markdown parsed once, rendered and cut for a platform.

Channels call this for each reply, and again for every edit of a streamed one; text may therefore
end anywhere, and an open fence or emphasis is read as CommonMark reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.markup import telegram as markup_telegram
from bot.markup.cut import Room, Run, blank, cut, utf16_length
from bot.markup.layout import TextPiece, flow
from bot.markup.tree import Block

__all__ = ["RenderedPart", "slack_parts", "telegram_parts", "utf16_length"]

TELEGRAM_UNITS_MAX = 4_096  # UTF-16 units after parsing: the Bot API's limit of sendMessage

SLACK_CHARS_MAX = 4_000  # of an edit's text; a message may have more, but then could not be edited
SLACK_SHARES = (1.0, 0.75, 0.5, 0.35, 0.2, 0.1)
"""Parts are made smaller in these steps until each fits with its marks and escapes: `&` takes five
characters, and a mark is written anew on each line."""

_ODD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPart:
    """One message. `source` is the slice of the original text that it shows, sent as it is when
    the platform refuses the markup; the slices join to the original."""

    markup: str
    source: str


def telegram_parts(text: str, *, limit: int = TELEGRAM_UNITS_MAX) -> tuple[RenderedPart, ...]:
    """Telegram HTML in parts of at most `limit` UTF-16 units (64 or more), none of them blank; no
    part for a blank text. Each `source` fits in `limit` too; only white space at its ends, which
    Telegram takes away before it counts, may exceed it, and only after a run of limit/4 of it."""
    source = _tidy(text)
    if blank(source):
        return ()
    room = markup_telegram.room(limit)
    for blocks in (_parsed(source), _plain(source)):
        pieces = flow(blocks, markup_telegram.can_link)
        if parts := _cut(text, source, pieces, room, markup_telegram.html):
            return parts
    return ()


def slack_parts(text: str, *, limit: int = SLACK_CHARS_MAX) -> tuple[RenderedPart, ...]:
    """Slack's mrkdwn in parts of at most `limit` characters (200 or more), marks and escapes
    counted, none of them blank; no part for a blank text. Each `source`, when escaped, fits too."""
    # Here, not above: where there is no Slack, nobody waits for it.
    from bot.markup.slack import escaped

    source = _tidy(text)
    if blank(source):
        return ()
    for blocks in (_parsed(source), _plain(source)):
        for share in SLACK_SHARES:
            parts = _slack(text, source, blocks, int(limit * share))
            if parts and all(_fits_slack(part, limit) for part in parts):
                return parts
    # What no rule can cut, cut anyway: hostile text is shown, and nothing is lost.
    size = limit // 5
    pieces = [source[at : at + size] for at in range(0, len(source), size)]
    return tuple(
        RenderedPart(markup=escaped(piece), source=piece) for piece in pieces if not blank(piece)
    )


def _slack(
    text: str, source: str, blocks: tuple[Block, ...], size: int
) -> tuple[RenderedPart, ...]:
    from bot.markup import slack as markup_slack

    pieces = flow(blocks, markup_slack.can_link)
    return _cut(text, source, pieces, markup_slack.room(size), markup_slack.mrkdwn)


def _fits_slack(part: RenderedPart, limit: int) -> bool:
    from bot.markup.slack import escaped

    plain = escaped(part.source.strip())
    return max(utf16_length(part.markup), utf16_length(plain)) <= limit


def _cut(
    text: str,
    source: str,
    pieces: Sequence[TextPiece],
    room: Room,
    rendered: Callable[[Sequence[Run]], str],
) -> tuple[RenderedPart, ...]:
    """The parts; none when the tree shows nothing, or cannot be cut."""
    if blank("".join(piece.text for piece in pieces)):
        return ()
    return tuple(
        RenderedPart(markup=rendered(section.runs), source=text[section.source])
        for section in cut(pieces, source, room)
    )


def _tidy(text: str) -> str:
    """As many characters as before, for positions must hold: line ends become LF, half surrogates
    U+FFFD, and controls U+0001, which no renderer shows."""
    if _ODD.search(text) is None:
        return text
    text = text.replace("\r\n", " \n").replace("\r", "\n")
    return _ODD.sub(lambda odd: "\ufffd" if odd[0] >= "\ud800" else "\x01", text)


def _parsed(source: str) -> tuple[Block, ...]:
    from bot.markup.parse import parse  # markdown-it-py takes 20 ms to load

    return parse(source)


def _plain(source: str) -> tuple[Block, ...]:
    from bot.markup.parse import plain

    return plain(source)
