"""What `/compact` and `/restore` say and do: what of a conversation is sent, what is summed up, and
what is in the archive alone. Built by `bot.app`, called by `bot.commands.table`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agent.history.window import sent_size, since_compaction
from bot.channels.base import is_root, threads_of
from memory.records.errors import Permanent
from memory.records.facts import Compaction, CompactionWanted
from memory.records.messages import ConversationId, PersonId, Role
from memory.records.ports import ChildRun, RunStatus, StoredEntry
from memory.records.transcript import Said, Session, to_json
from memory.records.usage import Charge, Purpose
from memory.stores.sessions import SqliteSessions

if TYPE_CHECKING:
    from bot.commands.command import CommandCall, Tools

BUSY = (
    "Something is being answered here, so I changed nothing. Say it again once that is done; "
    "`/stop` ends it."
)
NOTHING_TO_RESTORE = "Nothing was summed up here that I could take back."


async def compact(tools: Tools, asked: CommandCall) -> str:
    """Sum up now what is older than the last exchanges, whatever its size."""
    lane, person = asked.message.address.key, asked.person
    conversation = await tools.conversations.current(lane)
    made = await tools.compactor.compact(
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
    history, _ = since_compaction(await tools.conversations.history(conversation))
    messages, tokens = sent_size(history.entries, history.shortened_to)
    exchanges = sum(isinstance(one.entry, Said) for one in history.entries)
    kept = "nothing"
    if messages:
        size = f"{messages} messages, about {tokens:,} tokens"
        kept = f"{_counted(exchanges, 'exchange')} ({size})"
    if made is None:
        aim = "gain by summing up" if messages else "sum up"
        parts = [f"There is nothing to {aim} here yet. What I send along: {kept}."]
    else:
        parts = [_summed(made, kept)]
    aside = await tools.compactions.aside(conversation)
    if aside.messages:
        zone = tools.zone(person)
        first, last = (
            datetime.fromtimestamp(ms / 1000, zone) for ms in (aside.first_ms, aside.last_ms)
        )
        parts.append(
            f"In the archive alone: {_counted(aside.messages, 'message')}, from "
            f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}. Nothing of it is lost: ask me "
            "about it, and I look it up."
        )
    if made is not None:
        parts.append("`/restore` takes this back.")
    return "\n\n".join(parts)


async def restore(tools: Tools, asked: CommandCall) -> str:
    """Take the last summing-up back."""
    lane = asked.message.address.key
    if tools.engine.busy(lane):
        return BUSY
    conversation = await tools.conversations.current(lane)
    if await tools.compactions.undo(conversation) is None:
        return NOTHING_TO_RESTORE
    history, _ = since_compaction(await tools.conversations.history(conversation))
    messages, tokens = sent_size(history.entries, history.shortened_to)
    before = "the summary before it counts again, and " if history.compaction else ""
    return (
        f"Taken back: {before}from your next message on I send {_counted(messages, 'message')} "
        f"along word for word, about {tokens:,} tokens. They are summed up again once much more is "
        "said, or when they do not fit the model."
    )


def _summed(made: Compaction, kept: str) -> str:
    """Return what was done, and what is kept in mind."""
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


async def subagents(tools: Tools, asked: CommandCall) -> str:
    """List the subagents of a chat, or stop one."""
    children = await tools.subagents.of(asked.message.address.key)
    match asked.rest.split():
        case []:
            now_ms = int(tools.clock.now().timestamp() * 1000)
            return _children_text(children, now_ms=now_ms)
        case [verb, number] if verb.lower() == "stop":
            pass
        case _:
            return USAGE
    wanted = number.lstrip("#")
    child = next((one for one in children if str(one.number) == wanted), None)
    if child is None:
        return f"There is no number {wanted[:20]} here. {USAGE}"
    # In a group a guest has no effect on others (SPEC §4).
    bound = bound_here(asked)
    if bound is not None and child.by != bound:
        return f"Number {wanted} was not begun for you, so you cannot stop it."
    if child.ended_ms is not None or not await tools.engine.cancel(child.lane):
        return f"Number {wanted} had ended already."
    return f"Stopped number {wanted}: {child.head}"


def _children_text(children: Sequence[ChildRun], *, now_ms: int) -> str:
    open_lines, ended_lines = [], []
    for child in children:
        if child.ended_ms is None:
            how = "" if child.waits else " in the background"
            when = f"{STATES[child.status]}{how}, for {span(now_ms - child.created_ms)}"
            open_lines.append(f"- {child.number}: {child.head} ({when})")
        else:
            when = f"{STATES[child.status]}, {span(now_ms - child.ended_ms)} ago"
            ended_lines.append(f"- {child.number}: {child.head} ({when})")
    blocks = []
    if open_lines:
        blocks.append("\n".join(["At work for this chat:", *open_lines]))
    if ended_lines:
        blocks.append("\n".join(["Ended lately:", *ended_lines[:ENDED_SHOWN_MAX]]))
    if open_lines:
        blocks.append(HOW_TO_STOP)
    return "\n\n".join(blocks) or NONE


def span(ms: int) -> str:
    """Return how long ago, as one says it: `40 s`, `3 min`, `2 h`, `5 d`."""
    seconds = max(ms, 0) // 1000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


# --- sessions -----------------------------------------------------------------------------------
#
# Conversations as their owner sees them: `hearthbot sessions`.

ENTRIES_MAX = 1_000_000
"""Of one conversation: more than anybody ever said in one."""
NAMED_MAX = 5


class UnknownSession(Permanent):
    """No conversation has this id, or several begin with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionShown:
    """A conversation with entries of it.

    They are JSON: `id`, `turn`, `at_ms`, and the entry as it is stored. Its `kind` says which it
    is, and one of a union of records would be guessed by its fields at the other end of the socket.
    """

    session: Session
    entries: Sequence[Mapping[str, Any]]


