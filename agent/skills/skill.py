"""What a skill is, once it has been read, and what it requires of the machine. Values only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from memory.records.errors import Permanent


class SkillRefused(Permanent):
    """Something about a skill that cannot be done; the text says why and what to do."""


class SkillPlace(StrEnum):
    """Where a skill comes from, the strongest first: of one name, the first place wins."""

    WORKSPACE = "workspace"
    STORED = "stored"
    """A playbook that lives in the database."""
    USER = "user"
    SHIPPED = "shipped"


class SkillState(StrEnum):
    """Whether a skill is used. All but the first are listed, with the reason, and not used."""

    USABLE = "usable"
    QUARANTINED = "quarantined"
    """Installed or written by the assistant, and not approved by the owner (or changed since)."""
    MISSING = "missing"
    """This machine lacks what it requires: a program, a variable, an operating system."""
    OFF = "off"
    """It runs by the clock, and nobody has enabled it."""


class SkillMode(StrEnum):
    """How a skill comes into play, in the order in which people are shown them."""

    PLAYBOOK = "playbook"
    """Injected when a keyword matches."""
    SKILL = "skill"
    """Named in the prompt and read on demand: progressive disclosure (SPEC §5, layer 5)."""
    CLOCK = "by the clock"


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoInvoke:
    """A tool that is called when a reply was of no help; `{{query}}` stands for the message."""

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSchedule:
    """When a skill runs by itself: exactly one of the first three is set.

    `cron` is standard cron text, `at` an ISO time. `timezone` is an IANA name; empty is the
    person's. `deliver_to` is an address key; empty is the owner's private chat.
    """

    cron: str = ""
    interval_minutes: int = 0
    at: str = ""
    timezone: str = ""
    notify: str = ""
    deliver_to: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A skill as it was read. `digest` names the content of its whole folder.

    `text` is what stands below the front matter, `location` how the model names the file
    (`skills/x/SKILL.md`, as its file tools have it). `allowed_tools` are the entries of
    `allowed-tools` (`Read`, `Bash(git:*)`), sorted; None sets no limit, and an empty tuple allows
    nothing (`agent.skills.matcher` says what an entry allows). `missing` says in words
    what the machine lacks. Keywords, patterns and names are in the order of the file.
    """

    name: str
    description: str
    text: str
    place: SkillPlace
    location: str
    folder: Path | None = None
    digest: str = ""
    state: SkillState = SkillState.USABLE
    missing: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    priority: int = 0
    required_tools: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] | None = None
    max_steps: int | None = None
    no_tools: bool = False
    full_context: bool = False
    schedule: SkillSchedule | None = None
    patterns: tuple[str, ...] = ()
    """`trigger.patterns`: regular expressions on the trimmed message."""
    instruction: str = ""
    auto_invoke: tuple[AutoInvoke, ...] = ()
    license: str = ""
    compatibility: str = ""
    version: str = ""

    @property
    def kind(self) -> SkillMode:
        if self.schedule is not None:
            return SkillMode.CLOCK
        return SkillMode.PLAYBOOK if self.keywords else SkillMode.SKILL

    @property
    def is_playbook(self) -> bool:
        return self.kind is SkillMode.PLAYBOOK

    @property
    def is_listed(self) -> bool:
        return self.kind is SkillMode.SKILL

    @property
    def is_used(self) -> bool:
        """Return whether any of it may reach a prompt."""
        return self.state is SkillState.USABLE


class Severity(StrEnum):
    """An error keeps a skill from being used; a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something wrong with a skill's file. `line` counts from 1; 0 means the file as a whole."""

    skill: str
    file: str
    text: str
    line: int = 0
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        """`workspace/skills/x/SKILL.md:3: what is wrong`."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSet:
    """All skills there are at one moment: each name once, by priority (high first), then name.

    `shadowed` are those whose name a stronger place has taken. Broken ones are in `problems` alone.
    """

    skills: tuple[Skill, ...] = ()
    problems: tuple[Problem, ...] = ()
    shadowed: tuple[Skill, ...] = ()

    def get(self, name: str) -> Skill | None:
        """The skill of this name, whatever its state."""
        return next((skill for skill in self.skills if skill.name == name), None)

    @property
    def used(self) -> tuple[Skill, ...]:
        """Those that may reach a prompt."""
        return tuple(skill for skill in self.skills if skill.is_used)


# --- requirements -------------------------------------------------------------------------------

FindProgram = Callable[[str], str | None]
"""Where a program of this name is, or None: `shutil.which`."""

_SYSTEMS = {
    "darwin": "macOS",
    "macos": "macOS",
    "mac": "macOS",
    "osx": "macOS",
    "linux": "Linux",
    "win32": "Windows",
    "windows": "Windows",
    "win": "Windows",
    "cygwin": "Windows",
}
_ANY_SYSTEM = frozenset({"*", "all", "any"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Requires:
    """Variables and programs that must all be there, programs of which one must, and systems."""

    env: tuple[str, ...] = ()
    bins: tuple[str, ...] = ()
    any_bins: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What there is here. `system` is written like `sys.platform`."""

    env: Mapping[str, str]
    find_program: FindProgram
    system: str = sys.platform


def lacking(
    requires: Requires, machine: Machine, *, given: Collection[str] = ()
) -> tuple[str, ...]:
    """Return a clause for each thing that is missing; none when the skill can be used.

    `given` names variables that the owner set for this skill alone. An empty variable is not set.
    """
    clauses: list[str] = []
    named = [name for name in requires.systems if name.casefold() not in _ANY_SYSTEM]
    wanted = list(dict.fromkeys(map(_system, named)))
    if named and len(named) == len(requires.systems) and _system(machine.system) not in wanted:
        clauses.append(f"it is for {' or '.join(wanted)}")
    for name in requires.env:
        if name not in given and not machine.env.get(name):
            clauses.append(f"the environment variable {name} is not set")
    for program in requires.bins:
        if machine.find_program(program) is None:
            clauses.append(f"the program {program} is not installed")
    if requires.any_bins and not any(map(machine.find_program, requires.any_bins)):
        clauses.append(f"none of the programs {', '.join(requires.any_bins)} is installed")
    return tuple(clauses)


def _system(name: str) -> str:
    return _SYSTEMS.get(name.casefold(), name)
