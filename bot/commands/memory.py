"""What a person sees of their memory in a chat, and does with it: `/memory`, `/remember` and
`/private`.

Faces of `memory.service`. In a group all acts on what was said there. Before something is
forgotten, `bot.commands.memory_erasure` asks.
"""

from __future__ import annotations

from datetime import UTC, tzinfo

import structlog

from bot.channels.base import Pressed
from bot.commands import memory_messages as words
from bot.commands.memory_erasure import ForgetQuestions
from bot.people.timezone import zone_of
from memory.records.erasure import ForgettingRefused, ForgetWish, typed_run
from memory.records.facts import Whose, fact_id_of, whose
from memory.records.messages import IncomingMessage, Role
from memory.records.rows import Person
from memory.service import FactClosed, FactOfAnother, MemoryService, UnknownFact

log = structlog.get_logger()

FOUND_MAX, RELATED_MAX = 15, 5
EXPORT_CHARS_MAX = 30_000
"""Of what is sent to a chat; more is for a file."""


class MemoryCommands:
    """Answers `/memory` and `/remember`. Raises AssistantError."""

    def __init__(
        self, memory: MemoryService, questions: ForgetQuestions, *, host_zone: str
    ) -> None:
        self._memory = memory
        self._questions = questions
        self._host_zone = host_zone

    async def tell(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """`/memory`: show, correct, erase."""
        try:
            return await self._told(message, person, rest)
        except UnknownFact as error:
            return words.NO_SUCH_FACT.format(key=words.bare(error.key, chars_max=20))
        except (FactOfAnother, FactClosed, ForgettingRefused) as error:
            return str(error)

    async def _told(self, message: IncomingMessage, person: Person, rest: str) -> str:
        of = whose(person.id, message.address, is_group=message.is_group)
        facts, zone = self._memory.facts, self._zone(person)
        verb, _, said = rest.partition(" ")
        said = said.strip()
        match verb.lower():
            case "":
                found = await self._memory.overview(of, message.address.key)
                use = words.use(person.role, is_group=message.is_group)
                return "\n\n".join([*words.overview_blocks(found, zone), use])
            case "list" if not said:
                return words.facts_text(await facts.list(of), zone, nothing=words.NOTHING_KNOWN)
            case "list" if said.lower() == "past":
                past = await facts.closed(of, limit=words.FACTS_SHOWN_MAX)
                return words.facts_text(past, zone, nothing=words.NOTHING_CORRECTED)
            case "search" if said:
                nothing = f"I know nothing about “{words.bare(said)}”."
                fitting = await facts.search(of, said, k=FOUND_MAX)
                return words.facts_text(fitting, zone, nothing=nothing)
            case "show" if said:
                return await self._show(of, person, said)
            case "edit":
                return await self._edit(of, message, person, said)
            case "forget" if said:
                return await self._forget(of, message, person, said)
            case "export":
                return await self._export(message, person)
            case "import":
                return words.IMPORT_ELSEWHERE
            case _ if not said and fact_id_of(verb) is not None:
                return await self._show(of, person, verb)
            case _:
                return words.use(person.role, is_group=message.is_group)

    async def remember(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """`/remember`: keep a sentence, whatever was forgotten before."""
        text = " ".join(rest.split())
        if person.role is Role.GUEST:
            return words.NO_GUESTS
        if not text:
            return words.USE_REMEMBER
        if await self._memory.private.is_private(message.address.key):
            return words.MEMORY_IS_OFF
        of = whose(person.id, message.address, is_group=message.is_group)
        speaker = person.name if message.is_group else ""
        run_id = typed_run(person.id, message.address.key, message.message_id)
        return words.stored_text(
            await self._memory.remember(of, text, run_id=run_id, speaker=speaker)
        )

    async def press(self, pressed: Pressed, person: Person) -> str:
        """A button with the data `mem:TOKEN:WORD`; return what the person who pressed is told."""
        return await self._questions.press(pressed, person)

    async def _show(self, of: Whose, person: Person, key: str) -> str:
        fact = await self._memory.fact(of, key)
        replaced = await self._memory.facts.past(of, fact.id)
        return words.fact_shown(fact, replaced, self._zone(person))

    async def _edit(self, of: Whose, message: IncomingMessage, person: Person, said: str) -> str:
        if person.role is Role.GUEST:
            return words.NO_GUESTS
        key, _, text = said.partition(" ")
        text = " ".join(text.split())
        if not text or fact_id_of(key) is None:
            return words.USE_EDIT
        run_id = typed_run(person.id, message.address.key, message.message_id)
        return words.stored_text(await self._memory.correct(of, key, text, run_id=run_id))

    async def _forget(self, of: Whose, message: IncomingMessage, person: Person, said: str) -> str:
        # Only behind numbers: of words, `yes` may be one.
        sure = said.lower().removesuffix(" yes").strip()
        is_sure = sure != said.lower() and (sure == "everything" or _are_keys(sure))
        lane = message.address.key
        wish = await self._memory.wish(
            person, sure if is_sure else said, of, lanes=() if message.is_group else (lane,)
        )
        if message.is_group and not wish.facts:
            return words.IN_PRIVATE
        if is_sure:
            return await self._questions.forget(wish)
        found = await self._memory.forgetting.find(wish)
        hint = ""
        if wish.phrases:
            fitting = await self._memory.facts.search(of, said, k=RELATED_MAX)
            hint = words.related_hint([fact for fact in fitting if fact.id not in found.facts])
            if found.is_empty:
                return words.NOTHING_HOLDS_IT + hint
        what = await self._named(of, wish)
        return await self._questions.ask(wish, what, found, lane=lane) + hint

    async def _named(self, of: Whose, wish: ForgetWish) -> str:
        """What is to go, in words for the question."""
        if wish.everything:
            return "everything that I know of you, and all that we said"
        if wish.phrases:
            return f"“{words.bare(wish.phrases[0])}”"
        facts = [await self._memory.facts.get(of, fact_id) for fact_id in wish.facts]
        named = [f"{fact.key} “{words.bare(fact.text)}”" for fact in facts if fact is not None]
        return ", ".join(named) or "it"

    async def _export(self, message: IncomingMessage, person: Person) -> str:
        if message.is_group:
            return words.IN_PRIVATE
        taken = await self._memory.transfer.export(person.id, is_owner=person.role is Role.OWNER)
        text = words.as_markdown(taken, self._zone(person))
        return text if len(text) <= EXPORT_CHARS_MAX else words.EXPORT_TOO_LONG

    def _zone(self, person: Person) -> tzinfo:
        return zone_of(person.time_zone or self._host_zone) or UTC


def _are_keys(text: str) -> bool:
    return all(fact_id_of(key) is not None for key in text.replace(",", " ").split())


# --- private ------------------------------------------------------------------------------------
#
# `/private`: a conversation with memory off, which is erased for good at its end.

BEGUN = (
    "Memory is off here from now on: I look up nothing of what I know about you, I learn nothing, "
    "and this conversation is kept apart. `/private off` or `/new` ends it, and then all of it is "
    "erased. The model's provider and this app see it all the same, and files that you have me "
    "write stay."
)
BEGUN_ALREADY = (
    "Memory is off here already. `/private off` ends it, and erases what was said since."
)
ENDED = "The private conversation is erased for good. A usual one begins, with memory on."
ENDED_LATER = (
    "The private conversation has ended, and a usual one begins. It is erased as soon as the "
    "answer that is still being made here is done; `/stop` ends that at once."
)
NOT_ON = "Memory is on here; `/private` begins a conversation without it."
IN_PRIVATE = "`/private` is done in a private chat: in a group others see what is said anyway."
USE = "`/private` begins a conversation with memory off, `/private off` ends and erases it."


class PrivateCommand:
    """Answers `/private`. Raises StorageError."""

    def __init__(self, memory: MemoryService) -> None:
        self._private = memory.private

    async def tell(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """Begin one, or end it."""
        if message.is_group:
            return IN_PRIVATE
        lane = message.address.key
        is_on = await self._private.is_private(lane)
        match rest.lower().split():
            case [] | ["on"]:
                if is_on:
                    return BEGUN_ALREADY
                await self._private.begin(lane)
                log.info("private.begun", lane=lane)
                return BEGUN
            case ["off"]:
                if not is_on:
                    return NOT_ON
                await self._private.end(lane)
                return await self.ended()
            case _:
                return USE

    async def is_private(self, lane: str) -> bool:
        """For `/new`, before it opens a usual conversation: whether `ended` has to follow."""
        return await self._private.is_private(lane)

    async def ended(self) -> str:
        """Erase what is over, and say so."""
        return ENDED_LATER if await self._private.sweep() else ENDED
