"""Finds a message of ours by the mark in its metadata, or by the file that it shows.

Called by `bot.slack` when a send's fate is unknown: Slack keeps what a message carries, so it can
be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from bot.slack_web import NoAnswer, SaidNo, SlackWeb

Bears = Callable[[Mapping[str, Any]], bool]

EVENT_TYPE = "hearthbot_reply"
PAGE = 200
PAGES_MAX = 20

CLOCKS_DIFFER_S = 600.0
"""Slack's clock and ours may differ so much."""

_NO_THREAD = frozenset({"thread_not_found"})


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
    raise NoAnswer("too much was said since to look through")


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
