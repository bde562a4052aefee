"""Model calls that nobody waits for pass what all calls pass: redactor, window, budget."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from agent.budget.payment import Payment
from agent.history.summaries import Background, BackgroundOptions
from memory.records.errors import BrokenAnswer, ContextTooLong
from memory.records.transcript import Answered, ModelTraits, Said, Usage
from memory.records.usage import Charge, Purpose, Scope, SpendingRefused
from tests.agent.spending_kit import charge, limit, purse
from tests.fakes import OneModel, ScriptedModel

ACCOUNT = Charge(purpose=Purpose.EXTRACTION, lane="telegram:5")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "hearthbot.db"


async def test_one_message_goes_out_without_system_text_and_without_tools() -> None:
    model = ScriptedModel("<think>hm</think> {}")
    background = Background(OneModel(model), options=BackgroundOptions())

    answer = await background.ask("what is new?", ACCOUNT, tokens_max=300)

    (request,) = model.asked
    assert answer == "{}"
    assert (request.system, request.entries, request.tools) == (
        "",
        (Said(text="what is new?"),),
        (),
    )
    assert request.max_output_tokens == 300


async def test_secrets_of_the_settings_never_go_along() -> None:
    model = ScriptedModel("ok")
    options = BackgroundOptions(redact=lambda text: text.replace("sk-1", "***"))

    await Background(OneModel(model), options=options).ask("my key is sk-1", ACCOUNT, tokens_max=9)

    assert model.asked[0].entries == (Said(text="my key is ***"),)


async def test_a_prompt_larger_than_the_window_is_never_sent() -> None:
    model = ScriptedModel(traits=ModelTraits(window=2_048))
    background = Background(OneModel(model), options=BackgroundOptions())

    with pytest.raises(ContextTooLong):
        await background.ask("word " * 4_000, ACCOUNT, tokens_max=200)

    assert model.asked == []


async def test_an_answer_without_words_is_a_broken_one() -> None:
    background = Background(OneModel(ScriptedModel(" \n")), options=BackgroundOptions())

    with pytest.raises(BrokenAnswer):
        await background.ask("well?", ACCOUNT, tokens_max=200)


async def test_a_call_is_recorded_with_what_it_was_for(path: Path) -> None:
    model = ScriptedModel(Answered(text="ok", model="m", usage=Usage(prompt=40, completion=2)))
    async with purse(path) as one:
        payment = Payment(budget=one.budget)
        background = Background(OneModel(model), options=BackgroundOptions(), payment=payment)
        await background.ask("hello", replace(charge(), purpose=Purpose.INSIGHTS), tokens_max=50)

    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("select purpose, prompt, completion, state from usage").fetchall()
    assert rows == [("insights", 40, 2, "counted")]


async def test_a_used_up_budget_is_not_passed(path: Path) -> None:
    model = ScriptedModel()
    tight = limit(10, scope=Scope.BOT)
    async with purse(path, tight) as one:
        payment = Payment(budget=one.budget)
        background = Background(OneModel(model), options=BackgroundOptions(), payment=payment)
        with pytest.raises(SpendingRefused):
            await background.ask("word " * 50, charge(), tokens_max=500)

    assert model.asked == []
