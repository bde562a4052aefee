"""Commands in words of ours, as they are typed on a channel; what others wrote stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.commands import people as reception
from bot.commands.memory import commands as memory_words
from bot.commands.table import COMMANDS, unknown_text
from bot.markup.command_text import (
    NAMES,
    all_as_typed,
    as_typed,
    bare,
    on_command_line,
    slash,
)
from bot.people import approval_messages as approval_words

LANE = "slack:T0LAB.D0ANN"


def test_every_command_is_found_in_a_text() -> None:
    assert {command.name for command in COMMANDS} == NAMES


def test_a_command_in_code_stands_behind_the_word_that_slack_knows() -> None:
    text = "`/remind tomorrow at 5 call Bob` reminds you, (`/jobs`) lists, `/stop` ends"

    assert as_typed(text, "slack") == (
        "`/hearth remind tomorrow at 5 call Bob` reminds you, (`/hearth jobs`) lists, "
        "`/hearth stop` ends"
    )
    assert as_typed(text, LANE) == as_typed(text, "slack")


def test_in_a_thread_of_slack_we_are_mentioned_with_it() -> None:
    thread = "slack:T0LAB.C0GENERAL:17.5"

    assert as_typed("`/status`", thread) == "`@hearth /status`"
    assert as_typed(as_typed("`/status`", thread), thread) == "`@hearth /status`"
    assert slash("slack:T0LAB.C0GENERAL:~U0ANN") == "/hearth ", "an aside stands in no thread"
    assert slash("slack:T0LAB:U0ANN") == "/hearth ", "a person is none"
    said = unknown_text("statsu", thread, NAMES)
    assert "Did you mean `@hearth /status`? `@hearth /help` lists them." in said
    assert "/hearth " not in said


@pytest.mark.parametrize("where", ["telegram", "telegram:5", "console:local", "slacker"])
def test_elsewhere_nothing_is_changed(where: str) -> None:
    assert as_typed("`/remind`", where) == "`/remind`"
    assert all_as_typed("/remind", where) == "/remind"
    assert slash(where) == "/"


@pytest.mark.parametrize(
    "text",
    [
        "`/hearth remind`",
        "mention me: `@hearth /stop`",
        "`/memory/notes.md` and `/private.txt`",
        "`/etc` is no command",
        "- f1 “I type /remind a lot”",
        "j1 **/jobs on paper**",
        "> `/new` was said",
        "```\n`/new`\n/new\n```",
        "~~~\n`/new`\n~~~",
        "``a `/new` b``",
        "`a`/new `b`",
        "`/new",
    ],
)
def test_what_is_no_command_of_ours_stays(text: str) -> None:
    assert as_typed(text, "slack") == text


def test_after_a_block_of_code_and_a_quotation_it_goes_on() -> None:
    assert as_typed("```\n`/new`\n```\n> `/new`\n`/new`", "slack") == (
        "```\n`/new`\n```\n> `/new`\n`/hearth new`"
    )


def test_a_text_of_ours_alone_needs_no_code() -> None:
    text = "Send /resume (/usage shows it). /approve revoke exec; see /etc, /usage/x, a/new"

    assert all_as_typed(text, "slack") == (
        "Send /hearth resume (/hearth usage shows it). /hearth approve revoke exec; see /etc, "
        "/usage/x, a/new"
    )


@given(st.text(alphabet="`/> \n~newjobs“”\\."))
def test_a_second_time_changes_nothing(text: str) -> None:
    once = as_typed(text, "slack")

    assert as_typed(once, "slack") == once
    assert once.replace("/hearth ", "/") == text


@given(st.text(alphabet="`/> \n~newjobs\\"))
def test_what_a_person_said_is_shown_as_they_said_it(text: str) -> None:
    shown = f"- f1 “{bare(text)}”"

    assert as_typed(shown, "slack") == shown


@pytest.mark.parametrize(
    "usage",
    [memory_words.USE, reception.PAIR_USE, reception.LINK_USE, approval_words.USE],
)
def test_every_line_of_a_usage_is_typed_behind_it(usage: str) -> None:
    lines = as_typed(usage, "slack").splitlines()

    assert all(line.startswith("`/hearth ") for line in lines)


# --- on the command line -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("There is no job 'x'; `/jobs` lists them.", "`hearthbot schedule list` lists them."),
        ("`/job j12` shows it", "`hearthbot schedule show j12`"),
        ("`/job j12 resume` lets it go on", "`hearthbot schedule resume j12`"),
        ("`/job j12 move tomorrow at 5`", "`hearthbot schedule edit j12 --when …`"),
        ("`/memory f12` shows it", "`hearthbot memory show f12`"),
        ("`/memory forget f12 f13`", "`hearthbot memory forget f12 f13`"),
        ("nothing is begun until /resume.", 'until hearthbot chat -m "/resume".'),
        ("kept failing: 2 (/jobs)", "2 (hearthbot schedule list)"),
        ("than usual: /usage, /resume.", 'hearthbot usage, hearthbot chat -m "/resume".'),
        ("so: `/heartbeat` on or off", '`hearthbot chat -m "/heartbeat"` on or off'),
    ],
)
def test_on_the_command_line_a_command_is_named_as_it_is_typed_there(said: str, typed: str) -> None:
    assert typed in on_command_line(said)
    assert on_command_line(on_command_line(said)) == on_command_line(said)


@pytest.mark.parametrize(
    "text",
    ["in that chat /stop ends it (`/approve`)", "notes/jobs and /jobs/old", "look at `/etc`, a/b"],
)
def test_what_is_about_one_chat_and_what_is_no_command_stays(text: str) -> None:
    assert on_command_line(text) == text
