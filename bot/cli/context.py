"""What every command does first: find the home, read the settings, set up logging.

`exit_for` turns what went wrong on purpose into one clear message and an exit code.
"""

from __future__ import annotations

import errno
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING

import typer

from memory.records.errors import AssistantError, SettingsWrong

if TYPE_CHECKING:
    from bot.settings.home import Home
    from bot.settings.schema.settings import Settings

DONE, FAILED, WRONG_USAGE = 0, 1, 2
"""Exit codes (SPEC §1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A home that is ready to be used. `digest` names the settings as they were read."""

    home: Home
    settings: Settings
    env: dict[str, str]
    digest: str


@contextmanager
def exit_for() -> Iterator[None]:
    """Say what went wrong in one message, without a traceback."""
    try:
        yield
    except (AssistantError, ExceptionGroup) as error:
        if not (sentences := _sentences(error)):
            raise
        for sentence in sentences:
            typer.secho(sentence, err=True, fg="red")
        wrong = any(isinstance(leaf, SettingsWrong) for leaf in _leaves(error))
        raise typer.Exit(WRONG_USAGE if wrong else FAILED) from None


@contextmanager
def last_words() -> Iterator[None]:
    """Write what ends the bot to its log file too, even if the settings cannot be read."""
    try:
        yield
    except (AssistantError, ExceptionGroup) as error:
        import structlog

        from bot.settings.home import find_home
        from bot.settings.load import load
        from bot.settings.logging import secrets_of, set_up
        from bot.settings.schema.settings import LoggingSettings

        env = dict(os.environ)
        home = find_home(env)
        sentences = _sentences(error)
        if not sentences or not home.logs.is_dir():
            raise
        try:
            settings = load(home.path, env)
            logging, secrets = settings.logging, secrets_of(settings, env)
        except SettingsWrong:  # whose sentences quote no value of a secret
            logging, secrets = LoggingSettings(), ()
        with set_up(logging, secrets=secrets, stream=_Nowhere(), file=home.log_file):
            structlog.get_logger(__name__).critical("bot.ended", why=" ".join(sentences))
        raise


def _sentences(error: BaseException) -> list[str]:
    """Return the sentences of our own errors, each once; none if there is any other error."""
    from bot.markup.command_text import on_command_line

    leaves = list(_leaves(error))
    if not all(isinstance(leaf, AssistantError) for leaf in leaves):
        return []
    return list(dict.fromkeys(on_command_line(str(leaf)) for leaf in leaves))


class _Nowhere(StringIO):
    """Takes log lines that would disturb a conversation; the log file has them too."""

    def write(self, text: str) -> int:
        return len(text)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """Return what a nest of exception groups holds."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _is_unread(error: Exception) -> bool:
    """Return whether who read the output has left, and nothing else went wrong. Another pipe or
    socket that breaks is a fault."""
    if not all(isinstance(leaf, BrokenPipeError) for leaf in _leaves(error)):
        return False
    try:
        watched = select.poll()
        watched.register(sys.stdout.fileno(), 0)
        return bool(watched.poll(0))
    except (OSError, ValueError):  # no stream of the system, or closed
        return False


def read_home() -> Opened:
    """Return the home, made ready, and its settings. Raise SettingsWrong, StorageError."""
    from bot.settings.home import find_home, prepare, settings_digest
    from bot.settings.load import load

    env = dict(os.environ)
    home = find_home(env)
    findings = prepare(home)
    digest = settings_digest(home, env)
    settings = load(home.path, env)
    for finding in findings:
        typer.secho(f"Warning: {finding.problem}. To fix it: {finding.fix}", err=True, fg="yellow")
    return Opened(home=home, settings=settings, env=env, digest=digest)


@contextmanager
def logged(home: Opened, *, to_terminal: bool) -> Iterator[None]:
    """Logging in force; what nobody caught becomes one sentence here and a traceback in the log.

    `to_terminal` False keeps log lines out of a conversation: they go to the log file alone.
    """
    from bot.settings.logging import secrets_of, set_up

    with set_up(
        home.settings.logging,
        secrets=secrets_of(home.settings, home.env),
        stream=sys.stderr if to_terminal else _Nowhere(),
        file=home.home.log_file,
    ) as logs:
        try:
            yield
        except (AssistantError, typer.Exit, typer.Abort, KeyboardInterrupt, SystemExit):
            raise
        except Exception as error:  # the process's own entry: nothing catches it after this
            if all(isinstance(leaf, AssistantError) for leaf in _leaves(error)):
                raise
            if _is_unread(error):
                # `hearthbot … | head -1`: typer ends quietly at this, wherever it comes from.
                raise BrokenPipeError(errno.EPIPE, "Nobody reads the output.") from None
            logs.crashed(error)
            kinds = ", ".join(dict.fromkeys(type(leaf).__name__ for leaf in _leaves(error)))
            typer.secho(
                f"Hearthbot stopped because of a fault of its own ({kinds}). What was stored is "
                f"kept. The details are in {home.home.log_file}.",
                err=True,
                fg="red",
            )
            raise typer.Exit(FAILED) from None


@contextmanager
def logged_apart(home: Opened) -> Iterator[None]:
    """Log lines go to this home's file alone, inside of `logged` for another one, whose file gets
    the traceback of what nobody caught: this home may be gone by then."""
    from bot.settings.logging import secrets_of, set_up

    with set_up(
        home.settings.logging,
        secrets=secrets_of(home.settings, home.env),
        stream=_Nowhere(),
        file=home.home.log_file,
    ):
        yield


@contextmanager
def opened(*, log_to_terminal: bool) -> Iterator[Opened]:
    """Do `read_home` and `logged` in one, as most commands begin."""
    home = read_home()
    with logged(home, to_terminal=log_to_terminal):
        yield home
