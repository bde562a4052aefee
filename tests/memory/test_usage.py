"""What model calls cost is kept in rows that add up."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from memory.database.connection import Database
from memory.records.messages import ConversationId, PersonId, RunId
from memory.records.transcript import Usage
from memory.records.usage import (
    SLOT_MS,
    Account,
    CallState,
    Changes,
    Charge,
    ModelCall,
    Notice,
    Purpose,
    Scope,
    Spent,
    UsageQuery,
)
from memory.stores.usage import SqliteUsage
from tests.memory.kit import START_MS, StillClock, opened, rows

ALL = UsageQuery(since_ms=0, until_ms=2**60)


@pytest.fixture
def usage(database: Database) -> SqliteUsage:
    return SqliteUsage(database)


def call(
    number: int,
    *,
    at_ms: int = START_MS,
    person: str = "p1",
    job: str = "",
    run: str = "",
    agent: str = "main",
    model: str = "m",
    tokens: int = 100,
    micros: int | None = 7,
    state: CallState = CallState.COUNTED,
) -> ModelCall:
    charge = Charge(
        purpose=Purpose.CHAT,
        person_id=PersonId(person),
        lane="telegram:5",
        conversation=ConversationId("c1"),
        run_id=RunId(run),
        job=job,
        agent=agent,
    )
    return ModelCall(
        id=number,
        at_ms=at_ms,
        charge=charge,
        model=model,
        usage=Usage(prompt=tokens - 10, completion=10, cached=4),
        micros=micros,
        guessed=tokens + 5,
        state=state,
    )


def account(scope: Scope, subject: str = "", *, run: str = "", span: int = 1_000) -> Account:
    return Account(scope, subject, run, 0 if run else START_MS, 0 if run else START_MS + span)


async def test_an_account_adds_up_what_is_its_own_and_over(usage: SqliteUsage) -> None:
    calls = [
        call(1, run="r1", job="j1"),
        call(2, person="p2", agent="other", tokens=50, micros=None),
        call(3, at_ms=START_MS - 1, run="r1", tokens=30),
        call(4, at_ms=START_MS + 999, job="j1"),
        call(5, at_ms=START_MS + 1_000),
        call(6, state=CallState.OPEN),
        call(7, state=CallState.ESTIMATED, job="j1", person="p3"),
    ]

    found = await usage.put(
        Changes(calls=calls),
        [
            account(Scope.BOT),
            account(Scope.PERSON, "p1"),
            account(Scope.AGENT, "main"),
            account(Scope.AGENT, "other"),
            account(Scope.JOB, "j1"),
            account(Scope.PERSON, "p1", run="r1"),
            account(Scope.PERSON, "nobody"),
        ],
    )

    assert found == [
        Spent(350, 21),
        Spent(200, 14),
        Spent(300, 21),
        Spent(50, 0),
        Spent(300, 21),
        Spent(130, 14),
        Spent(0, 0),
    ]


async def test_calls_of_a_dead_process_are_settled_at_the_next_start(path: Path) -> None:
    async with opened(path) as database:
        await SqliteUsage(database).put(Changes(calls=[call(1, state=CallState.OPEN), call(2)]))

    async with opened(path) as database:
        first = await SqliteUsage(database).open(minutes_from_ms=0)
        second = await SqliteUsage(database).open(minutes_from_ms=0)

    assert (first.settled, second.settled, first.next_id) == (1, 0, 3)
    assert rows(path, "select state from usage order by id") == [("estimated",), ("counted",)]


# --- sums that people ask for --------------------------------------------------------------------


async def test_groups_of_every_dimension_add_up_to_the_whole(usage: SqliteUsage) -> None:
    dice = random.Random(1)
    calls = [
        call(
            number,
            at_ms=START_MS + dice.randrange(30 * 86_400_000),
            person=dice.choice(["p1", "p2", ""]),
            job=dice.choice(["", "j1"]),
            agent=dice.choice(["main", "other"]),
            model=dice.choice(["m", "n"]),
            tokens=dice.randint(20, 5_000),
        )
        for number in range(1, 400)
    ]
    await usage.put(Changes(calls=calls))

    by_slot = await usage.groups(replace(ALL, by=("slot",)))
    by_both = await usage.groups(replace(ALL, by=("person", "model")))
    own = await usage.groups(replace(ALL, person_id=PersonId("p1")))

    slots: Counter[int] = Counter()
    for one in calls:
        slots[one.at_ms // SLOT_MS] += one.tokens
    assert {group.slot: group.tokens for group in by_slot} == slots
    pairs: Counter[tuple[str, str]] = Counter()
    for one in calls:
        pairs[one.charge.person_id, one.model] += one.tokens
    assert {(group.person_id, group.model): group.tokens for group in by_both} == pairs
    assert own[0].tokens == pairs["p1", "m"] + pairs["p1", "n"]


async def test_old_calls_can_be_forgotten(usage: SqliteUsage, path: Path) -> None:
    await usage.put(Changes(calls=[call(n, at_ms=n) for n in range(1, 11)]))

    gone = await usage.prune(8)

    assert gone == 7
    assert rows(path, "select id from usage") == [(8,), (9,), (10,)]


async def test_told_notices_are_forgotten_after_the_longest_period(
    path: Path, clock: StillClock
) -> None:
    async with Database.open(path, clock=clock) as database:
        usage = SqliteUsage(database)
        await usage.put(Changes(notices=[Notice(key="old", text="x")], told=["old"]))
        await usage.put(Changes(calls=[call(1, state=CallState.OPEN)]))
        clock.move(100 * 86_400)

        await usage.open(minutes_from_ms=0)

    assert rows(path, "select key from spending_notices") == []
