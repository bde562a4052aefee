"""Buttons in Telegram, through python-telegram-bot: pressed by whom, how often, and after what."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.channels.base import Channel, MessagePart, Pressed, SentMessage
from bot.channels.telegram.channel import TelegramChannel
from bot.channels.telegram.wire import (
    ANSWER_CHARS_MAX,
    ROW_BUTTONS_MAX,
    ROW_CHARS_MAX,
    callback_answer,
    inline_keyboard,
)
from bot.inbox.commands import NO_LONGER
from bot.lab.telegram import FakeTelegram, flood, refuse_markup
from memory.records.messages import Address
from memory.records.rows import Button
from scheduler.clock.machine import SystemClock
from tests.bot.kit import GROUP, MEMBER, OWNER, STRANGER, TOKEN, eventually, telegram_settings
from tests.bot.press_kit import ALLOW, CARD, DENY, OUTCOME, ROWS, Question, fails, process

LANE = f"telegram:{OWNER}"
PEOPLE = (f"telegram:{OWNER}", f"telegram:{MEMBER}", f"telegram:{GROUP}")


@pytest.fixture
async def telegram() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram(TOKEN) as fake:
        yield fake


@pytest.fixture
def question() -> Question:
    return Question()


@asynccontextmanager
async def channel_of(telegram: FakeTelegram) -> AsyncIterator[TelegramChannel]:
    settings = telegram_settings(base_url=telegram.base_url, poll_timeout_s=2, send_timeout_s=5)
    async with TelegramChannel(settings, clock=SystemClock()) as channel:
        yield channel


@asynccontextmanager
async def polling(folder: Path, telegram: FakeTelegram, presses: Any) -> AsyncIterator[Any]:
    """A process that takes updates in."""
    async with (
        channel_of(telegram) as channel,
        process(folder, channel, presses, people=PEOPLE) as opened,
    ):
        poll = asyncio.create_task(channel.poll(opened.door))
        try:
            yield opened
        finally:
            poll.cancel()
            await asyncio.gather(poll, return_exceptions=True)


def card_in(telegram: FakeTelegram, chat: int = OWNER) -> int:
    """The id of the bot's last message."""
    return max(seen.message_id for seen in telegram.chat(chat) if seen.is_bot)


async def pressed(telegram: FakeTelegram, data: str, *, chat: int = OWNER, by: int = OWNER) -> str:
    """What the bot answers to a press."""
    before = len(telegram.answers())
    telegram.callback(chat_id=chat, message_id=card_in(telegram, chat), data=data, user_id=by)
    await eventually(lambda: len(telegram.answers()) > before)
    return str(telegram.answers()[-1]["text"])


# --- one press -----------------------------------------------------------------------------------


async def test_a_press_has_its_effect_and_the_one_who_pressed_reads_what_came_of_it(
    tmp_path: Path, telegram: FakeTelegram, question: Question
) -> None:
    async with polling(tmp_path, telegram, {"ask": question.press}) as bot:
        await bot.card(LANE)
        answer = await pressed(telegram, ALLOW)
        events = await bot.events()

    [seen] = telegram.chat(OWNER)
    assert seen.markup == {
        "inline_keyboard": [
            [
                {"text": "Allow once", "callback_data": ALLOW, "style": "success"},
                {"text": "Deny", "callback_data": DENY, "style": "danger"},
            ]
        ]
    }
    assert (answer, question.answers) == ("Noted.", [ALLOW])
    assert events == [("command", "button", 0)]
    [press] = question.calls
    assert (press.address.key, press.message_id) == (LANE, str(seen.message_id))
    assert press.sender == LANE


