"""Outside text made fit for a request: cleaned and cut. Pure; used by tools and prompt layers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor moves
    r"|\x1b[\]PX^_][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)?"  # window titles, links
    r"|\x1b[@-Z\\^_]?"
)
_SLICE_CHARS = 65_536
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_UNCLEAN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_UNSEEN_KINDS = frozenset({"Cf", "Cn", "Co", "Cs"})
_UNSEEN_MARKS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
"""Letters and marks that are drawn as nothing, though their kind does not say so."""


def without_surrogates(text: str) -> str:
    """The text with lone surrogates replaced: it can be written as UTF-8."""
    return _SURROGATES.sub("\ufffd", text) if not text.isascii() else text


def clean(text: str) -> str:
    """Readable text: no terminal codes, no control characters, line ends as `\\n`."""
    if not _UNCLEAN.search(text):
        return text
    if "\x1b" in text:
        text = "".join(_ESCAPES.sub("", part) for part in _slices(text))
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", without_surrogates(text))


def seen(text: str) -> str:
    """What a person sees of a text: clean, and without what is drawn as nothing, such as tags,
    marks of direction, joiners and variants, which can hold whole sentences.

    Also a joined emoji comes apart: what two readers are shown is the same at that price.
    """
    text = clean(text)
    if text.isascii():
        return text
    text = _UNSEEN_MARKS.sub("", text)
    return "".join(char for char in text if unicodedata.category(char) not in _UNSEEN_KINDS)


def _slices(text: str) -> Iterator[str]:
    """The text in parts that begin with an escape: one pass over it all would need memory for
    each of a hundred thousand matches (case TO-01)."""
    start = 0
    while start < len(text):
        end = start + _SLICE_CHARS
        if end < len(text):
            escape = text.rfind("\x1b", start + 1, end)
            end = escape if escape > start else end
        yield text[start:end]
        start = end


def one_line(text: str, *, chars_max: int = 80) -> str:
    """An outside name or title, made harmless: one line, no markup that could pose as ours.

    A display name is whatever its bearer typed, so it must not be able to open or close our
    marked blocks (threat model T13, case SE-18).
    """
    flat = " ".join(text.replace("<", "‹").replace(">", "›").split())
    return flat if len(flat) <= chars_max else flat[: chars_max - 1] + "…"


def cut_middle(text: str, *, chars_max: int, pointer: str) -> str:
    """Head and tail of a long text, with a marker that names its size.

    The marker counts towards `chars_max`; three quarters of the room are the head's.
    """
    if len(text) <= chars_max:
        return text
    where = f"; {pointer}" if pointer else ""
    marker = f"\n\n[… cut here: {len(text):,} characters in all{where} …]\n\n"
    return _around(marker, text, text, chars_max)


_CUT_MARK = re.compile(r"\n\n\[… cut here: [\d,]+ characters in all[^\n]* …\]\n\n")


def cut_more(text: str, *, chars_max: int, pointer: str) -> str:
    """`cut_middle` for a text that may be cut already. Then its first marker stays, since it says
    how long the text is and where the rest is."""
    found = _CUT_MARK.search(text)
    if found is None or len(text) <= chars_max:
        return cut_middle(text, chars_max=chars_max, pointer=pointer)
    return _around(found[0], text[: found.start()], text[found.end() :], chars_max)


def _around(marker: str, head: str, tail: str, chars_max: int) -> str:
    room = max(chars_max - len(marker), 0)
    last = min(room // 4, len(tail))
    return (head[: room - last] + marker + tail[len(tail) - last :])[:chars_max]
