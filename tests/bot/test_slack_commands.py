"""Commands as Slack's people read of them: nothing is taught that Slack would not hand to us."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from bot.commands.table import COMMANDS
from bot.lab.slack_state import SeenInSlack
from tests.bot.kit import eventually
from tests.bot.slack_kit import ANN, BARE, BOB, CHANNEL, US, SlackRig, judge_slack, slack_rigged

KEPT = "Paused: your message is kept, and answered after `/hearth resume`."


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[SlackRig]:
    async with slack_rigged(tmp_path) as made:
        yield made


async def asked(rig: SlackRig, *commands: str, by: str = ANN) -> list[str]:
    """What was answered to each, in order."""
    for command in commands:
        before = len(rig.replies(to=by))
        rig.slack.command(text=command, user=by)
        await eventually(partial(_more_than, rig, before, by))
    return rig.read(to=by)


def _more_than(rig: SlackRig, before: int, by: str) -> bool:
    return len(rig.replies(to=by)) > before


async def test_help_names_each_command_as_it_is_typed_in_slack(rig: SlackRig) -> None:
    async with rig.serving_slack(ANN) as bot:
        [text] = await asked(rig, "help")
        await rig.quiet(bot)

    assert all(f"/hearth {command.name} – " in text for command in COMMANDS)
    assert "`/hearth remind tomorrow at 5 call Bob`" in text
    assert "`@hearth /stop`" in text, "in a thread there are no slash commands"
    assert not BARE.search(text)


async def test_every_usage_that_is_shown_can_be_typed_in_slack(rig: SlackRig) -> None:
    commands = (
        *("remind", "jobs", "job", "quiet", "quiet x y", "heartbeat", "memory", "memory help"),
        *(
            "remember",
            "approve wrong",
            "approve a b c",
            "approve revoke x",
            "private x",
            "agents x",
        ),
        *("timezone", "job j7", "job e7 remove"),
        *("pair", "pair nobody", "pair a b c", "access", "access x", "link list", "link x"),
        *("link WRONG222", "link remove x", "model", "compact", "undo", "usage", "pause", "pause"),
    )
    async with rig.serving_slack(ANN) as bot:
        await asked(rig, *commands)
        rig.writes("Hello?")
        await eventually(lambda: KEPT in rig.read())
        await rig.quiet(bot)
        answers = rig.read()

    assert [text for text in answers if BARE.search(text)] == []
    assert sum("/hearth " in text for text in answers) > len(answers) / 2


# --- `/why`: below an answer, and with the form of a fact ---


def actions(post: SeenInSlack) -> dict[str, str]:
    """The action ids of a post's buttons by their labels."""
    return {
        element["text"]["text"]: element["action_id"]
        for block in post.blocks or ()
        if block["type"] == "actions"
        for element in block["elements"]
    }


async def test_facts_are_corrected_by_a_form_and_forgotten_by_the_card(rig: SlackRig) -> None:
    async with rig.serving_slack(ANN, hurry=50) as bot:
        await asked(rig, "remember I take my tea without milk")
        rig.writes("how do I take my tea?")
        await eventually(lambda: len(rig.read()) == 2)
        await rig.quiet(bot)
        *_, text = await asked(rig, "why")
        post = rig.replies()[-1]
        channel = rig.slack.direct(ANN)

        rig.slack.press(channel=channel, ts=post.ts, action_id=actions(post)["Correct f1"])
        [view] = await eventually(rig.slack.views)
        rig.slack.submit(view_id=view["id"], values={"f1": {"f1": "I take my tea with lemon"}})
        await eventually(lambda: any("tea with lemon" in one for one in rig.read()))
        rig.slack.press(channel=channel, ts=post.ts, action_id=actions(post)["Forget f1"])
        await eventually(lambda: any(one.startswith("*Forget f1") for one in rig.read()))
        await rig.quiet(bot)

    assert "`/hearth memory edit f12 TEXT` corrects one" in text
    judge_slack(rig.slack)


async def test_in_a_channel_it_is_told_without_details(rig: SlackRig) -> None:
    async with rig.serving_slack(ANN, BOB, chats=(CHANNEL,)) as bot:
        rig.model.call("list_dir", {"path": "."})
        began = rig.writes(f"<@{US}> what is there?", channel=CHANNEL)
        await eventually(lambda: rig.read(CHANNEL))
        await rig.quiet(bot)
        rig.writes(f"<@{US}> /why", by=BOB, channel=CHANNEL, thread_ts=began)
        await eventually(lambda: len(rig.read(CHANNEL)) == 2)
        rig.writes(f"<@{US}> /logs", channel=CHANNEL, thread_ts=began)
        await eventually(lambda: len(rig.read(CHANNEL)) == 3)
        await rig.quiet(bot)
        _, text, refused = rig.read(CHANNEL)

    assert "list_dir: done" in text
    assert not any(word in text for word in ('"path"', "price", "always"))
    assert refused == "/hearth logs is done in a private chat: write it to me there."
