"""A week of the whole bot in a few seconds: its clock stands still until the test moves it. What an
idle bot asks of a model (nothing), what a busy one costs and was foretold to cost, and that nothing
of one person reaches the model in what is asked for another."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.app.app import App
from bot.lab.model import ScriptedModel, count_tokens
from bot.lab.model_script import ScriptedStep, make_call
from bot.lab.telegram import FakeTelegram
from bot.settings.load import load
from memory.records.jobs import OPERATOR, Job, JobKind, What
from memory.stores.schedule import SqliteTellings
from scheduler.clock.machine import CheckedClock
from tests.bot.kit import OWNER, TOKEN, US, WAIT_S, Rig
from tests.thorough import rounds

START = datetime(2026, 6, 5, 6, 0, tzinfo=UTC)  # a Friday
DAY = timedelta(days=1)
SHORT_S = 20.0
"""Pauses below are waits for something at work, and pass at once; the longer ones are those of what
looks by itself all day."""
GRAIN_S = 600.0
"""So far the clock moves at once."""
ANSWER_TOKENS = 400
BEATS_A_DAY, BEATS_KEPT = 48, 500
WORDS = ("amber", "birch", "cobalt", "dune", "ember", "fjord", "grove", "harbour", "iris")
BEAT, RAIN = "look whether the parcel has come", "look whether rain is coming"
JOB = "say how the garden fares"


class MovingClock:
    """Moves when told to, and wakes sleepers in the order of their time, one after the other: the
    next one once the former is asleep again, or has ended."""

    def __init__(self, start: datetime = START) -> None:
        self._start = self._now = start
        self._numbers = itertools.count()
        self._asleep: list[tuple[datetime, int, asyncio.Future[None]]] = []
        self._owners: dict[asyncio.Future[None], asyncio.Task[Any] | None] = {}
        self._slept = asyncio.Event()

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return (self._now - self._start).total_seconds()

    async def sleep(self, seconds: float) -> None:
        if seconds < SHORT_S:
            self._now += timedelta(seconds=max(seconds, 0.0))
            await asyncio.sleep(0)
            return
        waking: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owners[waking] = asyncio.current_task()
        until = self._now + timedelta(seconds=seconds)
        heapq.heappush(self._asleep, (until, next(self._numbers), waking))
        self._slept.set()
        try:
            await waking
        finally:
            self._owners.pop(waking, None)

    async def move_to(self, moment: datetime) -> None:
        """Everybody whose time has come by then has had a turn when this returns."""
        woken = []
        while self._asleep and self._asleep[0][0] <= moment:
            until, _, waking = heapq.heappop(self._asleep)
            if not waking.done():
                woken.append((until, waking))
        # Who sleeps for less than the move wakes once: the machine was busy meanwhile.
        for until, waking in woken:
            self._now = max(self._now, until)
            owner = self._owners.get(waking)
            if not waking.done():
                waking.set_result(None)
                await self._rests(owner)
        self._now = max(self._now, moment)

    async def _rests(self, owner: asyncio.Task[Any] | None) -> None:
        async with asyncio.timeout(WAIT_S):
            while owner is not None and not owner.done():
                await asyncio.sleep(0)
                if owner in self._owners.values():
                    return
                self._slept.clear()
                sleeping = asyncio.ensure_future(self._slept.wait())
                await asyncio.wait([owner, sleeping], return_when=asyncio.FIRST_COMPLETED)
                sleeping.cancel()


class Life(Rig):
    """A home that lives by a clock of the test, with the settings as they are shipped."""

    def __init__(self, folder: Path, telegram: FakeTelegram, model: ScriptedModel) -> None:
        super().__init__(folder, telegram, model)
        self.moving = MovingClock()
        for name in ("BUDGET__BRAKE", "MEMORY__INSIGHTS", "MEMORY__EXTRACTION__ENABLED"):
            del self.env[f"HEARTHBOT_{name}"]
        # One whose price is known.
        self.env["HEARTHBOT_LLM__MODEL"] = "openai/gpt-4.1-mini"

    @asynccontextmanager
    async def opened(self, *, hurry: float = 1) -> AsyncIterator[App]:
        settings = load(self.home.path, self.env)
        # The stand-in's answers are dated by the real clock.
        clock = CheckedClock(self.moving, is_trusted=True)
        app = App(self.home, settings, env=self.env, digest="test", clock=clock)
        async with app.running() as bot:
            yield bot

    async def passes(self, bot: App, until: datetime) -> None:
        """Time goes on, and what is due is done."""
        await self.rests(bot)
        while (now := self.moving.now()) < until:
            next_ms = await bot.calendar.schedules.jobs.next_ms()
            stop = min(until, now + timedelta(seconds=GRAIN_S))
            if next_ms is not None:
                stop = min(stop, max(now, datetime.fromtimestamp(next_ms / 1000, UTC)))
            await self.moving.move_to(stop)
            if await bot.calendar.schedules.timetable.look():
                await self.rests(bot)

    async def rests(self, bot: App) -> None:
        """Nothing runs, and what was found is told or waits."""
        async with asyncio.timeout(WAIT_S):
            while True:
                await bot.settled()
                await bot.aftermath.idle()
                if not self.count("job_runs where state in ('taken', 'found')"):
                    break
                await asyncio.sleep(0.002)
            await bot.settled()

    def count(self, what: str) -> int:
        return int(self.rows(f"select count(*) from {what}")[0][0])

    def sizes(self) -> dict[str, int]:
        """Rows by table."""
        names = self.rows("select name from sqlite_master where type = 'table'")
        return {name: self.count(f'"{name}"') for (name,) in names}


@pytest.fixture
async def life(tmp_path: Path) -> AsyncIterator[Life]:
    async with (
        FakeTelegram(TOKEN, username=US) as telegram,
        ScriptedModel(models=("gpt-4.1-mini",), requests_cap=50_000) as model,
    ):
        yield Life(tmp_path, telegram, model)


# --- nothing to do --------------------------------------------------------------------------------


@pytest.mark.case("CO-01")
async def test_a_week_of_an_idle_bot_asks_no_model_and_fills_nothing(life: Life) -> None:
    life.set(trace__keep_days=3)

    async with life.running(OWNER) as bot:
        await life.passes(bot, START + 4 * DAY)
        before = life.sizes()
        await life.passes(bot, START + 7 * DAY)
    after = life.sizes()

    assert life.model.requests == []
    assert life.count("usage") == 0
    assert after["job_runs"] - before["job_runs"] <= BEATS_A_DAY // 24, "by the hour they are swept"
    assert {name for name in after if after[name] != before[name]} <= {"job_runs", "heartbeats"}
    assert after["heartbeats"] <= BEATS_KEPT


# --- what it costs ------------------------------------------------------------------------------


class Diligent:
    """A model that does what an estimate assumes: two calls of a tool and then the answer, each of
    so many tokens; the heartbeat has nothing to say. It counts what it reads by itself."""

    def __init__(self) -> None:
        self.answers = itertools.count(1)

    def __call__(self, asked: dict[str, Any]) -> ScriptedStep:
        read, number = count_tokens(asked), next(self.answers)
        if BEAT in json.dumps(asked["messages"]):
            return ScriptedStep(text="HEARTBEAT_OK", usage=spent(read, 5))
        usage, thoughts = spent(read, ANSWER_TOKENS), "hmm " * ANSWER_TOKENS
        if sum(message["role"] == "tool" for message in asked["messages"]) < 2:
            call = make_call("list_events", {}, f"c{number}")
            return ScriptedStep(text=thoughts, calls=(call,), usage=usage)
        return ScriptedStep(text=f"Finding {word(number)}.\n{thoughts}", usage=usage)


def spent(prompt: int, completion: int) -> dict[str, int]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def word(number: int) -> str:
    """Another each time, as far as a heartbeat tells findings apart."""
    return " ".join(WORDS[number // 9**place % 9] for place in range(3))


async def given_a_busy_bot(life: Life, bot: App) -> None:
    """Two tasks on the list, a daily job, an hourly reminder, a weekly skill, and quiet nights."""
    (life.home.workspace / "HEARTBEAT.md").write_text(f"- {BEAT}\n- {RAIN}\n", encoding="utf-8")
    owner_id, home = await bot.jobs.owner_chat()
    for text, when, kind in (
        (JOB, "every day at 7:00", JobKind.AGENT),
        ("drink water", "every hour", JobKind.MESSAGE),
    ):
        time = bot.jobs.times.require(owner_id, when)
        what = What(text=text)
        draft = Job(person_id=owner_id, kind=kind, what=what, when=time.when, deliver_to=home)
        await bot.jobs.add(draft, by=OPERATOR)
    await bot.skills.enable("weekly-digest", enabled=True)
    [owner] = bot.access.directory.people
    await bot.access.set_time_zone(owner, "UTC")
    await SqliteTellings(bot.database).set_quiet_hours(owner.id, (22 * 60, 7 * 60))
    await life.passes(bot, life.moving.now() + timedelta(minutes=2))


def off(one: float, other: float) -> float:
    return abs(one - other) / max(one, other)


async def test_a_busy_week_costs_what_was_foretold(life: Life) -> None:
    days = rounds(1, 7)
    life.model.reply = Diligent()

    async with life.running(OWNER) as bot:
        await given_a_busy_bot(life, bot)
        foretold = await bot.dry_runs.forecast(days=days)
        end = life.moving.now() + days * DAY
        await life.passes(bot, START + days / 3 * DAY)
    async with life.running() as bot:
        await life.passes(bot, START + days / 2 * DAY)
    async with life.running() as bot:
        await life.passes(bot, end)

    [(calls, tokens, micros)] = life.rows(
        "select count(*), sum(prompt + completion), sum(micros) from usage"
    )
    print(
        f"\n{days} days: foretold {foretold.calls} calls, {foretold.tokens} tokens, "
        f"${foretold.dollars:.4f}; taken {calls}, {tokens}, ${micros / 1e6:.4f}"
    )
    assert foretold.unpriced == 0
    assert off(foretold.calls, calls) < 0.1
    assert off(foretold.tokens, tokens) < 0.1
    assert off(foretold.dollars * 1e6, micros) < 0.1
    gone = life.rows("select state, note from job_runs")
    assert {state for state, _ in gone} <= {"told", "silent", "waiting"}, gone
    reminders = [run for run in foretold.runs if run.job.name == "drink water"]
    assert life.texts().count("drink water") == len(reminders) == days * 24
    assert spoken_at_night(life) == {"drink water"}


def spoken_at_night(life: Life) -> set[str]:
    """What was put on its way in quiet hours."""
    sent = life.rows("select created_ms, text from outbox")
    moments = [(datetime.fromtimestamp(ms / 1000, UTC), text) for ms, text in sent]
    return {text for at, text in moments if at.hour >= 22 or at.hour < 7}
