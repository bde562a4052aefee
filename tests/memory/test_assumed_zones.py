"""Who is asked for a time zone, and what was set up without one, over real SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory.database.connection import Database
from memory.database.migrate import MIGRATIONS, read_migrations
from memory.records.messages import PersonId
from memory.records.rows import Button, NewMessage
from memory.records.schedule import Event
from memory.records.zones import Asking, AssumedTime, Timed
from memory.stores.events import SqliteEvents
from memory.stores.jobs import SqliteJobs
from memory.stores.people import SqliteAssumedZones
from tests.memory.kit import StillClock, opened
from tests.scheduler.jobs_kit import job as new_job

ANN, BEN = PersonId("p_ann"), PersonId("p_ben")
LANE = "telegram:5"
CARD = NewMessage(
    lane=LANE, text="Is it 14:32?", buttons=((Button(label="Yes", data="zone:yes"),),)
)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with opened(tmp_path / "hearthbot.db") as database:
        yield database


@pytest.fixture
def store(database: Database) -> SqliteAssumedZones:
    return SqliteAssumedZones(database)


async def outbox(database: Database) -> int:
    (count,) = await database.read(lambda c: c.execute("select count(*) from outbox").fetchone())
    return int(count)


async def test_a_person_is_wanted_once_and_asked_once(
    database: Database, store: SqliteAssumedZones
) -> None:
    first = await store.want(ANN, lane=LANE, zone="Europe/Berlin")
    again = await store.want(ANN, lane="slack:T1.D1", zone="UTC")
    [wanted] = await store.wanted()
    card = await store.ask(ANN, CARD)
    twice = await store.ask(ANN, CARD)
    asked = await store.question(ANN)

    assert (first, again) == (True, False)
    assert (wanted.lane, wanted.zone, wanted.state) == (LANE, "Europe/Berlin", Asking.WANTED)
    assert (twice, await outbox(database)) == (None, 1)
    assert asked is not None
    assert (asked.card, asked.state) == (card, Asking.ASKED)
    assert await store.wanted() == []
    assert not await store.want(ANN, lane=LANE, zone="Europe/Berlin")


async def test_a_question_that_is_over_is_not_asked(
    database: Database, store: SqliteAssumedZones
) -> None:
    await store.want(ANN, lane=LANE, zone="UTC")
    await store.end(ANN)

    assert await store.ask(ANN, CARD) is None
    assert await store.ask(BEN, CARD) is None
    assert await store.question(BEN) is None
    assert await outbox(database) == 0


async def test_what_is_assumed_is_one_persons_until_it_is_settled_or_gone(
    database: Database, store: SqliteAssumedZones
) -> None:
    jobs = SqliteJobs(database)
    made = [await jobs.add(new_job(name), None) for name in ("one", "two", "three")]
    times = [
        AssumedTime(person_id=ANN, kind=Timed.JOB, id=one.id, zone="UTC") for one in made if one
    ]
    for time in (*times, times[0]):
        await store.assume(time)

    before = await store.assumed(ANN)
    await store.settle_one(Timed.EVENT, times[0].id)
    await store.settle_one(Timed.JOB, times[0].id)
    await jobs.remove(times[1].id)
    await store.assume(times[2])
    after = await store.assumed(ANN)
    await store.settle(BEN)
    others = await store.assumed(ANN)
    await store.settle(ANN)

    assert before == times
    assert after == others == [times[2]]
    assert await store.assumed(ANN) == await store.assumed(BEN) == []


async def test_an_event_is_moved_for_its_person_alone(
    database: Database, store: SqliteAssumedZones
) -> None:
    at = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
    event = await SqliteEvents(database).add(
        Event(person_id=ANN, name="Dentist", at=at, zone="UTC"), limit=5
    )
    assert event is not None
    await store.assume(AssumedTime(person_id=ANN, kind=Timed.EVENT, id=event.id, zone="UTC"))

    foreign = await store.move_event(BEN, event.id, at, "Asia/Tokyo")
    moved = await store.move_event(ANN, event.id, at.replace(hour=0), "Asia/Tokyo")
    [now] = await SqliteEvents(database).since(ANN, "", since_ms=0, undated_since_ms=0)

    assert (foreign, moved) == (False, True)
    assert (now.at, now.zone) == (at.replace(hour=0), "Asia/Tokyo")
    assert await store.assumed(ANN) == []


async def test_of_jobs_that_were_there_before_those_by_a_clock_on_a_wall_are_assumed(
    tmp_path: Path,
) -> None:
    steps = tmp_path / "steps"
    steps.mkdir()
    for file in sorted(MIGRATIONS.glob("[0-9]*.sql"))[:16]:
        (steps / file.name).write_text(file.read_text("utf-8"), "utf-8")
    path = tmp_path / "hearthbot.db"
    async with Database.open(path, clock=StillClock(), migrations=steps):
        pass
    kept = {
        1: ("p_ann", "person", {"kind": "cron", "cron": "0 8 * * *", "zone": "Europe/Berlin"}),
        2: ("p_ann", "person", {"kind": "at", "at": "2026-12-01T09:00+01:00", "zone": "UTC"}),
        3: ("p_ann", "person", {"kind": "every", "pattern": "0 9 * * *", "zone": "UTC"}),
        4: ("p_ann", "person", {"kind": "every", "unit": "hour", "zone": "UTC"}),
        5: ("p_ann", "skill", {"kind": "cron", "cron": "0 8 * * *", "zone": "UTC"}),
        6: ("p_ben", "person", {"kind": "cron", "cron": "0 8 * * *", "zone": "Asia/Tokyo"}),
        7: ("p_ann", "person", {"kind": "cron", "zone": 7}),
    }
    with closing(sqlite3.connect(path)) as writes, writes:
        for person, zone in (("p_ann", ""), ("p_ben", "Asia/Tokyo")):
            writes.execute(
                "insert into people (id, role, name, time_zone, language, created_ms) "
                "values (?, 'member', '', ?, '', 0)",
                (person, zone),
            )
        rows = {n: (who, by, json.dumps(when)) for n, (who, by, when) in kept.items()}
        for n, (who, by, when) in (rows | {8: ("p_ann", "person", "{broken")}).items():
            writes.execute(
                "insert into jobs (id, name, person_id, agent, kind, what, runs_when, deliver_to, "
                "missed, quiet, urgent, set_by, enabled, created_ms, updated_ms) values "
                "(?, ?, ?, '', 'message', '{}', ?, '', 'once', 'defer', 0, ?, 1, 0, 0)",
                (n, f"job {n}", who, when, by),
            )

    assert len(read_migrations(MIGRATIONS)) >= 17
    async with opened(path) as database:
        assumed = await SqliteAssumedZones(database).assumed(ANN)
        others = await SqliteAssumedZones(database).assumed(BEN)

    assert [(one.id, one.zone) for one in assumed] == [(1, "Europe/Berlin"), (3, "UTC")]
    assert others == []
