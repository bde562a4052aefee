"""A home that an earlier version made opens without a step by hand, with all that was in it
(`tests/golden/home`, made by `tests/golden/make_home.py`)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from tests.acceptance.rig import Home, Model, Telegram, until
from tests.acceptance.tool_words import reads
from tests.golden.fixture_home import BEFORE_TABLES, PRAGMAS, lay

ADA = 7
LATER_UPDATES = 1_000_000
"""Telegram goes on counting; what has a number of before was there before."""


@pytest.fixture
def earlier(bare_home: Home, telegram: Telegram, model: Model) -> Home:
    """The home of an earlier version, with the stand-ins in place of the real services."""
    lay(bare_home.path)
    bare_home.serve_with(telegram, model, HEARTHBOT_MEMORY__EMBEDDINGS="false")
    telegram.ask("set", next_update_id=LATER_UPDATES)
    return bare_home


def told(home: Home, *words: str) -> Any:
    """What a command says as JSON."""
    done = home.run(*words, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_a_home_of_an_earlier_version_opens_and_goes_on(
    earlier: Home, telegram: Telegram, model: Model
) -> None:
    bot = earlier.start()
    until(bot.serving)

    telegram.says(ADA, "Are you still there?")
    reads(telegram, ADA, "You said: Are you still there?")
    (request,) = [one for one in model.ask("requests") if "still there" in json.dumps(one)]
    status = "\n".join(told(earlier, "status")["lines"])
    facts = {fact["key"]: fact["text"] for fact in told(earlier, "memory", "list")["facts"]}
    jobs = {job["key"]: job for job in told(earlier, "schedule", "list")["jobs"]}
    sessions = told(earlier, "sessions", "list")["sessions"]
    code = bot.end()

    assert code == 0
    assert "run three" in json.dumps(request), "the conversation goes on"
    assert "People: 2, group chats: 1" in status
    assert "Quiet hours: 22:00-07:00 (Europe/Oslo)" in status.replace("Your quiet", "Quiet")
    assert "Allowed for good: `exec`" in status
    assert facts == {
        "f1": "I take my tea without milk.",
        "f3": "I moved to Bergen.",
        "f4": "Ada has a boat.",
    }
    assert {key: (job["name"], job["kind"], job["state"]) for key, job in jobs.items()} == {
        "j1": ("heartbeat", "heartbeat", "on"),
        "j2": ("water the fern", "message", "on"),
        "j3": ("Look for rain", "agent", "on"),
        "j4": ("new-year", "message", "paused: by hand"),
        "j5": ("Feed the cat", "message", "on"),
    }
    assert jobs["j2"]["next"]["at"] == "2090-01-03T10:00:00+01:00"
    assert [(one["lane"], one["closed_ms"] is None) for one in sessions] == [
        ("telegram:7", True),
        ("telegram:7", False),
        ("telegram:7", False),
        ("telegram:-100", True),
        ("telegram:8", True),
        ("telegram:7", False),
    ]


def test_the_file_is_laid_as_the_program_made_it(bare_home: Home) -> None:
    lay(bare_home.path)

    with closing(sqlite3.connect(bare_home.database)) as connection:
        found = {name: connection.execute(f"pragma {name}").fetchone()[0] for name in PRAGMAS}
        trouble = connection.execute("pragma integrity_check").fetchall()
        loose = connection.execute("pragma foreign_key_check").fetchall()

    assert found["journal_mode"] == "wal"
    assert all(found[name] for name in (*BEFORE_TABLES, "user_version"))
    assert (trouble, loose) == ([("ok",)], [])
