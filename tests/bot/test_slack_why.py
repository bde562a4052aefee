"""`/why` and `/logs` in Slack: directly, below an answer, and with the form of a fact."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.lab.slack_state import SeenInSlack
from tests.bot.kit import eventually
from tests.bot.slack_kit import ANN, BOB, CHANNEL, US, SlackRig, judge_slack, slack_rigged


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[SlackRig]:
    async with slack_rigged(tmp_path) as made:
        yield made


async def commanded(rig: SlackRig, text: str, *, by: str = ANN) -> str:
    """What a command in the direct message says."""
    before = len(rig.read(to=by))
    rig.slack.command(text=text, user=by)
    await eventually(lambda: len(rig.read(to=by)) > before)
    return rig.read(to=by)[-1]


def actions(post: SeenInSlack) -> dict[str, str]:
    """The action ids of a post's buttons by their labels."""
    return {
        element["text"]["text"]: element["action_id"]
        for block in post.blocks or ()
        if block["type"] == "actions"
        for element in block["elements"]
    }


async def test_it_explains_the_last_answer_and_the_one_that_a_thread_begins_with(
    rig: SlackRig,
) -> None:
    async with rig.serving_slack(ANN) as bot:
        rig.model.call("list_dir", {"path": "."})
        rig.writes("what is there?")
        await eventually(lambda: rig.read())
        await rig.quiet(bot)
        older = rig.replies()[-1].ts
        rig.writes("thanks")
        await eventually(lambda: len(rig.read()) == 2)
        await rig.quiet(bot)

        last = await commanded(rig, "why")
        rig.slack.post(text=f"<@{US}> /why", user=ANN, thread_ts=older)
        await eventually(lambda: len(rig.read()) == 4)
        [below] = [one.text for one in rig.replies() if one.thread_ts == older != one.ts]
        await rig.quiet(bot)

    assert last.startswith("*Why this answer*: ")
    assert "list_dir" not in last
    assert "list_dir" in below
    judge_slack(rig.slack)


async def test_facts_are_corrected_by_a_form_and_forgotten_by_the_card(rig: SlackRig) -> None:
    async with rig.serving_slack(ANN, hurry=50) as bot:
        await commanded(rig, "remember I take my tea without milk")
        rig.writes("how do I take my tea?")
        await eventually(lambda: len(rig.read()) == 2)
        await rig.quiet(bot)
        text = await commanded(rig, "why")
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
