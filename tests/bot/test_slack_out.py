"""What goes out to Slack, and what is said of how that went."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.channels.base import (
    PAUSE_MAX_S,
    DeliveryRefused,
    InDoubt,
    MessageGone,
    MessagePart,
    NotSent,
    SentMessage,
)
from bot.channels.slack.api import RETRY_AFTER_S
from bot.channels.slack.channel import SlackChannel
from bot.channels.slack.lookup import EVENT_TYPE, PAGE
from bot.channels.slack.send import marked_blocks
from bot.channels.throttle import BURST, EditPace
from bot.lab.faults import FaultAction, answer, bad_gateway, drop
from bot.lab.slack import TOKEN, FakeSlack, flood, refusal
from bot.markup.render import slack_parts
from memory.records.messages import Address
from memory.records.rows import Button
from scheduler.clock.machine import SystemClock
from tests.bot.kit import eventually, slack_settings
from tests.memory.kit import StillClock

TEAM = "T0LAB"
DIRECT = Address(channel="slack", chat_id=f"{TEAM}.D0ANN")
PART = MessagePart(markup="*hi* &amp; bye", source="**hi** & bye", mark="7.0.1000")


@asynccontextmanager
async def channel(
    timeout_s: float = 2.0, **slack: Any
) -> AsyncIterator[tuple[SlackChannel, FakeSlack]]:
    async with FakeSlack(**slack) as fake:
        fake.direct()
        settings = slack_settings(base_url=fake.api_url, send_timeout_s=timeout_s)
        async with SlackChannel(settings, clock=SystemClock()) as made:
            yield made, fake


@pytest.mark.threat("T12")
async def test_a_message_goes_out_as_mrkdwn_with_its_mark_and_opens_no_links() -> None:
    async with channel() as (slack, fake):
        sent = await slack.send(DIRECT, PART)

        [seen] = fake.chat("D0ANN")
        assert sent == SentMessage(message_id=seen.ts)
        assert seen.text == PART.markup
        assert seen.metadata == {"event_type": EVENT_TYPE, "event_payload": {"id": PART.mark}}
        [call] = fake.calls("chat.postMessage")
        for name in ("unfurl_links", "unfurl_media", "link_names"):
            assert call.params[name] is False
        assert call.params["parse"] == "none"
        assert fake.previewed() == []


@pytest.mark.parametrize(
    ("asked", "pause_s"),
    [("3", 3.0), ("nan", 1.0), ("-9", 1.0), ("inf", PAUSE_MAX_S), (None, RETRY_AFTER_S)],
)
async def test_a_pause_that_cannot_be_meant_is_not_taken_as_it_is(
    asked: str | None, pause_s: float
) -> None:
    async with channel() as (slack, fake):
        refused = answer(429, "", headers={"Retry-After": asked} if asked else {})
        fake.fault("chat.postMessage", action=refused)

        found = await slack.send(DIRECT, PART)

        assert isinstance(found, NotSent)
        assert found.retry_after_s == pause_s


def test_code_that_began_in_the_message_before_is_code_above_the_buttons_too() -> None:
    code = "\n".join(f"echo **{n}** [docs](https://evil.example/{n})" for n in range(170))
    last = slack_parts(f"May I?\n\n```\n{code}\n```\n\nwhy")[-1]
    buttons = ((Button(label="Yes", data="ask:1"),),)

    *sections, _ = marked_blocks(
        MessagePart(markup=last.markup, source=last.source, buttons=buttons)
    )

    assert len(sections) > 1
    for section in sections:
        shown = section["text"]["text"]
        assert shown.startswith("```\necho **")
        assert "<https" not in shown


async def test_what_the_owner_can_mend_is_said_with_what_to_do() -> None:
    async with channel() as (slack, fake):
        fake.add_channel(channel="C1", bot_inside=False)
        outside = await slack.send(Address(channel="slack", chat_id=f"{TEAM}.C1"), PART)
        fake.rules.bot_scopes.discard("chat:write")
        scopeless = await slack.send(DIRECT, PART)

    assert isinstance(outside, DeliveryRefused)
    assert "invite it there" in outside.reason
    assert isinstance(scopeless, NotSent)
    assert "needs the scope chat:write" in scopeless.reason
    assert "reinstall the app" in scopeless.reason


@pytest.mark.case("CH-21")
@pytest.mark.parametrize("method", ["chat.postMessage", "chat.update"])
@pytest.mark.parametrize("word", ["msg_too_long", "invalid_blocks", "no_text"])
async def test_where_the_markup_is_refused_the_plain_text_goes_out(method: str, word: str) -> None:
    async with channel() as (slack, fake):
        first = await slack.send(DIRECT, PART) if method == "chat.update" else None
        fake.fault(method, action=refusal(word))

        if isinstance(first, SentMessage):
            done: object = await slack.edit(DIRECT, first.message_id, PART)
        else:
            done = await slack.send(DIRECT, PART)

        [seen] = fake.chat("D0ANN")
        assert isinstance(done, SentMessage)
        assert seen.text == "**hi** &amp; bye"


@pytest.mark.parametrize(
    ("action", "outcome"),
    [
        (flood(3), NotSent),
        (refusal("token_expired"), NotSent),
        (refusal("message_not_found"), MessageGone),
        (refusal("cant_update_message"), MessageGone),
        (refusal("edit_window_closed"), MessageGone),
        (drop(after=True), InDoubt),
        (bad_gateway(), InDoubt),
    ],
    ids=lambda value: f"{value.kind} {value.body}" if hasattr(value, "kind") else "",
)
async def test_each_trouble_of_an_edit_is_told_for_what_it_is(
    action: FaultAction, outcome: type[object]
) -> None:
    async with channel() as (slack, fake):
        sent = await slack.send(DIRECT, PART)
        assert isinstance(sent, SentMessage)
        fake.fault("chat.update", action=action)

        assert isinstance(await slack.edit(DIRECT, sent.message_id, PART), outcome)


async def test_all_edits_of_the_workspace_wait_when_slack_asks_for_a_pause() -> None:
    async with channel() as (slack, fake):
        sent = await slack.send(DIRECT, PART)
        assert isinstance(sent, SentMessage)
        fake.fault("chat.update", action=flood(9))
        await slack.edit(DIRECT, sent.message_id, PART)

        other = await slack.edit(Address(channel="slack", chat_id=f"{TEAM}.C1"), "1.1", PART)

        assert isinstance(other, NotSent)
        assert other.retry_after_s is not None
        assert other.retry_after_s > 8
        assert len(fake.calls("chat.update")) == 1


# --- what became of a send ---------------------------------------------------------------------


async def test_a_message_is_found_by_its_mark_wherever_it_stands() -> None:
    async with channel() as (slack, fake):
        ts = fake.post(channel="C1", text="x")
        thread = Address(channel="slack", chat_id=f"{TEAM}.C1", thread_id=ts)

        for place in (DIRECT, thread):
            assert isinstance(await slack.look_up(place, PART.mark, since_ms=0), NotSent)
            sent = await slack.send(place, PART)
            await slack.send(place, replace(PART, mark="8.0.1000"))
            assert await slack.look_up(place, PART.mark, since_ms=0) == sent


async def test_a_busy_thread_is_looked_through_to_its_end() -> None:
    async with channel() as (slack, fake):
        ts = fake.post(channel="C1", text="x")
        thread = Address(channel="slack", chat_id=f"{TEAM}.C1", thread_id=ts)
        for n in range(PAGE + 5):
            fake.post(channel="C1", text=str(n), thread_ts=ts)
        sent = await slack.send(thread, PART)

        assert await slack.look_up(thread, PART.mark, since_ms=0) == sent
        assert len(fake.calls("conversations.replies")) == 2


@pytest.mark.parametrize(
    ("action", "outcome"),
    [
        (flood(3), InDoubt),
        (drop(), InDoubt),
        (bad_gateway(), InDoubt),
        (refusal("missing_scope", needed="im:history"), DeliveryRefused),
        (refusal("channel_not_found"), DeliveryRefused),
        (answer(200, {"ok": True, "messages": [3, {"metadata": 7}]}), NotSent),
        (answer(200, {"ok": True}), NotSent),
    ],
    ids=lambda value: f"{value.kind} {value.body}" if hasattr(value, "kind") else "",
)
async def test_what_cannot_be_looked_up_is_not_guessed(
    action: FaultAction, outcome: type[object]
) -> None:
    async with channel() as (slack, fake):
        fake.fault("conversations.history", action=action)

        assert isinstance(await slack.look_up(DIRECT, PART.mark, since_ms=0), outcome)


async def test_an_answer_to_a_thread_that_is_gone_is_looked_for_in_the_channel() -> None:
    async with channel() as (slack, fake):
        ts = fake.post(channel="C1", text="x")
        thread = Address(channel="slack", chat_id=f"{TEAM}.C1", thread_id=ts)
        fake.delete(channel="C1", ts=ts)

        sent = await slack.send(thread, PART)

        assert await slack.look_up(thread, PART.mark, since_ms=0) == sent


# --- typing ------------------------------------------------------------------------------------


# --- the pace of edits -------------------------------------------------------------------------


async def test_edits_of_all_messages_share_one_bucket() -> None:
    clock = StillClock()
    pace = EditPace(30, clock=clock)

    at_once = [await pace.turn(f"m{n}") for n in range(int(BURST))]
    later = await pace.turn("one more")
    clock.move(1.5)
    soon = await pace.turn("one more")

    assert at_once == [None] * int(BURST)
    assert later == 2.0
    assert soon is None
    assert clock.monotonic() == pytest.approx(2.0), "it waited for the rest of its turn"


async def test_the_more_replies_grow_the_slower_each_does() -> None:
    clock = StillClock()
    pace = EditPace(60, clock=clock)

    await pace.turn("one")
    alone = pace.every(1.0)
    for n in range(8):
        await pace.turn(f"m{n}")
    crowded = pace.every(1.0)
    clock.move(60)
    after = pace.every(1.0)

    assert alone == 1.0
    assert crowded > 9
    assert after <= 1.3


# --- secrets -----------------------------------------------------------------------------------


async def test_no_token_stands_in_what_is_logged_or_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with capture_logs() as logs:
        async with channel() as (slack, fake):
            for action in (refusal("invalid_auth"), drop(), bad_gateway(), answer(200, "x")):
                fake.fault("chat.postMessage", action=action)
                found = await slack.send(DIRECT, PART)
                assert TOKEN not in str(found)
            await eventually(lambda: len(fake.calls("chat.postMessage")) == 4)

    assert TOKEN not in str(logs)
    assert TOKEN not in caplog.text
