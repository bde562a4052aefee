"""Each state of a reply on its way, over the real store: sent once, or twice with the mark."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.channels.base import (
    Channel,
    Delivery,
    DeliveryRefused,
    EditOutcome,
    Ignored,
    InDoubt,
    MessageGone,
    MessagePart,
    NotSent,
    SentMessage,
)
from bot.outbox.outbox import BACK_OFF_S, REPEATED, Outbox
from memory.database.connection import Database
from memory.records.errors import StorageFull
from memory.records.messages import Address, OutboxId, RunId
from memory.records.rows import NewMessage, OutboxState, OutPart, PartState
from memory.stores.outbox import SqliteOutbox
from tests.bot.dying import Dying
from tests.bot.kit import eventually
from tests.memory.kit import StillClock

LANE = "telegram:5"

WRITES = ("plan", "mark", "postpone")
"""Of the store: a process may die at each of them."""


class ScriptedChannel(Channel):
    """Sends as it was told to; keeps what arrived. A text is cut at each blank line."""

    name = "telegram"

    def __init__(self) -> None:
        self.script: list[Delivery | EditOutcome] = []
        self.arrived: list[str] = []
        self.messages: dict[str, str] = {}
        self.tries: list[str] = []
        self.ready_calls = 0

    def stream_every(self, address: Address) -> float | None:
        return None

    def understand(self, payload: str) -> Ignored:
        return Ignored(reason="not asked")

    def parts(self, text: str) -> Sequence[MessagePart]:
        return [MessagePart(markup=f"<{one}>", source=one) for one in text.split("\n\n") if one]

    async def ready(self, address: Address) -> None:
        self.ready_calls += 1

    async def send(self, address: Address, part: MessagePart) -> Delivery:
        self.tries.append(part.source)
        outcome = self.script.pop(0) if self.script else None
        assert not isinstance(outcome, MessageGone)
        if outcome is None or isinstance(outcome, InDoubt):  # in doubt: it did arrive
            self.arrived.append(part.source)
            self.messages[str(len(self.arrived))] = part.source
        return outcome or SentMessage(message_id=str(len(self.arrived)))

    async def edit(self, address: Address, message_id: str, part: MessagePart) -> EditOutcome:
        self.tries.append(f"edit {part.source}")
        outcome = self.script.pop(0) if self.script else None
        if outcome is None:
            self.messages[message_id] = part.source
        return outcome or SentMessage(message_id=message_id)


@pytest.fixture
def store(database: Database) -> SqliteOutbox:
    return SqliteOutbox(database)


@pytest.fixture
def channel() -> ScriptedChannel:
    return ScriptedChannel()


@pytest.fixture
def run(store: SqliteOutbox, channel: ScriptedChannel, clock: StillClock) -> Callable[..., Any]:
    """Opens an outbox, as a process would; leaving it is a stop."""

    @asynccontextmanager
    async def opened(over: Any = None) -> AsyncIterator[Outbox]:
        outbox = Outbox(over or store, {channel.name: channel}, clock=clock, chance=lambda: 1.0)
        async with outbox:
            await outbox.start()
            yield outbox

    return opened


async def states(store: SqliteOutbox, number: int = 1) -> list[str]:
    row = await store.row(OutboxId(number))
    assert row is not None
    return [part.state.value for part in row.parts]


async def state(store: SqliteOutbox, number: int = 1) -> OutboxState:
    row = await store.row(OutboxId(number))
    assert row is not None
    return row.state


async def say(outbox: Outbox, text: str, lane: str = LANE) -> None:
    await outbox.say(NewMessage(lane=lane, text=text))
    async with asyncio.timeout(5):
        await outbox.idle()


# --- every outcome of a send -------------------------------------------------------------------


NOT_SENT, DOUBT, NO = (
    NotSent(reason="net"),
    InDoubt(reason="time"),
    DeliveryRefused(reason="blocked"),
)


@pytest.mark.case("CH-05")
@pytest.mark.parametrize(
    ("script", "arrived", "end"),
    [
        ([NOT_SENT] * 7, ["x"], OutboxState.SENT),
        ([DOUBT], ["x", "x" + REPEATED], OutboxState.SENT),
        ([DOUBT, DOUBT], ["x", "x" + REPEATED, "x" + REPEATED], OutboxState.SENT),
        ([DOUBT, NOT_SENT, NOT_SENT], ["x", "x" + REPEATED], OutboxState.SENT),
        ([DOUBT, NOT_SENT, DOUBT], ["x", *["x" + REPEATED] * 2], OutboxState.SENT),
        ([NOT_SENT, DOUBT], ["x", "x" + REPEATED], OutboxState.SENT),
        ([NO], [], OutboxState.FAILED),
        ([NOT_SENT, NO], [], OutboxState.FAILED),
        ([DOUBT, NO], ["x"], OutboxState.UNKNOWN),
    ],
)
async def test_each_way_of_a_single_part(
    run: Any,
    store: SqliteOutbox,
    channel: ScriptedChannel,
    script: list[Delivery],
    arrived: list[str],
    end: OutboxState,
) -> None:
    channel.script = [*script]

    async with run() as outbox:
        await say(outbox, "x")
    async with run() as outbox:
        await outbox.idle()

    assert channel.arrived == arrived
    assert await state(store) is end


@pytest.mark.case("CH-09")
@pytest.mark.parametrize("trouble", [NOT_SENT, DOUBT, NO])
async def test_trouble_with_the_second_part_leaves_the_first_alone(
    run: Any, store: SqliteOutbox, channel: ScriptedChannel, trouble: Delivery
) -> None:
    channel.script = [SentMessage(message_id="1"), trouble]

    async with run() as outbox:
        await say(outbox, "one\n\ntwo\n\nthree")

    assert channel.tries.count("one") == 1
    if trouble is NO:
        assert channel.tries == ["one", "two"]
        assert await states(store) == ["sent", "failed", "failed"]
    else:
        assert channel.tries[-1] == "three"
        assert await states(store) == ["sent", "sent", "sent"]


async def test_pauses_grow_and_are_kept(
    run: Any, store: SqliteOutbox, channel: ScriptedChannel, clock: StillClock
) -> None:
    channel.script = [*[NOT_SENT] * 7, NotSent(reason="flood", retry_after_s=33)]

    with capture_logs() as logs:
        async with run() as outbox:
            await say(outbox, "x")

    assert clock.monotonic() == sum(BACK_OFF_S) + BACK_OFF_S[-1] + 33
    told = [entry for entry in logs if entry["event"] == "outbox.again"]
    assert [entry["log_level"] for entry in told] == ["warning"] + ["debug"] * 7


async def test_a_wished_pause_holds_over_a_restart(
    store: SqliteOutbox, channel: ScriptedChannel, clock: StillClock
) -> None:
    class Sleepless(StillClock):
        """Never wakes: the process ends during the pause."""

        async def sleep(self, seconds: float) -> None:
            await asyncio.Event().wait()

    channel.script = [NotSent(reason="flood", retry_after_s=120)]
    sleepless = Sleepless()
    async with Outbox(store, {"telegram": channel}, clock=sleepless) as outbox:
        await outbox.start()
        await outbox.say(NewMessage(lane=LANE, text="x"))
        await eventually(lambda: store.row(OutboxId(1)))
        await _until_postponed(store)
    clock.move(20)

    async with Outbox(store, {"telegram": channel}, clock=clock) as outbox:
        await outbox.start()
        await outbox.idle()

    assert channel.arrived == ["x"]
    assert clock.monotonic() == 120


async def _until_postponed(store: SqliteOutbox) -> None:
    async def postponed() -> bool:
        row = await store.row(OutboxId(1))
        return row is not None and row.not_before_ms > 0

    await eventually(postponed)


# --- a process that dies -----------------------------------------------------------------------


@pytest.mark.case("CH-05")
@pytest.mark.parametrize("script", [[], [NOT_SENT], [DOUBT], [DOUBT, NOT_SENT]], ids=repr)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 9))
async def test_a_death_at_any_write_loses_nothing_and_repeats_each_doubt_at_most_once(
    run: Any,
    store: SqliteOutbox,
    channel: ScriptedChannel,
    script: list[Delivery],
    after: bool,
    at: int,
) -> None:
    channel.script = [*script]
    dying = Dying(store, at=at, after=after, writes=WRITES)

    async with run(dying) as outbox:
        await outbox.say(NewMessage(lane=LANE, text="one\n\ntwo"))
        ended = asyncio.create_task(outbox.idle())
        died = asyncio.create_task(dying.dead.wait())
        await asyncio.wait([ended, died], return_when=asyncio.FIRST_COMPLETED)
        died.cancel()
        ended.cancel()
    for _ in range(3):
        async with run() as outbox:
            async with asyncio.timeout(5):
                await outbox.idle()

    for text in ("one", "two"):
        assert channel.arrived.count(text) <= 1
        # Each doubt, the death among them, is worth one more copy at the most.
        assert channel.arrived.count(text + REPEATED) <= script.count(DOUBT) + 1
        assert text in channel.arrived or text + REPEATED in channel.arrived
    order = [text.removesuffix(REPEATED) for text in channel.arrived]
    assert order == sorted(order), "one before two"
    assert await state(store) in {OutboxState.SENT, OutboxState.UNKNOWN}


@pytest.mark.parametrize(
    ("left", "arrived", "end"),
    [
        (PartState.READY, ["x"], OutboxState.SENT),
        (PartState.SENDING, ["x" + REPEATED], OutboxState.SENT),
        (PartState.DOUBTFUL, ["x" + REPEATED], OutboxState.SENT),
        (PartState.RESENDING, ["x" + REPEATED], OutboxState.SENT),
    ],
)
async def test_what_a_former_process_left_is_taken_up_where_it_stood(
    run: Any,
    store: SqliteOutbox,
    channel: ScriptedChannel,
    left: PartState,
    arrived: list[str],
    end: OutboxState,
) -> None:
    number = await store.add(NewMessage(lane=LANE, text="x"))
    await store.plan(number, [OutPart(n=0, markup="<x>", source="x", state=left)])

    async with run() as outbox:
        await outbox.idle()

    assert channel.arrived == arrived
    assert await state(store) is end


# --- streamed rows -----------------------------------------------------------------------------


async def streamed(store: SqliteOutbox, database: Database, part: OutPart, text: str) -> None:
    """A draft of a run, shown as `part` says, completed by the reply `text`."""
    row = await store.open_draft(RunId("r1"), LANE)
    await store.mark(row.id, part)
    await database.write(
        lambda c: c.execute("update outbox set text = ?, state = 'ready'", (text,)).rowcount
    )


@pytest.mark.parametrize(
    ("script", "tries"),
    [
        ([], ["edit x"]),
        ([DOUBT, NotSent(reason="flood", retry_after_s=3)], ["edit x"] * 3),
        ([MessageGone()], ["edit x", "x"]),
        ([NO], ["edit x"]),
    ],
)
async def test_a_streamed_message_is_completed_by_edits(
    run: Any,
    store: SqliteOutbox,
    database: Database,
    channel: ScriptedChannel,
    script: list[EditOutcome],
    tries: list[str],
) -> None:
    await streamed(store, database, OutPart(n=0, message_id="77"), "x")
    channel.script = [*script]

    async with run() as outbox:
        await outbox.idle()

    assert channel.tries == tries
    assert await state(store) is (OutboxState.FAILED if script == [NO] else OutboxState.SENT)


@pytest.mark.parametrize(
    ("left", "tries"),
    [
        (PartState.SENDING, ["x" + REPEATED]),
        (PartState.DOUBTFUL, ["x" + REPEATED]),
        (PartState.READY, ["x"]),
    ],
)
async def test_a_draft_that_was_never_known_to_be_shown_is_sent(
    run: Any,
    store: SqliteOutbox,
    database: Database,
    channel: ScriptedChannel,
    left: PartState,
    tries: list[str],
) -> None:
    await streamed(store, database, OutPart(n=0, state=left), "x")

    async with run() as outbox:
        await outbox.idle()

    assert channel.tries == tries


async def test_a_streamed_reply_without_words_leaves_what_was_shown(
    run: Any, store: SqliteOutbox, database: Database, channel: ScriptedChannel
) -> None:
    await streamed(store, database, OutPart(n=0, message_id="77"), "")

    async with run() as outbox:
        await outbox.idle()

    assert channel.tries == []
    assert await state(store) is OutboxState.SENT


# --- order, storage, stopping ------------------------------------------------------------------


async def test_rows_of_a_lane_go_out_in_order_and_lanes_do_not_wait_for_each_other(
    run: Any, channel: ScriptedChannel, clock: StillClock
) -> None:
    hold = asyncio.Event()
    send = channel.send

    async def slow(address: Address, part: MessagePart) -> Delivery:
        if part.source == "a1":
            await hold.wait()
        return await send(address, part)

    channel.send = slow  # type: ignore[method-assign]
    async with run() as outbox:
        for text in ("a1", "a2", "a3"):
            await outbox.say(NewMessage(lane="telegram:1", text=text))
        await outbox.say(NewMessage(lane="telegram:2", text="b1"))
        await eventually(lambda: channel.arrived == ["b1"] and outbox.waiting() == 3)
        hold.set()
        await outbox.idle()

    assert channel.arrived == ["b1", "a1", "a2", "a3"]


async def test_a_row_that_is_handed_over_twice_goes_out_once(
    run: Any, store: SqliteOutbox, channel: ScriptedChannel
) -> None:
    number = await store.add(NewMessage(lane=LANE, text="x"))

    async with run() as outbox:
        outbox.deliver([(LANE, number), (LANE, number)])
        await outbox.idle()

    assert channel.arrived == ["x"]


@pytest.mark.parametrize("method", ["row", "plan", "mark", "postpone"])
async def test_a_full_disk_delays_and_never_makes_a_known_send_doubtful(
    run: Any, store: SqliteOutbox, channel: ScriptedChannel, method: str
) -> None:
    failures = [4]
    real = getattr(store, method)

    async def full(*arguments: Any, **named: Any) -> Any:
        if failures[0]:
            failures[0] -= 1
            raise StorageFull("The disk is full.")
        return await real(*arguments, **named)

    setattr(store, method, full)
    channel.script = [NOT_SENT]
    async with run() as outbox:
        await say(outbox, "x")

    assert channel.arrived == ["x"]
    assert failures[0] < 4
    assert await state(store) is OutboxState.SENT


async def test_a_fault_of_ours_ends_one_delivery_and_nothing_else(
    run: Any, store: SqliteOutbox, channel: ScriptedChannel
) -> None:
    send, faults = channel.send, [True]

    async def broken(address: Address, part: MessagePart) -> Delivery:
        if part.source == "a1" and faults:
            faults.pop()
            raise ZeroDivisionError("nobody foresaw this")
        return await send(address, part)

    channel.send = broken  # type: ignore[method-assign]
    async with run() as outbox:
        for text in ("a1", "a2"):
            await outbox.say(NewMessage(lane=LANE, text=text))
        await outbox.say(NewMessage(lane="telegram:2", text="b1"))
        await outbox.idle()

        assert sorted(channel.arrived) == ["a2", "b1"]
        assert await store.counts() == {"sent": 2, "ready": 1}
        await outbox.try_again()
        await outbox.idle()

    assert channel.arrived[2] == f"a1{REPEATED}"
    assert await store.counts() == {"sent": 3}


async def test_a_stop_waits_for_what_is_on_its_way_and_keeps_the_rest(
    run: Any, store: SqliteOutbox, channel: ScriptedChannel
) -> None:
    hold = asyncio.Event()
    send = channel.send

    async def slow(address: Address, part: MessagePart) -> Delivery:
        await hold.wait()
        return await send(address, part)

    channel.send = slow  # type: ignore[method-assign]
    async with run() as outbox:
        for text in ("one", "two"):
            await outbox.say(NewMessage(lane=LANE, text=text))
        await eventually(lambda: states_are(store, ["sending"]))
        stopping = asyncio.create_task(outbox.stop(5))
        await asyncio.sleep(0)
        hold.set()
        await stopping
    assert channel.arrived == ["one"]

    async with run() as outbox:
        await outbox.idle()

    assert channel.arrived == ["one", "two"]


async def states_are(store: SqliteOutbox, wanted: list[str]) -> bool:
    return await states(store) == wanted


async def test_a_row_of_a_channel_that_is_not_configured_waits(
    run: Any, store: SqliteOutbox, channel: ScriptedChannel
) -> None:
    async with run() as outbox:
        await say(outbox, "x", lane="slack:5")

    assert await state(store) is OutboxState.READY
    assert channel.arrived == []


# --- several streamed messages -----------------------------------------------------------------


class Removing(ScriptedChannel):
    """Takes messages away, too."""

    async def remove(self, address: Address, message_id: str) -> EditOutcome:
        self.tries.append(f"remove {message_id}")
        outcome = self.script.pop(0) if self.script else None
        return outcome or SentMessage(message_id=message_id)


BEGUN = (OutPart(n=0, message_id="77"), OutPart(n=1, message_id="78"))


@pytest.mark.parametrize(
    ("text", "script", "tries"),
    [
        ("x\n\ny", [], ["edit x", "edit y"]),
        ("x\n\ny\n\nz", [], ["edit x", "edit y", "z"]),
        ("x", [], ["edit x", "remove 78"]),
        ("x", [SentMessage(message_id="77"), MessageGone()], ["edit x", "remove 78"]),
        ("x", [SentMessage(message_id="77"), NO], ["edit x", "remove 78"]),
        (
            "x",
            [SentMessage(message_id="77"), NotSent(reason="flood", retry_after_s=3), DOUBT],
            ["edit x", *["remove 78"] * 3],
        ),
    ],
)
async def test_several_streamed_messages_become_the_reply_and_one_too_many_goes(
    store: SqliteOutbox,
    database: Database,
    clock: StillClock,
    text: str,
    script: list[EditOutcome],
    tries: list[str],
) -> None:
    channel = Removing()
    channel.script = [*script]
    for part in BEGUN:
        await streamed(store, database, part, text)

    async with Outbox(store, {channel.name: channel}, clock=clock, chance=lambda: 1.0) as outbox:
        await outbox.start()
        await outbox.idle()

    assert channel.tries == tries
    assert await state(store) is OutboxState.SENT


async def test_a_further_message_whose_fate_a_kill_left_open_comes_once_more_with_the_mark(
    run: Any, store: SqliteOutbox, database: Database, channel: ScriptedChannel
) -> None:
    for part in (BEGUN[0], OutPart(n=1, state=PartState.SENDING)):
        await streamed(store, database, part, "x\n\ny")

    async with run() as outbox:
        await outbox.idle()

    assert channel.tries == ["edit x", "y" + REPEATED]
    assert await state(store) is OutboxState.SENT
