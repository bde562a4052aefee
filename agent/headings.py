"""The headings and marked blocks of a prompt, and how text from outside is kept from posing as one.

One list for the layers that write them, for whoever reads a sent block back, and for `harmless`.
"""

from __future__ import annotations

import re
import unicodedata

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

_INVISIBLE = "[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]*"
_TAG = re.compile(
    "[<＜﹤](?=[\\s/／\u00ad\u200b-\u200f\u2060-\u2064\ufeff]*(?:"
    + "|".join(
        _INVISIBLE.join(re.escape(letter) for letter in name)
        for name in ("context", "available_skills", "relevant_skills")
    )
    + "))",
    re.IGNORECASE,
)
_HEADING = re.compile(r"[\s>]*[#＃]{1,6}(.*?)[\s#＃:]*", re.DOTALL)
_LINE_ENDS = re.compile("[\u2028\u2029\u0085\x0b\x0c\x1c-\x1e]")


def harmless(text: str) -> str:
    """Text that can neither open or close a block of ours nor pose as another layer's heading.

    Control characters go; a tag of ours gets other brackets, and a line that reads like one of
    our headings becomes a heading of the fourth level. All else stays as it is; doing it twice
    changes nothing more (threat model T13).
    """
    text = clean(_LINE_ENDS.sub("\n", text))
    text = _TAG.sub("‹", text)
    if text.isascii() and "#" not in text and "elevant" not in text.lower():
        return text
    return "\n".join(_lowered(line) for line in text.split("\n"))


def harmless_in(template: str, text: str) -> str:
    """`harmless`, and unable to close any block that this template opens around it."""
    text = harmless(text)
    for name in {found.lower() for found in _ANY_TAG.findall(template)}:
        tag = re.compile(rf"[<＜﹤](?=[\s/／]*{re.escape(name)}\b)", re.IGNORECASE)
        text = tag.sub("‹", text)
    return text


_ANY_TAG = re.compile(r"</?([A-Za-z_]+)>")


def _lowered(line: str) -> str:
    if found := _HEADING.fullmatch(line):
        title = _plain(found[1])
        if title in _TITLES or title.startswith(_PLAYBOOK):
            return f"#### {found[1].strip()}"
    elif _plain(line).rstrip(" :") == _REMEMBERED:
        return f"({line.strip()})"
    return line


def _plain(text: str) -> str:
    """As a reader takes it: without width, case, marks, and what cannot be seen."""
    text = unicodedata.normalize("NFKC", text)
    if not text.isascii():
        text = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    return " ".join(text.casefold().strip("*_`~ \t").split())


_TITLES = frozenset(_plain(heading.lstrip("# ")) for heading in _HASHED)
_PLAYBOOK = _plain(PLAYBOOK.lstrip("# "))
_REMEMBERED = _plain(MEMORIES.rstrip(":"))
