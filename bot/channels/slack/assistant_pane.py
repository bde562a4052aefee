"""The assistant's pane of Slack: texts to begin with, a title for each thread, what is being done.

Called by the channel and the intake, which never wait for it. None of it is worth a message: what
fails is left out.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from bot.channels.slack.api import SlackTrouble, SlackWeb
from bot.channels.slack.send import channel_of
from bot.channels.slack.wire import OpenedPane
from bot.channels.throttle import keep_newest
from bot.channels.wire import is_direct
from memory.records.messages import Address
from memory.records.ports import Clock

log = structlog.get_logger()

STATUS_EVERY_S = 60.0
"""Slack shows a status for two minutes, or until a message comes."""

STALE_S = 10.0
"""Whoever works says so every few seconds. A status of which nothing is heard for so long is that
of a turn that ended without a message."""

LOOK_S = 0.5
"""How often it is looked whether something else is done by now."""

THREADS_MAX = 2_000
WAITING_MAX = 100

PROMPTS_MAX = 4
"""Slack shows no more."""

TITLE_CHARS_MAX = 80
LINE_CHARS_MAX = 80

THINKING = "is thinking…"

_CODED = re.compile(r"<[^<>]*>")

Offer = Callable[[str], Sequence[tuple[str, str]]]
"""From a person's address to titles and texts."""


@dataclass(slots=True)
class _PaneStatus:
    """What a thread shows, and when that was said; empty: nothing yet."""

    address: Address
    heard_at: float
    shown: str = ""
    shown_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _FirstWords:
    """The first words in a thread that was opened in the pane."""

    channel: str
    thread: str
    title: str


class AssistantPanes:
    """Threads in the assistant's pane. `offer` says which texts somebody is offered there: nobody
    but those who are let in."""

    def __init__(self, web: SlackWeb, *, clock: Clock, offer: Offer | None = None) -> None:
        self._web = web
        self._clock = clock
        self._offer = offer
        self._news: asyncio.Queue[OpenedPane | _FirstWords] = asyncio.Queue(WAITING_MAX)
        self._untitled: dict[tuple[str, str], None] = {}
        self._lines: dict[str, str] = {}
        self._statuses: dict[str, _PaneStatus] = {}
        self._some = asyncio.Event()

    # --- for the intake ------------------------------------------------------------------------

    def opened(self, thread: OpenedPane) -> None:
        """Somebody opened a thread. One too many at a time is left out."""
        self._put(thread)

    def said(self, channel: str, thread: str | None, text: object) -> None:
        """Somebody wrote; the first words become the title."""
        if thread is None or (channel, thread) not in self._untitled:
            return
        title = title_of(text)
        if title:
            del self._untitled[channel, thread]
            self._put(_FirstWords(channel=channel, thread=thread, title=title))

    async def work(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tell_news())
            group.create_task(self._keep_statuses())

    # --- for the channel -----------------------------------------------------------------------

    async def typing(self, address: Address) -> None:
        """An answer is being made here, as is said every few seconds. Slack lets nobody be seen
        typing, but in a thread of a direct message it shows a status."""
        if address.thread_id is None or not is_direct(channel_of(address)):
            return
        now = self._clock.monotonic()
        known = self._statuses.get(address.key) or _PaneStatus(address, now)
        keep_newest(self._statuses, address.key, known, most=THREADS_MAX)
        known.heard_at = now
        self._some.set()
        await self._refresh(known)

    def doing(self, address: Address, line: str) -> None:
        """What is being done there, in plain words; an empty line: nothing in particular."""
        if line:
            keep_newest(self._lines, address.key, line, most=THREADS_MAX)
        else:
            self._lines.pop(address.key, None)

    def posted(self, address: Address) -> None:
        """A message of ours is there, with which Slack takes the status away."""
        self._statuses.pop(address.key, None)

    # --- inside --------------------------------------------------------------------------------

    def _put(self, news: OpenedPane | _FirstWords) -> None:
        if not self._news.full():
            self._news.put_nowait(news)

    async def _tell_news(self) -> None:
        while True:
            match await self._news.get():
                case OpenedPane(channel=channel, thread=thread, sender=sender):
                    texts = self._offer(sender) if self._offer is not None else ()
                    if not texts:
                        continue
                    keep_newest(self._untitled, (channel, thread), None, most=THREADS_MAX)
                    shown = texts[:PROMPTS_MAX]
                    await self._call(
                        "assistant.threads.setSuggestedPrompts",
                        channel_id=channel,
                        thread_ts=thread,
                        prompts=[{"title": title, "message": text} for title, text in shown],
                    )
                case _FirstWords() as begun:
                    await self._call(
                        "assistant.threads.setTitle",
                        channel_id=begun.channel,
                        thread_ts=begun.thread,
                        title=begun.title,
                    )

    async def _keep_statuses(self) -> None:
        while True:
            await self._some.wait()
            for status in list(self._statuses.values()):
                if self._clock.monotonic() - status.heard_at >= STALE_S:
                    self._statuses.pop(status.address.key, None)
                    await self._set(status.address, "")
                else:
                    await self._refresh(status)
            if not self._statuses:
                self._some.clear()
            await self._clock.sleep(LOOK_S)

    async def _refresh(self, status: _PaneStatus) -> None:
        """Says what is done by now, where that is new or was said too long ago."""
        doing = self._lines.get(status.address.key, "").removesuffix("…").strip()[:LINE_CHARS_MAX]
        # As Slack shows it behind the app's name.
        line, now = f"is {doing}…" if doing else THINKING, self._clock.monotonic()
        if line == status.shown and now - status.shown_at < STATUS_EVERY_S:
            return
        status.shown, status.shown_at = line, now
        await self._set(status.address, line)
        if self._statuses.get(status.address.key) is not status:
            await self._set(status.address, "")  # the answer came first, and Slack would keep it

    async def _set(self, address: Address, status: str) -> None:
        await self._call(
            "assistant.threads.setStatus",
            channel_id=channel_of(address),
            thread_ts=address.thread_id,
            status=status,
        )

    async def _call(self, method: str, **arguments: Any) -> None:
        try:
            await self._web.call(method, **arguments)
        except SlackTrouble as error:
            log.debug("slack.pane", method=method, why=str(error))


def title_of(text: object) -> str:
    """The first line of a message, short, without Slack's codes; empty where there is none."""
    words = " ".join(_CODED.sub(" ", text).split()) if isinstance(text, str) else ""
    for code, char in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        words = words.replace(code, char)
    if len(words) <= TITLE_CHARS_MAX:
        return words
    return f"{words[: TITLE_CHARS_MAX - 1].rsplit(' ', 1)[0]}…"
