"""A kill in the middle of a call that may not be repeated: the person is told, by code."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from agent.tools.tool import Effect
from agent.turn.end import DOUBT, doubts
from agent.turn.steps.tools import UNKNOWN_FATE
from memory.records.errors import Overloaded
from memory.records.messages import RunId
from memory.records.transcript import Answered, Entry, ToolCall, ToolResult
from tests.agent.house import (
    OWNER,
    OWNER_IN_GROUP,
    FakeTool,
    House,
    Somebody,
    forever,
    model,
)
from tests.fakes import calls


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


async def a_kill_while_it_sends(house: House, *, by: Somebody = OWNER) -> tuple[RunId, FakeTool]:
    acting = asyncio.Event()

    async def act(text: str) -> str:
        acting.set()
        return await forever(text)

    tool = FakeTool("send", act, effect=Effect.PERSON, redo="once")
    house.tools = [tool]
    async with house.opened(model(calls(("send", '{"text": "hello"}')))):
        run = await house.submit("send it", by=by)
        await acting.wait()
    return RunId(run), tool


TOLD = DOUBT.format(what="use a tool (`text: hello`)")


async def test_the_person_is_told_also_when_the_model_fails(house: House) -> None:
    run, _ = await a_kill_while_it_sends(house)

    async with house.opened(model(Overloaded("overloaded, says the service"))):
        await house.engine.idle()

        assert (await house.reply(run)).endswith(f"\n\n{TOLD}")


async def test_the_person_is_told_once_after_a_second_kill(house: House) -> None:
    run, tool = await a_kill_while_it_sends(house)
    asked = asyncio.Event()

    async def never(*_: object) -> Answered:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with house.opened(model(never)):
        await asked.wait()
    async with house.opened(model("Fine.")):
        await house.engine.idle()

        assert await house.reply(run) == f"Fine.\n\n{TOLD}"
    assert tool.ran == ["hello"]


async def test_the_person_is_told_also_when_they_stop_the_turn(house: House) -> None:
    run, _ = await a_kill_while_it_sends(house)
    asked = asyncio.Event()

    async def never(*_: object) -> Answered:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with house.opened(model(never)):
        await asked.wait()
        await house.engine.cancel(OWNER.address.key)
        await house.engine.idle()

        assert await house.reply(run) == TOLD


async def test_where_others_read_along_it_does_not_say_what_exactly_was_asked(
    house: House,
) -> None:
    run, _ = await a_kill_while_it_sends(house, by=OWNER_IN_GROUP)

    async with house.opened(model("Fine.")):
        await house.engine.idle()

        assert await house.reply(run) == f"Fine.\n\n{DOUBT.format(what='use a tool')}"


# --- what is said --------------------------------------------------------------------------------


def in_doubt(arguments: str, *, name: str = "exec") -> list[Entry]:
    call = ToolCall(id="1", name=name, arguments=arguments)
    return [
        Answered(text="", calls=(call,), finish="tool_calls"),
        ToolResult(call_id="1", content=UNKNOWN_FATE, ok=False),
    ]


def said_of(entries: list[Entry]) -> str:
    (line,) = doubts(entries, lambda tool: f"do {tool}", is_shared=False)
    return line


def test_what_was_asked_is_one_short_line_that_ends_no_code() -> None:
    arguments = json.dumps({"command": ["sh", "-c", "a`b`\n**c**"], "more": "ten " * 99})

    line = said_of(in_doubt(arguments))

    assert "do exec (`command: sh -c a'b'⏎**c**, more: ten ten" in line
    assert "\n" not in line
    assert len(line) < 300


def test_the_tool_within_a_tool_call_is_named() -> None:
    inner = json.dumps({"name": "crm__send", "arguments": {"to": "Bob"}})

    assert "do crm__send (`to: Bob`)" in said_of(in_doubt(inner, name="tool_call"))


def test_the_same_words_of_a_server_are_believed_by_nobody() -> None:
    call = ToolCall(id="1", name="crm__send", arguments="{}")
    said = ToolResult(call_id="1", content=UNKNOWN_FATE, ok=False, untrusted=True)

    assert doubts([Answered(text="", calls=(call,)), said], str, is_shared=False) == []
