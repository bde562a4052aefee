"""Chooses the tools of a turn: what may be had, what the conversation has, what the words want.

Called by the step `begin`, and by whoever shows what would be sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from agent.gathering import Gathered
from agent.meant import called_name
from agent.messages import ConversationId, RunId, TurnInput
from agent.ports import History, Traces
from agent.prefix import tools_part
from agent.scene import PromptKind
from agent.tools.ranking import ToolRanking
from agent.tools.reach import Reach
from agent.tools.routes import RouteFile
from agent.tools.selection import (
    Selection,
    SelectionOptions,
    Situation,
    ToolRoom,
    exactly,
    select,
)
from agent.tools.tool import ToolCard
from agent.tools.toolbox import Toolbox
from agent.transcript import Answered

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
        self, gathered: Gathered, history: History, *, is_step: bool, window: int
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
