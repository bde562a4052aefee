"""The lab's chat: what the stand-in was told and shows, typed and read at a terminal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from bot.channels.console import HOW_TO_PRESS
from bot.cli.terminal.lab import LabChat
from bot.inbox.commands import NO_LONGER
from bot.lab.telegram import FakeTelegram

PERSON = 1001
BUTTONS = {
    "inline_keyboard": [
        [
            {"text": "Allow once", "callback_data": "ask:1:yes"},
            {"text": "Deny", "callback_data": "ask:1:no"},
        ]
    ]
}
CARD = f"May I?\n\n[1] Allow once\n[2] Deny\n\n{HOW_TO_PRESS}"


class Bot:
    """Speaks to the stand-in as a bot does."""

    def __init__(self, telegram: FakeTelegram, http: httpx.AsyncClient) -> None:
        self._telegram = telegram
        self._http = http

    async def does(self, method: str, files: Any = None, **params: Any) -> Any:
        url = f"{self._telegram.base_url}/bot{self._telegram.token}/{method}"
        if files is None:
            answer = await self._http.post(url, json={"chat_id": PERSON, **params})
        else:
            answer = await self._http.post(url, data={"chat_id": PERSON, **params}, files=files)
        answer.raise_for_status()
        return answer.json()["result"]

    async def told(self) -> list[dict[str, Any]]:
        """The updates that came."""
        updates: list[dict[str, Any]] = await self.does("getUpdates", offset=0)
        return updates


@pytest.fixture
async def telegram() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram() as server:
        yield server


@pytest.fixture
async def bot(telegram: FakeTelegram) -> AsyncIterator[Bot]:
    async with httpx.AsyncClient(timeout=5) as http:
        yield Bot(telegram, http)


@pytest.fixture
def chat(telegram: FakeTelegram) -> LabChat:
    return LabChat(telegram, PERSON)


async def test_what_is_typed_arrives_and_what_is_answered_is_shown_once(
    bot: Bot, chat: LabChat
) -> None:
    chat.types("hello")
    before = list(chat.news())
    sent = await bot.does("sendMessage", text="Hi")
    first, again = list(chat.news()), list(chat.news())
    await bot.does("editMessageText", message_id=sent["message_id"], text="Hi there")

    [update] = await bot.told()
    assert update["message"]["text"] == "hello"
    assert (before, first, again) == ([], ["Hi"], [])
    assert list(chat.news()) == ["Hi there"]


@pytest.mark.parametrize("line", ["2", "[2]", "/press 2"])
async def test_a_number_presses_the_button_that_has_it(bot: Bot, chat: LabChat, line: str) -> None:
    await bot.does("sendMessage", text="May I?", reply_markup=BUTTONS)
    shown = list(chat.news())
    chat.types(line)
    [update] = await bot.told()
    query = update["callback_query"]
    await bot.does("answerCallbackQuery", callback_query_id=query["id"], text="Denied.")

    assert shown == [CARD]
    assert (query["data"], query["from"]["id"]) == ("ask:1:no", PERSON)
    assert list(chat.news()) == ["Denied."]
    assert list(chat.news()) == []


async def test_a_card_that_was_answered_or_deleted_has_no_buttons_any_more(
    bot: Bot, chat: LabChat
) -> None:
    answered = await bot.does("sendMessage", text="May I?", reply_markup=BUTTONS)
    deleted = await bot.does("sendMessage", text="And this?", reply_markup=BUTTONS)
    [_, other] = list(chat.news())
    await bot.does("editMessageText", message_id=answered["message_id"], text="Allowed.")
    await bot.does("deleteMessage", message_id=deleted["message_id"])
    news = list(chat.news())
    chat.types("/press 1")
    chat.types("/press 3")

    assert other.startswith("And this?\n\n[3] Allow once\n[4] Deny")
    assert news == ["Allowed."]
    assert list(chat.news()) == [NO_LONGER, NO_LONGER]
    assert await bot.told() == []
