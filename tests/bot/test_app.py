"""The App: what is opened is closed again, whatever happens in between."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent.turn.engine import RESUMES_MAX
from bot.app.app import App
from bot.lab.faults import hold
from bot.lab.telegram import refusal
from bot.rpc import ControlClient
from bot.settings.home import HomeLock
from memory.records.errors import HomeBusy, SettingsWrong, StorageCorrupt
from tests.bot.kit import OWNER, Rig, eventually

OFFLINE = "http://127.0.0.1:9"


def held() -> list[str]:
    """Threads, tasks and database files that a bot in this process has open.

    The stand-ins' own tasks and asyncio's pool of threads stay with the test; a thread that was
    told to end takes a moment.
    """
    threads = [thread.name for thread in threading.enumerate()]
    tasks = [str(task.get_coro()) for task in asyncio.all_tasks()]
    files = [os.path.realpath(file) for file in Path("/proc/self/fd").iterdir()]
    return [
        *(name for name in threads if not name.startswith("asyncio_")),
        *(name for name in tasks if "RequestHandler" not in name and "test_" not in name),
        *(name for name in files if "hearthbot." in name),
    ]


def beyond(before: list[str]) -> list[str]:
    """What is held now and was not then. Less is no fault: what a former bot told to end may have
    been ending still."""
    return list((Counter(held()) - Counter(before)).elements())


def is_free(rig: Rig) -> bool:
    """Whether another bot could be opened on the home now."""
    with HomeLock(rig.home, started_at=rig.clock.now()):
        return not rig.home.socket.exists()


@pytest.mark.parametrize("online", [True, False])
async def test_many_bots_one_after_the_other_leave_nothing_behind(rig: Rig, online: bool) -> None:
    if not online:
        rig.set(telegram__base_url=OFFLINE, llm__api_base=f"{OFFLINE}/v1")
    async with rig.running(OWNER):
        pass
    before = held()

    for _ in range(4):
        async with rig.running(OWNER) as bot, asyncio.timeout(10):
            await bot.settled()

    await eventually(lambda: not beyond(before))
    assert is_free(rig)


async def test_a_second_bot_on_the_home_is_refused_and_harms_nothing(rig: Rig) -> None:
    async with rig.running(OWNER):
        with pytest.raises(HomeBusy, match=str(os.getpid())):
            async with rig.opened():
                pass
        rig.says("hello")
        await rig.reads("You said: hello")


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (
            lambda rig: rig.set(
                llm__model="anthropic/claude", llm__client="direct", llm__api_base=""
            ),
            SettingsWrong,
        ),
        (lambda rig: rig.home.database.write_bytes(b"not a database"), StorageCorrupt),
    ],
)
async def test_an_opening_that_fails_closes_what_it_had_opened(
    rig: Rig, spoil: Any, expected: type[Exception]
) -> None:
    spoil(rig)
    before = held()

    for _ in range(3):
        with pytest.raises(expected):
            async with rig.opened():
                pass

    await eventually(lambda: not beyond(before))
    assert is_free(rig)


async def test_a_fault_in_a_background_task_ends_the_bot_and_closes_everything(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fault(*args: object) -> None:
        raise ZeroDivisionError("nobody foresaw this")

    async with rig.opened() as bot:
        await bot.access.approve(f"telegram:{OWNER}")
    rig.says("hello")
    before = held()

    async def serve() -> None:
        async with asyncio.timeout(10), rig.opened() as bot:
            await bot.serve(asyncio.Event())

    with monkeypatch.context() as patched:
        patched.setattr("bot.channels.telegram.api.TelegramWeb.get_updates", fault)
        with pytest.raises(ExceptionGroup) as found:
            await serve()

    assert found.group_contains(ZeroDivisionError)
    await eventually(lambda: not beyond(before))
    assert is_free(rig)
    async with rig.running():
        await rig.reads("You said: hello")


async def test_once_does_not_wait_for_a_reply_that_only_a_terminal_can_take(rig: Rig) -> None:
    async with rig.opened() as bot:
        await typed(bot, rig, "hello")
    async with rig.opened() as bot, asyncio.timeout(10):
        await bot.once(asyncio.Event())

    assert rig.outbox() == ["ready"]


async def test_once_stops_when_it_is_told_to(rig: Rig) -> None:
    rig.set(turns__drain_s=1)
    rig.model.reply = lambda request: asyncio.sleep(3600)  # type: ignore[assignment, return-value]
    async with rig.opened() as bot, asyncio.timeout(10), asyncio.TaskGroup() as group:
        await bot.access.approve(f"telegram:{OWNER}")
        rig.says("think long")
        stopping = asyncio.Event()
        once = group.create_task(bot.once(stopping))
        await rig.model.until(lambda: rig.model.requests)
        stopping.set()
        await once

    assert rig.texts() == []
    assert rig.rows("select count(*) from turns where ended_ms is null") == [(1,)]


async def typed(bot: App, rig: Rig, text: str) -> None:
    """A line in a terminal that is closed before its answer comes."""
    async with ControlClient(rig.home.socket) as client, asyncio.timeout(10):
        await client.ask("ping")
        asking = asyncio.ensure_future(client.ask("say", text=text, message_id="m1"))
        await rig.model.until(lambda: rig.model.requests)
        await bot.engine.idle()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def test_starts_with_a_refused_token_give_up_no_turn_that_was_cut_off(rig: Rig) -> None:
    silent = rig.model.fault("chat", action=hold(), times=None)

    async def life() -> None:
        asked = silent.hits
        async with rig.opened(hurry=100) as bot:
            await eventually(lambda: silent.hits > asked)
            with pytest.raises(ExceptionGroup):
                await bot.serve(asyncio.Event())

    async with rig.running(OWNER, killed=True):
        rig.says("are you there?")
        await eventually(lambda: silent.hits)

    refused = rig.telegram.fault("getMe", action=refusal(401, "Unauthorized"), times=None)
    for _ in range(RESUMES_MAX + 2):
        await life()
    refused.times = silent.times = 0

    async with rig.running() as bot:
        await rig.reads("You said: are you there?")
        await rig.quiet(bot)
