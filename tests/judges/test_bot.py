"""The whole bot before models of others: aimock beside its process, llmock as what it asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llmock.pytest_plugin import LLMock

from tests.acceptance.rig import TOKEN, Home, Telegram, until
from tests.bot.kit import OWNER, Rig, eventually, rigged
from tests.judges.aimock import Aimock, calls, says
from tests.thorough import THOROUGH

ANSWER = (
    "Your notes say that there is milk to buy, that the bicycle wants new brakes before the end of "
    "the week, and that Ada's birthday is on Friday: she wished for a book about birds. The shop "
    "in the old town has two of them, and one is about the birds of this very valley. For the "
    "brakes there is still the pair in the cellar, left of the jam, behind the paint. And the milk "
    "is best bought on the way back, or it stands in the sun for an hour while the brakes are set."
)
"""Longer than what is held back of each answer until it is clear that it is no hidden thought."""

NOTES = "- milk\n- new brakes\n- Ada's birthday on Friday\n"
ONE_CLIENT = pytest.mark.parametrize("client", ["direct", "litellm"] if THOROUGH else ["direct"])
"""The other one talks with aimock in `test_conversation`."""

CLIENTS = pytest.mark.parametrize("client", ["direct", "litellm"])


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    stand_in = Telegram()
    yield stand_in
    stand_in.close()


@pytest.fixture
def home(tmp_path: Path, telegram: Telegram, aimock: Aimock) -> Iterator[Home]:
    """A home that is served by the stand-in Telegram and by aimock, and that streams."""
    served = Home(tmp_path)
    served.env |= {
        "HEARTHBOT_TELEGRAM__TOKEN": TOKEN,
        "HEARTHBOT_TELEGRAM__BASE_URL": telegram.url,
        "HEARTHBOT_TELEGRAM__RATE_PER_CHAT": "0",
        "HEARTHBOT_TELEGRAM__RATE_TOTAL": "0",
        "HEARTHBOT_ACCESS__MESSAGES_PER_MINUTE": "0",
        "HEARTHBOT_TELEGRAM__STREAM_EVERY_S": "0.2",
        "HEARTHBOT_LLM__MODEL": "openai/judged",
        "HEARTHBOT_LLM__API_BASE": aimock.api_base,
        "HEARTHBOT_LLM__API_KEY": "sk-judged",
        "HEARTHBOT_AGENTS__DEFAULT__ALLOWED_TOOLS": "read_file,list_dir",
        "HEARTHBOT_MEMORY__INSIGHTS": "false",
        "HEARTHBOT_MEMORY__EXTRACTION__ENABLED": "false",
    }
    yield served
    served.close()


def results(body: dict[str, Any]) -> list[str]:
    """What the tools said, in one request."""
    return [one["content"] for one in body["messages"] if one["role"] == "tool"]


@ONE_CLIENT
@pytest.mark.node
def test_a_conversation_goes_on_through_tools_and_faults_in_one_message_each(
    home: Home, telegram: Telegram, aimock: Aimock, client: str
) -> None:
    home.env["HEARTHBOT_LLM__CLIENT"] = client
    told = {"toolCallId": "call_2"}
    broken = says(ANSWER, match={**told, "sequenceIndex": 0}, chunkSize=6, latency=60)
    aimock.answers(
        calls(("read_file", {"path": "notes.md"}), ("list_dir", {"path": "."}), to="my notes"),
        # Long enough that a part of it stands in the chat already.
        {**broken, "disconnectAfterMs": 4_000},
        says(ANSWER, match=told),
        says("You are welcome.", to="thanks"),
    )
    aimock.fails_next(429, "not now")
    home.approve(7)
    (home.path / "workspace" / "notes.md").write_text(NOTES)
    telegram.says(7, "what is in my notes?")

    running = home.start()
    (part,) = until(lambda: telegram.shown(7), about=running.said)
    until(lambda: telegram.shown(7) == [ANSWER], about=running.said)
    telegram.says(7, "thanks")
    until(lambda: len(telegram.shown(7)) == 2, about=running.said)

    asked = aimock.asked()
    assert telegram.shown(7) == [ANSWER, "You are welcome."]
    assert ANSWER.startswith(part.removesuffix("…"))
    assert part != ANSWER
    assert telegram.received("editMessageText") > 1
    assert [entry["response"]["status"] for entry in asked] == [429, 200, 200, 200, 200]
    told_twice = [results(entry["body"]) for entry in asked[2:4]]
    assert told_twice[0] == told_twice[1], "a retry carries what the tools said"
    assert ["new brakes" in told_twice[0][0], "notes.md" in told_twice[0][1]] == [True, True]
    assert running.end() == 0
    assert "Traceback" not in running.said()


# --- llmock --------------------------------------------------------------------------------------


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


@CLIENTS
@pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning")
async def test_a_turn_in_a_storm_of_faults_is_one_message_and_no_fault_of_the_bot(
    rig: Rig, llmock: LLMock, client: str
) -> None:
    rig.set(llm__client=client)
    llmock.call_tool("read_file", {"path": "notes.md"})
    llmock.rate_limit(retry_after=0.4)
    llmock.disconnect(after_chunks=2)

    async with rig.running(OWNER) as bot:
        (rig.home.path / "workspace" / "notes.md").write_text(NOTES)
        rig.says("read my notes")
        await eventually(lambda: rig.texts())
        await rig.quiet(bot)

    assert rig.wrote(1)
    assert rig.inbox() == ["replied"]
    llmock.assert_resilient(strict=True)
