"""`hearthbot schedule when`, as somebody types it: one text, or a line for each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bot.cli.main import app
from memory.records.jobs import Cron, from_json

THEN = ("--now", "2026-11-28T10:17", "--tz", "Europe/Berlin")


def typed(*words: str, given: str | None = None) -> Result:
    """What comes of a command line; nothing is a terminal here."""
    command = ["schedule", "when", *words]
    return CliRunner().invoke(app, command, input=given, catch_exceptions=False)


def answers(*lines: object, code: int = 0) -> list[dict[str, Any]]:
    """What `-` says to these lines."""
    given = "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines)
    result = typed("-", *THEN, given=given)
    assert result.exit_code == code, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_time_is_said_back_with_its_next_runs() -> None:
    result = typed("every weekday at 8", *THEN)

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "read\tevery weekday (Monday to Friday) at 08:00\tEurope/Berlin",
        "next\t2026-11-30T08:00:00+01:00",
        "next\t2026-12-01T08:00:00+01:00",
        "next\t2026-12-02T08:00:00+01:00",
    ]


def test_a_question_and_a_refusal_are_no_success() -> None:
    question = typed("at 8", *THEN)
    refusal = typed("61 9 * * *", *THEN)

    assert question.exit_code == 1
    assert question.stdout.splitlines() == [
        "ask\tIn the morning or in the afternoon?",
        "option\tonce, on Sunday 29 November 2026 at 08:00\t2026-11-29T08:00:00+01:00",
        "option\tonce, on Saturday 28 November 2026 at 20:00\t2026-11-28T20:00:00+01:00",
    ]
    assert refusal.exit_code == 1
    assert refusal.stdout.startswith("refused\tAt character 1: '61'. The field minute is 0 to 59")


def test_json_has_all_of_it() -> None:
    shown = json.loads(typed("every Monday for 2 times", *THEN, "--json").stdout)

    when = from_json(shown.pop("when"))
    assert when == Cron(expression="0 9 * * 1", zone="Europe/Berlin")
    assert shown == {
        "text": "every Monday for 2 times",
        "tz": "Europe/Berlin",
        "status": "read",
        "sentence": "every Monday at 09:00, 2 times",
        "next": ["2026-11-30T09:00:00+01:00", "2026-12-07T09:00:00+01:00"],
        "until": None,
        "runs_max": 2,
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--tz", "CST"), "America/Chicago"),
        (("--tz", "Mars/Olympus"), "'Mars/Olympus' is no time zone"),
        (("--now", "soon"), "'soon' is no time in ISO form"),
        (("--now", "0001-01-01"), "cannot be said in the year 1"),
        (("--count", "0"), "greater than or equal to 1"),
        ((), "Missing argument"),
    ],
)
def test_wrong_usage_is_told_apart(options: tuple[str, ...], said: str) -> None:
    result = typed(*(("daily", *options) if options else ()))

    assert result.exit_code == 2
    assert said in result.stderr


def test_a_zone_may_be_a_city_and_now_may_have_an_offset() -> None:
    shown = typed("tomorrow at 9am", "--tz", "new york", "--now", "2026-11-29T03:00+01:00")

    assert "next\t2026-11-29T09:00:00-05:00" in shown.stdout


def test_each_line_is_answered_in_order_with_its_own_zone_and_time() -> None:
    told = answers(
        {"id": 7, "text": "tomorrow at noon"},
        {"text": "tomorrow at noon", "tz": "UTC", "now": "2027-01-01T00:00", "count": 1},
        {"text": "yesterday"},
        {"text": "blah", "more": "is left alone"},
    )

    assert [one["status"] for one in told] == ["read", "read", "ask", "refused"]
    assert told[0]["id"] == 7
    assert told[0]["next"] == ["2026-11-29T12:00:00+01:00"]
    assert told[1]["next"] == ["2027-01-02T12:00:00+00:00"]
    assert told[2]["past"] == "2026-11-27T09:00:00+01:00"
    assert "blah" in told[3]["why"]


def test_a_line_that_cannot_be_used_is_answered_too() -> None:
    told = answers(
        "no json",
        "[1]",
        {"id": "a"},
        {"text": "daily", "tz": 5},
        {"text": "daily", "count": True},
        {"text": "daily", "now": "x"},
        "[" * 9_000,
        "x" * 11_000,
        {"text": "daily"},
        code=1,
    )

    assert [one["status"] for one in told] == [*["error"] * 8, "read"]
    assert told[2]["id"] == "a"
    assert "'text' is missing" in told[2]["why"]


def test_nothing_is_made_in_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEARTHBOT_HOME", str(tmp_path / "home"))

    typed("daily")

    assert not (tmp_path / "home").exists()
