"""Nothing of one person reaches a prompt for another, nor what was said in private a group: whole
prompts and the tools that look things up, over a home in which every place holds a word of its
own."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.prompt.scene import PromptKind
from memory.records.errors import AssistantError
from tests.bot.canary_kit import Cage, Canary, Spot, opened_cage, spots
from tests.bot.canary_places import plant
from tests.thorough import THOROUGH, rounds

PROMPTS = rounds(75, 3_600)
SEARCHES = rounds(2, 25)
"""With each tool at each spot."""
KINDS = (*[PromptKind.CHAT] * 6, *PromptKind)

BY_TOOLS_ALONE = frozenset(
    {
        *("closed facts", "closed group facts", "sources of documents"),
        "sources of group documents",
    }
)
"""What no prompt shows to anybody."""
FOR_NOBODY = frozenset(
    {
        *("words of upcoming", "words of group upcoming"),
        *("pins of group history", "recommendations of group history"),
    }
)
"""What neither a prompt nor one of these tools shows: what is to be done once its time has come,
and what is never made of a group."""


@pytest.fixture
async def cage(tmp_path: Path) -> AsyncIterator[Cage]:
    async with opened_cage(tmp_path, embeddings=THOROUGH) as cage:
        await plant(cage)
        yield cage


def escaped(cage: Cage, spot: Spot, text: str) -> list[Canary]:
    """Those in a text that have no business there."""
    return [one for one in cage.canaries if one.word in text and not spot.may_see(one)]


async def said_by(cage: Cage, spot: Spot, name: str, arguments: dict[str, object]) -> str:
    """What a tool says, or why it does not."""
    try:
        return await cage.call(spot, name, **arguments)
    except AssistantError as refused:
        return str(refused)


def looks(cage: Cage, chance: random.Random) -> list[tuple[str, dict[str, object]]]:
    """Each tool that looks up what is remembered, asked for something."""
    word = chance.choice(cage.canaries)
    query = chance.choice((word.word, word.noun, cage.question(chance)))
    notes = chance.choice(("memory", "memory/people/p_ben", "memory/people/p_cem"))
    path = chance.choice((f"{notes}/MEMORY.md", f"{notes}/202608/20260801.md", "USER.md"))
    return [
        ("search_memories", {"query": query, "limit": 20}),
        ("search_memories", {"query": query, "as_of": "2026-08-01"}),
        ("list_facts", {"past": True}),
        ("search_conversations", {"query": query, "limit": 10}),
        ("search_documents", {"query": query}),
        ("list_documents", {}),
        ("get_profile", {}),
        ("read_notes", {"day": chance.choice(("", "today", "long-term"))}),
        ("list_jobs", {}),
        ("list_events", {}),
        ("read_file", {"path": path}),
        ("search_files", {"text": "called"}),
    ]


async def test_no_prompt_shows_what_belongs_to_others_or_elsewhere(cage: Cage) -> None:
    chance, places = random.Random(20), spots()
    for number in range(PROMPTS):
        spot = places[number % len(places)]
        kind, question = chance.choice(KINDS), cage.question(chance)

        sent = await cage.prompt(spot, question, kind)

        assert escaped(cage, spot, sent) == [], (spot, kind, question)


async def test_no_tool_finds_what_belongs_to_others_or_elsewhere(cage: Cage) -> None:
    chance = random.Random(21)
    for spot in spots():
        for name, arguments in (look for _ in range(SEARCHES) for look in looks(cage, chance)):
            told = await said_by(cage, spot, name, arguments)

            assert escaped(cage, spot, told) == [], (spot, name, arguments)


async def test_each_place_is_seen_by_whom_it_belongs_to(cage: Cage) -> None:
    chance, seen = random.Random(22), set[str]()
    for spot in (one for one in spots() if one.person.name == "Ann"):
        own = [one for one in cage.canaries if spot.may_see(one)]
        for noun in sorted({one.noun for one in own}):
            question = f"What do you know about the {noun} of mine, {noun}?"
            sent = await cage.prompt(spot, question)
            seen |= {one.place for one in own if one.word in sent}
    by_prompts = set(seen)
    for spot in spots()[:1] + spots()[6:7]:
        for name, arguments in (look for _ in range(4) for look in looks(cage, chance)):
            told = await said_by(cage, spot, name, arguments)
            seen |= {one.place for one in cage.canaries if one.word in told}

    every = {one.place for one in cage.canaries}
    assert every - by_prompts == BY_TOOLS_ALONE | FOR_NOBODY
    assert every - seen == FOR_NOBODY
