"""The tools over facts, lasting statements about a person, and over what was said.

In a private chat they reach what is the person's alone, in a group what belongs to this group: what
somebody else said there is found, and not touched.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, tzinfo
from typing import Annotated

from pydantic import Field

from agent.prompt.templates import harmless
from agent.tools.tool import Caller, Effect, Needs, Trust, others_in_groups, tool
from memory.facts.store import SqliteFacts
from memory.records.errors import Permanent
from memory.records.facts import (
    FACT_CHARS_MAX,
    Category,
    FactSource,
    NewFact,
    StoredFact,
    Storing,
    Whose,
    fact_id_of,
    fact_key,
    place_of,
    whose,
)
from memory.records.messages import ConversationId, PersonId
from memory.records.ports import Clock
from memory.records.text import clean, one_line
from memory.search.archive import SqliteArchive

# --- household ----------------------------------------------------------------------------------
#
# What the tools of memory have to know of a person and a chat, and sentences that they share.

NOTHING_HERE = "Memory is off in this chat (`/private`), so nothing of it is looked at here."


class MemoryRefused(Permanent):
    """What cannot be remembered, found or forgotten like that; the text says why, for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonContext:
    """Who is called what, where their day begins, and in which chats memory is off.

    `name_of` gives a person's name, or nothing; `zone_of` their time zone, or that of the host.
    `is_private` may raise StorageError.
    """

    clock: Clock
    name_of: Callable[[PersonId], str]
    zone_of: Callable[[PersonId], tzinfo]
    is_private: Callable[[ConversationId], Awaitable[bool]]

    def now_of(self, person_id: PersonId) -> datetime:
        """This moment, on their clock."""
        return self.clock.now().astimezone(self.zone_of(person_id))

    async def is_off(self, caller: Caller) -> bool:
        """Return whether memory is off where a call comes from, or where its task was given: then
        nothing is found."""
        if caller.parent is not None and await self.is_private(caller.parent):
            return True
        return await self.is_private(caller.conversation)

    async def check_writable(self, caller: Caller) -> None:
        """Raises MemoryRefused where memory is off: then nothing is written, or taken away."""
        if await self.is_off(caller):
            raise MemoryRefused(
                "memory is off in this chat (`/private`), so nothing was changed in it. Say so; "
                "the person may say it again in another chat"
            )


# --- fact words ---------------------------------------------------------------------------------
#
# Facts in words for a model, and which fact a call means. Used by the tools of memory.


def shown(fact: StoredFact, zone: tzinfo, *, credited: bool = False) -> str:
    """A fact in one line that can pose as nothing else: `f12: … (preference, since 2026-03-01)`.

    With `credited` it says who said it.
    """
    told: list[str] = [fact.category]
    if credited and fact.speaker:
        told.append(f"said by {one_line(harmless(fact.speaker))}")
    told.append(f"since {_day(fact.valid_from_ms, zone)}")
    if fact.valid_to_ms is not None:
        told.append(f"until {_day(fact.valid_to_ms, zone)}")
    if fact.superseded_by is not None:
        told.append(f"then {fact_key(fact.superseded_by)}")
    return f"{fact.key}: {plain(fact.text)} ({', '.join(told)})"


def moment_of(text: str, zone: tzinfo) -> datetime | None:
    """The end of the day that a text names, in that zone; None where there is none.

    Raises MemoryRefused.
    """
    if not text.strip():
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise MemoryRefused("as_of is no date: write it like 2026-03-01") from error
    if moment.time() != time.min or "T" in text.strip().upper():
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)
    return datetime.combine(moment.date(), time.max, tzinfo=zone)


