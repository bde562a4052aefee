"""Looks through all files below a folder for texts, byte by byte, and says where they still stand.

This is the proof after something was forgotten: it knows nothing of tables or formats. Blocks;
called by `memory.forgetting` in a thread.
"""

from __future__ import annotations

import json
import os
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory.written_forms import flat, gist, has_long_word, joined, seen, spellings

PIECE_BYTES = 1 << 20
_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A file that holds a text. How often is not said: one time is one too many."""

    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What was looked at, and what was found. `unread` could not be opened."""

    files: int = 0
    bytes: int = 0
    hits: tuple[Hit, ...] = ()
    unread: tuple[Path, ...] = ()


class Needles:
    """Texts as the bytes that they may stand as: whatever the case and the white space, plain, as
    in JSON, and in UTF-16."""

    def __init__(self, phrases: Iterable[str]) -> None:
        every = tuple(phrases)
        forms = {form for phrase in every for form in _forms(phrase)}
        found = {flat(seen(form)) for form in forms}
        self._needles = tuple(sorted((one for one in found if one.strip()), key=len))
        self._anchors = tuple({max(needle.split(b" "), key=len) for needle in self._needles})
        long = {
            form for phrase in filter(has_long_word, every) for form in _forms(phrase, _as_it_is)
        }
        self._joined = tuple(map(_joined, long))
        self._gists = tuple({gist(max(one.split(b" "), key=len)) for one in self._joined})
        # White space is made one blank before anything is looked for, so runs of it may be longer.
        self.overlap = 4 * max((len(needle) for needle in self._needles), default=0) + 64

    def __bool__(self) -> bool:
        return bool(self._needles)

    def in_piece(self, piece: bytes) -> bool:
        """Whether any of them stands in these bytes."""
        small = piece.lower()
        return self._stands(seen(small)) or self._stands_hyphenated(small)

    def _stands(self, small: bytes) -> bool:
        # Making white space alike takes longest by far, and mostly not one word is there.
        if not any(anchor in small for anchor in self._anchors):
            return False
        plain = flat(small)
        return any(needle in plain for needle in self._needles)

    def _stands_hyphenated(self, small: bytes) -> bool:
        if not self._joined:
            return False
        quick = gist(small)
        if not any(one in quick for one in self._gists):
            return False
        plain = _joined(small)
        return any(needle in plain for needle in self._joined)


def scan(
    root: Path,
    phrases: Sequence[str],
    *,
    leaving_out: Iterable[Path] = (),
    tell: Callable[[int], None] = lambda files: None,
) -> Scan:
    """Reads every file below `root`, without following links. `tell` hears how many so far."""
    needles, left_out = Needles(phrases), set(leaving_out)
    files = size = 0
    hits: list[Hit] = []
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
            hits.append(Hit(path=path))
        tell(files)
    return Scan(files=files, bytes=size, hits=tuple(hits), unread=tuple(unread))


def all_files(root: Path) -> Iterator[Path]:
    """Plain files below a folder, sorted; links, sockets and pipes are none."""
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            try:
                is_file = stat.S_ISREG(path.lstat().st_mode)
            except OSError:
                continue
            if is_file:
                yield path


def _look_into(path: Path, needles: Needles) -> tuple[bool, int]:
    """Whether it is in there, and how many bytes were read."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    read, kept, found = 0, b"", False
    with os.fdopen(handle, "rb") as file:
        while piece := file.read(PIECE_BYTES):
            read += len(piece)
            found = found or needles.in_piece(kept + piece)
            kept = (kept + piece)[-needles.overlap :]
    return found, read


def _forms(phrase: str, spelt: Callable[[str], Iterable[str]] = spellings) -> Iterator[bytes]:
    """Small bytes that the phrase may be written as, with other letters by `spelt`."""
    if not phrase.strip():
        return
    for form in ("NFC", "NFD"):
        plain = " ".join(unicodedata.normalize(form, phrase).split())
        # Bytes are made small letter by letter where they are ASCII; of others each case is listed.
        for cased in {variant for one in spelt(plain) for variant in _cased(one)}:
            escaped = json.dumps(cased)[1:-1]
            for text in {cased, escaped, json.dumps(cased, ensure_ascii=False)[1:-1]}:
                for encoding in _ENCODINGS:
                    yield text.encode(encoding, "replace").lower()


def _as_it_is(text: str) -> Iterable[str]:
    """Nobody hyphenates wide letters."""
    return [text]


def _joined(small: bytes) -> bytes:
    """Small bytes with one blank between words, and no hyphens within them."""
    return flat(seen(joined(small)))


def _cased(text: str) -> set[str]:
    return {text, text.lower(), text.upper(), text.title(), text.casefold()}
