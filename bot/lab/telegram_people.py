"""The JSON of people, chats and words, as the Bot API shows them.

Called by `bot.lab.telegram` when somebody writes.
"""

from collections.abc import Mapping
from typing import Any, Literal

from bot.lab.entities import written_entities
from bot.lab.telegram_state import Json

ChatType = Literal["private", "group", "supergroup", "channel"]


def bot_user(token: str, username: str) -> Json:
    """The bot, as `getMe` shows it."""
    digits = token.partition(":")[0]
    return {
        "id": int(digits) if digits.isdigit() else 1,
        "is_bot": True,
        "first_name": "Hearth",
        "username": username,
        "can_join_groups": True,
        "can_read_all_group_messages": False,
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
    }


def person(user_id: int, *, first_name: str, username: str | None) -> Json:
    """A person who writes."""
    person: Json = {"id": user_id, "is_bot": False, "first_name": first_name}
    if username:
        person["username"] = username
    return {**person, "language_code": "en"}


def chat_about(chat_id: int, kind: ChatType, sender: Json, *, forum: bool) -> Json:
    """The chat of a message; a private one bears its person's name."""
    if kind == "private":
        named: Json = {key: sender[key] for key in ("first_name", "username") if key in sender}
        return {"id": chat_id, "type": kind, **named}
    chat: Json = {"id": chat_id, "type": kind, "title": f"Group {abs(chat_id)}"}
    return {**chat, "is_forum": True} if forum else chat


def origin_of(forwarded: str | Mapping[str, Any], *, date: int) -> Json:
    """A `forward_origin`: as it is given, or of somebody who lets their name alone be seen."""
    if isinstance(forwarded, str):
        return {"type": "hidden_user", "sender_user_name": forwarded, "date": date}
    return {"date": date, **forwarded}


def worded(name: str, text: str | None) -> Json:
    """Text or caption, with the entities that Telegram finds in it."""
    if text is None:
        return {}
    entities = written_entities(text)
    key = "entities" if name == "text" else "caption_entities"
    return {name: text, key: entities} if entities else {name: text}


def is_whole(message: Mapping[str, Any]) -> bool:
    """Raw updates may be broken on purpose; those are sent, but are in no chat."""
    chat = message.get("chat")
    known = isinstance(chat, dict) and isinstance(chat.get("id"), int)
    return known and isinstance(message.get("message_id"), int)
