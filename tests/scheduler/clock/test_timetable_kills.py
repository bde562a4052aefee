"""Two timetables on one database, killed again and again in the middle of a look: no slot is taken
twice, and none is lost."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import subprocess
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memory.records.jobs import Cron, JobKind, MisfirePolicy
from tests.checkout import ROOT
from tests.fork_server import plain_env, start
from tests.scheduler.jobs_kit import Office, job
from tests.thorough import rounds

START = datetime(2026, 10, 24, 12, 0, tzinfo=UTC)
END = START + timedelta(days=2)  # the clocks go back in between
KILLS = rounds(6, 20)
JOBS = 6


def test_two_timetables_that_are_killed_take_each_slot_once_and_lose_none(tmp_path: Path) -> None:
    office = Office(tmp_path, start=START)
    asyncio.run(given(office))
    chance = random.Random(20)

    kills = 0
    for _ in range(KILLS):
        kills += killed(office.path, after=chance.randrange(1, 40), pause=chance.random() * 0.004)
    assert kills == KILLS, "each was in the middle of its work"
    whole = run(office.path, START)
    assert whole.communicate(timeout=60)[0].split()[-1] == "done"

    rows, messages, runs = found(office.path)
    assert sorted(rows) == sorted(expected())
    assert Counter(messages) == Counter(f"{n} {slot}" for n, slot in rows if n % 2)
    assert Counter(runs) == Counter(f"job-{n}:{slot}" for n, slot in rows if not n % 2)


async def given(office: Office) -> None:
    async with office.opened():
        for number in range(1, JOBS + 1):
            kind = JobKind.MESSAGE if number % 2 else JobKind.AGENT
            when = Cron(expression="*/30 * * * *", zone="Europe/Berlin")
            await office.add(job(f"job {number}", when=when, kind=kind, missed=MisfirePolicy.ALL))


def expected() -> list[tuple[int, str]]:
    """Every half hour that passes, by its name on the wall of Berlin."""
    slots = []
    moment = START + timedelta(minutes=30)
    while moment <= END:
        summer = moment < datetime(2026, 10, 25, 1, tzinfo=UTC)
        wall = moment + timedelta(hours=2 if summer else 1)
        again = "/2" if not summer and wall < datetime(2026, 10, 25, 3, tzinfo=UTC) else ""
        slots.append(f"{wall:%Y-%m-%dT%H:%M}{again}")
        moment += timedelta(minutes=30)
    return [(number, slot) for number in range(1, JOBS + 1) for slot in slots]


def run(path: Path, begin: datetime) -> subprocess.Popen[str]:
    words = [str(path), begin.isoformat(), END.isoformat()]
    child = "tests.scheduler.timetable_child"
    return start(child, words, env=plain_env(), cwd=ROOT, stdout=subprocess.PIPE, text=True)


def killed(path: Path, *, after: int, pause: float) -> bool:
    """Kills it once so many are set going, at any moment of what follows; whether it was busy."""
    child = run(path, START)
    assert child.stdout is not None
    seen = 0
    for line in child.stdout:
        seen += line.startswith("taken")
        if seen >= after:
            break
    try:
        child.wait(timeout=pause)
    except subprocess.TimeoutExpired:
        child.kill()
    child.stdout.close()
    return child.wait() < 0


def found(path: Path) -> tuple[list[tuple[int, str]], list[str], list[str]]:
    """The ledger, the messages and the turns."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("select job_id, slot from job_runs").fetchall()
        messages = connection.execute("select text from outbox").fetchall()
        runs = connection.execute("select run_id from turns").fetchall()
    return rows, [row[0] for row in messages], [row[0] for row in runs]
