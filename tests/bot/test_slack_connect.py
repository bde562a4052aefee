"""Whose posts, presses and commands of Slack are: a member is a workspace and a user in it, and we
know our own posts by whatever names us."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.channels.slack.modals import filled
from bot.channels.slack.parse import SlackParser
from bot.channels.slack.wire import SlackPayload, presser, sketch
from memory.records.messages import IncomingMessage
from tests.bot.kit import eventually
from tests.bot.slack_kit import ANN, CHANNEL, TEAM, US, SlackRig, slack_rigged

ELSEWHERE = "T0ELSE"
THEIRS = f"slack:{ELSEWHERE}:{ANN}"
APP, BOT = "A0LAB", "B0LAB"


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[SlackRig]:
    async with slack_rigged(tmp_path) as made:
        yield made


def moves_away(rig: SlackRig) -> None:
    """From now on, whoever has the owner's user id is somebody of another workspace."""
    rig.slack.add_user(user=ANN, team=ELSEWHERE, real_name="Eve")


# --- as people see it ----------------------------------------------------------------------------


async def test_the_same_id_of_another_workspace_is_a_stranger_in_a_shared_channel(
    rig: SlackRig,
) -> None:
    async with rig.serving_slack(ANN, chats=(CHANNEL,)) as bot:
        ts = rig.writes(f"<@{US}> what do you know of me?", channel=CHANNEL)
        await eventually(lambda: rig.read(CHANNEL))
        moves_away(rig)
        rig.writes(f"<@{US}> what do you know of me?", channel=CHANNEL)
        rig.writes(f"<@{US}> and this?", channel=CHANNEL, thread_ts=ts)
        rig.slack.command(text="memory", channel=CHANNEL, user=ANN)
        await rig.quiet(bot)

    assert rig.read(CHANNEL) == ["You said: Ann Example: what do you know of me?"]
    assert len(rig.model.requests) == 1
    assert rig.slack.ephemeral(ANN) == []


async def test_home_pane_and_forms_of_the_owner_are_closed_to_the_stranger(rig: SlackRig) -> None:
    async with rig.serving_slack(ANN, hurry=50) as bot:
        rig.slack.command(text="remember I like coffee", user=ANN)
        await eventually(lambda: rig.read())
        rig.slack.open_home(user=ANN)
        await eventually(lambda: "I like coffee" in str(rig.slack.home(ANN)))
        buttons = {
            one["action_id"]: one["text"]["text"]
            for block in rig.slack.home(ANN)["blocks"]  # type: ignore[index]
            for one in [*block.get("elements", ()), block.get("accessory", {})]
            if one.get("type") == "button"
        }
        moves_away(rig)
        for action_id in buttons:
            rig.slack.press(action_id=action_id)
        await rig.quiet(bot)
        rig.slack.open_home(user=ANN)
        await eventually(lambda: "I like coffee" not in str(rig.slack.home(ANN)))
        rig.slack.start_assistant(user=ANN)
        await rig.quiet(bot)

    assert "Correct" in buttons.values()
    assert rig.slack.views() == []
    assert rig.slack.calls("assistant.threads.setSuggestedPrompts") == []
    assert rig.rows("select count(*) from facts where valid_to_ms is null") == [(1,)]


def ours(**more: Any) -> dict[str, Any]:
    """A post under a person's name in a channel, as an app makes them."""
    said = {"type": "message", "channel": CHANNEL, "user": ANN, "team": TEAM, "ts": "10.1"}
    return {**said, "text": f"<@{US}> hi", **more}


OUR_MARKS: list[dict[str, Any]] = [
    {"app_id": APP},
    {"bot_id": BOT},
    {"bot_profile": {"id": BOT, "app_id": APP, "team_id": TEAM}},
    {"user": US},
]


@pytest.mark.parametrize("mark", OUR_MARKS, ids=lambda mark: next(iter(mark)))
async def test_our_own_posts_are_never_answered_whatever_names_us(
    rig: SlackRig, mark: dict[str, Any]
) -> None:
    post = ours(**mark)
    was = {**post, "text": "before"}
    edit = {"type": "message", "subtype": "message_changed", "channel": CHANNEL, "ts": "11.1"}
    gone = {**edit, "subtype": "message_deleted", "ts": "12.1", "deleted_ts": "10.1"}
    async with rig.serving_slack(ANN, chats=(CHANNEL,)) as bot:
        rig.slack.event(event=post)
        rig.slack.event(event={**post, "type": "app_mention", "ts": "10.2"})
        rig.slack.event(event={**edit, "message": post, "previous_message": was})
        rig.slack.event(event={**gone, "previous_message": post})
        await rig.quiet(bot)

    assert rig.read(CHANNEL) == []
    assert rig.rows("select count(*) from inbox") == [(0,)]


async def test_what_a_person_posts_by_another_app_of_theirs_counts(rig: SlackRig) -> None:
    rig.slack.add_channel(channel=CHANNEL, members=[ANN])
    async with rig.serving_slack(ANN, chats=(CHANNEL,)) as bot:
        rig.slack.event(event=ours(app_id="A0OTHER"))
        await eventually(lambda: rig.read(CHANNEL))
        await rig.quiet(bot)


# --- which field says it -------------------------------------------------------------------------

ORG, OTHER_ORG = "E0OURS", "E0THEIRS"


def wrapped(event: dict[str, Any], *, org: str = "", **more: Any) -> dict[str, Any]:
    installed = {"team_id": TEAM, "enterprise_id": org or None, "user_id": US, "is_bot": True}
    return {
        "type": "event_callback",
        "team_id": TEAM,
        "api_app_id": APP,
        "event_id": "Ev1",
        "authorizations": [installed],
        "event": event,
        **more,
    }


