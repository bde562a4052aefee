"""The heartbeat under the real program: nothing to look at costs nothing, and what is found is told
once (cases SC-19, CO-01; SPEC §11)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.skills.skill import SkillSet
from bot.settings.home import shipped
from memory.records.jobs import JobKind
from memory.records.messages import ConversationId
from memory.records.recurrence import Every, RecurrenceUnit
from scheduler.clock.timetable import Timetable
from scheduler.kinds.kinds import HeartbeatKind, TurnKind
from tests.acceptance.rig import Home, Model, Telegram, until
from tests.acceptance.schedule_words import ANN, started
from tests.acceptance.test_kills import settled
from tests.acceptance.tool_words import reads
from tests.scheduler.jobs_kit import Office, job
from tests.scheduler.service_kit import People


def looks(home: Home, telegram: Telegram, *, word: str = "skipped") -> None:
    """One look that somebody asks for, to its end; waits for one more row of it."""
    count = len(beats(home, word))
    telegram.says(ANN, "/heartbeat now")
    until(lambda: len(beats(home, word)) > count, about=lambda: str(beats(home)))


def beats(home: Home, word: str = "") -> list[str]:
    """What became of the looks so far."""
    rows = [str(outcome) for (outcome,) in home.ask_database("select outcome from heartbeats")]
    return [row for row in rows if word in row]


def writes(home: Home, text: str) -> None:
    (home.path / "workspace" / "HEARTBEAT.md").write_text(text)


@pytest.mark.case("SC-19")
def test_an_empty_or_missing_list_asks_no_model(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.approve(ANN)
    started(home)
    looks(home, telegram)
    said = reads(telegram, ANN, "No model was asked")
    (home.path / "workspace" / "HEARTBEAT.md").unlink()
    looks(home, telegram)

    assert "nothing to look at" in said
    assert (home.path / "workspace" / "HEARTBEAT.md").exists(), "written anew"
    assert model.user_texts() == []


def test_what_a_look_finds_is_told_once_and_rests_on_the_list_alone(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.approve(ANN)
    started(home)
    telegram.says(ANN, "something else")
    reads(telegram, ANN, "You said: something else")
    writes(home, "- look at the oven")
    for text in (
        "The oven is on (checked 10:00).",
        "The oven is on (checked 10:30).",
        "HEARTBEAT_OK",
    ):
        model.ask("say", text=text)
    looks(home, telegram, word="told")
    looks(home, telegram, word="silent")
    looks(home, telegram, word="silent")
    until(lambda: settled(home))

    asked = [str(request["messages"]) for request in model.ask("requests")][1:]
    assert len(asked) == 3, "one call a look"
    assert all("look at the oven" in one and "Now: " in one for one in asked)
    assert not [one for one in asked if "something else" in one]
    assert [text for text in telegram.shown(ANN) if text.startswith("The oven")] == [
        "The oven is on (checked 10:00)."
    ]


def test_the_switch_and_the_reasons_outlive_a_restart(home: Home, telegram: Telegram) -> None:
    home.approve(ANN)
    bot = started(home)
    looks(home, telegram)
    telegram.says(ANN, "/heartbeat off")
    reads(telegram, ANN, "The heartbeat is off")
    bot.kill()

    started(home)
    telegram.says(ANN, "/heartbeat why")
    why = reads(telegram, ANN, "The last heartbeats:")
    telegram.says(ANN, "/heartbeat")
    state = reads(telegram, ANN, "The heartbeat is off (by hand)")
    telegram.says(ANN, "/heartbeat on")
    on = reads(telegram, ANN, "The heartbeat is on (by hand)")

    assert "nothing to look at" in why
    assert "off" in state
    assert "every 30 min" in on


def test_one_that_kept_failing_goes_on_when_it_is_switched_on(
    home: Home, telegram: Telegram
) -> None:
    home.approve(ANN)
    bot = started(home)
    looks(home, telegram)
    bot.kill()
    with closing(sqlite3.connect(home.database)) as connection, connection:
        connection.execute(
            "update jobs set enabled = 0, failures = 5, paused = 'it failed 5 times in a row: no "
            "such model' where kind = 'heartbeat'"
        )

    started(home)
    telegram.says(ANN, "/heartbeat")
    stopped = reads(telegram, ANN, "It was stopped: it failed 5 times")
    telegram.says(ANN, "/heartbeat on")
    reads(telegram, ANN, "The heartbeat is on (by hand)")

    assert "/heartbeat on lets it go on" in stopped
    ((enabled, failures),) = home.ask_database("select enabled, failures from jobs")
    assert (enabled, failures) == (1, 0)


# --- many looks, by a clock that stands until it is moved -----------------------------------------

MORNING = datetime(2026, 6, 1, tzinfo=UTC)
WITHOUT_TASKS = (
    "",
    "# HEARTBEAT.md\n\n# Keep empty to skip\n# Add tasks below\n",
    "# Heartbeat Tasks\n\n<!--\nmulti-line comment\nwith - a bullet inside\n-->\n\n"
    "## Active Tasks\n\n<!-- add here -->\n",
    "```markdown\n# only the template\n```\n\n## Related\n\n"
    "- [Heartbeat config](/docs/heartbeat)\n",
    "- [ ] \n- \n",
    None,
    "\ufeff# Heartbeat\r\n\r\n",
    shipped("HEARTBEAT.md").read_text("utf-8"),
)


class Kept:
    """What came of heartbeats; no turn is to be made."""

    def __init__(self) -> None:
        self.outcomes: list[str] = []

    async def beat(self, agent: str, outcome: str, why: str) -> None:
        self.outcomes.append(outcome)

    async def start_new(self, lane: str) -> ConversationId:
        raise AssertionError(f"a turn was begun in {lane}")

    async def skills(self) -> SkillSet:
        raise AssertionError("skills were looked for")


@pytest.mark.case("SC-19", "CO-01")
@pytest.mark.parametrize("text", WITHOUT_TASKS)
async def test_a_day_of_looks_at_a_list_without_tasks_begins_no_turn(
    tmp_path: Path, text: str | None
) -> None:
    path, kept = tmp_path / "HEARTBEAT.md", Kept()
    if text is not None:
        path.write_bytes(text.encode())
    office = Office(tmp_path, start=MORNING)
    kind = HeartbeatKind(
        TurnKind(People(), kept.skills, tmp_path, start_conversation=kept.start_new),
        tmp_path,
        kept.beat,
        fresh=lambda: shipped("HEARTBEAT.md").read_text("utf-8"),
        local=lambda job: office.clock.now(),
    )
    async with office.opened():
        hears = office.hears()
        kinds = {JobKind.HEARTBEAT: kind}
        office.timetable = Timetable(office.store, kinds, hears, clock=office.clock)
        every = Every(count=30, unit=RecurrenceUnit.MINUTE, start=MORNING, zone="UTC")
        await office.add(job("heartbeat", kind=JobKind.HEARTBEAT, when=every))
        for number in range(1, 49):
            await office.to(MORNING + timedelta(minutes=30 * number))

    assert kept.outcomes == ["skipped"] * 48
    assert {state for _, state in office.slots()} == {"skipped"}
    assert path.exists(), "a missing list is written anew"
