"""The one place where a tool's failure is caught."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import pytest
from pydantic import Field

from agent.tools.arguments import Arguments
from agent.tools.tool import (
    Caller,
    Effect,
    Needs,
    Tool,
    ToolCard,
    Trust,
    others_in_groups,
    tool,
    tools_of,
)
from agent.tools.toolbox import KeepResult, StoredResult
from memory.records.errors import Permanent, StorageFull
from memory.records.transcript import ToolResult, ToolSpec
from tests.agent.house import of_model
from tests.agent.tools.given import OWNER, call, run_tool


class Size(Arguments):
    size: int = 1


Work = Callable[[Size, Caller], Awaitable[str]]


class Probe(Tool):
    """A tool that does what the test says, and counts its calls."""

    def __init__(self, work: Work, *, effect: Effect = Effect.NONE, timeout_s: float = 5) -> None:
        self._work = work
        self.calls = 0
        self.card = ToolCard(
            name="probe",
            description="A probe.",
            arguments=of_model(Size),
            group="test",
            effect=effect,
            redo="repeat",
            trust=Trust.OURS,
            timeout_s=timeout_s,
        )

    async def run(self, arguments: Size, caller: Caller) -> str:
        self.calls += 1
        return await self._work(arguments, caller)


def giving(text: str, *, effect: Effect = Effect.NONE) -> Probe:
    async def work(arguments: Size, caller: Caller) -> str:
        return text

    return Probe(work, effect=effect)


def raising(error: BaseException, *, effect: Effect = Effect.NONE) -> Probe:
    async def work(arguments: Size, caller: Caller) -> str:
        raise error

    return Probe(work, effect=effect)


async def run(
    probe: Probe,
    arguments: object = "{}",
    who: Caller = OWNER,
    *,
    keep: KeepResult | None = None,
) -> ToolResult:
    return await run_tool(probe, call("probe", arguments), who, keep=keep)


async def test_wrong_arguments_become_a_result_and_nothing_runs() -> None:
    probe = giving("done")

    result = await run(probe, {"size": "many", "colour": 1})

    assert not result.ok
    assert result.content.startswith("probe was not run: 'size': input should be a valid integer")
    assert "unknown parameter 'colour' (known: size)" in result.content
    assert probe.calls == 0


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (Permanent("there is no such page"), "probe: there is no such page"),
        (
            OSError(28, "No space left on device", "/srv/x"),
            "probe failed: No space left on device.",
        ),
        (KeyError("sk-secret"), "probe failed: an unforeseen error (KeyError)."),
    ],
)
async def test_an_exception_becomes_one_plain_sentence(error: Exception, sentence: str) -> None:
    result = await run(raising(error))

    assert result == ToolResult(call_id="c1", content=sentence, ok=False)


async def test_a_call_that_takes_too_long_is_stopped() -> None:
    async def work(arguments: Size, caller: Caller) -> str:
        await asyncio.sleep(30)
        return "late"

    result = await run(Probe(work, timeout_s=0.01))
    result_of_write = await run(Probe(work, timeout_s=0.01, effect=Effect.WORKSPACE))

    assert result.content == "probe did not finish within 0.01 s and was stopped."
    assert not result.ok
    assert "Whether it took effect is unknown" in result_of_write.content


@pytest.mark.case("TO-05")
@pytest.mark.parametrize(
    ("raw", "readable"),
    [
        ("a\0b\x07c", "abc"),
        ("half \ud83d pair", "half \ufffd pair"),
        ("\x1b]0;title\x07\x1b[1;31mred\x1b[0m text", "red text"),
        ("link \x1b]8;;http://x\x1b\\here\x1b]8;;\x1b\\ \x1b]open\nnext", "link here \nnext"),
        ("10 %\r50 %\r\ndone\x85", "10 %\n50 %\ndone"),
        ("\x00 \n", "(no output)"),
    ],
)
async def test_a_result_is_readable_and_can_be_sent(raw: str, readable: str) -> None:
    result = await run(giving(raw))

    assert result.content == readable
    json.dumps(result.content, ensure_ascii=False).encode("utf-8")


class Shelf:
    """A KeepResult that remembers."""

    def __init__(self, *, whole: bool = True) -> None:
        self.texts: list[str] = []
        self._whole = whole

    async def __call__(self, text: str, caller: Caller) -> StoredResult:
        self.texts.append(text)
        return StoredResult(path="files/results/x.txt", whole=self._whole)


@pytest.mark.parametrize("given", [None, ["text"]])
async def test_what_is_no_text_becomes_one_plain_sentence(given: Any) -> None:
    result = await run(giving(given))
    of_effect = await run(giving(given, effect=Effect.OUTSIDE))

    assert not result.ok
    assert result.content == f"probe failed: it gave no text ({type(given).__name__})."
    assert of_effect.content.endswith("It may have taken effect: check before trying again.")


@pytest.mark.case("TO-01", "HI-07")
@pytest.mark.parametrize("text", ["a line of text\n" * 133_333, "\x1b[31mnoise\x1b[0m" * 100_000])
async def test_a_long_result_is_cut_in_the_middle_and_kept_whole(text: str) -> None:
    shelf = Shelf()

    result = await run(giving(text), keep=shelf)

    kept = shelf.texts[0]
    assert len(result.content) <= 16_000
    assert f"{len(kept):,} characters in all" in result.content
    assert "read_file has all of it in files/results/x.txt" in result.content
    assert result.content.startswith(kept[:11_000])
    assert result.content.endswith(kept[-3_900:])
    assert "\x1b" not in kept


# --- functions as tools --------------------------------------------------------------------------


class Counting:
    """A group of tools as every feature has one."""

    def __init__(self, step: int) -> None:
        self._step = step

    def _shown(self, caller: Caller, start: int) -> Needs:
        return Needs(shows=(f"counts from {start} in steps of {self._step}",))

    async def _priced(self, caller: Caller) -> str:
        return f"takes: {self._step} s"

    # Not for the model.
    @tool("test", Effect.PERSON, redo="once", needs=_shown, cost=_priced, trust=others_in_groups)
    async def count(
        self,
        caller: Caller,
        start: Annotated[int, Field(ge=0, description="where to begin")],
        words: str = "",
    ) -> str:
        """Count on,
        and say so."""
        return f"{start + self._step} {words}".strip()

    @tool("test", Effect.NONE, timeout_s=3)
    def thread(self, caller: Caller) -> str:
        """Name the thread."""
        return threading.current_thread().name


async def test_a_method_is_a_tool_by_its_name_docstring_and_signature() -> None:
    count, thread = tools_of(Counting(2))
    result = await run_tool(count, call("count", {"start": "40", "words": None}), OWNER)
    wrong = await run_tool(count, call("count", {"start": -1}), OWNER)

    assert count.card.spec() == ToolSpec(
        name="count",
        description="Count on, and say so.",
        parameters={
            "type": "object",
            "properties": {
                "start": {"type": "integer", "minimum": 0, "description": "where to begin"},
                "words": {"type": "string", "default": ""},
            },
            "required": ["start"],
        },
    )
    assert (result.content, wrong.ok) == ("42", False)
    assert "'start': input should be greater than or equal to 0" in wrong.content
    assert thread.card.spec().parameters == {"type": "object", "properties": {}}
    assert (thread.card.redo, thread.card.timeout_s) == ("repeat", 3)


async def test_of_a_long_result_that_cannot_be_kept_it_is_said_how_much_there_was() -> None:
    async def full(text: str, caller: Caller) -> StoredResult:
        raise StorageFull("the disk is full")

    cut = await run(giving("x" * 20_000), keep=Shelf(whole=False))
    lost = await run(giving("x" * 20_000), keep=full)

    assert "its beginning (the rest was too long to keep)" in cut.content
    assert lost.ok
    assert "20,000 characters in all; the rest could not be kept" in lost.content
