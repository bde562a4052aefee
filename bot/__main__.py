"""The command `hearthbot`."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING

from bot.lean import (
    late_methods,
    load_without,
    quick_end,
    seldom_garbage_search,
    without_garbage_search,
)

if TYPE_CHECKING:
    from typer import Typer


def main() -> None:
    """Runs the command line."""
    is_to_run = sys.argv[1:2] in ([], ["run"])
    if is_to_run:
        # While the program still loads nothing is open, so a stop is a plain end. As the first
        # process of a container it would not even be heard without a handler.
        signal.signal(signal.SIGTERM, _leave)
    with without_garbage_search(), late_methods():
        load_without("rich", "structlog")
        app = _bot_alone() if is_to_run and not _completes() else _every_command()
    with quick_end():
        if is_to_run:
            app()
            return
        with seldom_garbage_search(), late_methods():
            app()


def _bot_alone() -> Typer:
    # What reads the home is loaded with the rest, since it is as lean only while all this loads.
    import bot.settings.home
    import bot.settings.load
    import bot.settings.logging  # noqa: F401
    from bot.cli.run import new_app

    return new_app()


def _every_command() -> Typer:
    from bot.cli.main import app

    return app


def _completes() -> bool:
    """Whether a shell asks what may follow: with no argument, whatever was typed."""
    return "_HEARTHBOT_COMPLETE" in os.environ


def _leave(number: int, frame: FrameType | None) -> None:
    # At once: an exception in the middle of whatever is being made would be told as an error.
    os._exit(0)


if __name__ == "__main__":
    main()
