"""Forgetting with proof while the bot runs, and after it was killed in the middle of it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memory.erasure.files import check_space
from memory.records.erasure import ForgetStage, ForgettingRefused, Tell
from memory.records.errors import StorageFull
from memory.records.messages import ConversationId, RunId
from memory.stores.turns import SqliteJournal
from tests.memory.forgetting_kit import (
    ANN,
    ANNS_CHAT,
    BEN,
    FACT,
    SECRET,
    TRACES_OF_IT,
    Past,
    changed,
    database_of,
    files_with,
    opened_home,
    wish,
)
from tests.memory.kit import rows

# --- while the bot runs --------------------------------------------------------------------------


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
