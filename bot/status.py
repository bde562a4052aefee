"""How the bot is doing, in lines for /status and `hearthbot status`. Built by `bot.app`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from agent.bindings import Bindings
from agent.budget import Budget
from agent.messages import DEFAULT_AGENT, PersonId, Role
from agent.models.choose import Choice
from agent.ports import Clock
from agent.tools.exec import Runner
from agent.turns import LocalEngine
from agent.version import VERSION
from bot.access import Access
from bot.channel import Channel, TellsTrouble
from bot.mcp import McpDesk
from bot.model_desk import ModelDesk
from bot.outbox import Outbox


class TellsNext(Protocol):
    """Says what happens next by the clock; `bot.schedules` is one."""

    async def next_lines(self, person_id: PersonId | None) -> list[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The parts whose state is told."""

    choice: Choice
    models: ModelDesk
    access: Access
    channels: Mapping[str, Channel]
    engine: LocalEngine
    outbox: Outbox
    budget: Budget
    runner: Runner
    servers: McpDesk
    clock: TellsNext
    bindings: Bindings


class BotStatus:
    """Implements `bot.command_tools.Status`. `changed` says whether the settings want a restart."""

    def __init__(self, watched: Watched, *, clock: Clock, changed: Callable[[], bool]) -> None:
        self._watched = watched
        self._clock = clock
        self._changed = changed
        self._since = clock.now()

    async def lines(self, *, for_owner: bool, lane: str = "") -> list[str]:
        """A line each; the owner sees the machine's side too. `lane` is the chat that asks."""
        bot = self._watched
        up = self._clock.now() - self._since
        lines = [f"Hearthbot {VERSION}, up {_duration(up)}", f"Model: {bot.choice.model}"]
        if lane and (agent := bot.bindings.agent_of(lane)) != DEFAULT_AGENT:
            lines.append(f"Agent in this chat: {agent}")
        lines += await bot.models.here(lane)
        if not for_owner:
            return lines
        people, chats = bot.access.directory.people, bot.access.directory.chats
        lines += [
            f"Why this model: {bot.choice.why}",
            *bot.models.resting(),
            f"Channels: {', '.join(sorted(bot.channels))}",
            *self._unheard(),
            f"People: {len(people)}, group chats: {list(chats.values()).count('admitted')}",
            f"Turns running or waiting: {bot.engine.waiting()}",
            f"Replies on their way: {bot.outbox.waiting()}",
        ]
        lines += await bot.clock.next_lines(self._owner_in(lane))
        lines += bot.servers.lines()
        if bot.runner.why_open:
            lines.append(f"Programs run without a sandbox: {bot.runner.why_open}")
        if bot.budget.hand.paused is not None:
            lines.append("Paused: nothing new is begun until `/resume`.")
        if bot.budget.brakes.paused:
            lines.append(
                "Stopped asking models, as far more was used than usual: `/usage`, `/resume`."
            )
        unknown = (await bot.outbox.counts()).get("unknown", 0)
        if unknown:
            lines.append(f"Replies whose fate is unknown: {unknown}")
        if self._changed():
            lines.append("The settings were changed since the start: a restart is due.")
        return lines

    def _owner_in(self, lane: str) -> PersonId | None:
        """The owner who asks in a private chat, or at the machine; None where it may be another
        one."""
        people = self._watched.access.directory.people
        owners = [person for person in people if person.role is Role.OWNER]
        here = [person for person in owners if lane in person.addresses] or owners
        return here[0].id if len(here) == 1 else None

    def _unheard(self) -> list[str]:
        """The platforms from which nothing comes in just now."""
        found = []
        for name, channel in sorted(self._watched.channels.items()):
            trouble = channel.trouble if isinstance(channel, TellsTrouble) else None
            if trouble is not None:
                since = _duration(self._clock.now() - trouble.since)
                found.append(
                    f"No messages from {name.capitalize()} for {since}: {trouble.why}. "
                    "I keep trying; what is written meanwhile comes later."
                )
        return found


def _duration(span: timedelta) -> str:
    minutes, seconds = divmod(int(span.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
