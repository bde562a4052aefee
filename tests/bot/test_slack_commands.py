"""Commands as Slack's people read of them: nothing is taught that Slack would not hand to us."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from bot.commands.table import COMMANDS
from tests.bot.kit import eventually
from tests.bot.slack_kit import ANN, BARE, BOB, CHANNEL, SlackRig, slack_rigged

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


async def test_what_a_person_had_kept_is_shown_as_they_wrote_it(rig: SlackRig) -> None:
    async with rig.serving_slack(ANN) as bot:
        *_, shown = await asked(rig, "remember I type `/remind` and /jobs a lot", "memory f1")
        await rig.quiet(bot)

    assert "I type '/remind' and /jobs a lot" in shown


async def test_a_refusal_names_the_command_as_it_is_typed(rig: SlackRig) -> None:
    async with rig.serving_slack(ANN, BOB, chats=(CHANNEL,)) as bot:
        [text] = await asked(rig, "pair", by=BOB)
        await rig.quiet(bot)

    assert text == "/hearth pair is for the owner."


async def test_a_code_is_told_with_the_words_of_either_side(rig: SlackRig) -> None:
    async with rig.serving_slack(ANN) as bot:
        [text] = await asked(rig, "link")
        await rig.quiet(bot)

    found = re.search(r"`/link (\w{8})`", text)
    assert found is not None
    assert f"`/hearth link {found[1]}`" in text


async def test_who_only_types_commands_is_reminded_too_also_after_a_restart(rig: SlackRig) -> None:
    async with rig.serving_slack(ANN, hurry=50) as bot:
        await asked(rig, "remind tomorrow at 5 call Bob")
        await rig.quiet(bot)
        [card] = [seen for seen in rig.replies() if seen.blocks]
        save = next(
            element["action_id"]
            for block in card.blocks
            for element in block.get("elements", ())
            if element.get("text", {}).get("text") == "Save"
        )
        rig.slack.press(action_id=save, channel=card.channel, ts=card.ts)
        await eventually(lambda: rig.rows("select id from jobs"))
        await rig.quiet(bot)
        [(lane, person)] = rig.rows("select deliver_to, person_id from jobs")
    async with rig.serving_slack(hurry=50) as bot:
        assert await bot.access.private_chats(person) == [lane]
