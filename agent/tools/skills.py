"""The group `skills`: find, read and write skills. What is written waits for the owner."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from pydantic import Field

from agent.messages import Role
from agent.skills.folder import SKILL_FILE, read_file, stamps
from agent.skills.front_matter import Unreadable
from agent.skills.relevance import Relevance
from agent.skills.shelf import SkillShelf
from agent.skills.skill import Place, Shelf, Skill, SkillState
from agent.skills.workshop import SkillRefused, Workshop
from agent.stored import StoredPlaybook
from agent.text import clean
from agent.tools.arguments import Arguments
from agent.tools.tool import Caller, Effect, Tool, ToolCard, Trust

LISTED_MAX = 50
FILE_BYTES_MAX = 200_000
BASE_DIR = "{baseDir}"

WAITS = "It is in quarantine and not used until the owner approves it: hearthbot skills approve {}"


def skill_tools(shelf: SkillShelf, workshop: Workshop) -> tuple[Tool, ...]:
    """All tools of this group."""
    return (
        ListSkills(shelf),
        ReadSkill(shelf),
        RunSkill(shelf),
        CreateSkill(workshop),
        UpdateSkill(shelf, workshop),
    )


# --- list_skills -------------------------------------------------------------------------------


class ListSkillsArguments(Arguments):
    """What they should be about; empty for all."""

    about: str = ""


class ListSkills:
    """Names and descriptions, the fitting ones first."""

    card = ToolCard(
        name="list_skills",
        description="List skills, also those that the prompt does not name.",
        arguments=ListSkillsArguments,
        group="skills",
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.OURS,
    )

    def __init__(self, shelf: SkillShelf) -> None:
        self._shelf = shelf

    async def run(self, arguments: ListSkillsArguments, caller: Caller) -> str:
        """One line a skill; the owner also sees those that are not used, with the reason."""
        shelf = await self._shelf.current()
        found = _about(shelf, arguments.about) if arguments.about.strip() else shelf.used
        lines = [f"- {skill.name}: {skill.description}" for skill in found[:LISTED_MAX]]
        if len(found) > LISTED_MAX:
            lines.append(f"({len(found) - LISTED_MAX} more: say what it should be about)")
        if caller.role is Role.OWNER and not caller.is_group:
            lines += [_unused(skill) for skill in shelf.skills if not skill.is_used]
        return "\n".join(lines) or "There is no skill for that."


def _about(shelf: Shelf, about: str) -> tuple[Skill, ...]:
    """Those that share a word with what is asked for, the best first: playbooks too, here."""
    alike = Shelf(skills=tuple(replace(skill, keywords=(), schedule=None) for skill in shelf.used))
    return tuple(one.skill for one in Relevance(alike).scores(about))


_STATES = {
    SkillState.QUARANTINED: "not used: waits for your approval (hearthbot skills approve)",
    SkillState.OFF: "off: runs by the clock once it is enabled (hearthbot skills enable)",
}


def _unused(skill: Skill) -> str:
    why = _STATES.get(skill.state) or f"not usable here: {'; '.join(skill.missing)}"
    return f"- {skill.name} ({why})"


# --- read_skill --------------------------------------------------------------------------------


class ReadSkillArguments(Arguments):
    """Which skill, and which of its files: none means its instructions."""

    name: str
    file: str = ""


class ReadSkill:
    """The instructions of a skill, or another of its text files."""

    card = ToolCard(
        name="read_skill",
        description="Read a skill's instructions, or a file that they name.",
        arguments=ReadSkillArguments,
        group="skills",
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.OURS,
    )

    def __init__(self, shelf: SkillShelf) -> None:
        self._shelf = shelf

    async def run(self, arguments: ReadSkillArguments, caller: Caller) -> str:
        """The text. Raises SkillRefused for a skill that is not there or not used."""
        skill = _usable(await self._shelf.current(), arguments.name)
        if arguments.file.strip():
            return await asyncio.to_thread(_file_of, skill, arguments.file.strip())
        text = skill.text.replace(BASE_DIR, skill.location.rpartition("/")[0])
        others = await asyncio.to_thread(_other_files, skill)
        more = f"\n\nFiles of this skill, for read_skill: {', '.join(others)}" if others else ""
        return f"{text}{more}"


def _usable(shelf: Shelf, name: str) -> Skill:
    skill = shelf.get(name.strip().strip("/").rpartition("/")[2])
    if skill is None:
        raise SkillRefused(f"there is no skill {name[:64]!r}: list_skills shows what there is")
    if not skill.is_used and skill.state is not SkillState.OFF:
        raise SkillRefused(f"{_unused(skill).removeprefix('- ')}")
    return skill


FILES_NAMED_MAX = 30


def _other_files(skill: Skill) -> list[str]:
    """Names of the files beside SKILL.md, at most some."""
    if skill.folder is None:
        return []
    try:
        names = [stamp[0] for stamp in stamps(str(skill.folder))]
    except (OSError, Unreadable):
        return []
    return [name for name in names if name not in {SKILL_FILE, "tests.yaml"}][:FILES_NAMED_MAX]


def _file_of(skill: Skill, name: str) -> str:
    """A text file of the skill's folder. Refuses whatever would lead out of it."""
    parts = name.removeprefix(f"{BASE_DIR}/").split("/")
    if skill.folder is None or not all(parts) or any(part in {".", ".."} for part in parts):
        raise SkillRefused(f"{name[:100]!r} is not a file of the skill {skill.name}")
    try:
        data = read_file(str(skill.folder.joinpath(*parts)), bytes_max=FILE_BYTES_MAX)
    except (OSError, Unreadable) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise SkillRefused(f"{name[:100]!r} of {skill.name} cannot be read: {why}") from error
    if b"\x00" in data:
        raise SkillRefused(f"{name[:100]!r} of {skill.name} is not a text file")
    return clean(data.decode("utf-8", "replace"))


