"""JSON objects as models write them: read in one way, whoever has to know what a call means.

What runs a call, what counts it and what looks back at it would else each see another call. So
which tool a recorded call means is told here, too. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
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
    """What the tool that is meant was given; what cannot be read is one value without a name."""
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
