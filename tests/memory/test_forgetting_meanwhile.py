"""What was begun before something was forgotten, and ends after it, brings nothing of it back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import pytest

from agent.history.compaction import SqliteCompactor
from agent.history.summaries import Summaries
from agent.learning.extraction import Extractor
from agent.learning.insights import InsightMaker
from memory.facts.insights import SqliteInsights
from memory.facts.tombstones import ForgottenMeanwhile
from memory.records.erasure import ForgetWish
from memory.records.facts import CompactionWanted, Storing, Whose
from memory.records.messages import Address, ConversationId, IncomingMessage, Role, TurnInput
from memory.records.request import ModelTraits
from memory.records.section import ExtractionSettings, HistorySettings
from memory.records.transcript import Answered, Said
from memory.records.usage import Charge, Purpose
from memory.stores.compactions import SqliteCompactions
from memory.stores.lines import SqliteLines
from tests.memory.extraction_kit import ANA, Talk, a_fact, answer, shipped
from tests.memory.facts_kit import fact
from tests.memory.forgetting_kit import Opened, database_of, opened_home
from tests.memory.history_kit import Texts, Window, detected
from tests.memory.kit import LANE, StillClock, rows, turn_end

CLINIC = "My clinic for chemo is in Zurich on Tuesdays"
WISHES = [
    ForgetWish(person_id=ANA.id, is_owner=True, phrases=("Zurich",)),
    ForgetWish(person_id=ANA.id, is_owner=True, everything=True),
]


class Waiting:
    """Implements `CheapModel`: answers once it may."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.asked = asyncio.Event()
        self.may = asyncio.Event()

    async def traits(self, lane: str) -> ModelTraits:
        return ModelTraits()

    async def ask(self, prompt: str, charge: Charge, *, tokens_max: int) -> str:
        self.asked.set()
        await self.may.wait()
        return self.line


async def forgotten_while(
    opened: Opened, model: Waiting, work: Callable[[], Awaitable[object]], wish: ForgetWish
) -> BaseException | None:
    """What the work raises when the wish is fulfilled while it waits for its model."""
    task = asyncio.ensure_future(work())
    await model.asked.wait()
    proof = await opened.forgetting.forget(wish)
    assert proof.ok
    model.may.set()
    (ended,) = await asyncio.gather(task, return_exceptions=True)
    return ended if isinstance(ended, BaseException) else None


async def talk(opened: Opened, *said: str) -> ConversationId:
    talking = Talk(opened.database)
    for text in said[:-1]:
        await talking.say(text)
    return await talking.say(said[-1])


@pytest.mark.parametrize("wish", WISHES)
async def test_facts_that_a_model_finds_meanwhile_are_not_stored(
    tmp_path: Path, wish: ForgetWish
) -> None:
    async with opened_home(tmp_path) as opened:
        conversation = await talk(opened, "Hello you", CLINIC, "What else", "I like tea a lot")
        model = Waiting(answer(a_fact("Ana's clinic for chemo is in Zurich.", CLINIC)))
        lines = SqliteLines(opened.database, lambda person_id: ANA)
        extractor = Extractor(
            lines, opened.facts, model, shipped(tmp_path).texts, options=ExtractionSettings()
        )

        raised = await forgotten_while(opened, model, lambda: extractor(conversation), wish)

        assert isinstance(raised, ForgottenMeanwhile)
        assert await opened.facts.list(Whose(person_id=ANA.id)) == []
        if not wish.everything:  # it is looked at anew later
            assert (await lines.since_last_look(conversation, exchanges_max=9)).has_news


@pytest.mark.parametrize("wish", WISHES)
async def test_a_summary_that_a_model_writes_meanwhile_is_not_stored(
    tmp_path: Path, wish: ForgetWish
) -> None:
    async with opened_home(tmp_path) as opened:
        said = [f"{CLINIC}, visit {n} {'bla ' * 200}" for n in range(12)]
        conversation = await talk(opened, *said)
        model = Waiting(detected("Ana gets chemo in a clinic in Zurich."))
        compactor = SqliteCompactor(
            SqliteCompactions(opened.database),
            Window(),
            Summaries(model, Texts()),
            host_zone=UTC,
            options=HistorySettings(tail_tokens=500),
            now_ms=opened.database.now_ms,
        )
        charge = Charge(
            purpose=Purpose.COMPACTION, conversation=conversation, lane=LANE, person_id=ANA.id
        )
        wanted = CompactionWanted(charge=charge, forced=True)

        await forgotten_while(opened, model, lambda: compactor.compact(wanted), wish)

        assert rows(database_of(tmp_path), "select summary from compactions") == []


@pytest.mark.parametrize("is_begun", [True, False])
async def test_notes_of_a_turn_that_was_erased_are_not_stored(
    tmp_path: Path, is_begun: bool
) -> None:
    async with opened_home(tmp_path) as opened:
        text = f"{CLINIC} near the lake, so please look for a train that gets me there in time"
        conversation = await talk(opened, text)
        model = Waiting(json.dumps({"pins": [f"{CLINIC}."], "recommendations": []}))
        maker = InsightMaker(
            SqliteInsights(opened.database), model, shipped(tmp_path).texts, StillClock()
        )
        message = IncomingMessage(
            address=Address.parse(LANE), message_id="1", sender_id="5", text=text
        )
        turn = TurnInput(
            message=message, conversation=conversation, person_id=ANA.id, role=Role.OWNER
        )
        end = turn_end("r1", conversation, entries=(Said(text=text), Answered(text="ok")))

        if is_begun:
            await forgotten_while(opened, model, lambda: maker.after(turn, end), WISHES[0])
        else:  # the turn is over, and its notes wait for their turn
            payload = json.dumps(turn.to_json())
            await opened.database.write(
                lambda c: c.execute("update turns set payload = ?", (payload,)).rowcount
            )
            await opened.forgetting.forget(WISHES[0])
            model.may.set()
            await maker.after(turn, end)

        assert rows(database_of(tmp_path), "select pins from insights") == []


async def test_a_line_that_is_gone_is_no_ground_for_a_fact(tmp_path: Path) -> None:
    async with opened_home(tmp_path) as opened:
        await talk(opened, CLINIC)
        new = replace(
            fact("Ana gets treated in Zurich.", Whose(person_id=ANA.id)),
            message_id=99,
            quote=CLINIC,
            generation=await opened.facts.generation(),
        )

        stored = await opened.facts.store(new)

        assert stored.outcome is Storing.REFUSED
