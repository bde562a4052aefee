"""Tool calls as models write them: JSON read in one way, and calls written as text.

What runs a call, what counts it and what looks back at it would else each see another call. A call
written as text is never run, and never shown (guard (a), SPEC §8.6). Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from memory.records.transcript import ToolCall

REPAIRED_CHARS_MAX = 200_000
"""What is longer is not read again; one pass over so much takes about 0.1 s."""


def read_object(text: str) -> dict[str, Any] | None:
    """The object that a model wrote; no text at all is an empty one. None where it is no object.

    Also in a fence, encoded twice, and repaired where it can mean only one thing.
    """
    text = text.strip()
    head, line_break, rest = text.partition("\n")
    if line_break and head.rstrip() in {"```", "```json"} and rest.endswith("\n```"):
        text = rest.removesuffix("\n```").strip()
    if not text:
        return {}
    data = _loaded(text)
    if isinstance(data, str):  # an object, encoded twice
        data = _loaded(data)
    if data is None:
        data = _repaired(text)
    return data if isinstance(data, dict) else None


TOOL_CALL = "tool_call"
"""The tool by which any other can be called."""


def called_name(call: ToolCall) -> str:
    """The tool that a call means: that within a tool_call."""
    if call.name != TOOL_CALL:
        return call.name
    inner = read_object(call.arguments)
    return call.name if inner is None else str(inner.get("name", "")).strip()


def called_arguments(call: ToolCall) -> dict[str, Any]:
    """Return what the tool that is meant was given; what cannot be read is one value without a
    name."""
    given = read_object(call.arguments)
    if given is not None and call.name == TOOL_CALL:
        inner = given.get("arguments") or {}
        given = read_object(inner) if isinstance(inner, str) else inner
    return given if isinstance(given, dict) else {"": call.arguments}


def _loaded(text: str) -> Any:
    """The JSON value; raw line breaks within strings are let pass. None when it is no JSON."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


_TOKEN = re.compile(
    r"""
      (?P<string> "[^"\\]*+(?:\\.[^"\\]*+)*+" | '[^'\\]*+(?:\\.[^'\\]*+)*+' )
    | (?P<word>   [^\W\d][\w$-]*+ )
    | (?P<other>  [{}\[\]:,] | [-+.\w]++ )
    | \s++
    """,
    re.VERBOSE | re.DOTALL,
)

_WORDS = {"True": "true", "False": "false", "None": "null"}
"""What Python and JSON call the same."""

Token = tuple[str, str]
"""Its kind (`string`, `word` or `other`) and its text."""


def _repaired(text: str) -> Any:
    """The JSON value, if the text is JSON but for single quotes, keys without quotes, Python's
    words and a comma too many; else None.

    Only what stands outside of strings is mended, and every quote ends a string or is escaped: a
    text with a stray one can mean several things, and one that was cut has no end. One pass, in
    time that grows with the length alone.
    """
    if len(text) > REPAIRED_CHARS_MAX:
        return None
    tokens: list[Token] = []
    end = 0
    while end < len(text):
        token = _TOKEN.match(text, end)
        if token is None:
            return None
        end = token.end()
        if token.lastgroup is not None:  # white space has none
            tokens.append((token.lastgroup, token[0]))
    return _loaded(" ".join(_mended(tokens)))


def _mended(tokens: list[Token]) -> Iterator[str]:
    before = ""
    for (kind, text), (_, after) in zip(tokens, [*tokens[1:], ("", "")], strict=True):
        if kind == "string":
            yield _double_quoted(text)
        elif kind == "word":
            yield f'"{text}"' if after == ":" else _WORDS.get(text, text)
        elif text != "," or after not in {"}", "]"} or before in {"", "{", "[", ","}:
            yield text
        before = text


def _double_quoted(text: str) -> str:
    if text.startswith('"'):
        return text
    inner = re.sub(r'\\.|"', lambda found: _ESCAPES.get(found[0], found[0]), text[1:-1])
    return f'"{inner}"'


_ESCAPES = {"\\'": "'", '"': '\\"'}


# --- calls written as text ------------------------------------------------------------------------
#
# Only the forms in which models are known to write a call count. A block of code that a person
# asked for stays, unless it is a whole call of a tool that there is.

