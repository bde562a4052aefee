"""What Slack says of a person: name, title, zone and language, asked once a day. For
`bot.channels.slack.channel`.

None of it is identity, and a message never waits long for it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from bot.channels.odd_json import Json, text_of
from bot.channels.slack.api import SlackTrouble, SlackWeb
from memory.records.ports import Clock

log = structlog.get_logger()

KNOWN_S = 86_400.0
AGAIN_S = 300.0
"""Until somebody is asked for again after that went wrong."""

WAIT_S = 0.5
"""How long a first message waits for its writer's name."""

PEOPLE_MAX = 5_000
CHARS_MAX = 120

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


Learn = Callable[[SlackProfile], Awaitable[None]]
"""Told of a profile that was just read; keeps what the person has not said otherwise."""


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
        if self._learn is not None:
            await self._learn(profile)

    def _keep(self, profile: SlackProfile, seconds: float) -> None:
        self._known.pop(profile.address, None)
        if len(self._known) >= PEOPLE_MAX:
            del self._known[next(iter(self._known))]
        self._known[profile.address] = _CachedProfile(profile, self._clock.monotonic() + seconds)


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
    return " ".join(text_of(holder, name).split())[:CHARS_MAX]
