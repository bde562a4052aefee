"""Forgetting with proof: nothing of it is left in any file, and all else is, also of others."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from memory.records.erasure import ForgetStage, ForgettingRefused, PlaceKind, Proof
from memory.records.errors import StorageError
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

# --- forgetting ----------------------------------------------------------------------------------


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


# --- forgetting others ---------------------------------------------------------------------------


async def test_a_fact_that_only_sounds_like_it_stays(home: Path) -> None:
    async with opened_home(home) as opened:
        text = "The spare key that Ann keeps under the zinc tub is rusty."
        stored = await opened.facts.store(fact(text, Whose(person_id=ANN)))
        assert stored.fact is not None
        found = await opened.forgetting.find(wish(facts=(1,)))
        await opened.forgetting.forget(wish(facts=(1,)))

        assert found.facts == (1,)
        left = await opened.facts.list(Whose(person_id=ANN))
        assert [one.id for one in left] == [stored.fact.id]


async def test_everything_of_a_person_goes_and_nothing_of_another(home: Path) -> None:
    before = of_ben(home)

    async with opened_home(home) as opened:
        proof = await opened.forgetting.forget(wish(everything=True))
        here = await opened.conversations.current(ANNS_CHAT)
        history = await opened.conversations.history(here)

    assert proof.ok
    assert history.entries == ()
    assert history.compaction is None
    assert of_ben(home) == before
    assert files_with(home, *TRACES_OF_IT, "rice with peas", "shall i cook", "green") == []
    assert not (home / "workspace" / "memory" / "MEMORY.md").exists()
    path = database_of(home)
    for table in ("facts", "profiles", "profile_changes", "documents", "chunks", "insights"):
        assert rows(path, f"select count(*) from {table}") == [(0,)], table
    group = rows(path, "select body from messages where conversation_id = 'c_group'")
    assert sum(CANARY in str(body) for (body,) in group) == 1


async def test_what_was_said_to_a_person_alone_in_a_channel_goes_too(home: Path) -> None:
    path = database_of(home)
    with closing(sqlite3.connect(path)) as connection, connection:
        past = Past(connection, runs=50)
        for person, address in ((ANN, "slack:T0LAB:U0ANN"), (BEN, "slack:T0LAB:U0BEN")):
            past.add("addresses", address=address, person_id=person)
        for reader in ("U0ANN", "U0BEN"):
            lane = f"slack:T0LAB.C1:~{reader}"
            text = "- f1 “the zinc tub”"
            row = past.add("outbox", lane=lane, text=text, state="sent", ended_ms=2)
            past.add("outbox_parts", outbox_id=row, n=0, markup=text, source=text, state="sent")
    before = of_ben(home)

    async with opened_home(home) as opened:
        await opened.forgetting.forget(wish(phrases=("zinc tub",)))

    found = rows(path, "select lane, text from outbox where lane glob '*:~*'")
    kept = {str(lane): text for lane, text in found}
    assert kept["slack:T0LAB.C1:~U0BEN"] == "- f1 “the zinc tub”"
    assert "zinc" not in str(kept["slack:T0LAB.C1:~U0ANN"])
    assert of_ben(home) == before


# --- others ------------------------------------------------------------------------------------


async def test_the_same_words_of_somebody_else_stay_and_only_the_owner_is_told(home: Path) -> None:
    (home / "workspace" / "memory" / "people" / BEN / "MEMORY.md").write_text(f"- {SECRET}\n")
    with closing(sqlite3.connect(database_of(home))) as connection, connection:
        past = Past(connection, runs=50)
        past.turn(BEN, "c_ben", "telegram:6", f"{SECRET}, says Ann", "I see")
        past.turn(BEN, "c_group", GROUP, f"Ann says: {SECRET}", "I see")
    before = of_ben(home)

    async with opened_home(home) as opened:
        proof = await opened.forgetting.forget(wish(facts=(1,)))

    assert proof.ok
    assert set(proof.theirs) == {"messages", "steps", "turns"}
    assert [path.name for path in proof.their_files] == ["MEMORY.md"]
    assert of_ben(home) == before
    mine = "select body from messages join turns using (run_id) where person_id = 'p_ann'"
    assert "zinc" not in str(rows(database_of(home), mine))


async def test_in_a_group_what_came_of_it_for_others_goes_with_it(home: Path) -> None:
    with closing(sqlite3.connect(database_of(home))) as connection, connection:
        past = Past(connection, runs=50)
        past.turn(BEN, "c_group", GROUP, "What did Ann say?", f"She said: {SECRET}")

    async with opened_home(home) as opened:
        proof = await opened.forgetting.forget(wish(facts=(1,)))

    assert proof.ok
    assert files_with(home, *TRACES_OF_IT) == []
    group = rows(database_of(home), "select body from messages where conversation_id = 'c_group'")
    assert "What did Ann say?" in str(group)
    assert "She said: [forgotten]" in str(group)


async def test_a_member_forgets_what_is_theirs_with_their_notes(home: Path) -> None:
    notes = home / "workspace" / "memory" / "people" / BEN / "MEMORY.md"
    notes.write_text(f"- {CANARY}\n- Swims\n")

    async with opened_home(home) as opened:
        proof = await opened.forgetting.forget(
            wish(person_id=BEN, is_owner=False, phrases=(CANARY,))
        )

    assert proof.ok
    assert notes.read_text() == "- Swims\n"
    assert files_with(home, CANARY) == []
    assert len(files_with(home, SECRET)) > 1


async def test_a_member_erases_nothing_of_the_owner(home: Path) -> None:
    path = database_of(home)
    before = rows(path, "select * from messages order by id"), rows(path, "select * from facts")

    async with opened_home(home) as opened:
        proof = await opened.forgetting.forget(
            wish(person_id=BEN, is_owner=False, phrases=("zinc tub",), facts=(1,))
        )

    assert (
        rows(path, "select * from messages order by id"),
        rows(path, "select * from facts"),
    ) == (before)
    assert proof.ok
    assert "MEMORY.md" in [found.name for found in proof.their_files]


# --- files -------------------------------------------------------------------------------------


async def test_other_files_of_the_workspace_are_named_and_left_unless_asked(home: Path) -> None:
    letter = home / "workspace" / "files" / "letter.txt"
    letter.parent.mkdir()
    letter.write_text(f"Dear Sue, {SECRET}. Yours, Ann")
    (home / "workspace" / "linked.md").symlink_to(home / "data" / "hearthbot.db")

    async with opened_home(home) as opened:
        found = await opened.forgetting.find(wish(facts=(1,)))
        first = await opened.forgetting.forget(wish(facts=(1,)))
        second = await opened.forgetting.forget(wish(phrases=(SECRET,), with_files=True))

    assert list(found.files) == [letter]
    assert first.ok
    assert list(first.left) == [letter]
    assert second.ok
    assert not second.left
    assert list(second.blanked) == [letter]
    assert PlaceKind.FILE not in second.erased
    assert letter.read_text() == "Dear Sue, [forgotten]. Yours, Ann"


async def test_a_file_that_still_holds_it_is_a_failure_that_is_told(home: Path) -> None:
    (home / "logs" / "old.log").write_bytes(b"\xff\xfe" + SECRET.encode("utf-16-le"))

    async with opened_home(home) as opened:
        proof = await opened.forgetting.forget(wish(facts=(1,)))

    assert not proof.ok
    assert list(proof.hits) == [home / "logs" / "old.log"]


# --- what was made of it for others ------------------------------------------------------------

CLINIC = "My clinic for chemo is in Zurich"


async def test_of_everything_summaries_and_answers_to_others_do_not_tell_of_it(home: Path) -> None:
    with closing(sqlite3.connect(database_of(home))) as connection, connection:
        past = Past(connection, runs=70)
        past.turn(ANN, "c_group", GROUP, f"{CLINIC}. Good morning all.", "Get well")
        asked = "What did Ann say?"
        past.turn(BEN, "c_group", GROUP, asked, f"She said: {CLINIC}.")
        past.turn(BEN, "c_group", GROUP, "And the weather?", "Rain, all of Tuesday.")
        past.add(
            "compactions",
            conversation_id="c_group",
            kind="summarise",
            summary="Ann said that she gets treated in Zurich.",
        )
        pins = '["Ann gets treated in Zurich"]'
        past.add("insights", conversation_id="c_group", pins=pins, recommendations="[]")

    async with opened_home(home) as opened:
        found = await opened.forgetting.find(wish(everything=True))
        proof = await opened.forgetting.forget(wish(everything=True))
        history = await opened.conversations.history(ConversationId("c_group"))

    assert found.counts[PlaceKind.SUMMARY] == 2  # of her own chat, and of the group
    assert proof.ok
    assert files_with(home, "Zurich") == []
    kept = str(history.entries)
    assert asked in kept
    assert "Rain, all of Tuesday." in kept
    assert history.compaction is None


async def test_of_everything_what_another_said_as_well_is_left_in_answers(home: Path) -> None:
    with closing(sqlite3.connect(database_of(home))) as connection, connection:
        past = Past(connection, runs=70)
        past.turn(ANN, "c_group", GROUP, "The ferry to Moss leaves at noon", "Noted")
        past.turn(BEN, "c_group", GROUP, "The ferry to Moss leaves at noon", "At noon, to Moss.")

    async with opened_home(home) as opened:
        proof = await opened.forgetting.forget(wish(everything=True))

    assert proof.ok
    said = rows(database_of(home), "select body from messages where body like '%Moss%'")
    assert len(said) == 2
    assert "messages" in proof.theirs


async def test_a_file_that_is_no_text_is_not_blanked_and_told(home: Path) -> None:
    photo = home / "workspace" / "files" / "scan.bin"
    photo.parent.mkdir()
    photo.write_bytes(b"\xff\xfe\x00\x81" + SECRET.encode() + b"\x00\xff")

    async with opened_home(home) as opened:
        proof = await opened.forgetting.forget(wish(facts=(1,), with_files=True))

    assert list(proof.hits) == [photo]
    assert SECRET.encode() in photo.read_bytes()


async def test_what_the_disk_refuses_is_said_in_a_sentence_and_nothing_is_begun(home: Path) -> None:
    (home / "data" / "forgetting.json.writing").mkdir()

    async with opened_home(home) as opened:
        with pytest.raises(StorageError, match=r"forgetting\.json"):
            await opened.forgetting.forget(wish(facts=(1,)))
        assert len(await opened.facts.list(Whose(person_id=ANN))) == 1
