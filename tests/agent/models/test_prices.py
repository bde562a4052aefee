"""Prices and windows: found by the names that we use, in the shipped table and in broken ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from agent.models.catalog import PriceTable, shipped
from memory.records.transcript import Usage
from memory.records.usage import FREE, Price, Rates

ENTRY: dict[str, Any] = {
    "litellm_provider": "openai",
    "input_cost_per_token": 1e-06,
    "output_cost_per_token": 4e-06,
    "cache_read_input_token_cost": 2.5e-07,
    "max_input_tokens": 1000,
    "max_output_tokens": 100,
}


def table(tmp_path: Path, entries: dict[str, Any], *, indent: int | None = 4) -> PriceTable:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps(entries, indent=indent))
    return PriceTable(path)


@pytest.mark.parametrize(
    ("names", "provider"),
    [
        (("openai/gpt-4.1-mini", "gpt-4.1-mini", "gpt-4.1-mini-2099-01-01"), "openai"),
        (("openrouter/openai/gpt-4.1-mini",), "openrouter"),
        (("openrouter/anthropic/claude-sonnet-4.5",), "openrouter"),
        (
            ("anthropic/claude-haiku-4-5", "claude-haiku-4-5", "claude-haiku-4-5@20990101"),
            "anthropic",
        ),
        (("claude-3-haiku", "anthropic/claude-3-haiku-latest"), "anthropic"),
        (("mistral/mistral-small-latest",), "mistral"),
        (("bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0",), "bedrock_converse"),
        (("cohere/command-r",), "cohere_chat"),
        (("fireworks_ai/llama-v3p1-8b-instruct",), "fireworks_ai"),
    ],
)
async def test_the_shipped_table_knows_the_names_that_we_use(
    names: tuple[str, ...], provider: str
) -> None:
    prices = PriceTable()

    found = [await prices.find(name) for name in names]

    assert all(price is not None and price.provider == provider for price in found)
    assert all(price.rates.input and price.rates.output for price in found if price)
    assert all(price.window >= 8_000 for price in found if price)
    assert len(set(found)) == 1


async def test_a_call_costs_what_its_tokens_cost(tmp_path: Path) -> None:
    price = await table(tmp_path, {"m": ENTRY}).find("m")

    assert price is not None
    assert price.cost(Usage(prompt=1_000_000, completion=500_000)) == pytest.approx(3.0)
    cached = price.cost(Usage(prompt=1_000_000, completion=0, cached=400_000))
    assert cached == pytest.approx(0.6 + 0.1)


async def test_a_long_prompt_costs_the_higher_rate_as_a_whole(tmp_path: Path) -> None:
    tiers = {
        "input_cost_per_token_above_200k_tokens": 2e-06,
        "output_cost_per_token_above_200k_tokens": 8e-06,
    }
    price = await table(tmp_path, {"m": ENTRY | tiers}).find("m")

    assert price is not None
    assert price.cost(Usage(prompt=200_000)) == pytest.approx(0.2)
    assert price.cost(Usage(prompt=200_001)) == pytest.approx(0.4, rel=1e-4)
    assert price.tiers[0][1].cache_read == 2.5e-07


@given(prompt=st.integers(0, 10**7), completion=st.integers(0, 10**7), cached=st.integers(0, 10**8))
def test_a_cost_is_never_negative_and_cached_tokens_never_make_it_dearer(
    prompt: int, completion: int, cached: int
) -> None:
    price = Price(provider="p", rates=Rates(input=1e-6, output=4e-6, cache_read=1e-7))

    with_cache = price.cost(Usage(prompt=prompt, completion=completion, cached=cached))
    without = price.cost(Usage(prompt=prompt, completion=completion))

    assert with_cache is not None
    assert without is not None
    assert 0 <= with_cache <= without


@pytest.mark.parametrize("model", ["", "unheard-of", "who/knows", "sample", '"', "a\\", "openai/"])
async def test_an_unknown_model_is_none(model: str) -> None:
    assert await PriceTable().find(model) is None


@pytest.mark.parametrize("model", ["embedded", "embedded:/x.gguf", "ollama/llama3", "lm_studio/x"])
async def test_models_on_ones_own_machine_are_free(model: str) -> None:
    price = await PriceTable().find(model)

    assert price == FREE
    assert price.cost(Usage(prompt=1_000, completion=1_000)) == 0.0


async def test_a_free_variant_is_free_whether_its_model_is_listed_or_not() -> None:
    prices = PriceTable()

    listed = await prices.find("openrouter/openai/gpt-4.1-mini:free")
    other = await prices.find("openrouter/who/knows:free")

    assert listed is not None
    assert listed.window > 100_000
    assert listed.cost(Usage(prompt=10**6)) == 0.0
    assert other is not None
    assert other.cost(Usage(prompt=10**6)) == 0.0


@pytest.mark.parametrize("indent", [None, 0, 4])
async def test_blanks_and_order_of_the_table_do_not_matter(
    tmp_path: Path, indent: int | None
) -> None:
    entries = {"other": {"litellm_provider": "x", "aliases": {"m": {"a": 1}}, "m": "m"}, "m": ENTRY}

    price = await table(tmp_path, entries, indent=indent).find("m")

    assert price is not None
    assert (price.window, price.output_max) == (1_000, 100)


async def test_the_newest_of_dated_names_is_taken(tmp_path: Path) -> None:
    dated = {f"m-2024010{day}": ENTRY | {"max_input_tokens": day} for day in (2, 3, 1)}

    price = await table(tmp_path, dated | {"m-2": ENTRY}).find("m")

    assert price is not None
    assert price.window == 3


@pytest.mark.parametrize("text", [None, "", "no json", '{"m": {"litellm_provider": "x", "max'])
async def test_a_broken_table_makes_prices_unknown_with_at_most_one_log_line(
    tmp_path: Path, text: str | None
) -> None:
    path = tmp_path / "prices.json"
    if text is not None:
        path.write_text(text)
    prices = PriceTable(path)

    with capture_logs() as logs:
        found = [await prices.find(name) for name in ("m", "openai/m", "m-2024-01-01")]

    assert found == [None, None, None]
    assert len(logs) <= 1


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=50,
)
@given(
    values=st.fixed_dictionaries(
        {"litellm_provider": st.just("p")},
        optional={
            key: st.none()
            | st.booleans()
            | st.floats()
            | st.text("1.e-", max_size=5)
            | st.integers()
            for key in ENTRY
            if key != "litellm_provider"
        },
    )
)
async def test_values_of_any_kind_are_read_as_numbers_or_as_unknown(
    tmp_path: Path, values: dict[str, Any]
) -> None:
    price = await table(tmp_path, {"m": values}).find("m")

    assert price is not None
    assert price.window >= 0
    cost = price.cost(Usage(prompt=1_000, completion=1_000, cached=10))
    assert cost is None or 0 <= cost < 10_000


def test_the_library_itself_is_not_loaded() -> None:
    program = (
        "import asyncio, sys; from agent.models.catalog import PriceTable\n"
        "print(asyncio.run(PriceTable().find('gpt-4.1-mini')).window, 'litellm' in sys.modules)"
    )

    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert shown.stdout.split() == ["1047576", "False"]
    assert shipped().is_file()
