"""What a picture of a chat is made of: panels with messages, cards, terminals and asides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A piece of a line. `look` holds letters: bold, italic, code, link, quiet, struck."""

    text: str
    look: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """A line as it was written, which is broken where it is too long; `mono` keeps its blanks."""

    spans: tuple[Span, ...]
    mono: bool = False


Text = tuple[Paragraph, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """`look` is empty, good or bad; the one that is pressed has a finger's mark on it."""

    text: str
    look: str = ""
    pressed: bool = False


Rows = tuple[tuple[Button, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubble:
    """A message in Telegram, of Ann's at the right or of the bot's at the left."""

    text: Text
    is_bot: bool
    rows: Rows = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A message in Slack, with the writer's name before it."""

    who: str
    text: Text
    is_bot: bool
    is_reply: bool = False
    rows: Rows = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a home tab: a header, or words with perhaps a button behind or below them."""

    text: Text
    is_header: bool = False
    rows: Rows = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """A terminal, or a file; `heading` is the command or the name."""

    heading: str
    lines: tuple[str, ...]
    is_file: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """What happens meanwhile; `alarm` is what should not."""

    text: str
    alarm: bool = False


Item = Bubble | Post | Block | Shell | Aside


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One view, read from top to bottom; a white one is Slack's, a tinted one Telegram's. `width`
    is in pixels."""

    title: str
    items: tuple[Item, ...]
    is_white: bool = False
    width: int = 330


def told(panels: Iterable[Panel]) -> str:
    """All words of the panels, one line each."""
    lines: list[str] = []
    for panel in panels:
        lines.append(f"{panel.title}:")
        for item in panel.items:
            lines += _words(item)
    return "\n".join(lines)


def _words(item: Item) -> list[str]:
    match item:
        case Aside():
            return [f"({item.text})"]
        case Shell():
            return [item.heading, *item.lines]
        case Bubble() | Post():
            who = "Hearthbot" if item.is_bot else "Ann"
            return [f"{who}: {_plain(item.text)}", *_labels(item.rows)]
        case Block():
            return [_plain(item.text), *_labels(item.rows)]
        case _ as never:
            assert_never(never)


def _plain(text: Text) -> str:
    return "\n".join("".join(span.text for span in line.spans) for line in text).strip()


def _labels(rows: Rows) -> list[str]:
    return [f"[{button.text}]" + " (pressed)" * button.pressed for row in rows for button in row]
