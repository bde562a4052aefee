"""The app's manifest asks for what is used, and for nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from bot.channels.slack.api import BOT_SCOPES, EVENTS, METHODS
from tests.bot.slack_kit import ANN, CHANNEL, US, slack_rigged

ROOT = Path(__file__).parents[2]


def manifest() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "slack-manifest.yaml").read_text("utf-8"))
    return found


def test_the_scopes_are_exactly_those_in_use() -> None:
    asked = manifest()["oauth_config"]["scopes"]["bot"]

    assert asked == sorted(BOT_SCOPES)


def test_the_events_are_exactly_those_that_are_known() -> None:
    assert manifest()["settings"]["event_subscriptions"]["bot_events"] == sorted(EVENTS)


def test_every_method_that_the_code_names_is_listed_with_its_scopes() -> None:
    named: set[str] = set()
    for file in (ROOT / "bot/channels/slack").glob("*.py"):
        # In api.py the list itself stands, and the two calls that come with a way out.
        ends = ", _FIX" if file.name == "api.py" else ""
        named |= set(re.findall(rf'"([a-z]+(?:\.[a-zA-Z]+)+)"{ends}', file.read_text("utf-8")))

    ours = ("slack.", "hearthbot.")  # events and names of our own logs
    assert {name for name in named if not name.startswith(ours)} == set(METHODS)


def test_socket_mode_and_the_command_are_on() -> None:
    found = manifest()

    assert found["settings"]["socket_mode_enabled"] is True
    assert found["settings"]["interactivity"]["is_enabled"] is True
    assert [one["command"] for one in found["features"]["slash_commands"]] == ["/hearth"]


async def test_the_bot_works_with_exactly_these_scopes(tmp_path: Path) -> None:
    async with slack_rigged(tmp_path) as rig:
        rig.slack.rules.change(
            bot_scopes=sorted(BOT_SCOPES),
            subscribed=manifest()["settings"]["event_subscriptions"]["bot_events"],
        )
        rig.set(slack__stream_every_s=0.1)
        async with rig.serving_slack(ANN, chats=(CHANNEL,)) as bot:
            thread = rig.slack.start_assistant()
            rig.writes("in the pane", thread_ts=thread)
            rig.writes(f"<@{US}> in a channel", channel=CHANNEL)
            rig.slack.command(text="help")
            await rig.slack.until(lambda: len(rig.read()) == 3, timeout_s=10)
            await rig.quiet(bot)

        refused = [call for call in rig.slack.calls() if call.fault]
        assert refused == []
