"""MCP servers by streamable HTTP, on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from agent.mcp.values import Health, ServerOptions, ServerStart
from tests.agent.mcp.kit import (
    QUICK,
    by_http,
    called,
    free_port,
    lists,
    names,
    running,
    state,
    tool,
    until,
    up,
    workspace,
)
from tests.agent.mcp.odd_server import IMAGE


def at(port: int, **headers: str) -> ServerOptions:
    return ServerOptions(
        name="odd", url=f"http://127.0.0.1:{port}/mcp", headers=headers, start=ServerStart.EAGER
    )


@asynccontextmanager
async def answering(port: int, handler: object) -> AsyncIterator[None]:
    """A web server that sends every request to one function."""
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handler)  # type: ignore[arg-type]
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield
    finally:
        await runner.cleanup()


async def test_tools_are_found_and_called(tmp_path: Path) -> None:
    port = free_port()

    async with by_http(port), running(tmp_path, at(port)) as mcp:
        fails = await called(mcp, "odd__fails")
        image = await called(mcp, "odd__image")
        echoes = await asyncio.gather(*(called(mcp, "odd__echo", n=n) for n in range(20)))

    assert fails.content == "odd__fails: no such row"
    assert "3,000,072 bytes" in image.content
    (kept,) = (workspace(tmp_path) / "files" / "results").rglob("*.png")
    assert kept.read_bytes() == IMAGE
    assert [one.content for one in echoes] == [f'{{"n": {n}}}' for n in range(20)]


async def test_a_change_of_the_list_is_heard_of(tmp_path: Path) -> None:
    port = free_port()
    source = lists(tmp_path / "t.json", tool("change"), tool("mail"))

    async with by_http(port, ODD_TOOLS=source), running(tmp_path, at(port)) as mcp:
        version = mcp.version
        await called(mcp, "odd__change", tools=[tool("change")])
        await until(lambda: mcp.version > version)

        assert names(mcp) == ["odd__change"]


async def test_a_server_that_goes_away_is_missed_and_found_again(tmp_path: Path) -> None:
    port = free_port()

    async with running(tmp_path, at(port)) as mcp:
        assert state(mcp).health.health is Health.DOWN
        async with by_http(port):
            await up(mcp)
            assert (await called(mcp, "odd__echo")).ok
        gone = await called(mcp, "odd__echo")
        await until(lambda: state(mcp).health.health is Health.DOWN)
        async with by_http(port):
            await up(mcp)
            back = await called(mcp, "odd__echo")

    assert not gone.ok
    assert back.ok


async def test_the_headers_of_the_owner_are_sent_and_never_told(tmp_path: Path) -> None:
    port = free_port()
    seen: list[str] = []

    async def refuses(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization", ""))
        return web.Response(status=401, text="who are you?")

    options = at(port, Authorization="Bearer secret-token")
    async with answering(port, refuses), running(tmp_path, options) as mcp:
        health = state(mcp).health

    assert "Bearer secret-token" in seen
    assert health.health is Health.DOWN
    assert health.trouble
    assert "secret-token" not in health.trouble + repr(options)


async def test_a_redirect_to_another_place_is_not_followed(tmp_path: Path) -> None:
    port, other = free_port(), free_port()
    reached: list[str] = []

    async def redirects(request: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect(f"http://127.0.0.1:{other}/mcp")

    async def elsewhere(request: web.Request) -> web.Response:
        reached.append(request.path)
        return web.Response(status=500)

    async with (
        answering(port, redirects),
        answering(other, elsewhere),
        running(tmp_path, at(port)) as mcp,
    ):
        health = state(mcp).health

    assert health.health is Health.DOWN
    assert "edirect" in health.trouble
    assert reached == []


@asynccontextmanager
async def in_whole_bodies(port: int, megabytes: int, *, packed: str = "") -> AsyncIterator[None]:
    """A server that answers each request with one JSON body, of which that of a call is so long."""

    def result_of(method: str) -> object:
        match method:
            case "initialize":
                about = {"name": "whole", "version": "0"}
                return {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": about,
                }
            case "tools/list":
                return {"tools": [tool("x")]}
            case _:
                text = "y" * (megabytes * 1_000_000)
                return {"content": [{"type": "text", "text": text}]}

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.method != "POST":
            return web.Response(status=405)
        asked = await request.json()
        if "id" not in asked:
            return web.Response(status=202)
        said = {"jsonrpc": "2.0", "id": asked["id"], "result": result_of(asked["method"])}
        answer = web.json_response(said)
        if packed and asked["method"] == "tools/call":
            answer.enable_compression(web.ContentCoding(packed))
        return answer

    async with answering(port, handler):
        yield


async def test_a_body_of_megabytes_arrives_and_one_without_measure_fails_the_call(
    tmp_path: Path,
) -> None:
    port = free_port()

    async with in_whole_bodies(port, 1), running(tmp_path, at(port)) as mcp:
        fits = await called(mcp, "odd__x")
    async with in_whole_bodies(port, 33), running(tmp_path, at(port)) as mcp:
        refused = await called(mcp, "odd__x")

    assert fits.ok
    assert not refused.ok
    assert "it sent a message of more than 32 MB" in refused.content


async def test_a_body_that_unpacks_to_anything_is_not_read(tmp_path: Path) -> None:
    port = free_port()

    async with in_whole_bodies(port, 40, packed="gzip"), running(tmp_path, at(port)) as mcp:
        told = await called(mcp, "odd__x")

    assert not told.ok
    assert "it sent a packed message" in told.content


@pytest.mark.parametrize("is_silent", [False, True])
async def test_what_is_no_server_or_never_answers_is_down_and_says_why(
    tmp_path: Path, *, is_silent: bool
) -> None:
    port = free_port()

    async def page(request: web.Request) -> web.Response:
        await asyncio.sleep(2 if is_silent else 0)
        return web.Response(text="<h1>It works</h1>", content_type="text/html")

    timing = replace(QUICK, connect_s=0.5) if is_silent else QUICK
    async with answering(port, page), running(tmp_path, at(port), timing=timing) as mcp:
        health = state(mcp).health

    assert health.health is Health.DOWN
    assert ("did not answer in time" if is_silent else "content type") in health.trouble
