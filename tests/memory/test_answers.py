"""A model's JSON is read where its meaning is plain, and refused with words where it is not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.learning.proposals import FoundFacts
from agent.models.client import (
    ANSWER_CHARS_MAX,
    AnswerUnreadable,
    ModelAnswer,
    PlainText,
    read_answer,
)

BERGEN = {"text": "Ana moved.", "quote": "I moved", "certainty": 0.9, "speaker": "Ana"}


class Summary(ModelAnswer):
    summary: PlainText
    at: int = 0


WHOLE = '{"summary": "Ana moved", "at": 3}'


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        f"  {WHOLE}\n",
        f"```json\n{WHOLE}\n```",
        f"Here it is:\n{WHOLE}\nAnything else?",
        json.dumps(WHOLE),
        f'Like {{"summary": "an example"}}, so: {WHOLE}',
        f"I looked at {{line}} 3 [of 5]. {WHOLE}",
        '{"summary": "Ana moved", "at": "3"}',
        '{"summary": "Ana moved", "at": 3, "mood": "fine"}',
        '{"summary": "Ana moved", "at": 3,}',
        "{'summary': 'Ana moved', 'at': 3}",
        '{summary: "Ana moved", at: 3}',
        '{"summary": "Ana moved", "at": 3',
        '```json\n{"summary": "Ana moved", "at": 3,\n```',
    ],
)
def test_an_answer_is_read_whatever_is_around_it_and_whatever_is_forgotten(text: str) -> None:
    answer = read_answer(text, Summary)

    assert answer == Summary(summary="Ana moved", at=3)


@pytest.mark.case("ME-03")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"timestamp": "2026-02-14", "summary": "asked about X"}, "asked about X"),
        ({"text": "asked about X"}, "asked about X"),
        (["asked about X"], "asked about X"),
        ([{"text": "asked about X"}], "asked about X"),
        (7, "7"),
    ],
)
def test_an_object_in_place_of_a_text_is_taken_for_the_text_in_it(value: Any, text: str) -> None:
    assert read_answer(json.dumps({"summary": value}), Summary).summary == text


@pytest.mark.case("ME-03")
@pytest.mark.parametrize(
    "value",
    [{"facts": ["a", "b"]}, {"text": "a", "summary": "b"}, ["a", "b"], {}, [], None, {"text": 1}],
)
def test_an_object_that_may_mean_many_things_is_refused_with_words_for_the_model(
    value: Any,
) -> None:
    with pytest.raises(AnswerUnreadable, match="summary: input should be a valid string"):
        read_answer(json.dumps({"summary": value}), Summary)


@pytest.mark.case("ME-03")
@pytest.mark.parametrize(
    "wrapped",
    [
        {"facts": [{**BERGEN, "text": {"text": BERGEN["text"]}}]},
        {"facts": [{**BERGEN, "quote": {"line": 1, "quote": BERGEN["quote"]}}]},
        {"facts": [{**BERGEN, "speaker": ["Ana"], "certainty": "0.9"}]},
        {"facts": [{**BERGEN, "confidence": 0.9}]},
        {"facts": BERGEN},
        [BERGEN],
        BERGEN,
        {"facts": [BERGEN, "likes tea", {"fact": "lives in Oslo"}, 7, None]},
    ],
)
def test_facts_are_taken_whatever_is_around_them_where_they_are_plain(wrapped: object) -> None:
    found = read_answer(json.dumps(wrapped), FoundFacts)

    (fact,) = found.facts
    assert (fact.text, fact.quote, fact.certainty) == ("Ana moved.", "I moved", 0.9)
    assert found.unreadable in {0, 4}


@pytest.mark.case("ME-03")
@pytest.mark.parametrize(
    "wrong",
    [
        {"facts": ["likes tea", "lives in Oslo"]},
        {"history_entry": {"summary": "x"}, "memory_update": {"facts": ["likes tea"]}},
        {"facts": [{**BERGEN, "text": {"a": "likes tea", "b": "lives in Oslo"}}]},
        {"facts": [{**BERGEN, "certainty": 95}]},
        {"facts": [{**BERGEN, "certainty": float("nan")}]},
        {"facts": [{**BERGEN, "quote": None}]},
        {"facts": "none"},
        {},
    ],
)
def test_facts_that_are_not_plain_are_refused_with_words_for_the_model(wrong: object) -> None:
    with pytest.raises(AnswerUnreadable, match="does not have the wanted form: facts"):
        read_answer(json.dumps(wrong), FoundFacts)


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ('{"summary": "one\ntwo"}', "one\ntwo"),
        ('{"summary": "She said "no" to him", "at": 1}', 'She said "no" to him'),
        ('First {"summary": "draft"} then {"summary": "final"} {"other": 1}', "final"),
    ],
)
def test_what_is_odd_in_an_answer_is_read_as_it_is_meant(text: str, summary: str) -> None:
    assert read_answer(text, Summary).summary == summary


@pytest.mark.parametrize("text", ['{"at": 3, "summary": "Ana mov', '{"at": 3, "summary": "A\\"'])
def test_what_was_cut_within_a_string_is_not_completed(text: str) -> None:
    with pytest.raises(AnswerUnreadable, match="no JSON object"):
        read_answer(text, Summary)


@pytest.mark.parametrize(
    "text",
    ["", "   ", "I would rather not.", "null", "3", '"words"', "[]", "{}", "[1, 2]", "}{", "{[("],
)
def test_what_is_no_answer_is_refused(text: str) -> None:
    with pytest.raises(AnswerUnreadable):
        read_answer(text, Summary)


def test_a_refusal_names_the_field_and_quotes_nothing() -> None:
    with pytest.raises(AnswerUnreadable) as refused:
        read_answer('{"at": "my secret"}', Summary)

    assert "summary: is missing" in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "{" * ANSWER_CHARS_MAX,
        '{"a":' * (ANSWER_CHARS_MAX // 5),
        '{"summary":' + "[" * 20_000,
        "[" * 20_000 + "]" * 20_000,
        '{"summary": "a"}' * (ANSWER_CHARS_MAX // 16 + 1),
        '{"at": ' + "9" * 10_000 + "}",
    ],
)
def test_an_answer_made_to_be_hard_is_refused_at_once(text: str) -> None:
    with pytest.raises(AnswerUnreadable):
        read_answer(text, Summary)


@settings(max_examples=150)
@given(st.text(alphabet='{}[]",:\\ ab1nul\n', max_size=60))
def test_whatever_comes_is_read_or_refused(text: str) -> None:
    try:
        answer = read_answer(text, Summary)
    except AnswerUnreadable:
        return
    assert isinstance(answer, Summary)
