"""What every TurnEngine must do. An engine is put through it by a fixture `lab`.

The lab keeps one store; engines are opened over it one after the other, as processes are. It can
kill an engine around the n-th use of its store, and let the store fail there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import pytest

from agent.turn.engine import RESUMES_MAX, TIME_LIMIT
from memory.records.errors import StepUnknown, StorageFull, StorageLocked, TurnChanged, TurnStopped
from memory.records.messages import Address, ConversationId, PersonId, RunId
from memory.records.ports import (
    ChildOf,
    InboxState,
    Json,
    NewRun,
    RunStatus,
    StepFunction,
    TurnContext,
    TurnEnd,
    TurnEngine,
)
from memory.records.section import TurnsSettings
from memory.records.transcript import Answered, Entry, Said, Turn
from tests.fakes import FixedClock

T = TypeVar("T")

LANE = "telegram:5"
OTHER_LANE = "telegram:6"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A turn as the store has it; `replies` are its rows in the outbox."""

    run_id: str
    status: str
    inbox: str
    replies: tuple[str, ...]
    entries: int


class Lab(Protocol):
    """One store and its engines."""

    conversation: ConversationId
    clock: FixedClock
    died: asyncio.Event

    @property
    def open_engine(self) -> TurnEngine:
        """The engine opened last."""

    def engine(
        self, program: Script, limits: TurnsSettings | None = None
    ) -> AbstractAsyncContextManager[TurnEngine]:
        """An engine that was not started yet; on leaving, what runs is parked."""

    async def settled(self) -> None:
        """Returns once nothing in the open engine runs or waits."""

    async def lane_settled(self, lane: str) -> None:
        """The same, of a conversation and what works for it."""

    async def new_run(
        self, run_id: str, *, lane: str = LANE, by: str = "p1", message_id: str = ""
    ) -> NewRun:
        """A run with a message of its own in the inbox; the same one for the same id."""

    async def turns(self) -> dict[str, Ended]:
        """All turns by id."""

    async def replies(self) -> list[str]:
        """Ids of the turns that replied, in the order in which their replies go out."""

    def kill_at(self, n: int, *, after: bool) -> None:
        """The next engine dies before or after the n-th use of its store: `died` is set."""

    def trouble_at(self, n: int, error: Exception) -> None:
        """The n-th use of the store fails, once, with nothing done."""

    @property
    def used(self) -> int:
        """Uses of the store by the engine opened last."""

    def told(self) -> list[tuple[str, str]]:
        """Steps as they were run and as they were recorded, over all engines: ("ran" |
        "recorded", "run:step")."""


# --- programs ------------------------------------------------------------------------------------

Main = Callable[[TurnContext, Json], Awaitable[str]]


@dataclass(slots=True)
class Script:
    """Implements Program: `main` returns the reply. Steps are noted in `told`, then run."""

    lab: Lab
    main: Main
    functions: Mapping[str, Callable[[Json], Awaitable[Any]]] = field(default_factory=dict)
    heard: dict[str, list[str]] = field(default_factory=dict)

    @property
    def steps(self) -> Mapping[str, StepFunction]:
        return {name: self._step(name) for name in self.functions}

    async def run(self, ctx: TurnContext, payload: Json) -> TurnEnd:
        self.heard[ctx.run_id] = [payload["text"]]
        try:
            reply = await self.main(ctx, payload)
        except TurnStopped as stop:
            if stop.reason == TIME_LIMIT:
                return self.end(ctx.run_id, RunStatus.FAILED, InboxState.FAILED, stop.reason)
            return self.end(ctx.run_id, RunStatus.CANCELLED, InboxState.CANCELLED, "")
        return self.end(ctx.run_id, RunStatus.DONE, InboxState.REPLIED, reply)

    def failed(self, run: NewRun, error: Exception | None) -> TurnEnd:
        why = type(error).__name__ if error else "given up"
        return self.end(run.run_id, RunStatus.FAILED, InboxState.FAILED, f"failed: {why}")

    def end(self, run_id: RunId, status: RunStatus, inbox: InboxState, reply: str) -> TurnEnd:
        said: tuple[Entry, ...] = tuple(Said(text=text) for text in self.heard.get(run_id, ()))
        return TurnEnd(
            status=status,
            inbox=inbox,
            conversation=self.lab.conversation,
            turn=Turn(run_id=run_id, entries=(*said, Answered(text=reply))),
            reply_to=Address(channel="telegram", chat_id="5"),
            reply=reply,
        )

    async def listen(self, ctx: TurnContext) -> list[str]:
        texts = [payload["text"] for payload in await ctx.receive()]
        self.heard[ctx.run_id] += texts
        return texts

    def _step(self, name: str) -> StepFunction:
        async def run(ctx: TurnContext, arguments: Json) -> Json:
            self.lab.told().append(("ran", f"{ctx.run_id}:{name}"))
            return {"out": await self.functions[name](arguments)}

        return run


class Gate:
    """A step that stays inside until it is let go."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.leave = asyncio.Event()
        self.inside = 0
        self.inside_most = 0
        self.cancelled = 0

    async def __call__(self, arguments: Json) -> str:
        self.inside += 1
        self.inside_most = max(self.inside, self.inside_most)
        self.entered.set()
        try:
            await self.leave.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.inside -= 1
        return "through"


async def echo(arguments: Json) -> Any:
    return arguments.get("text", "")


async def plain(ctx: TurnContext, payload: Json) -> str:
    return f"re: {(await ctx.step('echo', payload))['out']}"


def leap(seconds: float) -> None:
    """The event loop's clock jumps: what was to happen until then happens now."""
    loop = asyncio.get_running_loop()
    former = loop.time
    setattr(loop, "time", lambda: former() + seconds)  # noqa: B010 - a method, for this test


