"""Facts of people: what they said that is worth keeping for months.

One object for a database: what is stored is compared with what is there, one after the other, by
the rules of writing (SPEC §9) and in one transaction.
"""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import structlog

from memory.database.connection import Database
from memory.database.rows import storable
from memory.facts import tombstones
from memory.facts.rows import (
    Narrowed,
    close,
    erase,
    holding,
    insert,
    owned_by,
    refresh,
    reopen,
    replaced_by,
    seen_by,
    select,
    select_ids,
    use,
)
from memory.facts.secrets import secret_in
from memory.facts.similarity import (
    fitting,
    gist,
    is_about_self,
    is_small_talk,
    says_more,
    says_the_same,
    sentence,
    speaks_of_self,
    stands_in,
)
from memory.records.errors import StorageError
from memory.records.facts import (
    FACT_CHARS_MAX,
    Corrected,
    NewFact,
    Stored,
    StoredFact,
    Storing,
    Whose,
)
from memory.records.messages import RunId
from memory.records.text import clean
from memory.records.words import after_name, fold
from memory.search.indexes import Indexes

WHY_EMPTY = "There is nothing in it to remember."
WHY_LONG = (
    f"It is longer than {FACT_CHARS_MAX} characters. Say it in one sentence, "
    "or put it into the notes."
)
WHY_FORGOTTEN = (
    "You asked me to forget this, so I do not learn it again by myself. "
    "Tell me to remember it, and I will."
)
WHY_GONE = "The message that it was found in is not there any more."
_DIRECTIONS = re.compile("[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")
_LINE = "select body from messages where id = ?"
_NAME_OF = "select name from people where id = ?"
_HOMES = "(text like '%live%' or text like '%living%')"
_LIVES = re.compile(
    r"(?:(?P<who>[^,;?]{1,60}?) )?(?:[Ll]ives?|(?:is |am )?living) in (?P<place>[A-Z][\w-]+)"
)
_MOVED = re.compile(
    r"(?:(?P<who>[^,;?]{1,60}?) )?(?:has |have )?(?:just |recently )?[Mm]oved to "
    r"(?P<place>[A-Z][\w-]+(?: [A-Z][\w-]+)*)(?: last (?:week|month)| recently)?"
)
_SELF = frozenset(["", "i", "user", "the user", "person", "the person"])


def tidy(text: str) -> str:
    """One line, of Unicode alone, without what nobody sees: control characters (NUL), terminal
    codes, and marks that turn the direction, by which a text can pose as another one."""
    lines = storable(text).replace("\v", "\n").replace("\f", "\n")
    return " ".join(_DIRECTIONS.sub("", clean(lines)).split())


def refusal(text: str) -> str:
    """Why a text is not stored, whatever else is known; empty where it may be."""
    if not any(letter.isalnum() for letter in text):
        return WHY_EMPTY
    if len(text) > FACT_CHARS_MAX:
        return WHY_LONG
    if kind := secret_in(text):
        return (
            f"It holds {kind}. I do not keep secrets: whatever is remembered can turn up in "
            "prompts and exports. A password manager is the place for it."
        )
    return ""


def write(
    connection: sqlite3.Connection,
    new: NewFact,
    text: str,
    *,
    alike: Mapping[int, float | None],
    now_ms: int,
) -> Stored:
    """Store a text that is tidy and not refused, or say what stands in its way.

    `alike` are facts that look like it, most alike first, and how close they are in meaning.
    What says the same as a known fact refreshes it; what says the same and more takes its place.
    Raises ForgottenMeanwhile.
    """
    if new.generation is not None:
        if tombstones.generation(connection) != new.generation:
            raise tombstones.ForgottenMeanwhile
        if not _is_said(connection, new):
            return Stored(outcome=Storing.REFUSED, why=WHY_GONE)
    woken = tombstones.matching(connection, new.whose, text)
    if woken and not new.asked:
        return Stored(outcome=Storing.REFUSED, why=WHY_FORGOTTEN)
    tombstones.lift(connection, woken)
    own = holding(owned_by(new.whose))
    named = [] if new.replaces is None else [new.replaces]
    corrected = list(select_ids(connection, own, named).values())
    # Whoever corrects a fact chose the words: they are stored, however alike they are.
    reworded = {old.id for old in corrected if old.text != text}
    said = sentence(text)
    held = select_ids(connection, own, list(alike))
    same = [
        held[known]
        for known, likeness in alike.items()
        if known in held
        and known not in reworded
        and says_the_same(said, sentence(held[known].text), likeness)
    ]
    shorter = [fact for fact in same if says_more(said, sentence(fact.text))]
    if same and not shorter:
        fact = refresh(connection, same[0].id, confidence=new.confidence, now_ms=now_ms)
        closed = [old for old in corrected if old.id != fact.id]
    else:
        left = _homes_left(connection, new, text)
        closed = list({fact.id: fact for fact in (*shorter, *left, *corrected)}.values())
        fact = insert(connection, new, text, now_ms=now_ms)
    if not closed:
        is_known = bool(same)
        return Stored(outcome=Storing.REFRESHED if is_known else Storing.STORED, fact=fact)
    close(connection, [old.id for old in closed], by=fact.id, now_ms=now_ms)
    (replaced,) = select(connection, Narrowed("id = ?", (closed[-1].id,)))
    return Stored(outcome=Storing.SUPERSEDED, fact=fact, replaced=replaced)


