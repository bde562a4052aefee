"""`python -m tests.bench.remembering`: what facts cost one person who has very many of them.

Through the real store, the check against the table included. Needs no bot; figures on standard
output, or JSON with --json. Exits 1 when a query takes more than it may.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sqlite3
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from memory.database.connection import Database
from memory.facts.rows import insert
from memory.facts.store import SqliteFacts
from memory.records.facts import FactSource, NewFact, Whose
from memory.records.messages import PersonId
from memory.search.indexes import Indexes
from memory.search.vectors import Embedding
from scheduler.clock.machine import SystemClock
from tests.bench.choosing import PEOPLE, p95, resident_mb, sentence, vocabulary

T = TypeVar("T")

OF = Whose(person_id=PersonId("p1"))
ROUNDS = 200
STORED = 20
QUERY_P95_MS_MAX = 30.0
"""CPU of one query at 100,000 facts."""


def main() -> int:
    """Measures, and prints a line for each figure."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.remembering", description=__doc__)
    parser.add_argument("--facts", type=int, default=100_000)
    parser.add_argument("--words-alone", action="store_true", help="without embeddings")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with TemporaryDirectory(prefix="hearthbot-bench-") as folder:
        path = Path(folder) / "hearthbot.db"
        figures = asyncio.run(measured(path, asked.facts, meanings=not asked.words_alone))
    if asked.json:
        print(json.dumps(figures, indent=1))
    else:
        for name, value in figures.items():
            print(f"{name:<48}{value:>10.2f}")
    return 0 if figures["query, p95 ms CPU"] <= QUERY_P95_MS_MAX else 1


async def measured(path: Path, count: int, *, meanings: bool) -> dict[str, float]:
    """All figures, of a database at `path` that is made for it."""
    chance, words = random.Random(3), vocabulary()
    async with Database.open(path, clock=SystemClock()) as database:
        for start in range(0, count, 10_000):
            texts = [
                sentence(chance, words, chance.randint(6, 18))
                for _ in range(min(10_000, count - start))
            ]
            await database.write(partial(filled, texts=texts))
        facts = SqliteFacts(database, Indexes(database, embedding=Embedding(enabled=meanings)))
        before_mb = resident_mb()
        first_s, _ = await timed(lambda: facts.search(OF, "parcel", k=5))
        figures = {
            "facts": float(count),
            "first search, index included, s": first_s,
            "index and embeddings, MB": resident_mb() - before_mb,
        }
        figures |= await searching(facts, chance, words)
        return figures | await storing(facts, chance, words)


async def searching(
    facts: SqliteFacts, chance: random.Random, words: list[str]
) -> dict[str, float]:
    """Of one query, by the clock and by what the processor did in all threads."""
    wall_ms, cpu_ms = [], []
    for _ in range(ROUNDS):
        query = sentence(chance, words, chance.randint(3, 9))
        cpu = time.process_time()
        seconds, _ = await timed(partial(facts.search, OF, query, k=5))
        wall_ms.append(seconds * 1000)
        cpu_ms.append((time.process_time() - cpu) * 1000)
    return {
        "query, p50 ms": statistics.median(wall_ms),
        "query, p95 ms": p95(wall_ms),
        "query, p50 ms CPU": statistics.median(cpu_ms),
        "query, p95 ms CPU": p95(cpu_ms),
    }


async def storing(facts: SqliteFacts, chance: random.Random, words: list[str]) -> dict[str, float]:
    """Of one fact that is stored: compared with all others, and searchable at once."""
    store_ms, statement_ms, after_ms = [], [], []
    for number in range(STORED):
        text = sentence(chance, words, chance.randint(6, 18))
        seconds, _ = await timed(partial(facts.store, new(text)))
        store_ms.append(seconds * 1000)
        seconds, _ = await timed(partial(facts.search, OF, text, k=5))
        after_ms.append(seconds * 1000)
        seconds, _ = await timed(partial(facts.store, new(f"Zoe lives in Town{number}.")))
        statement_ms.append(seconds * 1000)
    return {
        "store one, p50 ms": statistics.median(store_ms),
        "store where one lives, p50 ms": statistics.median(statement_ms),
        "search after it, p50 ms": statistics.median(after_ms),
    }


def filled(connection: sqlite3.Connection, texts: list[str]) -> None:
    """Rows without the rules of writing."""
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    for text in texts:
        insert(connection, new(text), text, now_ms=now_ms)


def new(text: str) -> NewFact:
    """A fact of the one person."""
    speaker = random.Random(text).choice(PEOPLE)
    return NewFact(
        whose=OF, text=text, category="pattern", source=FactSource.IMPORT, speaker=speaker
    )


async def timed(work: Callable[[], Awaitable[T]]) -> tuple[float, T]:
    """Seconds, and what came of it."""
    start = time.perf_counter()
    value = await work()
    return time.perf_counter() - start, value


if __name__ == "__main__":
    sys.exit(main())
