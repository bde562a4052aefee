"""Conversations as whole things: listed, shown, erased. For commands and retention.

`erase_conversation` is for everybody who has to erase one within a transaction of their own.
"""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import structlog

from memory.database.backup import all_backups, connect, empty_wal, make_anew, renew_backups
from memory.database.connection import BITE_ROWS, Database
from memory.database.errors import storage_error
from memory.database.premises import Premises
from memory.database.rows import named, record
from memory.records.errors import Temporary
from memory.records.messages import AGENT_CHANNEL, ConversationId
from memory.records.ports import StoredEntry
from memory.records.transcript import Session
from memory.search.archive import drop_from_index, drop_run_from_index, merge_some
from memory.stores.conversations import OPEN, SqliteConversations, random_id, read_entries

log = structlog.get_logger()

WAL_TRIES = 50
"""How often the `-wal` is emptied while somebody reads; each waits for some milliseconds."""

MERGE_EVERY_MS = 86_400_000
"""How often the index of words is rewritten without the words of messages removed by age."""

PEOPLE_FROM = 200
"""The newest entries of a conversation, by whose turns it is known who spoke in it."""

_LISTED = """
select id from conversations
where (? or lane not like ?) and exists (
    select 1 from messages where messages.conversation_id = conversations.id
)
order by (
    select max(messages.id) from messages where messages.conversation_id = conversations.id
) desc limit ?
"""
_NAMED = "select id from conversations where id = ?"
_BEGINNING = "select id from conversations where substr(id, 1, length(?)) = ? order by id limit 20"
_SESSION = """
select c.id, c.lane, c.closed_ms, c.is_private,
    coalesce(sum(m.kind in ('said', 'answered', 'result')), 0) as messages,
    coalesce(sum(length(m.body)), 0) / 4 as tokens,
    coalesce(min(m.created_ms), c.created_ms) as began_ms,
    coalesce(max(m.created_ms), c.created_ms) as last_ms,
    (
        select summary from compactions where conversation_id = c.id and undone_ms is null
        order by id desc limit 1
    ) as summary
from conversations c left join messages m on m.conversation_id = c.id
where c.id = ? group by c.id
"""
_PEOPLE = """
select distinct people.name from turns join people on people.id = turns.person_id
where people.name <> '' and turns.run_id in (
    select run_id from messages where conversation_id = ? order by id desc limit ?
)
order by people.name
"""
_ENTRIES = """
select id, run_id, body, created_ms from messages
where conversation_id = ? and id > ? order by id limit ?
"""
_LAST_ENTRIES = """
select id, run_id, body, created_ms from messages
where conversation_id = ? order by id desc limit ?
"""
_LANE = "select lane, closed_ms from conversations where id = ?"
_BUSY = """
select 1 from turns where lane = ? and ended_ms is null
union all
select 1 from children join turns on turns.run_id = children.run_id
where parent_lane = ? and ended_ms is null
limit 1
"""

# Old messages go one by one, whatever conversation they stand in.
_OLD = """
select id, run_id, conversation_id from messages where created_ms < ? order by created_ms limit ?
"""
_UNQUOTE = "update facts set message_id = null where message_id in (select value from json_each(?))"
_DROP = "delete from messages where id in (select value from json_each(?))"
_SPENT = """
update turns set payload = '{}', erased_ms = coalesce(erased_ms, ?)
where run_id = ? and ended_ms is not null and not exists (
    select 1 from messages where messages.run_id = turns.run_id
)
"""
_IS_EMPTY = "select not exists (select 1 from messages where conversation_id = ?)"
# New messages are numbered from the last one left, so no mark may be ahead of that.
_BEGIN_ANEW = (
    "update conversations set sent_from = 0, shortened_to = 0 where id = ?",
    "update idle_timers set done_upto = 0 where conversation_id = ?",
    "delete from compactions where conversation_id = ?",
)
_OLD_MARKS = (
    """
    delete from compactions where id in (select id from compactions where made_ms < ? limit ?)
    """,
    """
    delete from notes where id in (
        select id from notes where run_id is not null and created_ms < ? limit ?
    )
    """,
    """
    delete from insights where conversation_id in (
        select conversation_id from insights where updated_ms < ? limit ?
    )
    """,
)
# Conversations of subagents are never closed. What waits or runs at an address may still write.
_OVER = """
select id from conversations
where (closed_ms < ?1 or (lane like ?2 and created_ms < ?1))
    and not exists (select 1 from messages where conversation_id = conversations.id)
    and not exists (select 1 from turns where turns.lane = conversations.lane and ended_ms is null)
limit ?3
"""

