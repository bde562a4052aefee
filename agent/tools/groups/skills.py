"""The group `skills`: find, read and write skills. What is written waits for the owner."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from agent.sandbox.environment import Given, base_python, given_variables
from agent.skills.checks import TESTS_FILE
from agent.skills.install import changed_text, skill_text
from agent.skills.library import SkillLibrary
from agent.skills.matcher import Relevance
from agent.skills.parser import FILE_BYTES_MAX, Unreadable
from agent.skills.places import SKILL_FILE, read_file, shown, stamps
from agent.skills.service import SkillService
from agent.skills.skill import Skill, SkillPlace, SkillRefused, SkillSet, SkillState
from agent.skills.suspicious import playbook_warnings
from agent.tools.groups.exec import WORDS_MAX, Order, Runner, shown_command
from agent.tools.tool import Caller, Effect, Needs, Trust, tool
from memory.records.errors import Permanent
from memory.records.messages import Role
from memory.records.rows import StoredPlaybook
from memory.records.text import clean

LISTED_MAX = 50
DESCRIPTION_SHOWN = 250
"""Characters of a description in the list: fifty of them fit one result."""
FILE_BYTES_READ = 200_000
FILES_NAMED_MAX = 30
NAME_SHOWN = 100
BASE_DIR = "{baseDir}"


class NotHere(Permanent):
    """Skills are not written in this place, or by this person."""


class SkillTools:
    """Finds, reads and writes skills."""

    def __init__(self, library: SkillLibrary, service: SkillService) -> None:
        self._library = library
        self._service = service

    @tool("skills", Effect.NONE)
    async def list_skills(self, caller: Caller, about: str = "") -> str:
        """List skills, also those that the prompt does not name."""
        shelf = await self._library.current()
        found = _about(shelf, about) if about.strip() else shelf.used
        lines = [f"- {skill.name}: {_short(skill.description)}" for skill in found[:LISTED_MAX]]
        if len(found) > LISTED_MAX:
            lines.append(f"({len(found) - LISTED_MAX} more: say what it should be about)")
        if not lines:
            lines.append("There is no skill for that." if about else "No skill is in use.")
        if caller.role is Role.OWNER and not caller.is_group:
            unused = [_unused(skill) for skill in shelf.skills if not skill.is_used]
            lines += unused[:LISTED_MAX]
            if len(unused) > LISTED_MAX:
                lines.append(f"({len(unused) - LISTED_MAX} more that are not used)")
        return "\n".join(lines)

    @tool("skills", Effect.NONE)
    async def read_skill(self, caller: Caller, name: str, file: str = "") -> str:
        """Read a skill's instructions, or a file that they name."""
        skill = usable(await self._library.current(), name)
        wanted = file.strip()
        if wanted and wanted != SKILL_FILE:
            return await asyncio.to_thread(_file_of, skill, wanted)
        text = skill.text.replace(BASE_DIR, _base(skill)) or "(The skill has no instructions.)"
        others = await asyncio.to_thread(_other_files, skill)
        if not others:
            return text
        more = f" and {len(others) - FILES_NAMED_MAX} more" if len(others) > FILES_NAMED_MAX else ""
        names = ", ".join(map(shown, others[:FILES_NAMED_MAX]))
        return f"{text}\n\nFiles of this skill, for read_skill: {names}{more}"

    # With keywords it is a playbook: its instructions join the prompt when one is said.
    @tool("skills", Effect.WORKSPACE, redo="idempotent")
    async def create_skill(
        self,
        caller: Caller,
        name: Annotated[str, Field(description="lower-case-with-hyphens")],
        description: Annotated[str, Field(description="what it does, and when to use it")],
        instructions: str,
        keywords: tuple[str, ...] = (),
        priority: int = 0,
    ) -> str:
        """Write a new skill or playbook. The owner has to approve it."""
        _check_may_write(caller)
        if any(keyword.strip() for keyword in keywords):
            playbook = StoredPlaybook(
                name=name,
                description=description,
                keywords=keywords,
                text=instructions,
                priority=priority,
            )
            await self._service.create_playbook(playbook)
            what = f"The playbook {name} is stored."
            return await _done(self._library, what, name, playbook_warnings(playbook))
        if not instructions.strip():
            raise SkillRefused("a skill needs instructions")
        made = await self._service.create(name, skill_text(name, description, instructions))
        what = f"The skill {made.name} is written."
        return await _done(self._library, what, made.name, made.warnings)

    # What is left out stays as it is. What was not written here is neither changed nor deleted.
    @tool("skills", Effect.WORKSPACE, redo="idempotent")
    async def update_skill(
        self,
        caller: Caller,
        name: str,
        description: str | None = None,
        instructions: str | None = None,
        keywords: tuple[str, ...] | None = None,
        delete: bool = False,
    ) -> str:
        """Change a skill or playbook that was written here, or delete it. The owner has to approve
        a change."""
        _check_may_write(caller)
        if delete:
            if await self._service.remove_written(name):
                return f"{name} is deleted."
            return f"There is no skill {name[:64]!r}, so there is nothing to delete."
        if all(one is None for one in (description, instructions, keywords)):
            raise SkillRefused("nothing was said to change: give a description or instructions")
        skill = _written_here(await self._library.current(), name)
        if instructions is not None and not instructions.strip():
            raise SkillRefused("a skill needs instructions; to take it away, use delete")
        if skill.place is SkillPlace.STORED:
            playbook = StoredPlaybook(
                name=skill.name,
                description=skill.description if description is None else description,
                keywords=skill.keywords if keywords is None else keywords,
                text=skill.text if instructions is None else instructions,
                priority=skill.priority,
                required_tools=skill.required_tools,
            )
            await self._service.change_playbook(playbook)
            what = f"The playbook {skill.name} is changed."
            return await _done(self._library, what, skill.name, playbook_warnings(playbook))
        if keywords is not None:
            raise SkillRefused("the keywords of a skill's file are changed by its owner, by hand")
        former = await asyncio.to_thread(_whole_text, skill)
        text = changed_text(former, description=description, instructions=instructions)
        made = await self._service.change(skill.name, text)
        what = f"The skill {made.name} is changed."
        return await _done(self._library, what, made.name, made.warnings)


