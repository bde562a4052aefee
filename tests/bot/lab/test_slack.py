"""The Slack stand-in refuses what Slack refuses, and sends again what was not taken.

What it answers and sends is read in tests/bot by the bot itself and by Slack's own library.
"""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.lab import faults
from bot.lab.slack import APP_TOKEN, TOKEN, FakeSlack
from bot.lab.slack_delivery import lose_ack, twice
from bot.lab.slack_state import BOT_USER

SOON = 0.0005
"""Scales Slack's 1 and 5 minutes to 30 and 150 ms."""

LONG_BLOCK = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}
MARK = {"event_type": "reply", "event_payload": {"id": 7}}


@asynccontextmanager
async def both(**rules: Any) -> AsyncIterator[tuple[FakeSlack, AsyncWebClient]]:
    async with FakeSlack(**rules) as slack, aiohttp.ClientSession() as session:
        slack.add_channel(channel="C1", members=["U0ANN"])
        slack.add_channel(channel="C2", bot_inside=False)
        slack.add_channel(channel="C3", archived=True)
        slack.add_channel(channel="G1", kind="group", bot_inside=False)
        client = AsyncWebClient(TOKEN, base_url=slack.api_url, session=session, retry_handlers=[])
        yield slack, client


@pytest.mark.parametrize(
    ("method", "asked", "error"),
    [
        ("no.such", {}, "unknown_method"),
        ("chat.postMessage", {"channel": "C404", "text": "x"}, "channel_not_found"),
        ("chat.postMessage", {"channel": "C2", "text": "x"}, "not_in_channel"),
        ("chat.postMessage", {"channel": "C3", "text": "x"}, "is_archived"),
        ("chat.postMessage", {"channel": "G1", "text": "x"}, "channel_not_found"),
        ("chat.postMessage", {"channel": "C1", "text": ""}, "no_text"),
        ("chat.postMessage", {"text": "x"}, "invalid_arguments"),
        ("chat.postMessage", {"channel": "C1", "blocks": "["}, "invalid_blocks_format"),
        ("chat.postMessage", {"channel": "C1", "blocks": [LONG_BLOCK]}, "invalid_blocks"),
        ("chat.postMessage", {"channel": "C1", "blocks": [{}] * 51}, "invalid_blocks"),
        (
            "chat.postMessage",
            {"channel": "C1", "blocks": [{"type": "markdown", "text": "x" * 7000}] * 2},
            "msg_blocks_too_long",
        ),
        (
            "chat.postMessage",
            {"channel": "C1", "text": "x", "metadata": {"event_payload": {}}},
            "invalid_metadata_schema",
        ),
        (
            "chat.postMessage",
            {"channel": "C1", "text": "x", "thread_ts": "1"},
            "invalid_thread_ts",
        ),
        (
            "chat.postEphemeral",
            {"channel": "C1", "user": "U0BOB", "text": "x"},
            "user_not_in_channel",
        ),
        ("chat.update", {"channel": "C1", "ts": "1.000001", "text": "x"}, "message_not_found"),
        ("conversations.history", {"channel": "C2"}, "not_in_channel"),
        ("conversations.replies", {"channel": "C1", "ts": "1.000001"}, "thread_not_found"),
        ("files.info", {"file": "F404"}, "file_not_found"),
        (
            "files.completeUploadExternal",
            {"channel_id": "C1", "files": [{"id": "F404"}]},
            "file_not_found",
        ),
        ("reactions.add", {"channel": "C1", "timestamp": "1.1", "name": "x y"}, "invalid_name"),
        ("users.info", {"user": "U404"}, "user_not_found"),
        ("views.open", {"trigger_id": "1.1", "view": {"type": "modal"}}, "invalid_trigger_id"),
        (
            "views.publish",
            {"user_id": "U0ANN", "view": {"type": "modal", "blocks": []}},
            "invalid_arguments",
        ),
        ("apps.connections.open", {}, "not_allowed_token_type"),
    ],
)
async def test_what_slack_refuses_is_refused_in_its_words(
    method: str, asked: Mapping[str, Any], error: str
) -> None:
    async with both() as (slack, client):
        slack.add_user()

        with pytest.raises(SlackApiError) as caught:
            await client.api_call(method, json=dict(asked))

        assert caught.value.response["error"] == error
        [entry] = slack.calls()
        assert (entry.applied, entry.fault) == (False, error)


