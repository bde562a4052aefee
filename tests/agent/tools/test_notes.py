"""The tools over notes: the person's own day, added to once, read as it stands."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.tools.groups.notes import FILE_CHARS_MAX, NOTE_CHARS_MAX, Notes, NoteTools
from agent.tools.tool import Caller, Needs, tools_of
from agent.tools.workspace import Workspace
from tests.agent.tools.given import GUEST, MEMBER, OWNER, call, needs, run_tool
from tests.agent.tools.keeping import household
from tests.fakes import FixedClock

LATE = datetime(2026, 8, 3, 22, 30, tzinfo=UTC)
"""Half past midnight of the fourth, in Berlin."""


class Given:
    """Both tools over one workspace, at a moment."""

    def __init__(self, root: Path, *, now: datetime = LATE, zone: str = "Europe/Berlin") -> None:
        self.root = root
        notes = Notes(Workspace(root))
        home = household(clock=FixedClock(now), zone=zone)
        self.reads, self.appends = tools_of(NoteTools(notes, home))

    async def note(self, text: str, where: str = "today", *, by: Caller = OWNER) -> str:
        asked = call("append_notes", {"text": text, "where": where})
        result = await run_tool(self.appends, asked, by)
        assert result.ok is (result.effect == "person")
        return result.content

    async def read(self, day: str = "", *, by: Caller = OWNER) -> str:
        result = await run_tool(self.reads, call("read_notes", {"day": day}), by)
        assert result.untrusted is False
        return result.content


@pytest.fixture
def given(tmp_path: Path) -> Given:
    return Given(tmp_path)


@pytest.mark.parametrize(
    ("zone", "name", "day"),
    [
        ("Europe/Berlin", "202608/20260804.md", "Tuesday, 2026-08-04"),
        ("America/New_York", "202608/20260803.md", "Monday, 2026-08-03"),
    ],
)
async def test_today_is_the_persons_own_day(tmp_path: Path, zone: str, name: str, day: str) -> None:
    given = Given(tmp_path, zone=zone)

    told = await given.note("call the plumber", by=MEMBER)

    path = f"memory/people/p2/{name}"
    assert told == f"Added to the notes of {day[-10:]} ({path}), 16 characters."
    assert (tmp_path / path).read_text() == "call the plumber\n"
    assert await given.read("today", by=MEMBER) == f"Notes of {day}:\ncall the plumber"
    assert (await given.read(by=MEMBER)) == f"{day[-10:]} (17 bytes)"


async def test_what_lasts_goes_to_another_file(given: Given) -> None:
    await given.note("the boiler is in the cellar", "long-term")
    await given.note("the plumber comes")

    assert await given.read("long-term") == "Long-term notes:\nthe boiler is in the cellar"
    assert await given.read("MEMORY.md") == await given.read(" Long-Term ")
    assert await given.read() == "long-term\n2026-08-04 (18 bytes)"
    assert sorted(path.name for path in given.root.rglob("*.md")) == ["20260804.md", "MEMORY.md"]


@pytest.mark.parametrize("day", ["2026-08-03", "20260803", "yesterday", " Yesterday "])
async def test_an_earlier_day_is_read_by_its_date(given: Given, day: str) -> None:
    await Notes(Workspace(given.root)).add(OWNER, "it rained", datetime(2026, 8, 3).date())

    assert await given.read(day) == "Notes of Monday, 2026-08-03:\nit rained"


@pytest.mark.case("SE-09")
@pytest.mark.parametrize(
    "day", ["monday", "2026-02-30", "../people/p2/MEMORY", "2026-W32-1", "08/03/2026", "2026-08"]
)
async def test_what_names_no_day_is_refused(given: Given, day: str) -> None:
    assert "this names no day" in await given.read(day)


@pytest.mark.case("ME-05")
async def test_a_note_that_is_made_twice_stands_there_once(given: Given) -> None:
    first = await given.note("call the plumber")

    again = await given.note("call the plumber")

    assert first.startswith("Added to the notes of 2026-08-04")
    assert again == (
        "It stands in the notes of 2026-08-04 already (memory/202608/20260804.md); nothing was "
        "added."
    )
    assert await given.read("today") == "Notes of Tuesday, 2026-08-04:\ncall the plumber"


async def test_notes_are_bounded_and_a_refusal_is_told(given: Given) -> None:
    notes = [f"{n} {'x' * (NOTE_CHARS_MAX - 10)}" for n in range(30)]

    told = [await given.note(note) for note in notes]

    assert told[0].startswith("Added to")
    assert "is full" in told[-1]
    (file,) = given.root.rglob("*.md")
    assert FILE_CHARS_MAX * 0.9 < len(file.read_text()) <= FILE_CHARS_MAX


@pytest.mark.case("SE-17")
async def test_nobody_reads_the_notes_of_another(given: Given) -> None:
    await given.note("the owner's", "long-term")
    await given.note("the member's", "long-term", by=MEMBER)

    assert "owner" not in await given.read("long-term", by=MEMBER)
    assert "member" not in await given.read("long-term")
    assert await given.read(by=GUEST) == "There are no notes yet."


async def test_a_guest_makes_no_notes(given: Given) -> None:
    assert "a guest may not" in await given.note("x", by=GUEST)
    assert list(given.root.iterdir()) == []


@pytest.mark.parametrize(
    ("where", "shows"),
    [
        ("today", "Into the notes of today, which later prompts show:"),
        ("long-term", "Into the long-term notes, which later prompts show:"),
    ],
)
def test_who_is_asked_reads_where_it_will_stand(given: Given, where: str, shows: str) -> None:
    assert needs(given.appends, OWNER, text="x", where=where) == Needs(shows=(shows,))
