"""What the owner should look at twice before approving a skill, and limits of a stored playbook.

A search for well-known shapes, no proof of anything: a clean result says little, a finding says
where to look. Quarantine does not depend on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from agent.skills.parser import FILE_BYTES_MAX, Unreadable
from agent.skills.places import Stamp, read_file, shown, stamps
from agent.skills.reader import DESCRIPTION_MAX, is_name
from agent.skills.skill import Skill
from memory.records.rows import StoredPlaybook
from memory.records.text import clean

LINE_CHARS_MAX = 5_000
TEXT_BYTES_MAX = 500_000
"""Of one file; a second for each megabyte is what looking costs."""
FINDINGS_MAX = 5
"""In one file; more would only be scrolled past."""

LISTED_MAX = 50
LOOKED_THROUGH_BYTES_MAX = 3_000_000

_PROGRAMS = (b"\x7fELF", b"MZ", b"\xfe\xed\xfa", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
_SHAPES = tuple(
    (re.compile(pattern, re.IGNORECASE), text)
    for pattern, text in (
        (
            r"\b(?:curl|wget|iwr|invoke-webrequest)\b.{0,300}?\|\s*"
            r"(?:sudo\s+)?(?:(?:ba|z|da|k)?sh|python3?|perl|node|iex)\b",
            "runs what it downloads",
        ),
        (
            r"(?:<\(|\$\(|`|\beval\b)\s*[\"']?\s*(?:curl|wget)\b|\biex\s*\(?.{0,40}\b(?:iwr|new-object)",
            "runs what it downloads",
        ),
        (
            r"\bbase64\s+(?:-d|-D|--decode)\b|\bb64decode\b|\batob\s*\(|frombase64string"
            r"|\bxxd\s+-r\b",
            "decodes hidden text",
        ),
        (r"[A-Za-z0-9+/_-]{200,}={0,2}|(?:\\x[0-9a-f]{2}){40,}", "holds a long encoded text"),
        (
            r"\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|earlier"
            r"|all|system|your)\b.{0,30}\b(?:instructions?|rules?|prompts?|guidelines?)\b",
            "tells the assistant to drop its instructions",
        ),
        (
            r"\b(?:do not|don't|never|without)\b.{0,15}\b(?:tell|inform|show|ask|telling|informing"
            r"|asking|mention(?:ing)?)\b.{0,20}\b(?:user|person|owner|human|anyone)\b",
            "tells the assistant to keep something from its person",
        ),
        (
            r"\b(?:send|paste|share|provide|enter|post|upload|give|tell|reveal|print|export)\b"
            r".{0,60}\b(?:api[ _-]?keys?|passwords?|passphrase|private[ _-]?keys?"
            r"|(?:access|bot)[ _-]?tokens?|seed[ _-]?phrase|credentials?|secrets?)\b",
            "asks for keys or passwords",
        ),
        (
            r"(?:~|\$HOME|%USERPROFILE%|/root|/home/\w+)[/\\]\.(?:ssh|aws|gnupg|kube|netrc|config/gcloud)"
            r"|\bid_(?:rsa|ed25519)\b|/etc/(?:passwd|shadow)\b|(?<![\w.])\.env\b|\bwallet\.dat\b",
            "reaches for files that hold secrets",
        ),
        (
            r"\brm\s+-(?:rf|fr|r\s+-f)\s+(?:--no-preserve-root\s+)?[\"']?(?:/|~|\$HOME)(?:\s|[\"'*/]|$)"
            r"|\bmkfs\.|\bdd\s+.{0,40}\bof=/dev/",
            "deletes a whole disk or home",
        ),
        (r"com\.apple\.quarantine|\bsudo\b|\bchmod\s+(?:\+s|[0-7]?777)\b", "asks for more rights"),
    )
)
_UNSEEN = re.compile("[\u200b\u2060\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")


def looked_through(skill: Skill) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...]]:
    """The files of a skill with their sizes, and what should make one look twice. Reads files."""
    if skill.folder is None:
        return (), playbook_warnings(playbook_of(skill))
    told = list(keyword_warnings(skill.keywords))
    files: tuple[Stamp, ...] = ()
    try:
        files = stamps(str(skill.folder))
        told += findings_below(str(skill.folder), files)
    except (OSError, Unreadable) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        told.append(f"its files cannot be looked through: {why}")
    return tuple((shown(name), size) for name, size, *_ in files), tuple(told)


def findings_below(folder: str, files: Sequence[Stamp]) -> tuple[str, ...]:
    """Return what is found in all files of a skill, within bounds. Raise OSError, Unreadable."""
    found: list[str] = []
    room = LOOKED_THROUGH_BYTES_MAX
    for name, size, *_ in files:
        room -= size
        if room < 0:
            found.append(f"{name} and what comes after it is too much to be looked through")
            break
        found += findings(name, read_file(f"{folder}/{name}", bytes_max=FILE_BYTES_MAX))
    if len(found) > LISTED_MAX:
        found[LISTED_MAX:] = [f"and {len(found) - LISTED_MAX} more"]
    return tuple(found)


def findings(file: str, content: bytes) -> tuple[str, ...]:
    """`scripts/x.sh:12: runs what it downloads`, at most a few for each file."""
    found = islice(suspicious_lines(content), FINDINGS_MAX)
    return tuple(f"{file}:{line}: {text}" if line else f"{file}: {text}" for line, text in found)


def suspicious_lines(content: bytes) -> Iterator[tuple[int, str]]:
    """Lines from 1 with what is found there; 0 is the file as a whole. There may be many."""
    if content.startswith(_PROGRAMS):
        yield 0, "is a program, and cannot be looked into"
        return
    if b"\0" in content:
        return
    if len(content) > TEXT_BYTES_MAX:
        yield 0, "is too long to be looked through"
        return
    for n, line in enumerate(content.decode("utf-8-sig", "replace").splitlines(), 1):
        if len(line) > LINE_CHARS_MAX:
            yield n, f"has a line of {len(line):,} characters"
        part = line[:LINE_CHARS_MAX]
        told = {what for shape, what in _SHAPES if shape.search(part)}
        if _UNSEEN.search(part):
            told.add("holds characters that cannot be seen")
        yield from ((n, what) for what in sorted(told))


# --- playbooks ---------------------------------------------------------------------------------

TEXT_CHARS_MAX = 20_000
KEYWORDS_MAX, KEYWORD_CHARS_MAX = 50, 100
KEYWORD_CHARS_SAFE = 3
"""A shorter word of plain letters stands in too many messages."""
PRIORITY_MAX = 1_000


def playbook_of(skill: Skill) -> StoredPlaybook:
    """The row of a playbook that is read as a skill."""
    return StoredPlaybook(
        name=skill.name,
        description=skill.description,
        keywords=skill.keywords,
        text=skill.text,
        priority=skill.priority,
        required_tools=skill.required_tools,
    )


def tidied(playbook: StoredPlaybook) -> StoredPlaybook:
    """The playbook as it will be stored: what storage would change must not change its digest."""
    keywords = dict.fromkeys(" ".join(clean(keyword).split()) for keyword in playbook.keywords)
    return replace(
        playbook,
        description=" ".join(clean(playbook.description).split()),
        keywords=tuple(keyword for keyword in keywords if keyword),
        text=clean(playbook.text).strip(),
        updated_ms=0,
    )


def fault_of(playbook: StoredPlaybook) -> str:
    """The first thing that is wrong with a tidy playbook; empty when nothing is."""
    longest = max(map(len, playbook.keywords), default=0)
    if not is_name(playbook.name):
        return (
            f"{playbook.name[:64]!r} is no name for a playbook: use 1 to 64 lower-case letters, "
            "digits and hyphens"
        )
    if not playbook.text:
        return "a playbook needs instructions"
    if len(playbook.text) > TEXT_CHARS_MAX:
        return f"the instructions are longer than {TEXT_CHARS_MAX:,} characters"
    if len(playbook.description) > DESCRIPTION_MAX:
        return f"the description is longer than {DESCRIPTION_MAX:,} characters"
    if not playbook.keywords:
        return "a playbook needs at least one keyword, or it would never be used"
    if len(playbook.keywords) > KEYWORDS_MAX:
        return f"there are more than {KEYWORDS_MAX} keywords"
    if longest > KEYWORD_CHARS_MAX:
        return f"a keyword is longer than {KEYWORD_CHARS_MAX} characters"
    if abs(playbook.priority) > PRIORITY_MAX:
        return f"the priority must lie between -{PRIORITY_MAX} and {PRIORITY_MAX}"
    return ""


def playbook_warnings(playbook: StoredPlaybook) -> tuple[str, ...]:
    """Return what should make the owner look twice: as for a file, and keywords that hit too
    often."""
    text = f"{playbook.description}\n{playbook.text}"
    told = findings("instructions", text.encode("utf-8", "replace"))
    return (*keyword_warnings(playbook.keywords), *told)


def keyword_warnings(keywords: Iterable[str]) -> tuple[str, ...]:
    """A sentence for each keyword that would bring its playbook in all the time."""
    return tuple(
        f"the keyword {keyword!r} is so short that it will stand in many messages"
        for keyword in keywords
        if len(keyword) < KEYWORD_CHARS_SAFE and keyword.isascii() and keyword.isalnum()
    )