def _is_said(connection: sqlite3.Connection, new: NewFact) -> bool:
    """Return whether the line that it rests on still stands, with its quote: it may have been
    erased in other ways than by a wish to forget."""
    if new.message_id is None:
        return True
    row = connection.execute(_LINE, (new.message_id,)).fetchone()
    text = json.loads(row[0]).get("text") if row else None
    return isinstance(text, str) and stands_in(new.quote, clean(text))


def _homes_left(connection: sqlite3.Connection, new: NewFact, text: str) -> list[StoredFact]:
    """Return the homes of somebody who moved: the one contradiction that is told without a model.

    `/remember` asks none, and where people live is what they correct most. Of anything else
    whoever writes the fact says what it replaces (`NewFact.replaces`); else both are kept, since to
    close a true fact does harm and to keep an old one beside it does little (until 2026-11 rules of
    English judged homes, jobs, ages and favourites by lists of towns and countries).
    """
    moved = _MOVED.fullmatch(text.rstrip(".!"))
    if moved is None:
        return []
    row = connection.execute(_NAME_OF, (new.whose.person_id,)).fetchone()
    names = [name for name in (row[0] if row else "", new.speaker) if name]
    facts = select(connection, holding(owned_by(new.whose)).and_(_HOMES))
    return [
        fact
        for fact in facts
        if (home := _LIVES.match(fact.text)) is not None
        and _person(home["who"], names) == _person(moved["who"], names)
        and not moved["place"].startswith(home["place"])
    ]


def _person(who: str | None, names: Sequence[str]) -> str:
    """Return whom a sentence is about, by its first words; empty for the person themselves."""
    called = fold(who or "")
    own = {part for name in names for part in (fold(name), *fold(name).split()[:1])}
    return "" if called in own | _SELF or any(after_name(called, n) == "" for n in own) else called


# --- store ----------------------------------------------------------------------------------------

ALIKE_MAX = 12
"""Facts that a new one is compared with."""
FOUND_MIN = 0.16
"""Plain cosine from which a fact that shares no word with a search has to do with it: words that
are none reach 0.15, and `food` 0.17 with an allergy."""
USES_KEPT_MS = 10 * 60_000
"""So long uses are counted in memory: a commit for each message would be too dear."""
_NEWEST = "id desc"
_LAST_CLOSED = "valid_to_ms desc, id desc"
# What tells most of somebody: who they are and what they want, sure, and often of use.
_MOST_TELLING = """
case category when 'background' then 0 when 'preference' then 0 when 'contact' then 1
    when 'project' then 1 when 'decision' then 2 else 2 end,
round(confidence, 1) desc, uses desc, id desc
"""

_log = structlog.get_logger(__name__)