def _about(shelf: SkillSet, about: str) -> tuple[Skill, ...]:
    """Those that share a word with what is asked for, the best first: playbooks too, here."""
    listed = {skill.name: skill for skill in shelf.used}
    alike = SkillSet(skills=tuple(replace(one, keywords=(), schedule=None) for one in shelf.used))
    return tuple(listed[one.skill.name] for one in Relevance(alike).scores(about))


def _short(text: str) -> str:
    return text if len(text) <= DESCRIPTION_SHOWN else f"{text[: DESCRIPTION_SHOWN - 1]}…"


def _unused(skill: Skill) -> str:
    """A line on a skill that is not used. Of one in quarantine nothing but its name is told, for
    nobody has read the rest yet."""
    match skill.state:
        case SkillState.QUARANTINED:
            why = f"waits for its owner's approval: hearthbot skills approve {skill.name}"
        case SkillState.OFF:
            why = f"off; it runs by the clock once enabled: hearthbot skills enable {skill.name}"
        case _:
            why = f"this machine lacks what it needs: {'; '.join(skill.missing)}"
    return f"- {skill.name} is not used ({_short(why)})"


def usable(shelf: SkillSet, name: str) -> Skill:
    """The skill of this name, which may be written with its folder. Raises SkillRefused."""
    wanted = name.strip().removesuffix(f"/{SKILL_FILE}").strip("/").rpartition("/")[2]
    skill = shelf.get(wanted)
    if skill is None:
        raise SkillRefused(f"there is no skill {name[:64]!r}: list_skills shows what there is")
    # One that is off may be read: somebody may want it done now, by hand.
    if not skill.is_used and skill.state is not SkillState.OFF:
        raise SkillRefused(_unused(skill).removeprefix("- "))
    return skill


