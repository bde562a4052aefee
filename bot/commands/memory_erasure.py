"""Asks before something is forgotten, has it forgotten, and tells how it went.

Questions are bound to who asked, live for minutes, and in memory alone: what was begun before a
crash is finished at the next start, what was only asked is asked again. Used by
`bot.commands.memory`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import structlog

from bot.channels.base import Pressed
from bot.commands import memory_messages as words
from bot.commands.table import as_typed
from memory.records.erasure import ForgettingRefused, ForgetWish, FoundPlaces
from memory.records.errors import AssistantError
from memory.records.messages import OutboxId
from memory.records.ports import Clock
from memory.records.rows import NewMessage, Person
from memory.service import MemoryService

log = structlog.get_logger()

ASKED_S = 600.0
ASKED_MAX = 100
"""Questions that are kept; the oldest go first."""


class Cards(Protocol):
    """Messages with buttons; `bot.outbox.outbox` is one. Raises StorageError."""

    async def post(self, message: NewMessage) -> OutboxId:
        """Sends one; the id is what `revise` wants."""

    async def revise(self, outbox_id: OutboxId, text: str) -> None:
        """Makes it read so, without buttons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ForgetQuestion:
    wish: ForgetWish
    similar: tuple[str, ...]
    lane: str
    until_s: float


def _new_token() -> str:
    return secrets.token_hex(6)


class ForgetQuestions:
    """An async context manager: what is forgotten when a button was pressed is done beside all
    else, and ends with it."""

    def __init__(
        self,
        memory: MemoryService,
        cards: Cards,
        *,
        clock: Clock,
        root: Path,
        new_token: Callable[[], str] = _new_token,
    ) -> None:
        """`root` is the home, below which paths are told."""
        self._memory = memory
        self._cards = cards
        self._clock = clock
        self._root = root
        self._new_token = new_token
        self._questions: dict[str, _ForgetQuestion] = {}
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # What is cut short here is written down, and goes on at the next start.
        for task in self._tasks:
            task.cancel()
        await self._group.__aexit__(kind, error, traceback)

    def start(self) -> None:
        """Finishes what a former process began, beside all else."""
        self._spawn(self._resume())

    async def idle(self) -> None:
        """Returns once nothing is being forgotten."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def ask(self, wish: ForgetWish, what: str, found: FoundPlaces, *, lane: str) -> str:
        """Ask with a card whether it is meant, that names every place. Raise ForgettingRefused."""
        if found.refusal:
            raise ForgettingRefused(found.refusal)
        token = self._new_token()
        card = await self._cards.post(
            NewMessage(
                lane=lane,
                text=words.found_text(what, found, self._root),
                buttons=words.asked_buttons(token, similar=len(found.similar)),
            )
        )
        while len(self._questions) >= ASKED_MAX:
            del self._questions[next(iter(self._questions))]
        until_s = self._clock.monotonic() + ASKED_S
        wish = replace(wish, cards=(card,))
        self._questions[token] = _ForgetQuestion(
            wish=wish, similar=found.similar, lane=lane, until_s=until_s
        )
        return words.ASKED_ABOVE

    async def forget(self, wish: ForgetWish) -> str:
        """Forget it, and return how it went. Raise ForgettingRefused, StorageError."""
        begun = await self._memory.forgetting.under_way()
        proof = await self._memory.forgetting.forget(wish)
        text = words.proof_text(proof, self._root, for_owner=wish.is_owner)
        if begun is not None and begun.person_id == wish.person_id:
            await self._tell(begun.cards, text)
        return text

    async def press(self, pressed: Pressed, person: Person) -> str:
        """A button with the data `mem:TOKEN:WORD`."""
        match pressed.data.split(":"):
            case [words.PREFIX, token, word]:
                return await self._answered(token, word, person)
            case _:
                return words.TOO_OLD

    # --- steps --------------------------------------------------------------------------------

    async def _answered(self, token: str, word: str, person: Person) -> str:
        question = self._questions.get(token)
        if question is None:
            return words.TOO_OLD
        if question.wish.person_id != person.id:
            log.warning("memory.not_theirs", person=person.id)
            return words.NOT_YOUR_QUESTION
        if self._clock.monotonic() <= question.until_s and word.isdecimal():
            return self._ticked(token, question, int(word))
        if word not in {words.FORGET, words.KEEP}:
            return words.TOO_OLD
        del self._questions[token]
        if self._clock.monotonic() > question.until_s:
            await self._tell(question.wish.cards, words.TOO_OLD)
            return words.TOO_OLD
        if word == words.KEEP:
            await self._tell(question.wish.cards, words.KEPT)
            return words.KEPT
        # It takes seconds: the card tells how it went, and nobody waits for it meanwhile.
        self._spawn(self._forget_and_tell(question))
        return words.FORGETTING

    def _ticked(self, token: str, question: _ForgetQuestion, number: int) -> str:
        """Have a similar sentence go too, or stay after all."""
        if not 1 <= number <= len(question.similar):
            return words.TOO_OLD
        text, phrases = question.similar[number - 1], question.wish.phrases
        is_ticked = text not in phrases
        phrases = (*phrases, text) if is_ticked else tuple(one for one in phrases if one != text)
        wish = replace(question.wish, phrases=phrases)
        self._questions[token] = replace(question, wish=wish)
        said = words.TICKED if is_ticked else words.UNTICKED
        return said.format(text=words.bare(text, chars_max=100))

    async def _forget_and_tell(self, question: _ForgetQuestion) -> None:
        try:
            text = await self.forget(question.wish)
        except ForgettingRefused as error:
            text = str(error)
        except AssistantError as error:
            log.error("memory.not_forgotten", why=str(error))
            text = f"⚠️ That did not work: {error}"
        await self._tell(question.wish.cards, as_typed(text, question.lane))

    async def _tell(self, cards: Sequence[OutboxId], text: str) -> None:
        for card in cards:
            try:
                await self._cards.revise(card, text)
            except AssistantError as error:
                log.error("memory.untold", why=str(error))

    async def _resume(self) -> None:
        try:
            begun = await self._memory.forgetting.under_way()
            proof = await self._memory.forgetting.resume()
        except AssistantError as error:
            log.error("memory.not_forgotten", why=str(error))
            return
        except Exception:
            # The bot goes on without it; what is under way stays written down.
            log.exception("memory.forgetting_broke")
            return
        if proof is not None:
            log.info("memory.forgotten_at_start", ok=proof.ok)
        if proof is not None and begun is not None:
            text = words.proof_text(proof, self._root, for_owner=begun.is_owner)
            await self._tell(begun.cards, text)

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = self._group.create_task(work, name="forgetting")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
