"""What the assistant tells of itself, and whose words these are."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.tools.groups.agents import StatusTold, SystemTools
from agent.tools.tool import Effect, Tool
from tests.agent.house import FakeTool, House, model
from tests.agent.tools.given import GUEST, OWNER, by_name, call, run_tool
from tests.fakes import calls


class Status:
    """See TellsStatus."""

    def __init__(self, *lines: str, quotes: bool = False) -> None:
        self._told = StatusTold(lines=lines, quotes=quotes)
        self.asked: list[tuple[bool, str]] = []

    async def told(self, *, for_owner: bool, lane: str = "") -> StatusTold:
        self.asked.append((for_owner, lane))
        return self._told


def status_tool(status: Status) -> Tool:
    return by_name(SystemTools(status.told))["get_status"]


async def test_a_status_is_ours_unless_it_tells_what_a_server_said() -> None:
    ours = await run_tool(status_tool(Status("fine", "up")), call("get_status", {}), OWNER)
    quoting = await run_tool(
        status_tool(Status("fine", "down", quotes=True)), call("get_status", {}), OWNER
    )

    assert (ours.content, ours.untrusted) == ("fine\nup", False)
    assert (quoting.content, quoting.untrusted) == ("fine\ndown", True)


async def test_what_is_the_machines_own_is_for_the_owner_alone() -> None:
    status = Status("fine")

    await run_tool(status_tool(status), call("get_status", {}), OWNER)
    await run_tool(status_tool(status), call("get_status", {}), GUEST)

    assert [for_owner for for_owner, _ in status.asked] == [True, False]


@pytest.mark.parametrize("quotes", [False, True])
async def test_what_is_kept_after_a_look_at_the_status_is_asked_about_only_then(
    tmp_path: Path, *, quotes: bool
) -> None:
    async def keep(text: str) -> str:
        return "kept"

    house = House(tmp_path)
    house.tools = [
        status_tool(Status("fine", quotes=quotes)),
        FakeTool("store_fact", keep, effect=Effect.PERSON, redo="idempotent"),
    ]
    wish = calls(("store_fact", '{"text": "I like tea"}'))
    async with house.opened(model(calls(("get_status", "{}")), wish, *[] if quotes else ["Kept."])):
        await house.submit("how are you? and remember that I am fond of tea")
        await house.engine.idle()

        assert bool(house.approvals.asked) == quotes
