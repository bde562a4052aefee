"""A reminder from a form on a person's home: read, shown and agreed to as one that is written."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.channels.base import NEW_REMINDER
from bot.channels.slack.modals import (
    fact_form,
    filled,
    form_wish,
    reminder_form,
)
from bot.lab.faults import drop
from tests.bot.kit import eventually
from tests.bot.slack_kit import ANN, STRANGER, TEAM, Mode, SlackRig, slack_rigged

DIRECT = f"D{ANN[1:]}"
VALUES = {"what": {"what": "call Bob\nat home"}, "when": {"when": " tomorrow at 5 pm "}}


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[SlackRig]:
    async with slack_rigged(tmp_path) as made:
        yield made


def button(rig: SlackRig, user: str = ANN, *, label: str = "New reminder") -> str | None:
    """The action id of the button that opens a form on a home, if it is there."""
    home = rig.slack.home(user) or {"blocks": []}
    found = [e for b in home["blocks"] if b["type"] == "actions" for e in b["elements"]]
    found += [b["accessory"] for b in home["blocks"] if "accessory" in b]
    return next((one["action_id"] for one in found if one["text"]["text"] == label), None)


async def opened(rig: SlackRig) -> str:
    """The form is open before Ann; its id."""
    rig.slack.open_home(user=ANN)
    action_id = await eventually(lambda: button(rig))
    rig.slack.press(action_id=action_id)
    [view] = await eventually(rig.slack.views)
    return str(view["id"])


@pytest.mark.parametrize("mode", ["socket", "http"])
async def test_a_form_becomes_the_card_that_asks(tmp_path: Path, mode: Mode) -> None:
    async with slack_rigged(tmp_path, mode) as rig:
        async with rig.serving_slack(ANN, hurry=50) as bot:
            view = await opened(rig)
            rig.slack.submit(view_id=view, values=VALUES)
            await eventually(lambda: any("call Bob at home" in text for text in rig.read()))
            await rig.quiet(bot)

        assert rig.slack.views() == []
        assert rig.model.requests == []
        assert [post for post in rig.replies() if post.blocks]


async def test_a_fact_is_corrected_by_a_form_and_the_home_shows_it_at_the_next_look(
    rig: SlackRig,
) -> None:
    async with rig.serving_slack(ANN, hurry=50) as bot:
        rig.slack.command(text="remember I like coffee", user=ANN)
        await eventually(lambda: rig.read())
        rig.slack.open_home(user=ANN)
        action_id = await eventually(lambda: button(rig, label="Correct"))
        rig.slack.press(action_id=action_id)
        [view] = await eventually(rig.slack.views)
        rig.slack.submit(view_id=view["id"], values={"f1": {"f1": "I like tea"}})
        await eventually(lambda: len(rig.read()) == 2)
        await rig.quiet(bot)
        rig.slack.open_home(user=ANN)
        await eventually(lambda: "I like tea" in str(rig.slack.home(ANN)))
        await rig.quiet(bot)

    assert "I like coffee" not in str(rig.slack.home(ANN))
    assert "I like tea" in rig.read()[1]
    assert rig.model.requests == []


async def test_a_form_that_does_not_open_harms_nothing(rig: SlackRig) -> None:
    async with rig.serving_slack(ANN, hurry=50) as bot:
        rig.slack.fault("views.open", action=drop())
        rig.slack.open_home(user=ANN)
        action_id = await eventually(lambda: button(rig))
        rig.slack.press(action_id=action_id)
        rig.writes("still there?")
        await rig.shows("You said: still there?")
        rig.slack.press(action_id=action_id)
        await eventually(rig.slack.views)
        await rig.quiet(bot)


async def test_a_stranger_has_no_form(rig: SlackRig) -> None:
    async with rig.serving_slack(ANN, hurry=50) as bot:
        rig.slack.open_home(user=STRANGER)
        await eventually(lambda: rig.slack.home(STRANGER))
        assert button(rig, STRANGER) is None
        payload = pressed() | {"user": {"id": STRANGER}}
        rig.slack._deliveries.deliver("interactive", payload)
        await rig.quiet(bot)

    assert rig.slack.views() == []
    assert rig.slack.calls("views.open") == []


# --- reading -------------------------------------------------------------------------------------


def pressed() -> dict[str, Any]:
    return {
        "type": "block_actions",
        "trigger_id": "1.2",
        "team": {"id": TEAM},
        "user": {"id": ANN},
        "view": {"type": "home", "private_metadata": DIRECT},
        "actions": [{"action_id": "press_1", "value": NEW_REMINDER}],
    }


def sent() -> dict[str, Any]:
    values = {
        "what": {"what": {"type": "plain_text_input", "value": "call Bob"}},
        "when": {"when": {"type": "plain_text_input", "value": "at 5"}},
    }
    view = reminder_form(DIRECT) | {"id": "V1", "state": {"values": values}}
    user, team = {"id": ANN}, {"id": TEAM}
    return {"type": "view_submission", "team": team, "user": user, "view": view}


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "shortcut"},
        {"view": None},
        {"view": {"type": "home", "private_metadata": "C1"}},
        {"actions": [7]},
        {"actions": [{"value": "job:1:done"}]},
        {"actions": [{"value": "form:fact:x' or 1"}]},
        {"user": 7},
        {"team": {"id": 5}},
    ],
)
def test_what_is_no_press_on_it_is_no_wish(odd: dict[str, Any]) -> None:
    assert form_wish(pressed()) is not None
    assert form_wish(pressed() | odd) is None


def test_a_press_under_a_message_to_one_person_alone_is_a_wish_too() -> None:
    payload = {name: value for name, value in pressed().items() if name != "view"}

    direct = form_wish(payload | {"channel": {"id": DIRECT}})

    assert direct is not None
    assert direct.channel == DIRECT
    assert form_wish(payload | {"channel": {"id": "C0GENERAL"}}) is None
    assert form_wish(payload) is None


def test_a_form_about_a_fact_is_the_command_that_corrects_it() -> None:
    values = {"f12": {"f12": {"type": "plain_text_input", "value": "I like\ntea"}}}
    view = fact_form(DIRECT, "f12") | {"id": "V2", "state": {"values": values}}

    found = filled(sent() | {"view": view})

    assert found is not None
    assert found.payload.body["text"] == "memory edit f12 I like tea"
    with pytest.raises(ValueError, match="no "):
        filled(sent() | {"view": view | {"state": {"values": {"x": {}}}}})


def test_a_form_of_others_is_none_of_ours() -> None:
    assert filled(sent() | {"type": "view_closed"}) is None
    assert filled(sent() | {"view": {"callback_id": "else"}}) is None


@pytest.mark.parametrize(
    "wrong", [{"id": 7}, {"private_metadata": "C0GENERAL"}, {"private_metadata": ""}, {"state": 7}]
)
def test_a_form_that_claims_to_be_ours_and_is_not_is_refused(wrong: dict[str, Any]) -> None:
    assert filled(sent()) is not None
    with pytest.raises(ValueError, match="no "):
        filled(sent() | {"view": sent()["view"] | wrong})
