"""The providers that a model name may begin with, and what a bare name tells.

Tables for `choose`, which reads them in order.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import structlog

from agent.models.chat_request import Dialect
from memory.records.usage import FREE, Price, Rates

LOCAL_WINDOW = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A server that the direct client reaches. Without a `key` variable it needs no key.

    `effort`: it takes OpenAI's setting for how long a model thinks, from models that have one.
    """

    title: str
    api_base: str
    key: str = ""
    model: str = ""
    dialect: Dialect = field(default_factory=Dialect)
    effort: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """A provider with a language of its own, which only litellm speaks.

    `keys` are the variables for its key, `base` the one for its address where it has none of its
    own; `library` is what litellm needs besides.
    """

    title: str
    keys: tuple[str, ...] = ()
    model: str = ""
    base: str = ""
    library: str = ""


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(
        title="OpenAI",
        api_base="https://api.openai.com/v1",
        key="OPENAI_API_KEY",
        model="gpt-4.1-mini",
        effort=True,
    ),
    "openrouter": Provider(
        title="OpenRouter",
        api_base="https://openrouter.ai/api/v1",
        key="OPENROUTER_API_KEY",
        model="openai/gpt-4.1-mini",
        dialect=Dialect(cache_marks=True),
        effort=True,
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
ALIASES = {"vllm": "hosted_vllm", "ollama_chat": "ollama", "cohere_chat": "cohere"}
LOCAL = ("ollama", "lm_studio", "hosted_vllm")
PROBED = ("ollama", "lm_studio")

FOREIGN: Mapping[str, Foreign] = {
    "anthropic": Foreign(title="Anthropic", keys=("ANTHROPIC_API_KEY",), model="claude-haiku-4-5"),
    "gemini": Foreign(
        title="Gemini", keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"), model="gemini-2.5-flash"
    ),
    "azure": Foreign(
        title="Azure", keys=("AZURE_API_KEY", "AZURE_OPENAI_API_KEY"), base="AZURE_API_BASE"
    ),
    "azure_ai": Foreign(title="Azure AI", keys=("AZURE_AI_API_KEY",), base="AZURE_AI_API_BASE"),
    "vertex_ai": Foreign(title="Vertex AI", library="google.auth"),
    "bedrock": Foreign(title="Bedrock", library="boto3"),
}
BY_KEY = ("openai", "openrouter", "groq", "mistral", "deepseek", "xai")
BY_FOREIGN_KEY = ("anthropic", "gemini")

UNREAD: Mapping[str, str] = {"cohere": "Cohere"}
"""By prefix, the titles of those whose streams litellm 1.96 cannot read, though it knows them.
tests/judges tells when it has learned to."""

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


def owner_of(name: str) -> str:
    """Whose model this is, by its name; empty when that is not known."""
    return next((owner for mark, owner in _OWNERS if mark.match(name.lower())), "")


def window_of(model: str, *, local: bool = False) -> int:
    """Tokens that a model takes, by its name; a guess on the safe side for local servers."""
    if local:
        return LOCAL_WINDOW
    name = model.lower()
    return next((size for mark, size in _WINDOWS if mark.search(name)), 128_000)


# --- prices -------------------------------------------------------------------------------------
#
# What a model costs and how much it takes, from the table that litellm ships (not importing it).
#
# `choose` asks at start, whoever counts money asks later. The table is 1.7 MB for some 3,000
# models: it is searched for the one name that is asked for, and only what was found is kept.

log = structlog.get_logger()

LIBRARY = "litellm"
FILE = "model_prices_and_context_window_backup.json"
PROVIDERS_FILE = "provider_endpoints_support_backup.json"
NAMES_MAX = 500
_ENTRY_BYTES_MAX = 32 * 1024


_LOCAL = re.compile(r"embedded(:|$)|(ollama|ollama_chat|lm_studio|hosted_vllm|vllm|llamafile)/")


class PriceTable:
    """Finds prices by model name. What is unknown or unreadable is None, never an error."""

    def __init__(self, path: Path | None = None) -> None:
        """`path` is for another table of the same form."""
        self._path = path
        self._found: dict[str, Price | None] = {}
        self._told = False

    async def find(self, model: str) -> Price | None:
        """The price of a name such as "groq/llama-3.3-70b-versatile" or "gpt-4.1-mini".

        The first time a name is asked for, a thread searches for a few milliseconds.
        """
        if model not in self._found:
            if len(self._found) >= NAMES_MAX:
                self._found.clear()
            self._found[model] = await asyncio.to_thread(self._search, model)
        return self._found[model]

    def _search(self, model: str) -> Price | None:
        if _LOCAL.match(model):
            return FREE
        try:
            with (
                (self._path or shipped()).open("rb") as file,
                mmap(file.fileno(), 0, access=ACCESS_READ) as table,
            ):
                # Raises ValueError when the table is broken where the model stands.
                name = model.strip()
                free = name.startswith("openrouter/") and name.endswith(":free")
                for candidate in _candidates(name):
                    entry = _entry(table, candidate) or _entry(table, _dated(table, candidate))
                    if entry is not None:
                        thresholds = sorted(
                            int(found[1]) for key in entry if (found := _TIER.match(key))
                        )
                        rates = _rates(entry, "")
                        price = Price(
                            provider=str(entry["litellm_provider"]),
                            rates=rates,
                            tiers=tuple(
                                (k * 1000, _rates(entry, f"_above_{k}k_tokens", rates))
                                for k in thresholds
                            ),
                            window=_count(entry.get("max_input_tokens"))
                            or _count(entry.get("max_tokens")),
                            output_max=_count(entry.get("max_output_tokens")),
                            effort=entry.get("supports_reasoning") is True,
                            caching=entry.get("supports_prompt_caching") is True,
                            vision=entry.get("supports_vision") is True,
                        )
                        return replace(price, rates=FREE.rates, tiers=()) if free else price
                return Price(provider="openrouter", rates=FREE.rates) if free else None
        except (OSError, ValueError) as error:
            if not self._told:
                self._told = True
                log.warning("prices.unreadable", why=f"{type(error).__name__}: {error}")
            return None


async def known_prefixes() -> frozenset[str]:
    """The prefixes of model names that the library knows; empty where its list cannot be read."""
    return await asyncio.to_thread(_prefixes)


def _prefixes() -> frozenset[str]:
    try:
        found = json.loads(shipped(PROVIDERS_FILE).read_bytes())["providers"]
        return frozenset(found)
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("prices.unreadable", why=f"{type(error).__name__}: {error}")
        return frozenset()


def shipped(file: str = FILE) -> Path:
    """Where the library keeps its table. Raises FileNotFoundError without the library."""
    spec = importlib.util.find_spec(LIBRARY)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        return Path(folder) / file
    raise FileNotFoundError(f"{LIBRARY} is not installed")


# --- names -------------------------------------------------------------------------------------

_DATE = re.compile(r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|\d{4}|latest)$")
_VARIANT = re.compile(r":(?:free|nitro|floor|online|exacto|extended|thinking)$")


def _candidates(name: str) -> Iterator[str]:
    """Under which names a model may stand in the table, the likeliest first.

    OpenAI's, Anthropic's, Cohere's and Bedrock's stand there without their provider; what
    OpenRouter passes on costs what its maker takes, and is named with dots there.
    """
    plain = _VARIANT.sub("", name)
    whole = [plain, _DATE.sub("", plain)]
    prefix, _, rest = plain.partition("/")
    if prefix == "fireworks_ai" and rest:
        whole.append(f"fireworks_ai/accounts/fireworks/models/{rest}")
    if prefix == "openrouter" and rest:
        whole += [rest, rest.replace(".", "-"), _DATE.sub("", rest)]
    for candidate in tuple(whole):
        prefix, _, rest = candidate.partition("/")
        if rest and prefix in ("openai", "anthropic", "cohere", "bedrock", "vertex_ai"):
            whole.append(rest)
    yield from dict.fromkeys(whole)


def _dated(table: mmap, name: str) -> str:
    """The newest dated name of a model that stands there with a date only; empty if none."""
    if not name:
        return ""
    quoted = re.escape(json.dumps(name)[:-1].encode())
    dates = re.findall(quoted + rb'([-@](?:\d{8}|\d{4}-\d{2}-\d{2}))"\s*:', table)
    return f"{name}{max(dates).decode()}" if dates else ""


# --- entries -----------------------------------------------------------------------------------


def _entry(table: mmap, key: str) -> dict[str, Any] | None:
    """The object under a key, wherever blanks and line ends stand. Reads nothing else."""
    quoted = json.dumps(key).encode()
    at = table.find(quoted) if key else -1
    while at >= 0:
        after = at + len(quoted)
        text = table[after : after + _ENTRY_BYTES_MAX].decode("utf-8", "replace").lstrip()
        if text.startswith(":"):
            entry, _ = json.JSONDecoder().raw_decode(text[1:].lstrip())
            if isinstance(entry, dict) and "litellm_provider" in entry:
                return entry
        at = table.find(quoted, after)
    return None


_TIER = re.compile(r"input_cost_per_token_above_(\d+)k_tokens$")


def _rates(entry: dict[str, Any], suffix: str, lower: Rates | None = None) -> Rates:
    """The rates whose keys end so; those that are not named are those of the `lower` tier."""
    lower = lower or Rates()

    def rate(key: str, former: float | None) -> float | None:
        found = _number(entry.get(f"{key}{suffix}"))
        return former if found is None else found

    read = rate("input_cost_per_token_cache_hit", lower.cache_read)
    return Rates(
        input=rate("input_cost_per_token", lower.input),
        output=rate("output_cost_per_token", lower.output),
        cache_read=rate("cache_read_input_token_cost", read),
        cache_write=rate("cache_creation_input_token_cost", lower.cache_write),
    )


def _number(value: object) -> float | None:
    """A rate. Anything else, a negative or an endless one, is no rate."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1 else None


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 < value < 1e9 else 0
