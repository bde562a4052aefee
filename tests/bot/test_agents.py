"""/agents: who works for a chat, how that stands, and how to stop it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from bot.commands.conversation import NONE, span, subagents
from memory.records.messages import PersonId, Role, RunId
from memory.records.ports import ChildRun, Json, NewRun, RunStatus, StoredRun
from memory.records.rows import Person
from tests.bot.command_kit import asks, tools_with
from tests.fakes import FixedClock

NOW = datetime(2026, 8, 1, 12, 0, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
OWNER = Person(id=PersonId("p1"), role=Role.OWNER)
GUEST = Person(id=PersonId("p3"), role=Role.GUEST)


def child(number: int, status: RunStatus = RunStatus.RUNNING, *, ago_s: int = 90) -> ChildRun:
    is_over = status in {RunStatus.DONE, RunStatus.FAILED, RunStatus.CANCELLED}
    return ChildRun(
        run_id=RunId(f"task-{number}"),
        number=number,
        by=PersonId("p1"),
        lane=f"agent:task-{number}",
        head=f"Find berth {number}",
        waits=number % 2 == 0,
        status=status,
        created_ms=NOW_MS - ago_s * 1000,
        ended_ms=NOW_MS - 20_000 if is_over else None,
    )


@dataclass
class Chat:
    """Implements Children and TurnEngine: what there is, and what was ended."""

    children: list[ChildRun] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    still_there: int = 1

    async def of(self, lane: str, *, limit: int = 50) -> Sequence[ChildRun]:
        return self.children if lane == "telegram:5" else []

    async def cancel(self, lane: str, *, by: PersonId | None = None) -> int:
        self.cancelled.append(lane)
        return self.still_there

    async def start(self) -> None: ...

    async def submit(self, run: NewRun) -> bool:
        return True

    def adopt(self, stored: StoredRun) -> None: ...

    async def edit(self, lane: str, message_id: str, payload: Json) -> bool:
        return False

    async def signal(self, key: str, value: Json) -> bool:
        return False

    async def stop(self, drain_s: float) -> None: ...

    async def says(
        self, rest: str, *, by: Person = OWNER, chat: str = "5", is_group: bool = False
    ) -> str:
        tools = tools_with(subagents=self, engine=self, clock=FixedClock(NOW))
        return await subagents(tools, asks(by, rest, chat=chat, is_group=is_group))


async def test_who_works_and_who_did_is_listed_with_task_state_and_age() -> None:
    chat = Chat(
        [
            child(9),
            child(8, RunStatus.SUSPENDED, ago_s=7_300),
            child(7, RunStatus.DONE),
            child(6, RunStatus.CANCELLED),
        ]
    )

    said = await chat.says("")

    assert said.split("\n") == [
        "At work for this chat:",
        "- 9: Find berth 9 (at work in the background, for 1 min)",
        "- 8: Find berth 8 (waits for an answer of yours, for 2 h)",
        "",
        "Ended lately:",
        "- 7: Find berth 7 (done, 20 s ago)",
        "- 6: Find berth 6 (stopped, 20 s ago)",
        "",
        "`/agents stop NUMBER` stops one, `/stop` everything in this chat.",
    ]


async def test_of_those_that_ended_only_the_last_few_are_listed() -> None:
    chat = Chat([child(number, RunStatus.DONE) for number in range(20, 0, -1)])

    said = await chat.says("")

    assert [line.split(":")[0] for line in said.split("\n")[1:]] == [
        f"- {number}" for number in range(20, 15, -1)
    ]


async def test_a_chat_without_any_is_told_so_and_sees_none_of_another_chat() -> None:
    chat = Chat([child(1)])

    assert await chat.says("", chat="6") == NONE
    assert await Chat().says("") == NONE


@pytest.mark.parametrize("rest", ["stop 2", "STOP #2"])
async def test_one_is_stopped_by_its_number(rest: str) -> None:
    chat = Chat([child(1), child(2)])

    said = await chat.says(rest)

    assert said == "Stopped number 2: Find berth 2"
    assert chat.cancelled == ["agent:task-2"]


async def test_what_has_ended_is_not_stopped() -> None:
    chat = Chat([child(1, RunStatus.DONE), child(2)], still_there=0)

    first, second = await chat.says("stop 1"), await chat.says("stop 2")

    assert (first, second) == ("Number 1 had ended already.", "Number 2 had ended already.")
    assert chat.cancelled == ["agent:task-2"]


@pytest.mark.parametrize("rest", ["stop", "stop 9", "stop one", "end 1", "1", "stop 1 2"])
async def test_what_is_not_understood_stops_nothing_and_says_how(rest: str) -> None:
    chat = Chat([child(1)])

    said = await chat.says(rest)

    assert "/agents stop NUMBER" in said
    assert chat.cancelled == []


async def test_a_guest_in_a_group_stops_only_what_was_begun_for_them() -> None:
    chat = Chat([child(1)])

    theirs = await chat.says("stop 1", by=GUEST, is_group=True)
    owners = await chat.says("stop 1", is_group=True)

    assert theirs == "Number 1 was not begun for you, so you cannot stop it."
    assert owners.startswith("Stopped number 1")
    assert chat.cancelled == ["agent:task-1"]


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (-5, "0 s"),
        (59_999, "59 s"),
        (60_000, "1 min"),
        (3_600_000, "1 h"),
        (90_000_000, "1 d"),
    ],
)
def test_a_span_is_said_in_its_largest_unit(ms: int, words: str) -> None:
    assert span(ms) == words
