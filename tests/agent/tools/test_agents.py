"""The group `agents`: what a call may say, who may make it, and what the model reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.subagents.subagents import SubagentCall, Subagents
from agent.tools.groups.agents import TASK_CHARS_MAX, AgentTools
from agent.tools.tool import Caller
from memory.database.connection import Database
from memory.records.messages import (
    Address,
    ConversationId,
    IncomingMessage,
    PersonId,
    Role,
    RunId,
    TurnInput,
)
from memory.records.ports import NewRun
from memory.records.section import AgentTasksSettings
from memory.records.transcript import ToolCall, ToolResult
from memory.stores.conversations import SqliteConversations
from memory.stores.turns import SqliteJournal
from tests.agent.tools.given import OWNER, by_name, run_tool
from tests.fakes import FixedClock

TURN = TurnInput(
    message=IncomingMessage(
        address=Address(channel="telegram", chat_id="42"), message_id="1", sender_id="5"
    ),
    conversation=ConversationId("c1"),
    person_id=PersonId("p1"),
    role=Role.OWNER,
)


class Desk:
    """Where tasks are handed in: stored as queued, never run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs: list[NewRun] = []

    async def call(
        self, name: str, arguments: dict[str, object], *, who: Caller = OWNER, place: int = 0
    ) -> tuple[ToolResult, RunId | None]:
        """What came of a call, and the subagent that is to be waited for."""
        async with Database.open(self.path, clock=FixedClock()) as database:
            journal = SqliteJournal(database)

            async def submit(run: NewRun) -> bool:
                self.runs.append(run)
                return await journal.submit(run) is not None

            subagents = Subagents(
                journal, SqliteConversations(database), submit, limits=AgentTasksSettings(at_once=2)
            )
            order = SubagentCall(
                turn=TURN,
                run_id=RunId("in-1"),
                call_id="c1",
                place=place,
                offered=("read_file", name),
            )
            bound = AgentTools(subagents).bound(order)
            call = ToolCall(id="c1", name=name, arguments=json.dumps(arguments))
            return await run_tool(by_name(bound)[name], call, who), bound.awaited


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "hearthbot.db")


async def test_subagent_begins_a_task_whose_end_is_to_be_waited_for(desk: Desk) -> None:
    result, awaited = await desk.call("subagent", {"task": "Find a berth"})

    (run,) = desk.runs
    assert result.ok
    assert awaited == run.run_id
    assert run.child_of is not None
    assert (run.child_of.waits, run.child_of.lane, run.limit_s) == (True, "telegram:42", 300.0)


async def test_spawn_begins_one_and_tells_the_model_not_to_wait(desk: Desk) -> None:
    result, awaited = await desk.call("spawn", {"task": "Find a berth", "minutes": "12"})

    (run,) = desk.runs
    assert result.ok
    assert awaited is None
    assert run.child_of is not None
    assert (run.child_of.waits, run.limit_s) == (False, 720.0)
    assert run.run_id in result.content
    assert "12 minutes, with read_file." in result.content
    assert "do not wait for it" in result.content


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({}, "task"),
        ({"task": ""}, "task"),
        ({"task": "x" * (TASK_CHARS_MAX + 1)}, "task"),
        ({"task": "x", "minutes": 0}, "minutes"),
        ({"task": "x", "minutes": 31}, "minutes"),
        ({"task": "x", "tools": "read_file, look"}, "tools"),
        ({"task": "x", "depth": 2}, "depth"),
    ],
)
async def test_a_call_out_of_bounds_starts_nothing_and_says_what_is_wrong(
    desk: Desk, arguments: dict[str, object], word: str
) -> None:
    result, awaited = await desk.call("subagent", arguments)

    assert not result.ok
    assert word in result.content
    assert (awaited, desk.runs) == (None, [])


async def test_a_call_that_is_made_again_after_a_kill_is_answered_as_before(desk: Desk) -> None:
    first = await desk.call("subagent", {"task": "Find a berth"})
    second = await desk.call("subagent", {"task": "Find a berth"})

    assert first == second
    assert len(desk.runs) == 1


async def test_what_a_subagent_says_is_outside_text_and_what_spawn_says_is_ours(desk: Desk) -> None:
    awaited, _ = await desk.call("subagent", {"task": "x"})
    begun, _ = await desk.call("spawn", {"task": "x"}, place=1)

    assert (awaited.untrusted, begun.untrusted) == (True, False)
