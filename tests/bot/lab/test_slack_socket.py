"""The Slack stand-in's Socket Mode and events, taken by the real Bolt and by bare sockets."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.lab import faults
from bot.lab.slack import APP_TOKEN, FakeSlack
from bot.lab.slack_delivery import lose_ack, twice
from bot.lab.slack_rules import SlackRules
from tests.bot.lab.slack_apps import Heard, bolt_app, socket_app

SOON = 0.0005
"""Scales Slack's 1 and 5 minutes to 30 and 150 ms."""


@asynccontextmanager
async def connected(**more: Any) -> AsyncIterator[tuple[FakeSlack, Heard]]:
    heard = Heard()
    async with (
        FakeSlack(**{"retry_scale": SOON, "ack_s": 0.3, **more}) as slack,
        socket_app(slack, lambda fake, session: bolt_app(fake, session, heard)),
    ):
        yield slack, heard


@asynccontextmanager
async def bare_socket(slack: FakeSlack) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with aiohttp.ClientSession() as session:
        web = AsyncWebClient(base_url=slack.api_url, session=session)
        url = (await web.apps_connections_open(app_token=APP_TOKEN))["url"]
        async with session.ws_connect(url) as ws:
            yield ws


def events(heard: Heard) -> list[dict[str, Any]]:
    return [body["event"] for body in heard.before]


# What is told -------------------------------------------------------------------------------------


async def test_a_direct_message_is_one_event() -> None:
    async with connected() as (slack, heard):
        ts = slack.post(text="hello")
        await slack.settled()

        (event,) = events(heard)
        assert (event["type"], event["channel_type"]) == ("message", "im")
        assert (event["text"], event["user"], event["ts"]) == ("hello", "U0ANN", ts)
        assert event["channel"] == slack.direct()
        (body,) = heard.before
        assert (body["team_id"], body["api_app_id"]) == (slack.identity.team, slack.identity.app)


async def test_a_mention_in_a_channel_is_two_events_with_one_ts() -> None:
    async with connected() as (slack, heard):
        ts = slack.post(channel="C1", text=f"<@{slack.identity.bot_user}> 2+2?")
        await slack.settled()

        assert {event["type"] for event in events(heard)} == {"message", "app_mention"}
        assert [event["ts"] for event in events(heard)] == [ts, ts]
        assert len(set(heard.stored())) == 2
        assert len(slack.deliveries(ts=ts)) == 2


@pytest.mark.parametrize(
    ("channel", "kind"), [("C1", "channel"), ("G1", "group"), ("D1", "im"), ("G2", "mpim")]
)
async def test_each_kind_of_conversation_is_named_and_needs_its_scope(
    channel: str, kind: Any
) -> None:
    async with connected() as (slack, heard):
        slack.add_channel(channel=channel, kind=kind)

        slack.post(channel=channel, text="a")
        await slack.settled()
        for scope in ("channels:history", "groups:history", "im:history", "mpim:history"):
            slack.rules.bot_scopes.discard(scope)
        slack.post(channel=channel, text="b")
        await slack.settled()

        assert [(e["text"], e["channel_type"]) for e in events(heard)] == [("a", kind)]


async def test_a_thread_reply_names_its_parent_and_its_author() -> None:
    async with connected() as (slack, heard):
        parent = slack.post(channel="C1", text="a")
        slack.post(channel="C1", text="b", thread_ts=parent, user="U0BOB")
        await slack.settled()

        _, reply = sorted(events(heard), key=lambda event: str(event["ts"]))
        assert (reply["thread_ts"], reply["parent_user_id"]) == (parent, "U0ANN")