_FENCE = re.compile(
    r"^(?P<mark>`{3,}|~{3,})[^\n`]*\n(?P<body>.*?)^(?P=mark)[ \t]*$\n?", re.MULTILINE | re.DOTALL
)
_TAG_NAMES = "tool_calls?|function_calls?|tool_use|invoke|function_call"
_TAGGED = re.compile(
    rf"<(?P<name>(?:antml:)?(?:{_TAG_NAMES}))\b[^<>]{{0,300}}>.*?(?:</(?P=name)\s*>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_CLOSED = re.compile(
    rf"<(?P<name>(?:antml:)?(?:{_TAG_NAMES}))\b[^<>]{{0,300}}>(?:(?!</(?P=name)).)*</(?P=name)\s*>",
    re.DOTALL | re.IGNORECASE,
)
_FUNCTION_TAG = re.compile(r"<function=[\w.-]{1,64}>.*?(?:</function>|\Z)", re.DOTALL)
_MARKED = re.compile(
    r"\[TOOL_CALLS\]\s*\[?\{.*\Z|<\|?(?:python_tag|tool_call_begin)\|?>.*\Z", re.DOTALL
)
_NAMESPACE = re.compile(r"^[ \t]*(?:to=)?functions\.[\w-]{1,64}\s*\(?\s*\{", re.MULTILINE)
_CALLED = re.compile(r"functions\.[\w-]{1,64}\s*\(?\s*(?P<object>\{.*\})\s*\)?;?", re.DOTALL)
_NAMES = ("name", "tool", "tool_name", "function", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "action_input", "tool_input")

CALL_CHARS_MAX = 20_000
"""A longer block is text, whatever it looks like."""

_OPENS_OBJECT = re.compile(
    r"^[ \t]*(?:(?:to=)?functions\.[\w-]{1,64}\s*\(?\s*)?(?=\{)", re.MULTILINE
)
_AFTER_CALL = re.compile(r"\s*\)?;?[ \t]*\n?")


def without_calls(text: str, tools: Collection[str]) -> str:
    """The text without calls that were written into it; the same object when there are none.

    `tools` are the names of all tools there are.
    """
    parts: list[str] = []
    place = 0
    for fence in _FENCE.finditer(text):
        parts.append(_without_bare(text[place : fence.start()], tools))
        parts.append("" if _is_call(fence["body"], tools) else fence[0])
        place = fence.end()
    parts.append(_without_bare(text[place:], tools))
    cleaned = "".join(parts)
    return text if cleaned == text else cleaned.strip()


def _without_bare(text: str, tools: Collection[str]) -> str:
    """Return what stands outside of code blocks."""
    for form in (_TAGGED, _FUNCTION_TAG, _MARKED):
        text = _outside_code(form, text)
    text = _without_objects(text, tools)
    if not tools:
        return text
    names = "|".join(re.escape(name) for name in sorted(tools, key=len, reverse=True))
    bracketed = re.compile(rf"^[ \t]*\[(?:{names})\][ \t]+\S[^\n]*\n?", re.MULTILINE)
    return bracketed.sub("", text)


def _outside_code(form: re.Pattern[str], text: str) -> str:
    """Return the text without what fits the form, unless it begins inside of inline code."""

    def kept(found: re.Match[str]) -> str:
        line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        return found[0] if line.count("`") % 2 == 1 else ""

    return form.sub(kept, text)


def _without_objects(text: str, tools: Collection[str]) -> str:
    """Without `functions.name({…})`, and without a JSON object at a line's beginning that calls."""
    decoder = json.JSONDecoder()
    place = 0
    while (found := _OPENS_OBJECT.search(text, place)) is not None:
        is_namespaced = _NAMESPACE.match(text, found.start()) is not None
        try:
            value, end = decoder.raw_decode(text[: found.end() + CALL_CHARS_MAX], found.end())
        except (ValueError, RecursionError):
            value, end = None, found.end()
            if is_namespaced:
                line_end = text.find("\n", end)
                end = len(text) if line_end < 0 else line_end
        if is_namespaced or _calls(value, tools):
            close = _AFTER_CALL.match(text, end)
            end = close.end() if close else end
            text = text[: found.start()] + text[end:]
            place = found.start()
        else:
            place = max(end, found.end() + 1)
    return text


def _is_call(body: str, tools: Collection[str]) -> bool:
    """Return whether a block of code is a call and nothing else."""
    body = body.strip()
    if not body or len(body) > CALL_CHARS_MAX:
        return False
    if _CLOSED.fullmatch(body):
        return True
    called = _CALLED.fullmatch(body)
    try:
        value = json.loads(called["object"] if called else body)
    except (ValueError, RecursionError):
        return False
    return called is not None or _calls(value, tools)


def _calls(value: Any, tools: Collection[str]) -> bool:
    """Return whether a JSON value names a tool that there is, with arguments for it."""
    if isinstance(value, list):
        return bool(value) and all(_calls(item, tools) for item in value)
    if not isinstance(value, dict):
        return False
    inner = value.get("function")
    if isinstance(inner, dict):
        return _calls(inner, tools)
    named = any(isinstance(value.get(key), str) and value[key] in tools for key in _NAMES)
    return named and any(isinstance(value.get(key), dict | str) for key in _ARGUMENTS)
