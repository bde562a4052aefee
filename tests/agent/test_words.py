"""Words and phrases: folding, cutting, looking up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory.records.words import FoundPhrase, Phrases, fold, forms, read_list, squeezed, words


def test_case_width_apostrophes_dashes_and_unseen_characters_are_alike() -> None:
    assert fold("Ｔhat’s a so\u00adft–ware ☎\ufe0f") == "that's a soft-ware ☎"
    assert fold("STRASSE") == fold("Straße")


def test_accents_stay_as_typed() -> None:
    assert fold("cafe\u0301") == fold("café") != fold("cafe")


def test_words_keep_inner_apostrophes_and_underscores_and_lose_outer_ones() -> None:
    found = [word.text for word in words("'it's' _my_ read_file __ x")]

    assert found == ["it's", "my", "read_file", "x"]


def test_words_say_where_they_stand() -> None:
    text = "__ab__ cd 日本 ef"

    assert [text[word.start : word.end] for word in words(text)] == ["ab", "cd", "ef"]


def test_forms_follow_english_spelling() -> None:
    assert {"replies", "replied", "replying"} <= forms("reply")
    assert {"planned", "planning", "plans"} <= forms("plan")
    assert {"scheduled", "scheduling"} <= forms("schedule")
    assert "playied" not in forms("play")
    assert "showwing" not in forms("show")


def test_a_list_has_an_entry_a_line_and_comments() -> None:
    assert read_list("\ufeff# why\r\n\r\n good morning \n=ok\n#x\n") == ("good morning", "=ok")


def test_without_endings_phrases_are_taken_as_they_are() -> None:
    phrases = Phrases(["i cannot", "no tool"], endings=False)

    assert phrases.all("i cannot, no tools, no tool") == [
        FoundPhrase(0, 0, 8),
        FoundPhrase(1, 20, 27),
    ]


def test_phrases_that_begin_alike_are_all_found() -> None:
    phrases = Phrases(["new", "new mail", "new mail today", "mail"], endings=True)

    assert set(phrases.first("new mail today")) == {0, 1, 2, 3}
    assert set(phrases.first("new mails")) == {0, 1, 3}


def test_equal_phrases_are_each_found() -> None:
    assert set(Phrases(["mail", "Mail"], endings=True).first("mails")) == {0, 1}


@given(st.text())
def test_folding_twice_changes_nothing_more_for_plain_letters(text: str) -> None:
    once = squeezed(fold(text))

    for word in words(once):
        assert once[word.start : word.end] == word.text
        assert word.text.strip("_") == word.text != ""


@given(st.lists(st.text("ab c+", max_size=5), max_size=5), st.text("ab c+'", max_size=30))
def test_first_and_all_agree(phrases: list[str], text: str) -> None:
    lookup = Phrases(phrases, endings=True)
    flat = squeezed(fold(text))

    assert set(lookup.first(flat)) == {found.phrase for found in lookup.all(flat)}
