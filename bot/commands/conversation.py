"""What `/compact` and `/restore` say and do: what of a conversation is sent, what is summed up, and
what is in the archive alone. Built by `bot.app`, called by `bot.commands.table`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from agent.history.compaction import SqliteCompactor
from agent.history.window import sent_size, since_compaction
from bot.channels.base import is_root, threads_of
from memory.records.errors import Permanent
from memory.records.facts import Compaction, CompactionWanted
from memory.records.messages import ConversationId, IncomingMessage, PersonId, Role
from memory.records.ports import ChildRun, Clock, RunStatus, StoredEntry, TurnEngine
from memory.records.rows import Person
from memory.records.transcript import Said, Session, to_json
from memory.records.usage import Charge, Purpose, Scope, zone_for
from memory.stores.compactions import SqliteCompactions
from memory.stores.conversations import SqliteConversations
from memory.stores.sessions import SqliteSessions

if TYPE_CHECKING:
    from agent.subagents.subagents import Subagents
    from bot.commands.table import CommandCall, Tools

BUSY = (
    "Something is being answered here, so I changed nothing. Say it again once that is done; "
    "`/stop` ends it."
)
NOTHING_TO_RESTORE = "Nothing was summed up here that I could take back."


class CompactionCommands:
    """Answers /compact and /restore."""

    def __init__(
        self,
        compactor: SqliteCompactor,
        compactions: SqliteCompactions,
        conversations: SqliteConversations,
        *,
        busy: Callable[[str], bool],
        host_zone: str,
    ) -> None:
        """`busy` says whether a turn runs or waits in a chat."""
        self._compactor = compactor
        self._compactions = compactions
        self._conversations = conversations
        self._busy = busy
        self._host_zone = ZoneInfo(host_zone)

    async def compact(self, message: IncomingMessage, person: Person) -> str:
        """Sums up now what is older than the last exchanges, whatever its size."""
        lane = message.address.key
        conversation = await self._conversations.current(lane)
        made = await self._compactor.compact(
            CompactionWanted(
                charge=Charge(
                    purpose=Purpose.COMPACTION,
                    conversation=conversation,
                    lane=lane,
                    person_id=person.id,
                    is_owner=person.role is Role.OWNER,
                    time_zone=person.time_zone,
                ),
                forced=True,
            )
        )
        history, _ = since_compaction(await self._conversations.history(conversation))
        messages, tokens = sent_size(history.entries, history.shortened_to)
        exchanges = sum(isinstance(one.entry, Said) for one in history.entries)
        aside = await self._compactions.aside(conversation)
        kept = (
            _counted(exchanges, "exchange") + f" ({messages} messages, about {tokens:,} tokens)"
            if messages
            else "nothing"
        )
        aim = "gain by summing up" if messages else "sum up"
        parts = [
            f"There is nothing to {aim} here yet. What I send along: {kept}."
            if made is None
            else _summed(made, kept)
        ]
        if aside.messages:
            zone = zone_for(Scope.PERSON, person.time_zone, self._host_zone)
            first, last = (
                datetime.fromtimestamp(ms / 1000, UTC).astimezone(zone)
                for ms in (aside.first_ms, aside.last_ms)
            )
            parts.append(
                f"In the archive alone: {_counted(aside.messages, 'message')}, from "
                f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}. Nothing of it is lost: ask me "
                "about it, and I look it up."
            )
        if made is not None:
            parts.append("`/restore` takes this back.")
        return "\n\n".join(parts)

    async def restore(self, message: IncomingMessage, person: Person) -> str:
        """Takes the last summing-up back."""
        lane = message.address.key
        if self._busy(lane):
            return BUSY
        conversation = await self._conversations.current(lane)
        undone = await self._compactions.undo(conversation)
        if undone is None:
            return NOTHING_TO_RESTORE
        history, _ = since_compaction(await self._conversations.history(conversation))
        messages, tokens = sent_size(history.entries, history.shortened_to)
        before = "the summary before it counts again, and " if history.compaction else ""
        return (
            f"Taken back: {before}from your next message on I send "
            f"{_counted(messages, 'message')} along word for word, about {tokens:,} tokens. They "
            "are summed up again once much more is said, or when they do not fit the model."
        )


def _summed(made: Compaction, kept: str) -> str:
    """What was done, and what is kept in mind."""
    match made.kind:
        case "truncate":
            why = f" ({made.reason})" if made.reason else ""
            how = f"A new topic had begun{why}, so I leave out what was before it."
        case "summarise":
            how = "I summed up what is older."
        case "digest":
            how = f"I listed what is older, without a model to sum it up: {made.reason}"
    saved = max(made.tokens_before - made.tokens_after, 0)
    lines = [
        f"{how} From your next message on that saves about {saved:,} of {made.tokens_before:,} "
        "tokens in each request.",
        f"Word for word I still send {kept}.",
    ]
    if made.summary:
        quoted = (f"> {line}".rstrip() for line in made.summary.splitlines())
        lines += ["What I keep in mind of the rest:", "\n".join(quoted)]
    return "\n\n".join(lines)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


# --- agents -------------------------------------------------------------------------------------
#
# What `/agents` says and does: the subagents of a chat, how they stand, and how to stop one.

ENDED_SHOWN_MAX = 5

STATES = {
    RunStatus.QUEUED: "about to begin",
    RunStatus.RUNNING: "at work",
    RunStatus.SUSPENDED: "waits for an answer of yours",
    RunStatus.DONE: "done",
    RunStatus.FAILED: "not done",
    RunStatus.CANCELLED: "stopped",
}
"""How a subagent stands, in plain words."""

NONE = "Nobody works for this chat apart from me, and nobody did lately."
HOW_TO_STOP = "`/agents stop NUMBER` stops one, `/stop` everything in this chat."
USAGE = "Write `/agents` to see them, or `/agents stop NUMBER` to stop one."


class SubagentCommands:
    """Answers `/agents`."""

    def __init__(self, children: Subagents, engine: TurnEngine, *, clock: Clock) -> None:
        self._children = children
        self._engine = engine
        self._clock = clock

    async def tell(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """The list, or what came of `stop NUMBER`. Raises StorageError."""
        children = await self._children.of(message.address.key)
        words = rest.split()
        if not words:
            return self._list(children)
        if len(words) != 2 or words[0].lower() != "stop":
            return USAGE
        return await self._stop(children, words[1].lstrip("#"), message, person)

    def _list(self, children: Sequence[ChildRun]) -> str:
        open_ones = [child for child in children if child.ended_ms is None]
        ended = [child for child in children if child.ended_ms is not None]
        blocks = []
        if open_ones:
            blocks += ["\n".join(["At work for this chat:", *map(self._line, open_ones)])]
        if ended:
            lines = map(self._line, ended[:ENDED_SHOWN_MAX])
            blocks += ["\n".join(["Ended lately:", *lines])]
        if open_ones:
            blocks += [HOW_TO_STOP]
        return "\n\n".join(blocks) or NONE

    def _line(self, child: ChildRun) -> str:
        now_ms = int(self._clock.now().timestamp() * 1000)
        how = "" if child.waits else " in the background"
        if child.ended_ms is None:
            when = f"{STATES[child.status]}{how}, for {span(now_ms - child.created_ms)}"
        else:
            when = f"{STATES[child.status]}, {span(now_ms - child.ended_ms)} ago"
        return f"- {child.number}: {child.head} ({when})"

    async def _stop(
        self, children: Sequence[ChildRun], number: str, message: IncomingMessage, person: Person
    ) -> str:
        found = [child for child in children if str(child.number) == number]
        if not found:
            return f"There is no number {number[:20]} here. {USAGE}"
        (child,) = found
        is_bounded = message.is_group and person.role is Role.GUEST
        if is_bounded and child.by != person.id:
            return f"Number {number} was not begun for you, so you cannot stop it."
        if child.ended_ms is not None or not await self._engine.cancel(child.lane):
            return f"Number {number} had ended already."
        return f"Stopped number {number}: {child.head}"


def span(ms: int) -> str:
    """How long ago, as one says it: `40 s`, `3 min`, `2 h`, `5 d`."""
    seconds = max(ms, 0) // 1000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


# --- sessions -----------------------------------------------------------------------------------
#
# Conversations as their owner sees them: `hearthbot sessions`.
#
# The answers are JSON objects, documented at `session_as_json` and `entry_as_json`. Built by
# `bot.app`, called by the command line.

Json = dict[str, Any]

ENTRIES_MAX = 1_000_000
"""Of one conversation: more than anybody ever said in one."""
NAMED_MAX = 5


class UnknownSession(Permanent):
    """No conversation has this id, or several begin with it."""


class SessionCommands:
    """Lists, shows and erases conversations. Raises UnknownSession, StorageError."""

    def __init__(self, sessions: SqliteSessions) -> None:
        self._sessions = sessions

    async def list(self, *, limit: int, all_lanes: bool) -> Sequence[Json]:
        """Return those that were used last."""
        found = await self._sessions.list(limit=limit, all_lanes=all_lanes)
        return [session_as_json(one) for one in found]

    async def show(self, wanted: str, *, limit: int) -> Json:
        """`session`, and its newest `entries`."""
        session = await self._one(wanted)
        entries = await self._sessions.last_entries(session.id, limit=limit)
        shown = [entry_as_json(one) for one in entries]
        return {"session": session_as_json(session), "entries": shown}

    async def whole(self, wanted: str) -> Json:
        """`session`, and all its `entries`."""
        session = await self._one(wanted)
        entries = await self._sessions.entries(session.id, after=0, limit=ENTRIES_MAX)
        return {
            "session": session_as_json(session),
            "entries": [entry_as_json(one) for one in entries],
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


def session_as_json(session: Session) -> Json:
    """Return the record, with `private` for whether memory is off in it."""
    row = asdict(session)
    return {"private": row.pop("is_private"), **row}


def entry_as_json(entry: StoredEntry) -> Json:
    """`id`, `turn`, `at_ms`, and the entry as it is stored: its `kind` and the fields of that."""
    return {
        "id": entry.id,
        "turn": entry.run_id,
        "at_ms": entry.at_ms,
        **{key: value for key, value in to_json(entry.entry).items() if key != "id"},
    }


# --- stopping -----------------------------------------------------------------------------------
#
# What `/stop` does: here, and from a channel's root in its threads too. A command of
# `bot.commands.table`.


async def stop(tools: Tools, asked: CommandCall) -> str:
    """Ends what runs in this chat, and what waits behind it; at a channel's root that in its
    threads too. In a group a guest ends only what they asked for themselves: a guest has no effect
    on others (SPEC §4). In threads where they are not, that holds for all but the owner."""
    bound = bound_here(asked)
    ended = await tools.engine.cancel(asked.message.address.key, by=bound)
    if is_root(asked.message):
        by = bound_in_threads(asked)
        threads = threads_of(asked.message.address, tools.lanes())
        ended += sum(
            await asyncio.gather(*(tools.engine.cancel(thread, by=by) for thread in threads))
        )
        if ended == 0:
            whose = "" if by is None else " of yours"
            return f"Nothing{whose} was running here, or in the threads."
        return f"Stopped {ended} answer{'s' if ended > 1 else ''}."
    if ended == 0:
        return "Nothing was running here." if bound is None else "Nothing of yours was running."
    if ended == 1:
        return "Stopped."
    return f"Stopped, with {ended - 1} more."


def bound_here(asked: CommandCall) -> PersonId | None:
    """Whose answers they may end in this chat: None is everybody's."""
    is_guest = asked.message.is_group and asked.person.role is Role.GUEST
    return asked.person.id if is_guest else None


def bound_in_threads(asked: CommandCall) -> PersonId | None:
    """Whose answers they may end in all threads at once: None is everybody's."""
    return None if asked.person.role is Role.OWNER else asked.person.id
