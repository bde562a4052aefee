"""Questions to people, their answers, and what was agreed to for good: the store of
`bot.people.approvals`. Each method is one durable transaction; the first answer stands.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

from memory.database.connection import Database
from memory.database.rows import first, storable, to_row
from memory.records.messages import OutboxId, PersonId, Role
from memory.records.rows import Decided, Grant, NewApproval, NewMessage, Outcome, StoredApproval
from memory.stores.outbox import add_message

_ADD = """
insert into approvals (id, run_id, lane, person_id, role, agent, tool, digest, shows, why,
    owner_alone, once_only, state, asked_ms, expires_ms)
values (:id, :run_id, :lane, :person_id, :role, :agent, :tool, :digest, :shows, :why,
    :owner_alone, :once_only, 'open', :asked_ms, :expires_ms)
on conflict (id) do nothing
returning id
"""
_SET_CARD = "update approvals set card_lane = ?, outbox_id = ? where id = ?"
_ROW = """
select id as "asked.id", run_id as "asked.run_id", lane as "asked.lane",
    person_id as "asked.person_id", agent as "asked.agent", tool as "asked.tool",
    digest as "asked.digest", shows as "asked.shows", why as "asked.why",
    owner_alone as "asked.owner_alone", once_only as "asked.once_only", role, asked_ms, expires_ms,
    nullif(state, 'open') as outcome, nullif(decided_by, '') as decided_by, decided_ms,
    card_lane, outbox_id as card
from approvals
"""
_BY_ID = f"{_ROW} where id = ?"
_OPEN = f"{_ROW} where state = 'open' order by asked_ms, id"
_UNSETTLED = f"""
{_ROW} where state <> 'open' and settled_ms is null order by decided_ms, id
"""
_NEXT_EXPIRY = "select min(expires_ms) from approvals where state = 'open'"
# A turn that was stopped asks for nothing any more. While its card is on its way nobody can have
# seen the question, so its time runs from the card's arrival (`memory.stores.outbox`).
_EXPIRE = """
update approvals set state = 'expired', decided_ms = ?
where state = 'open' and (
    (expires_ms <= ? and not exists (
        select 1 from outbox where outbox.id = approvals.outbox_id and outbox.state = 'ready'
            and outbox.ended_ms is null
    ))
    or exists (
        select 1 from turns where turns.run_id = approvals.run_id and turns.ended_ms is not null
    )
)
"""
_EXPIRE_ONE = f"{_EXPIRE} and id = ?"
_DECIDE = """
update approvals set state = ?, decided_by = ?, decided_ms = ? where id = ? and state = 'open'
"""
_SETTLE = "update approvals set settled_ms = ? where id = ? and settled_ms is null"
_GRANT = """
insert into standing_grants (person_id, agent, tool, approval_id, granted_by, granted_ms)
select person_id, agent, tool, id, ?, ? from approvals where id = ?
on conflict (person_id, agent, tool) where revoked_ms is null do nothing
"""
_IS_GRANTED = """
select exists (
    select 1 from standing_grants
    where person_id = ? and agent = ? and tool = ? and revoked_ms is null
)
"""
_GRANTS = """
select person_id, agent, tool, granted_ms from standing_grants
where person_id = ? and revoked_ms is null order by tool, agent
"""
_REVOKE = """
update standing_grants set revoked_ms = ? where person_id = ? and tool = ? and revoked_ms is null
"""
# What a turn that is not over could still look up stays.
_PRUNE = """
delete from approvals where id in (
    select id from approvals
    where settled_ms < ? and not exists (
        select 1 from turns where turns.run_id = approvals.run_id and turns.ended_ms is null
    )
    limit ?
)
"""

_ANSWERS = {Outcome.ONCE, Outcome.ALWAYS, Outcome.DENIED}


class SqliteApprovals:
    """Questions to people and their answers, in SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self,
        asked: NewApproval,
        *,
        role: Role,
        expires_ms: int,
        card: NewMessage | None,
        notices: Sequence[NewMessage] = (),
    ) -> Sequence[tuple[str, OutboxId]] | None:
        """Keeps a question together with its card and what else is said of it; returns what is
        ready to go out. None, and nothing is changed, when its id is known."""
        now_ms = self._database.now_ms()
        values = {**to_row(asked), "role": role, "asked_ms": now_ms, "expires_ms": expires_ms}
        messages = [*([card] if card is not None else []), *notices]

        def work(connection: sqlite3.Connection) -> list[tuple[str, OutboxId]] | None:
            if connection.execute(_ADD, values).fetchone() is None:
                return None
            ready = [
                (message.lane, add_message(connection, message, now_ms=now_ms))
                for message in messages
            ]
            if card is not None:
                connection.execute(_SET_CARD, (*ready[0], asked.id))
            return ready

        return await self._database.write(work)

    async def get(self, approval_id: str) -> StoredApproval | None:
        """One question."""
        return await self._database.first(StoredApproval, _BY_ID, (approval_id,))

    async def open_ones(self) -> Sequence[StoredApproval]:
        """Those that nobody answered yet, oldest first; the time of some may be over."""
        return await self._database.records(StoredApproval, _OPEN)

    async def next_expiry(self) -> int | None:
        """When the time of the first open one is over."""
        found: int | None = await self._database.value(_NEXT_EXPIRY)
        return found

    async def decide(self, approval_id: str, outcome: Outcome, *, by: PersonId) -> Decided | None:
        """Writes an answer, unless there is one, the time is over, or the turn was ended; None for
        an unknown id. With ALWAYS the person's turns need not ask for this tool again.

        Raises ValueError for an answer that this question does not take.
        """
        if outcome not in _ANSWERS:
            raise ValueError(f"{outcome} is no answer of a person")
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> Decided | None:
            known = first(StoredApproval, connection.execute(_BY_ID, (approval_id,)))
            if known is None:
                return None
            if outcome is Outcome.ALWAYS and known.asked.once_only:
                raise ValueError(f"{approval_id} cannot be agreed to for good")
            connection.execute(_EXPIRE_ONE, (now_ms, now_ms, approval_id))
            values = (outcome, by, now_ms, approval_id)
            won = connection.execute(_DECIDE, values).rowcount == 1
            if won and outcome is Outcome.ALWAYS:
                connection.execute(_GRANT, (by, now_ms, approval_id))
            after = first(StoredApproval, connection.execute(_BY_ID, (approval_id,)))
            assert after is not None
            return Decided(approval=after, won=won)

        return await self._database.write(work)

    async def expire(self) -> int:
        """Closes open ones whose time is over, or whose turn was ended; returns how many."""
        now_ms = self._database.now_ms()
        return await self._database.execute(_EXPIRE, (now_ms, now_ms))

    async def unsettled(self) -> Sequence[StoredApproval]:
        """Decided ones of which not all that follows is done, in order of decision."""
        return await self._database.records(StoredApproval, _UNSETTLED)

    async def settle(self, approval_id: str) -> None:
        """Writes that all that follows is done."""
        await self._database.execute(_SETTLE, (self._database.now_ms(), approval_id))

    # --- for good -----------------------------------------------------------------------------

    async def is_always(self, person_id: PersonId, agent: str, tool: str) -> bool:
        """Return whether turns of this person by this agent may use the tool without asking."""
        return bool(await self._database.value(_IS_GRANTED, (person_id, agent, storable(tool))))

    async def grants(self, person_id: PersonId) -> Sequence[Grant]:
        """Return what this person agreed to for good, by tool."""
        return await self._database.records(Grant, _GRANTS, (person_id,))

    async def revoke(self, person_id: PersonId, tool: str) -> int:
        """Takes that back for all agents; returns how many there were."""
        values = (self._database.now_ms(), person_id, storable(tool))
        return await self._database.execute(_REVOKE, values)

    async def prune(self, before_ms: int) -> int:
        """Deletes questions that were settled before; returns how many. For a daily caller. What
        was agreed to for good stays, also what was taken back."""
        return await self._database.prune(_PRUNE, before_ms)


