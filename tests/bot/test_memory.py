"""What a person sees of their memory in a chat, and does with it."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from bot.commands.memory import commands as words
from bot.commands.memory import erasure
from bot.commands.memory.erasure import ASKED_S
from memory.records.erasure import ForgetStage, ForgettingRefused, Proof, typed_run
from memory.records.errors import StorageError
from memory.records.facts import Whose
from memory.service import guessed_category
from tests.bot.memory_kit import ANNA, BENN, GUEST, Chat, opened_chat, pressed
from tests.memory.forgetting_kit import (
    ANN,
    ANNS_CHAT,
    BEN,
    CANARY,
    FACT,
    SECRET,
    TRACES_OF_IT,
    Past,
    database_of,
    files_with,
    lived_in,
    wish,
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("made")


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    return lived_in(made, tmp_path)


@pytest.fixture
async def chat(home: Path) -> AsyncIterator[Chat]:
    async with opened_chat(home) as chat:
        yield chat


# --- looking -----------------------------------------------------------------------------------


async def test_the_overview_has_what_is_known_and_what_one_can_do(chat: Chat) -> None:
    await chat.remember("Ann lives in Oslo.")
    await chat.remember("Ann moved to Bergen.")

    said = await chat.says("")

    assert "2 facts, a profile (name, preferences), 1 document" in said
    assert "- f3 “Ann moved to Bergen.” (background, 1 Aug 2026)" in said
    assert "Corrected lately:\n- f2 “Ann lives in Oslo.” → f3 “Ann moved to Bergen.”" in said
    assert words.USE in said


async def test_one_fact_is_shown_with_where_it_is_from(chat: Chat) -> None:
    for text in ("f1", "F1", "1", "show f1"):
        said = await chat.says(text)
        assert f"in these words: “{SECRET}”" in said
        assert "from what was said, 1 Aug 2026" in said


async def test_what_it_replaced_is_shown_with_it(chat: Chat) -> None:
    await chat.says("edit f1 Ann keeps the key at Sue's.")

    said = await chat.says("f2")

    assert "In place of:\n- f1" in said
    assert "held until 1 Aug 2026, replaced by f2" in await chat.says("f1")
    assert (await chat.says("list past")).startswith("- f1")


async def test_the_list_and_the_search_name_facts(chat: Chat) -> None:
    await chat.remember("Ann plays the oboe.")

    assert [line[:4] for line in (await chat.says("list")).splitlines()] == ["- f2", "- f1"]
    assert "oboe" in await chat.says("search oboe")
    assert "nothing about “lighthouse”" in await chat.says("search lighthouse")
    assert await chat.says("list past") == "Nothing was corrected so far."
    assert await chat.says("list", by=BENN) == words.NOTHING_KNOWN


@pytest.mark.parametrize("rest", ["nonsense", "edit", "edit f1", "forget", "show", "f1 f2", "?"])
async def test_what_is_not_understood_changes_nothing_and_says_how(chat: Chat, rest: str) -> None:
    assert "`/memory" in await chat.says(rest)
    assert len(await chat.opened.facts.list(Whose(person_id=ANN))) == 1


async def test_words_of_people_make_no_markup(chat: Chat) -> None:
    await chat.remember("[click](https://example.org) `rm` **now**")

    said = await chat.says("list")

    assert r"\[click](https://example.org) 'rm' \*\*now\*\*" in said


# --- remembering and correcting ------------------------------------------------------------------


async def test_what_is_remembered_is_stored_refreshed_corrected_or_refused(chat: Chat) -> None:
    assert await chat.remember("I prefer tea without milk") == (
        "Remembered: f2 “I prefer tea without milk” (preference)."
    )
    assert "I knew that already: f2" in await chat.remember("I prefer tea without milk.")
    await chat.remember("Ann lives in Oslo.")
    assert "takes the place of f3" in await chat.remember("Ann moved to Bergen.")
    assert "I did not keep that" in await chat.remember("my password is hunter2hunter2")
    assert await chat.remember("  ") == words.USE_REMEMBER
    assert "“Ann has a boat.”" in await chat.remember("that Ann has a boat.")


async def test_what_a_command_keeps_is_known_by_its_message_so_that_undo_finds_it(
    chat: Chat,
) -> None:
    await chat.remember("I prefer tea without milk")
    await chat.says("edit f1 The key is with Sue.")

    kept = await chat.memory.facts.list(Whose(person_id=ANN))

    names = {fact.run_id for fact in kept}
    assert names == {typed_run(ANN, ANNS_CHAT, "1")}


async def test_a_correction_closes_the_old_one(chat: Chat) -> None:
    assert "takes the place of f1" in await chat.says("edit f1 The key is with Sue.")
    assert "no longer holds" in await chat.says("edit f1 The key is with Tom.")
    assert "no f9 here" in await chat.says("edit f9 x")


async def test_memory_off_and_guests_add_nothing(chat: Chat) -> None:
    await chat.memory.private.begin(ANNS_CHAT)

    assert await chat.remember("Ann plays the oboe.") == words.MEMORY_IS_OFF
    assert await chat.remember("Gus plays the oboe.", by=GUEST) == words.NO_GUESTS
    assert await chat.says("edit f1 x", by=GUEST) == words.NO_GUESTS
    assert await chat.says("edit", by=GUEST) == words.NO_GUESTS


async def test_guests_are_told_of_nothing_that_they_may_not_do(chat: Chat) -> None:
    for text in ("", "help"):
        said = await chat.says(text, by=GUEST)
        assert words.GUESTS_USE in said
        assert "edit" not in said
        assert "/remember" not in said
    assert "edit" not in words.use(GUEST.role, is_group=True)
    assert "edit" in words.use(BENN.role, is_group=True)


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("I like my eggs soft", "preference"),
        ("My dentist is Dr Lund", "contact"),
        ("We decided to sell the boat", "decision"),
        ("I am working on the barn", "project"),
        ("On Mondays I usually swim", "pattern"),
        ("I was born in Tromsø", "background"),
    ],
)
def test_a_category_is_guessed_by_simple_words(text: str, category: str) -> None:
    assert guessed_category(text) == category


# --- others --------------------------------------------------------------------------------------


@pytest.mark.case("ME-07")
async def test_nobody_sees_or_changes_what_is_anothers(chat: Chat, home: Path) -> None:
    for rest in ("", "list", "list past", "f1", "search spare key", "export", "edit f1 x"):
        assert "zinc" not in await chat.says(rest, by=BENN)
    assert "no f1 here" in await chat.says("forget f1 yes", by=BENN)
    await chat.says("forget zinc tub", by=BENN)
    assert chat.cards.sent == {}

    assert len(files_with(home, FACT)) > 1


NOT_YOURS = "f3 is what somebody else said, so only they can change it."


async def test_in_a_group_one_acts_on_what_was_said_there(chat: Chat) -> None:
    await chat.remember("The boat leaves at nine.", group=True)
    await chat.remember("The boat is called Vega.", by=BENN, group=True)

    said = await chat.says("", group=True)

    assert "2 facts" in said
    assert "zinc" not in said
    assert "said by Ben" in said
    assert await chat.says("edit f3 x", group=True) == NOT_YOURS
    assert await chat.says("forget f3 yes", group=True) == NOT_YOURS
    assert "no f1 here" in await chat.says("f1", group=True)
    assert await chat.says("export", group=True) == words.IN_PRIVATE
    assert await chat.says("forget everything", group=True) == words.IN_PRIVATE
    assert await chat.says("forget the boat", group=True) == words.IN_PRIVATE
    assert "Forgotten" in await chat.says("forget f2 yes", group=True)
    assert "vega" in (await chat.says("list", group=True)).lower()


# --- forgetting ----------------------------------------------------------------------------------


async def test_before_anything_is_erased_every_place_is_shown(chat: Chat, home: Path) -> None:
    assert await chat.says("forget f1") == erasure.ASKED_ABOVE

    card = chat.cards.last
    assert "- 1 fact\n" in card
    assert "entries of the history" in card
    assert "traces of answers" in card
    assert "3 older copies of the database" in card
    assert "workspace/memory/MEMORY.md" in card
    assert len(await chat.opened.facts.list(Whose(person_id=ANN))) == 1


async def test_a_press_forgets_it_and_the_card_tells_the_proof(chat: Chat, home: Path) -> None:
    await chat.says("forget f1")

    assert await chat.presses(erasure.FORGET) == erasure.FORGETTING

    assert chat.cards.last.startswith("**Forgotten**")
    assert erasure.NOWHERE in chat.cards.last
    assert files_with(home, *TRACES_OF_IT) == []


async def test_a_yes_behind_the_number_forgets_at_once(chat: Chat, home: Path) -> None:
    said = await chat.says("forget f1 yes")

    assert said.startswith("**Forgotten**")
    assert erasure.CANNOT_REACH in said
    assert files_with(home, *TRACES_OF_IT) == []


async def test_keep_keeps_it(chat: Chat) -> None:
    await chat.says("forget f1")

    assert await chat.presses(erasure.KEEP) == erasure.KEPT
    assert chat.cards.last == erasure.KEPT
    assert len(await chat.opened.facts.list(Whose(person_id=ANN))) == 1


async def test_a_question_is_answered_by_who_was_asked_once_and_in_time(chat: Chat) -> None:
    await chat.says("forget f1")
    data = chat.cards.data(erasure.FORGET)

    assert await chat.presses(erasure.FORGET, by=BENN) == erasure.NOT_YOUR_QUESTION
    chat.clock.move(ASKED_S + 1)
    assert await chat.presses(erasure.FORGET) == erasure.TOO_OLD
    assert await chat.questions.press(pressed(data, ANNA), ANNA) == erasure.TOO_OLD
    for wrong in ("mem:x", "mem:x:y", "mem:nothing:forget", "mem:::"):
        assert await chat.questions.press(pressed(wrong, ANNA), ANNA) == erasure.TOO_OLD
    assert len(await chat.opened.facts.list(Whose(person_id=ANN))) == 1


async def test_words_are_forgotten_and_facts_that_may_be_meant_are_named(chat: Chat) -> None:
    await chat.remember("Ann hides a letter in the tub.")

    said = await chat.says("forget zinc tub")

    assert "These may be meant too:\n- f2" in said
    assert "“zinc tub”" in chat.cards.last
    await chat.presses(erasure.FORGET)
    left = await chat.opened.facts.list(Whose(person_id=ANN))
    assert [fact.id for fact in left] == [2]


async def test_words_that_end_in_yes_are_asked_about_as_well(chat: Chat) -> None:
    await chat.says("forget zinc tub yes")

    assert len(await chat.opened.facts.list(Whose(person_id=ANN))) == 1


async def test_what_says_it_in_other_words_goes_when_it_is_ticked(home: Path) -> None:
    told = "So under the zinc tub lies your spare key."
    with closing(sqlite3.connect(database_of(home))) as connection, connection:
        Past(connection, runs=50).turn(ANN, "c_ann", ANNS_CHAT, "And?", told)
    async with opened_chat(home) as chat:
        await chat.says("forget f1")
        assert f"1. “{told}”" in chat.cards.last
        assert await chat.presses("1", by=BENN) == erasure.NOT_YOUR_QUESTION
        assert await chat.presses("1") == erasure.TICKED.format(text=told)
        assert await chat.presses("1") == erasure.UNTICKED.format(text=told)
        assert await chat.presses("1") == erasure.TICKED.format(text=told)
        await chat.presses(erasure.FORGET)

        assert chat.cards.last.startswith("**Forgotten**")
    assert files_with(home, *TRACES_OF_IT) == []


@pytest.mark.case("ME-11")
async def test_a_matter_that_no_line_names_so_is_offered_by_its_facts(chat: Chat) -> None:
    await chat.remember("Ann lives in Oslo.")
    await chat.says("edit f2 Ann lives in Bergen.")

    said = await chat.says("forget where I live")

    assert said.startswith(erasure.NOTHING_HOLDS_IT)
    assert "`/memory forget f3" in said
    await chat.says("forget f3 yes")
    assert "Oslo" not in str(await chat.opened.facts.search(Whose(person_id=ANN), "live", k=5))
    assert "Bergen" not in await chat.says("") + await chat.says("list past")


async def test_everything_is_asked_about_and_then_gone(chat: Chat, home: Path) -> None:
    await chat.says("forget everything")
    assert "everything that I know of you" in chat.cards.last

    await chat.presses(erasure.FORGET)

    assert chat.cards.last.startswith("**Forgotten**")
    assert files_with(home, *TRACES_OF_IT) == []
    assert files_with(home, CANARY) != []
    assert "0 facts" in await chat.says("")


async def test_what_is_too_short_is_refused_in_a_sentence_and_reads_like_no_fault(
    chat: Chat,
) -> None:
    assert (await chat.says("forget abc")).startswith("'abc' is too short to be looked for")


async def test_what_others_said_the_same_is_told_to_the_owner_alone(home: Path) -> None:
    notes = home / "workspace" / "memory" / "people" / BEN / "MEMORY.md"
    notes.write_text(f"{SECRET}\n")
    proof = Proof(
        erased={}, backup=home, dropped=(), files=1, bytes=1, theirs=("x",), their_files=(notes,)
    )

    assert "others said the same" in erasure.proof_text(proof, home, for_owner=True)
    assert "others" not in erasure.proof_text(proof, home, for_owner=False)


async def test_the_question_of_what_a_kill_cut_short_tells_how_it_went(home: Path) -> None:
    class Killed(BaseException):
        pass

    def dies(stage: ForgetStage) -> None:
        if stage is ForgetStage.FILES:
            raise Killed

    async with opened_chat(home) as chat:
        await chat.says("forget f1")
        (card,) = chat.cards.sent
        with pytest.raises(Killed):
            await chat.opened.forgetting.forget(wish(facts=(1,), cards=(card,)), dies)
    async with opened_chat(home) as chat:
        chat.questions.start()
        await chat.questions.idle()

        assert chat.cards.sent[card].startswith("**Forgotten**")


@pytest.mark.parametrize("asked", ["zinc tub", "f1"])
async def test_a_former_question_loses_the_words_where_it_was_sent_too(
    home: Path, asked: str
) -> None:
    async with opened_chat(home) as chat:
        await chat.says(f"forget {asked}")
        (former,) = chat.cards.sent
        await chat.opened.database.write(
            lambda c: c.execute("update outbox set state = 'sent', ended_ms = 1").fetchall()
        )
        await chat.says("forget zinc tub")
        await chat.presses(erasure.FORGET)
        revised = await chat.cards.store.to_revise()
        row = await chat.cards.store.row(former)

    assert (ANNS_CHAT, former) in revised
    assert row is not None
    assert row.revision is not None
    assert "zinc tub" not in row.revision


async def test_the_same_command_finishes_what_a_kill_cut_short(home: Path) -> None:
    class Killed(BaseException):
        pass

    def dies(stage: ForgetStage) -> None:
        if stage is ForgetStage.ROWS:
            raise Killed

    async with opened_chat(home) as chat:
        with pytest.raises(Killed):
            await chat.opened.forgetting.forget(wish(facts=(1,)), dies)
    async with opened_chat(home) as chat:
        assert "no f1 here" in await chat.says("forget f1 yes", by=BENN)
        assert (await chat.says("forget f1 yes")).startswith("**Forgotten**")

    assert files_with(home, *TRACES_OF_IT) == []


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        (StorageError("No space is left."), "⚠️ That did not work: No space is left."),
        # What cannot be done just now reads like no fault.
        (ForgettingRefused("Say it again then."), "Say it again then."),
    ],
)
async def test_trouble_while_forgetting_is_told_on_the_card(
    home: Path, trouble: Exception, told: str
) -> None:
    async with opened_chat(home) as chat:
        forgetting = chat.opened.forgetting

        class Troubled:
            find, under_way, resume = forgetting.find, forgetting.under_way, forgetting.resume

            async def forget(self, wish: object) -> Proof:
                raise trouble

        chat.memory.forgetting = Troubled()  # type: ignore[assignment]
        await chat.says("forget f1")
        await chat.presses(erasure.FORGET)

    assert chat.cards.last == told


async def test_whatever_breaks_at_the_start_ends_nothing_else(home: Path) -> None:
    async with opened_chat(home) as chat:
        forgetting = chat.opened.forgetting

        class Broken:
            find, under_way, forget = forgetting.find, forgetting.under_way, forgetting.forget

            async def resume(self) -> Proof:
                raise ValueError("nobody foresaw it")

        chat.memory.forgetting = Broken()  # type: ignore[assignment]
        chat.questions.start()
        await chat.questions.idle()

        assert "no f99 here" in await chat.says("forget f99")


# --- taking out ----------------------------------------------------------------------------------


async def test_all_of_it_is_given_as_text_to_read(chat: Chat) -> None:
    await chat.remember("Ann lives in Oslo.")
    await chat.remember("Ann moved to Bergen.")

    said = await chat.says("export")

    assert "## Background" in said
    assert "- f3 Ann moved to Bergen. (1 Aug 2026, by person)" in said
    assert "## No longer so\n\n- f2 Ann lives in Oslo. (1 Aug 2026 to 1 Aug 2026, then f3" in said
    assert "- preferences: keys" in said
    assert "house.md" in said
    assert "`hearthbot memory import FILE`" in await chat.says("import")


async def test_what_is_too_much_for_a_chat_is_for_a_file(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "EXPORT_CHARS_MAX", 100)

    assert "--out FILE" in await chat.says("export")
