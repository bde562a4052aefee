"""Runs Hearthbot with its commits timed.

`python -m tests.bench.probe FILE run`. When the bot stops, FILE has each commit as
[CLOCK_MONOTONIC second at its end, seconds it took].
"""

import atexit
import functools
import json
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

COMMITS: list[tuple[float, float]] = []


class TimedConnection(sqlite3.Connection):
    """Notes each commit. All of Hearthbot's transactions end by executing `commit`."""

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if sql != "commit":
            return super().execute(sql, *values)
        began = time.perf_counter()
        done = super().execute(sql, *values)
        COMMITS.append((time.monotonic(), time.perf_counter() - began))
        return done


def main() -> None:
    """Puts the probe in, then is `hearthbot`."""
    file = Path(sys.argv.pop(1))
    connect = functools.partial(sqlite3.connect, factory=TimedConnection)
    vars(sqlite3)["connect"] = connect
    atexit.register(lambda: file.write_text(json.dumps(COMMITS)))
    from bot.__main__ import main as hearthbot

    hearthbot()


if __name__ == "__main__":
    main()