# Of a turn that said nothing there are no messages: it is known by what it began with.
_RUNS = """
select run_id from messages where conversation_id = :conversation
union
select run_id from turns
where lane = :lane and ended_ms is not null and :conversation =
    case when json_valid(payload) then json_extract(payload, '$.conversation') end
"""
_JOINED = "select run_id from turns where joined_to in (select value from json_each(?))"
_CHILDREN = "select run_id from children where parent_run in (select value from json_each(?))"
_CHILD_CONVERSATIONS = """
select distinct conversation_id from messages where run_id in (select value from json_each(?))
"""
_ERASE_OF_RUNS = (
    "delete from steps where run_id in (select value from json_each(:runs))",
    """
    update turns set payload = '{}', erased_ms = :now
    where run_id in (select value from json_each(:runs)) and ended_ms is not null
    """,
    """
    update outbox_parts set markup = '', source = '' where outbox_id in (
        select id from outbox where run_id in (select value from json_each(:runs))
    )
    """,
    """
    update outbox set state = 'failed', reason = 'the conversation was erased', ended_ms = :now
    where run_id in (select value from json_each(:runs)) and ended_ms is null
    """,
    """
    update outbox set text = '', keyboard = '', buttons = '', revision = null
    where run_id in (select value from json_each(:runs))
    """,
    """
    update approvals set shows = '', why = '' where run_id in (select value from json_each(:runs))
    """,
    "update children set head = '' where run_id in (select value from json_each(:runs))",
    """
    delete from signals where key in (select 'child:' || value from json_each(:runs))
    """,
)
_ERASE = (
    # The fact stays; the line it rests on is gone, and its number may come again.
    """
    update facts set message_id = null where message_id in (
        select id from messages where conversation_id = :conversation
    )
    """,
    "delete from messages where conversation_id = :conversation",
    "delete from notes where conversation_id = :conversation",
    "delete from conversations where id = :conversation",
)


class SessionBusy(Temporary):
    """A conversation in which a turn runs, or waits for something, cannot be erased."""


