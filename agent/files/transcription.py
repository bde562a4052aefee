"""Transcripts of voice notes, paid for like any other model call. Called by
`agent.files.attachments`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agent.budget.budget import Budget
from agent.prompt.tokens import estimate_tokens
from memory.records.text import clean
from memory.records.transcript import Usage
from memory.records.usage import Charge, SpendingRefused, Verdict

TOKENS_A_SECOND = 10
BYTES_A_SECOND = 2_000
"""Of speech, as providers count it and as telephones record it."""

TOKENS_OUT_MAX = 4_000


Transcribe = Callable[[str, bytes], Awaitable[str]]
"""What is said in a recording of a name. Raises the model errors of `memory.records.errors`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """A recording; `seconds` is 0 where nobody knows."""

    name: str
    content: bytes
    seconds: int
    charge: Charge


class PaidTranscriber:
    """Turns speech into text, within a budget."""

    def __init__(self, model: str, transcribe: Transcribe, budget: Budget | None = None) -> None:
        """Without a budget calls are neither counted nor bounded."""
        self._model = model
        self._transcribe = transcribe
        self._budget = budget

    async def transcript(self, sound: Sound) -> str:
        """What is said in it. Raises SpendingRefused and the model errors of
        `memory.records.errors`."""
        if self._budget is None:
            return clean(await self._transcribe(sound.name, sound.content))
        seconds = sound.seconds or len(sound.content) // BYTES_A_SECOND + 1
        tokens_in = seconds * TOKENS_A_SECOND
        allowed = await self._budget.before(
            sound.charge,
            model=self._model,
            tokens_in=tokens_in,
            tokens_out=TOKENS_OUT_MAX,
        )
        if allowed.verdict is Verdict.REFUSE or allowed.reservation is None:
            raise SpendingRefused(allowed.words)
        try:
            text = await self._transcribe(sound.name, sound.content)
        except BaseException as error:
            self._budget.ended(allowed.reservation, error)
            raise
        usage = Usage(prompt=tokens_in, completion=max(1, estimate_tokens(text)))
        await self._budget.after(allowed.reservation, usage, model=self._model)
        return clean(text)
