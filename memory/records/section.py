"""Sections of the settings that a component takes as they are.

They stand here and not beside it, so that a command which only reads settings does not load it.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

QueuePolicy = Literal["steer", "followup", "collect"]


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
