"""Backups, what is old, and a clock that is wrong, under the real program."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing

import pytest

from tests.acceptance.memory_words import asks
from tests.acceptance.rig import Home, Telegram, until
from tests.acceptance.schedule_words import ANN, card_that, reminded, started

DAY_S = 86_400
BACKUPS = "data/backups"


def change(home: Home, *statements: str) -> None:
    """Changes the file of a bot that does not run."""
    with closing(sqlite3.connect(home.database)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def long_ago(home: Home, days: int) -> None:
    """Moves all that was stored so many days back."""
    for table, columns in {
        "inbox": ("received_ms", "ended_ms"),
        "turns": ("created_ms", "started_ms", "ended_ms"),
        "messages": ("created_ms",),
        "outbox": ("created_ms", "ended_ms"),
        "steps": ("started_ms", "ended_ms"),
        "heartbeats": ("at_ms",),
    }.items():
        changes = ", ".join(f"{name} = {name} - {days * DAY_S * 1000}" for name in columns)
        change(home, f"update {table} set {changes}")


def counted(home: Home, table: str) -> int:
    return int(home.ask_database(f"select count(*) from {table}")[0][0])


def spoken(home: Home, telegram: Telegram, *texts: str) -> None:
    """A bot that has answered, and ended."""
    home.approve(ANN)
    bot = started(home)
    for text in texts:
        asks(telegram, ANN, text)
    assert bot.end() == 0


def found(home: Home, check: str) -> list[str]:
    checks = json.loads(home.run("doctor", "--offline", "--json").stdout)["checks"]
    return [f"{one['level']}: {one['text']}" for one in checks if one["name"] == check]


def test_while_backups_fail_what_is_old_goes_and_the_owner_is_told(
    home: Home, telegram: Telegram
) -> None:
    spoken(home, telegram, "hello", "and again")
    long_ago(home, days=40)
    shutil.rmtree(home.path / BACKUPS, ignore_errors=True)
    (home.path / BACKUPS).write_text("a file where the folder belongs")

    started(home)
    until(lambda: counted(home, "steps") == 0 and counted(home, "inbox") <= 1)
    status = home.run("status").stdout
    seen = found(home, "housekeeping")

    assert "You said: still there?" in asks(telegram, ANN, "still there?")
    assert "The daily backup did not work" in status
    assert any(line.startswith("warn: The daily backup") for line in seen)
    assert home.log.count("The daily backup") == 1
    assert counted(home, "messages") >= 4


def test_a_start_with_a_clock_far_ahead_destroys_and_fires_nothing_until_it_is_right(
    home: Home, telegram: Telegram
) -> None:
    spoken(home, telegram, "hello", "and again")
    reminded(home, "call the dentist", seconds=1)
    long_ago(home, days=60)  # by this home the machine is two months ahead
    steps, events = counted(home, "steps"), counted(home, "inbox")
    backups = home.path / BACKUPS
    backups.mkdir(exist_ok=True)
    for file in backups.iterdir():
        file.unlink()
    for day in range(1, 6):
        (backups / f"hearthbot-2026010{day}.db").touch()
    telegram.ask("clock", ahead_s=-60 * DAY_S)

    bot = started(home)
    until(lambda: "Telegram's time" in home.log)
    answer = asks(telegram, ANN, "what is up?")
    status = home.run("status").stdout
    assert "You said: what is up?" in answer
    assert "60 days ahead of Telegram's time" in status
    assert any("60 days ahead" in line for line in found(home, "housekeeping"))
    assert counted(home, "steps") > steps
    assert counted(home, "inbox") > events
    assert len(list(backups.iterdir())) == 5
    assert not any("dentist" in text for text in telegram.shown(ANN))
    # It was stored by the time that is known: the next start is no wiser by it.
    assert bot.end() == 0
    bot = started(home)
    until(lambda: home.log.count("Telegram's time") >= 2)
    assert len(list(backups.iterdir())) == 5

    telegram.ask("clock", ahead_s=0)
    card_that(telegram, "dentist", button="Done")
    until(lambda: counted(home, "steps") < steps)
    until(lambda: len(list(backups.iterdir())) == 3)
    assert bot.end() == 0


def test_a_start_with_a_clock_far_behind_waits_for_the_owners_word(
    home: Home, telegram: Telegram
) -> None:
    spoken(home, telegram, "hello")
    reminded(home, "call the dentist", seconds=1)
    long_ago(home, days=-1300)  # by this home the machine is years behind
    home.env["HEARTHBOT_TELEGRAM__BASE_URL"] = "http://127.0.0.1:1"
    backups = home.path / BACKUPS
    kept = sorted(backups.iterdir()) if backups.exists() else []

    bot = home.start()
    until(lambda: "1,300 days behind the last thing I stored" in home.run("status").stdout)
    waiting = home.ask_database("select count(*) from job_runs")
    done = home.run("chat", "-m", "/resume")
    said = done.stdout + done.stderr
    until(lambda: home.ask_database("select count(*) from job_runs") != waiting)
    after = home.run("status").stdout
    bot.kill()
    trusting = home.start("run", "--trust-clock")
    until(lambda: "Model:" in home.run("status").stdout)

    assert "I trust this machine's clock" in said
    assert waiting == [(0,)]
    assert "the last thing I stored" not in after
    assert "the last thing I stored" not in home.run("status").stdout
    assert kept == [] or backups.exists()
    trusting.kill()


def test_a_machine_that_was_off_for_months_goes_on_and_erases_what_the_settings_say(
    home: Home, telegram: Telegram
) -> None:
    home.env["HEARTHBOT_HISTORY__KEEP_DAYS"] = "7"
    spoken(home, telegram, "the key is under the mat")
    reminded(home, "call the dentist", seconds=1)
    long_ago(home, days=90)

    started(home)
    card_that(telegram, "dentist", button="Done")
    until(lambda: counted(home, "steps") == 0 and not kept_words(home))
    answer = asks(telegram, ANN, "hello again")

    assert answer == "You said: hello again"
    assert not any("under the mat" in text for text in kept_words(home))
    assert "the last thing I stored" not in home.run("status").stdout


def kept_words(home: Home) -> list[str]:
    """What the person wrote, as far as it is stored."""
    texts = home.ask_database("select body from messages union all select text from outbox")
    return [text for (text,) in texts if "mat" in text and "You said" not in text]


@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_backup_of_2030_is_not_the_one_that_is_offered(home: Home, damage: str) -> None:
    home.approve(ANN)
    backups = home.path / BACKUPS
    backups.mkdir(exist_ok=True)
    for name in ("hearthbot-20300101.db", "hearthbot-20260102.db"):
        shutil.copy(home.database, backups / name)
    if damage == "cut":
        content = home.database.read_bytes()
        home.database.write_bytes(content[: len(content) // 2 + 100])
    else:
        home.database.unlink()
    for beside in home.database.parent.glob("hearthbot.db-*"):
        beside.unlink()

    done = home.run("run", "--once")

    assert done.returncode == 1
    assert "hearthbot-20260102.db" in done.stderr
    assert "20300101" not in done.stderr
