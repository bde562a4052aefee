"""Faults on demand in the Slack stand-in, seen by the real client; and it as a process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import httpx
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.web.async_client import AsyncWebClient

from bot.lab import faults
from bot.lab.slack import APP_TOKEN, TOKEN, FakeSlack, flood, refusal
from tests.bot.lab.test_alone import process


@asynccontextmanager
async def both() -> AsyncIterator[tuple[FakeSlack, AsyncWebClient]]:
    limit = aiohttp.ClientTimeout(total=0.3)
    async with FakeSlack() as slack, aiohttp.ClientSession(timeout=limit) as session:
        slack.add_channel(channel="C1")
        client = AsyncWebClient(TOKEN, base_url=slack.api_url, session=session, retry_handlers=[])
        yield slack, client


async def test_a_held_answer_times_out_although_the_text_stands_in_the_channel() -> None:
    async with both() as (slack, web):
        slack.fault("chat.postMessage", action=faults.hold())

        with pytest.raises(TimeoutError):
            await web.chat_postMessage(channel="C1", text="hello")

        assert [seen.text for seen in slack.chat("C1")] == ["hello"]
        slack.release()
        await slack.until(lambda: slack.gate["chat.postMessage"].vanished == 1)
        (entry,) = slack.calls("chat.postMessage")
        assert (entry.applied, entry.client_there, entry.fault) == (True, False, "hold")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("make", [faults.drop, faults.reset])
async def test_a_lost_connection_leaves_the_effect_or_not(make: type, after: bool) -> None:
    async with both() as (slack, web):
        slack.fault("chat.postMessage", action=make(after=after))

        with pytest.raises(aiohttp.ClientError):
            await web.chat_postMessage(channel="C1", text="hello")

        assert len(slack.chat("C1")) == after
        assert slack.gate["chat.postMessage"].applied == after


async def test_the_clients_own_retry_posts_twice_when_only_the_answer_was_lost() -> None:
    async with both() as (slack, web):
        patient = AsyncWebClient(TOKEN, base_url=slack.api_url, session=web.session)
        slack.fault("chat.postMessage", action=faults.drop(after=True))

        await patient.chat_postMessage(channel="C1", text="hello")

        assert [seen.text for seen in slack.chat("C1")] == ["hello", "hello"]


async def test_half_an_answer_and_a_proxys_page_are_no_json() -> None:
    async with both() as (slack, web):
        slack.fault("chat.postMessage", action=faults.garble())
        slack.fault("chat.postMessage", action=faults.bad_gateway())

        with pytest.raises(SlackApiError, match="non-JSON"):
            await web.chat_postMessage(channel="C1", text="a")
        with pytest.raises(SlackApiError) as caught:
            await web.chat_postMessage(channel="C1", text="b")

        assert caught.value.response.status_code == 502
        assert [seen.text for seen in slack.chat("C1")] == ["a"]


async def test_a_flood_says_when_to_come_again() -> None:
    async with both() as (slack, web):
        web.retry_handlers.append(AsyncRateLimitErrorRetryHandler(max_retry_count=1))
        slack.fault("chat.postMessage", action=flood(0))

        await web.chat_postMessage(channel="C1", text="hello")

        assert [entry.status for entry in slack.calls("chat.postMessage")] == [429, 200]
        assert [seen.text for seen in slack.chat("C1")] == ["hello"]


async def test_a_refusal_can_be_ordered_by_what_is_sent() -> None:
    async with both() as (slack, web):
        slack.fault(
            "chat.postMessage", action=refusal("msg_blocks_too_long"), when={"text~": "long"}
        )

        await web.chat_postMessage(channel="C1", text="short")
        with pytest.raises(SlackApiError, match="msg_blocks_too_long"):
            await web.chat_postMessage(channel="C1", text="a long one")

        assert [seen.text for seen in slack.chat("C1")] == ["short"]


async def test_a_fault_for_everything_that_is_asked_leaves_events_alone() -> None:
    async with both() as (slack, web):
        slack.fault("*", action=faults.answer(500))
        slack.post(text="hello")
        await slack.until(lambda: slack.deliveries()[0].attempts)

        with pytest.raises(SlackApiError):
            await web.auth_test()

        assert slack.deliveries()[0].attempts[0].fault is None


async def test_every_request_is_logged_with_what_was_answered() -> None:
    async with both() as (slack, web):
        posted = await web.chat_postMessage(channel="C1", text="hello")
        with pytest.raises(SlackApiError):
            await web.chat_update(channel="C1", ts="1.000001", text="x")

        first, second = slack.calls()
        assert (first.method, first.params["text"], first.applied) == (
            "chat.postMessage",
            "hello",
            True,
        )
        assert first.response["ts"] == posted["ts"]
        assert (second.status, second.applied, second.fault) == (200, False, "message_not_found")
        assert "token" not in first.params


async def test_slack_runs_as_a_process() -> None:
    async with (
        process("bot.lab.slack", "--token", "xoxb-1", "--app-token", APP_TOKEN) as url,
        httpx.AsyncClient(base_url=f"{url}/lab/") as lab,
        aiohttp.ClientSession() as session,
    ):

        async def order(name: str, **asked: object) -> object:
            answer = await lab.post(name, json=asked)
            assert answer.status_code == 200, answer.text
            return answer.json()["result"]

        web = AsyncWebClient("xoxb-1", base_url=f"{url}/api/", session=session)
        wss = (await web.apps_connections_open(app_token=APP_TOKEN))["url"]
        async with session.ws_connect(wss) as ws:
            assert (await ws.receive_json())["type"] == "hello"
            ts = await order("post", channel="C1", text="hello", files={"a.txt": "YQ=="})
            envelope = await ws.receive_json()
            await ws.send_json({"envelope_id": envelope["envelope_id"]})
            await web.chat_postMessage(channel="C1", text="hi", thread_ts=str(ts))
            await order("set", workspace_per_minute=1, ack_s=0.5)
            await order("fault", method="event", action={"kind": "drop"})

            chat = await order("chat", channel="C1")
            assert isinstance(chat, list)
            assert [(seen["text"], seen["files"]) for seen in chat] == [
                ("hello", ["a.txt"]),
                ("hi", []),
            ]
            assert await order("shown", channel="C1") == "U0ANN: 📎 a.txt\n  hello\n    bot: hi"
            assert (await lab.post("redeliver", json={"delivery_id": "x"})).status_code == 400
            assert (await lab.post("set", json={"nonsense": 1})).status_code == 400
