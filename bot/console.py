"""The terminal as a channel. Its messages come by the private socket and go back the same way.

A reply whose terminal has gone waits until one is there again: nothing is lost.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from agent.messages import Address, IncomingMessage
from bot.channel import Delivery, EditOutcome, MessageGone, MessagePart, Sent, Understood

CHAT_ID = "local"
ADDRESS = Address(channel="console", chat_id=CHAT_ID)
SENDER = "console:local"

STREAM_EVERY_S = 0.1

Show = Callable[[dict[str, Any]], None]


class ConsoleChannel:
    """Implements `bot.channel.Channel`. Terminals attach; what is sent goes to all of them."""

    name = "console"

    def __init__(self) -> None:
        self._terminals: list[Show] = []
        self._attached = asyncio.Event()
        self._next = 0

    def attach(self, show: Show) -> None:
        """A terminal is there: events {"kind": message | edit | doing, "id", "text"} go to it."""
        self._terminals.append(show)
        self._attached.set()

    @property
    def attended(self) -> bool:
        """Whether a terminal is there."""
        return bool(self._terminals)

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
        self._next += 1
        number = str(self._next)
        self._show({"kind": "message", "id": number, "text": part.source})
        return Sent(message_id=number)

    async def edit(self, address: Address, message_id: str, part: MessagePart) -> EditOutcome:
        """Shows the message's new text; where no terminal is left, it has to be sent anew."""
        if not self._terminals:
            return MessageGone()
        self._show({"kind": "edit", "id": message_id, "text": part.source})
        return Sent(message_id=message_id)

    async def typing(self, address: Address) -> None:
        """Nothing: a terminal shows by itself that it waits."""

    def doing(self, address: Address, line: str) -> None:
        """Shows which tool runs (`bot.channel.ShowsWork`)."""
        self._show({"kind": "doing", "text": line})

    def _show(self, event: dict[str, Any]) -> None:
        for show in self._terminals:
            show(event)
