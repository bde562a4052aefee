"""JSON schemas for tests: those of real servers, and whatever else one could be sent."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from agent.mcp.schema import sendable
from agent.mcp.tools import ServerArguments
from agent.tools.arguments import ArgumentsWrong

Json = dict[str, Any]

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=True)
    | st.text(st.characters() | st.sampled_from("\x00\x1b\ud83d\u2028'\"\\~/%"), max_size=12)
    | st.sampled_from(["1", "2.0", "true", "False", "null", "[]", "{}", "[1]", '{"a": 1}', "NaN"])
)
any_json = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)

_names = st.sampled_from(["a", "b", "größe", "x y", "$ref", "type", "properties", "n" * 70])
_types = st.sampled_from(
    ["string", "integer", "number", "boolean", "array", "object", "null", "any", 5]
)
_refs = st.sampled_from(
    ["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/nowhere", "http://x/y", "#/$defs/a~1", 7]
)


def _keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    parts = st.lists(inner, max_size=3)
    named = st.dictionaries(_names, inner, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": _types | st.lists(_types, max_size=3),
            "properties": named | st.none() | scalars,
            "required": st.lists(_names | scalars, max_size=3) | scalars,
            "items": inner | parts,
            "prefixItems": parts,
            "anyOf": parts,
            "oneOf": parts,
            "allOf": parts | scalars,
            "not": inner,
            "enum": st.lists(scalars, max_size=3) | scalars,
            "const": any_json,
            "default": any_json,
            "minimum": scalars,
            "maxLength": scalars,
            "pattern": st.sampled_from(["(a+)+$", "[", "^x"]),
            "patternProperties": named,
            "additionalProperties": inner | st.booleans(),
            "description": st.text(max_size=20) | scalars,
            "$defs": st.dictionaries(st.sampled_from(["a", "b", "a/"]), inner, max_size=2),
            "$ref": _refs,
            "nullable": st.booleans(),
            "format": scalars,
        },
    )


any_schema: st.SearchStrategy[Any] = _keywords(
    st.recursive(st.booleans() | st.just({}) | any_json, _keywords, max_leaves=6)
)
"""An object, as the protocol wants it, with all that can be wrong within."""


def fuzz(chance: random.Random, schemas: Sequence[Json], *, calls: int) -> int:
    """Calls tools of these schemas with what nearly fits; how many were taken."""
    tools = [ServerArguments(one, shown=sendable(one)) for one in schemas]
    right = 0
    for _ in range(calls):
        n = chance.randrange(len(tools))
        data = _nearly(chance, schemas[n])
        try:
            tools[n].parse(data if isinstance(data, dict) else {"v": data})
            right += 1
        except ArgumentsWrong:
            pass
    return right


def _nearly(chance: random.Random, schema: Any, depth: int = 0) -> Any:
    if chance.random() < 0.1 or not isinstance(schema, dict) or depth > 5:
        return chance.choice(
            [None, True, 0, -1, 1e308, "", "5", "true", "null", [], {}, "\ud83d", [[]], {"a": 1}]
        )
    if "enum" in schema:
        value = chance.choice(schema["enum"])
        return str(value) if chance.random() < 0.3 else value
    match schema.get("type"):
        case "object":
            properties = schema.get("properties") or {}
            made = {
                name: _nearly(chance, part, depth + 1)
                for name, part in properties.items()
                if chance.random() < 0.9
            }
            return {**made, "more": 1} if chance.random() < 0.1 else made
        case "array":
            return [_nearly(chance, schema.get("items"), depth + 1) for _ in range(3)]
        case "integer" | "number":
            return chance.choice([1, "1", 2.0, "2.5", -5])
        case "boolean":
            return chance.choice([True, "false"])
        case _:
            return chance.choice(["text", 5, "2026-01-01"])
