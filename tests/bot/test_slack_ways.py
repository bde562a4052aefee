"""The two ways in under every trouble: sockets that come and go, forged requests, bad tokens."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.app.app import App
from bot.channels.slack.api import SlackRefused
from bot.channels.slack.events import FRESH_S, is_signed
from bot.channels.wire import BODY_BYTES_MAX
from bot.inbox.intake import InboundEvent, Intake
from bot.lab.faults import FaultAction, answer, drop
from bot.lab.slack import SIGNING_SECRET, flood
from bot.lab.slack_delivery import forged, signature, stale
from memory.records.errors import SettingsWrong, StorageFull
from memory.records.rows import StoredEvent
from tests.bot.kit import eventually
from tests.bot.slack_kit import ANN, CHANNEL, US, Mode, SlackRig, slack_rigged

Logs = list[Any]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[SlackRig]:
    async with slack_rigged(tmp_path) as made:
        yield made


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[SlackRig]:
    async with slack_rigged(tmp_path, "http") as made:
        yield made


def told(logs: Logs, event: str) -> int:
    return sum(entry["event"] == event for entry in logs)


# --- sockets -------------------------------------------------------------------------------------


async def test_the_old_socket_is_read_while_the_new_one_is_open(rig: SlackRig) -> None:
    async with rig.serving_slack(ANN) as bot:
        for round_number in range(3):
            rig.slack.refresh(reason="warning", after_s=0.5)
            for number in range(8):
                rig.writes(f"m{round_number}{number}")
            await eventually(lambda: len(rig.slack.sockets()) == 2)
            await rig.slack.settled()
            await eventually(lambda: len(rig.slack.sockets()) == 1)
        await eventually(lambda: rig.inbox().count("replied") + rig.inbox().count("joined") == 24)
        await rig.quiet(bot)

    attempts = [len(one.attempts) for one in rig.slack.deliveries("events_api")]
    assert max(attempts) == 1, "no event had to come again"
    assert rig.slack.lost() == []


@pytest.mark.parametrize(
    "action",
    [flood(2), drop(), answer(200, {"ok": True})],
    ids=lambda action: f"{action.kind} {action.status} {action.body}",
)
async def test_what_keeps_a_socket_from_opening_is_waited_out_and_told_once(
    rig: SlackRig, logs: Logs, action: FaultAction
) -> None:
    rig.slack.fault("apps.connections.open", action=action, times=3)
    async with rig.serving_slack(ANN, hurry=50) as bot:
        rig.writes("hi")
        await rig.shows("You said: hi")
        await rig.quiet(bot)

    troubles = told(logs, "slack.no_socket") + told(logs, "slack.disconnected")
    assert troubles == 1


@pytest.mark.parametrize(
    ("reason", "event", "said"),
    [
        ("link_disabled", "slack.socket_mode_off", "switch it on there"),
        ("too_many_websockets", "slack.too_many_sockets", "other copies of this bot"),
    ],
)
async def test_a_reason_to_go_that_the_owner_can_mend_is_said(
    rig: SlackRig, logs: Logs, reason: str, event: str, said: str
) -> None:
    async with rig.serving_slack(ANN, hurry=50):
        rig.slack.refresh(reason=reason)
        await eventually(lambda: len(rig.slack.calls("apps.connections.open")) == 2)

    [why] = [entry["why"] for entry in logs if entry["event"] == event]
    assert said in why


# --- who we are ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["socket", "http"])
@pytest.mark.parametrize(
    "action",
    [drop(), flood(1)],
    ids=lambda action: f"{action.kind} {action.body}",
)
async def test_while_auth_test_fails_events_are_taken_in_and_answered(
    tmp_path: Path, logs: Logs, mode: Mode, action: FaultAction
) -> None:
    async with slack_rigged(tmp_path, mode) as rig:
        rig.slack.fault("auth.test", action=action, times=None)
        async with rig.serving_slack(ANN, chats=(CHANNEL,)) as bot:
            rig.writes("hi")
            rig.writes(f"<@{US}> hi", channel=CHANNEL)
            await rig.shows("You said: hi")
            await rig.shows("You said: Ann Example: hi", channel=CHANNEL)
            await rig.quiet(bot)

        assert rig.inbox() == ["replied", "replied"]
        assert rig.slack.lost() == []
        assert told(logs, "slack.unreachable") == 1
        assert told(logs, "slack.known") == 0


@pytest.mark.parametrize("mode", ["socket", "http"])
async def test_a_bot_token_that_is_refused_ends_the_start_with_the_fix_and_loses_nothing(
    tmp_path: Path, mode: Mode
) -> None:
    async with slack_rigged(tmp_path, mode) as rig:
        rig.slack.rules.token_error = "invalid_auth"
        async with rig.serving_slack(ANN, hurry=4):
            ts = rig.writes("hi")
            with pytest.raises(BaseExceptionGroup) as raised:
                await rig.gives_up()
        [error] = flat(raised.value)
        assert isinstance(error, SlackRefused)
        assert "HEARTHBOT_SLACK__BOT_TOKEN" in str(error)

        rig.slack.rules.token_error = None
        rig._gives_up = False
        async with rig.serving_slack(hurry=20) as bot:
            await rig.shows("You said: hi")
            await rig.quiet(bot)
        assert rig.inbox() == ["replied"]
        assert ts


async def test_an_app_token_without_its_scope_ends_the_start_with_the_fix(rig: SlackRig) -> None:
    rig.slack.rules.app_scopes = set()
    async with rig.serving_slack(ANN, hurry=50, reached=False):
        with pytest.raises(BaseExceptionGroup) as raised:
            await rig.gives_up()

    [error] = flat(raised.value)
    assert isinstance(error, SettingsWrong)
    assert "connections:write" in str(error)
    assert "HEARTHBOT_SLACK__APP_TOKEN" in str(error)


async def test_scopes_that_are_missing_are_named_at_start(rig: SlackRig, logs: Logs) -> None:
    rig.slack.rules.bot_scopes -= {"users:read", "mpim:history"}
    async with rig.serving_slack(ANN) as bot:
        await eventually(lambda: told(logs, "slack.known"))
        rig.writes("hi")
        await rig.shows("You said: hi")
        await rig.quiet(bot)

    [entry] = [entry for entry in logs if entry["event"] == "slack.missing_scopes"]
    assert entry["scopes"] == ["mpim:history", "users:read"]
    assert "reinstall" in entry["fix"]


def flat(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found += flat(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


# --- storage -------------------------------------------------------------------------------------


class FullDoor:
    """The real intake while the disk is full for so many times."""

    def __init__(self, door: Intake, times: int) -> None:
        self._door = door
        self.times = times

    async def store(self, knocks: Sequence[InboundEvent]) -> Sequence[StoredEvent]:
        if self.times:
            self.times -= 1
            raise StorageFull("The disk is full.")
        return await self._door.store(knocks)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._door, name)


@pytest.mark.parametrize("mode", ["socket", "http"])
async def test_what_cannot_be_stored_is_not_acknowledged_and_comes_again(
    tmp_path: Path, logs: Logs, mode: Mode
) -> None:
    async with slack_rigged(tmp_path, mode, ack_s=0.3) as rig, rig.opened() as bot:
        await bot.access.approve(f"slack:T0LAB:{ANN}")
        full = FullDoor(bot.intake, times=2)
        bot.intake = full  # type: ignore[assignment]
        async with serving(rig, bot):
            ts = rig.writes("hi")
            await rig.shows("You said: hi")
            await rig.quiet(bot)

        [delivery] = rig.slack.deliveries(ts=ts)
        assert len(delivery.attempts) == 3
        assert told(logs, "slack.not_stored") == told(logs, "slack.not_stored.over") == 1


def serving(rig: SlackRig, bot: App) -> Any:
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def run() -> AsyncIterator[None]:
        stopping = asyncio.Event()
        task = asyncio.create_task(bot.serve(stopping))
        try:
            await rig.reached()
            yield
        finally:
            stopping.set()
            await task

    return run()


# --- HTTP ----------------------------------------------------------------------------------------


@pytest.mark.threat("T4")
async def test_a_forged_or_stale_event_is_refused_and_leaves_no_trace(
    web: SlackRig, logs: Logs
) -> None:
    async with web.serving_slack(ANN) as bot:
        web.slack.fault("event", action=forged(), times=4)
        web.writes("forged")
        await web.slack.settled()
        web.slack.clear_faults()
        web.slack.fault("event", action=stale(FRESH_S + 10), times=4)
        web.writes("stale")
        await web.slack.settled()
        web.slack.clear_faults()
        web.writes("real")
        await web.shows("You said: real")
        await web.quiet(bot)

    statuses = [a.status for d in web.slack.deliveries("events_api") for a in d.attempts]
    assert statuses.count(401) == 8
    assert web.inbox() == ["replied"]
    assert told(logs, "slack.forged") == 1
    assert b"forged" not in web.bytes_on_disk()


async def post(rig: SlackRig, body: bytes, kind: str, *, sign: bool = True) -> tuple[int, str]:
    stamp = str(int(time.time()))
    headers = {"Content-Type": kind}
    if sign:
        signed = signature(SIGNING_SECRET, stamp, body.decode(errors="replace"))
        headers |= {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": signed}
    url = f"http://127.0.0.1:{rig.port}/slack/events"
    sent = io.BytesIO(body)
    async with aiohttp.ClientSession() as http, http.post(url, data=sent, headers=headers) as got:
        return got.status, await got.text()


async def test_only_what_is_signed_and_readable_is_taken(web: SlackRig) -> None:
    challenge = json.dumps({"type": "url_verification", "challenge": "xyz"}).encode()
    async with web.serving_slack(ANN):
        found = [
            await post(web, challenge, "application/json"),
            await post(web, challenge, "application/json", sign=False),
            await post(web, b"{", "application/json"),
            await post(web, b"[1]", "application/json"),
            await post(web, b"payload=%7B", "application/x-www-form-urlencoded"),
            await post(web, b"x" * (BODY_BYTES_MAX + 1), "application/json"),
            await post(web, b"ssl_check=1&token=x", "application/x-www-form-urlencoded"),
        ]

    assert [status for status, _ in found] == [200, 401, 400, 400, 400, 413, 200]
    assert json.loads(found[0][1]) == {"challenge": "xyz"}


@pytest.mark.parametrize(
    ("timestamp", "given", "right"),
    [
        ("1000", "right", True),
        ("699", "right", False),
        ("1301", "right", False),
        ("", "right", False),
        ("1e3", "right", False),
        ("-1000", "right", False),
        ("9" * 400, "right", False),
        ("١٠٠٠", "right", False),
        ("1000", "", False),
        ("1000", "v0=", False),
        ("1000", "v0=ü\udcff", False),
    ],
)
@pytest.mark.threat("T4")
def test_a_signature_counts_for_five_minutes(timestamp: str, given: str, right: bool) -> None:
    if given == "right":
        given = signature("secret", timestamp, "body")

    found = is_signed(b"secret", b"body", timestamp=timestamp, signature=given, now_s=1000.0)

    assert found is right


@pytest.mark.threat("T4")
def test_another_body_or_secret_does_not_fit_a_signature() -> None:
    given = signature("secret", "1000", "body")

    for secret, body in ((b"secret", b"Body"), (b"other", b"body"), (b"", b"body")):
        assert not is_signed(secret, body, timestamp="1000", signature=given, now_s=1000.0)


async def test_a_port_that_is_taken_is_said_plainly(web: SlackRig) -> None:
    server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", web.port)
    async with server, web.serving_slack(ANN, reached=False):
        with pytest.raises(BaseExceptionGroup) as raised:
            await web.gives_up()

    [error] = flat(raised.value)
    assert isinstance(error, SettingsWrong)
    assert "slack.listen" in str(error)
