"""`python -m tests.bench.choosing`: what choosing tools costs, and how many wishes are
met. Needs no bot; figures on standard output, or JSON with --json.

Tools are made up from the words of this checkout's own pages.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from agent.prompt.templates import TextFiles
from agent.tools.discovery import RouteFile, ToolRanking
from agent.tools.selection import Situation, select
from agent.tools.tool import ToolCard
from memory.search.hybrid import FOR_TOOLS, Item, Search
from tests.bench.systems import tool_search
from tests.bench.wishes import WISHES, built_in, card

T = TypeVar("T")

CHECKOUT = Path(__file__).parents[2]
TOOLS = 500
PEOPLE = ("Anna", "Bob", "Carla", "Dmitri", "Eve")


def main() -> None:
    """Measures, and prints a line for each figure."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.choosing", description=__doc__)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    figures: dict[str, float] = {}
    figures |= choosing()
    figures |= meeting()
    if asked.json:
        print(json.dumps(figures, indent=1))
        return
    for name, value in figures.items():
        print(f"{name:<48}{value:>10.2f}")


def choosing() -> dict[str, float]:
    """Of one request with hundreds of tools: index, then selection, with routes and without."""
    chance = random.Random(1)
    words = vocabulary()
    tools = built_in() + [made_up(chance, words, number) for number in range(TOOLS)]
    tools = tools[:TOOLS]
    ranking = ToolRanking(tool_search)
    index_s, _ = timed(lambda: ranking.of(tools))
    routes = RouteFile(CHECKOUT / "prompts", CHECKOUT / "none", read=TextFiles().read)
    texts = [text for text, _ in WISHES]

    def choose(text: str) -> None:
        groups = routes.routes().match(text).groups
        select(Situation(candidates=tools, text=text, groups=groups), ranking.of(tools))

    wall_ms = milliseconds(choose, texts, clock=time.perf_counter)
    cpu_ms = milliseconds(choose, texts, clock=time.process_time)
    return {
        f"tools: index of {TOOLS}, s": index_s,
        f"tools: selection of {TOOLS}, p50 ms": statistics.median(wall_ms),
        f"tools: selection of {TOOLS}, p95 ms": p95(wall_ms),
        f"tools: selection of {TOOLS}, p95 ms CPU": p95(cpu_ms),
    }


def meeting() -> dict[str, float]:
    """How many of our own wishes get all that they need, and how many tools are offered."""
    tools = built_in()
    routes = RouteFile(CHECKOUT / "prompts", CHECKOUT / "none", read=TextFiles().read).routes()
    meaning = ToolRanking(tool_search).of(tools)
    words = ToolRanking(
        lambda texts: Search(
            [Item(id=one.name, title=one.title, text=one.text) for one in texts], weights=FOR_TOOLS
        )
    ).of(tools)
    figures = {}
    for name, ranker in (("words and meaning", meaning), ("words alone", words)):
        offered = [
            (set(needed), select(wish_of(text, tools, routes.match(text).groups), ranker).names)
            for text, needed in WISHES
        ]
        met = sum(needed <= set(names) for needed, names in offered)
        figures[f"wishes met by {name}, of {len(WISHES)}"] = float(met)
        figures[f"tools offered by {name}, mean"] = statistics.fmean(
            len(names) for _, names in offered
        )
    return figures


def wish_of(text: str, tools: Sequence[ToolCard], groups: Sequence[str]) -> Situation:
    """The first message of a conversation."""
    return Situation(candidates=tools, text=text, groups=groups)


def vocabulary() -> list[str]:
    """The words of our pages as often as they stand there: common ones are common here too."""
    pages = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
    return [
        word for page in pages for word in re.findall(r"[a-z]{2,}", page.read_text("utf-8").lower())
    ]


def sentence(chance: random.Random, words: Sequence[str], length: int) -> str:
    return " ".join([chance.choice(PEOPLE), *(chance.choice(words) for _ in range(length))])


def made_up(chance: random.Random, words: Sequence[str], number: int) -> ToolCard:
    """A tool of some server."""
    name = f"{chance.choice(words)}_{chance.choice(words)}_{number}"
    parameters = {f"its_{chance.choice(words)}": sentence(chance, words, 6) for _ in range(4)}
    return card(name, sentence(chance, words, 25), group=f"server{number // 20}", **parameters)


def milliseconds(
    work: Callable[[str], None], texts: Sequence[str], *, clock: Callable[[], float]
) -> list[float]:
    """Of each of these, after one that warms up."""
    work(texts[0])
    taken = []
    for text in texts:
        start = clock()
        work(text)
        taken.append((clock() - start) * 1000)
    return taken


def timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    value = work()
    return time.perf_counter() - start, value


def p95(values: Sequence[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


if __name__ == "__main__":
    main()
