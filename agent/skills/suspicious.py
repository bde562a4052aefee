"""What in the files of a skill should make its owner look twice before approving it.

A search for well-known shapes, no proof of anything: a clean result says little, a finding says
where to look. Called when a skill is installed; quarantine does not depend on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

LINE_CHARS_MAX = 5_000
TEXT_BYTES_MAX = 500_000
"""Of one file; a second for each megabyte is what looking costs."""
FINDINGS_MAX = 5
"""In one file; more would only be scrolled past."""

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


def findings(file: str, content: bytes) -> tuple[str, ...]:
    """`scripts/x.sh:12: runs what it downloads`, at most a few for each file."""
    if content.startswith(_PROGRAMS):
        return (f"{file}: is a program, and cannot be looked into",)
    return tuple(islice(_findings(file, content), FINDINGS_MAX))


def _findings(file: str, content: bytes) -> Iterator[str]:
    if b"\0" in content:
        return
    if len(content) > TEXT_BYTES_MAX:
        yield f"{file}: is too long to be looked through"
        return
    text = content.decode("utf-8-sig", "replace")
    for n, line in enumerate(text.splitlines(), 1):
        if len(line) > LINE_CHARS_MAX:
            yield f"{file}:{n}: has a line of {len(line):,} characters"
        part = line[:LINE_CHARS_MAX]
        told = {what for shape, what in _SHAPES if shape.search(part)}
        if _UNSEEN.search(part):
            told.add("holds characters that cannot be seen")
        for what in sorted(told):
            yield f"{file}:{n}: {what}"
