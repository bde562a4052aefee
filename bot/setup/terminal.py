"""What the guided set-up is given, whom it asks, and what comes of it. Values and one port.

The steps are `bot.setup.model`, `telegram`, `slack` and `person`; `bot.setup.wizard` puts them in
order.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from bot.doctor.live_telegram import Newcomer
from bot.settings.edit import Value
from bot.settings.messages import variable
from bot.settings.schema.settings import Settings
from bot.settings.tree import KeyPath

T = TypeVar("T")


class SetupTerminal(Protocol):
    """Where the person sits. Each question may raise KeyboardInterrupt: then nothing is saved."""

    def title(self, text: str) -> None:
        """A new step begins."""

    def say(self, text: str) -> None:
        """What one has to know or do."""

    def good(self, text: str) -> None:
        """Something was tested and works."""

    def bad(self, text: str) -> None:
        """Something was tested and does not work; the text says what to do."""

    def ask(self, question: str, *, default: str = "") -> str:
        """One line; Enter is the default."""

    def ask_secret(self, question: str) -> str:
        """One line that is not shown; Enter is empty."""

    def confirm(self, question: str, *, default: bool = True) -> bool:
        """Yes or no."""

    def pick(self, question: str, options: Sequence[str], *, default: int) -> int:
        """The place of one of the options; Enter is the default."""

    def live(self, doing: str, work: Coroutine[Any, Any, T]) -> T:
        """Runs something to its end, and shows meanwhile that it runs."""

    def live_or_enter(self, doing: str, work: Coroutine[Any, Any, T]) -> T | None:
        """The same, but Enter ends it without a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupState:
    """What there is before anything is asked.

    `owners` are the addresses of the owner; `is_running` says whether a bot serves this home now;
    `zone` is this machine's.
    """

    settings: Settings
    env: Mapping[str, str]
    manifest: Path
    zone: str
    owners: Sequence[str] = ()
    is_running: bool = False

    def by_environment(self, *paths: KeyPath) -> list[str]:
        """The environment variables that set these keys: they win over config.toml."""
        return [variable(path) for path in paths if variable(path) in self.env]


@dataclass(slots=True)
class Plan:
    """What is to be saved, all of it at the end. None as a value takes a key out."""

    changes: dict[KeyPath, Value] = field(default_factory=dict)
    owner: Newcomer | None = None
    name: str = ""
    zone: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.changes or self.owner or self.name or self.zone)