class SessionService:
    """Lists, shows and erases conversations. Raises UnknownSession, StorageError."""

    def __init__(self, sessions: SqliteSessions) -> None:
        self._sessions = sessions

    async def list(self, *, limit: int, all_lanes: bool) -> Sequence[Session]:
        """Return those that were used last."""
        return await self._sessions.list(limit=limit, all_lanes=all_lanes)

    async def show(self, wanted: str, *, limit: int) -> SessionShown:
        """Return one with its newest entries."""
        session = await self._one(wanted)
        entries = await self._sessions.last_entries(session.id, limit=limit)
        return SessionShown(session=session, entries=[*map(_entry_json, entries)])

    async def whole(self, wanted: str) -> SessionShown:
        """Return one with all its entries."""
        session = await self._one(wanted)
        entries = await self._sessions.entries(session.id, after=0, limit=ENTRIES_MAX)
        return SessionShown(session=session, entries=[*map(_entry_json, entries)])

    async def clear(self, wanted: str) -> str:
        """Erase one for good, and say what was done. Raise SessionBusy."""
        session = await self._one(wanted)
        await self._sessions.erase(ConversationId(session.id))
        begun = "" if session.closed_ms is not None else " A new one begins there."
        return (
            f"Erased {session.id} of {session.lane}: {session.messages:,} messages, with all that "
            f"was made of them. Facts stay (hearthbot memory).{begun}"
        )

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


def _entry_json(one: StoredEntry) -> Mapping[str, Any]:
    return {**to_json(one.entry), "id": one.id, "turn": one.run_id, "at_ms": one.at_ms}


# --- stopping -----------------------------------------------------------------------------------
#
# What `/stop` does: here, and from a channel's root in its threads too. A command of
# `bot.commands.table`.


async def stop(tools: Tools, asked: CommandCall) -> str:
    """End what runs in this chat, and what waits behind it; at a channel's root that in its threads
    too. In a group a guest ends only what they asked for themselves: a guest has no effect on
    others (SPEC §4). In threads where they are not, that holds for all but the owner."""
    bound = bound_here(asked)
    ended = await tools.engine.cancel(asked.message.address.key, by=bound)
    if is_root(asked.message):
        by = bound_in_threads(asked)
        threads = threads_of(asked.message.address, tools.engine.lanes())
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
    """Return whose answers they may end in this chat: None is everybody's."""
    is_guest = asked.message.is_group and asked.person.role is Role.GUEST
    return asked.person.id if is_guest else None


def bound_in_threads(asked: CommandCall) -> PersonId | None:
    """Return whose answers they may end in all threads at once: None is everybody's."""
    return None if asked.person.role is Role.OWNER else asked.person.id
