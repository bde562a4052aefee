"""What `/heartbeat` says: whether the list is looked at by itself, when, and why (not)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo

from bot.commands.jobs import messages as words
from bot.markup.command_text import bare
from memory.records.errors import Permanent
from memory.records.jobs import list_name
from memory.records.messages import DEFAULT_AGENT, IncomingMessage
from memory.records.rows import Person
from memory.records.schedule import HeartbeatRun, moment_words
from scheduler.jobs.heartbeats import HeartbeatService
from scheduler.jobs.service import JobService

BEATS_SHOWN = 10


class HeartbeatCommands:
    """For the owner, whose private chat hears of what is found. A face of the heartbeat service."""

    def __init__(self, jobs: JobService, heartbeats: HeartbeatService) -> None:
        self._jobs = jobs
        self._heartbeats = heartbeats

    async def tell(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """Raises StorageError."""
        minutes = self._heartbeats.minutes
        match rest.lower().split():
            case []:
                return await self._state(person)
            case ["on"]:
                if not minutes:
                    return words.HEARTBEAT_NEVER
                await self._heartbeats.set_on(person.id, is_on=True)
                return await self._state(person)
            case ["off"]:
                await self._heartbeats.set_on(person.id, is_on=False)
                return words.HEARTBEAT_OFF
            case ["now", *agent] if len(agent) <= 1:
                return await self._now(person, self._agent(*agent))
            case ["why"]:
                return await self._why(person, *(minutes or [DEFAULT_AGENT]))
            case ["why", agent]:
                return await self._why(person, self._agent(agent))
            case _:
                return words.HEARTBEAT_USE

    def _agent(self, word: str = DEFAULT_AGENT) -> str:
        """The agent whose name is typed, in whatever letters; a word that is none stays."""
        return next((name for name in self._heartbeats.minutes if name.lower() == word), word)

    async def _why(self, person: Person, *agents: str) -> str:
        """The last looks, each agent's below a head of its own where there are several."""
        zone = self._jobs.times.zone(person.id)
        found = [(agent, await self._heartbeats.last(agent, BEATS_SHOWN)) for agent in agents]
        told = [(agent, beats_text(last, zone)) for agent, last in found if last]
        if not told:
            # The default agent may have no heartbeat.
            is_one = agents[0] in self._heartbeats.minutes or agents[0] == DEFAULT_AGENT
            return words.HEARTBEAT_NOTHING if is_one else self._unknown(agents[0])
        if len(agents) == 1:
            return told[0][1]
        return "\n\n".join(f"`{agent}`: {text}" for agent, text in told)

    def _unknown(self, agent: str) -> str:
        if not self._heartbeats.minutes:
            return words.HEARTBEAT_NEVER
        having = ", ".join(f"`{name}`" for name in self._heartbeats.minutes)
        return f"No agent called {bare(agent)} has a heartbeat. These have one: {having}."

    async def _state(self, person: Person) -> str:
        if not self._heartbeats.minutes:
            return words.HEARTBEAT_NEVER
        told = [await self._state_of(person, agent) for agent in self._heartbeats.minutes]
        is_any = not {*told} <= {words.HEARTBEAT_OFF, words.HEARTBEAT_NOT_YET}
        shown = "\n\n".join(dict.fromkeys(told))
        return f"{shown}\n{words.HEARTBEAT_USE}" if is_any else shown

    async def _state_of(self, person: Person, agent: str) -> str:
        job = await self._heartbeats.of(person.id, agent)
        by_hand = await self._heartbeats.is_on()
        if job is None:
            return words.HEARTBEAT_OFF if by_hand is False else words.HEARTBEAT_NOT_YET
        set_by = "by the settings" if by_hand is None else "by hand"
        state = "on" if job.enabled else "off"
        whose = "" if agent == DEFAULT_AGENT else f" of the agent `{agent}`"
        every = self._heartbeats.minutes[agent]
        lines = [
            f"The heartbeat{whose} is {state} ({set_by}): every {every} min I look at "
            f"{list_name(agent)}, and ask a model only if there is something to do in it.",
            words.next_line(self._jobs.status(job, n=1)),
        ]
        if job.failures and not job.enabled:
            lines.append(f"It was stopped: {job.paused}. `/heartbeat on` lets it go on.")
        if takes := await self._jobs.estimate(job):
            lines.append(f"Where there is always something to do, it takes {takes}.")
        if last := await self._heartbeats.last(job.agent, 1):
            lines.append(f"Last:\n{beat_line(last[0], self._jobs.times.zone(person.id))}")
        return "\n".join(lines)

    async def _now(self, person: Person, agent: str) -> str:
        if agent not in self._heartbeats.minutes:
            return self._unknown(agent)
        job = await self._heartbeats.of(person.id, agent)
        if job is None:
            is_off = await self._heartbeats.is_on() is False
            return words.HEARTBEAT_OFF if is_off else words.HEARTBEAT_NOT_YET
        try:
            await self._heartbeats.run_now(job)
        except Permanent as refused:
            return f"The heartbeat could not begin: {refused}"
        last = await self._heartbeats.last(job.agent, 1)
        if last and last[0].outcome == "skipped":
            return f"No model was asked: {last[0].why}."
        return (
            f"I look at {list_name(agent)} now. What I find comes by itself; nothing is no message."
        )


def beats_text(beats: Sequence[HeartbeatRun], zone: tzinfo) -> str:
    """Return what `/heartbeat why` says of an agent."""
    return "\n".join(["The last heartbeats:", *(beat_line(beat, zone) for beat in beats)])


def beat_line(beat: HeartbeatRun, zone: tzinfo) -> str:
    """One of them."""
    at = moment_words(datetime.fromtimestamp(beat.at_ms / 1000, UTC), zone)
    why = f": {bare(beat.why)}" if beat.why else ""
    return f"- {at} {beat.outcome}{why}"
