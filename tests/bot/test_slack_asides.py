"""Commands in a channel of Slack: answered to their person alone, by the best way that works."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.channels.base import InDoubt, MessagePart, NotSent, SentMessage, aside_to
from bot.channels.slack.api import SlackWeb
from bot.channels.slack.channel import SlackChannel
from bot.channels.slack.send import DIRECTLY, GOOD_FOR_S, SEEN_ONCE, EphemeralMessages
from bot.channels.slack.wire import sketch
from bot.lab.faults import FaultAction, answer, drop
from bot.lab.slack import TOKEN, FakeSlack, flood, refusal
from bot.lab.slack_api import RESPONSE_URL_USES
from bot.lab.slack_state import SeenInSlack
from memory.records.messages import Address
from tests.bot.kit import eventually, slack_settings
from tests.bot.slack_kit import ANN, BOB, CHANNEL, STRANGER, TEAM, US, SlackRig, slack_rigged
from tests.fakes import FixedClock

CHAT = Address(channel="slack", chat_id=f"{TEAM}.{CHANNEL}")
ASIDE = aside_to(CHAT, ANN)
PART = MessagePart(markup="*hi* &amp; bye", source="**hi** & bye", mark="7.0.1000")
ALONE = SentMessage(message_id=SEEN_ONCE)


# --- a whole bot -------------------------------------------------------------------------------


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[SlackRig]:
    async with slack_rigged(tmp_path) as made:
        yield made


def seen_alone(rig: SlackRig, user: str = ANN) -> list[str]:
    """What somebody alone read in the channel."""
    return [seen.text for seen in rig.slack.ephemeral(user) if seen.channel == CHANNEL]


async def asked(rig: SlackRig, text: str, *, by: str = ANN) -> str:
    """What is answered to a command in the channel, to its person alone."""
    before = len(seen_alone(rig, by))
    rig.slack.command(text=text, user=by, channel=CHANNEL)
    await eventually(lambda: len(seen_alone(rig, by)) > before)
    return seen_alone(rig, by)[-1]


async def test_a_command_in_a_channel_is_answered_to_its_person_alone(rig: SlackRig) -> None:
    async with rig.serving_slack(ANN, BOB, chats=(CHANNEL,)) as bot:
        answers = [
            await asked(rig, text) for text in ("help", "usage", "memory", "model", "tsatus")
        ]
        members = await asked(rig, "pair", by=BOB)
        await rig.quiet(bot)

    assert rig.read(CHANNEL) == [], "nobody else reads it"
    assert answers[0].startswith("Just write to me.")
    assert "Did you mean `/hearth status`?" in answers[4]
    assert members == "/hearth pair is for the owner."
    assert rig.outbox() == ["sent"] * 6
    assert len(rig.slack.calls("response_url")) == 6
    assert rig.slack.calls("chat.postMessage") == rig.slack.calls("chat.postEphemeral") == []


def action(card: SeenInSlack, label: str) -> str:
    """The id of a button by what it says."""
    return next(
        str(element["action_id"])
        for block in card.blocks
        for element in block.get("elements", ())
        if element.get("text", {}).get("text") == label
    )


async def test_the_owner_alone_reads_how_a_channel_is_admitted(rig: SlackRig) -> None:
    async with rig.serving_slack(ANN, BOB) as bot:
        hint = await asked(rig, "status")
        rig.slack.command(text="status", channel=CHANNEL, user=BOB)
        rig.slack.command(text="status", channel=CHANNEL, user=STRANGER)
        await rig.quiet(bot)

    assert f"hearthbot access approve slack:{TEAM}.{CHANNEL}" in hint
    assert rig.read(CHANNEL) == []
    assert seen_alone(rig, BOB) == seen_alone(rig, STRANGER) == []


async def test_after_a_restart_it_is_whispered_once_and_no_address_was_kept(rig: SlackRig) -> None:
    rig.slack.add_channel(channel=CHANNEL, members=[ANN])
    rig.slack.fault("response_url", action=answer(429, "slow", headers={"Retry-After": "1"}))
    async with rig.serving_slack(ANN, chats=(CHANNEL,)) as bot:
        rig.slack.command(text="usage", channel=CHANNEL)
        await eventually(lambda: rig.outbox() == ["ready"])
        await eventually(lambda: rig.slack.calls("response_url"))
        await bot.outbox.stop(0)
        assert seen_alone(rig) == []
        assert b"/actions/" not in rig.bytes_on_disk()
    async with rig.serving_slack(hurry=50) as bot:
        await eventually(lambda: seen_alone(rig))
        await rig.quiet(bot)

    [text] = seen_alone(rig)
    assert "repeated" not in text
    assert len(rig.slack.calls("chat.postEphemeral")) == 1
    assert rig.outbox() == ["sent"]
    assert rig.read(CHANNEL) == []


# --- the ways ----------------------------------------------------------------------------------


@asynccontextmanager
async def channel() -> AsyncIterator[tuple[SlackChannel, FakeSlack, FixedClock]]:
    """The channel of a bot, and a workspace where Ann, Bob and the bot are in the channel."""
    clock = FixedClock()
    async with FakeSlack() as fake:
        for person in (ANN, BOB):
            fake.add_user(user=person)
        fake.add_channel(channel=CHANNEL, members=[ANN, BOB])
        settings = slack_settings(base_url=fake.api_url, send_timeout_s=2.0)
        async with SlackChannel(settings, clock=clock) as made:
            yield made, fake, clock


def heard(slack: SlackChannel, fake: FakeSlack, **more: Any) -> None:
    """A command of Ann's comes in."""
    delivery = fake.command(text="usage", channel=CHANNEL, **more)
    payload = fake.delivery(delivery).payload
    found = sketch(payload)
    assert found is not None
    slack.asides.heard(found, payload)


