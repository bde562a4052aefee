"""The tools over the profile: who a person is, as one object that they can see and correct."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, tzinfo
from typing import Annotated

from pydantic import Field, JsonValue

from agent.prompt.templates import harmless
from agent.tools.tool import Caller, Effect, Needs, tool
from memory.facts.profile import SqliteProfiles
from memory.facts.store import SqliteFacts
from memory.records.errors import Permanent
from memory.records.facts import StoredFact, Whose, fact_id_of, fact_key, whose
from memory.records.messages import ConversationId, PersonId
from memory.records.ports import Clock
from memory.records.text import clean, one_line

# --- household ----------------------------------------------------------------------------------
#
# What the tools of memory have to know of a person and a chat, and sentences that they share.

NOTHING_HERE = "Memory is off in this chat (`/private`), so nothing of it is looked at here."


class MemoryRefused(Permanent):
    """What cannot be remembered, found or forgotten like that; the text says why, for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonContext:
    """Who is called what, where their day begins, and in which chats memory is off.

    `name_of` gives a person's name, or nothing; `zone_of` their time zone, or that of the host.
    `is_private` may raise StorageError.
    """

    clock: Clock
    name_of: Callable[[PersonId], str]
    zone_of: Callable[[PersonId], tzinfo]
    is_private: Callable[[ConversationId], Awaitable[bool]]

    def now_of(self, person_id: PersonId) -> datetime:
        """This moment, on their clock."""
        return self.clock.now().astimezone(self.zone_of(person_id))

    async def is_off(self, caller: Caller) -> bool:
        """Whether memory is off where a call comes from, or where its task was given: then nothing
        is found."""
        if caller.parent is not None and await self.is_private(caller.parent):
            return True
        return await self.is_private(caller.conversation)

    async def check_writable(self, caller: Caller) -> None:
        """Raises MemoryRefused where memory is off: then nothing is written, or taken away."""
        if await self.is_off(caller):
            raise MemoryRefused(
                "memory is off in this chat (`/private`), so nothing was changed in it. Say so; "
                "the person may say it again in another chat"
            )


PATH_CHARS_MAX = 200
REASON_CHARS_MAX = 300

IN_GROUPS = "a profile is private, and closed in group chats."
STEERS = "persona.system_prompt says who the assistant is and how it acts"
SAID_CHARS_MAX = 300
TOO_LONG = (
    f"{STEERS}, and the text is too long to be shown whole to the owner, who has to agree to "
    "exactly it: shorten it"
)


class ProfileTools:
    """Shows and changes a profile, in private chats alone."""

    def __init__(self, profiles: SqliteProfiles, household: PersonContext) -> None:
        self._profiles = profiles
        self._household = household

    def _in_private(self, caller: Caller) -> Needs:
        return Needs(refused=IN_GROUPS if caller.is_group else "")

    @tool("memory", Effect.NONE, needs=_in_private, status="trying to remember …")
    async def get_profile(
        self,
        caller: Caller,
        path: Annotated[
            str, Field(max_length=PATH_CHARS_MAX, description="such as preferences")
        ] = "",
    ) -> str:
        """The person's profile: name, languages, preferences, projects, persona."""
        _check_private(caller)
        if await self._household.is_off(caller):
            return NOTHING_HERE
        profile = await self._profiles.get(caller.person_id)
        if not profile:
            return "Nothing is known of the person yet."
        return harmless(_written(_under(profile, path), indent=1))

    def _update_profile_needs(self, caller: Caller, path: str, value: JsonValue) -> Needs:
        """What replaces the text that the assistant begins with is always asked about (SPEC §6),
        also as a part of `persona` as a whole."""
        if caller.is_group:
            return Needs(refused=IN_GROUPS)
        written = _written(value)
        named = written if len(written) <= SAID_CHARS_MAX else "the value below"
        shows = (f"profile: {path} becomes {named}",)
        if not steers(path):
            return Needs(shows=shows)
        return Needs(asks=STEERS, whole=TOO_LONG, shows=shows)

    # What was there is kept, and can be had back.
    @tool(
        "memory",
        Effect.PERSON,
        redo="idempotent",
        needs=_update_profile_needs,
        status="remembering …",
    )
    async def update_profile(
        self,
        caller: Caller,
        path: Annotated[
            str,
            Field(
                min_length=1,
                max_length=PATH_CHARS_MAX,
                description="dotted, such as preferences.units",
            ),
        ],
        value: Annotated[
            JsonValue, Field(description="text, number, list or object; null takes it away")
        ],
        reason: Annotated[str, Field(min_length=1, max_length=REASON_CHARS_MAX)],
    ) -> str:
        """Set a part of the person's profile, such as name, languages or time zone."""
        _check_private(caller)
        if steers(path) and not caller.agreed:
            raise MemoryRefused(f"{STEERS}, and is changed only once the owner has agreed")
        await self._household.check_writable(caller)
        change = await self._profiles.update(
            caller.person_id,
            path.strip(),
            value,
            reason=" ".join(clean(reason).split()),
            run_id=caller.run_id,
        )
        now = "taken away" if change.new is None else f"now {_written(change.new)}"
        before = "" if change.old is None else f" (before: {_written(change.old)})"
        return harmless(f"{change.path} is {now}{before}.")


