"""The providers that a model name may begin with, and what a bare name tells.

Tables for `choose`, which reads them in order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.models.wire import Dialect

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
