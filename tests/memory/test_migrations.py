"""Files of earlier versions: brought up to date on a copy, whole, or left as they were."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memory.database.backup import APPLICATION_ID
from memory.database.connection import Database
from memory.database.migrate import MIGRATIONS, read_migrations
from memory.records.errors import StorageError, StorageLocked
from memory.records.messages import ConversationId
from memory.records.ports import WaitingNote
from memory.stores.conversations import SqliteConversations
from memory.stores.switches import SqliteSkillRecords
from memory.stores.traces import SqliteTraces
from memory.stores.turns import SqliteJournal
from tests.memory.kit import LANE, StillClock, opened, rows, run

# --- migrations ----------------------------------------------------------------------------------


# A row in each table of 0001, as that version wrote them: a finished turn, and one in the middle.
FIRST_LIGHT = """
insert into people values ('p1', 'owner', 'Ada', 'Europe/Vienna', 'de', 1);
insert into addresses values ('telegram:5', 'p1', 1);
insert into chats values ('telegram:-100', 'admitted', 2);
insert into pairings values ('telegram:9', 'telegram', 'CODE', 'pending', 3, 4, 5);
insert into conversations values ('c_old', 'telegram:5', 6, 7, 0);
insert into conversations values ('c_1', 'telegram:5', 7, null, 2);
insert into inbox values (1, 'telegram:1', 'u1', 'telegram:5', null, 'replied', '', 'r1', 8, 9);
insert into inbox values (2, 'telegram:1', 'u2', 'telegram:5', '{}', 'queued', '', 'r2', 8, null);
insert into turns values
    (1, 'r1', 'telegram:5', 'p1', 'm1', 1, '{}', 'done', '', 0, null, null, 8, 8, 9),
    (2, 'r2', 'telegram:5', 'p1', 'm2', 2, '{"a":1}', 'running', '', 1, null, null, 8, 9, null);
insert into steps values ('r1', 0, 'begin', '{"upto":0}', 8, 8);
insert into steps values ('r1', 1, 'model', '{"answer":{}}', 8, 9);
insert into steps values ('r2', 0, 'begin', '{"upto":3}', 9, 9);
insert into steps values ('r2', 1, 'tool', null, 9, null);
insert into signals values ('key', '{}', 10);
insert into messages values (1, 'c_old', 'r0', 'said', '{"kind":"said","text":"before"}', 6);
insert into messages values (2, 'c_1', 'r1', 'said', '{"kind":"said","text":"zażółć"}', 9);
insert into messages values (3, 'c_1', 'r1', 'answered', '{"kind":"answered","text":"a"}', 9);
insert into notes values (1, 'c_1', 'edited', null, 9);
insert into texts values ('d1', 'long');
insert into outbox values (1, 'r1', 'telegram:5', 'a', 'sent', '', 0, 1, 9, 9);
insert into outbox_parts values (1, 0, '<b>a</b>', 'a', 'sent', '77');
"""


def make_first_light(path: Path, tmp_path: Path) -> None:
    """A closed file as the version of 0001 leaves it."""
    folder = tmp_path / "first_light"
    folder.mkdir()
    shutil.copy(next(MIGRATIONS.glob("0001_*.sql")), folder)
    (step,) = read_migrations(folder)
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            f"pragma application_id = {APPLICATION_ID};{step.sql};pragma user_version = 1;"
            f"pragma journal_mode = wal;{FIRST_LIGHT}"
        )


def everything(path: Path) -> dict[str, list[dict[str, object]]]:
    """All rows of all tables, each by the names of its columns."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        tables = connection.execute("select name from sqlite_schema where type = 'table'")
        return {
            name: [dict(row) for row in connection.execute(f'select * from "{name}"')]
            for (name,) in tables.fetchall()
        }


async def test_a_file_of_the_first_light_keeps_everything(path: Path, tmp_path: Path) -> None:
    make_first_light(path, tmp_path)
    before = everything(path)

    async with opened(path) as database:
        assert await database.check() == ""

    after = everything(path)
    assert all(before.values()), "each table has a row to lose"
    more: dict[str, dict[str, Any]] = {
        "conversations": {"shortened_to": 0, "is_private": 0},
        "people": {"language_hint": ""},
        "outbox": {
            **{"keyboard": "", "buttons": "", "revision": None, "file": ""},
            **{"tried_ms": 0, "about": ""},
        },
        "outbox_parts": {"ref": ""},
        "turns": {"limit_s": None, "erased_ms": None},
    }
    assert {name: after[name] for name in before} == {
        name: [row | more.get(name, {}) for row in found] for name, found in before.items()
    }
    new = {
        "approvals",
        "children",
        "chosen_models",
        "link_codes",
        "mcp_servers",
        "mcp_tools",
        "pauses",
        "playbooks",
        "skill_records",
        "spending_notices",
        "standing_grants",
        "usage",
        *("chunks", "compactions", "documents", "exchanges", "facts", "forgetting_key"),
        *("idle_timers", "insights", "profile_changes", "profiles", "tombstones"),
        *("events", "heartbeats", "job_runs", "jobs", "quiet_hours", "switches", "tellings"),
        *("assumed_times", "zone_questions", "former_files"),
    }
    sqlites_own = {name for name in after if name.startswith(("exchange_words", "sqlite_"))}
    assert set(after) - set(before) - sqlites_own == new
    assert rows(path, "pragma user_version") == [(len(read_migrations(MIGRATIONS)),)]


