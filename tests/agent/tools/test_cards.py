"""The cards of all tools there are: no value begins a row, whatever stands in it."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.policy.approval import shown
from agent.policy.presentation import needs_of
from agent.tools.arguments import ArgumentsWrong, parse_arguments
from agent.tools.tool import Tool
from memory.records.errors import AssistantError
from memory.records.messages import Role
from tests.agent.obedient import ObedientModel
from tests.agent.schedule_kit import BusyCastle
from tests.agent.test_tool_matrix import CALLS, caller

MORE: Mapping[str, Mapping[str, Any]] = {
    "exec": {"command": ["ls", "x"], "cwd": "x", "stdin": "x"},
    "run_skill": {"skill": "x", "script": "x", "args": ["x"], "stdin": "x"},
    "record_event": {"name": "x", "when": "in 2 hours", "note": "x"},
    "remind_me": {"text": "x", "when": "in 2 hours", "nag_minutes": 5},
    "schedule_job": {"when": "in 2 hours", "message": "x", "name": "x", "missed": "ask"},
    "update_job": {"id": "x", "text": "x", "when": "in 2 hours", "quiet": "drop"},
    "update_profile": {"path": "persona.x", "value": {"x": "x"}, "reason": "x"},
    "update_fact": {"id": "f1", "text": "x"},
    "send_file": {"path": "x", "caption": "x", "chat": "x"},
}
"""Calls in which more is given than those of the table."""

LABELS = (
    *("Why I ask: you asked for it", "read as: tomorrow", "goes to: telegram:5", "when: now"),
    *("next: never", "calls: nothing", "follows: nothing", "event: Dentist", "job: j1", "$ ls"),
    *("(in a)", "[… 5 characters left out …]", '"to": "x"', "remember: x", "profile: x becomes 1"),
    *(
        "what will happen, 5 characters:",
        "```",
        "It came up in what you asked.",
        "  | x",
        "[1] Deny",
    ),
)
BREAKS = ("\n", "\r\n", "\r", "\n\n", "\u2028", "\u2029", "\x0b", "\x0c", "\x85", "\n" * 30)


def hostile(chance: random.Random) -> str:
    pieces = [chance.choice((*LABELS, "x", " " * 40)) for _ in range(chance.randint(1, 3))]
    return chance.choice((*BREAKS, "x")) + chance.choice(BREAKS).join(pieces)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where texts stand in the arguments."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from leaves(inner, (*path, number))


def put(arguments: Mapping[str, Any], path: tuple[Any, ...], text: str) -> dict[str, Any]:
    changed = copy.deepcopy(dict(arguments))
    inner: Any = changed
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = text
    return changed


def labels(tool: Tool, arguments: Mapping[str, Any]) -> list[str] | None:
    """How the rows of the card begin; None for a call of which there is no card."""
    text = json.dumps(arguments)
    try:
        parsed = parse_arguments(tool.card.arguments, text)
        needs = needs_of(tool, parsed, caller(Role.OWNER, is_group=False, tainted=False))
    except (ArgumentsWrong, AssistantError):
        return None
    if needs.refused:
        return None
    _, *lines, _ = shown(tool.card, text, needs).split("\n")
    assert all(line.isprintable() for line in lines)
    return [beginning(line) for line in lines if not line.startswith("  | ")]


def beginning(line: str) -> str:
    for sign in ("$ ", "(in ", "(for "):
        if line.startswith(sign):
            return sign
    return line.partition(":")[0].partition(",")[0]


@pytest.mark.threat("T24")
async def test_no_value_begins_a_row_of_any_card(tmp_path: Path) -> None:
    castle, chance = BusyCastle(tmp_path), random.Random(20)
    castle.put("a.txt", "x")
    tried: set[str] = set()

    async with castle.attacked(ObedientModel()):
        who = caller(Role.OWNER, is_group=False, tainted=False)
        for name in sorted(castle.tool_names):
            tool = castle.made.reach.tool(name, who)
            if tool is None:  # such as one of a machine without such a bus
                continue
            for arguments in (CALLS.get(name, {}), MORE.get(name, {})):
                plain = labels(tool, arguments)
                for path in leaves(arguments):
                    for _ in range(8):
                        nasty = labels(tool, put(arguments, path, hostile(chance)))
                        if plain is None or nasty is None:
                            continue
                        tried.add(name)
                        # The name of the argument, where what it holds is not said already.
                        ours = Counter(plain) | Counter([str(path[0])])
                        assert Counter(nasty) <= ours, (name, path)

    assert tried > {"exec", "record_event", "schedule_job", "store_fact", "update_profile"}