async def test_an_address_is_good_for_five_messages_and_then_it_is_whispered() -> None:
    async with channel() as (slack, fake, _):
        heard(slack, fake)

        for _ in range(RESPONSE_URL_USES + 1):
            assert await slack.send(ASIDE, PART) == ALONE

        assert [seen.text for seen in fake.ephemeral(ANN)] == [PART.markup] * 6
        assert len(fake.calls("response_url")) == RESPONSE_URL_USES
        [whisper] = fake.calls("chat.postEphemeral")
        assert whisper.params["parse"] == "none"
        assert "metadata" not in whisper.params


async def test_an_address_that_is_over_is_not_tried() -> None:
    async with channel() as (slack, fake, clock):
        heard(slack, fake)
        clock.move(GOOD_FOR_S)

        assert await slack.send(ASIDE, PART) == ALONE

        assert fake.calls("response_url") == []
        assert len(fake.ephemeral(ANN)) == 1


async def test_an_address_that_slack_takes_no_more_is_left_for_the_next_way() -> None:
    async with channel() as (slack, fake, _):
        heard(slack, fake)
        heard(slack, fake)
        fake.fault("response_url", action=answer(404, '{"ok":false,"error":"used_url"}'))

        assert await slack.send(ASIDE, PART) == ALONE

        assert len(fake.calls("response_url")) == 2
        assert fake.calls("chat.postEphemeral") == []
        assert [seen.text for seen in fake.ephemeral(ANN)] == [PART.markup]


async def test_with_a_token_that_is_refused_it_waits_and_goes_nowhere_else() -> None:
    async with channel() as (slack, fake, _):
        fake.fault("chat.postEphemeral", action=refusal("token_revoked"))

        assert isinstance(await slack.send(ASIDE, PART), NotSent)
        assert fake.calls("chat.postMessage") == []


async def test_somebody_elses_address_is_not_taken() -> None:
    async with channel() as (slack, fake, _):
        heard(slack, fake, user=BOB)

        assert await slack.send(ASIDE, PART) == ALONE

        assert fake.ephemeral(BOB) == []
        assert fake.calls("response_url") == []


@pytest.mark.parametrize("who", [ANN, US])
async def test_where_nobody_can_be_whispered_to_it_goes_to_their_own_chat(who: str) -> None:
    async with channel() as (slack, fake, _):
        fake.leave(channel=CHANNEL, user=who)

        assert await slack.send(ASIDE, PART) == ALONE

        [seen] = [one for one in fake.chat(fake.direct(ANN)) if one.is_bot]
        assert seen.text == DIRECTLY + PART.markup
        assert fake.chat(CHANNEL) == []


@pytest.mark.parametrize("method", ["response_url", "chat.postEphemeral"])
@pytest.mark.parametrize(
    ("action", "outcome"), [(drop(), InDoubt), (flood(7), NotSent)], ids=["drop", "flood"]
)
async def test_each_trouble_of_an_aside_is_told_for_what_it_is(
    method: str, action: FaultAction, outcome: type
) -> None:
    async with channel() as (slack, fake, _):
        if method == "response_url":
            heard(slack, fake)
        fake.fault(method, action=action)

        tried = await slack.send(ASIDE, PART)

        assert isinstance(tried, outcome)
        assert not isinstance(tried, NotSent) or tried.retry_after_s == 7
        assert fake.calls("chat.postMessage") == []


@pytest.mark.parametrize(
    ("base", "url", "is_taken"),
    [
        ("https://slack.com/api/", "https://hooks.slack.com/commands/1", True),
        ("https://slack-gov.com/api/", "https://hooks.slack-gov.com/commands/1", True),
        ("https://slack.com/api/", "http://hooks.slack.com/commands/1", False),
        ("https://slack.com/api/", "https://hooks.slack.com.evil.example/1", False),
        ("https://slack.com/api/", "https://notslack.com/1", False),
        ("https://slack.com/api/", "http://169.254.169.254/latest", False),
        ("https://slack.com/api/", "https://[", False),
        ("https://slack.com/api/", "", False),
    ],
)
def test_only_an_address_of_slacks_own_is_ever_called(base: str, url: str, is_taken: bool) -> None:
    web = SlackWeb(TOKEN, base_url=base, timeout_s=1)
    asides = EphemeralMessages(web, base_url=base, clock=FixedClock())

    assert asides._is_slacks(url) is is_taken
