"""The folders in which MCP servers run, and what of their settings means another one."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent.mcp.process import misplaced_paths, server_env, server_folder
from agent.mcp.servers import ServerFolders
from agent.mcp.values import ServerDown, ServerOptions
from tests.agent.mcp.kit import called, odd, running, state, workspace

NOTES = ServerOptions(name="notes", command="notes-server")


@pytest.fixture
def home(tmp_path: Path) -> ServerFolders:
    return ServerFolders(workspace=workspace(tmp_path), env={})


def at(home: ServerFolders) -> Path:
    return server_folder(home.servers, "notes", workspace=home.workspace)


def problems(home: ServerFolders, options: ServerOptions) -> list[str]:
    return [problem for problem, _ in misplaced_paths(options, home.workspace)]


# --- the folder ----------------------------------------------------------------------------------


@pytest.mark.threat("T23")
def test_a_server_has_a_private_folder_outside_of_the_workspace(home: ServerFolders) -> None:
    folder = at(home)

    assert folder == home.workspace.parent / "data" / "mcp" / "notes"
    assert not folder.is_relative_to(home.workspace)
    assert [one.stat().st_mode & 0o777 for one in (folder, folder.parent)] == [0o700, 0o700]
    assert at(home) == folder


@pytest.mark.parametrize("linked", ["mcp", "mcp/notes"])
@pytest.mark.threat("T23")
def test_a_link_in_its_place_is_refused_wherever_it_leads(home: ServerFolders, linked: str) -> None:
    link = home.workspace.parent / "data" / linked
    link.parent.mkdir(parents=True)
    link.symlink_to(home.workspace)

    with pytest.raises(ServerDown, match="is a link: put a folder in its place"):
        at(home)

    assert list(home.workspace.iterdir()) == []


def test_data_may_lie_elsewhere_but_not_in_the_workspace(home: ServerFolders) -> None:
    data = home.workspace.parent / "data"
    elsewhere = home.workspace.parent / "disk"
    elsewhere.mkdir()
    data.symlink_to(elsewhere)

    assert at(home).resolve() == elsewhere / "mcp" / "notes"

    data.unlink()
    data.symlink_to(home.workspace)
    with pytest.raises(ServerDown, match="is in the workspace"):
        at(home)


# --- modules that lie about ----------------------------------------------------------------------


@pytest.mark.threat("T23")
async def test_a_module_of_the_workspace_does_not_stand_in_for_a_server(tmp_path: Path) -> None:
    site, stolen = tmp_path / "site", tmp_path / "stolen"
    site.mkdir()
    (site / "notes_server.py").write_text(
        "import runpy, sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "runpy.run_module('odd_server', run_name='__main__')\n"
    )
    (workspace(tmp_path) / "notes_server.py").write_text(f"open({str(stolen)!r}, 'w')")
    (workspace(tmp_path) / "json.py").write_text(f"open({str(stolen)!r}, 'w')")
    options = replace(
        odd("notes", PYTHONPATH=str(site)), command=sys.executable, args=("-m", "notes_server")
    )

    async with running(tmp_path, options) as mcp:
        assert (await called(mcp, "notes__echo")).ok

    assert not stolen.exists()


@pytest.mark.threat("T23")
async def test_a_relative_command_is_refused_with_the_way_out(tmp_path: Path) -> None:
    here = os.path.relpath(sys.executable)

    async with running(tmp_path, replace(odd(), command=here)) as mcp:
        trouble = state(mcp).health.trouble

    assert trouble.endswith("is a relative path: write the whole one in mcp.odd.command")


def test_python_is_told_to_take_no_modules_from_where_it_starts() -> None:
    env = {"PATH": "/bin", "SECRET": "x"}
    module = replace(NOTES, args=("-m", "notes"))
    script = replace(NOTES, args=("/srv/notes.py",))
    decided = replace(NOTES, env={"PYTHONSAFEPATH": ""})

    assert server_env(module, env) == {"PATH": "/bin", "PYTHONSAFEPATH": "1"}
    assert server_env(script, env) == {"PATH": "/bin"}  # what lies beside it is its own
    assert server_env(decided, env) == {"PATH": "/bin", "PYTHONSAFEPATH": ""}


# --- settings that meant the workspace -----------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"args": (".",)}, "the argument . is also a path"),
        ({"args": ("--folder=shelf",)}, "the argument --folder=shelf is also a path"),
        ({"command": "./run.sh"}, "the command ./run.sh is also a path"),
        ({"env": {"DB": "shelf"}}, "a value of DB is also a path"),
    ],
)
def test_a_path_that_stands_in_the_workspace_is_named_with_the_whole_one(
    home: ServerFolders, changes: dict[str, object], said: str
) -> None:
    (home.workspace / "shelf").mkdir()
    (home.workspace / "run.sh").touch()

    ((problem, fix),) = misplaced_paths(replace(NOTES, **changes), home.workspace)  # type: ignore[arg-type]

    assert problem.startswith(said)
    assert str(home.workspace.parent) in fix
    assert f"in mcp.notes.{next(iter(changes))}." in fix


@pytest.mark.threat("T23")
def test_a_program_that_tools_could_change_is_named(home: ServerFolders) -> None:
    inside = str(home.workspace / "server.py")
    for options in (
        replace(NOTES, command=inside),
        replace(NOTES, command="python3", args=(inside,)),
        replace(NOTES, env={"PYTHONPATH": f"/srv:{home.workspace}"}),
    ):
        (problem,) = problems(home, options)
        assert problem.endswith("has it run what is in the workspace, which tools write unasked")


@pytest.mark.parametrize(
    "changes",
    [
        {"args": ("-y", "@scope/server-memory", "https://a.b/c", "x" * 9000, "a\0b", "")},
        {"command": "/usr/bin/notes", "args": ("/srv/notes", "--folder=/srv")},
        {"command": "shelf"},  # one word is looked for in PATH
        {"command": "", "url": "http://127.0.0.1:1/", "args": (".",)},
    ],
)
def test_other_settings_are_left_alone(home: ServerFolders, changes: dict[str, object]) -> None:
    (home.workspace / "shelf").mkdir()

    assert problems(home, replace(NOTES, **changes)) == []  # type: ignore[arg-type]
