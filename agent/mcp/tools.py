"""A tool that somebody else wrote: its arguments read by its own schema, its call passed on.

The model was shown a simpler copy of that schema; here the original counts. Built by `agent.mcp`.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from agent.mcp.json_schema import (
    CHARS_A_STEP,
    NAMES_A_STEP,
    Checker,
    Schema,
    TooMuchToCheck,
    inlined,
    shown_properties,
)
from agent.tools.arguments import ArgumentsWrong
from agent.tools.tool import Caller, Tool, ToolCard
from memory.records.text import seen, without_surrogates

if TYPE_CHECKING:
    pass

DATA_DEPTH_MAX = 64
STEPS_MAX = 20_000
"""How many places are looked at to coerce one call's arguments; the rest is left as it is."""

CHOICE_STEPS = 10

TOO_MUCH = (
    "the arguments hold too much to be checked against the schema of this tool. Pass less at "
    "once, in several calls."
)

CallServer = Callable[[dict[str, Any], Caller], Awaitable[str]]
"""Passes a call on. Raises AssistantError; the text it returns is the server's."""


class ServerArguments:
    """Implements `agent.tools.arguments.Parameters`."""

    def __init__(self, original: Mapping[str, Any], *, shown: Mapping[str, Any]) -> None:
        """`shown` is the copy for the model."""
        self._schema: Schema = {**inlined(original), "type": "object"}
        self._shown = shown

    def schema(self) -> Mapping[str, Any]:
        """As a model is shown it."""
        return self._shown

    def parse(self, data: dict[str, Any]) -> dict[str, Any]:
        """What the server is sent. Raises ArgumentsWrong."""
        arguments = _Coercer().value(_plain(data), self._schema)
        try:
            wrong = Checker().problems(arguments, self._schema)
        except TooMuchToCheck as error:
            raise ArgumentsWrong(TOO_MUCH) from error
        if wrong:
            raise ArgumentsWrong("; ".join(wrong) + ".")
        assert isinstance(arguments, dict), "an object stays one"
        return arguments


class ForeignTool(Tool):
    """A tool of a server."""

    def __init__(self, card: ToolCard, call: CallServer) -> None:
        self.card = card
        self._call = call

    async def run(self, arguments: dict[str, Any], caller: Caller) -> str:
        """The server's answer as text."""
        return await self._call(arguments, caller)


# --- what JSON allows ----------------------------------------------------------------------------


def _plain(data: Any, depth: int = 0) -> Any:
    """A copy that can be sent as JSON. Raises ArgumentsWrong."""
    if depth > DATA_DEPTH_MAX:
        raise ArgumentsWrong(f"the arguments are nested deeper than {DATA_DEPTH_MAX} levels.")
    if isinstance(data, str):
        return without_surrogates(data)
    if isinstance(data, float) and not math.isfinite(data):
        raise ArgumentsWrong("NaN and Infinity are no numbers in JSON.")
    if isinstance(data, list):
        return [_plain(one, depth + 1) for one in data]
    if isinstance(data, dict):
        return {without_surrogates(str(k)): _plain(v, depth + 1) for k, v in data.items()}
    return data


# --- coercion ------------------------------------------------------------------------------------


class _Coercer:
    """Turns what a model wrote into what the schema wants, where only one thing can be meant."""

    def __init__(self) -> None:
        self._left = STEPS_MAX
        self._checker = Checker()

    def value(self, value: Any, schema: Schema) -> Any:
        self._left -= 1 + len(schema.get("enum", ())) // NAMES_A_STEP
        if isinstance(value, str):
            self._left -= len(value) // CHARS_A_STEP
        if self._left < 0 or not schema:
            return value
        value = _scalar(value, schema)
        if isinstance(value, dict):
            value = self._object(value, schema)
        elif isinstance(value, list):
            value = self._array(value, schema)
        for part in schema.get("allOf", ()):
            value = self.value(value, part)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                value = self._chosen(value, schema[key])
        return value

    def _object(self, value: dict[str, Any], schema: Schema) -> dict[str, Any]:
        properties = schema.get("properties", {})
        self._left -= len(properties) // 10  # each may need a name of its own
        originals = shown_properties(properties)
        required = schema.get("required", ())
        made: dict[str, Any] = {}
        for key, one in value.items():
            name = key if key in properties else originals.get(key, key)
            wanted = properties.get(name)
            if wanted is None:
                more = schema.get("additionalProperties")
                made[name] = self.value(one, more) if isinstance(more, dict) else one
            elif one is not None or name in required or (wanted and self._is_valid(None, wanted)):
                made[name] = self.value(one, wanted)
        return made

    def _array(self, value: list[Any], schema: Schema) -> list[Any]:
        places, items = schema.get("prefixItems", []), schema.get("items", {})
        return [
            self.value(one, places[n] if n < len(places) else items) for n, one in enumerate(value)
        ]

    def _chosen(self, value: Any, choices: list[Schema]) -> Any:
        """The value as the first choice takes it that fits; unchanged where one fits already."""
        self._left -= CHOICE_STEPS * len(choices)
        if self._left < 0 or any(self._is_valid(value, choice) for choice in choices):
            return value
        for choice in choices:
            coerced = self.value(value, choice)
            if self._is_valid(coerced, choice):
                return coerced
        return value

    def _is_valid(self, value: Any, schema: Schema) -> bool:
        """True as well where nobody can tell any more: the value then stays as it is."""
        try:
            return self._checker.is_valid(value, schema)
        except TooMuchToCheck:
            self._left = 0
            return True


