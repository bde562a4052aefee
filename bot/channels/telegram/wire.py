"""A Telegram update before the library sees it: read as JSON, and sketched. Called by the channel.

Updates come from outside, so nothing here trusts their shape: one odd update must neither stop
the loop nor spoil the others that came with it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from bot.channels.wire import link_code, read_json
from memory.records.rows import ButtonRows

NAME_CHARS_MAX = 60
"""Of each of the two names of somebody; Telegram allows 64."""

ALLOWED_UPDATES = ("message", "edited_message", "callback_query")


def update_id(update: Any) -> int | None:
    """The platform's id of an update; None when it has none."""
    found = update.get("update_id") if isinstance(update, dict) else None
    return found if is_id(found) else None


def last_id(updates: Sequence[Any]) -> int | None:
    """The id that the next offset goes beyond. Not the highest: ids may begin anew (promise of
    the Bot API after a week of silence)."""
    return next((found for one in reversed(updates) if (found := update_id(one)) is not None), None)


def to_payload(update: dict[str, Any], *, username: str) -> str:
    """Return what the inbox keeps: the update, and the bot's @name when it came.

    The name decides whether a group's message is for us; after a crash messages are taken up
    before Telegram was asked for it.
    """
    try:
        return json.dumps({"username": username, "update": update}, ensure_ascii=False)
    except (RecursionError, ValueError):
        bare = {"update_id": update.get("update_id")}
        return json.dumps({"username": username, "update": bare})


def from_payload(payload: str) -> tuple[dict[str, Any], str]:
    """The update and the name. Raises ValueError."""
    stored = read_json(payload)
    if not isinstance(stored, dict) or not isinstance(stored.get("update"), dict):
        raise ValueError("not a stored update")
    return stored["update"], str(stored.get("username") or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramSketch:
    """Sender and chat of a raw update, whatever its shape; of its words, a link code alone.
    `name` is what the sender is called."""

    sender: str = ""
    chat: str = "0"
    thread: str | None = None
    is_group: bool = False
    link: str = ""
    is_press: bool = False
    name: str = ""

    @classmethod
    def of(cls, update: dict[str, Any]) -> TelegramSketch:
        """Reads defensively: anything unforeseen makes a sketch of nobody."""
        for kind in ALLOWED_UPDATES:
            body = update.get(kind)
            if not isinstance(body, dict):
                continue
            sender, is_press = body.get("from"), kind == "callback_query"
            if is_press:
                body = body.get("message")  # the one above the button: not of who pressed it
                if not isinstance(body, dict):
                    continue
            chat = body.get("chat")
            if not isinstance(sender, dict) or not isinstance(chat, dict):
                continue
            if not is_id(sender.get("id")) or not is_id(chat.get("id")):
                continue
            is_own = all(body.get(key) is None for key in _OF_ANOTHER)
            given = (sender.get(key) for key in ("first_name", "last_name"))
            names = [one[:NAME_CHARS_MAX] for one in given if isinstance(one, str)]
            return cls(
                sender=str(sender["id"]),
                chat=str(chat["id"]),
                thread=topic(body.get("is_topic_message"), body.get("message_thread_id")),
                is_group=chat.get("type") != "private",
                # A code that another wrote proves nothing of who passes it on.
                link=link_code(body.get("text")) if kind == "message" and is_own else "",
                is_press=is_press,
                name=" ".join(names).strip(),
            )
        return cls()


# --- buttons ---------------------------------------------------------------------------------

ROW_BUTTONS_MAX = 8
"""Telegram shows no more in one row."""

ROW_CHARS_MAX = 36
"""What a phone shows of a row's labels; its buttons are all as wide as the widest."""

ANSWER_CHARS_MAX = 200
ALERT_CHARS_MIN = 60
"""An answer of so many characters waits to be read: Telegram shows others for two seconds."""

_STYLES = {"good": "success", "bad": "danger"}


def inline_keyboard(rows: ButtonRows) -> dict[str, Any]:
    """`reply_markup` for buttons under a message; rows that a phone would cut are folded."""
    folded: list[list[dict[str, str]]] = []
    for row in rows:
        folded.append([])
        widest = 0
        for button in row:
            widest = max(widest, len(button.label))
            is_full = len(folded[-1]) == ROW_BUTTONS_MAX
            if is_full or (widest * (len(folded[-1]) + 1) > ROW_CHARS_MAX and folded[-1]):
                folded.append([])
                widest = len(button.label)
            style = {"style": _STYLES[button.style]} if button.style else {}
            folded[-1].append({"text": button.label, "callback_data": button.data, **style})
    return {"inline_keyboard": [row for row in folded if row]}


def callback_answer(text: str) -> dict[str, Any]:
    """Return what answerCallbackQuery shows, to the person who pressed and nobody else."""
    text = text.strip()
    if not text:
        return {}
    if len(text) > ANSWER_CHARS_MAX:
        text = text[: ANSWER_CHARS_MAX - 1].rstrip() + "…"
    return {"text": text, "show_alert": len(text) >= ALERT_CHARS_MIN}


# --- careful reading -------------------------------------------------------------------------


FORWARDED_BEFORE = "forward_date"
"""In place of `forward_origin`, from a server of one's own that speaks a Bot API before 7.0."""

_OF_ANOTHER = (
    *("forward_origin", FORWARDED_BEFORE),
    *("via_bot", "sender_business_bot", "sender_chat"),
)
"""Fields of a message whose words its sender did not write."""


def topic(is_topic: object, thread: object) -> str | None:
    """A topic is a conversation of its own; a thread of replies in a plain group is not."""
    return str(thread) if is_topic is True and is_id(thread) else None


def is_id(value: object) -> TypeGuard[int]:
    """Telegram's ids fit in 64 bits, and true is not 1."""
    return type(value) is int and abs(value) < 2**63
