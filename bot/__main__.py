"""The command `hearthbot`."""

from __future__ import annotations

import importlib
import signal
import sys
from types import FrameType


def main() -> None:
    """Runs the command line."""
    if sys.argv[1:2] in ([], ["run"]):
        # While the program still loads nothing is open, so a stop is a plain end. As the first
        # process of a container it would not even be heard without a handler.
        signal.signal(signal.SIGTERM, _leave)
    _load_structlog()
    from bot.cli.main import app

    app()


def _load_structlog() -> None:
    """Without rich, which it would load for tracebacks that show local variables, secrets too:
    we never draw those, and it takes a tenth of the start."""
    if "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # importing it fails, as documented
    try:
        importlib.import_module("structlog")
    finally:
        del sys.modules["rich"]


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(0)


if __name__ == "__main__":
    main()
