"""What `/heartbeat` says and does: whether the list is looked at by itself, when, and why (not)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo

import structlog

from bot.commands import schedule_messages as words
from bot.commands.memory_messages import bare
from memory.records.errors import Permanent
from memory.records.jobs import Job, JobKind, list_name
from memory.records.messages import DEFAULT_AGENT, IncomingMessage
from memory.records.rows import Person
from memory.records.schedule import Beat, Beats, JobBook, Switches, moment_words

log = structlog.get_logger()

SWITCH = "heartbeat"
"""The name under which it is kept that it was set by hand."""

BEATS_SHOWN = 10


class HeartbeatDesk:
    """For the owner, whose private chat hears of what is found."""

    def __init__(
        self,
        book: JobBook,
        beats: Beats,
        switches: Switches,
        *,
        minutes: Mapping[str, int],
        ensure: Callable[[], Awaitable[None]],
    ) -> None:
        """`minutes` are those between two looks, by agents that have any; `ensure` keeps the jobs
        as the settings and the switch want them."""
        self._book = book
        self._beats = beats
        self._switches = switches
        self._minutes = minutes
        self._ensure = ensure

    async def tell(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """Raises StorageError."""
        match rest.lower().split():
            case []:
                return await self._state(person)
            case [("on" | "off") as word]:
                return await self._set(person, is_on=word == "on")
            case ["now", *agent] if len(agent) <= 1:
                return await self._now(person, self._agent(*agent))
            case ["why"]:
                return await self._why(person, *(self._minutes or [DEFAULT_AGENT]))
            case ["why", agent]:
                return await self._why(person, self._agent(agent))
            case _:
                return words.HEARTBEAT_USE

    def _agent(self, word: str = DEFAULT_AGENT) -> str:
        """The agent whose name is typed, in whatever letters; a word that is none stays."""
        return next((name for name in self._minutes if name.lower() == word), word)

    async def _why(self, person: Person, *agents: str) -> str:
        """The last looks, each agent's below a head of its own where there are several."""
        zone = self._book.zone(person.id)
        found = [(agent, await self._beats.last(agent, BEATS_SHOWN)) for agent in agents]
        told = [(agent, beats_text(last, zone)) for agent, last in found if last]
        if not told:
            return words.HEARTBEAT_NOTHING if self._is_one(agents[0]) else self._unknown(agents[0])
        if len(agents) == 1:
            return told[0][1]
        return "\n\n".join(f"`{agent}`: {text}" for agent, text in told)

    def _is_one(self, agent: str) -> bool:
        """Whether the settings give the agent a heartbeat; the default one may have none."""
        return agent in self._minutes or agent == DEFAULT_AGENT

    def _unknown(self, agent: str) -> str:
        if not self._minutes:
            return words.HEARTBEAT_NEVER
        having = ", ".join(f"`{name}`" for name in self._minutes)
        return f"No agent called {bare(agent)} has a heartbeat. These have one: {having}."

    async def _begun(self, person: Person) -> None:
        """Makes the jobs that are still missing: the chat to report to may be known since a
        moment."""
        jobs = [await self._job(person, agent) for agent in self._minutes]
        if None in jobs:
            await self._ensure()

    async def _job(self, person: Person, agent: str) -> Job | None:
        jobs = await self._book.of(person.id)
        beats = (job for job in jobs if job.new.kind is JobKind.HEARTBEAT)
        return next((job for job in beats if job.new.agent == agent), None)

    async def _state(self, person: Person) -> str:
        if not self._minutes:
            return words.HEARTBEAT_NEVER
        await self._begun(person)
        told = [await self._state_of(person, agent) for agent in self._minutes]
        is_any = not {*told} <= {words.HEARTBEAT_OFF, words.HEARTBEAT_NOT_YET}
        shown = "\n\n".join(dict.fromkeys(told))
        return f"{shown}\n{words.HEARTBEAT_USE}" if is_any else shown

    async def _state_of(self, person: Person, agent: str) -> str:
        job, zone = await self._job(person, agent), self._book.zone(person.id)
        by_hand = await self._switches.is_on(SWITCH)
        if job is None:
            is_off = by_hand is False
            return words.HEARTBEAT_OFF if is_off else words.HEARTBEAT_NOT_YET
        set_by = "by the settings" if by_hand is None else "by hand"
        state = "on" if job.enabled else "off"
        whose = "" if agent == DEFAULT_AGENT else f" of the agent `{agent}`"
        lines = [
            f"The heartbeat{whose} is {state} ({set_by}): every {self._minutes[agent]} min I look "
            f"at {list_name(agent)}, and ask a model only if there is something to do in it.",
            words.next_line(self._book, job, n=1),
        ]
        if job.failures and not job.enabled:
            lines.append(f"It was stopped: {job.paused}. `/heartbeat on` lets it go on.")
        if takes := await self._book.foretell(job):
            lines.append(f"Where there is always something to do, it takes {takes}.")
        last = await self._beats.last(job.new.agent, 1)
        if last:
            lines.append(f"Last:\n{beat_line(last[0], zone)}")
        return "\n".join(lines)

    async def _set(self, person: Person, *, is_on: bool) -> str:
        if is_on and not self._minutes:
            return words.HEARTBEAT_NEVER
        await self._switches.set_on(SWITCH, is_on)
        await self._ensure()
        for agent in self._minutes if is_on else ():
            if (job := await self._job(person, agent)) is not None and not job.enabled:
                await self._book.resume(job)  # it had kept failing
        log.info("heartbeat.set", is_on=is_on, person=person.id)
        if not is_on:
            return words.HEARTBEAT_OFF
        return await self._state(person)

    async def _now(self, person: Person, agent: str) -> str:
        if agent not in self._minutes:
            return self._unknown(agent)
        await self._begun(person)
        job = await self._job(person, agent)
        if job is None:
            is_off = await self._switches.is_on(SWITCH) is False
            return words.HEARTBEAT_OFF if is_off else words.HEARTBEAT_NOT_YET
        try:
            await self._book.run(job)
        except Permanent as refused:
            return f"The heartbeat could not begin: {refused}"
        last = await self._beats.last(job.new.agent, 1)
        if last and last[0].outcome == "skipped":
            return f"No model was asked: {last[0].why}."
        return (
            f"I look at {list_name(agent)} now. What I find comes by itself; nothing is no message."
        )


def beats_text(beats: Sequence[Beat], zone: tzinfo) -> str:
    """What `/heartbeat why` says of an agent."""
    return "\n".join(["The last heartbeats:", *(beat_line(beat, zone) for beat in beats)])


def beat_line(beat: Beat, zone: tzinfo) -> str:
    """One of them."""
    at = moment_words(datetime.fromtimestamp(beat.at_ms / 1000, UTC), zone)
    why = f": {bare(beat.why)}" if beat.why else ""
    return f"- {at} {beat.outcome}{why}"
