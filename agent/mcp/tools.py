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
from operator import ge, gt, le, lt
from typing import Any

from agent.mcp.json_schema import Schema, inlined, shown_properties
from agent.tools.arguments import ERRORS_SHOWN_MAX, ArgumentsWrong
from agent.tools.tool import Caller, Tool, ToolCard
from memory.records.text import seen, without_surrogates

DATA_DEPTH_MAX = 64
STEPS_MAX = 50_000
"""Each value with each schema that may count for it is a step: all of them take a second."""

NAMES_A_STEP = 20
VALUES_A_STEP = 5
"""Names and allowed values that are looked at in the time of one step."""

CHARS_A_STEP = 1_000
MESSAGE_CHARS_MAX = 160
PATH_CHARS_MAX = 60

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
        """Return what the server is sent. Raises ArgumentsWrong."""
        arguments, wrong = _Fitter().fit(_plain(data), self._schema)
        if wrong:
            words = [seen(problem) for problem in wrong[:ERRORS_SHOWN_MAX]]
            if len(wrong) > ERRORS_SHOWN_MAX:
                words.append(f"and {len(wrong) - ERRORS_SHOWN_MAX} more problems")
            raise ArgumentsWrong("; ".join(words) + ".")
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


# --- values by a schema --------------------------------------------------------------------------


