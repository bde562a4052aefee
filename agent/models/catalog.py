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

import structlog

from agent.models.chat_request import Dialect
from memory.records.usage import FREE, Price, Rates

LOCAL_WINDOW = 8_192
USUAL_WINDOW = 128_000
"""Tokens that a model takes of which the price table knows nothing; a guess on the safe side for
local servers, which cut a longer prompt without a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider that a model's name may begin with.

    Without an `api_base` it has a language of its own, which only litellm speaks. `keys` are the
    variables for its key, `model` the one that answers unless another is named. `effort`: it takes
    OpenAI's setting for how long a model thinks, from models that have one. `base` is the variable
    for the owner's address there, where it has none of its own; `library` what litellm needs
    besides.
    """

    title: str
    api_base: str = ""
    keys: tuple[str, ...] = ()
    model: str = ""
    dialect: Dialect = field(default_factory=Dialect)
    effort: bool = False
    base: str = ""
    library: str = ""

    def key_set(self, env: Mapping[str, str]) -> str:
        """Return the variable in which its key is set, empty where none is."""
        return next((name for name in self.keys if env.get(name)), "")


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(
        title="OpenAI",
        api_base="https://api.openai.com/v1",
        keys=("OPENAI_API_KEY",),
        model="gpt-4.1-mini",
        effort=True,
    ),
    "openrouter": Provider(
        title="OpenRouter",
        api_base="https://openrouter.ai/api/v1",
        keys=("OPENROUTER_API_KEY",),
        model="openai/gpt-4.1-mini",
        dialect=Dialect(cache_marks=True),
        effort=True,
    ),
    "groq": Provider(
        title="Groq",
        api_base="https://api.groq.com/openai/v1",
        keys=("GROQ_API_KEY",),
        model="llama-3.3-70b-versatile",
    ),
    "mistral": Provider(
        title="Mistral",
        api_base="https://api.mistral.ai/v1",
        keys=("MISTRAL_API_KEY",),
        model="mistral-small-latest",
        dialect=Dialect(stream_usage=False),  # it refuses unknown fields, and counts anyway
    ),
    "deepseek": Provider(
        title="DeepSeek",
        api_base="https://api.deepseek.com/v1",
        keys=("DEEPSEEK_API_KEY",),
        model="deepseek-chat",
        dialect=Dialect(plain=True),
    ),
    "xai": Provider(
        title="xAI", api_base="https://api.x.ai/v1", keys=("XAI_API_KEY",), model="grok-3-mini"
    ),
    "together_ai": Provider(
        title="Together AI", api_base="https://api.together.xyz/v1", keys=("TOGETHERAI_API_KEY",)
    ),
    "fireworks_ai": Provider(
        title="Fireworks AI",
        api_base="https://api.fireworks.ai/inference/v1",
        keys=("FIREWORKS_AI_API_KEY",),
    ),
    "ollama": Provider(
        title="Ollama", api_base="http://127.0.0.1:11434/v1", dialect=Dialect(plain=True)
    ),
    "lm_studio": Provider(
        title="LM Studio", api_base="http://127.0.0.1:1234/v1", dialect=Dialect(plain=True)
    ),
    "hosted_vllm": Provider(title="vLLM", api_base="http://127.0.0.1:8000/v1"),
    "anthropic": Provider(title="Anthropic", keys=("ANTHROPIC_API_KEY",), model="claude-haiku-4-5"),
    "gemini": Provider(
        title="Gemini", keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"), model="gemini-2.5-flash"
    ),
    "azure": Provider(
        title="Azure", keys=("AZURE_API_KEY", "AZURE_OPENAI_API_KEY"), base="AZURE_API_BASE"
    ),
    "azure_ai": Provider(title="Azure AI", keys=("AZURE_AI_API_KEY",), base="AZURE_AI_API_BASE"),
    "vertex_ai": Provider(title="Vertex AI", library="google.auth"),
    "bedrock": Provider(title="Bedrock", library="boto3"),
}
ALIASES = {"vllm": "hosted_vllm", "ollama_chat": "ollama", "cohere_chat": "cohere"}
LOCAL = ("ollama", "lm_studio", "hosted_vllm")
PROBED = ("ollama", "lm_studio")
BY_KEY = ("openai", "openrouter", "groq", "mistral", "deepseek", "xai", "anthropic", "gemini")
"""Whose key is looked for, in this order: whoever has keys of several gets the lighter client."""

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


