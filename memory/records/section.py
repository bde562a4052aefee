"""Base of a section of the settings, which stands beside the component that it configures."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Keys of the settings that belong together, checked once and frozen.

    Strict: in TOML, "8" is not a number and 1 is not true. Input is hidden because pydantic would
    otherwise quote a mistyped secret.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, allow_inf_nan=False
    )
