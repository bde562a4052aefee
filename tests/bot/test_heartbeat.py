"""`/heartbeat`: how it stands, switched, run now, and why."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.commands import schedule_messages as words
from bot.commands.heartbeat import HeartbeatDesk
from memory.records.jobs import Job
from tests.bot.schedule_kit import ANNA, Place, beating, message
from tests.scheduler.clerk_kit import LANE

NOON = datetime(2026, 6, 1, 10, 0, tzinfo=UTC)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with Place(tmp_path).opened() as one:
        yield one


async def test_the_heartbeat_says_how_it_stands(place: Place) -> None:
    assert await place.beat() == words.HEARTBEAT_NOT_YET
    await beating(place)
    await place.counter.beats.beat("default", "skipped", "HEARTBEAT.md holds nothing to look at")

    said = await place.beat()

    assert "is on (by the settings): every 30 min" in said
    assert "Next: Mon 1 Jun 2026, 08:30" in said
    assert "skipped: HEARTBEAT.md holds nothing to look at" in said


async def test_the_heartbeat_is_switched_and_stays_so(place: Place) -> None:
    await beating(place)

    assert await place.beat("off") == words.HEARTBEAT_OFF
    assert await place.counter.switches.is_on("heartbeat") is False
    assert "by hand" in await place.beat("on")
    assert await place.counter.switches.is_on("heartbeat") is True
    assert place.ensured == 2


async def test_what_the_heartbeat_takes_is_told_once_it_is_switched_on(place: Place) -> None:
    async def told(job: Job) -> str:
        return "about 900 tokens a run, 48 runs a day: about $0.02 a day with m"

    await beating(place)
    place.counter.clerk.foretold = told

    said = await place.beat("on")

    assert "it takes about 900 tokens a run, 48 runs a day: about $0.02 a day with m." in said


async def test_the_heartbeat_is_run_now(place: Place) -> None:
    assert await place.beat("now") == words.HEARTBEAT_NOT_YET
    await beating(place)

    assert "I look at HEARTBEAT.md now" in await place.beat("now")
    assert place.counter.taken == ["heartbeat"]
    await place.counter.beats.beat("default", "skipped", "nothing to look at")
    place.counter.clock.move(1)
    assert await place.beat("now") == "No model was asked: nothing to look at."


async def test_why_shows_the_last_ten(place: Place) -> None:
    assert await place.beat("why") == words.HEARTBEAT_NOTHING
    for n in range(12):
        await place.counter.beats.beat("default", "told", f"number {n}.")

    said = await place.beat("why")

    assert said.count("told") == 10
    assert "number 11." in said
    assert "number 1." not in said
    assert await place.beat("dance") == words.HEARTBEAT_USE


async def test_without_a_heartbeat_in_the_settings_none_is_switched_on(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.every_minutes = 0
    async with place.opened():
        for word in ("", "on", "now"):
            assert await place.beat(word) == words.HEARTBEAT_NEVER
        assert await place.counter.switches.is_on("heartbeat") is None


async def test_the_first_question_makes_a_heartbeat_that_is_still_missing(place: Place) -> None:
    for word in ("", "now"):
        assert await place.beat(word) == words.HEARTBEAT_NOT_YET

    assert place.ensured == 2
    await beating(place)
    await place.beat()
    assert place.ensured == 2


async def test_an_agent_without_a_heartbeat_is_told_which_have_one(place: Place) -> None:
    await beating(place)

    for word in ("now nope", "why nope"):
        assert await place.beat(word) == (
            "No agent called nope has a heartbeat. These have one: `default`."
        )
    assert await place.beat("now DEFAULT") == (
        "I look at HEARTBEAT.md now. What I find comes by itself; nothing is no message."
    )


async def test_why_alone_shows_the_looks_of_all_agents(place: Place) -> None:
    desk = HeartbeatDesk(
        place.counter.clerk,
        place.counter.beats,
        place.counter.switches,
        minutes={"default": 30, "garden": 60},
        ensure=_nothing,
    )
    await place.counter.beats.beat("garden", "told", "dry soil")
    await place.counter.beats.beat("default", "skipped", "nothing to do")

    every, one = [await desk.tell(message(LANE), ANNA, text) for text in ("why", "why garden")]

    assert "`default`" in every
    assert "nothing to do" in every
    assert "`garden`" in every
    assert "dry soil" in every
    assert "dry soil" in one
    assert "nothing to do" not in one


async def _nothing() -> None:
    pass