async def until(true: Callable[[], bool]) -> None:
    """Gives other tasks turns until it is so; the test's time limit bounds it."""
    while not true():
        await asyncio.sleep(0)


def runs(told: Sequence[tuple[str, str]], step: str) -> int:
    return told.count(("ran", step))


# --- the suite -----------------------------------------------------------------------------------


class EngineSuite:
    """Subclassed beside a fixture `lab`, once for each engine."""

    # steps and their records

    async def test_a_finished_step_is_recorded_before_the_next_begins(self, lab: Lab) -> None:
        async def main(ctx: TurnContext, payload: Json) -> str:
            for name in ("think", "look", "send", "answer"):
                await ctx.step(name, payload, redo="once" if name == "send" else "repeat")
            return ""

        steps = ("think", "look", "send", "answer")
        program = Script(lab, main, dict.fromkeys(steps, echo))
        async with lab.engine(program) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("r1"))
            await lab.settled()

        assert lab.told() == [
            (what, f"r1:{step}") for step in steps for what in ("ran", "recorded")
        ]

    async def test_a_finished_step_is_recorded_while_another_beside_it_still_runs(
        self, lab: Lab
    ) -> None:
        gate = Gate()

        async def main(ctx: TurnContext, payload: Json) -> str:
            await asyncio.gather(ctx.step("gate", payload), ctx.step("echo", payload))
            return ""

        async with lab.engine(Script(lab, main, {"gate": gate, "echo": echo})) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("r1"))
            async with asyncio.timeout(5):
                await until(lambda: ("recorded", "r1:echo") in lab.told())
            assert gate.inside == 1
            gate.leave.set()
            await lab.settled()

    # order within a conversation, and several at once

    async def test_turns_of_a_lane_run_one_at_a_time_in_the_order_of_their_submission(
        self, lab: Lab
    ) -> None:
        gate = Gate()
        program = Script(lab, _reply_after("gate"), {"gate": gate})

        async with lab.engine(program) as engine:
            await engine.start()
            for name in ("r1", "r2", "r3"):
                await engine.submit(await lab.new_run(name))
            await gate.entered.wait()
            gate.leave.set()
            await lab.settled()

        assert gate.inside_most == 1
        assert await lab.replies() == ["r1", "r2", "r3"]
        assert {turn.inbox for turn in (await lab.turns()).values()} == {"replied"}

    async def test_lanes_run_in_parallel_up_to_the_limit(self, lab: Lab) -> None:
        gate = Gate()
        program = Script(lab, _reply_after("gate"), {"gate": gate})

        async with lab.engine(program, TurnsSettings(parallel=2)) as engine:
            await engine.start()
            for n in range(4):
                await engine.submit(await lab.new_run(f"r{n}", lane=f"telegram:{n}"))
            await until(lambda: gate.inside == 2)
            gate.leave.set()
            await lab.settled()

        assert gate.inside_most == 2
        assert len(await lab.replies()) == 4

    async def test_a_run_that_is_submitted_again_runs_once(self, lab: Lab) -> None:
        program = Script(lab, plain, {"echo": echo})
        run = await lab.new_run("r1")

        async with lab.engine(program) as engine:
            await engine.start()
            first, second = await engine.submit(run), await engine.submit(run)
            await lab.settled()
            third = await engine.submit(run)
            await lab.settled()

        assert (first, second, third) == (True, False, False)
        assert await lab.replies() == ["r1"]

    async def test_what_was_submitted_before_the_start_runs_once(self, lab: Lab) -> None:
        program = Script(lab, plain, {"echo": echo})

        async with lab.engine(program) as engine:
            await engine.submit(await lab.new_run("r1"))
            await engine.start()
            await lab.settled()

        assert (await lab.turns())["r1"].replies == ("re: r1",)
        assert runs(lab.told(), "r1:echo") == 1

    # steps

    async def test_a_recorded_step_returns_after_a_restart_and_does_not_run_again(
        self, lab: Lab
    ) -> None:
        gate = Gate()

        async def main(ctx: TurnContext, payload: Json) -> str:
            first = await ctx.step("echo", payload)
            await ctx.step("gate", {})
            return str(first["out"])

        program = Script(lab, main, {"echo": echo, "gate": gate})

        await _park(lab, program, gate)
        gate.leave.set()
        await _finish(lab, program)

        assert runs(lab.told(), "r1:echo") == 1
        assert runs(lab.told(), "r1:gate") == 2
        assert (await lab.turns())["r1"].replies == ("r1",)

    async def test_a_once_step_in_flight_at_a_restart_is_reported_as_unknown(
        self, lab: Lab
    ) -> None:
        gate = Gate()

        async def main(ctx: TurnContext, payload: Json) -> str:
            try:
                await ctx.step("gate", {}, redo="once")
            except StepUnknown:
                return f"unknown, {(await ctx.step('echo', payload))['out']}"
            return "known"

        program = Script(lab, main, {"echo": echo, "gate": gate})

        await _park(lab, program, gate)
        await _finish(lab, program)

        assert runs(lab.told(), "r1:gate") == 1
        assert (await lab.turns())["r1"].replies == ("unknown, r1",)

    async def test_a_step_that_is_cancelled_by_itself_fails_the_turn_and_not_the_lane(
        self, lab: Lab
    ) -> None:
        async def broken(arguments: Json) -> str:
            if arguments["text"] == "r1":
                raise asyncio.CancelledError
            return "fine"

        program = Script(lab, plain, {"echo": broken})

        await _finish(lab, program, "r1", "r2")

        turns = await lab.turns()
        assert turns["r1"].replies == ("failed: RuntimeError",)
        assert turns["r2"].replies == ("re: fine",)

    # steering

    async def test_a_message_steers_while_a_listening_step_runs_and_is_joined(
        self, lab: Lab
    ) -> None:
        gate = Gate()
        program = _listener(lab, gate)

        async with lab.engine(program) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("r1"))
            await gate.entered.wait()
            await engine.submit(await lab.new_run("r2"))
            await engine.submit(await lab.new_run("r3", by="p2"))
            gate.leave.set()
            await lab.settled()

        turns = await lab.turns()
        assert turns["r1"].replies == ("r1+r2",)
        assert (turns["r2"].status, turns["r2"].inbox) == ("joined", "joined")
        assert turns["r2"].replies == ()
        assert turns["r3"].replies == ("r3",), "somebody else's has a turn of its own"

    async def test_a_message_during_a_step_that_does_not_listen_is_the_next_turn(
        self, lab: Lab
    ) -> None:
        deaf, gate = Gate(), Gate()
        gate.leave.set()
        program = _listener(lab, gate, before=deaf)

        async with lab.engine(program) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("r1"))
            await deaf.entered.wait()
            await engine.submit(await lab.new_run("r2"))
            deaf.leave.set()
            await lab.settled()

        assert await lab.replies() == ["r1", "r2"]

    @pytest.mark.case("CH-15")
    async def test_a_steering_message_does_not_overtake_an_earlier_one_of_the_same_person(
        self, lab: Lab
    ) -> None:
        deaf, gate = Gate(), Gate()
        program = _listener(lab, gate, before=deaf)

        async with lab.engine(program) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("r1"))
            await deaf.entered.wait()
            await engine.submit(await lab.new_run("r2"))
            deaf.leave.set()
            await gate.entered.wait()
            await engine.submit(await lab.new_run("r3"))
            gate.leave.set()
            await lab.settled()

        assert (await lab.turns())["r1"].replies == ("r1+r2+r3",)

    async def test_with_followup_each_message_has_its_own_turn(self, lab: Lab) -> None:
        gate = Gate()
        program = _listener(lab, gate)

        async with lab.engine(program, TurnsSettings(queue="followup")) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("r1"))
            await gate.entered.wait()
            await engine.submit(await lab.new_run("r2"))
            gate.leave.set()
            await lab.settled()

        assert await lab.replies() == ["r1", "r2"]

    async def test_with_collect_what_arrives_in_the_pause_is_one_turn(self, lab: Lab) -> None:
        gate = Gate()
        gate.leave.set()
        program = _listener(lab, gate)
        lab.clock.hold()

        async with lab.engine(program, TurnsSettings(queue="collect")) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("r1"))
            await lab.clock.asleep.wait()
            await engine.submit(await lab.new_run("r2"))
            await engine.submit(await lab.new_run("r3", by="p2"))
            lab.clock.wake()
            await lab.settled()

        turns = await lab.turns()
        assert turns["r1"].replies == ("r1+r2",)
        assert turns["r2"].inbox == "joined"
        assert turns["r3"].replies == ("r3",)
        assert lab.clock.pauses == [1.5, 1.5]

    async def test_a_message_is_heard_after_the_step_during_which_it_came_also_when_that_is_retried(
        self, lab: Lab
    ) -> None:
        gate, later = Gate(), Gate()
        gate.leave.set()

        async def main(ctx: TurnContext, payload: Json) -> str:
            await ctx.step("gate", {}, listens=True)
            early = await program.listen(ctx)
            await ctx.step("later", {}, listens=True)
            return f"{early}, then {await program.listen(ctx)}"

        program = Script(lab, main, {"gate": gate, "later": later})
        async with lab.engine(program) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("r1"))
            await later.entered.wait()
            await engine.submit(await lab.new_run("r2"))
            lab.trouble_at(lab.used + 1, StorageFull("full"))
            later.leave.set()
            await lab.settled()

        assert (await lab.turns())["r1"].replies == ("[], then ['r2']",)
        assert runs(lab.told(), "r1:later") == 1

    # edits

    async def test_an_edit_before_the_turn_begins_replaces_the_text(self, lab: Lab) -> None:
        gate = Gate()

        async def main(ctx: TurnContext, payload: Json) -> str:
            await ctx.step("gate", {})
            return await plain(ctx, payload)

        program = Script(lab, main, {"gate": gate, "echo": echo})
        async with lab.engine(program) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("r1", message_id="m1"))
            await engine.submit(await lab.new_run("r2", message_id="m2"))
            await gate.entered.wait()
            in_time = await engine.edit(LANE, "m2", {"text": "better"})
            too_late = await engine.edit(LANE, "m1", {"text": "never"})
            unknown = await engine.edit(LANE, "m9", {"text": "never"})
            gate.leave.set()
            await lab.settled()
            ended = await engine.edit(LANE, "m2", {"text": "never"})

        assert (in_time, too_late, unknown, ended) == (True, False, False, False)
        turns = await lab.turns()
        assert turns["r1"].replies == ("re: r1",)
        assert turns["r2"].replies == ("re: better",)

    # waiting for a signal

    async def test_a_turn_waits_for_its_signal_and_leaves_the_lane_free(self, lab: Lab) -> None:
        program = Script(lab, _asks, {"echo": echo})

        async with lab.engine(program) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("r1"))
            await engine.submit(await lab.new_run("plain"))
            await lab.settled()
            before = dict(await lab.turns())
            woken = await engine.signal("r1", {"text": "yes"})
            await lab.settled()
            again = await engine.signal("r1", {"text": "no"})

        assert before["r1"].status == "suspended"
        assert before["plain"].replies == ("no question",)
        assert (woken, again) == (True, False)
        assert (await lab.turns())["r1"].replies == ("r1: yes",)
        assert runs(lab.told(), "r1:echo") == 1

    async def test_a_signal_that_comes_first_is_kept(self, lab: Lab) -> None:
        program = Script(lab, _asks, {"echo": echo})

        async with lab.engine(program) as engine:
            await engine.start()
            woken = await engine.signal("r1", {"text": "early"})
            await engine.submit(await lab.new_run("r1"))
            await lab.settled()

        assert woken is False
        assert (await lab.turns())["r1"].replies == ("r1: early",)

    @pytest.mark.parametrize("when", ["while down", "after the restart"])
    async def test_a_suspended_turn_survives_a_restart(self, lab: Lab, when: str) -> None:
        program = Script(lab, _asks, {"echo": echo})
        async with lab.engine(program) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("r1"))
            await lab.settled()

        async with lab.engine(program) as engine:
            if when == "while down":
                await engine.signal("r1", {"text": "yes"})
                await engine.start()
            else:
                await engine.start()
                await engine.signal("r1", {"text": "yes"})
            await lab.settled()

        assert (await lab.turns())["r1"].replies == ("r1: yes",)
        assert runs(lab.told(), "r1:echo") == 1

    async def test_a_signal_in_the_moment_of_suspending_is_not_lost(self, lab: Lab) -> None:
        unwinding, go_on = asyncio.Event(), asyncio.Event()

        async def main(ctx: TurnContext, payload: Json) -> str:
            try:
                return str((await ctx.wait("key"))["text"])
            finally:
                unwinding.set()
                await go_on.wait()

        program = Script(lab, main)
        async with lab.engine(program) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("r1"))
            await unwinding.wait()
            await engine.signal("key", {"text": "just in time"})
            go_on.set()
            await lab.settled()

        assert (await lab.turns())["r1"].replies == ("just in time",)

    async def test_a_woken_turn_is_not_taken_for_a_message_that_steers(self, lab: Lab) -> None:
        gate = Gate()

        async def main(ctx: TurnContext, payload: Json) -> str:
            if payload["text"] == "r1":
                return str((await ctx.wait("key"))["text"])
            await ctx.step("gate", {}, listens=True)
            await program.listen(ctx)
            return "+".join(program.heard[ctx.run_id])

        program = Script(lab, main, {"gate": gate})
        async with lab.engine(program) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("r1"))
            await lab.settled()
            await engine.submit(await lab.new_run("r2"))
            await gate.entered.wait()
            await engine.signal("key", {"text": "yes"})
            await engine.submit(await lab.new_run("r3"))
            gate.leave.set()
            await lab.settled()

        turns = await lab.turns()
        assert turns["r2"].replies == ("r2+r3",)
        assert turns["r1"].replies == ("yes",)

    async def test_time_spent_waiting_for_a_signal_does_not_count(self, lab: Lab) -> None:
        program = Script(lab, _asks, {"echo": echo})

        async with lab.engine(program, TurnsSettings(limit_s=300)) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("r1"))
            await lab.settled()
            leap(3_600)
            await asyncio.sleep(0.001)
            await engine.signal("r1", {"text": "yes"})
            await lab.settled()

        assert (await lab.turns())["r1"].replies == ("r1: yes",)

    # ending early

    @pytest.mark.case("AG-07")
    async def test_cancel_ends_the_running_turn_and_all_that_wait_behind_it(self, lab: Lab) -> None:
        gate = Gate()
        program = Script(lab, _reply_after("gate"), {"gate": gate})

        async with lab.engine(program) as engine:
            await engine.start()
            for name in ("r1", "r2"):
                await engine.submit(await lab.new_run(name))
            await engine.submit(await lab.new_run("r3", lane=OTHER_LANE))
            await until(lambda: gate.inside == 2)
            ended = await engine.cancel(LANE)
            at_once = (await lab.turns())["r1"].status
            gate.leave.set()
            await lab.settled()
            nothing = await engine.cancel(LANE)

        assert (ended, nothing) == (2, 0)
        assert at_once == "cancelled"
        assert gate.cancelled == 1
        turns = await lab.turns()
        assert {turns[name].inbox for name in ("r1", "r2")} == {"cancelled"}
        assert {turns[name].replies for name in ("r1", "r2")} == {()}
        assert turns["r3"].status == "done"
        assert runs(lab.told(), "r2:gate") == 0

    async def test_cancel_for_one_person_leaves_the_turns_of_others(self, lab: Lab) -> None:
        gate = Gate()
        program = Script(lab, _reply_after("gate"), {"gate": gate})

        async with lab.engine(program) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("r1"))
            await engine.submit(await lab.new_run("r2", by="p2"))
            await until(lambda: gate.inside == 1)
            waiting = await engine.cancel(LANE, by=PersonId("p2"))
            nothing = await engine.cancel(LANE, by=PersonId("p2"))
            gate.leave.set()
            await lab.settled()

        assert (waiting, nothing) == (1, 0)
        turns = await lab.turns()
        assert turns["r1"].status == "done"
        assert turns["r2"].inbox == "cancelled"
        assert runs(lab.told(), "r2:gate") == 0

    async def test_cancel_in_the_moment_of_suspending_is_not_lost(self, lab: Lab) -> None:
        unwinding, go_on = asyncio.Event(), asyncio.Event()

        async def main(ctx: TurnContext, payload: Json) -> str:
            try:
                return str((await ctx.wait("key"))["text"])
            finally:
                unwinding.set()
                await go_on.wait()

        program = Script(lab, main)
        async with lab.engine(program) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("r1"))
            await unwinding.wait()
            cancelling = asyncio.ensure_future(engine.cancel(LANE))
            await asyncio.sleep(0)
            go_on.set()
            await cancelling
            await lab.settled()

        assert (await lab.turns())["r1"].status == "cancelled"

    @pytest.mark.parametrize("state", ["running", "queued", "suspended"])
    async def test_a_cancel_survives_a_kill(self, lab: Lab, state: str) -> None:
        gate = Gate()
        program = Script(lab, _asks if state == "suspended" else _reply_after("gate"))
        program.functions = {"gate": gate, "echo": echo}
        name = "r1" if state != "queued" else "r2"

        async def life() -> None:
            async with lab.engine(program) as engine:
                await engine.start()
                await engine.submit(await lab.new_run("r1"))
                if state == "suspended":
                    await lab.settled()
                else:
                    await gate.entered.wait()
                if state == "queued":
                    await engine.submit(await lab.new_run("r2", by="p2"))
                if state == "queued":  # the intention is written, and nothing else
                    lab.kill_at(lab.used + 1, after=True)
                else:
                    lab.kill_at(lab.used + 2, after=False)
                await engine.cancel(LANE)
                await lab.settled()

        await _until_killed(lab, life)
        before = (await lab.turns())[name].status
        gate.leave.set()
        await _finish(lab, program)

        assert before not in {"cancelled", "done"}
        assert (await lab.turns())[name].status == "cancelled"
        assert name not in await lab.replies()

    # stopping

    async def test_stop_lets_a_running_turn_finish_and_begins_no_other(self, lab: Lab) -> None:
        gate = Gate()
        program = Script(lab, _reply_after("gate"), {"gate": gate})

        async with lab.engine(program) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("r1"))
            await engine.submit(await lab.new_run("r2"))
            await gate.entered.wait()
            stopping = asyncio.ensure_future(engine.stop(60))
            await asyncio.sleep(0)
            gate.leave.set()
            await stopping
            late = await engine.submit(await lab.new_run("r3"))
        before = await lab.replies()
        await _finish(lab, program)

        assert late is True
        assert before == ["r1"]
        assert await lab.replies() == ["r1", "r2", "r3"]

    # programs that break

    async def test_a_turn_whose_program_was_changed_ends_with_a_notice(self, lab: Lab) -> None:
        gate = Gate()

        async def former(ctx: TurnContext, payload: Json) -> str:
            await ctx.step("echo", payload)
            await ctx.step("gate", {})
            return "former"

        async def later(ctx: TurnContext, payload: Json) -> str:
            await ctx.step("gate", {})
            return "later"

        await _park(lab, Script(lab, former, {"echo": echo, "gate": gate}), gate)
        gate.leave.set()
        await _finish(lab, Script(lab, later, {"gate": gate}))

        assert (await lab.turns())["r1"].replies == (f"failed: {TurnChanged.__name__}",)

    async def test_a_turn_that_keeps_dying_with_the_process_is_given_up(self, lab: Lab) -> None:
        gate = Gate()
        program = Script(lab, _reply_after("gate"), {"gate": gate})

        for n in range(RESUMES_MAX + 1):
            gate.entered.clear()
            await _park(lab, program, gate, submit=n == 0)
        await _finish(lab, program)

        assert runs(lab.told(), "r1:gate") == RESUMES_MAX + 1
        assert (await lab.turns())["r1"].replies == ("failed: given up",)

    async def test_a_turn_that_orderly_stops_cut_off_is_never_given_up(self, lab: Lab) -> None:
        gate = Gate()
        program = Script(lab, _reply_after("gate"), {"gate": gate})

        for n in range(RESUMES_MAX + 2):
            gate.entered.clear()
            async with lab.engine(program) as engine:
                await engine.start()
                if n == 0:
                    await engine.submit(await lab.new_run("r1"))
                await gate.entered.wait()
                await engine.stop(0)
        gate.leave.set()
        await _finish(lab, program)

        assert runs(lab.told(), "r1:gate") == RESUMES_MAX + 3
        assert not (await lab.turns())["r1"].replies[0].startswith("failed")

    async def test_a_turn_that_gets_on_is_never_given_up(self, lab: Lab) -> None:
        lives = RESUMES_MAX + 4
        gates = [Gate() for _ in range(lives)]

        async def main(ctx: TurnContext, payload: Json) -> str:
            for n in range(lives):
                await ctx.step(f"gate{n}", {})
            return "at last"

        program = Script(lab, main, {f"gate{n}": gate for n, gate in enumerate(gates)})

        for n, gate in enumerate(gates):
            await _park(lab, program, gate, submit=n == 0)
            gate.leave.set()
        await _finish(lab, program)

        assert (await lab.turns())["r1"].replies == ("at last",)

    # trouble of the store

    @pytest.mark.parametrize("error", [StorageFull("full"), StorageLocked("locked")])
    async def test_trouble_at_any_use_of_the_store_costs_no_step_and_no_turn(
        self, lab: Lab, error: Exception
    ) -> None:
        program = _errand(lab)
        n = 0
        while True:
            n += 1
            lab.trouble_at(n, error)

            async with lab.engine(program) as engine:
                await _insist(engine.start)
                await _run_errands(lab, engine, f"t{n}")

            if lab.used < n:
                break
            _assert_errands_done(await lab.turns(), f"t{n}")
            for step in ERRAND_STEPS:
                assert runs(lab.told(), f"t{n}-a:{step}") == 1, (n, step)
        assert n > 20

    @pytest.mark.case("AG-07")
    async def test_a_cancel_during_trouble_of_the_store_is_not_forgotten(self, lab: Lab) -> None:
        gate = Gate()
        program = Script(lab, _reply_after("gate"), {"gate": gate})
        lab.clock.hold()

        async with lab.engine(program) as engine:
            await engine.submit(await lab.new_run("r1"))
            lab.trouble_at(lab.used + 2, StorageFull("full"))
            await engine.start()
            await lab.clock.asleep.wait()
            cancelling = asyncio.ensure_future(engine.cancel(LANE))
            await asyncio.sleep(0)
            lab.clock.wake()
            ended = await cancelling
            await lab.settled()

        assert ended == 1
        assert (await lab.turns())["r1"].status == "cancelled"
        assert runs(lab.told(), "r1:gate") == 0

    async def test_a_turn_that_was_stopped_stays_so_when_its_end_cannot_be_written(
        self, lab: Lab
    ) -> None:
        gate = Gate()
        program = Script(lab, _reply_after("gate"), {"gate": gate})

        async with lab.engine(program) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("r1"))
            await gate.entered.wait()
            lab.trouble_at(lab.used + 2, StorageFull("full"))  # stopping, then finish
            await engine.cancel(LANE)
            await lab.settled()

        assert (await lab.turns())["r1"].status == "cancelled"
        assert runs(lab.told(), "r1:gate") == 1

    # kills

    @pytest.mark.case("HI-11", "AG-07")
    @pytest.mark.parametrize("after", [False, True])
    async def test_a_kill_around_any_use_of_the_store_repeats_and_loses_nothing(
        self, lab: Lab, after: bool
    ) -> None:
        program = _errand(lab)
        n = 0
        while True:
            n += 1
            name = f"k{n}"

            async def life(name: str = name) -> None:
                async with lab.engine(program) as engine:
                    await engine.start()
                    await _run_errands(lab, engine, name)

            lab.kill_at(n, after=after)
            killed = await _until_killed(lab, life)
            await life()

            _assert_errands_done(await lab.turns(), name)
            _assert_no_step_repeated(lab.told(), name)
            if not killed:
                break
        assert n > 20

    # subagents

    @pytest.mark.case("AG-07")
    async def test_cancel_ends_the_children_of_the_lane_too(self, lab: Lab) -> None:
        gate = Gate()
        program = Family(lab, family, {"work": gate}, elsewhere=("f2",))

        async with lab.engine(program) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("f1-a"))
            await engine.submit(await lab.new_run("f2-a", lane=OTHER_LANE))
            await until(lambda: gate.inside == 4)
            nobody = await engine.cancel(LANE, by=PersonId("p2"))
            ended = await engine.cancel(LANE)
            at_once = await lab.turns()
            gate.leave.set()
            await lab.settled()

        assert (nobody, ended) == (0, 3)
        assert {at_once[name].status for name in ("f1-k", "f1-b")} == {"cancelled"}
        turns = await lab.turns()
        assert turns["f1-a"].status == "cancelled"
        assert "f1-b-report" not in turns
        _assert_family_done(turns, "f2")

    async def test_a_child_whose_parent_ends_without_it_is_ended(self, lab: Lab) -> None:
        gate = Gate()

        async def main(ctx: TurnContext, payload: Json) -> str:
            if payload["text"].endswith("-a"):
                await ctx.step("start", payload)
                raise ZeroDivisionError
            return str((await ctx.step("work", payload))["out"])

        program = Family(lab, main, {"work": gate})
        async with lab.engine(program) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("f1-a"))
            await until(lambda: gate.cancelled == 1)
            gate.leave.set()
            await lab.settled()

        turns = await lab.turns()
        assert turns["f1-a"].status == "failed"
        assert turns["f1-k"].status == "cancelled"
        assert turns["f1-b"].status == "done"

    async def test_a_run_may_have_a_time_limit_of_its_own(self, lab: Lab) -> None:
        gate = Gate()
        program = Family(lab, family, {"work": gate})
        program.limits = {"f1-k": 1_000.0, "f1-b": 2_000.0}

        async with lab.engine(program, TurnsSettings(limit_s=300)) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("f1-a"))
            await until(lambda: gate.inside == 2)
            await _until_suspended(lab, "f1-a")
            leap(301)
            await asyncio.sleep(0.001)
            early = gate.cancelled
            leap(1_001)
            await until(lambda: gate.cancelled == 1)
            gate.leave.set()
            await lab.settled()

        assert early == 0
        turns = await lab.turns()
        assert [turns[name].status for name in ("f1-k", "f1-b")] == ["failed", "done"], turns
        assert turns["f1-a"].replies == (f"f1-a heard: {TIME_LIMIT}",)

    async def test_what_follows_an_end_waits_its_turn_and_steers_nobody(self, lab: Lab) -> None:
        work, busy = Gate(), Gate()
        program = Family(lab, family, {"work": work, "busy": busy})

        async with lab.engine(program) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("f1-a"))
            await until(lambda: work.inside == 2)
            await engine.submit(await lab.new_run("busy"))
            await busy.entered.wait()
            work.leave.set()
            await until(lambda: ("recorded", "f1-b:work") in lab.told())
            await engine.submit(await lab.new_run("steering"))
            busy.leave.set()
            await lab.settled()

        turns = await lab.turns()
        assert turns["busy"].replies == ("busy+steering",)
        assert turns["steering"].status == "joined"
        _assert_family_done(turns, "f1")
        assert (await lab.replies())[0] == "busy"

    @pytest.mark.case("AG-07")
    async def test_after_a_restart_cancel_still_ends_the_children_of_the_lane(
        self, lab: Lab
    ) -> None:
        gate = Gate()
        program = Family(lab, family, {"work": gate})
        async with lab.engine(program) as engine:
            await engine.start()
            await engine.submit(await lab.new_run("f1-a"))
            await until(lambda: gate.inside == 2)
            await _until_suspended(lab, "f1-a")

        async with lab.engine(program) as engine:
            await engine.start()
            await until(lambda: gate.inside == 2)
            ended = await engine.cancel(LANE)
            await lab.settled()

        turns = await lab.turns()
        assert ended == 3
        assert {turns[f"f1-{letter}"].status for letter in "akb"} == {"cancelled"}

    @pytest.mark.case("HI-11")
    @pytest.mark.parametrize("after", [False, True])
    async def test_a_kill_around_any_use_of_the_store_gives_each_parent_one_result(
        self, lab: Lab, after: bool
    ) -> None:
        program = Family(lab, family)
        n = 0
        while True:
            n += 1
            name = f"k{n}"

            async def life(name: str = name) -> None:
                async with lab.engine(program) as engine:
                    await engine.start()
                    await engine.submit(await lab.new_run(f"{name}-a"))
                    await lab.settled()

            lab.kill_at(n, after=after)
            killed = await _until_killed(lab, life)
            await life()

            _assert_family_done(await lab.turns(), name)
            _assert_no_step_repeated(lab.told(), name)
            if not killed:
                break
        assert n > 12

    @pytest.mark.parametrize("after", [False, True])
    async def test_a_kill_in_a_cancel_leaves_no_family_half_told(
        self, lab: Lab, after: bool
    ) -> None:
        gate = Gate()
        program = Family(lab, family, {"work": gate})
        n = 0
        while True:
            n += 1
            name = f"c{n}"
            gate.leave.clear()

            async def life(name: str = name, n: int = n) -> None:
                async with lab.engine(program) as engine:
                    await engine.start()
                    await engine.submit(await lab.new_run(f"{name}-a"))
                    await until(lambda: gate.inside == 2)
                    await _until_suspended(lab, f"{name}-a")
                    lab.kill_at(lab.used + n, after=after)
                    await engine.cancel(LANE)
                    await lab.settled()

            killed = await _until_killed(lab, life)
            gate.leave.set()
            await _finish(lab, program)

            turns = await lab.turns()
            replies = [len(turns[f"{name}-{letter}"].replies) for letter in "akb"]
            assert replies in ([0, 0, 0], [1, 0, 0]), name
            ended = {turns[f"{name}-{letter}"].status for letter in "akb"}
            assert ended <= {"cancelled", "done"}, name
            told = f"{name}-b-report" in turns
            assert told == (turns[f"{name}-b"].status == "done"), name
            if not killed:
                assert ended == {"cancelled"}
                break
        assert n > 3


