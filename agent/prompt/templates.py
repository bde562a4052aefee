"""The texts a prompt is made of: templates, the persona, and the workspace's bootstrap files.

Read from disk, and again only when a file has changed. Called by `agent.turn.steps.begin`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from stat import S_ISREG
from types import MappingProxyType

import structlog

from agent.prompt.scene import DailyNote
from memory.records.errors import SettingsWrong
from memory.records.messages import DEFAULT_AGENT, Role, TurnInput
from memory.records.text import clean

# --- headings -----------------------------------------------------------------------------------
#
# The headings and marked blocks of a prompt, and how text from outside is kept from posing as one.
#
# One list for the layers that write them, for whoever reads a sent block back, and for `harmless`.

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
        # Whether a title is one of ours, whatever signs follow it.
        if any(
            (title.startswith(ours) and not title[len(ours) : len(ours) + 1].isalnum())
            for ours in _TITLES
        ) or title.startswith(_PLAYBOOK):
            return f"#### {shown}"
    elif len(line) <= _REMEMBERED_CHARS_MAX and _plain(line).rstrip(" :") == _REMEMBERED:
        return f"({line.strip()})"
    return line


_REMEMBERED_CHARS_MAX = 80


def _plain(text: str) -> str:
    """As a reader takes it: without width, case, marks, and what cannot be seen."""
    if not text.isascii():
        text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    return " ".join(text.replace("&", "and").casefold().strip("*_`~ \t").split())


_TITLES = frozenset(_plain(heading.lstrip("# ")) for heading in _HASHED)
_PLAYBOOK = _plain(PLAYBOOK.lstrip("# "))
_REMEMBERED = _plain(MEMORIES.rstrip(":"))
_TITLES |= {_REMEMBERED}


log = structlog.get_logger()

NEEDED: Mapping[str, tuple[str, ...]] = {
    "system": (),
    "acting": (),
    "surroundings": ("VERSION", "SYSTEM"),
    "language": ("LANGUAGE", "FORMAT"),
    "language_auto": (),
    "routing": ("SERVERS",),
    "heartbeat": ("TIME", "LIST"),
    "proactive": (),
    "subagent": (),
    "directness": (),
    "compaction": ("CONVERSATION", "SUMMARY"),
    "merge": ("FIRST", "SECOND"),
    "extraction": ("SPEAKERS", "KNOWN_FACTS", "CONVERSATION", "FACTS_MAX"),
    "insights": ("MESSAGE", "REPLY", "TOOLS", "CURRENT"),
    "words_simple": (),
    "words_analysis": (),
    "unhelpful_short": (),
    "unhelpful_any": (),
    "demo": (),
    "hint_empty": (),
    "hint_sum_up": (),
    "hint_written_call": (),
    "hint_claim": ("DETAIL",),
    "hint_malformed": (),
    "hint_reworded": ("DETAIL",),
    "words_claims": (),
    "words_trivial": (),
}
"""Templates that must exist, with the placeholders they must hold. `reminder` may be empty."""

ABOUT_THE_OWNER = "USER.md"
"""Shown in the owner's private chats alone: it is one person's data (SPEC §9, case SE-17)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonaSettings:
    """The first two links of an agent's base chain; blank means not set (SPEC §5)."""

    system_prompt: str = ""
    system_prompt_file: Path | None = None
    persona_dir: Path | None = None


@dataclass(slots=True)
class _Cached:
    stamp: tuple[int, int, int]
    text: str


@dataclass(slots=True)
class TextFiles:
    """Reads small text files, each again only when its time, size or identity has changed.

    What lies `within` is read only where it does so after links are followed: a link in the
    workspace may be a program's work, and lead to the settings with their keys.

    A stat takes microseconds on a local disk, which is where the home has to be (SQLite needs
    that too), so this is called on the event loop.
    """

    within: Path | None = None
    _cache: dict[Path, _Cached] = field(default_factory=dict)
    _told: set[Path] = field(default_factory=set)

    def read(self, path: Path) -> str | None:
        """The text, or None where there is no such file. Undecodable bytes are replaced."""
        try:
            stat = path.stat()
            if not S_ISREG(stat.st_mode):
                return None  # a pipe would be waited for
            stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            cached = self._cache.get(path)
            if cached is None or cached.stamp != stamp:
                within = self.within
                if (
                    within is not None
                    and path.is_relative_to(within)
                    and not path.resolve().is_relative_to(within.resolve())
                ):
                    # Once: prompts are made all the time.
                    if path not in self._told:
                        self._told.add(path)
                        log.warning(
                            "prompt.link_refused",
                            file=path.name,
                            why="it leads out of the workspace",
                        )
                    return None
                with path.open("rb") as file:
                    text = file.read(FILE_BYTES_MAX).decode("utf-8-sig", "replace")
                cached = self._cache[path] = _Cached(stamp, text)
        except (OSError, ValueError):  # gone, closed, a loop of links, a name that cannot be
            return None
        return cached.text


FILE_BYTES_MAX = 1_000_000
"""Of one file; what a prompt can hold is far less."""


