"""The step `model` of a turn: one request to the model, streamed to the person as it comes."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from agent.errors import AssistantError, StorageError
from agent.guards import VisibleText
from agent.history import repair, shorten
from agent.library import Library
from agent.messages import RunId, TurnInput
from agent.ports import Conversations, Draft, Drafts, Json, Model, StoredEntry, TurnContext
from agent.request import ModelRequest
from agent.tools.toolbox import Toolbox
from agent.transcript import Entry, Note, entry_from_json, to_json

log = structlog.get_logger()

RESULT_CHARS_IN_NEED = 400
"""What is kept of an answered tool result when the request does not fit otherwise."""


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
        """Answers with `{"answer": ...}` or `{"error": {"kind", "text"}}`."""
        turn = TurnInput.from_json(question["turn"])
        request = await self._request(turn, question)
        stream = _Stream(self._drafts.open(ctx.run_id, turn.message.address), question["shown"])
        try:
            answer = await self._model.answer(request, on_text=stream)
        except StorageError:
            raise
        except AssistantError as error:
            kind = type(error).__name__
            log.warning("model.error", model=self._model.name, kind=kind, why=str(error))
            return {"error": {"kind": kind, "text": str(error)}}
        log.info(
            "model.answer",
            model=answer.model,
            finish=answer.finish,
            calls=[call.name for call in answer.calls],
            prompt_tokens=answer.usage.prompt,
            completion_tokens=answer.usage.completion,
            cached_tokens=answer.usage.cached,
        )
        return {"answer": to_json(answer)}

    async def _request(self, turn: TurnInput, question: Json) -> ModelRequest:
        history = await self._conversations.history(turn.conversation, upto=question["upto"])
        since = question["sent_from"] or 0
        sent = [stored for stored in history.entries if stored.id >= since]
        now = [entry_from_json(data) for data in question["entries"]]
        return ModelRequest(
            system=await self._system(question["system"]),
            entries=repair(_fitted(sent, now, question["shrink"]) + self._hint(question["hint"])),
            tools=self._toolbox.named(question["tools"]),
            temperature=self._temperature,
            max_output_tokens=self._output_tokens_max(),
        )

    def _output_tokens_max(self) -> int:
        """A small window must leave room for the prompt, so the answer gets a quarter at most."""
        return min(self._max_output_tokens, self._model.traits.window // 4)

    def _hint(self, name: str) -> list[Entry]:
        """A note for this one request: what the last answer lacked, or that it is the last."""
        return [Note(text=self._library.texts()[f"hint_{name}"].strip())] if name else []

    async def _system(self, digest: str) -> str:
        if digest not in self._systems:
            self._systems[digest] = await self._conversations.text(digest) or ""
        return self._systems[digest]


def _fitted(sent: Sequence[StoredEntry], now: list[Entry], shrink: int) -> list[Entry]:
    """History and turn as far as they are sent. Each shrink drops the older half of whole turns;
    the third drops them all, and shortens the results that the model has already read."""
    runs: list[RunId] = list(dict.fromkeys(stored.run_id for stored in sent))
    if shrink >= 3:
        return list(shorten(now, keep_chars=RESULT_CHARS_IN_NEED))
    kept = set(runs[len(runs) - len(runs) // 2**shrink :]) if shrink else set(runs)
    return [stored.entry for stored in sent if stored.run_id in kept] + now


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