# --- pieces of the tests -------------------------------------------------------------------------


def _reply_after(step: str) -> Main:
    async def main(ctx: TurnContext, payload: Json) -> str:
        await ctx.step(step, {})
        return str(payload["text"])

    return main


@dataclass(slots=True)
class Family(Script):
    """Turns that start two others: `NAME-a` waits for `NAME-k`, and of `NAME-b` the run
    `NAME-b-report` tells. Those two work by the step `work`, for at most `limits` seconds."""

    limits: Mapping[str, float] = field(default_factory=dict)
    elsewhere: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        mine = {"start": self._start, "work": _did, "answer": echo, "deaf": echo, "busy": echo}
        self.functions = {**mine, **self.functions}

    async def run(self, ctx: TurnContext, payload: Json) -> TurnEnd:
        end = await Script.run(self, ctx, payload)
        return self._told_on(ctx.run_id, payload, end)

    def failed(self, run: NewRun, error: Exception | None) -> TurnEnd:
        return self._told_on(run.run_id, run.payload, Script.failed(self, run, error))

    def _told_on(self, run_id: RunId, payload: Json, end: TurnEnd) -> TurnEnd:
        stopped = end.status is RunStatus.CANCELLED
        if run_id.endswith("-k"):
            value = {"text": "stopped" if stopped else end.reply}
            return replace(end, reply="", signals=((f"child:{run_id}", value),))
        if run_id.endswith("-b"):
            report = NewRun(
                run_id=RunId(f"{run_id}-report"),
                lane=payload["lane"],
                by=PersonId("p1"),
                payload={"text": f"told: {end.reply}"},
                steers=False,
            )
            return replace(end, reply="", follow=None if stopped else report)
        return end

    async def _start(self, arguments: Json) -> str:
        name = arguments["text"][:-2]
        lane = OTHER_LANE if name in self.elsewhere else LANE
        for letter in "kb":
            run_id = RunId(f"{name}-{letter}")
            child = NewRun(
                run_id=run_id,
                lane=f"agent:{run_id}",
                by=PersonId("p1"),
                payload={"text": run_id, "lane": lane},
                limit_s=self.limits.get(run_id),
                child_of=ChildOf(run_id=RunId(f"{name}-a"), lane=lane, waits=letter == "k"),
            )
            await _insist(partial(self.lab.open_engine.submit, child))
        return "begun"