class SqliteSessions:
    """All conversations. Raises StorageError."""

    def __init__(self, database: Database, *, erased: Callable[[], None] | None = None) -> None:
        """`erased` is called once something was: whoever keeps entries in memory forgets them."""
        self._database = database
        self._erased = erased
        self._merged_ms = 0

    async def list(self, *, limit: int, all_lanes: bool = False) -> Sequence[Session]:
        """The last used first; those in which nothing was said are left out."""
        values = (all_lanes, f"{AGENT_CHANNEL}:%", max(limit, 0))
        return await self._database.read(lambda c: _sessions(c, _LISTED, values))

    async def find(self, wanted: str) -> Sequence[Session]:
        """Those whose id begins like this; a whole id finds that one alone."""
        if not wanted:
            return []

        def work(connection: sqlite3.Connection) -> Sequence[Session]:
            whole = _sessions(connection, _NAMED, (wanted,))
            return whole or _sessions(connection, _BEGINNING, (wanted, wanted))

        return await self._database.read(work)

    async def entries(
        self, conversation: ConversationId, *, after: int, limit: int
    ) -> Sequence[StoredEntry]:
        """Return what stands in it behind the id `after`, in order."""
        values = (conversation, after, max(limit, 0))
        return await self._database.read(lambda c: read_entries(c.execute(_ENTRIES, values)))

    async def last_entries(
        self, conversation: ConversationId, *, limit: int
    ) -> Sequence[StoredEntry]:
        """The newest, in order."""
        values = (conversation, max(limit, 0))
        newest = await self._database.read(lambda c: read_entries(c.execute(_LAST_ENTRIES, values)))
        return newest[::-1]

    async def erase(self, conversation: ConversationId) -> bool:
        """Erases all that was said in it for good; where it is the open one of its address, another
        is begun. False when it is not there. Raises SessionBusy."""
        now_ms, new_id = self._database.now_ms(), random_id()

        def work(connection: sqlite3.Connection) -> bool:
            row = connection.execute(_LANE, (conversation,)).fetchone()
            if row is None:
                return False
            lane, closed_ms = row
            if connection.execute(_BUSY, (lane, lane)).fetchone() is not None:
                raise SessionBusy(
                    f"A message is being answered in {lane}, or an answer is waited for there, so "
                    "nothing was erased. Say it again once that is done; `/stop` ends it."
                )
            erase_conversation(connection, conversation, now_ms)
            if closed_ms is None:
                connection.execute(OPEN, (new_id, lane, now_ms, 0))
            return True

        if not await self._database.write(work):
            return False
        if self._erased is not None:
            self._erased()
        # The overwritten pages are in the main file then, and what they were is nowhere.
        for _ in range(WAL_TRIES):
            if await self._database.between(empty_wal):
                return True
        log.warning("sessions.wal_in_use")
        return True

    async def prune(self, before_ms: int) -> int:
        """Erase what was said before then, in open conversations too, and conversations closed
        before then; return how many rows went. For a daily caller.

        It goes a bite at a time, so that nobody waits long. The journal and the outbox prune the
        steps and replies of those turns.
        """
        now_ms = self._database.now_ms()

        def erase_old(connection: sqlite3.Connection) -> int:
            began = connection.total_changes
            # Each has up to three rows more: its turn's, its exchange's, and the words of that.
            found = connection.execute(_OLD, (before_ms, BITE_ROWS // 4)).fetchall()
            ids, runs = json.dumps([row[0] for row in found]), {row[1] for row in found}
            for run_id in runs:
                drop_run_from_index(connection, run_id)  # while its messages are there
            connection.execute(_UNQUOTE, (ids,))
            connection.execute(_DROP, (ids,))
            connection.executemany(_SPENT, [(now_ms, run_id) for run_id in runs])
            for conversation in {row[2] for row in found}:
                if connection.execute(_IS_EMPTY, (conversation,)).fetchone()[0]:
                    for sql in _BEGIN_ANEW:
                        connection.execute(sql, (conversation,))
            return connection.total_changes - began

        def drop_over(connection: sqlite3.Connection) -> int:
            values = (before_ms, f"{AGENT_CHANNEL}:%", BITE_ROWS // 2)
            found = connection.execute(_OVER, values).fetchall()
            for (conversation,) in found:
                connection.execute("delete from notes where conversation_id = ?", (conversation,))
                connection.execute("delete from conversations where id = ?", (conversation,))
            return len(found)

        rows = said = await self._database.in_bites(erase_old)
        for sql in _OLD_MARKS:
            rows += await self._database.prune(sql, before_ms)
        rows += await self._database.in_bites(drop_over)
        if rows and self._erased is not None:
            self._erased()
        if said and now_ms - self._merged_ms >= MERGE_EVERY_MS:
            await self._database.in_bites(merge_some)
            self._merged_ms = now_ms
        return rows


def erase_conversation(
    connection: sqlite3.Connection, conversation: ConversationId, now_ms: int
) -> bool:
    """Erases one with all that was made of it, within the caller's transaction: messages, index,
    summaries, insights, notes, what its turns began with, their steps and replies, and the
    transcripts of its subagents. Facts stay. False when it is not there.

    The caller sees to it that no turn of it runs. Pages are overwritten (`secure_delete`).
    """
    row = connection.execute(_LANE, (conversation,)).fetchone()
    if row is None:
        return False
    values = {"conversation": conversation, "lane": row[0], "now": now_ms}
    runs = [run_id for (run_id,) in connection.execute(_RUNS, values)]
    runs += [run_id for (run_id,) in connection.execute(_JOINED, (json.dumps(runs),))]
    children = [run_id for (run_id,) in connection.execute(_CHILDREN, (json.dumps(runs),))]
    of_children = connection.execute(_CHILD_CONVERSATIONS, (json.dumps(children),)).fetchall()
    drop_from_index(connection, conversation)
    for statement in _ERASE_OF_RUNS:
        connection.execute(statement, {"runs": json.dumps([*runs, *children]), "now": now_ms})
    for statement in _ERASE:
        connection.execute(statement, values)
    for (child,) in of_children:
        if child != conversation:
            erase_conversation(connection, ConversationId(child), now_ms)
    return True


def _sessions(
    connection: sqlite3.Connection, sql: str, values: tuple[object, ...]
) -> list[Session]:
    found = []
    for (conversation,) in connection.execute(sql, values).fetchall():
        people = connection.execute(_PEOPLE, (conversation, PEOPLE_FROM)).fetchall()
        row = next(named(connection.execute(_SESSION, (conversation,))))
        found.append(record(Session, row, people=tuple(name for (name,) in people)))
    return found


# --- private ------------------------------------------------------------------------------------
#
# Conversations with memory off: begun, and erased for good once they are over.
#
# Called by `bot.commands.memory`, by way of `memory.service`.

RESULTS = "files/results"
"""In the workspace: where long results of tools are kept, in files named after their turns, and
what came with messages, in files that the step `files` of a turn names."""

_IS_PRIVATE = "select is_private from conversations where lane = ? and closed_ms is null"
_CLOSED = "select id from conversations where is_private and closed_ms is not null order by id"
_RUNS_SAID = "select distinct run_id from messages where conversation_id = ?"
_FILES = """
select output from steps
where name = 'files' and output is not null and run_id in (select value from json_each(?))
"""
_IS_THERE = "select exists (select 1 from conversations where id = ?)"


class SqlitePrivate:
    """Keeps conversations with memory off (`/private`). Raises StorageError."""

    def __init__(
        self,
        database: Database,
        conversations: SqliteConversations,
        sessions: SqliteSessions,
        premises: Premises,
    ) -> None:
        self._database = database
        self._conversations = conversations
        self._sessions = sessions
        self._premises = premises
        self._erasing = asyncio.Lock()

    async def begin(self, lane: str) -> None:
        """Closes the open conversation, which is kept, and opens one with memory off."""
        await self._conversations.start_new(lane, is_private=True)

    async def end(self, lane: str) -> None:
        """Closes it and opens a usual one."""
        await self._conversations.start_new(lane)

    async def is_private(self, lane: str) -> bool:
        """Return whether memory is off at this address now."""
        return bool(await self._database.value(_IS_PRIVATE, (lane,)))

    async def sweep(self) -> int:
        """Erase those that are over, for good, also those that a former process left; return how
        many have to wait, because a turn in their chat is not over. At every start, once an hour,
        and when one ends."""
        async with self._erasing:
            try:
                ids = [ConversationId(one) for (one,) in await self._database.rows(_CLOSED)]
                erased = [one for one in ids if await self._erase(one)]
                if erased:
                    self._conversations.reread()
                    await self._database.between(make_anew)
                    place = (self._database.path, self._premises.backups)
                    copies = await asyncio.to_thread(all_backups, *place, now=self._database.now())
                    if await asyncio.to_thread(any, (_holds(copy, erased) for copy in copies)):
                        await asyncio.to_thread(renew_backups, *place, self._database.now())
                    await self._database.between(empty_wal)
                left = len(ids) - len(erased)
            except OSError as error:
                raise storage_error(error, self._database.path) from error
        if left:
            log.info("private.waits", count=left)
        return left

    async def _erase(self, conversation: ConversationId) -> bool:
        ids = [run_id for (run_id,) in await self._database.rows(_RUNS_SAID, (conversation,))]
        came = await self._database.rows(_FILES, (json.dumps(ids),))
        # Before their names are gone with the turns: a kill in between has it done once more.
        await asyncio.to_thread(self._drop_files, ids, [output for (output,) in came])
        try:
            return await self._sessions.erase(conversation)
        except SessionBusy:
            return False

    def _drop_files(self, runs: Sequence[str], outputs: Sequence[str]) -> None:
        """Remove kept results of these turns, and what came with their messages."""
        folder = self._premises.workspace.resolve() / RESULTS
        named = {re.sub(r"[^A-Za-z0-9-]", "_", run_id)[:64] for run_id in runs}
        for path in folder.glob("*/*.txt"):
            if path.name.rpartition("-")[0] in named and not path.is_symlink():
                path.unlink(missing_ok=True)
        for output in outputs:
            for kept in json.loads(output).get("kept", ()):
                path = (self._premises.workspace / kept).resolve()
                if path.is_relative_to(folder):
                    path.unlink(missing_ok=True)


def _holds(copy: Path, erased: Sequence[ConversationId]) -> bool:
    try:
        with closing(connect(copy, mode="ro")) as connection:
            return any(connection.execute(_IS_THERE, (one,)).fetchone()[0] for one in erased)
    except sqlite3.Error:
        return False  # what cannot be read as a database is no copy of one
