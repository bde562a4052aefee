"""Real web servers on loopback for the tests of the web, and names that lead where a test says."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from agent.web.addresses import IPAddress, allowed_hosts
from agent.web.client import ClientOptions, WebClient, system_addresses

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

# Of web.test, made for these tests; nobody else knows or trusts it.
CERTIFICATE = (
    "MIIBkTCCATigAwIBAgIUIO3bOal357mzQvsRTvYZkJ2Mai0wCgYIKoZIzj0EAwIwEzERMA8GA1UEAwwId2ViLnRl"
    "c3QwIBcNMjYxMTI4MDY0MzUzWhgPMjEyNjExMDQwNjQzNTNaMBMxETAPBgNVBAMMCHdlYi50ZXN0MFkwEwYHKoZI"
    "zj0CAQYIKoZIzj0DAQcDQgAErWiUvuwCDMy2Cw7VboOJj484YV+6D3XsduU5mtEqxL1lb28cWl8WF84Pk4to2vAx"
    "QGrlzUTFdWGcSHgM5FPOyqNoMGYwHQYDVR0OBBYEFAyyU09cY21H5f1bJXlwfChtV4diMB8GA1UdIwQYMBaAFAyy"
    "U09cY21H5f1bJXlwfChtV4diMA8GA1UdEwEB/wQFMAMBAf8wEwYDVR0RBAwwCoIId2ViLnRlc3QwCgYIKoZIzj0E"
    "AwIDRwAwRAIgamdgvanrjfjFYcpGx1VPugIqKMvqLLUaFMudG8UQnjICIGGDpJvimdIzOL+5cdSFmKiENdHih5IJ"
    "gJP3MLyFHFmJ"
)
CERTIFICATE_KEY = (
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgh5CbzzKWci725xTU+IxLAwMibhuLOtz9xYN30JLY"
    "ISmhRANCAAStaJS+7AIMzLYLDtVug4mPjzhhX7oPdex25Tma0SrEvWVvbxxaXxYXzg+Ti2ja8DFAauXNRMV1YZxI"
    "eAzkU87K"
)


class Site:
    """A server that counts: `hits` holds each request that came."""

    def __init__(self, port: int, host: str) -> None:
        self.port = port
        self.host = host
        self.hits: list[web.BaseRequest] = []

    @property
    def place(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.place}"

    @property
    def paths(self) -> list[str]:
        return [hit.path_qs for hit in self.hits]


@asynccontextmanager
async def site(
    answer: Handler,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Site]:
    """Runs while the block does. Raises OSError where the machine lacks that address."""
    served = Site(port, host)

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        served.hits.append(request)
        return await answer(request)  # type: ignore[arg-type]

    runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.1)
    await runner.setup()
    try:
        where = web.TCPSite(runner, host, port, ssl_context=tls)
        await where.start()
        served.port = runner.addresses[0][1]
        yield served
    finally:
        await runner.cleanup()


def says(
    text: str | bytes = "hello",
    *,
    kind: str = "text/html; charset=utf-8",
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Handler:
    """Always the same answer."""

    async def answer(request: web.Request) -> web.StreamResponse:
        body = text.encode() if isinstance(text, str) else text
        said = {"Content-Type": kind, **(headers or {})}
        return web.Response(body=body, status=status, headers=said)

    return answer


def sends_to(location: str, status: int = 302) -> Handler:
    """Always a redirect."""
    return says("", status=status, headers={"Location": location})


Wire = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def writes(*pieces: bytes, times: int = 1) -> Wire:
    """A server below HTTP."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            for _ in range(times):
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    return serve


@asynccontextmanager
async def wired(wire: Wire) -> AsyncIterator[str]:
    """The address of such a server."""
    server = await asyncio.start_server(wire, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


class Names:
    """A Resolver whose names lead where they are told to: to one answer after the other, of which
    the last stays."""

    def __init__(self, **answers: Sequence[str]) -> None:
        self._answers = {name.replace("_", "."): list(given) for name, given in answers.items()}
        self.asked: list[str] = []

    async def resolve(self, host: str) -> Sequence[IPAddress]:
        self.asked.append(host)
        answers = self._answers.get(host)
        if not answers:
            raise OSError("no such name")
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return [ipaddress.ip_address(each) for each in answer.split()]


def client(
    *allowed: str, names: Names | None = None, tls: ssl.SSLContext | None = None, **options: float
) -> WebClient:
    """A client that may also reach these places."""
    limits = {"total_s": 5.0, **options}
    settings = ClientOptions(allowed=allowed_hosts(allowed), **limits)  # type: ignore[arg-type]
    return WebClient(settings, resolve=names.resolve if names else system_addresses, tls=tls)


def certified(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """For a server that is `web.test`, and for a client that trusts it."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    certificate.write_text(ssl.DER_cert_to_PEM_cert(b64decode(CERTIFICATE)))
    body = b64encode(b64decode(CERTIFICATE_KEY)).decode()
    kind = "PRIVATE KEY"
    key.write_text(f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\n")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    return server, ssl.create_default_context(cafile=str(certificate))
