"""What a person sees of their memory in a chat, and does with it: `/memory`, `/remember` and
`/private`.

Faces of `memory.service`. In a group all acts on what was said there. Before something is
forgotten, `bot.commands.memory.erasure` asks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any

import structlog

from bot.commands.memory.erasure import NOTHING_HOLDS_IT, ForgetQuestions
from bot.markup.command_text import bare, day
from bot.people.timezone import zone_of
from memory.records.erasure import ForgettingRefused, typed_run
from memory.records.facts import (
    CATEGORIES,
    FactSource,
    Overview,
    Stored,
    StoredFact,
    Storing,
    Whose,
    fact_id_of,
    fact_key,
    whose,
)
from memory.records.messages import IncomingMessage, Role
from memory.records.rows import Person
from memory.service import FactClosed, FactOfAnother, MemoryService, UnknownFact

if TYPE_CHECKING:
    from bot.commands.command import CommandCall, Tools

log = structlog.get_logger()

USE = """\
`/memory list` shows all I know, `/memory list past` what no longer holds
`/memory f12` shows one thing, and where it is from
`/memory search TEXT` looks for something
`/memory edit f12 TEXT` corrects it
`/memory forget f12` (or TEXT, or everything) erases it wherever it stands
`/memory export` gives you all of it
`/remember TEXT` keeps something"""
USE_IN_GROUP = """\
Here I show and change what was said in this group alone; you can change what you said.
`/memory list`, `/memory f12`, `/memory search TEXT`
`/memory edit f12 TEXT`, `/memory forget f12`"""
GUESTS_USE = """\
`/memory list` shows all I know, `/memory list past` what no longer holds
`/memory f12` shows one thing, and where it is from
`/memory search TEXT` looks for something
`/memory forget f12` (or TEXT, or everything) erases it wherever it stands
`/memory export` gives you all of it"""
GUESTS_USE_IN_GROUP = """\
Here I show what was said in this group alone; what you said you can have erased.
`/memory list`, `/memory f12`, `/memory search TEXT`, `/memory forget f12`"""
USE_REMEMBER = "Write after it what I should remember: `/remember I take my tea without milk`"
IN_PRIVATE = "That is done in a private chat: write it to me there."
MEMORY_IS_OFF = "Memory is off in this conversation (`/private`), so I keep nothing of it."
NO_GUESTS = "As a guest you can look at what I know of you and have it erased, but not add to it."
NOTHING_KNOWN = "I know nothing yet."
NOTHING_CORRECTED = "Nothing was corrected so far."
USE_EDIT = "Write `/memory edit f12 TEXT`: its number, and how it should read."
NO_SUCH_FACT = "There is no {key} here. `/memory list` shows what there is."
EXPORT_TOO_LONG = (
    "That is too much for a chat. On my machine `hearthbot memory export --out FILE` writes all of "
    "it; with `--format json` it can be brought in again."
)
IMPORT_ELSEWHERE = "A file is brought in on my machine: `hearthbot memory import FILE`"

FACTS_SHOWN_MAX, NEWEST_SHOWN = 60, 5
QUOTE_CHARS = 120

_SOURCES = {
    FactSource.MESSAGE: "from what was said",
    FactSource.TOOL: "stored while I answered",
    FactSource.PERSON: "told me by `/remember`",
    FactSource.IMPORT: "from a file",
}
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
        """Show, correct or erase what is remembered, and say so."""
        try:
            return await self._told(message, person, rest)
        except UnknownFact as error:
            return NO_SUCH_FACT.format(key=bare(error.key, chars_max=20))
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
                how = use(person.role, is_group=message.is_group)
                return "\n\n".join([*overview_blocks(found, zone), how])
            case "list" if not said:
                return facts_text(await facts.list(of), zone, nothing=NOTHING_KNOWN)
            case "list" if said.lower() == "past":
                past = await facts.closed(of, limit=FACTS_SHOWN_MAX)
                return facts_text(past, zone, nothing=NOTHING_CORRECTED)
            case "search" if said:
                nothing = f"I know nothing about “{bare(said)}”."
                fitting = await facts.search(of, said, k=FOUND_MAX)
                return facts_text(fitting, zone, nothing=nothing)
            case "show" if said:
                return await self._show(of, person, said)
            case "edit":
                return await self._edit(of, message, person, said)
            case "forget" if said:
                return await self._forget(of, message, person, said)
            case "export":
                if message.is_group:
                    return IN_PRIVATE
                is_owner = person.role is Role.OWNER
                text = as_markdown(
                    await self._memory.transfer.export(person.id, is_owner=is_owner), zone
                )
                return text if len(text) <= EXPORT_CHARS_MAX else EXPORT_TOO_LONG
            case "import":
                return IMPORT_ELSEWHERE
            case _ if not said and fact_id_of(verb) is not None:
                return await self._show(of, person, verb)
            case _:
                return use(person.role, is_group=message.is_group)

    async def remember(self, message: IncomingMessage, person: Person, rest: str) -> str:
        """Keep a sentence, whatever was forgotten before, and say so."""
        text = " ".join(rest.split())
        if text.lower().startswith("that "):  # which belongs to the order, as people write it
            text = text[len("that ") :]
        if person.role is Role.GUEST:
            return NO_GUESTS
        if not text:
            return USE_REMEMBER
        if await self._memory.private.is_private(message.address.key):
            return MEMORY_IS_OFF
        of = whose(person.id, message.address, is_group=message.is_group)
        speaker = person.name if message.is_group else ""
        run_id = typed_run(person.id, message.address.key, message.message_id)
        return stored_text(await self._memory.remember(of, text, run_id=run_id, speaker=speaker))

    async def _show(self, of: Whose, person: Person, key: str) -> str:
        fact = await self._memory.fact(of, key)
        replaced = await self._memory.facts.past(of, fact.id)
        return fact_shown(fact, replaced, self._zone(person))

    async def _edit(self, of: Whose, message: IncomingMessage, person: Person, said: str) -> str:
        if person.role is Role.GUEST:
            return NO_GUESTS
        key, _, text = said.partition(" ")
        text = " ".join(text.split())
        if not text or fact_id_of(key) is None:
            return USE_EDIT
        run_id = typed_run(person.id, message.address.key, message.message_id)
        return stored_text(await self._memory.correct(of, key, text, run_id=run_id))

    async def _forget(self, of: Whose, message: IncomingMessage, person: Person, said: str) -> str:
        # Only behind numbers: of words, `yes` may be one.
        sure = said.lower().removesuffix(" yes").strip()
        keys = sure.replace(",", " ").split()
        are_keys = all(fact_id_of(key) is not None for key in keys)
        is_sure = sure != said.lower() and (sure == "everything" or are_keys)
        lane = message.address.key
        wish = await self._memory.wish(
            person, sure if is_sure else said, of, lanes=() if message.is_group else (lane,)
        )
        if message.is_group and not wish.facts:
            return IN_PRIVATE
        if is_sure:
            return await self._questions.forget(wish)
        found = await self._memory.forgetting.find(wish)
        hint = ""
        if wish.phrases:
            fitting = await self._memory.facts.search(of, said, k=RELATED_MAX)
            hint = related_hint([fact for fact in fitting if fact.id not in found.facts])
            if found.is_empty:
                return NOTHING_HOLDS_IT + hint
        if wish.everything:
            what = "everything that I know of you, and all that we said"
        elif wish.phrases:
            what = f"“{bare(wish.phrases[0])}”"
        else:
            facts = [await self._memory.facts.get(of, fact_id) for fact_id in wish.facts]
            named = [f"{fact.key} “{bare(fact.text)}”" for fact in facts if fact is not None]
            what = ", ".join(named) or "it"
        return await self._questions.ask(wish, what, found, lane=lane) + hint

    def _zone(self, person: Person) -> tzinfo:
        return zone_of(person.time_zone or self._host_zone) or UTC


# --- facts -------------------------------------------------------------------------------------


def use(role: Role, *, is_group: bool) -> str:
    """Return what can be typed about what is remembered, by somebody of this role."""
    if role is Role.GUEST:
        return GUESTS_USE_IN_GROUP if is_group else GUESTS_USE
    return USE_IN_GROUP if is_group else USE


def fact_line(fact: StoredFact, zone: tzinfo | None) -> str:
    """Return `- f12 “…” (background, 1 Aug 2026)`; in a group with who said it."""
    by = f", said by {bare(fact.speaker)}" if fact.whose.scope and fact.speaker else ""
    until = "" if fact.valid_to_ms is None else f" to {day(fact.valid_to_ms, zone)}"
    when = f"{day(fact.valid_from_ms, zone)}{until}"
    return f"- {fact.key} “{bare(fact.text)}” ({fact.category}, {when}{by})"


def fact_from(fact: StoredFact, zone: tzinfo | None) -> str:
    """Return where it is from: `from what was said, 1 Aug 2026: “…”`."""
    quoted = f": “{bare(fact.quote, chars_max=QUOTE_CHARS)}”" if fact.quote else ""
    return f"{_SOURCES[fact.source]}, {day(fact.created_ms, zone)}{quoted}"


def fact_shown(fact: StoredFact, replaced: Sequence[StoredFact], zone: tzinfo | None) -> str:
    """Return one fact, where it is from, and what it replaced."""
    lines = [f"**{fact.key}** “{bare(fact.text)}”", ""]
    lines.append(f"- {fact.category}; {_SOURCES[fact.source]}, {day(fact.created_ms, zone)}")
    if fact.whose.scope:
        lines.append(f"- belongs to the group {bare(fact.whose.scope)}")
    if fact.speaker:
        lines.append(f"- said by {bare(fact.speaker)}")
    if fact.quote:
        lines.append(f"- in these words: “{bare(fact.quote, chars_max=500)}”")
    if fact.source in {FactSource.MESSAGE, FactSource.TOOL} and fact.confidence < 1:
        lines.append(f"- I am sure of it by {fact.confidence:.0%}")
    if fact.valid_to_ms is not None:
        after = f", replaced by {fact_key(fact.superseded_by)}" if fact.superseded_by else ""
        lines.append(f"- held until {day(fact.valid_to_ms, zone)}{after}")
    times = "once" if fact.uses == 1 else f"{fact.uses} times"
    lines.append("- not used so far" if fact.uses == 0 else f"- used {times}")
    if replaced:
        lines += ["", "In place of:", *(fact_line(one, zone) for one in replaced)]
    return "\n".join(lines)


def facts_text(facts: Sequence[StoredFact], zone: tzinfo | None, *, nothing: str) -> str:
    """Return a line each, as many as a chat bears; `nothing` where there is none."""
    lines = [fact_line(fact, zone) for fact in facts[:FACTS_SHOWN_MAX]]
    more = len(facts) - FACTS_SHOWN_MAX
    if more > 0:
        lines.append(f"and {more} more: `/memory search TEXT`")
    return "\n".join(lines) or nothing


def overview_blocks(found: Overview, zone: tzinfo | None) -> list[str]:
    """Return what is known, what was corrected lately, and what is in mind."""
    count = len(found.facts)
    said = ["1 fact" if count == 1 else f"{count:,} facts"]
    if found.profile:
        said.append(f"a profile ({', '.join(map(bare, found.profile))})")
    if found.documents:
        said.append("1 document" if found.documents == 1 else f"{found.documents:,} documents")
    blocks = [f"**What I know**: {', '.join(said)}"]
    if found.facts:
        newest = [fact_line(fact, zone) for fact in found.facts[:NEWEST_SHOWN]]
        blocks.append("\n".join(["The newest:", *newest]))
    if found.corrected:
        lines = [
            f"- {one.old.key} “{bare(one.old.text)}” → {one.new.key} “{bare(one.new.text)}”"
            for one in found.corrected
        ]
        blocks.append("\n".join(["Corrected lately:", *lines]))
    if found.in_mind:
        lines = [f"- {bare(text)}" for text in found.in_mind]
        blocks.append("\n".join(["In mind for this conversation:", *lines]))
    return blocks


def stored_text(stored: Stored) -> str:
    """Return what became of something that was to be remembered."""
    if stored.outcome is Storing.REFUSED or stored.fact is None:
        return f"I did not keep that. {stored.why}".strip()
    said = f"{stored.fact.key} “{bare(stored.fact.text)}”"
    match stored.outcome:
        case Storing.REFRESHED:
            return f"I knew that already: {said}."
        case Storing.SUPERSEDED if stored.replaced is not None:
            old = f"{stored.replaced.key} “{bare(stored.replaced.text)}”"
            return f"Remembered: {said}. It takes the place of {old}, which I keep as past."
        case _:
            return f"Remembered: {said} ({stored.fact.category})."


def related_hint(facts: Sequence[StoredFact]) -> str:
    """Facts that may be meant by words that they do not have: they are named, and not taken."""
    if not facts:
        return ""
    keys = " ".join(fact.key for fact in facts)
    lines = [fact_line(fact, None) for fact in facts]
    return "\n".join(["", "", "These may be meant too:", *lines, f"`/memory forget {keys}`"])


# --- taking out ---------------------------------------------------------------------------------

Carried = Mapping[str, Any]
"""What is taken out; its form stands in `memory.facts.export`."""

EXPORTED_CHARS = 600


def exported_json(carried: Carried) -> str:
    """As it is written to a file: one can read it, too."""
    return json.dumps(carried, ensure_ascii=False, indent=1) + "\n"


def as_markdown(carried: Carried, zone: tzinfo | None) -> str:
    """Return facts by category, then what no longer holds, profile, documents and notes."""
    holding = [fact for fact in carried["facts"] if fact["valid_to_ms"] is None]
    past = [fact for fact in carried["facts"] if fact["valid_to_ms"] is not None]
    parts = {
        category.capitalize(): _exported(
            [one for one in holding if one["category"] == category], zone
        )
        for category in CATEGORIES
    }
    parts |= {
        "No longer so": _exported(past, zone),
        "Profile": [f"- {bare(name)}: {_value(one)}" for name, one in carried["profile"].items()],
        "Documents": [
            f"- {bare(one['name'])} ({one['chars']:,} characters, {day(one['saved_ms'], zone)})"
            for one in carried["documents"]
        ],
        "Notes": [f"- {bare(one['path'])}" for one in carried["notes"]],
    }
    lines = [f"# What Hearthbot remembers ({day(carried['made_ms'], zone)})"]
    for heading, found in parts.items():
        lines += ["", f"## {heading}", "", *found] if found else []
    lines += ["", f"Things that were forgotten, and are not kept: {carried['forgotten']}."]
    return "\n".join([*lines, carried["conversations"]]) + "\n"


def _exported(facts: Sequence[Carried], zone: tzinfo | None) -> list[str]:
    lines = []
    for fact in facts:
        when = day(fact["valid_from_ms"], zone)
        if fact["valid_to_ms"] is not None:
            after = fact["superseded_by"]
            replaced = f", then {fact_key(after)}" if after else ""
            when += f" to {day(fact['valid_to_ms'], zone)}{replaced}"
        where = f", in {bare(fact['scope'])}" if fact["scope"] else ""
        text = bare(fact["text"], chars_max=EXPORTED_CHARS)
        lines.append(f"- {fact_key(fact['id'])} {text} ({when}, by {fact['source']}{where})")
        if fact["quote"]:
            lines.append(f"  - “{bare(fact['quote'], chars_max=EXPORTED_CHARS)}”")
    return lines


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{bare(str(name))} {_value(one)}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    return bare(str(value), chars_max=EXPORTED_CHARS)


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
PRIVATE_ELSEWHERE = (
    "`/private` is done in a private chat: in a group others see what is said anyway."
)
PRIVATE_USE = "`/private` begins a conversation with memory off, `/private off` ends and erases it."


async def private(tools: Tools, asked: CommandCall) -> str:
    """Begin a private conversation, or end it."""
    message, kept = asked.message, tools.memory.private
    if message.is_group:
        return PRIVATE_ELSEWHERE
    lane = message.address.key
    is_on = await kept.is_private(lane)
    match asked.rest.lower().split():
        case [] | ["on"]:
            if is_on:
                return BEGUN_ALREADY
            await kept.begin(lane)
            log.info("private.begun", lane=lane)
            return BEGUN
        case ["off"]:
            if not is_on:
                return NOT_ON
            await kept.end(lane)
            return await ended(tools.memory)
        case _:
            return PRIVATE_USE


async def ended(memory: MemoryService) -> str:
    """Erase the private conversation that is over, and say so."""
    return ENDED_LATER if await memory.private.sweep() else ENDED
