"""Forgetting with proof: words and everything of a person, what others said, and files."""

from __future__ import annotations

import sqlite3
import unicodedata
from contextlib import closing
from pathlib import Path

import pytest

from memory.records.erasure import PlaceKind
from memory.records.errors import StorageError
from memory.records.facts import Whose
from memory.records.messages import ConversationId
from tests.memory.facts_kit import fact
from tests.memory.forgetting_kit import (
    ANN,
    ANNS_CHAT,
    BEN,
    CANARY,
    GROUP,
    SECRET,
    TRACES_OF_IT,
    Past,
    database_of,
    files_with,
    of_ben,
    opened_home,
    wish,
)
from tests.memory.kit import rows

# --- words and all -----------------------------------------------------------------------------


async def test_words_are_found_whatever_their_case_and_spacing(home: Path) -> None:
    said = unicodedata.normalize("NFD", "Isn't she\n CALLED  ægir Nilßon, or Jörg?")
    with closing(sqlite3.connect(database_of(home))) as connection, connection:
        past = Past(connection, runs=50)
        past.turn(ANN, "c_ann", ANNS_CHAT, said, "Give them my regards.")
    async with opened_home(home) as opened:
        proof = await opened.forgetting.forget(wish(phrases=("called Ægir  Nilßon",)))
        history = await opened.conversations.history(ConversationId("c_ann"))

    assert proof.ok
    assert "gir" not in str(history.entries)
    assert "[forgotten]" in str(history.entries)


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
