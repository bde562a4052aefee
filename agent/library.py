"""The texts a prompt is made of: templates, the persona, and the workspace's bootstrap files.

Read from disk, and again only when a file has changed. Called by `agent.beginning`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from stat import S_ISREG
from types import MappingProxyType

import structlog

from agent.errors import SettingsWrong
from agent.headings import BOOTSTRAP
from agent.messages import DEFAULT_AGENT, Role, TurnInput
from agent.scene import DailyNote

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
                if self._leads_out(path):
                    self._tell(path)
                    return None
                text = _head_of(path)
                cached = self._cache[path] = _Cached(stamp, text)
        except (OSError, ValueError):  # gone, closed, a loop of links, a name that cannot be
            return None
        return cached.text

    def _tell(self, path: Path) -> None:
        """Once: prompts are made all the time."""
        if path not in self._told:
            self._told.add(path)
            log.warning("prompt.link_refused", file=path.name, why="it leads out of the workspace")

    def _leads_out(self, path: Path) -> bool:
        within = self.within
        if within is None or not path.is_relative_to(within):
            return False
        return not path.resolve().is_relative_to(within.resolve())


FILE_BYTES_MAX = 1_000_000
"""Of one file; what a prompt can hold is far less."""


def _head_of(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(FILE_BYTES_MAX).decode("utf-8-sig", "replace")


class Library:
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
        """Whether a copy of the workspace lacks what it needs: then the shipped one serves. It
        was whole at the start, so it is told, and the bot goes on."""
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
        return self._template("system") or "", "prompts/system.md"

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

    def _folders(self) -> Iterable[Path]:
        return (self._own, self._shipped)

    def _template(self, name: str) -> str | None:
        return self._files.read(self._path(name))

    def _path(self, name: str) -> Path:
        """Of the workspace's copy, if there is one; else of the shipped one."""
        paths = [folder / f"{name}.md" for folder in self._folders()]
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
