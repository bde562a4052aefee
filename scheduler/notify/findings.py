"""Findings: what of an unasked answer is worth a message, and whether it was told already (SPEC
§11). Pure; called by `scheduler.notify.delivery`.

Times that are over may differ, as may how long ago something was and the time of looking. Any other
number, sign, date or time to come makes it news: told twice is a nuisance, swallowed is a loss.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import NamedTuple

SAME_COSINE = 0.9
"""So alike are two findings that say the same, if nothing telling differs (SPEC §11)."""

WORDS_CHANGED = 2
"""Of two texts of the same words but these, in the same places, they are what changed."""


def finding(text: str, *, now: datetime) -> str:
    """Return the text as it is kept and compared: case, blanks, markup and the marks that end
    sentences evened, ages left out, a mark behind each time that is over, as that of looking is.

    `now` is an aware moment in the zone of whoever hears of it.
    """
    flat = unicodedata.normalize("NFC", text.casefold()).translate(_PLAIN)
    lines = (" ".join(line.split()) for line in flat.splitlines())
    flat = _BULLETS.sub("", "\n".join(line for line in lines if line))
    flat = _EMPHASIS.sub("", flat)
    flat = _UNIT_BLANK.sub("", _DASHES.sub(" ", flat))
    flat = " ".join(_ENDS.sub("", flat).split())
    flat = _AGE.sub("… ago", flat)
    return _TIME.sub(lambda time: f"{time[0]}@" if _is_over(time, now) else time[0], flat)


def is_told(
    text: str,
    former: Iterable[str],
    *,
    now: datetime,
    likeness: Callable[[str, str], float] | None = None,
) -> bool:
    """Return whether one of the `former` findings (see `finding`) says the same.

    With `likeness` (a cosine) also one in other words, unless something telling differs: a number,
    a comparison, a negation, a day, or one or two words where all others are the same.
    """
    new = _read(finding(text, now=now))
    return any(_says_the_same(_read(old), new, likeness) for old in former)


class _Read(NamedTuple):
    """A finding as it was said, and without the times that were over."""

    said: str
    rest: str


def _read(found: str) -> _Read:
    return _Read(said=_OVER.sub(r"\g<time>", found), rest=_OVER.sub("…", found))


def _says_the_same(old: _Read, new: _Read, likeness: Callable[[str, str], float] | None) -> bool:
    if old.said == new.said or old.rest == new.rest:
        return True
    if likeness is None or _telling(old.rest) != _telling(new.rest):
        return False
    before, after = old.rest.split(), new.rest.split()
    if len(before) == len(after):
        # Mail from Ana, mail from Ben: not other words for the same.
        changed = sum(one != other for one, other in zip(before, after, strict=True))
        if changed <= WORDS_CHANGED:
            return False
    return likeness(old.said, new.said) >= SAME_COSINE


# --- what may differ -----------------------------------------------------------------------------

_PLAIN = {
    **dict.fromkeys(map(ord, "\u2010\u2011\u2212"), "-"),
    **dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff\ufe0e\ufe0f")),
    **str.maketrans("“”„’‘", '"""\'\''),
}

_BULLETS = re.compile(r"^(?:[-*+•>]|#{1,6}) (?!\d)", re.M)
_EMPHASIS = re.compile(
    r"(?<!\w)(?:\*{1,3}|_{1,3}|`{1,3}|~~)(?=[\w(\[\"'+-])|(?<=\S)[*_`]{1,3}(?!\w)"
)
_DASHES = re.compile(r" [-–—]{1,3} (?!\d)")
_UNIT_BLANK = re.compile(r"(?<=\d) (?=[%°€$£])")
_ENDS = re.compile(r"(?<![.,;:!])[.,;:!]+(?=\s|$)")

_LENGTH = (
    r"\d{1,6}(?:\.\d{1,3})? ?"
    r"(?:s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?)\b"
)
_AGE = re.compile(rf"\b{_LENGTH}(?:,? (?:and )?{_LENGTH}){{0,2}} ago\b")
_BARE = (
    r"(?<![\w:.-])(?:(?P<date>\d{4}-\d\d-\d\d)"
    r"(?:(?:t|,? )(?P<at>\d{1,2}:\d{2})(?::\d{2}(?:\.\d{1,9})?)?)?"
    r"|(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::\d{2}(?:\.\d{1,9})?)?)?"
    r"(?: ?(?P<half>[ap])\.?m\b\.?)?)(?P<utc> ?(?:z|utc|gmt)\b(?![+-]\d))?"
)
_TIME = re.compile(rf"{_BARE}(?![\w:%@])")
_OVER = re.compile(rf"(?P<time>{re.sub('[?]P<[a-z]+>', '?:', _BARE)})@")


def _is_over(time: re.Match[str], now: datetime) -> bool:
    """Return whether it is a time of today that is over, or a day before today. A bare number is
    none."""
    date, hour, minute, half = time["date"], time["hour"], time["minute"], time["half"]
    if time["utc"]:
        now = now.astimezone(UTC)
    try:
        if date is not None:
            at = datetime.fromisoformat(f"{date} {(time['at'] or '23:59').zfill(5)}")
        elif minute is None and half is None:
            return False
        else:
            hours = int(hour) if half is None else int(hour) % 12 + 12 * (half == "p")
            at = now.replace(tzinfo=None, hour=hours, minute=int(minute or 0))
    except ValueError:  # no such time
        return False
    return at <= now.replace(tzinfo=None)


# --- what tells one finding from another ---------------------------------------------------------

_NUMBERS = re.compile(
    r"[-+±<>≤≥=≠~€$£]{0,3}\d+(?:[.,:/-]\d+)*[%°€$£]?|[<>≤≥≠=↑↓→←±]|[^\W\d]+(?:'t)?"
)
_WORDS = frozenset(
    [
        *("no", "not", "never", "none", "nobody", "nothing", "nor", "without", "cannot", "can't"),
        *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
        *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
        *("eighteen", "nineteen", "twenty", "thirty", "forty", "fifty", "sixty", "seventy"),
        *("eighty", "ninety", "hundred", "thousand", "million", "half", "twice"),
        *("first", "second", "third", "last", "next"),
        *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
        *("january", "february", "march", "april", "may", "june", "july", "august"),
        *("september", "october", "november", "december"),
        *("today", "tomorrow", "yesterday", "tonight", "late", "early", "before", "after"),
        *("up", "down", "open", "opened", "closed", "online", "offline", "above", "below"),
        *("failed", "failing", "succeeded", "passed", "won", "lost", "gained"),
        *("rose", "fell", "rises", "falls", "higher", "lower", "more", "less", "added", "removed"),
    ]
)
"""Words that turn what is said into something else while a cosine stays high."""


def _telling(said: str) -> list[str]:
    """Numbers with their signs and units, comparisons, and such words, in their order."""
    found = _NUMBERS.findall(said)
    return [one for one in found if not one[0].isalpha() or one in _WORDS or one.endswith("n't")]


# --- trivial ------------------------------------------------------------------------------------
#
# A model that has nothing to say often says so, in many ways and wrappings (case SC-17). Words
# beside it are kept, whatever they look like: a notice too many is a nuisance, a swallowed one is
# a loss.

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
    while found := next(
        (one for one in _BESIDE.finditer(rest) if "_" in one[0] or _CAPITALS.search(one[0])), None
    ):
        before, after = rest[: found.start()], rest[found.end() :]
        if not after.strip():
            before = _DASH.sub("", before)
        rest = f"{before}{after}".rstrip()
    return rest


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
