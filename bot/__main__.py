"""The command `hearthbot`."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

from bot.lean import (
    late_methods,
    load_without,
    quick_end,
    seldom_garbage_search,
    without_garbage_search,
)


def main() -> None:
    """Run the command line."""
    is_to_run = sys.argv[1:2] in ([], ["run"])
    # A shell that asks what may follow does so with no argument, whatever was typed.
    is_alone = is_to_run and "_HEARTHBOT_COMPLETE" not in os.environ
    if is_to_run:
        # While the program still loads nothing is open, so a stop is a plain end. As the first
        # process of a container it would not even be heard without a handler.
        signal.signal(signal.SIGTERM, _leave)
    with without_garbage_search(), late_methods():
        load_without("rich", "structlog")
        if is_alone:
            # What reads the home is loaded with the rest, since it is as lean only meanwhile.
            import bot.settings.home
            import bot.settings.load
            import bot.settings.logging  # noqa: F401
            from bot.cli.run import new_app

            app = new_app()
        else:
            from bot.cli.main import app
    with quick_end():
        if is_to_run:
            app()
            return
        with seldom_garbage_search(), late_methods():
            app()


def _leave(number: int, frame: FrameType | None) -> None:
    # At once: an exception in the middle of whatever is being made would be told as an error.
    os._exit(0)


if __name__ == "__main__":
    main()
