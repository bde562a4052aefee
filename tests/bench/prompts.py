"""What a prompt costs: time to make one, how a conversation of fifty turns grows, and what of each
request the former one holds, with memories, playbooks, tools and time changing all the while."""

import asyncio
import json
import logging
import random
import statistics
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import structlog

from agent.prompt.scene import PromptOccasion
from agent.prompt.tokens import text_of
from bot.settings.home import shipped
from memory.records.facts import Coming, Fact, Recalled, RecallWanted
from memory.records.transcript import Answered, Context, Said, ToolResult
from tests.agent.house import OWNER, FakeTool, House, model, sent_bytes
from tests.agent.scenes import turn_of
from tests.bench.bench import Bench
from tests.bench.figures import PRODUCT, Figure
from tests.fakes import calls

TURNS = 50
PLANS = 300
QUICK_PLANS = 100


class _Changing:
    """Implements `memory.records.ports.Recall`: something else at each turn."""

    def __init__(self) -> None:
        self._chance = random.Random(7)

    async def recall(self, wanted: RecallWanted) -> Recalled:
        facts = [Fact(id=str(n), text=f"A remembered fact with the number {n}.") for n in range(40)]
        coming = [Coming(id=str(n), when=wanted.now, text=f"Event {n}") for n in range(4)]
        return Recalled(
            profile="Name: Ada\nLanguage: en",
            facts=tuple(self._chance.sample(facts, 5)),
            coming=tuple(self._chance.sample(coming, self._chance.randint(0, 2))),
        )


WORDS = (
    "please triage my inbox and explain what is urgent",
    "explain how tides work, step by step",
    "what is on today?",
    "schedule a meeting with Bob on Tuesday",
    "thanks!",
    "compare the two berths in the old harbour",
    "search the web for the tide table of Bergen",
)


def measure_prompts(bench: Bench) -> None:
    """In one process, over the real layers, skills, database and turn engine."""
    bench.say(f"{TURNS} turns with everything changing")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measure(bench, Path(folder)))


async def _measure(bench: Bench, folder: Path) -> None:
    house = House(folder)
    house.shipped_skills = shipped("skills")
    house.recalled = _Changing()
    house.tools = [FakeTool("work", _work)]
    chance = random.Random(3)
    lines: list[Any] = []
    said = [f"{chance.choice(WORDS)} ({n})" for n in range(TURNS)]
    for n in range(TURNS):
        if chance.random() < 0.3:
            lines.append(calls(("work", json.dumps({"text": str(n)}))))
        lines.append(f"This is the answer number {n}, in a sentence or two.")
    script = model(*lines)
    async with house.opened(script):
        for words in said:
            house.clock.move(chance.choice([5, 90, 4_000]))
            await house.say(words)
        plan_ms = await _plan_ms(house, PLANS if not bench.quick else QUICK_PLANS)
    bodies = [
        sent_bytes(request, house).removesuffix(b"]}").removesuffix(b"]}")
        for request in script.asked
    ]
    kept = [_common(former, later) / len(former) for former, later in pairwise(bodies)]
    _add(bench, kept, plan_ms, _composition(script.asked[-1].entries))


async def _plan_ms(house: House, rounds: int) -> list[float]:
    """CPU of making a prompt, the skills' folders looked at again every now and then."""
    took = []
    for n in range(rounds):
        house.clock.move(1)
        occasion = PromptOccasion(turn=turn_of(OWNER, f"{WORDS[n % len(WORDS)]} {n}"))
        began = time.process_time()
        await house.beginning.plan(occasion)
        took.append(1000 * (time.process_time() - began))
    return took


async def _work(text: str) -> str:
    return f"did {text}"


def _common(one: bytes, other: bytes) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _composition(entries: Any) -> dict[str, int]:
    """Characters of a history by what they are."""
    found = {"words": 0, "answers": 0, "tools": 0, "blocks": 0}
    names = {Said: "words", Answered: "answers", ToolResult: "tools", Context: "blocks"}
    for entry in entries:
        if name := names.get(type(entry)):
            found[name] += len(text_of(entry))
    return found


def _add(bench: Bench, kept: list[float], plan_ms: list[float], parts: dict[str, int]) -> None:
    bench.add(
        Figure(
            name=f"prefix kept over {TURNS} turns, all changing",
            unit="share",
            values={PRODUCT: min(kept)},
            must=1,
            at_least=True,
            digits=3,
            note=f"worst of {len(kept)} requests; mean {statistics.fmean(kept):.3f}",
        )
    )
    whole = sum(parts.values())
    shares = ", ".join(f"{name} {100 * size / whole:.0f} %" for name, size in parts.items())
    bench.add(
        Figure(
            name="  history a turn",
            unit="chars",
            values={PRODUCT: whole / TURNS},
            digits=0,
            note=shares,
        )
    )
    bench.add(
        Figure(
            name="a prompt made: CPU",
            unit="ms",
            values={PRODUCT: statistics.median(plan_ms)},
            digits=2,
            note=f"p95 {sorted(plan_ms)[int(0.95 * len(plan_ms))]:.2f}; {TURNS} turns of history, "
            "27 skills; within a turn's overhead",
        )
    )
