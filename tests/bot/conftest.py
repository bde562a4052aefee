"""A bot with its stand-ins for each test that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.tools.groups.files import FileTools
from agent.tools.tool import Tool, tools_of
from tests.bot.kit import Rig, SlowTool, rigged


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rigged(tmp_path) as rig:
        yield rig


@pytest.fixture
def slow_tool(monkeypatch: pytest.MonkeyPatch) -> SlowTool:
    """A tool more for bots that are opened from now on."""
    tool = SlowTool()

    def and_this(group: object, **more: float) -> tuple[Tool, ...]:
        return (*tools_of(group, **more), *([tool] if isinstance(group, FileTools) else []))

    monkeypatch.setattr("bot.app.tools.tools_of", and_this)
    return tool
