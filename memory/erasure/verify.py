"""Looks through all files below a folder for texts, byte by byte, and says where they still stand.

This is the proof after something was forgotten: it knows nothing of tables or formats. Blocks;
called by `memory.erasure.erase` in a thread.
"""

from __future__ import annotations

import json
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from memory.database.stored_text import dump
from memory.erasure.written_forms import (
    Finder,
    anchors_of,
    flat,
    for_a_look,
    for_a_look_past_hyphens,
    gist,
    has_hyphen,
    has_long_word,
    joined,
    seen,
    spellings,
    unhyphenated,
)
from memory.search.fts import STOP_WORDS

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


# --- wording ------------------------------------------------------------------------------------
#
# What is looked for when something is to be forgotten, and how it is taken out of texts.
#
# A phrase is found whatever its case, its white space and its spelling
# (`memory.erasure.written_forms`), and inside JSON too. Where a fact is forgotten, a sentence with
# nearly all words of it that say anything counts as well. Pure; called by `memory.erasure.places`
# and `memory.erasure.verify`.

BLANK = "[forgotten]"
"""Stands where words were."""
_BLANK_OF_IT = "[…]"
"""Where the very words of BLANK are to be forgotten."""

TELLING_PERCENT, SEVERAL = 80, 4
"""Of the words of a fact that say anything, when it has several: so many tell it."""

MORE_MAX = 2
"""Words that say anything beside those of a fact that has few."""

_DEPTH_MAX = 60
_NOBODY = frozenset({"person", "user", "owner", "somebody"})
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"(?<=[\w,;:] )[^\W\d_a-z]\w+")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？…])\s+|\n+")


@dataclass(frozen=True)
class Wording:
    """What to look for. With `everything`, any text at all counts.

    `phrases` are looked for as they are written; `sentences` are those of which the telling words
    are looked for besides, and `names` words that tell nothing, such as the person's own name.
    """

    phrases: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    everything: bool = field(default=False, kw_only=True)

    def holds(self, text: str) -> bool:
        """Whether the text has it."""
        if self.everything:
            return bool(text.strip()) and text != self.blank
        return self.says(text)

    def says(self, text: str) -> bool:
        """Whether the text has one of the phrases or a sentence that gives one away."""
        if self._may_say(text) and self._finder.is_in(text):
            return True
        if not self._may_give_away(text):
            return False
        return any(self._gives_away(part) for _, part in _sentences(text))

    def blanked(self, text: str) -> str:
        """The text with a blank in place of what was found."""
        if self.everything:
            return self.blank if text.strip() else text
        if self._may_say(text):
            text = self._finder.replaced(text, self.blank)
        return self._sentence_wise(text, self.blank) if self._may_give_away(text) else text

    def without(self, text: str) -> str:
        """The text without the sentences that have it."""
        if self.everything:
            return ""
        kept = [gap + part for gap, part in _sentences(text) if not self.says(part)]
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
        spans = list(self._finder.spans(text)) if self._may_say(text) else []
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
        """Whether a text of the JSON has it."""
        found = _parsed(raw)
        return self.holds(raw) if found is None else any(map(self.holds, _texts(found[0])))

    def blanked_json(self, raw: str) -> str:
        """The JSON with its texts blanked; keys and all else are left."""
        found = _parsed(raw)
        if found is None:
            return self.blanked(raw)
        return dump(mapped(found[0], self._blanked_within))

    def blanked_call(self, raw: str) -> str:
        """The arguments of a call, of which a model chose the keys as well."""
        found = _parsed(raw)
        if found is None:
            return self.blanked(raw)
        return dump(mapped(found[0], self._blanked_within, key=self.blanked))

    def _blanked_within(self, text: str) -> str:
        """Of a text that may be JSON itself, as the arguments of a call are."""
        if not self.everything and text.lstrip().startswith(("{", "[")):
            return self.blanked_call(text)
        return self.blanked(text)

    @cached_property
    def blank(self) -> str:
        """What is put where it stood; it does not hold it itself."""
        return _BLANK_OF_IT if not self.everything and self._finder.is_in(BLANK) else BLANK

    @cached_property
    def _finder(self) -> Finder:
        return Finder(self.phrases)

    @cached_property
    def _anchors(self) -> tuple[str, ...]:
        return anchors_of(self.phrases)

    def _may_say(self, text: str) -> bool:
        """Quick, and right whenever it says no."""
        if not self._anchors:
            return bool(self._finder)
        if "\\u" in text or "&" in text:  # letters may be hidden in it
            return True
        folded = for_a_look(text)
        if any(anchor in folded for anchor in self._anchors):
            return True
        if not (self._has_long_words and has_hyphen(text)):
            return False
        past = for_a_look_past_hyphens(folded)
        return any(anchor.encode() in past for anchor in self._anchors)

    @cached_property
    def _has_long_words(self) -> bool:
        return any(map(has_long_word, self.phrases))

    @cached_property
    def _telling(self) -> tuple[frozenset[str], ...]:
        """Stems of each sentence that tell it from others; one alone would tell too little."""
        dull = {_stem(word) for name in self.names for word in _words(name)}
        found = (frozenset(_stems(sentence)) - dull for sentence in self.sentences)
        return tuple(dict.fromkeys(stems for stems in found if len(stems) > 1))

    def _may_give_away(self, text: str) -> bool:
        """Quick, and right whenever it says no: a stem is how its words begin."""
        if not self._telling:
            return False
        folded = unicodedata.normalize("NFC", text).casefold()
        past = for_a_look_past_hyphens(folded) if has_hyphen(folded) else b""
        return any(
            sum(stem in folded or stem.encode() in past for stem in wanted) >= _enough(wanted)
            for wanted in self._telling
        )

    def _gives_away(self, sentence: str) -> bool:
        spelt = (sentence, unhyphenated(sentence)) if has_hyphen(sentence) else (sentence,)
        return any(self._tells(one, set(_stems(one))) for one in spelt)

    def _tells(self, sentence: str, stems: set[str]) -> bool:
        return any(
            len(wanted & stems) >= _enough(wanted)
            and (len(wanted) >= SEVERAL or _is_of_it_alone(sentence, stems - wanted))
            for wanted in self._telling
        )

    def _sentence_wise(self, text: str, put: str) -> str:
        return "".join(
            gap + (put if self._gives_away(part) else part) for gap, part in _sentences(text)
        )


