"""The step `begin` of a turn: fixes the prompt and the history that the turn builds on."""

from __future__ import annotations

from dataclasses import replace

import structlog

from agent.budget.budget import Budget
from agent.budget.ledger import background_charge, charge_of
from agent.history.compaction import SqliteCompactor
from agent.history.window import (
    sent_since,
    shortening_step,
    since_compaction,
    window,
)
from agent.models.chat_request import factor_of
from agent.prompt.assemble import assemble, demo_prompt
from agent.prompt.context import ContextBuilder
from agent.prompt.prefix_cache import entry_parts, tools_part
from agent.prompt.scene import PromptKind, PromptOccasion
from agent.prompt.tokens import estimate_tokens
from agent.tools.selection import ToolSelector
from agent.tools.toolbox import Toolbox
from agent.turn.steps.plan import PromptPlan, PromptTokens, plan_as_json
from memory.records.facts import CompactionWanted
from memory.records.ports import Json, Models, TurnContext
from memory.records.transcript import Context
from memory.records.turns import BeginRequest
from memory.records.usage import Level, Purpose
from memory.stores.conversations import SqliteConversations

log = structlog.get_logger()

WINDOW_SHARE_MAX = 0.6
"""Share of a model's window that history may take, and as much for the prompt (SPEC §5)."""

FITTING_TRIES = 3

OVERFLOW_TOKENS_MIN = 1_000
"""Of a history that is summed up because a request was too large: a smaller one is not to blame."""

