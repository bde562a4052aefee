"""Messages that are to read otherwise: before they are sent, after it, and over restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bot.channels.base import (
    Delivery,
    DeliveryRefused,
    EditOutcome,
    InDoubt,
    MessageGone,
    MessagePart,
    NotSent,
)
from bot.outbox.outbox import BACK_OFF_S, Outbox
from memory.database.connection import Database
from memory.records.messages import Address, OutboxId
from memory.records.rows import Button, NewMessage, OutboxState, OutPart, PartState
from memory.stores.outbox import SqliteOutbox
from tests.bot.dying import Dying
from tests.bot.kit import eventually
from tests.bot.test_outbox import ScriptedChannel
from tests.memory.kit import StillClock

LANE = "telegram:5"
BUTTONS = ((Button(label="Yes", data="ask:1"),),)
OTHER = "how it ended"

WRITES = ("plan", "mark", "postpone", "revise", "adopt", "revised")
"""Of the store: a process may die at each of them."""


class ShowingChannel(ScriptedChannel):
    """Keeps which messages have buttons; may be held at a point before a send or an edit."""

    def __init__(self) -> None:
        super().__init__()
        self.buttons: dict[str, bool] = {}
        self.lost: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = asyncio.Event()

    async def ready(self, address: Address) -> None:
        self.waiting.set()
        await self.gate.wait()

    async def send(self, address: Address, part: MessagePart) -> Delivery:
        done = await super().send(address, part)
        self.buttons[str(len(self.arrived))] = bool(part.buttons)
        return done

    async def edit(self, address: Address, message_id: str, part: MessagePart) -> EditOutcome:
        done = await super().edit(address, message_id, part)
        if self.messages[message_id] == part.source:
            self.buttons[message_id] = bool(part.buttons)
            if part.loses_buttons:
                self.lost.append(message_id)
        return done


class Asleep(StillClock):
    """Sleeps until it is woken."""

    def __init__(self) -> None:
        super().__init__()
        self.awake = asyncio.Event()
        self.sleeping = False

    async def sleep(self, seconds: float) -> None:
        self.sleeping = True
        await self.awake.wait()


@pytest.fixture
def store(database: Database) -> SqliteOutbox:
    return SqliteOutbox(database)


@pytest.fixture
def channel() -> ShowingChannel:
    return ShowingChannel()


@pytest.fixture
def run(store: SqliteOutbox, channel: ShowingChannel, clock: StillClock) -> Callable[..., Any]:
    """Opens an outbox, as a process would; leaving it is a stop."""

    @asynccontextmanager
    async def opened(over: Any = None) -> AsyncIterator[Outbox]:
        outbox = Outbox(over or store, {channel.name: channel}, clock=clock, chance=lambda: 1.0)
        async with outbox:
            await outbox.start()
            yield outbox

    return opened


async def idle(outbox: Outbox) -> None:
    async with asyncio.timeout(5):
        await outbox.idle()


async def card(outbox: Outbox, text: str = "shall I?") -> OutboxId:
    outbox_id = await outbox.post(NewMessage(lane=LANE, text=text, buttons=BUTTONS))
    await idle(outbox)
    return outbox_id


async def left(store: SqliteOutbox, outbox_id: OutboxId) -> tuple[Any, ...]:
    row = await store.row(outbox_id)
    assert row is not None
    return (row.text, row.buttons, row.revision)


# --- after it was sent ---------------------------------------------------------------------------


async def test_a_sent_message_is_edited_and_loses_its_buttons(
    run: Any, store: SqliteOutbox, channel: ShowingChannel
) -> None:
    async with run() as outbox:
        outbox_id = await card(outbox)
        had = dict(channel.buttons)
        await outbox.revise(outbox_id, OTHER)
        assert outbox.busy(LANE)
        assert outbox.lanes() == [LANE]
        await idle(outbox)

    assert had == {"1": True}
    assert (channel.messages, channel.buttons) == ({"1": OTHER}, {"1": False})
    assert channel.lost == ["1"]
    assert await left(store, outbox_id) == (OTHER, (), None)


async def test_with_a_blank_text_the_buttons_alone_go(run: Any, channel: ShowingChannel) -> None:
    async with run() as outbox:
        outbox_id = await card(outbox)
        await outbox.revise(outbox_id, "")
        await idle(outbox)

    assert (channel.messages, channel.buttons) == ({"1": "shall I?"}, {"1": False})


NOT_SENT, DOUBT, NO = (
    NotSent(reason="net"),
    InDoubt(reason="time"),
    DeliveryRefused(reason="blocked"),
)


@pytest.mark.parametrize(
    ("script", "pauses_s"),
    [
        ([NOT_SENT] * 3, sum(BACK_OFF_S[:3])),
        ([DOUBT, DOUBT], sum(BACK_OFF_S[:2])),
        ([NotSent(reason="flood", retry_after_s=33)], 33),
    ],
    ids=["network", "doubt", "flood"],
)
async def test_an_edit_is_tried_until_it_went_well(
    run: Any,
    store: SqliteOutbox,
    channel: ShowingChannel,
    clock: StillClock,
    script: list[EditOutcome],
    pauses_s: float,
) -> None:
    async with run() as outbox:
        outbox_id = await card(outbox)
        channel.script = [*script]
        await outbox.revise(outbox_id, OTHER)
        await idle(outbox)

    assert channel.messages == {"1": OTHER}
    assert clock.monotonic() == pauses_s
    assert await left(store, outbox_id) == (OTHER, (), None)


@pytest.mark.parametrize("outcome", [MessageGone(), NO], ids=["gone", "refused"])
async def test_a_message_that_is_gone_stays_away(
    run: Any, store: SqliteOutbox, channel: ShowingChannel, outcome: EditOutcome
) -> None:
    async with run() as outbox:
        outbox_id = await card(outbox)
        channel.script = [outcome]
        await outbox.revise(outbox_id, OTHER)
        await idle(outbox)
    async with run() as outbox:
        await idle(outbox)

    assert channel.arrived == ["shall I?"]
    assert channel.tries == ["shall I?", f"edit {OTHER}"]
    assert await left(store, outbox_id) == (OTHER, (), None)


async def test_while_an_edit_waits_other_messages_go_out_and_the_newest_wish_counts(
    store: SqliteOutbox, channel: ShowingChannel
) -> None:
    clock = Asleep()
    async with Outbox(store, {channel.name: channel}, clock=clock) as outbox:
        await outbox.start()
        outbox_id = await card(outbox)
        channel.script = [NOT_SENT]
        await outbox.revise(outbox_id, "first wish")
        await eventually(lambda: len(channel.tries) == 2)
        await outbox.say(NewMessage(lane=LANE, text="something else"))
        await eventually(lambda: "something else" in channel.arrived)
        await outbox.revise(outbox_id, OTHER)
        clock.awake.set()
        await idle(outbox)

    assert channel.messages == {"1": OTHER, "2": "something else"}


async def test_of_several_messages_the_last_ones_are_rewritten(
    run: Any, channel: ShowingChannel
) -> None:
    async with run() as outbox:
        outbox_id = await card(outbox, "a\n\nb\n\nc")
        assert channel.buttons == {"1": False, "2": False, "3": True}
        await outbox.revise(outbox_id, "x\n\ny")
        await idle(outbox)

    assert channel.messages == {"1": "a", "2": "x", "3": "y"}
    assert not any(channel.buttons.values())
    assert channel.lost == ["3"]


async def test_what_finds_no_place_in_the_message_follows_as_one_of_its_own_and_once(
    run: Any, channel: ShowingChannel
) -> None:
    async with run() as outbox:
        outbox_id = await card(outbox)
        await outbox.revise(outbox_id, "x\n\ny\n\nz")
        await idle(outbox)
    async with run() as outbox:
        await idle(outbox)

    assert next(iter(channel.messages.values())) == "x"
    assert "".join(channel.arrived[1:]) == "yz"


# --- before it was sent --------------------------------------------------------------------------


async def test_what_waits_for_its_turn_goes_out_as_it_is_to_read(
    run: Any, store: SqliteOutbox, channel: ShowingChannel
) -> None:
    channel.gate.clear()
    async with run() as outbox:
        await outbox.say(NewMessage(lane=LANE, text="before it"))
        outbox_id = await outbox.post(NewMessage(lane=LANE, text="shall I?", buttons=BUTTONS))
        await outbox.revise(outbox_id, OTHER)
        channel.gate.set()
        await idle(outbox)

    assert channel.tries == ["before it", OTHER]
    assert channel.buttons == {"1": False, "2": False}
    assert await left(store, outbox_id) == (OTHER, (), None)


async def test_a_message_in_doubt_is_settled_first_and_then_edited(
    run: Any, store: SqliteOutbox, channel: ShowingChannel
) -> None:
    outbox_id = await store.add(NewMessage(lane=LANE, text="shall I?", buttons=BUTTONS))
    part = OutPart(n=0, markup="<shall I?>", source="shall I?", state=PartState.SENDING)
    await store.plan(outbox_id, [part])
    await store.revise(outbox_id, OTHER)

    async with run() as outbox:
        await idle(outbox)

    assert channel.tries == ["shall I?\n\n(may be repeated)", f"edit {OTHER}"]
    assert channel.buttons == {"1": False}


async def test_a_message_in_half_of_its_parts_is_completed_and_then_edited(
    run: Any, store: SqliteOutbox, channel: ShowingChannel
) -> None:
    outbox_id = await store.add(NewMessage(lane=LANE, text="a\n\nb", buttons=BUTTONS))
    sent = OutPart(n=0, markup="<a>", source="a", state=PartState.SENT, message_id="9")
    await store.plan(outbox_id, [sent, OutPart(n=1, markup="<b>", source="b")])
    await store.revise(outbox_id, OTHER)

    async with run() as outbox:
        await idle(outbox)

    assert channel.messages == {"1": OTHER}
    assert await left(store, outbox_id) == (OTHER, (), None)


# --- a process that ends -------------------------------------------------------------------------


@pytest.mark.parametrize("script", [[], [NOT_SENT], [None, NOT_SENT], [None, DOUBT]], ids=repr)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 8))
async def test_a_death_at_any_write_ends_with_the_outcome_once_it_was_wished(
    run: Any,
    store: SqliteOutbox,
    channel: ShowingChannel,
    script: list[Any],
    after: bool,
    at: int,
) -> None:
    channel.script = [*script]
    dying = Dying(store, at=at, after=after, writes=WRITES)

    async def live(outbox: Outbox) -> None:
        outbox_id = await outbox.post(NewMessage(lane=LANE, text="shall I?", buttons=BUTTONS))
        await outbox.idle()
        await outbox.revise(outbox_id, OTHER)
        await outbox.idle()

    async with run(dying) as outbox:
        living = asyncio.create_task(live(outbox))
        died = asyncio.create_task(dying.dead.wait())
        await asyncio.wait([living, died], return_when=asyncio.FIRST_COMPLETED, timeout=5)
        for task in (living, died):
            task.cancel()
        await asyncio.gather(living, died, return_exceptions=True)
    async with run() as outbox:
        await outbox.revise(OutboxId(1), OTHER)  # whoever wished it does so again
        await idle(outbox)

    row = await store.row(OutboxId(1))
    assert row is not None
    newest = str(len(channel.arrived))
    # Two sends in doubt: nobody knows the id of a message that could be edited.
    assert row.state is OutboxState.UNKNOWN or (
        channel.messages[newest],
        channel.buttons[newest],
    ) == (
        OTHER,
        False,
    )
    # The death is a doubt as well, and each doubt is worth one more copy.
    assert len(channel.arrived) <= 2 + script.count(DOUBT)
    assert await left(store, OutboxId(1)) == (OTHER, (), None)
