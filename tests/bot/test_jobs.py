"""The owner sees jobs, changes them, and sees beforehand what they will do, without any effect."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agent.skills.skill import SkillState
from bot.commands.job_messages import (
    clock_note,
    cost_words,
    pace_words,
    takes_words,
    when_words,
)
from bot.commands.job_service import WantedJob
from memory.records.errors import AssistantError
from memory.records.jobs import JobKind, JobRef, SetBy, What
from memory.records.messages import PersonId
from memory.records.recurrence import At, Cron, Every, RecurrenceUnit, When
from memory.records.schedule import Estimate, Pace, RunCost
from scheduler.kinds.dry_run import next_shift
from tests.bot.jobs_kit import BRIEFING, Workshop
from tests.scheduler.jobs_kit import job
from tests.scheduler.service_kit import BERLIN, LANE, MORNING


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Workshop]:
    shop = Workshop(tmp_path)
    async with shop.opened():
        yield shop


async def kept(shop: Workshop, text: str = "water the plants", **more: Any) -> Any:
    return await shop.operator.add(WantedJob(**{"when": "every day at 9", "text": text, **more}))


# --- adding and looking ---------------------------------------------------------------------------


async def test_a_time_is_read_back_before_anything_is_kept(shop: Workshop) -> None:
    answer = await shop.operator.read("every day at 9")

    assert answer["zone"] == "Europe/Berlin"
    assert [one["at"] for one in answer["next"]] == [
        f"2026-06-0{day}T09:00:00+02:00" for day in (1, 2, 3)
    ]
    assert (await shop.operator.list())["jobs"] == []


async def test_a_reminder_is_kept_for_the_owner_and_listed(shop: Workshop) -> None:
    await kept(shop)

    (row,) = (await shop.operator.list())["jobs"]
    assert (row["key"], row["kind"], row["what"]) == ("j1", "message", "water the plants")
    assert (row["person_name"], row["deliver_to"], row["state"]) == ("Ann", LANE, "on")
    assert row["next"] == {"slot": "2026-06-01T09:00", "at": "2026-06-01T09:00:00+02:00"}


async def test_what_the_assistant_is_to_do_is_another_kind(shop: Workshop) -> None:
    row = await kept(shop, do=True, name="plants", urgent=True, missed="skip")

    assert (row["kind"], row["name"], row["urgent"], row["missed"]) == (
        "agent",
        "plants",
        True,
        "skip",
    )


async def test_one_that_nags_is_due_once(shop: Workshop) -> None:
    row = await kept(shop, when="tomorrow at 9am", nag_minutes=10)

    assert row["nag_s"] == 600


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"when": "yesterday at 9"}, "over"),
        ({"when": "blue"}, "is not a time"),
        ({"to": "telegram:999"}, "no chat of this person"),
        ({"text": "  "}, "needs words"),
        ({"nag_minutes": 10}, "due once"),
    ],
)
async def test_what_cannot_be_kept_is_refused_with_the_reason(
    shop: Workshop, wanted: dict[str, Any], words: str
) -> None:
    with pytest.raises(AssistantError, match=words):
        await kept(shop, **wanted)
    assert (await shop.operator.list())["jobs"] == []


async def test_without_an_owner_or_a_chat_it_is_said_what_to_do(shop: Workshop) -> None:
    shop.people.home = ""
    with pytest.raises(AssistantError, match="write to it once"):
        await kept(shop)
    shop.people.has_owner = False
    with pytest.raises(AssistantError, match="access approve"):
        await kept(shop)


async def test_a_job_shows_its_next_runs_and_its_last_ones(shop: Workshop) -> None:
    await kept(shop)
    await shop.to(MORNING + timedelta(hours=1))

    shown = await shop.operator.show(JobRef("water"))

    assert [run["slot"] for run in shown["newest_runs"]] == ["2026-06-01T09:00"]
    assert [run["state"] for run in shown["newest_runs"]] == ["told"]
    assert [one["slot"] for one in shown["next_runs"]][:2] == [
        "2026-06-02T09:00",
        "2026-06-03T09:00",
    ]
    assert shown["newest_runs"][0]["at"] == "2026-06-01T09:00:00+02:00"


async def test_next_runs_end_where_the_job_does(shop: Workshop) -> None:
    await kept(shop, when="every day at 9 for 2 times")
    await kept(shop, "bins", when="every day at 9 until 3 June")
    await kept(shop, "still", when="every day at 10")
    await shop.operator.pause(JobRef("still"))

    shown = {name: await shop.operator.show(JobRef(name)) for name in ("water", "bins", "still")}

    counts = {name: len(answer["next_runs"]) for name, answer in shown.items()}
    assert counts == {"water": 2, "bins": 3, "still": 5}


async def test_a_row_that_cannot_be_read_is_listed_with_the_reason(shop: Workshop) -> None:
    await kept(shop)
    with closing(sqlite3.connect(shop.path)) as connection:
        connection.execute("update jobs set runs_when = '{}'")
        connection.commit()

    answer = await shop.operator.list()

    assert answer["jobs"] == []
    assert [(one["id"], one["name"]) for one in answer["broken"]] == [(1, "water the plants")]


async def test_a_job_whose_zone_is_gone_is_listed_shown_and_tested(shop: Workshop) -> None:
    await kept(shop, "look for rain", do=True)
    with closing(sqlite3.connect(shop.path)) as connection:
        connection.execute("update jobs set runs_when = replace(runs_when, 'Europe/', 'Mars/')")
        connection.commit()

    listed = await shop.operator.list()
    shown = await shop.operator.show(JobRef("j1"))
    tested = await shop.operator.test(JobRef("j1"), with_model=False)
    simulated = await shop.operator.simulate(days=2.0, since="")

    assert listed["jobs"][0]["when"]["zone"] == "Mars/Berlin"
    assert "Mars/Berlin" in shown["trouble"]
    assert "Mars/Berlin" in tested["trouble"]
    assert [one["job"] for one in simulated["troubles"]] == ["j1"]


# --- changing -----------------------------------------------------------------------------------


async def test_a_job_is_given_other_times_and_words(shop: Workshop) -> None:
    await kept(shop)

    row = await shop.operator.edit(JobRef("j1"), when="every day at 10", text="feed the cat")

    assert (row["what"], row["next"]["slot"]) == ("feed the cat", "2026-06-01T10:00")


async def test_a_change_of_which_half_cannot_be_made_changes_nothing(shop: Workshop) -> None:
    await kept(shop)

    with pytest.raises(AssistantError, match="not a time"):
        await shop.operator.edit(JobRef("j1"), when="blue", text="feed the cat")
    with pytest.raises(AssistantError, match="characters"):
        await shop.operator.edit(JobRef("j1"), when="every day at 10", text="x" * 5_000)

    (row,) = (await shop.operator.list())["jobs"]
    assert (row["what"], row["next"]["slot"]) == ("water the plants", "2026-06-01T09:00")


async def test_a_job_stands_still_goes_on_and_goes(shop: Workshop) -> None:
    await kept(shop)

    assert (await shop.operator.pause(JobRef("j1")))["state"] == "paused: by hand"
    assert await shop.to(MORNING + timedelta(hours=2)) == 0
    assert (await shop.operator.resume(JobRef("j1")))["next"]["slot"] == "2026-06-02T09:00"
    assert (await shop.operator.remove(JobRef("j1")))["name"] == "water the plants"
    assert (await shop.operator.list())["jobs"] == []


async def test_the_job_of_a_skill_is_changed_in_its_skill(shop: Workshop) -> None:
    made = await shop.add(
        job("skill:briefing", kind=JobKind.SKILL, set_by=SetBy.SKILL, what=What(skill="briefing"))
    )

    for operation, more in (("edit", {"when": "every day at 9", "text": ""}), ("remove", {})):
        with pytest.raises(AssistantError, match=r"SKILL\.md|skills disable briefing"):
            await getattr(shop.operator, operation)(made.key, **more)


async def test_a_job_is_run_now_by_a_running_bot_alone(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    async with shop.opened():
        await kept(shop)
        assert (await shop.operator.run(JobRef("j1")))["text"] == "j1 was sent."
        assert shop.texts() == ["water the plants"]
    shop.is_running = False
    async with shop.opened():
        with pytest.raises(AssistantError, match="No bot is running"):
            await shop.operator.run(JobRef("j1"))
        assert [one["key"] for one in (await shop.operator.list())["jobs"]] == ["j1"]


# --- beforehand -----------------------------------------------------------------------------------


async def test_a_test_shows_all_of_a_run_and_has_no_effect(shop: Workshop) -> None:
    await kept(shop, "look for rain", do=True)
    await shop.notifications.set_quiet_hours(PersonId("p1"), (22 * 60, 9 * 60 + 30))
    before = dump(shop.path)

    answer = await shop.operator.test(JobRef("j1"), with_model=False)

    assert answer["prompt"] == {"system": "You are a helper.", "user": "look for rain"}
    assert answer["tools"] == ["list_events", "nothing_to_report"]
    assert (answer["model"], answer["tokens"], answer["heard"]) == ("fake/model", 1_200, None)
    first = answer["next_runs"][0]
    assert (first["slot"], first["fate"]) == ("2026-06-01T09:00", "held")
    assert first["told"] == "2026-06-01T09:30:00+02:00"
    assert answer["cost"]["a_day"]["dollars"] == pytest.approx(0.01)
    assert shop.stage.asked == []
    assert dump(shop.path) == before


async def test_a_test_shows_the_runs_around_the_next_change_of_clocks(shop: Workshop) -> None:
    await kept(shop, when="30 2 * * *")

    shift = (await shop.operator.test(JobRef("j1"), with_model=False))["shift"]

    assert shift["at"] == "2026-10-25T02:00:00+01:00"
    first = shift["runs"][0]
    assert (first["at"], first["note"]) == (
        "2026-10-25T02:30:00+02:00",
        "clocks are set back: this time comes twice",
    )


async def test_a_test_with_the_model_says_what_it_would_do(shop: Workshop) -> None:
    await kept(shop, "look for rain", do=True)

    heard = (await shop.operator.test(JobRef("j1"), with_model=True))["heard"]

    assert heard["text"] == "Nothing today."
    assert [wish["tool"] for wish in heard["wishes"]] == ["list_events"]
    (turn,) = shop.stage.asked
    assert turn.job is not None
    assert turn.conversation == "", "no conversation was opened for it"


async def test_a_test_of_a_reminder_asks_no_model(shop: Workshop) -> None:
    await kept(shop)

    answer = await shop.operator.test(JobRef("j1"), with_model=True)

    assert (answer["asks"], answer["cost"]["tokens"], answer["heard"]) == (False, 0, None)


async def test_a_test_says_what_would_keep_a_job_from_running(shop: Workshop) -> None:
    made = await shop.add(
        job("skill:gone", kind=JobKind.SKILL, set_by=SetBy.SKILL, what=What(skill="gone"))
    )

    answer = await shop.operator.test(made.key, with_model=True)

    assert "the skill gone is not there" in answer["trouble"]


async def test_a_simulation_shows_all_that_would_fire_with_its_cost(shop: Workshop) -> None:
    await kept(shop)
    await kept(shop, "look for rain", do=True, when="every Monday at 18:00")
    before = dump(shop.path)

    answer = await shop.operator.simulate(days=7.0, since="")

    assert len(answer["runs"]) == 8
    assert answer["runs"][0]["dollars"] == 0
    assert [run["slot"] for run in answer["runs"] if run["kind"] == "agent"] == ["2026-06-01T18:00"]
    assert answer["total"] == {
        "runs": 8,
        "calls": 3,
        "tokens": 9_000,
        "dollars": pytest.approx(0.01),
        "unpriced": 0,
    }
    assert dump(shop.path) == before


async def test_a_simulation_begins_when_it_is_told_to(shop: Workshop) -> None:
    await kept(shop)

    answer = await shop.operator.simulate(days=1.0, since="2026-06-05T00:00")

    assert [run["slot"] for run in answer["runs"]] == ["2026-06-05T09:00"]


async def test_heartbeats_are_foreseen_only_if_there_is_something_to_look_at(
    shop: Workshop,
) -> None:
    beat = Every(count=30, unit=RecurrenceUnit.MINUTE, start=MORNING, zone="Europe/Berlin")
    await shop.add(
        job("heartbeat", when=beat, kind=JobKind.HEARTBEAT, set_by=SetBy.BOT, what=What())
    )

    empty = await shop.operator.simulate(days=1.0, since="")
    shop.has_beats("- look after the oven")
    full = await shop.operator.simulate(days=0.2, since="")

    assert empty["runs"] == []
    assert [run["fate"] for run in full["runs"]][:4] == ["told", "told", "told", "digest"]


@pytest.mark.parametrize(
    ("days", "since", "words"),
    [
        (0.0, "", "366 days"),
        (400.0, "", "366 days"),
        (7.0, "soon", "ISO"),
        (7.0, "2020-01-01", "over"),
    ],
)
async def test_a_span_that_cannot_be_looked_at_is_refused(
    shop: Workshop, days: float, since: str, words: str
) -> None:
    with pytest.raises(AssistantError, match=words):
        await shop.operator.simulate(days=days, since=since)


# --- cost before a skill is enabled --------------------------------------------------------------


async def test_the_cost_of_a_skill_is_told_before_it_is_enabled(shop: Workshop) -> None:
    answer = await shop.operator.cost("briefing")

    assert "$0.010 a day, $0.30 a month" in answer["text"]
    assert answer["a_day"]["runs"] == pytest.approx(1.0)
    assert (await shop.operator.list())["jobs"] == []


@pytest.mark.parametrize("skill", ["other", "quarantined"])
async def test_of_a_skill_that_may_not_be_used_no_cost_is_told(shop: Workshop, skill: str) -> None:
    waits = replace(BRIEFING, name="quarantined", state=SkillState.QUARANTINED)
    shop.skills = (*shop.skills, waits)

    answer = await shop.operator.cost(skill)

    assert list(answer) == ["text"]
    assert re.match("What it will cost cannot be told: .*skill", answer["text"])


async def test_the_cost_of_a_job_is_told_before_it_is_kept(shop: Workshop) -> None:
    wanted = WantedJob(when="every day at 9", text="sum up the news", do=True)

    answer = await shop.operator.read(wanted.when, wanted)
    reminder = await shop.operator.read(wanted.when, replace(wanted, do=False))
    shop.people.home = ""
    unknown = await shop.operator.read(wanted.when, wanted)

    assert answer["takes"] == (
        "about 9,000 tokens a run, 1 run a day: about $0.010 a day with fake/model"
    )
    assert reminder["takes"] == ""
    assert unknown["takes"].startswith("unknown: You have no private chat")
    assert (await shop.operator.list())["jobs"] == []


@pytest.mark.parametrize(
    ("runs", "dollars", "is_once", "said"),
    [
        (3.0, 0.01, False, "a run, 3 runs a day: about $0.030 a day with m"),
        (0.714, 0.01, False, "a run, 5 runs a week: about $0.0071 a day with m"),
        (0.033, 0.01, False, "a run, 12 runs a year: about $0.00033 a day with m"),
        (2.0, None, False, "a run, 2 runs a day: about 2,000 tokens a day with m; price unknown"),
        (0.003, 0.01, True, ", once: about $0.010 with m"),
        (0.003, None, True, ", once: price unknown with m"),
    ],
)
def test_what_a_job_takes_is_one_line(
    runs: float, dollars: float | None, is_once: bool, said: str
) -> None:
    a_day = Pace(runs=runs, tokens=1_000 * runs, dollars=dollars and dollars * runs)
    cost = RunCost(calls=1, tokens=1_000, dollars=dollars)

    when = At(moment=MORNING, zone="UTC") if is_once else None
    line = takes_words(job(when=when), Estimate(cost=cost, a_day=a_day, model="m"))

    assert line.startswith("about 1,000 tokens")
    assert line.endswith(said)


def test_an_unknown_price_is_said_so() -> None:
    a_day = {"runs": 4.0, "tokens": 4_000.0, "dollars": None}
    cost = {"calls": 1, "tokens": 1_000, "dollars": None, "a_day": a_day}

    assert pace_words(cost) == (
        "It will take 4,000 tokens a day, 120,000 a month; price unknown. One run (1 call of a "
        "model): price unknown (1,000 tokens)."
    )
    assert cost_words(None, 0) == "nothing"


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("when", "words"),
    [
        (At(moment=MORNING, zone="Europe/Berlin"), "at 2026-06-01 08:00 (Europe/Berlin)"),
        (
            Every(count=30, unit=RecurrenceUnit.MINUTE, start=MORNING, zone="UTC"),
            "every 30 minutes",
        ),
        (
            Every(
                count=2, unit=RecurrenceUnit.WEEK, start=MORNING, zone="UTC", pattern="0 9 * * FRI"
            ),
            "every 2 weeks, by 0 9 * * FRI (UTC)",
        ),
        (Cron(expression="0 9 * * *", zone="UTC"), "by 0 9 * * * (UTC)"),
    ],
)
def test_a_schedule_is_said_in_a_line(when: When, words: str) -> None:
    assert when_words(when) == words


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("2026-03-29T01:00", "set forward"),
        ("2026-10-25T00:30", "comes twice"),
        ("2026-10-25T01:30", "the second"),
        ("2026-03-29T07:00", "CEST instead of CET"),
        ("2026-06-01T07:00", ""),
        ("2026-03-29T00:30", ""),
    ],
)
def test_what_a_change_of_clocks_does_to_a_run_is_said(at: str, words: str) -> None:
    ms = int(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() * 1000)

    note = clock_note(ms, BERLIN)

    assert (words in note) if words else not note


def test_the_next_change_of_clocks_is_found_to_the_minute() -> None:
    assert next_shift(MORNING, BERLIN) == datetime(2026, 10, 25, 1, 0, tzinfo=UTC)
    assert next_shift(MORNING, ZoneInfo("Asia/Kolkata")) is None


def dump(path: Path) -> list[str]:
    """All that is stored."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())