class SqliteFacts:
    """Keeps facts of people. Raises StorageError. Every method filters by `whose`."""

    def __init__(self, database: Database, indexes: Indexes) -> None:
        self._database = database
        self._indexes = indexes
        self._lock = asyncio.Lock()
        self._uses: dict[int, int] = {}
        self._uses_since_ms = 0

    async def store(self, new: NewFact) -> Stored:
        """Stores one, by the rules of writing. Near-duplicates refresh what is known.

        Raises ForgottenMeanwhile where `new` names a generation that is over.
        """
        text = tidy(new.text)
        if why := refusal(text):
            return Stored(outcome=Storing.REFUSED, why=why)
        async with self._lock:
            facts = await self._indexes.search_own(new.whose, text, k=ALIKE_MAX)
            near = await self._indexes.likeness(text, [fact.text for fact in facts])
            # Most alike first, with how close they are in meaning, if that is known.
            alike: dict[int, float | None] = dict.fromkeys(fact.id for fact in facts)
            if near is not None:
                pairs = zip(facts, near, strict=True)
                closest = sorted(pairs, key=lambda pair: (-pair[1], pair[0].id))
                alike = {fact.id: close for fact, close in closest}
            return await self._database.write(
                partial(write, new=new, text=text, alike=alike, now_ms=self._now_ms())
            )

    async def generation(self) -> int:
        """Return how often something was forgotten so far."""
        return await self._database.read(tombstones.generation)

    async def get(self, of: Whose, fact_id: int) -> StoredFact | None:
        """One that this person may see here; also a closed one."""
        found = await self._database.read(partial(select_ids, where=seen_by(of), ids=[fact_id]))
        return found.get(fact_id)

    async def list(self, of: Whose, *, at: datetime | None = None) -> Sequence[StoredFact]:
        """Those that hold, or held at `at`; newest first."""
        where = holding(seen_by(of), at)
        return await self._database.read(partial(select, where=where, order=_NEWEST))

    async def closed(self, of: Whose, *, limit: int = -1) -> Sequence[StoredFact]:
        """Those that no longer hold, the last closed first; all without a limit."""
        where = seen_by(of).and_("valid_to_ms is not null")
        return await self._database.read(
            partial(select, where=where, order=_LAST_CLOSED, limit=limit)
        )

    async def corrected(self, of: Whose, *, since_ms: int, limit: int) -> Sequence[Corrected]:
        """Return what was replaced since then, the newest first, each with what took its place;
        without those of which that is gone."""
        where = seen_by(of).and_("superseded_by is not null and valid_to_ms >= ?", since_ms)

        def work(connection: sqlite3.Connection) -> list[Corrected]:
            old = select(connection, where, order=_LAST_CLOSED, limit=limit)
            after = [fact.superseded_by for fact in old if fact.superseded_by is not None]
            new = select_ids(connection, seen_by(of), after)
            return [
                Corrected(old=fact, new=new[fact.superseded_by])
                for fact in old
                if fact.superseded_by in new
            ]

        return await self._database.read(work)

    async def past(self, of: Whose, fact_id: int) -> Sequence[StoredFact]:
        """Return what it replaced, one after the other, newest first."""
        return await self._database.read(
            lambda c: sorted(
                replaced_by(c, seen_by(of), [fact_id]), key=lambda fact: fact.id, reverse=True
            )
        )

    async def search(
        self, of: Whose, query: str, *, k: int, at: datetime | None = None
    ) -> Sequence[StoredFact]:
        """The best `k` of those that hold (or held at `at`), best first; none that has nothing to
        do with the query. Asked about the person as such, the most telling ones."""
        if is_about_self(query):
            return await self.telling(of, k=k, at=at)
        if at is None:
            found = await self._indexes.search(of, query, k=k)
        else:
            found = await self._indexes.search_past(of, query, k=k, at=at)
        return await self._of_the_matter(query, found)

    async def telling(
        self, of: Whose, *, k: int, at: datetime | None = None
    ) -> Sequence[StoredFact]:
        """The `k` that say most about somebody, or about a group."""
        where = holding(seen_by(of), at)
        return await self._database.read(
            partial(select, where=where, order=_MOST_TELLING, limit=max(k, 0))
        )

    async def recall(self, of: Whose, message: str, *, k: int) -> Sequence[StoredFact]:
        """Up to `k` that have to do with a message, best first; they count as used. None for a
        greeting, and none where only the least unfit could be found."""
        message = gist(message)
        if is_about_self(message):
            found = await self.telling(of, k=k)
        elif is_small_talk(message):
            found = []
        else:
            found = await self._fitting(of, message, k=k)
        # Counts uses, and writes them from time to time. Those of the last minutes are lost with
        # the process, which does no harm.
        now_ms = self._now_ms()
        if not self._uses:
            self._uses_since_ms = now_ms
        for fact in found:
            self._uses[fact.id] = self._uses.get(fact.id, 0) + 1
        if self._uses and now_ms - self._uses_since_ms >= USES_KEPT_MS:
            uses, self._uses = self._uses, {}
            try:
                await self._database.write(partial(use, uses=uses, now_ms=now_ms))
            except StorageError as error:  # a message is answered all the same
                _log.warning("uses_not_counted", reason=str(error))
        return found

    async def forget(self, of: Whose, fact_ids: Sequence[int]) -> int:
        """Erases facts of this person with all that they replaced, and leaves tombstones; returns
        how many of the named went. Unknown ids are passed over."""
        now_ms = self._now_ms()

        def work(connection: sqlite3.Connection) -> int:
            own = owned_by(of)
            named = select_ids(connection, own, fact_ids)
            gone = named | {f.id: f for f in replaced_by(connection, own, list(named))}
            tombstones.add(connection, of, [fact.text for fact in gone.values()], now_ms=now_ms)
            erase(connection, gone)
            tombstones.raise_generation(connection)
            return len(named)

        async with self._lock:
            count = await self._database.write(work)
            if count:
                self._indexes.drop(of)
            return count

    async def undo(
        self, of: Whose, run_id: RunId
    ) -> tuple[Sequence[StoredFact], Sequence[StoredFact]]:
        """Takes back what a turn stored: returns those that went, and those that hold again."""

        def work(
            connection: sqlite3.Connection,
        ) -> tuple[list[StoredFact], list[StoredFact]]:
            own = owned_by(of)
            gone = {fact.id: fact for fact in select(connection, own.and_("run_id = ?", run_id))}
            if not run_id or not gone:
                return [], []
            replaced = replaced_by(connection, own, list(gone))
            back: list[int] = []
            handed_on: list[tuple[StoredFact, int]] = []
            for fact in replaced:
                if fact.id in gone or fact.superseded_by not in gone:
                    continue
                # What holds in place of it once these are gone; None: itself.
                heir: int | None = fact.superseded_by
                while heir in gone:
                    heir = gone[heir].superseded_by
                if heir is None:
                    back.append(fact.id)
                else:
                    handed_on.append((fact, heir))
            erase(connection, gone)
            reopen(connection, back)
            for fact, heir in handed_on:
                assert fact.valid_to_ms is not None, "what was replaced is closed"
                close(connection, [fact.id], by=heir, now_ms=fact.valid_to_ms)
            return list(gone.values()), list(select_ids(connection, own, back).values())

        async with self._lock:
            gone, back = await self._database.write(work)
            if gone:
                self._indexes.drop(of)
            return gone, back

    async def _of_the_matter(self, query: str, facts: Sequence[StoredFact]) -> Sequence[StoredFact]:
        """Those that share a word with the query, or come close in meaning: a search as such
        always finds something. Who asks for what is theirs (`Where do I live?`) gets all."""
        if speaks_of_self(query):
            return facts
        asked = sentence(query)
        likeness = await self._indexes.likeness(query, [fact.text for fact in facts])
        alike = likeness if likeness is not None else [0.0] * len(facts)

        def shares_a_word(fact: StoredFact) -> bool:
            # With what is said, with who said it, or with the day.
            day = datetime.fromtimestamp(fact.valid_from_ms / 1000, UTC)
            known = sentence(f"{fact.text} {fact.speaker} {day.day} {day:%B} {day.year}")
            return not {*asked.stems, *asked.signs}.isdisjoint({*known.stems, *known.signs})

        return [
            fact
            for fact, close in zip(facts, alike, strict=True)
            if close >= FOUND_MIN or shares_a_word(fact)
        ]

    async def _fitting(self, of: Whose, message: str, *, k: int) -> Sequence[StoredFact]:
        facts = await self._indexes.search(of, message, k=k)
        likeness = await self._indexes.likeness(message, [fact.text for fact in facts])
        if self._indexes.is_empty(of):
            return []
        if facts and likeness is not None:
            pairs = zip(facts, likeness, strict=True)
            return [fact for fact, alike in pairs if fitting(message, fact, alike)]
        # Words alone find little of what bears on somebody who speaks of themselves.
        more = await self.telling(of, k=k) if speaks_of_self(message) else []
        both = {fact.id: fact for fact in (*facts, *more) if fitting(message, fact, None)}
        return list(both.values())[:k]

    def _now_ms(self) -> int:
        return self._database.now_ms()
