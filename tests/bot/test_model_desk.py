"""/model: which model answers in a chat and why, what stands in for it, and how to have another."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from bot.lab.model import ScriptedModel
from memory.records.messages import Role
from tests.bot.kit import GROUP, MEMBER, OWNER, US, Rig, SlowTool, eventually

GUEST = 7


def asked(model: ScriptedModel) -> list[str]:
    """Which model each request was for, in order."""
    return [request["model"] for request in model.requests]


async def says(rig: Rig, text: str, *, by: int = OWNER, chat: int | None = None) -> str:
    """What the bot writes next in the chat."""
    where = chat if chat is not None else by
    before = len(rig.seen(where))
    rig.says(text, by=by, chat=where)
    await eventually(lambda: len(rig.seen(where)) == before + 1)
    return rig.texts(where)[-1]


# --- shown ---------------------------------------------------------------------------------------


async def test_model_says_which_one_answers_and_why(rig: Rig) -> None:
    rig.set(llm__fallbacks="openai/spare,openai/last")
    async with rig.running(OWNER):
        shown = await says(rig, "/model")

    assert shown.startswith("openai/lab-model answers here: the usual one.")
    assert "lab-model of OpenAI answers, as llm.model says." in shown
    assert "While it cannot answer, openai/spare, then openai/last does." in shown
    assert "/model NAME" in shown
    assert rig.model.requests == []


async def test_a_guest_is_shown_the_model_and_nothing_to_choose(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        await bot.access.approve(f"telegram:{GUEST}", role=Role.GUEST)
        shown = await says(rig, "/model", by=GUEST)
        refused = await says(rig, "/model openai/spare", by=GUEST)

    assert shown.startswith("openai/lab-model answers here: the usual one.")
    assert "NAME" not in shown
    assert "llm.model" not in shown, "the machine's side is the owner's"
    assert refused.startswith("Only the owner or a member can choose the model here.")
    assert rig.rows("select * from chosen_models") == []


async def test_who_rests_is_shown_with_the_reason_to_the_owner_alone(rig: Rig) -> None:
    rig.set(llm__fallbacks="openai/spare")
    rig.model.named_fault("401", times=None, when={"model": "lab-model"})
    async with rig.running(OWNER, MEMBER):
        await says(rig, "hello")
        to_owner, status = await says(rig, "/model"), await says(rig, "/status")
        to_member = await says(rig, "/model", by=MEMBER)

    assert "Left alone now:\n• lab-model, for another 1 min: 127.0.0.1" in to_owner
    assert "did not accept the API key" in to_owner
    assert "Model left alone: lab-model, for another 1 min: " in status
    assert "Left alone now:\n• lab-model" in to_member
    assert "API key" not in to_member


# --- chosen --------------------------------------------------------------------------------------


async def test_a_model_that_was_set_answers_in_that_chat_alone(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER):
        done = await says(rig, "/model openai/other")
        await says(rig, "one")
        await says(rig, "two", by=MEMBER)

    assert done.startswith("From the next message on, openai/other answers here.")
    assert asked(rig.model) == ["other", "lab-model"]


async def test_a_name_with_spaces_is_refused_in_a_sentence(rig: Rig) -> None:
    async with rig.running(OWNER):
        refused = await says(rig, "/model openai/other please")

    assert refused.startswith("Nothing was changed: a model's name has no spaces")
    assert rig.rows("select * from chosen_models") == []


async def test_it_stays_after_new_and_after_a_restart_and_status_shows_it(rig: Rig) -> None:
    async with rig.running(OWNER):
        await says(rig, "/model openai/other")
        await says(rig, "/new")

    async with rig.running():
        await says(rig, "one")
        status, shown = await says(rig, "/status"), await says(rig, "/model")

    assert asked(rig.model) == ["other"]
    assert "Model in this chat: openai/other (set by /model)" in status
    assert "Model: lab-model" in status
    assert shown.startswith("openai/other answers here: set by /model.")


@pytest.mark.parametrize("back", ["DEFAULT", "lab-model"])
async def test_the_usual_one_is_had_again_by_default_or_its_name(rig: Rig, back: str) -> None:
    async with rig.running(OWNER):
        await says(rig, "/model openai/other")
        done = await says(rig, f"/model {back}")
        await says(rig, "one")

    assert done == "From the next message on, openai/lab-model answers here: the usual one."
    assert asked(rig.model) == ["lab-model"]
    assert rig.rows("select * from chosen_models") == []


async def test_members_choose_among_the_configured_ones(rig: Rig) -> None:
    rig.set(llm__fallbacks="openai/spare", llm__cheap_model="openai/cheap")
    async with rig.running(OWNER, MEMBER):
        other = await says(rig, "/model openai/other", by=MEMBER)
        spare = await says(rig, "/model spare", by=MEMBER)
        await says(rig, "one", by=MEMBER)
        cheap = await says(rig, "/model openai/cheap", by=MEMBER)
        await says(rig, "two", by=MEMBER)

    assert other == (
        "That model cannot be chosen here. There are openai/lab-model, openai/spare, openai/cheap."
    )
    assert spare == "From the next message on, openai/spare answers here."
    assert cheap == "From the next message on, openai/cheap answers here."
    assert asked(rig.model) == ["spare", "cheap"]


async def test_in_a_group_the_owner_alone_chooses(rig: Rig) -> None:
    rig.set(llm__fallbacks="openai/spare")
    async with rig.running(OWNER, MEMBER) as bot:
        await bot.access.approve(f"telegram:{GROUP}")
        refused = await says(rig, f"/model@{US} openai/spare", by=MEMBER, chat=GROUP)
        done = await says(rig, f"/model@{US} openai/other", by=OWNER, chat=GROUP)
        await says(rig, f"@{US} hello", by=MEMBER, chat=GROUP)

    assert refused.startswith("Only the owner can choose the model here.")
    assert done.startswith("From the next message on, openai/other answers here.")
    assert asked(rig.model) == ["other"]


# --- refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("groq/llama-3.3-70b-versatile", "GROQ_API_KEY"),
        ("embedded:/nowhere/at-all.gguf", "cannot be read"),
        ("openai/a\u2028b", "one line"),
    ],
)
async def test_a_name_that_cannot_work_is_refused_with_the_reason(
    rig: Rig, name: str, why: str
) -> None:
    async with rig.running(OWNER):
        refused = await says(rig, f"/model {name}")
        await says(rig, "one")

    assert refused.startswith("Nothing was changed, for that model cannot be used.")
    assert why in refused
    assert rig.rows("select * from chosen_models") == []
    assert asked(rig.model) == ["lab-model"]


async def test_a_chosen_model_whose_key_is_gone_gives_way_to_the_usual_one(rig: Rig) -> None:
    rig.env["GROQ_API_KEY"] = "a-key-of-groq"
    async with rig.running(OWNER):
        await says(rig, "/model groq/llama-3.3-70b-versatile")
    del rig.env["GROQ_API_KEY"]

    async with rig.running():
        await says(rig, "one")
        shown, status = await says(rig, "/model"), await says(rig, "/status")

    assert asked(rig.model) == ["lab-model"]
    assert "groq/llama-3.3-70b-versatile was set by /model, and cannot be used now" in shown
    assert "GROQ_API_KEY" in status


# --- turns ---------------------------------------------------------------------------------------


async def test_a_running_turn_keeps_the_model_that_it_began_with(
    rig: Rig, slow_tool: SlowTool
) -> None:
    rig.model.call("wait_here")
    async with rig.running(OWNER):
        rig.says("go")
        await slow_tool.running.wait()
        await says(rig, "/model openai/other")
        slow_tool.go.set()
        await eventually(lambda: len(rig.model.requests) == 2)
        await eventually(partial(rig.wrote, 2))
        await says(rig, "and now")

    assert asked(rig.model) == ["lab-model", "lab-model", "other"]


async def test_a_turn_that_resumes_asks_the_model_that_it_began_with(
    rig: Rig, slow_tool: SlowTool
) -> None:
    rig.model.call("wait_here")
    async with rig.running(OWNER, killed=True):
        await says(rig, "/model openai/other")
        rig.says("go")
        await slow_tool.running.wait()
    slow_tool.go.set()
    rig.set(llm__model="openai/new-main")

    async with opened_with_choice_removed(rig):
        await eventually(lambda: len(rig.model.requests) == 2)
        await eventually(partial(rig.wrote, 2))
        await says(rig, "and now")

    assert asked(rig.model) == ["other", "other", "new-main"]


@asynccontextmanager
async def opened_with_choice_removed(rig: Rig) -> AsyncIterator[None]:
    """A life in which the chat has the usual model again, though a turn began with another."""
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(rig.home.database)) as connection, connection:
        connection.execute("delete from chosen_models")
    async with rig.running():
        yield


async def test_a_prompt_is_made_for_the_window_of_the_model_that_answers(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        await says(rig, "one")
        await says(rig, "/model openai/gpt-4")
        await says(rig, "two")
        await rig.quiet(bot)

    windows = rig.rows(
        "select json_extract(output, '$.tokens.window') from steps where name = 'begin'"
    )
    assert windows == [(128_000,), (8_192,)]


async def test_prompt_and_price_are_shown_for_the_model_of_the_chat(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        await says(rig, "/model openai/gpt-4.1-mini")
        found = await bot.prompts.show(f"telegram:{OWNER}", message="hello")

    assert (found.model, found.view.window) == ("gpt-4.1-mini", 1_047_576)
    assert found.costs is not None
    assert found.costs.whole == pytest.approx(found.view.tokens * 0.4e-6)
