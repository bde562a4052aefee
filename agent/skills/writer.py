"""Write a SKILL.md as text: anew, or changed without losing what else its front matter says."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile

from agent.skills.parser import FILE_BYTES_MAX, cleaned
from agent.skills.places import SKILL_FILE, read_file
from agent.skills.reader import SkillFile, read_skill
from agent.skills.skill import Skill, SkillRefused
from memory.records.errors import Permanent
from memory.records.rows import StoredPlaybook

FORMER = ".former"
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


def playbook_of(skill: Skill) -> StoredPlaybook:
    """The row of a playbook that is read as a skill."""
    return StoredPlaybook(
        name=skill.name,
        description=skill.description,
        keywords=skill.keywords,
        text=skill.text,
        priority=skill.priority,
        required_tools=skill.required_tools,
    )


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
    reading = read_skill(text.encode("utf-8", "replace"), SkillFile(folder_name="skill"))
    if reading.skill is None:
        # What is wrong is told by who reads it next; a former file that is broken is not changed.
        return None
    return replace(reading.skill, description="", text=""), reading.requires


def _quoted(text: str) -> str:
    """One line that YAML reads back as it is, whatever colons and quotes are in it."""
    return json.dumps(" ".join(cleaned(text).split()), ensure_ascii=False)


def write_former(skills: Path, skill: Skill) -> None:
    """Keep the text of a skill in use that is replaced or deleted, in `.former`. Raise
    SkillRefused."""
    folder = skills / FORMER
    try:
        if skill.folder is None:
            text = playbook_text(skill).encode("utf-8", "replace")
        else:
            text = read_file(str(skill.folder / SKILL_FILE), bytes_max=FILE_BYTES_MAX)
    except OSError as error:
        raise SkillRefused(
            f"{skill.location} cannot be read ({error.strerror}), and is left as it is"
        ) from error
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(folder / f"{skill.name}.md")
    except OSError as error:
        raise SkillRefused(
            f"the former text of {skill.name} cannot be kept in {folder} ({error.strerror}), so "
            "nothing was changed"
        ) from error
