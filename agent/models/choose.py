"""Which model answers, through which client, and why: by the settings, the environment, and local
servers.

`bot.app` asks once at start. Everything from outside (environment, probe, prices) is passed in.
"""

from __future__ import annotations

import asyncio
import importlib.util
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import urlsplit

from pydantic import SecretStr

from agent.models.catalog import (
    ALIASES,
    BY_KEY,
    LOCAL,
    LOCAL_WINDOW,
    PROBED,
    PROVIDERS,
    UNREAD,
    USUAL_WINDOW,
    PriceTable,
    known_prefixes,
    owner_of,
)
from agent.models.chat_request import Dialect
from agent.models.client import is_here
from agent.models.embedded import DEMO, OWN_WINDOW, PREFIX
from memory.records.errors import SettingsWrong
from memory.records.section import LlmSettings
from memory.records.transcript import ModelTraits

Probe = Callable[[str], Awaitable[Sequence[str]]]
"""The names of the models at a base URL; empty when nobody answers there. Never raises."""

PROBE_S = 0.3
MODELS_S = 5.0
_NO_CHAT = re.compile(r"embed|rerank|whisper|tts|\bbge\b|moderation", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Everything that building the model takes; `why` is one sentence for the owner.

    "direct" is for OpenAICompatible(model, …), "litellm" for LiteLLM(model, …), "embedded" for
    Embedded(model, window=…). `priced_as` is its name in the PriceTable, empty where nobody knows
    what it costs; `output_tokens_max` its own limit, 0 where nobody knows it.
    """

    kind: Literal["direct", "litellm", "embedded"]
    model: str
    why: str
    api_base: str = ""
    api_key: str = field(default="", repr=False)
    traits: ModelTraits = field(default_factory=ModelTraits)
    dialect: Dialect = field(default_factory=Dialect)
    priced_as: str = ""
    output_tokens_max: int = 0


async def choose(
    wanted: LlmSettings,
    *,
    env: Mapping[str, str],
    probe: Probe | None = None,
    prices: PriceTable | None = None,
) -> Choice:
    """Return the model of the settings; else that of a key in the environment, of a local server,
    or the embedded one.

    Raises SettingsWrong, with what to do. Looking for local servers takes 0.3 s at most, looking
    up the window a few milliseconds.
    """
    prices = prices or PriceTable()
    probe = probe or models_at
    if wanted.model:
        found = await _named(wanted, env, prices)
    elif wanted.api_base:
        # A server was named, but no model: the first one that it lists.
        names = _chatty(await probe(wanted.api_base))
        if not names:
            raise SettingsWrong(
                f"llm.api_base is set but llm.model is not, and {wanted.api_base} lists no "
                "model: set llm.model"
            )
        why = f"{names[0]} answers: the first model that {wanted.api_base} lists."
        found = _at(names[0], wanted, why=why)
    else:
        found = (
            _by_environment(wanted, env)
            or await _by_local_server(wanted, probe)
            or Choice(
                kind="embedded",
                model="embedded",
                traits=DEMO,
                why="The small embedded model answers, as no provider's key is set and no local "
                "model server answers: good for a try, set llm.model for real use.",
            )
        )
    if found.kind == "embedded":
        return replace(found, priced_as=found.model)
    # What the price table knows of it; the settings win.
    provider = found.priced_as.partition("/")[0]
    price = await prices.find(found.priced_as) if found.priced_as else None
    is_local = not found.priced_as or provider in LOCAL
    known = price.window if price else 0
    effort = found.kind == "litellm" or (provider in PROVIDERS and PROVIDERS[provider].effort)
    sees = price is not None and price.vision
    return replace(
        found,
        traits=ModelTraits(
            window=wanted.window or (LOCAL_WINDOW if is_local else known or USUAL_WINDOW),
            effort=effort and price is not None and price.effort,
            vision=sees if wanted.vision == "auto" else wanted.vision == "on",
        ),
        output_tokens_max=price.output_max if price else 0,
    )


def beside(wanted: LlmSettings, model: str) -> LlmSettings:
    """Return what is wanted of another model than the main one (a fallback, the cheap one).

    Address and key are the main model's where it is of the same provider, or where both are names
    of the one server that is set; else its provider's own, from the environment.
    """
    same = _provider(wanted.model, wanted) == _provider(model, wanted)
    if same and not model.startswith("embedded"):
        window = wanted.window if wanted.api_base else 0
        return wanted.model_copy(update={"model": model, "window": window})
    # That the main model sees says nothing of another provider's.
    vision = "off" if wanted.vision == "off" else "auto"
    none = {"api_base": "", "api_key": SecretStr(""), "window": 0}
    return wanted.model_copy(update={"model": model, "vision": vision, **none})


def _provider(model: str, wanted: LlmSettings) -> str:
    """Whose model a name is; empty where nobody but the address that is set can know it."""
    prefix, _, rest = model.strip().partition("/")
    prefix = ALIASES.get(prefix, prefix)
    if rest and (prefix in PROVIDERS or not wanted.api_base):
        return prefix
    return "" if wanted.api_base else owner_of(model)


async def models_at(api_base: str) -> Sequence[str]:
    """The Probe for real use. Whoever refuses the connection costs no time."""
    import httpx

    url = f"{api_base.rstrip('/')}/models"
    try:
        # Without TLS no certificates are read; a context without any trusts nobody, so it is safe.
        # Not the library of the answers: this one loads faster, and the start waits for it.
        is_plain = urlsplit(url).scheme == "http"
        trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True
        async with httpx.AsyncClient(verify=trusted, trust_env=not is_here(url)) as client:
            answer = await client.get(url, timeout=MODELS_S)
        listed = answer.json()["data"] if answer.status_code == 200 else ()
        return [str(model["id"]) for model in listed]
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError):
        return ()


async def _named(wanted: LlmSettings, env: Mapping[str, str], prices: PriceTable) -> Choice:
    name = wanted.model.strip()
    if name == "embedded" or name.startswith(PREFIX):
        traits = DEMO if name == "embedded" else ModelTraits(window=wanted.window or OWN_WINDOW)
        why = f"The model {name} answers inside this process, as llm.model says."
        return Choice(kind="embedded", model=name, traits=traits, why=why)
    prefix, _, rest = name.partition("/")
    prefix = ALIASES.get(prefix, prefix)
    provider = PROVIDERS.get(prefix) if rest else None
    if provider is not None and provider.api_base:
        return _at_provider(prefix, rest, wanted, env)
    # Whether the address that is set speaks the language of this provider, not OpenAI's.
    is_foreign = provider is not None and (wanted.client == "litellm" or bool(provider.base))
    if wanted.api_base and not is_foreign:
        why = f"{name} at {wanted.api_base} answers, as llm.model and llm.api_base say."
        return _at(name, wanted, why=why)
    owner = prefix if rest else owner_of(name)
    if not owner and (price := await prices.find(name)):
        owner = price.provider.removesuffix("_chat").removesuffix("_converse")
    if owner in PROVIDERS:
        return _at_provider(owner, rest or name, wanted, env)
    if owner in UNREAD:
        raise SettingsWrong(
            f"llm.model: {rest or name!r} cannot be asked at {UNREAD[owner]} itself, as litellm "
            f'cannot read what it answers: set llm.model = "openrouter/{owner}/{rest or name}" '
            "with OPENROUTER_API_KEY, or llm.api_base to an OpenAI-compatible address that has it"
        )
    if rest and prefix in await known_prefixes():
        _require_litellm(wanted, prefix)
        return Choice(
            kind="litellm",
            model=name,
            why=f"{rest} of {prefix} answers through litellm, as llm.model says.",
            api_base=wanted.api_base,
            # Where its variable is called otherwise, litellm knows.
            api_key=wanted.api_key.get_secret_value() or env.get(f"{prefix.upper()}_API_KEY", ""),
            priced_as=name,
        )
    known = ", ".join(sorted(PROVIDERS))
    raise SettingsWrong(
        f"llm.model = {name!r} names no provider: write <provider>/{name} with one of {known}; set "
        f"llm.api_base; or {_WAY}"
    )


_WAY = (
    'use an OpenAI-compatible address, such as llm.model = "openrouter/<provider>/<model>" with '
    "OPENROUTER_API_KEY"
)


def _require_litellm(wanted: LlmSettings, title: str) -> None:
    if wanted.client == "direct":
        raise SettingsWrong(
            f'llm.client = "direct" cannot speak to {title} (llm.model = {wanted.model!r}): set '
            f'llm.client = "auto", or {_WAY}'
        )


def _at_provider(key: str, name: str, wanted: LlmSettings, env: Mapping[str, str]) -> Choice:
    provider = PROVIDERS[key]
    if not provider.api_base:
        _require_litellm(wanted, provider.title)
    api_key = wanted.api_key.get_secret_value() or env.get(provider.key_set(env), "")
    api_base = wanted.api_base or env.get(provider.base, "")
    is_there = True
    if provider.library:
        try:
            is_there = importlib.util.find_spec(provider.library) is not None
        except ModuleNotFoundError:  # not even the package that it is in
            is_there = False
    needs = ""
    if provider.keys and not api_key and (provider.base or not wanted.api_base):
        needs = (
            f"needs a key of {provider.title}: set {provider.keys[0]} in the environment, or "
            "llm.api_key"
        )
    elif provider.base and not api_base:
        needs = (
            f"needs your address at {provider.title}: set {provider.base} in the environment, or "
            "llm.api_base"
        )
    elif not is_there:
        needs = (
            f"needs a library that is not installed ({provider.library}): install it beside the "
            f"bot, or {_WAY}"
        )
    if needs:
        raise SettingsWrong(f"llm.model = {wanted.model!r} {needs}")
    through = "" if provider.api_base else " through litellm"
    why = f"{name} of {provider.title} answers{through}, as llm.model says."
    return _of(key, name, wanted, api_base=api_base, api_key=api_key, why=why)


def _by_environment(wanted: LlmSettings, env: Mapping[str, str]) -> Choice | None:
    for key in BY_KEY:
        provider = PROVIDERS[key]
        variable = provider.key_set(env)
        if variable and (provider.api_base or wanted.client != "direct"):
            through = "" if provider.api_base else " through litellm"
            why = (
                f"{provider.model} of {provider.title} answers{through}, as {variable} is set and "
                "no model is."
            )
            return _of(key, provider.model, wanted, api_key=env[variable], why=why)
    return None


async def _by_local_server(wanted: LlmSettings, probe: Probe) -> Choice | None:
    """Ask all at once; who has not answered after 0.3 s counts as not there."""
    found: dict[str, Sequence[str]] = {}

    async def ask(key: str) -> None:
        found[key] = _chatty(await probe(PROVIDERS[key].api_base))

    with suppress(TimeoutError):
        async with asyncio.timeout(PROBE_S), asyncio.TaskGroup() as group:
            for key in PROBED:
                group.create_task(ask(key))
    for key in PROBED:
        if found.get(key):
            name, title = found[key][0], PROVIDERS[key].title
            why = f"{name} of {title} on this machine answers, as no other model is set."
            return _of(key, name, wanted, why=why)
    return None


def _chatty(names: Sequence[str]) -> Sequence[str]:
    return [name for name in names if not _NO_CHAT.search(name)]


def _of(
    key: str, name: str, wanted: LlmSettings, *, why: str, api_base: str = "", api_key: str = ""
) -> Choice:
    """A model of a provider, by the client that reaches it."""
    provider = PROVIDERS[key]
    found = Choice(
        kind="direct",
        model=name,
        why=why,
        api_base=api_base or provider.api_base,
        api_key=api_key,
        dialect=provider.dialect,
        priced_as=f"{key}/{name}",
    )
    if provider.api_base and wanted.client != "litellm":
        return found
    if key in LOCAL:
        return replace(found, kind="litellm", model=f"openai/{name}")
    return replace(found, kind="litellm", model=found.priced_as, api_base=api_base)


def _at(name: str, wanted: LlmSettings, *, why: str) -> Choice:
    """A model at the address that is set."""
    through = wanted.client == "litellm"
    return Choice(
        kind="litellm" if through else "direct",
        model=f"openai/{name}" if through else name,
        why=why,
        api_base=wanted.api_base,
        api_key=wanted.api_key.get_secret_value(),
        priced_as="" if is_here(wanted.api_base) else name,
    )
