"""What model calls cost: the rows, what each account has, and the sums that people ask for."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from memory.database.connection import BITE_ROWS, Database
from memory.database.stored_text import dump, storable
from memory.records.messages import DEFAULT_AGENT, PersonId
from memory.records.usage import (
    Account,
    BudgetStart,
    Changes,
    ModelCall,
    Notice,
    NoticeButton,
    Pause,
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
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
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
_SUM_TURN = """
select coalesce(sum(prompt + completion), 0), coalesce(sum(micros), 0) from usage
where run_id = ? and run_id <> '' and state <> 'open'
"""
_SUM_PERSON = """
select coalesce(sum(prompt + completion), 0), coalesce(sum(micros), 0) from usage
where person_id = ? and at_ms >= ? and at_ms < ? and state <> 'open'
"""
_SUM_JOB = """
select coalesce(sum(prompt + completion), 0), coalesce(sum(micros), 0) from usage
where job = ? and job <> '' and at_ms >= ? and at_ms < ? and state <> 'open'
"""
_SUM_AGENT = """
select coalesce(sum(prompt + completion), 0), coalesce(sum(micros), 0) from usage
where agent = ? and at_ms >= ? and at_ms < ? and state <> 'open'
"""
_SUM_BOT = """
select coalesce(sum(prompt + completion), 0), coalesce(sum(micros), 0) from usage
where at_ms >= ? and at_ms < ? and state <> 'open'
"""
_NOTICES = """
select key, person_id, text, buttons, told_ms from spending_notices
where created_ms >= ? or told_ms is null order by created_ms, key
"""
_ADD_NOTICE = """
insert into spending_notices (key, person_id, text, buttons, created_ms) values (?, ?, ?, ?, ?)
on conflict (key) do nothing
"""
_TOLD = "update spending_notices set told_ms = ? where key = ?"
_FORGET_NOTICES = "delete from spending_notices where told_ms is not null and created_ms < ?"
_PAUSES = "select kind, agent, is_on, since_ms, words from pauses order by kind, agent"
_PUT_PAUSE = """
insert into pauses (kind, agent, is_on, since_ms, words) values (?, ?, ?, ?, ?)
on conflict (kind, agent) do update set
    is_on = excluded.is_on, since_ms = excluded.since_ms, words = excluded.words
"""
# One statement for every question; what is not asked for is one group.
_GROUPS = """
select
    case when :slot then at_ms / 900000 else 0 end,
    case when :person then person_id else '' end,
    case when :chat then lane else '' end,
    case when :job then job else '' end,
    case when :agent then agent else '' end,
    case when :model then model else '' end,
    case when :purpose then purpose else '' end,
    count(*), sum(prompt), sum(completion), sum(cached), coalesce(sum(micros), 0),
    sum(micros is null), sum(state <> 'counted'),
    sum(case when state = 'counted' then prompt + completion else 0 end),
    sum(case when state = 'counted' then abs(guessed - prompt - completion) else 0 end)
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
            return left, _opening(connection, minutes_from_ms, now_ms)

        def settle(connection: sqlite3.Connection) -> int:
            connection.execute(_FORGET_NOTICES, (now_ms - NOTICES_KEPT_MS,))
            return connection.execute(_SETTLE_LEFT).rowcount

        left, opening = await self._database.read(read)
        if not left:
            return opening
        settled = await self._database.write(settle)
        return BudgetStart(
            next_id=opening.next_id,
            settled=settled,
            minutes=opening.minutes,
            notices_known=opening.notices_known,
            notices_untold=opening.notices_untold,
            pauses=opening.pauses,
        )

    async def put(self, changes: Changes, sums: Sequence[Account] = ()) -> Sequence[Spent]:
        """Stores the changes, then adds up the settled calls of each account. A repeated change
        changes nothing; a notice whose key is known is not stored again."""
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> list[Spent]:
            connection.executemany(_PUT, [_row(call) for call in changes.calls])
            connection.executemany(_DROP, [(number,) for number in changes.dropped])
            for one in changes.notices:
                row = (one.key, one.person_id, storable(one.text), dump(one.buttons), now_ms)
                connection.execute(_ADD_NOTICE, row)
            connection.executemany(_TOLD, [(now_ms, key) for key in changes.told])
            for pause in changes.pauses:
                row_of = (pause.kind, pause.agent, pause.is_on, pause.since_ms)
                connection.execute(_PUT_PAUSE, (*row_of, storable(pause.words)))
            return [_sum(connection, account) for account in sums]

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
        rows = await self._database.read(lambda c: c.execute(sql, values).fetchall())
        return [_group(row) for row in rows]

    async def prune(self, before_ms: int) -> int:
        """Forgets calls from before; returns how many. In bites, so that nobody waits long."""
        return await self._database.in_bites(
            lambda c: c.execute(_PRUNE, (before_ms, BITE_ROWS)).rowcount
        )


