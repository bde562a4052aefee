"""`hearthbot skills`, as somebody types it: where no bot runs, and beside one that does."""

from __future__ import annotations

import json
import os
import pty
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from bot.cli.skills.commands import list_skills, show, why
from bot.settings.home import Home, prepare
from memory.database.connection import Database
from scheduler.clock.machine import SystemClock
from tests.agent.skills.given import put
from tests.agent.skills.workbench import Workbench
from tests.bot.cli.cli_kit import Group, beside_a_bot, on_terminal
from tests.fakes import FixedClock
from tests.fork_server import plain_env, start

EXPENSES = ("metadata: {keywords: expenses}",)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    home = Home(tmp_path / "home")
    monkeypatch.setenv("HEARTHBOT_HOME", str(home.path))
    prepare(home)
    return home


SKILLS = Group("skills")
typed, said, refused, as_json = SKILLS.typed, SKILLS.said, SKILLS.refused, SKILLS.answer


def from_outside(tmp_path: Path, *lines: str, body: str = "Do it.", name: str = "mine") -> str:
    return str(put(tmp_path / "outside", name, *lines, body=body))


# --- looking -----------------------------------------------------------------------------------


def test_a_fresh_home_lists_what_is_shipped() -> None:
    lines = [line.split("\t") for line in said("list").splitlines()]

    assert ["summarize", "skill", "shipped", "0", "usable", "in use", "9"] in lines
    assert all(len(line) == 7 for line in lines), "nothing shipped has a problem"
    names = {row["name"] for row in as_json("list")["skills"]}
    assert {line[0] for line in lines} == names


def test_a_skill_is_shown_in_words() -> None:
    shown = said("show", "email-triage")

    assert shown.startswith("email-triage\n")
    assert "a playbook: its instructions join the prompt" in shown
    assert "when a message says " in shown
    assert "Brought in by, for example:" in shown
    assert as_json("show", "email-triage")["kind"] == "playbook"


def test_why_explains_that_nothing_was_picked_and_what_to_do() -> None:
    told = said("why", "please file my expenses")

    assert told.startswith("For the message 'please file my expenses':\n\nNothing was picked: ")
    assert "Came close, and was not picked:\n  file-operations (playbook, shipped)" in told
    assert "How it is decided:" in told
    assert "hearthbot skills playbook set NAME" in told


def test_why_says_what_was_picked_by_what(home: Home) -> None:
    put(home.workspace / "skills", "filing", *EXPENSES)

    told = said("why", "please file my expenses")

    assert "Picked:\n  filing (playbook, workspace)\n      the keyword 'expenses' stands" in told
    assert "Nothing was picked" not in told
    assert "code-review" not in told
    assert "code-review (skill, shipped)" in said("why", "please file my expenses", "--all")
    found = as_json("why", "please file my expenses")["skills"]
    assert [one["name"] for one in found if one["verdict"] == "picked"] == ["filing"]


def test_why_names_a_rule_of_the_settings(home: Home) -> None:
    home.config.write_text(
        '[[prompt.force_include]]\npatterns = ["expense"]\nskills = ["summarize"]\n'
    )
    home.config.chmod(0o600)

    told = said("why", "please file my expenses")

    assert "  summarize (skill, shipped)\n      the rule prompt.force_include[0], whose" in told
    assert "Rules of your settings that fit:\n  prompt.force_include[0]: 'expense' fits" in told


# --- validate ----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["file", "above", "archive", "name"])
def test_problems_are_found_however_the_skill_is_named(
    home: Home, tmp_path: Path, how: str
) -> None:
    folder = put(home.workspace / "skills", "mine", "allowed-tools: {a: b}")
    (folder / "tests.yaml").write_text("- must: match\n")
    archive = shutil.make_archive(str(tmp_path / "mine"), "zip", folder.parent, "mine")
    what = {
        "file": str(folder / "SKILL.md"),
        "folder": str(folder),
        "above": str(folder.parent),
        "archive": archive,
        "name": "mine",
    }[how]

    wrong = refused("validate", what)

    assert "SKILL.md:4: allowed-tools" in wrong
    assert "1 error" in wrong or "2 errors" in wrong


