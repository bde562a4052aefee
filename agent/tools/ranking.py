"""Tools as text that can be searched, and a ranker of them that is built anew when they change.

Called by whoever selects tools for a request, and by `tool_search`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.ports import Ranked, Ranker
from agent.text import clean
from agent.tools.arguments import schema_of
from agent.tools.tool import ToolCard

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
    parameters = [words for _, words in zip(range(PARAMETERS_MAX), _parameters(card), strict=False)]
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

    def made(self, cards: Sequence[ToolCard]) -> Ranker | None:
        """The ranker of these tools if it is there already, and nobody is making another; waits
        for nothing."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._ranker if _same(cards, self._cards) else None
        finally:
            self._lock.release()

    def of(self, cards: Sequence[ToolCard]) -> Ranker:
        """The ranker of these tools: that of the last call, unless their words have changed."""
        with self._lock:
            if self._ranker is None or not _same(cards, self._cards):
                texts = tuple(tool_text(card) for card in cards)
                if self._ranker is None or texts != self._texts:
                    self._ranker = self._make(texts)
                self._cards, self._texts = tuple(cards), texts
            return self._ranker


class Rank:
    """Implements `agent.tools.discovery.Ranking`: all tools are indexed together, once, and each
    caller sees of them what was asked for."""

    def __init__(self, ranking: ToolRanking, cards: Callable[[], Sequence[ToolCard]]) -> None:
        """`cards` gives all tools that there are."""
        self._ranking = ranking
        self._cards = cards

    def __call__(self, text: str, among: Sequence[ToolCard]) -> Sequence[Ranked]:
        everything = self._cards()
        names = {card.name for card in among}
        ranked = self._ranking.of(everything).rank(text, k=len(everything))
        return [one for one in ranked if one.id in names]


def _same(cards: Sequence[ToolCard], others: Sequence[ToolCard]) -> bool:
    return len(cards) == len(others) and all(
        card is other for card, other in zip(cards, others, strict=True)
    )


def _parameters(card: ToolCard) -> Iterator[str]:
    return _properties(schema_of(card.arguments), depth=0)


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
