"""exec, as a model calls it: what it may see and change, what it needs, and what it never tells."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.policy.approval import shown
from agent.sandbox.environment import EnvironmentWrong, given_variables
from agent.sandbox.process import RunLimits
from agent.tools.confinement import ConfinementRefused
from agent.tools.groups.exec import (
    CommandLimits,
    ExecOptions,
    ExecTools,
    ProgramNotRun,
    Runner,
    shown_command,
)
from agent.tools.groups.files import ResultStore
from agent.tools.tool import Tool, tools_of
from agent.tools.workspace import PathRefused, Workspace, results_folder
from tests.agent.sandbox.given import AGREED, KEYS, Home, needs_sandbox, ran
from tests.agent.tools.given import GROUP, GUEST, MEMBER, OWNER, call, run_tool
from tests.agent.tools.given import needs as needs_of
from tests.checkout import ROOT
from tests.thorough import rounds

TAINTED = replace(AGREED, tainted=True)
IN_GROUP = replace(GROUP, agreed=True)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def exec_tool(runner: Runner) -> Tool:
    (tool,) = tools_of(ExecTools(runner), timeout_s=runner.timeout_s)
    return tool


# --- what a call needs -------------------------------------------------------------------------


@pytest.mark.case("SE-07")
async def test_without_sandbox_each_call_asks_and_none_runs_in_a_tainted_turn(home: Home) -> None:
    runner = home.runner(sandbox=False)
    command = ("touch", "made")

    needs = needs_of(exec_tool(runner), OWNER, command=command)
    tainted = needs_of(exec_tool(runner), TAINTED, command=command)

    assert needs.asks
    assert needs.once_only
    assert needs.shows == ("$ touch made",)
    assert "there is no sandbox here" in tainted.refused
    for who in (TAINTED, OWNER):
        with pytest.raises(ProgramNotRun):
            await ExecTools(runner).exec(who, command)
    assert not (home.workspace / "made").exists()
    assert "exit code 0" in await ExecTools(runner).exec(AGREED, command)
    assert (home.workspace / "made").exists()


@given(st.lists(st.text(), min_size=1), st.text(alphabet="ab/.\u202e \n"))
@settings(max_examples=rounds(50, 200))
def test_what_is_shown_is_what_runs_and_hides_nothing(words: list[str], folder: str) -> None:
    line, *rest = shown_command(words, folder)

    assert line.startswith("$ ")
    assert shlex.split(line[2:]) == words
    assert rest == ([f"(in {folder.strip()})"] if folder.strip() not in {"", "."} else [])


@pytest.mark.threat("T24")
@pytest.mark.parametrize(
    "given",
    [
        {"command": ("bash", "-c", "echo ok; " + "true; " * 300 + "rm -rf .")},
        {"command": ("python3", "-"), "stdin": "print(1)\n" * 400},
        {"command": ("echo", *("word" for _ in range(400)))},
        {"command": ("ls",), "cwd": "very/" * 300},
    ],
    ids=["command", "stdin", "words", "folder"],
)
def test_what_no_card_can_show_whole_is_not_run_whatever_the_rules_say(
    home: Home, given: dict[str, Any]
) -> None:
    needs = needs_of(exec_tool(home.runner()), OWNER, **given)

    assert needs.refused
    assert "Write what is long to a file of the workspace" in needs.refused


@pytest.mark.threat("T24")
def test_padding_hides_no_part_of_a_command(home: Home) -> None:
    word = f"echo ok;{' ' * 3000}rm -rf .{chr(10) * 500}# {'=' * 2000}"
    tool, given = exec_tool(home.runner()), {"command": ["bash", "-c", word]}

    needs = needs_of(tool, OWNER, **given)
    card = shown(tool.card, json.dumps(given), needs)

    assert not needs.refused
    assert "$ bash -c 'echo ok;‹␠×3,000›rm -rf .‹⏎×500›# ‹=×2,000›'" in card
    assert "left out" not in card


# --- allowed-tools -----------------------------------------------------------------------------


def entries(*named: str) -> CommandLimits:
    """What the followed skills keep themselves to."""
    return lambda caller: named


@pytest.mark.case("SK-11", "SE-08", "SE-10")
@pytest.mark.parametrize(
    "command",
    [
        ("rm", "-rf", "x"),
        ("git", "status;rm x"),
        ("git", "$(rm x)"),
        ("env", "git", "status"),
        ("sh", "-c", "git status"),
        ("./git", "status"),
    ],
)
@pytest.mark.threat("T9")
async def test_a_followed_skills_limit_is_kept_on_parsed_words(
    home: Home, command: tuple[str, ...]
) -> None:
    home.write("x", "here")
    tools = ExecTools(home.runner(), entries("Bash(git:*)", "Read"))

    (tool,) = tools_of(tools)
    assert "allows no such command" in needs_of(tool, OWNER, command=command).refused
    with pytest.raises(ProgramNotRun, match="allows no such command"):
        await tools.exec(AGREED, command)
    assert (home.workspace / "x").read_text() == "here"


@pytest.mark.case("SE-10")
@pytest.mark.parametrize("sandbox", [pytest.param(True, marks=needs_sandbox), False])
@pytest.mark.threat("T9")
async def test_words_are_not_expanded_after_they_were_looked_at(home: Home, sandbox: bool) -> None:
    home.write("secret.txt", "hidden-words")
    runner = home.runner(sandbox=sandbox)

    for word in (
        "*",
        "$HOME",
        "~",
        "{a,b}",
        "`cat secret.txt`",
        "$(cat secret.txt)",
        "<(id)",
        "!!",
    ):
        said = await ran(runner, "echo", word)
        assert said.splitlines()[-1] == word


# --- the sandbox -------------------------------------------------------------------------------


@needs_sandbox
async def test_the_workspace_can_be_written_and_nothing_else(home: Home) -> None:
    runner = home.runner()
    places = [
        "/x",
        "/usr/x",
        "/etc/x",
        "/dev/x",
        "/proc/sys/kernel/core_pattern",
        str(Path("/root") / "x"),
    ]
    places += [str(home.home / "x"), str(home.beside / "x"), "../x"]
    script = 'for f in "$@"; do (echo x > "$f") 2>/dev/null && echo "wrote $f"; done; echo x > made'

    said = await ran(runner, "sh", "-c", script, "sh", *places)

    wrote = [line for line in said.splitlines() if line.startswith("wrote")]
    # Below the home and beside it there are folders of the sandbox's own, which go with it.
    assert [line for line in wrote if str(home.home.parent) not in line and "../" not in line] == []
    assert (home.workspace / "made").read_text() == "x\n"
    assert sorted(path.name for path in home.home.iterdir()) == ["config.toml", "workspace"]
    assert sorted(path.name for path in home.beside.iterdir()) == ["file"]
    assert Path("/proc/sys/kernel/core_pattern").read_text() != "x\n"


@needs_sandbox
async def test_settings_of_the_machine_cannot_be_changed_even_as_root(home: Home) -> None:
    """A bot that is root owns the files of /proc/sys, and needs no capability to write them."""
    before = Path("/proc/sys/kernel/core_pattern").read_bytes()
    script = "find /proc /sys -writable -exec test -f {} ';' -print 2>/dev/null"
    script += " | grep -v '^/proc/[0-9]*/'"

    said = await ran(home.runner(), "sh", "-c", script)

    assert said == "exit code 1\n(no output)"
    assert Path("/proc/sys/kernel/core_pattern").read_bytes() == before


@needs_sandbox
async def test_there_is_no_network_no_host_process_and_no_capability(home: Home) -> None:
    runner = home.runner()
    connect = (
        "import socket\n"
        "for name, where in (('tcp', ('127.0.0.1', 22)), ('out', ('192.0.2.1', 80))):\n"
        "    try: socket.create_connection(where, 1); print('connected', name)\n"
        "    except OSError as error: print(name, 'failed')\n"
    )

    assert "connected" not in await ran(runner, "python3", "-c", connect)
    said = await ran(runner, "sh", "-c", "ls -d /proc/[0-9]* | wc -l; grep Cap /proc/self/status")
    assert int(said.splitlines()[2]) < 10
    assert set("".join(line.split()[-1] for line in said.splitlines()[3:])) == {"0"}
    said = await ran(runner, "sh", "-c", "unshare -Urm id; mount -t tmpfs x /tmp; chroot / id; :")
    assert "uid=" not in said


STEERING = ["AGENTS.md", "SOUL.md", "USER.md", "IDENTITY.md", "TOOLS.md", "HEARTBEAT.md"]
CHANGES = (
    'for f in "$@"; do rm -rf "$f"; mv "$f" moved; rm -rf moved; echo evil > "$f"; '
    'echo evil >> "$f"; mkdir "$f"; echo evil > "$f/x"; ln -s /etc/passwd "$f"; '
    'ln -sf x "$f"; chmod 777 "$f"; '
    'cp --remove-destination /dev/null "$f"; ln "$f" "hard-$f" && echo evil >> "hard-$f"; '
    "done 2>/dev/null; :"
)


@needs_sandbox
@pytest.mark.parametrize("is_there", [True, False])
async def test_what_steers_the_assistant_cannot_be_made_or_changed(
    home: Home, is_there: bool
) -> None:
    if is_there:
        for name in STEERING:
            home.write(name, f"the real {name}")
        for name in ("skills/mine/SKILL.md", "prompts/system.md", "agents/work/instructions.md"):
            home.write(name, f"the real {name}")
        home.write("memory/2026-01-07.md", "a real note")
    before = {p: p.read_text() for p in home.workspace.rglob("*") if p.is_file()}
    names = [*STEERING, "skills", "prompts", "agents", "memory", "skills/mine", "memory/people"]

    await ran(home.runner(), "sh", "-c", CHANGES, "sh", *names)

    after = {p: p.read_text() for p in home.workspace.rglob("*") if p.is_file()}
    assert after == before
    assert not any(path.is_symlink() for path in home.workspace.rglob("*"))
    left = {path.name for path in home.workspace.iterdir()}
    assert left == ({*STEERING, "skills", "prompts", "agents", "memory"} if is_there else set())


@needs_sandbox
async def test_what_is_closed_to_the_file_tools_is_closed_to_programs(home: Home) -> None:
    other, own = "files/results/slack+9/kept.txt", f"files/results/{results_folder(OWNER)}/own.txt"
    closed = ["memory/people/p2/notes.md", other, ".env", "app/.env", "app/.env.local", ".ENV"]
    private = ["USER.md", "memory/2026-01-07.md", "memory/people/p1/notes.md"]
    for name in (*closed, *private, own, "app/main.py"):
        home.write(name, f"canary {name}")
    everything = "find . -type f -print0 | xargs -0 cat; cat .env */.env .ENV; :"

    alone = await ran(home.runner(), "sh", "-c", everything)
    group = await ran(home.runner(), "sh", "-c", everything, who=IN_GROUP)

    for name in closed:
        assert f"canary {name}" not in alone
        assert f"canary {name}" not in group
    for name in private:
        assert f"canary {name}" in alone
        assert f"canary {name}" not in group
    assert f"canary {own}" in alone
    assert f"canary {own}" not in group
    assert "canary app/main.py" in alone
    for name in (*closed, *private):
        assert (home.workspace / name).read_text() == f"canary {name}"


@needs_sandbox
async def test_a_link_in_a_protected_place_is_refused_in_plain_words(home: Home) -> None:
    (home.workspace / "SOUL.md").symlink_to(home.write("elsewhere.md", "text"))

    with pytest.raises(ConfinementRefused, match=r"SOUL\.md in the workspace is a link"):
        await ran(home.runner(), "true")


@needs_sandbox
async def test_folders_that_the_owner_names_can_be_read_but_never_the_home_in_them(
    home: Home,
) -> None:
    options = ExecOptions(readable=(home.home.parent,))
    runner = home.runner(options=options)

    assert "canary-beside" in await ran(runner, "cat", str(home.beside / "file"))
    assert "canary-config" not in await ran(runner, "cat", str(home.home / "config.toml"))
    await ran(runner, "sh", "-c", f"echo x > {home.beside}/file; rm -rf {home.home}/*; :")
    assert (home.beside / "file").read_text() == "canary-beside"
    assert (home.home / "config.toml").exists()


@needs_sandbox
async def test_a_persona_that_a_setting_puts_in_the_workspace_cannot_be_changed(home: Home) -> None:
    persona = home.write("me/instructions.md", "Be kind.")
    runner = home.runner(fixed=(persona.parent,))

    await ran(runner, "sh", "-c", CHANGES, "sh", "me", "me/instructions.md")

    assert persona.read_text() == "Be kind."


@needs_sandbox
async def test_what_is_covered_keeps_its_place_for_the_next_program(home: Home) -> None:
    """A folder above it could be moved, so that the next program finds it under another name."""
    home.write("files/results/slack+9/kept.txt", "canary-other")
    home.write("memory/people/p2/notes.md", "canary-other")
    script = "mv files moved; mv files/results moved2; mv memory moved3; mkdir -p files/results; :"

    await ran(home.runner(), "sh", "-c", script)
    said = await ran(home.runner(), "sh", "-c", "find . -type f -print0 | xargs -0 cat; :")

    assert "canary-other" not in said


@needs_sandbox
async def test_placeholders_are_gone_also_when_the_bot_was_killed(home: Home) -> None:
    left = home.workspace / "SOUL.md"
    left.touch()
    os.utime(left, (0, 0))
    mine = home.write("AGENTS.md", "")

    await ran(home.runner(), "ls")

    assert [path.name for path in home.workspace.iterdir()] == [mine.name]


@pytest.mark.parametrize(
    ("bwrap", "why"),
    [("", "bubblewrap is not installed"), ("#!/bin/sh\nexit 1\n", "lets it make no sandbox")],
)
def test_a_sandbox_that_cannot_be_made_is_not_relied_on(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bwrap: str, why: str
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    if bwrap:
        (folder / "bwrap").write_text(bwrap)
        (folder / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))

    runner = home.runner()

    assert not runner.is_confined()
    assert why in runner.why_open


# --- where it runs -----------------------------------------------------------------------------


@pytest.mark.parametrize("sandbox", [pytest.param(True, marks=needs_sandbox), False])
async def test_it_runs_in_a_folder_of_the_workspace_and_in_no_other(
    home: Home, *, sandbox: bool
) -> None:
    home.write("a folder/inner/x.txt", "")
    (home.workspace / "link").symlink_to(home.beside)
    runner = home.runner(sandbox=sandbox)

    for cwd in ("a folder/inner", "./a folder/inner/", str(home.workspace / "a folder/inner")):
        said = await ran(runner, "pwd", cwd=cwd)
        assert said.endswith("home/workspace/a folder/inner")
    for cwd in ("..", "../canary", "/etc", "/", "~", "a/../../canary", "link", "missing"):
        with pytest.raises(PathRefused):
            await ran(runner, "pwd", cwd=cwd)
    with pytest.raises(PathRefused):
        await ran(runner, "pwd", cwd="a folder/inner/x.txt")


# --- what it says ------------------------------------------------------------------------------


async def test_long_output_is_cut_and_the_whole_is_kept(home: Home) -> None:
    keep = ResultStore(Workspace(home.workspace))
    options = ExecOptions(sandbox=False, output_chars_max=600)

    said = await ran(home.runner(options=options, keep=keep), "seq", "1", "20000")

    assert 500 < len(said) <= 600
    assert said.startswith("exit code 0\n--- stdout ---\n1\n2\n")
    assert said.endswith("\n20000")
    path = said.partition("all of it in ")[2].partition(" ")[0]
    assert "\n10000\n" in (home.workspace / path).read_text()


async def test_the_time_asked_for_has_the_owners_bound(home: Home) -> None:
    options = ExecOptions(sandbox=False, limits=RunLimits(timeout_s=0.2))

    said = await ran(home.runner(options=options), "sleep", "60", timeout_s=50)

    assert "did not end within 0.2 s" in said


# --- keys --------------------------------------------------------------------------------------

LOOKS_FOR_KEYS = [
    ["env"],
    ["printenv", "OPENAI_API_KEY"],
    ["cat", "/proc/self/environ"],
    ["sh", "-c", "cat /proc/$PPID/environ"],
    ["python3", "-c", "import os;print(os.environ)"],
    ["sh", "-c", "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; :"],
    ["sh", "-c", "set; export -p"],
    ["strings", "-a", "/proc/1/environ"],
]


@pytest.mark.case("SE-15")
@pytest.mark.parametrize("sandbox", [pytest.param(True, marks=needs_sandbox), False])
def test_keys_of_the_bot_are_in_no_program_nor_found_in_its_parent(
    tmp_path: Path, *, sandbox: bool
) -> None:
    """The bot is a process of its own here, which really has the keys in its environment."""
    commands = LOOKS_FOR_KEYS if sandbox else LOOKS_FOR_KEYS[:5]
    child = (
        "import asyncio, os\nfrom pathlib import Path\n"
        "from tests.agent.sandbox.given import AGREED, ran\n"
        "from agent.tools.groups.exec import ExecOptions, Runner\n"
        f"home = Path({str(tmp_path)!r})\n(home / 'workspace').mkdir()\n"
        f"runner = Runner(home / 'workspace', home=home, options=ExecOptions(sandbox={sandbox}))\n"
        "assert os.environ['OPENAI_API_KEY'] == 'sk-test1'\n"
        f"for command in {commands!r}:\n"
        "    try: print(command, asyncio.run(ran(runner, *command)))\n"
        "    except Exception as error: print(command, error)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", child],
        env={**os.environ, **KEYS},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    assert all(str(command) in done.stdout for command in commands)
    assert "sk-test1" not in done.stdout
    assert "t-test2" not in done.stdout


CLOSING = """
import ctypes, os, subprocess
from agent.sandbox.environment import close_to_others
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
look = ["cat", f"/proc/{os.getpid()}/environ"]
before = subprocess.run(look, env={}, capture_output=True).stdout
assert close_to_others()
after = subprocess.run(look, env={}, capture_output=True).stdout
print(b"sk-test1" in before, b"sk-test1" in after)
"""


@pytest.mark.case("SE-15")
@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "PATH", "PYTHONPATH", "HOME", "a b", "", "1A", "X=Y", "BASH_ENV"]
)
def test_a_skill_is_given_no_variable_that_changes_how_programs_are_loaded(name: str) -> None:
    assert given_variables({"CITY_KEY": "k"}) == {"CITY_KEY": "k"}
    with pytest.raises(EnvironmentWrong):
        given_variables({name: "v"})


def test_an_ordinary_users_bot_can_close_its_own_environment_to_programs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CLOSING],
        env={**os.environ, **KEYS},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == "True False\n", done.stderr


async def test_nobody_but_the_owner_runs_anything(home: Home) -> None:
    for who in (MEMBER, GUEST):
        result = await run_tool(exec_tool(home.runner()), call("exec", {"command": ["true"]}), who)

        assert not result.ok
        with pytest.raises(ProgramNotRun, match="only the owner"):
            await ran(home.runner(), "true", who=replace(who, agreed=True))
