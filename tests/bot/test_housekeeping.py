"""Each task of housekeeping on its own: told once, and nothing stops anything else."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
import structlog
from structlog.typing import EventDict

from bot.app.run import Housekeeping
from memory.records.errors import StorageError
from memory.records.usage import Notice
from scheduler.clock.machine import CheckedClock
from tests.bot.kit import OWNER, Rig, rigged
from tests.fakes import START, FixedClock

DAY_S = 86_400


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rigged(tmp_path) as rig:
        yield rig


class Tasks:
    """What was done, and what is to fail."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.fails: dict[str, Exception] = {}
        self.told: list[Notice] = []

    def task(self, name: str) -> Callable[[], Awaitable[None]]:
        async def run() -> None:
            if name in self.fails:
                raise self.fails[name]
            self.done.append(name)

        return run

    async def tell(self, notice: Notice) -> None:
        self.told.append(notice)

    def housekeeping(self, clock: CheckedClock) -> Housekeeping:
        tasks = {name: self.task(name) for name in ("one", "two", "three")}
        return Housekeeping(tasks, clock, tell=self.tell, resumed=self.task("resumed"))


def named(logs: list[EventDict], event: str) -> list[EventDict]:
    return [one for one in logs if one["event"] == event]


@pytest.mark.parametrize(
    "error", [StorageError("No space is left."), PermissionError("no"), ValueError("ours")]
)
async def test_one_that_fails_is_told_once_and_stops_no_other(error: Exception) -> None:
    tasks = Tasks()
    house = tasks.housekeeping(CheckedClock(FixedClock()))
    tasks.fails["two"] = error

    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            await house.once()
        told = await house.troubles()
        tasks.fails.clear()
        await house.once()

    assert tasks.done == ["one", "three"] * 3 + ["one", "two", "three"]
    assert len(told) == 1
    assert told[0].startswith("two did not work: ")
    assert await house.troubles() == []
    assert len(named(logs, "housekeeping.failed")) == 1
    assert len(named(logs, "housekeeping.failed.over")) == 1


async def test_nothing_is_done_by_a_clock_that_cannot_be_right_and_the_owner_is_told_once() -> None:
    tasks, machine = Tasks(), FixedClock(START)
    clock = CheckedClock(machine)
    house = tasks.housekeeping(clock)
    clock.told("Telegram", format_datetime(START - timedelta(days=900), usegmt=True))

    async def pause(seconds: float) -> None:
        machine.move(seconds)
        if len(machine.pauses) < 40:
            machine.pauses.append(seconds)
            return
        if clock.doubt:
            machine.pauses.append(seconds)
            clock.trust()
            return
        raise EndOfTestError

    machine.sleep = pause  # type: ignore[method-assign]

    with pytest.raises(EndOfTestError):
        await house.run()

    assert tasks.done == ["resumed", "one", "two", "three"]
    (notice,) = tasks.told
    assert "900 days ahead of Telegram's time" in notice.text
    assert [button.label for button in notice.buttons] == ["Go on"]


class EndOfTestError(Exception):
    """The end of a loop that has none."""


async def test_old_results_of_tools_go_and_nothing_else_does(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        results = rig.home.workspace / "files" / "results" / "telegram+5"
        results.mkdir(parents=True)
        old_s = bot.clock.now().timestamp() - 31 * DAY_S
        for name in ("old.txt", "new.txt", "link.txt"):
            (results / name).write_text("x")
        kept = rig.home.workspace / "files" / "letter.txt"
        kept.write_text("mine")
        (results / "out").symlink_to(kept)
        for file in (results / "old.txt", kept):
            os.utime(file, (old_s, old_s))

        await bot.housekeeping.once()

    assert {file.name for file in results.iterdir()} == {"new.txt", "link.txt", "out"}
    assert kept.read_text() == "mine"
