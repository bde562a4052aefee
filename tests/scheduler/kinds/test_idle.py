"""Silent conversations are worked on once, one at a time, whatever fails and whoever restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from memory.database.connection import Database
from memory.records.errors import BrokenAnswer, RateLimited, StorageError, StorageFull
from memory.records.messages import ConversationId
from memory.stores.conversations import SqliteConversations
from memory.stores.schedule import SqliteIdle
from memory.stores.turns import SqliteJournal
from scheduler.kinds.idle import IdleOptions, IdleReset, IdleTimers
from tests.fakes import FixedClock
from tests.memory.kit import run, turn_end

LANE = "telegram:5"
MINUTE = 60
OPTIONS = IdleOptions()
Act = Callable[[ConversationId], Awaitable[object]]


class Acts:
    """What is done in silent conversations: kept, and it fails as often as told to."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.done: list[ConversationId] = []

    async def __call__(self, conversation: ConversationId) -> None:
        self.done.append(conversation)
        if self.failures:
            raise self.failures.pop(0)


class House:
    """A database with its conversations, a clock, and timers that look when told to."""

    def __init__(self, database: Database, clock: FixedClock) -> None:
        self.clock = clock
        self.store = SqliteIdle(database)
        self.conversations = SqliteConversations(database)
        self.busy: set[str] = set()
        self._journal = SqliteJournal(database)
        self._n = 0

    async def turn(self, lane: str = LANE) -> ConversationId:
        self._n += 1
        name = f"{lane}/{self._n}"
        conversation = await self.conversations.current(lane)
        await self._journal.submit(run(name, lane=lane))
        await self._journal.finish(run(name).run_id, turn_end(name, conversation))
        return conversation

    def timers(self, act: Act, options: IdleOptions = OPTIONS) -> IdleTimers:
        return IdleTimers(
            self.store, act, self.clock, options=options, busy=lambda lane: lane in self.busy
        )

    def reset(self, after_hours: float) -> IdleReset:
        return IdleReset(
            self.store,
            self.conversations.start_new,
            self.clock,
            after_hours=after_hours,
            busy=lambda lane: lane in self.busy,
        )


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
async def house(tmp_path: Path, clock: FixedClock) -> AsyncIterator[House]:
    async with Database.open(tmp_path / "bot.db", clock=clock, busy_timeout_s=0.2) as database:
        yield House(database, clock)


async def test_a_silent_conversation_is_worked_on_once(house: House) -> None:
    act = Acts()
    conversation = await house.turn()
    timers = house.timers(act)

    assert await timers.work_off() == 0
    house.clock.move(5 * MINUTE)
    assert await timers.work_off() == 1
    assert await timers.work_off() == 0

    assert act.done == [conversation]


async def test_a_closed_conversation_does_not_wait(house: House) -> None:
    act = Acts()
    conversation = await house.turn()

    await house.conversations.start_new(LANE)
    await house.timers(act).work_off()

    assert act.done == [conversation]


async def test_it_waits_while_a_turn_runs_there_and_others_do_not_wait(house: House) -> None:
    act = Acts()
    mine, other = await house.turn(), await house.turn("telegram:6")
    house.clock.move(5 * MINUTE)
    house.busy.add(LANE)
    timers = house.timers(act)

    await timers.work_off()
    before = list(act.done)
    house.busy.clear()
    await timers.work_off()

    assert before == [other]
    assert act.done == [other, mine]


async def test_a_message_that_comes_meanwhile_leaves_it_open(house: House) -> None:
    done = []

    async def act(conversation: ConversationId) -> None:
        done.append(conversation)
        if len(done) == 1:
            house.clock.move(1)
            await house.turn()

    conversation = await house.turn()
    house.clock.move(5 * MINUTE)
    timers = house.timers(act)
    await timers.work_off()
    house.clock.move(5 * MINUTE)

    await timers.work_off()

    assert done == [conversation, conversation]


async def test_who_speaks_while_another_is_worked_on_is_not_silent_any_more(house: House) -> None:
    done = []

    async def act(conversation: ConversationId) -> None:
        done.append(conversation)
        await house.turn("telegram:6")

    mine = await house.turn()
    house.clock.move(1)
    await house.turn("telegram:6")
    house.clock.move(6 * MINUTE)

    await house.timers(act).work_off()

    assert done == [mine]


@pytest.mark.case("ME-01")
async def test_failures_are_tried_again_after_longer_and_longer_pauses_and_then_given_up(
    house: House,
) -> None:
    act = Acts(*[BrokenAnswer("no JSON")] * 9)
    await house.turn()
    timers = house.timers(act)
    house.clock.move(5 * MINUTE)

    with capture_logs() as logs:
        await timers.work_off()
        for pause_min in (5, 30, 120, 24 * 60):
            house.clock.move(pause_min * MINUTE - 1)
            assert await timers.work_off() == 0
            house.clock.move(1)
            assert await timers.work_off() == 1
        house.clock.move(30 * 24 * 60 * MINUTE)
        assert await timers.work_off() == 0

    assert len(act.done) == 5
    assert [line["event"] for line in logs] == [*["idle.put_off"] * 4, "idle.given_up"]


