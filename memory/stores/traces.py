"""What was sent to a model, what stands behind a message that was sent, and all that is kept of its
turn. Nothing is written for it: the steps are there anyway, until the journal prunes them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import structlog

from memory.database.connection import Database
from memory.database.rows import named, record, records
from memory.records.erasure import (
    Done,
    FileChange,
    FormerFile,
    LastTurn,
    digest_of,
    loss_of,
    typed_in,
)
from memory.records.messages import PersonId, RunId
from memory.records.ports import Json
from memory.records.rows import PromptTrace
from memory.records.transcript import Entry, entry_from_json
from memory.records.turns import Agreed, Behind, DueSlot, RecordedStep, TurnRecord
from memory.records.usage import UsageSum

log = structlog.get_logger()

LOOKED_AT_MAX = 200
"""Messages of an address, the newest first: between two answers there may be many of commands."""

# The newest first: what people ask about is mostly young, and ids grow.
_OF_MESSAGE = """
select outbox.id, outbox.lane, outbox.run_id, outbox.created_ms, outbox.text
from outbox_parts join outbox on outbox.id = outbox_id
where message_id = ? and lane in (select value from json_each(?))
order by outbox_id desc limit 1
"""
_OPEN = "select id, created_ms from conversations where lane = ? and closed_ms is null"
_NEWEST = """
select id, lane, run_id, created_ms, text from outbox
where lane = ? and created_ms >= ? and state <> 'draft' order by id desc limit ?
"""
# The owner is also asked about turns of other chats, which they are not in.
_CARD = "select run_id from approvals where outbox_id = ? and lane = ?"
_SLOTS = """
select outbox_id, job_id, due_ms, late_s, run_id from job_runs
where outbox_id >= ? order by due_ms
"""
# A message that came by the clock joins the history of its chat in the same transaction: how it
# came, and then its words, to which a button may have added something since.
_BY_CLOCK = """
select messages.created_ms, kind, body from messages
join conversations on conversations.id = conversation_id
where (run_id glob 'j[0-9]*:*' or run_id glob 'digest:*') and lane = ? and messages.created_ms >= ?
order by messages.id
"""
_TURN = """
select run_id, person_id, coalesce(started_ms, created_ms) as started_ms, ended_ms,
    erased_ms is not null as is_erased,
    (select count(*) from children where parent_run = turns.run_id) as subagents,
    exists (
        select 1 from messages join conversations on conversations.id = conversation_id
        where messages.run_id = turns.run_id and conversations.is_private
    ) as is_private
from turns where run_id = ?
"""
_STEPS = "select name, output, started_ms, ended_ms from steps where run_id = ? order by n"
_ENTRIES = "select body from messages where run_id = ? order by id"
_AGREED = """
select tool, nullif(state, 'open') as outcome, nullif(decided_by, '') as by, decided_ms as at_ms
from approvals where run_id = ? order by asked_ms, id
"""
# Turns of the conversation whose words were sent along, the newest first.
_BEFORE = """
select output from steps join (
    select run_id, max(id) as last from messages
    where conversation_id = ? and id >= ? and id <= ? group by run_id
) as sent on sent.run_id = steps.run_id
where name = 'begin' and output is not null order by last desc, n desc limit ?
"""
_SPENT = """
select model, count(*) as calls, sum(prompt) as prompt, sum(completion) as completion,
    sum(cached) as cached, coalesce(sum(micros), 0) as micros, sum(micros is null) as unpriced
