"""What files said before: one text for each run and file, few of them, and only what was lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory.database.connection import Database
from memory.records.erasure import FileChange
from memory.records.messages import PersonId, RunId
from memory.stores.traces import KEPT_MAX, SqliteFormerFiles
from tests.memory.kit import rows

ME = PersonId("p1")
PATH = "memory/MEMORY.md"


@pytest.fixture
def files(database: Database) -> SqliteFormerFiles:
    return SqliteFormerFiles(database)


def change(former: str, becomes: str, *, run: str = "r1", path: str = PATH) -> FileChange:
    return FileChange(person_id=ME, run_id=RunId(run), path=path, former=former, becomes=becomes)


async def kept(files: SqliteFormerFiles, run: str = "r1") -> list[str]:
    return [one.former for one in await files.of([RunId(run)])]


async def test_what_only_adds_is_not_kept_unless_something_went_before(
    files: SqliteFormerFiles,
) -> None:
    await files.keep(change("a\nb\n", "a\nb\nc\n"))
    nothing = await kept(files)
    await files.keep(change("a\nb\nc\n", "a\n"))
    before = await files.keep(change("a\n", "a\nd\n"))

    assert nothing == []
    assert before == "a\nb\nc\n"
    assert await kept(files) == ["a\nb\nc\n"]


async def test_a_call_that_is_made_again_after_a_kill_keeps_the_same(
    files: SqliteFormerFiles,
) -> None:
    for _ in range(2):
        assert await files.keep(change("a\nb\n", "")) == "a\nb\n"

    assert await kept(files) == ["a\nb\n"]


async def test_there_are_few_and_the_oldest_go_first(files: SqliteFormerFiles, path: Path) -> None:
    for n in range(KEPT_MAX + 3):
        await files.keep(change(f"{n}\n", "", run=f"r{n}"))

    assert rows(path, "select count(*) from former_files") == [(KEPT_MAX,)]
    assert await kept(files, "r2") == []
    assert await kept(files, "r3") == ["3\n"]
