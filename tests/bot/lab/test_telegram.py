"""The Telegram stand-in, driven by the real client library."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from telegram import (
    Bot,
    BotCommand,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
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
    async with both(next_update_id=100) as (tg, bot):
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


async def test_a_negative_offset_forgets_all_but_the_last() -> None:
    async with both() as (tg, bot):
        for text in ("a", "b", "c"):
            tg.message(chat_id=1, text=text)

        assert ids(await bot.get_updates(offset=-1, timeout=0)) == [3]
        assert tg.pending() == [3]


async def test_an_offset_far_ahead_is_ignored_as_after_a_reset_of_ids() -> None:
    async with both(next_update_id=5000) as (tg, bot):
        tg.message(chat_id=1, text="old")
        await bot.get_updates(offset=5001, timeout=0)
        tg.next_update_id = 70
        tg.message(chat_id=1, text="new")

        assert ids(await bot.get_updates(offset=5001, timeout=0)) == [70]


async def test_a_confirmed_update_is_shown_once_more_on_demand() -> None:
    async with both(next_update_id=100) as (tg, bot):
        tg.message(chat_id=1, text="what is 2+2")
        await bot.get_updates(offset=101, timeout=0)
        tg.redeliver(100)

        assert ids(await bot.get_updates(offset=101, timeout=0)) == [100]
        assert ids(await bot.get_updates(offset=101, timeout=0)) == []


async def test_a_long_poll_ends_as_soon_as_something_is_there() -> None:
    async with both() as (tg, bot):
        poll = asyncio.create_task(bot.get_updates(timeout=4))
        await tg.until(lambda: tg.polling)

        tg.message(chat_id=1, text="hello")

        assert ids(await poll) == [1]


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
        tg.message(chat_id=1, text="seven", message_id=9)
        tg.edit(chat_id=1, message_id=9, text="eight")
        assert ids(await bot.get_updates(timeout=0)) == [1]

        await bot.get_updates(timeout=0, allowed_updates=["message", "edited_message"])
        tg.edit(chat_id=1, message_id=9, text="nine")
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


async def test_a_raw_update_is_sent_as_it_is() -> None:
    async with both() as (tg, bot):
        assert tg.update({"update_id": 44, "message": {"nonsense": True}}) == 44

        raw = await tg_raw(bot)

        assert raw == [{"update_id": 44, "message": {"nonsense": True}}]


async def tg_raw(bot: Bot) -> list[dict[str, Any]]:
    body = await bot.request.post(f"{bot.base_url}/getUpdates", None)
    assert isinstance(body, list)
    return body


async def test_a_pressed_button_comes_as_a_query_that_can_be_answered() -> None:
    async with both() as (tg, bot):
        rows = [[InlineKeyboardButton("Yes", callback_data="y")]]
        sent = await bot.send_message(1, "Sure?", reply_markup=InlineKeyboardMarkup(rows))
        tg.callback(chat_id=1, message_id=sent.message_id, data="y")

        (update,) = await bot.get_updates(timeout=0)
        assert update.callback_query is not None
        await bot.answer_callback_query(update.callback_query.id)

        assert update.callback_query.data == "y"
        assert tg.answered(update.callback_query.id)
        with pytest.raises(BadRequest, match="Query is too old"):
            await bot.answer_callback_query("unknown")


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


async def test_a_webhook_gets_updates_in_order_with_its_secret_until_it_takes_them() -> None:
    got: list[tuple[str | None, int]] = []

    async def take(request: web.Request) -> web.Response:
        secret = request.headers.get("X-Telegram-Bot-Api-Secret-Token")
        got.append((secret, (await request.json())["update_id"]))
        return web.Response(status=500 if len(got) == 1 else 200)

    async with both(webhook_backoff_s=0.01) as (tg, bot):
        app = web.Application()
        app.router.add_post("/hook", take)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"

        await bot.set_webhook(url, secret_token="s3cret")
        tg.message(chat_id=1, text="a")
        tg.message(chat_id=1, text="b")
        await tg.until(lambda: not tg.pending())
        with pytest.raises(Conflict, match="while webhook is active"):
            await bot.get_updates(timeout=0)
        info = await bot.get_webhook_info()
        await bot.delete_webhook()
        await runner.cleanup()

        assert got == [("s3cret", 1), ("s3cret", 1), ("s3cret", 2)]
        assert (
            info.last_error_message == "Wrong response from the webhook: 500 Internal Server Error"
        )
        assert await bot.get_updates(timeout=0) == ()


# Giving out ---------------------------------------------------------------------------------------


async def test_what_was_sent_is_seen_as_a_person_sees_it() -> None:
    async with both() as (tg, bot):
        tg.message(chat_id=1, text="hello")
        await bot.send_message(
            1, "<b>Good</b> day &amp; night", parse_mode="HTML", reply_parameters=ReplyParameters(1)
        )

        person, answer = tg.chat(1)

        assert (person.text, person.is_bot) == ("hello", False)
        assert (answer.text, answer.is_bot, answer.reply_to) == ("Good day & night", True, 1)
        assert answer.entities == ({"type": "bold", "offset": 0, "length": 4},)
        assert [m["text"] for m in tg.sent(1)] == ["Good day & night"]


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


async def test_the_length_counts_after_parsing() -> None:
    async with both() as (tg, bot):
        await bot.send_message(1, "<b>" + "&lt;" * 4096 + "</b>", parse_mode="HTML")

        assert tg.chat(1)[0].text == "<" * 4096


async def test_edits_change_the_message_and_refuse_to_change_nothing() -> None:
    async with both() as (tg, bot):
        sent = await bot.send_message(1, "one")
        await bot.edit_message_text("two", 1, sent.message_id)

        with pytest.raises(BadRequest, match="Message is not modified"):
            await bot.edit_message_text("<b></b>two ", 1, sent.message_id, parse_mode="HTML")
        with pytest.raises(BadRequest, match="Message to edit not found"):
            await bot.edit_message_text("x", 1, 99)
        tg.message(chat_id=1, text="mine", message_id=50)
        with pytest.raises(BadRequest, match="Message can't be edited"):
            await bot.edit_message_text("x", 1, 50)

        assert (tg.chat(1)[0].text, tg.chat(1)[0].edits) == ("two", 1)
        assert tg.sent(1)[0]["text"] == "one"


async def test_deleting_reacting_and_typing() -> None:
    async with both() as (tg, bot):
        tg.message(chat_id=1, text="hello")
        sent = await bot.send_message(1, "working")
        await bot.send_chat_action(1, "typing")
        await bot.set_message_reaction(1, 1, "👍")
        await bot.delete_message(1, sent.message_id)

        assert tg.actions(1) == ["typing"]
        (seen,) = tg.chat(1)
        assert [r["emoji"] for r in seen.reaction] == ["👍"]
        with pytest.raises(BadRequest, match="Message to delete not found"):
            await bot.delete_message(1, sent.message_id)
        with pytest.raises(BadRequest, match="Reaction_invalid"):
            await bot.set_message_reaction(1, 1, ReactionTypeEmoji("🧨"))


async def test_topics_chats_and_replies_must_exist() -> None:
    async with both(known_chats=[1]) as (tg, bot):
        tg.message(chat_id=-7, text="in a topic", user_id=5, thread_id=3)
        await bot.send_message(-7, "here", message_thread_id=3)

        assert tg.chat(-7)[1].thread_id == 3
        with pytest.raises(BadRequest, match="Message thread not found"):
            await bot.send_message(-7, "there", message_thread_id=4)
        with pytest.raises(BadRequest, match="Chat not found"):
            await bot.send_message(2, "x")
        with pytest.raises(BadRequest, match="Message to be replied not found"):
            await bot.send_message(1, "x", reply_parameters=ReplyParameters(99))
        await bot.send_message(
            1, "x", reply_parameters=ReplyParameters(99, allow_sending_without_reply=True)
        )
        tg.blocked.add(1)
        with pytest.raises(Forbidden, match="blocked by the user"):
            await bot.send_message(1, "x")


async def test_files_go_out_and_can_be_fetched_again() -> None:
    async with both() as (tg, bot):
        sent = await bot.send_document(
            1, b"a,b", filename="t.csv", caption="<i>it</i>", parse_mode="HTML"
        )
        await bot.send_photo(1, png(), filename="p.png")

        assert sent.document is not None
        file = await bot.get_file(sent.document.file_id)
        assert bytes(await file.download_as_bytearray()) == b"a,b"
        assert [(m.text, m.file_name) for m in tg.chat(1)] == [("it", "t.csv"), ("", None)]


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


async def test_the_command_menu_and_chat_are_kept() -> None:
    async with both() as (tg, bot):
        tg.message(chat_id=-7, text="hi", user_id=5)
        await bot.set_my_commands([BotCommand("help", "What I can do")])

        assert [c.command for c in await bot.get_my_commands()] == ["help"]
        assert (await bot.get_chat(-7)).title == "Group 7"
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


async def test_texts_in_which_telegram_looks_for_a_preview_are_told_apart() -> None:
    async with both() as (tg, bot):
        off = LinkPreviewOptions(is_disabled=True)
        open_one = await bot.send_message(1, "https://a.example")
        closed = await bot.send_message(1, "https://b.example", link_preview_options=off)
        await open_one.edit_text("https://c.example", link_preview_options=off)
        await closed.edit_text("https://d.example")

        texts = [seen["text"] for seen in tg.previewed()]
        assert texts == ["https://a.example", "https://d.example"]


async def test_the_log_is_bounded_and_tells_what_came_and_went() -> None:
    async with both(log_cap=3) as (tg, bot):
        for text in ("a", "b", "c", "d"):
            await bot.send_message(1, text)

        entries = tg.calls("sendMessage")
        assert [entry.params["text"] for entry in entries] == ["b", "c", "d"]
        assert all(entry.client_there and entry.status == 200 for entry in entries)
        assert entries[-1].response["result"]["text"] == "d"
        assert len(tg.chat(1)) == len(tg.sent()) == 3
        gate = tg.gate["sendMessage"]
        assert (gate.received, gate.applied, gate.answered, gate.vanished) == (4, 4, 4, 0)
