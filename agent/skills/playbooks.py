"""Stored playbooks before they are stored: made tidy, and held against limits. Pure.

Called by the workshop, and by who tells the owner what to look at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agent.skills.reading import DESCRIPTION_MAX, is_name
from agent.skills.suspicious import findings
from agent.stored import StoredPlaybook
from agent.text import clean

TEXT_CHARS_MAX = 20_000
KEYWORDS_MAX, KEYWORD_CHARS_MAX = 50, 100
KEYWORD_CHARS_SAFE = 3
"""A shorter word of plain letters stands in too many messages."""
PRIORITY_MAX = 1_000


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
    """What should make the owner look twice: as for a file, and keywords that hit too often."""
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
