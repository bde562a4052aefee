"""A reply as styled runs of text: what `bot.markup.parse` makes and what every platform is written
from; and the places where it may be cut."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit

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
SEEN = re.compile(f"[^{re.escape(UNSEEN)}]")


class TextMark(Enum):
    BOLD = "bold"
    ITALIC = "italic"
    STRIKE = "strike"
    SPOILER = "spoiler"
    CODE = "code"
    LINK = "link"
    QUOTE = "quote"
    PRE = "pre"
    WHOLE = "whole"  # shown as it is: a bare address, a formula


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    mark: TextMark
    value: str = ""  # the address of a link, the language of a code block
    number: int = 0  # keeps neighbours apart that would otherwise be equal


@dataclass(slots=True, kw_only=True)
class CutPlace:
    """A place in a text at which a message may end; `mark` closes what is bold there, say. What
    follows reads the same with `carry` before it, which opens a block of code or a table anew, and
    `indent` spaces less in each line: if not `is_sure`, that has to be tried."""

    at: int = 0
    worth: float = 0
    mark: str = ""
    carry: str = ""
    indent: int = 0
    is_sure: bool = False

    # Of a line: what stands before a rest that begins within it, where it is, and whether it is
    # one of a block that should stay whole.
    quote: str = ""
    in_list: bool = False
    in_fence: bool = False
    is_held: bool = False


Styles = tuple[Style, ...]
Run = tuple[str, Styles]


def utf16_length(text: str) -> int:
    """UTF-16 units of a text, in which Telegram counts lengths; a lone surrogate is one."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def shared(first: Sequence[Style], second: Sequence[Style]) -> int:
    """Return how many styles, from the outermost, two neighbours have in common."""
    count = 0
    while count < min(len(first), len(second)) and first[count] == second[count]:
        count += 1
    return count


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


# --- markup links -------------------------------------------------------------------------------
#
# Whether a link wears another address: words that look like an address of one host, and lead to
# another. Asked by `bot.markup.parse` and by the terminal, which then write out where it leads.
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
    """Return whether the words of a link name a host, or a mailbox, that is not the one it leads
    to."""
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
    """What is not seen is left out, and what looks like a letter or a dot of ASCII is
    one."""
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
