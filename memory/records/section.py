"""Sections of the settings that a component takes as they are.

They stand here and not beside it, so that a command which only reads settings does not load it.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

QueuePolicy = Literal["steer", "followup", "collect"]


def http_url(value: str) -> str:
    """Return an address without a slash at its end. Raises ValueError for what is none."""
    if value and not re.fullmatch(r"https?://[^\s/]+(/\S*)?", value):
        raise ValueError("allowed: an address that begins with https:// or http://")
    return value.rstrip("/")


Text = Annotated[str, Field(min_length=1)]
Names = Annotated[tuple[Text, ...], Field(strict=False)]
Url = Annotated[str, AfterValidator(http_url)]


class Section(BaseModel):
    """Keys of the settings that belong together, checked once and frozen.

    Strict: in TOML, "8" is not a number and 1 is not true. Input is hidden because pydantic would
    otherwise quote a mistyped secret.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, allow_inf_nan=False
    )


class TurnsSettings(Section):
    """How messages become turns."""

    parallel: int = Field(default=64, ge=1, description="Conversations that are served at once.")
    queue: QueuePolicy = Field(
        default="steer",
        description="A message that arrives during a turn: is handed into it; or waits as a turn "
        "of its own; or is joined with others that arrive soon after.",
    )
    collect_s: float = Field(
        default=1.5, ge=0, description="With collect: how long it waits for more, seconds."
    )
    limit_s: float = Field(default=300.0, gt=0, description="Limit of one turn, seconds.")
    drain_s: float = Field(
        default=10.0, ge=0, description="At a stop, seconds that running turns get to finish."
    )


class AgentTasksSettings(Section):
    """Subagents: work that the assistant hands to a turn of its own."""

    at_once: int = Field(default=5, ge=0, le=50, description="At work for one chat at once.")
    minutes: int = Field(
        default=5, ge=1, le=30, description="Minutes for one, where its task names none."
    )
    steps: int = Field(
        default=10, ge=1, le=50, description="Model calls with tools in one of them."
    )
    tokens: int = Field(default=200_000, ge=0, description="Tokens that one may use. 0: no bound.")


class LlmSettings(Section):
    """The language model."""

    model: str = Field(
        default="",
        description="The model, such as openai/gpt-4.1-mini. Empty: the bot picks one at start "
        "and says which and why.",
    )
    api_base: Url = Field(
        default="",
        description="Address of an OpenAI-compatible endpoint; it usually ends in /v1. Empty: the "
        "provider's own.",
    )
    api_key: SecretStr = Field(
        default=SecretStr(""),
        description="The provider's key. Empty: its usual environment variable.",
    )
    client: Literal["auto", "litellm", "direct"] = Field(
        default="auto",
        description="How the model is reached. direct: the bot's own client, for endpoints that "
        "speak as OpenAI does. litellm: the library of that name, which knows every provider and "
        "takes seconds to load. auto: direct where that is possible.",
    )
    fallbacks: Names = Field(
        default=(),
        description="Models to ask, in this order, while the first one cannot answer.",
    )
    cheap_model: str = Field(
        default="",
        description="The model for work behind the scenes, such as summaries. Empty: llm.model.",
    )
    max_output_tokens: int = Field(
        default=8192, ge=1, description="Tokens that one answer may have."
    )
    window: int = Field(
        default=0, ge=0, description="The model's context window in tokens. 0: known by its name."
    )
    timeout_s: float = Field(default=120.0, gt=0, description="Limit of one model call, seconds.")
    vision: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="Whether pictures that people send are shown to the model. auto: where it is "
        "known that it sees; on: also where nobody knows, as with a model on your own machine.",
    )
    transcription_model: str = Field(
        default="",
        description="The model that writes down voice notes, such as openai/whisper-1 or "
        "groq/whisper-large-v3. Empty: they are kept, and the assistant is told how long they are.",
    )
