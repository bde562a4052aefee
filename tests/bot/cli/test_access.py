"""`hearthbot access`, as somebody types it: where no bot runs, and beside one that does."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from bot.cli.access import list_people
from bot.people.access import Access
from bot.settings.home import Home, prepare
from memory.database.connection import Database
from memory.stores.people import SqlitePeople
from scheduler.clock.machine import SystemClock
from tests.bot.cli.cli_kit import Group, alone, beside_a_bot, on_terminal


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    home = Home(tmp_path / "home")
    monkeypatch.setenv("HEARTHBOT_HOME", str(home.path))
    prepare(home)
    return home


ACCESS = Group("access")
said, refused = ACCESS.said, ACCESS.refused


@asynccontextmanager
async def opened(home: Home) -> AsyncIterator[Mapping[str, object]]:
    clock = SystemClock()
    async with Database.open(home.database, clock=clock) as database:
        access = Access(SqlitePeople(database), policy="pairing", allowed=(), clock=clock)
        await access.load()
        yield {"access": access}


def beside(home: Home) -> AbstractContextManager[None]:
    return beside_a_bot(home, lambda: opened(home))


def people() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(said("list", "--json"))["people"]
    return found


PLACES = pytest.mark.parametrize("place", [alone, beside], ids=["alone", "beside a bot"])
Place = Callable[[Home], Any]


@PLACES
def test_a_role_is_changed_and_the_last_owner_stays(home: Home, place: Place) -> None:
    with place(home):
        said("approve", "telegram:1")
        said("approve", "telegram:2")

        changed = said("role", "telegram:2", "guest")
        stays = refused("role", "telegram:1", "guest")
        as_json = json.loads(said("role", "telegram:2", "member", "--json"))

        assert changed == "telegram:2 is now guest (was member), from the next message on.\n"
        assert "is the only owner and cannot be a guest" in stays
        assert as_json["text"].startswith("telegram:2 is now member")
        assert [person["role"] for person in people()] == ["owner", "member"]


def test_somebody_is_removed(home: Home) -> None:
    said("approve", "telegram:1")
    said("approve", "telegram:2")

    gone = said("remove", "telegram:2")
    again = refused("remove", "telegram:2")
    stays = refused("remove", "telegram:1")

    assert gone.startswith("telegram:2 is a stranger again")
    assert again.startswith("Nobody here is 'telegram:2'.")
    assert "is the only owner and cannot be removed" in stays
    assert [person["addresses"] for person in people()] == [["telegram:1"]]


def test_an_address_is_linked_and_both_sides_will_be_told(home: Home) -> None:
    said("approve", "telegram:1")
    said("approve", "telegram:2")

    linked = said("link", "telegram:2", "telegram:22")
    person = people()[1]
    by_id = said("link", person["id"], "telegram:22")
    nobody = refused("link", "telegram:3", "telegram:33")

    assert linked == "telegram:22 now belongs to telegram:2 too.\n"
    assert by_id == "telegram:22 belongs to telegram:2 already.\n"
    assert person["addresses"] == ["telegram:2", "telegram:22"]
    assert "hearthbot access approve telegram:3" in nobody
    with closing(sqlite3.connect(home.database)) as connection:
        waiting = connection.execute("select lane from outbox where state = 'ready' order by id")
        assert waiting.fetchall() == [("telegram:2",), ("telegram:22",)]


def test_the_list_has_names_zones_and_who_wrote_last(home: Home) -> None:
    said("approve", "telegram:1")
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("update people set name = 'Ann', time_zone = 'Asia/Tokyo'")
        connection.execute("insert into inbox (id, source, event_id, state, received_ms) "
                           "values (1, 's', 'e', 'replied', 1)")  # fmt: skip
        connection.execute(
            "insert into turns (run_id, lane, person_id, inbox_id, payload, status, created_ms) "
            "select 'r', 'l', id, 1, '{}', 'done', 1785585600000 from people"
        )
        connection.commit()

    (person,) = people()
    policy, line = said("list").splitlines()

    assert (person["name"], person["time_zone"]) == ("Ann", "Asia/Tokyo")
    assert person["last_seen_ms"] == 1785585600000
    assert policy == "policy\tpairing"
    assert line.startswith("owner\ttelegram:1\tAnn\tAsia/Tokyo; wrote 2026-08-01 ")
    assert line.endswith(person["id"])


@pytest.mark.parametrize(
    "wrong", [["role", "telegram:1"], ["role", "telegram:1", "king"], ["remove"], ["link", "a"]]
)
def test_wrong_usage_is_said_and_opens_nothing(home: Home, wrong: list[str]) -> None:
    refused(*wrong, code=2)

    assert not home.database.exists()


@pytest.mark.case("SE-01")
@pytest.mark.parametrize("name", ["@ann", "telegram:@ann", "slack:T0AB:ann"])
def test_a_name_is_nobody(home: Home, name: str) -> None:
    said("approve", "telegram:1")

    assert "names can change hands" in refused("link", "telegram:1", name)
    assert "names can change hands" in refused("role", name, "guest")


@pytest.mark.parametrize("name", ["[/b] Ann", "<b>Bo</b>", "Cy\x1b[2J"])
def test_a_name_is_shown_at_a_terminal_as_it_was_chosen(home: Home, name: str) -> None:
    said("approve", "telegram:1")
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("update people set name = ?", (name,))
        connection.commit()

    shown = on_terminal(list_people)

    assert "Policy: pairing" in shown
    assert name.partition("\x1b")[0] in shown
    assert "\x1b[2J" not in shown
