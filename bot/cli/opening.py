"""What every command does first: find the home, read the settings, set up logging.

`exit_for` turns what went wrong on purpose into one clear message and an exit code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING

import typer

from agent.errors import AssistantError, SettingsWrong

if TYPE_CHECKING:
    from bot.config import Settings
    from bot.home import Home
    from bot.logs import Logs

DONE, FAILED, WRONG_USAGE = 0, 1, 2
"""Exit codes (SPEC §1)."""

PROVIDER_KEYS_END = "_API_KEY"
"""Environment variables of providers: their values are kept out of logs too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A home that is ready to be used. `digest` names the settings as they were read."""

    home: Home
    settings: Settings
    env: dict[str, str]
    digest: str
    logs: Logs


@contextmanager
def exit_for() -> Iterator[None]:
    """Says what went wrong in one message, without a traceback."""
    try:
        yield
    except (AssistantError, ExceptionGroup) as error:
        known = [leaf for leaf in _leaves(error) if isinstance(leaf, AssistantError)]
        if not known:
            raise
        for leaf in known:
            typer.secho(str(leaf), err=True, fg="red")
        wrong = any(isinstance(leaf, SettingsWrong) for leaf in known)
        raise typer.Exit(WRONG_USAGE if wrong else FAILED) from None


class _Nowhere(StringIO):
    """Takes log lines that would disturb a conversation; the log file has them too."""

    def write(self, text: str) -> int:
        return len(text)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """What a nest of exception groups holds."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


@contextmanager
def opened(*, log_to_terminal: bool) -> Iterator[Opened]:
    """The home and its settings, with logging in force.

    `log_to_terminal` False keeps log lines out of a conversation in the terminal: they go to the
    log file alone. Raises SettingsWrong, StorageError.
    """
    from bot.config import load
    from bot.home import find_home, prepare, settings_digest
    from bot.logs import set_up

    env = dict(os.environ)
    home = find_home(env)
    findings = prepare(home)
    digest = settings_digest(home, env)
    settings = load(home.path, env)
    keys = [value for name, value in env.items() if name.endswith(PROVIDER_KEYS_END) and value]
    with ExitStack() as stack:
        logs = stack.enter_context(
            set_up(
                settings.logging,
                secrets=[*settings.secrets(), *keys],
                stream=sys.stderr if log_to_terminal else _Nowhere(),
                file=home.log_file,
            )
        )
        for finding in findings:
            typer.secho(f"Warning: {finding.problem} {finding.fix}", err=True, fg="yellow")
        yield Opened(home=home, settings=settings, env=env, digest=digest, logs=logs)