async def own_fact(facts: SqliteFacts, key: str, caller: Caller) -> StoredFact:
    """A fact of this person here. Raises MemoryRefused."""
    fact_id = fact_id_of(key)
    fact = None if fact_id is None else await facts.get(here(caller), fact_id)
    if fact is None:
        raise MemoryRefused(
            f"there is no fact {named(key)} here; list_facts and search_memories name them"
        )
    if fact.whose.person_id != caller.person_id:
        raise MemoryRefused(f"{fact.key} is somebody else's: only they may change or forget it")
    return fact


def here(caller: Caller) -> Whose:
    """Whose memory a call is about."""
    return whose(caller.person_id, caller.address, is_group=caller.is_group)


def sentence(text: str) -> str:
    """As it is stored: clean, and one line."""
    return " ".join(clean(text).split())


def plain(text: str) -> str:
    """A stored sentence in one line that can pose as nothing of ours."""
    return " ".join(harmless(text).split())


def named(key: str) -> str:
    """An id as a model gave it, if it is one."""
    fact_id = fact_id_of(key)
    return repr(one_line(key)) if fact_id is None else fact_key(fact_id)


def _day(at_ms: int, zone: tzinfo) -> date:
    return datetime.fromtimestamp(at_ms / 1000, tz=zone).date()


FORGET_AMONG = 10
"""Facts that words are compared with."""

IDS_MAX = 20

AFTER_FORGETTING = (
    "It may still stand in notes and in earlier messages: `/memory forget` names every place, and "
    "erases it there too."
)

FOUND_MAX = 20
LISTED_MAX = 100
PAST_LISTED_MAX = 20
"""Facts of which list_facts shows what they replaced: each is looked up by itself."""

EXCHANGES_MAX = 10
SIDE_CHARS_MAX = 300
"""Of what was said, and as many of what was answered."""


Query = Annotated[str, Field(min_length=1, max_length=FACT_CHARS_MAX)]


