"""What follows from a turn: in order, beside other conversations, and never in its way."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from agent.turn.aftermath import WAITING_MAX, Aftermath, EndedTurn, FollowUp
from memory.records.errors import StorageError
from memory.records.messages import (
    Address,
    ConversationId,
    IncomingMessage,
    PersonId,
    Role,
    RunId,
    TurnInput,
)
from memory.records.ports import ChildOf, InboxState, NewRun, RunStatus, TurnEnd
from memory.records.transcript import Entry, Said, Turn

HERE = Address(channel="telegram", chat_id="5")


def a_run(name: str, *, child_of: ChildOf | None = None) -> NewRun:
    turn = TurnInput(
        message=IncomingMessage(address=HERE, message_id=name, sender_id="5", text=name),
        conversation=ConversationId("c1"),
        person_id=PersonId("p1"),
        role=Role.OWNER,
    )
    return NewRun(
        run_id=RunId(name),
        lane=HERE.key,
        by=PersonId("p1"),
        payload=turn.to_json(),
        child_of=child_of,
    )


def an_end(
    name: str, *, conversation: str = "c1", entries: tuple[Entry, ...] | None = None
) -> TurnEnd:
    said = (Said(text=name),) if entries is None else entries
    return TurnEnd(
        status=RunStatus.DONE,
        inbox=InboxState.REPLIED,
        conversation=ConversationId(conversation),
        turn=Turn(run_id=RunId(name), entries=said),
        reply_to=HERE,
    )


class Kept:
    """Keeps what it was called with; each waits until the test lets it go on."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.done: list[str] = []
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def __call__(self, ended: EndedTurn) -> None:
        self.began.append(ended.turn.message.text)
        await self.go_on.wait()
        self.done.append(ended.turn.message.text)


async def test_each_work_follows_each_turn_in_order() -> None:
    one, other = Kept(), Kept()
    async with Aftermath(
        [FollowUp(name="one", run=one), FollowUp(name="other", run=other)]
    ) as aftermath:
        for name in ("a", "b", "c"):
            aftermath.ended(a_run(name), an_end(name))
        await aftermath.idle()

    assert one.done == other.done == ["a", "b", "c"]


async def test_one_conversation_waits_for_its_own_turns_and_for_no_others() -> None:
    kept = Kept()
    kept.go_on.clear()
    async with Aftermath([FollowUp(name="w", run=kept)]) as aftermath:
        aftermath.ended(a_run("a"), an_end("a"))
        aftermath.ended(a_run("b"), an_end("b"))
        aftermath.ended(a_run("z"), an_end("z", conversation="c2"))
        while len(kept.began) < 2:
            await asyncio.sleep(0)
        began = list(kept.began)
        kept.go_on.set()
        await aftermath.idle()

    assert began == ["a", "z"]
    assert sorted(kept.done) == ["a", "b", "z"]


@pytest.mark.parametrize("error", [StorageError("no space is left"), ZeroDivisionError("odd")])
async def test_one_work_that_fails_takes_nothing_else_down(error: Exception) -> None:
    async def fails(ended: EndedTurn) -> None:
        raise error

    kept = Kept()
    with capture_logs() as logs:
        async with Aftermath(
            [FollowUp(name="bad", run=fails), FollowUp(name="w", run=kept)]
        ) as aftermath:
            aftermath.ended(a_run("a"), an_end("a"))
            await aftermath.idle()

    assert kept.done == ["a"]
    assert [entry["work"] for entry in logs] == ["bad"]


async def test_nothing_follows_from_a_subagent_or_from_a_turn_in_which_nothing_was_said() -> None:
    kept = Kept()
    child = ChildOf(run_id=RunId("parent"), lane=HERE.key, waits=True)
    async with Aftermath([FollowUp(name="w", run=kept)]) as aftermath:
        aftermath.ended(a_run("a", child_of=child), an_end("a"))
        aftermath.ended(a_run("b"), an_end("b", entries=()))
        await aftermath.idle()

    assert kept.began == []


async def test_a_flood_is_bounded_and_told() -> None:
    kept = Kept()
    kept.go_on.clear()
    with capture_logs() as logs:
        async with Aftermath([FollowUp(name="w", run=kept)]) as aftermath:
            for number in range(WAITING_MAX + 1):
                aftermath.ended(a_run(str(number)), an_end(str(number)))

    assert [entry["event"] for entry in logs] == ["aftermath.full"]


async def test_at_the_end_what_runs_gets_its_time_and_what_is_late_is_left() -> None:
    kept = Kept()
    kept.go_on.clear()
    async with Aftermath([FollowUp(name="w", run=kept)]) as aftermath:
        aftermath.ended(a_run("a"), an_end("a"))
        while not kept.began:
            await asyncio.sleep(0)
        await aftermath.stop(0.01)
        aftermath.ended(a_run("b"), an_end("b"))

    assert (kept.began, kept.done) == (["a"], [])
