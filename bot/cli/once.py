"""What belongs to one message: the rest of its conversation is left out. For `hearthbot chat -m`.

A card of another turn comes to every terminal that is there; a script that asked one thing wants
the answer to that.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager

from bot.channels.console import PRESS
from bot.cli.screen import Event, Screen


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
