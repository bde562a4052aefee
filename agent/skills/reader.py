"""One SKILL.md, as found in the wild, read into a Skill or into what is wrong with it.

A limit that cannot be understood makes the skill unusable; anything else that is odd is a warning.
Whatever the bytes are, nothing is raised. Called by the library and before anything is installed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.skills.matcher import allowed_entries
from agent.skills.parser import (
    Items,
    KeyValues,
    Node,
    Scalar,
    Unreadable,
    folded,
    parts,
    structured,
)
from agent.skills.rules import PatternWrong, check_pattern
from agent.skills.skill import (
    AutoInvoke,
    Problem,
    Requires,
    Severity,
    Skill,
    SkillPlace,
    SkillSchedule,
)

NAME_MAX = 64
DESCRIPTION_MAX = 1_024
NAMESPACES = ("hearthbot", "openclaw", "clawdbot", "moltbot", "nanobot")
"""Blocks of `metadata` whose `requires` and `os` mean the same. Our own keys stand in the first."""

_OWN_LIMITS = ("required_tools", "no_tools", "max_steps")
_OWN_KEYS = (
    *("keywords", "priority", "schedule", "interval_minutes", "at", "timezone", "notify"),
    *("deliver_to", "full_context", "trigger", "instruction", "auto_invoke"),
)
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_CRON_FIELD = re.compile(r"[0-9A-Za-z*,/?#-]+")
_CRON_NAMES = frozenset(
    {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}
)
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFile:
    """Where a SKILL.md stands. `location` is for the model, `file` for a person."""

    folder_name: str
    place: SkillPlace = SkillPlace.WORKSPACE
    location: str = "SKILL.md"
    file: str = "SKILL.md"
    folder: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillReading:
    """The skill, None if it is broken; every problem; and what it requires of the machine."""

    skill: Skill | None = None
    problems: tuple[Problem, ...] = ()
    requires: Requires = field(default_factory=Requires)


def read_skill(data: bytes, where: SkillFile) -> SkillReading:
    """Read the bytes of one SKILL.md. Its state and digest are left for the library to set."""
    reader = FieldReader(where.file)
    skill, requires = None, Requires()
    try:
        found = parts(data)
    except Unreadable as error:
        reader.error(str(error), error)
    else:
        front = found.fields or KeyValues()
        if found.trouble is not None:
            hint = f"{found.trouble}; read as it stands. Put the value in quotes"
            reader.warning(hint, found.trouble)
        skill, requires = _skill(reader, front, found.body, where)
        if found.fields is None:
            reader.warning("there is no front matter: name and description are made up")
    name = skill.name if skill is not None else where.folder_name
    return SkillReading(
        skill=None if reader.has_errors else skill,
        problems=reader.of(name),
        requires=requires,
    )


def is_name(text: str) -> bool:
    """Lower-case letters, digits and single hyphens between them, at most 64."""
    return len(text) <= NAME_MAX and _NAME.fullmatch(text) is not None


def _skill(
    reader: FieldReader, front: KeyValues, body: str, where: SkillFile
) -> tuple[Skill, Requires]:
    metadata = reader.block(front, "metadata")
    spaces = {name: reader.block(metadata, name, is_lenient=True) for name in NAMESPACES}
    own = KeyValues(entries=spaces["hearthbot"].entries + metadata.entries)
    # Our keys belong below `metadata`; a limit beside it must not be lost unseen.
    severities = {folded(key): Severity.ERROR for key in _OWN_LIMITS}
    severities |= {folded(key): Severity.WARNING for key in _OWN_KEYS}
    for key, _ in front.entries:
        if (severity := severities.get(folded(key.text))) is not None:
            reader.error(f"{key.text} is read below `metadata:` only: move it there", key, severity)
    trigger = reader.block(own, "trigger", is_lenient=True)
    allowed: tuple[str, ...] | None = ()
    try:
        allowed = allowed_entries(front.find("allowed-tools"))
    except Unreadable as error:
        reader.error(str(error), error)
    skill = Skill(
        name=_name(reader, front, where),
        description=_description(reader, front, body),
        text=body,
        place=where.place,
        location=where.location,
        folder=where.folder,
        keywords=reader.texts(own.find("keywords"), "keywords"),
        priority=reader.priority(own),
        required_tools=reader.texts(own.find("required_tools"), "required_tools"),
        allowed_tools=allowed,
        max_steps=reader.count(own, "max_steps"),
        no_tools=reader.flag(own, "no_tools"),
        full_context=reader.flag(own, "full_context"),
        schedule=_schedule(reader, own),
        patterns=_patterns(reader, trigger.find("patterns") or own.find("trigger.patterns")),
        instruction=reader.text(own, "instruction") or reader.text(trigger, "instruction"),
        auto_invoke=_auto_invokes(reader, own.find("auto_invoke") or trigger.find("auto_invoke")),
        license=reader.text(front, "license"),
        compatibility=reader.text(front, "compatibility"),
        version=reader.text(front, "version") or reader.text(metadata, "version"),
    )
    if not body and not reader.has_errors:
        reader.warning("the skill has no instructions below its front matter")

    def gathered(key: str) -> tuple[str, ...]:
        blocks = (metadata, *spaces.values())
        found = (text for block in blocks for text in reader.texts(block.find(key), key))
        return tuple(dict.fromkeys(found))

    return skill, Requires(
        env=gathered("requires.env"),
        bins=gathered("requires.bins"),
        any_bins=gathered("requires.anyBins"),
        systems=gathered("os"),
    )


# --- the kinds of values -----------------------------------------------------------------------


@dataclass(slots=True)
class FieldReader:
    """Takes values of a known kind out of fields, and notes what does not fit."""

    file: str
    problems: list[Problem] = field(default_factory=list)

    @property
    def has_errors(self) -> bool:
        return any(problem.severity is Severity.ERROR for problem in self.problems)

    def of(self, skill: str) -> tuple[Problem, ...]:
        """Return what was noted, by line, as the problems of a skill."""
        ordered = sorted(self.problems, key=lambda problem: problem.line)
        return tuple(replace(problem, skill=skill) for problem in ordered)

    def error(
        self, text: str, at: Node | Unreadable | None = None, severity: Severity = Severity.ERROR
    ) -> None:
        line = at.line if at is not None else 0
        problem = Problem(skill="", file=self.file, text=text, line=line, severity=severity)
        self.problems.append(problem)

    def warning(self, text: str, at: Node | Unreadable | None = None) -> None:
        self.error(text, at, Severity.WARNING)

    def block(self, fields: KeyValues, key: str, *, is_lenient: bool = False) -> KeyValues:
        """The fields below a key, also where they were written as one JSON text."""
        node, flat = fields.find(key), fields.below(key)
        if node is None or (isinstance(node, Scalar) and (node.is_null or not node.text.strip())):
            return flat
        if isinstance(node, Scalar) and (not is_lenient or node.text.lstrip().startswith("{")):
            try:
                node = structured(node)
            except Unreadable as error:
                self.error(f"{key}: {error}", node)
                return KeyValues()
        if isinstance(node, KeyValues):
            return KeyValues(entries=node.entries + flat.entries, line=node.line)
        if is_lenient:
            self.warning(f"{key} is not made of keys and values, and is ignored", node)
        else:
            self.error(f"{key} must be made of keys and values", node)
        return KeyValues()

    def text(self, fields: KeyValues, key: str) -> str:
        node = fields.find(key)
        if node is None or (isinstance(node, Scalar) and node.is_null):
            return ""
        if isinstance(node, Scalar):
            return node.text.strip()
        self.error(f"{key} must be one text", node)
        return ""

    def texts(self, node: Node | None, key: str, *, parts_at: str = ",") -> tuple[str, ...]:
        """A list, or a text with commas; each once. With `parts_at` empty a text is one item."""
        if isinstance(node, Scalar) and parts_at and node.text.lstrip().startswith("["):
            try:
                inner = structured(node)
            except Unreadable:
                inner = node
            if not isinstance(inner, Items):
                self.error(f"{key} begins like a list, and is none", node)
                return ()
            node = inner
        match node:
            case None | Scalar(is_null=True):
                return ()
            case Scalar():
                found = node.text.split(parts_at) if parts_at else [node.text]
            case KeyValues():
                self.error(f"{key} must be a list of texts", node)
                return ()
            case Items():
                found = [item.text for item in node.values if isinstance(item, Scalar)]
                if len(found) < len(node.values):
                    self.error(f"{key} must be a list of texts", node)
        return tuple(dict.fromkeys(text.strip() for text in found if text.strip()))

    def flag(self, fields: KeyValues, key: str) -> bool:
        word = self.text(fields, key).casefold()
        if word not in _TRUE | _FALSE | {""}:
            self.error(f"{key} must be true or false", fields.find(key))
        return word in _TRUE

    def count(self, fields: KeyValues, key: str) -> int | None:
        """A whole number from 1 on, or None."""
        text = self.text(fields, key)
        if text and (not re.fullmatch(r"[0-9]{1,9}", text) or not int(text)):
            self.error(f"{key} must be a whole number from 1 on", fields.find(key))
            return None
        return int(text) if text else None

    def priority(self, fields: KeyValues) -> int:
        node = fields.find("priority")
        if node is None or (isinstance(node, Scalar) and node.is_null):
            return 0
        if isinstance(node, Scalar) and re.fullmatch(r"[+-]?[0-9]{1,6}", node.text.strip()):
            return int(node.text)
        self.warning("priority is not a whole number, and is ignored", node)
        return 0


# --- the single fields -------------------------------------------------------------------------


def _name(reader: FieldReader, front: KeyValues, where: SkillFile) -> str:
    written, node = reader.text(front, "name"), front.find("name")
    wanted = [written, where.folder_name, _slug(written), _slug(where.folder_name)]
    name = next((text for text in wanted if is_name(text)), "")
    shown, rule = written[:NAME_MAX], f"at most {NAME_MAX} lower-case letters, digits and hyphens"
    if not name:
        reader.error(f"name {shown or where.folder_name[:NAME_MAX]!r} must be {rule}", node)
        return where.folder_name
    if not written:
        if front.entries:
            reader.warning(f"there is no name: it is called {name}")
    elif name != written:
        reader.warning(f"name {shown!r} is not {rule}: it is called {name}", node)
    elif name != where.folder_name:
        reader.warning(f"the folder should be called {name} too", node)
    return name


def _slug(text: str) -> str:
    """`Excel Reports` and `ExcelReports` as `excel-reports`."""
    return re.sub(r"[^a-z0-9]+", "-", _CAMEL.sub("-", text).casefold()).strip("-")


def _description(reader: FieldReader, front: KeyValues, body: str) -> str:
    node = front.find("description")
    if node is None:
        # The first paragraph that is not a heading; the first heading if there is no other text.
        paragraphs = [part.strip() for part in re.split(r"\n\s*\n", body) if part.strip()]
        plain = (
            "\n".join(line for line in part.split("\n") if not line.startswith("#"))
            for part in paragraphs
        )
        found = next((part for part in plain if part.strip()), "")
        text = found or (paragraphs[0].split("\n")[0].lstrip("# ") if paragraphs else "")
        if front.entries and text:
            reader.warning("there is no description: the first paragraph stands in for it")
    elif not isinstance(node, Scalar):
        return reader.text(front, "description")
    else:
        text = reader.text(front, "description")
    text = " ".join(text.split())
    if not text:
        reader.error("there is no description: say what the skill does and when to use it", node)
    if len(text) > DESCRIPTION_MAX:
        if node is not None:
            reader.warning(
                f"the description has {len(text):,} characters: cut to {DESCRIPTION_MAX:,}", node
            )
        text = text[: DESCRIPTION_MAX - 1].rstrip() + "…"
    return text


def _schedule(reader: FieldReader, own: KeyValues) -> SkillSchedule | None:
    cron, at = reader.text(own, "schedule"), reader.text(own, "at")
    minutes = reader.count(own, "interval_minutes") or 0
    kinds = {"schedule": cron, "interval_minutes": minutes, "at": at}
    given = [key for key, value in kinds.items() if value]
    if not given:
        return None
    node = own.find(given[-1])
    if len(given) > 1:
        reader.error(f"{' and '.join(given)} are both there: keep one", node)
    # It looks like cron text; the scheduler looks closely when the skill is enabled.
    fields = cron.split()
    is_cron = len(fields) == 5 and all(map(_CRON_FIELD.fullmatch, fields))
    if cron and not is_cron and cron.casefold() not in _CRON_NAMES:
        reader.error(f"schedule {cron[:80]!r} is not cron text, such as 0 6 * * 1-5", node)
    try:
        if at:
            datetime.fromisoformat(at)
    except ValueError:
        reader.error(f"at {at[:80]!r} is not a time, such as 2026-05-01T09:00", node)
    zone = reader.text(own, "timezone")
    if zone and not _ZONE.fullmatch(zone):
        reader.error(f"timezone {zone[:80]!r} is not a name such as Europe/Amsterdam", node)
    return SkillSchedule(
        cron=cron,
        interval_minutes=minutes,
        at=at,
        timezone=zone,
        notify=reader.text(own, "notify"),
        deliver_to=reader.text(own, "deliver_to"),
    )


def _patterns(reader: FieldReader, node: Node | None) -> tuple[str, ...]:
    patterns = reader.texts(node, "trigger.patterns", parts_at="")
    for pattern in patterns:
        try:
            check_pattern(pattern)
        except PatternWrong as fault:
            text = f"trigger.patterns: {pattern[:80]!r} is not a regular expression: {fault}"
            reader.error(text, node)
    return patterns


def _auto_invokes(reader: FieldReader, node: Node | None) -> tuple[AutoInvoke, ...]:
    if isinstance(node, Scalar) and node.text.lstrip()[:1] in {"{", "["}:
        try:
            node = structured(node)
        except Unreadable as error:
            reader.error(f"auto_invoke: {error}", node)
            return ()
    if node is None or (isinstance(node, Scalar) and node.is_null):
        return ()
    found = []
    for entry in node.values if isinstance(node, Items) else (node,):
        if isinstance(entry, Scalar) and entry.text.strip():
            found.append(AutoInvoke(tool=entry.text.strip()))
            continue
        tool = reader.text(entry, "tool") if isinstance(entry, KeyValues) else ""
        args = (entry.find("args") or KeyValues()) if isinstance(entry, KeyValues) else entry
        if tool and isinstance(args, KeyValues):
            found.append(AutoInvoke(tool=tool, args=_plain(args)))
        else:
            reader.error("auto_invoke needs a tool, and args as keys and values", entry)
    return tuple(found)


def _plain(node: Node) -> Any:
    """A tool's arguments as JSON would have them: here numbers and truth values count."""
    match node:
        case Items():
            return [_plain(item) for item in node.values]
        case KeyValues():
            return {key.text: _plain(value) for key, value in node.entries}
        case Scalar() if node.is_null:
            return None
        case Scalar() if node.is_plain and node.text in {"true", "false"}:
            return node.text == "true"
        case Scalar() if node.is_plain and re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", node.text):
            return int(node.text)
        case Scalar() if node.is_plain and re.fullmatch(r"-?[0-9]{1,17}\.[0-9]{1,17}", node.text):
            return float(node.text)
        case Scalar():
            return node.text
