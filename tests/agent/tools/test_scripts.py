"""run_skill: scripts run as their authors meant, and reach no further than exec."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from agent.sandbox.environment import Given
from agent.skills.library import LOOK_EVERY_S
from agent.skills.skill import SkillRefused
from agent.tools.groups.exec import ExecOptions, ProgramNotRun, Runner
from agent.tools.groups.skills import ScriptTools
from agent.tools.tool import Caller
from memory.records.rows import SkillRecord
from tests.agent.sandbox.given import AGREED, KEYS, needs_sandbox
from tests.agent.skills.given import put
from tests.agent.skills.workbench import Workbench, workbench
from tests.agent.tools.given import GUEST, OWNER, by_name
from tests.agent.tools.given import needs as needs_of

BOTH = [pytest.param(True, marks=needs_sandbox, id="sandbox"), pytest.param(False, id="open")]


class Stage:
    """A home whose path has spaces, with skills, and the tool over them."""

    def __init__(self, bench: Workbench, root: Path, *, sandbox: bool) -> None:
        self.bench, self.sandbox = bench, sandbox
        self.workspace = root / "workspace"
        self.runner = Runner(
            self.workspace,
            home=root,
            options=ExecOptions(sandbox=sandbox),
            own={"PATH": os.environ["PATH"], **KEYS},
        )

    def skill(self, name: str, *lines: str, place: Path | None = None, **scripts: str) -> Path:
        folder = put(place or self.bench.folder, name, *lines)
        for script, text in scripts.items():
            self.script(folder, script.replace("__", "."), text)
        return folder

    def script(self, folder: Path, name: str, text: str, *, mode: int = 0o644) -> Path:
        path = folder / "scripts" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
        path.chmod(mode)
        return path

    async def run(
        self,
        skill: str,
        script: str = "",
        *args: str,
        stdin: str | None = None,
        who: Caller = AGREED,
        given: Mapping[str, Given] | None = None,
    ) -> str:
        self.bench.clock.move(LOOK_EVERY_S)
        tools = ScriptTools(self.bench.library, self.runner, given)
        return await tools.run_skill(who, skill, script, args, stdin)


@pytest.fixture(params=BOTH)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    root = tmp_path / "a home with spaces"
    root.mkdir()
    async with workbench(root) as bench:
        yield Stage(bench, root, sandbox=request.param)


SHOW = "import os, sys\nprint(sys.argv[1:], os.getcwd(), sys.stdin.read())\n"


@pytest.mark.case("SK-13")
async def test_a_script_with_a_space_a_dos_first_line_and_no_bit_runs_as_written(
    stage: Stage,
) -> None:
    folder = stage.skill("my-skill")
    text = f"#!/usr/bin/env python3\r\n{SHOW}".replace("\n", "\r\n").replace("\r\r", "\r")
    stage.script(folder, "run me.py", text)

    said = await stage.run(
        "my-skill", "{baseDir}/scripts/run me.py", "--city", "New York", "{baseDir}/x", stdin="in"
    )

    args = ["--city", "New York", f"{folder}/x"]
    assert said == f"exit code 0\n--- stdout ---\n{args} {stage.workspace} in"


@pytest.mark.case("SK-13")
@pytest.mark.parametrize("mode", [0o644, 0o755])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("a.sh", ""),
        ("a.sh", "#!/bin/sh"),
        ("a.sh", "#!/usr/bin/env bash"),
        ("a.bash", "#! /bin/bash"),
        ("a", "#!/bin/sh"),
        ("a.txt", "#!/usr/bin/env bash"),
    ],
)
async def test_shell_scripts_start_whatever_their_line_ends_and_bits(
    stage: Stage, name: str, first: str, end: str, mode: int
) -> None:
    folder = stage.skill("shelly")
    lines = [line for line in (first, 'if true; then echo "got $1"', "fi") if line]
    stage.script(folder, name, end.join([*lines, ""]), mode=mode)

    assert await stage.run("shelly", name, "a b") == "exit code 0\n--- stdout ---\ngot a b"


async def test_a_shipped_skill_runs_too_and_the_only_script_needs_no_name(stage: Stage) -> None:
    stage.skill("shipped-one", place=stage.bench.shipped, only__py="print('from the box')\n")

    assert "from the box" in await stage.run("shipped-one")


@pytest.mark.case("SK-12")
@pytest.mark.parametrize(
    "script",
    [
        "../SKILL.md",
        "scripts/../../other/scripts/a.py",
        "/bin/sh",
        "inner/b.py",
        "a.py/",
        "..",
        ".",
    ],
)
async def test_no_path_leads_to_another_file(stage: Stage, script: str) -> None:
    folder = stage.skill("tidy", a__py="print(1)\n")
    (folder / "scripts" / "inner").mkdir()
    (folder / "scripts" / "inner" / "b.py").write_text("print(2)\n")

    with pytest.raises(SkillRefused, match="is no script of tidy"):
        await stage.run("tidy", script)


@pytest.mark.case("SK-12")
async def test_a_script_that_is_a_link_is_never_run(stage: Stage, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("print('outside')\n")
    folder = stage.skill("linked", a__py="print(1)\n")
    (folder / "scripts" / "b.py").symlink_to(outside)

    with pytest.raises(SkillRefused):
        await stage.run("linked", "b.py")


async def test_what_nobody_approved_is_not_run(stage: Stage) -> None:
    stage.skill("fresh", go__sh="touch was-run\n")
    await stage.bench.records.put_record(
        SkillRecord(name="fresh", digest="0", approved=False, enabled=False)
    )
    stage.bench.library.dropped()
    stage.skill("poor", "metadata: {requires: {bins: [nosuchbin]}}", go__sh="touch was-run\n")

    with pytest.raises(SkillRefused, match="waits for its owner's approval"):
        await stage.run("fresh", "go.sh")
    with pytest.raises(SkillRefused, match="this machine lacks"):
        await stage.run("poor", "go.sh")
    with pytest.raises(SkillRefused, match="there is no skill 'nosuch'"):
        await stage.run("nosuch")
    assert not (stage.workspace / "was-run").exists()


@pytest.mark.case("SE-15")
async def test_a_key_is_in_the_process_of_the_skill_that_it_was_given_to_alone(
    stage: Stage,
) -> None:
    look = "env\ncat /proc/self/environ /proc/$PPID/environ /proc/$PPID/cmdline | tr '\\0' '\\n'\n"
    given = {"keyed": {"SKILL_KEY": SecretStr("k-test3")}}
    stage.skill("keyed", a__sh=look)
    stage.skill("other", a__sh=look)

    keyed = await stage.run("keyed", given=given)
    other = await stage.run("other", given=given)

    assert "SKILL_KEY=k-test3" in keyed
    assert "k-test3" not in other
    for said in (keyed, other):
        assert "sk-test1" not in said
        assert "t-test2" not in said


@pytest.mark.case("SE-15")
async def test_a_key_is_in_no_list_of_processes(stage: Stage) -> None:
    """Whoever is on the machine can read the arguments of all processes."""
    stage.skill("keyed", a__sh="sleep 1\n")
    seen: list[bytes] = []

    running = asyncio.create_task(stage.run("keyed", given={"keyed": {"K": SecretStr("k-test3")}}))
    while not running.done():
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                seen.append(path.read_bytes())
            except OSError:
                continue
        await asyncio.sleep(0.05)
    await running

    assert any(b"a.sh" in line for line in seen)
    assert not any(b"k-test3" in line for line in seen)


async def test_a_skill_cannot_change_itself_or_read_the_home(stage: Stage) -> None:
    if not stage.sandbox:
        pytest.skip("only a sandbox keeps that")
    script = 'echo evil >> "$0"; echo evil > "$1/SKILL.md"; ls "$1/../../.."\n'
    folder = stage.skill("sly", a__sh=script)
    before = (folder / "scripts" / "a.sh").read_text()

    said = await stage.run("sly", "a.sh", "{baseDir}")

    assert (folder / "scripts" / "a.sh").read_text() == before
    assert "evil" not in (folder / "SKILL.md").read_text()
    assert "hearthbot.db" not in said


async def test_it_needs_what_exec_needs(stage: Stage) -> None:
    stage.skill("asks", a__sh="touch was-run\n")
    tool = by_name(ScriptTools(stage.bench.library, stage.runner))["run_skill"]
    given = {"skill": "asks", "script": "a.sh", "args": ["two words"]}

    needs = needs_of(tool, OWNER, **given)
    tainted = needs_of(tool, replace(OWNER, tainted=True), **given)

    assert needs.shows == ("$ asks/scripts/a.sh 'two words'",)
    assert bool(needs.asks) is needs.once_only is not stage.sandbox
    assert bool(tainted.refused) is not stage.sandbox
    assert tool.card.redo == "once"
    with pytest.raises(ProgramNotRun):
        await stage.run("asks", "a.sh", who=replace(GUEST, agreed=True))
    if not stage.sandbox:
        with pytest.raises(ProgramNotRun):
            await stage.run("asks", "a.sh", who=OWNER)
    assert not (stage.workspace / "was-run").exists()
