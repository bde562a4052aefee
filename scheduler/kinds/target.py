"""Whom a job is for, looked at again each time it is due: people go, and chats change hands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agent.errors import Permanent
from agent.messages import PersonId, Role
from agent.scheduled import Job


class TargetGone(Permanent):
    """The person of a job is not let in any more, or its chat is not theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hearer:
    """A person as a job needs them. Zone and languages may be empty (`agent.stored.Person`)."""

    id: PersonId
    role: Role
    name: str = ""
    time_zone: str = ""
    language: str = ""
    language_hint: str = ""


class Hearing(Protocol):
    """Who is let in, and which chats are whose."""

    def person(self, person_id: PersonId) -> Hearer | None:
        """None: nobody is known by this id."""

    def may_hear(self, person_id: PersonId, lane: str) -> bool:
        """Whether this chat is (still) one that this person's things may go to."""

    def is_group(self, lane: str) -> bool:
        """Whether others read along there."""

    def agent_at(self, lane: str) -> str:
        """The name of the agent that answers there."""


def require_target(hearing: Hearing, job: Job) -> Hearer:
    """The person. Raises TargetGone."""
    found = hearing.person(job.new.person_id)
    if found is None:
        raise TargetGone("its person is not let in any more")
    if found.role is Role.GUEST:
        raise TargetGone("its person is a guest now, and guests have no jobs")
    if not hearing.may_hear(found.id, job.new.deliver_to):
        raise TargetGone(f"{job.new.deliver_to} is no chat of {found.name or found.id} any more")
    return found
