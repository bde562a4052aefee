"""What is kept of a payload of Slack, under which key, and how it reads."""

from __future__ import annotations

from typing import Any

import pytest

from agent.policy.taint import is_named_in
from agent.web.addresses import addresses_in
from bot.channels.base import Ignored, Pressed
from bot.channels.slack.parse import DELETED, GroupPolicy, SlackParser
from bot.channels.slack.wire import (
    EventKind,
    SlackEvent,
    SlackPayload,
    sketch,
)
from memory.records.messages import IncomingMessage

TEAM, US, ANN = "T0LAB", "U0BOT", "U0ANN"
INSTALLED = {"team_id": TEAM, "user_id": US, "is_bot": True}


def wrapped(event: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "event_callback",
        "team_id": TEAM,
        "event_id": "Ev1",
        "authorizations": [INSTALLED],
        "event": event,
        **more,
    }


def post(text: str = "hi", **more: Any) -> dict[str, Any]:
    return {"type": "message", "channel": "D1", "user": ANN, "ts": "10.1", "text": text, **more}


def kept(payload: dict[str, Any]) -> SlackEvent:
    found = sketch(payload)
    assert found is not None
    return found


def read(
    payload: dict[str, Any], policy: GroupPolicy = "mention", us: str = ""
) -> IncomingMessage | Pressed | Ignored:
    reading = SlackParser(policy=policy, us=us, our_name="hearth", name_of=lambda team, user: "")
    found = reading.understand(SlackPayload.of(kept(payload).payload.to_json()))
    assert isinstance(found, IncomingMessage | Pressed | Ignored)
    return found


def message(payload: dict[str, Any], policy: GroupPolicy = "mention") -> IncomingMessage:
    found = read(payload, policy)
    assert isinstance(found, IncomingMessage), found
    return found


def ignored(payload: dict[str, Any], policy: GroupPolicy = "mention") -> str:
    found = read(payload, policy)
    assert isinstance(found, Ignored), found
    return found.reason


# --- keys ----------------------------------------------------------------------------------------


def test_both_events_of_one_post_have_one_key_and_each_says_that_we_are_meant() -> None:
    said = post(f"<@{US}> hi", channel="C1")

    as_message = kept(wrapped(said))
    as_mention = kept(wrapped({**said, "type": "app_mention"}, event_id="Ev2"))

    assert as_message.event_id == as_mention.event_id == "C1:10.1"
    assert as_message.source == as_mention.source == f"slack:{TEAM}"
    assert message(wrapped(said)).mentions_bot
    assert message(wrapped({**said, "type": "app_mention"})).mentions_bot


def test_a_mention_that_the_text_does_not_show_counts_where_the_post_itself_did_not() -> None:
    hidden = post("hi", channel="C1", type="app_mention")

    assert kept(wrapped(hidden)).event_id == "C1:10.1:mention"
    assert ignored(wrapped(post("hi", channel="C1"))) == "not addressed"
    assert message(wrapped(hidden)).mentions_bot
    assert ignored(wrapped(hidden), "all") == "the post itself counts"


def test_where_slack_does_not_say_who_we_are_a_mention_still_counts_once() -> None:
    said = post(f"<@{US}> hi", channel="C1")
    bare = wrapped(said, authorizations=[])
    mention = wrapped({**said, "type": "app_mention"}, authorizations=[])

    assert kept(bare).event_id != kept(mention).event_id
    assert ignored(bare) == "not addressed"
    assert message(mention).mentions_bot


def test_posts_of_another_workspace_or_channel_have_keys_of_their_own() -> None:
    here = kept(wrapped(post()))
    elsewhere = kept(wrapped(post(), authorizations=[{**INSTALLED, "team_id": "T0OTHER"}]))
    beside = kept(wrapped(post(channel="D2")))

    assert len({(one.source, one.event_id) for one in (here, elsewhere, beside)}) == 3


def test_in_a_shared_channel_the_workspace_is_the_one_where_we_are_installed() -> None:
    shared = wrapped(post(channel="C1"), team_id="T0GUEST")

    assert kept(shared).payload.team == TEAM


