"""Which tools a request offers (SPEC §6): the core, what fits the message, what routes name.

`select` is pure: the same situation gives the same tools. `ToolSelector` gathers the situation,
once a turn, before the first request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from agent.guards.tool_call_text import called_name
from agent.prompt.context import PromptContext
from agent.prompt.prefix_cache import tools_part
from agent.prompt.scene import PromptKind
from agent.tools.discovery import RouteFile, ToolRanking
from agent.tools.tool import ToolCard
from agent.tools.toolbox import Reach, Toolbox
from memory.records.messages import ConversationId, RunId, TurnInput
from memory.records.ports import History, Ranked, Ranker
from memory.records.transcript import Answered
from memory.stores.traces import SqliteTraces

CORE = (
    *("send_message", "store_fact", "search_memories", "get_status", "spawn", "remind_me"),
    *("tool_search", "tool_describe", "tool_call"),
)
"""Offered always, as far as they may be had."""


RANKED_MAX = 10_000
"""More tools than anybody has: all are ranked, since any of them may be wanted by a route."""
TEXT_CHARS_MAX = 4_000
"""Of a message that tools are chosen by: a pasted document is not a wish."""

CONVERSATIONS_KEPT_MAX = 1_000

NOTHING = "nothing_to_report"
"""Offered wherever nobody watches: the prompts there rely on it."""

SMALL_WINDOW, TOOLS_SHARE = 32_000, 0.25
"""Below so many tokens tools may not take more than a share of the window: what is known of the
person would have to go for them. The rest of them is reached by tool_search."""

UNATTENDED = frozenset({PromptKind.HEARTBEAT, PromptKind.PROACTIVE})


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionOptions:
    """How much is offered. `cosine_min` belongs to the embedder: of pairs of a message and a tool
    that have nothing to do with each other, at most one in twenty reaches it (measured on three
    collections, our own among them). `words_min` is its counterpart where there are no
    embeddings: the share of the best score. When all is chosen afresh, `used_max` tools of the last
    `used_turns` turns come first. Above `cosine_sure` the temperature is at most
    `temperature_sure`."""

    tools_max: int = 25
    best_always: int = 5
    best_max: int = 15
    cosine_min: float = 0.2
    words_min: float = 0.3
    used_max: int = 8
    used_turns: int = 3
    cosine_sure: float = 0.6
    temperature_sure: float = 0.3
    core: tuple[str, ...] = CORE


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All that decides which tools are offered.

    `candidates` are those that role, agent and kind of run allow, in the order of the toolbox;
    `known` the names of all tools that exist, so that a required one that is only not allowed is
    not called unknown. `is_small_talk`: a greeting or thanks, by reasoning control.
    `current` is what the conversation was offered last, in that order; it only grows until
    `is_step`. `used` are the tools called in the last three turns, the most recent first.
    `groups` are those of the routes that match. `required` comes from playbooks.
    """

    candidates: Sequence[ToolCard]
    text: str
    is_small_talk: bool = False
    current: Sequence[str] = ()
    is_step: bool = False
    used: Sequence[str] = ()
    groups: Collection[str] = ()
    required: Sequence[str] = ()
    known: Collection[str] = ()


class Reason(StrEnum):
    """Why a tool is offered: the first that holds, in this order."""

    CORE = "core"
    KEPT = "kept"
    """It was offered before, and nothing is taken away between two steps."""
    USED = "used"
    BEST = "best"
    """One of the few best fits, however good."""
    FITS = "fits"
    """Close enough to the message."""
    ROUTE = "route"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """One tool that is offered, for the trace."""

    name: str
    reason: Reason
    score: float = 0.0
    cosine: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is offered, in order: what was there keeps its place, what is new comes behind.

    `left_out` were wanted, and reach the model through tool_search alone, for want of room.
    `unknown` are required tools that do not exist. `cosine_best` is 0 without embeddings; `is_sure`
    says that it is so high that there is little to choose.
    """

    picked: tuple[Picked, ...] = ()
    left_out: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    cosine_best: float = 0.0
    is_sure: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The tools, in the order in which they are offered."""
        return tuple(one.name for one in self.picked)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRoom:
    """How many tokens of a small window tools may take, and what one takes. What has to be offered
    (the core, what was offered before, the few best) may take more."""

    tokens: int
    size: Callable[[str], int]


