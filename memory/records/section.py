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


class ExtractionSettings(Section):
    """Facts are found in a conversation once it has been idle for a while."""

    enabled: bool = Field(default=True, description="Whether facts are looked for at all.")
    idle_seconds: float = Field(
        default=300.0, ge=1, description="Seconds after the last message of a conversation."
    )
    max_turns: int = Field(
        default=10, ge=1, le=100, description="Exchanges that are looked at, the newest ones."
    )
    min_messages: int = Field(
        default=4, ge=1, description="Messages that a conversation must have had by then."
    )
    confidence_min: float = Field(
        default=0.7, ge=0, le=1, description="Facts that the model is less sure of are dropped."
    )
    facts_max: int = Field(default=5, ge=1, le=20, description="Facts of one conversation at most.")


class HistorySettings(Section):
    """What of a conversation is sent along; all of it is kept."""

    tokens_max: int = Field(
        default=24_000, ge=1, description="Tokens sent as history before it is summed up."
    )
    window_share: float = Field(
        default=0.75, gt=0, le=1, description="The same as a share of the model's window."
    )
    messages_max: int = Field(
        default=50, ge=1, description="Messages sent as history before it is summed up."
    )
    compact_every_s: float = Field(
        default=120.0, ge=0, description="Seconds between two summaries, unless the window is full."
    )
    tail_tokens: int = Field(
        default=4_000, ge=100, description="Tokens of the newest turns that stay word for word."
    )
    tail_exchanges: int = Field(
        default=2, ge=1, description="Exchanges that stay word for word, whatever their size."
    )
    boundary_confidence: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="How sure the model must be of a new topic for the older one to be cut off.",
    )
    summary_tokens: int = Field(default=500, ge=50, description="Tokens of a summary.")
    keep_days: int = Field(
        default=0, ge=0, description="Days after which what was said is erased. 0: never."
    )
    idle_reset_hours: float = Field(
        default=0.0, ge=0, description="Hours of silence after which a new one begins. 0: never."
    )


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
