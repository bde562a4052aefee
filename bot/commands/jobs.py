"""What people do with jobs in a chat: `/remind`, `/jobs`, `/job`, `/quiet`, and the buttons of
reminders and notices.

A press is checked against the person who was recognised: only they answer for their jobs.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

import structlog

from bot.channels.base import Pressed
from bot.commands import schedule_messages as words
from bot.commands.memory_messages import bare
from bot.outbox.edits import QuestionMessages
from bot.people.approvals import is_shared
from memory.records.errors import Permanent
from memory.records.facts import place_of
from memory.records.job_specs import At
from memory.records.jobs import Job, JobKind, What
from memory.records.messages import IncomingMessage, OutboxId, PersonId, RunId
from memory.records.ports import Clock
from memory.records.rows import NewMessage, Person
from memory.records.schedule import (
    Agenda,
    JobBook,
    JobWish,
    NoTime,
    TimeAnswer,
    TimeAsked,
    TimeRead,
    moment_words,
)

# --- reminding ----------------------------------------------------------------------------------
#
# `/remind`, and another time for a job: shown as it was read, and kept once its person says so.
#
# Questions are bound to who asked, live for ten minutes, and in memory alone: a restart forgets
# them, and a press after it says so. Used by `bot.commands.jobs`.

log = structlog.get_logger()

ASKED_S = 600.0
ASKED_MAX = 200
"""Questions that are kept; the oldest go first."""

OPTIONS_MAX = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """What is to be done at the time that is chosen: remind of `text`, or move a job."""

    person_id: PersonId
    lane: str
    text: str = ""
    job: Job | None = None


@dataclass(slots=True, kw_only=True)
class _Question:
    """`answered` is what came of it, once it was answered."""

    wish: _Wish
    options: Sequence[TimeRead]
    card: OutboxId
    shown: str
    until_s: float
    answered: str = ""


def _new_token() -> str:
    return secrets.token_hex(6)


class RemindDesk:
    """Asks before it saves."""

    def __init__(
        self,
        book: JobBook,
        cards: QuestionMessages,
        *,
        clock: Clock,
        new_token: Callable[[], str] = _new_token,
    ) -> None:
        self._book = book
        self._cards = cards
        self._clock = clock
        self._new_token = new_token
        self._questions: OrderedDict[str, _Question] = OrderedDict()

    async def remind(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """`/remind`: the card that asks goes out beside the answer. Raises StorageError."""
        if not rest.strip():
            return words.REMIND_USE
        found = self._book.find_time(person.id, rest)
        if found is None:
            return words.NO_TIME
        if not found.rest and not isinstance(found.answer, NoTime):
            return words.NO_TEXT
        wish = _Wish(person_id=person.id, lane=message.address.key, text=found.rest)
        return await self._ask(wish, found.answer)

    async def move(self, message: IncomingMessage, job: Job, when: str) -> str:
        """Another time for a job. Raises StorageError."""
        wish = _Wish(person_id=job.new.person_id, lane=message.address.key, job=job)
        return await self._ask(wish, self._book.read(job.new.person_id, when))

    async def press(self, pressed: Pressed, person: Person, token: str, word: str) -> str:
        """A button with the data `job:new:TOKEN:WORD`. Raises StorageError."""
        question = self._questions.get(token)
        if question is None or question.until_s < self._clock.monotonic():
            return await self._too_late(pressed, person, token)
        if person.id != question.wish.person_id:
            return words.NOT_YOURS
        if question.answered:
            return question.answered
        if word == words.SAVE_NOT:
            return await self._answer(question, "Not saved.")
        if not (word.isascii() and word.isdecimal() and int(word) < len(question.options)):
            return words.UNKNOWN
        said = await self._save(question.wish, question.options[int(word)], token)
        return await self._answer(question, said)

    # --- steps --------------------------------------------------------------------------------

    async def _ask(self, wish: _Wish, answer: TimeAnswer) -> str:
        zone = self._book.zone(wish.person_id)
        match answer:
            case NoTime(why=why):
                return why
            case TimeAsked(text=text, options=()):
                return f"{text} Nothing was saved; write it again with that."
            case TimeRead():
                options: tuple[TimeRead, ...] = (answer,)
                if wish.job is None:
                    shown = words.remind_card(wish.text, answer, zone)
                else:
                    shown = words.move_card(wish.job, answer, zone)
            case TimeAsked(text=text, options=several):
                options = several[:OPTIONS_MAX]
                shown = words.asked_card(_head(wish), text, options, zone)
        token = self._new_token()
        buttons = words.save_buttons(token, options, zone)
        card = await self._cards.post(NewMessage(lane=wish.lane, text=shown, buttons=buttons))
        self._questions[token] = _Question(
            wish=wish,
            options=options,
            card=card,
            shown=shown,
            until_s=self._clock.monotonic() + ASKED_S,
        )
        while len(self._questions) > ASKED_MAX:
            self._questions.popitem(last=False)
        return words.ASKED_ABOVE

    async def _save(self, wish: _Wish, time: TimeRead, token: str) -> str:
        """What came of it, also where it cannot be saved (any more)."""
        try:
            job = await self._kept(wish, time, token)
        except Permanent as refused:
            return f"Not saved: {refused}"
        log.info("job.saved", job=job.id, person=wish.person_id)
        return f"Saved as {job.key}. {words.next_line(self._book, job)}"

    async def _kept(self, wish: _Wish, time: TimeRead, token: str) -> Job:
        if wish.job is not None:
            fresh = await self._book.get(wish.job.id)
            if fresh is None:
                raise Permanent(words.GONE)
            return await self._book.move(fresh, time)
        return await self._book.add(
            JobWish(
                person_id=wish.person_id,
                kind=JobKind.MESSAGE,
                what=What(text=wish.text),
                time=time,
                deliver_to=wish.lane,
                run_id=_call(token),
            )
        )

    async def _answer(self, question: _Question, said: str) -> str:
        question.answered = said
        await self._cards.revise(question.card, f"{question.shown}\n\n{said}")
        return said

    async def _too_late(self, pressed: Pressed, person: Person, token: str) -> str:
        """Of a question that is forgotten; a press that comes again after a kill may have saved
        it."""
        jobs = await self._book.of(person.id)
        saved = next((job for job in jobs if job.new.run_id == _call(token)), None)
        said = words.FORGOTTEN if saved is None else f"Saved as {saved.key}."
        # Who asked is forgotten too: in a group somebody else may have pressed.
        if saved is not None or not is_shared(pressed.address.key):
            await self._cards.close(pressed, said)
        return said


def _head(wish: _Wish) -> str:
    if wish.job is None:
        return f"Remind you here: **{bare(wish.text, chars_max=words.TEXT_CHARS)}**"
    return f"Move {wish.job.key} **{words.name_of(wish.job)}**"


def _call(token: str) -> RunId:
    return RunId(f"remind-{token}")


ANSWERED_MAX = 500
"""Presses of which is known what came of them; a second tap is told the same."""

DATE_DIGITS_MAX = 11
"""Of a date in epoch seconds: some thousand years."""


class ScheduleDesk:
    """Commands and presses about jobs. Everything may raise StorageError."""

    def __init__(
        self,
        book: JobBook,
        agenda: Agenda,
        reminding: RemindDesk,
        cards: QuestionMessages,
        *,
        clock: Clock,
        hours_set: Callable[[PersonId, str], Awaitable[None]] | None = None,
    ) -> None:
        """`hours_set` hears of the chat where a person set quiet hours."""
        self._hours_set = hours_set
        self._book = book
        self._agenda = agenda
        self._cards = cards
        self._clock = clock
        self._reminding = reminding
        self._answered: OrderedDict[tuple[str, str], str] = OrderedDict()

    # --- commands -----------------------------------------------------------------------------

    async def remind(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """`/remind`: shown before it is saved."""
        return await self._reminding.remind(message, person, rest)

    async def jobs(self, message: IncomingMessage, person: Person) -> str:
        """`/jobs`: those of the person; in a group those that are for it."""
        jobs = _seen_here(await self._book.of(person.id), message)
        broken = [] if message.is_group else await self._book.broken(person.id)
        events = await self._agenda.ahead(person.id, _scope(message))
        return words.jobs_text(self._book, jobs, broken, events, self._book.zone(person.id))

    async def job(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """`/job`: one of them, and what is done with it."""
        name, word, more = [*rest.split(maxsplit=2), "", "", ""][:3]
        if not name:
            return words.JOB_USE
        try:
            if _is_event(name):
                return await self._event(message, person, name, word)
            job = await self._book.find(person.id, name if _is_key(name) else rest)
            if not _seen_here([job], message):
                return "That job is not for this group: ask for it in a private chat."
            if not _is_key(name):
                return await self._show(message, job)
            return await self._do(message, job, word.lower(), more.strip())
        except Permanent as refused:
            return str(refused)

    async def quiet(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """`/quiet`: the hours in which nobody speaks to a person unasked."""
        wanted = rest.strip()
        try:
            if not wanted:
                hours = await self._book.quiet_hours(person.id)
                return f"Quiet hours: {hours}. {words.QUIET_USE}" if hours else words.QUIET_NONE
            if wanted.lower() in {"off", "none", "no"}:
                await self._book.set_quiet_hours(person.id, "")
                return words.QUIET_ENDED
            hours = await self._book.set_quiet_hours(person.id, wanted)
        except Permanent as refused:
            return f"{refused} {words.QUIET_USE}"
        if self._hours_set is not None:
            await self._hours_set(person.id, message.address.key)
        zone = self._book.zone(person.id)
        return (
            f"Quiet hours: {hours} ({zone}). What I find by myself then waits until they end; your "
            "own reminders come at their time."
        )

    # --- one job ------------------------------------------------------------------------------

    async def _do(self, message: IncomingMessage, job: Job, word: str, more: str) -> str:
        match word:
            case "":
                return await self._show(message, job)
            case "pause":
                return self._changed(await self._book.pause(job))
            case "resume":
                return self._changed(job if job.enabled else await self._book.resume(job))
            case "run":
                await self._book.run(job)
                more = " `/heartbeat why` says what came of it." if _is_heartbeat(job) else ""
                return f"{job.key} {words.name_of(job)} was begun.{more}"
            case "remove":
                await self._book.remove(job)
                return f"Removed {job.key} {words.name_of(job)}."
            case "move" if more:
                return await self._reminding.move(message, job, more)
            case "text" if more:
                return self._changed(await self._book.reword(job, more), is_reworded=True)
            case _:
                return words.job_use(job)

    async def _show(self, message: IncomingMessage, job: Job) -> str:
        runs = await self._book.runs(job, limit=words.RUNS_SHOWN)
        here = message.address.key
        shown = words.job_text(self._book, job, runs, here=here)
        button = words.standing_button(job)
        if button is None:
            return f"{shown}\n\n{words.job_use(job)}"
        await self._cards.post(NewMessage(lane=here, text=shown, buttons=((button,),)))
        return words.job_use(job)

    def _changed(self, job: Job, *, is_reworded: bool = False) -> str:
        """How it stands now."""
        lines = [f"{job.key} {words.name_of(job)}"]
        if is_reworded:
            lines.append(words.does_line(job))
        return "\n".join([*lines, words.next_line(self._book, job)])

    async def _event(self, message: IncomingMessage, person: Person, name: str, word: str) -> str:
        if word.lower() != "remove":
            return f"`/job {name.lower()} remove` removes the event and its reminders."
        dropped = await self._agenda.remove(person.id, _scope(message), name)
        if dropped is None:
            return f"There is no event {name.lower()} here; `/jobs` lists them."
        return f"Removed the event {words.event_words(dropped, self._book.zone(person.id))}."

    # --- presses ------------------------------------------------------------------------------

    async def press(self, pressed: Pressed, person: Person) -> str:
        """A button with the data `job:…`; returns what the person who pressed it is told."""
        match pressed.data.split(":", 3):
            case [words.PREFIX, words.NEW, token, word]:
                return await self._reminding.press(pressed, person, token, word)
            case [words.PREFIX, number, word, *slot] if number.isascii() and number.isdecimal():
                return await self._on_job(pressed, person, int(number), word, "".join(slot))
            case _:
                return words.UNKNOWN

    async def _on_job(
        self, pressed: Pressed, person: Person, job_id: int, word: str, slot: str
    ) -> str:
        job = await self._book.get(job_id)
        if job is None:
            return await self._shown(pressed, words.GONE)
        if job.new.person_id != person.id:
            log.warning("job.not_theirs", job=job_id, person=person.id)
            return words.NOT_YOURS
        key = (pressed.address.key, pressed.message_id)
        if (before := self._answered.get(key)) is not None:
            return before
        try:
            said = await self._acted(pressed, job, word, slot)
        except Permanent as refused:
            said = str(refused)
        if said == words.UNKNOWN:
            return said
        self._answered[key] = said
        while len(self._answered) > ANSWERED_MAX:
            self._answered.popitem(last=False)
        log.info("job.pressed", job=job_id, word=word, person=person.id)
        return await self._shown(pressed, said)

    async def _acted(self, pressed: Pressed, job: Job, word: str, slot: str) -> str:
        """What came of it; each may be done again after a kill."""
        match word:
            case words.DONE | "10m" | "1h" | "1d" if not slot or _is_number(slot):
                return await self._on_reminder(pressed, job, word, int(slot) if slot else None)
            case words.PAUSE:
                return words.paused_words(await self._book.pause(job) if job.enabled else job)
            case words.RESUME:
                fresh = job if job.enabled else await self._book.resume(job)
                return f"It goes on. {words.next_line(self._book, fresh)}"
            case words.RUN if slot:
                is_first = await self._book.settle(job, slot, make_up=True)
                return "Begun now." if is_first else words.ANSWERED
            case words.SKIP if slot:
                is_first = await self._book.settle(job, slot, make_up=False)
                return "Left out." if is_first else words.ANSWERED
            case _:
                return words.UNKNOWN

    async def _on_reminder(self, pressed: Pressed, job: Job, word: str, told_s: int | None) -> str:
        """`told_s` is the date for which the button stands; None: it does not say. Of one that was
        moved to another date since, that one stays: it is neither done nor put off."""
        zone, when = self._book.zone(job.new.person_id), job.new.when
        is_same = not isinstance(when, At) or told_s == words.date_s(when)
        moved_from = None if is_same else told_s
        if word == words.DONE:
            if moved_from is not None:
                return words.stays(job, moved_from, zone)
            await self._book.done(job)
            return "Done."
        until = later(self._clock.now(), word, zone)
        key = f"later-{pressed.address.key}-{pressed.message_id}"
        if moved_from is not None:
            await self._book.add(_once_more(job, until, zone, key=key))
            return f"Again {moment_words(until, zone)}. {words.stays(job, moved_from, zone)}"
        await self._book.snooze(job, until, key=key)
        return f"Again {moment_words(until, zone)}."

    async def _shown(self, pressed: Pressed, said: str) -> str:
        """Edits the message to what came of it, where it still asks."""
        await self._cards.close(pressed, said)
        return said


def later(now: datetime, word: str, zone: tzinfo) -> datetime:
    """When something that was put off comes again: in minutes or an hour, or tomorrow at the time
    that the clock on the wall shows now."""
    if word == "10m":
        return now + timedelta(minutes=10)
    if word == "1h":
        return now + timedelta(hours=1)
    tomorrow = now.astimezone(zone).replace(tzinfo=None) + timedelta(days=1)
    return tomorrow.replace(tzinfo=zone).astimezone(now.tzinfo)


def _once_more(job: Job, until: datetime, zone: tzinfo, *, key: str) -> JobWish:
    """A reminder of its own for what another one says. Of one key there is one."""
    return JobWish(
        person_id=job.new.person_id,
        kind=job.new.kind,
        what=job.new.what,
        time=TimeRead(when=At(moment=until, zone=str(zone)), sentence="once more"),
        deliver_to=job.new.deliver_to,
        name=job.new.name,
        urgent=job.new.urgent,
        nag_s=job.new.nag_s,
        run_id=RunId(key),
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= DATE_DIGITS_MAX


def _is_key(name: str) -> bool:
    number = name.lower().removeprefix("j")
    return number.isascii() and number.isdecimal()


def _is_event(name: str) -> bool:
    number = name[1:]
    return name[:1].lower() == "e" and number.isascii() and number.isdecimal()


def _scope(message: IncomingMessage) -> str:
    return place_of(message.address) if message.is_group else ""


def _seen_here(jobs: Sequence[Job], message: IncomingMessage) -> list[Job]:
    """In a group those that are for it: others read along."""
    if not message.is_group:
        return list(jobs)
    here = place_of(message.address)
    return [job for job in jobs if f"{job.new.deliver_to}:".startswith(f"{here}:")]


def _is_heartbeat(job: Job) -> bool:
    return job.new.kind is JobKind.HEARTBEAT
