"""What a skill requires of the machine, and what of it is lacking. Called by the shelf."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

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
    """One clause for each thing that is missing; empty when the skill can be used.

    `given` names variables that the owner set for this skill alone. An empty variable is not set.
    """
    return tuple(_lacking(requires, machine, given))


def _lacking(requires: Requires, machine: Machine, given: Collection[str]) -> Iterator[str]:
    systems = [name for name in requires.systems if name.casefold() not in _ANY_SYSTEM]
    if systems and len(systems) == len(requires.systems):
        wanted = list(dict.fromkeys(map(_system, systems)))
        if _system(machine.system) not in wanted:
            yield f"it is for {' or '.join(wanted)}"
    for name in requires.env:
        if name not in given and not machine.env.get(name):
            yield f"the environment variable {name} is not set"
    for program in requires.bins:
        if machine.find_program(program) is None:
            yield f"the program {program} is not installed"
    if requires.any_bins and not any(map(machine.find_program, requires.any_bins)):
        yield f"none of the programs {', '.join(requires.any_bins)} is installed"


def _system(name: str) -> str:
    return _SYSTEMS.get(name.casefold(), name)
