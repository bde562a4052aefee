"""The cheap model, and what it makes of a stretch of a conversation: where the topic changed, and a
summary.

Used by `agent.history.compaction`; whatever goes wrong here ends in the mechanical digest there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import structlog
from pydantic import Field

from agent.budget.payment import NO_PAYMENT, Payment, unheard
from agent.models.chat_request import TokenCounter
from agent.models.client import AnswerUnreadable, ModelAnswer, PlainText, read_answer
from agent.prompt.assemble import from_template
from agent.prompt.tokens import estimate_tokens
from memory.records.errors import BrokenAnswer, ContextTooLong, ModelRefused
from memory.records.ports import CheapModel, Model, Models
from memory.records.text import visible
from memory.records.transcript import ModelRequest, ModelTraits, Said
from memory.records.usage import Charge
from memory.stores.compactions import MaterialLine

log = structlog.get_logger()

LINES_MAX = 50
LINE_CHARS_MAX, LINE_CHARS_MIN = 1_000, 120
"""Of what one call is shown. In a small window all are cut alike, but no shorter than is of use."""
ONE_CALL_LINES = 10
"""Up to so many the summary of the call that looked for the boundary serves."""
EXAMPLE_CHARS_MIN = 40
"""Of a summary that cannot stand in a template by chance."""
PARTS_MAX = 4
"""Parts that are summed up one by one; what is older is handed over as one digest."""
ANSWER_TOKENS_MAX = 1_500
"""Of an answer: the summary's words, whatever the language, and some JSON."""


class _Summary(ModelAnswer):
    """What both templates ask for."""

    summary: PlainText = Field(min_length=1)


class Boundary(_Summary):
    """`prompts/compaction.md`: `boundary_index` is the number of a line, or below 1 for none."""

    boundary_index: int | None = None
    reason: PlainText = ""
    confidence: float = Field(default=0.0, ge=0, le=1)


class Merged(_Summary):
    """`prompts/merge.md`."""


_Wanted = TypeVar("_Wanted", bound=_Summary)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """`boundary` is the id of the first message of the present topic; None where there is one topic
    throughout, or the model named a line that it was not shown."""

    boundary: int | None
    confidence: float
    reason: str
    summary: str


