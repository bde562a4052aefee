"""The step `model` of a turn: one request to the model, streamed to the person as it comes."""

from __future__ import annotations

import json

import structlog

from agent.errors import AssistantError, ContextTooLong, StorageError
from agent.guards import VisibleText
from agent.history import estimate_tokens, repair, text_of
from agent.library import Library
from agent.messages import TurnInput
from agent.ports import Conversations, Draft, Drafts, Json, Model, TurnContext
from agent.request import ModelRequest
from agent.tools.toolbox import Toolbox
from agent.transcript import Entry, Note, entry_from_json, to_json

log = structlog.get_logger()

TOKENS_PER_CHAR_MAX = 2.5
"""Of emoji, the costliest: a request that is short by this measure is not counted."""

SYSTEMS_KEPT_MAX = 100


class Asking:
    """Builds the request from what `begin` fixed and the turn's own entries; asks; streams."""

    def __init__(
        self,
        model: Model,
        conversations: Conversations,
        drafts: Drafts,
        *,
        toolbox: Toolbox,
        library: Library,
        temperature: float,
        max_output_tokens: int,
    ) -> None:
        self._model = model
        self._conversations = conversations
        self._drafts = drafts
        self._toolbox = toolbox
        self._library = library
        self._temperature = temperature
        self._max_output_tokens = max_output_tokens
        self._systems: dict[str, str] = {}

    async def __call__(self, ctx: TurnContext, question: Json) -> Json:
        """Answers with `{"answer": ...}` or `{"error": {"kind", "text"}}`, beside what of the
        history was sent: `turns_sent`, and `sent_from` where that is less than there is."""
        turn = TurnInput.from_json(question["turn"])
        sent, facts = await self._history(turn, question)
        request = await self._request(sent, question)
        draft = self._drafts.open(ctx.run_id, turn.message.address)
        try:
            self._require_fit(request)
            answer = await self._model.answer(request, on_text=_Stream(draft, question["shown"]))
        except StorageError:
            raise
        except AssistantError as error:
            kind = type(error).__name__
            log.warning("model.error", model=self._model.name, kind=kind, why=str(error))
            return facts | {"error": {"kind": kind, "text": str(error)}}
        log.info(
            "model.answer",
            model=answer.model,
            finish=answer.finish,
            calls=[call.name for call in answer.calls],
            prompt_tokens=answer.usage.prompt,
            completion_tokens=answer.usage.completion,
            cached_tokens=answer.usage.cached,
        )
        return facts | {"answer": to_json(answer)}

    async def _history(self, turn: TurnInput, question: Json) -> tuple[list[Entry], Json]:
        """The newest whole turns of the history, in the share that is asked for."""
        upto, since = question["upto"], question["sent_from"] or 0
        history = await self._conversations.history(turn.conversation, upto=upto)
        stored = [one for one in history.entries if one.id >= since]
        runs = list(dict.fromkeys(one.run_id for one in stored))
        kept = runs[len(runs) - int(len(runs) * question["history_share"]) :]
        if len(kept) == len(runs):
            return [one.entry for one in stored], {"turns_sent": len(runs), "sent_from": None}
        sent = [one for one in stored if one.run_id in set(kept)]
        sent_from = sent[0].id if sent else upto + 1
        return [one.entry for one in sent], {"turns_sent": len(kept), "sent_from": sent_from}

    async def _request(self, sent: list[Entry], question: Json) -> ModelRequest:
        now = [entry_from_json(data) for data in question["entries"]]
        return ModelRequest(
            system=await self._system(question["system"]),
            entries=repair(self._told(sent + now) + self._hint(question["hint"])),
            tools=self._toolbox.named(question["tools"]),
            temperature=self._temperature,
            max_output_tokens=self._output_tokens_max(),
        )

    def _told(self, entries: list[Entry]) -> list[Entry]:
        """A demo model would take notes about a conversation for the words to repeat."""
        if not self._model.traits.demo:
            return entries
        return [entry for entry in entries if not isinstance(entry, Note)]

    def _require_fit(self, request: ModelRequest) -> None:
        """A request that is larger than the window is never sent (SPEC §5)."""
        room = self._model.traits.window - request.max_output_tokens
        texts = [request.system, *(text_of(entry) for entry in request.entries)]
        texts += [json.dumps([tool.description, tool.parameters]) for tool in request.tools]
        if sum(len(text) for text in texts) * TOKENS_PER_CHAR_MAX <= room:
            return
        tokens = sum(estimate_tokens(text) for text in texts)
        if tokens > room:
            raise ContextTooLong(
                f"The request has about {tokens} tokens; {self._model.name} takes {room}."
            )

    def _output_tokens_max(self) -> int:
        """A small window must leave room for the prompt, so the answer gets a quarter at most."""
        return min(self._max_output_tokens, self._model.traits.window // 4)

    def _hint(self, name: str) -> list[Entry]:
        """A note for this one request: what the last answer lacked, or that it is the last."""
        return [Note(text=self._library.texts()[f"hint_{name}"].strip())] if name else []

    async def _system(self, digest: str) -> str:
        if digest not in self._systems:
            if len(self._systems) >= SYSTEMS_KEPT_MAX:
                self._systems.clear()
            self._systems[digest] = await self._conversations.text(digest) or ""
        return self._systems[digest]


class _Stream:
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

    def restart(self) -> None:
        """The call is made again: what came of the failed one is taken back."""
        self._visible = VisibleText()
        self._draft.text(self._shown)
