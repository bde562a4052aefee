"""What Slack is asked about: messages that stand there (ours, by the mark in their metadata or the
file that they show; those under which somebody replies), and people: name, title, zone and
language.

A send whose fate is unknown can be looked up, since Slack keeps what a message carries.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from bot.channels.slack.api import SaidNo, SlackTrouble, SlackWeb
from bot.channels.throttle import keep_newest
from bot.channels.wire import Json, text_of
from memory.records.errors import StorageError
from memory.records.messages import IncomingMessage
from memory.records.ports import Clock

log = structlog.get_logger()

IsIt = Callable[[Json], bool]

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


class TooMuchSaid(SlackTrouble):
    """Too many messages were written since to look for it among them."""


def metadata(mark: str) -> dict[str, Any]:
    """Return what a message carries."""
    return {"event_type": EVENT_TYPE, "event_payload": {"id": mark}}


async def find_marked(
    web: SlackWeb, *, channel: str, thread: str | None, mark: str, since_ms: int
) -> str | None:
    """Return the id of the message with this mark; None when it surely is not there. Raise
    SlackTrouble when that cannot be told."""

    def bears(message: Json) -> bool:
        found = message.get("metadata")
        if not isinstance(found, dict) or found.get("event_type") != EVENT_TYPE:
            return False
        payload = found.get("event_payload")
        return isinstance(payload, dict) and payload.get("id") == mark

    return await _found(web, bears, channel=channel, thread=thread, since_ms=since_ms)


async def find_file(
    web: SlackWeb, *, channel: str, thread: str | None, file_id: str, since_ms: int
) -> str | None:
    """Return the same for a message that shows this file."""

    def shows(message: Json) -> bool:
        files = message.get("files")
        listed = files if isinstance(files, list) else ()
        return any(isinstance(file, dict) and file.get("id") == file_id for file in listed)

    return await _found(web, shows, channel=channel, thread=thread, since_ms=since_ms)


async def _found(
    web: SlackWeb, is_it: IsIt, *, channel: str, thread: str | None, since_ms: int
) -> str | None:
    oldest = f"{max(since_ms / 1000 - CLOCKS_DIFFER_S, 0.0):.6f}"
    if thread is not None:
        try:
            return await _search(web, "conversations.replies", channel, is_it, oldest, ts=thread)
        except SaidNo as error:
            if error.error != "thread_not_found":
                raise
            # The thread's first post is gone; Slack then puts an answer into the channel.
    return await _search(web, "conversations.history", channel, is_it, oldest)


async def _search(
    web: SlackWeb, method: str, channel: str, is_it: IsIt, oldest: str, **place: str
) -> str | None:
    for _ in range(PAGES_MAX):
        heard = await web.call(
            method,
            channel=channel,
            oldest=oldest,
            limit=str(PAGE),
            include_all_metadata="true",
            **place,
        )
        messages = heard.data.get("messages")
        for message in messages if isinstance(messages, list) else ():
            if isinstance(message, dict) and (ts := text_of(message, "ts")) and is_it(message):
                return ts
        page = heard.data.get("response_metadata")
        cursor = text_of(page, "next_cursor") if isinstance(page, dict) else ""
        if not cursor:
            return None
        place["cursor"] = cursor
    raise TooMuchSaid("too many messages have been written since to look through")


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
                    heard = await self._web.call(
                        "conversations.replies", channel=channel, ts=thread, limit="1"
                    )
            except (SlackTrouble, TimeoutError) as trouble:
                why = str(trouble) or f"no answer within {self._wait_s:g} s"
                log.warning("slack.no_parent", chat=message.address.chat_id, why=why)
                return
            messages = heard.data.get("messages")
            listed = messages[:1] if isinstance(messages, list) else []
            for first in (one for one in listed if isinstance(one, dict)):
                if first.get("ts") != thread or first.get("subtype") == PANE:
                    continue
                text = text_of(first, "text")[:CHARS_MAX]
                keep_newest(self._texts, (channel, message.message_id), text, most=THREADS_MAX)
        keep_newest(self._known, (channel, thread), None, most=THREADS_MAX)

    def text(self, channel: str, ts: str) -> str:
        """Return what the message `ts` replies to, with Slack's codes; empty where it has to be
        known already, or nobody can say."""
        return self._texts.get((channel, ts), "")


# --- people -------------------------------------------------------------------------------------
#
# None of what Slack says of a person is identity, and a message never waits long for it.

KNOWN_S = 86_400.0
AGAIN_S = 300.0
"""Until somebody is asked for again after that went wrong."""

WAIT_S = 0.5
"""How long a first message waits for its writer's name."""

