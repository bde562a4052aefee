"""`/remind`, and another time for a job: shown as it was read, and kept once its person says so.

Questions are bound to who asked, live for ten minutes, and in memory alone: a restart forgets them,
and a press after it says so. Used by `bot.schedule`.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from agent.errors import Permanent
from agent.jobbook import JobBook, JobWish, NoTime, TimeAnswer, TimeAsked, TimeRead
from agent.messages import IncomingMessage, OutboxId, PersonId, RunId
from agent.ports import Clock
from agent.scheduled import Job, JobKind, What
from agent.stored import NewMessage
from bot import schedule_words as words
from bot.approvals import is_shared
from bot.cards import Cards
from bot.channel import Pressed
from bot.memory_words import bare
from bot.ports import Person

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
        cards: Cards,
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