async def _did(arguments: Json) -> str:
    await asyncio.sleep(0)
    return f"{arguments['text']} did it"


async def family(ctx: TurnContext, payload: Json) -> str:
    name = str(payload["text"])
    if name == "later":
        return "echo of later"
    heard = [name, *(other["text"] for other in await ctx.receive())]
    if name == "busy":
        await ctx.step("deaf", payload)
        await ctx.step("busy", payload, listens=True)
        return "+".join([*heard, *(other["text"] for other in await ctx.receive())])
    if name.endswith("-a"):
        await ctx.step("start", payload)
        result = await ctx.wait(f"child:{name[:-2]}-k")
        await ctx.step("answer", payload)
        return f"{name} heard: {result['text']}"
    if name.startswith("told: "):
        await ctx.step("answer", payload)
        return "+".join(heard)
    worked = (await ctx.step("work", payload))["out"]
    return f"{name} did it" if worked == "through" else str(worked)


async def _until_suspended(lab: Lab, name: str) -> None:
    while (await lab.turns())[name].status != "suspended":
        await asyncio.sleep(0)


def _assert_family_done(turns: Mapping[str, Ended], name: str) -> None:
    parent, awaited, behind = (turns[f"{name}-{letter}"] for letter in "akb")
    report = turns[f"{name}-b-report"]
    assert (parent.status, parent.inbox) == ("done", "replied"), name
    assert parent.replies == (f"{name}-a heard: {name}-k did it",), name
    assert (awaited.status, behind.status, report.status) == ("done", "done", "done"), name
    assert awaited.replies == behind.replies == (), name
    assert report.replies == (f"told: {name}-b did it",), name
    assert {one.entries for one in (parent, awaited, behind, report)} == {2}, name


