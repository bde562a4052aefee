"""The terminal as a channel: what is sent waits for somebody who can see it."""

from __future__ import annotations

import asyncio
from typing import Any

from bot.channels.base import (
    FileOut,
    MessageGone,
    MessagePart,
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


async def test_a_file_is_shown_by_where_it_stands_with_its_words() -> None:
    console, shown = ConsoleChannel(), list[dict[str, Any]]()
    console.attach(shown.append)
    file = FileOut(name="plan.txt", path="files/plan.txt", content=b"at ten")

    for caption in ("", "The **plan**"):
        [words] = console.captioned(caption)
        assert isinstance(await console.send_file(ADDRESS, file, words), SentMessage)

    line = "📎 plan.txt (6 bytes): workspace/files/plan.txt"
    assert [event["text"] for event in shown] == [line, f"{line}\n\nThe **plan**"]
