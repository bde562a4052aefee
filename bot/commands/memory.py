"""What a person sees of their memory in a chat, and does with it: `/memory` and `/remember`.

Forgetting is `bot.commands.memory_erasure`, which asks first. In a group all acts on what was said
there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, timedelta, tzinfo
from typing import Any, Protocol

import structlog

from bot.channels.base import Pressed
from bot.commands import memory_messages as words
from bot.commands.memory_erasure import Asking, ErasingDesk
from bot.commands.memory_messages import bare, day
from bot.people.timezone import zone_of
from memory.records.erasure import Carries, ForgettingRefused, typed_run
from memory.records.facts import (
    CATEGORIES,
    Documents,
    Facts,
    FactSource,
    NewFact,
    Overviews,
    Profiles,
    StoredFact,
    Whose,
    fact_id_of,
    fact_key,
    whose,
)
from memory.records.messages import IncomingMessage, Role
from memory.records.ports import Clock
from memory.records.rows import Person

# --- memory markdown ----------------------------------------------------------------------------
#
# What is remembered of a person as Markdown: for reading. Used by `/memory export` and the
# command; what can be brought in again is the JSON.

Carried = Mapping[str, Any]
"""What `memory.records.erasure.Carries.taken_out` gives; its form stands in
`memory.facts.export`."""

TEXT_CHARS = 600


def as_markdown(carried: Carried, zone: tzinfo | None) -> str:
    """Facts by category, then what no longer holds, profile, documents and notes."""
    return "\n".join(_lines(carried, zone)) + "\n"


def _lines(carried: Carried, zone: tzinfo | None) -> Iterator[str]:
    yield f"# What Hearthbot remembers ({day(carried['made_ms'], zone)})"
    holding = [fact for fact in carried["facts"] if fact["valid_to_ms"] is None]
    for category in CATEGORIES:
        yield from _facts(category.capitalize(), holding, zone, category=category)
    past = [fact for fact in carried["facts"] if fact["valid_to_ms"] is not None]
    yield from _facts("No longer so", past, zone)
    if carried["profile"]:
        yield from ("", "## Profile", "")
        yield from (f"- {bare(name)}: {_value(one)}" for name, one in carried["profile"].items())
    if carried["documents"]:
        yield from ("", "## Documents", "")
        yield from (
            f"- {bare(one['name'])} ({one['chars']:,} characters, {day(one['saved_ms'], zone)})"
            for one in carried["documents"]
        )
    if carried["notes"]:
        yield from ("", "## Notes", "")
        yield from (f"- {bare(one['path'])}" for one in carried["notes"])
    yield from ("", f"Things that were forgotten, and are not kept: {carried['forgotten']}.")
    yield carried["conversations"]


def _facts(
    heading: str, facts: Sequence[Carried], zone: tzinfo | None, *, category: str = ""
) -> Iterator[str]:
    shown = [fact for fact in facts if category in {"", fact["category"]}]
    if not shown:
        return
    yield from ("", f"## {heading}", "")
    for fact in shown:
        when = day(fact["valid_from_ms"], zone)
        if fact["valid_to_ms"] is not None:
            after = fact["superseded_by"]
            replaced = f", then {fact_key(after)}" if after else ""
            when += f" to {day(fact['valid_to_ms'], zone)}{replaced}"
        where = f", in {bare(fact['scope'])}" if fact["scope"] else ""
        text = bare(fact["text"], chars_max=TEXT_CHARS)
        yield f"- {fact_key(fact['id'])} {text} ({when}, by {fact['source']}{where})"
        if fact["quote"]:
            yield f"  - “{bare(fact['quote'], chars_max=TEXT_CHARS)}”"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{bare(str(name))} {_value(one)}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    return bare(str(value), chars_max=TEXT_CHARS)


NEWEST_SHOWN = 5
FOUND_MAX = 15
CORRECTED_WITHIN = timedelta(days=14)
CORRECTED_SHOWN = 5
EXPORT_CHARS_MAX = 30_000
"""Of what is sent to a chat; more is for a file."""

EXPORT_TOO_LONG = (
    "That is too much for a chat. On my machine `hearthbot memory export --out FILE` writes all of "
    "it; with `--format json` it can be brought in again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """The stores of what is remembered."""

    facts: Facts
    profiles: Profiles
    documents: Documents
    overviews: Overviews
    carrying: Carries


async def _never(lane: str) -> bool:
    return False


class MemoryDesk:
    """Implements `bot.commands.services.TellsMemory`."""

    def __init__(
        self,
        stores: Remembered,
        erasing: ErasingDesk,
        *,
        clock: Clock,
        host_zone: str,
        is_off: Callable[[str], Awaitable[bool]] = _never,
    ) -> None:
        """`is_off` says whether memory is off at an address (`/private`)."""
        self._stores = stores
        self._erasing = erasing
        self._clock = clock
        self._host_zone = host_zone
        self._is_off = is_off

    async def tell(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """`/memory`: shows, corrects, erases. Raises AssistantError."""
        of = whose(person.id, message.address, is_group=message.is_group)
        verb, _, said = rest.partition(" ")
        said = said.strip()
        match verb.lower():
            case "":
                return await self._overview(of, message, person)
            case "list" if said.lower() in {"", "past"}:
                return await self._list(of, person, past=bool(said))
            case "search" if said:
                return await self._search(of, person, said)
            case "show" if said:
                return await self._show(of, person, said)
            case "edit":
                return await self._edit(of, message, person, said)
            case "forget" if said:
                try:
                    return await self._forget(of, message, person, said)
                except ForgettingRefused as error:
                    return str(error)
            case "export":
                return await self._export(message, person)
            case "import":
                return words.IMPORT_ELSEWHERE
            case _ if not said and fact_id_of(verb) is not None:
                return await self._show(of, person, verb)
            case _:
                return words.use(person.role, is_group=message.is_group)

    async def remember(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """`/remember`: keeps a sentence, whatever was forgotten before. Raises StorageError."""
        text = " ".join(rest.split())
        if person.role is Role.GUEST:
            return words.NO_GUESTS
        if not text:
            return words.USE_REMEMBER
        if await self._is_off(message.address.key):
            return words.MEMORY_IS_OFF
        stored = await self._stores.facts.store(
            NewFact(
                whose=whose(person.id, message.address, is_group=message.is_group),
                text=text,
                category=words.guessed_category(text),
                source=FactSource.PERSON,
                run_id=typed_run(person.id, message.address.key, message.message_id),
                speaker=person.name if message.is_group else "",
                asked=True,
            )
        )
        return words.stored_text(stored)

    async def press(self, pressed: Pressed, person: Person) -> str:
        """A button with the data `mem:TOKEN:WORD`; returns what the person who pressed is told."""
        return await self._erasing.press(pressed, person)

    # --- looking ------------------------------------------------------------------------------

    async def _overview(self, of: Whose, message: IncomingMessage, person: Person) -> str:
        zone = self._zone(person)
        facts = await self._stores.facts.list(of)
        blocks = [f"**What I know**: {await self._counts(of, len(facts), message)}"]
        if facts:
            newest = words.facts_listed(facts[:NEWEST_SHOWN], zone)
            blocks.append("\n".join(["The newest:", *newest]))
        since_ms = int((self._clock.now() - CORRECTED_WITHIN).timestamp() * 1000)
        corrected = await self._stores.overviews.corrected(
            of, since_ms=since_ms, limit=CORRECTED_SHOWN
        )
        if corrected:
            lines = words.corrected_lines(corrected)
            blocks.append("\n".join(["Corrected lately:", *lines]))
        if not message.is_group:
            minded = await self._stores.overviews.insights(message.address.key)
            if minded:
                lines = [f"- {words.bare(text)}" for text in minded]
                blocks.append("\n".join(["In mind for this conversation:", *lines]))
        return "\n\n".join([*blocks, words.use(person.role, is_group=message.is_group)])

    async def _counts(self, of: Whose, facts: int, message: IncomingMessage) -> str:
        said = ["1 fact" if facts == 1 else f"{facts:,} facts"]
        if not message.is_group:
            profile = await self._stores.profiles.get(of.person_id)
            if profile:
                said.append(f"a profile ({', '.join(map(words.bare, profile))})")
        documents = len(await self._stores.documents.list(of))
        if documents:
            said.append("1 document" if documents == 1 else f"{documents:,} documents")
        return ", ".join(said)

    async def _list(self, of: Whose, person: Person, *, past: bool) -> str:
        if past:
            facts = await self._stores.overviews.past(of, limit=words.FACTS_SHOWN_MAX)
        else:
            facts = await self._stores.facts.list(of)
        if not facts:
            return "Nothing was corrected so far." if past else words.NOTHING_KNOWN
        return "\n".join(words.facts_listed(facts, self._zone(person)))

    async def _search(self, of: Whose, person: Person, text: str) -> str:
        found = await self._stores.facts.search(of, text, k=FOUND_MAX)
        if not found:
            return f"I know nothing about “{words.bare(text)}”."
        return "\n".join(words.facts_listed(found, self._zone(person)))

    async def _show(self, of: Whose, person: Person, key: str) -> str:
        fact = await self._fact(of, key)
        if fact is None:
            return words.NO_SUCH_FACT.format(key=_key(key))
        replaced = await self._stores.facts.past(of, fact.id)
        return words.fact_shown(fact, replaced, self._zone(person))

    # --- changing -----------------------------------------------------------------------------

    async def _edit(self, of: Whose, message: IncomingMessage, person: Person, said: str) -> str:
        if person.role is Role.GUEST:
            return words.NO_GUESTS
        key, _, text = said.partition(" ")
        text = " ".join(text.split())
        if not text or fact_id_of(key) is None:
            return "Write `/memory edit f12 TEXT`: its number, and how it should read."
        fact = await self._fact(of, key)
        if fact is None:
            return words.NO_SUCH_FACT.format(key=_key(key))
        if words.others_fact(fact, person.id):
            return words.NOT_YOURS.format(key=fact.key)
        if fact.valid_to_ms is not None:
            return f"{fact.key} no longer holds. `/remember TEXT` keeps it anew."
        run_id = typed_run(person.id, message.address.key, message.message_id)
        corrected = replace(edited(fact, text), run_id=run_id)
        return words.stored_text(await self._stores.facts.store(corrected))

    async def _forget(self, of: Whose, message: IncomingMessage, person: Person, said: str) -> str:
        # Only behind numbers: of words, `yes` may be one.
        sure = said.lower().removesuffix(" yes").strip()
        is_sure = sure != said.lower() and (sure == "everything" or _are_keys(sure))
        said = sure if is_sure else said
        asking = Asking(message=message, person=person, is_sure=is_sure)
        if said.lower() == "everything":
            return await self._erasing.everything(asking)
        if not _are_keys(said):
            related = [] if message.is_group else await self._stores.facts.search(of, said, k=5)
            return await self._erasing.of_words(asking, said, related)
        keys = _keys(said)
        facts = [await self._fact(of, key) for key in keys]
        for key, fact in zip(keys, facts, strict=True):
            if fact is not None and words.others_fact(fact, person.id):
                return words.NOT_YOURS.format(key=fact.key)
            if fact is None and not await self._erasing.is_under_way(person, fact_id_of(key)):
                return words.NO_SUCH_FACT.format(key=_key(key))
        ids = [fact_id for key in keys if (fact_id := fact_id_of(key)) is not None]
        return await self._erasing.of_facts(asking, ids, [one for one in facts if one is not None])

    async def _export(self, message: IncomingMessage, person: Person) -> str:
        if message.is_group:
            return words.IN_PRIVATE
        carried = await self._stores.carrying.taken_out(
            person.id, is_owner=person.role is Role.OWNER
        )
        text = as_markdown(carried, self._zone(person))
        return text if len(text) <= EXPORT_CHARS_MAX else EXPORT_TOO_LONG

    async def _fact(self, of: Whose, key: str) -> StoredFact | None:
        fact_id = fact_id_of(key)
        return None if fact_id is None else await self._stores.facts.get(of, fact_id)

    def _zone(self, person: Person) -> tzinfo:
        return zone_of(person.time_zone or self._host_zone) or UTC


def edited(fact: StoredFact, text: str) -> NewFact:
    """A correction by the person themselves: the old one is closed, and stays as past."""
    return NewFact(
        whose=fact.whose,
        text=text,
        category=fact.category,
        source=FactSource.PERSON,
        speaker=fact.speaker,
        replaces=fact.id,
        asked=True,
    )


def _keys(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _are_keys(text: str) -> bool:
    return all(fact_id_of(key) is not None for key in _keys(text))


def _key(key: str) -> str:
    fact_id = fact_id_of(key)
    return words.bare(key, chars_max=20) if fact_id is None else fact_key(fact_id)


# --- private ------------------------------------------------------------------------------------
#
# What `/private` does: a conversation with memory off, which is erased for good at its end.

log = structlog.get_logger()

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


class PrivateConversations(Protocol):
    """Conversations with memory off; `memory.stores.private` keeps them. Raises StorageError."""

    async def begin(self, lane: str) -> None:
        """Closes the open conversation, which is kept, and opens one with memory off."""

    async def end(self, lane: str) -> None:
        """Closes it and opens a usual one."""

    async def is_private(self, lane: str) -> bool:
        """Whether memory is off at this address now."""

    async def erase_closed(self) -> int:
        """Erases all that are over, for good; returns how many are left, because a turn in their
        chat is not over. May be repeated."""


class PrivateDesk:
    """Implements `bot.commands.services.TellsPrivate`."""

    def __init__(self, conversations: PrivateConversations) -> None:
        self._conversations = conversations
        self._erasing = asyncio.Lock()

    async def tell(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """Begins one, or ends it. Raises StorageError."""
        if message.is_group:
            return IN_PRIVATE
        lane = message.address.key
        is_on = await self._conversations.is_private(lane)
        match rest.lower().split():
            case [] | ["on"]:
                if is_on:
                    return BEGUN_ALREADY
                await self._conversations.begin(lane)
                log.info("private.begun", lane=lane)
                return BEGUN
            case ["off"]:
                if not is_on:
                    return NOT_ON
                await self._conversations.end(lane)
                return await self.ended()
            case _:
                return USE

    async def is_private(self, lane: str) -> bool:
        """For `/new`, before it opens a usual conversation: whether `ended` has to follow."""
        return await self._conversations.is_private(lane)

    async def ended(self) -> str:
        """Erases what is over, and says so. Raises StorageError."""
        return ENDED_LATER if await self.sweep() else ENDED

    async def sweep(self) -> int:
        """Erases private conversations that are over, also those that a former process left; says
        how many have to wait. At every start, and once an hour. Raises StorageError."""
        async with self._erasing:
            left = await self._conversations.erase_closed()
        if left:
            log.info("private.waits", count=left)
        return left
