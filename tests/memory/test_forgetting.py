"""Forgetting with proof: nothing of it is left in any file, and everything else is."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from memory.records.erasure import ForgetStage, ForgettingRefused, PlaceKind, Proof
from memory.records.facts import Storing, Whose
from memory.records.messages import ConversationId
from memory.records.ports import History
from memory.records.transcript import check_pairs
from memory.search.archive import SqliteArchive
from tests.memory.facts_kit import fact
from tests.memory.forgetting_kit import (
    ANN,
    ANNS_CHAT,
    BEN,
    CANARY,
    FACT,
    GROUP,
    SECRET,
    TRACES_OF_IT,
    Past,
    changed,
    database_of,
    files_with,
    lived_in,
    of_ben,
    opened_home,
    wish,
)
from tests.memory.kit import START_MS, rows

# --- finding -----------------------------------------------------------------------------------


async def test_every_place_that_holds_it_is_listed_and_nothing_is_changed(home: Path) -> None:
    before = [path.read_bytes() for path in sorted(home.rglob("*.md"))]

    async with opened_home(home) as opened:
        found = await opened.forgetting.find(wish(facts=(1,)))

    assert found.facts == (1,)
    assert set(found.counts) == set(PlaceKind)
    assert [path.name for path in found.notes] == ["MEMORY.md", "20260731.md"]
    assert found.backups == 3
    assert [path.read_bytes() for path in sorted(home.rglob("*.md"))] == before


async def test_what_is_counted_by_the_name_of_a_job_and_what_the_clock_told_a_group_goes_too(
    home: Path,
) -> None:
    with closing(sqlite3.connect(database_of(home))) as connection, connection:
        past = Past(connection, runs=50)
        job = f"Think: {SECRET}"
        past.add("usage", person_id=ANN, job=job, prompt=1, state="counted")
        past.add("spending_notices", key=f"warn/job/{job}/0", text=f"{job} is used up.")
        past.add(
            "outbox", lane=GROUP, text=f"⏰ {SECRET}", state="sent", created_ms=1, ended_ms=START_MS
        )

    async with opened_home(home) as opened:
        proof = await opened.forgetting.forget(wish(facts=(1,)))

    assert proof.ok
    assert files_with(home, *TRACES_OF_IT) == []
    assert rows(database_of(home), "select prompt from usage") == [(1,)]


@pytest.mark.parametrize(
    "shape", ['{{"note": "{}"}}', 'Found:\n{{"note": "{}"}}', '[{{"note": "{}'], ids=str
)
async def test_words_that_a_tool_wrote_as_json_escapes_them_are_forgotten(
    home: Path, shape: str
) -> None:
    words = 'Ärger mit "Café Grün"'
    escaped = json.dumps(words)[1:-1]
    result = {"kind": "result", "call_id": "k9", "ok": True, "content": shape.format(escaped)}
    call = {"id": "k9", "name": "cal__get", "arguments": "{}"}
    with closing(sqlite3.connect(database_of(home))) as connection, connection:
        Past(connection, runs=50).turn(
            ANN,
            "c_ann",
            ANNS_CHAT,
            "What is on?",
            "See above.",
            entries=[{"kind": "answered", "text": "", "calls": [call]}, result],
        )

    async with opened_home(home) as opened:
        proof = await opened.forgetting.forget(wish(phrases=(words,)))

    assert proof.ok
    assert files_with(home, "u00c4rger", "Caf\\\\u00e9") == []


TOLD_OTHERWISE = "I see, so under the zinc tub lies your spare key."


async def test_what_says_it_in_other_words_is_listed_and_stays_unless_it_is_named(
    home: Path,
) -> None:
    with closing(sqlite3.connect(database_of(home))) as connection, connection:
        Past(connection, runs=50).turn(ANN, "c_ann", ANNS_CHAT, "And?", f"Hm. {TOLD_OTHERWISE}")

    async with opened_home(home) as opened:
        found = await opened.forgetting.find(wish(facts=(1,)))
        first = await opened.forgetting.forget(wish(facts=(1,)))
        left = files_with(home, TOLD_OTHERWISE)
        second = await opened.forgetting.forget(wish(phrases=found.similar))

    assert found.similar == (TOLD_OTHERWISE,)
    assert first.ok
    assert left != []
    assert second.ok
    assert files_with(home, *TRACES_OF_IT) == []


async def test_the_lines_that_a_fact_is_from_go_with_it_however_they_say_it(home: Path) -> None:
    changed(home, "update facts set quote = ''")

    async with opened_home(home) as opened:
        await opened.forgetting.forget(wish(facts=(1,)))

    said = rows(database_of(home), "select body from messages where run_id = 'in-1'")
    assert "zinc" not in str(said)
    assert "Please remember it." in str(said)


@pytest.mark.parametrize("phrase", ["key", "  a b ", "…", "日"])
async def test_words_that_are_too_short_are_refused(home: Path, phrase: str) -> None:
    async with opened_home(home) as opened:
        with pytest.raises(ForgettingRefused, match="too short"):
            await opened.forgetting.forget(wish(phrases=(phrase,)))


# --- erasing -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class After:
    """A home in which a fact was forgotten, and what was seen meanwhile."""

    home: Path
    proof: Proof
    stages: list[ForgetStage]
    of_ben: list[list[tuple[object, ...]]]
    beside_the_bot: list[str]
    before: History
    history: History
    found: int


async def forgotten(home: Path) -> After:
    chat = ConversationId("c_ann")
    stages: list[ForgetStage] = []
    bens = of_ben(home)
    async with opened_home(home) as opened:
        archive = SqliteArchive(opened.database)
        before = await opened.conversations.history(chat)
        assert len(await archive.search(ANN, ANNS_CHAT, "zinc", k=5)) == 1
        proof = await opened.forgetting.forget(wish(facts=(1,)), stages.append)
        beside = files_with(home, *TRACES_OF_IT)
        assert await opened.database.check() == ""
        assert len(await archive.search(ANN, ANNS_CHAT, "cook", k=5)) == 1
        return After(
            home=home,
            proof=proof,
            stages=stages,
            of_ben=bens,
            beside_the_bot=beside,
            before=before,
            history=await opened.conversations.history(chat),
            found=len(await archive.search(ANN, ANNS_CHAT, "zinc", k=5)),
        )


@pytest.fixture(scope="module")
def after(made: Path, tmp_path_factory: pytest.TempPathFactory) -> After:
    home = lived_in(made, tmp_path_factory.mktemp("after"))
    (home / "workspace" / "memory" / "MEMORY.md").chmod(0o600)
    assert len(files_with(home, *TRACES_OF_IT)) >= 6
    return asyncio.run(forgotten(home))


def test_afterwards_no_file_of_the_home_holds_it(after: After) -> None:
    proof = after.proof

    assert after.stages == list(ForgetStage)
    assert proof.ok
    assert (proof.left, proof.theirs, proof.their_files) == ((), (), ())
    assert after.beside_the_bot == files_with(after.home, *TRACES_OF_IT) == []
    assert proof.files == len([path for path in after.home.rglob("*") if path.is_file()]) + 2


def test_others_and_what_they_said_are_left(after: After) -> None:
    notes = after.home / "workspace" / "memory" / "people" / BEN / "MEMORY.md"

    assert of_ben(after.home) == after.of_ben
    assert notes.read_text() == f"- {CANARY}\n"


def test_what_is_left_is_whole(after: After) -> None:
    entries = [one.entry for one in after.history.entries]

    assert rows(database_of(after.home), "pragma foreign_key_check") == []
    check_pairs(entries)
    assert [type(entry).__name__ for entry in entries] == [
        *("Said", "Context", "Answered", "ToolResult", "Answered"),
        *("Said", "Answered"),
    ]
    assert after.history.compaction is not None
    assert after.history.compaction.summary == "Ann cooks rice. Ben is away."
    assert "Rice with peas." in str(entries[-1])


def test_neither_history_that_was_read_before_nor_the_search_gives_it_again(after: After) -> None:
    assert "zinc" in str(after.before.entries)
    assert "zinc" not in str(after.history.entries)
    assert after.found == 0
    (call,) = [call for one in after.history.entries for call in getattr(one.entry, "calls", ())]
    assert json.loads(call.arguments) == {"text": "[forgotten]"}


def test_jobs_and_messages_that_just_came_stay_what_they_are(after: After) -> None:
    path = database_of(after.home)

    ((name, what),) = rows(path, "select name, what from jobs")
    assert name == "1 Think: [forgotten]"
    assert json.loads(str(what)) == {"text": "Look whether [forgotten]", "skill": ""}
    ((payload,),) = rows(path, "select payload from inbox")
    assert json.loads(str(payload))["message"] == {"text": "/memory forget [forgotten]", "id": 7}


def test_an_affected_turn_cannot_be_replayed_and_others_can(after: After) -> None:
    path = database_of(after.home)

    assert rows(path, "select run_id from turns where erased_ms is not null") == [
        ("in-1",),
        ("in-5",),
    ]
    begun = "select run_id from steps where name = 'begin' and output is not null order by run_id"
    assert rows(path, begun) == [("in-2",), ("in-3",), ("in-4",)]


def test_notes_lose_the_lines_and_keep_the_others(after: After) -> None:
    notes = after.home / "workspace" / "memory"

    assert (notes / "MEMORY.md").read_text() == "- Cooks rice\n- Has a cat\n"
    assert (notes / "MEMORY.md").stat().st_mode & 0o777 == 0o600
    assert (notes / "202607" / "20260731.md").read_text() == "Went out\n"


def test_the_daily_backup_is_made_anew_and_older_copies_go(after: After) -> None:
    backup = after.proof.backup

    assert [path.name for path in backup.parent.iterdir()] == [backup.name]
    assert not list((after.home / "data").glob("*.before-*"))
    assert len(after.proof.dropped) == 3
    assert rows(backup, "pragma integrity_check") == [("ok",)]
    assert rows(backup, "select count(*) from facts") == [(0,)]


@pytest.mark.case("ME-11")
async def test_a_city_is_forgotten_with_the_one_before_it(home: Path) -> None:
    async with opened_home(home) as opened:
        of = Whose(person_id=ANN)
        for text in ("Ann lives in Oslo.", "Ann moved to Bergen."):
            outcome = await opened.facts.store(fact(text, of))
        assert outcome.outcome is Storing.SUPERSEDED
        assert [fact.text for fact in await opened.facts.list(of)] == ["Ann moved to Bergen.", FACT]
        (current, *_) = await opened.facts.list(of)

        proof = await opened.forgetting.forget(wish(facts=(current.id,)))

        assert proof.ok
        assert [fact.text for fact in await opened.facts.list(of)] == [FACT]
    assert files_with(home, "oslo", "bergen") == []