def test_all_of_a_home_is_checked_and_what_is_shipped_is_clean(home: Home) -> None:
    assert " 0 errors, 0 warnings." in said("validate")
    put(home.workspace / "skills", "mine", "description: twice")

    assert "workspace/skills/mine/SKILL.md:4: " in refused("validate")


# --- trigger tests -----------------------------------------------------------------------------


def test_trigger_tests_tell_what_failed_and_why(home: Home) -> None:
    folder = put(home.workspace / "skills", "mine", *EXPENSES)
    (folder / "tests.yaml").write_text("- message: my expenses\n- message: my costs\n")

    told = refused("test", "mine")

    assert told == (
        "FAIL mine: 1 of 2 tests failed\n"
        "workspace/skills/mine/tests.yaml:2: 'my costs' must match\n"
        "    mine does not match: none of its keywords stands in the message ('expenses')\n"
        "1 test passed, 1 failed.\n"
    )


# --- deciding ----------------------------------------------------------------------------------


def test_a_skill_is_installed_looked_at_approved_and_removed(tmp_path: Path) -> None:
    path = from_outside(tmp_path, *EXPENSES, body="Paste your API keys here.")

    installed = said("install", path)
    waiting = said("why", "my expenses")
    approved = said("approve", "mine")
    used = said("why", "my expenses")
    removed = said("remove", "mine")

    assert installed.startswith("Look twice at:\n  SKILL.md:6: asks for keys or passwords\n")
    assert "hearthbot skills approve mine" in installed
    assert "Nothing was picked" in waiting
    assert "it is in quarantine" in waiting
    assert "Paste your API keys here." in approved, "what is approved is shown"
    assert "Approving it means: " in approved
    assert approved.endswith("mine is approved. It is in use.\n")
    assert "Picked:\n  mine (playbook, workspace)" in used
    assert removed == "mine is removed.\n"


def test_installing_twice_needs_a_word(tmp_path: Path) -> None:
    path = from_outside(tmp_path)
    said("install", path)
    said("approve", "mine")

    assert "there is a skill mine in the workspace already" in refused("install", path)
    said("install", path, "--replace")

    assert as_json("show", "mine")["state"] == "quarantined"


def test_a_skill_by_the_clock_is_switched() -> None:
    cost, done = said("enable", "morning-briefing").splitlines()

    assert cost.startswith("What it will cost cannot be told: the bot has no owner yet")
    assert done.startswith("morning-briefing is on: 0 6 * * *.")
    assert as_json("disable", "morning-briefing") == {
        "name": "morning-briefing",
        "state": "off",
        "text": "morning-briefing is off.",
    }
    assert "has no schedule" in refused("enable", "summarize")


def test_removing_says_what_comes_to_light(home: Home) -> None:
    put(home.workspace / "skills", "summarize")

    assert said("remove", "summarize") == (
        "summarize is removed. Another one of this name is there now: "
        "shipped/skills/summarize/SKILL.md, in use.\n"
    )
    assert "is a shipped skill" in refused("remove", "summarize")
    assert refused("remove", "nope") == "there is no skill 'nope', so nothing was removed\n"


def test_a_playbook_of_ones_own_is_set_changed_and_removed(tmp_path: Path) -> None:
    (tmp_path / "steps.md").write_text("\ufeffName the receipts.")

    first = said(
        *("playbook", "set", "mine", "--keywords", "expenses, receipt"),
        *("--file", str(tmp_path / "steps.md")),
    )
    said("playbook", "set", "mine", "--file", "-", "--priority", "5", given="One by one.")
    shown = as_json("show", "mine")

    assert first == (
        "The playbook mine is stored and in use. It comes in when a message has one of: "
        "expenses, receipt\n"
    )
    assert (shown["text"], shown["priority"], shown["state"]) == ("One by one.", 5, "usable")
    assert shown["front_matter"]["keywords"] == ["expenses", "receipt"]
    assert "Picked:\n  mine (playbook, database)" in said("why", "my expenses")
    assert said("playbook", "remove", "mine") == "mine is removed.\n"
    assert "no stored playbook 'mine'" in refused("playbook", "remove", "mine")


