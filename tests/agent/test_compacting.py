"""A history that is summed up, as a turn meets it: from the next turn on, before anything is cut,
and with every former request as a prefix in between."""

from __future__ import annotations

import json
import random
from datetime import UTC
from itertools import pairwise
from typing import Any

import pytest

from agent.history.compaction import SqliteCompactor
from agent.history.summaries import Summaries
from agent.prompt.tokens import estimate_tokens, text_of
from agent.turn.end import SHRUNK_NOTICE
from memory.records.errors import ContextTooLong
from memory.records.facts import Compaction, CompactionWanted
from memory.records.messages import PersonId
from memory.records.section import HistorySettings
from memory.records.transcript import Answered, Context, ModelRequest, ModelTraits, Said, ToolResult
from memory.records.usage import Charge, Purpose
from memory.stores.compactions import SqliteCompactions
from memory.stores.traces import SqliteTraces
from tests.agent.house import (
    OWNER,
    OWNER_IN_GROUP,
    FakeTool,
    House,
    Somebody,
    assert_grows,
    context,
    model,
    said,
    sent_bytes,
)
from tests.fakes import OneModel, OnText, calls
from tests.memory.history_kit import ScriptedCheap, Texts, detected

PREVIOUS = "## Previous Conversation Context"


class Kept(SqliteCompactor):
    """The real one, its calls kept."""

    def __init__(self, house: House, cheap: ScriptedCheap, options: HistorySettings) -> None:
        super().__init__(
            SqliteCompactions(house.database),
            OneModel(house.model),
            Summaries(cheap, Texts()),
            host_zone=UTC,
            options=options,
            now_ms=house.database.now_ms,
        )
        self.wanted: list[CompactionWanted] = []
        self.made: list[Compaction] = []

    async def compact(self, wanted: CompactionWanted) -> Compaction | None:
        self.wanted.append(wanted)
        made = await super().compact(wanted)
        self.made += [made] if made else []
        return made


class Summed:
    """A house in which histories are summed up."""

    def __init__(
        self,
        house: House,
        *,
        cheap: ScriptedCheap | None = None,
        options: HistorySettings | None = None,
    ) -> None:
        self.house = house
        self.cheap = cheap or ScriptedCheap(lambda prompt: detected("They spoke of boats."))
        self.compactor: Kept | None = None

        def made(house: House) -> Kept:
            self.compactor = Kept(house, self.cheap, options or HistorySettings())
            return self.compactor

        house.compactor = made

    async def after_turn(self, lane: str = OWNER.address.key) -> Compaction | None:
        """What is done behind the scenes."""
        conversation = await self.house.conversations.current(lane)
        charge = Charge(
            purpose=Purpose.COMPACTION,
            conversation=conversation,
            lane=lane,
            person_id=PersonId("p1"),
        )
        wanted = CompactionWanted(charge=charge)
        assert self.compactor is not None
        return await self.compactor.compact(wanted)


async def talk(house: House, turns: int, words: str = "so") -> None:
    for n in range(turns):
        house.model.add(f"fine {n}")
        await house.say(f"explain number {n} {words}")


def blocks(request: ModelRequest) -> list[str]:
    return [entry.text for entry in request.entries if isinstance(entry, Context)]


# --- from the next turn on -----------------------------------------------------------------------


async def test_the_summary_stands_once_and_from_then_on_the_history_only_grows(
    house: House,
) -> None:
    kept = Summed(house)
    script = model()

    async with house.opened(script):
        await talk(house, 26)
        made = await kept.after_turn()
        before = await house.rows("select sent_from from conversations")
        await talk(house, 6, "again")
        after = await house.rows("select sent_from from conversations")

    assert made is not None
    assert (before, after) == ([(0,)], [(made.sent_from,)])
    first, last = script.asked[26], script.asked[-1]
    assert len(said(first)) == 13
    assert f"{PREVIOUS}\nThey spoke of boats." in context(first)
    assert str(last.entries).count("They spoke of boats.") == 1
    assert_grows(script.asked[:26], house)
    assert_grows(script.asked[26:], house)