LEAN_PROMPT_TOKENS = 1_500
"""Of all layers together, where a budget is near its end (SPEC §13)."""


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
        output_tokens_max: int,
        budget: Budget | None = None,
        compactor: SqliteCompactor | None = None,
    ) -> None:
        """Without a `compactor` a plan can be looked at, and no turn be begun whose history has to
        be summed up."""
        self._conversations = conversations
        self._gathering = gathering
        self._toolbox = toolbox
        self._choosing = choosing
        self._models = models
        self._output_tokens_max = output_tokens_max
        self._budget = budget
        self._compactor = compactor
        self._told_missing: set[str] = set()

    async def __call__(self, ctx: TurnContext, request: BeginRequest) -> Json:
        """The output is read back as `FixedPrompt`, and by `memory.stores.traces`. What does not
        fit is summed up before any of it is cut off."""
        turn, came = request.turn, request.brought_tokens
        if turn.report is not None:
            # It joins the conversation that is open now, not one that was closed meanwhile.
            here = await self._conversations.current(turn.message.address.key)
            turn = replace(turn, conversation=here)
        occasion, is_lean = PromptOccasion.of(turn), False
        if self._budget is not None:
            # Whether a budget is so near its end that the prompt has to be a small one.
            is_lean = await self._budget.level(charge_of(ctx.run_id, turn)) is Level.LEAN
        plan = await self.plan(occasion, is_lean=is_lean, brought_tokens=came)
        tokens_max = plan.history_max
        if request.overflow and plan.tokens.history >= OVERFLOW_TOKENS_MIN:
            tokens_max = plan.tokens.history // 2
        compacted = None
        if tokens_max is not None and self._compactor is not None:
            charge = background_charge(Purpose.COMPACTION, turn)
            wanted = CompactionWanted(charge=charge, forced=True, tokens_max=max(1, tokens_max))
            compacted = await self._compactor.compact(wanted)
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

    async def plan(
        self, occasion: PromptOccasion, *, is_lean: bool = False, brought_tokens: int = 0
    ) -> PromptPlan:
        """Return what would be sent now; files that came add `brought_tokens` to the person's
        words. Raise StorageError."""
        turn = occasion.turn
        model = await self._models.at(turn.message.address.key, agent=turn.agent)
        traits = model.traits
        known = await self._conversations.history(turn.conversation)
        history, start = since_compaction(known)
        gathered = await self._gathering.gather(occasion, history)
        if history.compaction is not None and history.compaction.summary:
            # With the summary of what is not sent any more.
            recalled = replace(gathered.scene.recalled, summary=history.compaction.summary)
            gathered = replace(gathered, scene=replace(gathered.scene, recalled=recalled))
        # History is summed up behind the scenes: what fits is never cut here.
        share = int(traits.window * WINDOW_SHARE_MAX)
        cut = window(history.entries, tokens_max=share)
        plan = _sending(
            PromptPlan(
                model=model,
                gathered=gathered,
                history=history,
                sent_from=start if cut is None else cut,
                # A demo model cannot sum up what it has no room for.
                history_max=None if cut is None or traits.demo else share,
            )
        )
        if traits.tools and not traits.demo:
            is_step = plan.sent_from is not None or plan.shortened_to != history.shortened_to
            selection = await self._choosing.choose(
                gathered,
                history,
                is_step=is_step or not history.entries,
                window=traits.window,
            )
            tools = self._toolbox.named(selection.names)
            plan = replace(plan, selection=selection, tools=tools)
        return self._fitted(plan, is_lean=is_lean, brought_tokens=brought_tokens)

    def _fitted(self, plan: PromptPlan, *, is_lean: bool, brought_tokens: int) -> PromptPlan:
        """Return the plan with as much of its history and layers as its model takes."""
        scene, traits, history = plan.gathered.scene, plan.model.traits, plan.history
        tools_tokens = tools_part(plan.tools).tokens if plan.tools else 0
        # A task, and what a job is to do, are counted with their prompt.
        is_chat = scene.kind is PromptKind.CHAT
        words = estimate_tokens(scene.turn.message.text) + brought_tokens if is_chat else 0
        output = traits.output_tokens(self._output_tokens_max)
        around = output + tools_tokens + words
        # What is estimated here is counted before it is sent, and may then come to more.
        fits = output + int((traits.window - output) / factor_of(plan.model.name))
        share = int(traits.window * WINDOW_SHARE_MAX)
        prompt_max = self._gathering.settings.max_tokens or share
        for attempt in range(FITTING_TRIES):
            entries = plan.entries()
            history_tokens = sum(part.tokens for part in entry_parts(entries))
            # What was said so far counts up to the next eighth of the window: else each turn of a
            # long conversation would cut the layers a little more, and change bytes that were sent.
            eighth = max(1, traits.window // 8)
            reserved = -(-(history_tokens + words) // eighth) * eighth
            room = max(0, min(prompt_max, fits - around + words - reserved))
            room = min(room, LEAN_PROMPT_TOKENS) if is_lean else room
            # The prompt of a demo model is a tiny one, without a summary.
            prompt = (
                demo_prompt(scene)
                if traits.demo
                else assemble(
                    scene,
                    sent_contexts=[entry for entry in entries if isinstance(entry, Context)],
                    settings=self._gathering.settings,
                    room_tokens=room,
                )
            )
            if not plan.sent or prompt.tokens <= fits - around - history_tokens:
                break
            left = fits - around - prompt.tokens
            fitting = left if plan.history_max is None else min(left, plan.history_max)
            moved = None
            if attempt == 0:
                moved = window(history.entries, tokens_max=min(left, share))
            # What does not even fit without layers gives way whole: the turn's words stay.
            past_all = history.entries[-1].id + 1
            sent_from = moved if moved is not None and moved != plan.sent_from else past_all
            plan = _sending(replace(plan, sent_from=sent_from, history_max=fitting))
        tokens = PromptTokens(
            prompt=prompt.tokens,
            tools=tools_tokens,
            history=history_tokens,
            words=words,
            room=room,
            window=traits.window,
        )
        history_max = None if traits.demo else plan.history_max
        return replace(plan, prompt=prompt, tokens=tokens, history_max=history_max)


def _sending(plan: PromptPlan) -> PromptPlan:
    """Return the plan with what is sent of its history from `sent_from` on.

    Up to where old tool results are shortened moves when that saves enough, and with the window:
    both are steps.
    """
    history = plan.history
    stored = tuple(sent_since(history.entries, plan.sent_from or 0))
    step = shortening_step(stored, history.shortened_to, always=plan.sent_from is not None)
    return replace(plan, sent=stored, shortened_to=history.shortened_to if step is None else step)
