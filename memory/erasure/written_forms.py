"""How the same words may be written otherwise: with Markdown marks, dashes or apostrophes between
them, hyphens within long ones, characters that nobody sees, wide letters, ss for ß, as HTML or as
JSON.

Pure; for `memory.erasure.verify`, which looks into texts, and `memory.erasure.verify`, which looks
into bytes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from memory.records.words import is_unbordered

_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_APOSTROPHES = "'\u2018\u2019\u02bc\uff07"
_MARKS = "*_~`"
_BLANKS = "\u00a0\u202f\u3000"
JOINTS = _DASHES + _APOSTROPHES + _MARKS
"""What counts as white space between words."""
UNSEEN = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
"""What counts as nothing."""
HYPHENS = "-\u2010\u2011"
"""What counts as nothing within a long word, also at the end of a line."""
HYPHENATED_MIN = 6
"""Letters of such a word: a shorter one might end one word and begin the next (`man-or`)."""
HEAD_LETTERS = 100
"""Of a phrase, that are looked for at once; whether the rest follows is looked at where they are
found. A pattern of all letters of a long word would take seconds to be made."""

_ESCAPED_JOINTS = "|".join(f"{ord(one):04x}" for one in JOINTS + _BLANKS)
_ESCAPED_UNSEEN = "|".join(f"{ord(one):04x}" for one in UNSEEN)
_NOTHING = rf"(?:[{UNSEEN}]|&(?:shy|zwnj|zwj|\#173|\#xad);|\\u(?:{_ESCAPED_UNSEEN}))*"
_ENTITIES = (
    r"nbsp|apos|rsquo|lsquo|ndash|mdash|\#160|\#0?39|\#8217|\#8211|\#8212|\#xa0|\#x27|\#x2019"
)
_JOINT = (
    rf"(?:[\s{re.escape(JOINTS)}{UNSEEN}]|\\[nrt]|&(?:{_ENTITIES}|shy);"
    rf"|\\u(?:{_ESCAPED_JOINTS}|{_ESCAPED_UNSEEN}))"
)
_LINE_END = r"(?:[ \t]*(?:\r?\n|(?:\\r)?\\n)[ \t]*)?"
_BROKEN = (
    rf"(?:(?:[{HYPHENS}\u00ad]|&shy;|\\u(?:00ad|2010|2011)){_LINE_END}"
    rf"|[{UNSEEN[1:]}]|&(?:zwnj|zwj|\#173|\#xad);|\\u(?:{_ESCAPED_UNSEEN}))*"
)
_AT_HYPHEN = re.compile(rf"[{HYPHENS}\u00ad](?:\s|\\[nr])*")
_BETWEEN = re.compile(rf"[\s{re.escape(JOINTS)}]+")
_SPLIT = re.compile(f"({_BETWEEN.pattern})")
_HYPHEN = frozenset(HYPHENS)
_RARE_HYPHENS = f"{HYPHENS[1:]}\u00ad"
_PARTING = (*(one.encode() for one in _RARE_HYPHENS), b"\\n", b"\\r")
_HTML = {"&": "amp", '"': "quot", "<": "lt", ">": "gt"}
_GATE = str.maketrans({**dict.fromkeys(UNSEEN), "İ": "i", "ı": "i"})
_ASCII_RUN = re.compile(r"[A-Za-z0-9]{3,}")


def forms_of(phrase: str) -> set[str]:
    """The phrase as Unicode may compose it, without what is not seen."""
    bare = "".join(char for char in phrase if char not in UNSEEN).strip()
    forms = {unicodedata.normalize(form, bare) for form in ("NFC", "NFD", "NFKC")}
    return {form for form in forms if words_of(form)}


def words_of(form: str) -> list[str]:
    """Without what only joins them."""
    return [word for word in _BETWEEN.split(form) if word]


class Finder:
    """Finds any of some phrases in texts, however they are written."""

    def __init__(self, phrases: Iterable[str]) -> None:
        forms = {form for phrase in phrases for form in forms_of(phrase)}
        # The longest first: what stands inside another one would leave the rest of it.
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self._forms = [_tokens(form) for form in ordered]
        self._is_short = all(len(tokens) <= HEAD_LETTERS for tokens in self._forms)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def is_in(self, text: str) -> bool:
        """Whether any of them stands there."""
        return next(self.spans(text), None) is not None

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where they stand, in order, none over another."""
        at = 0
        while self._forms and (found := self._heads.search(text, at)) is not None:
            end = found.end() if self._is_short else self._end(text, found.start())
            if end is None:
                at = found.start() + 1
            else:
                yield found.start(), end
                at = end

    def replaced(self, text: str, put: str) -> str:
        """The text with something else in place of each."""
        parts, at = list[str](), 0
        for begin, end in self.spans(text):
            parts += [text[at:begin], put]
            at = end
        return "".join([*parts, text[at:]])

    @cached_property
    def _heads(self) -> re.Pattern[str]:
        heads = ("".join(tokens[:HEAD_LETTERS]) for tokens in self._forms)
        return re.compile("|".join(dict.fromkeys(heads)), re.IGNORECASE)

    @cached_property
    def _token(self) -> dict[str, re.Pattern[str]]:
        every = {token for tokens in self._forms for token in tokens}
        return {token: re.compile(token, re.IGNORECASE) for token in every}

    def _end(self, text: str, begin: int) -> int | None:
        """Of the longest form that stands there."""
        ends = (self._end_of(tokens, text, begin) for tokens in self._forms)
        return next((end for end in ends if end is not None), None)

    def _end_of(self, tokens: Sequence[str], text: str, at: int) -> int | None:
        for token in tokens:
            found = self._token[token].match(text, at)
            if found is None:
                return None
            at = found.end()
        return at


