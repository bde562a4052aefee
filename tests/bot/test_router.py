"""The models in use: names, what stands in for what, and clients that are few and closed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from agent.models.catalog import PriceTable
from agent.models.choose import Choice
from agent.models.router import FURTHER_MAX, NotOffered, Router
from agent.models.service import match
from bot.channels.base import around
from bot.settings.options import configured_models, finder_of
from bot.settings.schema.settings import Settings
from memory.database.connection import Database
from memory.records.errors import Overloaded, SettingsWrong
from memory.records.messages import PersonId
from memory.records.ports import Model
from memory.records.section import LlmSettings
from memory.records.transcript import Answered, ModelRequest, ModelTraits
from memory.stores.switches import SqliteChosenModels
from tests.agent.models.asking import ask, request
from tests.agent.models.clock import QuickClock

OWNER = PersonId("p1")
LANE = "telegram:5"
KEYS = {"OPENAI_API_KEY": "key-of-openai", "GROQ_API_KEY": "key-of-groq"}
MAIN, SPARE, LOCAL = "openai/gpt-4.1-mini", "groq/llama-3.3-70b-versatile", "ollama/qwen3"


class Opened:
    """Clients that answer with their name; counts which are open."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.down: set[str] = set()

    @asynccontextmanager
    async def __call__(self, choice: Choice) -> AsyncIterator[Model]:
        self.open.append(choice.model)
        try:
            yield Named(choice, self)
        finally:
            self.open.remove(choice.model)


class Named:
    def __init__(self, choice: Choice, opened: Opened) -> None:
        self.name = choice.model
        self.traits: ModelTraits = choice.traits
        self._opened = opened

    async def answer(self, request: ModelRequest, *, on_text: Callable[[str], None]) -> Answered:
        assert self.name in self._opened.open, "asked after it was closed"
        if self.name in self._opened.down:
            raise Overloaded("busy")
        return Answered(text="Hi", model=self.name)


@asynccontextmanager
async def pooled(
    folder: Path, opened: Opened, *, env: Mapping[str, str] = KEYS, **llm: object
) -> AsyncIterator[Router]:
    settings = Settings(llm=LlmSettings.model_validate({"model": MAIN, **llm}))
    async with (
        Database.open(folder / "hearthbot.db", clock=QuickClock()) as database,
        Router(
            partial(configured_models, settings, env),
            SqliteChosenModels(database),
            opened,
            finder=finder_of(settings, env),
            clock=QuickClock(),
            output_tokens_max=8_192,
            channel_around=around,
        ) as pool,
    ):
        await pool.open()
        yield pool


@pytest.fixture
def opened() -> Opened:
    return Opened()


# --- what stands in ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "stand_ins"),
    [
        ("", [SPARE, LOCAL]),
        (SPARE, [MAIN, LOCAL]),
        ("openai/gpt-5", [MAIN, SPARE, LOCAL]),
        ("lm_studio/gemma", [LOCAL]),
        (LOCAL, []),
        ("embedded", [LOCAL]),
    ],
)
async def test_what_is_set_to_stay_on_this_machine_is_not_answered_elsewhere(
    tmp_path: Path, opened: Opened, chosen: str, stand_ins: list[str]
) -> None:
    async with pooled(tmp_path, opened, fallbacks=(SPARE, LOCAL)) as pool:
        if chosen:
            await pool.choose(LANE, chosen, any_name=True, by=OWNER)
        standing = await pool.standing(LANE)

    assert standing.answering.name == chosen or not chosen
    assert [one.name for one in standing.stand_ins] == stand_ins


async def test_what_was_set_for_a_channel_holds_for_its_threads_that_have_none(
    tmp_path: Path, opened: Opened
) -> None:
    channel, thread = "slack:T1.C1", "slack:T1.C1:17.5"
    async with pooled(tmp_path, opened) as pool:
        await pool.choose(channel, SPARE, any_name=True, by=OWNER)
        inherited = await pool.standing(thread)
        await pool.choose(thread, MAIN, any_name=True, by=OWNER)
        own = await pool.standing(thread)
        await pool.reset(thread)

        assert (inherited.answering.name, inherited.of_channel) == (SPARE, True)
        assert (own.answering.name, own.of_channel) == (MAIN, False)
        assert (await pool.standing(thread)).of_channel
        assert (await pool.standing("slack:T1.C2:17.5")).chosen == ""


async def test_without_fallbacks_nothing_stands_in_for_a_model_that_was_set(
    tmp_path: Path, opened: Opened
) -> None:
    async with pooled(tmp_path, opened) as pool:
        await pool.choose(LANE, SPARE, any_name=True, by=OWNER)

        assert (await pool.standing(LANE)).stand_ins == ()


