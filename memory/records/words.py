"""Words and phrases in what people write: folded alike, cut into words, looked up in one pass.

Used by the keywords of playbooks, reasoning control and the look at unhelpful replies. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

_UNBORDERED = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Tibetan, Burmese, Khmer
    "\u1100-\u11ff\uac00-\ud7ff"  # Korean: it has blanks, but particles are glued to its words
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u312f\u31f0-\u31ff"  # kana, radicals, bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters
)
_MARKS = (  # signs that belong to a word, and that `\w` does not take for part of one
    "\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0963\u0970-\u0df3"
)
_UNBORDERED_RE = re.compile(f"[{_UNBORDERED}]")
_WORD_RE = re.compile(rf"[\w{_MARKS}]+(?:'[\w{_MARKS}]+)*")
_ASCII_WORD_RE = re.compile(r"\w+(?:'\w+)*", re.ASCII)

_ALIKE = str.maketrans(
    {
        **dict.fromkeys("’‘ʼ′´", "'"),
        **dict.fromkeys("‐‑‒–—−", "-"),
        # Unseen: soft hyphens, zero-width characters, and what picks the look of an emoji.
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff\ufe0e\ufe0f", None),
    }
)
_EMPHASIS = str.maketrans("", "", "*_~`")
_VOWELS = frozenset("aeiou")
_DOUBLING = re.compile(r"^[^\W\d_]*[^\W\d_aeiou][aeiou][^\W\d_aeiouwxy]$")
"""A word whose last letter may be doubled: consonant, one vowel, consonant."""
_ELIDED_MIN = 3
"""Letters after an apostrophe that make a word of their own (`l'email`), unlike `'ll` and `'ve`."""


def fold(text: str) -> str:
    """The text as it is compared: case, width, apostrophes and dashes alike; accents as typed."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text.translate(_ALIKE)).casefold()
    return unicodedata.normalize("NFKC", folded)


def squeezed(folded: str) -> str:
    """The same text with every run of white space as one blank."""
    return " ".join(folded.split())


def is_unbordered(text: str) -> bool:
    """Return whether it holds characters of a script that sets no blanks between words."""
    return not text.isascii() and _UNBORDERED_RE.search(text) is not None


def unbordered_runs(folded: str) -> Iterator[str]:
    """The stretches of such scripts."""
    if not folded.isascii():
        for match in re.finditer(f"[{_UNBORDERED}]+", folded):
            yield match.group()


class Word(NamedTuple):
    """A word of a folded text, and where it stands: `folded[start:end]`.

    A tuple, because a long message makes thousands of them for each look.
    """

    text: str
    start: int
    end: int


def without_name(text: str, name: str) -> str:
    """Return the text without a name, which may hold digits, dots and signs. A name of a single
    character, or of digits alone, is removed only once: the next may be part of what is told."""
    bare, pattern = name.strip().rstrip("."), _name(name)
    is_telling = len(bare) > 1 and not bare.isdecimal()
    return pattern.sub("", text, count=0 if is_telling else 1) if bare else text


def after_name(text: str, name: str) -> str | None:
    """Return what follows the name at the beginning of a text; None if it begins otherwise."""
    found = _name(name).match(text) if name.strip().rstrip(".") else None
    return None if found is None else text[found.end() :]


def _name(name: str) -> re.Pattern[str]:
    """Match a name as a whole, never as a part of a word."""
    bare = name.strip().rstrip(".")
    begins = rf"(?<![\w{_MARKS}])" if _is_bordered(bare[:1]) else ""
    ends = rf"(?![\w{_MARKS}])" if _is_bordered(bare[-1:]) else ""
    dot = r"\.?" if name.rstrip().endswith(".") else ""
    return re.compile(begins + re.escape(bare).replace("'", "['’]") + ends + dot)


def _is_bordered(letter: str) -> bool:
    return re.match(r"\w", letter) is not None and not is_unbordered(letter)


def words(folded: str) -> list[Word]:
    """The words of a text, in order. Apostrophes and underscores inside belong to the word.

    Chinese, Japanese, Korean, Thai and their like yield none: nobody can say where one ends.
    """
    return list(_known(folded)) if len(folded) <= KNOWN_CHARS_MAX else _found(folded)


KNOWN_TEXTS_MAX, KNOWN_CHARS_MAX = 64, 500
"""Short texts whose words are kept: a message is looked through for a dozen reasons in one turn."""


@lru_cache(maxsize=KNOWN_TEXTS_MAX)
def _known(folded: str) -> tuple[Word, ...]:
    return tuple(_found(folded))


def drop_known() -> None:
    """Keeps none of the texts that were split: somebody has one forgotten."""
    _known.cache_clear()


def _found(folded: str) -> list[Word]:
    if folded.isascii():
        matches = _ASCII_WORD_RE.finditer(folded)
    else:
        matches = _WORD_RE.finditer(_UNBORDERED_RE.sub(" ", folded))
    several = [Word(match.group(), *match.span()) for match in matches]
    if "_" not in folded:
        return several
    # Underscores around a word are emphasis (`_now_`); those inside are a name (`read_file`).
    found = []
    for word, _, end in several:
        begun = word.lstrip("_")
        if inner := begun.rstrip("_"):
            found.append(Word(inner, end - len(begun), end - len(begun) + len(inner)))
    return found


