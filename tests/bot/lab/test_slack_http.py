"""The Slack stand-in's HTTP side, taken by the real Bolt: events, commands, clicks, forms."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from slack_bolt.app.async_app import AsyncApp

from bot.lab import faults
from bot.lab.slack import FakeSlack
from bot.lab.slack_delivery import forged, stale
from tests.bot.lab.slack_apps import Heard, bolt_app, http_app, socket_app

SOON = 0.0005
BUTTON = {
    "type": "actions",
    "block_id": "row",
    "elements": [
        {
            "type": "button",
            "action_id": "yes",
            "text": {"type": "plain_text", "text": "Yes"},
            "value": "42",
        }
    ],
}
FORM = {
    "type": "modal",
    "callback_id": "note",
    "title": {"type": "plain_text", "text": "Note"},
    "submit": {"type": "plain_text", "text": "Keep"},
    "blocks": [
        {
            "type": "input",
            "block_id": "b",
            "label": {"type": "plain_text", "text": "Text"},
            "element": {"type": "plain_text_input", "action_id": "a"},
        }
    ],
}
Made = Callable[[FakeSlack, aiohttp.ClientSession], AsyncApp]


@asynccontextmanager
async def told(**more: Any) -> AsyncIterator[tuple[FakeSlack, Heard]]:
    heard = Heard()
    async with (
        FakeSlack(**{"retry_scale": SOON, "ack_s": 0.5, **more}) as slack,
        http_app(slack, lambda fake, session: bolt_app(fake, session, heard)) as url,
    ):
        assert await slack.deliver_to(url)
        yield slack, heard


@asynccontextmanager
async def small_server(handler: Any) -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(handler), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


# Events -------------------------------------------------------------------------------------------


async def test_a_signed_event_arrives() -> None:
    async with told() as (slack, heard):
        slack.post(text="hello")
        await slack.settled()

        (body,) = heard.before
        assert body["event"]["text"] == "hello"
        assert slack.deliveries()[0].attempts[0].status == 200


async def test_an_address_that_does_not_give_the_challenge_back_is_not_taken() -> None:
    async def deaf(_: web.BaseRequest) -> web.Response:
        return web.Response(text="ok")

    async def plain(request: web.BaseRequest) -> web.Response:
        return web.Response(text=(await request.json()).get("challenge", ""))

    async with FakeSlack() as slack, small_server(deaf) as bad, small_server(plain) as good:
        assert not await slack.deliver_to(bad)
        assert await slack.deliver_to(good)


@pytest.mark.parametrize("make", [forged, stale])
async def test_a_false_signature_and_an_old_one_are_refused_and_nothing_is_stored(
    make: Any,
) -> None:
    async with told() as (slack, heard):
        slack.fault("event", action=make(), times=None)

        slack.post(text="hello")
        await slack.settled()

        (delivery,) = slack.deliveries()
        assert [attempt.status for attempt in delivery.attempts] == [401] * 4
        assert heard.before == []


async def test_raising_while_storing_gives_500_and_slack_sends_again() -> None:
    async with told() as (slack, heard):
        heard.broken = 2

        slack.post(text="hello")
        await slack.settled()

        (delivery,) = slack.deliveries()
        assert [attempt.status for attempt in delivery.attempts] == [500, 500, 200]
        assert heard.retries == [("0", ""), ("1", "http_error"), ("2", "http_error")]
        assert [body["event"]["text"] for body in heard.before] == ["hello"]


async def test_bolt_answers_200_when_it_cannot_authorize() -> None:
    async with told() as (slack, heard):
        heard.takes_over = False
        slack.fault("auth.test", action=faults.answer(200, {"ok": False, "error": "x"}))

        slack.post(text="hello")
        await slack.settled()

        assert slack.deliveries()[0].attempts[0].status == 200
        assert heard.events == []
        assert len(heard.before) == 1


async def test_slowness_no_listener_and_redirects_are_reasons_to_send_again() -> None:
    seen: list[str] = []

    async def app(request: web.BaseRequest) -> web.Response:
        body = await request.json()
        if "challenge" in body:
            return web.json_response({"challenge": body["challenge"]})
        seen.append(request.headers.get("X-Slack-Retry-Reason", ""))
        if len(seen) == 1:
            await slack.pause(0.3)
        if len(seen) in {2, 3, 4}:
            raise web.HTTPTemporaryRedirect("/")
        return web.Response()

    async with FakeSlack(retry_scale=SOON, ack_s=0.1) as slack, small_server(app) as url:
        await slack.deliver_to(url)
        slack.post(text="hello")
        await slack.settled()

        (delivery,) = slack.deliveries()
        assert [attempt.failure for attempt in delivery.attempts] == [
            "http_timeout",
            "too_many_redirects",
            "",
        ]


async def test_an_app_can_wish_for_no_retry_and_one_that_is_gone_gets_three() -> None:
    async def unwilling(request: web.BaseRequest) -> web.Response:
        body = await request.json()
        if "challenge" in body:
            return web.Response(text=f"challenge={body['challenge']}")
        return web.Response(status=503, headers={"X-Slack-No-Retry": "1"})

    async with FakeSlack(retry_scale=SOON, ack_s=10) as slack:
        async with small_server(unwilling) as url:
            await slack.deliver_to(url)
            slack.post(text="a")
            await slack.settled()
        slack.post(text="b")
        await slack.settled()

        failures = [[attempt.failure for attempt in d.attempts] for d in slack.deliveries()]
        assert failures == [["http_error"], ["connection_failed"] * 4]


# Commands, clicks, forms --------------------------------------------------------------------------


def talking(slack: FakeSlack, session: aiohttp.ClientSession) -> AsyncApp:
    """An app that answers a command, replaces a message on a click, and checks a form."""
    app = bolt_app(slack, session, Heard())

    @app.command("/hearth")
    async def hearth(ack: Any, command: dict[str, Any], respond: Any) -> None:
        if command["text"] == "slow":
            # Only the stand-in's own verdict ends the wait.
            await slack.until(lambda: slack.ephemeral("U0ANN"))
        await ack(f"You said: {command['text']}")
        await respond("And later.", response_type="in_channel")

    @app.action("yes")
    async def yes(ack: Any, body: dict[str, Any], respond: Any, client: Any) -> None:
        await ack()
        if "message" in body:
            await respond(f"Chosen: {body['actions'][0]['value']}", replace_original=True)
        await client.views_open(trigger_id=body["trigger_id"], view=FORM)

    @app.view("note")
    async def note(ack: Any, view: dict[str, Any]) -> None:
        text = view["state"]["values"]["b"]["a"]["value"]
        if text == "bad":
            await ack(response_action="errors", errors={"b": "Not this."})
        else:
            await ack()

    return app


@asynccontextmanager
async def either(way: str, *, ack_s: float = 30) -> AsyncIterator[FakeSlack]:
    async with FakeSlack(retry_scale=SOON, ack_s=ack_s) as slack:
        if way == "socket":
            async with socket_app(slack, talking):
                yield slack
        else:
            async with http_app(slack, talking) as url:
                assert await slack.deliver_to(url)
                yield slack


@pytest.mark.parametrize("way", ["socket", "http"])
async def test_a_command_is_answered_at_once_and_later(way: str) -> None:
    async with either(way) as slack:
        slack.command(channel="C1", text="hi")
        await slack.settled()
        await slack.until(lambda: slack.chat("C1"))

        assert [seen.text for seen in slack.ephemeral("U0ANN")] == ["You said: hi"]
        assert [seen.text for seen in slack.chat("C1")] == ["And later."]


@pytest.mark.parametrize("way", ["socket", "http"])
async def test_a_command_that_takes_too_long_fails_before_the_person_and_is_not_repeated(
    way: str,
) -> None:
    async with either(way, ack_s=2) as slack:
        slack.command(channel="C1", text="slow")
        await slack.settled()

        (seen,) = slack.ephemeral("U0ANN")
        assert seen.text == '/hearth failed with the error "operation_timeout"'
        assert len(slack.deliveries("slash_commands")[0].attempts) == 1
        await slack.until(lambda: slack.chat("C1"))


@pytest.mark.parametrize("way", ["socket", "http"])
async def test_a_click_replaces_its_message_and_opens_a_form(way: str) -> None:
    async with either(way) as slack, aiohttp.ClientSession() as session:
        app = bolt_app(slack, session, Heard())
        slack.add_channel(channel="C1")
        posted = await app.client.chat_postMessage(channel="C1", text="?", blocks=[BUTTON])

        slack.press(action_id="yes", channel="C1", ts=posted["ts"])
        await slack.until(slack.views)
        (view,) = slack.views()
        rejected = slack.submit(view_id=view["id"], values={"b": {"a": "bad"}})
        await slack.settled()
        still_open = slack.views()
        slack.submit(view_id=view["id"], values={"b": {"a": "good"}})
        await slack.settled()

        assert [seen.text for seen in slack.chat("C1")] == ["Chosen: 42"]
        assert slack.delivery(rejected).answer == {
            "response_action": "errors",
            "errors": {"b": "Not this."},
        }
        assert len(still_open) == 1
        assert slack.views() == []


async def test_a_button_in_the_home_tab_can_be_pressed() -> None:
    async with either("socket") as slack, aiohttp.ClientSession() as session:
        app = bolt_app(slack, session, Heard())
        slack.add_user()
        home = {"type": "home", "blocks": [BUTTON]}
        await app.client.views_publish(user_id="U0ANN", view=home)

        slack.press(action_id="yes")
        await slack.until(slack.views)

        assert slack.views()[0]["callback_id"] == "note"


async def test_a_trigger_opens_one_view_and_not_for_long() -> None:
    async with FakeSlack() as slack, aiohttp.ClientSession() as session:
        client = bolt_app(slack, session, Heard()).client
        slack.command(text="a")
        trigger = slack.deliveries()[0].payload["trigger_id"]

        async def opening(trigger_id: str) -> str:
            body = {"trigger_id": trigger_id, "view": FORM}
            headers = {"Authorization": f"Bearer {client.token}"}
            url = f"{slack.api_url}views.open"
            async with session.post(url, json=body, headers=headers) as response:
                return str((await response.json()).get("error"))

        assert await opening("1.2.x") == "invalid_trigger_id"
        assert await opening(trigger) == "None"
        assert await opening(trigger) == "exchanged_trigger_id"
        slack.rules.trigger_lasts_s = -1.0
        assert await opening(trigger) == "expired_trigger_id"


async def test_a_response_url_is_good_for_five_answers() -> None:
    async with FakeSlack() as slack, aiohttp.ClientSession() as session:
        slack.command(channel="C1", text="a")
        url = slack.deliveries()[0].payload["response_url"]

        statuses = []
        for number in range(6):
            async with session.post(url, json={"text": str(number)}) as response:
                statuses.append(response.status)

        assert statuses == [200] * 5 + [404]
        assert [seen.text for seen in slack.ephemeral()] == ["0", "1", "2", "3", "4"]
