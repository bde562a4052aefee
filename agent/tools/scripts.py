"""run_skill: runs a file of a skill's `scripts/`, under the rules of exec.

The working folder is the workspace, so that what a script makes is found again; `{baseDir}` in the
arguments is the skill's own folder, which a script can read and not change.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from agent.sandbox.environment import Given, base_python, given_variables
from agent.skills.library import SkillLibrary
from agent.skills.parser import Unreadable
from agent.skills.places import read_file, stamps
from agent.skills.skill import Skill, SkillRefused
from agent.tools.exec import WORDS_MAX, Order, Runner, shown_command
from agent.tools.skills import usable
from agent.tools.tool import Caller, Effect, Needs, Trust, tool

BASE_DIR = "{baseDir}"
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
    """What runs a script; empty when it runs by itself, and None when nobody knows.

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