def _base(skill: Skill) -> str:
    return skill.location.rpartition("/")[0]


def _other_files(skill: Skill) -> list[str]:
    """Names of the files beside SKILL.md."""
    if skill.folder is None:
        return []
    try:
        names = [stamp[0] for stamp in stamps(str(skill.folder))]
    except (OSError, Unreadable):
        return []
    return [name for name in names if name not in {SKILL_FILE, TESTS_FILE}]


def _file_of(skill: Skill, written: str) -> str:
    """A text file of the skill's folder, cut where it is very long. Raises SkillRefused.

    Only a name that a look through the folder gives is opened: what is not part of the approved
    content (leftovers of other programs), and whatever would lead out of the folder, has none.
    """
    name = written
    for start in (f"{BASE_DIR}/", f"{_base(skill)}/", "./"):
        name = name.removeprefix(start)
    if skill.folder is None or name not in {*_other_files(skill), TESTS_FILE}:
        raise SkillRefused(f"{written[:NAME_SHOWN]!r} is not a file of the skill {skill.name}")
    try:
        data = read_file(str(skill.folder / name), bytes_max=FILE_BYTES_READ)
    except (OSError, Unreadable) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise SkillRefused(
            f"{written[:NAME_SHOWN]!r} of {skill.name} cannot be read: {why}"
        ) from error
    if b"\x00" in data:
        raise SkillRefused(f"{written[:NAME_SHOWN]!r} of {skill.name} is not a text file")
    text = clean(data[:FILE_BYTES_READ].decode("utf-8-sig", "replace"))
    if len(data) > FILE_BYTES_READ:
        return f"{text}\n[cut here: the file has more than {FILE_BYTES_READ:,} bytes]"
    return text or "(The file is empty.)"


def _check_may_write(caller: Caller) -> None:
    """Skills act for everybody who talks with the bot, so the owner alone has them written; and
    not in a group, where what others wrote stands in the same conversation."""
    if caller.role is not Role.OWNER:
        raise NotHere("only the owner can have skills written")
    if caller.is_group:
        raise NotHere(
            "skills are not written in a group, where others have a say in it: the owner can ask "
            "for it in a private chat"
        )


async def _done(shelf: SkillLibrary, what: str, name: str, warnings: tuple[str, ...]) -> str:
    """Return what was done, whether it is used by now, and what the owner should look at."""
    skill = (await shelf.current()).get(name)
    if skill is not None and skill.is_used:
        return f"{what} It was so before, and is in use."
    waits = (
        "It is in quarantine and not used until the owner has approved it in a terminal: "
        f"hearthbot skills approve {name}. Tell the person so."
    )
    return "\n".join((f"{what} {waits}", *warnings))


def _written_here(shelf: SkillSet, name: str) -> Skill:
    skill = shelf.get(name)
    if skill is None:
        raise SkillRefused(f"there is no skill {name[:64]!r}: list_skills shows what there is")
    if skill.place not in {SkillPlace.WORKSPACE, SkillPlace.STORED}:
        raise SkillRefused(
            f"{name} is {skill.place.value}, and cannot be changed by a tool: write one of your "
            "own under another name with create_skill"
        )
    return skill


def _whole_text(skill: Skill) -> str:
    """SKILL.md as it stands. Raises SkillRefused."""
    assert skill.folder is not None, "a skill of the workspace has a folder"
    try:
        data = read_file(str(skill.folder / SKILL_FILE), bytes_max=FILE_BYTES_MAX)
        return data.decode("utf-8-sig")
    except OSError as error:
        raise SkillRefused(f"{skill.location} cannot be read: {error.strerror}") from error
    except (Unreadable, UnicodeDecodeError) as error:
        raise SkillRefused(f"{skill.location} is not text in UTF-8") from error


