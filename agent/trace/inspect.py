"""What a request is made of, for a person, and what differs between two of them.

Each part has its size, its cache state and its sources: of what would be sent now, or of what was
sent in a turn. Pure. Tokens are estimates; what a provider counted stands beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff
from enum import StrEnum
from itertools import islice

from agent.prompt.assemble import LayerCut
from agent.prompt.prefix_cache import Prefix, compare, tools_part
from agent.trace.sent import (
    HISTORY,
    NOTHING_KNOWN,
    CacheState,
    PromptRow,
    SentRequest,
    StoredTexts,
    Where,
    recorded,
    sent_by_trace,
    why,
)
from agent.turn.steps.plan import PromptPlan
from memory.records.messages import PersonId
from memory.records.ports import Json
from memory.records.rows import PromptTrace
from memory.records.transcript import Usage

Cost = Callable[[Usage], float | None]
"""US dollars of one call; None when nothing is known about the model's price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOutcome:
    """One request of a turn: what we estimated, and what came of it.

    `usage` is the provider's count, None when it did not say; `error` is the kind of a failure.
    """

    tokens: int
    kept_tokens: int
    changed: str = ""
    model: str = ""
    usage: Usage | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptView:
    """A request in the order in which it is sent. `turn` is empty for one that would be sent now.

    `broke` says in a sentence which part broke the prefix and why, and is empty when none did;
    `spared` names layers that stand in the history already, `picked` why a playbook, skill or
    rule is there. `requests` are those that were made, the first of which the rows show.
    """

    kind: str
    lane: str
    person_id: PersonId
    rows: tuple[PromptRow, ...]
    window: int
    answer_tokens_max: int
    turn: str = ""
    started_ms: int = 0
    tools: tuple[str, ...] = ()
    is_first: bool = False
    broke: str = ""
    spared: tuple[str, ...] = ()
    cuts: tuple[LayerCut, ...] = ()
    picked: tuple[tuple[str, str], ...] = ()
    requests: tuple[RequestOutcome, ...] = ()

    @property
    def tokens(self) -> int:
        """Of the whole request."""
        return sum(row.tokens for row in self.rows)

    @property
    def cached_tokens(self) -> int:
        """Return what a cache can serve of it."""
        return sum(row.cached_tokens for row in self.rows)

    @property
    def cacheable(self) -> float:
        """That, as a share from 0 to 1."""
        return self.cached_tokens / self.tokens if self.tokens else 0.0

    @property
    def fullness(self) -> float:
        """The share of the window that the request takes."""
        return self.tokens / self.window if self.window else 0.0

    @property
    def answer_tokens(self) -> int:
        """Room for an answer: what the window leaves, and no more than an answer may have."""
        return min(self.answer_tokens_max, max(0, self.window - self.tokens))

    @property
    def usage(self) -> Usage | None:
        """Return what the provider counted for the request that the rows show, if it said."""
        return self.requests[0].usage if self.requests else None

    def row(self, name: str) -> PromptRow | None:
        """The part of this name."""
        return next((row for row in self.rows if row.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Dollars at the model's prices: of each row without a cache, of the request without and with
    one, and of all requests of the turn as the provider counted them (None: it did not say)."""

    rows: tuple[float, ...]
    whole: float
    with_cache: float
    counted: float | None = None


def bill(view: PromptView, cost: Cost) -> Bill | None:
    """Return what a request costs before its answer; None when the price is not known."""
    whole = cost(Usage(prompt=view.tokens))
    with_cache = cost(Usage(prompt=view.tokens, cached=view.cached_tokens))
    if whole is None or with_cache is None:
        return None
    each = whole / view.tokens if view.tokens else 0.0
    counted = [None if asked.usage is None else cost(asked.usage) for asked in view.requests]
    known = [money for money in counted if money is not None]
    return Bill(
        rows=tuple(row.tokens * each for row in view.rows),
        whole=whole,
        with_cache=with_cache,
        counted=sum(known) if known and len(known) == len(counted) else None,
    )


# --- made from a plan, and from a trace ----------------------------------------------------------


def view_of_plan(
    plan: PromptPlan, *, former: PromptTrace | None, answer_tokens_max: int
) -> PromptView:
    """Return what would be sent. `former` is the newest turn of the conversation that asked a
    model."""
    trace, known, parts = recorded(plan)
    sent = sent_by_trace(trace, known)
    before = None if former is None else sent_by_trace(former)
    prefix = compare(before.last_digests if before else None, parts)
    return _view(trace, sent, before, prefix, answer_tokens_max=answer_tokens_max)


def view_of_trace(
    trace: PromptTrace,
    *,
    former: PromptTrace | None,
    answer_tokens_max: int,
    known: StoredTexts = NOTHING_KNOWN,
) -> PromptView:
    """Return what was sent first in a turn. `former` is the turn before it in the same
    conversation.

    Raise NotRecorded for a turn of a version that did not note its layers.
    """
    sent = sent_by_trace(trace, known)
    before = None if former is None else sent_by_trace(former)
    noted = trace.asked[0].get("prefix", {}) if trace.asked else {}
    prefix = Prefix(
        first_changed=noted.get("first_changed", ""),
        kept_tokens=noted.get("kept", 0),
        tokens=noted.get("tokens", 0),
        intact=noted.get("intact", True),
    )
    view = _view(trace, sent, before, prefix, answer_tokens_max=answer_tokens_max)
    return replace(view, requests=tuple(map(_outcome, trace.asked)))


def _view(
    trace: PromptTrace,
    sent: SentRequest,
    before: SentRequest | None,
    prefix: Prefix,
    *,
    answer_tokens_max: int,
) -> PromptView:
    begin = trace.begin
    return PromptView(
        kind=sent.kind,
        turn=trace.run_id,
        lane=trace.lane,
        person_id=trace.person_id,
        started_ms=trace.started_ms,
        rows=_rows(sent, prefix, before),
        window=begin["tokens"]["window"],
        answer_tokens_max=answer_tokens_max,
        tools=sent.tool_names,
        is_first=not prefix.kept_tokens and not prefix.first_changed,
        broke=why(prefix.first_changed, sent, before),
        spared=tuple(begin.get("spared", ())),
        cuts=tuple(LayerCut(**cut) for cut in begin.get("cuts", ())),
        picked=tuple((name, why) for name, why in begin.get("picked", ())),
    )


def conversation_of(trace: PromptTrace) -> str:
    """The conversation in which a turn was."""
    return str(trace.begin.get("conversation", ""))


def former_of(trace: PromptTrace, newest_first: Sequence[PromptTrace]) -> PromptTrace | None:
    """The turn before this one that asked a model in the same conversation."""
    later = [one.run_id for one in newest_first]
    start = later.index(trace.run_id) + 1 if trace.run_id in later else 0
    return newest_of(conversation_of(trace), newest_first[start:])


def newest_of(conversation: str, newest_first: Sequence[PromptTrace]) -> PromptTrace | None:
    """The newest turn of a conversation that asked a model."""
    return next(
        (one for one in newest_first if one.asked and conversation_of(one) == conversation), None
    )


def _outcome(step: Json) -> RequestOutcome:
    prefix, answer = step.get("prefix", {}), step.get("answer") or {}
    counted = Usage(**answer["usage"]) if answer.get("usage") else Usage()
    return RequestOutcome(
        tokens=prefix.get("tokens", 0),
        kept_tokens=prefix.get("kept", 0),
        changed=prefix.get("first_changed", ""),
        model=answer.get("model", ""),
        usage=counted if counted.prompt else None,
        error=(step.get("error") or {}).get("kind", ""),
    )


# --- rows ----------------------------------------------------------------------------------------


def _rows(sent: SentRequest, prefix: Prefix, former: SentRequest | None) -> tuple[PromptRow, ...]:
    """The rows with what a cache can do for each.

    What the cache serves is a prefix that ends between two parts, or within the history.
    """
    left = prefix.kept_tokens
    if not sent.tool_names:
        left -= tools_part(()).tokens  # the guard counts the empty list
    found = []
    for row in sent.rows:
        cached = row.tokens if left >= row.tokens else 0
        if row.where is Where.HISTORY:
            cached = min(row.tokens, max(0, left))
        left -= cached
        state = _state(row, cached, former)
        found.append(replace(row, cache=state, cached_tokens=cached))
    return tuple(found)


def _state(row: PromptRow, cached: int, former: SentRequest | None) -> CacheState:
    if cached:
        return CacheState.CACHED if cached == row.tokens else CacheState.PARTLY
    if former is None or row.where in {Where.WORDS, Where.BLOCK}:
        return CacheState.NEW
    if row.where is Where.HISTORY:
        return CacheState.BEHIND
    if row.where is Where.TOOLS:
        digests = former.last_digests[:1]
    else:
        digests = tuple(one.digest for one in former.in_system if one.name == row.name)
    if not digests:
        return CacheState.NEW
    return CacheState.BEHIND if digests[0] == row.digest else CacheState.CHANGED


# --- difference -----------------------------------------------------------------------------------
#
# Layers that came, went or changed, tools, and the history: `hearthbot prompt show --diff`.

DIFF_LINES_MAX = 200
LINE_CHARS_MAX = 1_000


class Change(StrEnum):
    """What became of a layer."""

    CAME = "came"
    WENT = "went"
    CHANGED = "changed"
    SPARED = "spared"
    """It was sent before, stands in the history since, and is not sent again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerChange:
    """One layer. `lines` is the unified diff of its text, None where one of the two is not known
    any more; it is bounded, and says so."""

    name: str
    where: Where
    change: Change
    tokens_before: int
    tokens_after: int
    lines: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptDiff:
    """From one request to another. `history_tokens` is by how much the history grew, `broke` what
    broke the prefix of the second one."""

    before: PromptView
    after: PromptView
    layers: tuple[LayerChange, ...]
    tools_came: tuple[str, ...]
    tools_went: tuple[str, ...]
    history_tokens: int
    tokens: int
    broke: str

    @property
    def is_empty(self) -> bool:
        """Return whether layers and tools are the same."""
        return not (self.layers or self.tools_came or self.tools_went)


def diff(before: PromptView, after: PromptView) -> PromptDiff:
    """Compare `before` with `after`, in the order of `after`; what went stands at the end."""
    gone = [row for row in _layers(before) if after.row(row.name) is None]
    return PromptDiff(
        before=before,
        after=after,
        layers=tuple(
            change
            for row in (*_layers(after), *gone)
            if (change := _change(row, before.row(row.name), after)) is not None
        ),
        tools_came=tuple(name for name in after.tools if name not in before.tools),
        tools_went=tuple(name for name in before.tools if name not in after.tools),
        history_tokens=_history(after) - _history(before),
        tokens=after.tokens - before.tokens,
        broke=after.broke,
    )


def _layers(view: PromptView) -> list[PromptRow]:
    return [row for row in view.rows if row.where in {Where.SYSTEM, Where.BLOCK}]


def _history(view: PromptView) -> int:
    row = view.row(HISTORY)
    return row.tokens if row else 0


def _change(row: PromptRow, old: PromptRow | None, after: PromptView) -> LayerChange | None:
    new = after.row(row.name)
    if new is None:
        change = Change.SPARED if row.name in after.spared else Change.WENT
    elif old is None:
        change = Change.CAME
    elif old.digest == new.digest:
        return None
    else:
        change = Change.CHANGED
    is_spared = change is Change.SPARED
    return LayerChange(
        name=row.name,
        where=row.where,
        change=change,
        tokens_before=old.tokens if old else 0,
        tokens_after=new.tokens if new else 0,
        lines=() if is_spared else _lines(old.text if old else "", new.text if new else ""),
    )


def _lines(before: str | None, after: str | None) -> tuple[str, ...] | None:
    """A unified diff without its two lines of file names."""
    if before is None or after is None:
        return None
    lines = list(
        islice(
            unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm=""),
            2,
            DIFF_LINES_MAX + 3,
        )
    )
    if len(lines) > DIFF_LINES_MAX:
        lines[DIFF_LINES_MAX:] = ["… and more"]
    return tuple(
        (line if len(line) <= LINE_CHARS_MAX else f"{line[:LINE_CHARS_MAX]}…") for line in lines
    )
