"""The card of the brake: its button lets the bot go on, and the card then says so."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.app.app import App
from bot.lab.telegram_state import SeenInTelegram
from tests.bot.kit import MEMBER, OWNER, Rig, eventually, rigged

GOING_ON = re.compile(r"Going on since [0-2][0-9]:[0-5][0-9]\.")


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rigged(tmp_path) as rig:
        rig.set(budget__brake="true", budget__brake_hour_tokens="1000")
        yield rig


def card(rig: Rig) -> SeenInTelegram | None:
    """The newest message about the brake."""
    cards = [one for one in rig.seen() if one.text.startswith("⚠️ I have stopped asking models")]
    return cards[-1] if cards else None


async def tripped(rig: Rig, bot: App) -> SeenInTelegram:
    rig.says("one")
    found = await eventually(lambda: card(rig))
    await rig.quiet(bot)
    assert isinstance(found, SeenInTelegram)
    return found


async def press(rig: Rig, bot: App, shown: SeenInTelegram, *, by: int = OWNER) -> dict[str, Any]:
    """What the bot answers to it."""
    before = len(rig.telegram.answers())
    data = "brake:resume"
    rig.telegram.callback(chat_id=OWNER, message_id=shown.message_id, data=data, user_id=by)
    await eventually(lambda: len(rig.telegram.answers()) > before)
    await rig.quiet(bot)
    return dict(rig.telegram.answers()[-1])


async def test_the_card_becomes_what_came_of_the_press(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        shown = await tripped(rig, bot)
        assert "Go on" in str(shown.markup)
        answer = await press(rig, bot, shown)
        rig.says("two")
        await eventually(lambda: "You said: two" in rig.texts())

    closed = card(rig)
    assert closed is not None
    assert closed.message_id == shown.message_id
    assert closed.text.startswith(shown.text)
    assert GOING_ON.fullmatch(closed.text.splitlines()[-1])
    assert not (closed.markup or {}).get("inline_keyboard")
    assert str(answer["text"]).startswith("I go on.")


async def test_a_press_after_the_word_only_takes_the_button_away(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        shown = await tripped(rig, bot)
        rig.says("/resume")
        await rig.quiet(bot)
        await press(rig, bot, shown)

    closed = card(rig)
    assert closed is not None
    assert closed.text.endswith("That was taken care of already.")


async def test_somebody_elses_press_leaves_the_card_as_it_is(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        shown = await tripped(rig, bot)
        answer = await press(rig, bot, shown, by=MEMBER)

    left = card(rig)
    assert left is not None
    assert (left.text, left.markup) == (shown.text, shown.markup)
    assert answer["text"] == "That is for the owner."