@pytest.mark.threat("T3")
async def test_in_a_group_the_person_decides_and_not_the_chat(
    tmp_path: Path, telegram: FakeTelegram, question: Question
) -> None:
    async with polling(tmp_path, telegram, {"ask": question.press}) as bot:
        await bot.card(f"telegram:{GROUP}")
        member = await pressed(telegram, ALLOW, chat=GROUP, by=MEMBER)
        telegram.callback(
            chat_id=GROUP,
            message_id=card_in(telegram, GROUP),
            data=ALLOW,
            user_id=STRANGER,
            first_name="Ann",  # the owner's name is no right
        )
        owner = await pressed(telegram, DENY, chat=GROUP, by=OWNER)
        events = await bot.events()

    assert member == "Only the owner may answer this."
    assert owner == "Noted."
    assert question.answers == [DENY]
    assert [press.sender for press in question.calls] == [PEOPLE[1], PEOPLE[0]]
    assert events == [
        ("command", "button", 0),
        ("refused", "stranger", 0),
        ("command", "button", 0),
    ]
    assert len(telegram.answers()) == 2, "a stranger gets nothing"


async def test_a_strangers_press_leaves_its_number_and_starts_nothing(
    tmp_path: Path, telegram: FakeTelegram, question: Question
) -> None:
    async with polling(tmp_path, telegram, {"ask": question.press}) as bot:
        await bot.card(f"telegram:{STRANGER}")
        telegram.callback(
            chat_id=STRANGER, message_id=card_in(telegram, STRANGER), data="ask:treasure"
        )
        await eventually(lambda: not telegram.pending())
        await bot.sent()
        events = await bot.events()

    assert events == [("refused", "stranger", 0)]
    assert question.calls == []
    assert telegram.answers() == []
    assert len(telegram.chat(STRANGER)) == 1, "no code either: nothing was said"
    assert b"treasure" not in (tmp_path / "hearthbot.db").read_bytes()


async def test_somebody_who_was_let_in_no_longer_is_refused(
    tmp_path: Path, telegram: FakeTelegram, question: Question
) -> None:
    async with polling(tmp_path, telegram, {"ask": question.press}) as bot:
        await bot.card(f"telegram:{MEMBER}")
        await bot.access.remove(f"telegram:{MEMBER}")
        telegram.callback(chat_id=MEMBER, message_id=card_in(telegram, MEMBER), data=ALLOW)
        await eventually(lambda: not telegram.pending())
        events = await bot.events()

    assert (question.calls, telegram.answers()) == ([], [])
    assert [event[0] for event in events] == ["refused"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("gone:7", NO_LONGER),
        ("ask", NO_LONGER),
        ("", NO_LONGER),
        ("fails:1", "The approval is gone. Ask again."),
    ],
)
async def test_what_cannot_be_done_is_said_in_a_sentence(
    tmp_path: Path, telegram: FakeTelegram, question: Question, data: str, says: str
) -> None:
    async with polling(tmp_path, telegram, {"ask": question.press, "fails": fails}) as bot:
        await bot.card(LANE)
        answer = await pressed(telegram, data)
        events = await bot.events()

    assert answer == says
    assert events == [("command", "button", 0)]


# --- a process that ends -------------------------------------------------------------------------


# --- the card becomes its outcome ----------------------------------------------------------------


async def test_a_card_becomes_its_outcome_and_loses_its_buttons(
    tmp_path: Path, telegram: FakeTelegram
) -> None:
    async with polling(tmp_path, telegram, {}) as bot:
        card = await bot.card(LANE)
        telegram.fault("editMessageText", action=flood(1), times=1)
        await bot.revised(card)
        await bot.revised(card)
        row = await bot.store.row(card)

    [seen] = telegram.chat(OWNER)
    assert (seen.text, seen.markup, seen.edits) == (OUTCOME, None, 1)
    assert len(telegram.sent()) == 1
    assert row is not None
    assert (row.text, row.buttons, row.revision, row.state) == (OUTCOME, (), None, "sent")