def telling_sentences(text: str) -> list[str]:
    """The sentences of a text that say enough to be known again in other words."""
    parts = (part.strip() for _, part in _sentences(text))
    return [part for part in parts if len(set(_stems(part))) > 1]


def _enough(stems: frozenset[str]) -> int:
    """How many of them tell the sentence: all of few; of many one or two may be put otherwise."""
    return len(stems) if len(stems) < SEVERAL else -(-len(stems) * TELLING_PERCENT // 100)


def _is_of_it_alone(sentence: str, more: set[str]) -> bool:
    """Whether a sentence with few telling words says little else, and names nobody else: that
    somebody's sister lives in Oslo is not that they do. How it begins is no name for sure."""
    named = {_stem(word.casefold()) for word in _NAME.findall(sentence)}
    return len(more) <= MORE_MAX and not named & more


# --- texts within JSON ---------------------------------------------------------------------------


def mapped(
    value: Any,
    change: Callable[[str], str],
    depth: int = 0,
    *,
    key: Callable[[str], str] = lambda name: name,
) -> Any:
    """A value of JSON with each of its texts changed, and each key by `key`. Below a bound of depth
    it is left out."""
    if depth > _DEPTH_MAX:
        return None
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [mapped(one, change, depth + 1, key=key) for one in value]
    if isinstance(value, dict):
        return {key(name): mapped(one, change, depth + 1, key=key) for name, one in value.items()}
    return value


def _texts(value: Any) -> Iterator[str]:
    """With the keys of JSON within JSON, as the arguments of a call are: those outside are ours."""
    waiting: list[tuple[Any, bool]] = [(value, False)]
    while waiting:
        one, is_within = waiting.pop()
        if isinstance(one, str):
            yield one
            if one.lstrip().startswith(("{", "[")) and (inner := _parsed(one)) is not None:
                waiting.append((inner[0], True))
        elif isinstance(one, list):
            waiting.extend((item, is_within) for item in one)
        elif isinstance(one, dict):
            if is_within:
                yield from one
            waiting.extend((item, is_within) for item in one.values())


def _parsed(raw: str) -> tuple[Any] | None:
    """The value in a tuple, for it may be null; None where it is no JSON."""
    try:
        return (json.loads(raw),)
    except (ValueError, RecursionError):
        return None


# --- words ---------------------------------------------------------------------------------------


def _sentences(text: str) -> Iterator[tuple[str, str]]:
    """Each sentence with the white space before it; all of it joined is the text."""
    begin, gap = 0, ""
    for end in _SENTENCE_END.finditer(text):
        yield gap, text[begin : end.start()]
        begin, gap = end.end(), end[0]
    yield gap, text[begin:]


def _words(text: str) -> Sequence[str]:
    return _WORD.findall(unicodedata.normalize("NFC", text).casefold())


def _stems(text: str) -> Iterator[str]:
    for word in _words(text):
        if word not in STOP_WORDS and word not in _NOBODY:
            yield _stem(word)


def _stem(word: str) -> str:
    """Crude, and the same for "live", "lives", "lived" and "living"."""
    if len(word) > 3 and word.isascii():
        for ending in ("ing", "ed", "es", "s"):
            if word.endswith(ending) and len(word) - len(ending) > 2:
                word = word[: -len(ending)]
                break
        word = word.removesuffix("e")
    return word
