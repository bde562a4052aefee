"""Which model answers, and why: by the settings, the environment, and local servers.

`bot.app` asks once at start. Everything from outside (environment, probe) is passed in.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from agent.errors import SettingsWrong
from agent.models.embedded import DEMO, OWN_WINDOW, PREFIX
from agent.models.wire import Dialect
from agent.request import ModelTraits

if TYPE_CHECKING:
    import httpx

Probe = Callable[[str], Awaitable[Sequence[str]]]
"""The names of the models at a base URL; empty when nobody answers there. Never raises."""

PROBE_S = 0.3
MODELS_S = 5.0
LOCAL_WINDOW = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the settings say; empty means: find out. `window` overrides the known size."""

    model: str = ""
    api_base: str = ""
    api_key: str = field(default="", repr=False)
    window: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Everything that building the model takes; `why` is one sentence for the owner.

    "direct" is for OpenAICompatible(model, …), "embedded" for Embedded(model, window=…).
    """

    kind: Literal["direct", "embedded"]
    model: str
    why: str
    api_base: str = ""
    api_key: str = field(default="", repr=False)
    traits: ModelTraits = field(default_factory=ModelTraits)
    dialect: Dialect = field(default_factory=Dialect)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A server that the direct client reaches. Without a `key` variable it needs no key."""

    title: str
    api_base: str
    key: str = ""
    model: str = ""
    dialect: Dialect = field(default_factory=Dialect)


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(
        title="OpenAI",
        api_base="https://api.openai.com/v1",
        key="OPENAI_API_KEY",
        model="gpt-4.1-mini",
    ),
    "openrouter": Provider(
        title="OpenRouter",
        api_base="https://openrouter.ai/api/v1",
        key="OPENROUTER_API_KEY",
        model="openai/gpt-4.1-mini",
    ),
    "groq": Provider(
        title="Groq",
        api_base="https://api.groq.com/openai/v1",
        key="GROQ_API_KEY",
        model="llama-3.3-70b-versatile",
    ),
    "mistral": Provider(
        title="Mistral",
        api_base="https://api.mistral.ai/v1",
        key="MISTRAL_API_KEY",
        model="mistral-small-latest",
        dialect=Dialect(stream_usage=False),  # it refuses unknown fields, and counts anyway
    ),
    "deepseek": Provider(
        title="DeepSeek",
        api_base="https://api.deepseek.com/v1",
        key="DEEPSEEK_API_KEY",
        model="deepseek-chat",
        dialect=Dialect(plain=True),
    ),
    "xai": Provider(
        title="xAI", api_base="https://api.x.ai/v1", key="XAI_API_KEY", model="grok-3-mini"
    ),
    "together_ai": Provider(
        title="Together AI", api_base="https://api.together.xyz/v1", key="TOGETHERAI_API_KEY"
    ),
    "fireworks_ai": Provider(
        title="Fireworks AI",
        api_base="https://api.fireworks.ai/inference/v1",
        key="FIREWORKS_AI_API_KEY",
    ),
    "ollama": Provider(
        title="Ollama", api_base="http://127.0.0.1:11434/v1", dialect=Dialect(plain=True)
    ),
    "lm_studio": Provider(
        title="LM Studio", api_base="http://127.0.0.1:1234/v1", dialect=Dialect(plain=True)
    ),
    "hosted_vllm": Provider(title="vLLM", api_base="http://127.0.0.1:8000/v1"),
}
_ALIASES = {"vllm": "hosted_vllm", "ollama_chat": "ollama"}
_BY_KEY = ("openai", "openrouter", "groq", "mistral", "deepseek", "xai")
_LOCAL = ("ollama", "lm_studio", "hosted_vllm")
_PROBED = ("ollama", "lm_studio")

# Spoken to in a language of their own.
_OUT_OF_REACH = {
    "anthropic": "Anthropic",
    "gemini": "Gemini",
    "vertex_ai": "Vertex AI",
    "bedrock": "Bedrock",
    "azure": "Azure",
    "azure_ai": "Azure AI",
    "cohere": "Cohere",
}

_OWNERS = (
    (re.compile(r"(gpt-|chatgpt|o[1-9])"), "openai"),
    (re.compile(r"claude"), "anthropic"),
    (re.compile(r"gemini"), "gemini"),
    (re.compile(r"(mistral|magistral|codestral|ministral)-"), "mistral"),
    (re.compile(r"deepseek-(chat|reasoner)"), "deepseek"),
    (re.compile(r"grok-"), "xai"),
)

_WINDOWS = (
    (re.compile(r"gpt-4\.1"), 1_047_576),
    (re.compile(r"gpt-5"), 400_000),
    (re.compile(r"gpt-4o|gpt-oss"), 128_000),
    (re.compile(r"gpt-4-turbo"), 128_000),
    (re.compile(r"gpt-4(?![\w.])"), 8_192),
    (re.compile(r"gpt-3\.5"), 16_385),
    (re.compile(r"(?:^|/)o[1-9]|claude"), 200_000),
    (re.compile(r"gemini"), 1_000_000),
    (re.compile(r"llama-?3\.[1-9]"), 128_000),
    (re.compile(r"llama-?3"), 8_192),
)
_NO_CHAT = re.compile(r"embed|rerank|whisper|tts|\bbge\b|moderation", re.IGNORECASE)