_DEFAULTS = SelectionOptions()
_HAS_TO_BE = frozenset({Reason.CORE, Reason.KEPT, Reason.BEST})


def select(
    situation: Situation,
    ranker: Ranker | None,
    *,
    options: SelectionOptions = _DEFAULTS,
    room: ToolRoom | None = None,
) -> Selection:
    """The tools for one message. Blocks for milliseconds while the ranker ranks; raises nothing.

    The ranker may know more tools than the candidates. Without one, core and routes decide. Without
    `room` the window is large enough for as many as may be offered.
    """
    places = {card.name: place for place, card in enumerate(situation.candidates)}
    ranked: dict[str, Ranked] = {}
    """The candidates by how well they fit, best first."""
    if ranker is not None and not situation.is_small_talk and situation.text.strip():
        of_all = ranker.rank(situation.text[:TEXT_CHARS_MAX], k=RANKED_MAX)
        ranked = {one.id: one for one in of_all if one.id in places}
    cosine_best = max((one.cosine for one in ranked.values()), default=0.0)
    wanted = _wanted(situation, ranked, options, places)
    kept = [name for name in wanted if wanted[name] in {Reason.CORE, Reason.KEPT}]
    at_most = max(options.tools_max, len(kept))
    offered = list(dict.fromkeys([*kept, *(name for name in wanted if name not in kept)]))[:at_most]
    if room is not None:
        offered = _within(offered, wanted, room)
    reasons = {name: wanted[name] for name in offered}
    for name in situation.required:
        if name in places:
            reasons.setdefault(name, Reason.REQUIRED)
    # What was offered before in its order, then what is new. New ones stand in the order of the
    # toolbox, so that equal sets are equal requests, whoever asks; the core first, since it is
    # what all conversations begin with.
    before = [name for name in dict.fromkeys(situation.current) if name in reasons]
    core = [name for name in options.core if name in reasons and name not in before]
    new = set(reasons).difference(before, core)
    ordered = [*before, *core, *sorted(new, key=places.__getitem__)]
    return Selection(
        picked=tuple(
            Picked(name=name, reason=reasons[name], score=one.score, cosine=one.cosine)
            if (one := ranked.get(name)) is not None
            else Picked(name=name, reason=reasons[name])
            for name in ordered
        ),
        left_out=tuple(name for name in wanted if name not in reasons),
        unknown=_unknown(situation.required, places, situation.known),
        cosine_best=cosine_best,
        is_sure=cosine_best > options.cosine_sure,
    )


def _within(names: Sequence[str], wanted: Mapping[str, Reason], room: ToolRoom) -> list[str]:
    """Return what has to be, and of the others, in their order, what finds room beside it."""
    left = room.tokens - sum(room.size(name) for name in names if wanted[name] in _HAS_TO_BE)
    found = []
    for name in names:
        if wanted[name] not in _HAS_TO_BE:
            size = room.size(name)
            if size > left:
                continue
            left -= size
        found.append(name)
    return found


def exactly(
    names: Sequence[str], candidates: Sequence[ToolCard], *, known: Collection[str]
) -> Selection:
    """These tools and no other, as a job with `required_tools` wants it; what it may not have or
    what does not exist is left out."""
    places = {card.name: place for place, card in enumerate(candidates)}
    chosen = sorted({name for name in names if name in places}, key=places.__getitem__)
    return Selection(
        picked=tuple(Picked(name=name, reason=Reason.REQUIRED) for name in chosen),
        unknown=_unknown(names, places, known),
    )


def temperature(
    selection: Selection, configured: float | None, *, options: SelectionOptions = _DEFAULTS
) -> float | None:
    """The temperature of the request: lower, where a tool fits the message very well.

    None is the provider's own.
    """
    if not selection.is_sure:
        return configured
    if configured is None:
        return options.temperature_sure
    return min(configured, options.temperature_sure)


