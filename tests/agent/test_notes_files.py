"""The notes of a person: theirs alone, added to once, and never through a link."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.tools.groups.notes import (
    Added,
    Notes,
    NotesRefused,
    news_of,
)
from agent.tools.tool import Caller
from agent.tools.workspace import PathRefused, Workspace
from memory.records.messages import PersonId
from tests.agent.tools.given import GROUP, GUEST, MEMBER, OWNER

TODAY = date(2026, 8, 3)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    return root


@pytest.fixture
def notes(root: Path) -> Notes:
    return Notes(Workspace(root))


def add(notes: Notes, who: Caller, text: str, day: date | None) -> Added:
    return asyncio.run(notes.add(who, text, day))


# --- where they lie ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("who", "day", "path"),
    [
        (OWNER, None, "memory/MEMORY.md"),
        (OWNER, TODAY, "memory/202608/20260803.md"),
        (MEMBER, None, "memory/people/p2/MEMORY.md"),
        (GUEST, TODAY, "memory/people/p3/202608/20260803.md"),
    ],
)
def test_each_person_has_a_place_of_their_own(
    notes: Notes, root: Path, who: Caller, day: date | None, path: str
) -> None:
    add(notes, who, "a word", day)

    assert (root / path).read_text() == "a word\n"
    assert notes.read(who, day) == "a word"
    assert [found.name for found in root.rglob("*.md")] == [Path(path).name]


@pytest.mark.case("SE-17")
def test_nobody_reads_or_writes_the_notes_of_another_or_any_in_a_group(
    notes: Notes, root: Path
) -> None:
    add(notes, OWNER, "the owner's", None)
    add(notes, MEMBER, "the member's", None)
    member_in_group = replace(MEMBER, address=GROUP.address, is_group=True)

    assert notes.read(GUEST, None) == ""
    for who in (GROUP, member_in_group):
        with pytest.raises(NotesRefused, match="closed in group chats"):
            notes.read(who, None)
        with pytest.raises(NotesRefused, match="closed in group chats"):
            notes.days(who)
        with pytest.raises(NotesRefused, match="closed in group chats"):
            add(notes, who, "x", None)
    assert "member" not in notes.read(OWNER, None)
    assert "owner" not in notes.read(MEMBER, None)


@pytest.mark.case("SE-09")
@pytest.mark.parametrize(
    "name",
    [
        "../p1",
        "",
        "a/b",
        "p" * 65,
        "ｐ２",
    ],
)
def test_an_id_that_could_lead_elsewhere_has_no_notes(notes: Notes, root: Path, name: str) -> None:
    stranger = replace(MEMBER, person_id=PersonId(name))

    with pytest.raises(NotesRefused, match="no place for notes"):
        add(notes, stranger, "x", None)

    assert list(root.iterdir()) == []


@pytest.mark.case("SE-09")
@pytest.mark.parametrize("linked", ["memory", "memory/202608", "memory/202608/20260803.md"])
def test_no_link_is_followed_neither_to_read_nor_to_write(
    notes: Notes, root: Path, tmp_path: Path, linked: str
) -> None:
    outside = tmp_path / "outside"
    (outside / "202608").mkdir(parents=True)
    (outside / "20260803.md").write_text("secret")
    (outside / "202608" / "20260803.md").write_text("secret")
    (root / linked).parent.mkdir(parents=True, exist_ok=True)
    target = outside / "20260803.md" if linked.endswith(".md") else outside
    (root / linked).symlink_to(target)

    with pytest.raises(PathRefused, match="link"):
        notes.read(OWNER, TODAY)
    with pytest.raises(PathRefused, match="link"):
        add(notes, OWNER, "x", TODAY)

    assert (outside / "20260803.md").read_text() == "secret"
    assert (outside / "202608" / "20260803.md").read_text() == "secret"


# --- adding --------------------------------------------------------------------------------------


def test_what_a_person_wrote_into_the_file_stays_byte_for_byte(notes: Notes, root: Path) -> None:
    path = root / "memory" / "MEMORY.md"
    path.parent.mkdir()
    path.write_bytes("\ufeffMine \t\r\n\r\n\x1b[1mbold".encode())

    add(notes, OWNER, "new", None)

    assert path.read_bytes() == "\ufeffMine \t\r\n\r\n\x1b[1mbold\n\nnew\n".encode()
    assert notes.read(OWNER, None) == "Mine \t\n\nbold\n\nnew"


async def test_two_chats_that_add_at_once_lose_nothing(notes: Notes) -> None:
    words = [f"word {n}" for n in range(24)]

    await asyncio.gather(*(notes.add(OWNER, word, TODAY) for word in words))

    assert sorted(notes.read(OWNER, TODAY).split("\n\n")) == sorted(words)


SECTION_A = "## Boiler\n- called the plumber\n- comes on Friday"
SECTION_B = "## Shopping\n- milk"


@pytest.mark.case("ME-05")
@pytest.mark.parametrize(
    "heading",
    [
        "# 2026-08-03",
        "# Monday, August 3, 2026",
    ],
)
@pytest.mark.parametrize("joint", ["\n", "\n\n"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (SECTION_A, SECTION_B),
        ("We agreed on blue.", "The door stays red."),
        ("- a\n- b\n\nand so on", "- c"),
    ],
)
def test_a_second_flush_of_a_day_adds_what_is_new_and_nothing_twice(
    notes: Notes, heading: str, joint: str, first: str, second: str
) -> None:
    add(notes, OWNER, first, TODAY)

    add(notes, OWNER, joint.join([heading, first, second]), TODAY)

    text = notes.read(OWNER, TODAY)
    assert (text.count(first), text.count(second)) == (1, 1)
    assert text == f"{first}\n\n{second}"


@pytest.mark.parametrize(
    ("known", "text", "new"),
    [
        ("", "a\n\nb", "a\n\nb"),
        ("a", "a", ""),
        ("- a\n- b\n- c", "- b", ""),
        ("abc", "ab", "ab"),
        ("- a", "- a\n- b", "- b"),
        ("a\r\nb  \r\n", "a\nb", ""),
        ("## A\n- call Bob", "## B\n- call Bob", "## B\n- call Bob"),
        ("- call Bob", "## B\n- call Bob\n- call Ann", "## B\n- call Ann"),
        ("", "a\n\na", "a"),
        ("x", "# 2026-08-03", ""),
        ("x", "# Plan for 2026-08-03", "# Plan for 2026-08-03"),
        ("}\n```", "```\n{\n\n}\n```", "```\n{\n\n}\n```"),
        ("```\n{\n\n}\n```", "```\n{\n\n}\n```", ""),
    ],
)
def test_what_is_new_in_a_text(known: str, text: str, new: str) -> None:
    assert news_of(known, text, day=TODAY) == new


lines = st.lists(st.sampled_from(["", "a", "b", "c", "# h", "## i", "- x", "```"]), max_size=9)


@settings(max_examples=150)
@given(lines, lines)
def test_adding_twice_is_adding_once(before: list[str], added: list[str]) -> None:
    known, text = "\n".join(before), "\n".join(added)
    once = f"{known}\n\n{news_of(known, text, day=TODAY)}\n"

    assert news_of(once, text, day=TODAY) == ""
    assert {line for line in text.split("\n") if line} <= set(once.split("\n"))


def test_a_file_in_another_encoding_is_left_as_it_is(notes: Notes, root: Path) -> None:
    path = root / "memory" / "MEMORY.md"
    path.parent.mkdir()
    path.write_bytes("Größe".encode("latin-1"))

    with pytest.raises(PathRefused, match="not UTF-8 text, so nothing was added"):
        add(notes, OWNER, "new", None)

    assert path.read_bytes() == "Größe".encode("latin-1")


def test_days_are_listed_newest_first_and_other_files_are_none(notes: Notes, root: Path) -> None:
    for day in (date(2026, 7, 31), date(2026, 8, 3), date(2025, 12, 1)):
        add(notes, OWNER, "abc", day)
    for stray in ("memory/202608/20260931.md", "memory/202608/20260701.md", "memory/202608/x.md"):
        (root / stray).write_text("stray")
    (root / "memory" / "people").mkdir()
    (root / "memory" / "202608" / "20260804.md").mkdir()

    assert notes.days(OWNER) == [
        (date(2026, 8, 3), 4),
        (date(2026, 7, 31), 4),
        (date(2025, 12, 1), 4),
    ]
    assert notes.days(MEMBER) == []