# --- run_skill ---------------------------------------------------------------------------------


class RunSkillArguments(Arguments):
    """Which script of which skill, with its arguments."""

    name: str
    script: str = ""
    arguments: tuple[str, ...] = Field(default=())


class RunSkill:
    """Refuses to run scripts: there is no sandbox yet in which they could do no harm."""

    card = ToolCard(
        name="run_skill",
        description="Run a script of a skill.",
        arguments=RunSkillArguments,
        group="skills",
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.OURS,
    )

    def __init__(self, shelf: SkillShelf) -> None:
        self._shelf = shelf

    async def run(self, arguments: RunSkillArguments, caller: Caller) -> str:
        """Says what to do instead."""
        skill = _usable(await self._shelf.current(), arguments.name)
        files = await asyncio.to_thread(_other_files, skill)
        if not any(name.startswith("scripts/") for name in files):
            return f"{skill.name} has no scripts: follow its instructions (read_skill)."
        raise SkillRefused(
            "scripts of skills cannot be run here yet, as there is no sandbox for them; "
            "nothing was run. Follow the instructions by other tools, or say that it is missing"
        )


# --- create_skill, update_skill ----------------------------------------------------------------


class CreateSkillArguments(Arguments):
    """With keywords it is a playbook: its instructions join the prompt when one is said."""

    name: str = Field(description="lower-case-with-hyphens")
    description: str = Field(description="what it does, and when to use it")
    instructions: str
    keywords: tuple[str, ...] = ()
    priority: int = 0


