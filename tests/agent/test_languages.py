"""Languages as people and platforms name them: clear ones are taken, others are asked about."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.records.languages import (
    AUTO,
    SUGGESTIONS_MAX,
    language_name,
    language_of,
    read_language,
)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("German", "de"),
        (" deutsch ", "de"),
        ("DE", "de"),
        ("de-AT", "de"),
        ("de_DE", "de"),
        ("Español", "es"),
        ("espanol", "es"),
        ("es-LA", "es"),
        ("Português do Brasil", "pt-br"),
        ("pt_BR", "pt-br"),
        ("brazilian  portuguese", "pt-br"),
        ("中文", "zh"),
        ("zh-Hant-TW", "zh-hant"),
        ("Norsk", "nb"),
        ("Farsi", "fa"),
        ("हिन्दी", "hi"),
        ("ไทย", "th"),
    ],
)
def test_a_language_is_known_by_its_name_its_own_name_and_its_code(said: str, code: str) -> None:
    language = read_language(said).language

    assert language is not None
    assert language.code == code


@pytest.mark.parametrize(
    ("said", "among"),
    [("Germna", "de"), ("Deutch", "de"), ("Portugese", "pt"), ("frensh", "fr"), ("Русски", "ru")],
)
def test_a_typo_is_asked_about(said: str, among: str) -> None:
    read = read_language(said)

    assert read.language is None
    assert among in [language.code for language in read.suggestions]
    assert len(read.suggestions) <= SUGGESTIONS_MAX


@pytest.mark.parametrize("said", ["", " ", "Klingon", "xx", "x" * 1_000_000, "de\x00", "d", "12"])
def test_nonsense_is_no_language(said: str) -> None:
    assert read_language(said).language is None


@pytest.mark.parametrize("code", ["", AUTO, "xx-YY", "German", "de\n## Acting", "../de", "e" * 999])
def test_what_is_no_code_of_the_table_is_no_word_of_a_prompt(code: str) -> None:
    assert language_name(code) == ""


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("en-US", "English"),
        ("zh-TW", "Traditional Chinese"),
        ("zh-CN", "Chinese"),
        ("no", "Norwegian"),
        ("iw", "Hebrew"),
        ("pt-PT", "Portuguese"),
    ],
)
def test_the_codes_of_platforms_are_known(code: str, name: str) -> None:
    assert language_name(code) == name


def test_every_name_that_is_suggested_is_understood() -> None:
    for letter in "abcdefghijklmnopqrstuvwxyz":
        for second in "abcdefghijklmnopqrstuvwxyz":
            language = language_of(letter + second)
            if language is not None:
                assert read_language(language.english).language == language
                assert read_language(language.own).language == language
                assert language.shown.startswith(language.english)


@settings(max_examples=60)
@given(st.text(max_size=50))
def test_whatever_is_said_what_is_taken_reads_back(said: str) -> None:
    read = read_language(said)

    assert not (read.language and read.suggestions)
    for language in (read.language, *read.suggestions):
        assert language is None or language_of(language.code) == language
