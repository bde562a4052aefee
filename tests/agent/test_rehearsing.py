"""A rehearsal shows what a run would send, to the byte, and has no effect."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path

import pytest

from agent.tools.groups.agents import SystemTools
from agent.trace.dry_run import (
    BLOCKED,
    CALLS_USUAL,
    OUTPUT_OF_NOTHING,
    OUTPUT_USUAL,
    ROUNDS_MAX,
    DryRunner,
    DryRunOptions,
)
from memory.records.messages import (
    ConversationId,
    IncomingMessage,
    JobOrder,
    Origin,
    PersonId,
    TurnInput,
)
from memory.records.ports import NewRun
from memory.records.transcript import ToolResult, Usage
from tests.agent.house import OWNER, FakeTool, House, model, said
from tests.agent.tools.given import by_name, no_status
from tests.fakes import OneModel, ScriptedModel, calls

TEXT = "Look for rain, and say so."
PRICE = 1e-6


async def priced(lane: str, usage: Usage) -> float | None:
    """A dollar for a million tokens."""
    return (usage.prompt + usage.completion) * PRICE


async def unpriced(lane: str, usage: Usage) -> float | None:
    return None


def turn(**more: object) -> TurnInput:
    order = JobOrder(job_id=1, slot="2026-06-01T09:00", name="rain")
    made = TurnInput(
        message=IncomingMessage(address=OWNER.address, message_id="", sender_id="", text=TEXT),
        conversation=ConversationId(""),
        person_id=PersonId(OWNER.id),
        role=OWNER.role,
        person_name=OWNER.name,
        origin=Origin.JOB,
        job=order,
    )
    return replace(made, **more)  # type: ignore[arg-type]


@asynccontextmanager
async def opened(path: Path, scripted: ScriptedModel) -> AsyncIterator[tuple[House, DryRunner]]:
    async def act(text: str) -> str:
        raise AssertionError("a tool ran in a rehearsal")

    house = House(path)
    house.tools += [by_name(SystemTools(no_status))["nothing_to_report"], FakeTool("weather", act)]
    async with house.opened(scripted):
        yield (
            house,
            DryRunner(
                house.beginning.plan,
                OneModel(scripted),
                priced,
                options=DryRunOptions(redact=lambda text: text.replace("sk-secret", "•••")),
            ),
        )


async def test_what_is_shown_is_what_a_run_then_sends(tmp_path: Path) -> None:
    scripted = model("It will rain.")
    async with opened(tmp_path, scripted) as (house, rehearsing):
        shown = await rehearsing.rehearse(turn())
        assert scripted.asked == []
        conversation = await house.conversations.start_new("job:1")
        run = turn(conversation=conversation)
        assert run.job is not None
        await house.engine.submit(
            NewRun(
                run_id=run.job.run_id,
                lane=run.job.lane,
                by=run.person_id,
                payload=run.to_json(),
                steers=False,
            )
        )
        await house.engine.idle()

    (request,) = scripted.asked
    assert shown.system == request.system
    assert shown.tools == tuple(tool.name for tool in request.tools)
    assert TEXT in f"{shown.system}\n{shown.user}"
    for text in said(request):
        assert text in shown.user


async def test_a_rehearsal_stores_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, model("Nothing new.")) as (_, rehearsing):
        before = dump(tmp_path)
        await rehearsing.rehearse(turn())
        heard = await rehearsing.ask(turn())

        assert dump(tmp_path) == before
    assert heard.text == "Nothing new."


async def test_asked_the_model_gets_the_prompt_that_is_shown_and_every_call_is_blocked(
    tmp_path: Path,
) -> None:
    scripted = model(calls(("weather", '{"text": "Berlin"}')), "No rain.")
    async with opened(tmp_path, scripted) as (_, rehearsing):
        shown = await rehearsing.rehearse(turn())
        heard = await rehearsing.ask(turn())

    first, second = scripted.asked
    assert first.system == shown.system
    results = [entry for entry in second.entries if isinstance(entry, ToolResult)]
    assert [(one.content, one.ok) for one in results] == [(BLOCKED, False)]
    assert [wish.name for wish in heard.wishes] == ["weather"]
    assert heard.text == "No rain."


async def test_a_model_that_only_calls_tools_is_asked_so_often_and_no_more(tmp_path: Path) -> None:
    lines = [calls(("weather", "{}")) for _ in range(ROUNDS_MAX - 1)]
    scripted = model(*lines, "Well.")
    async with opened(tmp_path, scripted) as (_, rehearsing):
        heard = await rehearsing.ask(turn())

    assert len(heard.wishes) == ROUNDS_MAX - 1
    assert scripted.asked[-1].tools == ()


async def test_the_cost_is_that_of_a_usual_run(tmp_path: Path) -> None:
    async with opened(tmp_path, model()) as (house, rehearsing):
        shown = await rehearsing.rehearse(turn())
        alone = DryRunner(
            house.beginning.plan, OneModel(house.model), unpriced, options=DryRunOptions()
        )
        unknown = await alone.rehearse(turn())

    prompts = CALLS_USUAL * shown.tokens + OUTPUT_USUAL + 2 * OUTPUT_USUAL
    assert shown.cost.calls == CALLS_USUAL == 3
    assert shown.cost.tokens == prompts + CALLS_USUAL * OUTPUT_USUAL
    assert shown.cost.dollars == pytest.approx(shown.cost.tokens * PRICE)
    assert unknown.cost.dollars is None


async def test_a_heartbeat_is_one_call_that_finds_nothing(tmp_path: Path) -> None:
    order = JobOrder(job_id=1, slot="2026-06-01T09:00", name="heartbeat", is_heartbeat=True)
    async with opened(tmp_path, model()) as (_, rehearsing):
        shown = await rehearsing.rehearse(turn(job=order))

    assert shown.tools
    assert shown.cost.calls == 1
    assert shown.cost.tokens == shown.tokens + OUTPUT_OF_NOTHING


async def test_what_asks_no_model_costs_nothing(tmp_path: Path) -> None:
    order = JobOrder(job_id=1, slot="s", name="n", call=("weather", "{}"))
    async with opened(tmp_path, model()) as (_, rehearsing):
        message = await rehearsing.rehearse(None)
        call = await rehearsing.rehearse(turn(job=order))

    assert not message.asks
    assert not call.asks
    assert (call.cost.tokens, call.cost.dollars) == (0, 0.0)


async def test_secrets_of_the_settings_are_not_shown(tmp_path: Path) -> None:
    async with opened(tmp_path, model("sk-secret")) as (house, rehearsing):
        (house.workspace / "AGENTS.md").write_text("The key is sk-secret.")
        shown = await rehearsing.rehearse(turn())
        await rehearsing.ask(turn())

    assert "sk-secret" not in shown.system + shown.user
    assert "sk-secret" not in house.model.asked[0].system


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path / "hearthbot.db")) as connection:
        return list(connection.iterdump())
