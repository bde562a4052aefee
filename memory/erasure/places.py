"""Every place in the database that may hold a person's words, as a table of rows and of how each is
blanked so that it stays what it was.

What is looked at is the person's own: their facts, profile and documents, the conversations that
are theirs alone, and in shared ones what they said, what was answered to them, and what came of it
in the turns of others, unless somebody else said the same there. Called by `memory.erasure.erase`.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from memory.database.rows import dump, named
from memory.erasure.plan import PlaceSearch
from memory.erasure.verify import Wording
from memory.records.erasure import PlaceKind

Key = int | str
Row = dict[str, Any]
How = Callable[[Wording, str], str]
"""What is to stand in a column instead: the same text where it holds none of the words."""


Change = Callable[[PlaceSearch, Row], Row | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePlace:
    """A family of rows. `select` gives the `key` of each, and what `change` looks at: it returns
    what is to stand there instead, None where the row holds none of the words. `erase` are
    statements that take both as parameters, and the time as `now`."""

    kind: PlaceKind
    select: str
    erase: tuple[str, ...]
    change: Change

    def find(self, connection: sqlite3.Connection, search: PlaceSearch) -> list[Key]:
        """Return which rows hold it. May run beside the bot."""
        rows = named(connection.execute(self.select, search.values))
        return [row["key"] for row in rows if self.change(search, row) is not None]

    def clear(
        self,
        connection: sqlite3.Connection,
        search: PlaceSearch,
        keys: Sequence[Key],
        *,
        now_ms: int,
    ) -> None:
        """Take it out of these rows, as they are now, within the caller's transaction."""
        wanted = set(keys)
        for row in list(named(connection.execute(self.select, search.values))):
            changed = self.change(search, row) if row["key"] in wanted else None
            if changed is not None:
                for statement in self.erase:
                    connection.execute(statement, {**row, **changed, "now": now_ms})


# --- how a row is changed ------------------------------------------------------------------------


def _columns(**columns: How) -> Change:
    """Return what changes each of these columns by itself."""

    def change(search: PlaceSearch, row: Row) -> Row | None:
        changed = {
            name: row[name] if row[name] is None else how(search.wording, row[name])
            for name, how in columns.items()
        }
        return None if all(row[name] == changed[name] for name in columns) else changed

    return change


_text, _json = Wording.blanked, Wording.blanked_json


def _entry(search: PlaceSearch, row: Row) -> Row | None:
    """An entry of the history stays what it is, without the words: calls keep their results."""
    wording = search.wording
    if not wording.everything and not wording.holds_json(row["body"]):
        return None
    entry = json.loads(row["body"])
    if entry.get("kind") == "said":
        by = entry.get("by")
        if by != search.person_id and (by or not row["is_mine"]):
            return None
    for name in ("text", "quote", "content", "file", "lost"):
        if isinstance(entry.get(name), str):
            entry[name] = wording.blanked(entry[name])
    if entry.get("pictures"):  # their names are words too
        entry["pictures"] = [one for one in entry["pictures"] if not wording.holds(one["path"])]
    for call in entry.get("calls") or ():
        # What a model wrote need not be JSON; what is sent anew must be.
        arguments = call["arguments"]
        call["arguments"] = "{}" if wording.everything else wording.blanked_call(arguments)
    return None if entry == json.loads(row["body"]) else {"body": dump(entry)}


def _part(search: PlaceSearch, row: Row) -> Row | None:
    """Markup cuts words apart: where the source has them and the markup seems not to, it goes."""
    wording, markup, source = search.wording, row["markup"], row["source"]
    if not wording.holds(source) and not wording.holds(markup):
        return None
    shown = wording.blanked(markup)
    if shown == markup and wording.holds(source):
        shown = ""
    return {"markup": shown, "source": wording.blanked(source)}


def _profile(wording: Wording, body: str) -> str:
    """What holds it is no longer known at all: a blank would be told as if it were a value."""

    def pruned(value: Any) -> Any:
        if isinstance(value, dict):
            parts = {name: pruned(one) for name, one in value.items()}
            return {name: one for name, one in parts.items() if one not in (None, [], {})}
        if isinstance(value, list):
            return [one for one in map(pruned, value) if one is not None]
        return None if isinstance(value, str) and wording.holds(value) else value

    return dump(pruned(json.loads(body))) if wording.holds_json(body) else body


def _items(wording: Wording, raw: str) -> str:
    """A list of texts, or of objects, without those that hold it."""
    items = json.loads(raw)
    left = [one for one in items if not wording.holds_json(json.dumps(one))]
    return raw if len(left) == len(items) else dump(left)