async def test_a_token_has_its_scopes_and_its_end() -> None:
    async with both() as (slack, client):
        slack.rules.bot_scopes.discard("chat:write")
        with pytest.raises(SlackApiError, match="missing_scope") as caught:
            await client.chat_postMessage(channel="C1", text="x")
        assert caught.value.response["needed"] == "chat:write"
        for family in ("channels", "groups", "im", "mpim"):
            slack.rules.bot_scopes.discard(f"{family}:history")
        with pytest.raises(SlackApiError, match="missing_scope") as caught:
            await client.conversations_history(channel="C1")
        assert caught.value.response["needed"] == "channels:history"
        slack.rules.change(token_error="token_revoked")
        with pytest.raises(SlackApiError, match="token_revoked"):
            await client.auth_test()
        with pytest.raises(SlackApiError, match="invalid_auth"):
            await client.auth_test(token="xoxb-another")


async def test_only_own_messages_are_edited_and_the_mark_in_one_stays() -> None:
    async with both() as (slack, client):
        theirs = slack.post(channel="C1", text="a")
        mine = await client.chat_postMessage(
            channel="C1", text="b", metadata=MARK, thread_ts=theirs
        )

        await client.chat_update(channel="C1", ts=mine["ts"], text="c")
        with pytest.raises(SlackApiError, match="cant_update_message"):
            await client.chat_update(channel="C1", ts=theirs, text="x")
        with pytest.raises(SlackApiError, match="msg_too_long"):
            await client.chat_update(channel="C1", ts=mine["ts"], text="x" * 4001)
        thread = await client.conversations_replies(
            channel="C1", ts=theirs, include_all_metadata=True
        )

        assert [(seen.text, seen.edits) for seen in slack.thread("C1", theirs)] == [
            ("a", 0),
            ("c", 1),
        ]
        assert thread["messages"][1]["metadata"] == MARK
        assert thread["messages"][0]["reply_count"] == 1


async def test_history_has_the_newest_first_and_pages_without_gaps() -> None:
    async with both() as (slack, client):
        for number in range(7):
            slack.post(channel="C1", text=str(number))

        texts: list[str] = []
        cursor = ""
        while True:
            page = await client.conversations_history(channel="C1", limit=3, cursor=cursor)
            texts += [message["text"] for message in page["messages"]]
            slack.post(channel="C1", text="meanwhile")
            if not page["has_more"]:
                break
            cursor = page["response_metadata"]["next_cursor"]

        assert texts == ["6", "5", "4", "3", "2", "1", "0"]


async def test_a_trigger_opens_one_view_and_not_for_long() -> None:
    now = [0.0]
    view = {"type": "modal", "title": {"type": "plain_text", "text": "A"}, "blocks": []}
    async with both(clock=lambda: now[0]) as (slack, client):
        early, late = (
            slack.delivery(slack.command(text="help")).payload["trigger_id"] for _ in range(2)
        )

        await client.views_open(trigger_id=early, view=view)
        with pytest.raises(SlackApiError, match="invalid_trigger_id"):
            await client.views_open(trigger_id=early, view=view)
        now[0] += 3.5
        with pytest.raises(SlackApiError, match="expired_trigger_id"):
            await client.views_open(trigger_id=late, view=view)


async def test_the_pace_is_bounded_for_posts_and_for_the_workspace() -> None:
    now = [0.0]
    async with both(limits=True, clock=lambda: now[0]) as (slack, client):
        for _ in range(3):
            await client.chat_postMessage(channel="C1", text="x")
        with pytest.raises(SlackApiError) as caught:
            await client.chat_postMessage(channel="C1", text="x")
        slack.rules.change(limits=False, workspace_per_minute=2)
        for _ in range(2):
            await client.auth_test()
        with pytest.raises(SlackApiError):
            await client.auth_test()

        assert caught.value.response.headers["Retry-After"] == "1"
        assert [entry.status for entry in slack.calls()] == [200, 200, 200, 429, 200, 200, 429]


