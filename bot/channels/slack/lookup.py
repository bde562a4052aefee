"""Asks Slack for messages that stand there: ours, by the mark in their metadata or the file that
they show, and those under which somebody replies.

Called by `bot.channels.slack.channel` when a send's fate is unknown: Slack keeps what a message
carries, so it can be asked; and by the intake.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import structlog

from bot.channels.odd_json import text_of
from bot.channels.slack.api import SaidNo, SlackTrouble, SlackWeb
from memory.records.messages import IncomingMessage

log = structlog.get_logger()

T = TypeVar("T")
Bears = Callable[[Mapping[str, Any]], bool]

EVENT_TYPE = "hearthbot_reply"
PAGE = 200
PAGES_MAX = 20

CLOCKS_DIFFER_S = 600.0
"""Slack's clock and ours may differ so much."""

PARENT_WAIT_S = 1.0
"""How long the first message in a thread waits for the one that it replies to."""

PANE = "assistant_app_thread"
"""What begins a thread in the assistant's pane: words of Slack's own, which nobody replies to."""

THREADS_MAX = 2_000
CHARS_MAX = 4_000

_NO_THREAD = frozenset({"thread_not_found"})


class TooMuchSaid(SlackTrouble):
    """Too many messages were written since to look for it among them."""


def metadata(mark: str) -> dict[str, Any]:
    """What a message carries."""
    return {"event_type": EVENT_TYPE, "event_payload": {"id": mark}}


async def find_marked(
    web: SlackWeb, *, channel: str, thread: str | None, mark: str, since_ms: int
) -> str | None:
    """The id of the message with this mark; None when it surely is not there.

    Raises SlackTrouble when that cannot be told.
    """
    bears = partial(_bears, mark=mark)
    return await _found(web, channel=channel, thread=thread, bears=bears, since_ms=since_ms)


async def find_file(
    web: SlackWeb, *, channel: str, thread: str | None, file_id: str, since_ms: int
) -> str | None:
    """The same for a message that shows this file."""
    shows = partial(_shows, file_id=file_id)
    return await _found(web, channel=channel, thread=thread, bears=shows, since_ms=since_ms)


async def _found(
    web: SlackWeb, *, channel: str, thread: str | None, bears: Bears, since_ms: int
) -> str | None:
    oldest = f"{max(since_ms / 1000 - CLOCKS_DIFFER_S, 0.0):.6f}"
    if thread is not None:
        try:
            return await _search(web, "conversations.replies", channel, bears, oldest, ts=thread)
        except SaidNo as error:
            if error.error not in _NO_THREAD:
                raise
            # The thread's first post is gone; Slack then puts an answer into the channel.
    return await _search(web, "conversations.history", channel, bears, oldest)


async def _search(
    web: SlackWeb, method: str, channel: str, bears: Bears, oldest: str, **place: str
) -> str | None:
    cursor = ""
    for _ in range(PAGES_MAX):
        more = {"cursor": cursor} if cursor else {}
        heard = await web.call(
            method,
            channel=channel,
            oldest=oldest,
            limit=str(PAGE),
            include_all_metadata="true",
            **place,
            **more,
        )
        messages = heard.data.get("messages")
        for message in messages if isinstance(messages, list) else ():
            if isinstance(message, dict) and bears(message):
                return str(message["ts"])
        cursor = _next(heard.data)
        if not cursor:
            return None
    raise TooMuchSaid("too many messages have been written since to look through")


def _bears(message: Mapping[str, Any], mark: str) -> bool:
    found = message.get("metadata")
    if not isinstance(found, dict) or found.get("event_type") != EVENT_TYPE:
        return False
    payload = found.get("event_payload")
    return (
        isinstance(payload, dict)
        and payload.get("id") == mark
        and isinstance(message.get("ts"), str)
    )


def _shows(message: Mapping[str, Any], file_id: str) -> bool:
    files = message.get("files")
    return isinstance(message.get("ts"), str) and any(
        isinstance(file, dict) and file.get("id") == file_id
        for file in (files if isinstance(files, list) else ())
    )


def _next(data: Mapping[str, Any]) -> str:
    metadata_of_page = data.get("response_metadata")
    found = metadata_of_page.get("next_cursor") if isinstance(metadata_of_page, dict) else ""
    return found if isinstance(found, str) else ""


class Parents:
    """What begins the threads in which we are spoken to, asked for once a thread: what is said
    there later is in the conversation, and so is a beginning that was said to us."""

    def __init__(self, web: SlackWeb, *, wait_s: float = PARENT_WAIT_S) -> None:
        self._web = web
        self._wait_s = wait_s
        self._known: dict[tuple[str, str], None] = {}
        self._texts: dict[tuple[str, str], str] = {}

    async def meet(self, message: IncomingMessage) -> None:
        """Before a message is read by the intake. Trouble with it is logged; the message goes on
        without what it replies to."""
        channel = message.address.chat_id.partition(".")[2]
        thread = message.reply_to or message.address.thread_id
        if thread is None or (channel, thread) in self._known:
            return
        if message.reply_to:
            try:
                async with asyncio.timeout(self._wait_s):
                    text = await self._text(channel, thread)
            except (SlackTrouble, TimeoutError) as trouble:
                why = str(trouble) or f"no answer within {self._wait_s:g} s"
                log.warning("slack.no_parent", chat=message.address.chat_id, why=why)
                return
            _keep(self._texts, (channel, message.message_id), text)
        _keep(self._known, (channel, thread), None)

    def text(self, channel: str, ts: str) -> str:
        """What the message `ts` replies to, with Slack's codes; empty where it has to be known
        already, or nobody can say."""
        return self._texts.get((channel, ts), "")

    async def _text(self, channel: str, thread: str) -> str:
        heard = await self._web.call("conversations.replies", channel=channel, ts=thread, limit="1")
        messages = heard.data.get("messages")
        first = messages[0] if isinstance(messages, list) and messages else None
        if not isinstance(first, dict) or first.get("ts") != thread:
            return ""
        if first.get("subtype") == PANE:
            return ""
        return text_of(first, "text")[:CHARS_MAX]


def _keep(kept: dict[tuple[str, str], T], key: tuple[str, str], value: T) -> None:
    """The oldest is forgotten beyond a bound."""
    if len(kept) >= THREADS_MAX:
        del kept[next(iter(kept))]
    kept[key] = value
