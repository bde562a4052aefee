"""How the same words may be written otherwise: with Markdown marks, dashes or apostrophes between
them, characters that nobody sees, wide letters, ss for ß, as HTML or as JSON.

Pure; for `memory.wording`, which looks into texts, and `memory.scanning`, which looks into bytes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from agent.words import is_unbordered

_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_APOSTROPHES = "'\u2018\u2019\u02bc\uff07"
_MARKS = "*_~`"
_BLANKS = "\u00a0\u202f\u3000"
JOINTS = _DASHES + _APOSTROPHES + _MARKS
"""What counts as white space between words."""
UNSEEN = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
"""What counts as nothing."""

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
_BETWEEN = re.compile(rf"[\s{re.escape(JOINTS)}]+")
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


def pattern_of(phrases: Iterable[str]) -> re.Pattern[str] | None:
    """Finds any of them, however it is written; None where there is nothing to find."""
    forms = {form for phrase in phrases for form in forms_of(phrase)}
    if not forms:
        return None
    # The longest first: what stands inside another one would leave the rest of it.
    ordered = sorted(forms, key=lambda form: (-len(form), form))
    return re.compile("|".join(map(_flexible, ordered)), re.IGNORECASE)


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


def _flexible(form: str) -> str:
    words = words_of(form)
    shown = [_word(one) for one in words[:1]]
    for before, word in pairwise(words):
        # Scripts without blanks between words may have them or not.
        loose = is_unbordered(before[-1]) and is_unbordered(word[0])
        shown += [f"{_JOINT}{'*' if loose else '+'}", _word(word)]
    return "".join(shown)


def _word(word: str) -> str:
    letters = list(_letters(word))
    shown = [_letter(one) for one in letters[:1]]
    for before, letter in pairwise(letters):
        loose = is_unbordered(before) and is_unbordered(letter)
        shown += [f"{_JOINT}*" if loose else _NOTHING, _letter(letter)]
    return "".join(shown)


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


def seen(data: bytes) -> bytes:
    """Small bytes without those of characters that nobody sees."""
    for unseen in _UNSEEN_BYTES:
        if unseen in data:
            data = data.replace(unseen, b"")
    return data


def flat(data: bytes) -> bytes:
    """Small bytes with one blank for all that may stand between words."""
    return _GAP.sub(b" ", data)


def spellings(text: str) -> Sequence[str]:
    """The text, and with what may stand in place of its letters."""
    wide = "".join(chr(ord(c) + 0xFEE0) if c.isascii() and c.isalnum() else c for c in text)
    sharp = text.replace("ss", "ß").replace("SS", "ß")
    html = text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    narrow = unicodedata.normalize("NFKC", text)
    return tuple(dict.fromkeys([text, wide, sharp, text.replace("ß", "ss"), html, narrow]))