def _listener(lab: Lab, gate: Gate, *, before: Gate | None = None) -> Script:
    """A program that listens while it is in the gate, and replies with all that it heard."""

    async def main(ctx: TurnContext, payload: Json) -> str:
        await program.listen(ctx)
        if before is not None:
            await ctx.step("before", {})
            await program.listen(ctx)
        await ctx.step("gate", {}, listens=True)
        await program.listen(ctx)
        return "+".join(program.heard[ctx.run_id])

    program = Script(lab, main, {"gate": gate, "before": before or gate})
    return program


async def _asks(ctx: TurnContext, payload: Json) -> str:
    if payload["text"] == "plain":
        return "no question"
    await ctx.step("echo", payload)
    answer = await ctx.wait(payload["text"])
    return f"{payload['text']}: {answer['text']}"


ERRAND_STEPS = ("think", "look", "send", "answer")


def _errand(lab: Lab) -> Script:
    """A turn with all there is: model steps, a tool during which a message comes, a `once` tool,
    and an approval. Runs `NAME-a`; its steering message is `NAME-c`."""

    async def main(ctx: TurnContext, payload: Json) -> str:
        await program.listen(ctx)
        await ctx.step("think", payload)
        await ctx.step("look", payload, listens=True)
        await program.listen(ctx)
        if payload["text"].endswith("-a"):
            await ctx.wait(f"{ctx.run_id} may send")
        try:
            sent = (await ctx.step("send", payload, redo="once"))["out"]
        except StepUnknown:
            sent = "unknown"
        await ctx.step("answer", payload)
        return f"{sent}: {'+'.join(program.heard[ctx.run_id])}"

    async def look(arguments: Json) -> str:
        text = arguments["text"]
        if text.endswith("-a"):
            steering = await lab.new_run(f"{text[:-2]}-c")
            await _insist(lambda: lab.open_engine.submit(steering))
        return "seen"

    async def send(arguments: Json) -> str:
        return "sent"

    functions = {"think": echo, "look": look, "send": send, "answer": echo}
    program = Script(lab, main, functions)
    return program


