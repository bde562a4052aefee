"""Arguments by somebody else's schema: coerced where one thing can be meant, else refused."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.mcp.schema import sendable
from agent.mcp.tools import ServerArguments
from agent.tools.arguments import ArgumentsWrong
from tests.agent.tools.schemas import any_json, any_schema
from tests.thorough import rounds

Json = dict[str, Any]


def parsed(schema: Json, data: Json) -> Json:
    return ServerArguments(schema, shown=sendable(schema)).parse(data)


def of(**properties: Any) -> Json:
    return {"type": "object", "properties": properties}


@pytest.mark.case("TO-09")
def test_a_parameter_behind_a_reference_reaches_the_server() -> None:
    schema = {
        "type": "object",
        "properties": {
            "parent": {"$ref": "#/$defs/parent"},
            "node": {"$ref": "#/$defs/node"},
            "odd": {"$ref": "#/$defs/a~1b%20c"},
        },
        "required": ["parent"],
        "$defs": {
            "parent": {
                "oneOf": [
                    {
                        "type": "object",
                        "properties": {"page_id": {"type": "string"}},
                        "required": ["page_id"],
                    },
                    {
                        "type": "object",
                        "properties": {"database_id": {"type": "string"}},
                        "required": ["database_id"],
                    },
                ]
            },
            "node": {"type": "object", "properties": {"child": {"$ref": "#/$defs/node"}}},
            "a/b c": {"type": "integer"},
        },
    }
    deep: Json = {}
    for _ in range(40):
        deep = {"child": deep}

    assert parsed(schema, {"parent": {"page_id": "p"}}) == {"parent": {"page_id": "p"}}
    assert parsed(schema, {"parent": {"page_id": 7}, "odd": "7"}) == {
        "parent": {"page_id": "7"},
        "odd": 7,
    }
    assert parsed(schema, {"parent": {"page_id": "p"}, "node": deep})["node"] == deep
    with pytest.raises(ArgumentsWrong, match="missing: parent"):
        parsed(schema, {})


@pytest.mark.case("TO-09")
def test_either_kind_of_an_unclear_choice_is_left_to_the_server() -> None:
    """The recorded schema to the letter: both choices allow anything, and `oneOf` wants one."""
    either = [
        {"type": "object", "properties": {"page_id": {"type": "string"}}},
        {"type": "object", "properties": {"database_id": {"type": "string"}}},
    ]

    assert parsed(of(parent={"oneOf": either}), {"parent": {"page_id": "p"}}) == {
        "parent": {"page_id": "p"}
    }


@pytest.mark.case("TO-11")
def test_values_arrive_as_the_original_schema_wants_them() -> None:
    schema = {
        **of(
            n={"type": "integer", "enum": [1, 2, 3]},
            s={"type": ["string", "null"], "default": None},
            c={"const": "x"},
            d={"type": "string", "format": "date-time"},
            t={"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
            p={"type": "number", "exclusiveMinimum": 0},
        ),
        "required": ["n"],
    }

    assert parsed(schema, {"n": 2, "s": None, "c": "x"}) == {"n": 2, "s": None, "c": "x"}
    assert parsed(schema, {"n": "2", "t": ["a", "5"], "p": "0.5"}) == {
        "n": 2,
        "t": ["a", 5],
        "p": 0.5,
    }
    assert parsed(schema, {"n": 2, "p": None}) == {"n": 2}, "a null that nobody wants is dropped"
    with pytest.raises(ArgumentsWrong, match="'p'"):
        parsed(schema, {"n": 2, "p": 0})
    with pytest.raises(ArgumentsWrong, match="'n'"):
        parsed(schema, {"n": 4})


@pytest.mark.parametrize(
    ("wanted", "written", "meant"),
    [
        ({"type": "integer"}, " 5 ", 5),
        ({"type": "integer"}, 5.0, 5),
        ({"type": "number"}, "5.5", 5.5),
        ({"type": "boolean"}, "True", True),
        ({"type": "string"}, 5, "5"),
        ({"type": "array", "items": {"type": "integer"}}, '["1", 2]', [1, 2]),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": ["integer", "string"]}, "5", "5"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "5", "5"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, None),
        ({"enum": [1, 2]}, "2", 2),
        ({"type": "string", "enum": ["a\u200b", "b"]}, "a", "a\u200b"),
        ({"allOf": [{"type": "integer"}, {"minimum": 3}]}, "4", 4),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"x": "1"}, {"x": 1}),
        ({}, "5", "5"),
    ],
)
def test_what_is_written_is_taken_as_it_is_meant(wanted: Any, written: Any, meant: Any) -> None:
    (value,) = parsed(of(v=wanted), {"v": written}).values()

    assert value == meant
    assert type(value) is type(meant)


@pytest.mark.parametrize(
    ("wanted", "written"),
    [
        ({"type": "integer"}, "five"),
        ({"type": "integer"}, True),
        ({"type": "boolean"}, "yes"),
        ({"type": "string"}, ["a"]),
        ({"type": "integer"}, "NaN"),
        ({"type": "number"}, "1e999"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(wanted: Any, written: Any) -> None:
    with pytest.raises(ArgumentsWrong) as refusal:
        parsed({**of(v=wanted), "required": ["v"]}, {"v": written})

    assert 0 < len(str(refusal.value)) < 400


def test_names_are_mapped_back_at_every_depth() -> None:
    schema = of(größe=of(**{"x y": {"type": "integer"}}))
    shown = sendable(schema)
    (outer,) = shown["properties"]
    (inner,) = shown["properties"][outer]["properties"]

    assert parsed(schema, {outer: {inner: "1"}}) == {"größe": {"x y": 1}}
    assert parsed(schema, {"größe": {"x y": 1}}) == {"größe": {"x y": 1}}


def test_a_pattern_of_a_stranger_is_not_searched_by() -> None:
    schema = of(v={"type": "string", "pattern": "^(a+)+$"})
    started = time.perf_counter()

    assert parsed(schema, {"v": "a" * 40 + "!"}) == {"v": "a" * 40 + "!"}
    assert time.perf_counter() - started < 1


def test_a_schema_that_doubles_at_each_step_costs_little() -> None:
    bomb: Json = {**of(v={"$ref": "#/$defs/x40"}), "$defs": {"x0": {"type": "integer"}}}
    for n in range(1, 41):
        bomb["$defs"][f"x{n}"] = {"anyOf": [{"$ref": f"#/$defs/x{n - 1}"}] * 2}
    started = time.perf_counter()

    parsed(bomb, {"v": ["5"] * 2_000})

    assert time.perf_counter() - started < 5


def choices(count: int) -> Json:
    """A list of objects of as many kinds, none of which has `z`."""
    kinds = [{**of(**{f"k{n}": {"const": n}}), "required": [f"k{n}"]} for n in range(count)]
    return of(a={"type": "array", "items": {"anyOf": kinds}})


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        (choices(600), [{"z": 1}] * 3_000),
        (of(a={"items": {"anyOf": [{"type": "integer"}] * 600}}), ["x" * 5_000] * 50),
        (of(a={"items": {"enum": list(range(50_000))}}), ["x"] * 1_000),
    ],
    ids=["choices", "long", "enum"],
)
def test_what_would_take_long_to_check_is_refused_before(schema: Json, data: Any) -> None:
    with pytest.raises(ArgumentsWrong, match="hold too much to be checked"):
        parsed(schema, {"a": data})


@given(any_schema, st.dictionaries(st.text(max_size=6) | st.sampled_from("ab"), any_json))
@settings(max_examples=rounds(30, 300))
def test_no_schema_and_no_arguments_raise_anything_else(schema: Any, data: Json) -> None:
    arguments = ServerArguments(schema, shown=sendable(schema))

    try:
        made = arguments.parse(data)
    except ArgumentsWrong:
        pass
    else:
        json.dumps(made, allow_nan=False).encode()
        assert arguments.parse(made) == made, "what is right stays as it is"
