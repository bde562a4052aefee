"""Compares a request with the one before it: what a provider's prefix cache can serve again, and
which part broke it.

A request is taken as the parts in the order in which they are sent: tools, static layers, then the
entries. Pure; called by `agent.turn.steps.model`, shown by /context.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from agent.prompt.tokens import estimate_tokens, picture_tokens, text_of
from memory.records.transcript import Entry, ToolSpec, kind_of, once

TOOLS = "tools"

SCHEMA_CHARS_A_TOKEN = 3.5
"""Of ASCII in tool schemas, as JSON: measured with o200k. They are full of signs, which here come
in runs that are one token each. Providers render schemas in ways of their own, some in half the
tokens."""

_NAMES = {
    "said": "the person's words",
    "context": "the block of turn layers",
    "note": "a note",
    "answered": "an answer",
    "result": "a tool result",
}


@dataclass(frozen=True, slots=True)
class PrefixPart:
    """One stretch of a request; `tokens` are estimated."""

    name: str
    digest: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """What of a request stood at the beginning of the one before it.

    `first_changed` names the part that differs first; empty when the whole former request is a
    prefix of this one (`intact`), or when there was none before.
    """

    first_changed: str = ""
    kept_tokens: int = 0
    tokens: int = 0
    intact: bool = True

    @property
    def share(self) -> float:
        """Return how much of this request a cache can serve, from 0 to 1."""
        return self.kept_tokens / self.tokens if self.tokens else 0.0


def part_of(name: str, text: str) -> PrefixPart:
    """A named text as a part."""
    return PrefixPart(
        name,
        hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6).hexdigest(),
        estimate_tokens(text),
    )


def tools_part(tools: Sequence[ToolSpec]) -> PrefixPart:
    """All tool schemas, which providers send before everything else. Its tokens are on the safe
    side, by half: what is fitted by them has to pass every provider's own count."""
    return _tools_part(tuple(map(_Same, tools)))


def schema_tokens(tools: Sequence[ToolSpec]) -> int:
    """Return what tool schemas take, as near as can be told without a tokenizer: for a price."""
    text = json.dumps(
        [[tool.name, tool.description, dict(tool.parameters)] for tool in tools],
        ensure_ascii=False,
    )
    ascii_text = text.encode("ascii", "ignore").decode("ascii")
    others = estimate_tokens(text) - estimate_tokens(ascii_text)
    return math.ceil(len(ascii_text) / SCHEMA_CHARS_A_TOKEN) + others


def schema_texts(tools: Sequence[ToolSpec]) -> tuple[str, ...]:
    """The description and the schema of each tool as JSON, for whoever counts them."""
    return _schema_texts(tuple(map(_Same, tools)))


def entry_parts(entries: Iterable[Entry]) -> tuple[PrefixPart, ...]:
    """One part an entry."""
    return tuple(map(_entry_part, entries))


def compare(former: Sequence[str] | None, parts: Sequence[PrefixPart]) -> Prefix:
    """`former` are the digests of the request before; None when there was none."""
    tokens = sum(part.tokens for part in parts)
    if former is None:
        return Prefix(tokens=tokens)
    same = 0
    for before, part in zip(former, parts, strict=False):
        if before != part.digest:
            break
        same += 1
    intact = same == len(former)
    changed = ""
    if not intact:
        changed = parts[same].name if same < len(parts) else "the end: it is shorter than before"
    return Prefix(
        first_changed=changed,
        kept_tokens=sum(part.tokens for part in parts[:same]),
        tokens=tokens,
        intact=intact,
    )


@once
def _entry_part(entry: Entry) -> PrefixPart:
    kind = kind_of(entry)
    part = part_of(_NAMES[kind], f"{kind}\n{text_of(entry)}")
    seen = picture_tokens(entry)
    return replace(part, tokens=part.tokens + seen) if seen else part


class _Same:
    """A tool by its identity: a schema is a mapping, which takes longer to compare than to weigh,
    and the toolbox gives the same one in each turn."""

    __slots__ = ("tool",)

    def __init__(self, tool: ToolSpec) -> None:
        self.tool = tool

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.tool is self.tool

    def __hash__(self) -> int:
        return id(self.tool)


@lru_cache(maxsize=64)
def _tools_part(same: tuple[_Same, ...]) -> PrefixPart:
    tools = [
        (
            one.tool.name,
            one.tool.description,
            json.dumps(dict(one.tool.parameters), ensure_ascii=False),
        )
        for one in same
    ]
    return part_of(TOOLS, json.dumps(tools))


@lru_cache(maxsize=64)
def _schema_texts(same: tuple[_Same, ...]) -> tuple[str, ...]:
    return tuple(json.dumps([one.tool.description, one.tool.parameters]) for one in same)