async def test_a_turn_that_began_is_not_touched(house: House) -> None:
    """Neither by a compaction nor by one that is taken back, in the middle of its rounds."""
    kept = Summed(house)

    async def compacts(text: str) -> str:
        assert await kept.after_turn() is not None
        return "done"

    async def restores(text: str) -> str:
        conversation = await house.conversations.current(OWNER.address.key)
        assert await SqliteCompactions(house.database).undo(conversation) is not None
        return "done"

    house.tools = [FakeTool("compacts", compacts), FakeTool("restores", restores)]
    script = model()

    async with house.opened(script):
        await talk(house, 26)
        script.add(calls(("compacts", "{}")), "Compacted.")
        await house.say("explain it")
        script.add(calls(("restores", "{}")), "Restored.")
        await house.say("explain that")

    compacting, restoring = script.asked[26:28], script.asked[28:30]
    assert_grows(script.asked[25:28], house)
    assert_grows(restoring, house)
    assert [len(said(request)) for request in compacting] == [27, 27]
    assert len(said(restoring[0])) == len(said(restoring[1])) == 14
    assert PREVIOUS in str(restoring[0].entries)


@pytest.mark.parametrize("somebody", [OWNER, OWNER_IN_GROUP], ids=["private", "group"])
async def test_a_summary_of_what_many_said_counts_as_text_of_others(
    house: House, somebody: Somebody
) -> None:
    kept = Summed(house)
    script = model(*["Fine."] * 28)
    lane = somebody.address.key

    async with house.opened(script):
        for n in range(26):
            await house.say(f"explain {n}", by=somebody)
        await kept.after_turn(lane)
        for n in range(2):
            await house.say(f"explain {n} again", by=somebody)
        later, first, before, *_ = await SqliteTraces(house.database).prompts(lane, limit=3)

    tainted = ["", *["what was said before in this group, summed up"] * 2]
    expected = tainted if somebody.is_group else ["", "", ""]
    assert [trace.begin["tainted"] for trace in (before, first, later)] == expected


# --- before anything is cut ----------------------------------------------------------------------


@pytest.mark.parametrize("window", [3_000, 6_000, 16_000])
async def test_what_does_not_fit_is_summed_up_before_the_turn(house: House, window: int) -> None:
    kept = Summed(house)
    script = model(traits=ModelTraits(window=window))

    async with house.opened(script):
        await talk(house, 40, "word " * 200)

    assert kept.compactor is not None
    assert kept.compactor.made
    assert all(wanted.forced for wanted in kept.compactor.wanted)
    for request in script.asked:
        sizes = [estimate_tokens(text_of(entry)) for entry in request.entries]
        assert sum(sizes) + estimate_tokens(request.system) <= window * 3 // 4
    told = [request for request in script.asked if PREVIOUS in str(request.entries)]
    assert len(told) >= 5
    # Nobody is disturbed by it.
    rows = await replies(house)
    assert not [text for text in rows if SHRUNK_NOTICE in text]


async def replies(house: House) -> list[str]:
    async with house.opened(model()):
        return [text for (text,) in await house.rows("select text from outbox")]


@pytest.mark.case("CO-07")
async def test_compactions_are_as_rare_as_three_calls_and_leave_room(house: House) -> None:
    kept = Summed(house, cheap=ScriptedCheap(lambda prompt: detected("On and on. " * 700)))
    script = model(traits=ModelTraits(window=8_000))

    async with house.opened(script):
        for n in range(40):
            script.add(f"fine {n}")
            await house.say(f"explain {n} " + "word " * 500)
            house.clock.move(1)
        sizes = [estimate_tokens(str(request.entries)) for request in script.asked]

    assert kept.compactor is not None
    assert 1 <= len(kept.compactor.made) <= 40 / 3
    assert all(made.tokens_after <= made.tokens_before * 0.75 for made in kept.compactor.made)
    assert max(sizes) < 8_000


@pytest.mark.case("CO-07", "HI-05")
async def test_twenty_large_results_in_one_turn_are_shortened_and_nothing_is_compacted_twice(
    house: House,
) -> None:
    house.steps_max = 25

    async def look(text: str) -> str:
        return "a word of it " * 460

    house.tools = [FakeTool("look", look)]
    kept = Summed(house)
    script = model(traits=ModelTraits(window=12_000))

    async with house.opened(script):
        await talk(house, 6, "word " * 300)
        script.add(*[calls(("look", json.dumps({"text": str(n)}))) for n in range(20)], "All seen.")
        reply = await house.say("look twenty times")
        script.add("Yes.")
        await house.say("was that all?")

    assert reply.endswith("All seen.")
    assert kept.compactor is not None
    assert len(kept.compactor.made) <= 2
    assert all("look twenty times" in said(request) for request in script.asked[6:26])


