"""The terminal as a channel. Its messages come by the private socket and go back the same way.

A reply whose terminal has gone waits until one is there again: nothing is lost.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from typing import Any

from bot.channels.base import (
    Channel,
    Delivery,
    EditOutcome,
    FileOut,
    MessageGone,
    MessagePart,
    NotSent,
    Pressed,
    Reacted,
    Reaction,
    SentMessage,
    Understood,
)
from memory.records.messages import Address, IncomingMessage
from memory.records.rows import Button

CHAT_ID = "local"
ADDRESS = Address(channel="console", chat_id=CHAT_ID)
SENDER = "console:local"

STREAM_EVERY_S = 0.1

PRESS = "/press"

HOW_TO_PRESS = f"Type a number to press it; later on, type {PRESS} and the number."

_PRESS = re.compile(
    rf"{PRESS}(?:\s+\[?(?P<number>[0-9]{{1,4}})\]?| (?P<id>\S+) (?P<data>.+)|\s.*|)", re.DOTALL
)

Show = Callable[[dict[str, Any]], None]

Others = Callable[[str, str, str], Awaitable[Collection[str]]]
"""See `memory.stores.approvals`: which messages of a chat do not belong to one event of a
source."""


def press_line(message_id: str, data: str) -> str:
    """Return what a terminal says for a button: all of it, so that it means the same after a
    crash."""
    return f"{PRESS} {message_id} {data}"


class OpenQuestions:
    """The messages with buttons that are open. Numbers begin anew once none is: a typed one means
    one button."""

    def __init__(self) -> None:
        self._cards: dict[str, tuple[str, dict[int, Button]]] = {}
        """Text, and buttons by the numbers that are typed for them."""

    def event(
        self, kind: str, message_id: str, *, text: str, buttons: Sequence[Button]
    ) -> dict[str, Any]:
        """A message, or its new state, for a terminal; with buttons it stays open, and an edit
        keeps their numbers."""
        _, known = self._cards.pop(message_id, ("", {}))
        if not buttons:
            return {"kind": kind, "id": message_id, "text": text}
        taken = [number for _, others in self._cards.values() for number in others]
        first = min(known) if known else 1 + max(taken, default=0)
        self._cards[message_id] = (text, dict(enumerate(buttons, first)))
        return self._shown(kind, message_id)

    def opened(self) -> Iterator[dict[str, Any]]:
        """All of them, for a terminal that comes later."""
        for message_id in self._cards:
            yield self._shown("open", message_id)

    def numbered(self, number: int) -> tuple[str, str] | None:
        """The message and the data of the button of this number."""
        for message_id, (_, buttons) in self._cards.items():
            if number in buttons:
                return message_id, buttons[number].data
        return None

    def _shown(self, kind: str, message_id: str) -> dict[str, Any]:
        text, buttons = self._cards[message_id]
        lines = [f"[{number}] {button.label}" for number, button in buttons.items()]
        return {
            "kind": kind,
            "id": message_id,
            "text": "\n".join([text.rstrip(), "", *lines, "", HOW_TO_PRESS]),
            "buttons": {str(number): button.data for number, button in buttons.items()},
        }


class ConsoleChannel(Channel):
    """The terminals that are attached: what is sent goes to all of them."""

    name = "console"

    def __init__(self, others: Others | None = None) -> None:
        """`others` finds the messages of an address that are no answer to what was said."""
        self._terminals: list[Show] = []
        self._attached = asyncio.Event()
        self._run = secrets.token_hex(4)  # messages of a former process may still be edited
        self._next = 0
        self._cards = OpenQuestions()
        self.others = others

    def attach(self, show: Show) -> None:
        """A terminal is there: events {"kind": message | edit | doing, "id", "text"} go to it.

        One with "buttons" (data by number) can be pressed; those that are open already come first,
        as "open".
        """
        self._terminals.append(show)
        self._attached.set()
        for event in self._cards.opened():
            show(event)

    @property
    def attended(self) -> bool:
        """Return whether a terminal is there."""
        return bool(self._terminals)

    @property
    def shared(self) -> bool:
        """Return whether several are there: what one leaves out, another one shows."""
        return len(self._terminals) > 1

    def detach(self, show: Show) -> None:
        """It has gone."""
        self._terminals.remove(show)
        if not self._terminals:
            self._attached.clear()

    @staticmethod
    def payload(text: str, message_id: str, *, now_ms: int) -> str:
        """A typed line as the inbox keeps it."""
        return json.dumps({"text": text, "message_id": message_id, "sent_at_ms": now_ms})

    # --- bot.channel.Channel ---------------------------------------------------------------------

    def stream_every(self, address: Address) -> float | None:
        """A terminal can follow closely."""
        return STREAM_EVERY_S

    def understand(self, payload: str) -> Understood:
        """A stored line as a message."""
        line = json.loads(payload)
        if not isinstance(line, dict) or not isinstance(line.get("text"), str):
            raise ValueError("a line without text")
        if not {"message_id", "sent_at_ms"} <= line.keys():
            raise ValueError("a line without number or time")
        if (found := _PRESS.fullmatch(line["text"].strip())) is not None:
            # A button by its message and data, or by its number as long as this process knows it.
            message_id, data = found["id"] or "", found["data"] or ""
            if found["number"]:
                message_id, data = self._cards.numbered(int(found["number"])) or (message_id, data)
            return Pressed(
                address=ADDRESS,
                message_id=message_id,
                sender=SENDER,
                data=data,
                press_id=str(line["message_id"]),
            )
        return IncomingMessage(
            address=ADDRESS,
            message_id=str(line["message_id"]),
            sender_id=CHAT_ID,
            text=line["text"],
            sent_at_ms=int(line["sent_at_ms"]),
        )

    def parts(self, text: str) -> Sequence[MessagePart]:
        """One part: a terminal has no limit, and renders the Markdown itself."""
        return [MessagePart(markup=text, source=text)] if text.strip() else []

    async def ready(self, address: Address) -> None:
        """Waits for a terminal."""
        await self._attached.wait()

    async def send(self, address: Address, part: MessagePart) -> Delivery:
        """Shows a message in all terminals."""
        await self._attached.wait()
        message_id = self._new_id()
        self._show(self._event("message", message_id, part))
        return SentMessage(message_id=message_id)

    def captioned(self, text: str) -> Sequence[MessagePart]:
        """One part, perhaps blank."""
        return self.parts(text) or [MessagePart(markup="", source="")]

    async def send_file(self, address: Address, file: FileOut, part: MessagePart) -> Delivery:
        """Shows where the file stands: whoever sits here can open it."""
        size = f"{len(file.content):,} bytes"
        lines = [f"📎 {file.name} ({size}): workspace/{file.path}", part.source.strip()]
        text = "\n\n".join(line for line in lines if line)
        return await self.send(address, MessagePart(markup=text, source=text))

    async def react(self, address: Address, message_id: str, emoji: str) -> Reaction:
        """A line of its own."""
        if not self._terminals:
            return NotSent(reason="no terminal is there")
        self._show({"kind": "message", "id": self._new_id(), "text": emoji})
        return Reacted(shown=emoji)

    async def edit(self, address: Address, message_id: str, part: MessagePart) -> EditOutcome:
        """Shows the message's new text; where no terminal is left, it has to be sent anew."""
        event = self._event("edit", message_id, part)
        if not self._terminals:
            return MessageGone()
        self._show(event)
        return SentMessage(message_id=message_id)

    def doing(self, address: Address, line: str) -> None:
        """Shows which tool runs."""
        self._show({"kind": "doing", "text": line})

    async def answered(self, pressed: Pressed, text: str) -> None:
        """A line of its own."""
        if text.strip():
            self._show({"kind": "message", "id": self._new_id(), "text": text})

    def remember(self, address: Address, message_id: str, part: MessagePart) -> None:
        """A message that a former process sent."""
        self._event("open", message_id, part)

    # --- inside ----------------------------------------------------------------------------------

    def _event(self, kind: str, message_id: str, part: MessagePart) -> dict[str, Any]:
        buttons = [button for row in part.buttons for button in row]
        return self._cards.event(kind, message_id, text=part.source, buttons=buttons)

    def _new_id(self) -> str:
        self._next += 1
        return f"{self._run}-{self._next}"

    def _show(self, event: dict[str, Any]) -> None:
        for show in self._terminals:
            show(event)
