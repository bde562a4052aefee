"""What model calls cost: the rows, what each account has, and the sums that people ask for."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from memory.database.connection import Database
from memory.database.rows import named, record, records, to_row
from memory.records.messages import DEFAULT_AGENT
from memory.records.usage import (
    Account,
    BudgetStart,
    Changes,
    Notice,
    Paused,
    Scope,
    Spent,
    UsageQuery,
    UsageSum,
)

NOTICES_KEPT_MS = 62 * 24 * 3_600_000
"""Longer than the longest period that is warned of once."""

_PUT = """
insert into usage (id, at_ms, person_id, lane, conversation_id, run_id, job, agent, purpose, model,
    prompt, completion, cached, micros, guessed, state)
values (:id, :at_ms, :person_id, :lane, :conversation, :run_id, :job, :agent, :purpose, :model,
    :prompt, :completion, :cached, :micros, :guessed, :state)
on conflict (id) do update set
    model = excluded.model, prompt = excluded.prompt, completion = excluded.completion,
    cached = excluded.cached, micros = excluded.micros, state = excluded.state
"""
_DROP = "delete from usage where id = ?"
_NEXT_ID = "select coalesce(max(id), 0) + 1 from usage"
_LEFT_OPEN = "select count(*) from usage where state = 'open'"
_SETTLE_LEFT = "update usage set state = 'estimated' where state = 'open'"
_MINUTES = """
select agent, at_ms / 60000, sum(prompt + completion) from usage
where at_ms >= ? and at_ms <= ? group by 1, 2
"""
_SUM = """
select coalesce(sum(prompt + completion), 0), coalesce(sum(micros), 0) from usage
where state <> 'open' and
"""
# Written out for each scope: with the column as a parameter no index would be used.
_SUM_TURN = f"{_SUM} run_id = ? and run_id <> ''"
_SUMS = {
    Scope.PERSON: f"{_SUM} person_id = ? and at_ms >= ? and at_ms < ?",
    Scope.JOB: f"{_SUM} job = ? and job <> '' and at_ms >= ? and at_ms < ?",
    Scope.AGENT: f"{_SUM} agent = ? and at_ms >= ? and at_ms < ?",
    Scope.BOT: f"{_SUM} ? is not null and at_ms >= ? and at_ms < ?",
}
_NOTICES = """
select key, person_id, text, buttons, told_ms from spending_notices
where created_ms >= ? or told_ms is null order by created_ms, key
"""
_ADD_NOTICE = """
insert into spending_notices (key, person_id, text, buttons, created_ms)
values (:key, :person_id, :text, :buttons, :now_ms)
on conflict (key) do nothing
"""
_TOLD = "update spending_notices set told_ms = ? where key = ?"
_FORGET_NOTICES = "delete from spending_notices where told_ms is not null and created_ms < ?"
_PAUSES = "select kind, agent, is_on, since_ms, words from pauses order by kind, agent"
_PUT_PAUSE = """
insert into pauses (kind, agent, is_on, since_ms, words)
values (:kind, :agent, :is_on, :since_ms, :words)
on conflict (kind, agent) do update set
    is_on = excluded.is_on, since_ms = excluded.since_ms, words = excluded.words
"""
# One statement for every question; what is not asked for is one group.
_GROUPS = """
select
    case when :slot then at_ms / 900000 else 0 end as slot,
    case when :person then person_id else '' end as person_id,
    case when :chat then lane else '' end as lane,
    case when :job then job else '' end as job,
    case when :agent then agent else '' end as agent,
    case when :model then model else '' end as model,
    case when :purpose then purpose else '' end as purpose,
    count(*) as calls, sum(prompt) as prompt, sum(completion) as completion,
    sum(cached) as cached, coalesce(sum(micros), 0) as micros, sum(micros is null) as unpriced,
    sum(state <> 'counted') as estimated,
    sum(case when state = 'counted' then prompt + completion else 0 end) as counted_tokens,
    sum(case when state = 'counted' then abs(guessed - prompt - completion) else 0 end)
        as off_tokens