async def test_edits_and_deletions_are_messages_with_subtypes() -> None:
    async with connected() as (slack, heard):
        ts = slack.post(text="hi")
        slack.edit(channel=slack.direct(), ts=ts, text="hi (edited)")
        slack.delete(channel=slack.direct(), ts=ts)
        await slack.settled()

        by_kind = {event.get("subtype"): event for event in events(heard)}
        changed, deleted = by_kind["message_changed"], by_kind["message_deleted"]
        assert changed["message"]["text"] == "hi (edited)"
        assert changed["previous_message"]["text"] == "hi"
        assert changed["message"]["ts"] == ts != changed["ts"]
        assert changed["message"]["edited"]["user"] == "U0ANN"
        assert deleted["deleted_ts"] == ts


async def test_an_edited_mention_is_mentioned_once_more() -> None:
    async with connected() as (slack, heard):
        mention = f"<@{slack.identity.bot_user}>"
        ts = slack.post(channel="C1", text=f"{mention} 2+2?")
        slack.edit(channel="C1", ts=ts, text=f"{mention} 3+3?")
        await slack.settled()

        mentions = [event for event in events(heard) if event["type"] == "app_mention"]
        assert [event["ts"] for event in mentions] == [ts, ts]
        assert sum("edited" in event for event in mentions) == 1


async def test_what_the_bot_and_other_bots_do_comes_back_and_bolt_drops_its_own() -> None:
    async with connected() as (slack, heard):
        heard.takes_over = False
        web = AsyncWebClient("xoxb-lab", base_url=slack.api_url)
        slack.add_channel(channel="C1")
        posted = await web.chat_postMessage(channel="C1", text="draft")
        await web.chat_update(channel="C1", ts=posted["ts"], text="final")
        slack.bot_post(channel="C1", text="deployed")
        await slack.settled()

        own = [event for event in events(heard) if event.get("bot_id") == slack.identity.bot]
        assert [event["text"] for event in own] == ["draft"]
        assert sorted(str(event.get("subtype")) for event in events(heard)) == [
            "None",
            "bot_message",
            "message_changed",
        ]
        await slack.until(lambda: len(heard.events) == 1)
        assert heard.events[0]["text"] == "deployed"


async def test_other_events_follow_what_people_do() -> None:
    async with connected() as (slack, heard):
        ts = slack.post(channel="C1", text="a")
        slack.react(channel="C1", ts=ts)
        slack.unreact(channel="C1", ts=ts)
        slack.invite(channel="C2")
        slack.open_home()
        thread = slack.start_assistant(context="C1")
        slack.change_context(thread_ts=thread, context="C2")
        slack.post(text="see", files={"a.txt": b"a"})
        await slack.settled()

        kinds = {event["type"]: event for event in events(heard)}
        assert set(kinds) == {
            "message",
            "reaction_added",
            "reaction_removed",
            "member_joined_channel",
            "app_home_opened",
            "assistant_thread_started",
            "assistant_thread_context_changed",
            "file_shared",
        }
        assert kinds["member_joined_channel"]["user"] == slack.identity.bot_user
        assert kinds["assistant_thread_started"]["assistant_thread"]["thread_ts"] == thread
        assert kinds["reaction_added"]["item"]["ts"] == ts


async def test_what_is_not_subscribed_is_not_told() -> None:
    async with connected(rules=SlackRules(subscribed={"message.im"})) as (slack, heard):
        slack.post(channel="C1", text=f"<@{slack.identity.bot_user}> hi")
        slack.post(text="hello")
        await slack.settled()

        assert [event["text"] for event in events(heard)] == ["hello"]


# The sockets --------------------------------------------------------------------------------------


async def test_hello_counts_the_sockets_and_an_envelope_wants_its_id_back() -> None:
    async with FakeSlack() as slack, bare_socket(slack) as ws:
        hello = await ws.receive_json()
        slack.post(text="hello")
        envelope = await ws.receive_json()
        await ws.send_json({"envelope_id": envelope["envelope_id"]})
        await slack.settled()

        assert (hello["type"], hello["num_connections"]) == ("hello", 1)
        assert hello["debug_info"]["approximate_connection_time"] > 0
        assert hello["connection_info"] == {"app_id": slack.identity.app}
        assert (envelope["type"], envelope["retry_attempt"]) == ("events_api", 0)
        assert envelope["accepts_response_payload"] is False
        assert envelope["payload"]["event"]["text"] == "hello"


