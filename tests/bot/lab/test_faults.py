"""Faults on demand, seen by the real clients of both stand-ins."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from telegram import Bot
from telegram.error import NetworkError, RetryAfter, TelegramError, TimedOut
from telegram.request import HTTPXRequest

from bot.lab import faults
from bot.lab.telegram import FakeTelegram, flood

pytestmark = pytest.mark.filterwarnings("ignore:.*retry_after")


@asynccontextmanager
async def both() -> AsyncIterator[tuple[FakeTelegram, Bot]]:
    async with FakeTelegram() as tg:
        request = HTTPXRequest(read_timeout=5)
        async with Bot(tg.token, base_url=f"{tg.base_url}/bot", request=request) as bot:
            yield tg, bot


async def test_a_held_answer_times_out_although_the_text_stands_in_the_chat() -> None:
    async with both() as (tg, bot):
        tg.fault("sendMessage", action=faults.hold())

        with pytest.raises(TimedOut):
            await bot.send_message(1, "hello", read_timeout=0.1)

        await tg.until(lambda: [m.text for m in tg.chat(1)] == ["hello"])
        await tg.until(tg.release)
        await tg.until(lambda: tg.gate["sendMessage"].vanished == 1)
        (entry,) = tg.calls("sendMessage")
        assert (entry.applied, entry.client_there, entry.fault) == (True, False, "hold")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("make", [faults.drop, faults.reset])
async def test_a_lost_connection_leaves_the_effect_or_not(make: type, after: bool) -> None:
    async with both() as (tg, bot):
        tg.fault("sendMessage", action=make(after=after))

        with pytest.raises(NetworkError):
            await bot.send_message(1, "hello")

        assert len(tg.chat(1)) == int(after)
        assert tg.calls("sendMessage")[0].status == 0
        await bot.send_message(1, "again")


async def test_faults_pick_their_occasions() -> None:
    async with both() as (tg, bot):
        fault = tg.fault(
            "sendMessage",
            action=flood(1),
            times=2,
            skip=1,
            when={"chat_id": 1, "text~": "oo"},
        )

        refused = []
        for chat_id, text in [
            (1, "foo"),
            (2, "foo"),
            (1, "bar"),
            (1, "moo"),
            (1, "zoo"),
            (1, "oo"),
        ]:
            try:
                await bot.send_message(chat_id, text)
            except RetryAfter:
                refused.append(text)

        assert refused == ["moo", "zoo"]
        assert fault.hits == 2


async def test_the_control_routes_do_what_the_methods_do() -> None:
    async with both() as (tg, bot), httpx.AsyncClient(base_url=f"{tg.base_url}/lab/") as lab:
        queued = await lab.post("message", json={"chat_id": 1, "text": "hello"})
        assert queued.json() == {"result": 1}
        action = {"kind": "answer", "status": 429, "body": {"ok": False, "description": "x"}}
        await lab.post("fault", json={"method": "sendMessage", "action": action})
        with pytest.raises(TelegramError):
            await bot.send_message(1, "a")
        await bot.send_message(1, "b")

        log = (await lab.get("log", params={"method": "sendMessage"})).json()["result"]
        seen = (await lab.get("chat", params={"chat_id": 1})).json()["result"]
        gate = (await lab.get("wait", params={"method": "sendMessage", "applied": 1})).json()
        unknown = await lab.get("nothing")
        late = await lab.get("wait", params={"method": "x", "applied": 1, "timeout_s": 0.01})
        wrong = await lab.post("message", json={"no": "chat"})

        assert [(entry["status"], entry["fault"]) for entry in log] == [
            (429, "answer"),
            (200, None),
        ]
        assert [message["text"] for message in seen] == ["hello", "b"]
        assert gate["result"] == {"received": 2, "applied": 1, "answered": 2, "vanished": 0}
        assert (unknown.status_code, late.status_code, wrong.status_code) == (404, 408, 400)
