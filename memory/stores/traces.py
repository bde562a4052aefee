"""What was sent to a model, read from the recorded steps: the `Traces` that the core needs.

Nothing is written for it: the steps are there anyway, until the journal prunes them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import structlog

from memory.database.connection import Database
from memory.records.messages import PersonId, RunId
from memory.records.ports import Json
from memory.records.rows import PromptTrace

log = structlog.get_logger()

_TURN = """
select run_id, lane, person_id, coalesce(started_ms, created_ms) from turns where run_id = ?
"""
# Turns that were joined to another, or whose steps are pruned, have no `begin`. Left out here and
# not one by one: a chat may have thousands of them.
_TURNS = """
select run_id, lane, person_id, coalesce(started_ms, created_ms) from turns
where lane = ? and exists (
    select 1 from steps
    where steps.run_id = turns.run_id and steps.name = 'begin' and steps.output is not null
)
order by seq desc
"""
_STEPS = """
select n, name, output from steps
where run_id = ? and name in ('begin', 'model') and output is not null order by n
"""


class SqliteTraces:
    """Implements `memory.records.ports.Traces`. A step that cannot be read is left out, with a log
    line."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def prompt(self, run_id: RunId) -> PromptTrace | None:
        """One turn's; None when it has not begun, or its steps are no longer kept."""

        def work(connection: sqlite3.Connection) -> PromptTrace | None:
            turn = connection.execute(_TURN, (run_id,)).fetchone()
            return None if turn is None else _trace(connection, turn)

        return await self._database.read(work)

    async def prompts(self, lane: str, *, limit: int) -> Sequence[PromptTrace]:
        """The newest turns of an address that have begun, newest first."""

        def work(connection: sqlite3.Connection) -> list[PromptTrace]:
            return list(islice(_newest(connection, lane), max(limit, 0)))

        return await self._database.read(work)


def _newest(connection: sqlite3.Connection, lane: str) -> Iterator[PromptTrace]:
    for turn in connection.execute(_TURNS, (lane,)):
        trace = _trace(connection, turn)
        if trace is not None:
            yield trace


def _trace(connection: sqlite3.Connection, turn: tuple[Any, ...]) -> PromptTrace | None:
    run_id, lane, person_id, started_ms = turn
    outputs: dict[str, list[Json]] = {"begin": [], "model": []}
    for n, name, text in connection.execute(_STEPS, (run_id,)):
        output = _object(text)
        if output is None:
            log.warning("trace.unreadable", turn=run_id, step=n, kind=name)
        else:
            outputs[name].append(output)
    if not outputs["begin"]:
        return None
    return PromptTrace(
        run_id=RunId(run_id),
        lane=lane,
        person_id=PersonId(person_id),
        started_ms=started_ms,
        begin=outputs["begin"][0],
        asked=tuple(outputs["model"]),
    )


def _object(text: str) -> Json | None:
    """The JSON object in `text`, if it is one. Nested beyond reason counts as none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
