"""What the tests of jobs say on the command line, and look for afterwards."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.lab.model_script import last_user_text
from memory.database.connection import Database
from memory.records.jobs import At, Due, Job, JobKind, What
from memory.records.messages import PersonId
from memory.stores.jobs import SqliteJobs
from scheduler.clock.machine import SystemClock
from tests.acceptance.rig import Card, Home, Model, Running, Telegram, until

ANN, BOB = 7, 8
NAME_CHARS = 40


def started(home: Home) -> Running:
    """A bot that serves: a command beside one that only begins would be in its way."""
    bot = home.start()
    until(bot.serving)
    return bot


def reminded(home: Home, text: str, *, seconds: int) -> None:
    """Keeps a reminder of the owner, on the command line; later where a busy machine needs longer
    than that to keep it."""
    for ahead in (seconds, 5 * seconds, 30 * seconds):
        done = home.run("schedule", "add", f"in {ahead} seconds", text, "--yes")
        if "That time is over" not in done.stderr:
            break
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A reminder, or instructions; once, at an aware moment that may be over."""

    text: str
    due: datetime
    chat: int = ANN
    kind: JobKind = JobKind.MESSAGE


def keep(home: Home, kept: Sequence[Kept]) -> None:
    """Puts jobs of the owner's into the book of a bot that does not run: the command line takes
    none whose time is over, and half a second for each."""

    async def add() -> None:
        async with Database.open(home.database, clock=SystemClock()) as database:
            store = SqliteJobs(database)
            for one in kept:
                new = Job(
                    name=one.text[:NAME_CHARS],
                    person_id=PersonId(people[f"telegram:{one.chat}"]),
                    kind=one.kind,
                    what=What(text=one.text),
                    when=At(moment=one.due, zone="UTC"),
                    deliver_to=f"telegram:{one.chat}",
                )
                slot = f"{one.due:%Y-%m-%dT%H:%M:%S}"
                due = Due(slot=slot, at_ms=int(one.due.timestamp() * 1000))
                assert await store.add(new, due) is not None, one.text

    people = dict(home.ask_database("select address, person_id from addresses"))
    asyncio.run(add())
