"""Forgetting with proof: nothing of it is left in any file, and everything else is."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memory.records.erasure import ForgetStage, ForgettingRefused, PlaceKind
from memory.records.facts import FactSource, NewFact, Storing, Whose
from memory.records.messages import ConversationId, RunId
from memory.records.transcript import check_pairs
from memory.search.archive import SqliteArchive
from memory.stores.traces import SqliteTraces
from memory.stores.turns import SqliteJournal
from tests.memory.forgetting_kit import (
    ANN,
    ANNS_CHAT,
    FACT,
    GROUP,
    SECRET,
    TRACES_OF_IT,
    Past,
    changed,
    database_of,
    files_with,
    lived_in,
    opened_home,
    wish,
)
from tests.memory.kit import START_MS, rows, run, turn_end


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("made")


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    return lived_in(made, tmp_path)


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
    of = {"conversation_id": "", "run_id": "", "agent": "default", "purpose": "job", "model": "m"}
    tokens = {"prompt": 1, "completion": 1, "cached": 0, "guessed": 0, "state": "counted"}
    with closing(sqlite3.connect(database_of(home))) as connection, connection:
        past = Past(connection, runs=50)
        job = f"Think: {SECRET}"
        past.add("usage", person_id=ANN, lane=ANNS_CHAT, job=job, at_ms=START_MS, **of, **tokens)
        connection.execute(
            "insert into spending_notices (key, person_id, text, buttons, created_ms)"
            " values (?, '', ?, '[]', ?)",
            (f"warn/job/{job}/0", f"The budget of the job {job} is used up.", START_MS),
        )
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


async def test_afterwards_no_file_of_the_home_holds_it(home: Path) -> None:
    assert len(files_with(home, *TRACES_OF_IT)) >= 6
    stages: list[ForgetStage] = []

    async with opened_home(home) as opened:
        proof = await opened.forgetting.forget(wish(facts=(1,)), stages.append)
        beside_the_bot = files_with(home, *TRACES_OF_IT)

    assert stages == list(ForgetStage)
    assert proof.ok
    assert (proof.left, proof.theirs, proof.their_files) == ((), (), ())
    assert beside_the_bot == files_with(home, *TRACES_OF_IT) == []
    assert proof.files == len([path for path in home.rglob("*") if path.is_file()]) + 2


async def test_what_is_left_is_whole_and_can_be_gone_on_with(home: Path) -> None:
    async with opened_home(home) as opened:
        await opened.forgetting.forget(wish(facts=(1,)))

        assert await opened.database.check() == ""
        assert rows(database_of(home), "pragma foreign_key_check") == []
        history = await opened.conversations.history(ConversationId("c_ann"))
        entries = [one.entry for one in history.entries]
        check_pairs(entries)
        assert [type(entry).__name__ for entry in entries] == [
            *("Said", "Context", "Answered", "ToolResult", "Answered"),
            *("Said", "Answered"),
        ]
        assert history.compaction is not None
        assert history.compaction.summary == "Ann cooks rice. Ben is away."
        assert "Rice with peas." in str(entries[-1])
        journal = SqliteJournal(opened.database)
        assert await journal.submit(run("in-99", lane=ANNS_CHAT)) is not None
        end = turn_end("in-99", ConversationId("c_ann"))
        await journal.finish(RunId("in-99"), end)


async def test_jobs_and_messages_that_just_came_stay_what_they_are(home: Path) -> None:
    async with opened_home(home) as opened:
        await opened.forgetting.forget(wish(facts=(1,)))

    path = database_of(home)
    ((name, what),) = rows(path, "select name, what from jobs")
    assert name == "1 Think: [forgotten]"
    assert json.loads(str(what)) == {"text": "Look whether [forgotten]", "skill": ""}
    ((payload,),) = rows(path, "select payload from inbox")
    assert json.loads(str(payload))["message"] == {"text": "/memory forget [forgotten]", "id": 7}


async def test_an_affected_turn_cannot_be_replayed_and_others_can(home: Path) -> None:
    async with opened_home(home) as opened:
        await opened.forgetting.forget(wish(facts=(1,)))
        traces = SqliteTraces(opened.database)

        assert await traces.prompt(RunId("in-1")) is None
        assert await traces.prompt(RunId("in-2")) is not None
    erased = rows(database_of(home), "select run_id from turns where erased_ms is not null")
    assert erased == [("in-1",), ("in-5",)]


async def test_notes_lose_the_lines_and_keep_the_others(home: Path) -> None:
    notes = home / "workspace" / "memory"
    (notes / "MEMORY.md").chmod(0o600)

    async with opened_home(home) as opened:
        await opened.forgetting.forget(wish(facts=(1,)))

    assert (notes / "MEMORY.md").read_text() == "- Cooks rice\n- Has a cat\n"
    assert (notes / "MEMORY.md").stat().st_mode & 0o777 == 0o600
    assert (notes / "202607" / "20260731.md").read_text() == "Went out\n"


async def test_the_daily_backup_is_made_anew_and_older_copies_go(home: Path) -> None:
    async with opened_home(home) as opened:
        proof = await opened.forgetting.forget(wish(facts=(1,)))

    assert [path.name for path in (home / "data" / "backups").iterdir()] == [proof.backup.name]
    assert not list((home / "data").glob("*.before-*"))
    assert len(proof.dropped) == 3
    assert rows(proof.backup, "pragma integrity_check") == [("ok",)]
    assert rows(proof.backup, "select count(*) from facts") == [(0,)]


async def test_old_history_does_not_teach_it_again(home: Path) -> None:
    async with opened_home(home) as opened:
        await opened.forgetting.forget(wish(facts=(1,)))
        again = NewFact(
            whose=Whose(person_id=ANN),
            text="Ann keeps a spare key under the zinc tub.",
            category="background",
            source=FactSource.MESSAGE,
        )
        refused = await opened.facts.store(again)
        meant = NewFact(
            whose=again.whose,
            text=again.text,
            category="background",
            source=FactSource.PERSON,
            asked=True,
        )
        stored = await opened.facts.store(meant)

    assert refused.outcome is Storing.REFUSED
    assert stored.outcome is Storing.STORED


@pytest.mark.case("ME-11")
async def test_a_city_is_forgotten_with_the_one_before_it(home: Path) -> None:
    async with opened_home(home) as opened:
        of = Whose(person_id=ANN)
        for text, quote in [
            ("Ann lives in Oslo.", "I live in Oslo"),
            ("Ann moved to Bergen.", "I moved to Bergen last week"),
        ]:
            outcome = await opened.facts.store(
                NewFact(
                    whose=of,
                    text=text,
                    category="background",
                    source=FactSource.MESSAGE,
                    quote=quote,
                )
            )
        assert outcome.outcome is Storing.SUPERSEDED
        assert [fact.text for fact in await opened.facts.list(of)] == ["Ann moved to Bergen.", FACT]
        (current, *_) = await opened.facts.list(of)

        proof = await opened.forgetting.forget(wish(facts=(current.id,)))

        assert proof.ok
        assert [fact.text for fact in await opened.facts.list(of)] == [FACT]
    assert files_with(home, "oslo", "bergen") == []


async def test_neither_history_that_was_read_before_nor_the_search_gives_it_again(
    home: Path,
) -> None:
    async with opened_home(home) as opened:
        archive = SqliteArchive(opened.database)
        before = await opened.conversations.history(ConversationId("c_ann"))
        assert len(await archive.search(ANN, ANNS_CHAT, "zinc", k=5)) == 1
        await opened.forgetting.forget(wish(facts=(1,)))
        after = await opened.conversations.history(ConversationId("c_ann"))
        found = await archive.search(ANN, ANNS_CHAT, "zinc", k=5)
        others = await archive.search(ANN, ANNS_CHAT, "cook", k=5)

    assert "zinc" in str(before.entries)
    assert "zinc" not in str(after.entries)
    assert (found, len(others)) == ([], 1)
    (call,) = [call for one in after.entries for call in getattr(one.entry, "calls", ())]
    assert json.loads(call.arguments) == {"text": "[forgotten]"}
