"""What a typed number means: which buttons are shown in this terminal. For `hearthbot chat`."""

from __future__ import annotations

import re
from typing import Any

from bot.channels.console import PRESS, press_line

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