async def test_each_event_goes_to_one_of_two_sockets() -> None:
    heard = [Heard(), Heard()]
    async with (
        FakeSlack() as slack,
        socket_app(slack, lambda fake, session: bolt_app(fake, session, heard[0])),
        socket_app(slack, lambda fake, session: bolt_app(fake, session, heard[1])),
    ):
        for number in range(20):
            slack.post(text=str(number))
        await slack.settled()

        texts = [event["text"] for one in heard for event in events(one)]
        assert sorted(texts, key=int) == [str(number) for number in range(20)]
        assert all(one.before for one in heard)
        assert [(s.sent, s.acked) for s in slack.sockets()] == [
            (len(one.before), len(one.before)) for one in heard
        ]


async def test_the_eleventh_socket_is_one_too_many() -> None:
    async with FakeSlack() as slack, aiohttp.ClientSession() as session:
        web = AsyncWebClient(base_url=slack.api_url, session=session)
        opened = []
        for _ in range(11):
            url = (await web.apps_connections_open(app_token=APP_TOKEN))["url"]
            opened.append(await session.ws_connect(url))

        frame = await opened[-1].receive_json()

        assert (frame["type"], frame["reason"]) == ("disconnect", "too_many_websockets")
        assert len(slack.sockets()) == 10
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(url)
        for ws in opened:
            await ws.close()


async def test_the_client_changes_sockets_when_it_is_told_to_and_nothing_is_lost() -> None:
    async with connected() as (slack, heard):
        for number in range(5):
            slack.post(text=str(number))
        slack.refresh(reason="warning", after_s=0.2)
        for number in range(5, 10):
            slack.post(text=str(number))
        await slack.until(lambda: [s.number for s in slack.sockets()] == [2])
        await slack.settled()

        assert {event["text"] for event in events(heard)} == {str(n) for n in range(10)}
        assert slack.lost() == []


async def test_a_socket_that_has_lived_long_enough_is_replaced() -> None:
    heard = Heard()
    async with FakeSlack(retry_scale=SOON) as slack:
        slack.connection_s = 0.4
        async with socket_app(slack, lambda fake, session: bolt_app(fake, session, heard)):
            slack.connection_s = 3600
            slack.post(text="a")
            await slack.until(lambda: [s.number for s in slack.sockets()] == [2])
            slack.post(text="b")
            await slack.settled()

        assert {event["text"] for event in events(heard)} == {"a", "b"}


async def test_a_broken_socket_is_opened_anew() -> None:
    async with connected() as (slack, heard):
        slack.cut()
        await slack.until(lambda: [s.number for s in slack.sockets()] == [2])

        slack.post(text="hello")
        await slack.settled()

        assert [event["text"] for event in events(heard)] == ["hello"]


# Retries ------------------------------------------------------------------------------------------


async def test_what_is_not_acknowledged_comes_again_three_times() -> None:
    async with FakeSlack(retry_scale=SOON, ack_s=0.02) as slack, bare_socket(slack) as ws:
        await ws.receive_json()
        slack.post(text="hello")
        envelopes = [await ws.receive_json() for _ in range(4)]
        await slack.settled()

        assert [e["retry_attempt"] for e in envelopes] == [0, 1, 2, 3]
        assert [e["retry_reason"] for e in envelopes] == ["", "timeout", "timeout", "timeout"]
        assert len({e["envelope_id"] for e in envelopes}) == 4
        assert len({e["payload"]["event_id"] for e in envelopes}) == 1
        assert slack.lost() == [envelopes[0]["payload"]["event_id"]]


