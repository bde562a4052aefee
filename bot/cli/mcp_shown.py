"""What `hearthbot mcp approve` prints of tools that wait: all that the model reads of each, and of
a changed one what is different. Whatever is cut says so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from bot.cli.skills_shown import Line
from memory.records.text import seen

Answer = dict[str, Any]
"""What `bot.commands.mcp` answers; its keys stand there."""

Facts = dict[str, Any]
"""What is said of one parameter, by what it is: a type, a description, a bound."""

VALUE_CHARS = 500
SAME_CHARS_SHOWN = 40
"""How much of two long texts is shown ahead of where they part."""

WHOLE = "(all of them)"
_INSIDE = {"properties", "required", "items", "anyOf"}
_LABELS = {"description": "says", "enum": "one of"}


def waiting_lines(answer: Answer, *, full: bool = False) -> Iterator[Line]:
    """What an approval would let in. With `full` nothing is cut, and what has not changed is
    listed too."""
    for tool in answer["tools"]:
        yield f"{tool['name']}: {tool['state']}", "head"
        if tool["decision"] == "changed":
            yield from _changed_lines(tool, full=full)
        else:
            yield from _indented(tool["description"])
            yield from _parameter_lines(tool["parameters"], full=full)
        yield "", ""
    yield answer["approving"], ""


def parameter_facts(schema: Mapping[str, Any]) -> dict[str, Facts]:
    """Everything that the schema says, by the parameter of which it says it: `place/lat` is within
    `place`, `tags[]` one of `tags`."""
    found: dict[str, Facts] = {}
    about = {key: value for key, value in schema.items() if key not in _INSIDE | {"type"}}
    if about:
        found[WHOLE] = about
    _read_object(schema, "", found)
    return found


def _read_object(schema: Mapping[str, Any], within: str, found: dict[str, Facts]) -> None:
    required = schema.get("required", ())
    for name, node in schema.get("properties", {}).items():
        _read(node, f"{within}{name}", found, kind_more=", required" if name in required else "")


def _read(
    node: Mapping[str, Any], path: str, found: dict[str, Facts], *, kind_more: str = ""
) -> None:
    kind = node.get("type", "one of several kinds" if "anyOf" in node else "any value")
    found[path] = {
        "type": f"{kind}{kind_more}",
        **{key: value for key, value in node.items() if key not in _INSIDE | {"type"}},
    }
    _read_object(node, f"{path}/", found)
    if "items" in node:
        _read(node["items"], f"{path}[]", found)
    for number, choice in enumerate(node.get("anyOf", ()), 1):
        _read(choice, f"{path}, kind {number}", found)


# --- a tool that is new, or shown as a whole -----------------------------------------------------


def _parameter_lines(schema: Mapping[str, Any], *, full: bool) -> Iterator[Line]:
    found = parameter_facts(schema)
    yield "  Parameters:" if found else "  It takes no parameters.", "dim"
    for path, facts in found.items():
        yield from _fact_lines("", path, facts, full=full)


def _fact_lines(mark: str, path: str, facts: Facts, *, full: bool) -> Iterator[Line]:
    kind = f": {facts['type']}" if "type" in facts else ":"
    yield f"    {mark}{path}{kind}", _LOOKS.get(mark, "")
    for key, value in facts.items():
        if key != "type":
            yield f"        {_label(key)}: {_cut(_written(key, value), full=full)}", ""


_LOOKS = {"+ ": "warn", "- ": "warn", "~ ": "warn"}


def _label(key: str) -> str:
    return _LABELS.get(key, key)


def _written(key: str, value: Any) -> str:
    if key in {"description", "type"}:
        return str(value)
    if isinstance(value, list):
        return ", ".join(json.dumps(one, ensure_ascii=False) for one in value)
    return json.dumps(value, ensure_ascii=False)


def _cut(text: str, *, full: bool) -> str:
    more = len(text) - VALUE_CHARS
    if full or more <= 0:
        return text
    return f"{text[:VALUE_CHARS]}… {more:,} characters more: see --full"


# --- a tool that has changed ---------------------------------------------------------------------


def _changed_lines(tool: Answer, *, full: bool) -> Iterator[Line]:
    former = seen(tool["former"])
    is_same = former == tool["description"]
    if is_same:
        yield "  Its description is as it was:", "dim"
    else:
        yield "  It was:", "dim"
        yield from _indented(former)
        yield "  It is:", "dim"
    yield from _indented(tool["description"])
    if tool["former_parameters"] is None:
        yield "  What was shown of its parameters was not kept. Now they are:", "dim"
        yield from _parameter_lines(tool["parameters"], full=full)
        return
    before, now = map(parameter_facts, (tool["former_parameters"], tool["parameters"]))
    if before == now:
        yield "  Its parameters are as they were.", "dim"
        if is_same:
            yield "  The change is in what its server says of its effect, or is not shown.", "dim"
    else:
        yield "  Its parameters have changed (+ new, - gone, ~ changed):", "dim"
        yield from _difference_lines(before, now, full=full)
    if full:
        yield from _parameter_lines(tool["parameters"], full=full)


def _difference_lines(
    before: Mapping[str, Facts], now: Mapping[str, Facts], *, full: bool
) -> Iterator[Line]:
    for path, facts in now.items():
        if path not in before:
            yield from _fact_lines("+ ", path, facts, full=full)
        elif before[path] != facts:
            yield f"    ~ {path}:", "warn"
            yield from _change_lines(before[path], facts, full=full)
    for path, facts in before.items():
        if path not in now:
            yield from _fact_lines("- ", path, facts, full=full)


def _change_lines(before: Facts, now: Facts, *, full: bool) -> Iterator[Line]:
    for key in dict.fromkeys([*now, *before]):
        old, new = before.get(key), now.get(key)
        if old == new:
            continue
        label = _label(key)
        if isinstance(old, list) and isinstance(new, list) and {*old} != {*new}:
            yield from _list_lines(label, old, new, full=full)
            continue
        was, is_now = ("" if v is None else _written(key, v) for v in (old, new))
        was, is_now = _from_where_they_part(was, is_now, full=full)
        yield f"        {label}, before: {was or '(nothing)'}", ""
        yield f"        {label}, now:    {is_now or '(nothing)'}", ""


def _list_lines(label: str, old: list[Any], new: list[Any], *, full: bool) -> Iterator[Line]:
    for word, values in (
        ("no longer", [one for one in old if one not in new]),
        ("new", [one for one in new if one not in old]),
    ):
        if values:
            yield f"        {label}, {word}: {_cut(_written('enum', values), full=full)}", ""


def _from_where_they_part(was: str, is_now: str, *, full: bool) -> tuple[str, str]:
    """Of long texts the end may be all that changed, and a cut must not hide it."""
    pairs = enumerate(zip(was, is_now, strict=False))
    parting = next((n for n, (old, new) in pairs if old != new), min(len(was), len(is_now)))
    same = parting - SAME_CHARS_SHOWN
    if not full and same > 0 and max(len(was), len(is_now)) > VALUE_CHARS:
        lead = f"({same:,} characters as before) …"
        return lead + _cut(was[same:], full=full), lead + _cut(is_now[same:], full=full)
    return _cut(was, full=full), _cut(is_now, full=full)


def _indented(text: str) -> Iterator[Line]:
    for line in text.splitlines():
        yield f"    {line}", ""
