"""A server's JSON schema as every provider takes it: the copy that a model is shown. Pure.

Providers differ in what they refuse, so the copy has only what all take: plain types, one at a
time, `properties` always, words in `enum`, `items` in every list, `anyOf` below the top, and no
references. What is lost by it is said in words. Nothing in it is hidden from a reader, since its
owner approves what is seen. Arguments are read by the original.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.mcp.json_schema import Schema, inlined, shown_properties
from agent.mcp.tools import ServerArguments, is_wanted
from agent.mcp.values import ServerOptions, ServerTool
from agent.tools.tool import Effect
from memory.records.rows import ApprovedTool
from memory.records.text import seen

DEPTH_MAX = 8
PROPERTIES_MAX = 100
ENUM_MAX = 100
ENUM_CHARS_MAX = 100
ABOUT_CHARS_MAX = 300
SCHEMA_CHARS_MAX = 12_000
"""Of one tool: an attacker, or a careless server, could fill a prompt with one of them."""


def sendable(schema: object) -> Schema:
    """The copy: always an object with `properties`, within bounds, whatever comes in."""
    whole = _at_top(inlined(schema))
    for depth, has_words in ((DEPTH_MAX, True), (3, True), (2, False), (1, False)):
        copy = _Copy(depth_max=depth, has_words=has_words).object(whole, depth=0)
        if len(json.dumps(copy, ensure_ascii=False)) <= SCHEMA_CHARS_MAX:
            return copy
    return {"type": "object", "properties": {}}


def _at_top(schema: Schema) -> Schema:
    """One object in place of choices and unions, which no provider takes at the top.

    Of choices all parameters are offered, and those are required that each of them requires.
    """
    merged = _all_of(schema)
    for key in ("anyOf", "oneOf"):
        choices = [_at_top(one) for one in merged.pop(key, ())]
        if choices:
            properties: Schema = dict(merged.get("properties", {}))
            for choice in choices:
                for name, part in choice.get("properties", {}).items():
                    known = properties.get(name)
                    if known is None:
                        properties[name] = part
                    elif known != part and part not in known.get("anyOf", ()):
                        former = known["anyOf"] if set(known) == {"anyOf"} else [known]
                        properties[name] = {"anyOf": [*former, part]}
            shared = set.intersection(*(set(choice.get("required", ())) for choice in choices))
            own = merged.get("required", ())
            required = [*own, *(name for name in properties if name in shared and name not in own)]
            merged = {**merged, "properties": properties, "required": required}
    merged["type"] = "object"
    return merged


def _all_of(schema: Schema) -> Schema:
    """`allOf` put together."""
    merged = {key: value for key, value in schema.items() if key != "allOf"}
    for part in schema.get("allOf", ()):
        merged = _together(merged, _all_of(part))
    return merged


def _together(left: Schema, right: Schema) -> Schema:
    made = {**right, **left}
    if "properties" in left and "properties" in right:
        made["properties"] = {**left["properties"], **right["properties"]}
    required = [*left.get("required", ()), *right.get("required", ())]
    if required:
        made["required"] = list(dict.fromkeys(required))
    return made


class _Copy:
    """Writes the copy of one schema."""

    def __init__(self, *, depth_max: int, has_words: bool) -> None:
        self._depth_max = depth_max
        self._has_words = has_words

    def object(self, schema: Schema, *, depth: int) -> Schema:
        made: Schema = {"type": "object", "properties": {}}
        properties = schema.get("properties", {})
        if depth < self._depth_max:
            wanted = schema.get("required", ())
            shown = list(shown_properties(properties).items())
            if len(shown) > PROPERTIES_MAX:
                shown = sorted(shown, key=lambda pair: pair[1] not in wanted)[:PROPERTIES_MAX]
            made["properties"] = {
                name: self.node(properties[original], depth=depth + 1) for name, original in shown
            }
            required = [name for name, original in shown if original in wanted]
            if required:
                made["required"] = required
        notes: list[str] = []
        if isinstance(more := schema.get("additionalProperties"), dict):
            kind = _kind(more) if not isinstance(more.get("type"), list) else ""
            notes.append(f"any further names, each with {kind or 'a value'}")
        return self._described(made, schema, notes)

    def node(self, schema: Schema, *, depth: int) -> Schema:
        schema = _all_of(schema)
        notes: list[str] = []
        choices = _choices(schema)
        if choices:
            return self._one_of(schema, choices, depth=depth)
        if "const" in schema:
            schema = {**schema, "enum": [schema["const"]]}
        kind = _kind(schema)
        if kind == "object":
            return self.object(schema, depth=depth)
        made: Schema = {"type": kind} if kind else {}
        if kind == "array":
            made["items"] = self._items(schema, notes, depth=depth)
        _put_enum(schema, made, notes)
        _put_bounds(schema, made, notes)
        if schema.get("default") is not None:
            default = schema["default"]
            made["default"] = seen(default) if isinstance(default, str) else default
        if "format" in schema:
            notes.append(f"format: {schema['format'][:40]}")
        return self._described(made, schema, notes)

    def _one_of(self, schema: Schema, choices: Sequence[Schema], *, depth: int) -> Schema:
        made = [self.node(choice, depth=depth + 1) for choice in choices]
        made = [one for n, one in enumerate(made) if one not in made[:n]]
        if depth >= self._depth_max or {} in made:
            return self._described({}, schema, [])
        if len(made) > 1:
            return self._described({"anyOf": made[:ENUM_MAX]}, schema, [])
        notes = [made[0]["description"]] if "description" in made[0] else []
        return self._described(dict(made[0]), schema, [] if "description" in schema else notes)

    def _items(self, schema: Schema, notes: list[str], *, depth: int) -> Schema:
        places = schema.get("prefixItems", [])
        if depth >= self._depth_max or not (places or schema.get("items")):
            return {"type": "string"}
        if not places:
            return self.node(schema["items"], depth=depth + 1) or {"type": "string"}
        made = [self.node(one, depth=depth + 1) for one in places]
        notes.append("in this order: " + ", ".join(one.get("type", "any") for one in made))
        made = [one for n, one in enumerate(made) if one and one not in made[:n]]
        if not made:
            return {"type": "string"}
        return made[0] if len(made) == 1 else {"anyOf": made}

    def _described(self, made: Schema, schema: Schema, notes: Sequence[str]) -> Schema:
        words = [schema["description"]] if "description" in schema else []
        if notes:
            words.append(f"({'; '.join(notes)})")
        text = " ".join(seen(" ".join(words)).split())
        if text and self._has_words:
            made["description"] = text[:ABOUT_CHARS_MAX]
        else:
            made.pop("description", None)
        return made


def _choices(schema: Schema) -> list[Schema]:
    """Return what may stand here, one type each; empty where there is no choice. Null goes: a
    parameter that may be null is one that can be left out."""
    rest = {key: value for key, value in schema.items() if key not in {"anyOf", "oneOf"}}
    found = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if found:
        base = {k: v for k, v in rest.items() if k not in {"description", "title", "default"}}
        real = [one for one in found if one.get("type") != "null"]
        return [_together(one, base) if base else one for one in real or found[:1]]
    if isinstance(kinds := schema.get("type"), list):
        real_kinds = [kind for kind in kinds if kind != "null"] or kinds[:1]
        plain = {k: v for k, v in schema.items() if k not in {"description", "default"}}
        return [{**plain, "type": kind} for kind in real_kinds]
    return []


def _kind(schema: Schema) -> str:
    """The one type, by what else is said where none is named."""
    if "type" in schema:
        return "string" if schema["type"] == "null" else str(schema["type"])
    if schema.keys() & {"properties", "required", "additionalProperties"}:
        return "object"
    if schema.keys() & {"items", "prefixItems", "minItems", "maxItems"}:
        return "array"
    if "enum" in schema and all(isinstance(one, str) for one in schema["enum"]):
        return "string"
    return ""


def _put_enum(schema: Schema, made: Schema, notes: list[str]) -> None:
    values = schema.get("enum")
    if not values:
        return
    values = [one for one in values if one is not None][:ENUM_MAX]
    values = [seen(one) if isinstance(one, str) else one for one in values]
    are_short = all(isinstance(one, str) and 0 < len(one) <= ENUM_CHARS_MAX for one in values)
    if made.get("type") == "string" and values and are_short:
        made["enum"] = list(dict.fromkeys(values))
    elif values:
        notes.append(f"one of: {', '.join(_word(one) for one in values)}")


_BOUNDS: Mapping[str, tuple[str, ...]] = {
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "string": ("minLength", "maxLength", "pattern"),
    "array": ("minItems", "maxItems"),
}


def _put_bounds(schema: Schema, made: Schema, notes: list[str]) -> None:
    for key in _BOUNDS.get(made.get("type", ""), ()):
        if key in schema:
            bound = schema[key]
            made[key] = seen(bound) if isinstance(bound, str) else bound
    for key, words in (("exclusiveMinimum", "more than"), ("exclusiveMaximum", "less than")):
        if key in schema:
            notes.append(f"{words} {_word(schema[key])}")


def _word(value: Any) -> str:
    return seen(json.dumps(value, ensure_ascii=False))[:60]


# --- presentation -------------------------------------------------------------------------------
#
# A tool of a server as it is shown: the same to a model, and to the owner who approves it. Pure;
# called by `agent.mcp.servers`, in a thread.

DESCRIPTION_CHARS_MAX = 1_000
NAME_CHARS_SHOWN = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTool:
    """What is listed, and what of it is shown. `digest` names all that is listed."""

    listed: ServerTool
    digest: str
    description: str
    arguments: ServerArguments

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The schema that a model is shown."""
        return self.arguments.schema()

    def approved(self) -> ApprovedTool:
        """The owner's word on exactly this."""
        return ApprovedTool(
            tool=self.listed.name,
            digest=self.digest,
            description=self.description,
            parameters=json.dumps(self.parameters),
        )


