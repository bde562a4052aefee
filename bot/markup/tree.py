"""A reply as a small tree: what `bot.markup.parse` makes and what every platform is written from.

Positions count characters of the reply as the model wrote it. `lead` is where a node's part of
the source begins, marks included (`**`, "> ", "```"); `at` is where its own first character
stands, or None when the shown text is not a copy of the source (an entity, a bullet).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit


class TextMark(Enum):
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
    mark: TextMark
    value: str = ""  # the address of a link, the language of a code block
    at: int = -1  # keeps neighbours apart that would otherwise be equal


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRun:
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


Inline = TextRun | Break | Styled


@dataclass(frozen=True, slots=True, kw_only=True)
class ParagraphBlock:
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
    lines: tuple[TextRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    lead: int
    spaced: bool
    children: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListItem:
    lead: int
    spaced: bool
    marker: str  # "•", "3.", "☐" or "☑"
    children: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListBlock:
    lead: int
    spaced: bool
    items: tuple[ListItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    lead: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableBlock:
    lead: int
    spaced: bool
    rows: tuple[TableRow, ...]  # the first one is the header


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleBlock:
    lead: int
    spaced: bool


Block = ParagraphBlock | Heading | CodeBlock | Quote | ListBlock | TableBlock | RuleBlock


# --- markup links -------------------------------------------------------------------------------
#
# Whether a link wears another address: words that look like an address of one host, and lead to
# another. Asked by `bot.markup.layout` and by the terminal, which then write out where it leads.
#
# A page can have the model write such a link, and a person reads its words as a promise.

_HOSTS = re.compile(
    # An address, of whatever host; a name with dots in it; four numbers.
    r"[a-z][a-z0-9+.-]{0,20}://(?:[^\s/?#@]{0,200}@)?(\[[0-9a-f:.]{2,50}\]|[\w.-]{1,255})"
    r"|(?<![\w.-])((?:[\w-]{1,63}\.){1,20}[^\W\d_][\w-]{1,62})(?![\w-])"
    r"|(?<![\w.-])(\d{1,3}(?:\.\d{1,3}){3})(?![\w.-])"
)
_MAILBOX = re.compile(r"[\w.+-]{1,64}@[\w.-]{1,255}")
_FILES = re.compile(
    r"bak|cfg|conf|css|csv|db|docx?|exe|gif|go|html?|ini|ipynb|java|jpe?g|jsx?|json|lock|log|mp3|odt"
    r"|pdf|png|pptx?|sql|svg|toml|tsx?|txt|wav|webp|xlsx?|xml|ya?ml"
)
"""Endings of files that no host has: `notes.txt` is no address."""

_TURNED = frozenset("\u202d\u202e")
"""They show words from behind."""


def poses(label: str, url: str) -> bool:
    """Whether the words of a link name a host, or a mailbox, that is not the one it leads to."""
    if any(char in _TURNED for char in label):
        return True
    shown = _as_seen(label)
    if url[:7].lower() == "mailto:":
        mailbox = url[7:].partition("?")[0].casefold()
        found = _MAILBOX.findall(shown)
        return any(one != mailbox for one in found) or (not found and bool(_named(shown)))
    named = _named(shown)
    return bool(named) and named != {_host(url)}


def _as_seen(label: str) -> str:
    """What is not seen is left out, and what looks like a letter or a dot of ASCII is one."""
    flat = unicodedata.normalize("NFKC", label).casefold()
    return "".join(char for char in flat if unicodedata.category(char) not in {"Cf", "Cc", "Mn"})


def _named(shown: str) -> set[str]:
    """The hosts that a person sees in it."""
    found = {next(filter(None, groups)) for groups in _HOSTS.findall(shown)}
    return {
        _bare(_decoded(host)) for host in found if not _FILES.fullmatch(host.rpartition(".")[2])
    }


def _host(url: str) -> str:
    """Empty where it cannot be said for sure: with a name before an @, or a backslash."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return ""
    if "@" in parts.netloc or "\\" in url or "%" in parts.netloc:
        return ""
    return _bare(_as_seen(_decoded(host)))


def _decoded(host: str) -> str:
    """A name as it is read: `xn--mnchen-3ya.de` is `münchen.de`."""
    try:
        return host.encode("ascii").decode("idna")
    except UnicodeError:
        return host


def _bare(host: str) -> str:
    return host.strip("[]").rstrip(".").removeprefix("www.")
