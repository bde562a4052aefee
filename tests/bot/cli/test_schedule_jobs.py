"""`hearthbot schedule list` and the others, as typed: without a bot, and beside one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.cli.main import app
from bot.cli.schedule.commands import list_jobs
from bot.cli.schedule.forecast import simulate
from bot.settings.home import Home, prepare
from memory.database.connection import Database
from memory.records.messages import PersonId, Role
from memory.records.rows import Person
from memory.stores.people import SqlitePeople
from scheduler.clock.machine import SystemClock
from tests.bot.cli.cli_kit import Group, beside_a_bot, on_terminal
from tests.bot.jobs_kit import Workshop

DAILY = ("every day at 9", "water the plants")


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home without an owner."""
    home = Home(tmp_path / "home")
    monkeypatch.setenv("HEARTHBOT_HOME", str(home.path))
    # A model that is known, so that none is looked for; it is never asked.
    monkeypatch.setenv("HEARTHBOT_LLM__MODEL", "openai/gpt-4.1-mini")
    monkeypatch.setenv("HEARTHBOT_LLM__API_KEY", "sk-none")
    prepare(home)
    return home


@pytest.fixture
def home(bare: Home) -> Home:
    """With an owner, who has a private chat."""

    async def given() -> None:
        async with Database.open(bare.database, clock=SystemClock()) as database:
            ann = Person(
                id=PersonId("p1"),
                role=Role.OWNER,
                name="Ann",
                addresses=("telegram:42",),
                time_zone="Europe/Berlin",
            )
            await SqlitePeople(database).add_person(ann)

    asyncio.run(given())
    return bare


SCHEDULE = Group("schedule")
typed, as_json, refused = SCHEDULE.typed, SCHEDULE.answer, SCHEDULE.refused


def said(*words: str) -> list[str]:
    return SCHEDULE.said(*words).splitlines()


# --- without a bot ------------------------------------------------------------------------------


def test_a_job_is_added_after_its_time_was_said_back(home: Home) -> None:
    lines = said("add", *DAILY)

    assert lines[0] == "read\tevery day at 09:00\tEurope/Berlin"
    assert [line.split("\t")[0] for line in lines[1:4]] == ["next"] * 3
    assert lines[4] == "j1 (water the plants) is kept."
    (row,) = as_json("list")["jobs"]
    assert (row["what"], row["deliver_to"], row["person_name"]) == (DAILY[1], "telegram:42", "Ann")


def test_what_a_job_for_the_assistant_costs_is_told_before_it_is_kept(home: Home) -> None:
    lines = said("add", *DAILY, "--do")

    head, takes = lines[4].split("\t")
    assert head == "takes"
    assert "tokens a run, 1 run a day: about $" in takes
    assert takes.endswith("a day with openai/gpt-4.1-mini")
    assert lines[5] == "j1 (water the plants) is kept."


def test_a_job_that_stands_still_has_no_next_run_but_what_comes_once_it_is_resumed(
    home: Home,
) -> None:
    said("add", *DAILY)
    said("pause", "j1")

    (row,) = as_json("list")["jobs"]
    listed = said("list")[0].split("\t")
    shown = said("show", "j1")

    assert row["next"] is None
    assert listed[1:3] == ["paused", "paused: by hand"]
    assert f"resumed\t{row['once_resumed']['at']}" in shown
    assert not [line for line in shown if line.startswith("next")]


def test_a_name_that_is_taken_is_refused_with_the_job_that_has_it(home: Home) -> None:
    said("add", *DAILY, "--name", "Plants")
    said("add", *DAILY, "--name", "Fish")

    added = " ".join(refused("add", *DAILY, "--name", "plants", "--yes").split())
    edited = " ".join(refused("edit", "j2", "--name", "Plants", "--text", "feed them").split())
    own = refused("add", *DAILY, "--name", "heartbeat", "--json")

    assert "There is a job called 'plants' already: j1, next " in added
    assert "`hearthbot schedule show j1` shows it" in added
    assert "called 'Plants' already: j1" in edited
    assert "I use that name myself" in own
    assert said("edit", "j2", "--name", "Fish")[0] == "j2 is changed."
    assert [row["name"] for row in as_json("list")["jobs"]] == ["Plants", "Fish"]
    assert {row["what"] for row in as_json("list")["jobs"]} == {DAILY[1]}


def test_a_list_for_a_pipe_has_one_job_a_line(home: Home) -> None:
    said("add", *DAILY)
    said("add", "every Monday at 18:00", "look\tfor\nrain", "--do")

    lines = [line.split("\t") for line in said("list")]

    assert sorted(line[0] for line in lines) == ["j1", "j2"]
    assert all(len(line) == 8 for line in lines)
    assert {line[7] for line in lines} == {"water the plants", "look for rain"}


def test_a_job_is_shown_changed_stopped_and_deleted(home: Home) -> None:
    said("add", *DAILY)

    assert "what\twater the plants" in said("show", "water")
    assert as_json("edit", "j1", "--text", "feed the cat")["what"] == "feed the cat"
    ruled = as_json("edit", "j1", "--missed", "skip", "--quiet", "drop", "--name", "cat")
    assert (ruled["missed"], ruled["quiet"], ruled["name"]) == ("skip", "drop", "cat")
    moved = as_json("edit", "j1", "--when", "every day at 10")
    assert moved["next"]["slot"].endswith("T10:00")
    assert as_json("pause", "j1")["state"] == "paused: by hand"
    assert as_json("resume", "j1")["state"] == "on"
    assert said("remove", "j1") == ["j1 (cat) is removed."]
    assert said("list") == []


