"""Forgetting while the bot runs, after a kill, and what was begun before it and ends after it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import pytest

from agent.history.compaction import SqliteCompactor
from agent.history.summaries import Summaries
from agent.learning.extraction import Extractor
from agent.learning.insights import InsightMaker
from memory.erasure.files import check_space
from memory.facts.insights import SqliteInsights
from memory.facts.tombstones import ForgottenMeanwhile
from memory.records.erasure import ForgetStage, ForgettingRefused, ForgetWish, Tell
from memory.records.errors import StorageFull
from memory.records.facts import CompactionWanted, Storing, Whose
from memory.records.messages import Address, ConversationId, IncomingMessage, Role, RunId, TurnInput
from memory.records.section import ExtractionSettings, HistorySettings
from memory.records.transcript import Answered, ModelTraits, Said
from memory.records.usage import Charge, Purpose
from memory.stores.compactions import SqliteCompactions
from memory.stores.lines import SqliteLines
from memory.stores.turns import SqliteJournal
from tests.memory.extraction_kit import ANA, Talk, a_fact, answer, shipped
from tests.memory.facts_kit import fact
from tests.memory.forgetting_kit import (
    ANN,
    ANNS_CHAT,
    BEN,
    FACT,
    SECRET,
    TRACES_OF_IT,
    Opened,
    Past,
    changed,
    database_of,
    files_with,
    opened_home,
    wish,
)
from tests.memory.history_kit import Texts, Window, detected
from tests.memory.kit import LANE, StillClock, rows, turn_end

# --- forgetting kills ----------------------------------------------------------------------------


async def test_a_turn_of_the_person_that_is_not_over_has_to_end_first(home: Path) -> None:
    with closing(sqlite3.connect(database_of(home))) as connection, connection:
        past = Past(connection, runs=50)
        past.turn(ANN, "c_ann", ANNS_CHAT, "Wait", "", is_open=True)

    async with opened_home(home) as opened:
        with pytest.raises(ForgettingRefused, match="/stop"):
            await opened.forgetting.forget(wish(facts=(1,)))
        assert await opened.forgetting.under_way() is None
    assert rows(database_of(home), "select count(*) from facts") == [(1,)]

    changed(home, "update turns set ended_ms = 1, status = 'done'")
    async with opened_home(home) as opened:
        assert (await opened.forgetting.forget(wish(facts=(1,)))).ok


async def test_turns_of_others_go_on_meanwhile(home: Path) -> None:
    with closing(sqlite3.connect(database_of(home))) as connection, connection:
        past = Past(connection, runs=50)
        past.turn(BEN, "c_ben", "telegram:6", "Wait", "", is_open=True)

    async with opened_home(home) as opened:
        journal, recorded = SqliteJournal(opened.database), 0

        async def works() -> None:
            nonlocal recorded
            while not done.is_set():
                await journal.record(RunId("in-51"), 10 + recorded, "model", {"n": recorded})
                await opened.conversations.history(ConversationId("c_ben"))
                recorded += 1

        done = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(works())
            proof = await opened.forgetting.forget(wish(facts=(1,)))
            done.set()

        assert proof.ok
        assert recorded > 0
        assert await opened.database.check() == ""
    steps = rows(database_of(home), "select count(*) from steps where run_id = 'in-51'")
    assert steps == [(recorded + 2,)]


async def test_without_room_for_the_copies_nothing_is_begun(home: Path) -> None:
    with pytest.raises(StorageFull, match="Nothing was erased"):
        check_space(database_of(home), free=1_000)


async def test_a_reader_that_holds_on_is_found_out_by_the_proof(home: Path) -> None:
    async with opened_home(home) as opened:
        with closing(sqlite3.connect(database_of(home))) as other:
            other.execute("begin")
            other.execute("select count(*) from messages").fetchone()
            held = await opened.forgetting.forget(wish(facts=(1,)))
        after = await opened.forgetting.forget(wish(phrases=(SECRET, FACT)))

    assert not held.ok
    assert any(path.name.startswith("hearthbot.db") for path in held.hits)
    assert after.ok


# --- killed --------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process ends here."""


def dies_at(stage: ForgetStage) -> Tell:
    def tell(now: ForgetStage) -> None:
        if now is stage:
            raise Killed

    return tell


@pytest.mark.parametrize("stage", list(ForgetStage))
async def test_killed_between_any_two_steps_the_next_start_finishes_it(
    home: Path, stage: ForgetStage
) -> None:
    with pytest.raises(Killed):
        async with opened_home(home) as opened:
            await opened.forgetting.forget(wish(facts=(1,)), dies_at(stage))

    async with opened_home(home) as opened:
        assert await opened.forgetting.under_way() is not None
        proof = await opened.forgetting.resume()

        assert proof is not None
        assert proof.ok
        assert await opened.forgetting.resume() is None
        assert await opened.database.check() == ""
    assert files_with(home, *TRACES_OF_IT) == []


async def test_what_is_written_again_meanwhile_is_erased_again(home: Path) -> None:
    async with opened_home(home) as opened:

        def write_again(stage: ForgetStage) -> None:
            """As a summary that was being made of the old words."""
            if stage is ForgetStage.ANEW and not written:
                written.append(stage)
                changed(home, "update compactions set summary = ?", f"Long ago. {SECRET}.")

        written: list[ForgetStage] = []
        proof = await opened.forgetting.forget(wish(facts=(1,)), write_again)

    assert written
    assert proof.ok
    assert files_with(home, *TRACES_OF_IT) == []
    assert rows(database_of(home), "select summary from compactions") == [("Long ago.",)]


async def test_what_a_turn_that_began_meanwhile_holds_is_a_failure(home: Path) -> None:
    async with opened_home(home) as opened:

        def begin(stage: ForgetStage) -> None:
            if stage is ForgetStage.SCAN and not begun:
                begun.append(stage)
                with closing(sqlite3.connect(database_of(home))) as connection, connection:
                    past = Past(connection, runs=90)
                    past.turn(ANN, "c_ann", ANNS_CHAT, f"{SECRET}", "", is_open=True)

        begun: list[ForgetStage] = []
        with pytest.raises(ForgettingRefused, match="begun, but not finished"):
            await opened.forgetting.forget(wish(facts=(1,)), begin)
        assert await opened.forgetting.under_way() is not None

        changed(home, "update turns set ended_ms = 1, status = 'done' where ended_ms is null")
        proof = await opened.forgetting.resume()

    assert proof is not None
    assert proof.ok
    assert files_with(home, *TRACES_OF_IT) == []


@pytest.mark.parametrize(
    "damaged",
    [
        b"\xff\xfe\x00",
        b'{"wish": ' + b"[" * 100_000,
        b'{"wish": {"person_id": 5, "facts": 1}, "wording": {}}',
        b"",
    ],
)
async def test_a_damaged_note_is_set_aside_and_forgetting_goes_on(
    home: Path, damaged: bytes
) -> None:
    note = home / "data" / "forgetting.json"
    note.write_bytes(damaged)

    async with opened_home(home) as opened:
        assert await opened.forgetting.resume() is None
        assert await opened.forgetting.under_way() is None
        proof = await opened.forgetting.forget(wish(facts=(1,)))

    assert proof.ok
    assert (home / "data" / "forgetting.damaged-1").read_bytes() == damaged
    assert not note.exists()


# --- forgetting meanwhile ------------------------------------------------------------------------


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
