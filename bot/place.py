"""What every part of the wiring may be given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent.ports import Clock
from bot.config import Settings
from bot.home import Home


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """The home, its settings, the time and the environment."""

    home: Home
    settings: Settings
    clock: Clock
    env: Mapping[str, str]
