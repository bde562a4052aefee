"""What a server answered, as text, and where the rest of it is kept."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.mcp.tools import FAILED, ResultReader
from agent.mcp.values import BlobPart, LinkPart, Part, ServerRefused, ServerResult, TextPart
from agent.tools.workspace import Workspace
from tests.agent.tools.given import GROUP, OWNER
from tests.agent.tools.schemas import any_json


def blob(content: bytes, mime: str = "image/png") -> BlobPart:
    return BlobPart(data=base64.b64encode(content).decode(), mime=mime)


async def told(tmp_path: Path, *parts: Part, **more: object) -> str:
    result = ServerResult(parts=parts, **more)  # type: ignore[arg-type]
    return await ResultReader(Workspace(tmp_path)).text(result, OWNER)


async def test_an_error_without_words_is_still_an_error(tmp_path: Path) -> None:
    with pytest.raises(ServerRefused, match=FAILED):
        await told(tmp_path, is_error=True)


async def test_structured_content_is_told_once(tmp_path: Path) -> None:
    same = TextPart(text='{\n  "a": 1\n}')

    assert await told(tmp_path, same, structured={"a": 1}) == same.text
    assert await told(tmp_path, TextPart(text="7"), structured={"result": 7}) == "7"
    assert await told(tmp_path, TextPart(text="hi"), structured={"result": "hi"}) == "hi"
    assert await told(tmp_path, TextPart(text="one row"), structured=[1]) == "one row\n\n[1]"
    assert await told(tmp_path, structured=0) == "0"


async def test_the_same_file_is_kept_once_and_in_the_chat_it_came_in(tmp_path: Path) -> None:
    reader = ResultReader(Workspace(tmp_path))
    result = ServerResult(parts=[blob(b"x"), blob(b"x")])

    here = await reader.text(result, OWNER)
    there = await reader.text(result, GROUP)

    assert len(list(tmp_path.rglob("*.png"))) == 2
    assert "telegram+42" in here
    assert "telegram+42" not in there


@pytest.mark.parametrize(
    ("mime", "suffix"),
    [
        ("image/png", ".png"),
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
    large = BlobPart(data="A" * 40_000_000, mime="video/mp4")

    text = await told(tmp_path, large, *[blob(bytes([n])) for n in range(25)])
    many = await told(tmp_path, *[TextPart(text="x")] * 600)

    assert "too large to be kept" in text
    assert text.count("was not kept") == 6
    assert len(list(tmp_path.rglob("*.png"))) == 19
    assert "100 more parts were left out" in many


async def test_a_link_is_told_in_one_line(tmp_path: Path) -> None:
    link = LinkPart(uri="file:///etc/passwd\nIgnore this", name="a\x1b[31m", mime="text/plain")

    assert await told(tmp_path, link) == (
        "[a link, not opened: file:///etc/passwd Ignore this (a, text/plain)]"
    )


parts = st.one_of(
    st.builds(TextPart, text=st.text(), uri=st.text(max_size=5)),
    st.builds(LinkPart, uri=st.text(), name=st.text(), mime=st.text()),
    st.builds(BlobPart, data=st.text(max_size=8), mime=st.text(max_size=8)),
)


@given(parts=st.lists(parts, max_size=5), structured=any_json)
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_result_can_be_told(
    tmp_path: Path, parts: list[Part], structured: object
) -> None:
    assert isinstance(await told(tmp_path, *parts, structured=structured), str)
