"""The reference MCP servers (npm): everything, filesystem and memory, as others wrote them."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agent.mcp.values import Health, ServerOptions
from agent.tools.tool import Effect
from tests.agent.mcp.kit import by_node, called, found, names, running, state, until, workspace
from tests.agent.mcp.test_schema import refusals
from tests.agent.tools.schemas import fuzz
from tests.judges.conftest import REQUIRED

pytestmark = pytest.mark.node

SERVERS = Path(sys.prefix, "judges", "node_modules", "@modelcontextprotocol")


@pytest.fixture(autouse=True)
def servers_are_installed() -> None:
    why = "" if shutil.which("node") else "there is no Node: install nodejs and npm"
    if not why and not program("memory").is_file():
        why = "the MCP servers are not installed: say make judges"
    if why:
        (pytest.fail if REQUIRED else pytest.skip)(why)


def program(name: str) -> Path:
    return SERVERS / f"server-{name}" / "dist" / "index.js"


def all_three(tmp_path: Path) -> Sequence[ServerOptions]:
    return (
        by_node("everything", program("everything"), "stdio"),
        by_node("filesystem", program("filesystem"), str(workspace(tmp_path))),
        by_node("memory", program("memory"), env={"MEMORY_FILE_PATH": str(tmp_path / "graph")}),
    )


async def test_all_of_their_tools_are_offered_as_providers_take_them(tmp_path: Path) -> None:
    async with running(tmp_path, *all_three(tmp_path)) as mcp:
        cards = [tool.card for tool in mcp.tools()]

    assert len(cards) > 30
    assert [card.name for card in cards] == sorted(card.name for card in cards)
    for card in cards:
        spec = card.spec()
        assert list(refusals(dict(spec.parameters))) == [], spec.name
        assert spec.description


async def test_the_echo_and_the_sum_come_back(tmp_path: Path) -> None:
    async with running(tmp_path, all_three(tmp_path)[0]) as mcp:
        echo = await called(mcp, "everything__echo", message="Grüße")
        total = await called(mcp, "everything__get-sum", a="2", b=3)
        wrong = await called(mcp, "everything__get-sum", a="two", b=3)
        weather = await called(mcp, "everything__get-structured-content", location="Chicago")

    assert echo.content == "Echo: Grüße"
    assert "5" in total.content
    assert not wrong.ok
    assert "'a'" in wrong.content
    assert weather.ok
    assert json.loads(weather.content.partition("\n\n")[0])


async def test_images_resources_and_links_are_kept_or_told(tmp_path: Path) -> None:
    async with running(tmp_path, all_three(tmp_path)[0]) as mcp:
        image = await called(mcp, "everything__get-tiny-image")
        links = await called(mcp, "everything__get-resource-links", count=3)
        resource = await called(
            mcp, "everything__get-resource-reference", resourceType="Text", resourceId=1
        )

    assert "image/png" in image.content
    (kept,) = workspace(tmp_path).rglob("*.png")
    assert kept.read_bytes().startswith(b"\x89PNG")
    assert links.content.count("[a link, not opened:") == 3
    assert resource.ok


async def test_a_bare_environment_reaches_them(tmp_path: Path) -> None:
    env = {"PATH": str(Path(shutil.which("node") or "").parent), "SECRET_API_KEY": "sk-secret"}

    async with running(tmp_path, all_three(tmp_path)[0], env=env) as mcp:
        seen = await called(mcp, "everything__get-env")

    assert "sk-secret" not in seen.content


async def test_files_are_written_and_read_and_others_stay_closed(tmp_path: Path) -> None:
    folder = workspace(tmp_path)

    async with running(tmp_path, all_three(tmp_path)[1]) as mcp:
        effects = {tool.card.name: tool.card.effect for tool in mcp.tools()}
        wrote = await called(
            mcp, "filesystem__write_file", path=str(folder / "a.txt"), content="hello"
        )
        read = await called(
            mcp, "filesystem__read_text_file", path=str(folder / "a.txt"), head=None
        )
        outside = await called(mcp, "filesystem__read_text_file", path="/etc/passwd")

    assert wrote.ok
    assert (folder / "a.txt").read_text() == "hello"
    assert read.content == "hello"
    assert not outside.ok
    assert effects["filesystem__write_file"] is Effect.OUTSIDE
    assert effects["filesystem__read_text_file"] is Effect.NONE


async def test_a_graph_is_kept_over_a_restart(tmp_path: Path) -> None:
    ada = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}

    async with running(tmp_path, all_three(tmp_path)[2]) as mcp:
        assert (await called(mcp, "memory__create_entities", entities=[ada])).ok
    async with running(tmp_path, all_three(tmp_path)[2]) as mcp:
        found_again = await called(mcp, "memory__search_nodes", query="Ada")

    assert "writes programs" in found_again.content


async def test_a_long_operation_is_stopped(tmp_path: Path) -> None:
    options = replace(all_three(tmp_path)[0], timeout_s=1)

    async with running(tmp_path, options) as mcp:
        slow = await called(
            mcp, "everything__trigger-long-running-operation", duration=20, steps=20
        )
        after = await called(mcp, "everything__echo", message="still here")

    assert not slow.ok
    assert "did not answer within 1 s" in slow.content
    assert after.ok


async def test_one_that_is_killed_comes_back(tmp_path: Path) -> None:
    async with running(tmp_path, *all_three(tmp_path)) as mcp:
        await _kill(str(program("memory")))
        await until(lambda: state(mcp, "memory").health.health is Health.DOWN)
        echo = await called(mcp, "everything__echo", message="unmoved")
        await until(lambda: state(mcp, "memory").health.health is Health.UP)
        again = await called(mcp, "memory__read_graph")

    assert echo.ok
    assert again.ok


async def test_ten_thousand_calls_by_their_schemas_never_raise(tmp_path: Path) -> None:
    async with running(tmp_path, *all_three(tmp_path)) as mcp:
        connections = [found(mcp, name).card.arguments for name in names(mcp)]
    schemas = [dict(one.schema()) for one in connections if not isinstance(one, type)]

    right = await asyncio.to_thread(fuzz, random.Random(7), schemas, calls=10_000)

    assert right > 1_000


async def _kill(argument: str) -> None:
    """Ends our own child that runs this program."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode().split("\0")
            parent = (folder / "stat").read_text().rpartition(") ")[2].split()[1]
        except OSError:
            continue
        if argument in words and int(parent) == os.getpid():
            os.kill(int(folder.name), signal.SIGKILL)