from usage
where run_id <> '' and run_id in (select ? union select run_id from children where parent_run = ?)
group by model order by calls desc, model
"""


_PROMPTED = """
select run_id, lane, person_id, coalesce(started_ms, created_ms) from turns where run_id = ?
"""
# Turns that were joined to another, or whose steps are pruned, have no `begin`. Left out here and
# not one by one: a chat may have thousands of them.
_ALL_PROMPTED = """
select run_id, lane, person_id, coalesce(started_ms, created_ms) from turns
where lane = ? and exists (
    select 1 from steps
    where steps.run_id = turns.run_id and steps.name = 'begin' and steps.output is not null
)
order by seq desc
"""
_PROMPTS = """
select n, name, output from steps
where run_id = ? and name in ('begin', 'model') and output is not null order by n
"""


class SqliteTraces:
    """What was sent to a model, and records of turns, as far as steps are kept. What cannot be read
    is left out, with a log line. Raises StorageError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def prompt(self, run_id: RunId) -> PromptTrace | None:
        """One turn's; None when it has not begun, or its steps are no longer kept."""

        def work(connection: sqlite3.Connection) -> PromptTrace | None:
            turn = connection.execute(_PROMPTED, (run_id,)).fetchone()
            return None if turn is None else _trace(connection, turn)

        return await self._database.read(work)

    async def prompts(self, lane: str, *, limit: int) -> Sequence[PromptTrace]:
        """The newest turns of an address that have begun, newest first."""

        def work(connection: sqlite3.Connection) -> list[PromptTrace]:
            turns = connection.execute(_ALL_PROMPTED, (lane,))
            traces = (_trace(connection, turn) for turn in turns)
            return list(islice((one for one in traces if one is not None), max(limit, 0)))

        return await self._database.read(work)

    async def of_message(self, lanes: Sequence[str], message_id: str) -> Behind | None:
        """By the platform's id of a message at one of these addresses; None: it is not ours."""
        values = (message_id, json.dumps(list(lanes)))

        def work(connection: sqlite3.Connection) -> Behind | None:
            row = connection.execute(_OF_MESSAGE, values).fetchone()
            return None if row is None else next(_behind(connection, [row]))

        return await self._database.read(work)

    async def newest(self, lane: str, *, back: int = 1) -> Behind | None:
        """The last message of the open conversation there that is an answer or came by the clock,
        with `back` 2 the one before it; None where there is none."""

        def work(connection: sqlite3.Connection) -> Behind | None:
            conversation = connection.execute(_OPEN, (lane,)).fetchone()
            if conversation is None:
                return None
            values = (lane, conversation[1], LOOKED_AT_MAX)
            rows = connection.execute(_NEWEST, values).fetchall()
            answers = list(_answers(_behind(connection, rows)))
            return answers[back - 1] if 1 <= back <= len(answers) else None

        return await self._database.read(work)

    async def turn(self, run_id: RunId) -> TurnRecord | None:
        """All that is kept of one."""

        def work(connection: sqlite3.Connection) -> TurnRecord | None:
            row = next(named(connection.execute(_TURN, (run_id,))), None)
            if row is None:
                return None
            steps = tuple(
                RecordedStep(
                    name=name,
                    output=None if text is None else _object(text),
                    started_ms=started_ms,
                    ended_ms=ended_ms,
                )
                for name, text, started_ms, ended_ms in connection.execute(_STEPS, (run_id,))
            )
            return record(
                TurnRecord,
                row,
                steps=steps,
                entries=tuple(_entries(connection, run_id)),
                agreed=tuple(records(Agreed, connection.execute(_AGREED, (run_id,)))),
                spent=tuple(records(UsageSum, connection.execute(_SPENT, (run_id, run_id)))),
                before=tuple(_before(connection, steps)),
            )

        return await self._database.read(work)


def _answers(messages: Iterable[Behind]) -> Iterator[Behind]:
    """Those that are none of a command, of each turn its newest one: it may have asked before."""
    seen: set[RunId] = set()
    for one in messages:
        if one.run_id is not None and one.run_id not in seen:
            seen.add(one.run_id)
            yield one
        elif one.slots or one.gone:
            yield one


def _trace(connection: sqlite3.Connection, turn: tuple[Any, ...]) -> PromptTrace | None:
    run_id, lane, person_id, started_ms = turn
    outputs: dict[str, list[Json]] = {"begin": [], "model": []}
    for n, name, text in connection.execute(_PROMPTS, (run_id,)):
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


# --- rows ---------------------------------------------------------------------------------------


def _behind(connection: sqlite3.Connection, rows: Sequence[tuple[Any, ...]]) -> Iterator[Behind]:
    """Yield what stands behind each of these messages of one chat."""
    if not rows:
        return
    slots: dict[int, list[DueSlot]] = {}
    for row in named(connection.execute(_SLOTS, (min(row[0] for row in rows),))):
        slots.setdefault(row["outbox_id"], []).append(record(DueSlot, row))
    lanes, since_ms = {row[1] for row in rows}, min(row[3] for row in rows)
    by_clock = {lane: list(_by_clock(connection, lane, since_ms)) for lane in lanes}
    for outbox_id, lane, run_id, created_ms, text in rows:
        if run_id is not None:
            yield Behind(sent_ms=created_ms, run_id=RunId(run_id))
        elif found := slots.get(outbox_id):
            yield Behind(sent_ms=created_ms, slots=tuple(found))
        elif card := connection.execute(_CARD, (outbox_id, lane)).fetchone():
            yield Behind(sent_ms=created_ms, run_id=RunId(card[0]))
        else:
            # Something else may have been said in the same moment.
            notes = (
                note
                for at_ms, note, words in by_clock[lane]
                if at_ms == created_ms and text.startswith(words)
            )
            yield Behind(sent_ms=created_ms, gone=next(notes, ""))


