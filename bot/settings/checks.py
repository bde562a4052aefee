"""Checks what the settings were given, and says what is wrong with it, each with its place.

Called by `bot.settings.load`, which lays the environment over the file. A secret is never shown.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from agent.turn.agents import Binding, unreached
from bot.settings.messages import allowed, dotted, key_part, known_hint, variable
from bot.settings.schema.settings import SECTIONS, Settings
from bot.settings.tree import KeyPath, Loc, Node, is_secret, node_at
from memory.records.messages import DEFAULT_AGENT

SHOWN_CHARS_MAX = 60
"""Characters of a wrong value that a complaint quotes."""
_SECRET_LOOK = re.compile(
    r"[0-9]{3,}:[\w-]{8,}|\b(?:sk|pk|gsk|xox[a-z]|xapp|AIza)[-_]?\w{8,}|://[^/\s]*@"
)
"""A token in the wrong place: of Telegram, Slack, a provider, or a password in an address."""
_REFERENCE = re.compile(r"\s*\$\{[^{}]*\}\s*")
"""`${NAME}`, as other programs would fill in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What was set, before it is checked, and where."""

    file: Path
    in_file: dict[str, object]
    in_env: dict[KeyPath, object]

    def merged(self) -> dict[str, object]:
        """The environment laid over the file."""
        merged = copy.deepcopy(self.in_file)
        # A whole table comes before one of its entries, which then wins.
        for path, value in sorted(self.in_env.items(), key=lambda item: len(item[0])):
            table: object = merged
            for name in path[:-1]:
                # The file may have a value where a section belongs: that is the complaint.
                table = table.setdefault(name, {}) if isinstance(table, dict) else None
            if isinstance(table, dict):
                table[path[-1]] = value
        return merged

    def place(self, loc: Loc) -> str:
        """Where the value of a key came from, and which one it is."""
        path = key_part(loc)
        within = [key for key in self.in_env if path[: len(key)] == key]
        # A table of the owner's naming may stand in the environment alone.
        if not within and _found(self.in_file, path) == "":
            within = [key for key in self.in_env if key[: len(path)] == path]
        source = f"environment variable {variable(max(within, key=len))}" if within else self.file
        return f"{source}: {dotted(loc)}"


def checked(given: Given) -> tuple[Settings, list[str]]:
    """The settings, and what is wrong with them (then they mean nothing)."""
    merged = given.merged()
    references = [
        loc
        for loc, text in _texts(merged)
        # In the place of something that no key takes it is just an unknown name.
        if _REFERENCE.fullmatch(text) and any(isinstance(one, FieldInfo) for one in _nodes(loc))
    ]
    details: list[ErrorDetails] = []
    settings = Settings()
    try:
        settings = Settings.model_validate(merged)
    except ValidationError as error:
        details = error.errors(include_url=False)
    # Outside of the `except`, so that the error raised at the end does not drag along one that
    # holds the input, secrets included.
    unknown = [loc for detail in details for loc in _unknown(merged, detail)]
    said = {*unknown, *references}
    return settings, [
        *(f"{given.place(loc)}: unknown key; {known_hint(loc)}" for loc in unknown),
        *(
            f"{given.place(loc)}: a reference like ${{NAME}} is not read here; "
            f"set the environment variable {variable(loc)} instead"
            for loc in references
        ),
        *(
            _complaint(given, merged, detail)
            for detail in _worth_saying(details)
            if _as_written(merged, detail["loc"]) not in said
        ),
        *_across_tables(merged),
    ]


# --- several tables together ---------------------------------------------------------------------
#
# Looked up in what was set, not by a validator of the whole: the library would run that only where
# all else is right, and each problem is to be told in the first go.


def _across_tables(merged: dict[str, object]) -> Iterator[str]:
    """Yield where an agent is named that does not exist: a limit, a rule or a binding that would
    bind nobody; and the bindings whose chats an earlier one takes all of. What is odd in another
    way is complained of elsewhere."""
    named = _found(merged, ("agents",))
    names = [name for name in named if name != "bindings"] if isinstance(named, dict) else []
    agents = tuple(dict.fromkeys([DEFAULT_AGENT, *names]))
    there = f"there {'are' if len(agents) > 1 else 'is'} {', '.join(agents)}"
    for n, limit in _tables(merged, "budget", "limits"):
        of = limit.get("of")
        if limit.get("scope") == "agent" and isinstance(of, str) and of and of not in agents:
            yield f"budget.limits[{n}].of: there is no agent {_shown(merged, (), of)}; {there}"
    for n, rule in _tables(merged, "tools", "rules"):
        agent = rule.get("agent")
        if isinstance(agent, str) and not any(fnmatchcase(name, agent) for name in agents):
            shown = _shown(merged, (), agent)
            yield f"tools.rules[{n}].agent: no agent is called {shown}; {there}"
    places, bindings = [], []
    for n, binding in _tables(merged, "agents", "bindings"):
        agent = binding.get("agent")
        if isinstance(agent, str) and agent and agent not in agents:
            yield f"agents.bindings[{n}]: there is no [agents.{agent}]; {there}"
        channel, chat_id = binding.get("channel"), binding.get("chat_id")
        if isinstance(channel, str) and isinstance(chat_id, str):
            places.append(n)
            bindings.append(Binding(channel=channel, chat_id=chat_id, agent=""))
    for late, early in unreached(bindings):
        yield (
            f"agents.bindings[{places[late]}] can never be reached: agents.bindings"
            f"[{places[early]}] takes all of its chats before it; put it in front of that one, or "
            "remove it"
        )


def _tables(merged: dict[str, object], *loc: str) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the tables of a list, each with its place."""
    found = _found(merged, loc)
    for place, one in enumerate(found if isinstance(found, list) else ()):
        if isinstance(one, dict):
            yield place, one


