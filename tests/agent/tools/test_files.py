"""The file tools, as a model sees them."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from agent.policy.presentation import needs_of
from agent.tools.groups.files import FileTools, ResultStore, replaced_once
from agent.tools.tool import Caller, Needs, tools_of
from agent.tools.toolbox import Toolbox, arguments_of
from agent.tools.workspace import Workspace
from memory.records.transcript import ToolResult
from tests.agent.tools.given import MEMBER, OWNER, call, caller, run_tool


class Desk:
    """A workspace with its tools, called the way the loop calls them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = Workspace(root)
        self._toolbox = Toolbox(tools_of(FileTools(self.workspace)))
        self._keep = ResultStore(self.workspace)

    async def use(self, name: str, who: Caller = OWNER, **arguments: object) -> ToolResult:
        tool = self._toolbox.get(name)
        assert tool is not None
        return await run_tool(tool, call(name, arguments), who, keep=self._keep)

    async def read(self, path: str, **lines: int | str) -> str:
        return (await self.use("read_file", OWNER, path=path, **lines)).content


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


# --- read_file ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "read"),
    [
        ({}, "one\ntwo\nthree"),
        ({"last_line": 99}, "one\ntwo\nthree"),
        ({"first_line": "2"}, "two\nthree\n[lines 2 to 3 of 3]"),
        ({"first_line": 2, "last_line": 2}, "two\n[lines 2 to 2 of 3; go on with first_line=3]"),
        ({"first_line": 4}, "read_file: there are no such lines: the file has 3"),
        ({"path": "empty.txt"}, "(the file is empty)"),
        ({"path": "none.txt"}, "read_file: 'none.txt' does not exist in the workspace"),
        ({"path": "sub"}, "read_file: 'sub' is a folder, not a file"),
    ],
)
async def test_a_file_is_read_whole_or_by_its_lines_or_it_is_said_why_not(
    desk: Desk, lines: dict[str, Any], read: str
) -> None:
    (desk.root / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n")
    (desk.root / "empty.txt").touch()
    (desk.root / "sub").mkdir()

    result = await desk.use("read_file", **{"path": "a.txt", **lines})

    assert (result.content, result.ok) == (read, not read.startswith("read_file:"))


async def test_a_file_is_written_again_and_edited_at_its_only_place(desk: Desk) -> None:
    said = [
        (await desk.use("write_file", path="notes/a.md", content=text)).content
        for text in ("é\n", "half \ud83d\ntwo\n")
    ]
    edited = await desk.use("edit_file", path="notes/a.md", old="two", new="2")

    assert said == ["Created notes/a.md (3 bytes).", "Replaced notes/a.md (13 bytes)."]
    assert edited.content == "Edited notes/a.md at line 2."
    assert (desk.root / "notes" / "a.md").read_text() == "half \ufffd\n2\n"


@pytest.mark.case("TO-01")
@pytest.mark.parametrize(
    "text", ["x" * 200_000, "a line of text\n" * 40_000, "é" * 9_000 + "\n\nz"]
)
async def test_a_long_file_is_read_in_parts_that_make_the_whole(desk: Desk, text: str) -> None:
    (desk.root / "long.txt").write_text(text)
    parts: list[str] = []
    first: int | None = 1

    while first is not None:
        content = await desk.read("long.txt", first_line=first)
        assert len(content) <= 16_000
        lines = content.split("\n")
        notes = list(itertools.takewhile(lambda line: line.startswith("["), reversed(lines)))
        parts.extend(lines[: len(lines) - len(notes)])
        more = [note for note in notes if "first_line=" in note]
        first = int(more[0].split("first_line=")[1].rstrip("]")) if more else None

    assert "".join(parts) == text.replace("\n", "")


@pytest.mark.case("TO-05")
@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"it\x92s fine", "it’s fine\n[not UTF-8: read as windows-1252 (a guess)]"),
        (b"\xff\xfe\x00\x80", "\u8000\n[not UTF-8: read as UTF-16]"),
        ("hé".encode("utf-16"), "hé\n[not UTF-8: read as UTF-16]"),
        (b"\x1b[31mred\x1b[0m", "red"),
    ],
)
async def test_other_encodings_are_readable_and_named(
    desk: Desk, content: bytes, shown: str
) -> None:
    (desk.root / "a.txt").write_bytes(content)

    assert await desk.read("a.txt") == shown


# --- write_file --------------------------------------------------------------------------------


# --- edit_file ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "old", "why"),
    [
        ("one\n", "two", "does not occur"),
        ("two two", "two", "more than once"),
        ("aaa", "aa", "more than once"),
        ("one", "", "'old': string should have at least 1 character"),
        ("caf\udce9", "caf", "not UTF-8 text"),
    ],
)
async def test_an_edit_that_is_not_clear_changes_nothing(
    desk: Desk, text: str, old: str, why: str
) -> None:
    content = text.encode("utf-8", "surrogateescape")
    (desk.root / "a.md").write_bytes(content)

    result = await desk.use("edit_file", path="a.md", old=old, new="x")

    assert not result.ok
    assert why in result.content
    assert (desk.root / "a.md").read_bytes() == content


