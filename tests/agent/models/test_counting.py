"""Tokens: guessed cheaply, and counted near a limit."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models.chat_request import NEAR, STRANGER_FACTOR, TokenCounter, encoding_of, factor_of
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


COUNTER = TokenCounter()


def guess(text: str) -> int:
    return estimate_tokens(text)


async def count(model: str, text: str) -> int:
    """As near a limit, where a guess does not do."""
    return await COUNTER.total(model, [text], limit=guess(text))


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
async def test_a_guess_is_a_little_above_the_count(model: str, text: str) -> None:
    assert 0.9 < guess(text * 10) / await count(model, text * 10) < 1.7


@pytest.mark.parametrize("text", [" " * 1_000_000, "a" * 300_000, "\ud800 half a pair", ""])
async def test_strange_texts_are_counted_too(text: str) -> None:
    assert await COUNTER.total("gpt-4.1", [text], limit=len(text) // 10) <= 4 * len(text)


@given(text=st.text(max_size=300) | st.text("XQZJKV", max_size=300))
async def test_no_guess_is_so_low_that_it_would_not_be_checked(text: str) -> None:
    for model in ("gpt-4.1", "gpt-4"):
        assert await count(model, text) <= guess(text) * NEAR + 5


async def test_a_text_is_counted_only_when_a_limit_is_near() -> None:
    text = ENGLISH * 1_000

    far_below = await COUNTER.total("gpt-4.1", [text], limit=1_000_000)
    far_above = await COUNTER.total("gpt-4.1", [text], limit=10)
    near = await COUNTER.total("gpt-4.1", [text], limit=far_below)

    assert far_below == far_above == guess(text)
    assert near < far_below
    assert abs(near - 1_000 * await count("gpt-4.1", ENGLISH)) <= 1_000, "in pieces nearly the same"


async def test_a_model_without_a_tokenizer_is_guessed_on_the_safe_side() -> None:
    model = "anthropic/claude-haiku-4-5"

    assert factor_of(model) == STRANGER_FACTOR
    assert await count(model, ENGLISH) == math.ceil(guess(ENGLISH) * STRANGER_FACTOR)


@pytest.mark.parametrize("damage", ["missing", "cut"])
async def test_a_damaged_tokenizer_is_guessed_around_without_asking_the_network(
    tmp_path: Path, damage: str
) -> None:
    library = find_spec("litellm")
    assert library is not None
    assert library.submodule_search_locations
    whole = Path(library.submodule_search_locations[0]) / "litellm_core_utils" / "tokenizers"
    for file in whole.glob("[0-9a-f]*[0-9a-f]"):
        if damage == "cut":
            shutil.copy(file, tmp_path)
            (tmp_path / file.name).write_bytes(file.read_bytes()[:-10])
    before = sorted(tmp_path.iterdir())

    total = await TokenCounter(tmp_path).total("gpt-4.1", [ENGLISH], limit=guess(ENGLISH))

    assert total == guess(ENGLISH)
    assert sorted(tmp_path.iterdir()) == before


def test_counting_needs_neither_the_network_nor_the_large_library(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import asyncio, json, socket, sys

        def never(*args, **kwargs):
            raise AssertionError("the network was asked for")

        socket.getaddrinfo = never
        from agent.models.chat_request import TokenCounter

        async def main():
            lazy = "tiktoken" not in sys.modules
            text = "hello there, how are you? " * 50
            total = await TokenCounter().total("gpt-4.1", [text], limit=300)
            print(json.dumps([lazy, "tiktoken" in sys.modules, "litellm" in sys.modules]))

        asyncio.run(main())
        """
    )
    env = {**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path)}

    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env
    )

    assert json.loads(shown.stdout) == [True, True, False]
    assert not list(tmp_path.iterdir())