def _unique_name(search: PlaceSearch, row: Row, **columns: How) -> Row | None:
    """Names are unique: one that was blanked gets its number."""
    changed = _columns(name=_text, **columns)(search, row)
    if changed is not None and changed["name"] != row["name"]:
        changed["name"] = f"{row['key']} {changed['name']}"
    return changed


def _job(search: PlaceSearch, row: Row) -> Row | None:
    """Of everything, a person's jobs are dropped, and what the bot set up is no word of theirs."""
    return None if search.wording.everything else _unique_name(search, row, what=_json)


def _incoming(search: PlaceSearch, row: Row) -> Row | None:
    """An event that nobody has acted on yet stays one that can be read: of everything, too, only
    the words go that were said before, for what is new was not meant."""
    said = replace(search, wording=Wording(search.wording.phrases))
    return _columns(payload=_json)(said, row)


def _notice(search: PlaceSearch, row: Row) -> Row | None:
    """One that says the words; of everything, too, no other, for it may be the owner's."""
    said = replace(search, wording=Wording(search.wording.phrases))
    return _columns(name=_text, text=_text)(said, row)


def _former(search: PlaceSearch, row: Row) -> Row | None:
    """An earlier text of a file goes as a whole: else `/undo` would put a text with a gap into the
    file."""
    is_held = search.wording.holds(row["former"]) or search.wording.says(row["path"])
    return {} if is_held else None


def _made_of_all(search: PlaceSearch, row: Row) -> Row | None:
    """What may tell of anybody in a shared conversation is made anew of what is left there."""
    return {} if search.wording.everything else None


def _trace(search: PlaceSearch, row: Row) -> Row | None:
    """A turn that cannot be replayed any more: what it began with, and what its steps gave."""
    parts = (row["payload"], row["outputs"])
    if search.wording.everything:
        return None if parts == ("{}", "[]") else {}
    return {} if any(map(search.wording.holds_json, parts)) else None


def _prompt(search: PlaceSearch, row: Row) -> Row | None:
    """A kept text of a prompt, which holds notes, unless a turn of somebody else sent it too."""
    people = set(json.loads(row["people"]))
    says = search.wording.says(row["body"])
    # One that no turn names any more is nobody's: that it says the words is reason enough.
    is_theirs = people == {search.person_id} or (not people and says)
    return {} if is_theirs and (says or search.wording.everything) else None


# --- the places ----------------------------------------------------------------------------------

_IN_OWN = "(select value from json_each(:own) union select value from json_each(:touched))"
_SHARED = "(select value from json_each(:shared))"
_OF_PERSON = "(select run_id from turns where person_id = :person)"
_OF_TOUCHED = """(
    select run_id from messages
    where conversation_id in (select value from json_each(:touched))
)"""
# What was told in a shared conversation by the clock belongs to no turn.
_REPLIES = f"""(
    lane in (select value from json_each(:lanes)) or run_id in {_OF_PERSON}
    or run_id in {_OF_TOUCHED}
    or run_id is null and lane in (
        select lane from conversations where id in (select value from json_each(:touched))
    )
)"""  # noqa: S608
_DROP_STEPS = "delete from steps where run_id in (select value from json_each(:runs))"
_MARK_ERASED = """
update turns set payload = '{}', erased_ms = coalesce(erased_ms, :now)
where run_id in (select value from json_each(:runs)) and ended_ms is not null
"""


def _rows(
    kind: PlaceKind,
    table: str,
    where: str,
    *,
    key: str = "id",
    change: Change | None = None,
    **columns: How,
) -> ErasurePlace:
    """Return the rows of one table, where each of these columns may hold it."""
    changed = ", ".join(f"{name} = :{name}" for name in columns)
    return ErasurePlace(
        kind=kind,
        select=f"select {key} as key, {', '.join(columns)} from {table} where {where}",  # noqa: S608
        erase=(f"update {table} set {changed} where {key} = :key",),  # noqa: S608
        change=change or _columns(**columns),
    )


_OF_THEM = "person_id = :person"