class _Fitter:
    """Turns what a model wrote into what a schema wants, where only one thing can be meant, and
    says what does not fit. What no schema speaks of passes: the server has the last word.

    The steps are counted, and ArgumentsWrong raised when they are used up: a stranger's choices
    within choices could keep the bot busy for minutes. No pattern is searched by, for the same
    reason. (Not by a library: that checks what was coerced once more, and cannot be stopped.)
    """

    def __init__(self) -> None:
        self._left = STEPS_MAX
        self._names: dict[int, Mapping[str, str]] = {}
        """By the id of a schema: the names of its parameters, as a model is shown them."""

    def fit(self, value: Any, schema: Schema, where: str = "") -> tuple[Any, list[str]]:
        """Return the value as it is meant, and what is wrong with it."""
        self._take(1 + len(schema.get("enum", ())) // VALUES_A_STEP)
        if isinstance(value, str):
            self._take(len(value) // CHARS_A_STEP)
        if not schema:
            return value, []
        value = _scalar(value, schema)
        if problem := _problem(value, schema):
            return value, [f"'{where or 'the arguments'}': {problem[:MESSAGE_CHARS_MAX]}"]
        wrong: list[str] = []
        if isinstance(value, dict):
            value = self._object(value, schema, where, wrong)
        elif isinstance(value, list):
            places, items = schema.get("prefixItems", []), schema.get("items", {})
            fitted = [
                self.fit(one, places[n] if n < len(places) else items, _below(where, str(n)))
                for n, one in enumerate(value)
            ]
            value = [one for one, _ in fitted]
            wrong += [problem for _, problems in fitted for problem in problems]
        for part in schema.get("allOf", ()):
            value, more = self.fit(value, part, where)
            wrong += more
        # Where a choice is not as clear as its writer thought, what fits two is no mistake: `oneOf`
        # is taken for `anyOf`.
        for key in ("anyOf", "oneOf"):
            if key in schema:
                value, more = self._chosen(value, schema[key], where)
                wrong += more
        return value, wrong

    def _object(
        self, value: dict[str, Any], schema: Schema, where: str, wrong: list[str]
    ) -> dict[str, Any]:
        properties, required = schema.get("properties", {}), schema.get("required", ())
        others = schema.get("additionalProperties")
        self._take((len(properties) + len(required)) // NAMES_A_STEP)
        if id(schema) not in self._names:
            self._names[id(schema)] = shown_properties(properties)
        originals = self._names[id(schema)]
        made: dict[str, Any] = {}
        unknown: list[str] = []
        for key, one in value.items():
            name = key if key in properties else originals.get(key, key)
            wanted = properties.get(name)
            if wanted is None:
                unknown += [name] if others is False else []
                wanted = others if isinstance(others, dict) else {}
            elif one is None and name not in required and (not wanted or self.fit(None, wanted)[1]):
                continue  # A null that nobody wants means that the parameter is left out.
            made[name], more = self.fit(one, wanted, _below(where, name))
            wrong += more
        missing = [name for name in required if name not in made]
        self._take(len(missing))
        here = f"'{where or 'the arguments'}': "
        if missing:
            wrong.append(f"{here}missing: {', '.join(missing)}"[:MESSAGE_CHARS_MAX])
        if unknown:
            known = ", ".join(properties) or "none"
            words = f"{here}unknown: {', '.join(unknown)} (known: {known})"
            wrong.append(words[:MESSAGE_CHARS_MAX])
        return made

    def _chosen(self, value: Any, choices: list[Schema], where: str) -> tuple[Any, list[str]]:
        """The value as the first choice takes it that fits; unchanged where one fits already."""
        fitting: list[Any] = []
        misfits: list[tuple[bool, int, list[str]]] = []
        for choice in choices:
            made, wrong = self.fit(value, choice, where)
            if not wrong and made == value:
                return value, []
            if not wrong:
                fitting.append(made)
            misfits.append((bool(_problem(value, choice)), len(wrong), wrong))
        if fitting:
            return fitting[0], []
        # The choice that is nearest: of the right kind first, then with the least to be mended.
        return value, min(misfits, key=lambda misfit: misfit[:2])[2]

    def _take(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise ArgumentsWrong(TOO_MUCH)


def _below(where: str, name: str) -> str:
    return f"{where}.{name[:PATH_CHARS_MAX]}" if where else name[:PATH_CHARS_MAX]


_BOUNDS: Mapping[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (ge, "less than"),
    "maximum": (le, "more than"),
    "exclusiveMinimum": (gt, "not more than"),
    "exclusiveMaximum": (lt, "not less than"),
}
_SIZES = {
    True: ("minLength", "maxLength", "characters"),
    False: ("minItems", "maxItems", "items"),
}
"""Of a text, and of a list."""


def _problem(value: Any, schema: Schema) -> str:
    """Return what is wrong with a value by itself; empty when nothing is."""
    wanted = _types(schema)
    if wanted and not _has_type(value, wanted):
        return f"{_written(value)[:PATH_CHARS_MAX]} is not of type {' or '.join(wanted)}"
    for allowed in (schema.get("enum"), [schema["const"]] if "const" in schema else None):
        if allowed is not None and not any(_same(value, one) for one in allowed):
            listed = ", ".join(map(_written, allowed[:NAMES_A_STEP]))
            return f"{_written(value)[:PATH_CHARS_MAX]} is not one of: {listed}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        for key, (holds, words) in _BOUNDS.items():
            if key in schema and not holds(value, schema[key]):
                return f"{_written(value)[:PATH_CHARS_MAX]} is {words} {schema[key]}"
    if isinstance(value, str | list):
        least, most, of = _SIZES[isinstance(value, str)]
        if len(value) < schema.get(least, 0):
            return f"it has {len(value)} {of}, and needs {schema[least]}"
        if len(value) > schema.get(most, math.inf):
            return f"it has {len(value)} {of}, of at most {schema[most]}"
    return ""


def _types(schema: Schema) -> tuple[str, ...]:
    named = schema.get("type", ())
    return (named,) if isinstance(named, str) else tuple(named)


def _same(left: Any, right: Any) -> bool:
    """As JSON has it, where true is not 1."""
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def _scalar(value: Any, schema: Schema) -> Any:
    wanted = _types(schema)
    if not wanted or _has_type(value, wanted):
        if isinstance(value, float) and "integer" in wanted and "number" not in wanted:
            return int(value)
        # The one allowed value that is written the same, such as 2 for `"2"`, or that looks the
        # same to a model, which is shown nothing that cannot be seen.
        allowed = schema.get("enum", [schema["const"]] if "const" in schema else [])
        if not allowed or any(_same(value, one) for one in allowed) or not isinstance(value, str):
            return value
        alike = [one for one in allowed if _written(one) == value]
        return alike[0] if len(alike) == 1 else value
    if isinstance(value, str):
        # A number, a truth, a list or an object that was written as a string.
        bare = value.strip()
        if "boolean" in wanted and bare.lower() in _WORDS:
            return _WORDS[bare.lower()]
        try:
            read = json.loads(bare)
            if isinstance(read, float) and "integer" in wanted and read.is_integer():
                read = int(read)
            read = _plain(read)
        except (ValueError, RecursionError):  # ArgumentsWrong is a ValueError
            return value
        return read if not isinstance(read, str) and _has_type(read, wanted) else value
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


def _written(value: Any) -> str:
    """As a model is shown it; of what may be large, its kind alone."""
    match value:
        case str():
            return seen(value)
        case list() | dict():
            return "a list" if isinstance(value, list) else "an object"
        case _:
            return json.dumps(value, ensure_ascii=False)


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
    """Return what a server has for itself: `health`, and what begins with `_`."""
    return not tool or tool.startswith("_") or tool == "health"


def is_wanted(tool: str, globs: Collection[str]) -> bool:
    """Return whether the owner's globs let it in; without globs all are."""
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