async def test_a_fault_for_everything_that_is_asked_leaves_events_alone() -> None:
    async with both() as (slack, client):
        slack.fault("*", action=faults.answer(500))
        slack.post(text="hello")
        await slack.until(lambda: slack.deliveries()[0].attempts)

        with pytest.raises(SlackApiError):
            await client.auth_test()

        assert slack.deliveries()[0].attempts[0].fault is None


# What is told to the app --------------------------------------------------------------------------


@asynccontextmanager
async def app(status: int = 200, **rules: Any) -> AsyncIterator[tuple[FakeSlack, list[Any]]]:
    """An app that takes events by HTTP, and answers all but the challenge with this status."""
    heard: list[Any] = []

    async def take(request: web.BaseRequest) -> web.Response:
        body = json.loads(await request.read())
        if body["type"] == "url_verification":
            return web.Response(text=body["challenge"])
        heard.append(body)
        return web.Response(status=status)

    runner = web.ServerRunner(web.Server(take), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with FakeSlack(retry_scale=SOON, **rules) as slack:
            assert await slack.deliver_to(f"http://127.0.0.1:{runner.addresses[0][1]}/")
            yield slack, heard
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("status", "action", "came", "state"),
    [
        (200, None, 1, "taken"),
        (200, twice(), 2, "taken"),
        (200, lose_ack(), 2, "taken"),
        (200, faults.drop(), 1, "taken"),
        (500, None, 4, "lost"),
    ],
)
async def test_an_event_comes_again_until_it_is_taken(
    status: int, action: faults.FaultAction | None, came: int, state: str
) -> None:
    async with app(status) as (slack, heard):
        if action is not None:
            slack.fault("event", action=action)
        slack.post(text="hello")
        await slack.settled()

        assert [body["event"]["text"] for body in heard] == ["hello"] * came
        assert len({body["event_id"] for body in heard}) == 1
        assert slack.deliveries()[0].state == state


async def test_a_mention_is_two_events_with_one_ts_and_an_edit_says_what_was() -> None:
    async with app() as (slack, heard):
        ts = slack.post(channel="C1", text=f"<@{BOT_USER}> 2+2?")
        await slack.settled()
        slack.edit(channel="C1", ts=ts, text="never mind")
        slack.delete(channel="C1", ts=ts)
        await slack.settled()

        said = [body["event"] for body in heard]
        assert sorted(one["type"] for one in said[:2]) == ["app_mention", "message"]
        assert {one["ts"] for one in said[:2]} == {ts}
        changed, gone = sorted(said[2:], key=lambda one: str(one["subtype"]))
        assert changed["previous_message"]["text"] == f"<@{BOT_USER}> 2+2?"
        assert gone["deleted_ts"] == ts


async def test_what_is_not_subscribed_is_not_sent() -> None:
    async with app() as (slack, heard):
        slack.rules.subscribed.discard("message.im")
        slack.post(text="hello")
        await slack.settled()

        assert heard == []


async def test_a_socket_takes_payloads_and_is_told_to_go() -> None:
    async with both() as (slack, client):
        url = (await client.apps_connections_open(app_token=APP_TOKEN))["url"]
        assert client.session is not None
        async with client.session.ws_connect(url) as ws:
            assert (await ws.receive_json())["type"] == "hello"
            slack.post(channel="C1", text="hello")
            envelope = await ws.receive_json()
            await ws.send_json({"envelope_id": envelope["envelope_id"]})
            await slack.settled()
            slack.refresh()
            assert (await ws.receive_json())["type"] == "disconnect"

        assert envelope["payload"]["event"]["text"] == "hello"
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await client.session.ws_connect(url)  # a ticket is good for one socket
