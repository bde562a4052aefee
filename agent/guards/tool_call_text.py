"""Tool calls that a model wrote as text: never run, and never shown (guard (a), SPEC §8.6).

Only the forms in which models are known to write a call count. A block of code that a person asked
for stays, unless it is a whole call of a tool that there is. Called by the loop.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

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
    """What stands outside of code blocks."""
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
    """Whether a block of code is a call and nothing else."""
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
    """Whether a JSON value names a tool that there is, with arguments for it."""
    if isinstance(value, list):
        return bool(value) and all(_calls(item, tools) for item in value)
    if not isinstance(value, dict):
        return False
    inner = value.get("function")
    if isinstance(inner, dict):
        return _calls(inner, tools)
    named = any(isinstance(value.get(key), str) and value[key] in tools for key in _NAMES)
    return named and any(isinstance(value.get(key), dict | str) for key in _ARGUMENTS)
