"""The tools of a whole bot, and the guide to them."""

from __future__ import annotations

import re

from agent.tools.tool import Effect, ToolCard
from bot.app.app import App
from bot.settings.load import load
from tests.bot.kit import Rig
from tests.checkout import ROOT

WHO = {
    Effect.NONE: "everybody",
    Effect.PERSON: "owner, members",
    Effect.WORKSPACE: "the owner",
    Effect.OUTSIDE: "the owner",
}
"""Who may wish for a tool, in the words of the guide."""

MAY_BE_ABSENT = {"i2c", "spi"}
"""Offered only where the machine has such buses."""


async def cards_of(rig: Rig) -> list[ToolCard]:
    """What there is with the settings of this rig."""
    settings = load(rig.home.path, rig.env)
    async with App(rig.home, settings, env=rig.env, clock=rig.clock) as app:
        await app.ready(toolbox := app.abilities.toolbox)
        return [tool.card for tool in toolbox.tools()]


async def test_the_guide_lists_every_tool_with_its_group_and_who_may_wish_for_it(rig: Rig) -> None:
    guide = (ROOT / "docs" / "tools.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z]+) \| (.+?) \| (.+?) \|$", guide, re.MULTILINE)

    cards = await cards_of(rig)

    listed = [
        (group, name, who)
        for group, tools, who in rows
        for name in re.findall(r"`([a-z0-9_]+)`", tools.partition(":")[0])
        if name not in MAY_BE_ABSENT
    ]
    unattended = ("system", "nothing_to_report", "jobs alone")
    assert sorted(listed) == sorted(
        unattended if card.name == unattended[1] else (card.group, card.name, WHO[card.effect])
        for card in cards
        if card.name not in MAY_BE_ABSENT
    )