class FactTools:
    """Remembers, finds and forgets."""

    def __init__(
        self, facts: SqliteFacts, archive: SqliteArchive, household: PersonContext
    ) -> None:
        self._facts = facts
        self._archive = archive
        self._household = household

    def _store_fact_needs(self, caller: Caller, text: str) -> Needs:
        """Who is asked reads the sentence as it will stand there."""
        where = ("(for this group, whoever reads it)",) if caller.is_group else ()
        return Needs(shows=(f"remember: {sentence(text)}", *where))

    # Run again it finds the sentence known, so it may be.
    @tool(
        "memory", Effect.PERSON, redo="idempotent", needs=_store_fact_needs, status="remembering …"
    )
    async def store_fact(
        self,
        caller: Caller,
        text: Annotated[
            str,
            Field(
                min_length=1,
                max_length=FACT_CHARS_MAX,
                description="one sentence, in the third person",
            ),
        ],
        category: Category,
        replaces: Annotated[str, Field(description="the fact that it corrects, such as f12")] = "",
        quote: Annotated[
            str, Field(max_length=FACT_CHARS_MAX, description="the person's words that it rests on")
        ] = "",
    ) -> str:
        """Remember for good what stays true of the person. Not for secrets, nor for what is only
        worked on: that goes to notes."""
        await self._household.check_writable(caller)
        former = await own_fact(self._facts, replaces, caller) if replaces else None
        new = NewFact(
            whose=here(caller),
            text=sentence(text),
            category=category,
            source=FactSource.TOOL,
            run_id=caller.run_id,
            quote=sentence(quote),
            speaker=self._household.name_of(caller.person_id),
            # One that was replaced already stays so: a call that is made again is no error.
            replaces=None if former is None or _is_past(former) else former.id,
            # A model's wish does not undo that somebody wished to be forgotten; a tap does.
            asked=caller.agreed,
        )
        return await _stored(self._facts, new)

    @tool("memory", Effect.NONE, trust=others_in_groups, status="trying to remember …")
    async def search_memories(
        self,
        caller: Caller,
        query: Query,
        limit: Annotated[int, Field(ge=1, le=FOUND_MAX)] = 5,
        as_of: Annotated[str, Field(description="a date, such as 2026-03-01: what held then")] = "",
    ) -> str:
        """Search the facts remembered about the person, also as they were on a date."""
        if await self._household.is_off(caller):
            return NOTHING_HERE
        zone = self._household.zone_of(caller.person_id)
        at = moment_of(as_of, zone)
        found = await self._facts.search(here(caller), query, k=limit, at=at)
        lines = [shown(fact, zone, credited=caller.is_group) for fact in found]
        return "\n".join(lines) or "Nothing that is remembered fits that."

    @tool("memory", Effect.NONE, trust=others_in_groups, status="trying to remember …")
    async def list_facts(
        self,
        caller: Caller,
        category: Category | None = None,
        past: Annotated[bool, Field(description="also what they replaced")] = False,
    ) -> str:
        """List what is remembered about the person, newest first."""
        if await self._household.is_off(caller):
            return NOTHING_HERE
        all_of = await self._facts.list(here(caller))
        fit = [fact for fact in all_of if category in {None, fact.category}]
        zone, credited = self._household.zone_of(caller.person_id), caller.is_group
        lines: list[str] = []
        for place, fact in enumerate(fit[:LISTED_MAX]):
            lines.append(shown(fact, zone, credited=credited))
            if past and place < PAST_LISTED_MAX:
                former = await self._facts.past(here(caller), fact.id)
                lines += [f"  before: {shown(one, zone, credited=credited)}" for one in former]
        if len(fit) > LISTED_MAX:
            lines.append(f"[the newest {LISTED_MAX} of {len(fit):,}: search_memories finds others]")
        if past and len(fit) > PAST_LISTED_MAX:
            lines.append(f"[the past of the newest {PAST_LISTED_MAX} alone]")
        return "\n".join(lines) or "Nothing is remembered here."

    def _update_fact_needs(self, caller: Caller, id: str, text: str) -> Needs:
        """Who is asked reads the sentence as it will stand there."""
        former = f"(in place of {named(id)})"
        return Needs(shows=(f"remember: {sentence(text)}", former))

    # Corrects a fact: the old one is closed, and the new one holds in its place. Run again it
    # finds that done.
    @tool(
        "memory", Effect.PERSON, redo="idempotent", needs=_update_fact_needs, status="remembering …"
    )
    async def update_fact(
        self,
        caller: Caller,
        id: Annotated[str, Field(description="such as f12")],
        text: Annotated[
            str, Field(min_length=1, max_length=FACT_CHARS_MAX, description="the whole sentence")
        ],
        category: Category | None = None,
    ) -> str:
        """Correct a remembered fact by its id; the former one is kept as past."""
        await self._household.check_writable(caller)
        old = await own_fact(self._facts, id, caller)
        text = sentence(text)
        if _is_past(old):
            # Whether the wish is fulfilled already. Raises MemoryRefused when it is not.
            of = old.superseded_by
            now = None if of is None else await self._facts.get(here(caller), of)
            if now is not None and now.text == text:
                return f"Known already, as {now.key}: {plain(now.text)}"
            holds = f"; {now.key} holds in its place" if now is not None else ""
            raise MemoryRefused(f"{old.key} is past already{holds}")
        new = NewFact(
            whose=here(caller),
            text=text,
            category=category or old.category,
            source=FactSource.TOOL,
            run_id=caller.run_id,
            speaker=self._household.name_of(caller.person_id),
            replaces=old.id,
            asked=caller.agreed,
        )
        return await _stored(self._facts, new)

    # Erases facts with all that they replaced. By words alone only what can be meant by them.
    @tool(
        "memory",
        Effect.PERSON,
        redo="idempotent",
        needs=Needs(risk="it erases what is remembered"),
        status="forgetting …",
    )
    async def forget_fact(
        self,
        caller: Caller,
        id: Annotated[
            str, Field(max_length=200, description="such as f12, or several: f12, f13")
        ] = "",
        query: Annotated[
            str, Field(max_length=FACT_CHARS_MAX, description="when the id is unknown")
        ] = "",
    ) -> str:
        """Forget remembered facts for good, by id. By query it asks back when several fit."""
        await self._household.check_writable(caller)
        keys = [key for key in re.split(r"[\s,;]+", id) if key]
        if len(keys) > IDS_MAX:
            raise MemoryRefused(f"these are too many at once (at most {IDS_MAX})")
        if keys:
            return await self._forgotten([await own_fact(self._facts, key, caller) for key in keys])
        if not query.strip():
            raise MemoryRefused("give an id, or words by which to find it")
        found = await self._facts.search(here(caller), query, k=FORGET_AMONG)
        own = [fact for fact in found if fact.whose.person_id == caller.person_id]
        words = _words(query)
        meant = [fact for fact in own if words and words <= _words(fact.text)]
        if len(meant) == 1:
            return await self._forgotten(meant)
        if not own:
            raise MemoryRefused("nothing that is remembered here fits that")
        zone = self._household.zone_of(caller.person_id)
        lines = [shown(fact, zone) for fact in meant or own]
        raise MemoryRefused(
            "nothing was forgotten yet. Ask the person which of these is meant, and call again "
            "with its id:\n" + "\n".join(lines)
        )

    async def _forgotten(self, facts: Sequence[StoredFact]) -> str:
        of = facts[0].whose
        await self._facts.forget(of, [fact.id for fact in facts])
        named = "\n".join(f"{fact.key}: {plain(fact.text)}" for fact in facts)
        return f"Forgotten, with what was there before it:\n{named}\n{AFTER_FORGETTING}"

    # What this person said in this chat and what was answered, also what is no longer sent.
    # Answers can quote pages and files, so all of it is outside text.
    @tool(
        "memory", Effect.NONE, trust=Trust.UNTRUSTED, status="looking through our conversations …"
    )
    async def search_conversations(
        self, caller: Caller, query: Query, limit: Annotated[int, Field(ge=1, le=EXCHANGES_MAX)] = 5
    ) -> str:
        """Search all that was said with the person in this chat, however long ago."""
        if await self._household.is_off(caller):
            return NOTHING_HERE
        zone = self._household.zone_of(caller.person_id)
        found = await self._archive.search(
            caller.person_id, place_of(caller.address), query, k=limit
        )
        lines = [
            f"{exchange.when.astimezone(zone):%Y-%m-%d %H:%M}\nsaid: {_side(exchange.said)}\n"
            f"answered: {_side(exchange.answered)}"
            for exchange in found
        ]
        return "\n\n".join(lines) or "Nothing that was said here fits that."


async def _stored(facts: SqliteFacts, new: NewFact) -> str:
    """One sentence about what became of it. Raises MemoryRefused when nothing was stored."""
    if not new.text:
        raise MemoryRefused("there are no words in it")
    stored = await facts.store(new)
    fact = stored.fact
    if stored.outcome is Storing.REFUSED or fact is None:
        raise MemoryRefused(f"not remembered: {stored.why or 'it was refused'}")
    if stored.outcome is Storing.REFRESHED:
        return f"Known already, as {fact.key}: {plain(fact.text)}"
    told = f"Remembered as {fact.key}: {plain(fact.text)}"
    if (old := stored.replaced) is not None:
        told += f"\nIt replaces {old.key}: {plain(old.text)}"
    return told


def _is_past(fact: StoredFact) -> bool:
    return fact.valid_to_ms is not None


def _words(text: str) -> set[str]:
    """Those that say something, folded."""
    return {word for word in re.findall(r"\w+", text.casefold()) if len(word) > 2 or word.isdigit()}


def _side(text: str) -> str:
    flat = plain(text)
    return flat if len(flat) <= SIDE_CHARS_MAX else flat[: SIDE_CHARS_MAX - 1] + "…"