async def _run_errands(lab: Lab, engine: TurnEngine, name: str) -> None:
    """Submits `NAME-a` and `NAME-b`, approves, and waits for the end. May be repeated."""
    first = await lab.new_run(f"{name}-a")
    second = await lab.new_run(f"{name}-b", by="p2")
    await _insist(lambda: engine.submit(first))
    await _insist(lambda: engine.submit(second))
    await lab.settled()
    await _insist(lambda: engine.signal(f"{name}-a may send", {"ok": True}))
    await lab.settled()


async def _insist(act: Callable[[], Awaitable[T]]) -> T:
    """As the intake does: an event that could not be stored is handed in again."""
    while True:
        try:
            return await act()
        except (StorageFull, StorageLocked):
            continue


def _assert_errands_done(turns: Mapping[str, Ended], name: str) -> None:
    first, second, steering = (turns[f"{name}-{letter}"] for letter in "abc")
    assert (first.status, first.inbox, len(first.replies)) == ("done", "replied", 1), name
    assert (second.status, second.inbox, len(second.replies)) == ("done", "replied", 1), name
    if steering.status == "joined":
        assert (steering.inbox, steering.replies) == ("joined", ())
        assert first.replies[0].endswith(f": {name}-a+{name}-c")
        assert first.entries == 3
    else:
        assert (steering.status, steering.inbox, len(steering.replies)) == ("done", "replied", 1)
        assert first.replies[0].endswith(f": {name}-a")
        assert first.entries == 2


