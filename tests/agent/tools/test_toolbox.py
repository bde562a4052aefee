"""The list of tools: offered by role and agent, found by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent.tools.groups.files import FileTools
from agent.tools.tool import Tool, tools_of
from agent.tools.toolbox import Reach, ReachOptions, Toolbox
from agent.tools.workspace import Workspace
from memory.records.messages import Role
from tests.agent.tools.given import call


@pytest.fixture
def toolbox(tmp_path: Path) -> Toolbox:
    return Toolbox(tools_of(FileTools(Workspace(tmp_path))))


def names(toolbox: Toolbox, allowed: list[str], denied: list[str], role: Role) -> list[str]:
    options = ReachOptions(allowed=tuple(allowed), denied=tuple(denied))
    return Reach(toolbox, options).names(role)


ALL = ["read_file", "write_file", "edit_file", "append_file", "list_dir", "search_files"]


@pytest.mark.parametrize(
    ("allowed", "denied", "role", "offered"),
    [
        ([], [], Role.OWNER, ALL),
        ([], [], Role.MEMBER, ["read_file", "list_dir", "search_files"]),
        ([], [], Role.GUEST, ["read_file", "list_dir", "search_files"]),
        (["*_file"], [], Role.OWNER, ALL[:4]),
        (["*_file"], ["write_*"], Role.OWNER, ["read_file", "edit_file", "append_file"]),
        (["read_file"], ["*"], Role.OWNER, []),
        (["nothing"], [], Role.OWNER, []),
    ],
)
def test_tools_are_offered_by_role_and_globs_in_stable_order(
    toolbox: Toolbox, allowed: list[str], denied: list[str], role: Role, offered: list[str]
) -> None:
    assert names(toolbox, allowed, denied, role) == offered


class Others:
    """Tools of others, of which nobody has looked at the names."""

    version = 1

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = tools

    def tools(self) -> Sequence[Tool]:
        return self._tools

    def wake(self) -> None:
        pass

    async def settled(self, *, limit_s: float) -> None:
        pass


def test_what_others_bring_under_a_name_that_is_taken_is_left_out(tmp_path: Path) -> None:
    own, theirs = (
        tools_of(FileTools(Workspace(tmp_path)))[:1],
        tools_of(FileTools(Workspace(tmp_path / "theirs")))[:2],
    )
    again = tools_of(FileTools(Workspace(tmp_path / "again")))[1]

    with capture_logs() as logs:
        toolbox = Toolbox(own, Others([*theirs, again]))
        found = toolbox.tools()

    assert list(found) == [own[0], theirs[1]]
    assert toolbox.get("write_file") is theirs[1]
    (warning,) = logs
    assert warning["tools"] == ["read_file", "write_file"]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("Read_File", "Nearest: read_file"),
        ("readfile", "Nearest: read_file"),
        ("list_directory", "Nearest: list_dir"),
        ("launch", "nothing was done."),
    ],
)
def test_an_unknown_tool_is_answered_with_the_nearest(
    toolbox: Toolbox, name: str, advice: str
) -> None:
    offered = ALL

    result = toolbox.unknown(call(name, {}), offered)

    assert not result.ok
    assert advice in result.content


def test_a_toolbox_knows_what_a_kill_permits_and_what_changes_nothing(toolbox: Toolbox) -> None:
    calls = [call(name, {}) for name in ["read_file", "write_file", "edit_file", "none"]]
    redo = {one.name: toolbox.redo(one) for one in calls}

    assert redo == {
        "read_file": "repeat",
        "write_file": "idempotent",
        "edit_file": "once",
        "none": "repeat",
    }
    assert [toolbox.is_pure(one) for one in calls] == [True, False, False, True]


def test_the_file_tools_are_cheap_to_offer(toolbox: Toolbox) -> None:
    tools = [
        {
            "type": "function",
            "function": {
                "name": spec.name,
                "description": spec.description,
                "parameters": dict(spec.parameters),
            },
        }
        for spec in toolbox.named(ALL)
    ]

    assert len(json.dumps(tools)) <= 2_700
