"""The step `model` of a turn: one request to the model, streamed to the person as it comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import structlog

from agent.budget.ledger import charge_of
from agent.budget.payment import NO_PAYMENT, Payment
from agent.files.images import KeptPictures, caller_of
from agent.guards.action_claims import looks_unhelpful
from agent.history.window import repair, sent_since, shorten_before
from agent.models.chat_request import TokenCounter
from agent.prompt.layers import knowledge as notes
from agent.prompt.prefix_cache import PrefixPart, compare, entry_parts, schema_texts, tools_part
from agent.prompt.templates import PromptLibrary
from agent.prompt.tokens import chars_of, picture_tokens, text_of
from agent.tools.toolbox import Toolbox
from agent.turn.progress import reply_of
from agent.turn.steps.plan import as_sent
from memory.records.errors import AccountRefused, AssistantError, ContextTooLong, StorageError
from memory.records.messages import ConversationId, TurnInput
from memory.records.ports import Draft, Drafts, Json, Model, Models, TurnContext
from memory.records.text import VisibleText, visible
from memory.records.transcript import (
    Answered,
    Context,
    Entry,
    ModelRequest,
    Note,
    Said,
    ToolCall,
    ToolResult,
    changed_once,
    to_json,
)
from memory.records.turns import TurnState
from memory.records.usage import SpendingRefused
from memory.stores.conversations import SqliteConversations
from memory.stores.traces import SqliteTraces

log = structlog.get_logger()

TOKENS_PER_CHAR_MAX = 2.5
"""Of emoji, the costliest: a request that is short by this measure is not counted."""

SYSTEMS_KEPT_MAX = 100

HISTORY_SHARES = (1.0, 0.5, 0.25, 0.0)
"""What is sent of the history's turns, the newest ones, each time a request does not fit: the older
half goes twice (SPEC §8.5), then the rest."""

WARMER = 0.1
"""What the next try after a malformed call adds to the temperature (SPEC §8.4)."""


CONVERSATIONS_KEPT_MAX = 1_000
"""Whose last request is remembered without asking the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStepOptions:
    """`redact` takes the secrets of the settings out of whatever would be sent (SPEC §15).
    `pictures` are where those of a conversation lie; without, none is shown."""

    temperature: float = 0.4
    temperatures: Mapping[str, float] = field(default_factory=dict)
    """Of further agents, by their names."""
    max_output_tokens: int = 8_192
    redact: Callable[[str], str] = str
    pictures: KeptPictures | None = None
    cheap_model: str = ""
    """Asked in place of the usual one where a budget has room for no more; empty: there is none."""


