"""One question to a model: what it says, how soon, and what that costs. Called by `hearthbot model
test`; each is asked once, without the patience that the bot has with one in trouble."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from agent.errors import AssistantError
from agent.models.prices import PriceTable
from agent.request import ModelRequest
from agent.text import clean
from agent.transcript import Said, Usage
from bot.model_names import Named
from bot.models import client_of

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