@pytest.mark.parametrize(
    ("text", "old", "new", "edited"),
    [
        ("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n"),
        ("a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n"),
        ("a\r\nb\nc\nd\n", "a\nb", "x", "x\nc\nd\n"),
        ("\ufeffa\r\n", "a", "b", "\ufeffb\r\n"),
        ("a.b", ".", r"\1", r"a\1b"),
    ],
)
def test_line_ends_stay_those_of_the_file(text: str, old: str, new: str, edited: str) -> None:
    assert replaced_once(text, old, new)[0] == edited


# --- search_files ------------------------------------------------------------------------------


async def test_a_folder_that_cannot_be_searched_is_passed_over_and_counted(desk: Desk) -> None:
    deep = "/".join(["d"] * 40)
    for folder in ("a\\b", "c\nd", "%2e%2e", "plain", deep):
        (desk.root / folder).mkdir(parents=True)
        (desk.root / folder / "a.txt").write_text("needle")

    result = await desk.use("search_files", text="needle")
    missed = await desk.use("search_files", text="nothing of it")
    listed = await desk.use("list_dir")

    assert result.content == (
        "plain/a.txt:1: needle\n[folders passed over: 4; they are too deep, oddly named or closed]"
    )
    assert missed.content.startswith("Not found in 1 files.\n[folders passed over: 4")
    assert "plain/" in listed.content


# --- many at once ------------------------------------------------------------------------------


async def test_turns_that_write_to_one_file_at_once_lose_nothing(desk: Desk) -> None:
    (desk.root / "list.md").write_text("".join(f"old {n}.\n" for n in range(8)))

    results = await asyncio.gather(
        *(desk.use("append_file", path="list.md", content=f"more {n}.") for n in range(8)),
        *(
            desk.use("edit_file", path="./list.md", old=f"old {n}.", new=f"new {n}.")
            for n in range(8)
        ),
    )

    assert all(result.ok for result in results)
    expected = [f"{word} {n}." for word in ("more", "new") for n in range(8)]
    assert sorted((desk.root / "list.md").read_text().split("\n")) == sorted(expected)


# --- list_dir ----------------------------------------------------------------------------------


async def test_a_folder_is_listed_by_name(desk: Desk) -> None:
    (desk.root / "sub").mkdir()
    (desk.root / "b.txt").write_text("x" * 1_234)
    (desk.root / "link").symlink_to("/etc")
    (desk.root / "new\nline").write_text("")

    result = await desk.use("list_dir")

    assert result.content.split("\n") == [
        "b.txt (1,234 bytes)",
        "link (a link: not followed)",
        "new?line (0 bytes)",
        "sub/",
    ]
    assert (await desk.use("list_dir", path="sub")).content == "(the folder is empty)"


# --- long results ------------------------------------------------------------------------------


@pytest.mark.case("TO-01")
async def test_a_kept_result_is_read_with_read_file_in_its_chat_alone(desk: Desk) -> None:
    keep = ResultStore(desk.workspace)

    kept = await keep("long " * 10_000, OWNER)

    assert kept.whole
    assert kept.path.startswith("files/results/telegram+42/run-1-")
    assert (await desk.read(kept.path)).startswith("long long")
    assert not (await desk.use("read_file", MEMBER, path=kept.path)).ok
    group = caller(chat="-100", is_group=True)
    assert not (await desk.use("read_file", group, path=kept.path)).ok


@pytest.mark.case("AG-03")
async def test_the_same_result_is_kept_under_the_same_name(desk: Desk) -> None:
    keep = ResultStore(desk.workspace)

    assert await keep("one", OWNER) == await keep("one", OWNER)
    assert await keep("one", OWNER) != await keep("two", OWNER)


# --- what is asked about -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("write_file", ("content",)),
        ("append_file", ("content",)),
        ("edit_file", ("old", "new")),
    ],
)
@pytest.mark.threat("T24")
def test_what_steers_is_written_only_as_far_as_the_owner_can_read_it(
    desk: Desk, name: str, texts: tuple[str, ...]
) -> None:
    words = "be kind, " * 500

    (tool,) = (tool for tool in tools_of(FileTools(desk.workspace)) if tool.card.name == name)

    def needs(path: str, text: str) -> Needs:
        given = call(name, {"path": path, **dict.fromkeys(texts, text)})
        return needs_of(tool, arguments_of(tool.card, given), OWNER)

    short, long = words[: 2_000 // len(texts)], words
    assert needs("AGENTS.md", short) == Needs(asks="'AGENTS.md' steers the assistant")
    assert "Write it in parts" in needs("AGENTS.md", long).refused
    assert "may change what programs do" in needs(".bashrc", long).refused
    assert needs("notes.txt", long) == Needs()


async def test_a_binary_file_is_refused_with_size_and_type(desk: Desk) -> None:
    (desk.root / "a.png").write_bytes(b"\x89PNG\r\n\0\0" + b"\0" * 92)

    result = await desk.use("read_file", path="a.png")

    assert not result.ok
    assert result.content == "read_file: this is no text file: 100 bytes, image/png"


async def test_a_large_folder_is_cut_and_says_so(desk: Desk) -> None:
    for number in range(505):
        (desk.root / f"{number:03}.txt").touch()

    lines = (await desk.use("list_dir", path=".")).content.split("\n")

    assert lines[499:] == ["499.txt (0 bytes)", "[the first 500 of 505 entries]"]
