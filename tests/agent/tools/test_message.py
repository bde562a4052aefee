"""The tool send_message: only to chats of the person, never to a stranger by a slip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from agent.tools.groups.messages import FileToSend, MessageTools, OwnChat
from agent.tools.tool import Caller, Needs, Tool
from memory.records.messages import PersonId
from tests.agent.tools.given import GROUP, OWNER, by_name, call, needs, no_reaction, run_tool


class KeptMessages:
    """Implements Messenger."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.untrusted: list[bool] = []

    async def chats(self, person_id: PersonId) -> Sequence[OwnChat]:
        return [OwnChat(lane="telegram:42"), OwnChat(lane="slack:D1")]

    async def send(self, lane: str, text: str, *, untrusted: bool) -> None:
        self.sent.append((lane, text))
        self.untrusted.append(untrusted)

    async def send_file(
        self, lane: str, file: FileToSend, *, caption: str, untrusted: bool | None
    ) -> None:
        raise AssertionError("no file is sent here")


def tool_of(kept: KeptMessages) -> Tool:
    return by_name(MessageTools(kept, None, no_reaction))["send_message"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("chat", "lane"),
    [
        ("", "telegram:42"),
        ("slack", "slack:D1"),
        ("Slack:D1", "slack:D1"),
        ("telegram:43", "telegram:42"),
        ("nowhere", "telegram:42"),
        ("-100", "telegram:42"),
    ],
)
async def test_a_chat_that_is_not_the_persons_becomes_the_current_one(chat: str, lane: str) -> None:
    kept = KeptMessages()

    result = await run_tool(
        tool_of(kept), call("send_message", {"text": "hi", "chat": chat}), OWNER
    )

    assert result.ok
    assert kept.sent == [(lane, "hi")]


async def test_in_a_group_without_a_chat_it_goes_to_the_group() -> None:
    kept = KeptMessages()

    await run_tool(tool_of(kept), call("send_message", {"text": "hi"}), GROUP)

    assert kept.sent == [(GROUP.address.key, "hi")]


def test_another_chat_is_a_target_and_this_one_is_none() -> None:
    tool = tool_of(KeptMessages())

    assert needs(tool, OWNER, text="hi") == Needs()
    assert needs(tool, OWNER, text="hi", chat="telegram:42") == Needs()
    assert needs(tool, OWNER, text="hi", chat="slack:D1") == Needs(target="slack:D1")


@pytest.mark.parametrize(
    ("caller", "chat", "untrusted"),
    [
        (OWNER, "", False),
        (OWNER, "slack", False),
        (replace(OWNER, tainted=True), "", True),
        (replace(OWNER, tainted=True), "slack", True),
        (replace(OWNER, described=True), "", False),
        (replace(OWNER, described=True), "slack", True),
        (GROUP, "", True),
        (GROUP, "slack", False),
        (replace(GROUP, tainted=True), "slack", True),
    ],
)
async def test_what_others_may_have_worded_is_marked_wherever_it_lands(
    caller: Caller, chat: str, untrusted: bool
) -> None:
    kept = KeptMessages()

    await run_tool(tool_of(kept), call("send_message", {"text": "hi", "chat": chat}), caller)

    assert kept.untrusted == [untrusted]
