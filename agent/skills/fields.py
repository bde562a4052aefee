"""Values of a known kind, taken out of front matter, with a complaint for each that does not fit.

Called by `agent.skills.reading`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from agent.skills.matching import allowed_entries
from agent.skills.parser import (
    Fields,
    Flaw,
    Items,
    Node,
    Scalar,
    Unreadable,
    duplicates,
    structured,
)
from agent.skills.skill import Severity

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


@dataclass(slots=True)
class FieldReader:
    """Takes values of a known kind out of fields and notes what does not fit."""

    flaws: list[Flaw] = field(default_factory=list)

    @property
    def has_errors(self) -> bool:
        return any(flaw.severity is Severity.ERROR for flaw in self.flaws)

    def error(self, text: str, line: int = 0) -> None:
        self.flaws.append(Flaw(text=text, line=line))

    def warning(self, text: str, line: int = 0) -> None:
        self.flaws.append(Flaw(text=text, line=line, severity=Severity.WARNING))

    def block(self, fields: Fields, key: str, *, is_lenient: bool = False) -> Fields:
        """The fields below a key, also where they were written as one JSON text."""
        node = fields.find(key)
        if node is None or (isinstance(node, Scalar) and (node.is_null or not node.text.strip())):
            return fields.below(key)
        if isinstance(node, Scalar) and (not is_lenient or node.text.lstrip().startswith("{")):
            try:
                node = structured(node)
            except Unreadable as error:
                self.error(f"{key}: {error}", node.line)
                return Fields()
        if isinstance(node, Fields):
            self.flaws.extend(duplicates(node) if fields.find(key) is not node else ())
            return Fields(entries=node.entries + fields.below(key).entries, line=node.line)
        if is_lenient:
            self.warning(f"{key} is not made of keys and values, and is ignored", node.line)
        else:
            self.error(f"{key} must be made of keys and values", node.line)
        return Fields()

    def allowed(self, front: Fields) -> tuple[str, ...] | None:
        try:
            return allowed_entries(front.find("allowed-tools"))
        except Unreadable as error:
            self.error(str(error), error.line)
            return ()

    def text(self, fields: Fields | None, key: str) -> str:
        node = fields.find(key) if fields is not None else None
        return self.as_text(node, key)

    def as_text(self, node: Node | None, key: str) -> str:
        if node is None or (isinstance(node, Scalar) and node.is_null):
            return ""
        if isinstance(node, Scalar):
            return node.text.strip()
        self.error(f"{key} must be one text", node.line)
        return ""

    def as_texts(self, node: Node | None, key: str, *, parts_at: str = ",") -> tuple[str, ...]:
        """A list, or a text with commas; each once. With `parts_at` empty a text is one item."""
        match node:
            case None:
                return ()
            case Scalar() if node.is_null:
                return ()
            case Scalar() if parts_at and node.text.lstrip().startswith("["):
                return self._listed(node, key)
            case Scalar():
                found = node.text.split(parts_at) if parts_at else [node.text]
            case Items():
                found = [item.text for item in node.values if isinstance(item, Scalar)]
                if len(found) < len(node.values):
                    self.error(f"{key} must be a list of texts", node.line)
            case Fields():
                self.error(f"{key} must be a list of texts", node.line)
                return ()
        return tuple(dict.fromkeys(text.strip() for text in found if text.strip()))

    def _listed(self, node: Scalar, key: str) -> tuple[str, ...]:
        try:
            inner = structured(node)
        except Unreadable:
            inner = node
        if isinstance(inner, Items):
            return self.as_texts(inner, key)
        self.error(f"{key} begins like a list, and is none", node.line)
        return ()


@dataclass(frozen=True, slots=True)
class OwnKeys:
    """Our own keys: below `metadata.hearthbot`, else in `metadata` itself."""

    reader: FieldReader
    places: tuple[Fields, ...]

    def find(self, key: str) -> Node | None:
        found = (place.find(key) for place in self.places)
        return next((node for node in found if node is not None), None)

    def text(self, key: str) -> str:
        return self.reader.as_text(self.find(key), key)

    def texts(self, key: str) -> tuple[str, ...]:
        return self.reader.as_texts(self.find(key), key)

    def block(self, key: str) -> Fields | None:
        place = next((place for place in self.places if place.find(key) is not None), None)
        return self.reader.block(place, key, is_lenient=True) if place is not None else None

    def flag(self, key: str) -> bool:
        node = self.find(key)
        word = self.reader.as_text(node, key).casefold()
        if node is not None and word not in _TRUE | _FALSE | {""}:
            self.reader.error(f"{key} must be true or false", node.line)
        return word in _TRUE

    def count(self, key: str) -> int | None:
        """A whole number from 1 on, or None."""
        node = self.find(key)
        text = self.reader.as_text(node, key)
        if node is None or not text:
            return None
        if not re.fullmatch(r"[0-9]{1,9}", text) or not int(text):
            self.reader.error(f"{key} must be a whole number from 1 on", node.line)
            return None
        return int(text)

    def priority(self) -> int:
        node = self.find("priority")
        if node is None or (isinstance(node, Scalar) and node.is_null):
            return 0
        if isinstance(node, Scalar) and re.fullmatch(r"[+-]?[0-9]{1,6}", node.text.strip()):
            return int(node.text)
        self.reader.warning("priority is not a whole number, and is ignored", node.line)
        return 0


# --- requirements -------------------------------------------------------------------------------
#
# What a skill requires of the machine, and what of it is lacking. Called by the shelf.

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
