"""What every section of the settings is: frozen, strict, and silent about what it was given."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Strict: in TOML, "8" is not a number and 1 is not true. Input is hidden because pydantic
    would otherwise quote a mistyped secret."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, allow_inf_nan=False
    )
