"""Tools as text that can be searched, and a ranker of them that is built anew when they change.

Called by whoever selects tools for a request, and by `tool_search`.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.policy.taint import called_name
from agent.policy.tool_access import Reach
from agent.prompt.context import PromptContext
from agent.prompt.scene import PromptKind
from agent.tools.arguments import schema_of
from agent.tools.routes import RouteFile
from agent.tools.selection import Selection, SelectionOptions, Situation, ToolRoom, exactly, select
from agent.tools.tool import ToolCard
from agent.tools.toolbox import Toolbox
from agent.trace.prefix_cache import tools_part
from memory.records.messages import ConversationId, RunId, TurnInput
from memory.records.ports import History, Ranked, Ranker, Traces
from memory.records.text import clean
from memory.records.transcript import Answered

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


# --- choosing -----------------------------------------------------------------------------------
#
# Chooses the tools of a turn: what may be had, what the conversation has, what the words want.
#
# Called by the step `begin`, and by whoever shows what would be sent.

CONVERSATIONS_KEPT_MAX = 1_000

RANKED_AT_ONCE_MAX = 120
"""So few tools are ranked in half a millisecond, less than the way to a thread and back takes."""

NOTHING = "nothing_to_report"
"""Offered wherever nobody watches: the prompts there rely on it."""

SMALL_WINDOW, TOOLS_SHARE = 32_000, 0.25
"""Below so many tokens tools may not take more than a share of the window: what is known of the
person would have to go for them. The rest of them is reached by tool_search."""

UNATTENDED = frozenset({PromptKind.HEARTBEAT, PromptKind.PROACTIVE})


class Choosing:
    """Knows what each conversation was offered last: from memory, after a restart from the
    recorded steps. Raises StorageError."""

    def __init__(
        self,
        toolbox: Toolbox,
        reach: Reach,
        traces: Traces,
        *,
        ranking: ToolRanking | None = None,
        routes: RouteFile | None = None,
        options: SelectionOptions | None = None,
    ) -> None:
        """Without `ranking` core tools and routes decide."""
        self._toolbox = toolbox
        self._reach = reach
        self._traces = traces
        self._ranking = ranking
        self._routes = routes
        self._options = options or SelectionOptions()
        self._offered: dict[ConversationId, tuple[str, ...]] = {}

    async def choose(
        self, gathered: PromptContext, history: History, *, is_step: bool, window: int
    ) -> Selection:
        """What is offered for this message by a model with this window. Changes nothing."""
        if not gathered.thinking.is_small_talk:
            await self._toolbox.ready()
        scene = gathered.scene
        turn = scene.turn
        unattended = scene.kind in UNATTENDED
        jobs = turn.job is not None and turn.job.makes_jobs
        candidates = self._reach.cards_of(
            turn.role, unattended=unattended, jobs=jobs, agent=turn.agent
        )
        known = self._toolbox.names
        given = _given(turn)
        if given is not None:
            return exactly(given, Situation(candidates=candidates, text="", known=known))
        text = turn.message.text if scene.kind is PromptKind.CHAT else scene.task
        situation = Situation(
            candidates=candidates,
            text=text,
            is_small_talk=gathered.thinking.is_small_talk,
            current=await self._current(turn),
            is_step=is_step,
            used=tuple(_used(history, turns=self._options.used_turns)),
            groups=self._routes.routes().match(text).groups if self._routes else (),
            required=(
                *((NOTHING,) if unattended else ()),
                *gathered.required_tools,
                *(one.tool for one in gathered.auto_invoke),
                *(card.name for card in candidates if card.server in gathered.plugins),
            ),
            known=known,
        )
        room = self._room(window)
        ranks = self._ranking is not None and not situation.is_small_talk and bool(text.strip())
        if not ranks:
            return select(situation, None, options=self._options, room=room)
        return await self._ranked(situation, room)

    def _room(self, window: int) -> ToolRoom | None:
        if window >= SMALL_WINDOW:
            return None

        def size(name: str) -> int:
            return tools_part(self._toolbox.named([name])).tokens

        return ToolRoom(tokens=int(window * TOOLS_SHARE), size=size)

    def remember(self, turn: TurnInput, selection: Selection) -> None:
        """What was just offered."""
        if len(self._offered) >= CONVERSATIONS_KEPT_MAX:
            self._offered.clear()
        self._offered[turn.conversation] = selection.names

    async def _ranked(self, situation: Situation, room: ToolRoom | None) -> Selection:
        assert self._ranking is not None
        cards = [tool.card for tool in self._toolbox.tools()]
        ranker = self._ranking.made(cards)
        if ranker is None or len(cards) > RANKED_AT_ONCE_MAX:
            return await asyncio.to_thread(self._select, situation, cards, room)
        return select(situation, ranker, options=self._options, room=room)

    def _select(
        self, situation: Situation, cards: Sequence[ToolCard], room: ToolRoom | None
    ) -> Selection:
        assert self._ranking is not None
        return select(situation, self._ranking.of(cards), options=self._options, room=room)

    async def _current(self, turn: TurnInput) -> Sequence[str]:
        if turn.conversation not in self._offered:
            for trace in await self._traces.prompts(turn.message.address.key, limit=2):
                if trace.begin.get("conversation") == turn.conversation:
                    return tuple(trace.begin.get("tools", ()))
            return ()
        return self._offered[turn.conversation]


def _given(turn: TurnInput) -> tuple[str, ...] | None:
    """Exactly the tools that a run has; None: they are chosen."""
    if turn.task is not None:
        return turn.task.tools
    return None if turn.job is None else turn.job.tools


def _used(history: History, *, turns: int) -> Iterable[str]:
    """The tools that the newest turns called, the most recent first."""
    runs: set[RunId] = set()
    for stored in reversed(history.entries):
        runs.add(stored.run_id)
        if len(runs) > turns:
            return
        if isinstance(stored.entry, Answered):
            yield from (called_name(call) for call in reversed(stored.entry.calls))
