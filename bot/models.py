"""The language models that answer: the one of the settings, and those that stand in for it.

Called by `bot.app` at start. A client's library is loaded only when a model of it is in use.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from agent.models.choose import Choice, beside, choose
from agent.models.prices import PriceTable
from agent.models.retry import Patient
from agent.ports import Model
from bot.options import wanted_of
from bot.parts import Workplace


async def models_of(place: Workplace) -> tuple[Choice, ...]:
    """The main model and its fallbacks, in the order in which they are asked.

    Raises SettingsWrong, with what to do.
    """
    wanted, prices = wanted_of(place.settings), PriceTable()
    main = await choose(wanted, env=place.env, prices=prices)
    others = [
        await choose(beside(wanted, name), env=place.env, prices=prices)
        for name in place.settings.llm.fallbacks
    ]
    return main, *others


def keys_of(choices: Sequence[Choice]) -> tuple[str, ...]:
    """The keys in use: what must never be shown."""
    return tuple(choice.api_key for choice in choices if choice.api_key)


@asynccontextmanager
async def opened_model(place: Workplace, choices: Sequence[Choice]) -> AsyncIterator[Model]:
    """The models as one: patient with trouble, and on to the next where that does not help."""
    chance = random.Random(secrets.randbits(64))
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(_client(choice, place)) for choice in choices]
        if len(clients) == 1:
            yield Patient(clients[0], clock=place.clock, chance=chance)
        else:
            from agent.models.fallback import Fallback

            yield Fallback(clients, clock=place.clock, chance=chance)


def _client(choice: Choice, place: Workplace) -> AbstractAsyncContextManager[Model]:
    from agent.models.openai_compatible import Limits

    limits = Limits(timeout_s=place.settings.llm.timeout_s)
    if choice.kind == "embedded":
        from agent.models.embedded import Embedded

        return Embedded(choice.model, limits=limits)
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
