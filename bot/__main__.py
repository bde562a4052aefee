"""The command `hearthbot`."""

from __future__ import annotations

import signal
import sys
from types import FrameType

from bot.lean import late_methods, load_without, without_garbage_search


def main() -> None:
    """Runs the command line."""
    if sys.argv[1:2] in ([], ["run"]):
        # While the program still loads nothing is open, so a stop is a plain end. As the first
        # process of a container it would not even be heard without a handler.
        signal.signal(signal.SIGTERM, _leave)
    with without_garbage_search(), late_methods():
        load_without("rich", "structlog")
        from bot.cli.main import app

    app()


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(0)


if __name__ == "__main__":
    main()