def _by_clock(
    connection: sqlite3.Connection, lane: str, since_ms: int
) -> Iterator[tuple[int, str, str]]:
    """Yield when something came by the clock, how the history names it, and its words."""
    note = ""
    for at_ms, kind, body in connection.execute(_BY_CLOCK, (lane, since_ms)):
        text = str((_object(body) or {}).get("text", ""))
        if kind == "note":
            note = text
        else:
            yield at_ms, note, text


def _before(
    connection: sqlite3.Connection, steps: Sequence[RecordedStep]
) -> Iterator[dict[str, Any]]:
    """Yield what began the earlier turns that stand in the history of this one."""
    begin = next((one.output for one in reversed(steps) if one.name == "begin" and one.output), {})
    values = (begin.get("conversation"), begin.get("since"), begin.get("upto"), LOOKED_AT_MAX)
    if isinstance(values[0], str) and all(isinstance(one, int) for one in values[1:]):
        for (text,) in connection.execute(_BEFORE, values):
            if (found := _object(text)) is not None:
                yield found


def _entries(connection: sqlite3.Connection, run_id: RunId) -> Iterator[Entry]:
    for (body,) in connection.execute(_ENTRIES, (run_id,)):
        try:
            yield entry_from_json(_object(body) or {})
        except (KeyError, TypeError, ValueError):
            log.warning("explained.unreadable", turn=run_id)


def _object(text: str) -> dict[str, Any] | None:
    """The JSON object in `text`, if it is one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


# --- undo ---------------------------------------------------------------------------------------
#
# What turns changed, so that the last one can be taken back, and what files said before.

TURNS_LOOKED_AT_MAX = 200
"""Turns, the newest first: of those that changed nothing there may be many."""

_TURNS = """
select run_id, ended_ms from turns
where person_id = ? and lane = ? and ended_ms >= ? and status <> 'joined'
order by seq desc limit ?
"""
_CHILDREN = "select run_id from children where parent_run = ?"
# No turn waits for such a key: it is a mark that stays, with the turn that it is about.
_MARK = """
insert into signals (key, value, created_ms) values (?, '{}', ?) on conflict (key) do nothing
"""
_IS_MARKED = "select exists (select 1 from signals where key = ?)"
_FACTS = "select count(*) from facts where person_id = ? and run_id = ?"
_CHANGES = """
select count(*) from profile_changes where person_id = ? and run_id = ? and undone_ms is null
"""
_TYPED = """
select run_id, created_ms from facts
where run_id <> '' and run_id > ? and run_id < ? and person_id = ? and created_ms >= ?
order by id desc limit 1
"""
_TYPED_UNDONE = """
select key, created_ms from signals where key > ? and key < ? and created_ms >= ?
order by created_ms desc limit 1
"""
_END = "\U0010ffff"
_ENTRIES_DONE = """
select body from messages where run_id = ? and kind in ('answered', 'result') order by id
"""


class SqliteTurnsDone:
    """Finds what turns, and commands that keep something, changed. Raises StorageError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def last(self, person_id: PersonId, lane: str, *, since_ms: int) -> LastTurn | None:
        """Return the newest turn of this person at this address that ended since then and changed
        something, whether it can be taken back or not, or a command after it that stored something;
        None where there is none."""

        def work(connection: sqlite3.Connection) -> LastTurn | None:
            values = (person_id, lane, since_ms, TURNS_LOOKED_AT_MAX)
            typed = _typed(connection, person_id, lane, since_ms)
            for run_id, ended_ms in connection.execute(_TURNS, values).fetchall():
                if typed is not None and typed.ended_ms >= ended_ms:
                    break
                turn = _turn(connection, person_id, RunId(run_id), ended_ms)
                if turn.is_undone or turn.facts or turn.changes or turn.done:
                    return turn
            return typed

        return await self._database.read(work)

    async def undone(self, run_ids: Sequence[RunId]) -> None:
        """Mark these as taken back. May be repeated."""
        now_ms = self._database.now_ms()
        await self._database.execute_many(_MARK, [(_mark_of(one), now_ms) for one in run_ids])


def _mark_of(run_id: RunId) -> str:
    return f"undone:{run_id}"


