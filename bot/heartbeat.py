"""What `/heartbeat` says and does: whether the list is looked at by itself, when, and why (not)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog

from agent.errors import Permanent
from agent.jobbook import Beats, JobBook, Switches
from agent.messages import IncomingMessage
from agent.scheduled import Job, JobKind
from bot import schedule_words as words
from bot.ports import Person

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
        every_minutes: int,
        ensure: Callable[[], Awaitable[None]],
    ) -> None:
        """`every_minutes` is that of the settings, 0 for never; `ensure` keeps the job as the
        settings and the switch want it."""
        self._book = book
        self._beats = beats
        self._switches = switches
        self._every_minutes = every_minutes
        self._ensure = ensure

    async def tell(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """Raises StorageError."""
        match rest.lower().split():
            case []:
                return await self._state(person)
            case [("on" | "off") as word]:
                return await self._set(person, is_on=word == "on")
            case ["now"]:
                return await self._now(person)
            case ["why"]:
                zone = self._book.zone(person.id)
                job = await self._job(person)
                agent = "default" if job is None else job.new.agent
                return words.beats_text(await self._beats.last(agent, BEATS_SHOWN), zone)
            case _:
                return words.HEARTBEAT_USE

    async def _job(self, person: Person) -> Job | None:
        jobs = await self._book.of(person.id)
        return next((job for job in jobs if job.new.kind is JobKind.HEARTBEAT), None)

    async def _state(self, person: Person) -> str:
        if self._every_minutes <= 0:
            return words.HEARTBEAT_NEVER
        job, zone = await self._job(person), self._book.zone(person.id)
        by_hand = await self._switches.is_on(SWITCH)
        if job is None:
            is_off = by_hand is False
            return words.HEARTBEAT_OFF if is_off else words.HEARTBEAT_NOT_YET
        set_by = "by the settings" if by_hand is None else "by hand"
        state = "on" if job.enabled else "off"
        lines = [
            f"The heartbeat is {state} ({set_by}): every {self._every_minutes} min I look at "
            "HEARTBEAT.md, and ask a model only if there is something to do in it.",
            words.next_line(self._book, job, n=1),
        ]
        if job.failures and not job.enabled:
            lines.append(f"It was stopped: {job.paused}. `/heartbeat on` lets it go on.")
        last = await self._beats.last(job.new.agent, 1)
        if last:
            lines.append(f"Last:\n{words.beat_line(last[0], zone)}")
        return "\n".join([*lines, words.HEARTBEAT_USE])

    async def _set(self, person: Person, *, is_on: bool) -> str:
        if is_on and self._every_minutes <= 0:
            return words.HEARTBEAT_NEVER
        await self._switches.set_on(SWITCH, is_on)
        await self._ensure()
        if is_on and (job := await self._job(person)) is not None and not job.enabled:
            await self._book.resume(job)  # it had kept failing
        log.info("heartbeat.set", is_on=is_on, person=person.id)
        if not is_on:
            return words.HEARTBEAT_OFF
        return await self._state(person)

    async def _now(self, person: Person) -> str:
        job = await self._job(person)
        if job is None:
            return words.HEARTBEAT_NEVER if self._every_minutes <= 0 else words.HEARTBEAT_NOT_YET
        try:
            await self._book.run(job)
        except Permanent as refused:
            return f"The heartbeat could not begin: {refused}"
        last = await self._beats.last(job.new.agent, 1)
        if last and last[0].outcome == "skipped":
            return f"No model was asked: {last[0].why}."
        return "I look at HEARTBEAT.md now. What I find comes by itself; nothing is no message."
