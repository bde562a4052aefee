"""A message of ours is taken away: on each platform, and over its troubles."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest

from bot.channels.base import (
    DeliveryRefused,
    InDoubt,
    MessageGone,
    MessagePart,
    NotSent,
    SentMessage,
)
from bot.channels.slack.channel import SlackChannel
from bot.channels.telegram.channel import TelegramChannel
from bot.lab import slack as slack_lab
from bot.lab import telegram as telegram_lab
from bot.lab.faults import FaultAction, bad_gateway, drop
from bot.lab.slack import FakeSlack
from bot.lab.telegram import FakeTelegram
from memory.records.messages import Address
from scheduler.clock.machine import SystemClock
from tests.bot.kit import TOKEN, slack_settings, telegram_settings

Platform = Literal["telegram", "slack"]

CHATS = {
    "telegram": Address(channel="telegram", chat_id="5"),
    "slack": Address(channel="slack", chat_id="T0LAB.D0ANN"),
}
METHODS = {"telegram": "deleteMessage", "slack": "chat.delete"}


@asynccontextmanager
async def opened(platform: Platform) -> AsyncIterator[tuple[Any, Any]]:
    """A channel and its stand-in."""
    if platform == "telegram":
        async with FakeTelegram(TOKEN) as telegram:
            telegram.message(chat_id=5, text="hi")
            settings = telegram_settings(base_url=telegram.base_url, send_timeout_s=2)
            async with TelegramChannel(settings, clock=SystemClock()) as channel:
                yield channel, telegram
        return
    async with FakeSlack() as slack:
        slack.direct()
        wanted = slack_settings(base_url=slack.api_url, send_timeout_s=2)
        async with SlackChannel(wanted, clock=SystemClock()) as made:
            yield made, slack


async def one(channel: Any, platform: Platform) -> str:
    """The id of a message that was just sent."""
    sent = await channel.send(CHATS[platform], MessagePart(markup="x", source="x"))
    assert isinstance(sent, SentMessage)
    return sent.message_id


@pytest.mark.parametrize("platform", ["telegram", "slack"])
async def test_it_is_gone_and_to_do_so_again_does_no_harm(platform: Platform) -> None:
    async with opened(platform) as (channel, fake):
        message_id = await one(channel, platform)

        first = await channel.remove(CHATS[platform], message_id)
        second = await channel.remove(CHATS[platform], message_id)
        where = {"chat_id": 5} if platform == "telegram" else {"channel": "D0ANN"}

        assert [seen for seen in fake.chat(**where) if seen.is_bot] == []
    assert (first, second) == (SentMessage(message_id=message_id), MessageGone())


@pytest.mark.parametrize(
    ("platform", "action", "kind"),
    [
        ("telegram", telegram_lab.flood(3), NotSent),
        (
            "telegram",
            telegram_lab.refusal(400, "Bad Request: message can't be deleted"),
            DeliveryRefused,
        ),
        (
            "telegram",
            telegram_lab.refusal(403, "Forbidden: bot was blocked by the user"),
            DeliveryRefused,
        ),
        ("telegram", bad_gateway(), InDoubt),
        ("telegram", drop(after=True), InDoubt),
        ("slack", slack_lab.flood(3), NotSent),
        ("slack", slack_lab.refusal("cant_delete_message"), DeliveryRefused),
        ("slack", slack_lab.refusal("channel_not_found"), MessageGone),
        ("slack", slack_lab.refusal("token_revoked"), NotSent),
        ("slack", bad_gateway(), InDoubt),
        ("slack", drop(after=True), InDoubt),
    ],
    ids=lambda value: str(getattr(value, "kind", value)),
)
async def test_each_trouble_is_told_for_what_it_is(
    platform: Platform, action: FaultAction, kind: type[object]
) -> None:
    async with opened(platform) as (channel, fake):
        message_id = await one(channel, platform)
        fake.fault(METHODS[platform], action=action)

        assert isinstance(await channel.remove(CHATS[platform], message_id), kind)