# All but the facts: those go by way of what leaves tombstones. Prompts stand before traces, which
# say who was sent them.
PLACES = (
    ErasurePlace(
        kind=PlaceKind.PROMPT,
        # A turn names the text in the output of its first step.
        select="""
            with senders (digest, run_id, person_id) as materialized (
                select json_extract(output, '$.system'), turns.run_id, turns.person_id
                from steps join turns on turns.run_id = steps.run_id
                where steps.name = 'begin' and json_valid(output)
            )
            select texts.digest as key, body,
                json_group_array(distinct person_id) filter (where run_id is not null) as people,
                json_group_array(run_id) filter (where run_id is not null) as runs
            from texts left join senders on senders.digest = texts.digest group by texts.digest
        """,
        # With the steps of turns that cannot be told without it.
        erase=(_DROP_STEPS, _MARK_ERASED, "delete from texts where digest = :key"),
        change=_prompt,
    ),
    *(
        ErasurePlace(
            kind=kind,
            select=f"select rowid as key from {table} where conversation_id in {_SHARED}",  # noqa: S608
            erase=(f"delete from {table} where rowid = :key",),  # noqa: S608
            change=_made_of_all,
        )
        for kind, table in (
            (PlaceKind.SUMMARY, "compactions"),
            (PlaceKind.INSIGHT, "insights"),
        )
    ),
    ErasurePlace(
        kind=PlaceKind.FORMER,
        select="select id as key, path, former from former_files where person_id = :person",
        erase=("delete from former_files where id = :key",),
        change=_former,
    ),
    ErasurePlace(
        kind=PlaceKind.HISTORY,
        select=f"""
            select messages.id as key, body, turns.person_id = :person
                or conversation_id in (select value from json_each(:own)) as is_mine
            from messages left join turns on turns.run_id = messages.run_id
            where turns.person_id = :person or conversation_id in {_IN_OWN}
        """,  # noqa: S608
        erase=("update messages set body = :body where id = :key",),
        change=_entry,
    ),
    _rows(
        PlaceKind.SUMMARY,
        "compactions",
        f"conversation_id in {_IN_OWN}",
        summary=Wording.without,
        reason=_text,
    ),
    _rows(
        PlaceKind.INSIGHT,
        "insights",
        f"conversation_id in {_IN_OWN}",
        key="conversation_id",
        pins=_items,
        recommendations=_items,
    ),
    _rows(PlaceKind.NOTE, "notes", f"conversation_id in {_IN_OWN}", text=_text),
    ErasurePlace(
        kind=PlaceKind.REPLY,
        select=f"select id as key, text, revision, keyboard from outbox where {_REPLIES}",  # noqa: S608
        # A question about forgetting that was asked before names the words where it was sent:
        # there too it reads otherwise, as soon as a bot runs.
        erase=(
            """
            update outbox set text = :text, keyboard = :keyboard, revision = case
                when :revision is null and state = 'sent' and buttons like '%"mem:%' then :text
                else :revision end
            where id = :key
            """,
        ),
        change=_columns(text=_text, revision=_text, keyboard=_json),
    ),
    ErasurePlace(
        kind=PlaceKind.REPLY,
        select=f"""
            select outbox_id || '.' || n as key, outbox_id, n, markup, source from outbox_parts
            where outbox_id in (select id from outbox where {_REPLIES})
        """,  # noqa: S608
        erase=(
            """
            update outbox_parts set markup = :markup, source = :source
            where outbox_id = :outbox_id and n = :n
            """,
        ),
        change=_part,
    ),
    _rows(PlaceKind.QUESTION, "approvals", _OF_THEM, shows=_text, why=_text),
    _rows(PlaceKind.TASK, "children", f"run_id in {_OF_PERSON}", key="run_id", head=_text),
    _rows(
        PlaceKind.TASK,
        "signals",
        "key in (select 'child:' || run_id from turns where person_id = :person)",
        key="key",
        value=_json,
    ),
    _rows(
        PlaceKind.INCOMING,
        "inbox",
        "ended_ms is null and lane in (select value from json_each(:lanes))",
        change=_incoming,
        payload=_json,
    ),
    _rows(PlaceKind.PROFILE, "profiles", _OF_THEM, key="person_id", body=_profile),
    _rows(PlaceKind.PROFILE, "profile_changes", _OF_THEM, old=_json, new=_json, reason=_text),
    ErasurePlace(
        kind=PlaceKind.DOCUMENT,
        select="""
            select chunks.id as key, document_id, n, text
            from chunks join documents on documents.id = document_id where person_id = :person
        """,
        # A new id tells the search in memory that a passage has changed, and without its digest a
        # document that is saved once more is taken for a new one.
        erase=(
            "insert or replace into chunks (document_id, n, text) values (:document_id, :n, :text)",
            "update documents set digest = '' where id = :document_id",
        ),
        change=_columns(text=_text),
    ),
    _rows(
        PlaceKind.DOCUMENT,
        "documents",
        _OF_THEM,
        change=partial(_unique_name, source=_text),
        name=_text,
        source=_text,
    ),
    _rows(PlaceKind.JOB, "jobs", _OF_THEM, change=_job, name=_text, what=_json),
    _rows(
        PlaceKind.JOB,
        "job_runs",
        "job_id in (select id from jobs where person_id = :person)",
        key="rowid",
        result=_text,
        note=_text,
    ),
    # A job is mostly named by its own words: by that name its model calls are counted, and its
    # budget warned of, to nobody in particular.
    _rows(PlaceKind.JOB, "usage", _OF_THEM, job=_text),
    ErasurePlace(
        kind=PlaceKind.JOB,
        select="""
            select key, key as name, text from spending_notices where person_id in ('', :person)
        """,
        erase=("delete from spending_notices where key = :key",),
        change=_notice,
    ),
    _rows(PlaceKind.JOB, "tellings", _OF_THEM, text=_text, finding=_text, why=_text),
    _rows(PlaceKind.JOB, "events", _OF_THEM, name=_text, note=_text),
    ErasurePlace(
        kind=PlaceKind.TRACE,
        select=f"""
            select run_id as key, payload, json_array(run_id) as runs,
                (
                    select json_group_array(output) from steps
                    where steps.run_id = turns.run_id and output is not null
                ) as outputs
            from turns
            where (person_id = :person or run_id in {_OF_TOUCHED}) and ended_ms is not null
        """,  # noqa: S608
        erase=(_DROP_STEPS, _MARK_ERASED),
        change=_trace,
    ),
)

