"""Telegram's menus of commands: each person sees what they may type, in plain text."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bot.commands.table import COMMANDS
from bot.lab.telegram import refusal
from memory.records.messages import Role
from tests.bot.kit import MEMBER, OWNER, Rig, eventually, rigged

LATER = 7


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rigged(tmp_path) as rig:
        yield rig


def told(rig: Rig, method: str = "setMyCommands") -> dict[int, list[dict[str, str]]]:
    """The menus that were registered last, by chat; under 0 that of everybody else."""
    found = {}
    for call in rig.telegram.calls(method):
        scope = json.loads(str(call.params["scope"]))
        assert scope["type"] == ("chat" if "chat_id" in scope else "default")
        found[int(scope.get("chat_id", 0))] = json.loads(str(call.params.get("commands", "[]")))
    return found


def names(menu: list[dict[str, str]]) -> list[str]:
    return [row["command"] for row in menu]


def of(role: Role) -> list[str]:
    return [command.name for command in COMMANDS if role in command.roles]


async def test_each_sees_the_commands_that_they_may_type(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER):
        await eventually(lambda: {0, OWNER, MEMBER} <= set(told(rig)))
        menus = told(rig)

    assert names(menus[OWNER]) == of(Role.OWNER)
    assert names(menus[MEMBER]) == of(Role.MEMBER)
    assert names(menus[0]) == of(Role.GUEST)
    assert "pause" in names(menus[OWNER])
    assert "pause" not in names(menus[MEMBER])
    assert "remind" not in names(menus[0])


async def test_a_menu_is_plain_text(rig: Rig) -> None:
    async with rig.running(OWNER):
        await eventually(lambda: OWNER in told(rig))
        menu = {row["command"]: row["description"] for row in told(rig)[OWNER]}

    assert menu["remind"] == "remind you of something: /remind tomorrow at 5 call Bob"
    assert not any("`" in text for text in menu.values())


async def test_another_role_has_another_menu_once_something_comes_in(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        await eventually(lambda: MEMBER in told(rig))
        await bot.access.set_role(f"telegram:{MEMBER}", Role.GUEST)
        rig.says("/status")
        await eventually(lambda: MEMBER in told(rig, "deleteMyCommands"))
        await bot.access.approve(f"telegram:{LATER}")
        rig.says("/status")
        await eventually(lambda: LATER in told(rig))


async def test_a_menu_that_is_refused_costs_the_others_nothing(rig: Rig) -> None:
    rig.telegram.fault("setMyCommands", action=refusal(400, "no"))
    with capture_logs() as logs:
        async with rig.running(OWNER) as bot:
            await eventually(lambda: OWNER in told(rig))
            rig.says("hello")
            await rig.reads("You said: hello")
            await rig.quiet(bot)

    assert [one["log_level"] for one in logs if one["event"] == "telegram.no_menu"] == ["warning"]
