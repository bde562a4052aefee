"""What of an unasked answer is worth a message, and whether it was told before. Pure.

A model that has nothing to say often says so, in many ways and wrappings (case SC-17); what it
found yesterday and finds again is no news (SPEC §11).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable

WORD = "HEARTBEAT_OK"
"""What a model answers that has nothing to report."""

_WRAPS = r"[\s*_`~\"'“”‘’«»()\[\]{}<>|.,;:!?…—–\-]"
_BEFORE = r"[\s*_`~\"'“”‘’«»()\[\]{}<>|,;:…—–\-]"
"""The same without what ends a sentence: that belongs to the words before."""
_TAG = r"</?\s*[A-Za-z][^<>]{0,40}>"
_TOKEN = re.compile(
    rf"(?:{_TAG}|{_BEFORE})*HEARTBEAT\\?[_ ]?OK(?![A-Za-z0-9])(?:{_TAG}|{_WRAPS})*", re.IGNORECASE
)
_TAGS = re.compile(_TAG)
_EDGES = re.compile(rf"^{_WRAPS}+|{_WRAPS}+$")

_TIMES = re.compile(
    r"\b\d{4}-\d{2}-\d{2}(?:[t ]\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:z|[+-]\d{2}:?\d{2})?)?\b"
    r"|\b\d{1,2}:\d{2}(?::\d{2})?(?:\s*[ap]\.?m\b\.?)?"
    r"|\b\d{1,2}\s*[ap]\.?m\b\.?"
    r"|\b\d+\s*(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?)\b(?:\s+(?:ago|left|late))?",
    re.I,
)
_SIGNS = re.compile(r"[^\w…%€$.,]+|(?<!\d)[.,]|[.,](?!\d)")
_NUMBERS = re.compile(r"\d+(?:[.,]\d+)*")

SAME_COSINE = 0.9
"""So alike are two findings that say the same, if no number differs (SPEC §11)."""


def without_token(text: str) -> str:
    """The text without the word that says "nothing", whatever stands around it; words beside it
    stay ("Dentist at 10. HEARTBEAT_OK" is about the dentist)."""
    if WORD[:9].casefold() not in text.casefold():
        return text.strip()
    parts = [part.strip() for part in _TOKEN.split(text)]
    return "\n".join(part for part in parts if part).strip()


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
    flat = _TAGS.sub(" ", unicodedata.normalize("NFKC", text))
    kept = "".join(char for char in flat if unicodedata.category(char) not in _UNTOLD)
    kept = " ".join(kept.casefold().replace("*", "").replace("`", "").split())
    return _EDGES.sub("", kept)


_UNTOLD = frozenset({"So", "Sk", "Cf", "Cs", "Co", "Mn"})
"""Categories of characters that say nothing by themselves: emoji and their joiners."""


def finding(text: str) -> str:
    """The text as it is compared: times and what counts them left out, case and blanks evened."""
    masked = _TIMES.sub("…", unicodedata.normalize("NFKC", text).casefold())
    kept = _SIGNS.sub(" ", masked)
    return " ".join(kept.split())


def is_told(
    text: str, former: Iterable[str], *, likeness: Callable[[str, str], float] | None = None
) -> bool:
    """Whether one of the `former` findings (see `finding`) says the same.

    With `likeness` (a cosine) also one in other words, unless a number differs.
    """
    new = finding(text)
    numbers = sorted(_NUMBERS.findall(new))
    for old in former:
        if old == new:
            return True
        if likeness is None or sorted(_NUMBERS.findall(old)) != numbers:
            continue
        if likeness(old, new) >= SAME_COSINE:
            return True
    return False


# --- the list of the heartbeat -------------------------------------------------------------------

MARKER = "Add your heartbeat tasks below this line"

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.S)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.S | re.M)
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
