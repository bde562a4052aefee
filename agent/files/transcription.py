"""Transcripts of voice notes, paid for like any other model call. Called by
`agent.files.attachments`."""

from __future__ import annotations

from typing import Protocol

from agent.budget.budget import Budget
from agent.files.ports import Sound
from agent.history.window import estimate_tokens
from memory.records.spending import SpendingRefused, Verdict
from memory.records.text import clean
from memory.records.transcript import Usage

TOKENS_A_SECOND = 10
BYTES_A_SECOND = 2_000
"""Of speech, as providers count it and as telephones record it."""

TOKENS_OUT_MAX = 4_000


class Listens(Protocol):
    """A transcription model; `agent.models.speech` is one."""

    @property
    def name(self) -> str: ...

    async def text(self, name: str, content: bytes) -> str:
        """What is said. Raises the model errors of `memory.records.errors`."""


class PaidTranscriber:
    """Implements `agent.files.ports.Transcriber`."""

    def __init__(self, model: Listens, budget: Budget | None = None) -> None:
        """Without a budget calls are neither counted nor bounded."""
        self._model = model
        self._budget = budget

    async def transcript(self, sound: Sound) -> str:
        """What is said in it. Raises SpendingRefused and the model errors of
        `memory.records.errors`."""
        if self._budget is None:
            return clean(await self._model.text(sound.name, sound.content))
        seconds = sound.seconds or len(sound.content) // BYTES_A_SECOND + 1
        tokens_in = seconds * TOKENS_A_SECOND
        allowed = await self._budget.before(
            sound.charge,
            model=self._model.name,
            tokens_in=tokens_in,
            tokens_out=TOKENS_OUT_MAX,
        )
        if allowed.verdict is Verdict.REFUSE or allowed.reservation is None:
            raise SpendingRefused(allowed.words)
        try:
            text = await self._model.text(sound.name, sound.content)
        except BaseException as error:
            self._budget.ended(allowed.reservation, error)
            raise
        usage = Usage(prompt=tokens_in, completion=max(1, estimate_tokens(text)))
        await self._budget.after(allowed.reservation, usage, model=self._model.name)
        return clean(text)