async def test_the_second_and_third_retry_take_their_time() -> None:
    async with FakeSlack(retry_scale=0.005, ack_s=0.02) as slack, bare_socket(slack) as ws:
        await ws.receive_json()
        slack.post(text="hello")
        await slack.settled(timeout_s=10)

        (delivery,) = slack.deliveries()
        at = [attempt.at for attempt in delivery.attempts]
        gaps = [later - earlier for earlier, later in itertools.pairwise(at)]
        assert gaps[0] < 0.3 <= gaps[1] < 1.5 <= gaps[2]


async def test_an_event_whose_acknowledgement_got_lost_arrives_twice_under_one_id() -> None:
    async with connected() as (slack, heard):
        slack.fault("event", action=lose_ack())
        slack.fault("event", action=twice(), when={"text": "b"})

        slack.post(text="a")
        slack.post(text="b")
        await slack.settled()

        texts = [event["text"] for event in events(heard)]
        assert sorted(texts) == ["a", "a", "b", "b"]
        assert len(set(heard.stored())) == 2
        assert ("1", "timeout") in heard.retries


async def test_an_event_waits_for_a_socket_or_is_lost_and_can_be_sent_again() -> None:
    async with FakeSlack(retry_scale=SOON, ack_s=0.05) as slack:
        slack.post(text="hello")
        await slack.settled()
        (lost,) = slack.lost()

        async with bare_socket(slack) as ws:
            await ws.receive_json()
            slack.redeliver(lost)
            envelope = await ws.receive_json()

        assert envelope["payload"]["event_id"] == lost


async def test_a_held_event_can_be_overtaken() -> None:
    async with connected() as (slack, heard):
        slack.fault("event", action=faults.hold(), when={"text~": "first"})
        slack.post(text="the first")
        slack.post(text="the second")
        await slack.until(lambda: len(heard.before) == 1)

        slack.release()
        await slack.settled()

        assert [event["text"] for event in events(heard)] == ["the second", "the first"]


# What DESIGN says of Bolt -------------------------------------------------------------------------


async def test_storing_first_means_an_error_there_makes_slack_send_again() -> None:
    async with connected() as (slack, heard):
        heard.broken = 1

        slack.post(text="hello")
        await slack.settled()

        assert [event["text"] for event in events(heard)] == ["hello"]
        assert heard.retries == [("0", ""), ("1", "timeout")]
        assert slack.lost() == []


async def test_bolt_takes_an_event_that_it_cannot_authorize_before_any_middleware() -> None:
    heard, reached = Heard(takes_over=False), []

    def app(slack: FakeSlack, session: aiohttp.ClientSession) -> Any:
        made = bolt_app(slack, session, heard)

        @made.middleware
        async def see(next: Any) -> None:
            reached.append("middleware")
            await next()

        return made

    async with FakeSlack() as slack, socket_app(slack, app):
        slack.rules.token_error = "account_inactive"
        slack.post(text="hello")
        await slack.settled()

        assert slack.deliveries()[0].state == "taken"
        assert len(slack.calls("auth.test")) == 1
        assert reached == []
        assert heard.events == []
        assert [event["text"] for event in events(heard)] == ["hello"]


# Faults of connecting -----------------------------------------------------------------------------


async def test_the_client_gets_through_a_refused_and_a_dropped_connection() -> None:
    heard = Heard()
    async with FakeSlack() as slack:
        slack.fault("link", action=faults.answer(503))
        slack.fault("link", action=faults.drop())
        async with socket_app(slack, lambda fake, session: bolt_app(fake, session, heard)):
            slack.post(text="hello")
            await slack.settled()

        assert len(slack.calls("link")) == 3
        assert [event["text"] for event in events(heard)] == ["hello"]


async def test_closing_while_events_are_on_their_way_leaves_nothing_behind() -> None:
    async with FakeSlack() as slack, bare_socket(slack) as ws:
        await ws.receive_json()
        for number in range(5):
            slack.post(text=str(number))
        await asyncio.sleep(0)

        assert len(slack.pending()) == 5
