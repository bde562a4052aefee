"""From the tree to one flow of styled pieces.

Nothing here knows a platform: its renderer says which links it can show.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bot.markup.tree import (
    Block,
    Break,
    CodeBlock,
    Heading,
    Inline,
    ListBlock,
    ListItem,
    ParagraphBlock,
    Quote,
    RuleBlock,
    Style,
    Styled,
    TableBlock,
    TextMark,
    TextRun,
    poses,
)

Styles = tuple[Style, ...]

# How good it is to begin a new part before a piece, or at a place inside one.
HELD, GLUED, POOR, SPACE, SENTENCE, LINE, ITEM, BLOCK = -2, -1, 1, 2, 3, 4, 5, 6
# GLUED: never before it; HELD: not after it either, as between a bullet and its words.
INDENT_MAX = 12  # spaces before a nested item: a phone is narrow
COLUMN_MAX = 40  # columns to which a table's cells are padded; wider cells stick out
_RULE = "—" * 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPiece:
    text: str
    lead: int  # where its part of the source begins
    at: int | None  # where its first character stands in the source; None: it may not be cut
    styles: Styles
    weight: int = POOR


def flow(blocks: Sequence[Block], links: Callable[[str], bool]) -> list[TextPiece]:
    """All that is shown, in order; a link that `links` refuses, or whose words name another host,
    has its address written out."""
    writer = _LayoutWriter(links)
    writer.blocks(blocks, (), "")
    return writer.pieces


class _LayoutWriter:
    def __init__(self, links: Callable[[str], bool]) -> None:
        self.pieces: list[TextPiece] = []
        self._links = links

    def blocks(self, blocks: Sequence[Block], styles: Styles, indent: str) -> None:
        after_heading = False
        for number, block in enumerate(blocks):
            if number:
                weight = SENTENCE if after_heading else ITEM if indent or styles else BLOCK
                self._gap(block.lead, block.spaced, styles, weight)
                if not isinstance(block, Quote | CodeBlock | TableBlock | ListBlock):
                    self._glue(indent, block.lead, styles, HELD)
            self._block(block, styles, indent)
            after_heading = isinstance(block, Heading)

    def _gap(self, lead: int, spaced: bool, styles: Styles, weight: int) -> None:
        if self.pieces:
            text = "\n\n" if spaced else "\n"
            self.pieces.append(
                TextPiece(text=text, lead=lead, at=None, styles=styles, weight=weight)
            )

    def _glue(self, text: str, lead: int, styles: Styles, weight: int) -> None:
        if text:
            piece = TextPiece(text=text, lead=lead, at=None, styles=styles, weight=weight)
            self.pieces.append(piece)

    def _block(self, block: Block, styles: Styles, indent: str) -> None:
        match block:
            case ParagraphBlock(children=children):
                self._inline(children, styles, indent)
            case Heading(children=children):
                self._inline(children, _with(styles, Style(mark=TextMark.BOLD)), indent)
            case CodeBlock():
                self._code(block, styles)
            case Quote(children=children):
                self.blocks(children, _with(styles, Style(mark=TextMark.QUOTE, at=block.lead)), "")
            case ListBlock(items=items):
                for number, item in enumerate(items):
                    self._item(item, styles, indent, first=number == 0)
            case TableBlock():
                self._table(block, styles)
            case RuleBlock(lead=lead):
                self.pieces.append(TextPiece(text=_RULE, lead=lead, at=None, styles=styles))

    def _item(self, item: ListItem, styles: Styles, indent: str, *, first: bool) -> None:
        if not first:
            self._gap(item.lead, item.spaced, styles, ITEM)
        if self.pieces and self.pieces[-1].weight == HELD:  # a list that begins an item
            indent = ""
        self._glue(f"{indent}{item.marker} ", item.lead, styles, HELD)
        self.blocks(item.children, styles, (indent + " " * 3)[:INDENT_MAX])
        if self.pieces[-1].weight == HELD:  # an empty item: its bullet is all there is to show
            self.pieces[-1] = replace(self.pieces[-1], weight=POOR)

    def _code(self, block: CodeBlock, styles: Styles) -> None:
        style = Style(mark=TextMark.PRE, value=block.language, at=block.lead)
        for number, line in enumerate(block.lines):
            weight = LINE if number else POOR
            self._words(line, _with(styles, style), weight)

    def _table(self, table: TableBlock, styles: Styles) -> None:
        style = Style(mark=TextMark.PRE, at=table.lead)
        widths = [0] * max(len(row.cells) for row in table.rows)
        for row in table.rows:
            for column, cell in enumerate(row.cells):
                widths[column] = min(COLUMN_MAX, max(widths[column], columns_of(cell)))
        for number, row in enumerate(table.rows):
            text = " | ".join(map(_padded, row.cells, widths)).rstrip() + "\n"
            if number == 0:
                text += "-+-".join("-" * width for width in widths) + "\n"
            if number == len(table.rows) - 1:
                text = text.rstrip("\n")
            weight = LINE if number else POOR
            words = TextRun(text=text, lead=row.lead, at=None)
            self._words(words, _with(styles, style), weight)

    def _inline(self, children: Sequence[Inline], styles: Styles, indent: str) -> None:
        weight = POOR
        for child in children:
            match child:
                case TextRun():
                    self._words(child, styles, weight)
                case Break(lead=lead):
                    self._words(TextRun(text="\n" + indent, lead=lead, at=None), styles, SPACE)
                case Styled(style=style):
                    self._styled(child, _with(styles, style), weight)
            weight = LINE if isinstance(child, Break) else POOR

    def _styled(self, node: Styled, styles: Styles, weight: int) -> None:
        start = len(self.pieces)
        refused = node.style.mark is TextMark.LINK and not (
            self._links(node.style.value) and not poses(_read(node), node.style.value)
        )
        if refused:
            styles = tuple(style for style in styles if style != node.style)
        self._inline(node.children, styles, "")
        if weight > POOR and len(self.pieces) > start:
            self.pieces[start] = replace(self.pieces[start], weight=weight)
        if refused:
            url = node.style.value
            label = "".join(piece.text for piece in self.pieces[start:])
            if label not in (url, url.removeprefix("mailto:")):
                last = self.pieces[-1]
                lead = last.lead if last.at is None else last.at + len(last.text)
                self._glue(f" ({url})", lead, styles, GLUED)

    def _words(self, words: TextRun, styles: Styles, weight: int) -> None:
        if words.text:
            piece = TextPiece(
                text=words.text, lead=words.lead, at=words.at, styles=styles, weight=weight
            )
            self.pieces.append(piece)


def _read(node: Inline) -> str:
    """The words of it."""
    match node:
        case TextRun(text=text):
            return text
        case Break():
            return " "
        case Styled(children=children):
            return "".join(map(_read, children))


def _with(styles: Styles, style: Style) -> Styles:
    return styles if any(one.mark is style.mark for one in styles) else (*styles, style)


def columns_of(text: str) -> int:
    """Columns of a text in a monospace font: CJK and emoji take two, combining marks none."""
    if text.isascii():
        return len(text)
    columns = 0
    joined = False
    for char in text:
        if char == "\ufe0f":
            columns += 1
        elif unicodedata.category(char) not in ("Mn", "Me", "Cf") and not joined:
            columns += 2 if unicodedata.east_asian_width(char) in "WF" else 1
        joined = char == "\u200d"
    return columns


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - columns_of(cell))
