"""Forgetting with proof: every place is found and told, then erased, then looked for byte by byte.

What is under way is written down first, so that a kill at any moment is made up for: by the same
wish, or by `resume` at the next start. Used by `bot.commands.memory.commands`.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog

from memory.database.backup import all_backups, connect, empty_wal, make_anew, renew_backups
from memory.database.connection import Database, Work
from memory.database.errors import storage_error
from memory.database.premises import Premises, note_files, text_of
from memory.erasure.files import NAME, ForgetNote, check_space, clean_file
from memory.erasure.places import counted, drop_everything, found_in, left_over
from memory.erasure.plan import (
    PlaceSearch,
    asked,
    facts_holding,
    is_busy,
    located,
    search_of,
    similar,
    together,
)
from memory.erasure.verify import Scan, Wording, scan
from memory.facts.store import SqliteFacts
from memory.facts.tombstones import add, matching, raise_generation
from memory.records.erasure import (
    ForgetStage,
    ForgettingRefused,
    ForgetWish,
    FoundPlaces,
    PlaceKind,
    Proof,
    Tell,
    check_wish,
)
from memory.records.facts import Whose
from memory.records.ports import Clock
from memory.stores.conversations import SqliteConversations

log = structlog.get_logger()

T = TypeVar("T")

ROUNDS_MAX = 3
"""How often rows are looked for again: somebody may have been told of them meanwhile."""

BUSY_TRIES, BUSY_PAUSE_S = 60, 1.0
BUSY = (
    "A message of this person is being answered, or an answer of theirs is waited for "
    "(`/approve`, `/agents`). What is in use cannot be erased under it, so nothing was. Say it "
    "again once that is done; `/stop` ends it."
)
BEGUN = (
    "It is begun, but not finished: another message of this person is being answered meanwhile, "
    "and what is in use cannot be erased under it. Say the same again once that is done."
)
READER_TRIES, READER_PAUSE_S = 20, 0.1

_SCOPES = """
select scope, json_group_array(id) from facts where id in (select value from json_each(?))
group by scope order by scope
"""


class Forgetting:
    """Finds and erases. One at a time; everything else goes on meanwhile."""

    def __init__(
        self,
        database: Database,
        facts: SqliteFacts,
        conversations: SqliteConversations,
        *,
        premises: Premises,
        clock: Clock,
        rebuilds: Sequence[Callable[[], Awaitable[object]]] = (),
        revised: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`rebuilds` make anew what is made of stored words. `revised` hears that messages which
        were sent are to read otherwise."""
        self._database = database
        self._facts = facts
        self._conversations = conversations
        self._premises = premises
        self._clock = clock
        self._rebuilds = tuple(rebuilds)
        self._revised = revised
        self._note = ForgetNote(database.path.parent / NAME)
        self._lock = asyncio.Lock()

    # --- looking ------------------------------------------------------------------------------

    async def find(self, wish: ForgetWish) -> FoundPlaces:
        """Every place that holds it. Changes nothing. Raises StorageError, ForgettingRefused."""
        check_wish(wish)
        return await self._apart(self._find, wish)

    async def under_way(self) -> ForgetWish | None:
        """Return what was begun and not finished, as after a kill."""
        found = await self._apart(self._note.read)
        return None if found is None else found[0]

    # --- erasing ------------------------------------------------------------------------------

    async def forget(self, wish: ForgetWish, tell: Tell = lambda stage: None) -> Proof:
        """Erases it everywhere and looks whether that is so. May be repeated.

        Raises ForgettingRefused while it cannot be done, StorageError. Once it has begun, it is
        finished by a later call, or by `resume`.
        """
        check_wish(wish)
        async with self._lock:
            begun = await self._apart(self._note.read)
            if begun is not None and begun[0].person_id != wish.person_id:
                await self._finish(*begun, tell)
                begun = None
            search = await self._looking(lambda connection: asked(wish, connection))
            wording = search.wording
            if begun is not None:
                wish, wording = together(begun, (wish, wording))
            await self._apart(check_space, self._path)
            if await self._looking(lambda connection: is_busy(connection, search)):
                raise ForgettingRefused(BUSY)
            # Written down before anything is done: with its words, which are soon nowhere else.
            await self._apart(self._note.write, wish, wording)
            log.info("forgetting.begun", person=wish.person_id, everything=wish.everything)
            return await self._finish(wish, wording, tell)

    async def resume(self, tell: Tell = lambda stage: None) -> Proof | None:
        """Finishes what a former process began; None where there is nothing. Raises as `forget`."""
        async with self._lock:
            begun = await self._apart(self._note.read)
            return None if begun is None else await self._finish(*begun, tell)

    async def _finish(self, wish: ForgetWish, wording: Wording, tell: Tell) -> Proof:
        sought = search_of(wish, wording)
        search = await self._looking(lambda connection: located(connection, sought))
        erased: Counter[PlaceKind] = Counter()
        tell(ForgetStage.FACTS)
        erased[PlaceKind.FACT] += await self._forget_facts(search)
        tell(ForgetStage.ROWS)
        for _ in range(ROUNDS_MAX):
            counts = await self._erase_rows(search)
            if not counts:
                break
            erased.update(counts)
        if self._revised is not None:
            await self._revised()
        # What was found in them meanwhile: from here on nothing of that kind is stored any more.
        erased[PlaceKind.FACT] += await self._forget_facts(search)
        tell(ForgetStage.FILES)
        cleaned, blanked = await self._apart(self._clean_files, wish, wording)
        erased[PlaceKind.FILE] += cleaned
        tell(ForgetStage.INDEX)
        for rebuild in self._rebuilds:
            await rebuild()
        proof = await self._prove(wish, search, erased, tell)
        if not proof.ok:
            # Whoever was at work with it meanwhile has put it away by now.
            erased.update(await self._erase_rows(search))
            proof = await self._prove(wish, search, erased, tell)
        await self._apart(self._note.remove)
        log.info("forgetting.done", person=wish.person_id, ok=proof.ok, files=proof.files)
        return replace(proof, blanked=tuple(blanked))

    async def _forget_facts(self, search: PlaceSearch) -> int:
        """Forget facts by their store, which leaves tombstones, and have the words not learnt again
        as a fact of their own."""

        def scopes(connection: sqlite3.Connection) -> list[tuple[str, str]]:
            ids = json.dumps(facts_holding(connection, search))
            return connection.execute(_SCOPES, (ids,)).fetchall()

        def bury(connection: sqlite3.Connection) -> None:
            of, phrases = Whose(person_id=search.person_id), search.wording.phrases
            unknown = [text for text in phrases if not matching(connection, of, text)]
            add(connection, of, unknown, now_ms=self._database.now_ms())

        count = 0
        for scope, ids in await self._looking(scopes):
            of = Whose(person_id=search.person_id, scope=scope)
            count += await self._facts.forget(of, json.loads(ids))
        if not search.wording.everything:
            await self._database.write(bury)
        return count

    async def _erase_rows(self, search: PlaceSearch) -> Mapping[PlaceKind, int]:
        """All of them in one transaction, once nobody is in the middle of reading them."""
        now_ms = self._database.now_ms()

        def erase(connection: sqlite3.Connection) -> None:
            if is_busy(connection, search):
                raise ForgettingRefused(BEGUN)
            raise_generation(connection)
            if search.wording.everything:
                drop_everything(connection, search)
            for place, sought, keys in found:
                if keys:
                    place.clear(connection, sought, keys, now_ms=now_ms)

        for attempt in range(BUSY_TRIES):
            found = await self._looking(lambda connection: found_in(connection, search))
            try:
                await self._database.write(erase)
            except ForgettingRefused:
                if attempt == BUSY_TRIES - 1:
                    raise
                await self._clock.sleep(BUSY_PAUSE_S)
                continue
            self._conversations.reread()
            return counted(found)
        raise AssertionError("the last try returns or raises")

    def _clean_files(self, wish: ForgetWish, wording: Wording) -> tuple[int, list[Path]]:
        """Return how many files of notes lost lines, and which others had the words blanked."""
        notes = note_files(self._premises, wish.person_id, is_owner=wish.is_owner)
        cleaned = sum(clean_file(path, wording.without_lines) for path in notes)
        if not wish.with_files:
            return cleaned, []
        said = Wording(wording.phrases)
        others = self._shared_files(wish, said)
        return cleaned, [path for path in others if clean_file(path, said.blanked)]

    # --- proving ------------------------------------------------------------------------------

    async def _prove(
        self, wish: ForgetWish, search: PlaceSearch, erased: Counter[PlaceKind], tell: Tell
    ) -> Proof:
        tell(ForgetStage.ANEW)
        await self._database.between(make_anew)
        await self._empty_wal()
        tell(ForgetStage.BACKUPS)
        backup, dropped = await self._apart(
            renew_backups, self._path, self._premises.backups, self._database.now()
        )
        await self._empty_wal()
        tell(ForgetStage.SCAN)
        phrases, left_out = search.wording.phrases, [self._note.path]
        found = await self._apart(scan, self._premises.root, phrases, left_out)
        proof = Proof(
            erased=+erased,
            backup=backup,
            dropped=tuple(dropped),
            files=found.files,
            bytes=found.bytes,
            unread=found.unread,
        )
        return await self._apart(self._judged, proof, wish, search, found)

    async def _empty_wal(self) -> None:
        for _ in range(READER_TRIES):
            if await self._database.between(empty_wal):
                return
            await self._clock.sleep(READER_PAUSE_S)
        # What it still holds is found by the scan, and told.
        log.warning("forgetting.wal_in_use")

    def _judged(self, proof: Proof, wish: ForgetWish, search: PlaceSearch, found: Scan) -> Proof:
        """Tells what is a failure from what is others', and from what was left on purpose."""
        in_copies, hits, left, theirs = [], [], [], []
        for path in found.hits:
            # Of the database: itself, what SQLite puts beside it, today's backup.
            beside = {self._path.name + ending for ending in ("", "-wal", "-shm")}
            is_main = path.parent == self._path.parent and path.name in beside
            if is_main or path in self._copies():
                in_copies.append(path)
            elif self._is_of_another(path, wish):
                theirs.append(path)
            elif path.is_relative_to(self._premises.workspace) and not wish.with_files:
                left.append(path)
            else:
                hits.append(path)
        proof = replace(proof, hits=tuple(hits), left=tuple(left), their_files=tuple(theirs))
        if not in_copies:
            return proof
        mine, others = looking(self._path, partial(_standing, search=search))
        # A file that was written anew holds what its rows hold, and nothing else.
        if not mine and not others:
            return replace(proof, hits=(*in_copies, *proof.hits))
        return replace(proof, tables=tuple(mine), theirs=tuple(others))

    # --- steps --------------------------------------------------------------------------------

    async def _looking(self, work: Work[T]) -> T:
        return await self._apart(looking, self._path, work)

    async def _apart(self, work: Callable[..., T], *values: object) -> T:
        """Runs it in a thread. Raises StorageError for what the disk says."""
        try:
            return await asyncio.to_thread(work, *values)
        except OSError as error:
            path = Path(error.filename) if isinstance(error.filename, str) else self._path
            raise storage_error(error, path) from error

    @property
    def _path(self) -> Path:
        return self._database.path

    def _find(self, wish: ForgetWish) -> FoundPlaces:

        def work(connection: sqlite3.Connection) -> tuple[Wording, FoundPlaces]:
            search = asked(wish, connection)
            facts = facts_holding(connection, search)
            counts = {PlaceKind.FACT: len(facts)} if facts else {}
            counts.update(counted(found_in(connection, search)))
            return search.wording, FoundPlaces(
                counts=counts,
                facts=tuple(facts),
                similar=similar(connection, search) if wish.facts else (),
                refusal=BUSY if is_busy(connection, search) else "",
            )

        wording, found = looking(self._path, work)
        counts = dict(found.counts)
        notes = [
            path
            for path in note_files(self._premises, wish.person_id, is_owner=wish.is_owner)
            if wording.holds(text_of(path) or "")
        ]
        if notes:
            counts[PlaceKind.FILE] = len(notes)
        return replace(
            found,
            counts=counts,
            notes=tuple(notes),
            files=tuple(self._shared_files(wish, wording)),
            backups=len(self._copies()),
        )

    def _shared_files(self, wish: ForgetWish, wording: Wording) -> list[Path]:
        """Files of the workspace that have the words as they are, apart from anybody's notes."""
        mine = set(note_files(self._premises, wish.person_id, is_owner=wish.is_owner))
        found = scan(self._premises.workspace, wording.phrases, mine)
        return [path for path in found.hits if not self._is_of_another(path, wish)]

    def _is_of_another(self, path: Path, wish: ForgetWish) -> bool:
        return self._premises.is_of_another(path, wish.person_id, is_owner=wish.is_owner)

    def _copies(self) -> list[Path]:
        return all_backups(self._path, self._premises.backups, now=self._database.now())


def looking(path: Path, work: Work[T]) -> T:
    """Run `work` on a connection of its own that only reads, so that nobody is held up. Raise
    StorageError."""
    try:
        with closing(connect(path, mode="ro")) as connection:
            connection.execute("begin")
            return work(connection)
    except sqlite3.Error as error:
        raise storage_error(error, path) from error


def _standing(connection: sqlite3.Connection, search: PlaceSearch) -> tuple[list[str], list[str]]:
    """Return where the phrases stand in rows of this person, and in those of others."""
    mine, others = left_over(connection, search)
    said = replace(search, wording=Wording(search.wording.phrases))
    kinds = [kind.value for kind in counted(found_in(connection, said))]
    return [*mine, *kinds], others