def owner_of(name: str) -> str:
    """Whose model this is, by its name; empty when that is not known."""
    return next((owner for mark, owner in _OWNERS if mark.match(name.lower())), "")


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
        """Return the price of a name such as "groq/llama-3.3-70b-versatile" or "gpt-4.1-mini".

        The first time a name is asked for, a thread searches for a few milliseconds.
        """
        if model not in self._found:
            if len(self._found) >= NAMES_MAX:
                self._found.clear()
            try:
                self._found[model] = await asyncio.to_thread(self._search, model.strip())
            except (OSError, ValueError) as error:  # it is broken where the model stands
                self._found[model] = None
                if not self._told:
                    self._told = True
                    log.warning("prices.unreadable", why=f"{type(error).__name__}: {error}")
        return self._found[model]

    def _search(self, name: str) -> Price | None:
        if _LOCAL.match(name):
            return FREE
        free = name.startswith("openrouter/") and name.endswith(":free")
        with (
            (self._path or shipped()).open("rb") as file,
            mmap(file.fileno(), 0, access=ACCESS_READ) as table,
        ):
            for candidate in _candidates(name):
                entry = _entry(table, candidate) or _entry(table, _dated(table, candidate))
                if entry is not None:
                    price = _price(entry)
                    return replace(price, rates=FREE.rates, tiers=()) if free else price
        return Price(provider="openrouter", rates=FREE.rates) if free else None


async def known_prefixes() -> frozenset[str]:
    """Return the prefixes of model names that the library knows; none where its list cannot be
    read."""
    try:
        text = await asyncio.to_thread(shipped(PROVIDERS_FILE).read_bytes)
        return frozenset(json.loads(text)["providers"])
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


Listed = Mapping[str, object]
"""What the table says of one model."""


def _entry(table: mmap, key: str) -> Listed | None:
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


def _price(entry: Listed) -> Price:
    thresholds = sorted(int(found[1]) for key in entry if (found := _TIER.match(key)))
    rates = _rates(entry, "", Rates())
    return Price(
        provider=str(entry["litellm_provider"]),
        rates=rates,
        tiers=tuple((k * 1000, _rates(entry, f"_above_{k}k_tokens", rates)) for k in thresholds),
        window=_count(entry.get("max_input_tokens")) or _count(entry.get("max_tokens")),
        output_max=_count(entry.get("max_output_tokens")),
        effort=entry.get("supports_reasoning") is True,
        caching=entry.get("supports_prompt_caching") is True,
        vision=entry.get("supports_vision") is True,
    )


def _rates(entry: Listed, suffix: str, lower: Rates) -> Rates:
    """The rates whose keys end so; those that are not named are those of the `lower` tier.

    Anything else than a number, a negative or an endless one, is no rate.
    """

    def rate(key: str, former: float | None) -> float | None:
        found = _number(entry.get(f"{key}{suffix}"))
        return found if 0 <= found < 1 else former

    read = rate("input_cost_per_token_cache_hit", lower.cache_read)
    return Rates(
        input=rate("input_cost_per_token", lower.input),
        output=rate("output_cost_per_token", lower.output),
        cache_read=rate("cache_read_input_token_cost", read),
        cache_write=rate("cache_creation_input_token_cost", lower.cache_write),
    )


def _count(value: object) -> int:
    number = _number(value)
    return int(number) if 0 < number < 1e9 else 0


def _number(value: object) -> float:
    """Return a number, -1 for what is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return -1.0
