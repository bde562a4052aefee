"""A tool that somebody else wrote: its arguments read by its own schema, its call passed on.

The model was shown a simpler copy of that schema; here the original counts. Built by `agent.mcp`.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
import math
import mimetypes
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from agent.mcp.json_schema import (
    CHARS_A_STEP,
    NAMES_A_STEP,
    Checker,
    Schema,
    TooMuchToCheck,
    inlined,
    shown_properties,
)
from agent.mcp.values import BlobPart, LinkPart, Part, ServerRefused, ServerResult, TextPart
from agent.tools.arguments import ArgumentsWrong
from agent.tools.tool import Caller, Tool, ToolCard
from agent.tools.workspace import RESULTS, Workspace, results_folder
from memory.records.errors import AssistantError
from memory.records.text import clean, seen, without_surrogates

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
        self._schema = _as_object(inlined(original))
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


def _as_object(schema: Schema) -> Schema:
    """Arguments are an object, whatever a server says of them."""
    return {**schema, "type": "object"}


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
            elif one is not None or name in required or self._takes_null(wanted):
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

    def _takes_null(self, schema: Schema) -> bool:
        return bool(schema) and self._is_valid(None, schema)

    def _is_valid(self, value: Any, schema: Schema) -> bool:
        """True as well where nobody can tell any more: the value then stays as it is."""
        try:
            return self._checker.is_valid(value, schema)
        except TooMuchToCheck:
            self._left = 0
            return True


def _scalar(value: Any, schema: Schema) -> Any:
    wanted = _types(schema)
    if not wanted or _has_type(value, wanted):
        if isinstance(value, float) and "integer" in wanted and "number" not in wanted:
            return int(value)
        return _listed(value, schema)
    if isinstance(value, str):
        return _of_text(value, wanted)
    if "string" in wanted and isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    return value


def _types(schema: Schema) -> tuple[str, ...]:
    named = schema.get("type", ())
    return (named,) if isinstance(named, str) else tuple(named)


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
    if not allowed or any(_same(value, one) for one in allowed) or not isinstance(value, str):
        return value
    alike = [one for one in allowed if _written(one) == value]
    return alike[0] if len(alike) == 1 else value


def _same(left: Any, right: Any) -> bool:
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


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
    if _is_clear(server, plain) and plain not in reserved:
        return plain
    digest = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()
    fitted = re.sub(r"[^A-Za-z0-9_-]+", "_", plain)[: NAME_CHARS_MAX - HASH_CHARS - 1]
    return f"{fitted}_{digest[:HASH_CHARS]}"


def _is_clear(server: str, plain: str) -> bool:
    """Whether no other pair of names gives the same."""
    unmistakable = JOINT not in server and not server.endswith("_")
    return unmistakable and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", plain) is not None


# --- results ------------------------------------------------------------------------------------
#
# What a server answered, as text for the model; what is no text is kept as a file.
#
# Files go to where long results of the chat are kept. Links are told and never opened (case TO-13).

FILE_BYTES_MAX = 20_000_000
FILES_MAX = 20
PARTS_MAX = 500
MIME_CHARS_MAX = 60
WORD_CHARS_MAX = 500
FAILED = "the server says that it failed, without a reason"


class ResultReader:
    """Makes a text of a result. Raises ServerRefused with that text where it is an error."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def text(self, result: ServerResult, caller: Caller) -> str:
        """Empty when the server said nothing."""
        said = [await self._said(part, caller) for part in _bounded(result.parts)]
        if len(result.parts) > PARTS_MAX:
            said.append(f"[{len(result.parts) - PARTS_MAX} more parts were left out]")
        if result.structured is not None and not _is_told(result.structured, said):
            said.append(_json(result.structured))
        text = "\n\n".join(one for one in said if one)
        if result.is_error:
            raise ServerRefused(text.strip() or FAILED)
        return text

    async def _said(self, part: Part, caller: Caller) -> str:
        match part:
            case TextPart(text=text, uri=uri):
                return f"[{_word(uri)}]\n{text}" if uri else text
            case LinkPart(uri=uri, name=name, mime=mime):
                about = ", ".join(_word(one) for one in (name, mime) if one)
                return f"[a link, not opened: {_word(uri)}{f' ({about})' if about else ''}]"
            case BlobPart():
                return await self._kept(part, caller)

    async def _kept(self, part: BlobPart, caller: Caller) -> str:
        mime = _word(part.mime)[:MIME_CHARS_MAX] or "a file"
        about = f"{mime} from {_word(part.uri)}" if part.uri else mime
        if len(part.data) > FILE_BYTES_MAX * 4 // 3 + 4:
            return f"[{about}: too large to be kept (at most {FILE_BYTES_MAX:,} bytes)]"
        try:
            path, size = await asyncio.to_thread(self._write, part, caller)
        except (binascii.Error, ValueError):
            return f"[{about}: its content cannot be read]"
        except AssistantError as error:
            return f"[{about}: it could not be kept, {error}]"
        return f"[{about}, {size:,} bytes, kept as {path}]"

    def _write(self, part: BlobPart, caller: Caller) -> tuple[str, int]:
        """The same content gets the same name, so that a repeated call adds nothing."""
        content = base64.b64decode(part.data, validate=True)
        digest = hashlib.sha256(content).hexdigest()[:16]
        path = "/".join((*RESULTS, results_folder(caller), f"{digest}{_suffix(part.mime)}"))
        self._workspace.write(path, content, caller, bytes_max=FILE_BYTES_MAX)
        return path, len(content)


_SUFFIXES = {"audio/wav": ".wav", "audio/ogg": ".ogg", "image/webp": ".webp"}
"""What not every machine knows."""


def _suffix(mime: str) -> str:
    kind = mime.partition(";")[0].strip().lower()
    return _SUFFIXES.get(kind) or mimetypes.guess_extension(kind) or ".bin"


def _bounded(parts: Sequence[Part]) -> list[Part]:
    """The first parts, and of files fewer than of words."""
    kept: list[Part] = []
    files = 0
    for part in parts[:PARTS_MAX]:
        files += isinstance(part, BlobPart)
        if isinstance(part, BlobPart) and files > FILES_MAX:
            kept.append(TextPart(text=f"[one more file, {_word(part.mime)}, was not kept]"))
        else:
            kept.append(part)
    return kept


def _is_told(structured: Any, said: Sequence[str]) -> bool:
    """Whether the text is the same value: most servers send it twice."""
    for text in said:
        try:
            if json.loads(text) in (structured, _only(structured)):
                return True
        except (ValueError, RecursionError):
            if text == _only(structured):
                return True
    return False


def _only(structured: Any) -> Any:
    """What the one field holds in which a bare value is wrapped."""
    if isinstance(structured, dict) and len(structured) == 1:
        return next(iter(structured.values()))
    return structured


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return "[structured content that is nested too deep]"


def _word(text: str) -> str:
    return " ".join(clean(text).split())[:WORD_CHARS_MAX]
