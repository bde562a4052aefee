"""Cheap looks before a heartbeat: they say so when something has changed, once, and are patient."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from memory.records.errors import Overloaded
from scheduler.kinds.checks import (
    CheckFailed,
    CommandSays,
    FileChanged,
    FileMarks,
    Means,
    PageChanged,
    Patient,
    Unread,
    checks_of,
    is_nothing,
    read_check,
)


class Outside:
    """A world that answers what it is told to; an exception is raised."""

    def __init__(self, *answers: str | int | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def text(self, what: str) -> str:
        return str(self._next(what))

    async def code(self, what: str) -> int:
        return int(self._next(what))

    def _next(self, what: str) -> str | int:
        self.asked.append(what)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def marks(tmp_path: Path) -> FileMarks:
    return FileMarks(tmp_path / "checks.json")


def means(tmp_path: Path, outside: Outside) -> Means:
    return Means(folder=tmp_path, fetch=outside.text, call=outside.text, run=outside.code)


# --- files ----------------------------------------------------------------------------------------


async def test_a_file_is_news_when_it_comes_and_when_its_content_changes(
    tmp_path: Path, marks: FileMarks
) -> None:
    path = tmp_path / "todo.md"
    check = FileChanged("file:todo.md", path, marks)
    said = [await check()]
    for text in ("milk", "milk", "milk, bread"):
        path.write_text(text)
        said.append(await check())
    path.unlink()
    said.append(await check())
    path.write_text("milk, bread")
    said.append(await check())

    assert said == [False, True, False, True, False, True]


async def test_to_touch_a_file_is_no_change(tmp_path: Path, marks: FileMarks) -> None:
    path = tmp_path / "todo.md"
    path.write_text("milk")
    check = FileChanged("file:todo.md", path, marks)
    await check()

    os.utime(path, (1, 1))

    assert not await check()


async def test_a_folder_changes_with_the_files_in_it(tmp_path: Path, marks: FileMarks) -> None:
    folder = tmp_path / "inbox"
    folder.mkdir()
    check = FileChanged("file:inbox", folder, marks)
    await check()

    (folder / "letter.txt").write_text("Dear")

    assert [await check(), await check()] == [True, False]


async def test_a_path_that_cannot_be_walked_is_trouble(tmp_path: Path, marks: FileMarks) -> None:
    (tmp_path / "todo.md").write_text("milk")

    with pytest.raises(CheckFailed, match="cannot be read"):
        await FileChanged("file:x", tmp_path / "todo.md" / "x", marks)()


# --- pages, tools, commands ---------------------------------------------------------------------


async def test_a_page_is_news_when_its_words_change(marks: FileMarks) -> None:
    outside = Outside("Open from 9", "Open  from\n9", "Open from 10", "")
    check = PageChanged("url:u", "https://shop.example/hours", outside.text, marks)

    assert [await check() for _ in range(4)] == [True, False, True, False]
    assert outside.asked == ["https://shop.example/hours"] * 4


async def test_what_is_unread_is_news_once(marks: FileMarks) -> None:
    answers = ["0", "2 unread: Jo, Ann", "2 unread: Jo, Ann", "3 unread: Jo, Ann, Li", "0", "0"]
    check = Unread("tool:t", "mail__unread", Outside(*answers).text, marks)

    assert [await check() for _ in answers] == [False, True, False, True, False, False]


@pytest.mark.parametrize(
    "answer",
    ["", "0", "[]", "{}", "None.", '{"unread": 0}', '{"messages": [], "total": 0}', "null"],
)
def test_a_tool_says_in_many_ways_that_nothing_waits(answer: str) -> None:
    assert is_nothing(answer)


@pytest.mark.parametrize(
    "answer", ["1", "[1]", '{"unread": 2}', '{"messages": ["a"], "total": 0}', '{"ok": true}', "Jo"]
)
def test_anything_else_is_something(answer: str) -> None:
    assert not is_nothing(answer)


@pytest.mark.parametrize(("code", "said"), [(0, True), (1, False)])
async def test_a_command_says_it_by_its_exit_code(code: int, said: bool) -> None:
    outside = Outside(code)

    assert await CommandSays("command:c", "test -s mail", outside.code)() is said
    assert outside.asked == ["test -s mail"]


async def test_any_other_exit_code_is_trouble() -> None:
    with pytest.raises(CheckFailed, match="ended with 127"):
        await CommandSays("command:c", "no-such", Outside(127).code)()


# --- trouble --------------------------------------------------------------------------------------


async def test_trouble_is_no_change_and_the_next_look_tries_again(marks: FileMarks) -> None:
    outside = Outside(Overloaded("it does not answer"), "Open from 9")
    check = Patient(PageChanged("url:u", "https://shop.example", outside.text, marks))

    assert [await check(), await check()] == [False, True]


@pytest.mark.parametrize("spoilt", ["", "{", "[1]", '{"a": 1}', "\x00"])
async def test_marks_that_cannot_be_read_count_as_none(
    tmp_path: Path, marks: FileMarks, spoilt: str
) -> None:
    (tmp_path / "checks.json").write_text(spoilt)

    assert marks.get("file:todo.md") == ""
    marks.put("file:todo.md", "x")
    assert FileMarks(tmp_path / "checks.json").get("file:todo.md") == "x"


async def test_marks_outlive_a_restart_and_are_private(tmp_path: Path, marks: FileMarks) -> None:
    path = tmp_path / "checks.json"
    make: Callable[[FileMarks], PageChanged] = lambda kept: PageChanged(  # noqa: E731
        "url:u", "https://shop.example", Outside("same").text, kept
    )

    said = [await make(marks)(), await make(FileMarks(path))()]

    assert said == [True, False]
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(json.loads(path.read_text())) == ["url:u"]


async def test_marks_that_cannot_be_kept_are_trouble(tmp_path: Path) -> None:
    marks = FileMarks(tmp_path / "missing" / "checks.json")

    with pytest.raises(CheckFailed, match="cannot be written"):
        marks.put("a", "b")


# --- as the settings name them ------------------------------------------------------------------


async def test_checks_are_made_of_what_the_settings_name(tmp_path: Path, marks: FileMarks) -> None:
    (tmp_path / "todo.md").write_text("milk")
    outside = Outside("words", "1", 1)
    texts = ["file:todo.md", "url:https://shop.example", "tool:mail__unread", "command:test -s m"]

    checks = checks_of([read_check(text) for text in texts], means(tmp_path, outside), marks)

    assert [check.name for check in checks] == texts
    assert [await check() for check in checks] == [True, True, True, False]
    assert outside.asked == ["https://shop.example", "mail__unread", "test -s m"]


@pytest.mark.parametrize(
    "text", ["", "file:", "url:ftp://x", "page:x", "todo.md", "tool:" + "x" * 3000]
)
def test_what_is_no_check_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(CheckFailed, match=r"file:PATH|begins with https"):
        read_check(text)
