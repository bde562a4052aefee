"""Forgetting with proof: every place is found and told, then erased, then looked for byte by byte.

What is under way is written down first, so that a kill at any moment is made up for: by the same
wish, or by `resume` at the next start. Used by `bot.commands.memory`.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import structlog

from memory.database.backup import all_backups, empty_wal, make_anew, renew_backups
from memory.database.connection import Database
from memory.database.errors import storage_error
from memory.database.premises import Premises, note_files, text_of
from memory.erasure.note import NAME, ForgetNote
from memory.erasure.place_rows import places
from memory.erasure.places import (
    ErasurePlace,
    Key,
    PlaceSearch,
    counted,
    facts_holding,
    is_busy,
    left_over,
    located,
    scopes_of,
)
from memory.erasure.plan import asked, search_of, similar, together
from memory.erasure.run import BUSY, check_idle, check_space, clean_file, erase_rows, looking
from memory.erasure.verify import Scan, Wording, scan
from memory.facts.tombstones import add, matching
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
from memory.records.facts import Facts, Whose
from memory.records.ports import Clock
from memory.stores.conversations import SqliteConversations

log = structlog.get_logger()

T = TypeVar("T")

ROUNDS_MAX = 3
"""How often rows are looked for again: somebody may have been told of them meanwhile."""

BUSY_TRIES, BUSY_PAUSE_S = 60, 1.0
BEGUN = (
    "It is begun, but not finished: another message of this person is being answered meanwhile, "
    "and what is in use cannot be erased under it. Say the same again once that is done."
)
READER_TRIES, READER_PAUSE_S = 20, 0.1


class Rebuilds(Protocol):
    """Something that is made of stored words, and can be made of them anew."""

    async def rebuild(self) -> object:
        """Reads all again. Raises StorageError."""


class Forgetting:
    """Finds and erases. One at a time; everything else goes on meanwhile."""

    def __init__(
        self,
        database: Database,
        facts: Facts,
        conversations: SqliteConversations,
        *,
        premises: Premises,
        clock: Clock,
        indexes: Sequence[Rebuilds] = (),
        revised: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`revised` hears that messages which were sent are to read otherwise."""
        self._database = database
        self._facts = facts
        self._conversations = conversations
        self._premises = premises
        self._clock = clock
        self._indexes = tuple(indexes)
        self._revised = revised
        self._note = ForgetNote(database.path.parent / NAME)
        self._lock = asyncio.Lock()

    # --- looking ------------------------------------------------------------------------------

    async def find(self, wish: ForgetWish) -> FoundPlaces:
        """Every place that holds it. Changes nothing. Raises StorageError, ForgettingRefused."""
        check_wish(wish)
        return await self._apart(self._find, wish)

    async def under_way(self) -> ForgetWish | None:
        """What was begun and not finished, as after a kill."""
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
            return await self._finish(*await self._begin(wish, begun), tell)

    async def resume(self, tell: Tell = lambda stage: None) -> Proof | None:
        """Finishes what a former process began; None where there is nothing. Raises as `forget`."""
        async with self._lock:
            begun = await self._apart(self._note.read)
            return None if begun is None else await self._finish(*begun, tell)

    async def _begin(
        self, wish: ForgetWish, begun: tuple[ForgetWish, Wording] | None
    ) -> tuple[ForgetWish, Wording]:
        """Writes down what is to be done, before anything is: with its words, which are soon
        nowhere else."""
        search = await self._apart(looking, self._path, lambda connection: asked(wish, connection))
        wording = search.wording
        if begun is not None:
            wish, wording = together(begun, (wish, wording))
        await self._apart(check_space, self._path)
        await self._apart(looking, self._path, lambda connection: check_idle(connection, search))
        await self._apart(self._note.write, wish, wording)
        log.info("forgetting.begun", person=wish.person_id, everything=wish.everything)
        return wish, wording

    async def _finish(self, wish: ForgetWish, wording: Wording, tell: Tell) -> Proof:
        search = await self._located(wish, wording)
        erased: dict[PlaceKind, int] = {}
        tell(ForgetStage.FACTS)
        _add(erased, {PlaceKind.FACT: await self._forget_facts(search)})
        tell(ForgetStage.ROWS)
        for _ in range(ROUNDS_MAX):
            counts = await self._erase_rows(search)
            if not counts:
                break
            _add(erased, counts)
        if self._revised is not None:
            await self._revised()
        # What was found in them meanwhile: from here on nothing of that kind is stored any more.
        _add(erased, {PlaceKind.FACT: await self._forget_facts(search)})
        tell(ForgetStage.FILES)
        cleaned, blanked = await self._apart(self._clean_files, wish, wording)
        _add(erased, {PlaceKind.FILE: cleaned})
        tell(ForgetStage.INDEX)
        for index in self._indexes:
            await index.rebuild()
        proof = await self._prove(wish, search, erased, tell)
        if not proof.ok:
            # Whoever was at work with it meanwhile has put it away by now.
            _add(erased, await self._erase_rows(search))
            proof = await self._prove(wish, search, erased, tell)
        await self._apart(self._note.remove)
        log.info("forgetting.done", person=wish.person_id, ok=proof.ok, files=proof.files)
        return replace(proof, blanked=tuple(blanked))

    async def _located(self, wish: ForgetWish, wording: Wording) -> PlaceSearch:
        search = search_of(wish, wording)
        return await self._apart(
            looking, self._path, lambda connection: located(connection, search)
        )

    async def _forget_facts(self, search: PlaceSearch) -> int:
        """By the store of facts, which leaves tombstones."""

        def work(connection: sqlite3.Connection) -> dict[str, list[int]]:
            return scopes_of(connection, facts_holding(connection, search))

        count = 0
        for scope, ids in (await self._apart(looking, self._path, work)).items():
            of = Whose(person_id=search.person_id, scope=scope)
            count += await self._facts.forget(of, ids)
        await self._database.write(partial(self._bury, search))
        return count

    def _bury(self, search: PlaceSearch, connection: sqlite3.Connection) -> None:
        """Words that were to be forgotten are not to be learnt again, as a fact of their own."""
        if search.wording.everything:
            return
        of, phrases = Whose(person_id=search.person_id), search.wording.phrases
        unknown = [text for text in phrases if not matching(connection, of, text)]
        add(connection, of, unknown, now_ms=self._database.now_ms())

    async def _erase_rows(self, search: PlaceSearch) -> Mapping[PlaceKind, int]:
        """All of them in one transaction, once nobody is in the middle of reading them."""
        spots = places(self._database.now_ms())
        for attempt in range(BUSY_TRIES):
            found = await self._apart(
                looking, self._path, lambda connection: _found_in(connection, search, spots)
            )
            try:
                await self._database.write(partial(erase_rows, search=search, found=found))
            except ForgettingRefused as error:
                if attempt == BUSY_TRIES - 1:
                    raise ForgettingRefused(BEGUN) from error
                await self._clock.sleep(BUSY_PAUSE_S)
                continue
            self._conversations.reread()
            return counted(found)
        raise AssertionError("the last try returns or raises")

    def _clean_files(self, wish: ForgetWish, wording: Wording) -> tuple[int, list[Path]]:
        """How many files of notes lost lines, and which others had the words blanked."""
        notes = note_files(self._premises, wish.person_id, is_owner=wish.is_owner)
        cleaned = sum(clean_file(path, wording.without_lines) for path in notes)
        if not wish.with_files:
            return cleaned, []
        said = Wording(wording.phrases)
        others = self._shared_files(wish, said)
        return cleaned, [path for path in others if clean_file(path, said.blanked)]

    # --- proving ------------------------------------------------------------------------------

    async def _prove(
        self, wish: ForgetWish, search: PlaceSearch, erased: Mapping[PlaceKind, int], tell: Tell
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
        found = await self._apart(self._scan, search.wording)
        proof = Proof(
            erased=erased,
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

    def _scan(self, wording: Wording) -> Scan:
        return scan(self._premises.root, wording.phrases, leaving_out=[self._note.path])

    def _judged(self, proof: Proof, wish: ForgetWish, search: PlaceSearch, found: Scan) -> Proof:
        """Tells what is a failure from what is others', and from what was left on purpose."""
        in_copies, hits, left, theirs = [], [], [], []
        for path in found.hits:
            if self._is_copy(path):
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
        mine, others = looking(self._path, lambda connection: self._standing(connection, search))
        # A file that was written anew holds what its rows hold, and nothing else.
        if not mine and not others:
            return replace(proof, hits=(*in_copies, *proof.hits))
        return replace(proof, tables=tuple(mine), theirs=tuple(others))

    def _standing(
        self, connection: sqlite3.Connection, search: PlaceSearch
    ) -> tuple[list[str], list[str]]:
        """Where the phrases stand in rows of this person, and in those of others."""
        mine, others = left_over(connection, search)
        said = replace(search, wording=Wording(search.wording.phrases))
        spots = places(self._database.now_ms())
        kinds = [kind.value for kind in counted(_found_in(connection, said, spots))]
        return [*mine, *kinds], others

    # --- steps --------------------------------------------------------------------------------

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
        spots = places(self._database.now_ms())

        def work(connection: sqlite3.Connection) -> tuple[Wording, FoundPlaces]:
            search = asked(wish, connection)
            facts = facts_holding(connection, search)
            counts = {PlaceKind.FACT: len(facts)} if facts else {}
            counts.update(counted(_found_in(connection, search, spots)))
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
        found = scan(self._premises.workspace, wording.phrases, leaving_out=mine)
        return [path for path in found.hits if not self._is_of_another(path, wish)]

    def _is_of_another(self, path: Path, wish: ForgetWish) -> bool:
        return self._premises.is_of_another(path, wish.person_id, is_owner=wish.is_owner)

    def _is_copy(self, path: Path) -> bool:
        """Of the database: itself, what SQLite puts beside it, today's backup."""
        beside = {self._path.name + ending for ending in ("", "-wal", "-shm")}
        is_main = path.parent == self._path.parent and path.name in beside
        return is_main or path in self._copies()

    def _copies(self) -> list[Path]:
        return all_backups(self._path, self._premises.backups, now=self._database.now())


# --- steps ------------------------------------------------------------------------------------


def _found_in(
    connection: sqlite3.Connection, search: PlaceSearch, spots: Sequence[ErasurePlace]
) -> list[tuple[ErasurePlace, Sequence[Key]]]:
    return [(place, place.find(connection, search)) for place in spots]


def _add(erased: dict[PlaceKind, int], more: Mapping[PlaceKind, int]) -> None:
    for kind, count in more.items():
        if count:
            erased[kind] = erased.get(kind, 0) + count
