"""Requests to Telegram by either client: the same answers, and failures that mean the same."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator

import pytest
import telegram
from telegram.error import NetworkError, TimedOut
from telegram.request import RequestData
from telegram.request._requestparameter import RequestParameter

from bot.lab.faults import Action, drop, hold, reset
from bot.lab.telegram import FakeTelegram
from bot.telegram_http import is_unconnected_by, was_surely_not_sent
from bot.telegram_web import Request
from tests.bot.kit import TOKEN

TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
BOTH = pytest.mark.parametrize("quick", [True, False])


@pytest.fixture
async def fake() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram(TOKEN) as made:
        yield made


def request(*, quick: bool, read_s: float = 5.0) -> Request:
    return Request(read_s, connections=4, tls=TLS, loaded=lambda: quick)


def data(**values: object) -> RequestData:
    return RequestData([RequestParameter.from_input(name, one) for name, one in values.items()])


def url(fake: FakeTelegram, method: str) -> str:
    return f"{fake.base_url}/bot{TOKEN}/{method}"


@BOTH
async def test_what_is_asked_arrives_and_what_is_answered_comes_back(
    fake: FakeTelegram, quick: bool
) -> None:
    async with request(quick=quick) as client:
        text = "Grüße & 50 % + 🙂"
        sent = data(chat_id=5, text=text, link_preview_options={"is_disabled": True})

        status, payload = await client.do_request(url(fake, "sendMessage"), "POST", sent)

    [seen] = fake.chat(5)
    assert (status, seen.text) == (200, text)
    assert client.parse_json_payload(payload)["ok"]


@BOTH
async def test_files_go_along(fake: FakeTelegram, quick: bool) -> None:
    async with request(quick=quick) as client:
        upload = data(chat_id=5, document=telegram.InputFile(b"%PDF", filename="plan.pdf"))

        status, _ = await client.do_request(url(fake, "sendDocument"), "POST", upload)

    assert status == 200
    assert [one.file_name for one in fake.chat(5)] == ["plan.pdf"]


@BOTH
async def test_an_unconnected_request_was_surely_not_sent(quick: bool) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens here
        nowhere = f"http://127.0.0.1:{taken.getsockname()[1]}/bot{TOKEN}/sendMessage"
        async with request(quick=quick) as client:
            with pytest.raises(NetworkError) as failed:
                await client.do_request(nowhere, "POST", data(chat_id=5, text="Hello"))

    assert is_unconnected_by(failed.value.__cause__)
    assert was_surely_not_sent(failed.value.__cause__)
    assert TOKEN not in str(failed.value)


@BOTH
@pytest.mark.parametrize("fault", [drop(after=True), reset(after=True)])
async def test_a_connection_that_breaks_leaves_the_fate_of_the_request_open(
    fake: FakeTelegram, quick: bool, fault: Action
) -> None:
    fake.fault("sendMessage", action=fault)
    async with request(quick=quick) as client:
        with pytest.raises(NetworkError) as failed:
            await client.do_request(url(fake, "sendMessage"), "POST", data(chat_id=5, text="Hello"))

    assert not was_surely_not_sent(failed.value.__cause__)
    assert not is_unconnected_by(failed.value.__cause__)
    assert TOKEN not in str(failed.value)
    assert len(fake.chat(5)) == 1


@BOTH
async def test_silence_is_a_time_out_and_the_next_request_is_served(
    fake: FakeTelegram, quick: bool
) -> None:
    fake.fault("getMe", action=hold())
    async with request(quick=quick, read_s=0.05) as client:
        with pytest.raises(TimedOut) as failed:
            await client.do_request(url(fake, "getMe"), "POST")
        fake.release()
        status, _ = await client.do_request(url(fake, "getMe"), "POST", read_timeout=5.0)

    assert status == 200
    assert not was_surely_not_sent(failed.value.__cause__)


@BOTH
async def test_it_works_again_after_its_connections_were_given_up(
    fake: FakeTelegram, quick: bool
) -> None:
    client = request(quick=quick)
    for _ in range(2):
        await client.initialize()
        status, _ = await client.do_request(url(fake, "getMe"), "POST")
        await client.shutdown()

    assert status == 200
    with pytest.raises(RuntimeError):
        await client.do_request(url(fake, "getMe"), "POST")


async def test_without_aiohttp_the_library_asks_and_with_it_the_library_is_spared(
    fake: FakeTelegram,
) -> None:
    loaded = False
    client = Request(5.0, connections=1, tls=TLS, loaded=lambda: loaded)
    async with client:
        await client.do_request(url(fake, "getMe"), "POST")
        assert not client.quick.is_open

        loaded = True
        await client.do_request(url(fake, "getMe"), "POST")

        assert client.quick.is_open


async def test_through_a_proxy_the_library_always_asks(
    fake: FakeTelegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", fake.base_url)
    async with request(quick=True) as client:
        status, _ = await client.do_request(url(fake, "getMe"), "POST")

        assert not client.quick.is_open
    assert status == 200
