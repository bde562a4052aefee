"""Rows that may hold a person's words, table by table: which are looked at, and how each is blanked
so that it stays what it was. Called by `memory.erasure.erase`, by way of `places`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memory.database.stored_text import dump
from memory.erasure.places import ErasurePlace, KeptPrompts, Key, PlaceSearch, TurnTraces
from memory.erasure.verify import Wording
from memory.records.erasure import PlaceKind

# --- shared places ------------------------------------------------------------------------------
#
# What goes from conversations with others when somebody wants everything forgotten: summaries and
# notes as a whole, for they may tell of anybody, and what was told to others in that person's
# words.
#
# Called by `memory.erasure.place_rows`.


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeOfAll:
    """Rows that are made anew of what is left. `select` gives their keys; `drop` takes one."""

    kind: PlaceKind
    select: str
    drop: str

    def find(self, connection: sqlite3.Connection, search: PlaceSearch) -> Sequence[Key]:
        """Those of conversations in which the person spoke, when all of theirs is to go."""
        if not search.wording.everything:
            return []
        return [key for (key,) in connection.execute(self.select, search.values)]

    def erase(
        self, connection: sqlite3.Connection, search: PlaceSearch, keys: Sequence[Key]
    ) -> None:
        """Drops them."""
        connection.executemany(self.drop, [(key,) for key in keys])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldToOthers:
    """Rows of `place` that tell others what the person said."""

    place: ErasurePlace

    @property
    def kind(self) -> PlaceKind:
        return self.place.kind

    def find(self, connection: sqlite3.Connection, search: PlaceSearch) -> Sequence[Key]:
        """Those that are not the person's own, when all of theirs is to go."""
        if not search.wording.everything or not search.told:
            return []
        own = set(self.place.find(connection, search))
        found = self.place.find(connection, search.among_others)
        return [key for key in found if key not in own]

    def erase(
        self, connection: sqlite3.Connection, search: PlaceSearch, keys: Sequence[Key]
    ) -> None:
        """Takes it out of these rows."""
        self.place.erase(connection, search.among_others, keys)


_SHARED = "conversation_id in (select value from json_each(:shared))"

MADE_OF_ALL = (
    MadeOfAll(
        kind=PlaceKind.SUMMARY,
        select=f"select id from compactions where {_SHARED}",  # noqa: S608 - a constant
        drop="delete from compactions where id = ?",
    ),
    MadeOfAll(
        kind=PlaceKind.INSIGHT,
        select=f"select conversation_id from insights where {_SHARED}",  # noqa: S608
        drop="delete from insights where conversation_id = ?",
    ),
)


Row = tuple[Any, ...]


