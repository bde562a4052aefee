"""What is remembered of a person as Markdown: for reading. Used by `/memory export` and the
command; what can be brought in again is the JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from agent.remembering import CATEGORIES, fact_key
from bot.memory_words import bare, day

Carried = Mapping[str, Any]
"""What `agent.carried.Carries.taken_out` gives; its form stands in `memory.carrying`."""

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
