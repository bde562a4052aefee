"""One SKILL.md, as found in the wild, read into a Skill or into what is wrong with it.

A limit that cannot be understood makes the skill unusable; anything else that is odd is a warning.
Whatever the bytes are, nothing is raised. Called by the shelf and before anything is installed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.skills.fields import FieldReader, OwnKeys, Requires
from agent.skills.parser import (
    Fields,
    Items,
    Node,
    Scalar,
    Unreadable,
    cleaned,
    duplicates,
    folded,
    parts,
    structured,
)
from agent.skills.rules import fault_of
from agent.skills.skill import AutoInvoke, Place, Problem, Severity, Skill, SkillSchedule
from memory.records.errors import Permanent

NAME_MAX = 64
DESCRIPTION_MAX = 1_024
NAMESPACES = ("hearthbot", "openclaw", "clawdbot", "moltbot", "nanobot")
"""Blocks of `metadata` whose `requires` and `os` mean the same. Our own keys stand in the first."""

_OWN_LIMITS = ("required_tools", "no_tools", "max_steps")
_OWN_KEYS = (
    *("keywords", "priority", "schedule", "interval_minutes", "at", "timezone", "notify"),
    *("deliver_to", "full_context", "trigger", "instruction", "auto_invoke"),
)
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_CRON_FIELD = re.compile(r"[0-9A-Za-z*,/?#-]+")
_CRON_NAMES = frozenset(
    {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}
)
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where a SKILL.md stands. `location` is for the model, `file` for a person."""

    folder_name: str
    place: Place = Place.WORKSPACE
    location: str = "SKILL.md"
    file: str = "SKILL.md"
    folder: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The skill, None if it is broken; every problem; and what it requires of the machine."""

    skill: Skill | None = None
    problems: tuple[Problem, ...] = ()
    requires: Requires = field(default_factory=Requires)


def read_skill(data: bytes, where: Where) -> Reading:
    """Reads the bytes of one SKILL.md. Its state and digest are left for the shelf to set."""
    reader = FieldReader()
    try:
        found = parts(data)
    except Unreadable as error:
        reader.error(str(error), error.line)
        return Reading(problems=_problems(reader, where, where.folder_name))
    reader.flaws.extend(found.flaws)
    reader.flaws.extend(duplicates(found.fields) if found.fields else ())
    skill, requires = _skill(reader, found.fields or Fields(), found.body, where)
    if found.fields is None:
        reader.warning("there is no front matter: name and description are made up")
    problems = _problems(reader, where, skill.name)
    is_broken = any(problem.severity is Severity.ERROR for problem in problems)
    return Reading(skill=None if is_broken else skill, problems=problems, requires=requires)


def is_name(text: str) -> bool:
    """Lower-case letters, digits and single hyphens between them, at most 64."""
    return len(text) <= NAME_MAX and _NAME.fullmatch(text) is not None


def _skill(reader: FieldReader, front: Fields, body: str, where: Where) -> tuple[Skill, Requires]:
    metadata = reader.block(front, "metadata")
    spaces = {name: reader.block(metadata, name, is_lenient=True) for name in NAMESPACES}
    own = OwnKeys(reader, (spaces["hearthbot"], metadata))
    _check_margin(reader, front)
    trigger = own.block("trigger")
    skill = Skill(
        name=_name(reader, front, where),
        description=_description(reader, front, body),
        text=body,
        place=where.place,
        location=where.location,
        folder=where.folder,
        keywords=own.texts("keywords"),
        priority=own.priority(),
        required_tools=own.texts("required_tools"),
        allowed_tools=reader.allowed(front),
        max_steps=own.count("max_steps"),
        no_tools=own.flag("no_tools"),
        full_context=own.flag("full_context"),
        schedule=_schedule(reader, own),
        patterns=_patterns(reader, trigger or own.find("trigger.patterns")),
        instruction=own.text("instruction") or reader.text(trigger, "instruction"),
        auto_invoke=_auto_invokes(reader, own.find("auto_invoke") or _in(trigger, "auto_invoke")),
        license=reader.text(front, "license"),
        compatibility=reader.text(front, "compatibility"),
        version=reader.text(front, "version") or reader.text(metadata, "version"),
    )
    if not body and not reader.has_errors:
        reader.warning("the skill has no instructions below its front matter")
    return skill, _requires(reader, (metadata, *spaces.values()))


def _problems(reader: FieldReader, where: Where, name: str) -> tuple[Problem, ...]:
    return tuple(
        Problem(skill=name, file=where.file, text=flaw.text, line=flaw.line, severity=flaw.severity)
        for flaw in sorted(reader.flaws, key=lambda flaw: flaw.line)
    )


# --- the single fields -------------------------------------------------------------------------


def _in(fields: Fields | None, key: str) -> Node | None:
    return fields.find(key) if fields is not None else None


def _check_margin(reader: FieldReader, front: Fields) -> None:
    """Our keys belong below `metadata`; a limit beside it must not be lost unseen."""
    ours = {folded(key): reader.error for key in _OWN_LIMITS}
    ours |= {folded(key): reader.warning for key in _OWN_KEYS}
    for key, _ in front.entries:
        complain = ours.get(folded(key.text))
        if complain is not None:
            complain(f"{key.text} is read below `metadata:` only: move it there", key.line)


def _name(reader: FieldReader, front: Fields, where: Where) -> str:
    node = front.find("name")
    written, line = reader.text(front, "name"), node.line if node is not None else 0
    wanted = [written, where.folder_name, _slug(written), _slug(where.folder_name)]
    name = next((text for text in wanted if is_name(text)), "")
    if not name:
        shown = (written or where.folder_name)[:NAME_MAX]
        reader.error(
            f"name {shown!r} must be at most {NAME_MAX} lower-case letters, digits and hyphens",
            line,
        )
        return where.folder_name
    if not written:
        if front.entries:
            reader.warning(f"there is no name: it is called {name}")
    elif name != written:
        shown = written[:NAME_MAX]
        rule = f"at most {NAME_MAX} lower-case letters, digits and hyphens"
        reader.warning(f"name {shown!r} is not {rule}: it is called {name}", line)
    elif name != where.folder_name:
        reader.warning(f"the folder should be called {name} too", line)
    return name


def _slug(text: str) -> str:
    """`Excel Reports` and `ExcelReports` as `excel-reports`."""
    return re.sub(r"[^a-z0-9]+", "-", _CAMEL.sub("-", text).casefold()).strip("-")


def _description(reader: FieldReader, front: Fields, body: str) -> str:
    node = front.find("description")
    line = node.line if node is not None else 0
    if node is None:
        text = _first_paragraph(body)
        if front.entries and text:
            reader.warning("there is no description: the first paragraph stands in for it")
    else:
        text = reader.text(front, "description")
        if not isinstance(node, Scalar):
            return ""
    text = " ".join(text.split())
    if not text:
        reader.error("there is no description: say what the skill does and when to use it", line)
    if len(text) > DESCRIPTION_MAX:
        if node is not None:
            reader.warning(
                f"the description has {len(text):,} characters: cut to {DESCRIPTION_MAX:,}", line
            )
        text = text[: DESCRIPTION_MAX - 1].rstrip() + "…"
    return text


def _first_paragraph(body: str) -> str:
    """The first paragraph that is not a heading; the first heading if there is no other text."""
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", body) if part.strip()]
    plain = (
        "\n".join(line for line in part.split("\n") if not line.startswith("#"))
        for part in paragraphs
    )
    found = next((part for part in plain if part.strip()), "")
    return found or (paragraphs[0].split("\n")[0].lstrip("# ") if paragraphs else "")


def _schedule(reader: FieldReader, own: OwnKeys) -> SkillSchedule | None:
    cron, at = own.text("schedule"), own.text("at")
    minutes = own.count("interval_minutes") or 0
    kinds = {"schedule": cron, "interval_minutes": minutes, "at": at}
    given = [key for key, value in kinds.items() if value]
    if not given:
        return None
    node = own.find(given[-1])
    line = node.line if node is not None else 0
    if len(given) > 1:
        reader.error(f"{' and '.join(given)} are both there: keep one", line)
    if cron and not _is_cron(cron):
        reader.error(f"schedule {cron[:80]!r} is not cron text, such as 0 6 * * 1-5", line)
    if at and not _is_time(at):
        reader.error(f"at {at[:80]!r} is not a time, such as 2026-05-01T09:00", line)
    zone = own.text("timezone")
    if zone and not _ZONE.fullmatch(zone):
        reader.error(f"timezone {zone[:80]!r} is not a name such as Europe/Amsterdam", line)
    return SkillSchedule(
        cron=cron,
        interval_minutes=minutes,
        at=at,
        timezone=zone,
        notify=own.text("notify"),
        deliver_to=own.text("deliver_to"),
    )


def _is_cron(text: str) -> bool:
    """Whether it looks like cron text; the scheduler looks closely when it is enabled."""
    if text.casefold() in _CRON_NAMES:
        return True
    fields = text.split()
    return len(fields) == 5 and all(map(_CRON_FIELD.fullmatch, fields))


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _patterns(reader: FieldReader, trigger: Node | None) -> tuple[str, ...]:
    node = trigger.find("patterns") if isinstance(trigger, Fields) else trigger
    patterns = reader.as_texts(node, "trigger.patterns", parts_at="")
    for pattern in patterns:
        if fault := fault_of(pattern):
            line = node.line if node is not None else 0
            shown = pattern[:80]
            reader.error(f"trigger.patterns: {shown!r} is not a regular expression: {fault}", line)
    return patterns


def _auto_invokes(reader: FieldReader, node: Node | None) -> tuple[AutoInvoke, ...]:
    if isinstance(node, Scalar) and node.text.lstrip()[:1] in {"{", "["}:
        try:
            node = structured(node)
        except Unreadable as error:
            reader.error(f"auto_invoke: {error}", node.line if node is not None else 0)
            return ()
    if node is None or (isinstance(node, Scalar) and node.is_null):
        return ()
    entries = node.values if isinstance(node, Items) else (node,)
    return tuple(found for entry in entries if (found := _auto_invoke(reader, entry)) is not None)


def _auto_invoke(reader: FieldReader, node: Node) -> AutoInvoke | None:
    if isinstance(node, Scalar) and node.text.strip():
        return AutoInvoke(tool=node.text.strip())
    if isinstance(node, Fields):
        tool, args = reader.text(node, "tool"), node.find("args") or Fields()
        values = _plain(args)
        if tool and isinstance(values, dict):
            return AutoInvoke(tool=tool, args=values)
    reader.error("auto_invoke needs a tool, and args as keys and values", node.line)
    return None


def _plain(node: Node) -> Any:
    """A tool's arguments as JSON would have them: here numbers and truth values count."""
    match node:
        case Items():
            return [_plain(item) for item in node.values]
        case Fields():
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


