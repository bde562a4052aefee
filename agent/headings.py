"""The headings and marked blocks of a prompt, and how text from outside is kept from posing as one.

One list for the layers that write them, for whoever reads a sent block back, and for `harmless`.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from agent.text import clean

ACTING = "## Acting"
SURROUNDINGS = "## Surroundings"
ROUTING = "## Routing"
LONG_TERM_NOTES = "## Long-term notes"
LANGUAGE = "## Language and format"
DAILY_NOTES = "## Recent daily notes"
GUIDANCE = "## Workflow Guidance"
ABOUT = "## About the user"
MEMORIES = "Relevant memories about the user:"
EARLIER = "## Earlier conversation"
DOCUMENTS = "## From saved documents"
KEEP_IN_MIND = "## Keep in mind"
USING_TOOLS = "## Using tools"
UPCOMING = "## Upcoming"
PREVIOUS = "## Previous Conversation Context"
NOW = "## Current Date & Time"
CHAT = "## Current Chat"
TASK = "## Current Task"
INSTRUCTION = "## Instruction for this request"

BOOTSTRAP = ("AGENTS.md", "SOUL.md", "USER.md", "IDENTITY.md", "TOOLS.md")
"""Files of the workspace that steer the assistant, each a heading, in this order (SPEC §5)."""

PLAYBOOK = "### Playbook:"

CONTEXT_OPEN, CONTEXT_CLOSE = "<context>", "</context>"
SKILLS_OPEN, SKILLS_CLOSE = "<available_skills>", "</available_skills>"
RELEVANT_OPEN, RELEVANT_CLOSE = "<relevant_skills>", "</relevant_skills>"
UNTRUSTED_OPEN, UNTRUSTED_CLOSE = "<untrusted>", "</untrusted>"
"""Around whatever a tool brings in from outside (SPEC §15)."""

TURN_HEADINGS = (
    DAILY_NOTES,
    GUIDANCE,
    RELEVANT_OPEN,
    ABOUT,
    MEMORIES,
    EARLIER,
    DOCUMENTS,
    KEEP_IN_MIND,
    USING_TOOLS,
    UPCOMING,
    PREVIOUS,
    NOW,
    CHAT,
    TASK,
    INSTRUCTION,
)
"""Those by which a block that was sent can be taken apart again."""

_HASHED = (
    *(ACTING, SURROUNDINGS, ROUTING, LONG_TERM_NOTES, LANGUAGE, DAILY_NOTES, GUIDANCE, ABOUT),
    *(EARLIER, DOCUMENTS, KEEP_IN_MIND, USING_TOOLS, UPCOMING, PREVIOUS, NOW, CHAT, TASK),
    INSTRUCTION,
    *(f"## {name}" for name in BOOTSTRAP),
)

_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff"
)
"""Characters that nobody sees: joiners, directions, selectors, tags."""

_INVISIBLE = re.compile(f"[{_UNSEEN}]")


def _spelt(name: str) -> str:
    """A name in any case and width, with unseen characters anywhere in it."""
    letters = (
        f"[{letter}{letter.upper()}{chr(ord(letter) + 0xFEE0)}{chr(ord(letter.upper()) + 0xFEE0)}]"
        if letter.isalpha()
        else "[_＿]"
        for letter in name
    )
    return f"[{_UNSEEN}]*".join(letters)


_TAGS = ("context", "available_skills", "relevant_skills", "untrusted")


@cache
def _tag() -> re.Pattern[str]:
    # Made when a text first comes in: it is large, and a start would take it along.
    names = "|".join(_spelt(name) for name in _TAGS)
    return re.compile(f"[<＜﹤](?=[\\s/／{_UNSEEN}]*(?:{names}))")


_LINE_ENDS = re.compile("[\u2028\u2029\u0085\x0b\x0c\x1c-\x1e]")
_HASHES = "#＃﹟"
_BEFORE_A_HEADING = " \t>*+-•0123456789.)"
_UNDERLINE = re.compile(r"\s{0,3}(=+|-+)\s*")


def disarmed(text: str) -> str:
    """Text in which no tag of ours opens or closes anything."""
    return _tag().sub("‹", text)


def harmless(text: str) -> str:
    """Text that can neither open or close a block of ours nor pose as another layer's heading.

    Control characters go; a tag of ours gets other brackets, and a line that reads like one of
    our headings becomes a heading of the fourth level. All else stays as it is; doing it twice
    changes nothing more (threat model T13).
    """
    text = disarmed(clean(_LINE_ENDS.sub("\n", text)))
    lines = text.split("\n")
    below = [*lines[1:], ""]
    return "\n".join(
        _lowered(line, is_underlined=_UNDERLINE.fullmatch(under) is not None)
        for line, under in zip(lines, below, strict=True)
    )


def harmless_in(template: str, text: str) -> str:
    """`harmless`, and unable to close any block that this template opens around it."""
    text = harmless(text)
    for name in {found.lower() for found in _ANY_TAG.findall(template)}:
        tag = re.compile(rf"[<＜﹤](?=[\s/／]*{re.escape(name)}\b)", re.IGNORECASE)
        text = tag.sub("‹", text)
    return text


_ANY_TAG = re.compile(r"</?([A-Za-z_]+)>")


def _lowered(line: str, *, is_underlined: bool) -> str:
    bare = line.lstrip(_BEFORE_A_HEADING + "\u3000")
    if not line.isascii():
        bare = _INVISIBLE.sub("", bare).lstrip(_BEFORE_A_HEADING + "\u3000")
    is_heading = bare[:1] in _HASHES if bare else False
    if is_heading or is_underlined:
        shown = bare.lstrip(_HASHES).strip().rstrip(_HASHES + " :\t")
        title = _plain(shown)
        if any(_begins_with(title, ours) for ours in _TITLES) or title.startswith(_PLAYBOOK):
            return f"#### {shown}"
    elif len(line) <= _REMEMBERED_CHARS_MAX and _plain(line).rstrip(" :") == _REMEMBERED:
        return f"({line.strip()})"
    return line


_REMEMBERED_CHARS_MAX = 80


def _begins_with(title: str, ours: str) -> bool:
    """Whether a title is one of ours, whatever signs follow it."""
    return title.startswith(ours) and not title[len(ours) : len(ours) + 1].isalnum()


def _plain(text: str) -> str:
    """As a reader takes it: without width, case, marks, and what cannot be seen."""
    if not text.isascii():
        text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    return " ".join(text.replace("&", "and").casefold().strip("*_`~ \t").split())


_TITLES = frozenset(_plain(heading.lstrip("# ")) for heading in _HASHED)
_PLAYBOOK = _plain(PLAYBOOK.lstrip("# "))
_REMEMBERED = _plain(MEMORIES.rstrip(":"))
_TITLES |= {_REMEMBERED}
