"""The private socket: many requests at once, honest ends, and nothing left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.rpc import ControlClient, ControlServer, Emit, NotAnswering, Operation
from memory.records.errors import Permanent, StorageFull

Request = dict[str, Any]


async def echo(request: Request, emit: Emit) -> Request:
    return {"said": request["text"]}


async def count(request: Request, emit: Emit) -> Request:
    for number in range(3):
        emit({"number": number})
    return {"done": True}


async def fail(request: Request, emit: Emit) -> Request:
    raise StorageFull("No space is left.")


async def wait(request: Request, emit: Emit) -> Request:
    emit({"waiting": True})
    await asyncio.Event().wait()
    return {}


OPERATIONS: dict[str, Operation] = {"echo": echo, "count": count, "fail": fail, "wait": wait}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Relative: what the system takes for a socket's path is short, wherever the tests run."""
    monkeypatch.chdir(tmp_path)
    return Path("bot.sock")


@pytest.fixture
async def server(path: Path) -> AsyncIterator[ControlServer]:
    async with ControlServer(path, OPERATIONS) as server:
        yield server


@pytest.fixture
async def client(path: Path, server: ControlServer) -> AsyncIterator[ControlClient]:
    async with ControlClient(path) as client:
        yield client


async def test_questions_are_answered_side_by_side(client: ControlClient) -> None:
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        waiting = group.create_task(client.ask("wait"))
        said = [group.create_task(client.ask("echo", text=str(n))) for n in range(20)]
        answers = [await task for task in said]
        waiting.cancel()

    assert answers == [{"said": str(number)} for number in range(20)]


async def test_events_come_before_the_answer_in_order(client: ControlClient) -> None:
    heard = [pair async for pair in client.follow("count")]

    assert heard == [*(("event", {"number": n}) for n in range(3)), ("answer", {"done": True})]


async def test_an_error_of_ours_arrives_in_its_own_words(client: ControlClient) -> None:
    with pytest.raises(Permanent, match="No space is left"):
        await client.ask("fail")


async def test_a_request_that_is_not_known_is_refused_and_the_rest_goes_on(
    client: ControlClient,
) -> None:
    with pytest.raises(Permanent, match="does not know that"):
        await client.ask("fly")
    with pytest.raises(Permanent, match="does not know that"):
        await client.ask("echo")

    assert await client.ask("echo", text="still here") == {"said": "still here"}


@pytest.mark.parametrize("line", [b"\n", b"[]\n", b"{", b"\xff\xfe\n", b"x" * 5_000_000 + b"\n"])
async def test_garbage_on_the_socket_ends_nothing(
    path: Path, server: ControlServer, line: bytes
) -> None:
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(line)
        writer.write_eof()
        async with asyncio.timeout(10):
            await reader.read()
    except ConnectionError:
        pass
    finally:
        writer.close()

    async with ControlClient(path) as client:
        assert await client.ask("echo", text="fine") == {"said": "fine"}


async def test_a_socket_left_over_from_a_kill_is_replaced(path: Path) -> None:
    left = await asyncio.start_unix_server(lambda reader, writer: None, path=path)
    left.close()
    await left.wait_closed()
    assert path.exists()

    async with ControlServer(path, OPERATIONS), ControlClient(path) as client:
        assert await client.ask("echo", text="hello") == {"said": "hello"}


async def test_whoever_waits_is_told_when_the_bot_leaves(path: Path) -> None:
    heard: list[object] = []
    async with ControlServer(path, OPERATIONS) as server:
        client = await ControlClient(path).__aenter__()
        following = client.follow("wait")
        heard.append(await anext(following))
        await server.__aexit__(None, None, None)
        with pytest.raises(Permanent, match="went away"):
            async with asyncio.timeout(10):
                await anext(following)
    await client.__aexit__(None, None, None)

    assert heard == [("event", {"waiting": True})]


async def test_a_client_that_hangs_up_ends_what_it_followed(path: Path) -> None:
    ended = asyncio.Event()

    async def follow(request: Request, emit: Emit) -> Request:
        emit({"begun": True})
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    async with ControlServer(path, {"attach": follow}):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(json.dumps({"id": 1, "op": "attach"}).encode() + b"\n")
        await reader.readline()
        writer.close()
        await writer.wait_closed()

        async with asyncio.timeout(10):
            await ended.wait()


async def test_what_was_asked_is_done_even_if_whoever_asked_hangs_up(path: Path) -> None:
    begun, may_go_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(request: Request, emit: Emit) -> Request:
        begun.set()
        await may_go_on.wait()
        done.set()
        return {}

    async with asyncio.timeout(10), ControlServer(path, {"slow": slow, "echo": echo}):
        _, writer = await asyncio.open_unix_connection(path)
        writer.write(b'{"id": 1, "op": "slow"}\n')
        await begun.wait()
        writer.close()
        await writer.wait_closed()
        async with ControlClient(path) as later:
            await later.ask("echo", text="still here")
        may_go_on.set()
        await done.wait()


async def test_a_request_nested_without_end_is_refused_and_the_next_is_answered(
    path: Path, server: ControlServer
) -> None:
    async with asyncio.timeout(10):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"[" * 200_000 + b"\n" + b'{"id": "\\ud800", "op": "nothing"}\n')
        answers = [json.loads(await reader.readline()) for _ in range(2)]
        writer.close()
        await writer.wait_closed()

    assert [answer["ok"] for answer in answers] == [False, False]


# --- long paths, and a bot that hangs ------------------------------------------------------------


async def test_a_long_path_is_reached_and_leaves_nothing_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("d" * 60) / ("e" * 60)
    folder.mkdir(parents=True)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    path = folder / "bot.sock"

    async with ControlServer(path, OPERATIONS):
        monkeypatch.setenv("TMPDIR", str(temporary))
        async with ControlClient(path) as client:
            assert await client.ask("echo", text="far") == {"said": "far"}
        assert path.stat().st_mode & 0o777 == 0o600

    assert list(folder.iterdir()) == []
    assert list(temporary.iterdir()) == []


HANGS = """
import asyncio, sys
from pathlib import Path
from bot.rpc import ControlServer
async def main():
    async with ControlServer(Path(sys.argv[1]), {}):
        print("there", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


async def test_a_bot_that_stands_still_is_told_with_its_process(path: Path) -> None:
    command = [sys.executable, "-c", HANGS, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as bot:
        assert bot.stdout is not None
        bot.stdout.readline()
        os.kill(bot.pid, signal.SIGSTOP)
        try:
            async with asyncio.timeout(20), ControlClient(path, silent_s=0.5) as client:
                with pytest.raises(NotAnswering, match=f"kill -9 {bot.pid}"):
                    await client.ask("status")
        finally:
            bot.kill()


async def test_long_work_is_no_hang(path: Path) -> None:
    done = asyncio.Event()

    async def work(request: Request, emit: Emit) -> Request:
        await done.wait()
        return {"worked": True}

    async with ControlServer(path, {"work": work}), ControlClient(path, silent_s=0.5) as client:
        asking = asyncio.create_task(client.ask("work"))
        await asyncio.sleep(1.5)
        assert not asking.done()
        done.set()
        assert await asking == {"worked": True}
