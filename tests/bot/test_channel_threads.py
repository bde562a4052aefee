"""A channel of Slack, at whose root people type what is about its threads as well."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.channels.base import (
    around,
    aside_to,
    chat_of,
    is_for_all,
    is_root,
    reader_of,
    threads_of,
)
from bot.markup.command_text import NAMES
from memory.records.messages import Address, IncomingMessage
from tests.bot.kit import eventually
from tests.bot.slack_kit import ANN, BOB, CHANNEL, US, SlackRig, slack_rigged


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[SlackRig]:
    async with slack_rigged(tmp_path) as made:
        yield made


async def two_threads(rig: SlackRig) -> None:
    """The owner and a member are each being answered in a thread of their own."""
    rig.model.say("late", wait_s=60)
    rig.model.say("late", wait_s=60)
    rig.writes(f"<@{US}> one", channel=CHANNEL)
    await eventually(lambda: len(rig.model.requests) == 1)
    rig.writes(f"<@{US}> two", by=BOB, channel=CHANNEL)
    await eventually(lambda: len(rig.model.requests) == 2)


async def test_the_owners_stop_at_the_root_ends_what_is_written_in_all_threads(
    rig: SlackRig,
) -> None:
    async with rig.serving_slack(ANN, BOB, chats=(CHANNEL,)) as bot:
        await two_threads(rig)
        rig.slack.command(text="stop", channel=CHANNEL)
        await eventually(lambda: "Stopped 2 answers." in rig.read(CHANNEL))
        await rig.quiet(bot)
        rig.slack.command(text="stop", channel=CHANNEL)
        await eventually(
            lambda: "Nothing was running here, or in the threads." in rig.read(CHANNEL)
        )
        await rig.quiet(bot)


async def test_a_members_stop_at_the_root_ends_their_own_in_threads(rig: SlackRig) -> None:
    async with rig.serving_slack(ANN, BOB, chats=(CHANNEL,)) as bot:
        await two_threads(rig)
        rig.slack.command(text="stop", channel=CHANNEL, user=BOB)
        await eventually(lambda: "Stopped 1 answer." in rig.read(CHANNEL))
        rig.slack.command(text="stop", channel=CHANNEL, user=BOB)
        await eventually(
            lambda: "Nothing of yours was running here, or in the threads." in rig.read(CHANNEL)
        )
        rig.slack.command(text="stop", channel=CHANNEL)
        await eventually(lambda: rig.read(CHANNEL).count("Stopped 1 answer.") == 2)
        await rig.quiet(bot)


async def test_what_is_about_one_conversation_says_that_threads_have_their_own(
    rig: SlackRig,
) -> None:
    async with rig.serving_slack(ANN, chats=(CHANNEL,)) as bot:
        rig.slack.command(text="new", channel=CHANNEL)
        [said] = await eventually(lambda: rig.read(CHANNEL))
        rig.slack.command(text="new")
        [alone] = await eventually(lambda: rig.read())
        await rig.quiet(bot)

    assert "`@hearth /new`" in said
    assert "thread" not in alone


def test_only_a_thread_has_a_channel_around_it() -> None:
    assert around("slack:T1.C1:17.5") == "slack:T1.C1"
    assert around("slack:T1.D1:17.5") == "", "a chat with one person is no channel"
    assert around("slack:T1.C1") == around("telegram:-100:7") == around("job") == ""
    lanes = ["slack:T1.C1", "slack:T1.C1:2", "slack:T1.C2:1", "slack:T1.C1:1"]
    assert threads_of(Address.parse("slack:T1.C1"), lanes) == ["slack:T1.C1:1", "slack:T1.C1:2"]


@pytest.mark.parametrize(
    ("lane", "is_group", "expected"),
    [
        ("slack:T1.C1", True, True),
        ("slack:T1.D1", False, False),
        ("slack:T1.C1:1.2", True, False),
        ("telegram:-100", True, False),
    ],
)
def test_the_root_is_that_of_a_channel_of_slack(lane: str, is_group: bool, expected: bool) -> None:
    message = IncomingMessage(
        address=Address.parse(lane), message_id="1", sender_id="U1", text="", is_group=is_group
    )

    assert is_root(message) is expected


# --- places in a chat where one person alone reads ---

CHAT = Address(channel="slack", chat_id="T0LAB.C1")


def test_a_place_for_one_reader_reads_back_from_its_key() -> None:
    aside = aside_to(CHAT, "U0ANN")

    assert Address.parse(aside.key) == aside
    assert reader_of(aside) == "U0ANN"
    assert chat_of(aside) == CHAT


@pytest.mark.parametrize("thread", [None, "1714000000.000100", "7"])
def test_any_other_place_is_none(thread: str | None) -> None:
    place = Address(channel="slack", chat_id="T0LAB.C1", thread_id=thread)

    assert reader_of(place) == ""
    assert chat_of(place) is place


def test_what_concerns_everybody_in_a_chat_is_for_all_of_them() -> None:
    alone = {name for name in NAMES if is_for_all(name, "")}
    with_words = {name for name in NAMES if is_for_all(name, "x")}

    assert alone == {"new", "stop", "compact", "restore", "undo"}
    assert with_words == alone | {"model", "remind", "job", "agents"}
    assert not is_for_all("unknown", "x")
