"""Hard links: a second name in the workspace for what lies beside it shows nothing of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.tools.groups.files import FileTools
from agent.tools.tool import tools_of
from agent.tools.workspace import PathRefused, Workspace
from tests.agent.sandbox.given import AGREED, Home, needs_sandbox, ran
from tests.agent.tools.given import OWNER, call, run_tool

SECRET = "canary-config"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def workspace_of(home: Home) -> Workspace:
    return Workspace(home.workspace, home=home.home)


@pytest.mark.threat("T10")
def test_the_settings_are_not_read_by_another_name(home: Home) -> None:
    (home.workspace / "notes.txt").hardlink_to(home.home / "config.toml")
    (home.home / "data").mkdir()
    (home.home / "data" / "hearthbot.db").write_text("rows")
    (home.workspace / "sub").mkdir()
    (home.workspace / "sub" / "b.txt").hardlink_to(home.home / "data" / "hearthbot.db")

    for name in ("notes.txt", "sub/b.txt"):
        with pytest.raises(PathRefused, match="is a second name of a file outside the workspace"):
            workspace_of(home).read(name, OWNER)


def test_writing_to_such_a_name_leaves_the_settings_alone(home: Home) -> None:
    (home.workspace / "notes.txt").hardlink_to(home.home / "config.toml")

    workspace_of(home).write("notes.txt", b"mine", OWNER)

    assert SECRET in (home.home / "config.toml").read_text()
    assert workspace_of(home).read("notes.txt", OWNER) == b"mine"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_file", {"path": "notes.txt"}),
        ("search_files", {"text": "canary"}),
        ("edit_file", {"path": "notes.txt", "old": "token", "new": "x"}),
        ("append_file", {"path": "notes.txt", "content": "x"}),
    ],
)
async def test_no_file_tool_shows_anything_of_it(
    home: Home, tool: str, arguments: dict[str, str]
) -> None:
    (home.workspace / "notes.txt").hardlink_to(home.home / "config.toml")
    before = (home.home / "config.toml").read_bytes()
    (one,) = [made for made in tools_of(FileTools(workspace_of(home))) if made.card.name == tool]

    told = await run_tool(one, call(tool, arguments), AGREED)

    assert SECRET not in told.content
    assert (home.home / "config.toml").read_bytes() == before


@needs_sandbox
@pytest.mark.threat("T8", "T10")
async def test_no_program_sees_or_changes_it(home: Home) -> None:
    (home.workspace / "sub").mkdir()
    (home.workspace / "sub" / "notes.txt").hardlink_to(home.home / "config.toml")
    home.write("plain.txt", "readable")
    (home.workspace / "plain-too.txt").hardlink_to(home.workspace / "plain.txt")
    before = (home.home / "config.toml").read_bytes()

    said = await ran(
        home.runner(), "sh", "-c", "cat plain-too.txt sub/notes.txt; echo gone > sub/notes.txt; :"
    )

    assert "readable" in said
    assert SECRET not in said
    assert (home.home / "config.toml").read_bytes() == before