def test_a_command_is_known_by_its_trigger_and_its_tokens_are_not_kept() -> None:
    payload = {
        "command": "/hearth",
        "text": "status",
        "team_id": TEAM,
        "channel_id": "D1",
        "user_id": ANN,
        "user_name": "ann",
        "trigger_id": "1.2.abc",
        "token": "SECRET",
        "response_url": "https://hooks.example/SECRET",
    }

    found = kept(payload)

    assert found.event_id == "command:1.2.abc"
    assert "SECRET" not in found.payload.to_json()
    assert message(payload).text == "/status"


def test_a_pressed_button_is_read_with_its_place_and_nothing_else() -> None:
    action = {"action_id": "press_1", "action_ts": "11.5", "value": "ask:1:yes", "text": "SECRET"}
    payload = {
        "type": "block_actions",
        "team": {"id": TEAM},
        "user": {"id": ANN},
        "channel": {"id": "C1"},
        "message": {"ts": "10.1", "text": "SECRET"},
        "actions": [action],
        "response_url": "https://hooks.example/SECRET",
    }

    found = kept(payload)
    top = read(payload)
    inside = read({**payload, "message": {"ts": "10.1", "thread_ts": "9.1"}})

    assert "SECRET" not in found.payload.to_json()
    assert isinstance(top, Pressed)
    assert isinstance(inside, Pressed)
    assert (top.address.key, top.message_id) == (f"slack:{TEAM}.C1", "10.1")
    assert (top.data, top.sender) == ("ask:1:yes", f"slack:{TEAM}:{ANN}")
    assert inside.address.key == f"slack:{TEAM}.C1:9.1"
    assert ignored(payload, "off") == "groups are off"


# --- who is heard --------------------------------------------------------------------------------


@pytest.mark.case("CH-17")
@pytest.mark.parametrize(
    "event",
    [
        post(user=US),
        post(bot_id="B1"),
        post(subtype="bot_message", bot_id="B1"),
        post(user="USLACKBOT"),
        post(user=None),
        post(subtype="channel_join"),
        {"type": "message", "subtype": "message_changed", "channel": "D1", "ts": "11.3",
         "message": {"user": US, "bot_id": "B1", "text": "draft", "ts": "11.1"}},
        {"type": "message", "subtype": "message_changed", "channel": "D1", "ts": "11.3",
         "message": {"user": ANN, "text": "link", "ts": "11.1", "attachments": [{}]},
         "previous_message": {"user": ANN, "text": "link", "ts": "11.1"}},
        {"type": "message", "subtype": "message_deleted", "channel": "D1", "ts": "11.3",
         "deleted_ts": "11.1", "previous_message": {"user": US, "bot_id": "B1", "ts": "11.1"}},
        {"type": "message", "subtype": "message_replied", "channel": "D1", "ts": "11.3"},
        {"type": "app_mention", "channel": "C1", "user": ANN, "ts": "10.1", "text": f"<@{US}>",
         "edited": {"user": ANN, "ts": "12.1"}},
        {"type": "reaction_added", "user": ANN},
        {"type": "app_home_opened", "user": ANN},
        {"type": "assistant_thread_started"},
    ],
    ids=lambda event: f"{event['type']} {event.get('subtype') or event.get('user')}",
)  # fmt: skip
def test_what_no_person_said_is_dropped_before_anything_is_stored(event: dict[str, Any]) -> None:
    assert sketch(wrapped(event)) is None


@pytest.mark.case("CH-17")
@pytest.mark.parametrize("tombstone", [False, True])
def test_a_deletion_is_an_edit_that_says_so(tombstone: bool) -> None:
    gone = {"user": ANN, "text": f"<@{US}> hi", "ts": "11.0", "thread_ts": "11.0"}
    event: dict[str, Any] = {"type": "message", "channel": "C1", "ts": "11.4"}
    if tombstone:
        hidden = {"subtype": "tombstone", "user": "USLACKBOT", "ts": "11.0", "thread_ts": "11.0"}
        event |= {"subtype": "message_changed", "message": hidden, "previous_message": gone}
    else:
        event |= {
            "subtype": "message_deleted",
            "deleted_ts": "11.0",
            "previous_message": {**gone, "files": [{"id": "F1"}]},
        }

    found = message(wrapped(event))

    assert (found.message_id, found.text, found.edited) == ("11.0", DELETED, True)
    assert (found.address.thread_id, found.attachments) == ("11.0", ())