from usage
where at_ms >= :since and at_ms < :until
"""
_OF_PERSON = " and person_id = :of"
_GROUPED = " group by 1, 2, 3, 4, 5, 6, 7"
_PRUNE = "delete from usage where id in (select id from usage where at_ms < ? limit ?)"


class SqliteUsage:
    """Model calls, notices and pauses. Each method is one durable transaction, and raises
    StorageError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(self, *, minutes_from_ms: int) -> BudgetStart:
        """Settles what a dead process left open; writes nothing where it left nothing."""
        now_ms = self._database.now_ms()

        def read(connection: sqlite3.Connection) -> tuple[int, BudgetStart]:
            left = int(connection.execute(_LEFT_OPEN).fetchone()[0])
            notices = list(named(connection.execute(_NOTICES, (now_ms - NOTICES_KEPT_MS,))))
            minutes: defaultdict[str, Counter[int]] = defaultdict(Counter)
            for agent, minute, tokens in connection.execute(_MINUTES, (minutes_from_ms, now_ms)):
                minutes[agent or DEFAULT_AGENT][minute] += tokens
            return left, BudgetStart(
                next_id=connection.execute(_NEXT_ID).fetchone()[0],
                minutes={agent: dict(counts) for agent, counts in minutes.items()},
                notices_known=frozenset(row["key"] for row in notices),
                notices_untold=tuple(
                    record(Notice, row) for row in notices if row["told_ms"] is None
                ),
                pauses=tuple(records(Paused, connection.execute(_PAUSES))),
            )

        def settle(connection: sqlite3.Connection) -> int:
            connection.execute(_FORGET_NOTICES, (now_ms - NOTICES_KEPT_MS,))
            return connection.execute(_SETTLE_LEFT).rowcount

        left, opening = await self._database.read(read)
        if not left:
            return opening
        return replace(opening, settled=await self._database.write(settle))

    async def put(self, changes: Changes, sums: Sequence[Account] = ()) -> Sequence[Spent]:
        """Stores the changes, then adds up the settled calls of each account. A repeated change
        changes nothing; a notice whose key is known is not stored again."""
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> list[Spent]:
            for call in changes.calls:
                row = {**to_row(call), **to_row(call.charge), **to_row(call.usage)}
                connection.execute(_PUT, row)
            connection.executemany(_DROP, [(number,) for number in changes.dropped])
            for notice in changes.notices:
                connection.execute(_ADD_NOTICE, {**to_row(notice), "now_ms": now_ms})
            connection.executemany(_TOLD, [(now_ms, key) for key in changes.told])
            connection.executemany(_PUT_PAUSE, map(to_row, changes.pauses))
            spent = []
            for one in sums:
                sql, of = _SUMS[one.scope], (one.subject, one.start_ms, one.end_ms)
                asked = (_SUM_TURN, (one.run_id,)) if one.run_id else (sql, of)
                spent.append(Spent(*connection.execute(*asked).fetchone()))
            return spent

        return await self._database.write(work)

    async def groups(self, wanted: UsageQuery) -> Sequence[UsageSum]:
        """One sum for each combination of the dimensions that there is, in no order."""
        sql = _GROUPS + (_OF_PERSON if wanted.person_id else "") + _GROUPED
        values = {
            "since": wanted.since_ms,
            "until": wanted.until_ms,
            "of": wanted.person_id,
            **{name: name in wanted.by for name in ("slot", "person", "chat", "job")},
            **{name: name in wanted.by for name in ("agent", "model", "purpose")},
        }
        return await self._database.records(UsageSum, sql, values)

    async def prune(self, before_ms: int) -> int:
        """Forgets calls from before; returns how many. In bites, so that nobody waits long."""
        return await self._database.prune(_PRUNE, before_ms)
