"""What the tests of jobs say on the command line, and look for afterwards."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from typing import Any

from bot.lab.model_script import last_user_text
from tests.acceptance.rig import Card, Home, Model, Running, Telegram, until

ANN, BOB = 7, 8


def started(home: Home) -> Running:
    """A bot that serves: a command beside one that only begins would be in its way."""
    bot = home.start()
    until(bot.serving)
    return bot


def reminded(home: Home, text: str, *, seconds: int) -> None:
    """Keeps a reminder of the owner, on the command line."""
    done = home.run("schedule", "add", f"in {seconds} seconds", text, "--yes")
    assert done.returncode == 0, done.stderr


def ordered(home: Home, text: str, *, when: str = "every Monday at 9") -> str:
    """Keeps instructions; the key of the job."""
    done = home.run("schedule", "add", when, text, "--do", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["key"])


def jobs(home: Home) -> dict[str, dict[str, Any]]:
    """What is kept, by name; the heartbeat apart."""
    answer = json.loads(home.run("schedule", "list", "--json").stdout)
    return {job["name"]: job for job in answer["jobs"] if job["kind"] != "heartbeat"}


def only_job(home: Home) -> dict[str, Any]:
    (job,) = jobs(home).values()
    return job


def runs_of(home: Home, key: str) -> list[str]:
    """States of the ledger, in order."""
    sql = f"select state from job_runs where job_id = {key.removeprefix('j')} order by rowid"
    return [str(state) for (state,) in home.ask_database(sql)]


def run_to_its_end(home: Home, key: str, state: str, *, count: int) -> None:
    """One run beside its times; then the ledger has `count` rows, all of this state."""
    home.run("schedule", "run", key)
    wanted = [state] * count
    until(lambda: runs_of(home, key) == wanted, about=lambda: str(runs_of(home, key)))


def card_that(telegram: Telegram, words: str, *, button: str, chat: int = ANN) -> Card:
    """Waits for a message with these words that has this button; the last one."""

    def found() -> list[Card]:
        return [c for c in telegram.cards(chat) if words in c.text and button in c.buttons]

    until(found, about=lambda: f"{words!r} in {telegram.cards(chat)}")
    return found()[-1]


def asked_for(model: Model, words: str) -> list[dict[str, Any]]:
    """Requests in which a person's last words, or the instructions of a job, begin so."""
    return [r for r in model.ask("requests") if last_user_text(r["messages"]).startswith(words)]


def due_in_the_past(home: Home) -> None:
    """Waits until all that is kept once is due; nothing runs meanwhile."""
    sql = "select max(next_ms) from jobs where kind = 'message'"
    ((last_ms,),) = home.ask_database(sql)
    until(lambda: time.time() * 1000 > last_ms)


def add_many(home: Home, many: int) -> None:
    """Reminders that are due soon, all in one second."""
    reminded(home, "thing 000", seconds=2)
    copied = """
        insert into jobs (name, person_id, agent, kind, what, runs_when, deliver_to, missed,
            missed_within_s, quiet, urgent, set_by, nag_s, max_runs, expires_ms, enabled,
            next_slot, next_ms, created_ms, updated_ms)
        select 'thing ' || :name, person_id, agent, kind,
            replace(what, 'thing 000', 'thing ' || :name), runs_when, deliver_to,
            missed, missed_within_s, quiet, urgent, set_by, nag_s, max_runs, expires_ms,
            enabled, next_slot, next_ms, created_ms, updated_ms
        from jobs where id = (select min(id) from jobs where kind = 'message')"""
    with closing(sqlite3.connect(home.database)) as connection, connection:
        connection.executemany(copied, [{"name": f"{n:03d}"} for n in range(1, many)])
