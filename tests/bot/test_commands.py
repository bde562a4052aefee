"""Slash commands: one table, none of them calls a model."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from bot.app.app import App
from bot.commands.table import COMMANDS, NO_COMMAND, find, given, unknown_text
from bot.inbox import commands as command_desk
from bot.markup.command_text import NAMES
from memory.records.messages import Address, IncomingMessage, Role
from scheduler.clock.misfire import first_due
from tests.bot.kit import GROUP, MEMBER, OWNER, Rig, SlowTool, eventually
from tests.scheduler.jobs_kit import job as new_job

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


async def wants(bot: App, name: str, *, by: int) -> None:
    """A reminder of theirs, each day."""
    person = bot.access.who(f"telegram:{by}")
    assert person is not None
    new = replace(new_job(name), person_id=person.id, deliver_to=f"telegram:{by}")
    assert await bot.calendar.schedules.jobs.add(new, first_due(new.when, after=bot.clock.now()))


async def test_a_status_names_nobodys_jobs_but_those_of_who_asks(rig: Rig) -> None:
    rig.model.calls_together(("get_status", {}))
    async with rig.running(OWNER, MEMBER) as bot:
        await wants(bot, "see the doctor", by=MEMBER)
        await wants(bot, "water the plants", by=OWNER)
        rig.says("/status")
        await eventually(partial(rig.wrote, 1))
        rig.says("/status", by=MEMBER)
        await eventually(partial(rig.wrote, 1, chat=MEMBER))
        machine = "\n".join(await bot.status.lines(for_owner=True))
        rig.says("how are you?")
        await eventually(partial(rig.wrote, 2))
        await rig.quiet(bot)

    for told in (rig.texts()[0], machine, str(rig.model.requests[-1]["messages"][-1])):
        assert "water the plants" in told
        assert "doctor" not in told
        assert "Other people's jobs that wait for their time: 1" in told
    assert "plants" not in rig.texts(MEMBER)[0]


async def test_where_several_own_the_bot_each_reads_of_their_own_jobs(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        await wants(bot, "see the doctor", by=MEMBER)
        await wants(bot, "water the plants", by=OWNER)
        await bot.access.set_role(f"telegram:{MEMBER}", Role.OWNER)
        second = "\n".join(await bot.status.lines(for_owner=True, lane=f"telegram:{MEMBER}"))
        unknown = "\n".join(await bot.status.lines(for_owner=True))
        named = await bot.access.recognise(f"telegram:{MEMBER}", is_group=False)
        assert named is not None
        lines = await bot.status.lines(for_owner=True, lane="slack:T0.D0", person_id=named.id)

    for told in (second, "\n".join(lines)):
        assert "doctor" in told
        assert "plants" not in told
    assert "doctor" not in unknown
    assert "plants" not in unknown


async def test_the_assistant_reads_a_member_their_own_lines_as_the_command_does(rig: Rig) -> None:
    """In a group nobody's own lines are read out."""
    async with rig.running(OWNER, MEMBER) as bot:
        await bot.access.approve(f"telegram:{GROUP}")
        rig.says("/language Dutch", by=MEMBER)
        await eventually(partial(rig.wrote, 1, chat=MEMBER))

        alone = await bot.status.told(for_owner=False, lane=f"telegram:{MEMBER}")
        owners = await bot.status.told(for_owner=True, lane=f"telegram:{OWNER}")
        together = await bot.status.told(for_owner=False, lane=f"telegram:{GROUP}")
        stranger = await bot.status.told(for_owner=False, lane="telegram:77")

    assert "Your language: Dutch (Nederlands)" in alone.lines
    assert "Used today by you: nothing" in alone.lines
    assert "Used today by you: nothing" in owners.lines
    assert "Your language: Dutch (Nederlands)" not in owners.lines
    for told in (together, stranger):
        assert not any(line.startswith(("Your ", "Used today")) for line in told.lines)


# --- words that are no command -----------------------------------------------------------------


def said(text: str, channel: str = "telegram", **more: Any) -> IncomingMessage:
    """Somebody's message."""
    address = Address(channel=channel, chat_id="5")
    return IncomingMessage(address=address, message_id="1", sender_id="5", text=text, **more)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("/starrt", "start"),
        ("/helpme", "help"),
        ("/agent", "agents"),
        ("/Remimd@some_bot", "remind"),
        ("/rmind tomorrow at 5 call Bob", "remind"),
    ],
)
def test_a_word_that_is_nearly_a_command_gives_one_that_says_so(text: str, meant: str) -> None:
    found = given(said(text))

    assert found is not None
    assert found[0] is NO_COMMAND
    assert f"Did you mean `/{meant}`?" in unknown_text(found[1], "telegram", [*NAMES, "start"])


