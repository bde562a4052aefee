"""What of an unasked answer is worth a message. Pure.

A model that has nothing to say often says so, in many ways and wrappings (case SC-17). Words beside
it are kept, whatever they look like: a notice too many is a nuisance, a swallowed one is a loss.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable

WORD = "HEARTBEAT_OK"
"""What a model answers that has nothing to report."""

# Tags with no words in them: "<Server 5 is down>" is a sentence.
_TAG = re.compile(
    r"</?[a-z][a-z0-9]{0,9}(?:\s+[a-z-]{1,20}=(?:\"[^\"<>]*\"|'[^'<>]*'))*\s*/?>", re.I
)
_NOTHING_WRAPPED = re.compile(
    r"<([a-z][a-z0-9]*)[^<>]*>\s*</\1>|(?:`{3,}|~{3,})\w*\s*(?:`{3,}|~{3,})"
)
_LABEL = re.compile(
    r"[\W_]*(?:\d{1,3}[.)][\W_]*)?"
    r"(?:(?:answer|heartbeat|output|reply|report|response|result|status)\W[\W_]*)?",
    re.I,
)

# Alone on a line it may be spelled in any way; beside words only as it is, or in capitals, as a
# heart may beat well in a sentence.
_ALONE = re.compile(r"heartbeat[\s_\\:.*`~\u2010-\u2015-]{0,12}ok", re.I)
_BESIDE = re.compile(
    r"(?<![^\W_])(?<![^\W_]_)[*_`~\"'“”‘’«(\[]{0,6}"
    r"(?:heartbeat(?:\\?_)+ok|HEARTBEAT[ \u2010-\u2015-]?OK)(?![^\W_])(?!_[^\W_])"
    r"[*_`~\"'“”‘’»)\]]{0,6}(?:[.,;:!?…]+(?!\d))?(?: +[—–-]+(?= ))?[ \t]*",
    re.I,
)
_CAPITALS = re.compile(r"HEARTBEAT[ \u2010-\u2015-]?OK")
_DASH = re.compile(r"\s+[—–-]{1,3}\s*\Z")
_WRAPS = " \t\r\n*_`~\"'“”‘’«»()[]{}<>|.,;:!?…—–-"


def without_token(text: str) -> str:
    """Return the text without the word that says "nothing", whatever stands around it; words beside
    it stay ("Dentist at 10. HEARTBEAT_OK" is about the dentist)."""
    if not _ALONE.search(text):
        # Letters that only look otherwise, and what is not seen: looked for, and shown, as plain.
        plain = "".join(
            one for one in unicodedata.normalize("NFKC", text) if unicodedata.category(one) != "Cf"
        )
        if not _ALONE.search(plain):
            return text.strip()
        text = plain
    kept: list[str] = []
    for line in text.split("\n"):
        rest = _cut(line)
        is_gap = not rest.strip() and (not kept or not kept[-1].strip())
        if (rest == line or rest.strip()) and not is_gap:
            kept.append(rest)
    joined = _NOTHING_WRAPPED.sub("", "\n".join(kept)).strip()
    return joined if any(char.isalnum() for char in _bare(html.unescape(joined))) else ""


def _cut(line: str) -> str:
    """Return a line without the word; empty, where nothing else stands there."""
    if not _ALONE.search(line):
        return line
    if _LABEL.fullmatch(_TAG.sub(" ", html.unescape(_ALONE.sub(" ", line)))):
        return ""
    rest = line
    while (found := _token(rest)) is not None:
        before, after = rest[: found.start()], rest[found.end() :]
        if not after.strip():
            before = _DASH.sub("", before)
        rest = f"{before}{after}".rstrip()
    return rest


def _token(line: str) -> re.Match[str] | None:
    found = _BESIDE.finditer(line)
    return next((one for one in found if "_" in one[0] or _CAPITALS.search(one[0])), None)


def is_trivial(text: str, phrases: Iterable[str]) -> bool:
    """Return whether nothing is said: no word, emoji alone, or one of the phrases, whatever wraps
    it."""
    bare = _bare(text)
    if not any(char.isalnum() for char in bare):
        return True
    return bare in {_bare(phrase) for phrase in phrases}


def phrases_of(text: str) -> tuple[str, ...]:
    """Return the phrases of a list: one a line, bullets and headings aside."""
    lines = (line.strip().removeprefix("- ").strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith(("#", "<!--")))


def _bare(text: str) -> str:
    """Return it without wrapping, markup, emoji and case."""
    flat = _TAG.sub(" ", unicodedata.normalize("NFKC", text))
    kept = "".join(char for char in flat if unicodedata.category(char) not in _UNTOLD)
    kept = " ".join(kept.casefold().replace("*", "").replace("`", "").split())
    return kept.lstrip("#").strip(_WRAPS)


_UNTOLD = frozenset({"So", "Sk", "Cf", "Cs", "Co", "Mn"})
"""Categories of characters that say nothing by themselves: emoji and their joiners."""


# --- the list of the heartbeat -------------------------------------------------------------------

MARKER = "Add your heartbeat tasks below this line"

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.S)
_FENCE = re.compile(r"^[ \t]*(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.S | re.M)
_EMPTY_ITEM = re.compile(r"(?:[-*+]|\d+[.)])?\s*(?:\[[ xX]?\])?\s*")
_BARE_LINK = re.compile(r"(?:[-*+]|\d+[.)])?\s*(?:!?\[[^\]]*\]\([^)]*\)|<?https?://\S+>?)[\s.,;]*")
_RULE = re.compile(r"[-*_=\s]{3,}")
_HEADING = re.compile(r"#{1,6}(?:\s.*)?")


def has_tasks(text: str) -> bool:
    """Return whether a heartbeat list holds anything to look at (SPEC §11): what stands below the
    marker line, or all of it where there is none, less headings, comments, fenced blocks, bare
    links, empty items and boxes."""
    return any(True for _ in task_lines(text))


def task_lines(text: str) -> Iterable[str]:
    """Return the lines that count."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = plain.split("\n")
    marked = [n for n, line in enumerate(lines) if MARKER.casefold() in line.casefold()]
    below = "\n".join(lines[marked[-1] + 1 :]) if marked else plain
    for line in _FENCE.sub("", _COMMENT.sub("", below)).split("\n"):
        bare = line.strip()
        nothing = (_EMPTY_ITEM, _BARE_LINK, _RULE, _HEADING)
        if bare and not any(one.fullmatch(bare) for one in nothing):
            yield bare