def _row(call: ModelCall) -> tuple[Any, ...]:
    charge, usage = call.charge, call.usage
    return (
        call.id,
        call.at_ms,
        charge.person_id,
        charge.lane,
        charge.conversation,
        charge.run_id,
        charge.job,
        charge.agent,
        charge.purpose,
        storable(call.model),
        usage.prompt,
        usage.completion,
        usage.cached,
        call.micros,
        call.guessed,
        call.state,
    )


def _sum(connection: sqlite3.Connection, account: Account) -> Spent:
    span = (account.start_ms, account.end_ms)
    if account.run_id:
        row = connection.execute(_SUM_TURN, (account.run_id,))
    elif account.scope is Scope.BOT:
        row = connection.execute(_SUM_BOT, span)
    else:
        statement = {
            Scope.PERSON: _SUM_PERSON,
            Scope.JOB: _SUM_JOB,
            Scope.AGENT: _SUM_AGENT,
        }[account.scope]
        row = connection.execute(statement, (account.subject, *span))
    return Spent(*row.fetchone())


def _opening(connection: sqlite3.Connection, minutes_from_ms: int, now_ms: int) -> BudgetStart:
    notices = connection.execute(_NOTICES, (now_ms - NOTICES_KEPT_MS,)).fetchall()
    return BudgetStart(
        next_id=connection.execute(_NEXT_ID).fetchone()[0],
        minutes=_by_agent(connection.execute(_MINUTES, (minutes_from_ms, now_ms))),
        notices_known=frozenset(row[0] for row in notices),
        notices_untold=tuple(_notice(row) for row in notices if row[4] is None),
        pauses=tuple(
            Paused(kind=Pause(kind), agent=agent, is_on=bool(is_on), since_ms=since_ms, words=words)
            for kind, agent, is_on, since_ms, words in connection.execute(_PAUSES)
        ),
    )


def _by_agent(rows: Iterable[tuple[str, int, int]]) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for agent, minute, tokens in rows:
        mine = found.setdefault(agent or DEFAULT_AGENT, {})
        mine[minute] = mine.get(minute, 0) + tokens
    return found


def _notice(row: tuple[Any, ...]) -> Notice:
    buttons = tuple(NoticeButton(*one) for one in json.loads(row[3]))
    return Notice(key=row[0], person_id=PersonId(row[1]), text=row[2], buttons=buttons)


def _group(row: tuple[Any, ...]) -> UsageSum:
    return UsageSum(
        slot=row[0],
        person_id=PersonId(row[1]),
        lane=row[2],
        job=row[3],
        agent=row[4],
        model=row[5],
        purpose=row[6],
        calls=row[7],
        prompt=row[8],
        completion=row[9],
        cached=row[10],
        micros=row[11],
        unpriced=row[12],
        estimated=row[13],
        counted_tokens=row[14],
        off_tokens=row[15],
    )