async def test_an_edit_that_changes_nothing_went_well(telegram: FakeTelegram) -> None:
    part = MessagePart(markup="same", source="same", buttons=ROWS)
    async with channel_of(telegram) as channel:
        address = Address.parse(LANE)
        sent = await channel.send(address, part)
        assert isinstance(sent, SentMessage)
        again = await channel.edit(address, sent.message_id, part)

    assert isinstance(again, SentMessage)
    [seen] = telegram.chat(OWNER)
    assert seen.markup is not None
    assert seen.edits == 0


# --- what goes over the wire ---------------------------------------------------------------------


@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.threat("T12")
async def test_no_message_has_its_addresses_opened_by_telegram_itself(
    telegram: FakeTelegram, is_plain: bool
) -> None:
    if is_plain:
        telegram.fault("sendMessage", action=refuse_markup(), times=1)
        telegram.fault("editMessageText", action=refuse_markup(), times=1)

    async with channel_of(telegram) as channel:
        address = Address.parse(LANE)
        [part] = channel.parts("See http://evil.example/?d=SECRET")
        sent = await channel.send(address, part)
        assert isinstance(sent, SentMessage)
        [later] = channel.parts("See [this](http://evil.example/?d=SECRET)")
        await channel.edit(address, sent.message_id, later)
        await channel.send(address, replace(part, buttons=ROWS))

    assert telegram.previewed() == []
    assert len(telegram.calls("sendMessage")) == 3 if is_plain else 2


async def test_a_press_is_understood_wherever_its_message_stands(telegram: FakeTelegram) -> None:
    query: dict[str, Any] = {
        "id": "77",
        "from": {"id": MEMBER, "is_bot": False, "first_name": "Bea"},
        "chat_instance": "1",
        "data": ALLOW,
    }
    topic = {
        "message_id": 3,
        "date": 1,
        "chat": {"id": GROUP, "type": "supergroup", "is_forum": True},
        "is_topic_message": True,
        "message_thread_id": 12,
        "text": CARD,
    }
    old = {"message_id": 3, "date": 0, "chat": {"id": GROUP, "type": "supergroup"}}

    async with channel_of(telegram) as channel:
        port: Channel = channel
        payloads = [
            channel._inbound({"update_id": 1, "callback_query": {**query, "message": message}})
            for message in (topic, old)
        ]
        nowhere = channel._inbound({"update_id": 2, "callback_query": query})
        in_topic, in_old = (port.understand(knock.payload) for knock in payloads)

    assert isinstance(in_topic, Pressed)
    assert isinstance(in_old, Pressed)
    assert in_topic.address.key == payloads[0].address.key == f"telegram:{GROUP}:12"
    assert in_old.address.key == f"telegram:{GROUP}"
    assert (in_topic.press_id, in_topic.sender) == ("77", f"telegram:{MEMBER}")
    assert nowhere.sender is None, "of a message that is not ours nothing is known"


LABELS = st.text(min_size=1, max_size=50).filter(str.strip)


@given(st.lists(st.lists(LABELS, min_size=1, max_size=12), max_size=3))
def test_rows_are_folded_so_that_a_phone_shows_all_labels_in_their_order(
    rows: list[list[str]],
) -> None:
    buttons = tuple(
        tuple(Button(label=label, data=f"a:{n}") for n, label in enumerate(row)) for row in rows
    )

    shown = inline_keyboard(buttons)["inline_keyboard"]

    assert [one["text"] for row in shown for one in row] == [one for row in rows for one in row]
    for row in shown:
        assert 1 <= len(row) <= ROW_BUTTONS_MAX
        assert len(row) == 1 or len(row) * max(len(b["text"]) for b in row) <= ROW_CHARS_MAX


@given(st.text(max_size=400))
def test_an_answer_fits_and_a_long_one_waits_to_be_read(text: str) -> None:
    shown = callback_answer(text)

    assert len(shown.get("text", "")) <= ANSWER_CHARS_MAX
    assert bool(shown) == bool(text.strip())
