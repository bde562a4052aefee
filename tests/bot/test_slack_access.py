"""Addresses of Slack: what names a person, what names a group, and that each reads back."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.people.access import Access, UnknownCode
from bot.people.pairing import is_group
from memory.database.connection import Database
from memory.records.messages import Address
from memory.stores.people import SqlitePeople
from scheduler.clock.machine import SystemClock


@pytest.mark.parametrize(
    ("address", "group"),
    [
        ("slack:T0LAB.C0GENERAL", True),
        ("slack:T0LAB.G0PRIVATE", True),
        ("slack:T0LAB.D0ANN", False),
        ("slack:T0LAB:U0ANN", False),
        ("slack:T0LAB:C0GENERAL", False),
        ("slack:-5", True),
    ],
)
def test_a_channel_is_a_group_and_a_person_or_direct_message_is_none(
    address: str, group: bool
) -> None:
    assert is_group(address) is group


async def test_people_and_channels_of_slack_are_let_in_by_their_addresses(tmp_path: Path) -> None:
    clock = SystemClock()
    async with Database.open(tmp_path / "db", clock=clock, backups=tmp_path / "backups") as base:
        access = Access(SqlitePeople(base), policy="pairing", allowed=(), clock=clock)
        await access.load()

        person = (await access.approve("slack:T0LAB:U0ANN")).person
        chat = (await access.approve("slack:T0LAB.C1")).person

        assert person is not None
        assert chat is None
        assert access.is_admitted(Address(channel="slack", chat_id="T0LAB.C1", thread_id="1.2"))
        assert not access.is_admitted(Address(channel="slack", chat_id="T0LAB.C2", thread_id="1.2"))
        for wrong in (
            "slack:ann",
            "slack:T0LAB",
            "slack:T0LAB:",
            "slack:T0LAB.C1:1.2",
            "slack:T0LAB.D1",
        ):
            with pytest.raises(UnknownCode):
                await access.approve(wrong)


async def test_what_slack_says_of_a_person_is_kept_where_nothing_is_known(tmp_path: Path) -> None:
    clock = SystemClock()
    async with Database.open(tmp_path / "db", clock=clock, backups=tmp_path / "backups") as base:
        access = Access(SqlitePeople(base), policy="pairing", allowed=(), clock=clock)
        await access.load()
        person = (await access.approve("slack:T0LAB:U0ANN")).person
        assert person is not None

        await access.introduce("slack:T0LAB:U0EVE", name="Eve", time_zone="Europe/Paris")
        await access.introduce("slack:T0LAB:U0ANN", name="Ann", time_zone="No/Where")
        await access.introduce("slack:T0LAB:U0ANN", name="Other", time_zone="Europe/Berlin")
        await access.introduce("slack:T0LAB:U0ANN", name="Other", time_zone="Europe/Paris")

        [kept] = access.directory.people
        assert (kept.name, kept.time_zone) == ("Ann", "Europe/Berlin")
        assert kept.id == person.id


async def test_a_language_that_a_platform_names_is_kept_as_it_is_now_beside_the_one_that_was_set(
    tmp_path: Path,
) -> None:
    clock = SystemClock()
    async with Database.open(tmp_path / "db", clock=clock, backups=tmp_path / "backups") as base:
        access = Access(SqlitePeople(base), policy="pairing", allowed=(), clock=clock)
        await access.load()
        person = (await access.approve("slack:T0LAB:U0ANN")).person
        assert person is not None
        await access.set_language(person, "pl")

        await access.introduce("slack:T0LAB:U0EVE", language="fr-FR")
        await access.introduce("slack:T0LAB:U0ANN", language="de-DE")
        await access.introduce("slack:T0LAB:U0ANN", language="es-LA")
        await access.introduce("slack:T0LAB:U0ANN", language="no such language")
        await access.introduce("slack:T0LAB:U0ANN")

        [kept] = access.directory.people
        assert (kept.language, kept.language_hint) == ("pl", "es")


async def test_of_two_platforms_the_one_that_was_first_says_the_language(tmp_path: Path) -> None:
    clock = SystemClock()
    async with Database.open(tmp_path / "db", clock=clock, backups=tmp_path / "backups") as base:
        access = Access(SqlitePeople(base), policy="pairing", allowed=(), clock=clock)
        await access.owner_of_this_machine()
        await access.approve("telegram:5")
        await access.link("telegram:5", "slack:T0LAB:U0ANN")

        await access.introduce("slack:T0LAB:U0ANN", language="en-US")
        hints = [access.directory.people[0].language_hint]
        for address, language in (
            ("telegram:5", "de"),
            ("slack:T0LAB:U0ANN", "en-US"),
            ("telegram:5", "pl"),
        ):
            await access.introduce(address, language=language)
            hints.append(access.directory.people[0].language_hint)

        assert hints == ["en", "de", "de", "pl"]