@pytest.mark.parametrize(
    ("event", "more", "person"),
    [
        ({}, {}, f"slack:{TEAM}:{ANN}"),
        ({"team": TEAM}, {}, f"slack:{TEAM}:{ANN}"),
        ({"team": ELSEWHERE}, {}, THEIRS),
        ({"team": TEAM, "user_team": ELSEWHERE}, {}, THEIRS),
        ({"team": TEAM, "source_team": ELSEWHERE}, {}, THEIRS),
        # A workspace that is hosted elsewhere: ours speak there, too.
        ({"team": TEAM, "user_team": TEAM}, {"team_id": ELSEWHERE}, f"slack:{TEAM}:{ANN}"),
        ({}, {"team_id": ELSEWHERE}, THEIRS),
        # Organisations: one id is one person throughout ours.
        ({"user_team": ORG}, {"org": ORG}, f"slack:{TEAM}:{ANN}"),
        ({"team": ORG}, {"org": ORG}, f"slack:{TEAM}:{ANN}"),
        ({"user_team": OTHER_ORG}, {"org": ORG}, f"slack:{OTHER_ORG}:{ANN}"),
        ({"user_team": OTHER_ORG, "team": TEAM}, {}, f"slack:{OTHER_ORG}:{ANN}"),
        # An installation of all of an organisation.
        ({"team": TEAM}, {"authorizations": [{"enterprise_id": ORG}]}, f"slack:{TEAM}:{ANN}"),
        (
            {"user_team": ORG},
            {"authorizations": [{"enterprise_id": ORG}], "context_team_id": TEAM},
            f"slack:{TEAM}:{ANN}",
        ),
    ],
)
def test_who_wrote_is_named_by_the_event_and_the_chat_is_where_we_are_installed(
    event: dict[str, Any], more: dict[str, Any], person: str
) -> None:
    said = {"type": "message", "channel": "C1", "user": ANN, "ts": "10.1", "text": "hi"}
    edit = {"type": "message", "subtype": "message_changed", "channel": "C1", "ts": "11.1"}
    for payload in (
        wrapped({**said, **event}, **more),
        wrapped({**edit, "message": {**said, **event}}, **more),
    ):
        found = sketch(payload)
        assert found is not None
        assert (found.person, found.chat_id) == (person, f"{TEAM}.C1")
        reading = SlackParser(
            policy="all", us=US, our_name="hearth", name_of=lambda team, user: team
        )
        read = reading.understand(SlackPayload.of(found.payload.to_json()))
        assert isinstance(read, IncomingMessage)
        assert f"slack:{read.sender_id}" == person
        assert read.sender_name == person.split(":")[1]


def test_what_a_former_version_stored_is_of_the_workspace_where_we_are_installed() -> None:
    found = sketch(wrapped({"type": "message", "channel": "D1", "user": ANN, "ts": "10.1"}))
    assert found is not None
    kept = json.loads(found.payload.to_json())
    del kept["home"]

    assert SlackPayload.of(json.dumps(kept)).home == TEAM


@pytest.mark.parametrize(
    ("payload", "team", "home"),
    [
        ({"team": {"id": TEAM}, "user": {"id": ANN}}, TEAM, TEAM),
        ({"team": {"id": TEAM}, "user": {"id": ANN, "team_id": TEAM}}, TEAM, TEAM),
        ({"team": {"id": TEAM}, "user": {"id": ANN, "team_id": ELSEWHERE}}, TEAM, ELSEWHERE),
        (
            {
                "team": {"id": ELSEWHERE},
                "user": {"id": ANN, "team_id": ELSEWHERE},
                "message": {"team": TEAM},
            },
            TEAM,
            ELSEWHERE,
        ),
        (
            {
                "team": {"id": ELSEWHERE},
                "user": {"id": ANN, "team_id": ELSEWHERE},
                "view": {"app_installed_team_id": TEAM},
            },
            TEAM,
            ELSEWHERE,
        ),
        (
            {"team": {"id": TEAM, "enterprise_id": ORG}, "user": {"id": ANN, "team_id": ORG}},
            TEAM,
            TEAM,
        ),
        (
            {
                "team": None,
                "enterprise": {"id": ORG},
                "user": {"id": ANN, "team_id": TEAM},
            },
            TEAM,
            TEAM,
        ),
        (
            {
                "team": None,
                "enterprise": {"id": ORG},
                "user": {"id": ANN, "team_id": ORG},
                "view": {"team_id": TEAM},
            },
            TEAM,
            TEAM,
        ),
        (
            {"team": {"id": TEAM}, "user": {"id": ANN, "team_id": OTHER_ORG}},
            TEAM,
            OTHER_ORG,
        ),
    ],
)
def test_who_pressed_is_named_by_the_user_and_not_by_the_place(
    payload: dict[str, Any], team: str, home: str
) -> None:
    assert presser(payload) == (team, home, ANN)


def test_a_form_is_of_the_workspace_of_whoever_sent_it() -> None:
    view = {
        "id": "V1",
        "callback_id": "edit_fact",
        "private_metadata": "D1",
        "app_installed_team_id": TEAM,
        "state": {"values": {"f1": {"f1": {"value": "I like tea"}}}},
    }
    user = {"id": ANN, "team_id": ELSEWHERE}
    found = filled({"type": "view_submission", "team": None, "user": user, "view": view})

    assert found is not None
    assert (found.person, found.chat_id) == (THEIRS, f"{TEAM}.D1")
