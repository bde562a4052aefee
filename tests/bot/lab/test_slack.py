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
from bot.lab.slack import TOKEN, FakeSlack
from bot.lab.slack_delivery import lose_ack, twice

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


async def test_the_pace_of_posts_is_bounded() -> None:
    now = [0.0]
    async with both(limits=True, clock=lambda: now[0]) as (slack, client):
        for _ in range(3):
            await client.chat_postMessage(channel="C1", text="x")
        with pytest.raises(SlackApiError) as caught:
            await client.chat_postMessage(channel="C1", text="x")

        assert caught.value.response.headers["Retry-After"] == "1"
        assert [entry.status for entry in slack.calls()] == [200, 200, 200, 429]


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