# --- one value -----------------------------------------------------------------------------------


def _unknown(merged: Mapping[str, object], detail: ErrorDetails) -> Iterator[Loc]:
    """Where a name stands that means nothing, if that is what the library found.

    In the sections it is told to the last part of its path, since somebody may have written
    `channels.telegram.token`; a section under a wrong name is one, and so is an empty one.
    """
    loc = _as_written(merged, detail["loc"])
    table = node_at(Settings, loc[:-1])
    # A section that takes tables by name takes nothing else under a name that it does not know.
    by_choice = isinstance(table, type) and loc[-1] not in table.model_fields
    if detail["type"] == "extra_forbidden" or (by_choice and detail["type"] == "model_type"):
        is_section = any(known[: len(loc) - 1] == loc[:-1] for known in SECTIONS)
        yield from _leaves(_found(merged, loc), loc) if is_section else (loc,)


def _leaves(value: object, loc: Loc) -> Iterator[Loc]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(inner, (*loc, name))
    else:
        yield loc


def _texts(value: object, loc: Loc = ()) -> Iterator[tuple[Loc, str]]:
    if isinstance(value, str):
        yield loc, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, (*loc, name))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _texts(inner, (*loc, at))


def _nodes(loc: Loc) -> list[Node]:
    """Return what a place is, and what it is within, as far as it is known."""
    found = (node_at(Settings, loc[:end]) for end in range(1, len(loc) + 1))
    return [node for node in found if node is not None]


def secrets_in(values: Mapping[str, object]) -> Iterator[str]:
    """The texts that stand where a secret belongs."""
    for loc, text in _texts(values):
        if text and any(map(is_secret, _nodes(loc))):
            yield text


def _worth_saying(details: Sequence[ErrorDetails]) -> Iterator[ErrorDetails]:
    for detail in details:
        loc = detail["loc"]
        # Items that are wrong do not count as items for the library.
        only_wrong_items = detail["type"] == "too_short" and any(
            len(other["loc"]) > len(loc) and other["loc"][: len(loc)] == loc for other in details
        )
        # _unknown says it better than extra_forbidden
        if detail["type"] != "extra_forbidden" and not only_wrong_items:
            yield detail


def _complaint(given: Given, merged: dict[str, object], detail: ErrorDetails) -> str:
    loc = _as_written(merged, detail["loc"])
    place = given.place(loc)
    node = node_at(Settings, loc)
    own_words = detail.get("ctx", {}).get("error")
    if own_words is None and isinstance(node, type) and isinstance(loc[-1], str):
        return f"{place}: found a value; allowed: a section, [{dotted(loc)}]"
    is_there = detail["type"] != "missing" and _found(merged, loc) != ""
    found = _shown(merged, loc, detail["input"]) if is_there else "nothing"
    takes = allowed(node) if node is not None else "what config.example.toml says"
    return f"{place}: found {found}; {own_words or f'allowed: {takes}'}"


def _as_written(merged: Mapping[str, object], loc: Loc) -> Loc:
    """A place of the library's as it is in the settings."""
    written: Loc = ()
    value: object = merged
    for part in loc:
        # One table may stand for a list of one, and what is wrong with a name is about the name.
        if part != "[key]" and not (isinstance(part, int) and isinstance(value, dict)):
            written = (*written, part)
            value = _item(value, part)
    return written


def _shown(merged: dict[str, object], loc: Loc, value: object) -> str:
    """A value that may be shown to whoever reads the log."""
    if isinstance(value, SecretStr) or any(map(is_secret, _nodes(loc))):
        return "a value that is kept secret"
    if isinstance(value, dict):
        return "a table"
    text = repr(value)
    if any(secret in text for secret in secrets_in(merged)) or _SECRET_LOOK.search(text):
        return "a value that looks like a secret"
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}…"


def _found(values: object, loc: Loc) -> object:
    """Return what stands at a place, "" where there is nothing."""
    for part in loc:
        values = _item(values, part)
    return values


def _item(value: object, part: str | int) -> object:
    if isinstance(value, dict):
        return value.get(part, "")
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return value[part]
    return ""