class ModelStep:
    """Builds the request from what `begin` fixed and the turn's own entries; asks; streams."""

    def __init__(
        self,
        models: Models,
        conversations: SqliteConversations,
        drafts: Drafts,
        traces: SqliteTraces,
        *,
        toolbox: Toolbox,
        library: PromptLibrary,
        options: ModelStepOptions,
        payment: Payment = NO_PAYMENT,
    ) -> None:
        self._models = models
        self._conversations = conversations
        self._drafts = drafts
        self._former = _FormerPrefixes(traces)
        self._toolbox = toolbox
        self._library = library
        self._temperature = options.temperature
        self._temperatures = options.temperatures
        self._max_output_tokens = options.max_output_tokens
        self._redact = options.redact
        self._cheap_model = options.cheap_model
        self._payment = payment
        self._pictures = options.pictures
        self._systems: dict[str, str] = {}
        self._fit_to_send = changed_once(self._made_fit_to_send)
        self._tokens = TokenCounter()

    async def __call__(self, ctx: TurnContext, state: TurnState) -> Json:
        """Answers with `{"answer": ...}` or `{"error": {"kind", "text"}}`, beside what of the
        history was sent (`turns_sent`, and `sent_from` where that is less than there is), what a
        cache can serve of it (`prefix`), and the hint that was sent as the last entry (`hint`).
        `stand_in` names the model that answered and the one that should have, where they differ;
        `owner` holds sentences for the owner."""
        turn, prompt = state.turn, state.prompt
        model = await self._models.named(prompt.model, agent=turn.agent)
        sent, facts = await self._history(state)
        sent += state.entries
        if hint := state.hint or ("" if state.offered else "sum_up"):
            detail = state.detail if state.hint else ""
            facts["hint"] = notes.hint(self._library.texts(), hint, detail)
            sent.append(Note(text=facts["hint"]))
        request = await self._request(ctx, model, sent, state)
        facts |= await self._compared(state, request)
        draft = self._drafts.open(ctx.run_id, turn.message.address)
        try:
            await self._require_fit(model, request)
            stream = _DraftStream(draft, reply_of(state.entries))
            async with self._payment.call(
                model.name,
                charge_of(ctx.run_id, turn),
                tokens_in=facts["prefix"]["tokens"],
                tokens_out=request.max_output_tokens,
                cheap_model=self._cheap_model,
            ) as call:
                asked = model
                if call.model != model.name:
                    facts["cheaper"] = call.model
                    asked = await self._models.named(call.model, agent=turn.agent)
                answer = await asked.answer(call.bounded(request), on_text=stream)
                call.answered(answer.usage, by=answer.model)
            if answer.calls:
                stream.ended()
        except StorageError:
            raise
        except AssistantError as error:
            kind = type(error).__name__
            log.warning("model.error", model=model.name, kind=kind, why=str(error))
            return facts | self._failed(error)
        log.info(
            "model.answer",
            model=answer.model,
            finish=answer.finish,
            calls=[call.name for call in answer.calls],
            prompt_tokens=answer.usage.prompt,
            completion_tokens=answer.usage.completion,
            cached_tokens=answer.usage.cached,
        )
        facts["owner"] = list(self._models.untold())
        if answer.model and answer.model not in {model.name, facts.get("cheaper")}:
            facts["stand_in"] = [answer.model, model.name]
        if prompt.auto_invoke and not answer.calls:
            facts["unhelpful"] = self._is_unhelpful(answer.text, turn.message.text)
        return facts | {"answer": to_json(answer)}

    def _failed(self, error: AssistantError) -> Json:
        """Return the trouble; the turn tells it. `is_known`: the owner has heard of it."""
        untold = self._models.untold()
        owner = [text for text in untold if str(error) not in text]
        is_told = len(owner) == len(untold)
        is_known = isinstance(error, AccountRefused) and error.is_known and is_told
        told: Json = {"kind": type(error).__name__, "text": str(error), "is_known": is_known}
        if isinstance(error, SpendingRefused):
            told |= {"passes": error.passes, "free_at_ms": error.free_at_ms}
        size = {}
        if isinstance(error, ContextTooLong):
            size = {"over": error.over, "room": error.room}
        return {"owner": owner, "error": told, **size}

    async def _compared(self, state: TurnState, request: ModelRequest) -> Json:
        """The guard of the prefix, and the one log line of this prompt."""
        turn, layers = state.turn, state.prompt.layers
        parts = [
            tools_part(request.tools),
            *(
                PrefixPart(layer["name"], layer["digest"], layer["tokens"])
                for layer in layers
                if layer["system"]
            ),
            *entry_parts(request.entries),
        ]
        former = await self._former.of(turn)
        prefix = compare(former, parts)
        digests = [part.digest for part in parts]
        self._former.remember(turn, digests)
        log.info(
            "prompt",
            kind=state.prompt.kind,
            layers=[layer["name"] for layer in layers],
            tokens=prefix.tokens,
            chars=len(request.system) + sum(map(chars_of, request.entries)),
            entries=len(request.entries),
            cacheable=round(prefix.share, 3),
            changed=prefix.first_changed,
        )
        return {
            "prefix": {
                "first_changed": prefix.first_changed,
                "kept": prefix.kept_tokens,
                "tokens": prefix.tokens,
                "intact": prefix.intact,
            },
            "digests": " ".join(digests),
        }

    def _is_unhelpful(self, reply: str, message: str) -> bool:
        texts = self._library.texts()
        lists = texts["unhelpful_short"], texts["unhelpful_any"]
        return looks_unhelpful(visible(reply), *lists, message=message)

    async def _history(self, state: TurnState) -> tuple[list[Entry], Json]:
        """The newest whole turns of the history, in the share that is asked for.

        It begins where the turn's `begin` said, also when a compaction moved its start meanwhile.
        """
        prompt = state.prompt
        upto, short = prompt.upto, prompt.shortened_to
        entries = await self._conversations.entries(state.turn.conversation, upto=upto)
        stored = sent_since(entries, prompt.since)
        runs = list(dict.fromkeys(one.run_id for one in stored))
        kept = set(runs[len(runs) - int(len(runs) * HISTORY_SHARES[state.shrinks]) :])
        if len(kept) == len(runs):
            return [*shorten_before(stored, short)], {"turns_sent": len(runs), "sent_from": None}
        sent = [one for one in stored if one.run_id in kept]
        sent_from = sent[0].id if sent else upto + 1
        return [*shorten_before(sent, short)], {"turns_sent": len(kept), "sent_from": sent_from}

    async def _request(
        self, ctx: TurnContext, model: Model, sent: list[Entry], state: TurnState
    ) -> ModelRequest:
        prompt, traits = state.prompt, model.traits
        if traits.demo:
            # It would take notes about a conversation for the words to repeat.
            sent = [entry for entry in sent if not isinstance(entry, Note)]
        if prompt.system not in self._systems:
            if len(self._systems) >= SYSTEMS_KEPT_MAX:
                self._systems.clear()
            self._systems[prompt.system] = await self._conversations.text(prompt.system) or ""
        # Cooler where a tool fits the message well, a little warmer after a malformed call.
        warmth = self._temperatures.get(state.turn.agent, self._temperature)
        warmth = warmth if prompt.cooler is None else min(warmth, prompt.cooler)
        warmth += WARMER if state.malformed == 1 else 0.0
        # A message that wants no thinking is not thought about for long (SPEC §5).
        lowered = prompt.direct and traits.effort
        request = ModelRequest(
            system=self._redact(self._systems[prompt.system]),
            entries=tuple(map(self._fit_to_send, repair(sent))),
            tools=self._toolbox.named(prompt.tools if state.offered else ()),
            temperature=min(warmth, 2.0),
            max_output_tokens=traits.output_tokens(self._max_output_tokens),
            extra={"reasoning_effort": "low"} if lowered else {},
        )
        if self._pictures is None or not traits.vision:
            return request
        urls = await self._pictures.urls(request.entries, caller_of(ctx.run_id, state.turn))
        return replace(request, pictures=urls) if urls else request

    def _made_fit_to_send(self, entry: Entry) -> Entry:
        """Fence an entry, and take the secrets of the settings out of it, whoever wrote them there:
        looked for once in each entry, as long as it is held."""
        redact, entry = self._redact, as_sent(entry)
        match entry:
            case Answered():
                calls = tuple(_with(call, arguments=redact(call.arguments)) for call in entry.calls)
                return _with(entry, text=redact(entry.text), calls=calls)
            case ToolResult():
                return _with(entry, content=redact(entry.content))
            case Said():
                return _with(entry, text=redact(entry.text), quote=redact(entry.quote))
            case Note():
                return _with(entry, text=redact(entry.text), content=redact(entry.content))
            case Context():
                return _with(entry, text=redact(entry.text))

    async def _require_fit(self, model: Model, request: ModelRequest) -> None:
        """A request that is larger than the window is never sent (SPEC §5): counted exactly where
        the estimate leaves that open."""
        room = model.traits.window - request.max_output_tokens
        schemas = schema_texts(request.tools)
        seen = sum(map(picture_tokens, request.entries))
        chars = len(request.system) + sum(map(len, schemas)) + sum(map(chars_of, request.entries))
        if seen + chars * TOKENS_PER_CHAR_MAX <= room:
            return
        texts = [request.system, *map(text_of, request.entries), *schemas]
        tokens = seen + await self._tokens.total(model.name, texts, limit=room)
        if tokens > room:
            raise ContextTooLong(
                f"The request has about {tokens} tokens; {model.name} takes {room}.",
                over=tokens - room,
                room=room,
            )