def anchors_of(phrases: Iterable[str]) -> tuple[str, ...]:
    """A stretch of each that every form of it has, for a quick look; nothing where one has none."""
    found = []
    for phrase in phrases:
        for form in forms_of(phrase):
            runs = _ASCII_RUN.findall(unicodedata.normalize("NFC", form))
            if not runs:
                return ()
            found.append(max(runs, key=len).casefold())
    return tuple(dict.fromkeys(found))


def for_a_look(text: str) -> str:
    """The text as the anchors are looked for in."""
    if text.isascii():
        return text.casefold()
    return unicodedata.normalize("NFKD", text.translate(_GATE)).casefold().translate(_GATE)


def has_hyphen(text: str) -> bool:
    """Whether hyphens may part words of it, also at the end of a line."""
    return "-" in text or (not text.isascii() and any(one in text for one in _RARE_HYPHENS))


def for_a_look_past_hyphens(folded: str) -> bytes:
    """A text that was made for a look, without all that may part a word: quick, and more than is
    asked for."""
    data = folded.encode("utf-8", "replace")
    for gone in _PARTING:
        if gone in data:
            data = data.replace(gone, b"")
    return data.translate(None, b"-\r\n\t ")


def unhyphenated(text: str) -> str:
    """The text with what hyphens part put together, whether or not they part a word."""
    return _AT_HYPHEN.sub("", text)


def _tokens(form: str) -> list[str]:
    """A pattern for each letter of a form, with what may stand before it."""
    tokens: list[str] = []
    before = ""
    parts = _SPLIT.split(form)
    for n, word in enumerate(parts[::2]):
        is_long = _is_long(_compound(parts, 2 * n))
        gap = _between(parts[2 * n - 1], is_long=is_long) if tokens else ""
        for letter in _letters(word):
            if before and is_unbordered(before) and is_unbordered(letter):
                gap = f"{_JOINT}*"  # such scripts may have blanks anywhere or nowhere
            tokens.append(f"{gap}{_letter(letter)}")
            before = letter[-1]
            gap = _BROKEN if is_long else _NOTHING
    return tokens


def _compound(parts: Sequence[str], at: int) -> str:
    """The word with those that single hyphens join to it. Of the parts each second one is what
    stands between two words."""
    first = last = at
    while first > 1 and parts[first - 1] in _HYPHEN:
        first -= 2
    while last + 2 < len(parts) and parts[last + 1] in _HYPHEN:
        last += 2
    return "".join(parts[first : last + 1 : 2])


def _is_long(word: str) -> bool:
    return sum(map(str.isalpha, word)) >= HYPHENATED_MIN


def _between(joint: str, *, is_long: bool) -> str:
    """What may stand between two words."""
    return f"{_JOINT}*" if is_long and joint in _HYPHEN else f"{_JOINT}+"


def _letters(word: str) -> Iterator[str]:
    """One by one, but ss as one: it may be written ß."""
    at = 0
    while at < len(word):
        size = 2 if word[at : at + 2].casefold() == "ss" else 1
        yield word[at : at + size]
        at += size


