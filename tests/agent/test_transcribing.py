"""What a transcript costs: asked before, settled after, and given back where it failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.budget.budget import Budget
from agent.budget.payment import Payment
from agent.files.attachments import PaidTranscriber
from memory.records.errors import ModelRefused
from memory.records.usage import SpendingRefused
from tests.agent.files_kit import VOICE
from tests.agent.spending_kit import Purse, charge, limit, purse

CHARGE = charge()
DAILY = limit(10_000)


class Ears:
    def __init__(self, said: str | Exception) -> None:
        self.said = said
        self.heard = 0

    async def text(self, name: str, content: bytes) -> str:
        self.heard += 1
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


def transcriber(ears: Ears, budget: Budget | None = None) -> PaidTranscriber:
    return PaidTranscriber("openai/whisper-1", ears.text, payment=Payment(budget=budget))


async def heard(
    ears: Ears, budget: Budget | None = None, *, content: bytes = VOICE, seconds: int = 12
) -> str:
    return await transcriber(ears, budget).transcript(
        "a.ogg", content, seconds=seconds, charge=CHARGE
    )


async def used(one: Purse) -> int:
    (standing,) = await one.budget.standings(CHARGE)
    return int(standing.used + standing.held)


async def test_it_is_counted_by_the_seconds_and_the_words(tmp_path: Path) -> None:
    async with purse(tmp_path / "x.db", DAILY) as one:
        said = await heard(Ears("buy milk\0"), one.budget)

        assert said == "buy milk"
        assert 120 < await used(one) < 130


async def test_a_length_that_nobody_told_is_guessed_by_the_bytes(tmp_path: Path) -> None:
    async with purse(tmp_path / "x.db", DAILY) as one:
        await heard(Ears("hi"), one.budget, content=b"x" * 20_000, seconds=0)

        assert 100 < await used(one) < 120


async def test_what_failed_costs_nothing(tmp_path: Path) -> None:
    ears = Ears(ModelRefused("no such model"))
    async with purse(tmp_path / "x.db", DAILY) as one:
        with pytest.raises(ModelRefused):
            await heard(ears, one.budget)

        assert await used(one) == 0


async def test_a_budget_that_is_used_up_refuses_before_anything_is_sent(tmp_path: Path) -> None:
    ears = Ears("hi")
    async with purse(tmp_path / "x.db", DAILY) as one:
        await one.spend(CHARGE, 10_000)
        with pytest.raises(SpendingRefused):
            await heard(ears, one.budget)

    assert ears.heard == 0


async def test_without_a_budget_nothing_is_asked() -> None:
    assert await heard(Ears("hi")) == "hi"
