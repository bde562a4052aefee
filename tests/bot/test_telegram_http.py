"""How requests reach Telegram's server, and what is known of one that failed: over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import io
import logging
import os
import socket
import ssl
import textwrap
import threading
import time
import traceback
from base64 import b64decode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import telegram
from telegram.error import NetworkError, TelegramError, TimedOut

from agent.errors import SettingsWrong
from agent.messages import Address
from bot.channel import Delivery, InDoubt, MessagePart, NotSent, Refused, Sent
from bot.clock import SystemClock
from bot.telegram import ConnectTimedOut, NotConnected, TelegramChannel, TelegramOptions, _Request
from bot.telegram_http import Route
from tests.agent.models.test_connection import CERTIFICATE, ITS_KEY
from tests.bot.kit import TOKEN, eventually

SECRET = TOKEN.partition(":")[2]
SLOW = 5.0
CHAT = Address(channel="telegram", chat_id="5")
HELLO = MessagePart(markup="hello", source="hello")
OK = b'{"ok": true, "result": {"message_id": 7}}'

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def said(body: bytes = OK, status: str = "200 OK", **headers: str) -> bytes:
    """A whole answer; its length is told unless it is chunked."""
    if "Transfer_Encoding" not in headers:
        headers = {"Content_Length": str(len(body)), **headers}
    fields = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"HTTP/1.1 {status}", *fields, "", ""]).encode() + body


def says(answer: bytes = b"", *, then: str = "close") -> Script:
    """Reads a request, and answers so; then closes, resets, or waits."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()
        if then == "wait":
            await reader.read()
        if then == "reset":
            writer.transport.abort()
        if then != "keep":
            writer.close()

    return script


class Server:
    """Plays one script a request, the last one again and again; keeps what it was sent."""

    def __init__(self, *scripts: Script) -> None:
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.connections = 0
        self.left = asyncio.Event()
        self.port = 0
        self.url = ""
        self._scripts = list(scripts)
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        try:
            yield self
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.heads.append(head)
                self.bodies.append(await reader.readexactly(_length(head)))
                script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]
                await script(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.left.set()
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


def _length(head: str) -> int:
    for line in head.splitlines():
        name, _, value = line.partition(":")
        if name.lower() == "content-length":
            return int(value)
    return 0


KEPT = says(said(), then="keep")


@asynccontextmanager
async def channel_at(url: str, **more: Any) -> AsyncIterator[TelegramChannel]:
    options = TelegramOptions(token=TOKEN, base_url=url, **{"send_timeout_s": SLOW, **more})
    async with TelegramChannel(options, clock=SystemClock()) as channel:
        yield channel


async def send(url: str, **more: Any) -> Delivery:
    async with channel_at(url, **more) as channel, asyncio.timeout(SLOW):
        return await channel.send(CHAT, HELLO)


@asynccontextmanager
async def requests_to(url: str, *, limit: int = 4, wait_s: float = SLOW) -> AsyncIterator[_Request]:
    async with _Request(Route(url), read_timeout_s=wait_s, limit=limit) as request:
        yield request


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name}_proxy".upper(), raising=False)


@pytest.fixture
def trusted(tmp_path: Path) -> Path:
    """The certificate of 127.0.0.1 as a file."""
    path = tmp_path / "cert.pem"
    path.write_text(ssl.DER_cert_to_PEM_cert(b64decode(CERTIFICATE)))
    return path


