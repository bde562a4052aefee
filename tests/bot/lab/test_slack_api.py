"""The Slack stand-in's Web API, driven by the real client library."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.lab.slack import APP_TOKEN, TOKEN, FakeSlack
from bot.lab.slack_api import METHODS
from bot.lab.slack_events import as_typed
from bot.lab.slack_rules import SlackRules


@asynccontextmanager
async def both(**rules: Any) -> AsyncIterator[tuple[FakeSlack, AsyncWebClient]]:
    async with FakeSlack(rules=SlackRules(**rules)) as slack, aiohttp.ClientSession() as session:
        yield slack, AsyncWebClient(TOKEN, base_url=slack.api_url, session=session)


@asynccontextmanager
async def refused(error: str) -> AsyncIterator[dict[str, Any]]:
    """The block is refused with this error; what else was said is in the dict afterwards."""
    said: dict[str, Any] = {}
    with pytest.raises(SlackApiError) as caught:
        yield said
    said.update(caught.value.response.data)
    assert said["error"] == error


# Tokens and scopes --------------------------------------------------------------------------------


async def test_the_token_tells_who_it_is_and_its_scopes() -> None:
    async with both(bot_scopes={"chat:write", "users:read"}) as (slack, web):
        me = await web.auth_test()

        assert (me["user_id"], me["bot_id"]) == (slack.identity.bot_user, slack.identity.bot)
        assert me.headers["x-oauth-scopes"] == "chat:write,users:read"


async def test_wrong_tokens_are_refused_by_their_kind() -> None:
    async with both() as (slack, web):
        async with refused("invalid_auth"):
            await web.auth_test(token="xoxb-other")
        async with refused("not_allowed_token_type"):
            await web.apps_connections_open(app_token=TOKEN)
        async with refused("not_allowed_token_type"):
            await web.users_info(user="U1", token=APP_TOKEN)
        async with refused("not_authed"):
            await AsyncWebClient(base_url=slack.api_url, session=web.session).auth_test()
        slack.rules.token_error = "token_revoked"
        async with refused("token_revoked"):
            await web.auth_test()


async def test_a_missing_scope_is_named_with_what_there_is() -> None:
    async with both(bot_scopes={"chat:write", "channels:history"}) as (slack, web):
        slack.post(channel="C1", text="hello")
        slack.post(text="hello")

        await web.conversations_history(channel="C1")
        async with refused("missing_scope") as said:
            await web.conversations_history(channel=slack.direct())
        assert said["needed"] == "im:history"
        assert said["provided"] == "channels:history,chat:write"
        slack.rules.app_scopes = set()
        async with refused("missing_scope") as said:
            await web.apps_connections_open(app_token=APP_TOKEN)
        assert said["needed"] == "connections:write"


async def test_a_method_that_is_not_there_is_unknown() -> None:
    async with both() as (_, web), refused("unknown_method"):
        await web.api_call("chat.teleport")


# Posting ------------------------------------------------------------------------------------------


async def test_a_post_stands_in_the_channel_and_its_thread() -> None:
    async with both() as (slack, web):
        asked = slack.post(channel="C1", text="what is 2+2?")
        slack.post(channel="C1", text="something else")
        said = await web.chat_postMessage(channel="C1", text="4", thread_ts=asked)

        assert said["message"]["thread_ts"] == asked
        assert slack.shown("C1") == ("U0ANN: what is 2+2?\n    bot: 4\nU0ANN: something else")
        assert [seen.text for seen in slack.thread("C1", asked)] == ["what is 2+2?", "4"]


async def test_files_and_reactions_are_seen_in_the_conversation() -> None:
    async with both() as (slack, web):
        asked = slack.post(channel="C1", text="my notes", files={"notes.md": b"# Notes"})
        slack.post(channel="C1", files={"cat.png": b"png"})
        await web.reactions_add(channel="C1", timestamp=asked, name="eyes")

        assert slack.shown("C1") == ("U0ANN: 📎 notes.md\n  my notes :eyes:\nU0ANN: 📎 cat.png")


async def test_a_reply_to_a_reply_stands_under_the_parent() -> None:
    async with both() as (slack, web):
        parent = slack.post(channel="C1", text="a")
        reply = slack.post(channel="C1", text="b", thread_ts=parent)

        said = await web.chat_postMessage(channel="C1", text="c", thread_ts=reply)

        assert said["message"]["thread_ts"] == parent


async def test_a_reply_to_what_is_gone_falls_into_the_channel_without_a_word() -> None:
    async with both() as (slack, web):
        gone = slack.post(channel="C1", text="never mind")
        slack.delete(channel="C1", ts=gone)

        said = await web.chat_postMessage(channel="C1", text="4", thread_ts=gone)

        assert "thread_ts" not in said["message"]
        slack.rules.missing_thread = "refuse"
        async with refused("thread_not_found"):
            await web.chat_postMessage(channel="C1", text="4", thread_ts=gone)
        async with refused("invalid_thread_ts"):
            await web.chat_postMessage(channel="C1", text="4", thread_ts="yesterday")


async def test_a_deleted_parent_keeps_its_thread_below_a_tombstone() -> None:
    async with both() as (slack, web):
        parent = slack.post(channel="C1", text="a")
        slack.post(channel="C1", text="b", thread_ts=parent)
        slack.delete(channel="C1", ts=parent)

        said = await web.chat_postMessage(channel="C1", text="c", thread_ts=parent)

        assert said["message"]["thread_ts"] == parent
        texts = [seen.text for seen in slack.chat("C1")]
        assert texts == ["This message was deleted.", "b", "c"]


async def test_posts_in_which_slack_looks_for_a_preview_are_told_apart() -> None:
    async with both() as (slack, web):
        slack.add_channel(channel="C1", name="in")
        for text, links, media in (("a", None, None), ("b", False, True), ("c", False, False)):
            await web.chat_postMessage(
                channel="C1", text=text, unfurl_links=links, unfurl_media=media
            )

        assert [post["text"] for post in slack.previewed()] == ["a", "b"]


async def test_where_the_bot_may_not_write_it_is_told_why() -> None:
    async with both() as (slack, web):
        slack.add_channel(channel="C1", name="out", bot_inside=False)
        slack.add_channel(channel="C2", name="old", archived=True)
        slack.add_channel(channel="G1", kind="group", bot_inside=False)

        for channel, error in (
            ("C404", "channel_not_found"),
            ("C1", "not_in_channel"),
            ("C2", "is_archived"),
            ("G1", "channel_not_found"),
        ):
            async with refused(error):
                await web.chat_postMessage(channel=channel, text="hi")
        slack.rules.bot_scopes.add("chat:write.public")
        await web.chat_postMessage(channel="#out", text="hi")
        assert [seen.text for seen in slack.chat("C1")] == ["hi"]


async def test_a_post_to_a_person_opens_the_direct_message() -> None:
    async with both() as (slack, web):
        slack.add_user(user="U0BOB", name="bob")

        said = await web.chat_postMessage(channel="U0BOB", text="hi")

        opened = await web.conversations_open(users="U0BOB")
        assert said["channel"] == opened["channel"]["id"] == slack.direct("U0BOB")
        async with refused("user_not_found"):
            await web.conversations_open(users="U0NOBODY")


async def test_a_text_over_the_limit_is_cut_with_a_warning() -> None:
    async with both() as (slack, web):
        channel = slack.add_channel(channel="C1").id

        said = await web.chat_postMessage(channel=channel, text="x" * 40_001)

        assert said["warning"] == "message_truncated"
        assert len(slack.chat("C1")[0].text) == 40_000


async def test_broken_blocks_are_refused_with_a_pointer() -> None:
    async with both() as (slack, web):
        slack.add_channel(channel="C1")
        long = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}

        async with refused("invalid_blocks") as said:
            await web.chat_postMessage(channel="C1", text="x", blocks=[{"type": "divider"}, long])
        assert said["errors"] == [
            "must be less than 3001 characters [json-pointer:/blocks/1/text/text]"
        ]
        assert said["response_metadata"]["messages"] == [f"[ERROR] {said['errors'][0]}"]
        async with refused("invalid_blocks"):
            await web.chat_postMessage(channel="C1", text="x", blocks=[{"type": "divider"}] * 51)
        async with refused("invalid_blocks_format"):
            await web.chat_postMessage(channel="C1", text="x", blocks="[")
        whole = {"type": "markdown", "text": "x" * 7000}
        async with refused("msg_blocks_too_long"):
            await web.chat_postMessage(channel="C1", text="x", blocks=[whole, whole])
        async with refused("no_text"):
            await web.api_call("chat.postMessage", json={"channel": "C1", "text": ""})
        assert slack.gate["chat.postMessage"].applied == 0
        assert slack.calls("chat.postMessage")[0].fault == "invalid_blocks"


async def test_metadata_is_kept_and_given_back_only_when_asked_for() -> None:
    async with both() as (slack, web):
        parent = slack.post(channel="C1", text="a")
        metadata = {"event_type": "reply", "event_payload": {"outbox_id": 7}}
        await web.chat_postMessage(channel="C1", text="b", thread_ts=parent, metadata=metadata)

        asked = await web.conversations_replies(channel="C1", ts=parent, include_all_metadata=True)
        plain = await web.conversations_replies(channel="C1", ts=parent)

        assert asked["messages"][1]["metadata"] == metadata
        assert "metadata" not in plain["messages"][1]
        assert slack.thread("C1", parent)[1].metadata == metadata
        async with refused("invalid_metadata_schema"):
            await web.chat_postMessage(channel="C1", text="c", metadata={"event_type": "x"})


async def test_an_ephemeral_message_is_seen_by_one_member() -> None:
    async with both() as (slack, web):
        slack.post(channel="C1", text="a")

        await web.chat_postEphemeral(channel="C1", user="U0ANN", text="psst")

        assert [seen.text for seen in slack.ephemeral("U0ANN")] == ["psst"]
        assert len(slack.chat("C1")) == 1
        async with refused("user_not_in_channel"):
            await web.chat_postEphemeral(channel="C1", user="U0BOB", text="psst")


# Changing -----------------------------------------------------------------------------------------


async def test_only_own_messages_are_edited_and_deleted() -> None:
    async with both() as (slack, web):
        theirs = slack.post(channel="C1", text="a")
        mine = (await web.chat_postMessage(channel="C1", text="b"))["ts"]

        await web.chat_update(channel="C1", ts=mine, text="c")

        assert [(seen.text, seen.edits) for seen in slack.chat("C1")] == [("a", 0), ("c", 1)]
        async with refused("cant_update_message"):
            await web.chat_update(channel="C1", ts=theirs, text="x")
        async with refused("cant_delete_message"):
            await web.chat_delete(channel="C1", ts=theirs)
        async with refused("message_not_found"):
            await web.chat_update(channel="C1", ts="1.000001", text="x")
        await web.chat_delete(channel="C1", ts=mine)
        assert len(slack.chat("C1")) == 1


async def test_an_edit_has_its_own_limits() -> None:
    async with both(edit_window_s=1000.0) as (slack, web):
        slack.add_channel(channel="C1")
        mine = (await web.chat_postMessage(channel="C1", text="b"))["ts"]

        async with refused("msg_too_long"):
            await web.chat_update(channel="C1", ts=mine, text="x" * 4001)
        slack.rules.edit_window_s = -1.0
        async with refused("edit_window_closed"):
            await web.chat_update(channel="C1", ts=mine, text="x")
        slack.rules.edit_window_s = None
        slack.add_channel(channel="C1", archived=True)
        async with refused("is_inactive"):
            await web.chat_update(channel="C1", ts=mine, text="x")


async def test_a_new_text_takes_old_blocks_away_and_keeps_the_metadata() -> None:
    async with both() as (slack, web):
        slack.add_channel(channel="C1")
        metadata = {"event_type": "reply", "event_payload": {"id": 1}}
        section = {"type": "section", "text": {"type": "mrkdwn", "text": "*b*"}}
        posted = await web.chat_postMessage(
            channel="C1", text="b", blocks=[section], metadata=metadata
        )

        await web.chat_update(channel="C1", ts=posted["ts"], text="c")

        (seen,) = slack.chat("C1")
        assert (seen.text, seen.blocks, seen.metadata) == ("c", (), metadata)


# Streaming ----------------------------------------------------------------------------------------


async def test_a_streamed_message_grows_and_ends() -> None:
    async with both() as (slack, web):
        asked = slack.post(text="tell me a story")
        streamer = await web.chat_stream(channel=slack.direct(), thread_ts=asked, buffer_size=1)
        await streamer.append(markdown_text="Once ")
        assert slack.chat(slack.direct())[1].streaming
        async with refused("streaming_state_conflict"):
            await web.chat_update(channel=slack.direct(), ts=str(streamer.ts), text="x")
        await streamer.append(markdown_text="upon a time")
        await streamer.stop(metadata={"event_type": "reply", "event_payload": {"id": 1}})

        _, seen = slack.chat(slack.direct())
        assert (seen.text, seen.streaming) == ("Once upon a time", False)
        assert seen.metadata == {"event_type": "reply", "event_payload": {"id": 1}}
        async with refused("message_not_in_streaming_state"):
            await web.chat_appendStream(
                channel=slack.direct(), ts=str(streamer.ts), markdown_text="more"
            )


async def test_streaming_in_a_channel_wants_its_reader_and_one_form() -> None:
    async with both(stream_lasts_s=100.0) as (slack, web):
        asked = slack.post(channel="C1", text="tell me a story")
        async with refused("missing_recipient_team_id"):
            await web.chat_startStream(channel="C1", thread_ts=asked)
        reader: dict[str, Any] = {
            "recipient_team_id": slack.identity.team,
            "recipient_user_id": "U0ANN",
        }
        async with refused("invalid_thread_ts"):
            await web.chat_startStream(channel="C1", thread_ts="1.000001", **reader)

        started = await web.chat_startStream(
            channel="C1", thread_ts=asked, markdown_text="a", **reader
        )

        chunk = {"type": "markdown_text", "text": "b"}
        async with refused("streaming_mode_mismatch"):
            await web.chat_appendStream(channel="C1", ts=started["ts"], chunks=[chunk])
        slack.stop_stream(channel="C1", ts=started["ts"])
        async with refused("stopped_by_user"):
            await web.chat_appendStream(channel="C1", ts=started["ts"], markdown_text="b")
        slack.rules.stream_lasts_s = -1.0
        async with refused("message_not_in_streaming_state"):
            await web.chat_appendStream(channel="C1", ts=started["ts"], markdown_text="b")


# Reading ------------------------------------------------------------------------------------------


async def test_history_has_the_newest_first_and_pages_without_gaps() -> None:
    async with both() as (slack, web):
        for number in range(7):
            slack.post(channel="C1", text=str(number))

        texts: list[str] = []
        cursor = ""
        while True:
            page = await web.conversations_history(channel="C1", limit=3, cursor=cursor)
            texts += [message["text"] for message in page["messages"]]
            slack.post(channel="C1", text="meanwhile")
            if not page["has_more"]:
                break
            cursor = page["response_metadata"]["next_cursor"]

        assert texts == ["6", "5", "4", "3", "2", "1", "0"]


async def test_replies_are_a_thread_from_its_parent_on() -> None:
    async with both() as (slack, web):
        parent = slack.post(channel="C1", text="a")
        reply = slack.post(channel="C1", text="b", thread_ts=parent)
        await web.chat_postMessage(channel="C1", text="c", thread_ts=parent)

        thread = (await web.conversations_replies(channel="C1", ts=reply))["messages"]
        after = await web.conversations_replies(channel="C1", ts=parent, oldest=reply)
        top = (await web.conversations_history(channel="C1"))["messages"]

        assert [message["text"] for message in thread] == ["a", "b", "c"]
        assert thread[0]["reply_count"] == 2
        assert thread[1]["parent_user_id"] == "U0ANN"
        assert [message["text"] for message in after["messages"]] == ["a", "c"]
        assert [message["text"] for message in top] == ["a"]
        async with refused("thread_not_found"):
            await web.conversations_replies(channel="C1", ts="1.000001")


async def test_people_and_conversations_tell_what_they_are() -> None:
    async with both() as (slack, web):
        slack.add_user(real_name="Ann", title="Baker", tz="Asia/Tokyo", tz_offset=32400)
        slack.add_channel(channel="C1", name="general", members=["U0ANN"])
        slack.post(text="hi")

        user = (await web.users_info(user="U0ANN", include_locale=True))["user"]
        channel = (await web.conversations_info(channel="C1"))["channel"]
        direct = (await web.conversations_info(channel=slack.direct()))["channel"]

        assert (user["profile"]["title"], user["tz"]) == ("Baker", "Asia/Tokyo")
        assert (user["locale"], user["tz_offset"]) == ("en-GB", 32400)
        assert (channel["name"], channel["is_member"], channel["is_im"]) == ("general", True, False)
        assert (direct["is_im"], direct["user"]) == (True, "U0ANN")
        assert (await web.bots_info(bot=slack.identity.bot))["bot"]["app_id"] == "A0LAB"
        async with refused("user_not_found"):
            await web.users_info(user="U404")


async def test_a_reaction_is_there_once() -> None:
    async with both() as (slack, web):
        ts = slack.post(channel="C1", text="a")

        await web.reactions_add(channel="C1", timestamp=ts, name="eyes")

        assert slack.chat("C1")[0].reactions == {"eyes": (slack.identity.bot_user,)}
        async with refused("already_reacted"):
            await web.reactions_add(channel="C1", timestamp=ts, name="eyes")
        await web.reactions_remove(channel="C1", timestamp=ts, name="eyes")
        assert slack.chat("C1")[0].reactions == {}


# Files --------------------------------------------------------------------------------------------


async def test_a_file_goes_up_in_three_steps_and_comes_down_with_the_token() -> None:
    async with both() as (slack, web):
        ts = slack.post(channel="C1", text="plot it")
        sent = await web.files_upload_v2(
            file=b"a,b\n1,2\n",
            filename="plot.csv",
            channel="C1",
            thread_ts=ts,
            initial_comment="here",
        )

        reply = slack.chat("C1")[1]
        assert (reply.text, reply.files, reply.thread_ts) == ("here", ("plot.csv",), ts)
        url = sent["file"]["url_private_download"]
        assert web.session is not None
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        async with web.session.get(url, headers=bearer) as response:
            assert await response.read() == b"a,b\n1,2\n"
        async with web.session.get(url) as response:
            assert response.status == 200
            assert "Sign in" in await response.text()


async def test_a_file_of_a_person_is_in_the_message() -> None:
    async with both() as (slack, web):
        slack.post(text="read this", files={"note.txt": b"hello"})

        (message,) = (await web.conversations_history(channel=slack.direct()))["messages"]

        assert message["subtype"] == "file_share"
        about = (await web.files_info(file=message["files"][0]["id"]))["file"]
        assert (about["name"], about["mimetype"], about["size"]) == ("note.txt", "text/plain", 5)
        async with refused("file_not_found"):
            await web.files_completeUploadExternal(files=[{"id": "F404", "title": "x"}])


# Home, assistant ----------------------------------------------------------------------------------


async def test_the_home_tab_shows_what_was_published() -> None:
    async with both() as (slack, web):
        slack.add_user()
        section = {"type": "section", "text": {"type": "mrkdwn", "text": "Next: nothing"}}
        view = {"type": "home", "blocks": [section]}

        await web.views_publish(user_id="U0ANN", view=view)

        home = slack.home()
        assert home is not None
        assert home["blocks"] == [section]
        async with refused("invalid_arguments"):
            await web.views_publish(user_id="U0ANN", view={"type": "modal", "blocks": []})
        async with refused("hash_conflict"):
            await web.views_publish(user_id="U0ANN", view=view, hash="old")


async def test_an_assistant_thread_has_status_title_and_prompts() -> None:
    async with both() as (slack, web):
        thread = slack.start_assistant()
        here: dict[str, Any] = {"channel_id": slack.direct(), "thread_ts": thread}

        await web.assistant_threads_setStatus(**here, status="is thinking…")
        await web.assistant_threads_setTitle(**here, title="Plans")
        prompts = [{"title": "Today", "message": "What is today?"}]
        await web.assistant_threads_setSuggestedPrompts(**here, prompts=prompts)

        assert slack.status(slack.direct(), thread) == "is thinking…"
        assert slack.title(slack.direct(), thread) == "Plans"
        assert slack.prompts(slack.direct(), thread) == prompts
        await web.chat_postMessage(channel=slack.direct(), thread_ts=thread, text="hello")
        assert slack.status(slack.direct(), thread) is None
        async with refused("invalid_thread_ts"):
            await web.assistant_threads_setStatus(
                channel_id=slack.direct(), thread_ts="1.000001", status="x"
            )


# Pace ---------------------------------------------------------------------------------------------


async def test_posts_in_one_channel_have_their_pace_and_edits_their_tier() -> None:
    async with both(limits=True) as (slack, web):
        slack.add_channel(channel="C1")
        slack.add_channel(channel="C2")
        posted = [await web.chat_postMessage(channel="C1", text="x") for _ in range(3)]

        async with refused("ratelimited"):
            await web.chat_postMessage(channel="C1", text="x")
        assert slack.calls("chat.postMessage")[-1].status == 429
        await web.chat_postMessage(channel="C2", text="x")
        for _ in range(50):
            await web.chat_update(channel="C1", ts=posted[0]["ts"], text="y")
        with pytest.raises(SlackApiError) as caught:
            await web.chat_update(channel="C1", ts=posted[0]["ts"], text="y")
        assert int(caught.value.response.headers["Retry-After"]) >= 1


async def test_one_bucket_for_the_workspace_counts_all_methods() -> None:
    async with both(workspace_per_minute=3) as (slack, web):
        slack.add_channel(channel="C1")
        await web.auth_test()
        await web.chat_postMessage(channel="C1", text="x")
        await web.conversations_history(channel="C1")

        async with refused("ratelimited"):
            await web.auth_test()


async def test_arguments_of_whatever_shape_get_an_answer_in_slacks_shape() -> None:
    shapes: list[Any] = [None, 7, 1.5, True, "", "x", "{", [], [1], {}, {"a": [None]}, [[]]]
    more = (
        "channel ts thread_ts text blocks attachments metadata markdown_text chunks view user"
        " user_id users trigger_id files channel_id prompts status title loading_messages name"
        " timestamp limit cursor oldest latest filename length file bot types hash view_id"
    )
    names = more.split()
    chance = random.Random(7)
    async with both() as (slack, web):
        ts = slack.post(channel="C1", text="a")
        mine = (await web.chat_postMessage(channel="C1", text="b"))["ts"]
        known: dict[str, Any] = {"channel": "C1", "channel_id": "C1", "user": "U0ANN", "text": "x"}
        known |= {"user_id": "U0ANN", "thread_ts": ts, "ts": mine, "timestamp": ts}
        assert web.session is not None
        for method in METHODS:
            for _ in range(25):
                asked = {n: chance.choice(shapes) for n in chance.sample(names, 8)}
                asked |= {n: v for n, v in known.items() if chance.random() < 0.8}
                async with web.session.post(
                    slack.api_url + method,
                    json=asked,
                    headers={"Authorization": f"Bearer {TOKEN}"},
                ) as response:
                    assert response.status == 200, (method, asked)
                    assert isinstance((await response.json())["ok"], bool)


def test_what_a_person_types_becomes_what_slack_writes() -> None:
    written = as_typed("@hearth is 1 < 2 & 3?", bot_user="U0BOT", bot_name="hearth")

    assert written == "<@U0BOT> is 1 &lt; 2 &amp; 3?"