# --- on a terminal -----------------------------------------------------------------------------


def at_a_terminal(home: Home, *words: str, answer: str) -> tuple[int, str]:
    """The command in a process of its own, with a terminal on which somebody answers."""
    ours, theirs = pty.openpty()
    env = plain_env(HEARTHBOT_HOME=str(home.path), COLUMNS="100")
    process = start("bot", ["skills", *words], env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, answer.encode())
    seen = b""
    try:
        while piece := os.read(ours, 65_536):
            seen += piece
    except OSError:
        pass  # How a terminal says that the other side is gone.
    os.close(ours)
    return process.wait(timeout=60), seen.decode(errors="replace")


def test_an_approval_is_asked_for_at_a_terminal(home: Home, tmp_path: Path) -> None:
    said("install", from_outside(tmp_path))

    no, seen = at_a_terminal(home, "approve", "mine", answer="n\n")
    state = as_json("show", "mine")["state"]
    yes, _ = at_a_terminal(home, "approve", "mine", answer="y\n")

    assert (no, yes) == (1, 0)
    assert "Approve it?" in seen
    assert state == "quarantined"
    assert as_json("show", "mine")["state"] == "usable"


def test_what_others_wrote_cannot_steer_a_terminal(home: Home) -> None:
    path = put(home.workspace / "skills", "mine")
    hostile = "\x1b[2J\x1b]0;owned\x07\x9b31m[red]\r\u202eevil"
    (path / "SKILL.md").write_text(f"---\nname: mine\ndescription: d {hostile}\n---\nx{hostile}")
    (path / "tests.yaml").write_text(f'- message: "m {json.dumps(hostile)[1:-1]}"\n')
    (path / "a\x1b[2J\u202eb").write_text("Paste your API keys here.")

    outputs = [
        said("show", "mine"),
        said("list"),
        said("why", f"d {hostile}", "--all"),
        typed("test", "mine").stdout,
        typed("validate", path.as_posix()).stdout,
    ]
    on_screen = [
        on_terminal(lambda: list_skills(show_all=True)),
        on_terminal(lambda: show("mine")),
        on_terminal(lambda: why(hostile, show_all=True)),
    ]

    for output in (*outputs, *on_screen):
        assert not set(output) & set("\x1b\x07\x9b\r\u202e")


# --- beside a running bot ----------------------------------------------------------------------


@contextmanager
def running(home: Home) -> Iterator[Workbench]:
    """A bot of which only the socket and the skills are there."""
    benches = []

    @asynccontextmanager
    async def opened() -> AsyncIterator[Mapping[str, object]]:
        async with Database.open(home.database, clock=SystemClock()) as database:
            benches.append(Workbench(home.path, database, FixedClock()))
            yield {"skills": benches[0].service}

    with beside_a_bot(home, opened):
        yield benches[0]


def test_beside_a_running_bot_all_goes_through_its_socket(home: Home, tmp_path: Path) -> None:
    path = from_outside(tmp_path, *EXPENSES)
    with running(home) as bench:
        put(bench.shipped, "night-trains", "license: MIT")
        (bench.shipped / "night-trains" / "tests.yaml").write_text("- message: night trains\n")

        said("install", path)
        listed = said("list")
        said("approve", "mine")
        why = said("why", "my expenses")
        tested = said("test")
        wrong = refused("show", "nope")
        said("playbook", "set", "own", "--keywords", "tax", "--file", "-", given="Steps.")
        said("remove", "mine")
        names = [row["name"] for row in as_json("list")["skills"]]

    assert "mine\tplaybook\tworkspace\t0\tquarantined\t" in listed
    assert "Picked:\n  mine (playbook, workspace)" in why
    assert tested.startswith("ok   night-trains: 1 test passed\n")
    assert wrong == "there is no skill 'nope'; `hearthbot skills list` has all\n"
    assert names == ["own", "night-trains"]
