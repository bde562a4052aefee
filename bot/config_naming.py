"""Whether the agents that settings name are there, looked up in what was set: so it is told
together with whatever else is wrong. Called by `bot.config_checking`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agent.messages import DEFAULT_AGENT
from bot.config import Settings

BINDINGS = "bindings"


def nobodys(merged: Mapping[str, Any], *, shown: Callable[[str], str]) -> Iterator[str]:
    """Where an agent is named that does not exist: a limit or a rule that would bind nobody. What
    is odd in another way is complained of elsewhere. `shown` quotes a value, if it may be."""
    agents = _agents(merged)
    there = f"there {'are' if len(agents) > 1 else 'is'} {', '.join(agents)}"
    for n, limit in _tables(merged, "budget", "limits"):
        of = limit.get("of")
        if limit.get("scope") == "agent" and isinstance(of, str) and of and of not in agents:
            yield f"budget.limits[{n}].of: there is no agent {shown(of)}; {there}"
    for n, rule in _tables(merged, "tools", "rules"):
        agent = rule.get("agent")
        if isinstance(agent, str) and not any(fnmatchcase(name, agent) for name in agents):
            yield f"tools.rules[{n}].agent: no agent is called {shown(agent)}; {there}"


def behind_agents(
    merged: Mapping[str, Any], details: Sequence[ErrorDetails]
) -> Sequence[ErrorDetails]:
    """What is wrong with the bindings together, which the library looks at only where each agent
    is right; `details` is what it found."""
    wrong = [detail["loc"] for detail in details if detail["loc"][:1] == ("agents",)]
    if not wrong or any(loc[1:2] in {(), (BINDINGS,)} for loc in wrong):
        return ()
    blank: dict[str, object] = {name: {} for name in _agents(merged)}
    try:
        agents = {**blank, BINDINGS: _held(_held(merged, "agents"), BINDINGS) or ()}
        Settings.model_validate({"agents": agents})
    except ValidationError as error:
        found = error.errors(include_url=False)
        return [detail for detail in found if detail["loc"] == ("agents",)]
    return ()


def _agents(merged: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of all agents, `default` first."""
    found = _held(merged, "agents")
    named = found if isinstance(found, dict) else {}
    return tuple(dict.fromkeys([DEFAULT_AGENT, *(name for name in named if name != BINDINGS)]))


def _tables(
    merged: Mapping[str, Any], section: str, key: str
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The tables of a list, each with its place."""
    found = _held(_held(merged, section), key)
    for place, one in enumerate(found if isinstance(found, list) else ()):
        if isinstance(one, dict):
            yield place, one


def _held(table: object, key: str) -> object:
    """None where there is no such table or key."""
    return table.get(key) if isinstance(table, dict) else None
