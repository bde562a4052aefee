"""A reply as a small tree: what `bot.markup_parse` makes and what every platform is written from.

Positions count characters of the reply as the model wrote it. `lead` is where a node's part of
the source begins, marks included (`**`, "> ", "```"); `at` is where its own first character
stands, or None when the shown text is not a copy of the source (an entity, a bullet).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Mark(Enum):
    BOLD = "bold"
    ITALIC = "italic"
    STRIKE = "strike"
    SPOILER = "spoiler"
    CODE = "code"
    LINK = "link"
    QUOTE = "quote"
    PRE = "pre"
    WHOLE = "whole"  # shown as it is, but better not cut: a bare address, a formula


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    mark: Mark
    value: str = ""  # the address of a link, the language of a code block
    at: int = -1  # keeps neighbours apart that would otherwise be equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    text: str
    lead: int
    at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    lead: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Styled:
    style: Style
    children: tuple[Inline, ...]


Inline = Words | Break | Styled


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    lead: int
    spaced: bool  # a blank line stands before it
    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    lead: int
    spaced: bool
    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeBlock:
    lead: int
    spaced: bool
    language: str
    lines: tuple[Words, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    lead: int
    spaced: bool
    children: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    lead: int
    spaced: bool
    marker: str  # "•", "3.", "☐" or "☑"
    children: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    lead: int
    spaced: bool
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    lead: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    lead: int
    spaced: bool
    rows: tuple[Row, ...]  # the first one is the header


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    lead: int
    spaced: bool


Block = Paragraph | Heading | CodeBlock | Quote | Listing | Table | Rule