def shown_tools(
    tools: Sequence[ServerTool], known: Mapping[str, ShownTool]
) -> tuple[list[ShownTool], list[str]]:
    """Those that can be read, and the names of those that cannot: one spoils no other.

    What is `known`, by its own name, and has not changed is taken as it is: reading hundreds of
    large schemas takes seconds.
    """
    found: list[ShownTool] = []
    unreadable: list[str] = []
    for tool in tools:
        try:
            digest, before = digest_of(tool), known.get(tool.name)
            if before is None or before.digest != digest:
                before = ShownTool(
                    listed=tool,
                    digest=digest,
                    description=described(tool),
                    arguments=ServerArguments(tool.schema, shown=sendable(tool.schema)),
                )
            found.append(before)
        except _SLIPS:
            unreadable.append(seen(tool.name)[:NAME_CHARS_SHOWN])
    return found, unreadable


_SLIPS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What code can raise on a value that nobody thought of, such as a number of 5,000 digits."""


def former_parameters(approved: ApprovedTool) -> Mapping[str, Any] | None:
    """Return what a model was shown when the owner approved it; None where that was not kept."""
    try:
        schema = json.loads(approved.parameters)
    except ValueError:
        return None
    return schema if isinstance(schema, dict) else None


def digest_of(tool: ServerTool) -> str:
    """Return what the owner approves: all that a model reads of it, and what it is said to
    change."""
    content = [tool.name, tool.description, tool.schema, tool.read_only, tool.idempotent]
    written = json.dumps(content, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(written.encode()).hexdigest()


def described(tool: ServerTool) -> str:
    """The description: readable and not too long. Never empty: some providers refuse that."""
    text = seen(tool.description).strip()
    if len(text) > DESCRIPTION_CHARS_MAX:
        text = text[: DESCRIPTION_CHARS_MAX - 1].rstrip() + "…"
    return text or f"{seen(tool.name)[:NAME_CHARS_SHOWN]}, which its server does not describe."


def effect_of(tool: ServerTool, options: ServerOptions) -> Effect:
    """The server's word counts, unless the owner said otherwise."""
    if options.outside and is_wanted(tool.name, options.outside):
        return Effect.OUTSIDE
    if options.read_only and is_wanted(tool.name, options.read_only):
        return Effect.NONE
    return Effect.NONE if tool.read_only else Effect.OUTSIDE


def is_vouched_for(tool: ServerTool, options: ServerOptions) -> bool:
    """Return whether the owner said that it only reads, or trusts its server with what it is
    told."""
    named = bool(options.read_only) and is_wanted(tool.name, options.read_only)
    return named or options.is_trusted
