"""A summary of what rests on text from outside carries its mark, new ones and those of before."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest

from memory.database.connection import Database
from memory.database.migrate import MIGRATIONS, read_migrations
from memory.database.rows import dump
from memory.records.transcript import Answered, Entry, Note, Said, ToolResult, kind_of, to_json
from memory.stores.conversations import SqliteConversations
from tests.memory.history_kit import (
    ScriptedCheap,
    add_turns,
    compactor,
    detected,
    talk,
    wanted,
    work_done,
)
from tests.memory.kit import LANE

OUTSIDE: dict[str, Sequence[Entry]] = {
    "an answer that was given after it": [Said(text="q"), Answered(text="a", tainted=True)],
    "a result": [
        *work_done("q", "web_fetch", "{}", effect="")[:2],
        ToolResult(call_id="c1", content="a page", untrusted=True),
        Answered(text="a"),
    ],
    "forwarded words": [Said(text="q", forwarded=True), Answered(text="a")],
    "quoted words": [Said(text="q", quote="buy now"), Answered(text="a")],
    "a marked note": [Note(text="Sent.", untrusted=True), Said(text="q"), Answered(text="a")],
    "a file": [Note(text="It came.", content="a letter"), Said(text="q"), Answered(text="a")],
}


def summing_up(database: Database) -> Any:
    return compactor(database, ScriptedCheap(lambda prompt: detected("All of it.")))


@pytest.mark.parametrize("what", OUTSIDE)
async def test_what_was_read_outside_marks_the_summary_and_those_after_it(
    database: Database, conversations: SqliteConversations, what: str
) -> None:
    conversation = await conversations.current(LANE)
    await add_turns(database, conversation, [OUTSIDE[what], *(talk(f"q{n}") for n in range(5))])
    first = await summing_up(database).compact(wanted(conversation, forced=True))
    await add_turns(database, conversation, [talk(f"later {n}") for n in range(9)])
    second = await summing_up(database).compact(wanted(conversation, forced=True))

    assert first.tainted
    assert second.tainted
    assert (await conversations.history(conversation)).compaction == second


async def test_a_summary_of_ones_own_words_has_no_mark(
    database: Database, conversations: SqliteConversations
) -> None:
    conversation = await conversations.current(LANE)
    own = [talk("q"), work_done("note it", "write_file", "{}"), *(talk("more") for _ in range(5))]
    await add_turns(database, conversation, own)

    made = await summing_up(database).compact(wanted(conversation, forced=True))

    assert not made.tainted


@pytest.mark.parametrize("what", [*OUTSIDE, "nothing"])
def test_summaries_of_before_are_marked_by_what_had_been_read(what: str) -> None:
    entries = OUTSIDE.get(what, talk("q"))
    steps = read_migrations(MIGRATIONS)
    with closing(sqlite3.connect(":memory:")) as connection:
        for step in steps[:13]:
            connection.executescript(step.sql)
        connection.executescript("""
            insert into conversations (id, lane, created_ms) values ('c', 'telegram:5', 1);
            insert into compactions (conversation_id, kind, from_id, sent_from, summary, messages,
                tokens_before, tokens_after, made_ms) values ('c', 'digest', 0, 9, 's', 1, 1, 1, 5);
        """)
        for entry in entries:
            data = {key: value for key, value in to_json(entry).items() if key != "tainted"}
            connection.execute(
                "insert into messages (conversation_id, run_id, kind, body, created_ms)"
                " values ('c', 'r', ?, ?, 2)",
                (kind_of(entry), dump(data)),
            )

        connection.executescript(steps[13].sql)

        marks = connection.execute("select tainted from compactions").fetchall()
    by_answer_alone = what == "an answer that was given after it"  # no such mark was stored then
    assert marks == [(int(what != "nothing" and not by_answer_alone),)]