P = TypeVar("P", ToolCall, Answered, ToolResult, Said, Note, Context)


def _with(part: P, **texts: Any) -> P:
    """The part itself where its texts are these already: a long history holds hundreds of them,
    and hardly ever a secret."""
    if all(getattr(part, name) == text for name, text in texts.items()):
        return part
    return replace(part, **texts)


class _FormerPrefixes:
    """The digests of each conversation's last request; after a restart from the recorded steps."""

    def __init__(self, traces: SqliteTraces) -> None:
        self._traces = traces
        self._known: dict[ConversationId, list[str] | None] = {}

    async def of(self, turn: TurnInput) -> list[str] | None:
        """Return None when nothing was sent in this conversation, as far as is known."""
        if turn.conversation not in self._known:
            recorded = None
            for trace in await self._traces.prompts(turn.message.address.key, limit=2):
                if trace.begin.get("conversation") == turn.conversation and trace.asked:
                    recorded = str(trace.asked[-1].get("digests", "")).split()
                    break
            self._known[turn.conversation] = recorded
        return self._known[turn.conversation]

    def remember(self, turn: TurnInput, digests: list[str]) -> None:
        """What was just sent."""
        if len(self._known) >= CONVERSATIONS_KEPT_MAX:
            self._known.clear()
        self._known[turn.conversation] = digests


class _DraftStream:
    """What `on_text` feeds: hidden text is taken out before a person sees any of it."""

    def __init__(self, draft: Draft, shown: str) -> None:
        self._draft = draft
        self._shown = shown
        self._visible = VisibleText()

    def __call__(self, piece: str) -> None:
        self._visible.feed(piece)
        so_far = self._visible.so_far()
        if so_far:
            self._draft.text(f"{self._shown}\n\n{so_far}" if self._shown else so_far)

    def ended(self) -> None:
        """Shows what was held back, while tools run."""
        self._visible.end()
        self("")

    def restart(self) -> None:
        """The call is made again: what came of the failed one is taken back."""
        self._visible = VisibleText()
        self._draft.text(self._shown)
