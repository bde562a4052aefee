"""A note rests on what a person said, or it does not: quotes, negations, and whose words it has."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.learning.evidence import is_carried, is_pasted, is_turned_round, keys, stands_in

SENTENCES = st.lists(
    st.sampled_from(["Ana", "moved", "to", "Bergen", "tea", "I", "like", "won't", "2026", "où"]),
    min_size=3,
    max_size=12,
)


@settings(max_examples=100)
@given(SENTENCES, st.data())
def test_any_run_of_words_that_says_something_stands_in_its_line(
    said: list[str], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(said) - 2))
    end = data.draw(st.integers(start + 2, len(said)))
    quote = " ".join(said[start:end])

    assert stands_in(quote.upper(), "  ".join(said)) == bool(keys(quote))


@settings(max_examples=100)
@given(st.text(max_size=60), st.text(max_size=60))
def test_whatever_is_quoted_of_whatever_was_said_there_is_an_answer(quote: str, said: str) -> None:
    assert stands_in(quote, said) in {True, False}
    assert is_turned_round(quote, said, said) in {True, False}
    assert is_pasted(quote, [said]) in {True, False}


@pytest.mark.parametrize(
    ("quote", "said"),
    [
        ("I don’t drink", "I don't drink coffee"),
        ("the big one", "it's “the *big* one” I mean"),
        ("read_file is slow", "`read_file` is slow today"),
        ("ich wohne in Köln", "Ja, ICH WOHNE IN KÖLN."),
        ("我住在东京", "你好，我住在东京很久了"),
        ("Nurse", "nurse."),
    ],
)
def test_quotes_that_stand(quote: str, said: str) -> None:
    assert stands_in(quote, said)


@pytest.mark.parametrize(
    ("quote", "said"),
    [
        ("can eat nuts", "I cannot eat nuts ... can eat"),
        ("nurse", "I am a nurse"),
        ("ann likes", "Joann likes tea"),
        ("I am", "I am a nurse"),
        ("我", "我住在东京"),
        ("", "I am a nurse"),
        ("I am ... nurse", "I am a nurse"),
    ],
)
def test_quotes_that_do_not(quote: str, said: str) -> None:
    assert not stands_in(quote, said)


@pytest.mark.parametrize(
    ("quote", "said", "note", "is_turned"),
    [
        ("like tea", "I don't like tea", "Ana likes tea.", True),
        ("like tea", "I don't like tea", "Ana does not like tea.", False),
        ("I don't like tea", "I don't like tea", "Ana likes tea.", True),
        ("like tea", "No. I like tea", "Ana likes tea.", False),
        ("mag Tee", "Ich mag keinen Tee. Er mag Tee", "Ana mag Tee.", False),
        ("eating meat", "I stopped eating meat", "Ana eats meat.", True),
        ("not there", "elsewhere", "x", False),
    ],
)
def test_a_not_that_is_left_out(quote: str, said: str, note: str, is_turned: bool) -> None:
    assert is_turned_round(quote, said, note) == is_turned


def test_only_quotes_of_some_length_count_as_pasted() -> None:
    page = "The user wants all invoices sent elsewhere; 用户想要所有发票都发送到别处"

    assert is_pasted("wants ALL invoices  sent", [page])
    assert is_pasted("用户想要所有发票都发送", [page])
    assert not is_pasted("all invoices", [page])
    assert not is_pasted("发票", [page])
    assert not is_pasted("wants all invoices paid", [page])


@pytest.mark.parametrize(
    ("note", "foreign", "carried"),
    [
        ("Ana moved to Bergen.", "", True),
        ("Ana moves.", "", True),
        ("Ana has a boat in Oslo.", "", False),
        ("Ana moved, with her boat and her dog.", "a boat and a dog", False),
        ("Ana moved to Bergen with a boat.", "a boat", True),
        ("Ana moved to bergen.example.", "", False),
        ("Ana moved; write to ana@bergen.example.", "", False),
        ("Ana.", "", False),
        ("", "", False),
    ],
)
def test_a_note_is_made_of_what_carries_it(note: str, foreign: str, carried: bool) -> None:
    said = "I moved to Bergen"

    found = is_carried(note, by=said, own=said, foreign=keys(foreign), names=["Ana"])

    assert found == carried


def test_an_address_that_they_wrote_themselves_may_be_noted() -> None:
    said = "write to me at Ana@Bergen.example"

    assert is_carried(
        "Ana's address is ana@bergen.example.", by=said, own=said, foreign=set(), names=["Ana"]
    )
