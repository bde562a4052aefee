"""What of an unasked answer is worth a message. Pure.

A model that has nothing to say often says so, in many ways and wrappings (case SC-17). Words beside
it are kept, whatever they look like: a notice too many is a nuisance, a swallowed one is a loss.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Sequence

WORD = "HEARTBEAT_OK"
"""What a model answers that has nothing to report."""

_NAME = "heartbeat"

# Tags by their names, and with no words in them: "<Server 5 is down>" is a sentence.
_TAG_NAMES = (
    "b|big|blockquote|body|br|center|code|del|details|div|em|font|h[1-6]|html|i|ins|kbd|li|mark|ol"
    "|p|pre|q|s|samp|section|small|span|strike|strong|sub|summary|sup|td|tr|tt|u|ul"
    "|answer|final|message|output|reply|response|result"
)
_ATTRIBUTE = r"\s{1,5}[a-z-]{1,20}=(?:\"[^\"<>\s]{0,40}\"|'[^'<>\s]{0,40}')"
_TAG = re.compile(rf"</?(?:{_TAG_NAMES})(?:{_ATTRIBUTE}){{0,5}}\s{{0,5}}/?>", re.I)

# These two are matched on folded text: small letters, and nothing that is not seen.
_LEAD = (
    r"[\W_]*(?:\d{1,3}[.)][\W_]*)?"
    r"(?:(?:answer|heartbeat|output|reply|report|response|result|status)[\W_]+)?"
)
_ALONE = re.compile(rf"{_LEAD}(?:{_NAME}[\s_\\\-\u2010-\u2015:.*`~]{{0,12}}ok[\W_]*)+")
_BESIDE = re.compile(
    rf"(?<![^\W_])(?<![^\W_]_){_NAME}((?:\\?_)+|[ \-\u2010-\u2015]?)ok(?![^\W_])(?!_[^\W_])"
)

_FENCE_LINE = re.compile(r"(?:`{3,}+|~{3,}+)[\w+-]{0,15}")
_OPENING = re.compile(r"(?<!\S)[*_`~]{1,3}\Z")
_CLOSING = re.compile(r"[*_`~]{1,3}(?!\w)")
_AFTER = re.compile(r"(?:[.,;:!?…]+(?!\d))?\s*(?:[—–-]{1,3}\s+)?")
_WRAPS = " \t\r\n*_`~\"'“”‘’«»()[]{}<>|.,;:!?…—–-"

PAIRS_MAX = 20
"""More wrappings around one another are not taken off."""


def without_token(text: str) -> str:
    """The text without the word that says "nothing", whatever stands around it; words beside it
    stay ("Dentist at 10. HEARTBEAT_OK" is about the dentist)."""
    if _NAME not in _folded(text):
        return text.strip()
    lines = text.split("\n")
    gone = _lines_of_nothing(lines)
    kept: list[str] = []
    is_behind_gap = False
    for number, line in enumerate(lines):
        rest = "" if number in gone else _cut(line)
        if number in gone or (line.strip() and not rest.strip()):
            is_behind_gap = True
        elif rest.strip():
            kept.append(rest)
            is_behind_gap = False
        elif not (is_behind_gap and kept and not kept[-1].strip()):
            kept.append(rest)
    return "\n".join(kept).strip()


def is_trivial(text: str, phrases: Iterable[str]) -> bool:
    """Whether nothing is said: no word, emoji alone, or one of the phrases, whatever wraps it."""
    bare = _bare(text)
    if not any(char.isalnum() for char in bare):
        return True
    return bare in {_bare(phrase) for phrase in phrases}


def phrases_of(text: str) -> tuple[str, ...]:
    """The phrases of a list: one a line, bullets and headings aside."""
    lines = (line.strip().removeprefix("- ").strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith(("#", "<!--")))


def _bare(text: str) -> str:
    """Without wrapping, markup, emoji and case."""
    flat = _TAG.sub(" ", unicodedata.normalize("NFKC", text))
    kept = "".join(char for char in flat if unicodedata.category(char) not in _UNTOLD)
    kept = " ".join(kept.casefold().replace("*", "").replace("`", "").split())
    return kept.lstrip("#").strip(_WRAPS)


_UNTOLD = frozenset({"So", "Sk", "Cf", "Cs", "Co", "Mn"})
"""Categories of characters that say nothing by themselves: emoji and their joiners."""
_UNSEEN = frozenset({"Cf", "Mn"})


# --- the word that says "nothing" ----------------------------------------------------------------


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else "".join(_shadow(text)[0])


def _shadow(text: str) -> tuple[list[str], list[int]]:
    """Plain small letters, also of those that only look otherwise, without what is not seen; with
    the place in the text of each."""
    chars: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        plain = char if char.isascii() else unicodedata.normalize("NFKC", char)
        for one in plain.lower():
            if one.isascii() or unicodedata.category(one) not in _UNSEEN:
                chars.append(one)
                places.append(place)
    return chars, places


def _lines_of_nothing(lines: Sequence[str]) -> set[int]:
    """Numbers of the lines that hold the word alone, and of those that only wrap these."""
    alone = [_is_alone(line) for line in lines]
    gone: set[int] = set()
    number = 0
    while number < len(lines):
        if not alone[number]:
            number += 1
            continue
        first = last = number
        while number < len(lines) and (alone[number] or not lines[number].strip()):
            last = number if alone[number] else last
            number += 1
        while (wrapping := _around(lines, first, last)) is not None:
            first, last = wrapping
        gone.update(range(first, last + 1))
    return gone


def _is_alone(line: str) -> bool:
    folded = _folded(line)
    if _NAME not in folded:
        return False
    return _ALONE.fullmatch(_TAG.sub(" ", html.unescape(folded))) is not None


def _around(lines: Sequence[str], first: int, last: int) -> tuple[int, int] | None:
    """The lines next to a stretch where both do nothing but wrap it: a fence, tags, a comment."""
    above = next((n for n in range(first - 1, -1, -1) if lines[n].strip()), None)
    below = next((n for n in range(last + 1, len(lines)) if lines[n].strip()), None)
    if above is None or below is None:
        return None
    opening, closing = lines[above].strip(), lines[below].strip()
    is_fence = _FENCE_LINE.fullmatch(opening) and closing in {
        "`" * len(closing),
        "~" * len(closing),
    }
    if (
        (is_fence and opening.startswith(closing))
        or (_TAG.fullmatch(opening) and _TAG.fullmatch(closing))
        or (opening == "<!--" and closing == "-->")
        or (opening == closing and opening in {"$$", "**", "*", "_", "__", "---"})
    ):
        return above, below
    return None


def _cut(line: str) -> str:
    """A line without the word; in other spellings than its own only in capitals, as a heart may
    beat well in a sentence."""
    if _NAME not in _folded(line):
        return line
    chars, places = _shadow(line)
    rest = line
    for match in reversed(list(_BESIDE.finditer("".join(chars)))):
        start, end = places[match.start()], places[match.end() - 1] + 1
        if "_" in match[1] or unicodedata.normalize("NFKC", line[start:end]).isupper():
            rest = _joined(rest[:start], rest[end:])
    return rest


def _joined(before: str, after: str) -> str:
    """What stood on both sides of the word, without what belonged to it."""
    for _ in range(PAIRS_MAX):
        left, right = before.rstrip(), after.lstrip(" \t.,;:!?…")
        sizes = _pair(left, right)
        if sizes is None:
            break
        before, after = left[: len(left) - sizes[0]], right[sizes[1] :]
    if (mark := _OPENING.search(before[-4:])) and mark[0] not in after:
        before = before[: len(before) - len(mark[0])]
    if (mark := _CLOSING.match(after)) and mark[0] not in before:
        after = after[mark.end() :]
    rest = after[_AFTER.match(after).end() :]  # type: ignore[union-attr]  # it matches nothing too
    before = _without_dash(before.rstrip()).rstrip(",;:")
    if before and rest and _OPENING.search(before[-4:]):
        return before + rest
    return f"{before.rstrip()} {rest}" if before.strip() and rest else f"{before}{rest}".rstrip()


def _without_dash(before: str) -> str:
    """Without a dash that stands for itself behind words; a lone one is the mark of a list."""
    words = before.rstrip("—–-")
    return words.rstrip() if words.strip() and words[-1].isspace() else before


def _pair(left: str, right: str) -> tuple[int, int] | None:
    """How long the ends are that wrap what is between them."""
    if not left or not right:
        return None
    if left.endswith("<!--") and right.startswith("-->"):
        return 4, 3
    place = left.rfind("<")
    tag = _TAG.match(right)
    if tag and place >= 0 and _TAG.fullmatch(left[place:]):
        return len(left) - place, tag.end()
    return (1, 1) if (left[-1], right[0]) in _PAIRS else None


_PAIRS = frozenset(
    [*zip("([{<«»“„‘", ")]}>»«”“’", strict=True), *((mark, mark) for mark in "*_`~\"'$|/")]
)


# --- the list of the heartbeat -------------------------------------------------------------------

MARKER = "Add your heartbeat tasks below this line"

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.S)
_FENCE = re.compile(r"^[ \t]*(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.S | re.M)
_EMPTY_ITEM = re.compile(r"(?:[-*+]|\d+[.)])?\s*(?:\[[ xX]?\])?\s*")
_BARE_LINK = re.compile(r"(?:[-*+]|\d+[.)])?\s*(?:!?\[[^\]]*\]\([^)]*\)|<?https?://\S+>?)[\s.,;]*")
_RULE = re.compile(r"[-*_=\s]{3,}")
_HEADING = re.compile(r"#{1,6}(?:\s.*)?")


def has_tasks(text: str) -> bool:
    """Whether a heartbeat list holds anything to look at (SPEC §11): what stands below the marker
    line, or all of it where there is none, less headings, comments, fenced blocks, bare links,
    empty items and boxes."""
    return any(True for _ in task_lines(text))


def task_lines(text: str) -> Iterable[str]:
    """The lines that count."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = plain.split("\n")
    marked = [n for n, line in enumerate(lines) if MARKER.casefold() in line.casefold()]
    below = "\n".join(lines[marked[-1] + 1 :]) if marked else plain
    for line in _FENCE.sub("", _COMMENT.sub("", below)).split("\n"):
        bare = line.strip()
        nothing = (_EMPTY_ITEM, _BARE_LINK, _RULE, _HEADING)
        if bare and not any(one.fullmatch(bare) for one in nothing):
            yield bare
