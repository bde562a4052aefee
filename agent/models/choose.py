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
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from agent.models.catalog import (
    ALIASES,
    BY_FOREIGN_KEY,
    BY_KEY,
    FOREIGN,
    LOCAL,
    LOCAL_WINDOW,
    PROBED,
    PROVIDERS,
    UNREAD,
    PriceTable,
    known_prefixes,
    owner_of,
    window_of,
)
from agent.models.chat_request import Dialect
from agent.models.embedded import DEMO, OWN_WINDOW, PREFIX
from memory.records.errors import SettingsWrong
from memory.records.request import ModelTraits

if TYPE_CHECKING:
    import httpx

Probe = Callable[[str], Awaitable[Sequence[str]]]
"""The names of the models at a base URL; empty when nobody answers there. Never raises."""

Client = Literal["auto", "litellm", "direct"]
Vision = Literal["auto", "on", "off"]

PROBE_S = 0.3
MODELS_S = 5.0
_NO_CHAT = re.compile(r"embed|rerank|whisper|tts|\bbge\b|moderation", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWish:
    """What the settings say; empty means: find out. `window` overrides the known size.

    `client` auto takes the direct client wherever it reaches, as it is lighter by far. `vision`
    auto asks the price table whether a model sees pictures, and takes one that it does not know
    for blind.
    """

    model: str = ""
    api_base: str = ""
    api_key: str = field(default="", repr=False)
    window: int = 0
    client: Client = "auto"
    vision: Vision = "auto"


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
    wanted: ModelWish,
    *,
    env: Mapping[str, str],
    probe: Probe | None = None,
    prices: PriceTable | None = None,
) -> Choice:
    """The model of the settings; else a key of the environment, a local server, the embedded one.

    Raises SettingsWrong, with what to do. Looking for local servers takes 0.3 s at most, looking
    up the window a few milliseconds.
    """
    prices = prices or PriceTable()
    if wanted.model:
        found = await _named(wanted, env, prices)
    elif wanted.api_base:
        # A server was named, but no model: the first one that it lists.
        names = _chatty(await (probe or models_at)(wanted.api_base))
        if not names:
            raise SettingsWrong(
                f"llm.api_base is set but llm.model is not, and {wanted.api_base} lists no "
                "model: set llm.model"
            )
        why = f"{names[0]} answers: the first model that {wanted.api_base} lists."
        found = _at(replace(wanted, model=names[0]), why=why)
    else:
        found = (
            _by_environment(wanted, env)
            or _by_foreign_key(wanted, env)
            or await _by_local_server(wanted, probe or models_at)
            or Choice(
                kind="embedded",
                model="embedded",
                traits=DEMO,
                why="The small embedded model answers, as no provider's key is set and no local "
                "model server answers: good for a try, set llm.model for real use.",
            )
        )
    return await _sized(found, wanted, prices)


def beside(wanted: ModelWish, model: str) -> ModelWish:
    """What is wanted of another model than the main one (a fallback, the cheap one).

    Address and key are the main model's where it is of the same provider, or where both are names
    of the one server that is set; else its provider's own, from the environment.
    """
    same = _provider(wanted.model, wanted) == _provider(model, wanted)
    if not same or model.startswith("embedded"):
        # That the main model sees says nothing of another provider's.
        vision: Vision = "off" if wanted.vision == "off" else "auto"
        return replace(wanted, model=model, api_base="", api_key="", window=0, vision=vision)
    return replace(wanted, model=model, window=wanted.window if wanted.api_base else 0)


def _provider(model: str, wanted: ModelWish) -> str:
    """Whose model a name is; empty where nobody but the address that is set can know it."""
    prefix, _, rest = model.strip().partition("/")
    prefix = ALIASES.get(prefix, prefix)
    if rest and (prefix in PROVIDERS or prefix in FOREIGN or not wanted.api_base):
        return prefix
    return "" if wanted.api_base else owner_of(model)


async def _sized(choice: Choice, wanted: ModelWish, prices: PriceTable) -> Choice:
    """With what the price table knows of it; the setting wins."""
    if choice.kind == "embedded":
        return replace(choice, priced_as=choice.model)
    provider = choice.priced_as.partition("/")[0]
    price = await prices.find(choice.priced_as) if choice.priced_as else None
    local = not choice.priced_as or provider in LOCAL
    known = price.window if price else 0
    effort = choice.kind == "litellm" or (provider in PROVIDERS and PROVIDERS[provider].effort)
    return replace(
        choice,
        traits=ModelTraits(
            window=wanted.window
            or (LOCAL_WINDOW if local else known or window_of(choice.priced_as)),
            effort=effort and price is not None and price.effort,
            vision=(price is not None and price.vision)
            if wanted.vision == "auto"
            else wanted.vision == "on",
        ),
        output_tokens_max=price.output_max if price else 0,
    )