async def test_a_file_of_the_first_light_goes_on_where_it_was(path: Path, tmp_path: Path) -> None:
    make_first_light(path, tmp_path)

    async with opened(path) as database:
        history = await SqliteConversations(database).history(ConversationId("c_1"))
        (pending,) = await SqliteJournal(database).unfinished()
        traces = await SqliteTraces(database).prompts(LANE, limit=10)
        records = await SqliteSkillRecords(database).records()

    assert [stored.id for stored in history.entries] == [2, 3]
    note = WaitingNote(id=1, text="edited", untrusted=False)
    assert (history.turns, history.shortened_to, history.notes) == (1, 0, (note,))
    assert pending.run.run_id == "r2"
    assert [trace.run_id for trace in traces] == ["r2", "r1"]
    assert records == []


async def test_a_new_file_and_an_upgraded_one_have_the_same_schema(
    path: Path, tmp_path: Path
) -> None:
    make_first_light(path, tmp_path)
    new = tmp_path / "new" / "hearthbot.db"

    for file in (path, new):
        async with Database.open(file, clock=StillClock()) as database:
            await SqliteJournal(database).submit(run("r3"))

    schema = "select type, name, sql from sqlite_schema order by name"
    assert rows(path, schema) == rows(new, schema)


# --- upgrade -------------------------------------------------------------------------------------


NEXT = "alter table texts add column kept_ms integer not null default 0;\n"
BROKEN = [
    "create table half (a); insert into half values (1); insert into nowhere values (1);",
    "this is not sql;",
    "delete from turns;",
    "pragma foreign_keys = off; update steps set run_id = 'gone';",
    "insert into texts values ('a', 'b'); insert into texts values ('a', 'b');",
]


@pytest.fixture
def migrations(tmp_path: Path) -> Path:
    """The released steps and one more."""
    folder = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, folder)
    (folder / f"{newest() + 1:04}_next.sql").write_text(NEXT)
    return folder


def newest() -> int:
    return len(read_migrations(MIGRATIONS))


async def make_old(path: Path) -> None:
    """A closed file of this version, with a pending turn in it."""
    async with opened(path) as database:
        journal = SqliteJournal(database)
        await journal.submit(run("r1"))
        await journal.begin(run("r1").run_id)
        await journal.record(run("r1").run_id, 0, "model", {"text": "a"})


def names(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


async def test_the_old_file_is_kept_until_the_next_upgrade(path: Path, migrations: Path) -> None:
    await make_old(path)
    async with Database.open(path, clock=StillClock(), migrations=migrations):
        pass
    aside = path.with_name(f"hearthbot.db.before-{newest() + 1}")
    assert rows(aside, "pragma user_version") == [(newest(),)]
    (migrations / f"{newest() + 2:04}_more.sql").write_text("create table more (a);")

    async with Database.open(path, clock=StillClock(), migrations=migrations):
        pass

    assert names(path) == ["hearthbot.db", f"hearthbot.db.before-{newest() + 2}"]


async def test_what_a_kill_left_of_an_upgrade_is_no_obstacle(path: Path, migrations: Path) -> None:
    await make_old(path)
    path.with_name("hearthbot.db.upgrading").write_bytes(b"half")
    path.with_name("hearthbot.db.upgrading-wal").write_bytes(b"half")
    shutil.copy(path, path.with_name(f"hearthbot.db.before-{newest() + 1}"))

    async with Database.open(path, clock=StillClock(), migrations=migrations) as database:
        assert await database.check() == ""

    assert names(path) == ["hearthbot.db", f"hearthbot.db.before-{newest() + 1}"]


@pytest.mark.parametrize("broken", BROKEN)
async def test_a_failed_upgrade_leaves_the_old_file_usable(
    path: Path, migrations: Path, broken: str
) -> None:
    await make_old(path)
    (migrations / f"{newest() + 1:04}_next.sql").write_text(broken)

    with pytest.raises(StorageError, match="could not be upgraded"):
        async with Database.open(path, clock=StillClock(), migrations=migrations):
            pass

    assert names(path) == ["hearthbot.db"]
    async with opened(path) as database:
        (pending,) = await SqliteJournal(database).unfinished()
    assert pending.run.run_id == "r1"


async def test_a_file_that_another_has_open_is_not_upgraded(path: Path, migrations: Path) -> None:
    await make_old(path)

    with closing(sqlite3.connect(path)) as other:
        other.execute("select count(*) from turns").fetchone()
        with pytest.raises(StorageLocked):
            async with Database.open(
                path, clock=StillClock(), migrations=migrations, busy_timeout_s=0.1
            ):
                pass

    assert names(path) == ["hearthbot.db"]
    assert rows(path, "pragma user_version") == [(newest(),)]


async def test_migrations_are_numbered_without_a_gap(path: Path, migrations: Path) -> None:
    (migrations / "0009_far.sql").write_text("create table far (a);")

    with pytest.raises(ValueError, match="not numbered"):
        async with Database.open(path, clock=StillClock(), migrations=migrations):
            pass
