"""What a server answered, as text, and where the rest of it is kept."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp_types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from agent.mcp.wire import ResultReader
from agent.tools.workspace import Workspace
from tests.agent.tools.given import OWNER
from tests.agent.tools.schemas import any_json


def words(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def blob(content: bytes, mime: str = "image/png") -> ImageContent:
    return ImageContent(type="image", data=base64.b64encode(content).decode(), mime_type=mime)


def result(*parts: ContentBlock, **more: Any) -> CallToolResult:
    return CallToolResult(content=list(parts), **more)


async def told(tmp_path: Path, *parts: ContentBlock, **more: Any) -> str:
    return await ResultReader(Workspace(tmp_path)).text(result(*parts, **more), OWNER)


async def test_structured_content_is_told_once(tmp_path: Path) -> None:
    same = words('{\n  "a": 1\n}')

    assert await told(tmp_path, same, structured_content={"a": 1}) == same.text
    assert await told(tmp_path, words("7"), structured_content={"result": 7}) == "7"
    assert await told(tmp_path, words("hi"), structured_content={"result": "hi"}) == "hi"
    assert await told(tmp_path, words("one"), structured_content={"b": 1}) == 'one\n\n{"b": 1}'


@pytest.mark.parametrize(
    ("mime", "suffix"),
    [
        ("IMAGE/PNG; q=1", ".png"),
        ("audio/wav", ".wav"),
        ("../../etc", ".bin"),
        ("", ".bin"),
    ],
)
async def test_a_file_is_named_by_its_kind_alone(tmp_path: Path, mime: str, suffix: str) -> None:
    await told(tmp_path, blob(b"x", mime))

    (kept,) = (one for one in tmp_path.rglob("*") if one.is_file())
    assert kept.suffix == suffix
    assert kept.parent == tmp_path / "files" / "results" / "telegram+42"


async def test_too_much_is_bounded_and_said(tmp_path: Path) -> None:
    large = ImageContent(type="image", data="A" * 40_000_000, mime_type="video/mp4")

    text = await told(tmp_path, large, *[blob(bytes([n])) for n in range(25)])
    many = await told(tmp_path, *[words("x")] * 600)

    assert "too large to be kept" in text
    assert text.count("was not kept") == 6
    assert len(list(tmp_path.rglob("*.png"))) == 19
    assert "100 more parts were left out" in many


kinds = st.one_of(
    st.builds(TextContent, type=st.just("text"), text=st.text()),
    st.builds(ResourceLink, type=st.just("resource_link"), uri=st.text(), name=st.text()),
    st.builds(AudioContent, type=st.just("audio"), data=st.text(max_size=8), mime_type=st.text()),
    st.builds(
        EmbeddedResource,
        type=st.just("resource"),
        resource=st.builds(TextResourceContents, uri=st.text(max_size=5), text=st.text()),
    ),
)


@given(parts=st.lists(kinds, max_size=5), structured=st.dictionaries(st.text(), any_json))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_result_can_be_told(
    tmp_path: Path, parts: list[ContentBlock], structured: dict[str, Any]
) -> None:
    assert isinstance(await told(tmp_path, *parts, structured_content=structured), str)
