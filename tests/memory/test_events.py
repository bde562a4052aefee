"""Events are kept as they were noted, once for each call, and found by nobody else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from memory.database.connection import Database
from memory.records.messages import PersonId, RunId
from memory.records.schedule import Event, Remind
from memory.stores.schedule import SqliteEvents
from tests.memory.kit import START, START_MS

DENTIST = Event(
    person_id=PersonId("p1"),
    name="Dentist",
    at=START + timedelta(days=3),
    zone="Europe/Berlin",
    note="bring the card",
    remind=(Remind.BEFORE, Remind.ON),
)
SOME_DAY = Event(person_id=PersonId("p1"), name="Move house", at=None, zone="UTC")


async def kept(events: SqliteEvents, new: Event) -> Event:
    made = await events.add(new, limit=50)
    assert made is not None
    return made


async def names(
    events: SqliteEvents, person: str = "p1", scope: str = "", *, since_ms: int = START_MS
) -> list[str]:
    found = await events.since(
        PersonId(person), scope, since_ms=since_ms, undated_since_ms=START_MS - 1000
    )
    return [one.name for one in found]


async def test_an_event_reads_back_as_it_was_noted(database: Database) -> None:
    events = SqliteEvents(database)

    made = await kept(events, replace(DENTIST, run_id=RunId("r1#a")))
    (found,) = await events.since(PersonId("p1"), "", since_ms=START_MS, undated_since_ms=START_MS)

    assert found == made
    assert found == replace(DENTIST, run_id=RunId("r1#a"), id=found.id, created_ms=found.created_ms)
    assert found.key == "e1"


async def test_the_same_call_notes_nothing_anew(database: Database) -> None:
    events = SqliteEvents(database)

    first = await kept(events, replace(DENTIST, run_id=RunId("r1#a")))
    again = await kept(events, replace(DENTIST, name="other", run_id=RunId("r1#a")))
    other = await kept(events, replace(DENTIST, run_id=RunId("r1#b")))

    assert again == first
    assert other.id != first.id


async def test_nobody_finds_or_removes_those_of_somebody_else_or_of_another_chat(
    database: Database,
) -> None:
    events = SqliteEvents(database)
    made = await kept(events, DENTIST)
    await kept(events, replace(DENTIST, name="in the group", scope="telegram:-100"))

    assert await names(events, "p2") == []
    assert await names(events, scope="telegram:-100") == ["in the group"]
    assert await events.remove(PersonId("p2"), made.id, "") is None
    assert await events.remove(PersonId("p1"), made.id, "telegram:-100") is None
    assert await events.remove(PersonId("p1"), made.id, "") == made
    assert await events.remove(PersonId("p1"), made.id, "") is None


async def test_of_one_person_there_are_so_many_and_no_more(database: Database) -> None:
    events = SqliteEvents(database)
    past = replace(DENTIST, at=START - timedelta(days=1))

    for new in (past, DENTIST, SOME_DAY):
        assert await events.add(new, limit=2) is not None

    assert await events.add(DENTIST, limit=2) is None
    assert await events.add(replace(DENTIST, person_id=PersonId("p2")), limit=2) is not None


async def test_a_row_that_cannot_be_read_hides_no_other(database: Database) -> None:
    events = SqliteEvents(database)
    broken = await kept(events, replace(DENTIST, name="broken"))
    await kept(events, DENTIST)

    await database.write(
        lambda c: c.execute("update events set remind = '[\"never\"' where id = ?", (broken.id,))
    )

    assert await names(events) == ["Dentist"]
