"""The step `begin` of a turn: fixes the prompt and the history that the turn builds on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import structlog

from agent.budget.budget import Budget
from agent.budget.ledger import charge_of
from agent.history.compaction import SqliteCompactor
from agent.history.window import (
    sent_since,
    shorten_before,
    shortening_step,
    since_compaction,
    window,
)
from agent.models.tokens import factor_of
from agent.prompt.assemble import Placement, assemble, demo_prompt
from agent.prompt.context import ContextBuilder, PromptContext, PromptOccasion
from agent.prompt.prefix_cache import entry_parts, tools_part
from agent.prompt.scene import PromptKind
from agent.prompt.tokens import estimate_tokens
from agent.tools.selection import Selection, ToolSelector
from agent.tools.toolbox import Toolbox
from agent.turn.steps.plan import PromptPlan, PromptTokens, as_sent, plan_as_json
from memory.records.facts import Compaction, CompactionWanted
from memory.records.messages import Role, TurnInput
from memory.records.ports import History, InUse, Json, Models, StoredEntry, TurnContext
from memory.records.request import ModelTraits
from memory.records.transcript import Context
from memory.records.turns import BeginRequest
from memory.records.usage import Level
from memory.stores.conversations import SqliteConversations

log = structlog.get_logger()

WINDOW_SHARE_MAX = 0.6
"""Share of a model's window that history may take, and as much for the prompt (SPEC §5)."""

FITTING_TRIES = 3

OVERFLOW_TOKENS_MIN = 1_000
"""Of a history that is summed up because a request was too large: a smaller one is not to blame."""

