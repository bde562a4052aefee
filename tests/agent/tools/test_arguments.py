"""Arguments that a model wrote: coerced, repaired, or refused in words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field, field_validator

from agent.guards.tool_call_text import read_object
from agent.tools.arguments import Arguments, ArgumentsWrong, parse_arguments
from tests.agent.house import of_model
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
    read: Wanted = parse_arguments(of_model(Wanted), text)
    return read.model_dump(exclude_defaults=True)


def test_nulls_of_optional_parameters_are_dropped_at_every_depth() -> None:
    found = read('{"path": "a", "count": null, "last": null, "inner": {"title": null}}')

    assert found == {"path": "a", "inner": {}}


def test_a_check_of_our_own_is_told_in_its_own_words_alone() -> None:
    class When(Arguments):
        day: str

        @field_validator("day")
        @classmethod
        def _known(cls, day: str) -> str:
            raise ValueError(f"{day!r} is no day")

    with pytest.raises(ArgumentsWrong, match="'day': 'never' is no day"):
        parse_arguments(of_model(When), '{"day": "never"}')


@pytest.mark.parametrize(
    "text",
    [
        '{"path": "a.md",}',
        "{'path': 'a.md'}",
        '{path: "a.md"}',
        '```json\n{"path": "a.md"}\n```',
        '"{\\"path\\": \\"a.md\\"}"',
        '{"path": "a.md", "last": None}',
    ],
)
def test_what_can_mean_one_thing_only_is_repaired(text: str) -> None:
    assert read(text) == {"path": "a.md"}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("{'path': 'say \"x\"'}", 'say "x"'),
        ('{path: "it\'s, {all} [of] it: True,}",}', "it's, {all} [of] it: True,}"),
        ("{'path': 'a\\n\\\\b\\u00e9 \\\"c\\\"'}", 'a\n\\bé "c"'),
        ('{"path": "two\nlines",}', "two\nlines"),
    ],
)
def test_a_repair_never_changes_a_string(text: str, path: str) -> None:
    assert read(text) == {"path": path}


@pytest.mark.parametrize(
    "text",
    [
        '{"path": "he said "hi" to me"}',
        '{"path": ""a" + "b""}',
        "{'path': 'it's'}",
        '{"path": "a" "b"}',
        '{"path": a.md}',
        '{"path": "a",, "b": 1}',
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


@pytest.mark.case("AG-01")
@pytest.mark.parametrize(
    "text",
    [
        '{"path": "notes.md", "content": "line 1\\nline 2',
        '{"path": "notes.md", "inner": {"title": "x"}',
        "{'path': 'notes",
    ],
)
def test_what_may_have_been_cut_is_never_completed(text: str) -> None:
    with pytest.raises(ArgumentsWrong, match="not a JSON object"):
        read(text)


def test_a_schema_holds_what_a_model_needs_and_no_more() -> None:
    class Small(Arguments):
        """Words for programmers."""

        title: str = Field(description="of the note")
        last: int | None = Field(default=None, ge=1)

    assert of_model(Small).schema() == {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "of the note"},
            "last": {"type": "integer", "minimum": 1},
        },
        "required": ["title"],
    }
