"""Jobs in a chat: `/remind`, `/jobs`, `/job`, `/quiet`, and the buttons of reminders and notices.

A face of `scheduler.jobs.service`. A press is checked against the person who was recognised: only
they answer for their jobs.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog

from bot.channels.base import Pressed
from bot.commands.jobs import messages as words
from bot.markup.command_text import bare
from bot.outbox.edits import QuestionMessages
from bot.people.approvals import is_shared
from memory.records.errors import Permanent
from memory.records.facts import place_of
from memory.records.jobs import Asker, Job, JobKind, JobRef, What
from memory.records.messages import IncomingMessage, OutboxId, PersonId, RunId
from memory.records.ports import Clock
from memory.records.rows import NewMessage, Person
from memory.records.schedule import (
    JobChanges,
    NoTime,
    TimeAnswer,
    TimeAsked,
    TimeRead,
    moment_words,
)
from scheduler.jobs.events import EventService
from scheduler.jobs.rules import NotYours, UnknownJob, was_moved
from scheduler.jobs.service import JobService

log = structlog.get_logger()

ASKED_S = timedelta(minutes=10).total_seconds()
ASKED_MAX = 200
"""Questions that are kept; the oldest go first."""

OPTIONS_MAX = 6

ANSWERED_MAX = 500
"""Presses of which is known what came of them; a second tap is told the same."""

DATE_DIGITS_MAX = 11
"""Of a date in epoch seconds: some thousand years."""

SNOOZES = frozenset({"10m", "1h", "1d"})

AwaitZone = Callable[[PersonId, Callable[[], Awaitable[str]]], None]


@dataclass(slots=True, kw_only=True)
class _Question:
    """Whether a time shall be kept: for a reminder of `text`, or for a job that is moved.
    `answered` is what came of it, once it was answered."""

    by: Asker
    lane: str
    text: str
    job: Job | None
    options: Sequence[TimeRead]
    card: OutboxId
    shown: str
    until_s: float
    answered: str = ""


def _new_token() -> str:
    return secrets.token_hex(6)


class TimeQuestions:
    """Shows a time as it was read, and keeps it once its person says so.

    Questions are bound to who asked, live for ten minutes, and in memory alone: a restart forgets
    them, and a press after it says so.
    """

    def __init__(
        self,
        jobs: JobService,
        cards: QuestionMessages,
        *,
        clock: Clock,
        new_token: Callable[[], str] = _new_token,
    ) -> None:
        self._jobs = jobs
        self._cards = cards
        self._clock = clock
        self._new_token = new_token
        self._questions: OrderedDict[str, _Question] = OrderedDict()

    async def ask(
        self, by: Asker, lane: str, answer: TimeAnswer, *, text: str = "", job: Job | None = None
    ) -> str:
        """Ask whether this time is right; the card goes out beside the answer."""
        assert by.person_id is not None, "somebody wrote"
        zone = self._jobs.times.zone(by.person_id)
        if job is None:
            head = f"Remind you here: **{bare(text, chars_max=words.TEXT_CHARS)}**"
        else:
            head = f"Move {job.key} **{words.name_of(job)}**"
        match answer:
            case NoTime(why=why):
                return why
            case TimeAsked(text=question, options=()):
                return f"{question} Nothing is saved yet: once that is clear, write it again."
            case TimeRead():
                options: tuple[TimeRead, ...] = (answer,)
                shown = f"{head}\n{words.read_words(answer, zone)}"
            case TimeAsked(text=question, options=several):
                options = several[:OPTIONS_MAX]
                shown = words.asked_card(head, question, options, zone)
        token = self._new_token()
        buttons = words.save_buttons(token, options, zone)
        self._questions[token] = _Question(
            by=by,
            lane=lane,
            text=text,
            job=job,
            options=options,
            card=await self._cards.post(NewMessage(lane=lane, text=shown, buttons=buttons)),
            shown=shown,
            until_s=self._clock.monotonic() + ASKED_S,
        )
        while len(self._questions) > ASKED_MAX:
            self._questions.popitem(last=False)
        return words.ASKED_ABOVE

    async def press(self, pressed: Pressed, person: Person, token: str, word: str) -> str:
        """Answer a button with the data `job:new:TOKEN:WORD`. Raise StorageError."""
        question = self._questions.get(token)
        if question is None or question.until_s < self._clock.monotonic():
            return await self._too_late(pressed, person, token)
        if person.id != question.by.person_id:
            return words.NOT_YOURS
        if question.answered:
            return question.answered
        if word == words.SAVE_NOT:
            said = "Not saved."
        elif word.isascii() and word.isdecimal() and int(word) < len(question.options):
            said = await self._save(question, question.options[int(word)], token)
        else:
            return words.UNKNOWN
        question.answered = said
        await self._cards.revise(question.card, f"{question.shown}\n\n{said}")
        return said

    async def _save(self, question: _Question, time: TimeRead, token: str) -> str:
        """Return what came of it, also where it cannot be saved (any more)."""
        by, moved = question.by, question.job
        assert by.person_id is not None, "somebody wrote"
        try:
            if moved is not None:
                job = await self._jobs.update(moved.key, JobChanges(time=time), by=by)
            else:
                draft = Job(
                    person_id=by.person_id,
                    what=What(text=question.text),
                    when=time.when,
                    max_runs=time.runs_max,
                    expires_ms=time.expires_ms,
                    deliver_to=question.lane,
                    run_id=_call(token),
                )
                job = await self._jobs.add(draft, by=by)
        except Permanent as refused:
            return f"Not saved: {refused}"
        log.info("job.saved", job=job.id, person=by.person_id)
        return f"Saved as {job.key}. {words.next_line(self._jobs.status(job))}"

    async def _too_late(self, pressed: Pressed, person: Person, token: str) -> str:
        """Of a question that is forgotten; a press that comes again after a kill may have saved
        it."""
        jobs = await self._jobs.of(person.id)
        saved = next((job for job in jobs if job.run_id == _call(token)), None)
        said = words.FORGOTTEN if saved is None else f"Saved as {saved.key}."
        # Who asked is forgotten too: in a group somebody else may have pressed.
        if saved is not None or not is_shared(pressed.address.key):
            await self._cards.close(pressed, said)
        return said


def _call(token: str) -> RunId:
    return RunId(f"remind-{token}")


class JobCommands:
    """Commands and presses about jobs. Everything may raise StorageError."""

    def __init__(
        self,
        jobs: JobService,
        events: EventService,
        questions: TimeQuestions,
        cards: QuestionMessages,
        *,
        await_zone: AwaitZone,
    ) -> None:
        """`await_zone` has a command answered again once its person's time zone is known."""
        self._jobs = jobs
        self._events = events
        self._questions = questions
        self._cards = cards
        self._await_zone = await_zone
        self._answered: OrderedDict[tuple[str, str], str] = OrderedDict()

    # --- commands -----------------------------------------------------------------------------

    async def remind(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """`/remind`: shown before it is saved."""
        if not rest.strip():
            return words.REMIND_USE
        found = self._jobs.times.find(person.id, rest)
        if found is None:
            return words.NO_TIME
        if not found.rest and not isinstance(found.answer, NoTime):
            return words.NO_TEXT
        if isinstance(found.answer, TimeAsked) and found.answer.for_zone:
            self._await_zone(person.id, lambda: self.remind(message, person, rest))
            return f"{found.answer.text} {words.GOES_ON}"
        by, lane = Asker(person_id=person.id), message.address.key
        return await self._questions.ask(by, lane, found.answer, text=found.rest)

    async def jobs(self, message: IncomingMessage, person: Person) -> str:
        """`/jobs`: those of the person; in a group those that are for it."""
        by = _asker(message, person)
        found = await self._jobs.list(by=by)
        events = await self._events.ahead(person.id, by.group)
        return words.jobs_text(found, events, self._jobs.times.zone(person.id))

    async def job(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """`/job`: one of them, and what is done with it."""
        name, word, more = [*rest.split(maxsplit=2), "", "", ""][:3]
        by, is_key = _asker(message, person), _is_number(name.lower().removeprefix("j"))
        if not name:
            return words.JOB_USE
        try:
            if name[:1].lower() == "e" and _is_number(name[1:]):
                if word.lower() != "remove":
                    return f"`/job {name.lower()} remove` removes the event and its reminders."
                event = await self._events.remove(name, by=by)
                zone = self._jobs.times.zone(person.id)
                return f"Removed the event {words.event_words(event, zone)}."
            ref = JobRef(name if is_key else rest)
            return await self._do(message, ref, by, word.lower() if is_key else "", more.strip())
        except Permanent as refused:
            return str(refused)

    async def _do(
        self, message: IncomingMessage, ref: JobRef, by: Asker, word: str, more: str
    ) -> str:
        match word:
            case "pause":
                return self._changed(await self._jobs.pause(ref, by=by))
            case "resume":
                return self._changed(await self._jobs.resume(ref, by=by))
            case "run":
                job = await self._jobs.find(ref, by=by)
                await self._jobs.run_now(ref, by=by)
                is_beat = job.kind is JobKind.HEARTBEAT
                said = " `/heartbeat why` says what came of it." if is_beat else ""
                return f"{job.key} {words.name_of(job)} was begun.{said}"
            case "remove":
                job = await self._jobs.remove(ref, by=by)
                return f"Removed {job.key} {words.name_of(job)}."
            case "move" if more:
                job = await self._jobs.find(ref, by=by)
                answer = self._jobs.times.read(job.person_id, more)
                return await self._questions.ask(by, message.address.key, answer, job=job)
            case "text" if more:
                job = await self._jobs.update(ref, JobChanges(text=more), by=by)
                return self._changed(job, words.does_line(job))
            case "":
                now = await self._jobs.show(ref, by=by)
                runs = await self._jobs.runs(now.job, limit=words.RUNS_SHOWN)
                here = message.address.key
                shown = words.job_text(now, runs, here=here)
                button = words.standing_button(now.job)
                if button is None:
                    return f"{shown}\n\n{words.job_use(now.job)}"
                await self._cards.post(NewMessage(lane=here, text=shown, buttons=((button,),)))
                return words.job_use(now.job)
            case _:
                return words.job_use(await self._jobs.find(ref, by=by))

    def _changed(self, job: Job, *lines: str) -> str:
        """Return how it stands now."""
        head = f"{job.key} {words.name_of(job)}"
        return "\n".join([head, *lines, words.next_line(self._jobs.status(job))])

    async def quiet(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """`/quiet`: the hours in which nobody speaks to a person unasked."""
        wanted = rest.strip()
        if not wanted:
            hours = await self._jobs.quiet_hours(person.id)
            return f"Quiet hours: {hours}. {words.QUIET_USE}" if hours else words.QUIET_NONE
        if wanted.lower() in {"off", "none", "no"}:
            await self._jobs.set_quiet_hours(person.id, "")
            return words.QUIET_ENDED
        try:
            hours = await self._jobs.set_quiet_hours(person.id, wanted)
        except Permanent as refused:
            return f"{refused} {words.QUIET_USE}"
        zone = self._jobs.times.zone(person.id)
        return (
            f"Quiet hours: {hours} ({zone}). What I find by myself then waits until they end; your "
            "own reminders come at their time."
        )

    # --- presses ------------------------------------------------------------------------------

    async def press(self, pressed: Pressed, person: Person) -> str:
        """Answer a button with the data `job:…`: what the person who pressed it is told."""
        match pressed.data.split(":", 3):
            case [words.PREFIX, words.NEW, token, word]:
                return await self._questions.press(pressed, person, token, word)
            case [words.PREFIX, number, word, *slot] if number.isascii() and number.isdecimal():
                return await self._on_job(pressed, person, int(number), word, "".join(slot))
            case _:
                return words.UNKNOWN

    async def _on_job(
        self, pressed: Pressed, person: Person, job_id: int, word: str, slot: str
    ) -> str:
        by = Asker(person_id=person.id)
        try:
            job = await self._jobs.get(job_id, by=by)
        except UnknownJob as gone:
            await self._cards.close(pressed, str(gone))
            return str(gone)
        except NotYours as refused:
            log.warning("job.not_theirs", job=job_id, person=person.id)
            return str(refused)
        key = (pressed.address.key, pressed.message_id)
        if (before := self._answered.get(key)) is not None:
            return before
        try:
            said = await self._acted(pressed, job, by, word, slot)
        except Permanent as refused:
            said = str(refused)
        if said == words.UNKNOWN:
            return said
        self._answered[key] = said
        while len(self._answered) > ANSWERED_MAX:
            self._answered.popitem(last=False)
        log.info("job.pressed", job=job_id, word=word, person=person.id)
        await self._cards.close(pressed, said)
        return said

    async def _acted(self, pressed: Pressed, job: Job, by: Asker, word: str, slot: str) -> str:
        """Return what came of it; each may be done again after a kill."""
        is_date = not slot or (_is_number(slot) and len(slot) <= DATE_DIGITS_MAX)
        match word:
            case words.DONE if is_date:
                told_s = int(slot) if slot else None
                is_done = await self._jobs.done(job, told_s=told_s)
                return "Done." if is_done else self._stays(job, told_s)
            case _ if word in SNOOZES and is_date:
                told_s = int(slot) if slot else None
                key = f"later-{pressed.address.key}-{pressed.message_id}"
                until = await self._jobs.snooze(job, word, key=key, told_s=told_s)
                zone = self._jobs.times.zone(job.person_id)
                stays = f" {self._stays(job, told_s)}" if was_moved(job, told_s) else ""
                return f"Again {moment_words(until, zone)}.{stays}"
            case words.PAUSE:
                return words.paused_words(
                    await self._jobs.pause(job.key, by=by) if job.enabled else job
                )
            case words.RESUME:
                now = self._jobs.status(await self._jobs.resume(job.key, by=by))
                return f"It goes on. {words.next_line(now)}"
            case words.RUN if slot:
                is_first = await self._jobs.settle(job, slot, make_up=True)
                return "Begun now." if is_first else words.ANSWERED
            case words.SKIP if slot:
                is_first = await self._jobs.settle(job, slot, make_up=False)
                return "Left out." if is_first else words.ANSWERED
            case _:
                return words.UNKNOWN

    def _stays(self, job: Job, told_s: int | None) -> str:
        assert told_s is not None, "it was moved away from that date"
        return words.stays(job, told_s, self._jobs.times.zone(job.person_id))


def _asker(message: IncomingMessage, person: Person) -> Asker:
    group = place_of(message.address) if message.is_group else ""
    return Asker(person_id=person.id, group=group)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()
