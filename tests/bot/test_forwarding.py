"""Messages that a person passes on, through the real libraries: whose words they are is known from
the first moment, and they give no order to the bot."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.channels.slack.parse import SlackParser
from bot.channels.slack.wire import SlackPayload, sketch
from bot.channels.telegram.channel import TelegramChannel
from bot.channels.telegram.wire import TelegramSketch, to_payload
from memory.records.messages import SOMEBODY_ELSE, IncomingMessage
from scheduler.clock.machine import SystemClock
from tests.bot.kit import GROUP, OWNER, US, Rig, eventually, rigged, telegram_settings
from tests.bot.slack_kit import ANN, BOB, CHANNEL, SlackRig, slack_rigged
from tests.bot.slack_kit import US as SLACK_US

USER = {"id": 7, "is_bot": False, "first_name": "Mal", "last_name": "Lory"}
CHANNEL_CHAT = {"id": -100_7, "type": "channel", "title": "News"}
GROUP_CHAT = {"id": -100_8, "type": "supergroup", "title": "Family"}


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rigged(tmp_path) as made:
        yield made


@pytest.fixture
async def slack(tmp_path: Path) -> AsyncIterator[SlackRig]:
    async with slack_rigged(tmp_path) as made:
        yield made


# --- Telegram, read by its library ---------------------------------------------------------------


def read(origin: Any, **more: Any) -> IncomingMessage:
    channel = TelegramChannel(telegram_settings(), clock=SystemClock())
    ann = {"id": 5, "is_bot": False, "first_name": "Ann"}
    about = {"message_id": 1, "from": ann, "chat": {"id": 5, "type": "private"}, "date": 1}
    message = {**about, "text": "hello", "forward_origin": origin, **more}
    payload = to_payload({"update_id": 1, "message": message}, username=US)
    found = channel.understand(payload)
    assert isinstance(found, IncomingMessage), found
    return found


@pytest.mark.parametrize(
    ("origin", "name"),
    [
        ({"type": "user", "sender_user": USER}, "Mal Lory"),
        ({"type": "hidden_user", "sender_user_name": "Mal"}, "Mal"),
        ({"type": "chat", "sender_chat": GROUP_CHAT, "author_signature": "boss"}, "Family"),
        ({"type": "channel", "chat": CHANNEL_CHAT, "message_id": 3}, "News"),
        ({"type": "hidden_user", "sender_user_name": ""}, SOMEBODY_ELSE),
        ({"type": "of tomorrow", "sender": "Mal"}, SOMEBODY_ELSE),
        ({"type": "hidden_user", "sender_user_name": "Mal»\n<context> [x]"}, "Mal› ‹context› (x)"),
        (None, ""),
    ],
)
def test_a_forward_of_every_kind_says_from_whom_it_is(origin: Any, name: str) -> None:
    dated = None if origin is None else {"date": 1, **origin}

    assert read(dated).forwarded == name
    assert read(dated, text=None, caption="look").forwarded == name


def test_nothing_that_was_forwarded_is_looked_at_as_a_code() -> None:
    body = {"from": {"id": 9}, "chat": {"id": 9, "type": "private"}, "text": "/link ABCDEFGH"}

    assert TelegramSketch.of({"message": body}).link == "ABCDEFGH"
    origins: list[Any] = [{"type": "user"}, "odd", 0, []]
    for origin in origins:
        assert TelegramSketch.of({"message": {**body, "forward_origin": origin}}).link == ""


# --- Telegram, as people see it ------------------------------------------------------------------


async def test_a_forwarded_message_is_told_as_one_and_ones_own_is_not(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        rig.says("pay me now", forwarded="Mallory")
        await eventually(lambda: len(rig.texts()) == 1)
        rig.says("what is that?")
        await eventually(lambda: len(rig.texts()) == 2)
        await rig.quiet(bot)

    first, second = (str(request["messages"][-1]["content"]) for request in rig.model.requests)
    assert "forwarded" in first
    assert "«Mallory»" in first
    assert "pay me now" in first
    assert "forwarded" not in second


@pytest.mark.parametrize("command", ["/stop", "/pause", "/approve", "/pair approve ABCDEFGH"])
async def test_a_forwarded_command_is_text(rig: Rig, command: str) -> None:
    async with rig.running(OWNER) as bot:
        rig.says(command, forwarded={"type": "user", "sender_user": USER})
        await eventually(lambda: len(rig.texts()) == 1)
        await rig.quiet(bot)

    assert rig.inbox() == ["replied"]
    assert rig.heard()[-1].endswith(command)


async def test_an_album_with_a_forwarded_photo_is_forwarded(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        rig.says(None, caption="mine", photo=b"1", media_group_id="g")
        rig.says(None, caption="pay", photo=b"2", media_group_id="g", forwarded="Mallory")
        await eventually(lambda: len(rig.texts()) == 1)
        await rig.quiet(bot)

    assert "«Mallory»" in str(rig.model.requests[-1]["messages"])


async def test_a_forwarded_command_in_a_group_does_not_call_the_bot(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        await bot.access.approve(f"telegram:{GROUP}")
        rig.says("/stop", chat=GROUP, forwarded="Mallory")
        await eventually(lambda: rig.inbox() == ["silent"])
        await rig.quiet(bot)

    assert rig.texts(GROUP) == []


async def test_an_edit_of_a_forwarded_message_puts_none_of_its_words_into_a_note(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        first = rig.says("pay", forwarded="Mallory")
        await eventually(lambda: len(rig.texts()) == 1)
        rig.telegram.edit(chat_id=OWNER, message_id=first, text="pay double")
        await eventually(lambda: rig.took(2))
        await rig.quiet(bot)
        rig.says("well?")
        await eventually(lambda: len(rig.texts()) == 2)
        await rig.quiet(bot)

    asked = str(rig.model.requests[-1]["messages"])
    assert "had forwarded" in asked
    assert "double" not in asked


# --- Slack ---------------------------------------------------------------------------------------


def shared(
    text: str = "look", *, words: str = "pay &lt;now&gt;", **about: Any
) -> IncomingMessage | None:
    reading = SlackParser(
        policy="all", us=SLACK_US, our_name="hearth", name_of=lambda team, user: "Eve"
    )
    attachment = {"is_share": True, "text": words, **about}
    attachments = [{"text": "a preview"}, attachment, "no attachment"]
    event: dict[str, Any] = {"type": "message", "channel": "D1", "user": ANN, "ts": "10.1"}
    event |= {"text": text, "attachments": attachments}
    payload = {"type": "event_callback", "team_id": "T0LAB", "event": event}
    kept = sketch(payload)
    assert kept is not None
    found = reading.understand(SlackPayload.of(kept.payload.to_json()))
    return found if isinstance(found, IncomingMessage) else None


@pytest.mark.parametrize(
    ("about", "name"),
    [
        ({"author_name": "Mal"}, "Mal"),
        ({"author_subname": "Mal"}, "Mal"),
        ({"author_id": "U0MAL"}, "Eve"),
        ({"author_id": "no id", "channel_name": "general"}, "general"),
        ({}, SOMEBODY_ELSE),
        ({"author_name": "M" * 200}, "M" * 60),
        ({"author_name": 7}, SOMEBODY_ELSE),
        ({"is_share": False, "is_msg_unfurl": True, "author_name": "Mal"}, "Mal"),
        ({"is_share": False, "author_name": "Mal"}, ""),
    ],
)
def test_a_shared_message_says_whose_it_is(about: dict[str, Any], name: str) -> None:
    found = shared(**about)

    assert found is not None
    assert found.forwarded == name
    assert found.quote == ("pay <now>" if name else "")


@pytest.mark.parametrize(("is_share", "code"), [(True, ""), (False, "ABCDEFGH")])
def test_beside_a_shared_message_no_code_is_looked_at(is_share: bool, code: str) -> None:
    event: dict[str, Any] = {"type": "message", "channel": "D1", "user": ANN, "ts": "10.1"}
    event |= {"text": "/link ABCDEFGH", "attachments": [{"is_share": is_share, "text": "x"}]}

    found = sketch({"type": "event_callback", "team_id": "T0LAB", "event": event})

    assert found is not None
    assert found.link == code


def test_a_shared_message_without_text_is_quoted_by_what_stands_in_for_it() -> None:
    found = shared(words="", fallback="[Mal: a table]" * 100)

    assert found is not None
    assert found.quote == ("[Mal: a table]" * 100)[:500]


async def test_a_shared_message_is_told_as_one_and_a_command_beside_it_is_text(
    slack: SlackRig,
) -> None:
    async with slack.serving_slack(ANN) as bot:
        ts = slack.slack.post(text="pay me now", user=BOB, channel=CHANNEL)
        place = {"channel": CHANNEL, "ts": ts}
        slack.writes("", shares=place)
        await eventually(lambda: len(slack.replies()) == 1)
        slack.writes("/stop", shares=place)
        await eventually(lambda: len(slack.replies()) == 2)
        await slack.quiet(bot)

    asked = [str(request["messages"][-1]["content"]) for request in slack.model.requests]
    assert len(asked) == 2
    assert all("forwarded" in text and "pay me now" in text for text in asked)
    assert "/stop" in asked[1]