@pytest.mark.parametrize(
    ("event", "policy", "reason"),
    [
        (post(channel="C1"), "mention", "not addressed"),
        (post(channel="C1"), "all", ""),
        (post(f"<@{US}>", channel="C1"), "off", "groups are off"),
        (post(f"<@{US}> x", channel="C1"), "mention", ""),
        (post(f"x <@{US}|hearth>", channel="C1"), "mention", ""),
        (post("<@U0BOTHER> x", channel="C1"), "mention", "not addressed"),
        (post(channel="C1", thread_ts="9.1", parent_user_id=US), "mention", ""),
        (post(channel="C1", thread_ts="9.1", parent_user_id=ANN), "mention", "not addressed"),
        (post(channel="G1", channel_type="mpim"), "mention", "not addressed"),
        (post(channel="D1"), "off", ""),
    ],
)
def test_who_is_meant_in_a_channel_follows_the_policy(
    event: dict[str, Any], policy: GroupPolicy, reason: str
) -> None:
    found = read(wrapped(event), policy)

    assert (found.reason if isinstance(found, Ignored) else "") == reason


# --- where it belongs ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "key"),
    [
        (post(), "slack:T0LAB.D1"),
        (post(thread_ts="9.1"), "slack:T0LAB.D1:9.1"),
        (post(thread_ts="10.1"), "slack:T0LAB.D1"),
        (post(f"<@{US}> x", channel="C1"), "slack:T0LAB.C1:10.1"),
        (post(f"<@{US}> x", channel="C1", thread_ts="9.1"), "slack:T0LAB.C1:9.1"),
        (post(f"<@{US}> x", channel="C1", thread_ts="9.1", subtype="thread_broadcast"),
         "slack:T0LAB.C1:9.1"),
    ],
)  # fmt: skip
def test_a_thread_is_a_conversation_and_a_post_in_a_channel_opens_one(
    event: dict[str, Any], key: str
) -> None:
    found = message(wrapped(event))

    assert found.address.key == key
    assert found.sender == f"slack:{TEAM}:{ANN}"
    assert kept(wrapped(event)).thread == found.address.thread_id
    assert found.is_group is ("C1" in key)


# --- what was said -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a &amp; b &lt;c&gt;", "a & b <c>"),
        ("&amp;lt;", "&lt;"),
        (f"<@{US}> /stop", "/stop"),
        (f"<@{US}>, <@{US}|hearth>: hi", "hi"),
        (f"ask <@{US}> and <@U0BOB>", "ask @hearth and @U0BOB"),
        ("<@U0BOB|bob>", "@bob"),
        ("see <#C1|general> and <#C2>", "see #general and #C2"),
        ("<!here> <!channel> <!subteam^S1|@team>", "@here @channel @team"),
        ("<!date^1392734382^{date}|Feb 18>", "Feb 18"),
        ("<https://a.b/?x=1&amp;y=2>", "https://a.b/?x=1&y=2"),
        ("<https://a.b/|A &amp; B>", "A & B (https://a.b/)"),
        ("<http://a.b|a.b>", "http://a.b"),
        ("<mailto:a@b.c|a@b.c>", "a@b.c"),
        ("1 &lt; 2 &gt; 0", "1 < 2 > 0"),
        ("", ""),
    ],
)  # fmt: skip
def test_codes_of_slack_read_as_they_are_seen(text: str, said: str) -> None:
    event = post(text, files=[{"id": "F1", "mimetype": "text/plain"}])

    assert message(wrapped(event)).text == said


CLIP = {"mimetype": "audio/mp4", "subtype": "slack_audio"}


def test_files_are_named_with_their_kind_and_size() -> None:
    files = [
        {"id": "F1", "mimetype": "image/png", "name": "a.png", "size": 5},
        {"id": "F2", "user": ANN, **CLIP, "duration_ms": 4200},
        {"id": "F3", "mimetype": "application/pdf", "name": "b.pdf", "size": True},
        {"id": "F4", "mode": "tombstone"},
        "no file",
    ]

    found = message(wrapped(post("", subtype="file_share", files=files)))

    assert [(a.kind, a.ref, a.name, a.size_bytes, a.seconds) for a in found.attachments] == [
        ("photo", "F1", "a.png", 5, 0),
        ("voice", "F2", "", 0, 4),
        ("document", "F3", "b.pdf", 0, 0),
    ]


