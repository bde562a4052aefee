"""A bot with its stand-ins for each test that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from agent.tools.groups.files import FileTools
from agent.tools.tool import Tool, tools_of
from memory.database.connection import Database
from tests.bot.kit import Rig, SlowTool, rigged
from tests.memory.kit import StillClock


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rigged(tmp_path) as rig:
        yield rig


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    """What is logged while the test runs."""
    with capture_logs() as entries:
        yield entries


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
async def database(tmp_path: Path, clock: StillClock) -> AsyncIterator[Database]:
    async with Database.open(tmp_path / "hearthbot.db", clock=clock) as database:
        yield database


@pytest.fixture
def slow_tool(monkeypatch: pytest.MonkeyPatch) -> SlowTool:
    """A tool more for bots that are opened from now on."""
    tool = SlowTool()

    def and_this(group: object, **more: float) -> tuple[Tool, ...]:
        return (*tools_of(group, **more), *([tool] if isinstance(group, FileTools) else []))

    monkeypatch.setattr("bot.app.tools.tools_of", and_this)
    return tool
