"""How the words of a picture are broken into lines: by guessed widths, with some room to spare,
since the fonts are the reader's own."""

from __future__ import annotations

from collections.abc import Sequence

from docs.pictures.shapes import Paragraph, Span, Text

SIZE, MONO_SIZE, SMALL_SIZE = 13, 11, 11
ROOM = 1.12
"""Of a guessed width: there are wider fonts than the one that the table below was made for."""

MONO_EM = 0.605
_WIDTHS = {
    "ijl'|": 0.22,
    " !,./:;[]\\ftI": 0.28,
    '()-r`"*': 0.34,
    "ckszvxyJ": 0.50,
    "FTZ": 0.61,
    "ABEKPSVXY&": 0.67,
    "CDHNRUw": 0.72,
    "GOQ": 0.78,
    "mM%": 0.86,
    "W@—…": 1.0,
}
_OTHER_EM, _EMOJI_EM = 0.56, 1.3
_WIDTH_OF = {char: em for chars, em in _WIDTHS.items() for char in chars}

Line = tuple[list[Span], int]
"""Pieces beside each other, and the size of their letters."""


def lines_of(text: Text, width: float, *, size: int = SIZE) -> list[Line]:
    """The lines of a text that is so wide at most."""
    return [
        (pieces, MONO_SIZE if line.mono else size)
        for line in text
        for pieces in _broken(line, width, size)
    ]


def line_width(line: Line) -> float:
    """What a line takes, in pixels."""
    spans, size = line
    if size == MONO_SIZE:
        return sum(len(span.text) for span in spans) * MONO_SIZE * MONO_EM
    return sum(_width(span, size) for span in spans)


def cut(text: str, fits: int) -> list[str]:
    """Lines of a terminal, broken at blanks where that can be."""
    lines = []
    while len(text) > fits:
        at = text.rfind(" ", 0, fits + 1)
        at = at if at > 0 else fits
        lines.append(text[:at])
        text = f"  {text[at:].lstrip()}"
    return [*lines, text]


def _width(span: Span, size: float) -> float:
    if "c" in span.look:
        return len(span.text) * size * 0.92 * MONO_EM
    ems = (
        _WIDTH_OF.get(char, _EMOJI_EM if ord(char) > 0x2FFF else _OTHER_EM) for char in span.text
    )
    return sum(ems) * size * ROOM * (1.14 if "b" in span.look else 1)


def _broken(line: Paragraph, width: float, size: float) -> list[list[Span]]:
    """A line in as many as it takes; a word that is longer than one is cut."""
    if line.mono:
        text = "".join(span.text for span in line.spans)
        fits = max(8, int(width / (MONO_SIZE * MONO_EM)))
        pieces = [text[at : at + fits] for at in range(0, len(text), fits)] or [""]
        return [[Span(text=piece, look="c")] for piece in pieces]
    lines: list[list[Span]] = [[]]
    left = width
    for span in line.spans:
        for word in _word_list(span.text):
            piece = Span(text=word, look=span.look)
            needed = _width(Span(text=word.rstrip(), look=span.look), size)
            if needed > left and lines[-1]:
                lines.append([])
                left = width
                piece = Span(text=word.lstrip(), look=span.look)
            lines[-1].append(piece)
            left -= _width(piece, size)
    return [_joined(pieces) for pieces in lines]


def _word_list(text: str) -> list[str]:
    """Words with the blank behind them."""
    words = text.split(" ")
    return [f"{word} " for word in words[:-1]] + [word for word in words[-1:] if word]


def _joined(pieces: Sequence[Span]) -> list[Span]:
    found: list[Span] = []
    for piece in pieces:
        if found and found[-1].look == piece.look:
            found[-1] = Span(text=found[-1].text + piece.text, look=piece.look)
        else:
            found.append(piece)
    return found
