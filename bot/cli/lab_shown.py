"""The lab's chat at the terminal: what is typed as a message or a press, what is new as lines.

Buttons get numbers as in `hearthbot chat`. Used by `bot.cli.lab`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bot.channels.console import PRESS, OpenQuestions
from bot.cli.chat_io import Buttons
from bot.inbox.commands import NO_LONGER
from memory.records.rows import Button

if TYPE_CHECKING:
    from bot.lab.telegram import FakeTelegram
    from bot.lab.telegram_state import SeenInTelegram

PICTURE = "picture"
"""What stands for a photo's name: Telegram keeps none."""


class LabChat:
    """One person's private chat with the bot at the stand-in."""

    def __init__(self, telegram: FakeTelegram, person: int) -> None:
        self._telegram = telegram
        self._person = person
        self._cards = OpenQuestions()
        self._buttons = Buttons()
        self._shown: dict[int, str] = {}
        self._reactions: dict[int, str] = {}
        self._answered: set[str] = set()
        self._notices: list[str] = []

    def types(self, line: str) -> None:
        """A line of the person: a number or `/press` with one presses, all else is a message."""
        meant = self._buttons.meant(line)
        word, _, rest = meant.partition(" ")
        if word != PRESS:
            self._telegram.message(chat_id=self._person, user_id=self._person, text=line)
            return
        card, _, data = rest.partition(" ")
        if not data or not card.isdecimal():
            self._notices.append(NO_LONGER)
            return
        self._telegram.callback(
            chat_id=self._person, message_id=int(card), data=data, user_id=self._person
        )

    def news(self) -> Iterator[str]:
        """What the chat shows that it did not show before, as text for a terminal."""
        yield from self._notices
        self._notices.clear()
        for answer in self._telegram.answers():
            if answer["callback_query_id"] not in self._answered:
                self._answered.add(answer["callback_query_id"])
                if answer["text"]:
                    yield answer["text"]
        there = self._telegram.chat(self._person)
        self._close_all_but({message.message_id for message in there})
        for message in there:
            if message.is_bot:
                yield from self._message(message)
            yield from self._reaction(message)

    def _message(self, message: SeenInTelegram) -> Iterator[str]:
        message_id = message.message_id
        kind = "edit" if message_id in self._shown else "message"
        file = f"📎 {message.file_name or PICTURE}" if message.file_id else ""
        text = "\n\n".join(part for part in (file, message.text) if part)
        # A card that did not change keeps its numbers, so asking for it anew is harmless.
        event = self._cards.event(kind, str(message_id), text=text, buttons=_buttons(message))
        if self._shown.get(message_id) != event["text"]:
            self._shown[message_id] = event["text"]
            self._buttons.see(event)
            yield event["text"]

    def _reaction(self, message: SeenInTelegram) -> Iterator[str]:
        emoji = " ".join(str(one.get("emoji", "")) for one in message.reaction).strip()
        if self._reactions.get(message.message_id, "") != emoji:
            self._reactions[message.message_id] = emoji
            if emoji:
                yield emoji

    def _close_all_but(self, there: set[int]) -> None:
        """A message that was deleted has no buttons any more."""
        for message_id in self._shown.keys() - there:
            del self._shown[message_id]
            self._buttons.see(self._cards.event("edit", str(message_id), text="", buttons=()))


def _buttons(message: SeenInTelegram) -> list[Button]:
    rows = (message.markup or {}).get("inline_keyboard", ())
    return [
        Button(label=str(one["text"]), data=str(one["callback_data"]))
        for row in rows
        for one in row
        if "callback_data" in one
    ]
