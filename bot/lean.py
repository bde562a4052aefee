"""Loads libraries without the extras that they would bring along unasked, and without looking for
garbage in between.

structlog loads rich for tracebacks that show local variables, secrets too; httpx loads click,
pygments and rich for a command line of its own. We use neither, and together they take a fifth of
the start.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_garbage_search() -> Iterator[None]:
    """For what loads and puts together: what it makes stays, and is never looked through again.

    Else the search for garbage goes through all of it time and again: a tenth of the start, and
    later a pause of 50 ms in the middle of somebody's turn.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def load_without(extra: str, *names: str) -> None:
    """Imports modules for which `extra` is optional. Where it is loaded already, nothing is won."""
    if extra not in sys.modules:
        sys.modules[extra] = None  # type: ignore[assignment]  # makes importing it fail
        try:
            for name in names:
                importlib.import_module(name)
        finally:
            del sys.modules[extra]
