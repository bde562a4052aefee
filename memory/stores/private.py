"""Conversations with memory off: begun, and erased for good once they are over.

Called by `bot.commands.memory.commands`, by way of `memory.service`.
"""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import structlog

from memory.database.backup import all_backups, connect, empty_wal, make_anew, renew_backups
from memory.database.connection import Database
from memory.database.errors import storage_error
from memory.database.premises import Premises
from memory.records.messages import ConversationId
from memory.stores.conversations import SqliteConversations
from memory.stores.sessions import SessionBusy, SqliteSessions

log = structlog.get_logger()

RESULTS = "files/results"
"""In the workspace: where long results of tools are kept, in files named after their turns, and
what came with messages, in files that the step `files` of a turn names."""

_IS_PRIVATE = "select is_private from conversations where lane = ? and closed_ms is null"
_CLOSED = "select id from conversations where is_private and closed_ms is not null order by id"
_RUNS = "select distinct run_id from messages where conversation_id = ?"
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
        """Whether memory is off at this address now."""
        return bool(await self._database.value(_IS_PRIVATE, (lane,)))

    async def sweep(self) -> int:
        """Erase those that are over, for good, also those that a former process left; return how
        many have to wait, because a turn in their chat is not over. At every start, once an hour,
        and when one ends."""
        async with self._erasing:
            try:
                left = await self._erase_closed()
            except OSError as error:
                raise storage_error(error, self._database.path) from error
        if left:
            log.info("private.waits", count=left)
        return left

    async def _erase_closed(self) -> int:
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
        return len(ids) - len(erased)

    async def _erase(self, conversation: ConversationId) -> bool:
        ids = [run_id for (run_id,) in await self._database.rows(_RUNS, (conversation,))]
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
