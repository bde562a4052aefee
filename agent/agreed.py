"""What people were asked, and what they agreed to: the values between the desk that asks and the
memory that keeps it. The question itself is `agent.stored.NewApproval`.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.messages import OutboxId, PersonId, Role
from agent.stored import NewApproval, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredApproval:
    """A question as it stands; `outcome` is None while it is open. Times are epoch milliseconds.

    `role` is what the person was when it was asked. `card_lane` and `card` say where the card went
    and which row of the outbox it is; empty and None where there was nowhere to send it.
    `decided_by` is None where nobody answered.
    """

    asked: NewApproval
    role: Role
    asked_ms: int
    expires_ms: int
    outcome: Outcome | None = None
    decided_by: PersonId | None = None
    decided_ms: int = 0
    card_lane: str = ""
    card: OutboxId | None = None

    @property
    def id(self) -> str:
        """The question's."""
        return self.asked.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What became of an answer: the question as it stands now, and whether this answer did it."""

    approval: StoredApproval
    won: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A tool that a person's turns may use from now on without asking, until it is taken back."""

    person_id: PersonId
    agent: str
    tool: str
    granted_ms: int
