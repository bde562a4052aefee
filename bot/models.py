"""The clients of language models: how each kind of choice is reached.

Called by `bot.app` for the pool, and by `hearthbot model test`. A client's library is loaded only
when a model of it is asked.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from agent.models.choose import Choice
from agent.ports import Model


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