def forms(word: str) -> frozenset[str]:
    """A word with the light endings of English: s, es, ed, ing.

    Spelling follows: reply, replies, replied; schedule, scheduled, scheduling; plan, planned,
    planning. The possessive `'s` is dealt with where a text is read.
    """
    stems = {word}
    made = {word, word + "s", word + "es", word + "ed", word + "ing"}
    if len(word) > 2 and word[-1] == "y" and word[-2] not in _VOWELS:
        made |= {word[:-1] + "ies", word[:-1] + "ied"}
    elif len(word) > 2 and word[-1] == "e":
        stems.add(word[:-1])
    elif _DOUBLING.search(word):
        stems.add(word + word[-1])
    for stem in stems - {word}:
        made |= {stem + "ed", stem + "ing"}
    return frozenset(made)


def read_list(text: str) -> tuple[str, ...]:
    """The entries of a word list: one a line; blank lines and lines that begin with # are not."""
    lines = (line.strip() for line in text.lstrip("\ufeff").splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


@dataclass(frozen=True, slots=True)
class FoundPhrase:
    """A phrase, by its number in the list that was given, and where it stands in the text."""

    phrase: int
    start: int
    end: int


class Phrases:
    """Looks up any number of phrases in one pass over a text, however many there are.

    Words are whole words; between two of them stands what stands in the phrase, where any white
    space and a hyphen are the same. A phrase that begins or ends with a character that belongs to
    no word (`c++`, `.pdf`) or that is of a script without blanks is looked up as plain text.
    """

    def __init__(self, phrases: Iterable[str], *, endings: bool) -> None:
        """With `endings`, each word may also have those of `forms`, `'s`, and stand after `l'`."""
        self._endings = endings
        self._ends: dict[tuple[str, ...], list[int]] = {}
        """The phrases by their words, each with what stands before it; for each beginning of one an
        empty list at least."""
        self._of_form: dict[str, tuple[str, ...]] = {}
        self._plain: list[tuple[int, str, frozenset[str]]] = []
        vocabulary: set[str] = set()
        for number, phrase in enumerate(phrases):
            folded = squeezed(fold(phrase))
            if not is_whole_words(folded):
                if folded:
                    self._plain.append((number, folded, frozenset(folded)))
                continue
            key: tuple[str, ...] = ()
            last_end = 0
            for word in words(folded):
                vocabulary.add(word.text)
                gap = _gap(folded[last_end : word.start]) if key else ""
                key, last_end = (*key, gap, word.text), word.end
                self._ends.setdefault(key, [])
            self._ends[key].append(number)
        for known in sorted(vocabulary):
            for form in forms(known) if endings else (known,):
                self._of_form[form] = (*self._of_form.get(form, ()), known)

    def first(self, folded: str) -> dict[int, FoundPhrase]:
        """Each phrase that stands in the text, at its first place. In no promised order.

        Places hold for a text that is `squeezed`.
        """
        found: dict[int, FoundPhrase] = {}
        for one in (*self._found_words(folded), *self._found_plain(folded)):
            found.setdefault(one.phrase, one)
        return found

    def all(self, folded: str) -> list[FoundPhrase]:
        """Each place of each phrase, in the order of the text; of plain ones the first place.

        Places hold for a text that is `squeezed`.
        """
        found = [*self._found_words(folded), *self._found_plain(folded)]
        return sorted(found, key=lambda one: (one.start, one.end, one.phrase))

    def _found_words(self, folded: str) -> Iterator[FoundPhrase]:
        parts = words(folded) if self._ends else []
        for first, word in enumerate(parts):
            openings = (("", known) for known in self._known(word.text, opens=True))
            keys: list[tuple[str, ...]] = [key for key in openings if key in self._ends]
            last = first
            while keys:
                for key in keys:
                    for number in self._ends[key]:
                        yield FoundPhrase(number, word.start, parts[last].end)
                last += 1
                if last == len(parts):
                    break
                gap = _gap(folded[parts[last - 1].end : parts[last].start])
                follow = [(gap, known) for known in self._known(parts[last].text, opens=False)]
                keys = [
                    new for key in keys for pair in follow if (new := (*key, *pair)) in self._ends
                ]

    def _known(self, word: str, *, opens: bool) -> Iterable[str]:
        """The words of phrases that this word of a text may stand for."""
        known = self._of_form.get(word, ())
        if not self._endings or "'" not in word:
            return known
        several = dict.fromkeys(known)
        if word.endswith("'s"):
            several.update(dict.fromkeys(self._of_form.get(word[:-2], ())))
        elided = word.rpartition("'")[2]
        if opens and len(elided) >= _ELIDED_MIN:
            several.update(dict.fromkeys(self._of_form.get(elided, ())))
        return several

    def _found_plain(self, folded: str) -> Iterator[FoundPhrase]:
        if not self._plain:
            return
        text = squeezed(folded)
        there = set(text)
        for number, phrase, needed in self._plain:
            if needed <= there and (start := text.find(phrase)) >= 0:
                yield FoundPhrase(number, start, start + len(phrase))


KNOWN_LISTS_MAX = 16


@lru_cache(maxsize=KNOWN_LISTS_MAX)
def phrases_of(phrases: tuple[str, ...], *, endings: bool) -> Phrases:
    """`Phrases` of a list that comes from a file: each agent, and each reading again, has the same.

    To make thousands of phrases ready takes tens of milliseconds.
    """
    return Phrases(phrases, endings=endings)


def is_whole_words(folded: str) -> bool:
    """Return whether a phrase is looked up by whole words, and not as plain text."""
    parts = words(folded)
    reaches_over = bool(parts) and parts[0].start == 0 and parts[-1].end == len(folded)
    return reaches_over and not is_unbordered(folded)


def _gap(between: str) -> str:
    """Return what stands between two words, white space and hyphens alike, emphasis left out."""
    if between in {" ", "-"}:
        return " "
    bare = between.translate(_EMPHASIS)
    return " " if bare.isspace() or bare == "-" else "".join(bare.split())
