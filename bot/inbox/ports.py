"""What the inbox and the outbox need stored; implemented by `memory.stores`.

Each method is one durable transaction.
All raise StorageError and nothing else. The values are those of `memory.records.rows`, named here
again so that both have one place to import from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from memory.records.messages import InboxId, OutboxId, PersonId, RunId
from memory.records.ports import InboxState
from memory.records.rows import (
    Directory,
    LinkCode,
    NewEvent,
    NewMessage,
    OutboxState,
    OutFile,
    OutPart,
    OutRow,
    Pairing,
    PartState,
    Person,
    StoredEvent,
)

__all__ = [
    "Directory",
    "Inbox",
    "LinkCode",
    "NewEvent",
    "NewMessage",
    "OutFile",
    "OutPart",
    "OutRow",
    "OutboxState",
    "OutboxStore",
    "Pairing",
    "PartState",
    "PeopleStore",
    "Person",
    "StoredEvent",
]

# --- coming in -------------------------------------------------------------------------------


class Inbox(Protocol):
    """Inbound events, kept before they are confirmed to the platform."""

    async def store(self, events: Sequence[NewEvent]) -> Sequence[StoredEvent]:
        """Stores all in one transaction; returns, in order, those that were not known."""

    async def unfinished(self) -> Sequence[StoredEvent]:
        """Events that were stored and neither ended nor queued as a turn, oldest first."""

    async def end(
        self, inbox_id: InboxId, state: InboxState, *, reason: str = "", reply: NewMessage | None
    ) -> OutboxId | None:
        """Gives an event its terminal state, together with the reply it gets, if any.

        Does nothing, and returns None, when the event has ended already.
        """

    async def state(self, source: str, event_id: str) -> InboxState | None:
        """Where an event is; None when there is none of this key."""

    async def counts(self) -> dict[str, int]:
        """Events by state."""


# --- going out -------------------------------------------------------------------------------


class OutboxStore(Protocol):
    """Replies on their way out."""

    async def open_rows(self) -> Sequence[OutRow]:
        """Rows in state READY, oldest first."""

    async def row(self, outbox_id: OutboxId) -> OutRow | None:
        """One row with its parts."""

    async def row_of_run(self, run_id: RunId) -> OutRow | None:
        """The row of a turn: its draft or its reply."""

    async def add(self, message: NewMessage) -> OutboxId:
        """A message of its own, ready at once."""

    async def open_draft(self, run_id: RunId, lane: str) -> OutRow:
        """Makes the draft row of a run with part 0 in state SENDING.

        An existing row of the run is returned unchanged.
        """

    async def plan(self, outbox_id: OutboxId, parts: Sequence[OutPart]) -> None:
        """Stores the parts (replacing those with the same `n`, removing those beyond)."""

    async def mark(
        self,
        outbox_id: OutboxId,
        *parts: OutPart,
        end: OutboxState | None = None,
        reason: str = "",
        notices: Sequence[NewMessage] = (),
    ) -> Sequence[tuple[str, OutboxId]]:
        """Write the state and message id of parts, and end the row if `end` is given, with what
        waits for its end. If this ends the row, add `notices` as rows of their own and return
        their lanes and ids."""

    async def notices(self, about: str, *, since_ms: int) -> int:
        """Count the notices that something was not delivered in this lane."""

    async def files(self) -> Sequence[OutFile]:
        """Those of rows that have not ended."""

    async def postpone(
        self, outbox_id: OutboxId, *, not_before_ms: int, attempts: int, tried_ms: int = 0
    ) -> None:
        """Store when the row may be tried again. `tried_ms` is added to the row's own time of
        trying, and to that of the rows waiting behind it in its lane."""

    async def counts(self) -> dict[str, int]:
        """Rows by state."""


# --- people ----------------------------------------------------------------------------------


class PeopleStore(Protocol):
    """People, their addresses, group chats, and who asked to be let in."""

    async def directory(self) -> Directory:
        """All of it."""

    async def add_person(self, person: Person) -> None:
        """Adds a person with its addresses, and removes their pairings."""

    async def add_address(self, person_id: PersonId, address: str) -> None:
        """Joins one more address to a person, and removes its pairing."""

    async def update_person(self, person: Person) -> None:
        """Stores role, name, time zone and languages anew; addresses are left as they are."""

    async def remove_person(self, person_id: PersonId, *, denied: Sequence[Pairing] = ()) -> None:
        """Takes all addresses and open codes of a person away, and stores who is shut out with
        it. What is kept of the person stays, under its id."""

    async def put_link_code(self, code: LinkCode) -> None:
        """Adds a code in place of the person's open one, and forgets those that are past."""

    async def link(
        self,
        person_id: PersonId,
        address: str,
        *,
        notices: Sequence[NewMessage] = (),
        code: str = "",
    ) -> Sequence[OutboxId] | None:
        """Joins an address to a person, marks the code used, and adds the notices to the outbox.

        None, and nothing is changed, when the address belongs to another person of whom anything
        is kept, who has further addresses, or who is an owner; any other such person is gone.
        """

    async def last_seen(self) -> Mapping[PersonId, int]:
        """When the newest turn of each person began to wait, in epoch milliseconds."""

    async def private_chats(self, person_id: PersonId) -> Sequence[str]:
        """Address keys of the chats that are this person's alone; the usual one first."""

    async def remove_address(self, address: str) -> None:
        """Takes an address away; the person's rows stay."""

    async def set_chat(self, chat: str, state: str) -> None:
        """`admitted` or `denied`."""

    async def put_pairing(self, pairing: Pairing) -> None:
        """Adds or replaces the pairing of an address."""

    async def remove_pairings(self, *addresses: str) -> None:
        """Forgets who asked."""
