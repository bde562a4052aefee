"""The sections of the settings about what is remembered: facts, insights, history."""

from __future__ import annotations

from pydantic import Field

from bot.config_section import Section


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


class MemorySettings(Section):
    """What is remembered of people, beyond the conversation."""

    recalled: int = Field(
        default=5, ge=0, le=20, description="Facts that a prompt shows, those that fit best."
    )
    embeddings: bool = Field(
        default=True,
        description="Find by meaning too, not by words alone (100 MB of memory once used).",
    )
    insights: bool = Field(
        default=True,
        description="After a turn with tools, or a long message, note what helps in the next half "
        "hour: costs one small model call.",
    )
    insights_minutes: float = Field(
        default=30.0, gt=0, description="How long such notes are used, minutes."
    )
    documents_unused_days: int = Field(
        default=30, ge=1, description="Documents unused for so long are offered for removal."
    )
    extraction: ExtractionSettings = ExtractionSettings()


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