def _requires(reader: FieldReader, blocks: tuple[Fields, ...]) -> Requires:
    def gathered(key: str) -> tuple[str, ...]:
        found = (text for block in blocks for text in reader.as_texts(block.find(key), key))
        return tuple(dict.fromkeys(found))

    return Requires(
        env=gathered("requires.env"),
        bins=gathered("requires.bins"),
        any_bins=gathered("requires.anyBins"),
        systems=gathered("os"),
    )


# --- writing ------------------------------------------------------------------------------------
#
# A SKILL.md as text: written anew, or changed without losing what else its front matter says.
#
# Called by the tools of the group `skills` and by the workshop.

_FRONT = re.compile(r"\s*---+[ \t]*\n(?P<front>.*?\n)(?:---+|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_DESCRIPTION = re.compile(
    r"""^(?P<quote>["']?)description(?P=quote)[ \t]*:.*(?:\n(?:[ \t].*|[ \t]*(?=\n)))*""",
    re.IGNORECASE | re.MULTILINE,
)


class NotRewritable(Permanent):
    """The file cannot be changed without the risk of losing something that it says."""


def skill_text(name: str, description: str, instructions: str) -> str:
    """A new SKILL.md."""
    body = cleaned(instructions).strip()
    return f"---\nname: {name}\ndescription: {_quoted(description)}\n---\n\n{body}\n"


