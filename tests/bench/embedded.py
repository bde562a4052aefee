"""The embedded model: how soon it speaks, how fast, and what it weighs.

The benchmark runs it as a process of its own, which says what it found as one line of JSON.
"""

import asyncio
import json
import statistics
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from memory.records.ports import Model
from tests.bench.bench import Bench
from tests.bench.figures import PRODUCT, Figure
from tests.bench.processes import Child

QUESTIONS = ("Say hello to Ann.", "Tell me a short story about a cat.", "What is tea made of?")
TRIED = "tried before: {}"


def measure_embedded(bench: Bench) -> None:
    """On SmolLM2-135M, as it is shipped; the lines' notes say what DESIGN §7 found."""
    if not bench.embedded or find_spec("xllamacpp") is None:
        bench.say("embedded model left out")
        return
    bench.say("embedded model")
    bench.settle()
    with TemporaryDirectory(prefix="hearthbot-bench-") as folder:
        output = Path(folder) / "embedded.out"
        with Child([sys.executable, "-m", "tests.bench.embedded"], output=output) as child:
            found = json.loads(child.first_line(within_s=120).rpartition("\n")[2])
    lines = (
        ("embedded model: load", "load_s", "s", "0.4 s"),
        ("  first token", "first_token_s", "s", "0.1 s"),
        ("  tokens", "tokens_per_s", "1/s", "65-100"),
        ("  RSS with it", "rss_mb", "MB", "239-254 MB"),
    )
    for name, key, unit, tried in lines:
        value = {PRODUCT: found[key]}
        digits = 2 if unit == "s" else 0
        note = TRIED.format(tried)
        bench.add(Figure(name=name, unit=unit, values=value, digits=digits, note=note))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    first_s: float
    whole_s: float
    tokens: int


async def _measure() -> dict[str, float]:
    from agent.models.embedded import Embedded

    async with Embedded() as model:
        first = await _ask(model, "Say hello.")
        answers = [await _ask(model, question) for question in QUESTIONS]
        rss = _rss_mb()
    again = statistics.median(answer.first_s for answer in answers)
    speeds = [a.tokens / (a.whole_s - a.first_s) for a in answers if a.whole_s > a.first_s]
    return {
        # The model is loaded by the first question.
        "load_s": max(0.0, first.first_s - again),
        "first_token_s": again,
        "tokens_per_s": statistics.median(speeds),
        "rss_mb": rss,
    }


async def _ask(model: Model, question: str) -> _Answer:
    from memory.records.request import ModelRequest
    from memory.records.transcript import Said

    request = ModelRequest(
        system="You are a friendly assistant.",
        entries=(Said(text=question),),
        tools=(),
        temperature=0.4,
        max_output_tokens=120,
    )
    began = time.perf_counter()
    seen: list[float] = []
    given = await model.answer(request, on_text=lambda _: seen.append(time.perf_counter()))
    whole_s = time.perf_counter() - began
    first_s = (seen[0] - began) if seen else whole_s
    return _Answer(first_s=first_s, whole_s=whole_s, tokens=given.usage.completion)


def _rss_mb() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1]) / 1024
    return 0.0


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_measure())), flush=True)
