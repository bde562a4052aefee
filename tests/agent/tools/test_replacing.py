"""A file replaced as a whole, by one at a time."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.tools import edits
from agent.tools.edits import ChangedMeanwhile, is_same


def replace(name: str, folder: int, content: bytes) -> None:
    edits.replace(name, folder, content, is_due=lambda _: True)


def replace_unchanged(
    name: str, folder: int, content: bytes, *, former: os.stat_result | None
) -> None:
    edits.replace(name, folder, content, is_due=lambda now: is_same(now, former))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    handle = os.open(tmp_path, os.O_RDONLY)
    yield handle
    os.close(handle)


def test_a_file_that_another_one_replaced_is_left_alone(folder: int, tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("old")
    former = file.stat()
    replace("a", folder, b"new")  # of the same size, and maybe in the same instant

    with pytest.raises(ChangedMeanwhile):
        replace_unchanged("a", folder, b"mine", former=former)

    assert file.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_file_that_somebody_made_or_took_away_meanwhile_is_noticed(
    folder: int, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("theirs")
    former = (tmp_path / "a").stat()

    with pytest.raises(ChangedMeanwhile):
        replace_unchanged("a", folder, b"mine", former=None)
    (tmp_path / "a").unlink()
    with pytest.raises(ChangedMeanwhile):
        replace_unchanged("a", folder, b"mine", former=former)

    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_still_the_same_is_replaced(folder: int, tmp_path: Path) -> None:
    replace_unchanged("a", folder, b"one", former=None)
    replace_unchanged("a", folder, b"two", former=(tmp_path / "a").stat())

    assert (tmp_path / "a").read_text() == "two"


@pytest.mark.parametrize("mode", [0o755, 0o640, 0o600, 0o4755])
def test_who_may_read_and_run_a_file_stays_as_it_was(
    folder: int, tmp_path: Path, mode: int
) -> None:
    file = tmp_path / "run.sh"
    file.write_text("old")
    file.chmod(mode)

    replace("run.sh", folder, b"one")
    first = stat.S_IMODE(file.stat().st_mode)
    replace_unchanged("run.sh", folder, b"two", former=file.stat())

    assert first == stat.S_IMODE(file.stat().st_mode) == mode & 0o777


def test_a_new_file_and_one_in_the_place_of_a_link_are_for_the_process_alone(
    folder: int, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("elsewhere")

    for name in ("new", "link"):
        replace(name, folder, b"x")

        assert stat.S_IMODE((tmp_path / name).lstat().st_mode) == 0o600
