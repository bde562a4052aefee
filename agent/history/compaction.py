"""Compaction: what of a conversation need not be sent whole any more is summed up.

The history itself is never changed: a row says from where on it is sent, and what stands for the
rest. Called after a turn, where a history does not fit, and by /compact.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Literal

import structlog

from agent.history.digest import DONE, cut_at_sentence, digest
from agent.history.summaries import ONE_CALL_LINES, Summaries
from agent.history.window import last_request, sent_size, shorten_before, tail_start
from agent.policy.taint import tainted_by
from agent.prompt.tokens import estimate_tokens
from memory.records.errors import AssistantError
from memory.records.facts import Compaction, CompactionWanted
from memory.records.messages import ConversationId
from memory.records.ports import Models, StoredEntry
from memory.records.section import HistorySettings
from memory.records.text import clean
from memory.records.usage import Scope, zone_for
from memory.stores.compactions import (
    NEVER,
    HistoryStretch,
    SqliteCompactions,
    effects_of,
    exchanges_in,
    lines_of,
)

log = structlog.get_logger()

CALLS_BETWEEN_MIN = 3
"""Model calls of a conversation between two compactions that nobody asked for (case CO-07)."""

WORTH_SHARE = 4
"""One that nobody asked for takes away at least this part (a quarter) of what is sent."""

REGROWN = 1.25
"""How much larger a history is than when it was restored before it is summed up again."""

EFFECTS_MAX = 12

ASK_S, ASK_IN_TURN_S = 90.0, 30.0
"""Bounds all model calls of one compaction together, and where somebody waits for it; as long again
may be looked for facts."""

Extract = Callable[[ConversationId], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _CutPoint:
    """Where what is sent is parted: before `start` it is summed up, in `summary_tokens`."""

    start: int
    messages: int
    tokens: int
    summary_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Summed:
    """From `start` on the history is sent, and `summary` stands for what is before."""

    kind: Literal["truncate", "summarise", "digest"]
    start: int
    summary: str
    reason: str


class SqliteCompactor:
    """Sums up what need not be sent whole. May be called at any time, also while a turn runs: what
    it does counts from the next turn on."""

    def __init__(
        self,
        compactions: SqliteCompactions,
        models: Models,
        summaries: Summaries,
        *,
        host_zone: tzinfo,
        options: HistorySettings,
        now_ms: Callable[[], int],
        extract: Extract | None = None,
        ask_s: float = ASK_S,
    ) -> None:
        """`models` answer in the conversation, `summaries` asks the cheap one; `extract` finds
        lasting facts in a conversation before any of it is no longer sent."""
        self._compactions = compactions
        self._models = models
        self._summaries = summaries
        self._host_zone = host_zone
        self._options = options
        self._now_ms = now_ms
        self._extract = extract
        self._ask_s = ask_s
        self._locks: dict[ConversationId, asyncio.Lock] = {}

    async def compact(self, wanted: CompactionWanted) -> Compaction | None:
        """Compact if it is due, or forced and there is something to compact; None when nothing was
        done. One at a time in a conversation. Raise StorageError alone: without a model there is a
        mechanical digest."""
        async with self._alone(wanted.charge.conversation):
            found = await self._compactions.stretch(wanted.charge.conversation)
            if found is None or not found.sent:
                return None
            window = (await self._models.at(wanted.charge.lane)).traits.window
            # A long history takes its time to be looked through, and others wait meanwhile.
            cut = await asyncio.to_thread(self._cut, found, wanted, window)
            if cut is None:
                return None
            if not found.is_private and self._extract is not None:
                # What is worth keeping for good is looked for while all of it is there.
                try:
                    async with asyncio.timeout(self._limit_s(wanted)):
                        await self._extract(wanted.charge.conversation)
                except (AssistantError, TimeoutError) as trouble:
                    log.warning("compaction.no_facts", why=str(trouble) or "it took too long")
            material = await self._compactions.unsummed(wanted.charge.conversation, found.floor)
            summed = await self._summed(material, found, cut, wanted)
            sent = await asyncio.to_thread(_as_sent, found)
            messages, tokens = sent_size([one for one in sent if one.id >= summed.start], 0)
            # It is shown answers, which may quote text from outside.
            entries = (one.entry for one in material)
            is_tainted = bool(tainted_by(entries, person_id=wanted.charge.person_id))
            row = Compaction(
                kind=summed.kind,
                from_id=found.start,
                sent_from=summed.start,
                summary=summed.summary,
                reason=summed.reason,
                messages=cut.messages - messages,
                tokens_before=cut.tokens,
                tokens_after=tokens + estimate_tokens(summed.summary),
                tainted=is_tainted or (found.former is not None and found.former.tainted),
            )
            if row.tokens_after >= row.tokens_before:
                return None  # a summary as long as what it stands for
            made = await self._compactions.add(
                wanted.charge.conversation, row, after=found.newest, generation=found.generation
            )
        if made is not None:
            log.info(
                "history.compacted",
                conversation=wanted.charge.conversation,
                kind=made.kind,
                messages=made.messages,
                tokens_before=made.tokens_before,
                tokens_after=made.tokens_after,
            )
        return made

    @asynccontextmanager
    async def _alone(self, conversation: ConversationId) -> AsyncIterator[None]:
        lock = self._locks.setdefault(conversation, asyncio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():
                self._locks.pop(conversation, None)

    # --- whether, and where ----------------------------------------------------------------------

    def _cut(
        self, found: HistoryStretch, wanted: CompactionWanted, window: int
    ) -> _CutPoint | None:
        """Where to cut; None where it is not due, or there is nothing to sum up."""
        options, sent = self._options, _as_sent(found)
        messages, tokens = sent_size(sent, 0)
        summary_tokens = min(options.summary_tokens, max(window // 8, 60))
        if wanted.forced and not wanted.tokens_max:
            start = self._tail(sent, tokens_max=min(options.tail_tokens, tokens // 4))
        elif wanted.forced:
            if found.newest != NEVER and found.answered_since < CALLS_BETWEEN_MIN:
                return None
            start = self._fitting_tail(sent, wanted.tokens_max)
        else:
            if not self._is_due(found, sent, (messages, tokens), window):
                return None
            start = self._tail(sent, tokens_max=options.tail_tokens)
        tail = [one for one in sent if one.id >= start]
        left = sent_size(tail, 0)
        dropped = messages - left[0], tokens - left[1]
        if len(tail) == len(sent):
            return None
        is_little = dropped[1] * WORTH_SHARE < tokens and (
            messages <= options.messages_max or dropped[0] * WORTH_SHARE < messages
        )
        if not wanted.forced and is_little:
            return None
        return _CutPoint(
            start=start, messages=messages, tokens=tokens, summary_tokens=summary_tokens
        )

    def _is_due(
        self, found: HistoryStretch, sent: Sequence[StoredEntry], size: tuple[int, int], window: int
    ) -> bool:
        options, newest = self._options, found.newest
        messages, tokens = size
        if newest != NEVER and found.answered_since < CALLS_BETWEEN_MIN:
            return False
        if max(tokens, last_request(sent)) > window * options.window_share:
            return True
        if self._now_ms() - newest.made_ms < options.compact_every_s * 1000:
            return False
        if newest.undone_ms is not None and tokens <= newest.tokens_before * REGROWN:
            return False
        return tokens > options.tokens_max or messages > options.messages_max

    def _tail(
        self, sent: Sequence[StoredEntry], *, tokens_max: int, exchanges_min: int | None = None
    ) -> int:
        options = self._options
        start = tail_start(
            sent,
            messages_max=options.messages_max // 2,
            tokens_max=tokens_max,
            exchanges_min=options.tail_exchanges if exchanges_min is None else exchanges_min,
        )
        return start if start is not None else 0

    def _fitting_tail(self, sent: Sequence[StoredEntry], tokens_max: int) -> int:
        """In no more than so many tokens, with half of them free for what comes; the exchanges that
        always stay give way only where they do not fit at all."""
        half = min(self._options.tail_tokens, tokens_max // 2)
        start = sent[0].id
        for exchanges in range(self._options.tail_exchanges, -1, -1):
            start = self._tail(sent, tokens_max=half, exchanges_min=exchanges)
            tail = [one for one in sent if one.id >= start]
            if sent_size(tail, 0)[1] <= tokens_max:
                break
        return start

    # --- summing up ------------------------------------------------------------------------------

    def _limit_s(self, wanted: CompactionWanted) -> float:
        return min(self._ask_s, ASK_IN_TURN_S) if wanted.tokens_max else self._ask_s

    async def _summed(
        self,
        material: Sequence[StoredEntry],
        found: HistoryStretch,
        cut: _CutPoint,
        wanted: CompactionWanted,
    ) -> _Summed:
        """By a model, or mechanically where none can: nothing is lost by its failure."""
        former = found.former.summary if found.former else ""
        before = [one for one in material if one.id < cut.start]
        try:
            async with asyncio.timeout(self._limit_s(wanted)):
                return await self._by_model(material, former, cut, wanted)
        except (AssistantError, TimeoutError) as trouble:
            why = str(trouble) or "the model took too long"
            log.warning("compaction.without_model", why=why)
        summary = await asyncio.to_thread(digest, before, former, tokens_max=cut.summary_tokens)
        return _Summed(kind="digest", start=cut.start, summary=summary, reason=why)

    async def _by_model(
        self, material: Sequence[StoredEntry], former: str, cut: _CutPoint, wanted: CompactionWanted
    ) -> _Summed:
        charge = wanted.charge
        zone = zone_for(Scope.PERSON, charge.time_zone, self._host_zone)
        lines = await asyncio.to_thread(lines_of, material, zone)
        detected = await self._summaries.detect(lines, former, charge)
        boundary = detected.boundary
        if (
            boundary is not None
            and boundary >= cut.start
            and detected.confidence >= self._options.boundary_confidence
        ):
            turns = exchanges_in(material)
            # Where the turn of that message begins.
            start = next((turn[0].id for turn in turns if turn[-1].id >= boundary), boundary)
            done = [one for one in material if one.id < start]
            summary = await asyncio.to_thread(_finished, former, done, cut.summary_tokens)
            return _Summed(kind="truncate", start=start, summary=summary, reason=detected.reason)
        before = [one for one in material if one.id < cut.start]
        lines = [line for line in lines if line.id < cut.start]
        summary = detected.summary

        def older(first: int, former: str) -> str:
            # What is more than a model is shown, as a digest.
            shown = [one for one in before if one.id < first]
            return digest(shown, former, tokens_max=cut.summary_tokens)

        if len(lines) > ONE_CALL_LINES:
            summary = await self._summaries.of(lines, former, charge, older=older)
        summary = await asyncio.to_thread(_finished, summary, before, cut.summary_tokens)
        return _Summed(kind="summarise", start=cut.start, summary=summary, reason=detected.reason)


def _as_sent(found: HistoryStretch) -> list[StoredEntry]:
    """With old tool results as short as they are sent."""
    entries = shorten_before(found.sent, found.shortened_to)
    return [replace(one, entry=entry) for one, entry in zip(found.sent, entries, strict=True)]


def _finished(summary: str, before: Sequence[StoredEntry], tokens_max: int) -> str:
    """Within its bound, with what was really done at its end where it does not say so: what is
    forgotten may be done twice."""
    summary = clean(summary).strip()
    told, missing = summary.casefold(), list[str]()
    for effect in dict.fromkeys(effects_of(before)):
        # It is told where a text names what a tool was called with; of one without, the tool.
        tool, _, values = effect.casefold().partition(" ")
        words = [word for word in values.split() if len(word) > 3 or any(map(str.isdigit, word))]
        if not any(word in told for word in words or [tool]):
            missing.append(effect)
    if not missing:
        return cut_at_sentence(summary, tokens_max)
    line = cut_at_sentence(f"{DONE}{'; '.join(missing[-EFFECTS_MAX:])}.", tokens_max // 2)
    return f"{cut_at_sentence(summary, tokens_max - estimate_tokens(line) - 1)}\n{line}".strip()
