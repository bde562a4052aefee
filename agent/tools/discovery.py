"""Reaching tools that were not offered: they can be counted, listed, looked for, read and called.

Each tool here sees only what role, agent and kind of run allow. `tool_call` is never run: the
toolbox turns it into the call that is meant, before anything is checked. At the end stands what
makes tools searchable, for `tool_search` and for whoever selects tools for a request.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from agent.guards.loose_json import TOOL_CALL
from agent.tools.arguments import ArgumentsWrong, ToolSignature, parse_arguments, schema_of
from agent.tools.tool import Caller, Effect, ToolCard, tool
from memory.records.errors import Permanent
from memory.records.ports import Ranked, Ranker
from memory.records.text import clean
from memory.records.transcript import ToolCall

FOUND_MAX = 10
LISTED_MAX = 100
NEAREST_MAX = 3
LINE_CHARS_MAX = 200
_GROUP = "discovery"
_HOW = f"Call one by its name if it was offered to you, else through {TOOL_CALL}."


class NotFound(Permanent):
    """There is no such tool or group for this caller; names the nearest."""


def resolved(call: ToolCall) -> ToolCall:
    """The call that is meant: that within a `tool_call`, any other as it is.

    Raises ArgumentsWrong, in words for the model.
    """
    if call.name != TOOL_CALL:
        return call
    wanted = parse_arguments(_CALL, call.arguments)
    name = wanted.name.strip()
    if name == TOOL_CALL:
        raise ArgumentsWrong(f"{TOOL_CALL} cannot call itself. Name the tool that is meant.")
    if not name:
        raise ArgumentsWrong(f"{TOOL_CALL} names no tool. Give the exact name of one.")
    arguments = json.dumps(wanted.arguments, ensure_ascii=False)
    return replace(call, name=name, arguments=arguments)


class _AnyObject:
    """Arguments of whichever tool: a JSON object, read as forgivingly as all are."""

    def schema(self) -> Mapping[str, Any]:
        return {"type": "object", "properties": {}}

    def parse(self, data: dict[str, Any]) -> dict[str, Any]:
        return data


def _from_text(value: Any) -> Any:
    """The object; models also send it as JSON text, or null for none."""
    if value is None:
        return {}
    return parse_arguments(_AnyObject(), value) if isinstance(value, str) else value


ToolName = Annotated[str, Field(description="The exact name of the tool.")]


class DiscoveryTools:
    """Counts, lists, finds, shows and calls the tools that a run may have at all, offered or not.
    `cards` gives them in the order of the toolbox, `everything` all that there are."""

    def __init__(
        self,
        cards: Callable[[Caller], Sequence[ToolCard]],
        everything: Callable[[], Sequence[ToolCard]],
        ranking: ToolRanking,
    ) -> None:
        self._cards = cards
        self._everything = everything
        self._ranking = ranking

    @tool(_GROUP, Effect.NONE, status="Looking through the tools")
    async def tool_categories(self, caller: Caller) -> str:
        """Lists the groups of tools that exist here, with how many each holds. More tools exist
        than are offered to you at a time."""
        cards = self._cards(caller)
        counts = Counter(_group(card) for card in cards)
        about = {_group(card): card.server_about for card in cards if card.server_about}
        lines = [
            f"{group} ({count}){_after(': ', _line(about.get(group, '')))}"
            for group, count in sorted(counts.items())
        ]
        return "\n".join(lines) or "There are no tools here."

    @tool(_GROUP, Effect.NONE, status="Looking through the tools")
    async def tool_list(
        self,
        caller: Caller,
        group: Annotated[str, Field(description="A group, as tool_categories names it.")],
    ) -> str:
        """Lists the tools of one group, a line each."""
        cards = self._cards(caller)
        wanted = group.strip().casefold()
        found = [card for card in cards if _group(card).casefold() == wanted]
        if not found:
            groups = sorted({_group(card) for card in cards})
            raise NotFound(
                f"There is no group {group[:64]!r} here. There are: {', '.join(groups)}."
            )
        lines = [_summary(card) for card in found[:LISTED_MAX]]
        if len(found) > LISTED_MAX:
            lines.append(f"… and {len(found) - LISTED_MAX} more: narrow it down by tool_search.")
        return "\n".join([*lines, _HOW])

    @tool(_GROUP, Effect.NONE, status="Looking for a tool")
    async def tool_search(
        self,
        caller: Caller,
        query: Annotated[str, Field(description="What is to be done, in a few plain words.")],
    ) -> str:
        """Finds tools by what is to be done. Use it before you say that something cannot be done:
        more tools exist than are offered to you."""
        cards = [card for card in self._cards(caller) if card.group != _GROUP]
        by_name = {card.name: card for card in cards}
        ranked = self._ranking.rank(query, cards, of=self._everything())
        found = [by_name[one.id] for one in ranked if one.id in by_name][:FOUND_MAX]
        if not found:
            return "No tool fits these words. tool_categories shows which groups there are."
        lines = [f"{_summary(card)} [{_group(card)}]" for card in found]
        return "\n".join([*lines, _HOW])

    @tool(_GROUP, Effect.NONE, status="Reading about a tool")
    async def tool_describe(self, caller: Caller, name: ToolName) -> str:
        """Shows what a tool does, and the schema of its arguments."""
        by_name = {card.name: card for card in self._cards(caller)}
        wanted = name.strip()
        card = by_name.get(wanted)
        if card is None:
            near = get_close_matches(wanted.lower(), by_name, n=NEAREST_MAX, cutoff=0.5)
            advice = f"Nearest: {', '.join(near)}." if near else "Look for it by tool_search."
            raise NotFound(f"There is no tool {wanted[:64]!r} here. {advice}")
        schema = json.dumps(card.spec().parameters, ensure_ascii=False)
        head = f"{card.name} [{_group(card)}]\n{clean(card.description)}"
        return f"{head}\nArguments: {schema}\n{_HOW}"

    # It stands for any tool that exists: `resolved` puts the tool itself in its place.
    @tool(_GROUP, Effect.NONE, status="Calling a tool")
    async def tool_call(
        self,
        caller: Caller,
        name: ToolName,
        arguments: Annotated[
            dict[str, Any],
            BeforeValidator(_from_text),
            Field(default_factory=dict, description="Its arguments, as tool_describe shows them."),
        ],
    ) -> str:
        """Calls a tool that exists but was not offered to you, by its exact name. See tool_describe
        first for what it takes."""
        raise Permanent(f"{name[:64]} cannot be called in this way here.")


_CALL = ToolSignature(DiscoveryTools.tool_call)


def _group(card: ToolCard) -> str:
    """Tools of a server stand together, under its name."""
    return card.server if card.server and card.group == "mcp" else card.group


def _summary(card: ToolCard) -> str:
    return f"{card.name}{_after(': ', _line(card.description))}"


def _line(text: str) -> str:
    """The first sentence of a text, on one line."""
    flat = " ".join(clean(text).split())
    sentence = flat.partition(". ")[0]
    return sentence if len(sentence) <= LINE_CHARS_MAX else sentence[: LINE_CHARS_MAX - 1] + "…"


def _after(mark: str, text: str) -> str:
    return f"{mark}{text}" if text else ""


# --- tools as text ------------------------------------------------------------------------------

DESCRIPTION_CHARS_MAX = 2_000
PARAMETERS_MAX = 60
"""Of one tool, nested ones included; more would drown what the tool is for."""
PARAMETER_CHARS_MAX = 200
_DEPTH_MAX = 6
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_JOINTS = re.compile(r"[_\-./:]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolText:
    """What is known of a tool in words. `title` is its name as words, and begins the text too."""

    name: str
    title: str
    text: str


MakeRanker = Callable[[Sequence[ToolText]], Ranker]
"""Indexes tools; ids are their names. Blocks for milliseconds, and for less than a second where
embeddings are loaded for it. Raises nothing."""


def tool_text(card: ToolCard) -> ToolText:
    """The words of a tool: name, description, parameters with what is said of them, server."""
    own_name = card.name.removeprefix(f"{card.server}__") if card.server else card.name
    title = split_name(own_name)
    parameters = islice(_properties(schema_of(card.arguments), depth=0), PARAMETERS_MAX)
    parts = (
        title,
        card.description[:DESCRIPTION_CHARS_MAX],
        *parameters,
        split_name(card.server),
        card.server_about[:DESCRIPTION_CHARS_MAX],
    )
    text = ". ".join(part for part in parts if part)
    return ToolText(name=card.name, title=title, text=clean(text))


def split_name(name: str) -> str:
    """`readFile`, `read_file` and `read-file` as words."""
    return _JOINTS.sub(" ", _CAMEL.sub(" ", name)).strip()


class ToolRanking:
    """Ranks tools for a text. Safe to call from several threads at once."""

    def __init__(self, make: MakeRanker) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._cards: tuple[ToolCard, ...] = ()
        self._texts: tuple[ToolText, ...] = ()
        self._ranker: Ranker | None = None

    def of(self, cards: Sequence[ToolCard]) -> Ranker:
        """The ranker of these tools: that of the last call, unless their words have changed."""
        with self._lock:
            if self._ranker is None or not _same(cards, self._cards):
                texts = tuple(tool_text(card) for card in cards)
                if self._ranker is None or texts != self._texts:
                    self._ranker = self._make(texts)
                self._cards, self._texts = tuple(cards), texts
            return self._ranker

    def rank(
        self, text: str, among: Sequence[ToolCard], *, of: Sequence[ToolCard]
    ) -> Sequence[Ranked]:
        """`among` by how well they fit a text, best first; `of` are all tools, indexed at once."""
        names = {card.name for card in among}
        return [one for one in self.of(of).rank(text, k=len(of)) if one.id in names]


def _same(cards: Sequence[ToolCard], others: Sequence[ToolCard]) -> bool:
    return len(cards) == len(others) and all(
        card is other for card, other in zip(cards, others, strict=True)
    )


def _properties(schema: Any, *, depth: int) -> Iterator[str]:
    """Names and descriptions of parameters, nested ones after those that hold them."""
    if not isinstance(schema, Mapping) or depth > _DEPTH_MAX:
        return
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, about in properties.items():
            described = about.get("description") if isinstance(about, Mapping) else None
            yield split_name(str(name))
            if isinstance(described, str) and described:
                yield described[:PARAMETER_CHARS_MAX]
            yield from _properties(about, depth=depth + 1)
    yield from _properties(schema.get("items"), depth=depth + 1)
