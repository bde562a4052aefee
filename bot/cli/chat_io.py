"""What `hearthbot chat` reads and shows besides the screen: lines of a pipe, numbers of buttons,
and the answer to one message alone.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import AsyncIterator, Collection
from contextlib import AbstractContextManager
from typing import Any

from bot.channels.console import PRESS, press_line
from bot.cli.screen import Event, Screen

READ_BYTES_MAX = 65_536

# --- lines of a pipe or a file ------------------------------------------------------------------
#
# A person at a terminal types into prompt_toolkit instead. Reading never holds up the end of the
# program.


async def typed_lines(descriptor: int = 0) -> AsyncIterator[str]:
    """Each line as it comes, without its end, until there are no more."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()

    def read() -> None:
        rest = b""
        while piece := os.read(descriptor, READ_BYTES_MAX):
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                put(line)
        if rest:
            put(rest)
        tell(None)

    def put(line: bytes) -> None:
        tell(line.decode("utf-8", "replace").removesuffix("\r"))

    def tell(line: str | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(lines.put_nowait, line)

    # A read cannot be cancelled. asyncio's own threads are waited for at the end of the program,
    # and sys.stdin would be locked by it; so a thread that may be left behind reads the bytes.
    threading.Thread(target=read, name="standard input", daemon=True).start()
    while (line := await lines.get()) is not None:
        yield line


# --- numbers of buttons -------------------------------------------------------------------------

_TYPED = re.compile(rf"(?P<press>{PRESS}\s+)?\[?(?P<number>[0-9]{{1,4}})\]?")


class Buttons:
    """Those that can be pressed now, by their numbers; events are those of `bot.channels.console`.

    A number alone counts until something else is typed: then it may be meant for the assistant.
    """

    def __init__(self) -> None:
        self._open: dict[str, dict[str, str]] = {}
        self._fresh: set[str] = set()
        self._waiting: list[dict[str, Any]] = []

    def see(self, event: dict[str, Any]) -> None:
        """A message, an edit, or a card that is open already."""
        if event["kind"] not in {"message", "edit", "open"}:
            return
        card = str(event["id"])
        buttons = event.get("buttons")
        if not buttons:
            self._open.pop(card, None)
            return
        self._open[card] = {str(number): str(data) for number, data in buttons.items()}
        if event["kind"] == "open":
            self._waiting.append(event)
        else:
            self._fresh.add(card)

    def waiting(self) -> list[dict[str, Any]]:
        """Cards that were open when this terminal came, as messages; a number alone is good for
        them from now on."""
        found = [event for event in self._waiting if event["id"] in self._open]
        self._fresh.update(str(event["id"]) for event in found)
        return [{**event, "kind": "message"} for event in found]

    def meant(self, line: str) -> str:
        """What is to be said for a typed line."""
        typed = _TYPED.fullmatch(line.strip())
        if typed is not None:
            for card, buttons in self._open.items():
                data = buttons.get(typed["number"].lstrip("0"))
                if data is not None and (typed["press"] or card in self._fresh):
                    return press_line(card, data)
        self._fresh.clear()
        return line


# --- the answer to one message ------------------------------------------------------------------
#
# For `hearthbot chat -m`: the rest of the conversation is left out. A card of another turn comes to
# every terminal that is there; a script that asked one thing wants the answer to that.


class OwnAnswer:
    """Implements `bot.cli.screen.Screen` over another one: shows what this terminal saw begin, and
    forgets what turns out to be of something else."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._begun: dict[str, Event] = {}
        self._pressed = ""

    def asks(self, text: str) -> None:
        """What is said: the outcome of a card that it presses a button of is an answer to it."""
        match text.split(" "):
            case [press, card, _, *_] if press == PRESS:
                self._pressed = card

    def attached(self, event: Event) -> None:
        """The same."""
        self._screen.attached(event)

    def greet(self) -> None:
        """The same."""
        self._screen.greet()

    def show(self, event: Event) -> None:
        """Leaves out what becomes of messages that were there before."""
        match event["kind"]:
            case "message":
                self._begun[event["id"]] = event
            case "edit" if event["id"] not in {*self._begun, self._pressed}:
                return
        self._screen.show(event)

    def drop(self, message_id: str) -> None:
        """The same."""
        self._screen.drop(message_id)

    def settle(self) -> None:
        """The same."""
        self._screen.settle()

    def busy(self) -> AbstractContextManager[None]:
        """The same."""
        return self._screen.busy()

    def leave_out(self, others: Collection[str]) -> list[str]:
        """Drops these messages. Returns the texts of those without buttons: the others are shown
        again to whoever comes to talk."""
        found = [event for id, event in self._begun.items() if id in others]
        for event in found:
            self.drop(event["id"])
        return [event["text"] for event in found if not event.get("buttons")]