def _under(profile: Mapping[str, object], path: str) -> object:
    """What a dotted path names. Raises MemoryRefused where there is nothing."""
    value: object = profile
    for name in [part.strip() for part in path.split(".") if part.strip()]:
        if not isinstance(value, Mapping) or name not in value:
            known = ", ".join(sorted(profile))
            raise MemoryRefused(f"nothing is known under {one_line(path)!r} (there is: {known})")
        value = value[name]
    return value


# --- update_profile ------------------------------------------------------------------------------


def steers(path: str) -> bool:
    """Whether setting this path may set `persona.system_prompt`, however it is spelt."""
    names = [name for name in map(_folded, path.split(".")) if name]
    return not names or (names[0] == "persona" and names[1:2] in ([], ["system_prompt"]))


def _folded(name: str) -> str:
    plain = unicodedata.normalize("NFKC", name).casefold()
    return "".join(char for char in plain if char.isalnum() or char == "_")


def _check_private(caller: Caller) -> None:
    if caller.is_group:
        raise MemoryRefused(IN_GROUPS)


def _written(value: object, *, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, default=str)


# --- fact words ---------------------------------------------------------------------------------
#
# Facts in words for a model, and which fact a call means. Used by the tools of memory.


def shown(fact: StoredFact, zone: tzinfo, *, credited: bool = False) -> str:
    """A fact in one line that can pose as nothing else: `f12: … (preference, since 2026-03-01)`.

    With `credited` it says who said it.
    """
    told: list[str] = [fact.category]
    if credited and fact.speaker:
        told.append(f"said by {one_line(harmless(fact.speaker))}")
    told.append(f"since {_day(fact.valid_from_ms, zone)}")
    if fact.valid_to_ms is not None:
        told.append(f"until {_day(fact.valid_to_ms, zone)}")
    if fact.superseded_by is not None:
        told.append(f"then {fact_key(fact.superseded_by)}")
    return f"{fact.key}: {plain(fact.text)} ({', '.join(told)})"


def moment_of(text: str, zone: tzinfo) -> datetime | None:
    """The end of the day that a text names, in that zone; None where there is none.

    Raises MemoryRefused.
    """
    if not text.strip():
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise MemoryRefused("as_of is no date: write it like 2026-03-01") from error
    if moment.time() != time.min or "T" in text.strip().upper():
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)
    return datetime.combine(moment.date(), time.max, tzinfo=zone)


async def own_fact(facts: SqliteFacts, key: str, caller: Caller) -> StoredFact:
    """A fact of this person here. Raises MemoryRefused."""
    fact_id = fact_id_of(key)
    fact = None if fact_id is None else await facts.get(here(caller), fact_id)
    if fact is None:
        raise MemoryRefused(
            f"there is no fact {named(key)} here; list_facts and search_memories name them"
        )
    if fact.whose.person_id != caller.person_id:
        raise MemoryRefused(f"{fact.key} is somebody else's: only they may change or forget it")
    return fact


def here(caller: Caller) -> Whose:
    """Whose memory a call is about."""
    return whose(caller.person_id, caller.address, is_group=caller.is_group)


def sentence(text: str) -> str:
    """As it is stored: clean, and one line."""
    return " ".join(clean(text).split())


def plain(text: str) -> str:
    """A stored sentence in one line that can pose as nothing of ours."""
    return " ".join(harmless(text).split())


def named(key: str) -> str:
    """An id as a model gave it, if it is one."""
    fact_id = fact_id_of(key)
    return repr(one_line(key)) if fact_id is None else fact_key(fact_id)


def _day(at_ms: int, zone: tzinfo) -> date:
    return datetime.fromtimestamp(at_ms / 1000, tz=zone).date()
