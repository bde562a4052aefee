"""Payloads of every wrong shape (P9): none stops the intake, and the next message is answered."""

from __future__ import annotations

import copy
import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from bot.lab.slack import SIGNING_SECRET
from bot.lab.slack_http import signature
from tests.bot.kit import eventually
from tests.bot.slack_kit import ANN, CHANNEL, STRANGER, TEAM, US, Mode, SlackRig, slack_rigged
from tests.thorough import rounds

PAYLOADS = int(os.environ.get("FUZZ_PAYLOADS", str(rounds(900, 3_000))))
SEED = int(os.environ.get("FUZZ_SEED", "20261128"))
BATCH = 150

Json = dict[str, Any]

TEXTS = (
    "hello", f"<@{US}> hi", "/help", "", " ", "\ud800", "\u202e\u0000\u0007", "<" * 500, "<@" * 300,
    "<!here> <@U1|" + "x" * 9_000, "&lt;" * 2_000, "a" * 60_000, "<http://" + "|" * 400 + ">",
)  # fmt: skip
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 2**63, -(2**70), "", "7", "\ud83d", "z" * 20_000, [], {}, [[]],
    [None], {"id": "U1"}, {"text": []}, "D1:2", "T0LAB.C1", "C1", "1.2", "../..", ["C1", "C2"],
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
    match chance.randrange(6):
        case 0:
            return {
                "command": "/hearth",
                "text": chance.choice(TEXTS),
                "team_id": TEAM,
                "channel_id": CHANNEL,
                "user_id": chance.choice([ANN, STRANGER]),
                "trigger_id": f"{chance.randrange(10**9)}.1",
            }
        case 1:
            return {
                "type": chance.choice(["block_actions", "view_closed", "shortcut"]),
                "team": {"id": TEAM},
                "user": {"id": ANN},
                "channel": {"id": CHANNEL},
                "message": {"ts": "5.5"},
                "actions": [{"action_id": "x", "action_ts": f"{chance.randrange(10**9)}.1"}],
            }
    return {
        "type": "event_callback",
        "team_id": TEAM,
        "event_id": f"Ev{chance.randrange(10**9)}",
        "authorizations": [{"team_id": TEAM, "user_id": US, "is_bot": True}],
        "event": event(chance),
    }


def spoiled(chance: random.Random) -> Json:
    """With some of its parts taken away or replaced by something odd."""
    whole = copy.deepcopy(payload(chance))
    for _ in range(chance.choice([0, 1, 1, 2, 3])):
        spots = list(_spots(whole))
        holder, key = chance.choice(spots)
        if chance.random() < 0.3:
            holder.pop(key)
        else:
            holder[key] = chance.choice(ODD)
        if not whole:
            break
    return whole


def _spots(node: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in list(items):
        found.append((node, key))
        if isinstance(value, dict | list):
            found += _spots(value)
    return found


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["socket", "http"])
async def test_no_payload_stops_the_intake(tmp_path: Path, mode: Mode) -> None:
    chance = random.Random(SEED)
    async with slack_rigged(tmp_path, mode, ack_s=5.0) as rig:
        rig.slack.add_channel(channel=CHANNEL)
        rig.slack.direct()
        async with rig.serving_slack(ANN, chats=(CHANNEL,)) as bot:
            for batch in range(PAYLOADS // BATCH):
                for _ in range(BATCH):
                    rig.slack._deliveries.deliver(_kind(chance), spoiled(chance))
                await rig.slack.settled(timeout_s=60)
                await answered(rig, f"sane {batch}")
                await rig.quiet(bot)

        assert rig.slack.lost() == []
        states = set(rig.inbox())
        assert states <= {"replied", "refused", "silent", "command", "joined", "cancelled"}
        for text in rig.read(to=STRANGER):
            assert "private assistant" in text


def _kind(chance: random.Random) -> str:
    return chance.choice(["events_api", "events_api", "events_api", "interactive"])


async def answered(rig: SlackRig, text: str) -> None:
    before = len(rig.replies())
    rig.writes(text, by=ANN)
    # Notes of edits may stand before it, and the model's answer repeats only the beginning.
    await eventually(lambda: any(text in str(request) for request in rig.model.requests[-5:]))
    await eventually(lambda: len(rig.replies()) > before)


async def test_bodies_that_are_hardly_json_stop_nothing(tmp_path: Path) -> None:
    import aiohttp

    bodies = [
        b"", b"null", b"[]", b"{}", b'"x"', b"1e999", b"\xff\xfe", b"{" * 3000, b"[" * 100_000,
        b'{"a":' * 5_000 + b"1" + b"}" * 5_000, b'{"type":"event_callback","event":' + b"[" * 9_000,
        b'{"type":"event_callback","team_id":' + b"9" * 5_000 + b"}", b"payload=", b"payload=[]",
        b"payload=%7B%22type%22%3A%22block_actions%22%7D", b"&".join([b"a=b"] * 500),
    ]  # fmt: skip
    async with slack_rigged(tmp_path, "http") as rig:
        async with rig.serving_slack(ANN) as bot, aiohttp.ClientSession() as http:
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


def test_the_odd_values_can_be_sent_at_all() -> None:
    assert json.dumps(ODD)
