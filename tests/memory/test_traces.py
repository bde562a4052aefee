"""What was sent can be looked at as long as the steps are kept, and looking costs nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from memory.database.connection import Database
from memory.records.messages import PersonId, RunId
from memory.records.ports import Json
from memory.records.rows import PromptTrace
from memory.stores.traces import SqliteTraces
from memory.stores.turns import SqliteJournal
from tests.memory.kit import LANE, START_MS, StillClock, opened, run

BEGIN: Json = {"upto": 0, "sent_from": None, "system": "d1", "context": "☀", "tools": ["clock"]}
STRANGE = ["", "{", "[]", "null", "7", '"text"', "[" * 100_000, "1" * 5_000, '{"a": 1} trailing']


@pytest.fixture
def traces(database: Database) -> SqliteTraces:
    return SqliteTraces(database)


def answer(text: str) -> Json:
    return {"turns_sent": 1, "sent_from": None, "answer": {"kind": "answered", "text": text}}


def failure(kind: str) -> Json:
    return {"turns_sent": 1, "sent_from": None, "error": {"kind": kind, "text": "why"}}


async def take_turn(
    journal: SqliteJournal, run_id: str, *steps: tuple[str, Json], lane: str = LANE
) -> None:
    """A turn that has begun and recorded these steps, and goes on."""
    await journal.submit(run(run_id, lane=lane))
    await journal.begin(RunId(run_id))
    for n, (name, output) in enumerate(steps):
        await journal.record(RunId(run_id), n, name, output)


async def spoil(database: Database, run_id: str, n: int, output: str) -> None:
    """Writes what another version might have left."""
    await database.write(
        lambda c: c.execute(
            "update steps set output = ? where run_id = ? and n = ?", (output, run_id, n)
        )
    )


async def test_a_trace_has_the_beginning_and_each_answer_in_order(
    traces: SqliteTraces, journal: SqliteJournal, clock: StillClock
) -> None:
    await journal.submit(run("r1"))
    clock.move(2)
    await journal.begin(RunId("r1"))
    steps = [
        ("begin", BEGIN),
        ("model", failure("ContextTooLong")),
        ("model", answer("let me look")),
        ("tool", {"content": "12:00", "ok": True}),
        ("receive", {"messages": []}),
        ("model", answer("noon")),
    ]
    for n, (name, output) in enumerate(steps):
        await journal.record(RunId("r1"), n, name, output)

    assert await traces.prompt(RunId("r1")) == PromptTrace(
        run_id=RunId("r1"),
        lane=LANE,
        person_id=PersonId("p1"),
        started_ms=START_MS + 2_000,
        begin=BEGIN,
        asked=(failure("ContextTooLong"), answer("let me look"), answer("noon")),
    )


@pytest.mark.parametrize("strange", STRANGE, ids=lambda text: text[:8])
async def test_a_beginning_that_cannot_be_read_is_left_out_and_logged(
    traces: SqliteTraces, journal: SqliteJournal, database: Database, strange: str
) -> None:
    for run_id in ("r1", "r2", "r3"):
        await take_turn(journal, run_id, ("begin", BEGIN), ("model", answer("x")))
    await spoil(database, "r2", 0, strange)

    with capture_logs() as logs:
        alone = await traces.prompt(RunId("r2"))
        found = await traces.prompts(LANE, limit=2)

    assert alone is None
    assert [trace.run_id for trace in found] == ["r3", "r1"]
    line = {"event": "trace.unreadable", "turn": "r2", "step": 0, "kind": "begin"}
    assert logs == [line | {"log_level": "warning"}] * 2


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
any_object = st.dictionaries(st.text(), any_json, max_size=4)


@settings(max_examples=60, deadline=None)
@given(begin=any_object, asked=st.lists(any_object, max_size=4))
def test_whatever_a_step_recorded_reads_back_equal(
    tmp_path_factory: pytest.TempPathFactory, begin: Json, asked: list[Json]
) -> None:
    path = tmp_path_factory.mktemp("any") / "hearthbot.db"

    trace = asyncio.run(trace_of(path, begin, asked))

    assert trace is not None
    assert (trace.begin, list(trace.asked)) == (begin, asked)


async def trace_of(path: Path, begin: Json, asked: list[Json]) -> PromptTrace | None:
    async with opened(path) as database:
        steps = [("model", one) for one in asked]
        await take_turn(SqliteJournal(database), "r1", ("begin", begin), *steps)
        return await SqliteTraces(database).prompt(RunId("r1"))