@pytest.fixture
def tls(trusted: Path, tmp_path: Path) -> ssl.SSLContext:
    kind = "PRIVATE KEY"
    lines = textwrap.wrap(ITS_KEY, 64)
    key = tmp_path / "key.pem"
    key.write_text("\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""]))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(trusted, key)
    return context


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """Where no connection comes about: the queue is full, and nobody accepts."""
    with socket.socket() as listener, contextlib.ExitStack() as full:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(2):
            filler = full.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


# --- surely not sent ---------------------------------------------------------------------------


async def test_a_refused_connection_is_surely_not_sent(closed_port: int) -> None:
    outcome = await send(f"http://127.0.0.1:{closed_port}")

    assert isinstance(outcome, NotSent)
    assert "refuse" in outcome.reason.lower()


async def test_a_name_that_is_not_found_is_surely_not_sent(
    stays_on_this_machine: list[str],
) -> None:
    outcome = await send("http://telegram.invalid")

    assert isinstance(outcome, NotSent)
    assert stays_on_this_machine.pop().endswith("telegram.invalid")
    stays_on_this_machine.clear()


@pytest.mark.parametrize("url", [f"http://{'x' * 70}.invalid", "http://127.0.0.1:99999"])
async def test_an_address_that_cannot_be_one_is_surely_not_sent(
    url: str, stays_on_this_machine: list[str]
) -> None:
    outcome = await send(url)

    assert isinstance(outcome, NotSent)
    stays_on_this_machine.clear()


async def test_a_connection_that_does_not_come_about_in_time_is_surely_not_sent(
    deaf_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.telegram.CONNECT_S", 0.1)

    outcome = await send(f"http://127.0.0.1:{deaf_port}", send_timeout_s=0.1)

    assert isinstance(outcome, NotSent)


async def test_a_certificate_that_nobody_vouches_for_is_surely_not_sent(
    tls: ssl.SSLContext,
) -> None:
    async with Server(KEPT).running(tls) as server:
        outcome = await send(server.url)

    assert isinstance(outcome, NotSent)
    assert "certificate" in outcome.reason
    assert server.heads == []


async def test_a_server_without_tls_where_it_has_to_be_is_surely_not_sent() -> None:
    async def no_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        await says(b"HTTP/1.1 400 Bad Request\r\n\r\n")(reader, writer)

    server = await asyncio.start_server(no_tls, "127.0.0.1", 0)
    async with server:
        outcome = await send(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")

    assert isinstance(outcome, NotSent)


async def test_a_server_that_does_not_end_the_handshake_is_surely_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bot.telegram.CONNECT_S", 0.1)
    async with Server(KEPT).running() as server:
        outcome = await send(f"https://127.0.0.1:{server.port}", send_timeout_s=0.1)

    assert isinstance(outcome, NotSent)


async def test_a_place_that_does_not_come_free_in_time_is_surely_not_sent() -> None:
    async with (
        Server(says(then="wait")).running() as server,
        requests_to(server.url, limit=1) as request,
    ):
        first = asyncio.ensure_future(request.post(f"{server.url}/x"))
        await eventually(lambda: server.heads)
        with pytest.raises(ConnectTimedOut):
            await request.post(f"{server.url}/x", pool_timeout=0.05, connect_timeout=0.05)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first

    assert len(server.heads) == 1


@pytest.mark.parametrize("status", ["500 Oops", "503 Busy"])
async def test_a_server_that_says_it_failed_has_not_sent(status: str) -> None:
    async with Server(says(said(b"<html>", status))).running() as server:
        outcome = await send(server.url)

    assert isinstance(outcome, NotSent)


async def test_a_pause_that_telegram_asks_for_is_kept() -> None:
    body = b'{"ok": false, "description": "slow down", "parameters": {"retry_after": 3}}'
    async with Server(says(said(body, "429 Too Many Requests"))).running() as server:
        outcome = await send(server.url)

    assert outcome == NotSent(reason="Telegram asks for a pause", retry_after_s=3)


async def test_a_redirection_is_not_followed_so_that_the_token_stays_here() -> None:
    async with Server(KEPT).running() as elsewhere:
        moved = said(b"", "302 Found", Location=f"{elsewhere.url}/bot{TOKEN}/sendMessage")
        async with Server(says(moved)).running() as server:
            outcome = await send(server.url)

    assert isinstance(outcome, InDoubt)
    assert elsewhere.heads == []


@pytest.mark.parametrize("status", ["400 Bad Request", "403 Forbidden", "401 Unauthorized"])
async def test_a_refusal_stays_one(status: str) -> None:
    body = b'{"ok": false, "description": "Forbidden: bot was blocked: not found"}'
    async with Server(says(said(body, status), then="keep")).running() as server:
        outcome = await send(server.url)

    assert isinstance(outcome, Refused)


# --- in doubt ----------------------------------------------------------------------------------

BROKEN = {
    "closed": says(),
    "reset": says(then="reset"),
    "half a head": says(b"HTTP/1.1 200 OK\r\nContent-"),
    "half a body": says(said(OK[:9], Content_Length="99")),
    "half a body, reset": says(said(OK[:9], Content_Length="99"), then="reset"),
    "chunks that are none": says(said(b"zz\r\n", Transfer_Encoding="chunked"), then="wait"),
    "half the chunks": says(said(b"5\r\nhello\r\n", Transfer_Encoding="chunked")),
    "no gzip": says(said(b"no gzip", Content_Encoding="gzip"), then="wait"),
    "another protocol": says(b"SSH-2.0-server\r\n"),
    "an endless header": says(said(X_Long="x" * 300_000)),
    "no JSON": says(said(b"a stranger's words")),
    "a gateway's page": says(said(b"<html>", "502 Bad Gateway")),
    "a gateway's time-out": says(said(b"<html>", "504 Gateway Timeout")),
}


@pytest.mark.parametrize("script", BROKEN.values(), ids=BROKEN)
async def test_what_breaks_behind_the_request_is_in_doubt_and_never_tried_again(
    script: Script,
) -> None:
    async with Server(script).running() as server:
        outcome = await send(server.url)

    assert isinstance(outcome, InDoubt)
    assert len(server.heads) == 1
    assert SECRET not in repr(outcome)
    assert "stranger" not in repr(outcome)


@pytest.mark.parametrize("piece", [b"zz\r\n", b"5\r\nhello\r\nzz\r\n", b"5\r\nhel"])
@pytest.mark.parametrize("then", ["close", "reset"])
async def test_a_body_that_breaks_after_its_head_is_in_doubt_at_once(
    piece: bytes, then: str
) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said(b"", Transfer_Encoding="chunked"))
        await writer.drain()
        await asyncio.sleep(0.05)  # so that the client waits for the body by now
        await says(piece, then=then)(reader, writer)

    async with Server(script).running() as server:
        outcome = await send(server.url)

    assert outcome == InDoubt(reason="NetworkError: the answer broke off")


async def test_silence_is_in_doubt_after_the_limit() -> None:
    async with Server(says(then="wait")).running() as server:
        outcome = await send(server.url, send_timeout_s=0.1)

    assert isinstance(outcome, InDoubt)
    assert outcome.reason.startswith("TimedOut")


async def test_an_answer_that_stops_in_the_middle_is_in_doubt_after_the_limit() -> None:
    half = said(OK[:9], Content_Length="99")
    async with Server(says(half, then="wait")).running() as server:
        outcome = await send(server.url, send_timeout_s=0.1)

    assert isinstance(outcome, InDoubt)


# --- connections -------------------------------------------------------------------------------


async def test_sends_one_after_the_other_share_a_connection() -> None:
    async with Server(KEPT).running() as server, channel_at(server.url) as channel:
        for _ in range(3):
            assert await channel.send(CHAT, HELLO) == Sent(message_id="7")

    assert (len(server.heads), server.connections) == (3, 1)


async def test_a_connection_that_the_server_closed_in_between_is_not_used_again() -> None:
    async with Server(says(said())).running() as server, channel_at(server.url) as channel:
        for _ in range(3):
            assert await channel.send(CHAT, HELLO) == Sent(message_id="7")

    assert server.connections == 3


async def test_a_server_that_hung_up_while_the_bot_was_busy_costs_no_doubt() -> None:
    with hanging_up() as (port, hung_up):
        async with channel_at(f"http://127.0.0.1:{port}") as channel:
            for _ in range(3):
                assert await channel.send(CHAT, HELLO) == Sent(message_id="7")
                hung_up.wait(SLOW)  # so the event loop cannot see the end of the connection
                hung_up.clear()


@contextlib.contextmanager
def hanging_up() -> Iterator[tuple[int, threading.Event]]:
    """A server in a thread: one answer a connection; the event tells that it was closed."""
    hung_up = threading.Event()

    def serve(listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                read = b""
                while b"hello" not in read:
                    read += connection.recv(65_536)
                connection.sendall(said())
                time.sleep(0.05)  # until the answer is read
            hung_up.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        yield listener.getsockname()[1], hung_up
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


async def test_many_sends_at_once_keep_to_the_limit_and_all_arrive() -> None:
    async with (
        Server(KEPT).running() as server,
        requests_to(server.url, limit=4) as request,
    ):
        found = await asyncio.gather(*(request.post(f"{server.url}/x") for _ in range(50)))

    assert found == [{"message_id": 7}] * 50
    assert server.connections <= 4


async def test_a_send_does_not_wait_for_a_poll_and_a_poll_has_a_limit_of_its_own() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if "/getUpdates " in server.heads[-1]:
            await asyncio.sleep(0.5)  # longer than a send may take
            writer.write(said(b'{"ok": true, "result": []}'))
        else:
            writer.write(said())

    async with (
        Server(script).running() as server,
        channel_at(server.url, send_timeout_s=0.2, poll_timeout_s=50) as channel,
    ):
        poll = asyncio.ensure_future(channel.get_updates(None))
        await eventually(lambda: server.heads)
        assert await channel.send(CHAT, HELLO) == Sent(message_id="7")
        assert not poll.done()
        assert await asyncio.wait_for(poll, SLOW) == []


async def test_cancelling_closes_the_connection_and_the_next_send_is_fine() -> None:
    async with (
        Server(says(then="wait"), KEPT).running() as server,
        channel_at(server.url) as channel,
    ):
        task = asyncio.ensure_future(channel.send(CHAT, HELLO))
        await eventually(lambda: server.heads)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.left.wait(), SLOW)

        assert await channel.send(CHAT, HELLO) == Sent(message_id="7")


async def test_a_compressed_answer_is_read() -> None:
    packed = says(said(gzip.compress(OK), Content_Encoding="gzip"))
    async with Server(packed).running() as server:
        assert await send(server.url) == Sent(message_id="7")


async def test_closing_ends_what_runs_and_leaves_nothing_open() -> None:
    before = asyncio.all_tasks()
    async with Server(says(then="wait")).running() as server:
        async with channel_at(server.url) as channel:
            poll = asyncio.ensure_future(channel.get_updates(None))
            await eventually(lambda: server.heads)
        with pytest.raises(NetworkError):
            await asyncio.wait_for(poll, SLOW)
        await asyncio.wait_for(server.left.wait(), SLOW)

    await eventually(lambda: asyncio.all_tasks() == before)


async def test_what_is_closed_sends_nothing_and_can_be_opened_again() -> None:
    async with Server(KEPT).running() as server:
        request = _Request(Route(server.url), read_timeout_s=SLOW, limit=1)
        with pytest.raises(NotConnected):
            await request.post(f"{server.url}/x")
        for _ in range(2):
            await request.initialize()
            await request.initialize()
            await request.post(f"{server.url}/x")
            await request.shutdown()
            await request.shutdown()

    assert server.connections == 2


# --- uploads -----------------------------------------------------------------------------------


def document(file: telegram.InputFile) -> dict[str, Any]:
    return {"chat_id": 5, "caption": 'ä "quoted"', "document": file}


async def test_a_big_file_is_sent_piece_by_piece_and_stays_open(tmp_path: Path) -> None:
    path = tmp_path / 'a "big"\n größe.bin'
    path.write_bytes(os.urandom(1 << 20) * 24)
    async with Server(KEPT).running() as server, channel_at(server.url) as channel:
        with path.open("rb") as file:
            upload = telegram.InputFile(file, filename=path.name, read_file_handle=False)
            sending = asyncio.ensure_future(
                channel._bot.do_api_request("sendDocument", api_kwargs=document(upload))
            )
            longest_s = await longest_pause_until(sending)
            assert await sending == {"message_id": 7}
            assert not file.closed

    [head], [body] = server.heads, server.bodies
    assert f"content-length: {len(body)}" in head.lower()
    assert path.read_bytes() in body
    assert 'filename="a %22big%22%0A größe.bin"' in body.decode("utf-8", "replace")
    assert 'name="caption"\r\n\r\nä "quoted"\r\n' in body.decode("utf-8", "replace")
    assert longest_s < 0.5


async def longest_pause_until(task: asyncio.Future[Any]) -> float:
    """How long others could not run meanwhile."""
    longest, loop = 0.0, asyncio.get_running_loop()
    while not task.done():
        began = loop.time()
        await asyncio.sleep(0)
        longest = max(longest, loop.time() - began)
    return longest


@pytest.mark.parametrize("content", [b"", b"x", os.urandom(200_000)], ids=len)
async def test_a_file_in_memory_arrives_as_it_is(content: bytes) -> None:
    async with Server(KEPT).running() as server, channel_at(server.url) as channel:
        upload = telegram.InputFile(io.BytesIO(content), filename="x.txt")
        await channel._bot.do_api_request("sendDocument", api_kwargs=document(upload))

    [body] = server.bodies
    assert b"Content-Type: text/plain\r\n\r\n" + content + b"\r\n--" in body


async def test_an_upload_that_the_server_does_not_take_is_given_up(tmp_path: Path) -> None:
    taking = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await taking.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, channel_at(url) as channel:
        upload = telegram.InputFile(io.BytesIO(bytes(64 << 20)), filename="x.bin")
        with pytest.raises(TimedOut) as caught:
            await asyncio.wait_for(
                channel._bot.do_api_request(
                    "sendDocument",
                    api_kwargs=document(upload),
                    write_timeout=0.2,
                    read_timeout=0.2,
                ),
                SLOW,
            )
        taking.set()

    assert not isinstance(caught.value, ConnectTimedOut)


# --- proxies -----------------------------------------------------------------------------------


async def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Server(KEPT).running() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("//", "//me:secret@"))
        outcome = await send("http://telegram.invalid")

    assert outcome == Sent(message_id="7")
    assert proxy.heads[0].startswith(f"POST http://telegram.invalid/bot{TOKEN}/sendMessage HTTP")
    assert "proxy-authorization: basic bWU6c2VjcmV0".lower() in proxy.heads[0].lower()


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "ALL_PROXY", "https_proxy"])
async def test_through_a_tunnel_the_proxy_sees_no_token(
    monkeypatch: pytest.MonkeyPatch, tls: ssl.SSLContext, trusted: Path, name: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    server = Server(KEPT)
    async with server.running(tls), Server(partial(tunnel, server)).running() as proxy:
        monkeypatch.setenv(name, f"127.0.0.1:{proxy.port}")
        async with channel_at(server.url) as channel:
            outcomes = [await channel.send(CHAT, HELLO) for _ in range(2)]

    assert outcomes == [Sent(message_id="7")] * 2
    [head] = proxy.heads
    assert head.startswith(f"CONNECT 127.0.0.1:{server.port} HTTP")
    assert TOKEN not in head
    assert SECRET not in head
    assert len(server.heads) == 2


async def tunnel(to: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    far_reader, far_writer = await asyncio.open_connection("127.0.0.1", to.port)
    await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65_536):
        writer.write(piece)
    writer.close()


@pytest.mark.parametrize(
    "script",
    [
        says(said(b"", "407 Who are you?")),
        says(said(b"", "502 Bad Gateway")),
        says(),
        says(b"SSH-2"),
    ],
    ids=["unknown to it", "cannot", "hangs up", "no proxy at all"],
)
async def test_a_proxy_that_makes_no_tunnel_is_surely_not_sent(
    monkeypatch: pytest.MonkeyPatch, script: Script
) -> None:
    async with Server(script).running() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//me:k3y@"))
        outcome = await send("https://telegram.invalid")

    assert isinstance(outcome, NotSent)
    assert "k3y" not in outcome.reason


@pytest.mark.parametrize("exceptions", ["127.0.0.1", "localhost,*", "x.invalid, 127.0.0.1"])
async def test_what_needs_no_proxy_goes_directly(
    monkeypatch: pytest.MonkeyPatch, closed_port: int, exceptions: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{closed_port}")
    monkeypatch.setenv("NO_PROXY", exceptions)
    async with Server(KEPT).running() as server:
        assert await send(server.url) == Sent(message_id="7")


def test_a_proxy_of_another_kind_is_told_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://me:k3y@127.0.0.1:9")

    with pytest.raises(SettingsWrong, match="socks5") as caught:
        Route("https://api.telegram.org")

    assert "k3y" not in str(caught.value)


# --- TLS ---------------------------------------------------------------------------------------


async def test_authorities_of_the_environment_are_trusted(
    monkeypatch: pytest.MonkeyPatch, tls: ssl.SSLContext, trusted: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    async with Server(KEPT).running(tls) as server, channel_at(server.url) as channel:
        outcomes = [await channel.send(CHAT, HELLO) for _ in range(3)]

    assert outcomes == [Sent(message_id="7")] * 3
    assert server.connections == 1


async def test_a_certificate_for_another_name_is_not_trusted(
    monkeypatch: pytest.MonkeyPatch, tls: ssl.SSLContext, trusted: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    async with Server(KEPT).running(tls) as server:
        outcome = await send(f"https://localhost:{server.port}")

    assert isinstance(outcome, NotSent)
    assert server.heads == []


async def test_authorities_that_cannot_be_read_are_told_at_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))

    with pytest.raises(SettingsWrong, match="SSL_CERT_FILE"):
        await send("https://127.0.0.1:1")


# --- secrets -----------------------------------------------------------------------------------


@pytest.mark.case("SE-13")
@pytest.mark.parametrize("script", BROKEN.values(), ids=BROKEN)
async def test_the_token_is_in_no_traceback_and_no_log_of_the_library(
    script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="aiohttp")
    caplog.set_level(logging.DEBUG, logger="asyncio")
    async with Server(script).running() as server, channel_at(server.url) as channel:
        with pytest.raises(TelegramError) as caught:
            await channel._bot.do_api_request("sendMessage", api_kwargs={"text": "hello"})

    told = "".join(traceback.format_exception(caught.value)) + caplog.text
    assert SECRET not in told
    assert "stranger" not in told


@pytest.mark.case("SE-13")
async def test_the_token_is_in_no_traceback_of_a_connection_that_fails(closed_port: int) -> None:
    async with channel_at(f"http://127.0.0.1:{closed_port}") as channel:
        with pytest.raises(NotConnected) as caught:
            await channel._bot.do_api_request("sendMessage", api_kwargs={"text": "hello"})

    assert SECRET not in "".join(traceback.format_exception(caught.value))
