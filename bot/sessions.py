"""Conversations as their owner sees them: `hearthbot sessions`.

The answers are JSON objects, documented at `session_as_json` and `entry_as_json`. Built by
`bot.app`; the operations are served on the private socket, which is the owner's alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from agent.errors import Permanent
from agent.messages import ConversationId
from agent.sessions import Session, SessionEntry, Sessions
from agent.transcript import to_json
from bot.control import Emit, Operation

Json = dict[str, Any]

PAGE_CHARS_MAX = 500_000
"""Of entries in one answer: a line of the socket holds more, whatever the characters."""
PAGE_ENTRIES_MAX = 500
NAMED_MAX = 5


class UnknownSession(Permanent):
    """No conversation has this id, or several begin with it."""


class SessionDesk:
    """Lists, shows and erases conversations. Raises UnknownSession, StorageError."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def list(self, *, limit: int, all_lanes: bool) -> Json:
        """`sessions`, the last used first."""
        found = await self._sessions.list(limit=limit, all_lanes=all_lanes)
        return {"sessions": [session_as_json(one) for one in found]}

    async def show(self, wanted: str, *, limit: int) -> Json:
        """`session`, and its newest `entries`."""
        session = await self._one(wanted)
        entries = await self._sessions.last_entries(session.id, limit=limit)
        shown = [entry_as_json(one) for one in _bounded(entries[::-1])]
        return {"session": session_as_json(session), "entries": shown[::-1]}

    async def page(self, wanted: str, *, after: int) -> Json:
        """`session`, and its `entries` behind an id; `is_all` where no more follow."""
        session = await self._one(wanted)
        entries = await self._sessions.entries(session.id, after=after, limit=PAGE_ENTRIES_MAX)
        kept = _bounded(entries)
        return {
            "session": session_as_json(session),
            "entries": [entry_as_json(one) for one in kept],
            "is_all": len(kept) == len(entries) < PAGE_ENTRIES_MAX,
        }

    async def clear(self, wanted: str) -> Json:
        """Erases one for good; `text` says what was done. Raises SessionBusy."""
        session = await self._one(wanted)
        await self._sessions.erase(ConversationId(session.id))
        begun = "" if session.closed_ms is not None else " A new one begins there."
        return {
            "text": f"Erased {session.id} of {session.lane}: {session.messages:,} messages, with "
            f"all that was made of them. Facts stay (hearthbot memory).{begun}"
        }

    async def _one(self, wanted: str) -> Session:
        found = await self._sessions.find(wanted.strip())
        if len(found) == 1:
            return found[0]
        if not found:
            raise UnknownSession(
                f"No conversation has the id {wanted[:60]!r}: hearthbot sessions list names them."
            )
        names = ", ".join(one.id for one in found[:NAMED_MAX])
        raise UnknownSession(f"Several begin with {wanted[:60]!r}: {names}. Write more of the id.")


def session_operations(desk: SessionDesk) -> Mapping[str, Operation]:
    """What is offered on the private socket, and to a command where no bot runs."""

    def asked(do: Callable[[Json], Awaitable[Json]]) -> Operation:
        async def operation(request: Json, emit: Emit) -> Json:
            return await do(request)

        return operation

    return {
        "sessions.list": asked(
            lambda r: desk.list(limit=int(r["limit"]), all_lanes=bool(r["all_lanes"]))
        ),
        "sessions.show": asked(lambda r: desk.show(str(r["session"]), limit=int(r["limit"]))),
        "sessions.page": asked(lambda r: desk.page(str(r["session"]), after=int(r["after"]))),
        "sessions.clear": asked(lambda r: desk.clear(str(r["session"]))),
    }


def session_as_json(session: Session) -> Json:
    """`id`, `lane`, `people`, `began_ms`, `last_ms` and `closed_ms` (null: open), `messages`,
    `tokens` (estimated), `private` (memory is off in it) and `summary`."""
    return {
        "id": session.id,
        "lane": session.lane,
        "people": list(session.people),
        "began_ms": session.began_ms,
        "last_ms": session.last_ms,
        "closed_ms": session.closed_ms,
        "messages": session.messages,
        "tokens": session.tokens,
        "private": session.is_private,
        "summary": session.summary,
    }


def entry_as_json(entry: SessionEntry) -> Json:
    """`id`, `turn`, `at_ms`, and the entry as it is stored: its `kind` and the fields of that."""
    return {
        "id": entry.id,
        "turn": entry.run_id,
        "at_ms": entry.at_ms,
        **{key: value for key, value in to_json(entry.entry).items() if key != "id"},
    }


def _bounded(entries: Sequence[SessionEntry]) -> list[SessionEntry]:
    """As many as one answer holds, one at least."""
    kept: list[SessionEntry] = []
    chars = 0
    for one in entries:
        chars += len(str(to_json(one.entry)))
        if kept and chars > PAGE_CHARS_MAX:
            break
        kept.append(one)
    return kept