async def models_at(api_base: str) -> Sequence[str]:
    """The Probe for real use. Whoever refuses the connection costs no time."""
    import httpx

    url = f"{api_base.rstrip('/')}/models"
    try:
        async with _client(url) as client:
            answer = await client.get(url, timeout=MODELS_S)
        listed = answer.json()["data"] if answer.status_code == 200 else ()
        return [str(model["id"]) for model in listed]
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError):
        return ()


def _client(url: str) -> httpx.AsyncClient:
    """Without TLS no certificates are read; a context without any trusts nobody, so it is safe.

    Not the library of the answers: this one is the faster to load, and the start waits for it.
    """
    import httpx

    parts = urlsplit(url)
    plain = parts.scheme == "http"
    return httpx.AsyncClient(
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True,
        trust_env=parts.hostname not in ("127.0.0.1", "::1", "localhost"),
    )


async def _named(wanted: ModelWish, env: Mapping[str, str], prices: PriceTable) -> Choice:
    name = wanted.model.strip()
    if name == "embedded" or name.startswith(PREFIX):
        return _embedded(name, wanted)
    prefix, _, rest = name.partition("/")
    prefix = ALIASES.get(prefix, prefix)
    if rest and prefix in PROVIDERS:
        return _at_provider(prefix, rest, wanted, env)
    if wanted.api_base and not _is_foreign(prefix, rest, wanted):
        why = f"{name} at {wanted.api_base} answers, as llm.model and llm.api_base say."
        return _at(replace(wanted, model=name), why=why)
    owner = prefix if rest else owner_of(name) or await _seller(name, prices)
    if owner in PROVIDERS:
        return _at_provider(owner, name, wanted, env)
    if owner in UNREAD:
        raise SettingsWrong(_unread(owner, rest or name))
    if owner in FOREIGN:
        return _through(owner, rest if rest else name, wanted, env)
    if rest and prefix in await known_prefixes():
        _require_litellm(wanted, prefix)
        # Where its variable is called otherwise, litellm knows.
        api_key = wanted.api_key or env.get(f"{prefix.upper()}_API_KEY", "")
        asked = replace(wanted, api_key=api_key)
        return _foreign(asked, model=name, why=_why(rest, prefix))
    raise SettingsWrong(_unreachable(name))


def _is_foreign(prefix: str, rest: str, wanted: ModelWish) -> bool:
    """Whether the address that is set speaks the language of this provider, not OpenAI's."""
    if not rest or prefix not in FOREIGN:
        return False
    return wanted.client == "litellm" or bool(FOREIGN[prefix].base)


def _through(key: str, name: str, wanted: ModelWish, env: Mapping[str, str]) -> Choice:
    """A provider that only litellm reaches."""
    provider = FOREIGN[key]
    _require_litellm(wanted, provider.title)
    api_key = wanted.api_key or next((env[one] for one in provider.keys if env.get(one)), "")
    api_base = wanted.api_base or env.get(provider.base, "")
    if provider.keys and not api_key and (provider.base or not wanted.api_base):
        raise SettingsWrong(
            f"llm.model = {wanted.model!r} needs a key of {provider.title}: set "
            f"{provider.keys[0]} in the environment, or llm.api_key"
        )
    if provider.base and not api_base:
        raise SettingsWrong(
            f"llm.model = {wanted.model!r} needs your address at {provider.title}: set "
            f"{provider.base} in the environment, or llm.api_base"
        )
    if provider.library and not _is_installed(provider.library):
        raise SettingsWrong(
            f"llm.model = {wanted.model!r} needs a library that is not installed "
            f"({provider.library}): install it beside the bot, or {_WAY}"
        )
    asked = replace(wanted, api_base=api_base, api_key=api_key)
    return _foreign(asked, model=f"{key}/{name}", why=_why(name, provider.title))


def _why(name: str, title: str) -> str:
    return f"{name} of {title} answers through litellm, as llm.model says."


def _foreign(asked: ModelWish, *, model: str, why: str) -> Choice:
    return Choice(
        kind="litellm",
        model=model,
        why=why,
        api_base=asked.api_base,
        api_key=asked.api_key,
        priced_as=model,
    )


def _require_litellm(wanted: ModelWish, title: str) -> None:
    if wanted.client == "direct":
        raise SettingsWrong(
            f'llm.client = "direct" cannot speak to {title} (llm.model = {wanted.model!r}): set '
            f'llm.client = "auto", or {_WAY}'
        )


