"""A person's own page: in whose order, within which bounds, and what the owner alone reads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bot.channels.slack.app_home import HomeSection, HomeView
from memory.records.messages import PersonId, Role
from memory.records.rows import Person
from memory.records.schedule import Event
from memory.records.usage import UsageQuery, UsageSum
from tests.scheduler.service_kit import ANN, BEN, LANE, Services

PEOPLE = {
    "slack:T1:UANN": Person(id=ANN, role=Role.OWNER, name="Ann"),
    "slack:T1:UBEN": Person(id=BEN, role=Role.MEMBER, name="Ben"),
}


class Known:
    """Who is let in."""

    policy: Any = "pairing"

    def who(self, sender: str) -> Person | None:
        return PEOPLE.get(sender)


class NoFacts:
    async def list(self, of: Any, **_: Any) -> Sequence[Any]:
        return []


class Sums:
    """Keeps who was asked about."""

    def __init__(self) -> None:
        self.asked: list[PersonId] = []

    async def groups(self, wanted: UsageQuery) -> Sequence[UsageSum]:
        self.asked.append(wanted.person_id)
        return [UsageSum(calls=2, prompt=1_000, completion=200, micros=20_000)]


class Place:
    def __init__(self, counter: Services) -> None:
        self.counter = counter
        self.sums = Sums()
        self.questions: list[Any] = []

        async def open_questions() -> list[Any]:
            return self.questions

        async def at(lane: str) -> Any:
            return SimpleNamespace(name=f"model of {lane}")

        self.view = HomeView(
            cast(Any, Known()),
            jobs=counter.jobs,
            events=counter.events,
            facts=NoFacts().list,
            sums=self.sums.groups,
            models=cast(Any, SimpleNamespace(at=at)),
            open_questions=open_questions,
            clock=counter.clock,
        )

    async def page(self, who: str = "slack:T1:UANN") -> dict[str, HomeSection]:
        return {one.title.partition(" (")[0]: one for one in await self.view.sections(who, LANE)}

    async def lines(self, title: str, who: str = "slack:T1:UANN") -> list[str]:
        return [line.text for line in (await self.page(who))[title].lines]

    async def event(self, name: str, when: str) -> None:
        time = self.counter.time(when) if when else None
        draft = Event(person_id=ANN, name=name)
        await self.counter.events.record(draft, time, words=when, deliver_to=LANE)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with Services(tmp_path / "db").opened() as counter:
        yield Place(counter)


async def test_jobs_and_events_stand_in_the_order_in_which_they_come(place: Place) -> None:
    await place.event("Someday", "")
    await place.counter.want("in 3 days at 9:00", text="third")
    await place.event("Second", "in 2 days at 10:00")
    await place.counter.want("tomorrow at 9:00", text="first")

    lines = await place.lines("Next")

    assert [line.split()[2].rstrip(":") for line in lines] == [
        "first",
        "Second",
        "third",
        "Someday",
    ]
    assert lines[-1].endswith("no date")


async def test_what_is_anothers_is_neither_shown_nor_asked_for(place: Place) -> None:
    await place.counter.want("tomorrow at 9:00", text="canary")
    await place.event("canary", "in 2 days at 10:00")

    page = await place.page("slack:T1:UBEN")

    assert "canary" not in str(page)
    assert set(place.sums.asked) == {BEN}
    assert "For you as the owner" not in page