def _turn(
    connection: sqlite3.Connection, person_id: PersonId, run_id: RunId, ended_ms: int
) -> LastTurn:
    children = [RunId(child) for (child,) in connection.execute(_CHILDREN, (run_id,))]
    runs = (run_id, *children)
    return LastTurn(
        run_id=run_id,
        ended_ms=ended_ms,
        runs=runs,
        done=tuple(done for run in runs for done in _done(connection, run)),
        facts=sum(_count(connection, _FACTS, person_id, run) for run in runs),
        changes=sum(_count(connection, _CHANGES, person_id, run) for run in runs),
        is_undone=bool(connection.execute(_IS_MARKED, (_mark_of(run_id),)).fetchone()[0]),
    )


def _typed(
    connection: sqlite3.Connection, person_id: PersonId, lane: str, since_ms: int
) -> LastTurn | None:
    """Return what this person typed here last that stored something. Once it is taken back, its
    mark is all that is left of it."""
    begin = typed_in(person_id, lane)
    stored = connection.execute(_TYPED, (begin, f"{begin}{_END}", person_id, since_ms)).fetchone()
    marks = f"{_mark_of(RunId(begin))}", f"{_mark_of(RunId(begin))}{_END}", since_ms
    undone = connection.execute(_TYPED_UNDONE, marks).fetchone()
    if stored is None and undone is None:
        return None
    if undone is None or (stored is not None and stored[1] > undone[1]):
        run_id, at_ms = stored
        return replace(_turn(connection, person_id, RunId(run_id), at_ms), typed=True)
    run_id, at_ms = undone[0].removeprefix(_mark_of(RunId(""))), undone[1]
    return replace(_turn(connection, person_id, RunId(run_id), at_ms), typed=True)


def _count(connection: sqlite3.Connection, sql: str, person_id: str, run_id: str) -> int:
    return int(connection.execute(sql, (person_id, run_id)).fetchone()[0])


def _done(connection: sqlite3.Connection, run_id: RunId) -> Iterator[Done]:
    """Calls whose results say that they changed something, in order."""
    names: dict[str, str] = {}
    for (body,) in connection.execute(_ENTRIES_DONE, (run_id,)):
        entry = json.loads(body)
        for call in entry.get("calls") or ():
            names[call["id"]] = call["name"]
        if entry.get("effect"):
            tool = names.get(entry["call_id"], "")
            yield Done(tool=tool, effect=entry["effect"], file=entry.get("file", ""))


# --- former files -------------------------------------------------------------------------------
#
# What files said before something was removed from them: a few texts for each person.
#
# Tools keep them (`agent.tools.groups.files.KeepFormer`), and `/undo` puts them back. Forgetting
# drops a text that holds the words (`memory.erasure.places`).

KEPT_MAX = 20
"""How many texts are kept for one person; the oldest go first."""

_FIND = "select former, becomes from former_files where run_id = ? and path = ?"
_PUT = """
insert into former_files (person_id, run_id, path, former, becomes, created_ms)
values (?, ?, ?, ?, ?, ?)
on conflict (run_id, path) do update set former = excluded.former, becomes = excluded.becomes
"""
_DROP_OLDEST = """
delete from former_files where person_id = ? and id not in (
    select id from former_files where person_id = ? order by id desc limit ?
)
"""
_OF_RUN = "select run_id, path, former, becomes from former_files where run_id = ? order by id desc"
_DROP = "delete from former_files where run_id = ? and path = ?"


class SqliteFormerFiles:
    """Stores one text for each file and run: as it was before the run's first change."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, change: FileChange) -> str:
        """See `agent.tools.groups.files.KeepFormer`."""
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> str:
            found = connection.execute(_FIND, (change.run_id, change.path)).fetchone()
            # If somebody else wrote in between, what they wrote is what is kept.
            goes_on = found is not None and found[1] == digest_of(change.former)
            former = str(found[0]) if goes_on else change.former
            if goes_on or loss_of(former, change.becomes).gone:
                of = (change.person_id, change.run_id, change.path)
                becomes = digest_of(change.becomes)
                connection.execute(_PUT, (*of, former, becomes, now_ms))
                whose = (change.person_id, change.person_id, KEPT_MAX)
                connection.execute(_DROP_OLDEST, whose)
            return former

        return await self._database.write(work)

    async def of(self, run_ids: Sequence[RunId]) -> Sequence[FormerFile]:
        """Return what these runs changed, the newest first."""

        def work(connection: sqlite3.Connection) -> list[FormerFile]:
            return [
                file
                for run_id in run_ids
                for file in records(FormerFile, connection.execute(_OF_RUN, (run_id,)))
            ]

        return await self._database.read(work)

    async def drop(self, file: FormerFile) -> None:
        """Forget it, once it is put back. May be repeated."""
        of = (file.run_id, file.path)
        await self._database.execute(_DROP, of)
