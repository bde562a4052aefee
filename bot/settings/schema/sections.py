"""The sections of the settings about what is remembered: facts, insights, history."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bot.settings.schema.values import at_least_or_none, matching
from memory.records.section import ExtractionSettings, Section, Text


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


# --- config schedule ----------------------------------------------------------------------------
#
# The sections of the settings about what happens by the clock: jobs and the heartbeat.

_Check = Annotated[
    Text,
    matching(
        r"(?:file|tool|command):\s*\S.{0,400}|url:\s*https?://\S{1,400}",
        "allowed are file:PATH, url:https://…, tool:NAME, command:COMMAND",
    ),
]
_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9]"


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
    every_minutes: Annotated[int, at_least_or_none(5, none="off")] = Field(
        default=30, ge=0, description="Minutes between two looks, 5 at least. 0: off."
    )
    active_hours: Annotated[
        str,
        matching(f"({_CLOCK}-{_CLOCK})?", "allowed: two times of the day, such as 08:00-22:00"),
    ] = Field(
        default="",
        description="Only between these times of the owner's day, such as 08:00-22:00. Empty: "
        "always.",
    )
    deliver_to: str = Field(
        default="",
        description="The chat that hears of it, such as telegram:42. Empty: the owner's private "
        "chat.",
    )
    checks: Annotated[tuple[_Check, ...], Field(strict=False)] = Field(
        default=(),
        description="Cheap looks before a model is asked: file:PATH or url:ADDRESS (has it "
        "changed?), tool:NAME (does it say anything new?), command:COMMAND (does it end with 0?). "
        'Such as ["file:files/inbox.md"]. Empty: the list alone decides.',
    )


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
