"""Which agent answers where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.turn.agents import Binding, Bindings, unreached
from memory.records.messages import Address


def rule(channel: str, chat_id: str, agent: str = "work") -> Binding:
    return Binding(channel=channel, chat_id=chat_id, agent=agent)


RULES = Bindings([
    rule("telegram", "123"),
    rule("telegram", "-100*", "team"),
    rule("slack", "*", "office"),
    rule("*", "77", "everywhere"),
])  # fmt: skip


@pytest.mark.parametrize(
    ("lane", "agent"),
    [
        ("telegram:123", "work"),
        ("telegram:123:9", "work"),
        ("telegram:1234", "default"),
        ("telegram:-1005", "team"),
        ("telegram:-1005:3", "team"),
        ("slack:C1", "office"),
        ("slack:77", "office"),
        ("console:77", "everywhere"),
        ("console:me", "default"),
        ("no address", "default"),
    ],
)
def test_the_first_binding_that_fits_decides_for_a_chat_with_all_its_threads(
    lane: str, agent: str
) -> None:
    assert RULES.agent_of(lane) == agent


def test_without_bindings_the_default_agent_answers_everywhere() -> None:
    assert Bindings().agent_of("telegram:5") == "default"


names = st.sampled_from(["a", "b", "ab", "aab", "*", "a*", "*b", "a*b", "**", "c.", "."])
rules = st.lists(st.builds(rule, names, names), max_size=5)
plain = st.text(alphabet="abc.", min_size=1, max_size=3)


@given(rules, plain, plain)
def test_a_binding_that_is_said_never_to_be_reached_is_not(
    made: list[Binding], channel: str, chat: str
) -> None:
    address = Address(channel=channel, chat_id=chat)
    first = next((n for n, one in enumerate(made) if one.takes(address)), None)

    assert first not in {place for place, _ in unreached(made)}


def test_what_takes_more_in_front_of_what_takes_less_leaves_nothing_to_it() -> None:
    assert unreached([rule("*", "*"), rule("telegram", "5")]) == [(1, 0)]
    assert unreached([rule("telegram", "5"), rule("*", "*")]) == []
    assert unreached([rule("telegram", "5*"), rule("telegram", "*5")]) == []
