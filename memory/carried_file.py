"""The form of a file with what is remembered, as it is read: every field checked, every list
bounded. Called by `memory.carrying`.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from agent.carried import CarryingRefused
from agent.remembering import FACT_CHARS_MAX, Category

FACTS_MAX, CHANGES_MAX, DOCUMENTS_MAX, PASSAGES_MAX, NOTES_MAX = (
    50_000,
    20_000,
    2_000,
    20_000,
    5_000,
)
PROBLEMS_TOLD = 5

Ms = Annotated[int, Field(ge=0, le=253_402_300_799_999)]
"""Epoch milliseconds, up to the year 9999."""
Id = Annotated[int, Field(ge=1, le=2**53)]
Line = Annotated[str, Field(max_length=FACT_CHARS_MAX)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class CarriedFact(_Part):
    """A fact. The ids are those of the file: they link a fact to the one that replaced it."""

    id: Id
    scope: Annotated[str, Field(max_length=200, pattern=r"^([a-z]+:[^\s:]+)?$")] = ""
    text: Annotated[str, Field(min_length=1, max_length=FACT_CHARS_MAX)]
    category: Category
    confidence: Annotated[float, Field(ge=0, le=1)] = 1.0
    source: Literal["message", "tool", "person", "import"] = "import"
    quote: Annotated[str, Field(max_length=2_000)] = ""
    speaker: Annotated[str, Field(max_length=200)] = ""
    valid_from_ms: Ms
    valid_to_ms: Ms | None = None
    superseded_by: Id | None = None
    created_ms: Ms
    last_used_ms: Ms | None = None
    uses: Annotated[int, Field(ge=0, le=10**9)] = 0


class CarriedChange(_Part):
    """A change of the profile."""

    path: Annotated[str, Field(max_length=200)]
    old: JsonValue = None
    new: JsonValue = None
    reason: Line = ""
    at_ms: Ms
    undone_ms: Ms | None = None


class CarriedDocument(_Part):
    """A saved document, in its passages."""

    scope: Annotated[str, Field(max_length=200, pattern=r"^([a-z]+:[^\s:]+)?$")] = ""
    name: Annotated[str, Field(min_length=1, max_length=300)]
    kind: Annotated[str, Field(max_length=20)]
    source: Annotated[str, Field(max_length=2_000)] = ""
    chars: Annotated[int, Field(ge=0, le=10**9)]
    saved_ms: Ms
    passages: Annotated[
        list[Annotated[str, Field(max_length=4_000)]], Field(max_length=PASSAGES_MAX)
    ]


class CarriedNote(_Part):
    """A file of notes; its path is below the folder of the person's notes."""

    path: Annotated[str, Field(max_length=200)]
    text: Annotated[str, Field(max_length=1_000_000)]


class Carried(_Part):
    """The whole file."""

    format: Literal["hearthbot-memory"]
    version: Literal[1]
    made_ms: Ms
    person_id: Annotated[str, Field(max_length=200)] = ""
    facts: Annotated[list[CarriedFact], Field(max_length=FACTS_MAX)] = []
    profile: dict[str, JsonValue] = {}
    profile_history: Annotated[list[CarriedChange], Field(max_length=CHANGES_MAX)] = []
    documents: Annotated[list[CarriedDocument], Field(max_length=DOCUMENTS_MAX)] = []
    forgotten: Annotated[int, Field(ge=0)] = 0
    notes: Annotated[list[CarriedNote], Field(max_length=NOTES_MAX)] = []
    conversations: str = ""

    @model_validator(mode="after")
    def _is_of_one_piece(self) -> Carried:
        by_id = {fact.id: fact for fact in self.facts}
        if len(by_id) < len(self.facts):
            raise ValueError("two facts have the same id")
        for fact in self.facts:
            if fact.valid_to_ms is None and fact.superseded_by is not None:
                raise ValueError(f"fact {fact.id} is replaced, and has no valid_to_ms")
            _check_chain(fact, by_id)
        return self


def _check_chain(fact: CarriedFact, by_id: dict[int, CarriedFact]) -> None:
    seen = {fact.id}
    after = fact.superseded_by
    # A chain that was looked at already is short; one that bites its tail would have no end.
    while after is not None and after in by_id:
        if after in seen:
            raise ValueError(f"fact {fact.id} replaces itself in the end")
        if len(seen) > 1_000:
            raise ValueError(f"fact {fact.id} was replaced too often to be followed")
        seen.add(after)
        after = by_id[after].superseded_by


def read_file(text: str, name: str) -> Carried:
    """Raises CarryingRefused with line or field of what is wrong."""
    try:
        data: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise CarryingRefused(
            f"{name}, line {error.lineno}, column {error.colno}: {error.msg}. Nothing was changed."
        ) from error
    except RecursionError as error:
        raise CarryingRefused(f"{name} is nested too deeply. Nothing was changed.") from error
    if not isinstance(data, dict) or data.get("format") != "hearthbot-memory":
        raise CarryingRefused(
            f"{name} is not what `hearthbot memory export` writes as JSON (its `format` would be "
            "hearthbot-memory; Markdown is for reading alone). Nothing was changed."
        )
    if data.get("version") != 1:
        raise CarryingRefused(
            f"{name} is of version {str(data.get('version'))[:20]}; this Hearthbot reads version "
            "1. Nothing was changed."
        )
    try:
        return Carried.model_validate(data)
    except ValidationError as error:
        problems = [
            f"{_field(problem['loc'])}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_input=False)
        ]
        more = len(problems) - PROBLEMS_TOLD
        told = problems[:PROBLEMS_TOLD] + ([f"and {more} more"] if more > 0 else [])
        raise CarryingRefused(
            "\n".join([f"{name} cannot be brought in, and nothing was changed:", *told])
        ) from error


def _field(place: tuple[int | str, ...]) -> str:
    """`facts[3].text`."""
    name = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in place)
    return name.removeprefix(".") or "the file"
