"""The sections of the settings about what is remembered: facts, insights, history."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from memory.records.section import Names, Section


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


# --- config schedule ----------------------------------------------------------------------------
#
# The sections of the settings about what happens by the clock: jobs and the heartbeat.

_CHECK = re.compile(r"(?:file|tool|command):\s*\S.{0,400}|url:\s*https?://\S{1,400}")
_HOURS = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d-(?:[01]\d|2[0-3]):[0-5]\d")


class SchedulerSettings(Section):
    """Reminders and other jobs."""

    daily_max: int = Field(
        default=12,
        ge=0,
        description="Unasked messages a day to one person; what is more becomes a digest. What a "
        "person set up itself counts toward no limit.",
    )
    repeat_hours: float = Field(
        default=24.0, ge=0, description="Hours in which the same finding is not told again."
    )


class HeartbeatSettings(Section):
    """A regular look at workspace/HEARTBEAT.md. An empty list costs nothing."""

    enabled: bool = Field(default=True, description="Whether there is one.")
    every_minutes: int = Field(
        default=30, ge=0, description="Minutes between two looks, 5 at least. 0: off."
    )
    active_hours: str = Field(
        default="",
        description="Only between these times of the owner's day, such as 08:00-22:00. Empty: "
        "always.",
    )
    deliver_to: str = Field(
        default="",
        description="The chat that hears of it, such as telegram:42. Empty: the owner's private "
        "chat.",
    )
    checks: Names = Field(
        default=(),
        description="Cheap looks before a model is asked: file:PATH or url:ADDRESS (has it "
        "changed?), tool:NAME (does it say anything new?), command:COMMAND (does it end with 0?). "
        'Such as ["file:files/inbox.md"]. Empty: the list alone decides.',
    )

    @field_validator("every_minutes")
    @classmethod
    def _not_too_often(cls, minutes: int) -> int:
        if 0 < minutes < 5:
            raise ValueError("allowed: 0 (off), or 5 and more")
        return minutes

    @field_validator("checks")
    @classmethod
    def _forms(cls, checks: Names) -> Names:
        for check in checks:
            if not _CHECK.fullmatch(check):
                raise ValueError(
                    f"{check[:60]!r}: allowed are file:PATH, url:https://…, tool:NAME, "
                    "command:COMMAND"
                )
        return checks

    @field_validator("active_hours")
    @classmethod
    def _hours(cls, text: str) -> str:
        if text and not _HOURS.fullmatch(text):
            raise ValueError("allowed: two times of the day, such as 08:00-22:00")
        return text


# --- config attachments -------------------------------------------------------------------------
#
# The section of the settings about files that come with messages.


class AttachmentsSettings(Section):
    """Files that people send: pictures, documents, voice notes."""

    max_mb: float = Field(
        default=20.0,
        gt=0,
        le=100,
        description="Megabytes of a file that is fetched; of a larger one the assistant says that "
        "it is too large. Telegram gives a bot 20 at most.",
    )
    text_chars: int = Field(
        default=8000,
        ge=0,
        le=200_000,
        description="Characters of the documents of one message that the model reads at once; it "
        "reads on with read_file.",
    )
    picture_side: int = Field(
        default=1568,
        ge=256,
        le=3000,
        description="Pixels of the longest side of a picture as the model is shown it: of a larger "
        "one it gets a smaller copy. Needs the extra `pictures`; without it pictures are shown as "
        "they are, or not at all.",
    )
