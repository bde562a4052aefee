"""Runs the program and writes down by which of our own functions a message got to the model.

`python -m tests.acceptance.hops FILE ARGUMENTS…` is `python -m bot ARGUMENTS…` under a profile
function. What is a station, and what is none, is told in `tests.acceptance.test_hops`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Coroutine
from pathlib import Path
from types import FrameType
from typing import Any

import bot.__main__

ROOT = Path(__file__).parents[2]
OURS = tuple(f"{ROOT / package}/" for package in ("bot", "agent", "memory", "scheduler"))

Station = tuple[str, str]
"""The file of a function, from the checkout on, and its qualified name."""


class Hops:
    """The chain of our frames at each call that matters here; a profile function."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._creators: dict[int, tuple[object, list[Station]]] = {}
        self._asked: list[Station] = []
        """Who asked python-telegram-bot for updates last."""

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call":
            return
        match frame.f_code.co_name:
            case "create_task" if "asyncio" in frame.f_code.co_filename:
                self._created(frame)
            case "get_updates" if "/telegram/" in frame.f_code.co_filename:
                self._asked = self._chain(frame) or self._asked
            case "_request" if "/aiohttp/client" in frame.f_code.co_filename:
                if "/chat/completions" in str(frame.f_locals.get("str_or_url")):
                    self._write(self._chain(frame))

    def _created(self, frame: FrameType) -> None:
        work = frame.f_locals.get("coro")
        if isinstance(work, Coroutine) and id(work) not in self._creators:
            # It is held, so that its id is no other's.
            self._creators[id(work)] = (work, self._chain(frame))

    def _chain(self, frame: FrameType | None) -> list[Station]:
        """Our functions that wait for this frame, and for the task it runs in, outermost first."""
        found: list[Station] = []
        while frame is not None and frame.f_code.co_qualname != "Handle._run":
            name = frame.f_code.co_filename
            if name.startswith(OURS):
                found.append((str(Path(name).relative_to(ROOT)), frame.f_code.co_qualname))
            frame = frame.f_back
        try:
            task = asyncio.current_task()
        except RuntimeError:
            task = None
        work: Any = task.get_coro() if task is not None else None
        _, before = self._creators.get(id(work), (None, []))
        return [*before, *reversed(found)]

    def _write(self, way: list[Station]) -> None:
        if self._out.exists():
            return
        common = 0
        while common < min(len(self._asked), len(way)) and self._asked[common] == way[common]:
            common += 1
        stations = way[max(common - 1, 0) :]
        self._out.write_text(json.dumps(stations, indent=1), "utf-8")


def main() -> None:
    """Take the name of the file off the arguments, and run."""
    hops = Hops(Path(sys.argv.pop(1)))
    threading.setprofile(hops)
    sys.setprofile(hops)
    bot.__main__.main()


if __name__ == "__main__":
    main()
