"""The whole bot before the model of others: llmock calls any tool that it is offered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from llmock.pytest_plugin import LLMock

from tests.bot.kit import OWNER, Rig, eventually, rigged

NOTES = "- milk\n- new brakes\n- Ada's birthday on Friday\n"
CLIENTS = pytest.mark.parametrize("client", ["direct", "litellm"])


def results(body: dict[str, Any]) -> list[str]:
    """What the tools said, in one request."""
    return [one["content"] for one in body["messages"] if one["role"] == "tool"]


@pytest.fixture
async def rig(tmp_path: Path, llmock: LLMock) -> Any:
    """A bot in this process that asks llmock, which calls any tool that it is offered."""
    async with rigged(tmp_path) as rig:
        rig.set(llm__api_base=llmock.base_url(), llm__api_key="sk-judged")
        rig.set(agents__default__allowed_tools="read_file,write_file,edit_file,list_dir")
        yield rig


@CLIENTS
@pytest.mark.parametrize("broken", ["", "malformed_arguments", "unknown_tool"])
@pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning")
async def test_the_tools_of_the_bot_stand_what_llmock_calls_them_with(
    rig: Rig, llmock: LLMock, client: str, broken: str
) -> None:
    rig.set(llm__client=client)
    if broken:
        llmock.break_tool_call(broken)

    async with rig.running(OWNER) as bot:
        (rig.home.path / "workspace" / "notes.md").write_text(NOTES)
        rig.says("read the file")
        await eventually(lambda: rig.texts())
        await rig.quiet(bot)

    assert rig.wrote(1)
    assert rig.inbox() == ["replied"]
    assert results(llmock.last_request.body or {"messages": []})
    llmock.assert_resilient(strict=True)