@pytest.mark.parametrize(
    "text",
    ["/shrug", "/etc/hosts", "/tmp is full", "starrt", "/", "/hel-p", "/" + "stop" * 30, "/é"],
)
def test_other_words_after_a_slash_are_for_the_agent(text: str) -> None:
    assert given(said(text)) is None


def test_in_a_group_a_word_is_looked_at_only_where_the_bot_is_addressed() -> None:
    assert given(said("/starrt", is_group=True)) is None
    assert given(said("/starrt@us", is_group=True, mentions_bot=True)) is not None


def test_on_slack_each_single_word_behind_ours_is_a_command_or_none() -> None:
    found = given(said("/foo", "slack"))

    assert found == (NO_COMMAND, "foo")
    assert unknown_text("foo", "slack", NAMES) == (
        "There is no `/hearth foo`. `/hearth help` lists them. What is meant for me is written "
        "without `/hearth`."
    )


async def test_an_unknown_command_costs_no_call(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        rig.says("/starrt")
        await rig.reads("There is no /starrt. Did you mean /start? /help lists them.")
        rig.says("/heartbeet", by=MEMBER)
        await eventually(partial(rig.wrote, 1, chat=MEMBER))
        await rig.quiet(bot)

    assert rig.model.requests == []
    assert rig.inbox() == ["command", "command"]
    assert "heartbeat" not in rig.texts(MEMBER)[0], "it is the owner's alone"


@pytest.mark.parametrize(
    ("text", "rest"),
    [("/deny", "deny"), ("/deny d6c6eb", "d6c6eb deny"), ("/start x", ""), ("/approve x", "x")],
)
def test_a_name_for_another_command_brings_what_it_means(text: str, rest: str) -> None:
    found = find(text)

    assert found is not None
    assert (found[0].name, found[1]) == ("help" if "start" in text else "approve", rest)


# --- words that a command does not take --------------------------------------------------------


async def test_words_behind_a_command_that_takes_none_are_named(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        rig.says("/new with *words*")
        rig.says("/start from_a_link")
        await eventually(partial(rig.wrote, 2))
        await rig.quiet(bot)

    new, start = rig.texts()
    assert new.startswith(
        "/new takes no words after it, so I left out “with *words*”.\n\nA new conversation begins."
    )
    assert start.startswith("Just write to me.")


async def test_all_skills_are_shown_to_who_asks_for_all(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        for number, text in enumerate(("/skills", "/skills ALL", "/skills mail"), start=1):
            rig.says(text)
            await eventually(partial(rig.wrote, number))
        await rig.quiet(bot)

    few, whole, odd = rig.texts()
    assert "/skills all shows all of them." in few
    assert "and 9 more" in few
    assert "more" not in whole.partition("\n\nSkills")[0]
    assert odd == f"/skills takes no words after it but all, so I left out “mail”.\n\n{few}"


async def test_a_pause_for_a_time_is_refused(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        rig.says("/pause 5m")
        await eventually(partial(rig.wrote, 1))
        assert not bot.usage.is_paused
        rig.says("/pause")
        await eventually(partial(rig.wrote, 2))
        rig.says("/resume j1")
        await eventually(partial(rig.wrote, 3))
        assert bot.usage.is_paused
        await rig.quiet(bot)

    first, _, third = rig.texts()
    assert first.startswith("Nothing was paused: I cannot pause for a time")
    assert third == "Nothing was resumed: /resume alone lets all go on, /job j12 resume one job."


async def test_a_guest_is_not_offered_what_guests_may_not_do(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        rig.says("/help", by=MEMBER)
        await eventually(partial(rig.wrote, 1, chat=MEMBER))
        await bot.access.set_role(f"telegram:{MEMBER}", Role.GUEST)
        rig.says("/help", by=MEMBER)
        await eventually(partial(rig.wrote, 2, chat=MEMBER))
        await rig.quiet(bot)

    member, guest = rig.texts(MEMBER)
    for name in ("/remember –", "/approve –"):
        assert name in member
        assert name not in guest
    assert "/memory –" in guest