# --- scripts ------------------------------------------------------------------------------------
#
# run_skill: runs a file of a skill's `scripts/`, under the rules of exec.
#
# The working folder is the workspace, so that what a script makes is found again; `{baseDir}` in
# the arguments is the skill's own folder, which a script can read and not change.

SCRIPTS = "scripts"
SCRIPT_BYTES_MAX = 5_000_000
NAMED_MAX = 20

_INTERPRETERS: Mapping[str, str] = {
    ".bash": "bash",
    ".cjs": "node",
    ".js": "node",
    ".mjs": "node",
    ".pl": "perl",
    ".rb": "ruby",
    ".sh": "sh",
}
_SHEBANG = re.compile(rb"#!\s*(\S+)(?:[ \t]+(\S+))?")
_SHELLS = frozenset({"bash", "dash", "ksh", "sh", "zsh"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Script:
    """A script that may run. `is_dos`: its lines end as no shell can read them."""

    skill: Skill
    folder: Path
    path: Path
    interpreter: tuple[str, ...]
    is_dos: bool = False
    named: str = ""

    def command(self, args: tuple[str, ...]) -> tuple[str, ...]:
        filled = (word.replace(BASE_DIR, str(self.folder)) for word in args)
        return (*self.interpreter, str(self.path), *filled)


class ScriptTools:
    """Runs scripts that come with skills. `given` holds, for each skill, the variables that the
    owner set for it (`skills.NAME.env`): they are in that process alone."""

    def __init__(
        self, shelf: SkillLibrary, runner: Runner, given: Mapping[str, Given] | None = None
    ) -> None:
        self._shelf = shelf
        self._runner = runner
        self._given = given or {}

    def _run_skill_needs(
        self, caller: Caller, skill: str, script: str, args: tuple[str, ...]
    ) -> Needs:
        """As exec's, and shows the script with its arguments."""
        what = (f"{skill}/{SCRIPTS}/{_bare(script)}", *args)
        return self._runner.needs(caller, shows=shown_command(what, ""))

    # Without scripts, the model is advised to follow the skill's instructions.
    @tool(
        "skills",
        Effect.OUTSIDE,
        redo="once",
        trust=Trust.UNTRUSTED,
        needs=_run_skill_needs,
        status="runs a script",
    )
    async def run_skill(
        self,
        caller: Caller,
        skill: str,
        script: Annotated[str, Field(description="name of a file in the skill's scripts/")] = "",
        args: Annotated[tuple[str, ...], Field(max_length=WORDS_MAX)] = (),
        stdin: str | None = None,
    ) -> str:
        """Run a script of a skill. It works in the workspace folder; {baseDir} in args is the
        skill's folder."""
        found_skill = usable(await self._shelf.current(), skill)
        names = await asyncio.to_thread(_scripts, found_skill)
        if not names:
            return f"{found_skill.name} has no scripts: follow its instructions (read_skill)."
        found = await asyncio.to_thread(_found, found_skill, names, script)
        variables = given_variables(self._given.get(found_skill.name, {}))
        async with _readable_lines(found) as copy:
            is_confined = await asyncio.to_thread(self._runner.is_confined)
            command = found.command(args)
            if copy is not None and not is_confined:
                at = len(found.interpreter)
                command = (*command[:at], str(copy), *command[at + 1 :])
            order = Order(
                command=command,
                folder=self._runner.root,
                stdin=stdin,
                given=variables,
                readable=(found.folder,),
                instead={} if copy is None else {found.path: copy},
            )
            return await self._runner.run(order, caller)


def _scripts(skill: Skill) -> tuple[str, ...]:
    """Names of the files in `scripts/`. Raises SkillRefused when the folder cannot be looked at."""
    if skill.folder is None:
        return ()
    try:
        found = stamps(str(skill.folder))
    except (OSError, Unreadable) as error:
        raise SkillRefused(f"the files of {skill.name} cannot be read: {_why(error)}") from error
    inner = f"{SCRIPTS}/"
    return tuple(
        name.removeprefix(inner)
        for name, *_ in found
        if name.startswith(inner) and "/" not in name.removeprefix(inner)
    )


def _bare(written: str) -> str:
    """The name alone, of how instructions write it."""
    name = written.strip()
    for start in (f"{BASE_DIR}/", "./", f"{SCRIPTS}/"):
        name = name.removeprefix(start)
    return name


def _found(skill: Skill, names: tuple[str, ...], written: str) -> _Script:
    """The script of this name: only what a look through the folder gave is ever run."""
    assert skill.folder is not None, "a skill with scripts has a folder"
    name = _bare(written)
    if not name and len(names) == 1:
        name = names[0]
    if name not in names:
        known = ", ".join(names[:NAMED_MAX])
        raise SkillRefused(
            f"{written[:100]!r} is no script of {skill.name}; give a file name without folders "
            f"(there are: {known})"
        )
    folder = skill.folder.resolve()
    path = folder / SCRIPTS / name
    try:
        data = read_file(str(path), bytes_max=SCRIPT_BYTES_MAX)
        is_executable = bool(path.stat().st_mode & 0o111)
    except (OSError, Unreadable) as error:
        raise SkillRefused(f"{name} of {skill.name} cannot be read: {_why(error)}") from error
    interpreter = _interpreter(name, data, is_executable=is_executable)
    if interpreter is None:
        raise SkillRefused(
            f"{name} of {skill.name} cannot be run: it is not executable, and neither its ending "
            "nor its first line says by what; chmod +x it, or give it a first line like "
            "#!/usr/bin/env python3"
        )
    is_dos = bool(interpreter) and interpreter[0] in _SHELLS and b"\r\n" in data
    return _Script(
        skill=skill, folder=folder, path=path, interpreter=interpreter, is_dos=is_dos, named=name
    )


def _interpreter(name: str, data: bytes, *, is_executable: bool) -> tuple[str, ...] | None:
    """Return what runs a script; empty when it runs by itself, and None when nobody knows.

    A first line is read here and not by the system, which takes a carriage return for a part of the
    interpreter's name and needs the executable bit, that archives lose.
    """
    shebang = _shebang(data)
    ending = Path(name).suffix.casefold()
    if ending in {".py", ".pyw"} or re.fullmatch(r"python(3(\.\d+)?)?", shebang):
        return (str(base_python()),)
    if shebang in _SHELLS or (shebang and ending in _INTERPRETERS):
        return (shebang,)
    if ending in _INTERPRETERS:
        return (_INTERPRETERS[ending],)
    if is_executable and b"\r" not in data.partition(b"\n")[0]:
        return ()
    return (shebang,) if shebang else None


def _shebang(data: bytes) -> str:
    """The interpreter's name in a first line, without its folder."""
    found = _SHEBANG.match(data.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0])
    if found is None:
        return ""
    program, first = found[1].decode(errors="replace"), (found[2] or b"").decode(errors="replace")
    name = program.rpartition("/")[2]
    return first if name == "env" and not first.startswith("-") else name


@asynccontextmanager
async def _readable_lines(found: _Script) -> AsyncIterator[Path | None]:
    """A copy with line ends that a shell can read, where the script has others; else None."""
    if not found.is_dos:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="hearthbot-script-") as folder:
        copy = Path(folder) / found.named
        await asyncio.to_thread(_write_copy, found.path, copy)
        yield copy


def _write_copy(source: Path, copy: Path) -> None:
    data = read_file(str(source), bytes_max=SCRIPT_BYTES_MAX)
    copy.write_bytes(data.replace(b"\r\n", b"\n"))
    os.chmod(copy, 0o700)  # noqa: PTH101


def _why(error: OSError | Unreadable) -> str:
    return (error.strerror or "unknown") if isinstance(error, OSError) else str(error)
