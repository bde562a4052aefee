"""The group `memory`: what is remembered of a person, in facts, notes, a profile and an archive."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import tzinfo

from pydantic import Field

from agent.tools.arguments import Arguments
from agent.tools.notes import AppendNotes, Notes, ReadNotes
from agent.tools.profile import (
    NOTHING_HERE,
    GetProfile,
    Household,
    MemoryRefused,
    UpdateProfile,
    as_of,
    here,
    named,
    own_fact,
    plain,
    sentence,
    shown,
)
from agent.tools.tool import Caller, Effect, Needs, Tool, ToolCard, Trust
from memory.records.facts import (
    FACT_CHARS_MAX,
    Archive,
    Category,
    Exchange,
    Facts,
    FactSource,
    NewFact,
    Profiles,
    StoredFact,
    Storing,
    place_of,
)

# --- remembering --------------------------------------------------------------------------------
#
# The tools that remember facts and forget them: lasting statements about a person.
#
# In a private chat they write what is the person's alone, in a group what belongs to this group;
# what somebody else said there is not touched.

FORGET_AMONG = 10
"""Facts that words are compared with."""

IDS_MAX = 20

AFTER_FORGETTING = (
    "It may still stand in notes and in earlier messages: `/memory forget` names every place, and "
    "erases it there too."
)


# --- store_fact ----------------------------------------------------------------------------------


class StoreFactArguments(Arguments):
    """A sentence to remember."""

    text: str = Field(
        min_length=1, max_length=FACT_CHARS_MAX, description="one sentence, in the third person"
    )
    category: Category
    replaces: str = Field(default="", description="the fact that it corrects, such as f12")
    quote: str = Field(
        default="", max_length=FACT_CHARS_MAX, description="the person's words that it rests on"
    )


class StoreFact(Tool):
    """Remembers a sentence for good. Run again it finds the sentence known, so it may be."""

    card = ToolCard(
        name="store_fact",
        description=(
            "Remember for good what stays true of the person. Not for secrets, nor for what is "
            "only worked on: that goes to notes."
        ),
        arguments=StoreFactArguments,
        group="memory",
        effect=Effect.PERSON,
        redo="idempotent",
        trust=Trust.OURS,
        status="remembering …",
    )

    def __init__(self, facts: Facts, household: Household) -> None:
        self._facts = facts
        self._household = household

    def needs(self, arguments: StoreFactArguments, caller: Caller) -> Needs:
        """See Tool: who is asked reads the sentence as it will stand there."""
        where = ("(for this group, whoever reads it)",) if caller.is_group else ()
        return Needs(shows=(f"remember: {sentence(arguments.text)}", *where))

    async def run(self, arguments: StoreFactArguments, caller: Caller) -> str:
        """What became of it."""
        await self._household.check_writable(caller)
        of = arguments.replaces
        replaced = await own_fact(self._facts, of, caller) if of else None
        new = NewFact(
            whose=here(caller),
            text=sentence(arguments.text),
            category=arguments.category,
            source=FactSource.TOOL,
            run_id=caller.run_id,
            quote=sentence(arguments.quote),
            speaker=self._household.name_of(caller.person_id),
            # One that was replaced already stays so: a call that is made again is no error.
            replaces=None if replaced is None or _is_past(replaced) else replaced.id,
            # A model's wish does not undo that somebody wished to be forgotten; a tap does.
            asked=caller.agreed,
        )
        return await _stored(self._facts, new)


async def _stored(facts: Facts, new: NewFact) -> str:
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


# --- update_fact ---------------------------------------------------------------------------------


class UpdateFactArguments(Arguments):
    """A fact, and how it should read."""

    id: str = Field(description="such as f12")
    text: str = Field(min_length=1, max_length=FACT_CHARS_MAX, description="the whole sentence")
    category: Category | None = None


class UpdateFact(Tool):
    """Corrects a fact: the old one is closed, and the new one holds in its place. Run again it
    finds that done."""

    card = ToolCard(
        name="update_fact",
        description="Correct a remembered fact by its id; the former one is kept as past.",
        arguments=UpdateFactArguments,
        group="memory",
        effect=Effect.PERSON,
        redo="idempotent",
        trust=Trust.OURS,
        status="remembering …",
    )

    def __init__(self, facts: Facts, household: Household) -> None:
        self._facts = facts
        self._household = household

    def needs(self, arguments: UpdateFactArguments, caller: Caller) -> Needs:
        """See Tool: who is asked reads the sentence as it will stand there."""
        former = f"(in place of {named(arguments.id)})"
        return Needs(shows=(f"remember: {sentence(arguments.text)}", former))

    async def run(self, arguments: UpdateFactArguments, caller: Caller) -> str:
        """What became of it."""
        await self._household.check_writable(caller)
        old = await own_fact(self._facts, arguments.id, caller)
        text = sentence(arguments.text)
        if _is_past(old):
            return await self._as_done(old, text, caller)
        new = NewFact(
            whose=here(caller),
            text=text,
            category=arguments.category or old.category,
            source=FactSource.TOOL,
            run_id=caller.run_id,
            speaker=self._household.name_of(caller.person_id),
            replaces=old.id,
            asked=caller.agreed,
        )
        return await _stored(self._facts, new)

    async def _as_done(self, old: StoredFact, text: str, caller: Caller) -> str:
        """Whether the wish is fulfilled already. Raises MemoryRefused when it is not."""
        of = old.superseded_by
        now = None if of is None else await self._facts.get(here(caller), of)
        if now is not None and now.text == text:
            return f"Known already, as {now.key}: {plain(now.text)}"
        holds = f"; {now.key} holds in its place" if now is not None else ""
        raise MemoryRefused(f"{old.key} is past already{holds}")


# --- forget_fact ---------------------------------------------------------------------------------


class ForgetFactArguments(Arguments):
    """Which facts, by their ids or by words."""

    id: str = Field(default="", max_length=200, description="such as f12, or several: f12, f13")
    query: str = Field(default="", max_length=FACT_CHARS_MAX, description="when the id is unknown")


class ForgetFact(Tool):
    """Erases facts with all that they replaced. By words alone only what can be meant by them."""

    card = ToolCard(
        name="forget_fact",
        description=(
            "Forget remembered facts for good, by id. By query it asks back when several fit."
        ),
        arguments=ForgetFactArguments,
        group="memory",
        effect=Effect.PERSON,
        redo="idempotent",
        trust=Trust.OURS,
        status="forgetting …",
    )

    def __init__(self, facts: Facts, household: Household) -> None:
        self._facts = facts
        self._household = household

    def needs(self, arguments: ForgetFactArguments, caller: Caller) -> Needs:
        """See Tool: what is erased cannot be had back, so nobody else may wish for it."""
        return Needs(risk="it erases what is remembered")

    async def run(self, arguments: ForgetFactArguments, caller: Caller) -> str:
        """What is forgotten, or which facts may be meant."""
        await self._household.check_writable(caller)
        keys = [key for key in re.split(r"[\s,;]+", arguments.id) if key]
        if len(keys) > IDS_MAX:
            raise MemoryRefused(f"these are too many at once (at most {IDS_MAX})")
        if keys:
            return await self._forgotten([await own_fact(self._facts, key, caller) for key in keys])
        if not arguments.query.strip():
            raise MemoryRefused("give an id, or words by which to find it")
        return await self._by_words(arguments.query, caller)

    async def _by_words(self, query: str, caller: Caller) -> str:
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


def _is_past(fact: StoredFact) -> bool:
    return fact.valid_to_ms is not None


def _words(text: str) -> set[str]:
    """Those that say something, folded."""
    return {word for word in re.findall(r"\w+", text.casefold()) if len(word) > 2 or word.isdigit()}


# --- recalling ----------------------------------------------------------------------------------
#
# The tools that look for what is remembered: facts, and what was said.
#
# In a group they find what belongs to this group, whoever said it, and nothing private of anybody.

FOUND_MAX = 20
LISTED_MAX = 100
PAST_LISTED_MAX = 20
"""Facts of which list_facts shows what they replaced: each is looked up by itself."""

EXCHANGES_MAX = 10
SIDE_CHARS_MAX = 300
"""Of what was said, and as many of what was answered."""


# --- search_memories -----------------------------------------------------------------------------


class SearchMemoriesArguments(Arguments):
    """What to look for, and as of when."""

    query: str = Field(min_length=1, max_length=FACT_CHARS_MAX)
    limit: int = Field(default=5, ge=1, le=FOUND_MAX)
    as_of: str = Field(default="", description="a date, such as 2026-03-01: what held then")


class SearchMemories(Tool):
    """Facts that fit a question, the best first."""

    card = ToolCard(
        name="search_memories",
        description="Search the facts remembered about the person, also as they were on a date.",
        arguments=SearchMemoriesArguments,
        group="memory",
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.UNTRUSTED,
        status="trying to remember …",
    )

    def __init__(self, facts: Facts, household: Household) -> None:
        self._facts = facts
        self._household = household

    def trust(self, caller: Caller) -> Trust:
        """See Tool: in a group it may be others who said it."""
        return Trust.UNTRUSTED if caller.is_group else Trust.OURS

    async def run(self, arguments: SearchMemoriesArguments, caller: Caller) -> str:
        """One line a fact."""
        if await self._household.is_off(caller):
            return NOTHING_HERE
        zone = self._household.zone_of(caller.person_id)
        at = as_of(arguments.as_of, zone)
        found = await self._facts.search(here(caller), arguments.query, k=arguments.limit, at=at)
        lines = [shown(fact, zone, credited=caller.is_group) for fact in found]
        return "\n".join(lines) or "Nothing that is remembered fits that."


# --- list_facts ----------------------------------------------------------------------------------


class ListFactsArguments(Arguments):
    """Which facts."""

    category: Category | None = None
    past: bool = Field(default=False, description="also what they replaced")


class ListFacts(Tool):
    """The facts that hold, the newest first."""

    card = ToolCard(
        name="list_facts",
        description="List what is remembered about the person, newest first.",
        arguments=ListFactsArguments,
        group="memory",
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.UNTRUSTED,
        status="trying to remember …",
    )

    def __init__(self, facts: Facts, household: Household) -> None:
        self._facts = facts
        self._household = household

    def trust(self, caller: Caller) -> Trust:
        """See Tool: in a group it may be others who said it."""
        return Trust.UNTRUSTED if caller.is_group else Trust.OURS

    async def run(self, arguments: ListFactsArguments, caller: Caller) -> str:
        """One line a fact, what it replaced indented below it."""
        if await self._household.is_off(caller):
            return NOTHING_HERE
        wanted = arguments.category
        all_of = await self._facts.list(here(caller))
        fit = [fact for fact in all_of if wanted in {None, fact.category}]
        lines = [
            line
            for place, fact in enumerate(fit[:LISTED_MAX])
            for line in await self._lines(
                fact, caller, past=arguments.past and place < PAST_LISTED_MAX
            )
        ]
        if len(fit) > LISTED_MAX:
            lines.append(f"[the newest {LISTED_MAX} of {len(fit):,}: search_memories finds others]")
        if arguments.past and len(fit) > PAST_LISTED_MAX:
            lines.append(f"[the past of the newest {PAST_LISTED_MAX} alone]")
        return "\n".join(lines) or "Nothing is remembered here."

    async def _lines(self, fact: StoredFact, caller: Caller, *, past: bool) -> list[str]:
        former = await self._facts.past(here(caller), fact.id) if past else ()
        zone = self._household.zone_of(caller.person_id)
        credited = caller.is_group
        return [
            shown(fact, zone, credited=credited),
            *(f"  before: {shown(one, zone, credited=credited)}" for one in former),
        ]


# --- search_conversations ------------------------------------------------------------------------


class SearchConversationsArguments(Arguments):
    """What was talked about."""

    query: str = Field(min_length=1, max_length=FACT_CHARS_MAX)
    limit: int = Field(default=5, ge=1, le=EXCHANGES_MAX)


class SearchConversations(Tool):
    """What this person said in this chat and what was answered, also what is no longer sent.
    Answers can quote pages and files, so all of it is outside text."""

    card = ToolCard(
        name="search_conversations",
        description="Search all that was said with the person in this chat, however long ago.",
        arguments=SearchConversationsArguments,
        group="memory",
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.UNTRUSTED,
        status="looking through our conversations …",
    )

    def __init__(self, archive: Archive, household: Household) -> None:
        self._archive = archive
        self._household = household

    async def run(self, arguments: SearchConversationsArguments, caller: Caller) -> str:
        """Each exchange with its time, the best first."""
        if await self._household.is_off(caller):
            return NOTHING_HERE
        zone = self._household.zone_of(caller.person_id)
        found = await self._archive.search(
            caller.person_id, place_of(caller.address), arguments.query, k=arguments.limit
        )
        lines = [_exchange(exchange, zone) for exchange in found]
        return "\n\n".join(lines) or "Nothing that was said here fits that."


def _exchange(exchange: Exchange, zone: tzinfo) -> str:
    when = exchange.when.astimezone(zone)
    return (
        f"{when:%Y-%m-%d %H:%M}\nsaid: {_side(exchange.said)}\nanswered: {_side(exchange.answered)}"
    )


def _side(text: str) -> str:
    flat = plain(text)
    return flat if len(flat) <= SIDE_CHARS_MAX else flat[: SIDE_CHARS_MAX - 1] + "…"


def memory_tools(
    facts: Facts, profiles: Profiles, archive: Archive, notes: Notes, *, household: Household
) -> tuple[Tool, ...]:
    """All tools of this group."""
    return (
        StoreFact(facts, household),
        SearchMemories(facts, household),
        ListFacts(facts, household),
        UpdateFact(facts, household),
        ForgetFact(facts, household),
        SearchConversations(archive, household),
        ReadNotes(notes, household),
        AppendNotes(notes, household),
        GetProfile(profiles, household),
        UpdateProfile(profiles, household),
    )
