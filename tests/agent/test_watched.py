"""What is seen of a turn that waits: its draft goes on while a subagent works, and rests while a
person is asked."""

from __future__ import annotations

import pytest

from agent.subagents.subagents import waits_for
from agent.tools.groups.agents import SUBAGENT_STATUS
from agent.turn.assistant import WatchedTurns
from memory.records.messages import (
    Address,
    ConversationId,
    IncomingMessage,
    Origin,
    PersonId,
    Role,
    RunId,
    Task,
    TurnInput,
)
from memory.records.ports import waits_on
from tests.fakes import KeptReplies

PARENT, ONE, TWO = RunId("m1"), RunId("task-1"), RunId("task-2")
HERE = Address(channel="telegram", chat_id="5")
TURN = TurnInput(
    message=IncomingMessage(address=HERE, message_id="1", sender_id="5", text="find it"),
    conversation=ConversationId("c1"),
    person_id=PersonId("p1"),
    role=Role.OWNER,
)


def child(*, waits: bool = True) -> TurnInput:
    task = Task(
        parent=PARENT,
        call_id="1",
        conversation=ConversationId("c1"),
        waits=waits,
        tools=(),
        minutes=5,
        steps_max=10,
        tokens_max=0,
    )
    return TurnInput(
        message=TURN.message,
        conversation=ConversationId("c2"),
        person_id=TURN.person_id,
        role=TURN.role,
        origin=Origin.SUBAGENT,
        task=task,
    )


class Seen(KeptReplies):
    """What stands in the chat of the parent's turn."""

    @property
    def line(self) -> str | None:
        """Its status line; None while its draft is closed."""
        if PARENT not in self.open_now:
            return None
        lines = self.by_run[PARENT].statuses
        return lines[-1] if lines else ""


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def watched(seen: Seen) -> WatchedTurns:
    """The parent has begun, and waits for its first subagent."""
    watched = WatchedTurns(seen)
    watched.begins(PARENT, TURN)
    watched.begins(ONE, child())
    watched.leaves(PARENT, TURN, waits_for=waits_for(ONE))
    return watched


def test_while_a_subagent_works_the_line_of_its_tool_stands(
    watched: WatchedTurns, seen: Seen
) -> None:
    assert seen.line == SUBAGENT_STATUS

    watched.leaves(ONE, child())
    assert seen.line == SUBAGENT_STATUS, "it goes on in a moment"
    watched.begins(PARENT, TURN)
    assert seen.line == ""
    watched.leaves(PARENT, TURN)
    assert seen.line is None


def test_a_turn_whose_person_is_asked_rests(seen: Seen) -> None:
    watched = WatchedTurns(seen)
    watched.begins(PARENT, TURN)

    watched.leaves(PARENT, TURN, waits_for=waits_on("a1"))

    assert seen.line is None


def test_it_rests_while_the_subagent_asks_its_person(watched: WatchedTurns, seen: Seen) -> None:
    watched.leaves(ONE, child(), waits_for=waits_on("a1"))
    assert seen.line is None

    watched.begins(ONE, child())
    assert seen.line == SUBAGENT_STATUS


def test_a_subagent_that_goes_on_opens_nothing_for_a_turn_that_has_ended(
    watched: WatchedTurns, seen: Seen
) -> None:
    watched.leaves(ONE, child(), waits_for=waits_on("a1"))
    watched.begins(PARENT, TURN)
    watched.leaves(PARENT, TURN)

    watched.begins(ONE, child())

    assert seen.line is None


def test_a_turn_that_broke_is_not_shown_on(watched: WatchedTurns, seen: Seen) -> None:
    watched.broke(PARENT)
    watched.leaves(ONE, child(), waits_for=waits_on("a1"))
    watched.begins(ONE, child())

    assert seen.line is None