async def test_a_pause_that_a_provider_wishes_for_is_kept_but_no_longer_than_a_day(
    house: House,
) -> None:
    hour, year = 3_600.0, 365 * 86_400.0
    act = Acts(RateLimited("wait", retry_after_s=hour), RateLimited("wait", retry_after_s=year))
    await house.turn()
    house.clock.move(5 * MINUTE)
    timers = house.timers(act)
    await timers.work_off()

    house.clock.move(59 * MINUTE)
    assert await timers.work_off() == 0
    house.clock.move(MINUTE)
    assert await timers.work_off() == 1
    house.clock.move(24 * 60 * MINUTE)
    assert await timers.work_off() == 1


async def test_what_breaks_unexpectedly_is_put_off_with_its_traceback_in_the_log(
    house: House,
) -> None:
    act = Acts(KeyError("oops"))
    mine = await house.turn()
    house.clock.move(1)
    other = await house.turn("telegram:6")
    house.clock.move(6 * MINUTE)

    with capture_logs() as logs:
        await house.timers(act).work_off()

    assert act.done == [mine, other]
    assert [line["event"] for line in logs] == ["idle.broke", "idle.put_off"]
    assert logs[0]["exc_info"]


async def test_what_takes_too_long_is_ended_and_put_off(house: House) -> None:
    async def act(conversation: ConversationId) -> None:
        await asyncio.Event().wait()

    await house.turn()
    house.clock.move(5 * MINUTE)

    with capture_logs() as logs:
        await house.timers(act, IdleOptions(act_s_max=0.0)).work_off()

    assert [line["event"] for line in logs] == ["idle.put_off"]


async def test_a_clock_that_was_set_back_by_a_year_delays_nothing(house: House) -> None:
    act = Acts()
    conversation = await house.turn()
    timers = house.timers(act)
    house.clock.move(-365 * 86_400)

    assert await timers.work_off() == 0
    house.clock.move(5 * MINUTE)
    await timers.work_off()

    assert act.done == [conversation]


async def test_a_kill_in_the_middle_leaves_it_to_the_next_process(
    tmp_path: Path, clock: FixedClock
) -> None:
    began = asyncio.Event()

    async def hangs(conversation: ConversationId) -> None:
        began.set()
        await asyncio.Event().wait()

    path, act = tmp_path / "bot.db", Acts()
    async with Database.open(path, clock=clock) as database:
        house = House(database, clock)
        conversation = await house.turn()
        clock.move(5 * MINUTE)
        async with house.timers(hangs):
            await asyncio.wait_for(began.wait(), 10)

    async with Database.open(path, clock=clock) as database:
        await House(database, clock).timers(act).work_off()

    assert act.done == [conversation]


async def test_it_looks_again_and_again_by_itself(house: House) -> None:
    seen = asyncio.Event()

    async def act(conversation: ConversationId) -> None:
        seen.set()
        house.clock.hold()

    await house.turn()

    async with house.timers(act):
        await asyncio.wait_for(seen.wait(), 10)

    assert house.clock.pauses[0] == 30.0
    assert len(house.clock.pauses) >= 5 * MINUTE / 30


async def test_trouble_with_storage_is_told_once_and_so_is_its_end(house: House) -> None:
    failures = [StorageFull("No space is left.")] * 3
    done = asyncio.Event()

    async def act(conversation: ConversationId) -> None:
        if failures:
            raise failures.pop()
        house.clock.hold()
        done.set()

    await house.turn()
    with capture_logs() as logs:
        async with house.timers(act):
            await asyncio.wait_for(done.wait(), 10)
            await asyncio.wait_for(house.clock.asleep.wait(), 10)

    assert [line["event"] for line in logs] == ["idle.trouble", "idle.trouble.over"]


async def test_storage_in_trouble_within_an_act_counts_for_no_failure(house: House) -> None:
    await house.turn()
    house.clock.move(5 * MINUTE)
    act = Acts(StorageFull("No space is left."))

    with pytest.raises(StorageError):
        await house.timers(act).work_off()

    (timer,) = await house.store.due(
        now_ms=int(house.clock.now().timestamp() * 1000), idle_ms=1, limit=1
    )
    assert timer.tries == 0


# --- a conversation that begins afresh ---------------------------------------------------------


async def test_after_long_silence_a_new_conversation_begins(house: House) -> None:
    old = await house.turn()
    reset = house.reset(8)
    house.clock.move(8 * 3_600 - 1)

    assert not await reset(LANE)
    house.clock.move(1)
    assert await reset(LANE)

    assert await house.conversations.current(LANE) != old
    assert not await reset(LANE)
    act = Acts()
    await house.timers(act).work_off()
    assert act.done == [old]


@pytest.mark.parametrize("after_hours", [0.0, 1_000.0])
async def test_it_goes_on_where_that_is_off_or_not_yet_due(
    house: House, after_hours: float
) -> None:
    old = await house.turn()
    house.clock.move(100 * 3_600)

    assert not await house.reset(after_hours)(LANE)

    assert await house.conversations.current(LANE) == old


async def test_what_runs_keeps_its_conversation(house: House) -> None:
    await house.turn()
    house.clock.move(100 * 3_600)
    house.busy.add(LANE)

    assert not await house.reset(8)(LANE)
    assert not await house.reset(8)("telegram:77")
