"""Tools as their servers list them, read."""

from __future__ import annotations

from agent.mcp.schema import former_parameters, shown_tools
from agent.mcp.values import ServerTool
from memory.records.rows import ApprovedTool

NUMBER = 10**5_000
"""Python refuses to write it."""


def listed(name: str, **properties: object) -> ServerTool:
    return ServerTool(name=name, description="x", schema={"properties": properties})


def test_one_tool_that_cannot_be_read_spoils_no_other() -> None:
    worse = listed("worse", n={"type": "integer", "minimum": NUMBER})

    found, unreadable = shown_tools([listed("a"), worse, listed("b")], {})

    assert [one.listed.name for one in found] == ["a", "b"]
    assert unreadable == ["worse"]


def test_only_what_has_changed_is_read_again() -> None:
    before, _ = shown_tools([listed("a"), listed("b")], {})

    now, _ = shown_tools(
        [listed("a"), listed("b", n={"type": "integer"})], {one.listed.name: one for one in before}
    )

    assert now[0] is before[0]
    assert now[1].parameters["properties"] == {"n": {"type": "integer"}}


def test_what_was_approved_is_read_back_as_it_was_shown() -> None:
    (tool,), _ = shown_tools([listed("a", n={"type": "integer", "description": "é"})], {})

    assert former_parameters(tool.approved()) == tool.parameters


def test_parameters_that_were_not_kept_are_not_known() -> None:
    for kept in ("", "no JSON", "[]"):
        approved = ApprovedTool(tool="a", digest="d", parameters=kept)
        assert former_parameters(approved) is None
