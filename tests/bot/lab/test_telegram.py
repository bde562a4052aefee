"""The Telegram stand-in, driven by the real client library."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from telegram import (
    Bot,
    BotCommand,
    ReactionTypeEmoji,
    ReplyParameters,
    Update,
)
from telegram.error import (
    BadRequest,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
)
from telegram.request import HTTPXRequest

from bot.lab.telegram import FakeTelegram
from tests.bot.files_kit import png

TOKEN = "123456:TEST"
pytestmark = pytest.mark.filterwarnings("ignore:.*retry_after")


@asynccontextmanager
async def client(tg: FakeTelegram, token: str = TOKEN) -> AsyncIterator[Bot]:
    bot = Bot(
        token,
        base_url=f"{tg.base_url}/bot",
        base_file_url=f"{tg.base_url}/file/bot",
        request=HTTPXRequest(connection_pool_size=8, read_timeout=5),
        get_updates_request=HTTPXRequest(connection_pool_size=4, read_timeout=5),
    )
    async with bot:
        yield bot


@asynccontextmanager
async def both(**settings: Any) -> AsyncIterator[tuple[FakeTelegram, Bot]]:
    async with FakeTelegram(TOKEN, **settings) as tg, client(tg) as bot:
        yield tg, bot


def ids(updates: tuple[Update, ...]) -> list[int]:
    return [update.update_id for update in updates]


# Taking in ----------------------------------------------------------------------------------------


async def test_an_update_comes_again_until_a_higher_offset_confirms_it() -> None:
    async with both() as (tg, bot):
        tg.change(next_update_id=100)
        for text in ("a", "b", "c"):
            tg.message(chat_id=1, text=text)

        first = await bot.get_updates(timeout=0)
        again = await bot.get_updates(timeout=0, limit=2)
        rest = await bot.get_updates(offset=102, timeout=0)
        back = await bot.get_updates(offset=100, timeout=0)

        assert ids(first) == [100, 101, 102]
        assert ids(again) == [100, 101]
        assert ids(rest) == ids(back) == [102]
        assert tg.pending() == [102]


async def test_offsets_may_be_negative_or_far_ahead_and_an_update_may_come_once_more() -> None:
    async with both() as (tg, bot):
        for text in ("a", "b", "c"):
            tg.message(chat_id=1, text=text)

        assert ids(await bot.get_updates(offset=-1, timeout=0)) == [3]
        assert ids(await bot.get_updates(offset=4, timeout=0)) == []
        tg.redeliver(2)
        assert ids(await bot.get_updates(offset=4, timeout=0)) == [2]
        assert ids(await bot.get_updates(offset=4, timeout=0)) == []
        tg.change(next_update_id=1)
        tg.message(chat_id=1, text="after a reset of ids")
        assert ids(await bot.get_updates(offset=5001, timeout=0)) == [1]


async def test_a_second_long_poll_ends_the_first_with_a_conflict() -> None:
    async with both() as (tg, bot):
        first = asyncio.create_task(bot.get_updates(timeout=4))
        await tg.until(lambda: tg.polling)
        second = asyncio.create_task(bot.get_updates(timeout=4))

        with pytest.raises(Conflict, match="terminated by other getUpdates request"):
            await first
        tg.message(chat_id=1, text="hello")
        assert ids(await second) == [1]


async def test_kinds_that_were_not_asked_for_are_not_queued() -> None:
    async with both() as (tg, bot):
        await bot.get_updates(timeout=0, allowed_updates=["message"])
        tg.message(chat_id=1, text="seven")
        tg.edit(chat_id=1, message_id=1, text="eight")
        assert ids(await bot.get_updates(timeout=0)) == [1]

        await bot.get_updates(timeout=0, allowed_updates=["message", "edited_message"])
        tg.edit(chat_id=1, message_id=1, text="nine")
        (_, edited) = await bot.get_updates(timeout=0)
        assert edited.edited_message is not None
        assert edited.edited_message.text == "nine"


async def test_messages_carry_what_people_send() -> None:
    async with both() as (tg, bot):
        tg.message(chat_id=5, text="/start now @ann", username="bob", first_name="Bob")
        tg.message(chat_id=-7, text="in a topic", user_id=5, thread_id=3)
        tg.message(chat_id=5, text="yes", reply_to=1)
        tg.message(chat_id=5, photo=b"jpg", caption="one", media_group_id="g")
        tg.message(chat_id=5, document=b"a,b", file_name="t.csv", mime_type="text/csv")
        tg.message(chat_id=5, voice=b"ogg")

        said = [update.message for update in await bot.get_updates(timeout=0)]
        command, topic, reply, photo, document, voice = (m for m in said if m is not None)

        assert command.from_user is not None
        assert command.from_user.username == "bob"
        assert [e.type for e in command.entities] == ["bot_command", "mention"]
        assert (topic.chat.type, topic.message_thread_id) == ("supergroup", 3)
        assert reply.reply_to_message is not None
        assert reply.reply_to_message.text == "/start now @ann"
        assert (photo.media_group_id, photo.caption) == ("g", "one")
        assert document.document is not None
        assert document.document.file_name == "t.csv"
        assert voice.voice is not None
        file = await bot.get_file(document.document.file_id)
        assert bytes(await file.download_as_bytearray()) == b"a,b"


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([[{"text": "Yes", "callback_data": "y" * 65}]], "BUTTON_DATA_INVALID"),
        ([[{"text": "Yes", "callback_data": "ü" * 33}]], "BUTTON_DATA_INVALID"),
        ([[{"text": "Yes", "callback_data": ""}]], "BUTTON_DATA_INVALID"),
        ([[{"text": "", "callback_data": "y"}]], "Text must be non-empty"),
        ([[{"text": "Yes"}]], "Text buttons are unallowed"),
        ([[{"text": "Yes", "callback_data": "y", "style": "gold"}]], "invalid button style"),
        ([[{"text": "Yes", "callback_data": "y"}] * 9], "reply markup is too long"),
        ([[{"text": "Yes", "callback_data": "y"}]] * 101, "reply markup is too long"),
    ],
)
async def test_buttons_that_do_not_fit_are_refused(rows: list[Any], error: str) -> None:
    async with both() as (tg, bot):
        with pytest.raises(BadRequest, match=f"(?i){error}"):
            await bot.send_message(
                1, "Sure?", api_kwargs={"reply_markup": {"inline_keyboard": rows}}
            )

        assert tg.sent() == []


async def test_an_answer_to_a_query_fits_and_is_seen_and_an_old_query_gets_none() -> None:
    async with both() as (tg, bot):
        sent = await bot.send_message(1, "Sure?")
        for _ in range(2):
            tg.callback(chat_id=1, message_id=sent.message_id, data="y")
        first, second = [
            update.callback_query.id
            for update in await bot.get_updates(timeout=0)
            if update.callback_query is not None
        ]

        with pytest.raises(BadRequest, match=r"(?i)too_long"):
            await bot.answer_callback_query(first, text="x" * 201)
        await bot.answer_callback_query(first, text="x" * 200, show_alert=True)
        tg.forget_queries()
        with pytest.raises(BadRequest, match="Query is too old"):
            await bot.answer_callback_query(second)

        assert tg.answers() == [{"callback_query_id": first, "text": "x" * 200, "show_alert": True}]


# Giving out ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "mode", "refusal"),
    [
        (" \n ", None, "Message text is empty"),
        ("<b></b>", "HTML", "Message text is empty"),
        ("x" * 4097, None, "Message is too long"),
        ("😀" * 2049, None, "Message is too long"),
        ("é<foo>", "HTML", 'Can\'t parse entities: unsupported start tag "foo" at byte offset 2'),
        ("<b>x", "HTML", "find end tag corresponding to start tag"),
    ],
)
async def test_texts_that_telegram_refuses_are_refused(
    text: str, mode: str | None, refusal: str
) -> None:
    async with both() as (tg, bot):
        with pytest.raises(BadRequest) as caught:
            await bot.send_message(1, text, parse_mode=mode)

        assert refusal.lower() in caught.value.message.lower()
        assert tg.chat(1) == []
        assert tg.calls("sendMessage")[0].applied is False


async def test_edits_change_the_message_and_refuse_to_change_nothing() -> None:
    async with both() as (tg, bot):
        sent = await bot.send_message(1, "one")
        await bot.edit_message_text("two", 1, sent.message_id)

        with pytest.raises(BadRequest, match="Message is not modified"):
            await bot.edit_message_text("<b></b>two ", 1, sent.message_id, parse_mode="HTML")
        with pytest.raises(BadRequest, match="Message to edit not found"):
            await bot.edit_message_text("x", 1, 99)
        tg.message(chat_id=1, text="mine")
        with pytest.raises(BadRequest, match="Message can't be edited"):
            await bot.edit_message_text("x", 1, 2)

        assert (tg.chat(1)[0].text, tg.chat(1)[0].edits) == ("two", 1)
        assert tg.sent(1)[0]["text"] == "one"


async def test_topics_chats_and_replies_must_exist() -> None:
    async with both() as (tg, bot):
        tg.message(chat_id=-7, text="in a topic", user_id=5, thread_id=3)
        await bot.send_message(-7, "here", message_thread_id=3)

        assert tg.chat(-7)[1].thread_id == 3
        with pytest.raises(BadRequest, match="Message thread not found"):
            await bot.send_message(-7, "there", message_thread_id=4)
        with pytest.raises(BadRequest, match="Message to delete not found"):
            await bot.delete_message(1, 99)
        with pytest.raises(BadRequest, match="Reaction_invalid"):
            await bot.set_message_reaction(-7, 1, ReactionTypeEmoji("🧨"))
        with pytest.raises(BadRequest, match="Message to be replied not found"):
            await bot.send_message(1, "x", reply_parameters=ReplyParameters(99))
        await bot.send_message(
            1, "x", reply_parameters=ReplyParameters(99, allow_sending_without_reply=True)
        )
        tg.blocked.add(1)
        with pytest.raises(Forbidden, match="blocked by the user"):
            await bot.send_message(1, "x")


@pytest.mark.parametrize(
    ("photo", "says"),
    [
        (b"no picture", "Image_process_failed"),
        (png(5_000, 100), "Photo_invalid_dimensions"),
        (png(9_000, 2_000), "Photo_invalid_dimensions"),
        (png(more=10_000_000), "too big for a photo"),
    ],
)
async def test_a_photo_has_its_rules(photo: bytes, says: str) -> None:
    async with both() as (tg, bot):
        with pytest.raises(BadRequest, match=says):
            await bot.send_photo(1, photo)
        assert tg.chat(1) == []


async def test_a_file_of_more_than_50_mb_is_refused() -> None:
    async with both() as (tg, bot):
        with pytest.raises(NetworkError, match="Request Entity Too Large"):
            await bot.send_document(1, bytes(50_000_001))
        assert tg.chat(1) == []


async def test_the_command_menu_is_checked() -> None:
    async with both() as (_, bot):
        with pytest.raises(BadRequest, match="Bot_command_invalid"):
            await bot.set_my_commands([BotCommand("Not-Good", "x")])


async def test_a_wrong_token_and_an_unknown_method_are_told_apart() -> None:
    async with FakeTelegram(TOKEN) as tg:
        with pytest.raises(InvalidToken):
            async with client(tg, "123456:WRONG"):
                pass
        async with client(tg) as bot:
            with pytest.raises(InvalidToken, match="not found"):
                await bot.request.post(f"{bot.base_url}/noSuchMethod", None)

        assert [entry.status for entry in tg.calls()] == [401, 200, 404]


async def test_flood_limits_are_the_documented_ones() -> None:
    now = [0.0]
    async with both(limits=True, clock=lambda: now[0]) as (tg, bot):
        for text in ("a", "b", "c"):
            await bot.send_message(1, text)
        with pytest.raises(RetryAfter) as caught:
            await bot.send_message(1, "d")
        assert caught.value.message.endswith("Retry in 1 seconds")
        now[0] += 1
        await bot.send_message(1, "d")

        for number in range(20):
            now[0] += 0.1
            await bot.send_message(-5, str(number))
        with pytest.raises(RetryAfter):
            await bot.send_message(-5, "more")

        now[0] += 60
        for chat_id in range(100, 130):
            await bot.send_message(chat_id, "x")
        with pytest.raises(RetryAfter):
            await bot.send_message(200, "x")
        assert len(tg.sent()) == 54


async def test_the_log_is_bounded_and_tells_what_came_and_went() -> None:
    async with both(log_cap=3) as (tg, bot):
        for text in ("a", "b", "c", "d"):
            await bot.send_message(1, text)

        entries = tg.calls("sendMessage")
        assert [entry.params["text"] for entry in entries] == ["b", "c", "d"]
        assert all(entry.client_there and entry.status == 200 for entry in entries)
        assert entries[-1].response["result"]["text"] == "d"
        gate = tg.gate["sendMessage"]
        assert (gate.received, gate.applied, gate.answered, gate.vanished) == (4, 4, 4, 0)
