"""The flow of a reply as Telegram HTML (https://core.telegram.org/bots/api#html-style)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.markup.runs import Run, Style, Styles, TextMark, shared, utf16_length

HTML_MAX = 16_000  # characters; Telegram refuses very long raw text, at no stated length
ENTITIES_MAX = 100  # those beyond are ignored

_TAGS = {
    TextMark.BOLD: "b",
    TextMark.ITALIC: "i",
    TextMark.STRIKE: "s",
    TextMark.SPOILER: "tg-spoiler",
    TextMark.CODE: "code",
    TextMark.QUOTE: "blockquote",
}
# Telegram silently drops a link whose host has no dot ("localhost"), and makes a web address of
# mailto: (TDLib 1.8); those addresses are written out.
_LINK = re.compile(r"https?://[^/?#]*[^/?#.]\.[^/?#.]|tg://", re.I)
_DROPPED = str.maketrans("", "", "\x01")


def can_link(url: str) -> bool:
    return _LINK.match(url) is not None


def fits(limit: int, markup: str, shown: str, source: str) -> bool:
    """Return whether it is one message of at most `limit` UTF-16 units, marked and plain."""
    return (
        max(utf16_length(shown), utf16_length(source)) <= limit
        and len(markup) <= HTML_MAX
        and markup.count("</") <= ENTITIES_MAX
    )


def allowed(styles: Styles) -> Styles:
    """Code holds no other entity, so inside it only a quotation stays; in a link, code gives way;
    WHOLE shows nothing."""
    marks = {style.mark for style in styles}
    if TextMark.PRE in marks:
        kept = {TextMark.QUOTE, TextMark.PRE}
    elif TextMark.CODE in marks and TextMark.LINK not in marks:
        kept = {TextMark.QUOTE, TextMark.CODE}
    else:
        kept = marks - {TextMark.CODE, TextMark.WHOLE}
    return tuple(style for style in styles if style.mark in kept)


def html(runs: Sequence[Run]) -> str:
    """Balanced HTML: styles that neighbours share stay open from the one to the other."""
    out: list[str] = []
    open_now: list[Style] = []
    for text, styles in runs:
        wanted = allowed(styles)
        kept = shared(open_now, wanted)
        while len(open_now) > kept:
            out.append(_closing(open_now.pop()))
        for style in wanted[kept:]:
            out.append(_opening(style))
            open_now.append(style)
        out.append(_escaped(text))
    out.extend(_closing(style) for style in reversed(open_now))
    return "".join(out)


def _escaped(text: str) -> str:
    text = text.translate(_DROPPED) if "\x01" in text else text
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _opening(style: Style) -> str:
    if style.mark is TextMark.LINK:
        address = _escaped(style.value).replace('"', "&quot;")
        return f'<a href="{address}">'
    if style.mark is TextMark.PRE:
        return f'<pre><code class="language-{style.value}">' if style.value else "<pre>"
    return f"<{_TAGS[style.mark]}>"


def _closing(style: Style) -> str:
    if style.mark is TextMark.LINK:
        return "</a>"
    if style.mark is TextMark.PRE:
        return "</code></pre>" if style.value else "</pre>"
    return f"</{_TAGS[style.mark]}>"
