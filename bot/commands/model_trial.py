"""One question to a model: what it says, how soon, and what that costs. Called by `hearthbot model
test`; each is asked once, without the patience that the bot has with one in trouble."""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from agent.models.catalog import PriceTable
from agent.models.choose import Choice
from bot.commands.model_names import Named
from memory.records.errors import AssistantError
from memory.records.ports import Model
from memory.records.request import ModelRequest
from memory.records.text import clean
from memory.records.transcript import Said, Usage

# --- models -------------------------------------------------------------------------------------
#
# The clients of language models: how each kind of choice is reached.
#
# Called by `bot.app` for the pool, and by `hearthbot model test`. A client's library is loaded only
# when a model of it is asked.


def client_of(
    choice: Choice, *, timeout_s: float, connect_timeout_s: float | None = None
) -> AbstractAsyncContextManager[Model]:
    """A client that asks once a call; it connects on first use."""
    from agent.models.openai_compatible import Limits

    limits = Limits(timeout_s=timeout_s)
    if connect_timeout_s is not None:
        limits = Limits(timeout_s=timeout_s, connect_timeout_s=connect_timeout_s)
    if choice.kind == "embedded":
        from agent.models.embedded import Embedded

        return Embedded(choice.model, window=choice.traits.window, limits=limits)
    if choice.kind == "litellm":
        from agent.models.litellm import LiteLLM

        return LiteLLM(
            choice.model,
            api_base=choice.api_base,
            api_key=choice.api_key,
            traits=choice.traits,
            limits=limits,
            output_tokens_max=choice.output_tokens_max,
        )
    from agent.models.openai_compatible import OpenAICompatible

    return OpenAICompatible(
        choice.model,
        api_base=choice.api_base,
        api_key=choice.api_key,
        traits=choice.traits,
        dialect=choice.dialect,
        limits=limits,
    )


QUESTION = "Say hello in one short sentence."
SYSTEM = "You are a friendly assistant. Answer in one short sentence."
OUTPUT_TOKENS_MAX = 512
"""Room for models that think before they answer; the answer itself has a few."""

CONNECT_S = 10.0
SHOWN_CHARS_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What came of it. `error` is empty where it answered; times are seconds, `first_s` up to the
    first word (None: it said none); `dollars` None where the price is not known."""

    name: str
    text: str = ""
    error: str = ""
    first_s: float | None = None
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    dollars: float | None = None


async def try_one(one: Named, *, prices: PriceTable, limit_s: float) -> Tried:
    """Asks once. Raises nothing of ours: what went wrong is in `error`."""
    started = time.monotonic()
    first: list[float] = []

    def on_text(piece: str) -> None:
        if piece and not first:
            first.append(time.monotonic() - started)

    request = ModelRequest(
        system=SYSTEM,
        entries=(Said(text=QUESTION),),
        max_output_tokens=one.choice.traits.output_tokens(OUTPUT_TOKENS_MAX),
    )
    try:
        async with (
            asyncio.timeout(limit_s),
            client_of(
                one.choice, timeout_s=limit_s, connect_timeout_s=min(CONNECT_S, limit_s)
            ) as model,
        ):
            answered = await model.answer(request, on_text=on_text)
    except TimeoutError:
        return Tried(
            name=one.name,
            error=f"It did not answer within {limit_s:g} s.",
            seconds=time.monotonic() - started,
        )
    except AssistantError as error:
        return Tried(name=one.name, error=str(error), seconds=time.monotonic() - started)
    seconds = time.monotonic() - started
    text = " ".join(clean(answered.text).split())
    counted = answered.usage != Usage()
    price = await prices.find(one.choice.priced_as) if one.choice.priced_as and counted else None
    return Tried(
        name=one.name,
        text=text if len(text) <= SHOWN_CHARS_MAX else f"{text[: SHOWN_CHARS_MAX - 1]}…",
        error="" if text else "It answered without a word.",
        first_s=first[0] if first else None,
        seconds=seconds,
        usage=answered.usage,
        dollars=price.cost(answered.usage) if price else None,
    )
