"""Payloads of every wrong shape (P9): none stops the intake, and the next message is answered."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.lab.slack import SIGNING_SECRET
from bot.lab.slack_delivery import signature
from tests.bot.slack_kit import ANN, BOB, CHANNEL, STRANGER, TEAM, US, Mode, SlackRig, slack_rigged
from tests.bot.test_fuzz import spoilt, unhandled
from tests.thorough import rounds

PAYLOADS = int(os.environ.get("FUZZ_PAYLOADS", str(rounds(500, 3_000))))
SEED = int(os.environ.get("FUZZ_SEED", "20261128"))
BATCH = 150

Json = dict[str, Any]

TEXTS = (
    "hello", f"<@{US}> hi", "/help", "", " ", "\ud800", "\u202e\u0000\u0007", "<" * 500, "<@" * 300,
    "<!here> <@U1|" + "x" * 9_000, "&lt;" * 2_000, "a" * 60_000, "<http://" + "|" * 400 + ">",
)  # fmt: skip


def event(chance: random.Random) -> Json:
    """An event as Slack would send it, with a bit of everything."""
    where = chance.choice([f"D{ANN[1:]}", CHANNEL, "C9", "G2"])
    who = chance.choice([ANN, ANN, STRANGER, US, "USLACKBOT"])
    said: Json = {
        "type": chance.choice(["message", "message", "app_mention", "reaction_added"]),
        "channel": where,
        "user": who,
        "ts": f"{chance.randrange(10**9)}.{chance.randrange(10**6):06d}",
        "text": chance.choice(TEXTS),
        "blocks": [{"type": "rich_text", "elements": []}],
        "files": [{"id": "F1", "mimetype": "image/png", "name": "a", "size": 3}],
        "attachments": [{"is_share": True, "text": "quoted"}],
    }
    if chance.random() < 0.4:
        said["thread_ts"] = "5.5"
        said["parent_user_id"] = US
    if chance.random() < 0.4:
        inner = {**said, "edited": {"user": who, "ts": "1.1"}}
        kind = chance.choice(["message_changed", "message_deleted", "tombstone", "file_share"])
        said = {
            **said,
            "subtype": kind,
            "message": inner,
            "previous_message": {**inner, "text": "before"},
            "deleted_ts": "7.7",
        }
    return said


def payload(chance: random.Random) -> Json:
    match chance.randrange(10):
        case 0:
            return {
                "command": "/hearth",
                "text": chance.choice(TEXTS),
                "team_id": TEAM,
                "channel_id": CHANNEL,
                "user_id": chance.choice([ANN, STRANGER]),
                "trigger_id": f"{chance.randrange(10**9)}.1",
            }
        case 1 | 2:
            return interaction(chance)
        case 3 | 4:
            return wrapped(happening(chance), chance)
    return wrapped(event(chance), chance)


def wrapped(inner: Json, chance: random.Random) -> Json:
    return {
        "type": "event_callback",
        "team_id": TEAM,
        "event_id": f"Ev{chance.randrange(10**9)}",
        "authorizations": [{"team_id": TEAM, "user_id": US, "is_bot": True}],
        "event": inner,
    }


def interaction(chance: random.Random) -> Json:
    """A press under a message or on a home, a form that was sent or closed, a shortcut."""
    who = chance.choice([ANN, STRANGER])
    view = {
        "id": "V1",
        "type": chance.choice(["modal", "home", "workflow_step"]),
        "callback_id": chance.choice(["x", "new_reminder", "edit_fact"]),
        "private_metadata": f"D{who[1:]}",
        "external_id": f"D{who[1:]}",
        "state": {
            "values": {
                name: {name: {"type": "plain_text_input", "value": chance.choice([*TEXTS, "at 5"])}}
                for name in ("what", "when", "f1")
            }
        },
    }
    action = {
        "action_id": chance.choice(["x", "1", "b:1"]),
        "action_ts": f"{chance.randrange(10**9)}.1",
        "value": chance.choice([*TEXTS, "a:1:yes", "job:1:done", "form:reminder", "form:fact:f1"]),
        "type": chance.choice(["button", "static_select", "datepicker"]),
    }
    where: Json = {
        "channel": {"id": chance.choice([CHANNEL, f"D{who[1:]}", "C9"])},
        "message": {"ts": "5.5", "thread_ts": "5.5"},
        "container": {"type": "message"},
    }
    if chance.random() < 0.4:
        where = {"view": view, "container": {"type": "view"}}
    kinds = ["block_actions", "block_actions", "view_submission", "view_closed", "shortcut"]
    return {
        "type": chance.choice([*kinds, "message_action", "block_suggestion"]),
        "team": {"id": TEAM},
        "user": {"id": who},
        "trigger_id": f"{chance.randrange(10**9)}.1",
        "response_url": "http://127.0.0.1:9/",
        "actions": [action],
        **where,
    }


def happening(chance: random.Random) -> Json:
    """What is no message: looks at a home, panes, reactions, members who come and go, files."""
    who, direct = chance.choice([(ANN, f"D{ANN[1:]}"), (STRANGER, f"D{STRANGER[1:]}")])
    ts = f"{chance.randrange(10**9)}.{chance.randrange(10**6):06d}"
    item = {"type": "message", "channel": chance.choice([CHANNEL, direct]), "ts": ts}
    pane = {"user_id": who, "channel_id": direct, "thread_ts": ts, "context": {}}
    both: Json = {"user": who, "channel": chance.choice([direct, CHANNEL, "C9"]), "event_ts": ts}
    return chance.choice(
        [
            {**both, "type": "app_home_opened", "channel": direct, "tab": "home"},
            {**both, "type": "app_home_opened", "channel": direct, "tab": "messages"},
            {"type": "assistant_thread_started", "assistant_thread": pane, "event_ts": ts},
            {"type": "assistant_thread_context_changed", "assistant_thread": pane},
            {**both, "type": "reaction_added", "reaction": "+1", "item": item, "item_user": US},
            {**both, "type": "reaction_removed", "reaction": "+1", "item": item},
            {**both, "type": "member_joined_channel", "channel_type": "C", "inviter": ANN},
            {**both, "type": "member_left_channel"},
            {**both, "type": "file_shared", "file_id": "F1"},
            {**both, "type": "channel_archive"},
            {**both, "type": "message", "subtype": "channel_join", "ts": ts, "text": "joined"},
            {**both, "type": "message", "subtype": "bot_message", "bot_id": "B1", "ts": ts},
            {**both, "type": "message", "subtype": "me_message", "ts": ts, "text": "waves"},
            {**both, "type": "message", "subtype": "thread_broadcast", "ts": ts, "text": "hi"},
            {**both, "type": "message", "subtype": "message_replied", "ts": ts, "message": item},
            {"type": "tokens_revoked", "tokens": {"bot": [US]}},
            {"type": "app_uninstalled"},
            {"type": "team_rename", "name": "x"},
        ]
    )


@pytest.mark.slow
@pytest.mark.timeout(300 + PAYLOADS / 10)
@pytest.mark.parametrize("mode", ["socket", "http"])
async def test_no_payload_stops_the_intake(tmp_path: Path, mode: Mode) -> None:
    chance = random.Random(SEED)
    with capture_logs() as logs, unhandled() as faults:
        async with slack_rigged(tmp_path, mode, ack_s=5.0) as rig:
            rig.slack.add_channel(channel=CHANNEL)
            rig.slack.direct()
            async with rig.serving_slack(ANN, BOB, chats=(CHANNEL,)) as bot:
                for batch in range(PAYLOADS // BATCH):
                    for _ in range(BATCH):
                        rig.slack._deliveries.deliver(
                            _kind(chance), spoilt(payload(chance), chance)
                        )
                    await rig.slack.settled(timeout_s=60)
                    await answered(rig, f"sane {batch}")
                    await rig.quiet(bot)

            assert rig.slack.lost() == []
            states = set(rig.inbox())
            assert states <= {"replied", "refused", "silent", "command", "joined", "cancelled"}
            only_once_to_strangers(rig)
    assert not faults
    assert not [entry for entry in logs if entry.get("exc_info")]


def only_once_to_strangers(rig: SlackRig) -> None:
    """A code, once, and no word more; on their home the one sentence that it shows to anybody."""
    posts = [call.params for call in rig.slack.calls("chat.postMessage")]
    told = [post["text"] for post in posts if post["channel"] == f"D{STRANGER[1:]}"]
    assert len(told) <= 1
    assert all("private assistant" in text for text in told)
    whispered = rig.slack.calls("chat.postEphemeral")
    assert not [call for call in whispered if call.params["user"] == STRANGER]
    shown = rig.slack.home(STRANGER)
    assert shown is None or "private assistant" in str(shown)
    assert not rig.slack.calls("reactions.add")
    known = {CHANNEL, f"D{ANN[1:]}", f"D{BOB[1:]}", f"D{STRANGER[1:]}"}
    known |= {ANN, BOB}  # a command of theirs, where nobody can whisper
    elsewhere = [post["text"] for post in posts if post["channel"] not in known]
    assert all("hearthbot access approve" in text for text in elsewhere)


def _kind(chance: random.Random) -> str:
    return chance.choice(["events_api", "events_api", "events_api", "interactive"])


async def answered(rig: SlackRig, text: str) -> None:
    """A normal message of somebody of whom no odd payload speaks gets its answer, and no other."""
    before = rig.read(to=BOB)
    rig.writes(text, by=BOB)
    await rig.shows(*before, f"You said: {text}", to=BOB)


async def test_bodies_that_are_hardly_json_stop_nothing(tmp_path: Path) -> None:
    import aiohttp

    bodies = [
        b"", b"null", b"[]", b"{}", b'"x"', b"1e999", b"\xff\xfe", b"{" * 3000, b"[" * 100_000,
        b'{"a":' * 5_000 + b"1" + b"}" * 5_000, b'{"type":"event_callback","event":' + b"[" * 9_000,
        b'{"type":"event_callback","team_id":' + b"9" * 5_000 + b"}", b"payload=", b"payload=[]",
        b"payload=%7B%22type%22%3A%22block_actions%22%7D", b"&".join([b"a=b"] * 500),
    ]  # fmt: skip
    async with slack_rigged(tmp_path, "http") as rig:
        async with rig.serving_slack(BOB) as bot, aiohttp.ClientSession() as http:
            for body in bodies:
                for kind in ("application/json", "application/x-www-form-urlencoded", "x/y"):
                    stamp = str(int(time.time()))
                    signed = signature(SIGNING_SECRET, stamp, body.decode(errors="replace"))
                    url = f"http://127.0.0.1:{rig.port}/slack/events"
                    headers = {
                        "Content-Type": kind,
                        "X-Slack-Request-Timestamp": stamp,
                        "X-Slack-Signature": signed,
                    }
                    async with http.post(url, data=body, headers=headers) as response:
                        assert response.status in {200, 400, 401}, (body[:40], kind)
            await answered(rig, "sane")
            await rig.quiet(bot)

        assert rig.inbox() == ["replied"]