def _letter(char: str) -> str:
    """As JSON and HTML write it too, and as a wide one."""
    if char in "ßẞ" or char.casefold() == "ss":
        return rf"(?:ss|ß|ẞ|\\u00df|\\u1e9e|s{_NOTHING}s)"
    if char == "İ":
        return r"(?:İ|i\u0307|i|\\u0130)"
    if not char.isascii():
        units = char.encode("utf-16-be").hex()
        escaped = "".join(rf"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
        return f"(?:{re.escape(char)}|{escaped})"
    wide = chr(ord(char) + 0xFEE0)
    if char.isalnum():
        return rf"(?:[{char}{wide}]|\\u{ord(wide):04x})"
    if char in _HTML:
        escape = r"\\?" if char == '"' else ""
        return f"(?:&{_HTML[char]};|&\\#{ord(char)};|{escape}{re.escape(char)}|{wide})"
    return f"(?:{re.escape(char)}|{wide})"


# --- as bytes ------------------------------------------------------------------------------------

_SOME = [one.encode() for one in JOINTS + _BLANKS] + [
    b"\\u" + f"{ord(one):04x}".encode() for one in JOINTS + _BLANKS if not one.isascii()
]
_ENTITY_BYTES = [b"&nbsp;", b"&apos;", b"&rsquo;", b"&#39;", b"&#x27;", b"&#160;", b"&#xa0;"]
_SPACE_BYTES = rb"(?:\s|\\[nrt]|" + b"|".join(map(re.escape, [*_SOME, *_ENTITY_BYTES])) + b")"
# In UTF-16 there is a zero between two of them.
_GAP = re.compile(_SPACE_BYTES + rb"+(?:\x00" + _SPACE_BYTES + rb")*")
_UNSEEN_BYTES = tuple(
    data for one in UNSEEN for data in (one.encode(), b"\\u" + f"{ord(one):04x}".encode())
)

_HYPHEN_BYTES = (
    *(one.encode() for one in f"{HYPHENS}\u00ad"),
    *(b"\\u" + f"{ord(one):04x}".encode() for one in f"{HYPHENS[1:]}\u00ad"),
    b"&shy;",
)
# A letter of another script is any byte of it; in UTF-16 there is a zero between two letters.
_BREAK = re.compile(
    rb"(?<=[a-z\x80-\xff])(\x00?)"
    rb"(?:" + b"|".join(map(re.escape, _HYPHEN_BYTES)) + rb")\x00?"
    rb"(?:[ \t\x00]*(?:\r?\x00?\n|(?:\\r)?\\n)[ \t]*\x00?)?(?=\x00?[a-z\x80-\xff])"
)


def seen(data: bytes) -> bytes:
    """Small bytes without those of characters that nobody sees."""
    for unseen in _UNSEEN_BYTES:
        if unseen in data:
            data = data.replace(unseen, b"")
    return data


def flat(data: bytes) -> bytes:
    """Small bytes with one blank for all that may stand between words."""
    return _GAP.sub(b" ", data)


def joined(data: bytes) -> bytes:
    """Small bytes without hyphens between two letters, also at the end of a line."""
    if not any(hyphen in data for hyphen in _HYPHEN_BYTES):
        return data
    return _BREAK.sub(rb"\1", data)


def gist(data: bytes) -> bytes:
    """Small bytes without anything that `joined` may take out: for a quick look."""
    for gone in (*_HYPHEN_BYTES[1:], b"\\n", b"\\r"):
        if gone in data:
            data = data.replace(gone, b"")
    return data.translate(None, b"-\r\n\t \x00")


def has_long_word(text: str) -> bool:
    """Whether any word of it may be hyphenated."""
    parts = _SPLIT.split(text)
    return any(_is_long(_compound(parts, at)) for at in range(0, len(parts), 2))


def spellings(text: str) -> Sequence[str]:
    """The text, and with what may stand in place of its letters."""
    wide = "".join(chr(ord(c) + 0xFEE0) if c.isascii() and c.isalnum() else c for c in text)
    sharp = text.replace("ss", "ß").replace("SS", "ß")
    html = text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    narrow = unicodedata.normalize("NFKC", text)
    return tuple(dict.fromkeys([text, wide, sharp, text.replace("ß", "ss"), html, narrow]))
