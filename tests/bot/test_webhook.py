"""Updates by webhook: nothing is looked at without the secret, and 200 means stored."""

from __future__ import annotations

import io
import socket
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest

from bot.channels.telegram.channel import SECRET_HEADER
from bot.channels.wire import BODY_BYTES_MAX
from bot.inbox.intake import Intake
from bot.lab.telegram import refusal
from bot.settings.load import load
from bot.settings.logging import set_up
from bot.settings.schema.settings import LoggingSettings
from memory.records.errors import SettingsWrong, StorageFull
from tests.bot.kit import OWNER, Rig, eventually

SECRET = "Quite-a-secret_1"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def url(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> str:
    """The webhook's address. Telegram asks for https, which a proxy in front of the bot does; the
    stand-in is told the plain address behind it."""
    port = free_port()
    rig.set(
        telegram__mode="webhook",
        telegram__webhook_url="https://bot.example/tg",
        telegram__webhook_secret=SECRET,
        telegram__webhook_listen=f"127.0.0.1:{port}",
    )
    address = f"http://127.0.0.1:{port}/tg"
    take = rig.telegram._set_webhook
    monkeypatch.setattr(
        rig.telegram,
        "_set_webhook",
        lambda method, params: take(method, type(params)({**params, "url": address})),
    )
    return address


def update(number: int, text: str = "hello") -> dict[str, Any]:
    person = {"id": OWNER, "is_bot": False, "first_name": "Ann"}
    return {
        "update_id": number,
        "message": {
            "message_id": number,
            "date": 10,
            "chat": {"id": OWNER, "type": "private", "first_name": "Ann"},
            "from": person,
            "text": text,
        },
    }


async def post(url: str, body: Any, headers: Mapping[str, Any]) -> int:
    """The status; 0 where the connection was closed while the body was still being sent."""
    data = io.BytesIO(body) if isinstance(body, bytes) else None
    json = None if isinstance(body, bytes) else body
    async with aiohttp.ClientSession() as session:
        try:
            async with session.post(url, data=data, json=json, headers=dict(headers)) as response:
                return response.status
        except aiohttp.ClientOSError:
            return 0


async def test_messages_come_by_webhook_in_order_and_once(rig: Rig, url: str) -> None:
    rig.set(turns__queue="followup")
    async with rig.running(OWNER) as bot:
        await eventually(lambda: rig.telegram.calls("setWebhook"))
        for text in "abc":
            rig.says(text)
        await rig.reads("You said: a", "You said: b", "You said: c")
        rig.telegram.redeliver(2)
        rig.says("d")
        await eventually(lambda: rig.texts()[-1] == "You said: d")
        await rig.quiet(bot)

    assert len(rig.model.requests) == 4
    assert rig.telegram.calls("getUpdates") == []
    [call] = rig.telegram.calls("setWebhook")
    assert call.params["secret_token"] == SECRET
    assert "drop_pending_updates" not in call.params
    assert rig.telegram.calls("setMyCommands")


@pytest.mark.case("SE-05")
@pytest.mark.threat("T4")
async def test_without_the_right_secret_nothing_is_read_stored_or_logged(
    rig: Rig, url: str
) -> None:
    out = io.StringIO()
    wrong: list[dict[str, Any]] = [
        {},
        {SECRET_HEADER: ""},
        {SECRET_HEADER: "wrong-guess"},
        {SECRET_HEADER: SECRET.upper()},
        {SECRET_HEADER: SECRET + "1"},
        {SECRET_HEADER: SECRET[:-1]},
        {SECRET_HEADER: "gänse"},
        {"X-Telegram-Bot-Api-Secret": SECRET},
    ]
    logging = LoggingSettings(level="debug")

    with set_up(logging, secrets=[SECRET], stream=out, file=rig.home.log_file):
        async with rig.running(OWNER) as bot:
            await eventually(lambda: rig.telegram.calls("setWebhook"))
            for headers in wrong:
                assert await post(url, update(1, "forged treasure"), headers) == 403
            assert await post(url, b"x" * (BODY_BYTES_MAX + 1), {}) in {0, 403}
            assert rig.inbox() == []
            assert await post(url, update(2), {SECRET_HEADER.lower(): SECRET}) == 200
            await rig.reads("You said: hello")
            await rig.quiet(bot)

    for hidden in ("treasure", "wrong-guess", SECRET):
        assert hidden not in out.getvalue()
        assert hidden.encode() not in rig.bytes_on_disk()
    assert out.getvalue().count("webhook.refused") == 1, "whoever tries does not fill the log"


@pytest.mark.case("SE-05")
@pytest.mark.parametrize("secret", [None, "", "s p a c e"])
@pytest.mark.threat("T4")
async def test_webhook_mode_does_not_start_without_a_secret(rig: Rig, secret: str | None) -> None:
    rig.set(telegram__mode="webhook", telegram__webhook_url="https://bot.example/tg")
    if secret is not None:
        rig.set(telegram__webhook_secret=secret)

    with pytest.raises(SettingsWrong, match="webhook_secret"):
        load(rig.home.path, rig.env)


@pytest.mark.case("CF-07")
@pytest.mark.threat("T5")
async def test_after_a_change_and_a_restart_the_old_secret_is_refused(rig: Rig, url: str) -> None:
    async with rig.running(OWNER):
        await eventually(lambda: rig.telegram.calls("setWebhook"))
        assert await post(url, update(1), {SECRET_HEADER: SECRET}) == 200

    rig.set(telegram__webhook_secret="another-one")
    async with rig.running():
        await eventually(lambda: len(rig.telegram.calls("setWebhook")) == 2)
        assert await post(url, update(2), {SECRET_HEADER: SECRET}) == 403
        assert await post(url, update(3), {SECRET_HEADER: "another-one"}) == 200


async def test_nonsense_with_the_right_secret_is_refused_and_changes_nothing(
    rig: Rig, url: str
) -> None:
    headers = {SECRET_HEADER: SECRET}
    nonsense: list[bytes] = [
        b"",
        b"{",
        b"[]",
        b"7",
        b"{}",
        b'{"update_id": "7"}',
        b'{"update_id": true}',
        b"[" * 100_000,
        b"\xff\xfe",
    ]
    async with rig.running(OWNER) as bot:
        await eventually(lambda: rig.telegram.calls("setWebhook"))
        for body in nonsense:
            assert await post(url, body, headers) == 400
        assert await post(url, b"x" * (BODY_BYTES_MAX + 1), headers) in {0, 413}
        deep = b'{"update_id": 5, "message": ' + b"[" * 90_000 + b"]" * 90_000 + b"}"
        assert await post(url, deep, headers) == 200
        assert await post(url.replace("/tg", "/other"), update(1), headers) == 404
        assert await post(url, update(9), headers) == 200
        await rig.reads("You said: hello")
        await rig.quiet(bot)

    assert rig.inbox() == ["refused", "replied"]


async def test_what_cannot_be_stored_is_not_taken_and_comes_again(
    rig: Rig, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = 2
    store = Intake.store

    async def fails(self: Intake, knocks: Any) -> Any:
        nonlocal failures
        if failures:
            failures -= 1
            raise StorageFull("The disk is full.")
        return await store(self, knocks)

    monkeypatch.setattr(Intake, "store", fails)
    async with rig.running(OWNER) as bot:
        rig.says("keep me")
        await rig.reads("You said: keep me")
        await rig.quiet(bot)

    assert failures == 0


async def test_an_address_that_telegram_refuses_ends_the_start(rig: Rig, url: str) -> None:
    rig.telegram.fault("setWebhook", action=refusal(400, "bad webhook: no"), times=None)

    async def start() -> None:
        async with rig.running(OWNER):
            await rig.gives_up()

    with pytest.raises(ExceptionGroup) as ended:
        await start()

    refused, rest = ended.value.split(SettingsWrong)
    assert rest is None
    assert refused is not None
    assert "telegram.webhook_url" in str(refused.exceptions)