async def choose(wanted: Wanted, *, env: Mapping[str, str], probe: Probe | None = None) -> Choice:
    """The model of the settings; else a key of the environment, a local server, the embedded one.

    Raises SettingsWrong, with what to do. Looking for local servers takes 0.3 s at most.
    """
    if wanted.model:
        return _named(wanted, env)
    if wanted.api_base:
        return await _at_base(wanted, probe or models_at)
    return (
        _by_environment(wanted, env)
        or await _by_local_server(wanted, probe or models_at)
        or Choice(
            kind="embedded",
            model="embedded",
            traits=DEMO,
            why="The small embedded model answers, as no provider's key is set and no local "
            "model server answers: good for a try, set llm.model for real use.",
        )
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


def window_of(model: str, *, local: bool = False) -> int:
    """Tokens that a model takes, by its name; a guess on the safe side for local servers."""
    if local:
        return LOCAL_WINDOW
    name = model.lower()
    return next((size for mark, size in _WINDOWS if mark.search(name)), 128_000)


def _named(wanted: Wanted, env: Mapping[str, str]) -> Choice:
    name = wanted.model.strip()
    if name == "embedded" or name.startswith(PREFIX):
        return _embedded(name, wanted)
    prefix, _, rest = name.partition("/")
    prefix = _ALIASES.get(prefix, prefix)
    if rest and prefix in PROVIDERS:
        return _at_provider(prefix, rest, wanted, env)
    if wanted.api_base:
        why = f"{name} at {wanted.api_base} answers, as llm.model and llm.api_base say."
        return _direct(replace(wanted, model=name), why=why, local=_is_here(wanted.api_base))
    owner = _ALIASES.get(prefix, prefix) if rest else _owner(name)
    if owner in PROVIDERS:
        return _at_provider(owner, name, wanted, env)
    raise SettingsWrong(_unreachable(name, _OUT_OF_REACH.get(owner, "")))


def _embedded(name: str, wanted: Wanted) -> Choice:
    traits = DEMO if name == "embedded" else ModelTraits(window=wanted.window or OWN_WINDOW)
    why = f"The model {name} answers inside this process, as llm.model says."
    return Choice(kind="embedded", model=name, traits=traits, why=why)


def _at_provider(key: str, name: str, wanted: Wanted, env: Mapping[str, str]) -> Choice:
    provider = PROVIDERS[key]
    api_key = wanted.api_key or env.get(provider.key, "")
    if provider.key and not api_key and not wanted.api_base:
        raise SettingsWrong(
            f"llm.model = {wanted.model!r} needs a key of {provider.title}: set {provider.key} in "
            "the environment, or llm.api_key"
        )
    asked = replace(
        wanted, model=name, api_base=wanted.api_base or provider.api_base, api_key=api_key
    )
    why = f"{name} of {provider.title} answers, as llm.model says."
    return _direct(asked, why=why, dialect=provider.dialect, local=key in _LOCAL)


def _owner(name: str) -> str:
    return next((owner for mark, owner in _OWNERS if mark.match(name.lower())), "")


def _unreachable(name: str, title: str) -> str:
    way = (
        "use an OpenAI-compatible address, such as llm.model = "
        '"openrouter/<provider>/<model>" with OPENROUTER_API_KEY'
    )
    if title:
        return f"The direct client cannot speak to {title} (llm.model = {name!r}) yet: {way}"
    known = ", ".join(sorted(PROVIDERS))
    return (
        f"llm.model = {name!r} names no provider: write <provider>/{name} with one of {known}; set "
        f"llm.api_base; or {way}"
    )


async def _at_base(wanted: Wanted, probe: Probe) -> Choice:
    """A server was named, but no model: the first one that it lists."""
    names = _chatty(await probe(wanted.api_base))
    if not names:
        raise SettingsWrong(
            f"llm.api_base is set but llm.model is not, and {wanted.api_base} lists no model: set "
            "llm.model"
        )
    why = f"{names[0]} answers: the first model that {wanted.api_base} lists."
    local = _is_here(wanted.api_base)
    return _direct(replace(wanted, model=names[0]), why=why, local=local)


def _by_environment(wanted: Wanted, env: Mapping[str, str]) -> Choice | None:
    for key in _BY_KEY:
        provider = PROVIDERS[key]
        if env.get(provider.key):
            asked = replace(
                wanted,
                model=provider.model,
                api_base=provider.api_base,
                api_key=env[provider.key],
            )
            why = (
                f"{provider.model} of {provider.title} answers, as {provider.key} is set and no "
                "model is."
            )
            return _direct(asked, why=why, dialect=provider.dialect)
    return None


async def _by_local_server(wanted: Wanted, probe: Probe) -> Choice | None:
    """Asks all at once; who has not answered after 0.3 s counts as not there."""
    found: dict[str, Sequence[str]] = {}

    async def ask(key: str) -> None:
        found[key] = _chatty(await probe(PROVIDERS[key].api_base))

    try:
        async with asyncio.timeout(PROBE_S), asyncio.TaskGroup() as group:
            for key in _PROBED:
                group.create_task(ask(key))
    except TimeoutError:
        pass
    for key in _PROBED:
        if found.get(key):
            provider, name = PROVIDERS[key], found[key][0]
            asked = replace(wanted, model=name, api_base=provider.api_base)
            why = f"{name} of {provider.title} on this machine answers, as no other model is set."
            return _direct(asked, why=why, dialect=provider.dialect, local=True)
    return None


def _chatty(names: Sequence[str]) -> Sequence[str]:
    return [name for name in names if not _NO_CHAT.search(name)]


def _direct(
    asked: Wanted, *, why: str, dialect: Dialect | None = None, local: bool = False
) -> Choice:
    return Choice(
        kind="direct",
        model=asked.model,
        api_base=asked.api_base,
        api_key=asked.api_key,
        why=why,
        traits=ModelTraits(window=asked.window or window_of(asked.model, local=local)),
        dialect=dialect or Dialect(),
    )


def _is_here(api_base: str) -> bool:
    return bool(re.match(r"https?://(localhost|127\.|\[::1\])", api_base))
