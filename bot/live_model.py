"""One tiny question to a model, and which models there are to ask.

Called by `hearthbot init` and `hearthbot doctor`: each model is asked once, without the patience
that the bot has with one in trouble.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from agent.errors import AssistantError, ModelTimeout
from agent.models.choose import Choice, Probe, Wanted, choose, models_at
from agent.models.providers import FOREIGN, LOCAL, PROVIDERS
from agent.request import ModelRequest
from agent.text import clean
from agent.transcript import Said
from bot.models import client_of

QUESTION = "Say hello in one short sentence."
SYSTEM = "You are a friendly assistant. Answer in one short sentence."
OUTPUT_TOKENS_MAX = 512
"""Room for models that think before they answer; the answer itself has a few."""

SHOWN_CHARS_MAX = 200
CONNECT_S_MAX = 5.0
LOCAL_SHOWN_MAX = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a model said, and after how many seconds."""

    text: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A model that could be taken, and how one knows of it."""

    model: str
    title: str


async def try_model(choice: Choice, *, limit_s: float) -> Trial:
    """Asks once. Raises what the client raises: an AssistantError with a sentence."""
    started = time.monotonic()
    try:
        client = client_of(choice, timeout_s=limit_s, connect_timeout_s=min(CONNECT_S_MAX, limit_s))
        async with asyncio.timeout(limit_s), client as model:
            answered = await model.answer(
                ModelRequest(
                    system=SYSTEM,
                    entries=(Said(text=QUESTION),),
                    max_output_tokens=OUTPUT_TOKENS_MAX,
                ),
                on_text=lambda text: None,
            )
    except TimeoutError:
        raise ModelTimeout(f"The model did not answer within {limit_s:g} s.") from None
    text = " ".join(clean(answered.text).split())
    shown = text if len(text) <= SHOWN_CHARS_MAX else f"{text[: SHOWN_CHARS_MAX - 1]}…"
    return Trial(text=shown, seconds=time.monotonic() - started)


async def with_version(wanted: Wanted, *, env: Mapping[str, str], limit_s: float) -> str:
    """The address with `/v1` behind it, where the model answers there: many leave that out. Empty
    where the address has a version, or it does not answer there either."""
    base = versioned(wanted.api_base)
    if not base:
        return ""
    try:
        await try_model(await choose(replace(wanted, api_base=base), env=env), limit_s=limit_s)
    except AssistantError:
        return ""
    return base


def versioned(api_base: str) -> str:
    """The address with `/v1` behind it; empty where there is none, or it ends in a version."""
    base = api_base.rstrip("/")
    return f"{base}/v1" if base and not _VERSION.search(base) else ""


_VERSION = re.compile(r"/v\d+\w*$", re.ASCII)


async def offers(env: Mapping[str, str], *, probe: Probe = models_at) -> list[Offer]:
    """What this machine has: providers whose key is in the environment, local servers that answer.

    In the order in which the bot itself would take them. Takes some tenths of a second.
    """
    found = [
        Offer(
            model=f"{key}/{provider.model}",
            title=f"{provider.model} of {provider.title} ({provider.key} is set)",
        )
        for key, provider in PROVIDERS.items()
        if provider.model and provider.key and env.get(provider.key)
    ]
    found += [
        Offer(
            model=f"{key}/{foreign.model}",
            title=f"{foreign.model} of {foreign.title} ({name} is set)",
        )
        for key, foreign in FOREIGN.items()
        for name in [next((name for name in foreign.keys if env.get(name)), "")]
        if foreign.model and name
    ]
    listed = await asyncio.gather(*(_listed(probe, PROVIDERS[key].api_base) for key in LOCAL))
    for key, names in zip(LOCAL, listed, strict=True):
        title = PROVIDERS[key].title
        found += [
            Offer(model=f"{key}/{name}", title=f"{clean(name)} of {title} on this machine")
            for name in names[:LOCAL_SHOWN_MAX]
        ]
    return found


async def _listed(probe: Probe, api_base: str) -> list[str]:
    try:
        async with asyncio.timeout(2.0):
            return [name for name in await probe(api_base) if "embed" not in name.lower()]
    except TimeoutError:
        return []