class Summaries:
    """Asks for them. Raises the model errors, SpendingRefused, AnswerUnreadable, StorageError."""

    def __init__(self, cheap: CheapModel, texts: Callable[[], Mapping[str, str]]) -> None:
        """`texts` are the prompt templates, workspace copies first."""
        self._cheap = cheap
        self._texts = texts

    async def detect(self, lines: Sequence[MaterialLine], former: str, charge: Charge) -> Detected:
        """The last topic boundary among the newest lines, and a summary of them."""
        shown = lines[-LINES_MAX:]
        found = await self._summed(shown, former, charge)
        number = found.boundary_index or 0
        return Detected(
            boundary=shown[number - 1].id if 1 <= number <= len(shown) else None,
            confidence=found.confidence,
            reason=found.reason,
            summary=found.summary,
        )

    async def of(
        self,
        lines: Sequence[MaterialLine],
        former: str,
        charge: Charge,
        *,
        older: Callable[[int, str], str],
    ) -> str:
        """A summary of all lines, the former one folded in: in parts that are then merged.

        What is more than that many parts hold is summed up by `older`: it is given the id of the
        first line that the parts hold, and the former summary, in a thread.
        """
        if len(lines) > PARTS_MAX * LINES_MAX:
            lines = lines[-PARTS_MAX * LINES_MAX :]
            former = await asyncio.to_thread(older, lines[0].id, former)
        parts = max(2, -(-len(lines) // LINES_MAX))
        bounds = [len(lines) * n // parts for n in range(parts + 1)]
        summary = ""
        for start, end in pairwise(bounds):
            part = (await self._summed(lines[start:end], former, charge)).summary
            former = ""
            if summary:
                merge = from_template(self._texts(), "merge", FIRST=summary, SECOND=part)
                part = (await self._asked("merge", merge.user, Merged, charge)).summary
            summary = part
        return summary

    async def _summed(self, lines: Sequence[MaterialLine], former: str, charge: Charge) -> Boundary:
        traits = await self._cheap.traits(charge.lane)
        if traits.demo:
            # Tried: it takes most of a minute, and tells the template's example as what was said.
            raise ModelRefused("The demo model cannot sum up a conversation.")
        room = traits.window - traits.output_tokens(ANSWER_TOKENS_MAX)
        chars = LINE_CHARS_MAX
        while True:
            shown = "\n".join(
                f"[{n}] {_cut(line.text, chars)}" for n, line in enumerate(lines, start=1)
            )
            prompt = from_template(self._texts(), "compaction", SUMMARY=former, CONVERSATION=shown)
            if prompt.tokens <= room:
                return await self._asked("compaction", prompt.user, Boundary, charge)
            if chars <= LINE_CHARS_MIN:
                raise ContextTooLong(
                    f"The conversation has no room in a window of {traits.window} tokens."
                )
            chars = max(chars * 2 // 3, LINE_CHARS_MIN)

    async def _asked(
        self, template: str, prompt: str, wanted: type[_Wanted], charge: Charge
    ) -> _Wanted:
        """Once more where what came cannot be used."""
        text = await self._cheap.ask(prompt, charge, tokens_max=ANSWER_TOKENS_MAX)
        try:
            return self._read(template, text, wanted)
        except AnswerUnreadable as error:
            log.info("compaction.unreadable", why=str(error))
            again = f"{prompt}\n\nYour last answer could not be used. {error}"
        text = await self._cheap.ask(again, charge, tokens_max=ANSWER_TOKENS_MAX)
        return self._read(template, text, wanted)

    def _read(self, template: str, text: str, wanted: type[_Wanted]) -> _Wanted:
        answer = read_answer(text, wanted)
        said = answer.summary.strip()
        if len(said) >= EXAMPLE_CHARS_MIN and said in self._texts()[template]:
            raise AnswerUnreadable("The summary is that of the example: sum up what stands above.")
        return answer


def _cut(text: str, chars_max: int) -> str:
    """On one line, three quarters of it from the beginning."""
    text = " ".join(text.split())
    if len(text) <= chars_max:
        return text
    head = chars_max * 3 // 4
    return f"{text[:head].rstrip()} […] {text[-(chars_max - head - 5) :].lstrip()}"


# --- background ---------------------------------------------------------------------------------
#
# Model calls that nobody waits for: extraction, compaction, insights. On the same budget, at the
# same pace and through the same redactor as those of a turn.

TEMPERATURE = 0.1
"""What is wanted is the same answer each time, in a given form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundOptions:
    """`cheap_model` empty: the usual one of the address. `redact` takes the secrets of the settings
    out of whatever would be sent (SPEC §15)."""

    cheap_model: str = ""
    redact: Callable[[str], str] = str


class Background:
    """Implements `memory.records.ports.CheapModel`."""

    def __init__(
        self, models: Models, *, options: BackgroundOptions, payment: Payment = NO_PAYMENT
    ) -> None:
        self._models = models
        self._options = options
        self._payment = payment
        self._tokens = TokenCounter()

    async def traits(self, lane: str) -> ModelTraits:
        """Of the model that would be asked."""
        return (await self._model(lane)).traits

    async def ask(self, prompt: str, charge: Charge, *, tokens_max: int) -> str:
        """One answer to one message; see `memory.records.ports.CheapModel`."""
        model = await self._model(charge.lane)
        text = self._options.redact(prompt)
        request = ModelRequest(
            system="",
            entries=(Said(text=text),),
            tools=(),
            temperature=TEMPERATURE,
            max_output_tokens=min(tokens_max, model.traits.output_tokens(tokens_max)),
        )
        # A request that is larger than the window is never sent (SPEC §5).
        room = model.traits.window - request.max_output_tokens
        tokens = await self._tokens.total(model.name, [text], limit=room)
        if tokens > room:
            raise ContextTooLong(
                f"The request has about {tokens} tokens; {model.name} takes {room}."
            )
        async with self._payment.call(
            model.name,
            charge,
            tokens_in=estimate_tokens(text),
            tokens_out=request.max_output_tokens,
        ) as call:
            answer = await model.answer(call.bounded(request), on_text=unheard)
            call.answered(answer.usage, by=answer.model)
        said = visible(answer.text).strip()
        if not said:
            raise BrokenAnswer(f"{model.name} answered nothing.")
        return said

    async def _model(self, lane: str) -> Model:
        name = self._options.cheap_model or (await self._models.at(lane)).name
        return await self._models.named(name)
