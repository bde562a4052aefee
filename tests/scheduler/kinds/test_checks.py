"""Cheap looks before a heartbeat: they say so when something has changed, once, and are patient."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from memory.records.errors import Overloaded
from scheduler.kinds.checks import (
    Check,
    CheckFailed,
    CheckMeans,
    FileMarks,
    is_nothing,
)


class Outside(CheckMeans):
    """A world that answers what it is told to; an exception is raised."""

    def __init__(self, *answers: str | int | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def fetch(self, url: str) -> str:
        return str(self._next(url))

    async def call(self, name: str) -> str:
        return str(self._next(name))

    async def run(self, command: str) -> int:
        return int(self._next(command))

    def _next(self, what: str) -> str | int:
        self.asked.append(what)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def marks(tmp_path: Path) -> FileMarks:
    return FileMarks(tmp_path / "checks.json")


@pytest.fixture
def check(tmp_path: Path, marks: FileMarks) -> Callable[..., Check]:
    def made(text: str, outside: Outside | None = None, kept: FileMarks = marks) -> Check:
        world = outside or Outside()
        world.folder = tmp_path
        return Check(text, world, kept)

    return made


# --- files ----------------------------------------------------------------------------------------


async def test_a_file_is_news_when_it_comes_and_when_its_content_changes(
    tmp_path: Path, check: Callable[..., Check]
) -> None:
    path, looks = tmp_path / "todo.md", check("file:todo.md")
    said = [await looks()]
    for text in ("milk", "milk", "milk, bread"):
        path.write_text(text)
        os.utime(path, (1, 1))  # to touch it is no change
        said.append(await looks())
    path.unlink()
    said.append(await looks())
    path.write_text("milk, bread")
    said.append(await looks())

    assert said == [False, True, False, True, False, True]


async def test_a_folder_changes_with_the_files_in_it(
    tmp_path: Path, check: Callable[..., Check]
) -> None:
    (tmp_path / "inbox").mkdir()
    looks = check("file:inbox")
    await looks()

    (tmp_path / "inbox" / "letter.txt").write_text("Dear")

    assert [await looks(), await looks()] == [True, False]


# --- pages, tools, commands ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "answers", "said"),
    [
        (
            "url:https://shop.example/hours",
            ["Open from 9", "Open  from\n9", "Open from 10", ""],
            [True, False, True, False],
        ),
        (
            "tool:mail__unread",
            ["0", "2: Jo, Ann", "2: Jo, Ann", "3: Jo, Ann, Li", "0", "0"],
            [False, True, False, True, False, False],
        ),
        ("command:test -s mail", [0, 0, 1], [True, True, False]),
        # Trouble is no change, and the next look tries again.
        ("command:no-such", [127, 0], [False, True]),
        ("url:https://shop.example", [Overloaded("no answer"), "Open"], [False, True]),
    ],
)
async def test_what_is_new_is_said_once(
    check: Callable[..., Check], text: str, answers: list[str], said: list[bool]
) -> None:
    outside = Outside(*answers)
    looks = check(f" {text} ", outside)

    assert [await looks() for _ in answers] == said
    assert looks.name == text
    assert outside.asked == [text.partition(":")[2]] * len(answers)


@pytest.mark.parametrize(
    "answer",
    ["", "0", "None.", '{"unread": 0}', '{"messages": [], "total": 0}'],
)
def test_a_tool_says_in_many_ways_that_nothing_waits(answer: str) -> None:
    assert is_nothing(answer)


@pytest.mark.parametrize(
    "answer", ["1", "[1]", '{"unread": 2}', '{"messages": ["a"], "total": 0}', '{"ok": true}', "Jo"]
)
def test_anything_else_is_something(answer: str) -> None:
    assert not is_nothing(answer)


@pytest.mark.parametrize("spoilt", ["{", "[1]", '{"a": 1}'])
async def test_marks_that_cannot_be_read_count_as_none(
    tmp_path: Path, marks: FileMarks, spoilt: str
) -> None:
    (tmp_path / "checks.json").write_text(spoilt)

    assert marks.get("file:todo.md") == ""
    marks.put("file:todo.md", "x")
    assert FileMarks(tmp_path / "checks.json").get("file:todo.md") == "x"


async def test_marks_outlive_a_restart_and_are_private(
    tmp_path: Path, check: Callable[..., Check]
) -> None:
    path, page = tmp_path / "checks.json", "url:https://shop.example"

    said = [await check(page, Outside("same"), FileMarks(path))() for _ in range(2)]

    assert said == [True, False]
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(json.loads(path.read_text())) == [page]


def test_marks_that_cannot_be_kept_are_trouble(tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match="cannot be written"):
        FileMarks(tmp_path / "missing" / "checks.json").put("a", "b")


@pytest.mark.parametrize(
    "text", ["", "file:", "url:ftp://x", "page:x", "todo.md", "tool:" + "x" * 3000]
)
def test_what_is_no_check_is_refused_with_what_is_allowed(
    check: Callable[..., Check], text: str
) -> None:
    with pytest.raises(CheckFailed, match=r"file:PATH|begins with https"):
        check(text)
