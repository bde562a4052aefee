"""How the direct client reaches its server: connections kept and closed, redirections, compression,
TLS, proxies. All of it against real sockets on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import textwrap
from base64 import b64decode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from agent.models.chat_request import Dialect
from agent.models.client import CallLimits
from agent.models.openai_compatible import OpenAICompatible
from memory.records.errors import BrokenAnswer, ModelRefused, ModelTimeout, Overloaded
from tests.agent.models.asking import ask
from tests.agent.models.conftest import KEY
from tests.agent.models.server import ModelServer, delta, events, serving

SLOW = 5.0
ANSWER = b"".join(events(delta("stop", content="x")))

# For model.test and 127.0.0.1, valid for a century; nobody but these tests trusts it.
CERTIFICATE = (
    "MIIBnTCCAUSgAwIBAgIUW0LwWE+xjTlXR5zw3lqVArczoR0wCgYIKoZIzj0EAwIwFTETMBEGA1UEAwwKbW9kZWwudG"
    "VzdDAgFw0yNjExMjgwMTM4NTVaGA8yMTI2MTEwNDAxMzg1NVowFTETMBEGA1UEAwwKbW9kZWwudGVzdDBZMBMGByqG"
    "SM49AgEGCCqGSM49AwEHA0IABIIwF7BYmC9iV3JeWfneBEvWurNqaaZ2gEtJhZnO74Zad2aJw5pDo0REXJ7iP8lDjG"
    "X98Qja8kVy082Qxl3+n2KjcDBuMB0GA1UdDgQWBBQ+cTYbGA3qmgnTGRb9w8aC+4OhlDAfBgNVHSMEGDAWgBQ+cTYb"
    "GA3qmgnTGRb9w8aC+4OhlDAPBgNVHRMBAf8EBTADAQH/MBsGA1UdEQQUMBKCCm1vZGVsLnRlc3SHBH8AAAEwCgYIKo"
    "ZIzj0EAwIDRwAwRAIgA2/l1EOzV5SKn9HmNlqk5lOSQMs946UPYCNK6zLQGrECIFHRWqrz+YQ0rtJT6WD+zimJkA94"
    "Hk+WY0rvXJjaXyJd"
)
ITS_KEY = (
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgn6a3aeBHwssQxdpuw1d+e7HkdE++4zBy38QA+kmzfM"
    "ehRANCAASCMBewWJgvYldyXln53gRL1rqzammmdoBLSYWZzu+GWndmicOaQ6NERFye4j/JQ4xl/fEI2vJFctPNkMZd"
    "/p9i"
)


class RawServer:
    """Says bytes as they are to whoever connects; or is a proxy, with `tunnel_to` a port."""

    def __init__(self, answer: bytes = b"", *, tunnel_to: int = 0) -> None:
        self.heads: list[str] = []
        self.port = 0
        self._answer = answer
        self._tunnel_to = tunnel_to
        self._serving: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self
            await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            if self._tunnel_to:
                await self._tunnel(reader, writer)
            head, end, body = self._answer.partition(b"\r\n\r\n")
            writer.write(head + end)
            await writer.drain()
            await asyncio.sleep(0.02)  # so that they come apart
            writer.write(body)
            await writer.drain()
        writer.close()

    async def _tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._tunnel_to)
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65536):
        writer.write(piece)
    writer.close()


def said(body: bytes, *, status: str = "200 OK", **headers: str) -> bytes:
    """A whole HTTP answer that ends with its connection."""
    fields = {"Content-Type": "text/event-stream", "Connection": "close", **headers}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode() + body


@pytest.fixture
def trusted(tmp_path: Path) -> Path:
    """The certificate as a file."""
    path = tmp_path / "cert.pem"
    path.write_text(ssl.DER_cert_to_PEM_cert(b64decode(CERTIFICATE)))
    return path


@pytest.fixture
def tls(trusted: Path, tmp_path: Path) -> ssl.SSLContext:
    """A server's side of it."""
    kind = "PRIVATE KEY"
    lines = textwrap.wrap(ITS_KEY, 64)
    key = tmp_path / "key.pem"
    key.write_text("\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""]))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(trusted, key)
    return context


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name}_proxy".upper(), raising=False)


# --- connections ------------------------------------------------------------------------------


