"""What a model wrote, made fit to send: Markdown rendered for a platform, in parts that it takes.

Channels call this for each reply, and again for every edit of a streamed one; text may therefore
end anywhere, and an open fence or emphasis is read as CommonMark reads it. Cuts are made in the
source, and each part is read for itself: a cut counts as good where both sides read as the whole.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from bot.markup import telegram as markup_telegram
from bot.markup.runs import SEEN, SPACES, UNSEEN, CutPlace, Run, TextMark, utf16_length

__all__ = ["RenderedPart", "slack_parts", "telegram_parts", "utf16_length"]

TELEGRAM_UNITS_MAX = 4_096  # UTF-16 units after parsing: the Bot API's limit of sendMessage

SLACK_CHARS_MAX = 4_000  # of an edit's text; a message may have more, but then could not be edited

SENTENCE, SPACE, POOR, HARD = 3.0, 2.0, 1.0, 0.1
"""How good it is to cut within a line; `bot.markup.parse` says it of lines and blocks."""

TRIES_MAX = 12
"""So often may it turn out, in a part, that the sides of a cut do not read as the whole."""

FORCED_UNITS = 12
"""So few units fit whatever they are: what no rule can cut is cut there, and shown as written."""

_ODD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_PLACES = re.compile(
    r"(?P<sentence>(?<=[.!?…:;])[\"')\]]*[^\S\n]+|(?<=[。！？]))"
    r"|(?P<space>[^\S\n]+|(?<=[、，；]))"
    # A link, code and a bare address, within which is no place.
    r"|(?P<held>!?\[[^\[\]\n]*\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*\)|`[^`\n]+`|https?://\S+)"
)
_WORTH = {"sentence": SENTENCE, "space": SPACE, "held": POOR}
_MARKS = ("***", "**", "*", "__", "_", "~~", "||")


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPart:
    """One message. `source` is the slice of the original text that it shows, sent as it is when
    the platform refuses the markup; the slices join to the original."""

    markup: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Platform:
    """How a platform shows runs. `fits` says whether it takes a markup, which shows so much, and
    its plain source."""

    limit: int
    can_link: Callable[[str], bool]
    markup: Callable[[Sequence[Run]], str]
    fits: Callable[[str, str, str], bool]


def telegram_parts(text: str, *, limit: int = TELEGRAM_UNITS_MAX) -> tuple[RenderedPart, ...]:
    """Telegram HTML in parts of at most `limit` UTF-16 units (64 or more), none of them blank; no
    part for a blank text. Each `source` fits in `limit` too; only white space at its ends, which
    Telegram takes away before it counts, may exceed it, and only after a run of limit/4 of it."""

    can_link, html = markup_telegram.can_link, markup_telegram.html
    fits = partial(markup_telegram.fits, limit)
    return _parts(text, _Platform(limit=limit, can_link=can_link, markup=html, fits=fits))


def slack_parts(text: str, *, limit: int = SLACK_CHARS_MAX) -> tuple[RenderedPart, ...]:
    """Slack's mrkdwn in parts of at most `limit` characters (200 or more), marks and escapes
    counted, none of them blank; no part for a blank text. Each `source`, when escaped, fits too."""
    # Here, not above: where there is no Slack, nobody waits for it.
    from bot.markup.slack import can_link, escaped, mrkdwn

    def fits(markup: str, shown: str, source: str) -> bool:
        return max(utf16_length(markup), utf16_length(escaped(source))) <= limit

    return _parts(text, _Platform(limit=limit, can_link=can_link, markup=mrkdwn, fits=fits))


def _parts(text: str, platform: _Platform) -> tuple[RenderedPart, ...]:
    # As many characters as before: line ends become LF, half surrogates U+FFFD, and controls
    # U+0001, which no renderer shows.
    source = text
    if _ODD.search(text) is not None:
        source = text.replace("\r\n", " \n").replace("\r", "\n")
        source = _ODD.sub(lambda odd: "\ufffd" if odd[0] >= "\ud800" else "\x01", source)
    return tuple(
        RenderedPart(markup=markup, source=text[part])
        for part, markup in _Cutter(source, platform).parts()
    )


class _Cutter:
    """Takes as much as may fit, then steps back to the best place to stop."""

    def __init__(self, source: str, platform: _Platform) -> None:
        self._source = source
        self._platform = platform
        self._end = len(source.rstrip(UNSEEN))
        self._since = CutPlace(at=0)
        """Where the part begins, and how the text reads from there."""
        self._places: list[CutPlace] = []
        """Where it may end."""
        self._whole = ""
        """What is to read, of the part and beyond it."""
        self._tried: dict[int, CutPlace | None] = {}
        """What was found out of places that are not sure, whatever the size of the part."""
        self._failed = 0
        self._is_plain = False
        """Whether it is too much to read, and is shown as it was written."""

    def parts(self) -> Iterator[tuple[slice, str]]:
        while (at := self._since.at) < self._end:
            markup, self._since = self._next(at)
            self._places, self._whole, self._tried = [], "", {}
            self._failed, self._is_plain = 0, False
            yield slice(at, self._since.at), markup

    def _next(self, at: int) -> tuple[str, CutPlace]:
        """One part, and the cut that ends it."""
        source, limit = self._source, self._platform.limit
        found = SEEN.search(source, at)
        assert found is not None, "there is ink before the end"
        size, ink = limit, found.start()
        # Long gaps count for nothing at the ends of a message.
        tail = len(source) if len(source) - self._end < limit // 4 else self._end
        while True:
            begin = at if size == limit and ink - at < limit // 4 else ink
            left = utf16_length(source[begin:tail])
            stop = CutPlace(at=len(source))
            if left > size:
                reach = source[begin : begin + size].encode("utf-16-le")[: 2 * size]
                stop = self._stop(ink, begin + len(reach.decode("utf-16-le", "ignore")))
            if (markup := self._markup(stop, is_last_try=size <= limit // 2)) is not None:
                return markup, stop
            size = max(min(size, left) * 3 // 4, FORCED_UNITS)
            if size == FORCED_UNITS:
                at = ink + size // 2
                stop = CutPlace(at=at if at < self._end else len(source))
                return self._platform.markup([(source[ink : stop.at].rstrip(UNSEEN), ())]), stop

    def _markup(self, stop: CutPlace, *, is_last_try: bool) -> str | None:
        """The part up to there as the platform shows it, if that fits. As it was written where it
        would show nothing, or where less of it did not fit either."""
        raw = self._source[self._since.at : stop.at]
        plain = [(raw.strip(UNSEEN), ())]
        marked = [] if self._is_plain else self._read(self._since, stop.at, stop.mark)
        for runs in (_trimmed(marked), plain):
            markup = self._platform.markup(runs)
            shown = "".join(text for text, _ in runs)
            if SEEN.search(shown) is None:
                continue
            if self._platform.fits(markup, shown, plain[0][0]):
                return markup
            if not is_last_try:
                return None
        return None

    def _read(self, since: CutPlace, until: int, closing: str = "") -> list[Run]:
        from bot.markup.parse import read  # markdown-it-py takes 20 ms to load

        text = self._rest(since, until)
        return read(text.rstrip() + closing if closing else text, self._platform.can_link)

    def _rest(self, since: CutPlace, until: int) -> str:
        text = self._source[since.at : until]
        if since.indent:
            text = re.sub(rf"^ {{1,{since.indent}}}", "", text, flags=re.MULTILINE)
        return since.carry + text

    def _stop(self, ink: int, reach: int) -> CutPlace:
        """The best place up to `reach`, and after the first ink."""
        until = min(len(self._source), self._since.at + 2 * self._platform.limit)
        self._places = self._places or list(self._found(until))
        last = min(reach, self._end - 1)
        half = ink + (last - ink) // 2
        places = [place for place in self._places if ink < place.at <= last]
        places.append(CutPlace(at=_grapheme_start(self._source, last, ink + 1), worth=HARD))
        places.sort(
            key=lambda one: (one.at >= half and one.worth >= SPACE, one.worth, one.at), reverse=True
        )
        for place in places:
            if place.is_sure:
                return place
            if place.at not in self._tried and self._failed < TRIES_MAX:
                self._tried[place.at] = self._as_read(place, until)
            if (found := self._tried.get(place.at)) is not None:
                return found
        return places[0]

    def _as_read(self, place: CutPlace, until: int) -> CutPlace | None:
        """The place if both sides read as the whole does, with what was bold there opened anew."""
        before = self._source[self._since.at : place.at]
        after = self._source[place.at : until]
        self._whole = self._whole or _seen(self._read(self._since, until))
        for mark in ("", *(one for one in _MARKS if one in before and one in after)):
            if self._failed == TRIES_MAX:
                break
            tried = replace(place, mark=mark, carry=place.carry + mark)
            shown = _seen(self._read(self._since, place.at, mark))
            if self._whole == shown + _seen(self._read(tried, until)):
                return tried
            self._failed += 1
        return None

    def _found(self, until: int) -> Iterator[CutPlace]:
        from bot.markup.parse import INSIDE, LINE, cut_lines

        since, at = self._since, self._since.at
        known_lines = cut_lines(self._rest(since, until), block_max=self._platform.limit)
        lines = self._source[at:until].split("\n")
        self._is_plain = not known_lines
        known_lines = known_lines or [CutPlace(worth=LINE, is_sure=True)] * len(lines)
        for line, known in zip(lines, known_lines[-len(lines) :], strict=True):
            indent = 0
            if known.in_fence:
                indent = known.indent + since.indent
            elif known.in_list or since.indent:
                indent = len(line) - len(line.lstrip(" "))
            yield replace(known, at=at, indent=indent)
            for found in _PLACES.finditer(line):
                worth = _WORTH[str(found.lastgroup)]
                yield CutPlace(
                    at=at + (found.start() if found["held"] else found.end()),
                    worth=worth / INSIDE if known.is_held else worth,
                    carry=known.quote,
                    indent=indent,
                    is_sure=known.in_fence,
                )
            at += len(line) + 1


def _seen(runs: Sequence[Run]) -> str:
    return "".join("".join(text.split()) for text, _ in runs)


def _trimmed(runs: Sequence[Run]) -> list[Run]:
    """Without white space at both ends; blank lines are left out, the indent of code is kept."""
    kept = list(runs)
    while kept:
        text, styles = kept[0]
        is_code = any(style.mark is TextMark.PRE for style in styles)
        text = re.sub(r"^(?:[^\S\n]*\n)+", "", text) if is_code else text.lstrip(SPACES)
        kept[0] = (text, styles)
        if text.strip(SPACES):
            break
        del kept[0]
    while kept and not kept[-1][0].strip(SPACES):
        del kept[-1]
    if kept:
        kept[-1] = (kept[-1][0].rstrip(SPACES), kept[-1][1])
    return kept


def _grapheme_start(text: str, inside: int, least: int) -> int:
    """The last boundary between characters as a reader sees them, up to 32 back from `inside`."""
    for place in range(inside, max(least, inside - 32), -1):
        before, after = text[place - 1], text[place : place + 1] or " "
        is_joined = after in "\u200d\u200c" or before == "\u200d"
        is_joined = is_joined or unicodedata.category(after) in ("Mn", "Mc", "Me")
        # Colours of a skin, and the tags of which some flags are made.
        is_joined = is_joined or "\U0001f3fb" <= after <= "\U0001f3ff"
        is_joined = is_joined or "\U000e0020" <= after <= "\U000e007f"
        flags = 0
        while flags < place and "\U0001f1e6" <= text[place - 1 - flags] <= "\U0001f1ff":
            flags += 1
        is_flag = flags % 2 == 1 and "\U0001f1e6" <= after <= "\U0001f1ff"
        if not is_joined and not is_flag:
            return place
    return max(inside, least)