def _scalar(value: Any, schema: Schema) -> Any:
    named = schema.get("type", ())
    wanted = (named,) if isinstance(named, str) else tuple(named)
    if not wanted or _has_type(value, wanted):
        if isinstance(value, float) and "integer" in wanted and "number" not in wanted:
            return int(value)
        return _listed(value, schema)
    if isinstance(value, str):
        return _of_text(value, wanted)
    if "string" in wanted and isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    return value


def _has_type(value: Any, wanted: tuple[str, ...]) -> bool:
    match value:
        case None:
            return "null" in wanted
        case bool():
            return "boolean" in wanted
        case int():
            return "integer" in wanted or "number" in wanted
        case float():
            return "number" in wanted or ("integer" in wanted and value.is_integer())
        case str():
            return "string" in wanted
        case list():
            return "array" in wanted
        case _:
            return "object" in wanted


_WORDS = {"true": True, "false": False}


def _of_text(text: str, wanted: tuple[str, ...]) -> Any:
    """A number, a truth, a list or an object that was written as a string."""
    bare = text.strip()
    if "boolean" in wanted and bare.lower() in _WORDS:
        return _WORDS[bare.lower()]
    try:
        read = json.loads(bare)
        if isinstance(read, float) and "integer" in wanted and read.is_integer():
            read = int(read)
        read = _plain(read)
    except (ValueError, RecursionError):  # ArgumentsWrong is a ValueError
        return text
    return read if not isinstance(read, str) and _has_type(read, wanted) else text


def _listed(value: Any, schema: Schema) -> Any:
    """The one allowed value that is written the same, such as 2 for `"2"`, or that looks the same
    to a model, which is shown nothing that cannot be seen."""
    allowed = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if not allowed or any(value == one for one in allowed) or not isinstance(value, str):
        return value
    alike = [one for one in allowed if _written(one) == value]
    return alike[0] if len(alike) == 1 else value


def _written(value: Any) -> str:
    """As a model is shown it."""
    if isinstance(value, str):
        return seen(value)
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return ""


# --- names --------------------------------------------------------------------------------------
#
# How tools of servers are called here, and the way back. Pure.
#
# A name is `server__tool` where that is unmistakable and every provider takes it; else it is made
# so, with a hash of both names. So it depends on nothing else that is installed, and stays the
# same.

NAME_CHARS_MAX = 64
HASH_CHARS = 8
JOINT = "__"


def is_hidden(tool: str) -> bool:
    """What a server has for itself: `health`, and what begins with `_`."""
    return not tool or tool.startswith("_") or tool == "health"


def is_wanted(tool: str, globs: Collection[str]) -> bool:
    """Whether the owner's globs let it in; without globs all are."""
    return not globs or any(fnmatchcase(tool, glob) for glob in globs)


def shown_name(server: str, tool: str, *, reserved: Collection[str] = ()) -> str:
    """The name of one tool here: at most 64 of `[A-Za-z0-9_-]`."""
    plain = f"{server}{JOINT}{tool}"
    # No other pair of names gives the same.
    is_clear = JOINT not in server and not server.endswith("_")
    is_fit = re.fullmatch(r"[A-Za-z0-9_-]{1,64}", plain) is not None
    if is_clear and is_fit and plain not in reserved:
        return plain
    digest = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()
    fitted = re.sub(r"[^A-Za-z0-9_-]+", "_", plain)[: NAME_CHARS_MAX - HASH_CHARS - 1]
    return f"{fitted}_{digest[:HASH_CHARS]}"
