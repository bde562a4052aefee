"""How the bot is doing, in lines for /status and `hearthbot status`. Built by `bot.app`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta, tzinfo

from agent.budget.budget import Budget
from agent.budget.service import UsageService
from agent.models.choose import Choice
from agent.models.router import Router
from agent.tools.groups.agents import StatusTold
from agent.tools.groups.exec import Runner
from agent.turn.agents import Bindings
from agent.turn.engine import LocalEngine
from agent.version import VERSION
from bot.channels.base import Channel
from bot.commands.logs import LogReader
from bot.commands.mcp import McpService
from bot.commands.models import model_here, resting_lines
from bot.commands.usage import cost_words
from bot.outbox.outbox import Outbox
from bot.people.access import Access
from memory.records.errors import StorageError
from memory.records.languages import AUTO, language_of
from memory.records.messages import DEFAULT_AGENT, PersonId, Role
from memory.records.ports import Clock
from memory.records.rows import Grant, Person
from memory.records.usage import NOBODY, Period, Scope, added, zone_for
from scheduler.jobs.heartbeats import HeartbeatService
from scheduler.jobs.service import JobService

FREE_LOW_BYTES = 4 * 1024 * 1024
"""What the database's `-wal` grows to between two checkpoints (SQLite: 1000 pages)."""

DISK_FULL = (
    "The disk is full or nearly full: {free} KB are left. Free some space, and I go on by myself. "
    "A message that I cannot store is not lost: its platform will send it again."
)

TROUBLES = "Last warnings and errors of the last 24 hours (`/logs errors`):"