def _wanted(
    situation: Situation,
    ranked: Mapping[str, Ranked],
    options: SelectionOptions,
    places: Mapping[str, int],
) -> dict[str, Reason]:
    """All tools that there is a reason for, the most important first."""
    wanted = {name: Reason.CORE for name in options.core if name in places}
    if situation.is_step:
        used = [name for name in situation.used if name in places and name not in wanted]
        if situation.is_small_talk:  # nothing that was not there before
            used = [name for name in used if name in situation.current]
        wanted |= dict.fromkeys(used[: options.used_max], Reason.USED)
    else:
        kept = [name for name in situation.current if name in places and name not in wanted]
        wanted |= dict.fromkeys(kept, Reason.KEPT)
    if situation.is_small_talk:
        return wanted
    # The few best whatever their score, then those that are close enough.
    others = [one for one in ranked.values() if one.id not in options.core]
    has_cosines = any(one.cosine > 0 for one in ranked.values())
    fitting: dict[str, Reason] = {}
    for place, one in enumerate(others[: options.best_max]):
        is_close = 0 < one.score >= options.words_min * others[0].score
        if has_cosines:
            is_close = one.cosine >= options.cosine_min
        if place < options.best_always:
            fitting[one.id] = Reason.BEST
        elif is_close:
            fitting[one.id] = Reason.FITS
    for card in situation.candidates:
        if card.group in situation.groups or (card.server and card.server in situation.groups):
            fitting.setdefault(card.name, Reason.ROUTE)
    scores = {name: one.score for name, one in ranked.items()}
    for name in sorted(fitting, key=lambda name: (-scores.get(name, 0.0), name)):
        wanted.setdefault(name, fitting[name])
    return wanted


def _unknown(
    required: Sequence[str], places: Mapping[str, int], known: Collection[str]
) -> tuple[str, ...]:
    named = dict.fromkeys(required)
    return tuple(name for name in named if name not in places and name not in known)


# --- the tools of a turn ------------------------------------------------------------------------


class ToolSelector:
    """Chooses the tools of a turn: what may be had, what the conversation has, what the words want.

    It knows what each conversation was offered last: from memory, after a restart from the
    recorded steps. Raises StorageError.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        reach: Reach,
        traces: SqliteTraces,
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
        """Return what is offered for this message by a model with this window. Changes nothing."""
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
        # Exactly the tools that a run has; None: they are chosen.
        given = None if turn.job is None else turn.job.tools
        given = turn.task.tools if turn.task is not None else given
        if given is not None:
            return exactly(given, candidates, known=known)
        text = turn.message.text if scene.kind is PromptKind.CHAT else scene.task
        current: Sequence[str] = self._offered.get(turn.conversation, ())
        if turn.conversation not in self._offered:  # as after a restart: from the recorded steps
            for trace in await self._traces.prompts(turn.message.address.key, limit=2):
                if trace.begin.get("conversation") == turn.conversation:
                    current = tuple(trace.begin.get("tools", ()))
                    break
        situation = Situation(
            candidates=candidates,
            text=text,
            is_small_talk=gathered.thinking.is_small_talk,
            current=current,
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
        room: ToolRoom | None = None
        if window < SMALL_WINDOW:
            room = ToolRoom(
                tokens=int(window * TOOLS_SHARE),
                size=lambda name: tools_part(self._toolbox.named([name])).tokens,
            )
        ranking = self._ranking
        if ranking is None or situation.is_small_talk or not text.strip():
            return select(situation, None, options=self._options, room=room)
        cards = self._toolbox.cards()
        # In a thread: hundreds of tools take milliseconds, and as much as a second when embeddings
        # are loaded for them.
        return await asyncio.to_thread(
            lambda: select(situation, ranking.of(cards), options=self._options, room=room)
        )

    def remember(self, turn: TurnInput, selection: Selection) -> None:
        """What was just offered."""
        if len(self._offered) >= CONVERSATIONS_KEPT_MAX:
            self._offered.clear()
        self._offered[turn.conversation] = selection.names


def _used(history: History, *, turns: int) -> Iterable[str]:
    """The tools that the newest turns called, the most recent first."""
    runs: set[RunId] = set()
    for stored in reversed(history.entries):
        runs.add(stored.run_id)
        if len(runs) > turns:
            return
        if isinstance(stored.entry, Answered):
            yield from (called_name(call) for call in reversed(stored.entry.calls))
