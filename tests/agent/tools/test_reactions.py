"""The tool react: under the message that is being answered, and in this chat alone."""

from __future__ import annotations

from dataclasses import replace

from agent.tools.groups.messages import MessageTools
from agent.tools.tool import Tool
from memory.records.errors import Permanent
from memory.records.messages import Address
from tests.agent.tools.given import OWNER, by_name, call, run_tool


class KeptReactions:
    """See React."""

    def __init__(self, refuses: str = "") -> None:
        self.set: list[tuple[str, str, str]] = []
        self._refuses = refuses

    async def react(self, address: Address, message_id: str, emoji: str) -> str:
        if self._refuses:
            raise Permanent(self._refuses)
        self.set.append((address.key, message_id, emoji))
        return emoji


def tool_of(kept: KeptReactions) -> Tool:
    group = MessageTools(None, None, kept.react)  # type: ignore[arg-type]
    return by_name(group)["react"]


async def test_it_goes_under_the_message_that_is_answered_or_under_the_one_that_is_named() -> None:
    kept, who = KeptReactions(), replace(OWNER, message_id="17")

    first = await run_tool(tool_of(kept), call("react", {"emoji": " 👍 "}), who)
    await run_tool(tool_of(kept), call("react", {"emoji": "👀", "message": "12"}), who)

    assert first.ok
    assert "👍" in first.content
    assert kept.set == [("telegram:42", "17", "👍"), ("telegram:42", "12", "👀")]


async def test_without_a_message_there_is_nothing_to_react_to() -> None:
    kept = KeptReactions()

    result = await run_tool(tool_of(kept), call("react", {"emoji": "👍"}), OWNER)

    assert not result.ok
    assert "none to react to" in result.content
    assert not kept.set


async def test_a_refusal_reaches_the_model_as_a_sentence() -> None:
    who = replace(OWNER, message_id="17")
    tool = tool_of(KeptReactions("Telegram has no reaction '🦖'"))

    result = await run_tool(tool, call("react", {"emoji": "🦖"}), who)

    assert result.content == "react: Telegram has no reaction '🦖'"
