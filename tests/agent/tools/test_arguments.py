"""Arguments that a model wrote: coerced, repaired, or refused in words."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field, field_validator

from agent.guards.loose_json import read_object
from agent.tools.arguments import Arguments, ArgumentsWrong, parse_arguments, schema_of
from tests.thorough import rounds


class Inner(Arguments):
    title: str = "t"
    size: int | None = None


class Wanted(Arguments):
    """Not shown to a model."""

    path: str = Field(description="where")
    count: int = 1
    deep: bool = False
    last: int | None = None
    inner: Inner | None = None


def read(text: str) -> dict[str, Any]:
    read: Wanted = parse_arguments(Wanted, text)
    return read.model_dump(exclude_defaults=True)


def test_numbers_and_booleans_written_as_strings_are_coerced() -> None:
    found = read('{"path": "a", "count": "5", "deep": "true", "last": "7"}')

    assert found == {"path": "a", "count": 5, "deep": True, "last": 7}


def test_a_number_where_a_string_is_wanted_becomes_one() -> None:
    assert read('{"path": 12}') == {"path": "12"}


def test_nulls_of_optional_parameters_are_dropped_at_every_depth() -> None:
    found = read('{"path": "a", "count": null, "last": null, "inner": {"title": null}}')

    assert found == {"path": "a", "inner": {}}


def test_a_null_where_a_value_is_needed_is_refused() -> None:
    with pytest.raises(ArgumentsWrong, match="'path': input should be a valid string"):
        read('{"path": null}')


def test_an_unknown_parameter_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ArgumentsWrong, match=r"'file' \(known: path, count, deep, last, inner\)"):
        read('{"path": "a", "file": "b"}')


def test_a_missing_parameter_is_named() -> None:
    with pytest.raises(ArgumentsWrong, match="parameter 'path' is missing"):
        read("")


def test_a_check_of_our_own_is_told_in_its_own_words_alone() -> None:
    class When(Arguments):
        day: str

        @field_validator("day")
        @classmethod
        def _known(cls, day: str) -> str:
            raise ValueError(f"{day!r} is no day")

    with pytest.raises(ArgumentsWrong, match="'day': 'never' is no day"):
        parse_arguments(When, '{"day": "never"}')


def test_many_problems_are_told_in_a_few_words() -> None:
    unknown = ", ".join(f'"x{n}": 1' for n in range(40))

    with pytest.raises(ArgumentsWrong, match="and 36 more problems") as caught:
        read("{" + unknown + "}")

    assert len(str(caught.value)) < 600
    assert "pydantic" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        '{"path": "a.md"}',
        '{"path": "a.md",}',
        "{'path': 'a.md'}",
        '{path: "a.md"}',
        '```json\n{"path": "a.md"}\n```',
        '"{\\"path\\": \\"a.md\\"}"',
        '{"path": "a.md", "last": None}',
        '{"path": "a.md", "deep": False}',
    ],
)
def test_what_can_mean_one_thing_only_is_repaired(text: str) -> None:
    assert read(text) == {"path": "a.md"}


def test_raw_line_breaks_in_a_string_are_let_pass() -> None:
    assert read('{"path": "a\nb"}') == {"path": "a\nb"}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("{'path': 'say \"x\"'}", 'say "x"'),
        ("{'path': 'it\\'s',}", "it's"),
        ('{path: "it\'s, {all} [of] it: True,}",}', "it's, {all} [of] it: True,}"),
        ("{'path': 'a\\n\\\\b\\u00e9 \\\"c\\\"'}", 'a\n\\bé "c"'),
        ('{"path": "two\nlines",}', "two\nlines"),
        ("{'path': ''}", ""),
    ],
)
def test_a_repair_never_changes_a_string(text: str, path: str) -> None:
    assert read(text) == {"path": path}


@pytest.mark.parametrize(
    "text",
    [
        '{"path": "he said "hi" to me"}',
        '{"path": ""quoted""}',
        '{"path": "x """}',
        '{"path": ""a" + "b""}',
        "{'path': 'it's'}",
        '{"path": "a" "b"}',
        '{"path": a b}',
        '{"path": a.md}',
        '{"path": "a",, "b": 1}',
        '{,"path": "a"}',
        '{"path": "a"} // done',
        "{'path': 'a\\x41'}",
    ],
)
def test_what_could_mean_several_things_is_not_guessed(text: str) -> None:
    with pytest.raises(ArgumentsWrong, match="not a JSON object"):
        read(text)


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=12) | st.booleans() | st.none()))
@settings(max_examples=rounds(100, 1_000))
def test_a_repaired_object_is_the_one_that_was_written(data: dict[str, object]) -> None:
    whole = json.dumps(data, ensure_ascii=False)

    assert read_object(whole[:-1] + ",}" if data else whole) == data
    printable = {str(key): value for key, value in data.items() if f"{key}{value}".isprintable()}
    assert read_object(repr(printable)) == printable


@pytest.mark.parametrize(
    "text",
    [
        "{" * 100_000 + "}" * 100_000,
        '{"path":' + "[" * 90_000 + "]" * 90_000 + ",}",
        '{"path": "' + 'print("x", {"a": [1]})' * 9_000 + '"}',
        "{'path': '" + "it's a 'x' " * 15_000 + "'}",
        '{"path": ' + "\\" * 190_000,
        '{"path": "' + '\\"' * 95_000,
        "```" + "\n" * 190_000,
        "```json" + " \n" * 95_000 + "{}",
        "{" + "," * 190_000 + "}",
        "{" + "a-" * 95_000 + "}",
    ],
)
def test_no_text_takes_long_to_be_refused(text: str) -> None:
    started = time.process_time()

    with pytest.raises(ArgumentsWrong):
        read(text)

    assert time.process_time() - started < 5, "a guard against minutes"


@pytest.mark.case("AG-01")
@pytest.mark.parametrize(
    "text",
    [
        '{"path": "notes.md", "content": "line 1\\nline 2',
        '{"path": "notes.md"',
        '{"path": "notes.md", "inner": {"title": "x"}',
        '{"path": "notes.md", "content": "if (x) { y }',
        "{'path': 'notes",
    ],
)
def test_what_may_have_been_cut_is_never_completed(text: str) -> None:
    with pytest.raises(ArgumentsWrong, match="not a JSON object"):
        read(text)


@pytest.mark.parametrize(
    "text", ["[]", "3", "null", "read it", "[" * 100_000, '{"path": "a"} or {}']
)
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ArgumentsWrong, match="not a JSON object"):
        read(text)


def test_a_schema_holds_what_a_model_needs_and_no_more() -> None:
    class Small(Arguments):
        """Words for programmers."""

        title: str = Field(description="of the note")
        last: int | None = Field(default=None, ge=1)

    assert schema_of(Small) == {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "of the note"},
            "last": {"type": "integer", "minimum": 1},
        },
        "required": ["title"],
    }
