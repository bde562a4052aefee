"""What is remembered of people, as one service: kept, looked at, corrected, forgotten, taken along.

Slash commands, the command line and the App Home are faces of it. Who may change what is decided
here. It holds the stores that it is made of, for what needs no rule.
"""

from __future__ import annotations

import json
import re

from memory.database.connection import Database
from memory.database.premises import Premises
from memory.erasure.erase import Forgetting
from memory.facts.export import Transfer
from memory.facts.profile import SqliteProfiles
from memory.facts.store import SqliteFacts
from memory.records.erasure import ForgetWish
from memory.records.errors import Permanent
from memory.records.facts import (
    Category,
    FactSource,
    NewFact,
    Overview,
    Stored,
    StoredFact,
    Whose,
    fact_id_of,
    fact_key,
)
from memory.records.messages import PersonId, Role, RunId
from memory.records.rows import Person
from memory.search.documents import SqliteDocuments
from memory.stores.conversations import SqliteConversations
from memory.stores.sessions import SqlitePrivate, SqliteSessions
from memory.stores.traces import SqliteFormerFiles, SqliteTurnsDone

CORRECTED_WITHIN_MS = 14 * 24 * 3_600_000
CORRECTED_SHOWN = 5
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""How the id of somebody who was removed may look: folders are named after it."""
_IN_MIND = """
select pins, recommendations from insights
join conversations on conversations.id = conversation_id
where lane = ? and closed_ms is null and not is_private
"""


class UnknownFact(Permanent):
    """There is no such fact for this person in this place. `key` is how it was named."""

    def __init__(self, key: str) -> None:
        super().__init__(f"There is no fact {key[:40]!r} of this person; `/memory list` has all.")
        self.key = key


class FactOfAnother(Permanent):
    """Somebody else said it, so only they may change it."""

    def __init__(self, fact: StoredFact) -> None:
        super().__init__(f"{fact.key} is what somebody else said, so only they can change it.")


class FactClosed(Permanent):
    """It no longer holds, so there is nothing to correct."""

    def __init__(self, fact: StoredFact) -> None:
        super().__init__(f"{fact.key} no longer holds. `/remember TEXT` keeps it anew.")


class MemoryService:
    """Keeps, shows, corrects and erases what is remembered. Raises StorageError."""

    def __init__(
        self,
        database: Database,
        *,
        facts: SqliteFacts,
        profiles: SqliteProfiles,
        documents: SqliteDocuments,
        conversations: SqliteConversations,
        forgetting: Forgetting,
        premises: Premises,
    ) -> None:
        self._database = database
        self.facts = facts
        self.profiles = profiles
        self.documents = documents
        self.forgetting = forgetting
        self.transfer = Transfer(database, premises)
        sessions = SqliteSessions(database, erased=conversations.reread)
        self.private = SqlitePrivate(database, conversations, sessions, premises)
        self.turns = SqliteTurnsDone(database)
        self.former_files = SqliteFormerFiles(database)

    # --- looking ------------------------------------------------------------------------------

    async def overview(self, of: Whose, lane: str) -> Overview:
        """Return what is known here; of a private chat the profile too, and what is in mind for the
        open conversation at the address `lane`."""
        since_ms = self._database.now_ms() - CORRECTED_WITHIN_MS
        is_private = not of.scope
        rows = await self._database.rows(_IN_MIND, (lane,))
        items = [item for row in rows for part in row for item in json.loads(part)]
        texts = [item.get("text", "") if isinstance(item, dict) else item for item in items]
        in_mind = [text for text in texts if isinstance(text, str) and text]
        return Overview(
            facts=await self.facts.list(of),
            corrected=await self.facts.corrected(of, since_ms=since_ms, limit=CORRECTED_SHOWN),
            profile=tuple(await self.profiles.get(of.person_id)) if is_private else (),
            documents=len(await self.documents.list(of)),
            in_mind=in_mind if is_private else (),
        )

    async def fact(self, of: Whose, key: str) -> StoredFact:
        """Return the fact that `f12` names, also a closed one. Raise UnknownFact."""
        fact_id = fact_id_of(key)
        found = None if fact_id is None else await self.facts.get(of, fact_id)
        if found is None:
            raise UnknownFact(key if fact_id is None else fact_key(fact_id))
        return found

    async def own_fact(self, of: Whose, key: str) -> StoredFact:
        """Return one that this person may change. Raise UnknownFact, FactOfAnother."""
        found = await self.fact(of, key)
        if found.whose.person_id != of.person_id:
            raise FactOfAnother(found)
        return found

    async def keeps(self, person_id: PersonId) -> bool:
        """Return whether anything is kept of somebody, also of one who was removed, or is being
        forgotten just now."""
        if _ID.fullmatch(person_id) is None:
            return False
        begun = await self.forgetting.under_way()
        if begun is not None and begun.person_id == person_id:
            return True
        wish = ForgetWish(person_id=person_id, everything=True)
        return bool((await self.forgetting.find(wish)).counts)

    # --- changing -----------------------------------------------------------------------------

    async def remember(
        self, of: Whose, text: str, *, run_id: RunId | None = None, speaker: str = ""
    ) -> Stored:
        """Keep a sentence that the person wishes to be kept, whatever was forgotten before."""
        return await self.facts.store(
            NewFact(
                whose=of,
                text=text,
                category=guessed_category(text),
                source=FactSource.PERSON,
                run_id=run_id,
                speaker=speaker,
                asked=True,
            )
        )

    async def correct(
        self, of: Whose, key: str, text: str, *, run_id: RunId | None = None
    ) -> Stored:
        """Put a sentence in place of a fact, which stays as past.

        Raise UnknownFact, FactOfAnother, FactClosed.
        """
        fact = await self.own_fact(of, key)
        if fact.valid_to_ms is not None:
            raise FactClosed(fact)
        return await self.facts.store(
            NewFact(
                whose=fact.whose,
                text=text,
                category=fact.category,
                source=FactSource.PERSON,
                run_id=run_id,
                speaker=fact.speaker,
                replaces=fact.id,
                asked=True,
            )
        )

    async def wish(
        self,
        person: Person,
        what: str,
        of: Whose,
        *,
        lanes: tuple[str, ...] = (),
        with_files: bool = False,
    ) -> ForgetWish:
        """Return what is to be forgotten by words of a person: numbers of facts, `everything`, or
        else the words themselves.

        Raise UnknownFact, FactOfAnother; a fact that is being forgotten already, as after a kill,
        counts as known.
        """
        keys = what.replace(",", " ").split()
        ids = [fact_id_of(key) for key in keys]
        facts = tuple(one for one in ids if one is not None)
        is_numbers = bool(keys) and len(facts) == len(keys)
        everything = what.strip().lower() == "everything"
        if is_numbers:
            begun = await self.forgetting.under_way()
            known = begun.facts if begun is not None and begun.person_id == person.id else ()
            for fact_id in facts:
                if fact_id not in known:
                    await self.own_fact(of, fact_key(fact_id))
        return ForgetWish(
            person_id=person.id,
            facts=facts if is_numbers else (),
            phrases=() if is_numbers or everything or not keys else (what.strip(),),
            everything=everything,
            is_owner=person.role is Role.OWNER,
            lanes=lanes,
            with_files=with_files,
        )


_CATEGORIES: tuple[tuple[Category, re.Pattern[str]], ...] = (
    ("decision", re.compile(r"\b(decided?|decision|agreed|chose|settled on)\b", re.I)),
    (
        "preference",
        re.compile(
            r"\b(like|love|prefer|enjoy|hate|dislike|favou?rite|rather|without|always want|"
            r"never want|allergic)\w*\b",
            re.I,
        ),
    ),
    (
        "contact",
        re.compile(
            r"@|\b(phone|number|e-?mail|address|contact|wife|husband|partner|mother|father|sister|"
            r"brother|son|daughter|boss|colleague|doctor|dentist|friend)\b",
            re.I,
        ),
    ),
    ("project", re.compile(r"\b(project|working on|building|deadline|launch|release)\b", re.I)),
    ("pattern", re.compile(r"\b(every|each|usually|always|weekly|daily|mostly|often)\b", re.I)),
)


def guessed_category(text: str) -> Category:
    """Guess by simple words: what a person writes behind /remember has no category."""
    return next((name for name, words in _CATEGORIES if words.search(text)), "background")
