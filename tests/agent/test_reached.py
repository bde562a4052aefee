"""Tools that a request did not offer: reached where tool_call was offered, by whichever way, and
as far as role, agent and kind of run allow."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.policy.approval import Action, Policy, PolicyRule
from agent.tools.discovery import DiscoveryTools
from agent.tools.tool import Effect
from agent.tools.toolbox import ReachOptions
from memory.records.transcript import ToolResult
from tests.agent.house import MEMBER, OWNER, FakeTool, House, Somebody, model
from tests.agent.tools.given import by_name
from tests.fakes import calls

DIRECT = ("note", '{"text": "x"}')
THROUGH = ("tool_call", '{"name": "note", "arguments": {"text": "x"}}')


async def act(text: str) -> str:
    return f"noted {text}"


class Narrow:
    """A house that offers tool_call, and one more tool that a request does not show."""

    def __init__(self, path: Path, *, effect: Effect = Effect.NONE) -> None:
        self.house = House(path)
        self.note = FakeTool("note", act, effect=effect)
        self.house.tools = [
            by_name(DiscoveryTools(lambda caller: (), tuple, None))["tool_call"],  # type: ignore[arg-type]
            self.note,
        ]
        self.house.core = ("list_dir", "tool_call")

    async def result(self, call: tuple[str, str], *, by: Somebody = OWNER) -> ToolResult:
        """What the model was told of its one call."""
        script = model(calls(call), "Done.")
        async with self.house.opened(script):
            await self.house.say("go", by=by)
            entries = await self.house.entries(by)
        assert "note" not in [spec.name for spec in script.asked[0].tools]
        (found,) = [entry for entry in entries if isinstance(entry, ToolResult)]
        return found


@pytest.mark.parametrize("wish", [DIRECT, THROUGH])
async def test_a_tool_that_was_not_offered_runs_also_when_it_is_named_outright(
    tmp_path: Path, wish: tuple[str, str]
) -> None:
    told = await Narrow(tmp_path).result(wish)

    assert (told.ok, told.content) == (True, "noted x")


async def test_the_way_to_a_long_result_works_where_its_tool_was_not_offered(
    tmp_path: Path,
) -> None:
    narrow = Narrow(tmp_path)
    (narrow.house.workspace / "long.txt").write_text("all of it")

    told = await narrow.result(("read_file", '{"path": "long.txt"}'))

    assert told.ok
    assert "all of it" in told.content


@pytest.mark.parametrize("wish", [DIRECT, THROUGH])
@pytest.mark.parametrize("is_denied", [False, True], ids=["by role", "by agent"])
async def test_it_reaches_no_further_than_role_and_agent_allow(
    tmp_path: Path, wish: tuple[str, str], is_denied: bool
) -> None:
    narrow = Narrow(tmp_path, effect=Effect.NONE if is_denied else Effect.OUTSIDE)
    if is_denied:
        narrow.house.reach = ReachOptions(denied=("note",))

    told = await narrow.result(wish, by=OWNER if is_denied else MEMBER)

    assert not told.ok
    assert "'note' may not be used in this run; nothing was done." in told.content
    assert narrow.note.ran == []


@pytest.mark.parametrize("wish", [DIRECT, THROUGH])
async def test_the_policy_decides_on_it_as_on_any_other(
    tmp_path: Path, wish: tuple[str, str]
) -> None:
    narrow = Narrow(tmp_path)
    narrow.house.policy = Policy(rules=(PolicyRule(action=Action.DENY, tools=("note",)),))

    told = await narrow.result(wish)

    assert not told.ok
    assert narrow.note.ran == []


async def test_where_tool_call_was_not_offered_nothing_else_is_reached(tmp_path: Path) -> None:
    narrow = Narrow(tmp_path)
    narrow.house.core = ("list_dir",)

    told = await narrow.result(DIRECT)

    assert not told.ok
    assert "'note' may not be used in this run" in told.content
    assert narrow.note.ran == []
