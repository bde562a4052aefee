"""The local engine, over the real journal, through the suite of all engines; and a real SIGKILL."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from agent.turn.engine import LocalEngine
from memory.database.connection import Database
from memory.records.messages import ConversationId, InboxId, PersonId, RunId
from memory.records.ports import Journal, Json, NewRun, TurnContext
from memory.records.rows import NewEvent
from memory.records.section import TurnsSettings
from memory.stores.conversations import SqliteConversations
from memory.stores.inbox import SqliteInbox
from memory.stores.turns import SqliteJournal
from tests.agent.engine_suite import LANE, Ended, EngineSuite, Gate, Script, echo, plain
from tests.fakes import FixedClock
from tests.fork_server import plain_env, start
from tests.thorough import rounds

KILLS = rounds(6, 20)

_TURNS = """
select turns.run_id, turns.status, inbox.state,
    (select count(*) from messages where messages.run_id = turns.run_id),
    (select json_group_array(text) from outbox where outbox.run_id = turns.run_id)
from turns left join inbox on inbox.id = turns.inbox_id
"""


class AroundJournal:
    """Passes each call on to the journal, with `around` about it."""

    def __init__(
        self, journal: Journal, around: Callable[[str, Callable[[], Awaitable[Any]]], Any]
    ) -> None:
        self._journal = journal
        self._around = around

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._journal, name)

        async def call(*args: Any, **more: Any) -> Any:
            result = await self._around(name, partial(method, *args, **more))
            if name == "record":
                self.told.append(("recorded", f"{args[0]}:{args[2]}"))
            for step in more.get("steps", ()):
                self.told.append(("recorded", f"{args[0]}:{step.name}"))
            return result

        return call

    told: list[tuple[str, str]]


class LocalLab:
    """One store, in one SQLite file, and its engines, opened one after the other."""

    conversation: ConversationId
    open_engine: LocalEngine

    def __init__(self, path: Path, database: Database) -> None:
        self.path = path
        self.clock = FixedClock()
        self.died = asyncio.Event()
        self.used = 0
        self._database = database
        self._told: list[tuple[str, str]] = []
        self._runs: dict[str, NewRun] = {}
        self._kill: tuple[int, bool] | None = None
        self._trouble: tuple[int, Exception] | None = None

    @asynccontextmanager
    async def engine(
        self, program: Script, limits: TurnsSettings | None = None
    ) -> AsyncIterator[LocalEngine]:
        self.used = 0
        self.died.clear()
        async with Database.open(self.path, clock=self.clock) as database:
            journal = AroundJournal(SqliteJournal(database), self._around)
            journal.told = self._told
            async with LocalEngine(
                cast(Journal, journal),
                program,
                clock=self.clock,
                deliver=lambda rows: None,
                limits=limits,
            ) as engine:
                self.open_engine = engine
                yield engine

    async def settled(self) -> None:
        """Returns once nothing in the open engine runs or waits."""
        await self.open_engine.idle()

    async def new_run(
        self, run_id: str, *, lane: str = LANE, by: str = "p1", message_id: str = ""
    ) -> NewRun:
        """A run with a message of its own in the inbox; the same one for the same id."""
        if run_id not in self._runs:
            event = NewEvent(source="telegram:1", event_id=run_id, lane=lane, payload="{}")
            (stored,) = await SqliteInbox(self._database).store([event])
            self._runs[run_id] = NewRun(
                run_id=RunId(run_id),
                lane=lane,
                by=PersonId(by),
                payload={"text": run_id},
                message_id=message_id,
                inbox_id=InboxId(stored.id),
            )
        return self._runs[run_id]

    async def turns(self) -> dict[str, Ended]:
        rows = await self._database.read(lambda c: c.execute(_TURNS).fetchall())
        return {row[0]: _ended(row) for row in rows}

    async def replies(self) -> list[str]:
        """Ids of the turns that replied, in the order in which their replies go out."""
        sql = "select run_id from outbox order by id"
        return [row[0] for row in await self._database.read(lambda c: c.execute(sql).fetchall())]

    def kill_at(self, n: int, *, after: bool) -> None:
        """The next engine dies before or after the n-th use of its store: `died` is set."""
        self.died.clear()
        self._kill = (n, after)

    def trouble_at(self, n: int, error: Exception) -> None:
        """The n-th use of the store fails, once, with nothing done."""
        self._trouble = (n, error)

    def told(self) -> list[tuple[str, str]]:
        """Steps as they were run and as they were recorded, over all engines."""
        return self._told

    async def _around(self, name: str, call: Callable[[], Awaitable[Any]]) -> Any:
        self.used += 1
        mine = self.used
        if self._trouble is not None and self._trouble[0] == mine:
            error, self._trouble = self._trouble[1], None
            raise error
        await self._die_at(mine, after=False)
        result = await call()
        await self._die_at(mine, after=True)
        return result

    async def _die_at(self, n: int, *, after: bool) -> None:
        """The process is no more: nothing returns, until the test clears it away."""
        if self._kill == (n, after):
            self._kill = None
            self.died.set()
        if self.died.is_set():
            await asyncio.Event().wait()


def _ended(row: tuple[Any, ...]) -> Ended:
    run_id, status, inbox, entries, replies = row
    return Ended(
        run_id=run_id,
        status=status,
        inbox=inbox,
        replies=tuple(json.loads(replies)),
        entries=entries,
    )


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[LocalLab]:
    path = tmp_path / "hearthbot.db"
    async with Database.open(path, clock=FixedClock()) as database:
        lab = LocalLab(path, database)
        lab.conversation = await SqliteConversations(database).current(LANE)
        yield lab


class TestLocalEngine(EngineSuite):
    """The suite, over the local engine."""

    async def test_a_turn_of_one_step_is_two_transactions(self, lab: LocalLab) -> None:
        async with lab.engine(Script(lab, plain, {"echo": echo})) as engine:
            await engine.start()
            before = lab.used
            await engine.submit(await lab.new_run("r1"))
            await lab.settled()

        assert lab.used - before == 2
        assert lab.told() == [("ran", "r1:echo"), ("recorded", "r1:echo")]

    async def test_a_run_behind_another_can_be_edited_as_it_is_not_stored_as_begun(
        self, lab: LocalLab
    ) -> None:
        gate = Gate()

        async def main(ctx: TurnContext, payload: Json) -> str:
            await ctx.step("gate", {})
            return str(payload["text"])

        async with lab.engine(Script(lab, main, {"gate": gate})) as engine:
            await engine.start()
            first, second = [await lab.new_run(name, message_id=name) for name in ("r1", "r2")]
            await asyncio.gather(engine.submit(first), engine.submit(second))
            edited = [await engine.edit(LANE, name, {"text": "new"}) for name in ("r1", "r2")]
            gate.leave.set()
            await lab.settled()

        assert edited == [False, True]
        assert (await lab.turns())["r2"].replies == ("new",)


# --- the real thing ------------------------------------------------------------------------------


def live(path: Path, name: str, *, lines: int) -> list[tuple[str, str]]:
    """Runs the child until it has said so many lines, then kills it; 0 lines: to its end."""
    said = []
    module, pipe = "tests.agent.engine_child", subprocess.PIPE
    with start(module, [str(path), name], env=plain_env(), stdout=pipe, text=True) as child:
        assert child.stdout is not None
        for _ in range(lines):
            said.append(child.stdout.readline())
        if lines:
            child.kill()
        said.extend(child.stdout)
    assert child.returncode == (-9 if lines else 0)
    words = [line.split() for line in said if line.endswith("\n")]
    return [(what, which) for what, which in words]


def check_lanes(path: Path) -> None:
    """All has ended, each turn with one reply, in the order of submission."""
    turns_sql = "select lane, run_id, status from turns order by seq"
    replies_sql = "select lane, run_id from outbox order by id"
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        turns = connection.execute(turns_sql).fetchall()
        replies = connection.execute(replies_sql).fetchall()
    assert {status for _, _, status in turns} == {"done", "joined"}
    for lane in {lane for lane, _, _ in turns}:
        done = [name for at, name, status in turns if at == lane and status == "done"]
        assert [name for at, name in replies if at == lane] == done


@pytest.mark.case("HI-11")
def test_a_process_killed_at_any_moment_repeats_loses_and_disorders_nothing(
    tmp_path: Path,
) -> None:
    chance, path = Random(7), tmp_path / "hearthbot.db"

    told = []
    for n in range(KILLS):
        told += live(path, f"k{n}", lines=chance.randrange(1, 300))
    told += live(path, "last", lines=0)

    check_lanes(path)
    recorded: set[str] = set()
    for what, step in told:
        assert what != "failed", step
        assert not (what == "ran" and step in recorded), step
        if what == "recorded":
            recorded.add(step)
    sent = [step for what, step in told if what == "ran" and step.endswith(":send")]
    assert len(sent) == len(set(sent)) > KILLS
