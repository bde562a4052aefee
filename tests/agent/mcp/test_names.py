"""Names of tools here and there: unmistakable, stable, and as every provider takes them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.mcp.tools import is_hidden, shown_name

any_name = st.text(st.characters() | st.sampled_from("_a-.é\ud83d"), max_size=90)
server_name = st.text(st.sampled_from("ab_-é"), min_size=1, max_size=6)


@given(server_name, any_name)
def test_every_provider_takes_a_name(server: str, tool: str) -> None:
    name = shown_name(server, tool)

    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)
    assert shown_name(server, tool) == name


@given(st.sets(st.tuples(server_name, any_name), max_size=20))
def test_each_name_belongs_to_one_tool(pairs: set[tuple[str, str]]) -> None:
    visible = [pair for pair in pairs if not is_hidden(pair[1])]

    assert len({shown_name(*pair) for pair in visible}) == len(visible)


@pytest.mark.parametrize("name", ["", "_private", "health"])
def test_what_a_server_has_for_itself_is_hidden(name: str) -> None:
    assert is_hidden(name)
    assert not is_hidden("health_report")
