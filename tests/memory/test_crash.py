"""Killed at any moment: a turn is whole or absent, and what was promised is there."""

from __future__ import annotations

import sqlite3
import subprocess
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from memory.stores.conversations import SqliteConversations
from tests.fork_server import plain_env, start
from tests.memory.crash_child import ENTRIES_IN_A_TURN
from tests.memory.kit import opened
from tests.thorough import rounds

KILLS = rounds(6, 30)

TURNS = """
select turns.run_id, turns.status, inbox.state,
    (select count(*) from messages where messages.run_id = turns.run_id),
    (select text from outbox where outbox.run_id = turns.run_id)
from turns join inbox on inbox.id = turns.inbox_id
"""


def run_and_kill(path: Path, name: str, chance: Random) -> list[list[str]]:
    """Runs the child until it has said some lines, kills it, and returns all that it said."""
    said = []
    words = [str(path), name]
    with start(
        "tests.memory.crash_child", words, env=plain_env(), stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        for _ in range(chance.randrange(1, 400)):
            said.append(child.stdout.readline())
        child.kill()
        said.extend(child.stdout)
    assert child.returncode == -9
    return [line.split() for line in said if line.endswith("\n")]


def check_whole(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert connection.execute("pragma foreign_key_check").fetchall() == []
        turns = connection.execute(TURNS).fetchall()
    for run_id, status, inbox, entries, reply in turns:
        if status == "done":
            expected: tuple[object, ...] = ("replied", ENTRIES_IN_A_TURN, f"reply to {run_id}")
        else:
            expected = ("queued", 0, None)
        assert (inbox, entries, reply) == expected


def check_promises(path: Path, said: list[list[str]]) -> None:
    """Nothing that was told to the outside is missing inside."""
    told = defaultdict(set)
    for line in said:
        told[line[0]].add(tuple(line[1:]))
    with closing(sqlite3.connect(path)) as connection:
        events = set(connection.execute("select event_id from inbox"))
        steps = {
            (run_id, str(n)) for run_id, n in connection.execute("select run_id, n from steps")
        }
        done = set(connection.execute("select run_id from turns where status = 'done'"))
    assert told["confirmed"] <= events
    assert told["recorded"] <= steps
    assert told["finished"] | told["delivered"] <= done


@pytest.mark.case("HI-09", "HI-11")
async def test_a_kill_at_any_moment_loses_and_halves_nothing(path: Path) -> None:
    chance = Random(11)
    said: list[list[str]] = []

    for n in range(KILLS):
        said += run_and_kill(path, f"k{n}", chance)

        # As the next start does: SQLite takes up the -wal, and the file passes its check.
        async with opened(path):
            pass
        check_whole(path)
        check_promises(path, said)

    assert sum(line[0] == "finished" for line in said) > KILLS

    # What was delivered is in the history of the next turn.
    known: dict[str, list[str]] = defaultdict(list)
    async with opened(path) as database:
        conversations = SqliteConversations(database)
        for lane in range(4):
            conversation = await conversations.current(f"telegram:{lane}")
            for stored in (await conversations.history(conversation)).entries:
                known[stored.run_id].append(type(stored.entry).__name__)
    order = ["Said", "Answered", "ToolResult", "Answered"]
    assert all(known[line[1]] == order for line in said if line[0] == "delivered")
