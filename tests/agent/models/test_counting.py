"""Tokens: guessed cheaply, counted near a limit, and corrected by what providers report."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models.tokens import (
    FACTOR_MAX,
    FACTOR_MIN,
    KEPT_MAX,
    NEAR,
    STRANGER_FACTOR,
    Encodings,
    TokenCounter,
    bound,
    encoding_of,
    shipped,
)
from agent.prompt.tokens import estimate_tokens

ENGLISH = (
    "The bakery on the corner opens at seven, and by half past there is a queue. Most people take "
    "two rolls and a coffee; the teacher from number nine always asks for rye bread, cut thin. "
)
GERMAN = (
    "Die Fahrradwerkstatt am Bahnhof repariert Bremsen und Gangschaltungen, während man wartet. "
    "Für größere Schäden braucht sie zwei Tage, und dann gibt es ein Leihrad mit Körbchen. "
)
CODE = '''def slots(jobs: list[Job], *, upto: datetime) -> Iterator[Slot]:
    """Every slot that is due, in order."""
    for job in sorted(jobs, key=lambda job: job.next_run):
        while job.next_run <= upto:
            yield Slot(job=job.id, at=job.next_run)
            job = job.after(job.next_run)
'''
CHINESE = (
    "车站旁边的自行车修理店可以当场修理刹车和变速器,较大的损坏需要两天时间,店主会借给你一辆自行车。"
)


@pytest.fixture(scope="module")
def encodings() -> Encodings:
    return Encodings()


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("openai/gpt-4.1-mini", "o200k_base"),
        ("openrouter/openai/gpt-4o", "o200k_base"),
        ("gpt-5", "o200k_base"),
        ("o3-mini", "o200k_base"),
        ("ft:gpt-4o:acme", "o200k_base"),
        ("azure/gpt-4-turbo", "cl100k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
        ("anthropic/claude-haiku-4-5", ""),
        ("ollama/llama3", ""),
        ("embedded:/models/o1.gguf", ""),
        ("openrouter/ovis", ""),
    ],
)
def test_the_encoding_is_known_by_the_name_of_the_model(model: str, encoding: str) -> None:
    assert encoding_of(model) == encoding


@pytest.mark.parametrize("text", [ENGLISH, GERMAN, CODE, CHINESE], ids=["en", "de", "code", "zh"])
@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-4"])
async def test_a_guess_is_a_little_above_the_count(
    encodings: Encodings, model: str, text: str
) -> None:
    counter = TokenCounter(model, encodings=encodings)

    assert await counter.prepare()

    assert counter.is_exact
    assert 0.9 < counter.guess(text * 10) / counter.count(text * 10) < 1.7


@given(text=st.text(max_size=300))
async def test_no_text_has_more_tokens_than_its_bound(encodings: Encodings, text: str) -> None:
    for model in ("gpt-4.1", "gpt-4"):
        counter = TokenCounter(model, encodings=encodings)
        await counter.prepare()

        assert counter.count(text) <= bound(text)


@pytest.mark.parametrize("text", [" " * 1_000_000, "a" * 300_000, "\ud800 half a pair", ""])
async def test_strange_texts_are_counted_too(encodings: Encodings, text: str) -> None:
    counter = TokenCounter("gpt-4.1", encodings=encodings)
    await counter.prepare()

    total = await counter.total([text], limit=len(text) // 10)

    assert total <= bound(text)


@given(text=st.text(max_size=300) | st.text("XQZJKV", max_size=300))
async def test_no_guess_is_so_low_that_it_would_not_be_checked(
    encodings: Encodings, text: str
) -> None:
    for model in ("gpt-4.1", "gpt-4"):
        counter = TokenCounter(model, encodings=encodings)
        await counter.prepare()

        assert counter.count(text) <= counter.guess(text) * NEAR + 5


async def test_a_long_text_in_pieces_has_nearly_the_same_count(encodings: Encodings) -> None:
    counter = TokenCounter("gpt-4.1", encodings=encodings)
    await counter.prepare()
    once = counter.count(ENGLISH)

    total = await counter.total([ENGLISH * 1_000], limit=once * 1_000)

    assert abs(total - once * 1_000) <= 1_000


async def test_the_tokenizer_is_loaded_only_when_a_limit_is_near() -> None:
    counter = TokenCounter("gpt-4.1", encodings=Encodings())
    text = ENGLISH * 10

    far_below = await counter.total([text], limit=100_000)
    far_above = await counter.total([text], limit=10)
    loaded_before = counter.is_exact
    near = await counter.total([text], limit=far_below)

    assert far_below == far_above == counter.guess(text)
    assert not loaded_before
    assert counter.is_exact
    assert near == counter.count(text) < far_below


async def test_a_model_without_a_tokenizer_is_guessed_on_the_safe_side() -> None:
    counter = TokenCounter("anthropic/claude-haiku-4-5")

    assert not await counter.prepare()
    assert counter.count(ENGLISH) == counter.guess(ENGLISH)
    assert counter.guess(ENGLISH) >= estimate_tokens(ENGLISH) * STRANGER_FACTOR
    assert await counter.total([ENGLISH], limit=1) == counter.guess(ENGLISH)


def test_what_is_reported_draws_the_guess_near() -> None:
    counter = TokenCounter("anthropic/claude-haiku-4-5")
    true = estimate_tokens(ENGLISH * 20) * 0.8

    for _ in range(20):
        counter.learn(counter.guess(ENGLISH * 20), round(true))

    assert abs(counter.guess(ENGLISH * 20) / true - 1) < 0.02
    assert TokenCounter("m", factor=counter.factor).guess(ENGLISH) == counter.guess(ENGLISH)


@given(
    reports=st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), max_size=50),
    text=st.text(min_size=1),
)
def test_whatever_is_reported_the_guess_stays_within_bounds(
    reports: list[tuple[int, int]], text: str
) -> None:
    counter = TokenCounter("m")

    for guessed, reported in reports:
        counter.learn(guessed, reported)

    assert FACTOR_MIN <= counter.factor <= FACTOR_MAX
    assert counter.guess(text) >= 1


def test_a_small_prompt_teaches_nothing() -> None:
    counter = TokenCounter("m")

    counter.learn(20, 90)
    counter.learn(5_000, 0)

    assert counter.factor == STRANGER_FACTOR


async def test_what_is_kept_of_counted_texts_is_bounded(encodings: Encodings) -> None:
    counter = TokenCounter("gpt-4.1", encodings=encodings)
    await counter.prepare()

    counts = [counter.count(f"{n} apples") for n in range(KEPT_MAX + 10)]

    assert counts[1] == counter.count("1 apples")
    assert len(counter._kept) <= KEPT_MAX


@pytest.mark.parametrize("damage", ["missing", "cut"])
async def test_a_damaged_tokenizer_is_guessed_around_without_asking_the_network(
    tmp_path: Path, damage: str
) -> None:
    whole = shipped()
    assert whole is not None
    for file in whole.glob("[0-9a-f]*[0-9a-f]"):
        shutil.copy(file, tmp_path)
        if damage == "cut":
            (tmp_path / file.name).write_bytes(file.read_bytes()[:-10])
        else:
            (tmp_path / file.name).unlink()
    before = sorted(tmp_path.iterdir())
    counter = TokenCounter("gpt-4.1", encodings=Encodings(tmp_path))

    total = await counter.total([ENGLISH], limit=counter.guess(ENGLISH))

    assert total == counter.guess(ENGLISH)
    assert sorted(tmp_path.iterdir()) == before


def test_counting_needs_neither_the_network_nor_the_large_library(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import asyncio, json, socket, sys

        def never(*args, **kwargs):
            raise AssertionError("the network was asked for")

        socket.getaddrinfo = never
        from agent.models.tokens import TokenCounter

        async def main():
            counter = TokenCounter("gpt-4.1")
            lazy = "tiktoken" in sys.modules
            await counter.prepare()
            print(json.dumps([lazy, counter.is_exact, "litellm" in sys.modules]))

        asyncio.run(main())
        """
    )
    env = {**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path)}

    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env
    )

    assert json.loads(shown.stdout) == [False, True, False]
    assert not list(tmp_path.iterdir())