PEOPLE_MAX = 5_000
LINE_CHARS_MAX = 120

_ZONE = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackProfile:
    """A person of a workspace, by address (`slack:TEAM:USER`). Empty: Slack does not say."""

    address: str
    name: str = ""
    title: str = ""
    time_zone: str = ""
    language: str = ""
    """A code, as Slack writes it: `de-DE`."""


class Learn(Protocol):
    """Keeps what Slack says of a person who is let in. Raises StorageError."""

    async def __call__(self, address: str, *, name: str, time_zone: str, language: str) -> None: ...


@dataclass(slots=True)
class _CachedProfile:
    profile: SlackProfile
    until: float


class SlackPeople:
    """Profiles by address, the least recently read forgotten beyond a bound."""

    def __init__(self, web: SlackWeb, clock: Clock, *, learn: Learn | None = None) -> None:
        self._web = web
        self._clock = clock
        self._learn = learn
        self._known: dict[str, _CachedProfile] = {}
        self._asked: dict[str, asyncio.Task[None]] = {}

    def profile(self, team: str, user: str) -> SlackProfile:
        """As far as it is known now."""
        address = f"slack:{team}:{user}"
        entry = self._known.get(address)
        return entry.profile if entry is not None else SlackProfile(address=address)

    async def meet(self, team: str, user: str, group: asyncio.TaskGroup) -> None:
        """Asks for somebody who is not known, in `group`, and waits for a moment."""
        address = f"slack:{team}:{user}"
        entry = self._known.get(address)
        if entry is not None and entry.until > self._clock.monotonic():
            return
        asked = self._asked.get(address)
        if asked is None:
            asked = group.create_task(self._ask(address, user), name=f"profile {address}")
            self._asked[address] = asked
            asked.add_done_callback(lambda _: self._asked.pop(address, None))
        await asyncio.wait([asked], timeout=WAIT_S)

    async def _ask(self, address: str, user: str) -> None:
        try:
            heard = await self._web.call("users.info", user=user, include_locale="true")
        except SlackTrouble as error:
            log.warning("slack.no_profile", address=address, why=str(error))
            known = self._known.get(address)
            self._keep(known.profile if known else SlackProfile(address=address), AGAIN_S)
            return
        found = heard.data.get("user")
        profile = _profile(address, found if isinstance(found, dict) else {})
        self._keep(profile, KNOWN_S)
        if self._learn is None:
            return
        try:
            await self._learn(
                address, name=profile.name, time_zone=profile.time_zone, language=profile.language
            )
        except StorageError as error:
            log.warning("slack.profile_not_kept", why=str(error))

    def _keep(self, profile: SlackProfile, seconds: float) -> None:
        cached = _CachedProfile(profile, self._clock.monotonic() + seconds)
        keep_newest(self._known, profile.address, cached, most=PEOPLE_MAX)


def _profile(address: str, user: Json) -> SlackProfile:
    about = user.get("profile")
    shown = about if isinstance(about, dict) else {}
    names = (
        _line(shown, "real_name"),
        _line(user, "real_name"),
        _line(shown, "display_name"),
        _line(user, "name"),
    )
    zone = _line(user, "tz")
    return SlackProfile(
        address=address,
        name=next((name for name in names if name), ""),
        title=_line(shown, "title"),
        time_zone=zone if _ZONE.fullmatch(zone) else "",
        language=_line(user, "locale"),
    )


def _line(holder: Json, name: str) -> str:
    return " ".join(text_of(holder, name).split())[:LINE_CHARS_MAX]