async def test_a_file_that_is_gone_is_not_replaced_by_a_model_elsewhere(
    tmp_path: Path, opened: Opened
) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(b"GGUF")
    async with pooled(tmp_path, opened, fallbacks=(SPARE,)) as pool:
        await pool.choose(LANE, f"embedded:{file}", any_name=True, by=OWNER)
    file.unlink()

    async with pooled(tmp_path, opened, fallbacks=(SPARE,)) as pool:
        in_use = await pool.at(LANE)
        model = await pool.named(in_use.name)

    assert in_use.name == model.name == f"embedded:{file}"


async def test_a_stand_in_of_one_chain_is_known_to_be_in_trouble_by_the_others(
    tmp_path: Path, opened: Opened
) -> None:
    opened.down = {"gpt-4.1-mini"}
    async with pooled(tmp_path, opened, fallbacks=(SPARE,)) as pool:
        answered, _ = await ask(await pool.named(MAIN))
        assert answered.model == "llama-3.3-70b-versatile"
        assert [state.name for state in await pool.resting()] == ["gpt-4.1-mini"]

        opened.down |= {"gpt-5"}
        answered, _ = await ask(await pool.named("openai/gpt-5"))

    assert answered.model == "llama-3.3-70b-versatile"


# --- names ---------------------------------------------------------------------------------------


async def test_a_name_is_found_again_in_whatever_form_it_is_typed(
    tmp_path: Path, opened: Opened
) -> None:
    async with pooled(tmp_path, opened, fallbacks=(SPARE, LOCAL)) as pool:
        models = pool.models.all()

    for typed in (SPARE, SPARE.upper(), "llama-3.3-70b-versatile", f" {SPARE} "):
        found = match(typed, models)
        assert found is not None
        assert found.name == SPARE
    assert match("qwen", models) is None
    assert match("", models) is None


async def test_a_short_name_that_two_models_have_is_none(tmp_path: Path, opened: Opened) -> None:
    async with pooled(tmp_path, opened, fallbacks=("ollama/qwen3", "lm_studio/qwen3")) as pool:
        assert match("qwen3", pool.models.all()) is None


@pytest.mark.parametrize("name", ["  ", "a\nb", "x" * 301, "nobody/knows"])
async def test_a_name_that_is_none_is_refused_and_not_stored(
    tmp_path: Path, opened: Opened, name: str
) -> None:
    async with pooled(tmp_path, opened) as pool:
        with pytest.raises(SettingsWrong):
            await pool.choose(LANE, name, any_name=True, by=OWNER)
        with pytest.raises(NotOffered):
            await pool.choose(LANE, name, any_name=False, by=OWNER)

        assert (await pool.standing(LANE)).chosen == ""


async def test_a_model_of_a_former_turn_that_cannot_be_any_more_gives_way_to_the_usual_one(
    tmp_path: Path, opened: Opened
) -> None:
    async with pooled(tmp_path, opened, env={"OPENAI_API_KEY": "key"}) as pool:
        for name in (SPARE, "", "nobody/knows"):
            assert (await pool.named(name)).name == "gpt-4.1-mini"


async def test_the_price_of_a_model_that_answered_is_found_by_its_name(
    tmp_path: Path, opened: Opened
) -> None:
    async with pooled(tmp_path, opened, fallbacks=(SPARE,)) as pool:
        assert await pool.price("llama-3.3-70b-versatile") == await PriceTable().find(SPARE)
        assert await pool.price("some-other") is None


# --- clients -------------------------------------------------------------------------------------


async def test_further_clients_are_few_and_all_are_closed_at_the_end(
    tmp_path: Path, opened: Opened
) -> None:
    names = [f"model-{number}" for number in range(FURTHER_MAX * 3)]
    async with pooled(tmp_path, opened, fallbacks=(SPARE,)) as pool:
        for name in [*names, *names]:
            answered, _ = await ask(await pool.named(f"openai/{name}"))
            assert answered.model == name
            assert len(opened.open) <= FURTHER_MAX + 2
        assert {"gpt-4.1-mini", "llama-3.3-70b-versatile"} <= set(opened.open)

    assert opened.open == []


async def test_a_model_in_hand_works_though_its_client_was_closed_meanwhile(
    tmp_path: Path, opened: Opened
) -> None:
    async with pooled(tmp_path, opened) as pool:
        first = await pool.named("openai/first")
        await ask(first)
        for number in range(FURTHER_MAX + 1):
            await ask(await pool.named(f"openai/model-{number}"))
        assert "first" not in opened.open

        answered = await first.answer(request(), on_text=lambda piece: None)

    assert answered.model == "first"