def playbook_text(playbook: Skill) -> str:
    """A stored playbook as a SKILL.md."""
    keywords = json.dumps(playbook.keywords, ensure_ascii=False)
    lines = [
        "---",
        f"name: {playbook.name}",
        f"description: {_quoted(playbook.description)}",
        "metadata:",
        f"  keywords: {keywords}",
        f"  priority: {playbook.priority}",
        "---",
        "",
        playbook.text,
        "",
    ]
    return "\n".join(lines)


def changed_text(
    former: str, *, description: str | None = None, instructions: str | None = None
) -> str:
    """The same SKILL.md with another description or other instructions; None leaves it.

    Raises NotRewritable when anything else in it would read differently afterwards.
    """
    former = cleaned(former.replace("\r\n", "\n").replace("\r", "\n"))
    found = _FRONT.match(former)
    if found is None:
        raise NotRewritable("it has no front matter that a tool could keep")
    front, body = found["front"], former[found.end() :].strip()
    if description is not None:
        line = f"description: {_quoted(description)}"
        front, count = _DESCRIPTION.subn(lambda match: line, front)
        front = front if count else f"{line}\n{front}"
    if instructions is not None:
        body = cleaned(instructions).strip()
    text = f"---\n{front}---\n\n{body}\n"
    if _all_else(text) != _all_else(former):
        raise NotRewritable("its front matter is written in a way that a tool cannot keep")
    return text


def _all_else(text: str) -> object:
    """All that a file says, but for description and instructions."""
    reading = read_skill(text.encode("utf-8", "replace"), Where(folder_name="skill"))
    if reading.skill is None:
        # What is wrong is told by who reads it next; a former file that is broken is not changed.
        return None
    return replace(reading.skill, description="", text=""), reading.requires


def _quoted(text: str) -> str:
    """One line that YAML reads back as it is, whatever colons and quotes are in it."""
    return json.dumps(" ".join(cleaned(text).split()), ensure_ascii=False)