# --- an overflow that nobody foresaw -------------------------------------------------------------


def refusing_over(tokens: int) -> Any:
    async def answer(request: ModelRequest, on_text: OnText) -> Answered:
        size = estimate_tokens(request.system)
        size += sum(estimate_tokens(text_of(entry)) for entry in request.entries)
        if size > tokens:
            raise ContextTooLong("too long")
        return Answered(text=f"answer to {said(request)[-1][:20]}")

    return answer


@pytest.mark.case("HI-07")
async def test_an_overflow_is_summed_up_first_and_the_person_is_told_once(house: House) -> None:
    kept = Summed(house)
    script = model()

    async with house.opened(script):
        await talk(house, 12, "word " * 300)
        script.add(refusing_over(5_000), refusing_over(5_000), refusing_over(5_000))
        first = await house.say("and now?")
        second = await house.say("and then?")
        states = await house.rows("select count(*) from inbox where state = 'replied'")

    refused, answered, later = script.asked[12:]
    assert first == f"{SHRUNK_NOTICE}\n\nanswer to and now?"
    assert second == "answer to and then?"
    assert states == [(14,)]
    assert kept.compactor is not None
    (made,) = kept.compactor.made
    assert kept.compactor.wanted[-1].tokens_max > 0
    assert len(said(refused)) == 13
    assert said(answered)[-1] == "and now?"
    assert 1 < len(said(answered)) < 13
    assert "They spoke of boats." in str(answered.entries)
    assert "## Current Chat" in context(answered)
    assert made.summary == "They spoke of boats."
    assert_grows([answered, later], house)


async def test_in_the_middle_of_a_tool_run_the_turn_goes_on_with_what_it_did(house: House) -> None:
    async def look(text: str) -> str:
        return "seen"

    tool = FakeTool("look", look)
    house.tools = [tool]
    Summed(house)
    script = model()

    async with house.opened(script):
        await talk(house, 12, "word " * 300)
        script.add(calls(("look", "{}")), ContextTooLong("too long"), "Done.", "Still here.")
        reply = await house.say("look at it")
        await house.say("explain it")
        entries = await house.entries()

    assert reply == f"{SHRUNK_NOTICE}\n\nDone."
    assert len(tool.ran) == 1
    after = script.asked[-2]
    assert [entry.content for entry in after.entries if isinstance(entry, ToolResult)] == ["seen"]
    assert "They spoke of boats." in str(after.entries)
    assert sum("They spoke of boats." in text for text in blocks(script.asked[-1])) == 1
    assert_grows(script.asked[-2:], house)
    assert isinstance(entries[0], Said)


async def test_a_history_that_is_not_to_blame_is_not_summed_up(house: House) -> None:
    kept = Summed(house)
    script = model()

    async with house.opened(script):
        await talk(house, 2)
        script.add(ContextTooLong("too long"), "Fits.")
        await house.say("and now?")

    assert kept.compactor is not None
    assert kept.compactor.made == []


# --- the prefix, with compactions at any time ----------------------------------------------------


@pytest.mark.case("PR-01")
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_between_compactions_each_request_begins_with_the_whole_former_one(
    house: House, seed: int
) -> None:
    chance = random.Random(seed)

    async def work(text: str) -> str:
        return "r " * chance.randint(1, 40)

    house.tools = [FakeTool("work", work)]
    options = HistorySettings(messages_max=12, compact_every_s=0)
    kept = Summed(house, options=options)
    script = model()
    began: list[int] = []

    async with house.opened(script):
        for n in range(40):
            if chance.random() < 0.4:
                script.add(calls(("work", "{}")))
            script.add(f"answer {n}")
            await house.say(f"explain {n} {'w ' * chance.randint(0, 60)}")
            house.clock.move(60)
            if await kept.after_turn() is not None:
                began.append(len(script.asked))

    assert len(began) >= 4
    for start, end in pairwise([0, *began, len(script.asked)]):
        assert_grows(script.asked[start:end], house)
        if start:
            summaries = sent_bytes(script.asked[end - 1], house).count(b"They spoke of boats.")
            assert summaries == 1