class CreateSkill:
    """A new skill or playbook, which waits for the owner."""

    card = ToolCard(
        name="create_skill",
        description="Write a new skill or playbook. The owner has to approve it.",
        arguments=CreateSkillArguments,
        group="skills",
        effect=Effect.WORKSPACE,
        redo="idempotent",
        trust=Trust.OURS,
    )

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop

    async def run(self, arguments: CreateSkillArguments, caller: Caller) -> str:
        """Where it is, and that it waits. Raises SkillRefused, InstallRefused."""
        wanted = arguments
        if wanted.keywords:
            await self._workshop.put_playbook(
                _playbook(wanted), approved=False, origin="written by the assistant"
            )
            return f"The playbook {wanted.name} is stored. {WAITS.format(wanted.name)}"
        text = _skill_text(wanted.name, wanted.description, wanted.instructions)
        made = await self._workshop.create(wanted.name, text)
        return "\n".join(
            (f"The skill {made.name} is written. {WAITS.format(made.name)}", *made.warnings)
        )


def _playbook(wanted: CreateSkillArguments) -> StoredPlaybook:
    return StoredPlaybook(
        name=wanted.name,
        description=wanted.description,
        keywords=wanted.keywords,
        text=wanted.instructions,
        priority=wanted.priority,
    )


def _skill_text(name: str, description: str, instructions: str) -> str:
    """A SKILL.md. The description is quoted, so that no colon or line in it is YAML."""
    quoted = " ".join(description.split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'---\nname: {name}\ndescription: "{quoted}"\n---\n\n{instructions.strip()}\n'


class UpdateSkillArguments(Arguments):
    """What is left out stays as it is; `delete` takes the skill away."""

    name: str
    description: str | None = None
    instructions: str | None = None
    keywords: tuple[str, ...] | None = None
    delete: bool = False


class UpdateSkill:
    """Changes or deletes a skill of the workspace or a stored playbook."""

    card = ToolCard(
        name="update_skill",
        description="Change or delete a skill or playbook that was written here.",
        arguments=UpdateSkillArguments,
        group="skills",
        effect=Effect.WORKSPACE,
        redo="idempotent",
        trust=Trust.OURS,
    )

    def __init__(self, shelf: SkillShelf, workshop: Workshop) -> None:
        self._shelf = shelf
        self._workshop = workshop

    async def run(self, arguments: UpdateSkillArguments, caller: Caller) -> str:
        """What became of it. Raises SkillRefused, InstallRefused."""
        skill = (await self._shelf.current()).get(arguments.name)
        if skill is None or skill.place not in {Place.WORKSPACE, Place.STORED}:
            raise SkillRefused(
                f"{arguments.name[:64]!r} is not a skill that was written here: what is shipped or "
                "shared cannot be changed by a tool"
            )
        if arguments.delete:
            await self._workshop.remove(skill.name)
            return f"{skill.name} is deleted."
        if skill.place is Place.STORED:
            return await self._change_playbook(skill, arguments)
        return await self._change_file(skill, arguments)

    async def _change_playbook(self, skill: Skill, wanted: UpdateSkillArguments) -> str:
        playbook = StoredPlaybook(
            name=skill.name,
            description=_or(wanted.description, skill.description),
            keywords=skill.keywords if wanted.keywords is None else wanted.keywords,
            text=_or(wanted.instructions, skill.text),
            priority=skill.priority,
            required_tools=skill.required_tools,
        )
        await self._workshop.put_playbook(
            playbook, approved=False, origin="changed by the assistant"
        )
        return f"The playbook {skill.name} is changed. {WAITS.format(skill.name)}"

    async def _change_file(self, skill: Skill, wanted: UpdateSkillArguments) -> str:
        if wanted.keywords is not None:
            raise SkillRefused("the keywords of a skill's file are changed by its owner, by hand")
        if skill.allowed_tools is not None or skill.patterns or skill.schedule or skill.keywords:
            raise SkillRefused(
                f"{skill.name} has settings in its front matter that a tool does not rewrite: the "
                f"owner can edit {skill.location} by hand"
            )
        text = _skill_text(
            skill.name,
            _or(wanted.description, skill.description),
            _or(wanted.instructions, skill.text),
        )
        made = await self._workshop.change(skill.name, text)
        return "\n".join(
            (f"The skill {made.name} is changed. {WAITS.format(made.name)}", *made.warnings)
        )


def _or(wanted: str | None, known: str) -> str:
    return known if wanted is None else wanted
