"""What a person sees while a turn runs: typing, one message that grows, a status line."""

from __future__ import annotations

import time
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from agent.tools.groups.agents import SUBAGENT_STATUS
from bot.lab.faults import hold
from bot.lab.telegram import flood
from bot.outbox.drafts import STREAM_AFTER_S
from tests.bot.kit import OWNER, Rig, SlowTool, eventually

LONG = "This answer takes a while. " * 30
LONG_SHOWN = LONG.strip()
MOMENTS = 4
BEFORE = "I look it up, which may take quite a moment, for the shelves are long. " * 4 + "So wait."


@pytest.fixture
def slow_model(rig: Rig) -> None:
    """An answer of LONG takes about three seconds; its first 200 characters are held back by a
    guard, so they are seen after less than one."""
    rig.set(telegram__stream_every_s=0.2, telegram__stream_every_group_s=0.2)
    rig.model.chunk_size = 20
    rig.model.chunk_delay_s = 0.07


def edits(rig: Rig) -> list[Any]:
    return rig.telegram.calls("editMessageText")


# --- streaming ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("slow_model")
async def test_a_streamed_reply_is_one_message_that_grows(rig: Rig) -> None:
    rig.model.say(LONG)
    async with rig.running(OWNER) as bot:
        began = time.monotonic()
        rig.says("tell me")
        await eventually(partial(rig.wrote, 1))
        assert time.monotonic() - began >= STREAM_AFTER_S
        assert rig.outbox() == ["draft"]
        await rig.reads(LONG_SHOWN)
        await rig.quiet(bot)

    [sent] = rig.telegram.sent(OWNER)
    assert LONG.startswith(sent["text"])
    assert len(sent["text"]) >= 40
    assert rig.telegram.actions(OWNER) == ["typing"]
    assert (rig.outbox(), rig.parts()) == (["sent"], ["sent"])
    times = [entry.at for entry in edits(rig)]
    # The last one completes the reply and waits for nothing.
    gaps = [later - sooner for sooner, later in pairwise(times[:-1])]
    assert gaps
    assert min(gaps) >= 0.19


async def test_a_turn_of_a_moment_shows_no_typing_and_a_longer_one_does(rig: Rig) -> None:
    for _ in range(MOMENTS):
        rig.model.say("at once")
    rig.model.say("later", wait_s=0.6)
    shown = []
    async with rig.running(OWNER) as bot:
        for number in range(MOMENTS):
            before = len(rig.telegram.actions())
            rig.says("one")
            await rig.reads(*["at once"] * (number + 1))
            await rig.quiet(bot)
            shown.append(len(rig.telegram.actions()) - before)
        before = len(rig.telegram.actions())
        rig.says("two")
        await rig.reads(*["at once"] * MOMENTS, "later")
        await rig.quiet(bot)

    assert 0 in shown, "a busy machine may take its time for some of them"
    assert rig.telegram.actions()[before:] == ["typing"]
    assert edits(rig) == []


@pytest.mark.usefixtures("slow_model")
async def test_without_streaming_the_whole_comes_at_the_end(rig: Rig) -> None:
    rig.set(telegram__streaming="false")
    rig.model.say(LONG)
    async with rig.running(OWNER) as bot:
        rig.says("tell me")
        await rig.reads(LONG_SHOWN)
        await rig.quiet(bot)

    assert edits(rig) == []
    assert set(rig.telegram.actions()) == {"typing"}


# --- trouble -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("slow_model")
async def test_a_pause_that_telegram_asks_for_stops_edits_for_so_long(rig: Rig) -> None:
    rig.model.say(LONG)
    fault = rig.telegram.fault("editMessageText", action=flood(1))
    async with rig.running(OWNER) as bot:
        rig.says("tell me")
        await rig.reads(LONG_SHOWN)
        await rig.quiet(bot)

    refused, following = edits(rig)[:2]
    assert fault.hits == 1
    assert following.at - refused.at >= 0.95
    assert len(rig.telegram.sent(OWNER)) == 1