LEAN_PROMPT_TOKENS = 1_500
"""Of all layers together, where a budget is near its end (SPEC §13)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptOptions:
    """Bounds of a prompt, in tokens where not named otherwise. `prompt_tokens_max` 0 is the share
    of the window."""

    placement: Placement = field(default_factory=Placement)
    messages_max: int = 50
    tokens_max: int = 24_000
    prompt_tokens_max: int = 0
    max_output_tokens: int = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class _SentHistory:
    """What of the history goes along, the tool results before the id `shortened_to` shortened."""

    stored: tuple[StoredEntry, ...]
    shortened_to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlanDraft:
    """A plan before it is known to fit: its history is sent from `sent_from` on, where that moves
    (that is `sent`), and may have `history_max` tokens where not all of it had room."""

    model: InUse
    gathered: PromptContext
    history: History
    sent_from: int | None
    sent: _SentHistory
    history_max: int | None
    selection: Selection


class BeginStep:
    """Assembles the prompt once; its output names all of it by ids and digests."""

    def __init__(
        self,
        conversations: SqliteConversations,
        gathering: ContextBuilder,
        toolbox: Toolbox,
        choosing: ToolSelector,
        models: Models,
        *,
        options: PromptOptions,
        budget: Budget | None = None,
        compactor: SqliteCompactor | None = None,
    ) -> None:
        """Without a `compactor` nobody else keeps the history small: then it is cut here at the
        limits of messages and tokens too, and not only where it does not fit the model."""
        self._conversations = conversations
        self._gathering = gathering
        self._toolbox = toolbox
        self._choosing = choosing
        self._models = models
        self._options = options
        self._budget = budget
        self._compactor = compactor
        self._told_missing: set[str] = set()

    async def __call__(self, ctx: TurnContext, request: BeginRequest) -> Json:
        """The output is read back as `FixedPrompt`, and by `memory.stores.traces`. What does not
        fit is summed up before any of it is cut off."""
        turn, came = request.turn, request.brought_tokens
        occasion, is_lean = await self._occasion(turn), await self._is_lean(ctx, turn)
        plan = await self.plan(occasion, is_lean=is_lean, brought_tokens=came)
        tokens_max = plan.history_max
        if request.overflow and plan.tokens.history >= OVERFLOW_TOKENS_MIN:
            tokens_max = plan.tokens.history // 2
        compacted = None
        if tokens_max is not None:
            compacted = await self._compacted(occasion.turn, max(1, tokens_max))
        if compacted is not None:
            plan = await self.plan(occasion, is_lean=is_lean, brought_tokens=came)
        await self._conversations.keep_text(plan.prompt.digest, plan.prompt.system)
        self._choosing.remember(plan.gathered.scene.turn, plan.selection)
        # A playbook that needs a tool which does not exist is told once, for the owner to see to:
        # most often an MCP server gives it.
        news = [name for name in plan.selection.unknown if name not in self._told_missing]
        if news:
            self._told_missing.update(news)
            log.warning("prompt.tools_missing", tools=news)
        can_compact = self._compactor is not None and compacted is None and bool(plan.sent)
        return plan_as_json(plan) | {"compacts": can_compact and not plan.model.traits.demo}

    async def _compacted(self, turn: TurnInput, tokens_max: int) -> Compaction | None:
        """Sums up the history now, so that no more than so many tokens of it are sent."""
        if self._compactor is None:
            return None
        return await self._compactor.compact(
            CompactionWanted(
                conversation=turn.conversation,
                lane=turn.message.address.key,
                person_id=turn.person_id,
                is_owner=turn.role is Role.OWNER,
                time_zone=turn.time_zone,
                forced=True,
                tokens_max=tokens_max,
            )
        )

    async def _is_lean(self, ctx: TurnContext, turn: TurnInput) -> bool:
        """Whether a budget is so near its end that the prompt has to be a small one."""
        if self._budget is None:
            return False
        return await self._budget.level(charge_of(ctx.run_id, turn)) is Level.LEAN

    async def _occasion(self, turn: TurnInput) -> PromptOccasion:
        if turn.task is not None:
            return PromptOccasion(turn=turn, kind=PromptKind.SUBAGENT, task=turn.message.text)
        if turn.job is not None:
            kind = PromptKind.HEARTBEAT if turn.job.is_heartbeat else PromptKind.PROACTIVE
            text, full = turn.message.text, turn.job.full_context
            return PromptOccasion(turn=turn, kind=kind, task=text, full_context=full)
        if turn.report is not None:
            # It joins the conversation that is open now, not one that was closed meanwhile.
            here = await self._conversations.current(turn.message.address.key)
            return PromptOccasion(turn=replace(turn, conversation=here))
        return PromptOccasion(turn=turn)

    async def plan(
        self, occasion: PromptOccasion, *, is_lean: bool = False, brought_tokens: int = 0
    ) -> PromptPlan:
        """What would be sent now; files that came add `brought_tokens` to the person's words.
        Raises StorageError."""
        turn = occasion.turn
        model = await self._models.at(turn.message.address.key, agent=turn.agent)
        known = await self._conversations.history(occasion.turn.conversation)
        history, start = since_compaction(known)
        gathered = _told(await self._gathering.gather(occasion, history), history.compaction)
        if model.traits.demo:
            return self._demo(model, gathered, history, start)
        cut = self._window(history.entries, self._tokens_max(model.traits), model.traits)
        sent_from = start if cut is None else cut
        sent = _sent(history, sent_from)
        draft = _PlanDraft(
            model=model,
            gathered=gathered,
            history=history,
            sent_from=sent_from,
            sent=sent,
            history_max=None if cut is None else self._tokens_max(model.traits),
            selection=await self._selected(
                model.traits,
                gathered,
                history,
                is_step=sent_from is not None or sent.shortened_to != history.shortened_to,
            ),
        )
        return self._fitted(draft, is_lean=is_lean, brought_tokens=brought_tokens)

    async def _selected(
        self, traits: ModelTraits, gathered: PromptContext, history: History, *, is_step: bool
    ) -> Selection:
        if not traits.tools:
            return Selection()
        return await self._choosing.choose(
            gathered,
            history,
            is_step=is_step or not history.entries,
            window=traits.window,
        )

    def _fitted(self, draft: _PlanDraft, *, is_lean: bool, brought_tokens: int) -> PromptPlan:
        """The draft with as much of its history and layers as its model takes."""
        history, turn, traits = draft.history, draft.gathered.scene.turn, draft.model.traits
        sent, sent_from, history_max = draft.sent, draft.sent_from, draft.history_max
        tools = self._toolbox.named(draft.selection.names)
        tools_tokens = tools_part(tools).tokens if tools else 0
        # A task, and what a job is to do, are counted with their prompt.
        is_chat = draft.gathered.scene.kind is PromptKind.CHAT
        words = estimate_tokens(turn.message.text) + brought_tokens if is_chat else 0
        output = traits.output_tokens(self._options.max_output_tokens)
        around = output + tools_tokens + words
        # What is estimated here is counted before it is sent, and may then come to more.
        fits = output + int((traits.window - output) / factor_of(draft.model.name))
        for attempt in range(FITTING_TRIES):
            entries = tuple(map(as_sent, shorten_before(sent.stored, sent.shortened_to)))
            history_tokens = sum(part.tokens for part in entry_parts(entries))
            room = self._room(traits, fits - around + words, history_tokens + words)
            room = min(room, LEAN_PROMPT_TOKENS) if is_lean else room
            prompt = assemble(
                draft.gathered.scene,
                sent_contexts=[entry for entry in entries if isinstance(entry, Context)],
                placement=self._options.placement,
                room_tokens=room,
            )
            if not sent.stored or prompt.tokens <= fits - around - history_tokens:
                break
            left = fits - around - prompt.tokens
            history_max = left if history_max is None else min(left, history_max)
            moved = self._window(history.entries, left, traits) if attempt == 0 else None
            # What does not even fit without layers gives way whole: the turn's words stay.
            past_all = history.entries[-1].id + 1
            sent_from = moved if moved is not None and moved != sent_from else past_all
            sent = _sent(history, sent_from)
        return PromptPlan(
            model=draft.model,
            gathered=draft.gathered,
            prompt=prompt,
            history=history,
            sent=sent.stored,
            sent_from=sent_from,
            shortened_to=sent.shortened_to,
            tools=tools,
            selection=draft.selection,
            tokens=PromptTokens(
                prompt=prompt.tokens,
                tools=tools_tokens,
                history=history_tokens,
                words=words,
                room=room,
                window=traits.window,
            ),
            history_max=history_max,
        )

    def _demo(
        self, model: InUse, gathered: PromptContext, history: History, start: int | None
    ) -> PromptPlan:
        """A demo model: a tiny prompt without a summary, and as much history as it bears."""
        prompt = demo_prompt(gathered.scene)
        cut = self._window(history.entries, self._options.tokens_max, model.traits)
        sent_from = start if cut is None else cut
        sent = tuple(sent_since(history.entries, sent_from or 0))
        return PromptPlan(
            model=model,
            gathered=gathered,
            prompt=prompt,
            history=history,
            sent=sent,
            sent_from=sent_from,
            shortened_to=0,
            tools=(),
            selection=Selection(),
            tokens=PromptTokens(
                prompt=estimate_tokens(prompt.system),
                tools=0,
                history=sum(part.tokens for part in entry_parts(one.entry for one in sent)),
                words=estimate_tokens(gathered.scene.turn.message.text),
                room=self._prompt_max(model.traits),
                window=model.traits.window,
            ),
        )

    def _window(
        self, entries: tuple[StoredEntry, ...], tokens_max: int, traits: ModelTraits
    ) -> int | None:
        return window(
            entries,
            messages_max=2 * len(entries) if self._compactor else self._options.messages_max,
            tokens_max=min(tokens_max, int(traits.window * WINDOW_SHARE_MAX)),
        )

    def _tokens_max(self, traits: ModelTraits) -> int:
        """Of history. Where it is summed up behind the scenes, what fits is never cut here."""
        share = int(traits.window * WINDOW_SHARE_MAX)
        return share if self._compactor else min(self._options.tokens_max, share)

    def _room(self, traits: ModelTraits, free: int, said: int) -> int:
        """Tokens that system message and block may have, of what answer and tools leave `free`.

        What was said so far counts up to the next eighth of the window: else each turn of a long
        conversation would cut the layers a little more, and change bytes that were sent.
        """
        eighth = max(1, traits.window // 8)
        reserved = -(-said // eighth) * eighth
        return max(0, min(self._prompt_max(traits), free - reserved))

    def _prompt_max(self, traits: ModelTraits) -> int:
        return self._options.prompt_tokens_max or int(traits.window * WINDOW_SHARE_MAX)


def _sent(history: History, sent_from: int | None) -> _SentHistory:
    """Up to where old tool results are shortened moves when that saves enough, and with the
    window: both are steps."""
    stored = tuple(sent_since(history.entries, sent_from or 0))
    step = shortening_step(stored, history.shortened_to, always=sent_from is not None)
    return _SentHistory(stored=stored, shortened_to=history.shortened_to if step is None else step)


def _told(gathered: PromptContext, compaction: Compaction | None) -> PromptContext:
    """With the summary of what is not sent any more."""
    if compaction is None or not compaction.summary:
        return gathered
    scene = gathered.scene
    recalled = replace(scene.recalled, summary=compaction.summary)
    return replace(gathered, scene=replace(scene, recalled=recalled))
