"""What a profile may hold: its keys, types and bounds, and how a dotted path reaches into it. Pure.

Values are JSON. Nothing is kept empty: an empty text, list or object is the same as none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
)

from memory.database.rows import dump, storable
from memory.records.errors import ProfileWrong
from memory.records.text import clean

CHARS_MAX = 8_000
"""Of a whole profile, as JSON."""
KEYS_MAX = 4
"""Of a path, and the depth of what is in a profile."""
ITEMS_MAX = 50
PERSONA_PROMPT_CHARS_MAX = 6_000
ALLOWED = (
    "name, title, languages, time_zone, preferences.KEY, projects or projects.KEY, persona.name, "
    "persona.style, persona.tone, persona.system_prompt"
)

_FREE = (
    "it takes a text of at most 2,000 characters, a number, true or false, a list of these, or an "
    f"object of these; at most {ITEMS_MAX} of each, with keys of letters, digits, _ and -"
)
_KEY = re.compile(r"[A-Za-z0-9_-]{1,40}")
_APPEND = "[]"
_NUMBER_MAX = 10**15
_SHOWN_CHARS = 80

Parts = tuple[str, ...]


# --- what it may hold ----------------------------------------------------------------------------


def _zone(name: str) -> str:
    try:
        return ZoneInfo(name).key
    except (KeyError, ValueError, OSError) as error:  # unknown, no file name, or a folder
        raise ValueError("is no time zone: give one such as Europe/Berlin") from error


Key = Annotated[str, Field(pattern=f"^{_KEY.pattern}$")]
Short = Annotated[StrictStr, Field(max_length=100)]
Text = Annotated[StrictStr, Field(max_length=2_000)]
Number = (
    Annotated[StrictInt, Field(ge=-_NUMBER_MAX, le=_NUMBER_MAX)]
    | Annotated[StrictFloat, Field(ge=-_NUMBER_MAX, le=_NUMBER_MAX, allow_inf_nan=False)]
)
Scalar = StrictBool | Number | Text
Leaf = Scalar | Annotated[list[Scalar], Field(max_length=ITEMS_MAX)]
Named = Annotated[dict[Key, Leaf], Field(max_length=ITEMS_MAX)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Persona(_Part):
    """Who the assistant is for this person. `system_prompt` replaces its base text."""

    name: Short | None = None
    style: Annotated[StrictStr, Field(max_length=500)] | None = None
    tone: Annotated[StrictStr, Field(max_length=500)] | None = None
    system_prompt: Annotated[StrictStr, Field(max_length=PERSONA_PROMPT_CHARS_MAX)] | None = None


class _Profile(_Part):
    name: Short | None = None
    title: Short | None = None
    languages: Annotated[list[Short], Field(max_length=20)] | None = None
    time_zone: Annotated[Short, AfterValidator(_zone)] | None = None
    preferences: Annotated[dict[Key, Leaf | Named], Field(max_length=ITEMS_MAX)] | None = None
    projects: (
        Annotated[list[Scalar | Named], Field(max_length=ITEMS_MAX)]
        | Annotated[dict[Key, Leaf | Named], Field(max_length=ITEMS_MAX)]
        | None
    ) = None
    persona: _Persona | None = None


def checked(profile: Mapping[str, object]) -> str:
    """The profile as JSON. Raises ProfileWrong with a sentence for what it cannot hold."""
    try:
        _Profile.model_validate(profile)
    except ValidationError as error:
        # Of the first thing that is wrong; pydantic names each branch of a choice, and its own
        # words for it say nothing to a person.
        first = error.errors(include_url=False, include_input=False)[0]
        where = first["loc"]
        known = [str(part) for part in where if isinstance(part, int) or _KEY.fullmatch(str(part))]
        path = ".".join(known[: 1 + (known[:1] in (["persona"], ["preferences"], ["projects"]))])
        if first["type"] == "extra_forbidden":
            raise ProfileWrong(f"A profile has no {path!r}; it holds {ALLOWED}.") from error
        if known[:1] in (["preferences"], ["projects"]):
            raise ProfileWrong(f"{path!r} does not fit: {_FREE}.") from error
        message = str(first["msg"]).removeprefix("Value error, ")
        if path == "time_zone":
            raise ProfileWrong(f"'time_zone' {message}.") from error
        raise ProfileWrong(f"{path!r} does not fit: {message[:1].lower()}{message[1:]}.") from error
    body = dump(profile)
    if len(body) > CHARS_MAX:
        raise ProfileWrong(
            f"The profile would have {len(body):,} characters (at most {CHARS_MAX:,}): put long "
            "texts into notes or documents."
        )
    return body


# --- paths ---------------------------------------------------------------------------------------


def parsed(path: str) -> tuple[Parts, bool]:
    """The keys of a dotted path, and whether it ends in `[]`: what is set is then added to a list.

    Raises ProfileWrong. Only `persona.system_prompt` itself reaches the persona's prompt: a
    person has to agree to that one path, so nothing that contains it can be set.
    """
    appends = path.endswith(_APPEND)
    parts = tuple(path.removesuffix(_APPEND).split("."))
    if len(parts) > KEYS_MAX or not all(_KEY.fullmatch(part) for part in parts):
        raise ProfileWrong(
            f"{path[:_SHOWN_CHARS]!r} is no path of a profile: give at most {KEYS_MAX} names with "
            "dots between them, such as preferences.units, each of letters, digits, _ and -."
        )
    if parts[0] not in _Profile.model_fields:
        raise ProfileWrong(f"A profile has no {parts[0]!r}; it holds {ALLOWED}.")
    if parts == ("persona",):
        raise ProfileWrong(
            "'persona' is changed one by one: persona.name, persona.style, persona.tone or "
            "persona.system_prompt."
        )
    return parts, appends


def at(profile: Mapping[str, object], parts: Parts) -> object:
    """Return what a path names; None for nothing."""
    value: object = profile
    for part in parts:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def with_value(profile: Mapping[str, object], parts: Parts, value: object) -> dict[str, object]:
    """A copy with the value at the path; None takes it away, with what is empty then.

    Raises ProfileWrong where the path leads through something that has no parts.
    """
    first, rest = parts[0], parts[1:]
    inner = profile.get(first)
    if rest:
        if inner is not None and not isinstance(inner, Mapping):
            raise ProfileWrong(f"{first!r} has no parts of its own: it is set as a whole.")
        value = with_value(inner or {}, rest, value) or None
    return {key: kept for key, kept in {**profile, first: value}.items() if kept is not None}


def appended(value: object, more: object, path: str) -> object:
    """A list with one item or several more, none twice. Raises ProfileWrong for no list."""
    if value is not None and not isinstance(value, list):
        raise ProfileWrong(f"{path!r} holds no list, so nothing can be added to it.")
    items = list(value or [])
    for item in more if isinstance(more, list) else [more]:
        if item is not None and item not in items:
            items.append(item)
    return items or None


def cleaned(value: object) -> object:
    """JSON with clean texts and without what is empty; None for nothing.

    Raises ProfileWrong for what is nested too deep, or is no JSON.
    """
    return _cleaned(value, room=KEYS_MAX)


def _cleaned(value: object, *, room: int) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return storable(clean(value)).strip() or None
    if room == 0:
        raise ProfileWrong(f"The value is nested too deep: a profile has {KEYS_MAX} levels.")
    if isinstance(value, Mapping):
        inner = {str(key): _cleaned(part, room=room - 1) for key, part in value.items()}
        return {key: part for key, part in inner.items() if part is not None} or None
    if isinstance(value, Sequence):
        parts = [_cleaned(part, room=room - 1) for part in value]
        return [part for part in parts if part is not None] or None
    raise ProfileWrong("The value is no JSON.")


def said(path: str, value: object) -> Iterator[str]:
    """Each single thing that a value says, with what it is called: `pin: 1234`, and `1234`."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from said(f"{path}.{key}", part)
    elif isinstance(value, list):
        for part in value:
            yield from said(path, part)
    elif value is not None:
        name = path.rpartition(".")[2].replace("_", " ")
        yield f"{name}: {value}"
        if isinstance(value, str):
            yield value