@pytest.mark.usefixtures("slow_model")
@pytest.mark.case("CH-05")
async def test_edits_whose_fate_is_unknown_are_repeated_and_the_reply_stands_once(
    rig: Rig,
) -> None:
    rig.set(telegram__send_timeout_s=0.3)
    rig.model.say(LONG)
    rig.telegram.fault("editMessageText", action=hold(after=True), times=2)
    async with rig.running(OWNER, hurry=20) as bot:
        rig.says("tell me")
        await eventually(partial(rig.wrote, 1))
        rig.telegram.fault("editMessageText", action=hold(after=True), when={"text": LONG_SHOWN})
        await rig.reads(LONG_SHOWN)
        await eventually(lambda: rig.outbox() == ["sent"])
        await rig.quiet(bot)

    assert len(rig.telegram.sent(OWNER)) == 1
    rig.telegram.release()


# --- kills -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("slow_model")
async def test_after_a_kill_in_mid_stream_the_same_message_is_completed(rig: Rig) -> None:
    rig.model.say(LONG)
    async with rig.running(OWNER, killed=True):
        rig.says("tell me")
        await eventually(
            lambda: rig.wrote(1) and rig.rows("select 1 from outbox_parts where message_id <> ''")
        )

    rig.model.say(LONG)
    async with rig.running() as bot:
        await rig.reads(LONG_SHOWN)
        await rig.quiet(bot)

    assert len(rig.telegram.sent(OWNER)) == 1
    assert rig.inbox() == ["replied"]


# --- the status line ---------------------------------------------------------------------------


@pytest.mark.case("PR-05")
async def test_a_status_line_stands_while_a_tool_runs_and_is_gone_at_the_end(
    rig: Rig, slow_tool: SlowTool
) -> None:
    rig.set(telegram__stream_every_s=0.1)
    rig.model.call("wait_here", text=BEFORE)
    rig.model.say("Here it is.")
    async with rig.running(OWNER) as bot:
        rig.says("find it")
        await slow_tool.running.wait()
        await eventually(lambda: rig.texts() and rig.texts()[0].endswith("working …"))
        slow_tool.go.set()
        await rig.reads(f"{BEFORE}\n\nHere it is.")
        await rig.quiet(bot)

    assert len(rig.telegram.sent(OWNER)) == 1
    assert "wait_here" not in str([entry.params for entry in rig.telegram.calls()])


async def test_a_turn_that_was_stopped_leaves_no_status_line(rig: Rig, slow_tool: SlowTool) -> None:
    rig.set(telegram__stream_every_s=0.1)
    rig.model.call("wait_here", text=BEFORE)
    async with rig.running(OWNER) as bot:
        rig.says("find it")
        await slow_tool.running.wait()
        await eventually(lambda: rig.texts() and rig.texts()[0].endswith("working …"))
        rig.says("/stop")
        await rig.reads(BEFORE, "Stopped.")
        await rig.quiet(bot)

    assert rig.outbox() == ["sent", "sent"]


@pytest.mark.case("PR-05")
async def test_while_a_subagent_works_the_status_line_stands(rig: Rig) -> None:
    rig.set(telegram__stream_every_s=0.1)
    rig.model.call("subagent", {"task": "Find a berth"}, text=BEFORE)
    rig.model.fault("chat", action=hold(after=False), skip=1)
    async with rig.running(OWNER) as bot:
        rig.says("find it")
        waits = "select count(*) from turns where status = 'suspended'"
        await eventually(lambda: rig.rows(waits) == [(1,)])
        await eventually(lambda: rig.texts() and rig.texts()[0].endswith(SUBAGENT_STATUS))
        rig.model.say("One in the north.")
        rig.model.say("Here it is.")
        rig.model.release()
        await rig.reads(f"{BEFORE}\n\nHere it is.")
        await rig.quiet(bot)

    assert len(rig.telegram.sent(OWNER)) == 1


async def test_a_turn_that_fails_in_mid_stream_says_so_in_the_same_message(rig: Rig) -> None:
    rig.set(telegram__stream_every_s=0.1)
    rig.model.chunk_size, rig.model.chunk_delay_s = 20, 0.07
    rig.model.say(LONG)
    async with rig.running(OWNER, hurry=50) as bot:
        rig.model.named_fault("stream_reset", times=None, chunks=25)
        rig.says("tell me")
        await eventually(lambda: rig.outbox() == ["sent"], timeout_s=30)
        await rig.quiet(bot)

    assert len(rig.telegram.sent(OWNER)) == 1
    assert rig.inbox() == ["failed"]