@pytest.mark.parametrize("by", [{"user": "UEVE"}, {"user": None}, {}])
@pytest.mark.threat("T12")
def test_a_clip_that_somebody_else_spoke_is_not_the_senders_voice(by: dict[str, Any]) -> None:
    found = message(wrapped(post("", subtype="file_share", files=[{"id": "F1", **CLIP, **by}])))

    assert [a.kind for a in found.attachments] == ["audio"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ada.lovelace", "@ada.lovelace"),
        ("J.R. Smith", "@J.R. Smith"),
        ("Eve evil.example", "@Eve evil·example"),
        ("Eve (evil.example/x)", "@Eve (evil·example·x)"),
        ("https://evil.example", "@https···evil·example"),
        ("Eve <eve@evil.example>", "@Eve <eve·evil·example>"),
    ],
)
@pytest.mark.threat("T12")
def test_a_name_that_is_mentioned_names_no_address(name: str, said: str) -> None:
    reading = SlackParser(policy="all", us="", our_name="h", name_of=lambda team, user: name)
    found = reading.understand(
        SlackPayload.of(kept(wrapped(post("ask <@UEVE>"))).payload.to_json())
    )

    assert isinstance(found, IncomingMessage)
    assert found.text == f"ask {said}"
    assert "evil.example" not in {url.whole for url in addresses_in(found.text)}
    assert not is_named_in("eve@evil.example", found.text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "/help"),
        ("status", "/status"),
        ("/new", "/new"),
        ("remember the milk", "/remember the milk"),
        ("buy the milk", "buy the milk"),
        ("STOP", "/STOP"),
        ("foo", "/foo"),
        ("foo!", "foo!"),
    ],
)
def test_the_slash_command_takes_our_commands_and_hands_on_the_rest(text: str, said: str) -> None:
    payload = {
        "command": "/hearth",
        "text": text,
        "team_id": TEAM,
        "channel_id": "D1",
        "user_id": ANN,
        "trigger_id": "1.2",
    }

    assert message(payload).text == said


# --- odd shapes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "event_callback", "team_id": TEAM},
        wrapped(post(channel="general")),
        wrapped(post(ts="yesterday")),
        wrapped(post(user="ann smith")),
        wrapped(post(), team_id="x y", authorizations=[]),
        wrapped({"type": "message", "subtype": "message_changed", "channel": "D1"}),
        {"command": "/hearth", "team_id": TEAM, "channel_id": "D1", "user_id": ANN},
        {"type": "block_actions", "actions": [3], "user": {"id": ANN}},
    ],
)
def test_what_claims_to_be_something_and_is_not_is_refused(payload: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        sketch(payload)


# --- the home tab --------------------------------------------------------------------------------

OPENED = {"type": "app_home_opened", "user": ANN, "channel": "D1", "tab": "home"}
ON_HOME = {
    "type": "block_actions",
    "team": {"id": TEAM},
    "user": {"id": ANN},
    "view": {"type": "home", "id": "V1", "private_metadata": "D1", "blocks": [{"secret": 1}]},
    "actions": [{"action_id": "press_1", "action_ts": "11.5", "value": "job:1:done"}],
}


def test_an_opening_is_known_by_its_event_and_nothing_of_the_view_is_kept() -> None:
    found = kept(wrapped({**OPENED, "view": {"blocks": ["secret"]}}))

    assert (found.payload.kind, found.event_id, found.is_group) == (
        EventKind.HOME,
        "home:Ev1",
        False,
    )
    assert "secret" not in found.payload.to_json()
    assert ignored(wrapped(OPENED)) == "home opened"


def test_a_press_on_a_home_is_in_its_persons_chat_and_under_no_message() -> None:
    found = read(ON_HOME)

    assert isinstance(found, Pressed)
    assert found.address.key == f"slack:{TEAM}.D1"
    assert (found.message_id, found.data) == ("home:11.5", "job:1:done")
    assert found.sender == f"slack:{TEAM}:{ANN}"
    assert "secret" not in kept(ON_HOME).payload.to_json()


@pytest.mark.parametrize(
    "payload",
    [
        wrapped({**OPENED, "channel": "C1"}),
        wrapped({**OPENED, "user": None}),
        wrapped(OPENED, event_id=7),
        {**ON_HOME, "view": {"type": "home", "private_metadata": "C1"}},
        {**ON_HOME, "view": {"type": "home"}},
    ],
)
def test_an_odd_home_is_refused(payload: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^no |no direct message"):
        sketch(payload)
