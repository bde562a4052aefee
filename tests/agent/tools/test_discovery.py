"""Reaching tools that were not offered, and never one that may not be had."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import strategies as st

from agent.tools.arguments import ArgumentsWrong
from agent.tools.discovery import DiscoveryTools, ToolRanking, ToolText, resolved
from agent.tools.tool import Caller, Effect, ToolCard, tools_of
from memory.records.messages import Role
from memory.records.transcript import ToolResult
from memory.search.hybrid import FOR_TOOLS, Item, Search
from tests.agent.tools.given import MEMBER, OWNER, call, run_tool
from tests.bench.wishes import built_in, card

CARDS = [
    *built_in(),
    replace(card("home__blinds", "Moves the blinds. Slowly."), group="home", server_about="House"),
]


class ByRole:
    """Members have nothing that acts outside."""

    def __init__(self, cards: Sequence[ToolCard]) -> None:
        self._cards = cards

    def cards(self, caller: Caller) -> Sequence[ToolCard]:
        if caller.role is Role.OWNER:
            return self._cards
        return [one for one in self._cards if one.effect is Effect.NONE]


def by_words(texts: Sequence[ToolText]) -> Search:
    items = [Item(id=one.name, title=one.title, text=one.text) for one in texts]
    return Search(items, weights=FOR_TOOLS)


async def ask(
    name: str, arguments: object, *, cards: Sequence[ToolCard] = CARDS, caller: Caller = OWNER
) -> ToolResult:
    tools = tools_of(DiscoveryTools(ByRole(cards).cards, lambda: cards, ToolRanking(by_words)))
    tool = next(one for one in tools if one.card.name == name)
    return await run_tool(tool, call(name, arguments), caller)


async def test_a_group_that_does_not_exist_is_answered_with_those_that_do() -> None:
    result = await ask("tool_list", {"group": "kitchen"})

    assert not result.ok
    assert "There is no group 'kitchen' here" in result.content
    assert "schedule" in result.content


async def test_a_tool_is_found_by_what_is_to_be_done() -> None:
    result = await ask("tool_search", {"query": "merge a pull request"})

    assert result.content.startswith("github__merge_pull_request: Merges a pull request")
    assert "tool_call" in result.content.splitlines()[-1]


async def test_nobody_sees_a_tool_that_they_may_not_have() -> None:
    secret = replace(card("launch", "Launches the rocket."), effect=Effect.OUTSIDE, group="space")
    cards = [*CARDS, secret]

    answers = [
        await ask("tool_categories", {}, cards=cards, caller=MEMBER),
        await ask("tool_list", {"group": "space"}, cards=cards, caller=MEMBER),
        await ask("tool_search", {"query": "launch the rocket"}, cards=cards, caller=MEMBER),
        await ask("tool_describe", {"name": "launch"}, cards=cards, caller=MEMBER),
    ]

    assert not any("Launches" in one.content or "space (" in one.content for one in answers)
    found = await ask("tool_search", {"query": "launch the rocket"}, cards=cards)
    assert "launch: Launches the rocket" in found.content


# --- what is meant by a tool_call --------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": " read_file ", "arguments": '{"path": "a.txt"}'},
        {"name": "read_file", "arguments": '```json\n{"path": "a.txt"}\n```'},
    ],
)
def test_a_tool_call_becomes_the_call_that_is_meant(arguments: object) -> None:
    inner = resolved(call("tool_call", arguments, id="c9"))

    assert (inner.id, inner.name) == ("c9", "read_file")
    assert json.loads(inner.arguments) == {"path": "a.txt"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"name": " tool_call ", "arguments": {}}, "cannot call itself"),
        ({"name": "exec", "arguments": '{"argv": ['}, "not a JSON object"),
        ({"name": "exec", "arguments": [1]}, "'arguments'"),
        ({"arguments": {}}, "'name' is missing"),
        ({"name": "exec", "argv": ["ls"]}, "unknown parameter 'argv'"),
        ({"name": "  "}, "names no tool"),
    ],
)
def test_what_is_wrong_with_a_tool_call_is_said(arguments: object, says: str) -> None:
    with pytest.raises(ArgumentsWrong, match=r".+") as wrong:
        resolved(call("tool_call", arguments))

    assert says in str(wrong.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
