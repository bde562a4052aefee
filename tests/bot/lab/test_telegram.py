"""The Telegram stand-in, driven by the real client library."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from telegram import (
    Bot,
    Update,
)
from telegram.error import (
    BadRequest,
    Conflict,
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


async def test_a_second_long_poll_ends_the_first_with_a_conflict() -> None:
    async with both() as (tg, bot):
        first = asyncio.create_task(bot.get_updates(timeout=4))
        await tg.until(lambda: tg.polling)
        second = asyncio.create_task(bot.get_updates(timeout=4))

        with pytest.raises(Conflict, match="terminated by other getUpdates request"):
            await first
        tg.message(chat_id=1, text="hello")
        assert ids(await second) == [1]


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