def _is_installed(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except ModuleNotFoundError:
        return False


async def _seller(name: str, prices: PriceTable) -> str:
    """Whose model this is, by the price table."""
    price = await prices.find(name)
    seller = price.provider.removesuffix("_chat").removesuffix("_converse") if price else ""
    return seller if seller in PROVIDERS or seller in FOREIGN or seller in UNREAD else ""


def _embedded(name: str, wanted: ModelWish) -> Choice:
    traits = DEMO if name == "embedded" else ModelTraits(window=wanted.window or OWN_WINDOW)
    why = f"The model {name} answers inside this process, as llm.model says."
    return Choice(kind="embedded", model=name, traits=traits, why=why)


def _at_provider(key: str, name: str, wanted: ModelWish, env: Mapping[str, str]) -> Choice:
    provider = PROVIDERS[key]
    api_key = wanted.api_key or env.get(provider.key, "")
    if provider.key and not api_key and not wanted.api_base:
        raise SettingsWrong(
            f"llm.model = {wanted.model!r} needs a key of {provider.title}: set {provider.key} in "
            "the environment, or llm.api_key"
        )
    why = f"{name} of {provider.title} answers, as llm.model says."
    return _of(key, replace(wanted, model=name, api_key=api_key), why=why)


_WAY = (
    'use an OpenAI-compatible address, such as llm.model = "openrouter/<provider>/<model>" with '
    "OPENROUTER_API_KEY"
)


def _unreachable(name: str) -> str:
    known = ", ".join(sorted([*PROVIDERS, *FOREIGN]))
    return (
        f"llm.model = {name!r} names no provider: write <provider>/{name} with one of {known}; set "
        f"llm.api_base; or {_WAY}"
    )


def _unread(key: str, name: str) -> str:
    return (
        f"llm.model: {name!r} cannot be asked at {UNREAD[key]} itself, as litellm cannot read what "
        f'it answers: set llm.model = "openrouter/{key}/{name}" with OPENROUTER_API_KEY, or '
        "llm.api_base to an OpenAI-compatible address that has it"
    )


def _by_environment(wanted: ModelWish, env: Mapping[str, str]) -> Choice | None:
    for key in BY_KEY:
        provider = PROVIDERS[key]
        if env.get(provider.key):
            why = (
                f"{provider.model} of {provider.title} answers, as {provider.key} is set and no "
                "model is."
            )
            asked = replace(wanted, model=provider.model, api_key=env[provider.key])
            return _of(key, asked, why=why)
    return None


def _by_foreign_key(wanted: ModelWish, env: Mapping[str, str]) -> Choice | None:
    """After the others: whoever has keys of both gets the lighter client."""
    for key in () if wanted.client == "direct" else BY_FOREIGN_KEY:
        provider = FOREIGN[key]
        for variable in provider.keys:
            if env.get(variable):
                why = (
                    f"{provider.model} of {provider.title} answers through litellm, as {variable} "
                    "is set and no model is."
                )
                asked = replace(wanted, api_key=env[variable])
                return _foreign(asked, model=f"{key}/{provider.model}", why=why)
    return None


async def _by_local_server(wanted: ModelWish, probe: Probe) -> Choice | None:
    """Asks all at once; who has not answered after 0.3 s counts as not there."""
    found: dict[str, Sequence[str]] = {}

    async def ask(key: str) -> None:
        found[key] = _chatty(await probe(PROVIDERS[key].api_base))

    try:
        async with asyncio.timeout(PROBE_S), asyncio.TaskGroup() as group:
            for key in PROBED:
                group.create_task(ask(key))
    except TimeoutError:
        pass
    for key in PROBED:
        if found.get(key):
            provider, name = PROVIDERS[key], found[key][0]
            why = f"{name} of {provider.title} on this machine answers, as no other model is set."
            return _of(key, replace(wanted, model=name), why=why)
    return None


def _chatty(names: Sequence[str]) -> Sequence[str]:
    return [name for name in names if not _NO_CHAT.search(name)]


def _of(key: str, asked: ModelWish, *, why: str) -> Choice:
    """A model of a provider that the direct client reaches."""
    provider = PROVIDERS[key]
    found = Choice(
        kind="direct",
        model=asked.model,
        why=why,
        api_base=asked.api_base or provider.api_base,
        api_key=asked.api_key,
        dialect=provider.dialect,
        priced_as=f"{key}/{asked.model}",
    )
    if asked.client != "litellm":
        return found
    if key in LOCAL:
        return replace(found, kind="litellm", model=f"openai/{asked.model}")
    return replace(found, kind="litellm", model=found.priced_as, api_base=asked.api_base)


def _at(asked: ModelWish, *, why: str) -> Choice:
    """A model at the address that is set."""
    through = asked.client == "litellm"
    return Choice(
        kind="litellm" if through else "direct",
        model=f"openai/{asked.model}" if through else asked.model,
        why=why,
        api_base=asked.api_base,
        api_key=asked.api_key,
        priced_as="" if is_here(asked.api_base) else asked.model,
    )


def is_here(api_base: str) -> bool:
    """Whether an address is one of this machine."""
    return bool(re.match(r"https?://(localhost|127\.|\[::1\])", api_base))
