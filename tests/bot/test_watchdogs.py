"""Networks that go, names that do not resolve, connections that fall silent: it recovers by itself,
with one line in the log when it begins and one when it is over."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.app.app import App
from bot.channels.telegram.channel import TelegramChannel
from bot.inbox.intake import Intake
from bot.lab.faults import drop, hold
from bot.lab.telegram import FakeTelegram
from tests.bot.kit import OWNER, TOKEN, HastyClock, Rig, eventually, telegram_settings
from tests.bot.slack_kit import ANN, SlackRig, slack_rigged
from tests.fakes import FixedClock

Logs = list[Any]
HOUR_S = 3_600.0


@pytest.fixture
async def slack(tmp_path: Path) -> AsyncIterator[SlackRig]:
    async with slack_rigged(tmp_path) as made:
        yield made


def told(logs: Logs, *beginnings: str) -> list[str]:
    """The events of the log that anybody would see, of these parts of the bot."""
    seen = [entry["event"] for entry in logs if entry["log_level"] != "debug"]
    return [event for event in seen if event.startswith(beginnings)]


async def an_hour_passes(clock: HastyClock) -> None:
    """Until the pauses that were made come to an hour."""
    await eventually(lambda: sum(clock.paused_s) >= HOUR_S, timeout_s=30)


async def status(bot: App) -> str:
    return "\n".join(await bot.status.lines(for_owner=True))


# --- the network ---------------------------------------------------------------------------------


async def test_an_hour_without_network_is_told_once_and_loses_nothing_in_telegram(
    rig: Rig, logs: Logs
) -> None:
    async with rig.running(OWNER, hurry=20_000) as bot:
        rig.says("before")
        await rig.reads("You said: before")
        await rig.quiet(bot)
        del logs[:]
        rig.clock.paused_s.clear()
        gone = rig.telegram.fault("*", action=drop(), times=None)
        rig.telegram.message(chat_id=OWNER, text="/status")  # ends the poll that still waits
        await eventually(lambda: gone.hits > 1)
        rig.says("meanwhile")
        await an_hour_passes(rig.clock)
        assert "No messages from Telegram for" in await status(bot)
        rig.telegram.clear_faults()
        await eventually(lambda: "You said: meanwhile" in rig.texts())
        await rig.quiet(bot)
        assert "No messages from" not in await status(bot)

    assert told(logs, "telegram.") == ["telegram.trouble", "telegram.trouble.over"]


async def test_an_hour_without_network_is_told_once_and_loses_nothing_in_slack(
    slack: SlackRig, logs: Logs
) -> None:
    async with slack.serving_slack(ANN, hurry=20_000) as bot:
        slack.writes("before")
        await slack.shows("You said: before")
        await slack.quiet(bot)
        del logs[:]
        slack.clock.paused_s.clear()
        slack.slack.fault("*", action=drop(), times=None)
        slack.slack.cut()
        await an_hour_passes(slack.clock)
        assert "No messages from Slack for" in await status(bot)
        slack.slack.clear_faults()
        await slack.reached()
        slack.writes("after")
        await slack.shows("You said: before", "You said: after")
        await slack.quiet(bot)
        assert "No messages from" not in await status(bot)

    assert told(logs, "slack.") == ["slack.no_socket", "slack.no_socket.over", "slack.connected"]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """No name resolves, as on a machine that starts before its network does, until `undo`."""

    def unknown(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    with monkeypatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", unknown)
        yield patch


# --- silence -------------------------------------------------------------------------------------


class Inbox:
    """An intake that keeps what comes."""

    def __init__(self) -> None:
        self.came: list[Any] = []

    async def store(self, knocks: Sequence[Any]) -> list[Any]:
        self.came += knocks
        return list(knocks)

    async def handle(self, channel: Any, events: Sequence[Any]) -> None:
        return None


@asynccontextmanager
async def channel_of(clock: FixedClock) -> AsyncIterator[tuple[FakeTelegram, TelegramChannel]]:
    """A channel that polls without a long wait, on a clock that a pause moves on."""
    async with FakeTelegram(TOKEN) as fake:
        options = telegram_settings(base_url=fake.base_url, poll_timeout_s=0)
        async with TelegramChannel(options, clock=clock) as channel:
            yield fake, channel


@asynccontextmanager
async def polling(channel: TelegramChannel, inbox: Inbox) -> AsyncIterator[None]:
    door: Intake = inbox  # type: ignore[assignment]
    task = asyncio.create_task(channel.poll(door))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll that is not answered counts as lost at once."""
    monkeypatch.setattr("bot.channels.telegram.api.POLL_SLACK_S", 0.03)


@pytest.mark.usefixtures("impatient")
async def test_polls_that_hear_nothing_for_two_minutes_are_made_anew_with_one_line(
    logs: Logs,
) -> None:
    clock, inbox = FixedClock(), Inbox()
    async with channel_of(clock) as (telegram, channel), polling(channel, inbox):
        silent = telegram.fault("getUpdates", action=hold(after=False), times=None)
        await eventually(lambda: clock.monotonic() >= 400.0)
        telegram.clear_faults()
        telegram.release()
        telegram.message(chat_id=OWNER, text="still there?")
        await eventually(lambda: inbox.came)

    [restarted] = [entry for entry in logs if entry["event"] == "telegram.polling_restarted"
                   and entry["log_level"] != "debug"]  # fmt: skip
    assert 120 <= restarted["silent_s"] < 160
    assert silent.hits > 10
    assert told(logs, "telegram.trouble") == ["telegram.trouble", "telegram.trouble.over"]


@pytest.mark.usefixtures("impatient")
async def test_a_connection_that_is_stuck_does_not_stop_the_polls_for_ever(logs: Logs) -> None:
    clock, inbox = FixedClock(), Inbox()
    async with channel_of(clock) as (telegram, channel):
        telegram.fault("sendChatAction", action=hold(after=False))
        stuck = asyncio.create_task(the_only_connection(channel, telegram))
        await eventually(lambda: telegram.calls("sendChatAction"))
        telegram.message(chat_id=OWNER, text="still there?")
        async with polling(channel, inbox):
            await eventually(lambda: inbox.came)
        stuck.cancel()
        await asyncio.gather(stuck, return_exceptions=True)

    assert clock.monotonic() >= 120
    assert "telegram.polling_restarted" in told(logs, "telegram.")


async def the_only_connection(channel: TelegramChannel, telegram: FakeTelegram) -> None:
    """Takes the one that polls have, and never gives it back."""
    url = f"{telegram.base_url}/bot{TOKEN}/sendChatAction"
    form = {"chat_id": str(OWNER), "action": "typing"}
    await channel.web._polling._client.post(url, data=form, timeout=None)
