"""`/heartbeat`: how it stands, switched, run now, and why."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.commands.jobs import messages as words
from memory.records.jobs import JobKind
from tests.bot.schedule_kit import Place, beating
from tests.scheduler.service_kit import LANE


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with Place(tmp_path).opened() as one:
        yield one


async def test_the_heartbeat_says_how_it_stands(place: Place) -> None:
    place.counter.people.home = ""
    assert await place.beat() == words.HEARTBEAT_NOT_YET
    place.counter.people.home = LANE
    await place.counter.heartbeats.beat(
        "default", "skipped", "HEARTBEAT.md holds nothing to look at"
    )

    said = await place.beat()

    assert "is on (by the settings): every 30 min" in said
    assert "Next: Mon 1 Jun 2026, 08:30" in said
    assert "skipped: HEARTBEAT.md holds nothing to look at" in said


async def test_what_the_heartbeat_takes_is_told_once_it_is_switched_on(place: Place) -> None:
    place.counter.estimate = "about 900 tokens a run, 48 runs a day: about $0.02 a day with m"

    said = await place.beat("on")

    assert "it takes about 900 tokens a run, 48 runs a day: about $0.02 a day with m." in said


async def test_the_heartbeat_is_run_now(place: Place) -> None:
    place.counter.people.home = ""
    assert await place.beat("now") == words.HEARTBEAT_NOT_YET
    place.counter.people.home = LANE

    assert "I look at HEARTBEAT.md now" in await place.beat("now")
    assert place.counter.taken == ["heartbeat"]
    await place.counter.heartbeats.beat("default", "skipped", "nothing to look at")
    place.counter.clock.move(1)
    assert await place.beat("now") == "No model was asked: nothing to look at."


async def test_why_shows_the_last_ten(place: Place) -> None:
    assert await place.beat("why") == words.HEARTBEAT_NOTHING
    for n in range(12):
        await place.counter.heartbeats.beat("default", "told", f"number {n}.")

    said = await place.beat("why")

    assert said.count("told") == 10
    assert "number 11." in said
    assert "number 1." not in said
    assert await place.beat("dance") == words.HEARTBEAT_USE


async def test_without_a_heartbeat_in_the_settings_none_is_switched_on(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.counter.minutes = 0
    async with place.opened():
        for word in ("", "on", "now"):
            assert await place.beat(word) == words.HEARTBEAT_NEVER
        assert await place.counter.heartbeats.is_on() is None


@pytest.mark.parametrize("word", ["", "now"])
async def test_the_first_question_makes_a_heartbeat_that_is_still_missing(
    place: Place, word: str
) -> None:
    assert await place.counter.store.kept() == []

    await place.beat(word)

    [job] = await place.counter.store.kept()
    assert (job.name, job.kind, job.deliver_to) == ("heartbeat", JobKind.HEARTBEAT, LANE)


async def test_what_is_switched_off_stands_still_and_goes_on_with_it(place: Place) -> None:
    job = await beating(place)
    await place.counter.store.failed(job.id, failures=5, not_before_ms=0, paused="it failed")

    await place.beat("on")
    fresh = await place.counter.now(job)
    assert (fresh.enabled, fresh.failures) == (True, 0)
    await place.beat("off")
    assert not (await place.counter.now(job)).enabled
    await place.beat("on")
    assert [one.enabled for one in await place.counter.store.kept()] == [True]


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
    place.counter.heartbeats.minutes = {"default": 30, "garden": 60}
    await place.counter.heartbeats.beat("garden", "told", "dry soil")
    await place.counter.heartbeats.beat("default", "skipped", "nothing to do")

    every, one = [await place.beat(text) for text in ("why", "why garden")]

    assert "`default`" in every
    assert "nothing to do" in every
    assert "`garden`" in every
    assert "dry soil" in every
    assert "dry soil" in one
    assert "nothing to do" not in one
