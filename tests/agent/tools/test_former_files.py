"""Which writes are kept, and that none is done which could not be."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.tools.arguments import parse_arguments
from agent.tools.groups.files import FileTools
from agent.tools.tool import Caller, FileResult
from agent.tools.workspace import PathRefused, Workspace
from memory.records.erasure import FileChange
from memory.records.errors import StorageError
from tests.agent.tools.given import GROUP, OWNER, by_name

AGREED = replace(OWNER, agreed=True, unattended=True)
"""As in a job that was agreed to once: no card says each time what goes."""
OLD = "one\ntwo\nthree\n"


class Shelf:
    """Keeps in a list, as it is told to."""

    def __init__(self, root: Path) -> None:
        self.kept: list[FileChange] = []
        self.meanwhile = ""
        self.breaks = False
        self._root = root

    async def keep(self, change: FileChange) -> str:
        if self.breaks:
            raise StorageError("the disk is full")
        self.kept.append(change)
        if self.meanwhile:
            (self._root / change.path).write_text(self.meanwhile)
            self.meanwhile = ""
        return change.former


class World:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.shelf = Shelf(root)
        self.tools = by_name(FileTools(Workspace(root), self.shelf.keep))

    async def call(self, name: str, caller: Caller = AGREED, **arguments: Any) -> str:
        tool = self.tools[name]
        parsed = parse_arguments(tool.card.arguments, json.dumps(arguments))
        return await tool.run(parsed, caller)

    def lay(self, path: str, text: str | bytes = OLD) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize(
    "path",
    [
        "memory/MEMORY.md",
        "./memory//202607/20260731.md",
        "MEMORY/other.md",
        "USER.md",
        "soul.md",
        "HEARTBEAT.md",
        "prompts/system.md",
    ],
)
@pytest.mark.parametrize("tool", ["write_file", "edit_file"])
async def test_notes_and_steering_files_are_kept_under_whatever_spelling(
    world: World, path: str, tool: str
) -> None:
    file = world.lay(path)
    given: dict[str, Any] = {"content": ""} if tool == "write_file" else {"old": OLD, "new": ""}

    said = await world.call(tool, path=path, **given)

    [change] = world.shelf.kept
    assert (change.former, change.becomes) == (OLD, "")
    assert (world.root / change.path).samefile(file)
    assert isinstance(said, FileResult)
    assert "lost 3 of its 3 lines" in said.of.lost
    assert "three" not in said


async def test_other_files_are_not_kept(world: World) -> None:
    world.lay("notes.txt")

    said = await world.call("write_file", path="notes.txt", content="")

    assert world.shelf.kept == []
    assert isinstance(said, FileResult)
    assert said.of.path == said.of.lost == ""


async def test_where_others_read_along_the_words_are_not_told(world: World) -> None:
    world.lay("SOUL.md")

    said = await world.call(
        "write_file", replace(GROUP, agreed=True, unattended=True), path="SOUL.md", content=""
    )

    assert isinstance(said, FileResult)
    assert said.of.lost == "`SOUL.md` lost 3 of its 3 lines. `/undo` puts it back."


async def test_what_nobody_agreed_to_is_neither_written_nor_kept(world: World) -> None:
    file = world.lay("SOUL.md")

    with pytest.raises(PathRefused, match="agreed"):
        await world.call("write_file", OWNER, path="SOUL.md", content="")

    assert (file.read_text(), world.shelf.kept) == (OLD, [])


async def test_what_cannot_be_kept_is_not_written(world: World) -> None:
    file = world.lay("memory/MEMORY.md")
    world.shelf.breaks = True

    with pytest.raises(StorageError):
        await world.call("write_file", path="memory/MEMORY.md", content="")

    assert file.read_text() == OLD


async def test_a_file_in_another_encoding_is_left_alone(world: World) -> None:
    file = world.lay("memory/MEMORY.md", OLD.encode("utf-16"))

    with pytest.raises(PathRefused, match="UTF-8"):
        await world.call("write_file", path="memory/MEMORY.md", content="")

    assert file.read_bytes() == OLD.encode("utf-16")


async def test_what_another_program_writes_in_between_is_what_is_kept(world: World) -> None:
    file = world.lay("memory/MEMORY.md")
    world.shelf.meanwhile = "by hand\n"

    await world.call("write_file", path="memory/MEMORY.md", content="new\n")

    assert [change.former for change in world.shelf.kept] == [OLD, "by hand\n"]
    assert file.read_text() == "new\n"