class PromptLibrary:
    """Templates by name, workspace copies first; the persona; bootstrap files."""

    def __init__(
        self,
        shipped: Path,
        workspace: Path,
        persona: PersonaSettings,
        others: Mapping[str, PersonaSettings] = MappingProxyType({}),
    ) -> None:
        """`persona` is that of the agent `default`, `others` are those of further agents."""
        self._shipped = shipped
        self._workspace = workspace
        self._own = workspace / "prompts"
        self._personas = {DEFAULT_AGENT: persona, **others}
        self._files = TextFiles(within=workspace)
        self._told_broken: set[str] = set()
        # The shipped templates are part of the program: they change with a restart.
        self._shipped_texts = {
            path.stem: text
            for path in shipped.glob("*.md")
            if (text := self._files.read(path)) is not None
        }

    def check(self) -> None:
        """Refuses to start with a template that is missing or lacks a placeholder.

        Raises SettingsWrong, naming every file that is wrong.
        """
        problems = [problem for name in NEEDED for problem in self._problems(name)]
        for agent, persona in self._personas.items():
            wanted = persona.system_prompt_file
            if wanted is not None and self._files.read(wanted) is None:
                problems.append(f"{wanted}: agents.{agent}.system_prompt_file cannot be read")
            folder = persona.persona_dir
            if folder is not None and self._files.read(folder / "instructions.md") is None:
                log.warning("prompt.persona_missing", agent=agent, folder=str(folder))
        if problems:
            raise SettingsWrong("\n".join(problems))

    def texts(self) -> Mapping[str, str]:
        """All templates, by name without the ending."""
        own = {path.stem: self._files.read(path) for path in self._own.glob("*.md")}
        texts = dict(self._shipped_texts)
        for name, text in own.items():
            if text is not None and not self._is_broken(name, text):
                texts[name] = text
        return texts

    def _is_broken(self, name: str, text: str) -> bool:
        """Return whether a copy of the workspace lacks what it needs: then the shipped one serves.
        It was whole at the start, so it is told, and the bot goes on."""
        lacking = [mark for mark in NEEDED.get(name, ()) if "{{" + mark + "}}" not in text]
        broken = name in NEEDED and (bool(lacking) or not text.strip())
        if broken and name not in self._told_broken:
            log.error("prompt.template_broken", file=f"workspace/prompts/{name}.md", lacks=lacking)
            self._told_broken.add(name)
        elif not broken:
            self._told_broken.discard(name)
        return broken

    def base(self, agent: str = DEFAULT_AGENT) -> tuple[str, str]:
        """The first text of an agent's base chain, and where it is from. One that is in the
        settings no more is served as `default`."""
        agent = agent if agent in self._personas else DEFAULT_AGENT
        persona = self._personas[agent]
        if persona.system_prompt.strip():
            return persona.system_prompt, f"agents.{agent}.system_prompt"
        if persona.system_prompt_file is not None:
            text = self._files.read(persona.system_prompt_file)
            if text is not None and text.strip():
                return text, f"agents.{agent}.system_prompt_file"
        folder = persona.persona_dir or self._workspace / "agents" / agent
        text = self._files.read(folder / "instructions.md")
        if text is not None and text.strip():
            return text, "instructions.md"
        return self._files.read(self._path("system")) or "", "prompts/system.md"

    def bootstrap(self, turn: TurnInput) -> Mapping[str, str]:
        """The bootstrap files that this person may see here, in order."""
        private_to_owner = turn.role is Role.OWNER and not turn.message.is_group
        names = [name for name in BOOTSTRAP if private_to_owner or name != ABOUT_THE_OWNER]
        found = ((name, self._files.read(self._workspace / name)) for name in names)
        return {name: text for name, text in found if text is not None}

    def notes(self, turn: TurnInput) -> tuple[str, str]:
        """MEMORY.md of this person with its path in the workspace; empty in a group."""
        folder = _notes_folder(turn)
        if not folder:
            return "", ""
        path = f"{folder}/MEMORY.md"
        return self._files.read(self._workspace / path) or "", path

    def daily_notes(self, turn: TurnInput, today: date, *, days: int) -> tuple[DailyNote, ...]:
        """The notes of today and the days before it, the newest first; none in a group."""
        folder = _notes_folder(turn)
        if not folder:
            return ()
        found = []
        for back in range(days):
            day = today - timedelta(days=back)
            path = self._workspace / folder / f"{day:%Y%m}" / f"{day:%Y%m%d}.md"
            if text := self._files.read(path):
                found.append(DailyNote(day=day, text=text))
        return tuple(found)

    def _path(self, name: str) -> Path:
        """Of the workspace's copy, if there is one; else of the shipped one."""
        paths = [folder / f"{name}.md" for folder in ((self._own, self._shipped))]
        return next((path for path in paths if self._files.read(path) is not None), paths[-1])

    def _problems(self, name: str) -> Iterable[str]:
        path = self._path(name)
        text = self._files.read(path) or ""
        if not text.strip():
            yield f"{path}: this prompt is missing or empty; restore it from the release"
            return
        for placeholder in NEEDED[name]:
            if "{{" + placeholder + "}}" not in text:
                yield f"{path}: lacks the placeholder {{{{{placeholder}}}}}"


def _notes_folder(turn: TurnInput) -> str:
    """Where a person's notes lie in the workspace. Notes are private: a group has none."""
    if turn.message.is_group:
        return ""
    if turn.role is Role.OWNER:
        return "memory"
    # Ids are ours; one that could lead elsewhere is nobody's.
    return f"memory/people/{turn.person_id}" if _ID.fullmatch(turn.person_id) else ""


_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
