"""Loads libraries without the extras that they would bring along unasked.

structlog loads rich for tracebacks that show local variables, secrets too; httpx loads click,
pygments and rich for a command line of its own. We use neither, and together they take a fifth of
the start.
"""

from __future__ import annotations

import importlib
import sys


def load_without(extra: str, *names: str) -> None:
    """Imports modules for which `extra` is optional. Where it is loaded already, nothing is won."""
    if extra not in sys.modules:
        sys.modules[extra] = None  # type: ignore[assignment]  # makes importing it fail
        try:
            for name in names:
                importlib.import_module(name)
        finally:
            del sys.modules[extra]
