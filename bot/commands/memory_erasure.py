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
from memory.records.erasure import Forgets, ForgettingRefused, Found, Proof, Stage, Wish, check_wish
from memory.records.errors import AssistantError
from memory.records.facts import StoredFact
from memory.records.messages import IncomingMessage, OutboxId, Role
from memory.records.ports import Clock
from memory.records.rows import NewMessage, Person

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
class Asking:
    """Who asks, and where. `is_sure`: it need not be asked whether they mean it."""

    message: IncomingMessage
    person: Person
    is_sure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    wish: Wish
    lane: str
    card: OutboxId
    until_s: float


def _new_token() -> str:
    return secrets.token_hex(6)


class ErasingDesk:
    """An async context manager: what is forgotten when a button was pressed is done beside all
    else, and ends with it."""

    def __init__(
        self,
        forgetting: Forgets,
        cards: Cards,
        *,
        clock: Clock,
        root: Path,
        new_token: Callable[[], str] = _new_token,
    ) -> None:
        """`root` is the home, below which paths are told."""
        self._forgetting = forgetting
        self._cards = cards
        self._clock = clock
        self._root = root
        self._new_token = new_token
        self._questions: dict[str, _Question] = {}
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

    async def is_under_way(self, person: Person, fact_id: int | None) -> bool:
        """Whether this fact is being forgotten, as after a kill."""
        wish = await self._forgetting.under_way()
        return wish is not None and wish.person_id == person.id and fact_id in wish.facts

    # --- what is to go ------------------------------------------------------------------------

    async def of_facts(
        self, asking: Asking, ids: Sequence[int], facts: Sequence[StoredFact]
    ) -> str:
        """Facts, with what they replaced, and every line that they rest on."""
        what = ", ".join(f"{fact.key} “{words.bare(fact.text)}”" for fact in facts) or "it"
        return await self._asked(asking, self._wish(asking, facts=tuple(ids)), what)

    async def of_words(self, asking: Asking, text: str, related: Sequence[StoredFact]) -> str:
        """Words, as they are written. `related` are facts that may be meant: they are named, and
        not taken."""
        if asking.message.is_group:
            return words.IN_PRIVATE
        wish = self._wish(asking, phrases=(text,))
        check_wish(wish)
        found = await self._forgetting.find(wish)
        others = [fact for fact in related if fact.id not in found.facts]
        hint = ""
        if others:
            lines = [words.fact_line(fact, None) for fact in others]
            keys = " ".join(fact.key for fact in others)
            hint = "\n".join(
                ["", "", "These may be meant too:", *lines, f"`/memory forget {keys}`"]
            )
        if found.is_empty:
            return words.NOTHING_HOLDS_IT + hint
        return await self._ask(asking, wish, f"“{words.bare(text)}”", found) + hint

    async def everything(self, asking: Asking) -> str:
        """All that is theirs."""
        if asking.message.is_group:
            return words.IN_PRIVATE
        what = "everything that I know of you, and all that we said"
        return await self._asked(asking, self._wish(asking, everything=True), what)

    async def press(self, pressed: Pressed, person: Person) -> str:
        """A button with the data `mem:TOKEN:WORD`."""
        match pressed.data.split(":"):
            case [words.PREFIX, token, (words.FORGET | words.KEEP) as word]:
                return await self._answered(token, word, person)
            case _:
                return words.TOO_OLD

    # --- steps --------------------------------------------------------------------------------

    async def _asked(self, asking: Asking, wish: Wish, what: str) -> str:
        if asking.is_sure:
            return await self._done(wish)
        return await self._ask(asking, wish, what, await self._forgetting.find(wish))

    async def _ask(self, asking: Asking, wish: Wish, what: str, found: Found) -> str:
        if found.refusal:
            raise ForgettingRefused(found.refusal)
        token, lane = self._new_token(), asking.message.address.key
        card = await self._cards.post(
            NewMessage(
                lane=lane,
                text=words.found_text(what, found, self._root),
                buttons=words.asked_buttons(token),
            )
        )
        while len(self._questions) >= ASKED_MAX:
            del self._questions[next(iter(self._questions))]
        until_s = self._clock.monotonic() + ASKED_S
        wish = replace(wish, cards=(card,))
        self._questions[token] = _Question(wish=wish, lane=lane, card=card, until_s=until_s)
        return words.ASKED_ABOVE

    async def _answered(self, token: str, word: str, person: Person) -> str:
        question = self._questions.get(token)
        if question is None:
            return words.TOO_OLD
        if question.wish.person_id != person.id:
            log.warning("memory.not_theirs", person=person.id)
            return words.NOT_YOUR_QUESTION
        del self._questions[token]
        if self._clock.monotonic() > question.until_s:
            await self._cards.revise(question.card, words.TOO_OLD)
            return words.TOO_OLD
        if word == words.KEEP:
            await self._cards.revise(question.card, words.KEPT)
            return words.KEPT
        # It takes seconds: the card tells how it went, and nobody waits for it meanwhile.
        self._spawn(self._forget_and_tell(question))
        return words.FORGETTING

    async def _forget_and_tell(self, question: _Question) -> None:
        try:
            text = await self._done(question.wish)
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

    async def _done(self, wish: Wish) -> str:
        begun = await self._forgetting.under_way()
        proof = await self._forgetting.forget(wish, _untold)
        text = self._told(proof, is_owner=wish.is_owner)
        if begun is not None and begun.person_id == wish.person_id:
            await self._tell(begun.cards, text)
        return text

    def _told(self, proof: Proof, *, is_owner: bool) -> str:
        return words.proof_text(proof, self._root, for_owner=is_owner)

    async def _resume(self) -> None:
        try:
            begun = await self._forgetting.under_way()
            proof = await self._forgetting.resume(_untold)
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
            await self._tell(begun.cards, self._told(proof, is_owner=begun.is_owner))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = self._group.create_task(work, name="forgetting")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @staticmethod
    def _wish(
        asking: Asking,
        *,
        facts: tuple[int, ...] = (),
        phrases: tuple[str, ...] = (),
        everything: bool = False,
    ) -> Wish:
        person, message = asking.person, asking.message
        return Wish(
            person_id=person.id,
            facts=facts,
            phrases=phrases,
            everything=everything,
            is_owner=person.role is Role.OWNER,
            names=(person.name,) if person.name else (),
            lanes=() if message.is_group else (message.address.key,),
        )


def _untold(stage: Stage) -> None:
    """In a chat the end is told, and no steps."""
