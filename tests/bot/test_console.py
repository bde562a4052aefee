"""The terminal as a channel: what is sent waits for somebody who can see it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bot.channels.base import (
    Channel,
    FileOut,
    MessageGone,
    MessagePart,
    NotSent,
    Reacted,
    SentMessage,
)
from bot.channels.console import ADDRESS, ConsoleChannel


def part(text: str) -> MessagePart:
    return MessagePart(markup=text, source=text)


async def test_a_message_waits_until_a_terminal_is_there() -> None:
    console, shown = ConsoleChannel(), list[dict[str, Any]]()

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        sending = group.create_task(console.send(ADDRESS, part("hello")))
        await asyncio.sleep(0)
        waited = not sending.done()
        console.attach(shown.append)

    assert waited
    assert isinstance(sending.result(), SentMessage)
    assert [event["text"] for event in shown] == ["hello"]


async def test_every_terminal_sees_it_and_one_that_left_does_not() -> None:
    console = ConsoleChannel()
    first, second = list[dict[str, Any]](), list[dict[str, Any]]()
    console.attach(first.append)
    console.attach(second.append)
    console.detach(second.append)

    await console.send(ADDRESS, part("hello"))

    assert (len(first), len(second)) == (1, 0)
    assert console.attended


async def test_an_edit_that_nobody_sees_is_to_be_sent_anew() -> None:
    console, shown = ConsoleChannel(), list[dict[str, Any]]()
    console.attach(shown.append)
    sent = await console.send(ADDRESS, part("hel"))
    assert isinstance(sent, SentMessage)

    seen = await console.edit(ADDRESS, sent.message_id, part("hello"))
    console.detach(shown.append)
    unseen = await console.edit(ADDRESS, sent.message_id, part("hello there"))

    assert isinstance(seen, SentMessage)
    assert isinstance(unseen, MessageGone)
    assert [event["text"] for event in shown] == ["hel", "hello"]


async def test_the_running_tool_is_shown_without_any_text() -> None:
    console, shown = ConsoleChannel(), list[dict[str, Any]]()
    channel: Channel = console
    console.attach(shown.append)

    channel.doing(ADDRESS, "reading a file …")

    assert shown == [{"kind": "doing", "text": "reading a file …"}]


def test_a_typed_line_reads_back_as_a_message() -> None:
    console = ConsoleChannel()

    message = console.understand(ConsoleChannel.payload("hi", "m1", now_ms=5))

    assert (getattr(message, "text", ""), getattr(message, "message_id", "")) == ("hi", "m1")


@pytest.mark.parametrize("payload", ["", "[]", "{}", '{"text": 5}', '{"text": "x"}', "null"])
def test_a_line_that_cannot_be_read_is_a_value_error(payload: str) -> None:
    with pytest.raises(ValueError):
        ConsoleChannel().understand(payload)


async def test_a_file_is_shown_by_where_it_stands_with_its_words() -> None:
    console, shown = ConsoleChannel(), list[dict[str, Any]]()
    console.attach(shown.append)
    file = FileOut(name="plan.txt", path="files/plan.txt", content=b"at ten")

    for caption in ("", "The **plan**"):
        [words] = console.captioned(caption)
        assert isinstance(await console.send_file(ADDRESS, file, words), SentMessage)

    line = "📎 plan.txt (6 bytes): workspace/files/plan.txt"
    assert [event["text"] for event in shown] == [line, f"{line}\n\nThe **plan**"]


async def test_a_reaction_is_a_line_where_somebody_sees_it() -> None:
    console, shown = ConsoleChannel(), list[dict[str, Any]]()

    unseen = await console.react(ADDRESS, "1", "👍")
    console.attach(shown.append)
    seen = await console.react(ADDRESS, "1", "👍")

    assert isinstance(unseen, NotSent)
    assert seen == Reacted(shown="👍")
    assert [event["text"] for event in shown] == ["👍"]
