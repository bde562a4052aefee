"""The tools over the profile: who a person is, as one object that they can see and correct."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping

from pydantic import Field, JsonValue

from agent.headings import harmless
from agent.remembering import Profiles
from agent.scene import one_line
from agent.text import clean
from agent.tools.arguments import Arguments
from agent.tools.household import NOTHING_HERE, Household, MemoryRefused
from agent.tools.showing import is_whole, values_of
from agent.tools.tool import Caller, Effect, Needs, ToolCard, Trust

PATH_CHARS_MAX = 200
REASON_CHARS_MAX = 300

IN_GROUPS = "a profile is private, and closed in group chats."
STEERS = "persona.system_prompt says who the assistant is and how it acts"
SAID_CHARS_MAX = 300
TOO_LONG = (
    f"{STEERS}, and the text is too long to be shown whole to the owner, who has to agree to "
    "exactly it: shorten it"
)


# --- get_profile ---------------------------------------------------------------------------------


class GetProfileArguments(Arguments):
    """All of it, or a part."""

    path: str = Field(default="", max_length=PATH_CHARS_MAX, description="such as preferences")


class GetProfile:
    """The profile as JSON."""

    card = ToolCard(
        name="get_profile",
        description="The person's profile: name, languages, preferences, projects, persona.",
        arguments=GetProfileArguments,
        group="memory",
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.OURS,
        status="trying to remember …",
    )

    def __init__(self, profiles: Profiles, household: Household) -> None:
        self._profiles = profiles
        self._household = household

    def needs(self, arguments: GetProfileArguments, caller: Caller) -> Needs:
        """See SaysNeeds."""
        return Needs(refused=IN_GROUPS if caller.is_group else "")

    async def run(self, arguments: GetProfileArguments, caller: Caller) -> str:
        """JSON, or that there is nothing."""
        _check_private(caller)
        if await self._household.is_off(caller):
            return NOTHING_HERE
        profile = await self._profiles.get(caller.person_id)
        if not profile:
            return "Nothing is known of the person yet."
        return harmless(_written(_under(profile, arguments.path), indent=1))


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


class UpdateProfileArguments(Arguments):
    """What to set, to what, and why."""

    path: str = Field(
        min_length=1, max_length=PATH_CHARS_MAX, description="dotted, such as preferences.units"
    )
    value: JsonValue = Field(description="text, number, list or object; null takes it away")
    reason: str = Field(min_length=1, max_length=REASON_CHARS_MAX)


class UpdateProfile:
    """Sets one path of the profile; what was there is kept, and can be had back."""

    card = ToolCard(
        name="update_profile",
        description="Set a part of the person's profile, such as name, languages or time zone.",
        arguments=UpdateProfileArguments,
        group="memory",
        effect=Effect.PERSON,
        redo="idempotent",
        trust=Trust.OURS,
        status="remembering …",
    )

    def __init__(self, profiles: Profiles, household: Household) -> None:
        self._profiles = profiles
        self._household = household

    def needs(self, arguments: UpdateProfileArguments, caller: Caller) -> Needs:
        """See SaysNeeds: what replaces the text that the assistant begins with is always asked
        about (SPEC §6), also as a part of `persona` as a whole."""
        if caller.is_group:
            return Needs(refused=IN_GROUPS)
        written = _written(arguments.value)
        value = written if len(written) <= SAID_CHARS_MAX else "the value below"
        shows = (f"profile: {arguments.path} becomes {value}",)
        if not steers(arguments.path):
            return Needs(shows=shows)
        if not is_whole(values_of(arguments), says=shows):
            return Needs(refused=TOO_LONG)
        return Needs(asks=STEERS, shows=shows)

    async def run(self, arguments: UpdateProfileArguments, caller: Caller) -> str:
        """What was there, and what is."""
        _check_private(caller)
        if steers(arguments.path) and not caller.agreed:
            raise MemoryRefused(f"{STEERS}, and is changed only once the owner has agreed")
        await self._household.check_writable(caller)
        change = await self._profiles.update(
            caller.person_id,
            arguments.path.strip(),
            arguments.value,
            reason=" ".join(clean(arguments.reason).split()),
            run_id=caller.run_id,
        )
        now = "taken away" if change.new is None else f"now {_written(change.new)}"
        before = "" if change.old is None else f" (before: {_written(change.old)})"
        return harmless(f"{change.path} is {now}{before}.")


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