def callers(server: ModelServer) -> list[object]:
    """Has the server answer always, and note from which socket each call came."""
    came: list[object] = []

    async def script(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        came.append(request.transport.get_extra_info("peername"))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(ANSWER)
        return response

    server.scripts.append(script)
    return came


@pytest.mark.parametrize(("plain", "connections"), [(False, 1), (True, 3)])
async def test_the_rounds_of_a_turn_share_a_connection_except_with_small_servers(
    server: ModelServer, plain: bool, connections: int
) -> None:
    came = callers(server)

    async with OpenAICompatible(
        "m", api_base=server.api_base, dialect=Dialect(plain=plain)
    ) as model:
        for _ in range(3):
            await ask(model)
            await asyncio.sleep(0.01)  # what a tool takes

    assert len(came) == 3
    assert len(set(came)) == connections


async def test_calls_at_once_have_a_connection_each_without_a_limit(server: ModelServer) -> None:
    waiting = asyncio.Barrier(150)

    async def script(_: web.Request) -> web.StreamResponse:
        await waiting.wait()
        return web.Response(body=ANSWER, content_type="text/event-stream")

    server.scripts.append(script)
    async with OpenAICompatible("m", api_base=server.api_base) as model:
        answers = await asyncio.wait_for(asyncio.gather(*(ask(model) for _ in range(150))), 20)

    assert {answer.text for answer, _ in answers} == {"x"}


async def test_an_answer_does_not_wait_for_the_end_of_the_body(
    server: ModelServer, model: OpenAICompatible
) -> None:
    server.says(delta("stop", content="x"), then="hang")
    await ask(model)
    began = asyncio.get_running_loop().time()

    for _ in range(20):
        await ask(model)

    assert asyncio.get_running_loop().time() - began < 0.5
    await asyncio.wait_for(server.left.wait(), SLOW)  # and those are hung up on


async def test_a_dropped_connection_is_not_tried_again_by_the_client(server: ModelServer) -> None:
    async def script(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    callers(server)
    server.scripts.append(script)
    async with OpenAICompatible("m", api_base=server.api_base) as model:
        await ask(model)
        await asyncio.sleep(0.01)
        with pytest.raises(Overloaded, match=r"127\.0\.0\.1"):
            await ask(model)

    assert len(server.asked) == 2


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """Where no connection comes about: the queue takes two, and nobody accepts."""
    with socket.socket() as listener, contextlib.ExitStack() as full:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(2):
            filler = full.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


async def test_a_slow_connect_is_a_timeout(deaf_port: int) -> None:
    limits = CallLimits(connect_timeout_s=0.1)

    async with OpenAICompatible(
        "m", api_base=f"http://127.0.0.1:{deaf_port}/v1", limits=limits
    ) as model:
        with pytest.raises(ModelTimeout, match=r"127\.0\.0\.1"):
            await asyncio.wait_for(ask(model), SLOW)


async def test_closing_while_a_connection_is_made_is_a_model_error(deaf_port: int) -> None:
    model = OpenAICompatible("m", api_base=f"http://127.0.0.1:{deaf_port}/v1")
    task = asyncio.ensure_future(ask(model))
    await asyncio.sleep(0.1)

    await model.aclose()

    with pytest.raises(Overloaded, match="closed"):
        await asyncio.wait_for(task, SLOW)


# --- what a server may do ---------------------------------------------------------------------


async def test_a_redirection_is_not_followed_so_that_the_key_stays_here(
    server: ModelServer, model: OpenAICompatible
) -> None:
    async with serving() as elsewhere:
        elsewhere.says(delta("stop", content="stolen"))
        server.replies(307, "", {"Location": f"{elsewhere.api_base}/chat/completions"})

        with pytest.raises(ModelRefused, match="points to another address"):
            await ask(model)

        assert elsewhere.asked == []


@pytest.mark.parametrize("coding", [web.ContentCoding.gzip, web.ContentCoding.deflate])
async def test_a_compressed_stream_is_read(
    server: ModelServer, model: OpenAICompatible, coding: web.ContentCoding
) -> None:
    async def script(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        response.enable_compression(coding)
        await response.prepare(request)
        await response.write(ANSWER)
        return response

    server.scripts.append(script)

    answer, _ = await ask(model)

    assert answer.text == "x"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(said(b"no gzip", Content_Encoding="gzip"), BrokenAnswer, id="no gzip"),
        pytest.param(said(b"12", Content_Length="99"), BrokenAnswer, id="cut"),
        pytest.param(b"SSH-2.0-server\r\n", Overloaded, id="another protocol"),
        pytest.param(b"", Overloaded, id="hung up"),
        pytest.param(said(ANSWER, X_Long="x" * 200_000), Overloaded, id="endless header"),
        pytest.param(
            said(b"12", Content_Length="99", status="500 Oops"), Overloaded, id="cut refusal"
        ),
        pytest.param(
            said(b"zz\r\n", Transfer_Encoding="chunked"), BrokenAnswer, id="chunks that are none"
        ),
    ],
)
async def test_what_breaks_the_protocol_is_a_temporary_error(
    answer: bytes, kind: type[Exception]
) -> None:
    async with (
        RawServer(answer).running() as server,
        OpenAICompatible("m", api_base=f"http://127.0.0.1:{server.port}/v1") as model,
    ):
        with pytest.raises(kind, match=r"127\.0\.0\.1") as caught:
            await asyncio.wait_for(ask(model), SLOW)

    assert type(caught.value) is kind


async def test_long_headers_are_fine() -> None:
    async with (
        RawServer(said(ANSWER, X_Long="x" * 30_000)).running() as server,
        OpenAICompatible("m", api_base=f"http://127.0.0.1:{server.port}/v1") as model,
    ):
        answer, _ = await ask(model)

    assert answer.text == "x"


async def test_an_answer_that_ends_with_its_connection_is_whole() -> None:
    async with (
        RawServer(said(b"".join(events(delta("stop", content="x"), done=False)))).running() as raw,
        OpenAICompatible("m", api_base=f"http://127.0.0.1:{raw.port}/v1") as model,
    ):
        answer, _ = await ask(model)

    assert answer.text == "x"


async def test_user_and_password_of_the_address_are_sent_as_such_and_never_shown(
    server: ModelServer,
) -> None:
    server.replies(400, "{}")
    base = server.api_base.replace("http://", "http://me:p%40ss@")

    async with OpenAICompatible("m", api_base=base, api_key=KEY) as model:
        with pytest.raises(ModelRefused) as caught:
            await ask(model)

    assert server.headers[0]["Authorization"] == "Basic bWU6cEBzcw=="
    assert "p%40ss" not in str(caught.value)


# --- TLS --------------------------------------------------------------------------------------


async def test_a_certificate_that_nobody_vouches_for_is_refused(tls: ssl.SSLContext) -> None:
    async with (
        RawServer(said(ANSWER)).running(tls) as server,
        OpenAICompatible("m", api_base=f"https://127.0.0.1:{server.port}/v1") as model,
    ):
        with pytest.raises(Overloaded, match="certificate"):
            await asyncio.wait_for(ask(model), SLOW)

    assert server.heads == []


async def test_a_server_without_tls_at_a_tls_address_is_overloaded(server: ModelServer) -> None:
    server.says(delta("stop", content="x"))
    base = server.api_base.replace("http://", "https://")

    async with OpenAICompatible("m", api_base=base) as model:
        with pytest.raises(Overloaded, match="is the address right"):
            await asyncio.wait_for(ask(model), SLOW)


async def test_certificates_that_cannot_be_read_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/cert.pem")

    async with OpenAICompatible("m", api_base="https://model.test/v1") as model:
        with pytest.raises(ModelRefused, match="SSL_CERT_FILE"):
            await ask(model)


# --- proxies ----------------------------------------------------------------------------------


async def test_a_proxy_of_the_environment_is_used_with_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with RawServer(said(ANSWER)).running() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:secret@127.0.0.1:{proxy.port}")
        async with OpenAICompatible("m", api_base="http://model.test/v1", api_key=KEY) as model:
            answer, _ = await ask(model)

    assert answer.text == "x"
    assert proxy.heads[0].startswith("POST http://model.test/v1/chat/completions HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic bWU6c2VjcmV0" in proxy.heads[0]


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "ALL_PROXY"])
async def test_tls_goes_through_a_tunnel_to_the_trusted_server(
    monkeypatch: pytest.MonkeyPatch, tls: ssl.SSLContext, trusted: Path, name: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    async with (
        RawServer(said(ANSWER)).running(tls) as server,
        RawServer(tunnel_to=server.port).running() as proxy,
    ):
        monkeypatch.setenv(name, f"127.0.0.1:{proxy.port}")
        async with OpenAICompatible("m", api_base="https://model.test/v1", api_key=KEY) as model:
            answer, _ = await ask(model)

    assert answer.text == "x"
    assert proxy.heads[0].startswith("CONNECT model.test:443 ")
    assert KEY not in proxy.heads[0]
    assert KEY in server.heads[0]


@pytest.mark.parametrize(
    "exempt", ["localhost.localdomain", ".localdomain", "other, localhost.localdomain:9", "*"]
)
async def test_what_no_proxy_names_is_reached_directly(
    monkeypatch: pytest.MonkeyPatch, exempt: str
) -> None:
    async with RawServer(said(ANSWER)).running() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", exempt)
        async with OpenAICompatible("m", api_base="http://localhost.localdomain:9/v1") as model:
            with pytest.raises(Overloaded):
                await ask(model)

    assert proxy.heads == []


async def test_a_server_on_this_machine_is_never_asked_through_a_proxy(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    server.says(delta("stop", content="x"))

    async with OpenAICompatible("m", api_base=server.api_base) as model:
        answer, _ = await ask(model)

    assert answer.text == "x"


@pytest.mark.parametrize(
    ("proxy", "kind", "words"),
    [
        ("http://127.0.0.1:9", Overloaded, "cannot be reached"),
        ("socks5://127.0.0.1:9", ModelRefused, "socks5"),
    ],
)
async def test_a_proxy_that_does_not_work_is_told(
    monkeypatch: pytest.MonkeyPatch, proxy: str, kind: type[Exception], words: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)

    async with OpenAICompatible("m", api_base="https://model.test/v1") as model:
        with pytest.raises(kind, match=words):
            await ask(model)


async def test_a_proxy_that_refuses_is_overloaded_and_its_password_is_not_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusal = said(b"", status="407 Proxy Authentication Required", Content_Length="0")
    async with RawServer(refusal).running() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:hidden@127.0.0.1:{proxy.port}")
        async with OpenAICompatible("m", api_base="https://model.test/v1") as model:
            with pytest.raises(Overloaded, match="Proxy Authentication") as caught:
                await ask(model)

    assert "hidden" not in str(caught.value)