# --- cards --------------------------------------------------------------------------------------
#
# Messages of ours by the platform's id: which has the button that was pressed, and which of a
# conversation belong to something else than one message.

_CARD = """
select outbox.id, outbox.text from outbox_parts join outbox on outbox.id = outbox_id
where buttons <> '' and revision is null and lane = ? and message_id = ?
order by outbox.id desc limit 1
"""
# What was there before it came; answers of other turns, unless a button let them go on; what jobs
# found meanwhile; and questions of other turns.
_OTHERS = """
with asking as (
    select received_ms, reason, coalesce(joined_to, inbox.run_id) as run_id
    from inbox left join turns on turns.run_id = inbox.run_id
    where source = ? and event_id = ?
), newest as (select id, run_id, created_ms from outbox where lane = ? order by id desc limit ?)
select message_id from newest
join asking join outbox_parts on outbox_id = newest.id
where message_id <> '' and (
    newest.created_ms < received_ms
    or (newest.run_id is not asking.run_id and newest.run_id is not null and reason <> 'button')
    or newest.id in (select outbox_id from job_runs where outbox_id is not null)
    or newest.id in (
        select outbox_id from approvals where outbox_id is not null
        and approvals.run_id is not asking.run_id and reason <> 'button'
    )
)
"""

NEWEST_MAX = 200
"""Messages of a conversation that are looked at: more do not come while one is answered."""


class SqliteCards:
    """Finds them for those who know a message by its text alone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def standing(self, lane: str, message_id: str) -> tuple[OutboxId, str] | None:
        """The message and its text; None for one that is not ours, or whose buttons are gone or
        going. Raises StorageError."""
        rows = await self._database.rows(_CARD, (lane, message_id))
        return (OutboxId(rows[0][0]), str(rows[0][1])) if rows else None

    async def others(self, lane: str, source: str, event_id: str) -> Collection[str]:
        """The newest messages of ours there that do not belong to what came as this event, by their
        platform ids. Raises StorageError."""
        rows = await self._database.rows(_OTHERS, (source, event_id, lane, NEWEST_MAX))
        return {str(row[0]) for row in rows}
