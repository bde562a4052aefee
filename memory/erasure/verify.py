"""Words that are to be forgotten: looked for in texts and taken out of them, and looked for once
more in every file, byte by byte.

Words are found as they are written, whatever their case and the white space, dashes, apostrophes
and Markdown marks between them. What only says the same is for `memory.erasure.plan` to list. The
look through files is the proof: it knows nothing of tables or formats. It blocks;
`memory.erasure.erase` calls it in a thread.
"""

from __future__ import annotations

import html
import json
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from memory.database.premises import all_files
from memory.database.rows import dump

_JOINTS = "-‐‑‒–—―−'‘’ʼ*_~`"
"""What counts as white space between words."""
_BETWEEN = re.compile(rf"[\s{re.escape(_JOINTS)}]+")


def _spelt(phrase: str) -> set[str]:
    """The phrase as Unicode may compose it, with one blank between words."""
    forms = (unicodedata.normalize(form, phrase) for form in ("NFC", "NFD"))
    return {joined for form in forms if (joined := _BETWEEN.sub(" ", form).strip())}


# --- files --------------------------------------------------------------------------------------

PIECE_BYTES = 1 << 20
_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be")
# In JSON and HTML what stands between words may be escaped, and in UTF-16 there are zeros in it.
_SPACE_BYTES = b"|".join(
    [
        rb"\s|\\{1,8}[nrt]|&nbsp;|&#(?:39|x27|160|xa0);",
        *(re.escape(char.encode()) for char in f"{_JOINTS}\u00a0\u202f\u3000"),
        *(
            rb"\\{1,8}u%04x" % ord(char)
            for char in f"{_JOINTS}\u00a0\u202f\u3000"
            if ord(char) > 127
        ),
    ]
)
_GAP = re.compile(rb"(?:" + _SPACE_BYTES + rb")(?:\x00?(?:" + _SPACE_BYTES + rb"))*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What was looked at, and the files that hold a text. `unread` could not be opened."""

    files: int = 0
    bytes: int = 0
    hits: tuple[Path, ...] = ()
    unread: tuple[Path, ...] = ()


class Needles:
    """Texts as the bytes that they may stand as: plain, as in JSON or HTML, and in UTF-16."""

    def __init__(self, phrases: Iterable[str]) -> None:
        found = {_flat(form) for phrase in phrases for form in _forms(phrase)}
        self._needles = tuple(sorted((one for one in found if one.strip()), key=len))
        self._anchors = tuple({max(needle.split(b" "), key=len) for needle in self._needles})
        # White space is made one blank before anything is looked for, so runs of it may be longer.
        self.overlap = 4 * max((len(needle) for needle in self._needles), default=0) + 64

    def in_piece(self, piece: bytes) -> bool:
        """Return whether any of them stands in these bytes."""
        small = piece.lower()
        # Making white space alike takes longest by far, and mostly not one word is there.
        if not any(anchor in small for anchor in self._anchors):
            return False
        plain = _flat(small)
        return any(needle in plain for needle in self._needles)


def _flat(small: bytes) -> bytes:
    """Small bytes with one blank for all that may stand between words."""
    return _GAP.sub(b" ", small)


def _forms(phrase: str) -> Iterator[bytes]:
    # Bytes are made small letter by letter where they are ASCII; of others each case is listed.
    for text in _spelt(phrase):
        for cased in {text, text.lower(), text.upper(), text.title(), text.casefold()}:
            ways = {cased, html.escape(cased)}
            for ascii in (True, False):
                # As in JSON, also within JSON, as often as that comes.
                written = json.dumps(cased, ensure_ascii=ascii)[1:-1]
                for _ in range(ESCAPED_MAX):
                    ways.add(written)
                    written = json.dumps(written, ensure_ascii=False)[1:-1]
            for written in ways:
                for encoding in _ENCODINGS:
                    yield written.encode(encoding, "replace").lower()


def scan(root: Path, phrases: Sequence[str], leaving_out: Iterable[Path] = ()) -> Scan:
    """Read every file below `root`, without following links."""
    needles, left_out = Needles(phrases), set(leaving_out)
    files = size = 0
    hits: list[Path] = []
    unread: list[Path] = []
    for path in all_files(root):
        if path in left_out:
            continue
        try:
            found, read = _look_into(path, needles)
        except FileNotFoundError:
            continue  # temporary, and gone
        except OSError:
            unread.append(path)
            continue
        files += 1
        size += read
        if found:
            hits.append(path)
    return Scan(files=files, bytes=size, hits=tuple(hits), unread=tuple(unread))


def _look_into(path: Path, needles: Needles) -> tuple[bool, int]:
    """Return whether it is in there, and how many bytes were read."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    read, kept, found = 0, b"", False
    with os.fdopen(handle, "rb") as file:
        while piece := file.read(PIECE_BYTES):
            read += len(piece)
            found = found or needles.in_piece(kept + piece)
            kept = (kept + piece)[-needles.overlap :]
    return found, read


# --- texts --------------------------------------------------------------------------------------

BLANK = "[forgotten]"
"""Stands where words were."""
_BLANK_OF_IT = "[…]"
"""Where the very words of BLANK are to be forgotten."""

_DEPTH_MAX = 60
_SENTENCE_END = re.compile(r"(?<=[.!?。！？…])\s+|\n+")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\([nrt])")
ESCAPED_MAX = 3
"""How often a text may be JSON within JSON: an answer of a server, in a result, in a row."""


@dataclass(frozen=True)
class Wording:
    """Phrases to look for. With `everything`, any text at all counts."""

    phrases: tuple[str, ...] = ()
    everything: bool = field(default=False, kw_only=True)

    def holds(self, text: str) -> bool:
        """Return whether the text has it."""
        if self.everything:
            return bool(text.strip()) and text != self.blank
        return self.says(text)

    def says(self, text: str) -> bool:
        """Return whether the text has one of the phrases."""
        return self._may_say(text) and self._pattern.search(text) is not None

    def blanked(self, text: str) -> str:
        """The text with a blank in place of what was found."""
        if self.everything:
            return self.blank if text.strip() else text
        return self._pattern.sub(self.blank, text) if self._may_say(text) else text

    def without(self, text: str) -> str:
        """The text without the sentences that have it."""
        if self.everything:
            return ""
        if not self.says(text):
            return text
        kept = [gap + part for gap, part in sentences(text) if not self.says(part)]
        # A phrase that goes over the end of a sentence stands in none of them.
        return self.blanked("".join(kept).strip())

    def without_lines(self, text: str) -> str:
        """The text without the lines that have it, or a part of it."""
        if self.everything:
            return ""
        # Lines that come to stand beside each other may have it together.
        while (kept := self._without_lines(text)) != text:
            text = kept
        return text

    def _without_lines(self, text: str) -> str:
        spans = [one.span() for one in self._pattern.finditer(text)] if self._may_say(text) else []
        kept: list[str] = []
        begin = 0
        for line in text.splitlines(keepends=True):
            end = begin + len(line.rstrip("\r\n"))
            touched = any(first < end and last > begin for first, last in spans)
            if not touched and not self.says(line):
                kept.append(line)
            begin += len(line)
        return "".join(kept)

    def holds_json(self, raw: str) -> bool:
        """Return whether a text of the JSON has it, or a key of JSON within it: those outside are
        ours."""
        return self.blanked_json(raw) != raw

    def blanked_json(self, raw: str) -> str:
        """The JSON with its texts blanked; keys and all else are left."""
        return self._blanked(raw, key=lambda name: name)

    def blanked_call(self, raw: str) -> str:
        """The arguments of a call, of which a model chose the keys as well."""
        return self._blanked(raw, key=self.blanked)

    def _blanked(self, raw: str, *, key: Callable[[str], str]) -> str:
        try:
            found = json.loads(raw)
        except (ValueError, RecursionError):  # it was cut off: looked at as it would be read
            text = _ESCAPE.sub(lambda one: chr(int(one[1], 16)) if one[1] else " ", raw)
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return self.blanked(text) if self.holds(text) else raw
        changed = mapped(found, self._within, key=key)
        return raw if changed == found else dump(changed)

    def _within(self, text: str) -> str:
        """Of a text that may be JSON itself, as the arguments of a call are."""
        if not self.everything and text.lstrip().startswith(("{", "[")):
            return self.blanked_call(text)
        return self.blanked(text)

    @cached_property
    def blank(self) -> str:
        """Return what is put where it stood; it does not hold it itself."""
        return _BLANK_OF_IT if not self.everything and self.says(BLANK) else BLANK

    @cached_property
    def _forms(self) -> tuple[str, ...]:
        # The longest first: what stands inside another one would leave the rest of it.
        forms = {form for phrase in self.phrases for form in _spelt(phrase)}
        return tuple(sorted(forms, key=lambda form: (-len(form), form)))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        ways = (
            _GAPS.join("".join(map(_sign, word)) for word in form.split()) for form in self._forms
        )
        return re.compile("|".join(ways) or r"(?!)", re.IGNORECASE)

    @cached_property
    def _anchors(self) -> frozenset[str]:
        return frozenset(_folded(max(form.split(), key=len)) for form in self._forms)

    def _may_say(self, text: str) -> bool:
        """Quick, and right whenever it says no."""
        folded = _folded(text)
        return "\\" in text or any(anchor in folded for anchor in self._anchors)


# A text may hold JSON, as the answers of servers do, in which other scripts, quotes and line breaks
# are mostly escaped; and that may be JSON within JSON, with up to eight backslashes in a row.
_JOINT_CODES = "|".join(f"{ord(one):04x}" for one in f"{_JOINTS}\u00a0\u202f\u3000")
_GAPS = rf"(?:[\s{re.escape(_JOINTS)}]|\\{{1,8}}(?:[nrt]|u(?:{_JOINT_CODES})))+"


def _sign(char: str) -> str:
    """Return a pattern of one sign, as it stands or as JSON escapes it."""
    plain = re.escape(char)
    if char in '"\\/':
        return rf"\\{{0,8}}{plain}"
    if char.isascii():
        return plain
    escaped = {json.dumps(one)[1:-1] for one in (char, char.lower(), char.upper())}
    ways = (one.replace("\\", r"\\{1,8}") for one in sorted(escaped))
    return f"(?:{plain}|{'|'.join(ways)})"


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else unicodedata.normalize("NFC", text).casefold()


# --- texts within JSON ---------------------------------------------------------------------------


def mapped(
    value: Any,
    change: Callable[[str], str],
    depth: int = 0,
    *,
    key: Callable[[str], str],
) -> Any:
    """A value of JSON with each of its texts changed, and each key by `key`. Below a bound of depth
    it is left out where anything would change."""
    if depth > _DEPTH_MAX:
        text = f"…{value}"  # which is no JSON: so deep nobody looks into it
        return value if change(text) == text else None
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [mapped(one, change, depth + 1, key=key) for one in value]
    if isinstance(value, dict):
        return {key(name): mapped(one, change, depth + 1, key=key) for name, one in value.items()}
    return value


# --- sentences -----------------------------------------------------------------------------------


def sentences(text: str) -> Iterator[tuple[str, str]]:
    """Each sentence with the white space before it; all of it joined is the text."""
    begin, gap = 0, ""
    for end in _SENTENCE_END.finditer(text):
        yield gap, text[begin : end.start()]
        begin, gap = end.end(), end[0]
    yield gap, text[begin:]
