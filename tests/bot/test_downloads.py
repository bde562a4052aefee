"""One file by HTTP: whole or not at all, from where it may come, and never further."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web

from agent.files.values import FileUnavailable
from bot.channels.slack.files import is_ours
from bot.channels.telegram.api import TelegramFiles, why_not
from bot.channels.wire import Downloads
from memory.records.errors import Temporary
from tests.agent.web.sites import site

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """Answers every path in one way, and keeps what was asked."""

    def __init__(self) -> None:
        self.answer: Answer = self._whole
        self.paths: list[str] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.paths.append(request.path)
        return await self.answer(request)

    async def _whole(self, _: web.Request) -> web.StreamResponse:
        return web.Response(body=b"x" * 100)

    async def endless(self, request: web.Request) -> web.StreamResponse:
        """Says no length, and goes on."""
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(1_000):
            await response.write(b"x" * 10)
        return response

    def says(self, status: int, **headers: str) -> None:
        async def answer(_: web.Request) -> web.StreamResponse:
            return web.Response(status=status, headers=headers)

        self.answer = answer


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    async with site(made.handle) as running:
        made.url = running.url
        yield made


async def get(server: Server, bytes_max: int = 1_000) -> bytes:
    return await Downloads(host="Slack").get(f"{server.url}/f", bytes_max=bytes_max)


async def test_one_that_is_too_large_is_given_up(server: Server) -> None:
    with pytest.raises(FileUnavailable, match="too large"):
        await get(server, bytes_max=99)
    server.answer = server.endless
    with pytest.raises(FileUnavailable, match="too large"):
        await get(server)


async def test_a_redirect_is_not_followed(server: Server) -> None:
    server.says(302, Location=f"{server.url}/elsewhere")

    with pytest.raises(FileUnavailable, match="sends elsewhere"):
        await get(server)

    assert server.paths == ["/f"]


@pytest.mark.parametrize(
    ("status", "error"),
    [(404, FileUnavailable), (403, FileUnavailable), (500, Temporary), (502, Temporary)],
)
async def test_each_refusal_says_whether_trying_again_helps(
    server: Server, status: int, error: type[Exception]
) -> None:
    server.says(status)

    with pytest.raises(error):
        await get(server)


async def test_a_host_that_is_not_there_is_trouble_that_may_pass() -> None:
    with pytest.raises(Temporary, match="ConnectError") as trouble:
        await Downloads(host="Telegram").get("http://127.0.0.1:9/secret", bytes_max=9)

    assert "secret" not in str(trouble.value)


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x", "a/../../x", "https://evil.example/x", "", None, 7, "a//b"]
)
async def test_a_place_that_is_not_below_the_bots_files_is_not_gone_to(
    server: Server, path: object
) -> None:
    files = TelegramFiles(server.url, silence_s=5)

    with pytest.raises(FileUnavailable):
        await files.fetch({"file_path": path}, bytes_max=1_000)

    assert server.paths == []


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("Bad Request: file is too big", "20 MB"),
        ("Bad Request: wrong file_id or the file is temporarily unavailable", "any more"),
        ("Forbidden: whatever", "refuses"),
    ],
)
def test_what_telegram_refuses_is_said_in_words(said: str, why: str) -> None:
    assert why in why_not(said)


@pytest.mark.parametrize(
    ("url", "ours"),
    [
        ("https://files.slack.com/files-pri/T1-F1/a.png", True),
        ("http://files.slack.com/a.png", False),
        ("https://files.slack.com:8443/a.png", False),
        ("https://files.slack.com.evil.example/a.png", False),
        ("https://files.slack.com@evil.example/a.png", False),
        ("https://user:word@files.slack.com/a.png", False),
        ("//files.slack.com/a.png", False),
        ("https://[x/a.png", False),
        ("", False),
    ],
)
def test_slacks_token_goes_to_slack_alone(url: str, ours: bool) -> None:
    assert is_ours(url, "https://slack.com/api/") is ours