def test_a_test_of_a_job_shows_the_prompt_and_has_no_effect(home: Home) -> None:
    said("add", "every day at 9", "look for rain", "--do")
    before = as_json("show", "j1")

    answer = as_json("test", "j1")
    lines = said("test", "j1")

    assert "look for rain" in answer["prompt"]["user"]
    assert "get_status" in answer["tools"]
    assert not {"send_message", "schedule_job"} & set(answer["tools"]), "those of a job alone"
    assert answer["cost"]["dollars"] > 0
    assert answer["heard"] is None
    assert "--- system" in lines
    assert any(line.startswith("cost\tIt will cost about $") for line in lines)
    after = as_json("show", "j1")
    assert (after["runs"], after["next"]) == (before["runs"], before["next"])


def test_a_test_of_a_reminder_says_that_no_model_is_asked(home: Home) -> None:
    said("add", *DAILY)

    assert said("test", "j1")[-1].startswith("It asks no model")


def test_a_simulation_lists_what_would_fire_and_its_sum(home: Home) -> None:
    said("add", *DAILY)
    said("add", "every day at 10", "look for rain", "--do")

    lines = [line.split("\t") for line in said("simulate", "3d")]
    answer = as_json("simulate", "3d")

    assert [line[0] for line in lines[-1:]] == ["total"]
    assert len(lines) == 7
    assert answer["total"]["runs"] == 6
    assert answer["total"]["dollars"] > 0
    assert answer["runs"] == sorted(answer["runs"], key=lambda run: run["at"])


def test_a_simulation_begins_when_it_is_told_to(home: Home) -> None:
    said("add", *DAILY)
    later = (datetime.now(UTC) + timedelta(days=30)).date()

    answer = as_json("simulate", "24h", "--from", f"{later}T00:00")

    assert [run["slot"] for run in answer["runs"]] == [f"{later}T09:00"]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("show", "j9"), 1, "There is no job 'j9'"),
        (("add", "blue", "tea"), 1, "not a time"),
        (("add", "tomorrow at 9am", "tea", "--to", "telegram:999"), 1, "no chat of this person"),
        (("edit", "j1"), 2, "--when, --text"),
        (("simulate", "soon"), 2, "as in 7d"),
        (("simulate", "0d"), 2, "as in 7d"),
        (("simulate", "9999w"), 1, "366 days"),
        (("run", "j1"), 1, "There is no job"),
    ],
)
def test_what_cannot_be_done_is_said_with_its_exit_code(
    home: Home, words: tuple[str, ...], code: int, sentence: str
) -> None:
    assert sentence in refused(*words, code=code)


def test_without_an_owner_nothing_is_added_and_it_is_said_what_to_do(bare: Home) -> None:
    assert "access approve" in refused("add", *DAILY)


def test_only_a_running_bot_runs_a_job(home: Home) -> None:
    said("add", *DAILY)

    assert "No bot is running" in refused("run", "j1")


def test_before_a_skill_is_enabled_it_is_said_what_it_will_cost(home: Home) -> None:
    result = CliRunner().invoke(app, ["skills", "enable", "morning-briefing"])

    cost, done = result.stdout.splitlines()
    assert cost.startswith("It will cost about $")
    assert "a day" in cost
    assert "a month, at 1 runs a day" in cost
    assert done.startswith("morning-briefing is on")


# --- beside a running bot ------------------------------------------------------------------------


class Known:
    """The people of that bot: its owner."""

    async def named(self, wanted: str) -> Person:
        return Person(id=PersonId("p1"), role=Role.OWNER, time_zone="Europe/Berlin")


@contextmanager
def running(home: Home, folder: Path) -> Iterator[Workshop]:
    """A bot of which only the socket and the jobs are there."""
    folder.mkdir()
    shop = Workshop(folder)

    @asynccontextmanager
    async def opened() -> AsyncIterator[Mapping[str, object]]:
        async with shop.opened():
            yield {"jobs": shop.jobs, "dry_runs": shop.dry_runs, "access": Known()}

    with beside_a_bot(home, opened):
        yield shop


def test_beside_a_running_bot_all_goes_through_its_socket(bare: Home, tmp_path: Path) -> None:
    with running(bare, tmp_path / "shop") as shop:
        said("add", *DAILY)
        said("add", "every day at 10", "look for rain", "--do")
        listed = said("list")
        ran = said("run", "water")
        tested = as_json("test", "j2", "--with-model")
        simulated = as_json("simulate", "2d")

    assert len(listed) == 2
    assert ran[0] == "j1 was sent."
    assert shop.texts() == ["water the plants"]
    assert tested["prompt"] == {"system": "You are a helper.", "user": "look for rain"}
    assert tested["heard"]["text"] == "Nothing today."
    assert simulated["total"]["runs"] == 4
    assert not bare.database.exists(), "the database is the running bot's"


# --- on a terminal --------------------------------------------------------------------------------


def test_in_a_terminal_jobs_and_a_simulation_are_tables(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    said("add", *DAILY)
    said("add", "every day at 10", "look for [bold]rain[/bold] \x1b[2J", "--do")

    shown = on_terminal(list_jobs) + on_terminal(lambda: simulate("2d"))
    for job in ("j1", "j2"):
        said("remove", job)

    assert "water the plants" in shown
    assert "[bold]rain[/bold]" in shown, "the words of others are no markup"
    assert "\x1b[2J" not in shown
    assert "In all: 4 runs" in shown