def _assert_no_step_repeated(told: Sequence[tuple[str, str]], name: str) -> None:
    for step in {step for _, step in told if step.startswith(f"{name}-")}:
        if ("recorded", step) in told:
            assert ("ran", step) not in told[told.index(("recorded", step)) :], step
        if step.endswith(":send"):
            assert runs(told, step) <= 1, step


async def _park(lab: Lab, program: Script, gate: Gate, *, submit: bool = True) -> None:
    """A life that ends while the turn r1 is in the gate."""
    async with lab.engine(program) as engine:
        await engine.start()
        if submit:
            await engine.submit(await lab.new_run("r1"))
        await gate.entered.wait()


async def _finish(lab: Lab, program: Script, *names: str) -> None:
    """A life in which everything comes to its end."""
    async with lab.engine(program) as engine:
        await engine.start()
        for name in names:
            await engine.submit(await lab.new_run(name))
        await lab.settled()


async def _until_killed(lab: Lab, life: Callable[[], Awaitable[None]]) -> bool:
    """Whether the life was ended by the kill that was asked for."""
    living = asyncio.ensure_future(life())
    dying = asyncio.ensure_future(lab.died.wait())
    await asyncio.wait([living, dying], return_when=asyncio.FIRST_COMPLETED)
    dying.cancel()
    killed = lab.died.is_set()
    if killed:
        living.cancel()
    with suppress(asyncio.CancelledError):
        await living
    return killed
