"""The real parts, in the shape of outside harnesses. Nothing here may be imported by the product.

Search: `index(items)`, then `search(query, k)`; items are (id, text, meta). Times: `when` and
`next_times`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # a harness loads this file alone

from agent.tools.discovery import ToolRanking, ToolText
from agent.tools.tool import Effect, ToolCard, Trust
from memory.records.schedule import NoTime, TimeAnswer, TimeAsked, TimeRead
from memory.search.hybrid import FOR_MEMORY, FOR_TOOLS, Item, Search
from memory.search.vectors import Embedding
from scheduler.clock import recurrence as cron
from scheduler.timetext.parse import find, read

Given = tuple[str, str, Mapping[str, Any]]
EMBEDDING = Embedding()
ZONE = ZoneInfo("UTC")


class MemorySystem:
    """Facts or turns: who said it, and what stood before it, come from the meta."""

    def __init__(self) -> None:
        self._search = Search([])

    def index(self, items: Sequence[Given]) -> None:
        """Takes all items at once."""
        places = {_place(meta): id for id, _, meta in items}
        self._search = Search(
            [
                Item(
                    id=id,
                    text=text,
                    subject=str(meta.get("speaker") or ""),
                    after=places.get(_place(meta, back=1), ""),
                )
                for id, text, meta in items
            ],
            embedding=EMBEDDING,
            weights=FOR_MEMORY,
        )

    def search(self, query: str, k: int) -> list[str]:
        """The ids of the best `k`."""
        return [one.id for one in self._search.rank(query, k=k)]


class ToolSystem:
    """Tools, as they are indexed for selection and for tool_search."""

    def __init__(self) -> None:
        self._ranking = ToolRanking(tool_search)
        self._cards: list[ToolCard] = []

    def index(self, items: Sequence[Given]) -> None:
        """Takes all tools at once; their texts are made by the product."""
        self._cards = [_card(id, meta) for id, _, meta in items]
        self._ranking.of(self._cards)

    def search(self, query: str, k: int) -> list[str]:
        """The names of the best `k`."""
        return [one.id for one in self._ranking.of(self._cards).rank(query, k=k)]


def tool_search(texts: Sequence[ToolText]) -> Search:
    """The ranker of tools as the product builds it."""
    items = [Item(id=one.name, title=one.title, text=one.text) for one in texts]
    return Search(items, embedding=EMBEDDING, weights=FOR_TOOLS)


def memory() -> MemorySystem:
    """For `memory_eval.py`."""
    return MemorySystem()


def tools() -> ToolSystem:
    """For `tool_eval.py`."""
    return ToolSystem()


def when(text: str, now: datetime) -> datetime | None:
    """For `date_eval.py`: the time that a phrase, or a sentence, is understood as.

    Where the product would ask, this is the first of the readings that it offers, or the moment
    that it says is over.
    """
    answer = _answer(text, now.replace(tzinfo=ZONE))
    match answer:
        case TimeRead():
            return answer.next[0].replace(tzinfo=None)
        case TimeAsked() if answer.past:
            return answer.past.astimezone(UTC).replace(tzinfo=None)
        case TimeAsked() if answer.options:
            return answer.options[0].next[0].replace(tzinfo=None)
    return None


def when_unasked(text: str, now: datetime) -> datetime | None:
    """The same, where the product asks nothing before it shows the time."""
    answer = _answer(text, now.replace(tzinfo=ZONE))
    return answer.next[0].replace(tzinfo=None) if isinstance(answer, TimeRead) else None


def next_times(expression: str, start: datetime, n: int) -> list[datetime]:
    """For `cron_eval.py`: naive times after a naive one."""
    slots = islice(cron.cron_slots(expression, zone=ZONE, after=start.replace(tzinfo=ZONE)), n)
    return [slot.at.replace(tzinfo=None) for slot in slots]


def _answer(text: str, now: datetime) -> TimeAnswer:
    """Of the whole text, else of the time within it, as `/remind` does."""
    answer = read(text, now=now, zone=ZONE)
    if isinstance(answer, NoTime) and (found := find(text, now=now, zone=ZONE)):
        return found.answer
    return answer


def _place(meta: Mapping[str, Any], *, back: int = 0) -> tuple[object, ...]:
    """Where an item stands: conversation, session, position. One without a position is alone."""
    position = meta.get("pos")
    if not isinstance(position, int):
        return (id(meta), back)
    return (meta.get("group"), meta.get("session"), position - back)


@dataclass(frozen=True, slots=True)
class _Parameters:
    """A schema made of names and descriptions."""

    described: Sequence[tuple[str, str]]

    def schema(self) -> Mapping[str, Any]:
        """As an MCP server would give it."""
        properties = {name: {"description": about} for name, about in self.described}
        return {"type": "object", "properties": properties}

    def parse(self, data: dict[str, Any]) -> Any:
        """Never called: nothing is run here."""
        return data


def _card(name: str, meta: Mapping[str, Any]) -> ToolCard:
    return ToolCard(
        name=name,
        description=str(meta["description"]),
        arguments=_Parameters([(name, about or "") for name, about in meta["params"]]),
        group="given",
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.UNTRUSTED,
        server=str(meta.get("server") or ""),
        server_about=str(meta.get("server_description") or ""),
    )
