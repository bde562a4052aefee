"""Which models there are: those of the settings, those that this machine has, those of providers
whose key is set. For `hearthbot model list`; nobody is asked anything but local servers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from agent.models.choose import Probe, models_at
from agent.models.prices import PriceTable
from agent.models.providers import FOREIGN, LOCAL, PROVIDERS
from agent.text import clean
from bot.config import Settings
from bot.control import Emit, Operation
from bot.model_names import Configured, Named, NameFinder, configured
from bot.model_pool import ModelPool

PROBE_S = 2.0
LOCAL_SHOWN_MAX = 8
"""Of one local server, unless all are asked for."""

Json = dict[str, Any]


async def listing(
    settings: Settings, env: Mapping[str, str], *, whole: bool, probe: Probe = models_at
) -> Json:
    """The keys of `model list --json`:

    - answering: the name of the usual model; why: a sentence
    - models: name, use (answers, stands in, cheap, local, key), client (direct, litellm,
      embedded), window and answer_tokens_max in tokens (0: not known), dollars_in and dollars_out
      for a million tokens (null: not known), about
    - providers: name, title, variables (for its key; empty where it needs none), set (whether one
      of them is); those that are not set with --all alone
    - more: how many models of local servers were left out

    Raises SettingsWrong where the settings name a model that cannot be.
    """
    found, local = await asyncio.gather(configured(settings, env), _local(probe))
    finder = NameFinder(settings, env)
    rows = [await _row(one, use, finder.prices) for one, use in _uses(found)]
    known = {row["name"] for row in rows}
    more = 0
    for server, names in local.items():
        shown = names if whole else names[:LOCAL_SHOWN_MAX]
        more += len(names) - len(shown)
        for name in shown:
            one = await finder.find(f"{server}/{name}")
            rows.append(await _row(one, "local", finder.prices))
    providers = [one for one in _providers(env) if whole or one["set"]]
    for provider in providers:
        if provider["set"] and provider["variables"] and provider["model"]:
            one = await finder.find(f"{provider['name']}/{provider['model']}")
            rows.append(await _row(one, "key", finder.prices))
    return {
        "answering": found.main.name,
        "why": found.main.choice.why,
        "models": [row for row in rows if row["use"] not in ("local", "key")]
        + [row for row in rows if row["use"] in ("local", "key") and row["name"] not in known],
        "providers": providers,
        "more": more,
    }


def model_operations(pool: ModelPool) -> Mapping[str, Operation]:
    """`models` {}: the models that the running bot leaves alone now, with seconds and reason."""

    async def models(request: Json, emit: Emit) -> Json:
        return {
            "resting": [
                {"model": state.name, "seconds": round(state.seconds), "why": state.why}
                for state in pool.resting()
            ]
        }

    return {"models": models}


def _uses(found: Configured) -> Sequence[tuple[Named, str]]:
    uses = [(found.main, "answers"), *((one, "stands in") for one in found.fallbacks)]
    if found.cheap is not None:
        uses.append((found.cheap, "cheap"))
    return uses


async def _row(one: Named, use: str, prices: PriceTable) -> Json:
    choice = one.choice
    price = await prices.find(choice.priced_as) if choice.priced_as else None
    rates = price.rates if price else None
    return {
        "name": clean(one.name),
        "use": use,
        "client": choice.kind,
        "model": clean(choice.model),
        "window": choice.traits.window,
        "answer_tokens_max": choice.output_tokens_max,
        "dollars_in": _a_million(rates.input if rates else None),
        "dollars_out": _a_million(rates.output if rates else None),
        "about": "demo: small talk, no tools" if choice.traits.demo else "",
    }


def _a_million(rate: float | None) -> float | None:
    return None if rate is None else round(rate * 1e6, 6)


async def _local(probe: Probe) -> dict[str, Sequence[str]]:
    """The models of each local server that answers."""

    async def names(server: str) -> Sequence[str]:
        try:
            async with asyncio.timeout(PROBE_S):
                listed = await probe(PROVIDERS[server].api_base)
        except TimeoutError:
            return ()
        return [name for name in listed if name.isprintable() and "embed" not in name.lower()]

    found = await asyncio.gather(*(names(server) for server in LOCAL))
    return {server: listed for server, listed in zip(LOCAL, found, strict=True) if listed}


def _providers(env: Mapping[str, str]) -> list[Json]:
    """All that a name may begin with; local servers are shown by their models."""
    rows: list[tuple[str, str, tuple[str, ...], str]] = [
        (key, one.title, (one.key,) if one.key else (), one.model)
        for key, one in PROVIDERS.items()
        if key not in LOCAL
    ]
    rows += [(key, one.title, one.keys, one.model) for key, one in FOREIGN.items()]
    return [
        {
            "name": key,
            "title": title,
            "variables": list(variables),
            "set": any(env.get(variable) for variable in variables),
            "model": model,
        }
        for key, title, variables, model in rows
    ]