def places(now_ms: int) -> tuple[ErasurePlace, ...]:
    """All of them, but the facts: those go by way of what leaves tombstones. Prompts stand before
    traces, which say who was sent them."""
    traces = TurnTraces(now_ms=now_ms)
    others = (ToldToOthers(place=place) for place in (*_ROWS, traces))
    mine = (FormerTexts(), *_ROWS)
    return (KeptPrompts(now_ms=now_ms), *MADE_OF_ALL, *mine, traces, *others)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of one table. `select` gives the key, then what `change` makes the values of `update`
    of; None where the row does not hold it."""

    kind: PlaceKind
    select: str
    update: str
    change: Callable[[PlaceSearch, Row], Row | None]

    def find(self, connection: sqlite3.Connection, search: PlaceSearch) -> Sequence[Key]:
        """Which rows hold it."""
        found = connection.execute(self.select, search.values)
        return [row[0] for row in found if self.change(search, row) is not None]

    def erase(
        self, connection: sqlite3.Connection, search: PlaceSearch, keys: Sequence[Key]
    ) -> None:
        """Takes it out of these rows, as they are now."""
        wanted = set(keys)
        rows = [row for row in connection.execute(self.select, search.values) if row[0] in wanted]
        changed = (self.change(search, row) for row in rows)
        connection.executemany(self.update, [values for values in changed if values is not None])


def _plain(search: PlaceSearch, row: Row) -> Row | None:
    """Key and texts: the texts, blanked, and the key."""
    key, *texts = row
    blanked = [text if text is None else search.wording.blanked(text) for text in texts]
    return None if blanked == texts else (*blanked, key)


def _json(search: PlaceSearch, row: Row) -> Row | None:
    """The same, for texts that are JSON or none."""
    key, *texts = row
    wording = search.wording
    if not any(text and wording.holds_json(text) for text in texts):
        return None
    return (*(wording.blanked_json(text) if text else text for text in texts), key)


def _change(search: PlaceSearch, row: Row) -> Row | None:
    """A change of a profile: its two values are JSON, its reason is not."""
    key, old, new, reason = row
    values = _json(search, (key, old, new)) or (old, new, key)
    blanked = search.wording.blanked(reason)
    return None if (*values[:2], blanked) == (old, new, reason) else (*values[:2], blanked, key)


def _entry(search: PlaceSearch, row: Row) -> Row | None:
    """An entry of the history stays what it is, without the words: calls keep their results."""
    key, body, is_mine = row
    if not search.wording.everything and not search.wording.holds_json(body):
        return None
    entry = json.loads(body)
    if entry.get("kind") == "said":
        by = entry.get("by")
        if by != search.person_id and (by or not is_mine):
            return None
    for name in ("text", "quote", "content", "file", "lost"):
        if isinstance(entry.get(name), str):
            entry[name] = search.wording.blanked(entry[name])
    if entry.get("pictures"):  # their names are words too
        shown = [one for one in entry["pictures"] if not search.wording.holds(one["path"])]
        entry["pictures"] = shown
    for call in entry.get("calls") or ():
        call["arguments"] = _arguments(search.wording, call["arguments"])
    blanked = dump(entry)
    return None if entry == json.loads(body) else (blanked, key)


def _arguments(wording: Wording, arguments: str) -> str:
    """What a model wrote need not be JSON; what it sent anew must be."""
    if wording.everything:
        return "{}"
    return wording.blanked_call(arguments)


def _reply(search: PlaceSearch, row: Row) -> Row | None:
    """A message that went out, or is about to. Its buttons lead nowhere that words matter."""
    key, text, revision, keyboard = row
    plain = _plain(search, (key, text, revision)) or (text, revision, key)
    offered = _json(search, (key, keyboard)) or (keyboard, key)
    changed = (*plain[:2], offered[0])
    return None if changed == (text, revision, keyboard) else (*changed, key)


def _part(search: PlaceSearch, row: Row) -> Row | None:
    """Markup cuts words apart: where the source has them and the markup seems not to, it goes."""
    _, outbox_id, n, markup, source = row
    wording = search.wording
    if not wording.holds(source) and not wording.holds(markup):
        return None
    shown = wording.blanked(markup)
    if shown == markup and wording.holds(source):
        shown = ""
    return (shown, wording.blanked(source), outbox_id, n)


def _profile(search: PlaceSearch, row: Row) -> Row | None:
    """What holds it is no longer known at all: a blank would be told as if it were a value."""
    key, body = row
    wording = search.wording
    if not wording.holds_json(body):
        return None
    return (dump(_pruned(json.loads(body), wording)), key)


def _pruned(value: Any, wording: Wording) -> Any:
    if isinstance(value, dict):
        pruned = {name: _pruned(one, wording) for name, one in value.items()}
        return {name: one for name, one in pruned.items() if one not in (None, [], {})}
    if isinstance(value, list):
        return [one for one in (_pruned(one, wording) for one in value) if one is not None]
    return None if isinstance(value, str) and wording.holds(value) else value


def _insights(search: PlaceSearch, row: Row) -> Row | None:
    key, pins, recommendations = row
    kept = [_items(one, search.wording) for one in (pins, recommendations)]
    return None if kept == [pins, recommendations] else (*kept, key)


def _items(raw: str, wording: Wording) -> str:
    """A list of texts, or of objects, without those that hold it."""
    items = json.loads(raw)
    kept = [one for one in items if not wording.holds_json(json.dumps(one))]
    return raw if len(kept) == len(items) else dump(kept)


def _summary(search: PlaceSearch, row: Row) -> Row | None:
    key, summary, reason = row
    wording = search.wording
    if not wording.holds(summary) and not wording.holds(reason):
        return None
    return (wording.without(summary), wording.blanked(reason), key)


def _document(search: PlaceSearch, row: Row) -> Row | None:
    """Names are unique: one that was blanked gets its number."""
    key, name, source = row
    shown, origin = search.wording.blanked(name), search.wording.blanked(source)
    if (shown, origin) == (name, source):
        return None
    return (f"{key} {shown}" if shown != name else name, origin, key)


def _named(search: PlaceSearch, row: Row) -> Row | None:
    """What has a name of its own, as a job: the name may have to be unique."""
    key, name, body = row
    if search.wording.everything:
        return None
    shown = search.wording.blanked(name)
    what = search.wording.blanked_json(body) if search.wording.holds_json(body) else body
    if (shown, what) == (name, body):
        return None
    return (f"{key} {shown}" if shown != name else name, what, key)


def _incoming(search: PlaceSearch, row: Row) -> Row | None:
    """An event that nobody has acted on yet stays one that can be read: of everything, too, only
    the words go that were said before, for what is new was not meant."""
    said = replace(search, wording=Wording(search.wording.phrases))
    return _json(said, row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passages:
    """Passages of documents. A new id tells the search in memory that one has changed, and without
    its digest a document that is saved once more is taken for a new one."""

    kind: PlaceKind = PlaceKind.DOCUMENT

    _TEXTS = """
        select chunks.id, document_id, n, text
        from chunks join documents on documents.id = document_id where person_id = :person
    """
    _PUT = "insert or replace into chunks (document_id, n, text) values (?, ?, ?)"
    _UNMARK = "update documents set digest = '' where id = ?"

    def find(self, connection: sqlite3.Connection, search: PlaceSearch) -> Sequence[Key]:
        """Which passages hold it."""
        found = connection.execute(self._TEXTS, search.values)
        return [key for key, _, _, text in found if search.wording.holds(text)]

    def erase(
        self, connection: sqlite3.Connection, search: PlaceSearch, keys: Sequence[Key]
    ) -> None:
        """Blanks them."""
        wanted = set(keys)
        rows = connection.execute(self._TEXTS, search.values).fetchall()
        for key, document_id, n, text in rows:
            if key in wanted:
                values = (document_id, n, search.wording.blanked(text))
                connection.execute(self._PUT, values)
                connection.execute(self._UNMARK, (document_id,))


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerTexts:
    """Kept earlier texts of files. One that holds the words goes as a whole: else `/undo` would put
    a text with a gap into the file."""

    kind: PlaceKind = PlaceKind.FORMER

    _TEXTS = "select id, path, former from former_files where person_id = :person"
    _DROP = "delete from former_files where id = ?"

    def find(self, connection: sqlite3.Connection, search: PlaceSearch) -> Sequence[Key]:
        """Which texts hold it."""
        found = connection.execute(self._TEXTS, search.values)
        wording = search.wording
        return [key for key, path, former in found if wording.holds(former) or wording.says(path)]

    def erase(
        self, connection: sqlite3.Connection, search: PlaceSearch, keys: Sequence[Key]
    ) -> None:
        """Drops them."""
        connection.executemany(self._DROP, [(key,) for key in keys])


_IN_OWN = "(select value from json_each(:own) union select value from json_each(:touched))"
_OF_PERSON = "(select run_id from turns where person_id = :person)"

_ROWS = (
    Rows(
        kind=PlaceKind.HISTORY,
        select=f"""
            select messages.id, body, turns.person_id = :person
                or conversation_id in (select value from json_each(:own))
            from messages left join turns on turns.run_id = messages.run_id
            where turns.person_id = :person or conversation_id in {_IN_OWN}
        """,  # noqa: S608 - made of constants
        update="update messages set body = ? where id = ?",
        change=_entry,
    ),
    Rows(
        kind=PlaceKind.SUMMARY,
        select=f"""
            select id, summary, reason from compactions where conversation_id in {_IN_OWN}
        """,  # noqa: S608
        update="update compactions set summary = ?, reason = ? where id = ?",
        change=_summary,
    ),
    Rows(
        kind=PlaceKind.INSIGHT,
        select=f"""
            select conversation_id, pins, recommendations from insights
            where conversation_id in {_IN_OWN}
        """,  # noqa: S608
        update="update insights set pins = ?, recommendations = ? where conversation_id = ?",
        change=_insights,
    ),
    Rows(
        kind=PlaceKind.NOTE,
        select=f"select id, text from notes where conversation_id in {_IN_OWN}",  # noqa: S608
        update="update notes set text = ? where id = ?",
        change=_plain,
    ),
    Rows(
        kind=PlaceKind.REPLY,
        select=f"""
            select id, text, revision, keyboard from outbox
            where lane in (select value from json_each(:lanes)) or run_id in {_OF_PERSON}
                or run_id in (
                    select run_id from messages
                    where conversation_id in (select value from json_each(:touched))
                )
        """,  # noqa: S608
        # A question about forgetting that was asked before names the words where it was sent:
        # there too it reads otherwise, as soon as a bot runs.
        update="""
            update outbox set text = ?1, keyboard = ?3, revision = case
                when ?2 is null and state = 'sent' and buttons like '%"mem:%' then ?1 else ?2 end
            where id = ?4
        """,
        change=_reply,
    ),
    Rows(
        kind=PlaceKind.REPLY,
        select=f"""
            select outbox_id || '.' || n, outbox_id, n, outbox_parts.markup, outbox_parts.source
            from outbox_parts join outbox on outbox.id = outbox_id
            where lane in (select value from json_each(:lanes)) or run_id in {_OF_PERSON}
                or run_id in (
                    select run_id from messages
                    where conversation_id in (select value from json_each(:touched))
                )
        """,  # noqa: S608
        update="update outbox_parts set markup = ?, source = ? where outbox_id = ? and n = ?",
        change=_part,
    ),
    Rows(
        kind=PlaceKind.QUESTION,
        select="select id, shows, why from approvals where person_id = :person",
        update="update approvals set shows = ?, why = ? where id = ?",
        change=_plain,
    ),
    Rows(
        kind=PlaceKind.TASK,
        select=f"select run_id, head from children where run_id in {_OF_PERSON}",  # noqa: S608
        update="update children set head = ? where run_id = ?",
        change=_plain,
    ),
    Rows(
        kind=PlaceKind.TASK,
        select="""
            select key, value from signals join turns on key = 'child:' || turns.run_id
            where turns.person_id = :person
        """,
        update="update signals set value = ? where key = ?",
        change=_json,
    ),
    Rows(
        kind=PlaceKind.INCOMING,
        select="""
            select id, payload from inbox
            where ended_ms is null and payload is not null
                and lane in (select value from json_each(:lanes))
        """,
        update="update inbox set payload = ? where id = ?",
        change=_incoming,
    ),
    Rows(
        kind=PlaceKind.PROFILE,
        select="select person_id, body from profiles where person_id = :person",
        update="update profiles set body = ? where person_id = ?",
        change=_profile,
    ),
    Rows(
        kind=PlaceKind.PROFILE,
        select="select id, old, new, reason from profile_changes where person_id = :person",
        update="update profile_changes set old = ?, new = ?, reason = ? where id = ?",
        change=_change,
    ),
    Passages(),
    Rows(
        kind=PlaceKind.DOCUMENT,
        select="select id, name, source from documents where person_id = :person",
        update="update documents set name = ?, source = ? where id = ?",
        change=_document,
    ),
    Rows(
        kind=PlaceKind.JOB,
        select="select id, name, what from jobs where person_id = :person",
        update="update jobs set name = ?, what = ? where id = ?",
        change=_named,
    ),
    Rows(
        kind=PlaceKind.JOB,
        select="""
            select job_runs.rowid, result, note from job_runs join jobs on jobs.id = job_id
            where person_id = :person
        """,
        update="update job_runs set result = ?, note = ? where rowid = ?",
        change=_plain,
    ),
    Rows(
        kind=PlaceKind.JOB,
        select="select id, text, finding, why from tellings where person_id = :person",
        update="update tellings set text = ?, finding = ?, why = ? where id = ?",
        change=_plain,
    ),
    Rows(
        kind=PlaceKind.JOB,
        select="select id, name, note from events where person_id = :person",
        update="update events set name = ?, note = ? where id = ?",
        change=_plain,
    ),
)