Found = list[tuple[ErasurePlace, PlaceSearch, list[Key]]]


def found_in(connection: sqlite3.Connection, search: PlaceSearch) -> Found:
    """Return what holds it, place by place. Where all of somebody is to go, also what tells others
    in shared conversations what the person said."""
    found = [(place, search, place.find(connection, search)) for place in PLACES]
    if search.wording.everything and search.told:
        others = search.among_others
        for place, _, own in tuple(found):
            keys = set(place.find(connection, others)) - set(own)
            found.append((place, others, list(keys)))
    return found


def counted(found: Found) -> Mapping[PlaceKind, int]:
    """Return how many rows of each kind."""
    counts: Counter[PlaceKind] = Counter()
    for place, _, keys in found:
        counts[place.kind] += len(keys)
    return +counts


# --- all of somebody -------------------------------------------------------------------------

_EVERYTHING = (
    *(
        f"delete from {table} where conversation_id in (select value from json_each(:own))"  # noqa: S608
        for table in ("insights", "compactions", "exchanges", "idle_timers", "notes", "messages")
    ),
    """
    delete from conversations
    where closed_ms is not null and id in (select value from json_each(:own))
    """,
    """
    update conversations set sent_from = 0, shortened_to = 0
    where id in (select value from json_each(:own))
    """,
    *(
        f"delete from {table} where person_id = :person"  # noqa: S608
        for table in ("profiles", "profile_changes", "documents", "events", "tellings")
    ),
    # What the bot and skills set up is no word of anybody.
    "delete from jobs where person_id = :person and set_by = 'person'",
)


def drop_everything(connection: sqlite3.Connection, search: PlaceSearch) -> None:
    """Whole conversations, the profile and documents: what need not stay as a blank."""
    for statement in _EVERYTHING:
        connection.execute(statement, search.values)


_TABLES = """
select name from sqlite_schema
where type = 'table' and name not like 'sqlite_%' and name not like 'exchange_words%'
order by name
"""
_RUNS = "select run_id from turns where person_id = :person"


def left_over(connection: sqlite3.Connection, search: PlaceSearch) -> tuple[list[str], list[str]]:
    """Tables in which the phrases still stand: in rows of this person, and in others.

    Looks at every column of every table, so that one that comes later is not overlooked. What is
    whose by more than its own row is for `ErasurePlace.find`.
    """
    mine, theirs = [], []
    runs = {run_id for (run_id,) in connection.execute(_RUNS, search.values)}
    for (table,) in connection.execute(_TABLES).fetchall():
        found = connection.execute(f'select * from "{table}"')  # noqa: S608 - a name of ours
        names = [column[0] for column in found.description]
        held = [
            dict(zip(names, row, strict=True))
            for row in found
            if any(isinstance(value, str) and search.wording.says(value) for value in row)
        ]
        # Steps of a turn that is not over are in use, and left by everybody else.
        of_person = [
            row
            for row in held
            if row.get("person_id") == search.person_id
            or (table == "steps" and row["run_id"] in runs)
        ]
        if of_person:
            mine.append(table)
        if len(of_person) < len(held):
            theirs.append(table)
    return mine, theirs
