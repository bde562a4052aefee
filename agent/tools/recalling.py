"""The tools that look for what is remembered: facts, and what was said.

In a group they find what belongs to this group, whoever said it, and nothing private of anybody.
"""

from __future__ import annotations

from datetime import tzinfo

from pydantic import Field

from agent.recalled import Exchange
from agent.remembering import FACT_CHARS_MAX, Archive, Category, Facts, StoredFact, place_of
from agent.tools.arguments import Arguments
from agent.tools.fact_words import as_of, here, plain, shown
from agent.tools.household import NOTHING_HERE, Household
from agent.tools.tool import Caller, Effect, ToolCard, Trust

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


class SearchMemories:
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
        """See SaysTrust: in a group it may be others who said it."""
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


class ListFacts:
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
        """See SaysTrust: in a group it may be others who said it."""
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


class SearchConversations:
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
