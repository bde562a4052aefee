"""Slash commands: one table, none of them calls a model."""

from __future__ import annotations

import time
from functools import partial

import pytest

from bot.commands.table import COMMANDS, find
from bot.inbox import commands as command_desk
from tests.bot.kit import MEMBER, OWNER, Rig, SlowTool, eventually

# --- the table ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("/help", "help", ""),
        ("/start", "help", ""),
        ("/HELP", "help", ""),
        ("/stop@some_bot", "stop", ""),
        ("/new  with words ", "new", "with words"),
        ("/new\nwith a line", "new", "with a line"),
        ("/status@bot x", "status", "x"),
    ],
)
def test_a_command_is_found_with_what_stands_behind_it(text: str, name: str, rest: str) -> None:
    found = find(text)

    assert found is not None
    assert (found[0].name, found[1]) == (name, rest)


@pytest.mark.parametrize(
    "text", ["", "/", "help", "/helpme", "/ help", "//help", "/help!", "see /help", "/help@", "/é"]
)
def test_other_words_are_for_the_agent(text: str) -> None:
    assert find(text) is None


def test_names_are_fit_for_telegrams_menu() -> None:
    assert all(command.name.isalnum() and command.name.islower() for command in COMMANDS)
    assert all(1 <= len(command.help) <= 256 for command in COMMANDS)
    assert len({command.name for command in COMMANDS}) == len(COMMANDS)


# --- through the bot ---------------------------------------------------------------------------


async def test_commands_answer_without_a_model(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        for text in ("/help", "/start", "/status", "/new", "/stop"):
            rig.says(text)
        await eventually(partial(rig.wrote, 5))
        rig.says("/status", by=MEMBER)
        await eventually(partial(rig.wrote, 1, chat=MEMBER))
        await rig.quiet(bot)

    help_text, start_text, status_text, new_text, stop_text = rig.texts()
    assert all(f"/{command.name}" in help_text for command in COMMANDS)
    assert start_text == help_text
    assert "Channels: console, telegram" in status_text
    assert new_text.startswith("A new conversation begins.")
    assert stop_text == "Nothing was running here."
    assert "Channels" not in rig.texts(MEMBER)[0], "the machine's side is the owner's"
    assert rig.model.requests == []
    assert rig.inbox() == ["command"] * 6


async def test_a_message_after_new_is_in_a_new_conversation(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        rig.says("one")
        await eventually(partial(rig.wrote, 1))
        rig.says("/new")
        rig.says("two")
        await eventually(partial(rig.wrote, 3))
        await rig.quiet(bot)

    assert rig.heard() == ["two"]
    assert rig.rows("select count(*) from conversations") == [(2,)]


async def test_stop_ends_a_model_call_and_what_waits_behind_it(rig: Rig) -> None:
    rig.set(turns__queue="followup")
    rig.model.say("too late", wait_s=60)
    async with rig.running(OWNER, MEMBER) as bot:
        rig.says("one")
        await eventually(lambda: len(rig.model.requests) == 1)
        rig.says("two")
        rig.says("three")
        await eventually(partial(rig.took, 3))
        began = time.monotonic()
        rig.says("/stop")
        await rig.reads("Stopped, with 2 more.")
        assert time.monotonic() - began < 2
        rig.says("four")
        await eventually(partial(rig.wrote, 2))
        await rig.quiet(bot)

    assert len(rig.texts()) == 2
    assert "four" in str(rig.model.requests[-1]["messages"][-1])
    assert rig.inbox() == ["cancelled", "cancelled", "cancelled", "command", "replied"]
    assert len(rig.model.requests) == 2


async def test_stop_in_one_chat_leaves_the_others_alone(rig: Rig) -> None:
    rig.model.say("for the member", wait_s=0.5)
    async with rig.running(OWNER, MEMBER) as bot:
        rig.says("hello", by=MEMBER)
        await eventually(lambda: len(rig.model.requests) == 1)
        rig.says("/stop")
        await rig.reads("Nothing was running here.")
        await rig.reads("for the member", chat=MEMBER)
        await rig.quiet(bot)


async def test_a_turn_that_was_stopped_is_not_revived_by_a_restart(rig: Rig) -> None:
    rig.model.say("too late", wait_s=60)
    async with rig.running(OWNER):
        rig.says("one")
        await eventually(lambda: len(rig.model.requests) == 1)
        rig.says("/stop")
        await rig.reads("Stopped.")

    async with rig.running() as bot:
        await rig.quiet(bot)

    assert len(rig.model.requests) == 1
    assert rig.texts() == ["Stopped."]


# --- queue modes -------------------------------------------------------------------------------


async def test_collect_joins_what_arrives_within_the_time(rig: Rig) -> None:
    rig.set(turns__queue="collect", turns__collect_s=0.5)
    async with rig.running(OWNER) as bot:
        for text in "abc":
            rig.says(text)
        await eventually(partial(rig.wrote, 1))
        await rig.quiet(bot)

    assert len(rig.model.requests) == 1
    assert rig.heard() == ["a\nb\nc"]
    assert rig.inbox() == ["replied", "joined", "joined"]


@pytest.mark.case("CH-15")
async def test_a_message_during_a_tool_steers_the_turn(rig: Rig, slow_tool: SlowTool) -> None:
    rig.model.calls_together(("wait_here", {}), ("write_file", {"path": "x.txt", "content": "x"}))
    rig.model.say("as you wish", when={"user~": "only the first"})
    async with rig.running(OWNER, MEMBER) as bot:
        rig.says("do two things")
        await slow_tool.running.wait()
        rig.says("only the first")
        rig.says("of somebody else", by=MEMBER)
        await eventually(partial(rig.took, 3))
        await rig.reads("You said: of somebody else", chat=MEMBER)
        slow_tool.go.set()
        await rig.reads("as you wish")
        await rig.quiet(bot)

    assert rig.heard() == ["do two things", "only the first"]
    assert not (rig.home.workspace / "x.txt").exists(), "the rest of the step is skipped"
    assert rig.inbox() == ["replied", "joined", "replied"]


async def test_stop_ends_a_tool(rig: Rig, slow_tool: SlowTool) -> None:
    rig.model.call("wait_here")
    async with rig.running(OWNER) as bot:
        rig.says("wait")
        await slow_tool.running.wait()
        began = time.monotonic()
        rig.says("/stop")
        await rig.reads("Stopped.")
        assert time.monotonic() - began < 2
        await rig.quiet(bot)

    assert rig.inbox() == ["cancelled", "command"]


async def test_help_and_snippets_offer_texts_to_tap_in_a_private_chat_alone(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        rig.says("/snippets")
        await eventually(lambda: rig.wrote(1))
        rig.says("/status")
        await eventually(lambda: rig.wrote(2))
        await rig.quiet(bot)

    first, second = (call.params for call in rig.telegram.calls("sendMessage"))
    assert "What can you do for me?" in str(first["reply_markup"])
    assert "reply_markup" not in second
    assert "What can you do for me?" in rig.texts()[0]


async def test_a_command_that_breaks_is_answered_and_does_not_end_the_bot(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> str:
        raise OverflowError("date value out of range")

    async with rig.running(OWNER) as bot:
        with monkeypatch.context() as patch:
            patch.setattr(command_desk, "answer", broken)
            rig.says("/status")
            await eventually(partial(rig.wrote, 1))
        rig.says("/help")
        await eventually(partial(rig.wrote, 2))
        await rig.quiet(bot)

    first, second = rig.texts()
    assert first.startswith("/status did not work, because of a fault in the bot itself")
    assert "OverflowError" not in first
    assert "/help" in second
