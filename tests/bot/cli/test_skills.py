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


def test_broken_skills_are_listed_and_the_others_stay(home: Home) -> None:
    put(home.workspace / "skills", "broken", "allowed-tools: {a: b}")

    listed = said("list")

    assert "problem\terror\tworkspace/skills/broken/SKILL.md:4\t" in listed
    assert "summarize\tskill" in listed


def test_hidden_ones_and_warnings_are_listed_on_demand(home: Home) -> None:
    put(home.workspace / "skills", "summarize", "name2: x", "priority: 3")

    assert "hidden" not in said("list")
    assert "problem" not in said("list")
    assert "summarize\thidden\tshipped/skills/summarize/SKILL.md\tby skills/" in said(
        "list", "--all"
    )
    assert "problem\twarning\tworkspace/skills/summarize/SKILL.md:5\t" in said("list", "--all")


def test_a_skill_is_shown_in_words() -> None:
    shown = said("show", "email-triage")

    assert shown.startswith("email-triage\n")
    assert "a playbook: its instructions join the prompt" in shown
    assert "when a message says " in shown
    assert "Brought in by, for example:" in shown
    assert as_json("show", "email-triage")["kind"] == "playbook"


def test_an_unknown_name_is_one_sentence_on_stderr() -> None:
    result = typed("show", "nope")

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "there is no skill 'nope'; `hearthbot skills list` has all\n"


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


def test_why_needs_a_message() -> None:
    assert "it is empty" in refused("why", " ", code=2)


# --- validate ----------------------------------------------------------------------------------


def test_a_folder_is_checked_without_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEARTHBOT_HOME", str(tmp_path / "nowhere"))
    good, bad = from_outside(tmp_path), from_outside(tmp_path, "allowed-tools: {a: b}", name="bad")

    assert said("validate", good) == "1 skill with 0 trigger tests: 0 errors, 0 warnings.\n"
    wrong = refused("validate", bad)

    assert wrong.startswith(f"{bad}/SKILL.md:4: ")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("how", ["file", "folder", "above", "archive", "name"])
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


def test_warnings_fail_only_if_that_is_wanted(tmp_path: Path) -> None:
    path = from_outside(tmp_path, "priority: 3", body="Paste your API keys here.")

    assert f"{path}/SKILL.md:6: warning: asks for keys or passwords" in said("validate", path)
    refused("validate", path, "--strict")
    assert as_json("validate", path)["skills"][0]["problems"][0]["severity"] == "warning"


@pytest.mark.case("SE-21")
def test_a_link_and_a_pipe_are_problems_and_are_not_followed(tmp_path: Path) -> None:
    linked = put(tmp_path / "a", "mine")
    (linked / "secret.md").symlink_to("/etc/passwd")
    piped = put(tmp_path / "b", "mine")
    os.mkfifo(piped / "scripts")

    assert "secret.md is a link" in refused("validate", str(linked))
    assert "is neither a file nor a folder" in refused("validate", str(piped))


@pytest.mark.parametrize("what", ["nope", "./nope", "/nope/SKILL.md"])
def test_what_is_not_there_is_said(what: str) -> None:
    assert refused("validate", what).startswith(f"{what}: there is no such file")


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


def test_all_that_is_shipped_passes() -> None:
    told = said("test")

    assert "ok   summarize: 9 tests passed\n" in told
    assert told.endswith(" tests passed, 0 failed.\n")


def test_tests_that_cannot_be_read_fail(home: Home) -> None:
    folder = put(home.workspace / "skills", "mine")
    (folder / "tests.yaml").write_text("- must: match\n")

    assert "workspace/skills/mine/tests.yaml:1: the test has no message" in refused("test", "mine")
    (folder / "tests.yaml").unlink()
    assert "mine has no trigger tests" in refused("test", "mine")


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


@pytest.mark.case("SE-21")
def test_a_hostile_archive_is_refused_and_leaves_no_trace(home: Home, tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("mine/SKILL.md", "---\nname: mine\ndescription: d\n---\nx")
        archive.writestr("mine/../../evil.txt", "evil")

    assert "leads out of the archive" in refused("install", str(tmp_path / "evil.zip"))

    assert list((home.workspace / "skills").iterdir()) == []
    assert not list(tmp_path.rglob("evil.txt"))


def test_a_path_that_leads_nowhere_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")

    assert "there is nothing at" in refused("install", str(tmp_path / "nope"))
    assert refused("install", str(tmp_path / "loop"), code=2).count("\n") == 1


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


def test_an_approval_says_what_is_still_missing(tmp_path: Path) -> None:
    said("install", from_outside(tmp_path, "metadata: {schedule: 0 6 * * *}"))

    assert said("approve", "mine").endswith(
        "mine is approved. It runs by the clock once it is enabled: hearthbot skills enable mine\n"
    )
    assert said("approve", "mine").startswith("mine needs no approval.")


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


def test_wrong_words_for_a_playbook_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b"\xff\xfe\xff")
    base = ("playbook", "set", "mine", "--keywords", "a")

    assert refused("playbook", "set", "mine", code=2).startswith("Say what to set")
    assert "cannot be read: No such file" in refused(*base, "--file", "/nope", code=2)
    assert "is not text in UTF-8" in refused(*base, "--file", str(tmp_path / "odd"), code=2)
    assert refused(*base) == "a playbook needs instructions\n"


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


def test_a_table_holds_what_the_lines_hold(home: Home) -> None:
    put(home.workspace / "skills", "broken", "allowed-tools: {a: b}")
    put(home.workspace / "skills", "odd", "priority: 3")

    table = on_terminal(list_skills)

    assert all(row["name"] in table for row in as_json("list")["skills"])
    assert "28 skills, 19 in use." in table
    assert "  workspace/skills/broken/SKILL.md:4: " in table
    assert "1 warning more (--all)" in table


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
