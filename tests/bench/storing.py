"""What storing costs: commits of a turn, their time, and how long replies stay in the outbox."""

import json
import sqlite3
import statistics
from contextlib import closing

from tests.bench.bench import Bench, fresh_stage, p95
from tests.bench.figures import PRODUCT, Figure
from tests.bench.speed import THINK_S
from tests.bench.stage import Stage, Talk

TURNS = 60
CROWD = 50


def measure_storage(bench: Bench) -> None:
    """Hearthbot with its commits timed (`tests.bench.probe`), one person and then a crowd."""
    with fresh_stage(PRODUCT, probed=True) as stage:
        bench.say("commits")
        stage.talk(chats=1, rounds=3, think_s=THINK_S)
        bench.settle()
        alone = stage.talk(chats=1, rounds=bench.rounds(TURNS), think_s=THINK_S)
        alone_until = _last_outbox_id(stage)
        crowd = stage.talk(chats=CROWD, rounds=bench.rounds(6), first_chat=5000)
        stage.stop()
        commits = [(at, took) for at, took in json.loads(stage.probe_file.read_text())]
        stays = _outbox_stays_ms(stage)
        left = _outbox_not_sent(stage)
    _add_commits(bench, alone, commits)
    in_crowd = _within(crowd, commits)
    note = f"{CROWD} chats together"
    per_turn = {PRODUCT: len(in_crowd) / len(crowd.turns)}
    bench.add(Figure(name="  in a crowd", unit="commits", values=per_turn, note=note))
    one = [ms for row, ms in stays if row <= alone_until]
    many = [ms for row, ms in stays if row > alone_until]
    note = f"p95 {p95(one):.0f}; in a crowd {statistics.median(many):.0f}, p95 {p95(many):.0f}"
    value = {PRODUCT: statistics.median(one)}
    bench.add(Figure(name="outbox, stored → delivered", unit="ms", values=value, note=note))
    left_note = "rows that are not sent, of all"
    bench.add(
        Figure(
            name="  left over",
            unit="rows",
            values={PRODUCT: left},
            must=0,
            digits=0,
            note=left_note,
        )
    )


def _add_commits(bench: Bench, talk: Talk, commits: list[tuple[float, float]]) -> None:
    within = _within(talk, commits)
    before_reply = [
        sum(asked <= at <= replied for at, _ in commits) for asked, replied in talk.turns
    ]
    took = [1000 * seconds for _, seconds in within]
    bench.add(
        Figure(
            name="commits per plain turn",
            unit="commits",
            values={PRODUCT: len(within) / len(talk.turns)},
            note=f"{statistics.median(before_reply):.0f} of them before the reply is sent",
        )
    )
    bench.add(
        Figure(
            name="  one commit",
            unit="ms",
            values={PRODUCT: statistics.median(took)},
            digits=2,
            note=f"p95 {p95(took):.2f}",
        )
    )


def _within(talk: Talk, commits: list[tuple[float, float]]) -> list[tuple[float, float]]:
    begin = min(asked for asked, _ in talk.turns)
    end = max(replied for _, replied in talk.turns) + THINK_S
    return [(at, took) for at, took in commits if begin <= at <= end]


def _outbox_stays_ms(stage: Stage) -> list[tuple[int, int]]:
    sql = "select id, ended_ms - created_ms from outbox where ended_ms is not null order by id"
    with closing(sqlite3.connect(stage.home / "data" / "hearthbot.db")) as database:
        return [(row, stay) for row, stay in database.execute(sql)]


def _last_outbox_id(stage: Stage) -> int:
    with closing(sqlite3.connect(stage.home / "data" / "hearthbot.db")) as database:
        return int(database.execute("select max(id) from outbox").fetchone()[0])


def _outbox_not_sent(stage: Stage) -> int:
    sql = "select count(*) from outbox where state <> 'sent'"
    with closing(sqlite3.connect(stage.home / "data" / "hearthbot.db")) as database:
        return int(database.execute(sql).fetchone()[0])
