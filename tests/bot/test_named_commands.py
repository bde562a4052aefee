"""Wherever a text of ours names a command, it is named as it is typed where the text is read.

In the code each stands in code marks, by which `bot.markup.command_text` finds it on the way out; a
bare one would be told to people in Slack, where it is nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bot.markup.command_text import NAMES, outside_of_code
from tests.bot.kit import eventually
from tests.bot.slack_kit import ANN, BARE, SlackRig, slack_rigged
from tests.checkout import ROOT

PACKAGES = ("agent", "bot", "memory", "scheduler")

IN_A_TERMINAL = ("bot/cli/", "bot/doctor", "bot/setup", "bot/lab/")
"""Read at the machine itself, outside of any chat."""

ALLOWED = {
    (
        "agent/budget/circuit_breaker.py",
        "/resume",
    ): "what a button stands for, as the terminal types it",
    (
        "agent/prompt/layers/knowledge.py",
        "The person ended this turn with /stop.",
    ): "for the model alone",
    (
        "bot/people/approval_messages.py",
        "That question is not known here (any more). /approve shows what is open.",
    ): "pops up without markup; `bot.people.approvals` names it as it is typed",
    (
        "bot/people/approval_messages.py",
        "{} /approve revoke {} takes it back.",
    ): "pops up without markup; `bot.people.approvals` names it as it is typed",
    (
        "bot/channels/wire.py",
        "/link(?:@[A-Za-z0-9_]{1,64})?[ \\t]{1,9}([A-Za-z0-9]{8})[ \\t\\n]{0,9}",
    ): "reads what is typed",
}
"""Texts that name a command outside of code marks, each with the reason."""

NAMED = re.compile(rf"(?<![\w/.}}<-])/(?:{'|'.join(sorted(NAMES))})(?![\w/-]|\.\w)")


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[SlackRig]:
    async with slack_rigged(tmp_path) as made:
        yield made


# --- in the code ---------------------------------------------------------------------------------


def texts(tree: ast.AST) -> Iterator[str]:
    """Every string of a module but docstrings; what is filled in stands as {}."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            skipped.update(node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
            )


def bare_ones() -> Iterator[tuple[str, str]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            where = path.relative_to(ROOT).as_posix()
            if where.startswith(IN_A_TERMINAL):
                continue
            code = path.read_text(encoding="utf-8")
            if not NAMED.search(code):
                continue
            for text in texts(ast.parse(code)):
                if NAMED.search(text) and NAMED.search(outside_of_code(text)):
                    yield where, text


def test_a_text_of_ours_names_commands_in_code_marks() -> None:
    found = set(bare_ones())

    assert found - ALLOWED.keys() == set(), (
        "Put the command into code marks (`/new`), so that it is told as it is typed in Slack."
    )
    assert ALLOWED.keys() - found == set(), "no longer there"


@pytest.mark.parametrize(
    "text",
    ["/new", "Send /resume.", "(/usage shows it)", "/approve, /agents", 'say "/stop"', "x /job j1"],
)
def test_a_bare_command_is_found(text: str) -> None:
    assert NAMED.search(outside_of_code(text))


@pytest.mark.parametrize(
    "text",
    ["`/new`", "(`/job j12 pause`)", "a/new", "/new/x", "/usage.json", "/newer", "{}/new", "//new"],
)
def test_what_is_marked_or_is_no_command_is_not(text: str) -> None:
    assert not NAMED.search(outside_of_code(text))


# --- in Slack ------------------------------------------------------------------------------------


async def told(rig: SlackRig, count: int, *, to: str = ANN) -> list[str]:
    """The bot's messages to a person, once there are so many; no command is bare in them."""
    await eventually(lambda: len(rig.read(to=to)) >= count)
    assert [text for text in rig.read(to=to) if BARE.search(text)] == []
    return rig.read(to=to)


async def test_what_was_said_before_the_trouble_stays_as_the_model_wrote_it(rig: SlackRig) -> None:
    said = "In that game `/new` and /new begin a round."
    rig.foreign.add(said)
    rig.model.say(said)
    async with rig.serving_slack(ANN) as bot:
        rig.writes("how do I begin?")
        await rig.shows(said)
        await rig.quiet(bot)


async def test_the_brake_says_how_to_go_on(rig: SlackRig) -> None:
    rig.env |= {"HEARTHBOT_BUDGET__BRAKE": "true", "HEARTHBOT_BUDGET__BRAKE_HOUR_TOKENS": "1000"}
    async with rig.serving_slack(ANN) as bot:
        rig.writes("one")
        await told(rig, 2)
        rig.writes("two")
        texts_now = await told(rig, 3)
        rig.slack.command(text="status")
        status = (await told(rig, 4))[-1]
        rig.slack.command(text="usage")
        await told(rig, 5)
        rig.slack.command(text="job j99")
        failed = (await told(rig, 6))[-1]
        await rig.quiet(bot)

    assert "There is no job 'j99'; `/hearth jobs` lists them." in failed
    notice = next(text for text in texts_now if text.startswith("⚠️ I have stopped asking models"))
    assert "send `/hearth resume` and I go on; `/hearth usage` shows what used it." in notice
    assert texts_now[-1].startswith("I have paused myself: ")
    assert "Send `/hearth resume` and I go on" in texts_now[-1]
    assert "than usual: `/hearth usage`, `/hearth resume`." in status
