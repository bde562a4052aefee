"""A tool of a server as it is shown: the same to a model, and to the owner who approves it. Pure;
called by `agent.mcp.servers`, in a thread."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.mcp.schema import sendable
from agent.mcp.tools import ServerArguments, is_wanted
from agent.mcp.values import ServerOptions, ServerTool
from agent.tools.tool import Effect
from memory.records.rows import ApprovedTool
from memory.records.text import seen

DESCRIPTION_CHARS_MAX = 1_000
NAME_CHARS_SHOWN = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTool:
    """What is listed, and what of it is shown. `digest` names all that is listed."""

    listed: ServerTool
    digest: str
    description: str
    arguments: ServerArguments

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The schema that a model is shown."""
        return self.arguments.schema()

    def approved(self) -> ApprovedTool:
        """The owner's word on exactly this."""
        return ApprovedTool(
            tool=self.listed.name,
            digest=self.digest,
            description=self.description,
            parameters=json.dumps(self.parameters),
        )


def shown_tools(
    tools: Sequence[ServerTool], known: Mapping[str, ShownTool]
) -> tuple[list[ShownTool], list[str]]:
    """Those that can be read, and the names of those that cannot: one spoils no other.

    What is `known`, by its own name, and has not changed is taken as it is: reading hundreds of
    large schemas takes seconds.
    """
    found: list[ShownTool] = []
    unreadable: list[str] = []
    for tool in tools:
        try:
            found.append(_shown(tool, known.get(tool.name)))
        except _SLIPS:
            unreadable.append(seen(tool.name)[:NAME_CHARS_SHOWN])
    return found, unreadable


_SLIPS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What code can raise on a value that nobody thought of, such as a number of 5,000 digits."""


def _shown(tool: ServerTool, known: ShownTool | None) -> ShownTool:
    digest = digest_of(tool)
    if known is not None and known.digest == digest:
        return known
    return ShownTool(
        listed=tool,
        digest=digest,
        description=described(tool),
        arguments=ServerArguments(tool.schema, shown=sendable(tool.schema)),
    )


def former_parameters(approved: ApprovedTool) -> Mapping[str, Any] | None:
    """What a model was shown when the owner approved it; None where that was not kept."""
    try:
        schema = json.loads(approved.parameters)
    except ValueError:
        return None
    return schema if isinstance(schema, dict) else None


def digest_of(tool: ServerTool) -> str:
    """What the owner approves: all that a model reads of it, and what it is said to change."""
    content = [tool.name, tool.description, tool.schema, tool.read_only, tool.idempotent]
    written = json.dumps(content, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(written.encode()).hexdigest()


def described(tool: ServerTool) -> str:
    """The description: readable and not too long. Never empty: some providers refuse that."""
    text = seen(tool.description).strip()
    if len(text) > DESCRIPTION_CHARS_MAX:
        text = text[: DESCRIPTION_CHARS_MAX - 1].rstrip() + "…"
    return text or f"{seen(tool.name)[:NAME_CHARS_SHOWN]}, which its server does not describe."


def effect_of(tool: ServerTool, options: ServerOptions) -> Effect:
    """The server's word counts, unless the owner said otherwise."""
    if options.outside and is_wanted(tool.name, options.outside):
        return Effect.OUTSIDE
    if options.read_only and is_wanted(tool.name, options.read_only):
        return Effect.NONE
    return Effect.NONE if tool.read_only else Effect.OUTSIDE


def is_vouched_for(tool: ServerTool, options: ServerOptions) -> bool:
    """Whether the owner said that it only reads, or trusts its server with what it is told."""
    named = bool(options.read_only) and is_wanted(tool.name, options.read_only)
    return named or options.is_trusted