@dataclass(frozen=True, slots=True, kw_only=True)
class BotStatus:
    """Says how the bot is doing, by the parts whose state is told. What reads from a store may
    raise StorageError."""

    clock: Clock
    since_s: float
    """When the bot was started, by the clock that only grows."""
    choice: Choice
    models: Router
    access: Access
    channels: Mapping[str, Channel]
    engine: LocalEngine
    outbox: Outbox
    budget: Budget
    usage: UsageService
    runner: Runner
    servers: McpService
    next_lines: Callable[[PersonId | None], Awaitable[list[str]]]
    """What happens next by the clock."""
    bindings: Bindings
    jobs: JobService
    heartbeats: HeartbeatService
    grants: Callable[[PersonId], Awaitable[Sequence[Grant]]]
    log: LogReader
    free_bytes: Callable[[], int]
    host_zone: tzinfo
    """The zone of people who have none."""
    troubles: Callable[[], Awaitable[Sequence[str]]]
    """What housekeeping could not do, and why nothing is done by the clock."""
    is_changed: Callable[[], bool]
    """Whether the settings want a restart."""

    async def lines(self, *, for_owner: bool, lane: str = "", person_id: str = "") -> list[str]:
        """Return a line each; the owner sees the machine's side too. `lane` is the chat that asks,
        and `person_id` who reads it there alone: what is theirs is told to nobody else. The owner
        need not be named. Raise StorageError."""
        up = timedelta(seconds=self.clock.monotonic() - self.since_s)
        lines = [f"Hearthbot {VERSION}, up {_duration(up)}", f"Model: {self.choice.model}"]
        if lane and (agent := self.bindings.agent_of(lane)) != DEFAULT_AGENT:
            lines.append(f"Agent in this chat: {agent}")
        lines += await model_here(self.models, lane)
        own_id = person_id or (self._owner_in(lane) if for_owner else None)
        person = None if own_id is None else self.access.person(PersonId(own_id))
        if not for_owner:
            return lines if person is None else [*lines, *await self._own(person)]
        people, chats = self.access.directory.people, self.access.directory.chats
        lines += [
            f"Why this model: {self.choice.why}",
            *await resting_lines(self.models),
            f"Channels: {', '.join(sorted(self.channels))}",
            *(
                f"No messages from {name.capitalize()} for "
                f"{_duration(self.clock.now() - trouble.since)}: {trouble.why}. "
                "I keep trying; what is written meanwhile comes later."
                for name, channel in sorted(self.channels.items())
                if (trouble := channel.trouble) is not None
            ),
            *await self.troubles(),
            *self._full(),
            f"People: {len(people)}, group chats: {list(chats.values()).count('admitted')}",
            f"Turns running or waiting: {self.engine.waiting()}",
            f"Replies on their way: {self.outbox.waiting()}",
        ]
        lines += await self.next_lines(person.id if person is not None else None)
        lines += self.servers.lines()
        if self.runner.why_open:
            lines.append(f"Programs run without a sandbox: {self.runner.why_open}")
        if self.budget.hand.paused is not None:
            lines.append("Paused: nothing new is begun until `/resume`.")
        if self.budget.brakes.paused:
            lines.append(
                "Stopped asking models, as far more was used than usual: `/usage`, `/resume`."
            )
        lines += [
            f"Nothing has gone out to {name.capitalize()} for "
            f"{_duration(self.clock.now() - trouble.since)}: {trouble.why}. What waits is kept."
            for name, trouble in sorted(self.outbox.troubles().items())
        ]
        counts = await self.outbox.counts()
        if failed := counts.get("failed", 0):
            lines.append(f"Messages given up and not delivered: {failed}")
        if unknown := counts.get("unknown", 0):
            lines.append(f"Messages given up that may have arrived: {unknown}")
        if self.is_changed():
            lines.append("The settings were changed since the start: a restart is due.")
        lines.append(f"Used today by everybody: {await self._used(NOBODY, self.host_zone)}")
        if person is not None:
            lines += await self._own(person)
        return lines + await self._by_hand_and_lately(person)

    async def told(self, *, for_owner: bool, lane: str = "") -> StatusTold:
        """See `agent.tools.groups.agents.TellsStatus`. Raises StorageError. Whose chat it is reads
        what is theirs, as by `/status`. The reason of an error may repeat what a platform or a
        model's provider said, so it is a quote as well."""
        servers = self.servers
        # A server may go down while the lines are made.
        before = servers.are_quoted()
        reader = await self.access.alone_in(lane)
        lines = await self.lines(for_owner=for_owner, lane=lane, person_id=reader or "")
        quotes = for_owner and (before or servers.are_quoted() or TROUBLES in lines)
        return StatusTold(lines=tuple(lines), quotes=quotes)

    async def _own(self, person: Person) -> list[str]:
        """Return what is a person's own: what they used, and what they have set by a command."""
        zone = zone_for(Scope.PERSON, person.time_zone, self.host_zone)
        shows_money = person.role is not Role.GUEST  # as in /usage
        used = await self._used(person.id, zone, shows_money=shows_money)
        lines = [f"Used today by you: {used}"]
        if person.time_zone:
            lines.append(f"Your time zone: {person.time_zone}")
        if language := language_of(person.language):
            lines.append(f"Your language: {language.shown}")
        elif person.language == AUTO:
            lines.append("Your language: that of each message")
        if hours := await self.jobs.quiet_hours(person.id):
            lines.append(f"Your quiet hours: {hours} ({zone})")
        if tools := sorted({grant.tool for grant in await self.grants(person.id)}):
            named = ", ".join(f"`{tool}`" for tool in tools)
            lines.append(f"Allowed for good: {named}; `/approve revoke TOOL` takes it back")
        return lines

    async def _used(self, person_id: PersonId, zone: tzinfo, *, shows_money: bool = True) -> str:
        """Return the tokens and the money of today, by this zone; NOBODY: of everybody."""
        with suppress(StorageError):  # on a full disk, say: then the last seconds are missing
            await self.usage.flush()
        used = added(await self.usage.used(Period.DAY, person_id=person_id, zone=zone))
        if not used.calls:
            return "nothing"
        tokens = f"{used.tokens:,} tokens"
        return f"{tokens}, {cost_words(used)}" if shows_money else tokens

    async def _by_hand_and_lately(self, owner: Person | None) -> list[str]:
        """Return whether somebody set the heartbeat, and what went wrong in the last day."""
        lines = []
        is_on = await self.heartbeats.is_on()
        if is_on is not None:
            lines.append(f"Heartbeat: {'on' if is_on else 'off'}, set by hand (`/heartbeat`)")
        zone = zone_for(Scope.PERSON, owner.time_zone if owner else "", self.host_zone)
        troubles = await self.log.lately(self.clock.now(), zone)
        if troubles:
            lines.append(TROUBLES)
        return lines + troubles

    def _owner_in(self, lane: str) -> PersonId | None:
        """Return the owner who asks in a private chat, or at the machine; None where it may be
        another one."""
        people = self.access.directory.people
        owners = [person for person in people if person.role is Role.OWNER]
        here = [person for person in owners if lane in person.addresses] or owners
        return here[0].id if len(here) == 1 else None

    def _full(self) -> list[str]:
        """Return a warning if there is hardly any disk space left."""
        try:
            free = self.free_bytes()
        except OSError:
            return []
        return [DISK_FULL.format(free=free // 1024)] if free < FREE_LOW_BYTES else []


def _duration(span: timedelta) -> str:
    minutes, seconds = divmod(int(span.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
