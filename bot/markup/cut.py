"""The flow of a reply cut into parts that fit a platform.

Nothing here knows a platform: its renderer says what a style weighs. Cuts are made in the flow,
so that each knows its place in the source and how good it is.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from bot.markup.layout import BLOCK, GLUED, HELD, LINE, SENTENCE, SPACE, Styles, TextPiece
from bot.markup.tree import Style, TextMark

Run = tuple[str, Styles]

INSIDE = 10  # divides a place's worth inside what should stay whole: a link, a code block
GENERATED_MAX = 2_000  # characters of one piece that is no copy of the source
SPACES = (
    " \t\n\x0b\x0c\r\x01\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
    + "".join(map(chr, range(0x2000, 0x200B)))
)
# What leaves no ink: Telegram refuses a message of these alone as empty.
UNSEEN = (
    SPACES
    + "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u2800\u3164\ufeff\uffa0"
    + "".join(map(chr, [*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)]))
)
_SEEN = re.compile(f"[^{re.escape(UNSEEN)}]")
_PLACES = re.compile(
    r"(?P<line>[^\S\n]*\n\s*)"
    r"|(?P<sentence>(?<=[.!?…:;])[\"')\]]*\s+|(?<=[。！？]))"
    r"|(?P<space>\s+|(?<=[、，；]))"
)
_WORTH = {"line": LINE, "sentence": SENTENCE, "space": SPACE}
_KEEPS = (TextMark.PRE, TextMark.QUOTE)
_WHOLE = (TextMark.LINK, TextMark.CODE, TextMark.WHOLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What one part may hold. `shown` and `source` are UTF-16 units, `markup` is characters.
    `worn` says which of a piece's styles the platform shows, `weigh` how many characters the tags
    of a style take."""

    shown: int
    source: int
    markup: int
    entities: int
    worn: Callable[[Styles], Styles]
    weigh: Callable[[Style], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSection:
    runs: tuple[Run, ...]
    source: slice


def utf16_length(text: str) -> int:
    """UTF-16 units of a text, in which Telegram counts lengths; a lone surrogate is one."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def shared(first: Sequence[Style], second: Sequence[Style]) -> int:
    """How many styles, from the outermost, two neighbours have in common."""
    count = 0
    while count < min(len(first), len(second)) and first[count] == second[count]:
        count += 1
    return count


def blank(text: str) -> bool:
    return _SEEN.search(text) is None


def cut(pieces: Sequence[TextPiece], source: str, room: Room) -> tuple[TextSection, ...]:
    """Parts in order. Their sources join to the whole; each shows something, and fits in `room`,
    where white space at the ends is free of charge.
    None at all when that cannot be, since too much that is not shown stands between two words.
    """
    sections = tuple(_Cutter(_sound(pieces, source, room), source, room).sections())
    return sections if all(_is_within(section, source, room) for section in sections) else ()


def _is_within(section: TextSection, source: str, room: Room) -> bool:
    shown = sum(utf16_length(text) for text, _ in section.runs)
    raw = source[section.source].strip(UNSEEN)
    return shown <= room.shown and utf16_length(raw) <= room.source


def _sound(pieces: Sequence[TextPiece], source: str, room: Room) -> list[TextPiece]:
    """Leads in order from 0, and whatever could not fit in any part shown as it was written."""
    leads = [0]
    for piece in pieces[1:]:
        leads.append(max(leads[-1], piece.lead))
    leads.append(len(source))
    sound: list[TextPiece] = []
    for number, piece in enumerate(pieces):
        sound.append(_fitting(piece, leads[number], leads[number + 1], source, room))
    return [piece for piece in sound if piece.text]


def _fitting(piece: TextPiece, lead: int, end: int, source: str, room: Room) -> TextPiece:
    raw = source[lead:end]
    copied = piece.at is not None and lead <= piece.at <= end - len(piece.text)
    placed = replace(piece, lead=lead, at=piece.at if copied else None)
    if not _too_large(placed, raw.rstrip(SPACES), room):
        return placed
    styles = tuple(style for style in piece.styles if style.mark in _KEEPS)
    return replace(placed, text=raw, at=lead, styles=styles)


def _too_large(piece: TextPiece, raw: str, room: Room) -> bool:
    if len(raw) <= room.source // 4 and len(piece.text) <= room.shown // 4:
        return False
    if piece.at is None:
        most = min(room.shown // 2, room.source // 2, GENERATED_MAX)
        return max(utf16_length(piece.text), utf16_length(raw)) > most
    return utf16_length(raw) - utf16_length(piece.text) > room.source // 2


class _Cutter:
    """Greedy: takes what fits, then steps back to the best place to stop."""

    def __init__(self, pieces: list[TextPiece], source: str, room: Room) -> None:
        self._pieces = pieces
        self._source = source
        self._room = room
        self._text = "".join(piece.text for piece in pieces)
        self._offsets = [0]
        self._tags, self._opened = [0], [0]
        before: Styles = ()
        for piece in pieces:
            worn = room.worn(piece.styles)
            new = worn[shared(before, worn) :]
            self._offsets.append(self._offsets[-1] + len(piece.text))
            self._tags.append(self._tags[-1] + sum(map(room.weigh, new)))
            self._opened.append(self._opened[-1] + len(new))
            before = worn
        self._end = len(self._text.rstrip(UNSEEN))
        gap = re.compile(rf"[{re.escape(UNSEEN)}]{{{max(8, room.source // 4)}}}")
        self._has_gaps = gap.search(source) is not None
        self._places: list[tuple[int, int, float]] = []
        self._place_offsets: list[int] = []

    def sections(self) -> Iterator[TextSection]:
        offset = position = 0
        start, seen = self._start(0)
        if self._fits(start, len(self._text), 0, len(self._source)):
            yield TextSection(runs=self._runs(start, self._end), source=slice(0, len(self._source)))
            return
        self._places = list(self._find_places())
        self._place_offsets = [place[0] for place in self._places]
        while offset < self._end:
            start, seen = self._start(offset)
            stop, stop_position = self._stop(start, seen, position)
            yield TextSection(runs=self._runs(start, stop), source=slice(position, stop_position))
            offset, position = stop, stop_position

    def _find_places(self) -> Iterator[tuple[int, int, float]]:
        """Each place to cut: its offset in the flow, in the source, and how good it is."""
        whole = _wholes(self._pieces, self._source, self._room)
        for number, piece in enumerate(self._pieces):
            offset = self._offsets[number]
            held = number > 0 and self._pieces[number - 1].weight == HELD
            if 0 < offset < self._end and piece.weight > GLUED and not held:
                kept = whole[number] and whole[number] == whole[number - 1]
                yield offset, piece.lead, piece.weight / INSIDE if kept else piece.weight
            if piece.at is None:
                continue
            kept = whole[number] or any(style.mark in _WHOLE for style in piece.styles)
            for found in _PLACES.finditer(piece.text):
                inside = found.end()
                if 0 < inside < len(piece.text) and offset + inside < self._end:
                    worth = _WORTH[str(found.lastgroup)]
                    yield offset + inside, piece.at + inside, worth / INSIDE if kept else worth
        yield len(self._text), len(self._source), BLOCK

    def _start(self, offset: int) -> tuple[int, int]:
        """Where a part begins to show, and its first character with ink. Blank lines are left
        out, the indent of code is kept."""
        found = _SEEN.search(self._text, offset)
        assert found is not None
        seen = found.start()
        blank_text = self._text[offset:seen]
        start = offset + len(blank_text) - len(blank_text.lstrip(SPACES))
        line = offset + blank_text.rfind("\n") + 1
        indent = seen - line
        if indent <= self._room.shown // 4 and self._in_code(line) and self._in_code(seen):
            return line, seen
        if seen - start > self._room.shown // 4:
            start = seen
        return start, seen

    def _in_code(self, offset: int) -> bool:
        piece = self._pieces[bisect_right(self._offsets, offset) - 1]
        return any(style.mark is TextMark.PRE for style in piece.styles)

    def _stop(self, start: int, seen: int, position: int) -> tuple[int, int]:
        """The end of the part that begins at `start`: its offset in flow and source."""
        low = first = bisect_right(self._place_offsets, seen)
        high = len(self._places)
        while low < high:
            middle = (low + high) // 2
            stop, stop_position, _ = self._places[middle]
            if self._fits(start, stop, position, stop_position):
                low = middle + 1
            else:
                high = middle
        if low == first:
            return self._hard_stop(start, seen, position)
        return self._best(first, low, start)

    def _best(self, first: int, last: int, start: int) -> tuple[int, int]:
        places = self._places[first:last]
        farthest = places[-1]
        if farthest[0] == len(self._text):
            return farthest[:2]
        half = start + (farthest[0] - start) // 2
        late = places[bisect_left(places, half, key=lambda place: place[0]) :]
        best = max(late, key=lambda place: (place[2], place[0]))
        if best[2] < SPACE:
            best = max(places, key=lambda place: (place[2], place[0]))
        return best[:2]

    def _hard_stop(self, start: int, seen: int, position: int) -> tuple[int, int]:
        """No good place fits: between two characters of a copied piece, the farthest that does."""
        number = bisect_right(self._offsets, seen) - 1
        while number < len(self._pieces) and self._pieces[number].at is None:
            number += 1
        if number == len(self._pieces):
            return len(self._text), len(self._source)
        piece, offset = self._pieces[number], self._offsets[number]
        assert piece.at is not None
        low = least = max(seen + 1 - offset, 1)
        high = min(len(piece.text), self._end - 1 - offset)
        if high < low:
            return len(self._text), len(self._source)
        while low < high:
            middle = (low + high + 1) // 2
            if self._fits(start, offset + middle, position, piece.at + middle):
                low = middle
            else:
                high = middle - 1
        inside = _grapheme_start(piece.text, low, least)
        return offset + inside, piece.at + inside

    def _fits(self, start: int, stop: int, position: int, stop_position: int) -> bool:
        room = self._room
        shown = self._shown(start, stop)
        if len(shown) > room.shown or utf16_length(shown) > room.shown:
            return False
        first = bisect_right(self._offsets, start) - 1
        last = max(first, bisect_left(self._offsets, start + len(shown)) - 1)
        styles = room.worn(self._pieces[first].styles)
        if len(styles) + self._opened[last + 1] - self._opened[first + 1] > room.entities:
            return False
        tags = sum(map(room.weigh, styles)) + self._tags[last + 1] - self._tags[first + 1]
        escaped = 4 * sum(map(shown.count, "&<>"))
        if tags + escaped + len(shown) > room.markup:
            return False
        return utf16_length(self._billed(position, stop_position)) <= room.source

    def _shown(self, start: int, stop: int) -> str:
        text = self._text[start:stop].rstrip(SPACES)
        return text if len(text) <= self._room.shown else text.rstrip(UNSEEN)

    def _billed(self, position: int, stop_position: int) -> str:
        """The slice of the source; without white space at an end too long to be kept anyway."""
        raw = self._source[position:stop_position]
        if len(raw) <= self._room.source // 2 or not self._has_gaps:
            return raw
        return raw.strip(UNSEEN)

    def _runs(self, start: int, stop: int) -> tuple[Run, ...]:
        stop = start + len(self._shown(start, stop))
        runs = []
        number = bisect_right(self._offsets, start) - 1
        while number < len(self._pieces) and self._offsets[number] < stop:
            piece, offset = self._pieces[number], self._offsets[number]
            runs.append((piece.text[max(0, start - offset) : stop - offset], piece.styles))
            number += 1
        return tuple(runs)


def _wholes(pieces: Sequence[TextPiece], source: str, room: Room) -> list[Style | None]:
    """For each piece the code block or link that it belongs to, if that would fit in one part."""
    marks = (TextMark.PRE, TextMark.LINK)
    blocks = [next((one for one in piece.styles if one.mark in marks), None) for piece in pieces]
    shown: dict[Style, int] = {}
    begins: dict[Style, int] = {}
    ends: dict[Style, int] = {}
    leads = [piece.lead for piece in pieces[1:]] + [len(source)]
    for block, piece, end in zip(blocks, pieces, leads, strict=True):
        if block is not None:
            shown[block] = shown.get(block, 0) + utf16_length(piece.text)
            begins.setdefault(block, piece.lead)
            ends[block] = end
    fit = {
        block
        for block, units in shown.items()
        if units <= room.shown and utf16_length(source[begins[block] : ends[block]]) <= room.source
    }
    return [block if block in fit else None for block in blocks]


def _grapheme_start(text: str, inside: int, least: int) -> int:
    """The last boundary between characters as a reader sees them, up to 32 back from `inside`."""
    for place in range(inside, max(least, inside - 32), -1):
        if place == len(text) or not _joined(text, place):
            return place
    return inside


def _joined(text: str, place: int) -> bool:
    before, after = text[place - 1], text[place]
    if after in "\u200d\u200c" or before == "\u200d" or "\U0001f3fb" <= after <= "\U0001f3ff":
        return True
    if unicodedata.category(after) in ("Mn", "Mc", "Me") or "\U000e0020" <= after <= "\U000e007f":
        return True
    flags = 0
    while flags < place and "\U0001f1e6" <= text[place - 1 - flags] <= "\U0001f1ff":
        flags += 1
    return flags % 2 == 1 and "\U0001f1e6" <= after <= "\U0001f1ff"
