"""What commands tell, to whom, and what they say to words that they do not know."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from bot.app.app import App
from bot.commands.table import NO_COMMAND, find, given, unknown_text
from bot.markup.command_text import NAMES
from memory.records.messages import Address, IncomingMessage, Role
from scheduler.clock.misfire import first_due
from tests.bot.kit import GROUP, MEMBER, OWNER, Rig, eventually
from tests.scheduler.jobs_kit import job as new_job


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
