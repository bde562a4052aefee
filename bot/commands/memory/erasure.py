"""Asks before something is forgotten, has it forgotten, and tells how it went.

Questions are bound to who asked, live for minutes, and in memory alone: what was begun before a
crash is finished at the next start, what was only asked is asked again. Used by
`bot.commands.memory.commands`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

import structlog

from bot.channels.base import Pressed
from bot.markup.command_text import as_typed, bare
from bot.outbox.edits import SendsAndEdits
from memory.records.erasure import (
    ForgetStage,
    ForgettingRefused,
    ForgetWish,
    FoundPlaces,
    PlaceKind,
    Proof,
)
from memory.records.errors import AssistantError
from memory.records.messages import OutboxId
from memory.records.ports import Clock
from memory.records.rows import Button, ButtonRows, NewMessage, Person
from memory.service import MemoryService

log = structlog.get_logger()

FORGET, KEEP = "forget", "keep"
PREFIX = "mem"
NOTHING_HOLDS_IT = "Nothing of yours that I keep has these words."
ASKED_ABOVE = "Nothing is erased before you press the button above."
FORGETTING = "I am forgetting it; the message above tells how it went."
KEPT = "Kept as it was."
TICKED = "Goes too: “{text}”"
UNTICKED = "Stays: “{text}”"
TOO_OLD = "That question is too old, or was answered. Ask for it again."
NOT_YOUR_QUESTION = "That was not asked of you."
NOWHERE = "nothing of yours in them has it any more"
CANNOT_REACH = (
    "What I cannot reach: what this app keeps of the chat, what the model's provider keeps, and "
    "copies that were made outside of my folder."
)
_PLURALS: Mapping[PlaceKind, tuple[str, str]] = {
    PlaceKind.FACT: ("fact", "facts"),
    PlaceKind.PROFILE: ("entry of the profile", "entries of the profile"),
    PlaceKind.DOCUMENT: ("passage of a document", "passages of documents"),
    PlaceKind.HISTORY: ("entry of the history", "entries of the history"),
    PlaceKind.SUMMARY: ("summary", "summaries"),
    PlaceKind.INSIGHT: ("set of insights", "sets of insights"),
    PlaceKind.REPLY: ("message that was sent", "messages that were sent"),
    PlaceKind.NOTE: ("hint for the next answer", "hints for the next answer"),
    PlaceKind.TRACE: ("trace of an answer", "traces of answers"),
    PlaceKind.PROMPT: ("kept prompt", "kept prompts"),
    PlaceKind.QUESTION: ("question that was asked", "questions that were asked"),
    PlaceKind.TASK: ("background task", "background tasks"),
    PlaceKind.JOB: ("job or date", "jobs and dates"),
    PlaceKind.INCOMING: ("message that just came", "messages that just came"),
    PlaceKind.FILE: ("file of notes", "files of notes"),
    PlaceKind.FORMER: ("earlier text of a file", "earlier texts of files"),
}
_SEARCHED = {PlaceKind.FACT, PlaceKind.HISTORY, PlaceKind.DOCUMENT}
STAGES: Mapping[ForgetStage, str] = {
    ForgetStage.FACTS: "erasing facts",
    ForgetStage.ROWS: "erasing history, traces and whatever else is in the database",
    ForgetStage.FILES: "erasing notes",
    ForgetStage.INDEX: "building the search anew",
    ForgetStage.ANEW: "writing the database anew",
    ForgetStage.BACKUPS: "making a new backup, removing older ones",
    ForgetStage.SCAN: "looking through every file",
}

ASKED_S = 600.0
ASKED_MAX = 100
"""Questions that are kept; the oldest go first."""


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
        cards: SendsAndEdits,
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
        """Finish what a former process began, beside all else."""
        self._spawn(self._resume())

    async def idle(self) -> None:
        """Return once nothing is being forgotten."""
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
                text=found_text(what, found, self._root),
                buttons=asked_buttons(token, similar=len(found.similar)),
            )
        )
        while len(self._questions) >= ASKED_MAX:
            del self._questions[next(iter(self._questions))]
        until_s = self._clock.monotonic() + ASKED_S
        wish = replace(wish, cards=(card,))
        self._questions[token] = _ForgetQuestion(
            wish=wish, similar=found.similar, lane=lane, until_s=until_s
        )
        return ASKED_ABOVE

    async def forget(self, wish: ForgetWish) -> str:
        """Forget it, and return how it went. Raise ForgettingRefused, StorageError."""
        begun = await self._memory.forgetting.under_way()
        proof = await self._memory.forgetting.forget(wish)
        text = proof_text(proof, self._root, for_owner=wish.is_owner)
        if begun is not None and begun.person_id == wish.person_id:
            await self._tell(begun.cards, text)
        return text

    async def press(self, pressed: Pressed, person: Person) -> str:
        """Act on a button with the data `mem:TOKEN:WORD`."""
        match pressed.data.split(":"):
            case [_, token, word]:
                question = self._questions.get(token)
                if question is None:
                    return TOO_OLD
                if question.wish.person_id != person.id:
                    log.warning("memory.not_theirs", person=person.id)
                    return NOT_YOUR_QUESTION
                if self._clock.monotonic() <= question.until_s and word.isdecimal():
                    return self._ticked(token, question, int(word))
                if word not in {FORGET, KEEP}:
                    return TOO_OLD
                del self._questions[token]
                if self._clock.monotonic() > question.until_s:
                    await self._tell(question.wish.cards, TOO_OLD)
                    return TOO_OLD
                if word == KEEP:
                    await self._tell(question.wish.cards, KEPT)
                    return KEPT
                # It takes seconds: the card tells how it went, and nobody waits for it meanwhile.
                self._spawn(self._forget_and_tell(question))
                return FORGETTING
            case _:
                return TOO_OLD

    # --- steps --------------------------------------------------------------------------------

    def _ticked(self, token: str, question: _ForgetQuestion, number: int) -> str:
        """Have a similar sentence go too, or stay after all."""
        if not 1 <= number <= len(question.similar):
            return TOO_OLD
        text, phrases = question.similar[number - 1], question.wish.phrases
        is_ticked = text not in phrases
        phrases = (*phrases, text) if is_ticked else tuple(one for one in phrases if one != text)
        wish = replace(question.wish, phrases=phrases)
        self._questions[token] = replace(question, wish=wish)
        said = TICKED if is_ticked else UNTICKED
        return said.format(text=bare(text, chars_max=100))

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
            text = proof_text(proof, self._root, for_owner=begun.is_owner)
            await self._tell(begun.cards, text)

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = self._group.create_task(work, name="forgetting")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


# --- words -------------------------------------------------------------------------------------


def counted(kind: PlaceKind, count: int) -> str:
    """Return `3 traces of answers`."""
    one, many = _PLURALS[kind]
    return f"{count:,} {one if count == 1 else many}"


def found_text(what: str, found: FoundPlaces, root: Path) -> str:
    """Return every place that holds it, before anything is erased."""
    lines = [f"**Forget {what}?** It stands in:", ""]
    lines += [f"- {counted(kind, count)}" for kind, count in found.counts.items()]
    if found.counts.keys() & _SEARCHED:
        lines.append("- the search indexes: they are built anew")
    if found.backups:
        copies = "1 older copy" if found.backups == 1 else f"{found.backups} older copies"
        lines.append(f"- {copies} of the database, which will be replaced by a new one")
    if found.notes:
        lines += ["", f"Lines go from: {_paths(found.notes, root)}"]
    if found.files:
        lines += ["", f"Other files have it, and are left as they are: {_paths(found.files, root)}"]
    if found.similar:
        lines += ["", "These say much the same in other words, and stay unless you tick them:"]
        lines += [f"{n}. “{bare(text)}”" for n, text in enumerate(found.similar, start=1)]
    if PlaceKind.TRACE in found.counts:
        lines += ["", "Answers whose traces go cannot be replayed any more."]
    return "\n".join(lines)


def asked_buttons(token: str, *, similar: int) -> ButtonRows:
    """Forget all of it, or keep it; before that, tick each of what is similar."""
    answers = (
        Button(label="Forget all of it", data=f"{PREFIX}:{token}:{FORGET}", style="bad"),
        Button(label="Keep", data=f"{PREFIX}:{token}:{KEEP}"),
    )
    ticks = tuple(
        Button(label=f"{n} too", data=f"{PREFIX}:{token}:{n}") for n in range(1, similar + 1)
    )
    return (ticks, answers) if ticks else (answers,)


def proof_text(proof: Proof, root: Path, *, for_owner: bool) -> str:
    """Return how it went, in words; what others said the same is the owner's to know alone."""
    lines = ["**Forgotten**, and looked for:" if proof.ok else "⚠️ **Not forgotten everywhere:**"]
    lines += [""] + [f"- {one}" for one in failures(proof, root)]
    if proof.erased:
        erased = ", ".join(counted(kind, count) for kind, count in proof.erased.items())
        lines.append(f"- erased: {erased}")
    if proof.blanked:
        lines.append(f"- the words were blanked in other files: {_paths(proof.blanked, root)}")
    copies = len(proof.dropped)
    lines.append(
        "- the database is written anew, a new backup made"
        + (f", {copies} older {'copy' if copies == 1 else 'copies'} removed" if copies else "")
    )
    size = f"{proof.files:,} files ({proof.bytes / 1_000_000:,.1f} MB) were looked through"
    lines.append(f"- {size}{f': {NOWHERE}' if proof.ok and not proof.left else ''}")
    if proof.left:
        lines.append(f"- left as they are, for they are files: {_paths(proof.left, root)}")
    if for_owner and (proof.theirs or proof.their_files):
        where = [*proof.theirs, *(_relative(path, root) for path in proof.their_files)]
        lines.append(f"- others said the same, which is theirs, and was left ({', '.join(where)})")
    return "\n".join([*lines, "", CANNOT_REACH])


def failures(proof: Proof, root: Path) -> list[str]:
    """Return where it still stands, or where nobody could look."""
    found = [f"it still stands in {_relative(path, root)}" for path in proof.hits]
    found += [f"it still stands in the table {table}" for table in proof.tables]
    return found + [f"{_relative(path, root)} could not be read" for path in proof.unread]


def _paths(paths: Sequence[Path], root: Path) -> str:
    shown = [f"`{_relative(path, root).replace('`', '')}`" for path in paths[:10]]
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
