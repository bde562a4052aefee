"""The methods of the Bot API, with the limits and error texts of the real server.

Called by `bot.lab.telegram` for each request; everything here is done at once, without waiting.
"""

import re
import time
from collections import deque
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from agent.files.sniff import picture_of
from bot.lab.entities import MarkupError, Parsed, parse_html, trimmed, units
from bot.lab.faults import Buckets
from bot.lab.telegram_state import (
    ApiError,
    Json,
    StoredFiles,
    TelegramChats,
    without_reply,
)
from bot.lab.wire import RequestParams, Upload

TEXT_UNITS_MAX = 4096
CAPTION_UNITS_MAX = 1024
CALLBACK_BYTES_MAX = 64
CALLBACK_ANSWER_CHARS_MAX = 200
INLINE_BUTTONS_MAX = 100
INLINE_ROW_MAX = 8
BUTTON_STYLES = frozenset({"danger", "success", "primary"})
DOWNLOAD_BYTES_MAX = 20 * 1024 * 1024
UPLOAD_BYTES_MAX = 50_000_000
PHOTO_BYTES_MAX = 10_000_000
PHOTO_SIDES_MAX = 10_000
PHOTO_RATIO_MAX = 20
COMMANDS_MAX = 100
_ACTION_WORDS = (
    "typing upload_photo record_video upload_video record_voice upload_voice upload_document"
    " choose_sticker find_location record_video_note upload_video_note"
)
_REACTION_SIGNS = (
    "👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤\u200d🔥"
    " 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨\u200d💻 👀 🎃 🙈"
    " 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷\u200d♂ 🤷"
    " 🤷\u200d♀ 😡"
)
ACTIONS = frozenset(_ACTION_WORDS.split())
REACTIONS = frozenset(_REACTION_SIGNS.split())
NOT_MODIFIED = (
    "Bad Request: message is not modified: specified new message content and reply markup are"
    " exactly the same as a current content and reply markup of the message"
)
_COMMAND = re.compile(r"[a-z0-9_]{1,32}")


class TelegramParams(RequestParams):
    """The arguments of a method of the Bot API."""

    def number(self, name: str, default: int = 0) -> int:
        try:
            return int(self.get(name, default))
        except (TypeError, ValueError):
            return default

    def parsed(self, name: str, what: str) -> Any:
        return self.nested(name, bad(f"can't parse {what} JSON object"))


def bad(description: str) -> ApiError:
    """A 400 in the usual words."""
    return ApiError(400, f"Bad Request: {description}")


Act = Callable[["BotApi", TelegramParams], Any]
METHODS: dict[str, Act] = {}
"""By name in small letters, as the real server does not mind their case."""


def method(name: str) -> Callable[[Act], Act]:
    """Make a function the method of this name."""

    def register(act: Act) -> Act:
        METHODS[name.lower()] = act
        return act

    return register


class BotApi:
    """One bot's methods over its chats and files."""

    def __init__(
        self, *, bot: Json, chats: TelegramChats, limits: bool, clock: Callable[[], float]
    ) -> None:
        self.bot = bot
        self.chats = chats
        self.files = StoredFiles()
        self.limited = limits
        self.blocked: set[int] = set()
        self.queries: dict[str, bool] = {}
        self.answers: deque[Json] = deque(maxlen=1000)
        self.sent: list[Json] = []
        self.actions: deque[tuple[int, str]] = deque(maxlen=1000)
        self.previewed: deque[Json] = deque(maxlen=1000)
        self._buckets = Buckets(clock)

    def limit(self, on: bool) -> None:
        """Put the flood limits in force, or not."""
        self.limited = on

    @method("getMe")
    def get_me(self, _: TelegramParams) -> Json:
        return self.bot

    # Messages -----------------------------------------------------------------------------------

    @method("sendMessage")
    def send_message(self, p: TelegramParams) -> Json:
        parsed = self._formatted(p, "text", "entities")
        if not parsed.text:
            raise bad("message text is empty")
        if units(parsed.text) > TEXT_UNITS_MAX:
            raise bad("message is too long")
        message = self._post(p, _text(parsed))
        self._note_preview(p, message)
        return message

    @method("sendDocument")
    def send_document(self, p: TelegramParams) -> Json:
        return self._send_file(p, "document")

    @method("sendPhoto")
    def send_photo(self, p: TelegramParams) -> Json:
        return self._send_file(p, "photo")

    def _send_file(self, p: TelegramParams, kind: str) -> Json:
        upload = p.get(kind)
        if isinstance(upload, str) and upload.startswith("attach://"):
            upload = p.get(upload.removeprefix("attach://"))
        if not isinstance(upload, Upload):
            raise bad(f"there is no {kind} in the request")
        if not upload.data:
            raise bad("file must be non-empty")
        if len(upload.data) > UPLOAD_BYTES_MAX:
            raise ApiError(413, "Request Entity Too Large")
        if kind == "photo":
            _check_photo(upload.data)
        caption = self._formatted(p, "caption", "caption_entities")
        if units(caption.text) > CAPTION_UNITS_MAX:
            raise bad("message caption is too long")
        ending = PurePosixPath(upload.name).suffix
        file = self.files.add(upload.data, folder=f"{kind}s", ending=ending)
        about: Any = {**file.about(), "file_name": upload.name, "mime_type": upload.mime_type}
        if kind == "photo":
            about = [{**file.about(), "width": 90, "height": 90}]
        content: Json = {kind: about}
        if caption.text:
            content |= {"caption": caption.text, "caption_entities": list(caption.entities)}
        return self._post(p, content)

    @method("editMessageText")
    def edit_text(self, p: TelegramParams) -> Json:
        parsed = self._formatted(p, "text", "entities")
        if not parsed.text:
            raise bad("message text is empty")
        if units(parsed.text) > TEXT_UNITS_MAX:
            raise bad("MESSAGE_TOO_LONG")
        kept = self.chats.find(self._chat_id(p), p.number("message_id"))
        if kept is None:
            raise bad("message to edit not found")
        if not kept.is_bot:
            raise bad("message can't be edited")
        message = kept.message
        content = _text(parsed)
        if markup := self._markup(p):
            content["reply_markup"] = markup
        # Compared as people would see it: markup that changes nothing is no change.
        visible = ("text", "entities", "reply_markup")
        if content == {key: message[key] for key in visible if key in message}:
            raise bad(NOT_MODIFIED.removeprefix("Bad Request: "))
        self._pace(message["chat"]["id"])
        for key in visible:
            message.pop(key, None)
        message.update(content, edit_date=int(time.time()))
        kept.edits += 1
        self._note_preview(p, message)
        return dict(message)

    @method("deleteMessage")
    def delete(self, p: TelegramParams) -> bool:
        chat_id = self._chat_id(p)
        if not self.chats.delete(chat_id, p.number("message_id")):
            raise bad("message to delete not found")
        return True

    @method("setMessageReaction")
    def react(self, p: TelegramParams) -> bool:
        kept = self.chats.find(self._chat_id(p), p.number("message_id"))
        if kept is None:
            raise bad("message to react not found")
        wanted = p.parsed("reaction", "reaction") or []
        if any(r.get("type") == "emoji" and r.get("emoji") not in REACTIONS for r in wanted):
            raise bad("REACTION_INVALID")
        kept.reaction = list(wanted)
        return True

    @method("sendChatAction")
    def chat_action(self, p: TelegramParams) -> bool:
        chat_id = self._chat_id(p)
        if p.text("action") not in ACTIONS:
            raise bad("wrong parameter action in request")
        self._thread(p, chat_id)
        self.actions.append((chat_id, p.text("action")))
        return True

    # Everything else ----------------------------------------------------------------------------

    @method("setMyCommands")
    def set_commands(self, p: TelegramParams) -> bool:
        commands = p.parsed("commands", "bot commands") or []
        if len(commands) > COMMANDS_MAX:
            raise bad("BOT_COMMANDS_TOO_MUCH")
        for command in commands:
            if not _COMMAND.fullmatch(str(command.get("command", ""))):
                raise bad("BOT_COMMAND_INVALID")
            if not 1 <= len(str(command.get("description", ""))) <= 256:
                raise bad("BOT_COMMAND_DESCRIPTION_INVALID")
        return True

    @method("deleteMyCommands")
    def delete_commands(self, _: TelegramParams) -> bool:
        return True

    @method("answerCallbackQuery")
    def answer_query(self, p: TelegramParams) -> bool:
        query_id = p.text("callback_query_id")
        if query_id not in self.queries:
            wrong = "query is too old and response timeout expired or query ID is invalid"
            raise bad(wrong)
        if len(p.text("text")) > CALLBACK_ANSWER_CHARS_MAX:
            raise bad("MESSAGE_TOO_LONG")
        self.queries[query_id] = True
        shown = {"text": p.text("text"), "show_alert": p.flag("show_alert")}
        self.answers.append({"callback_query_id": query_id, **shown})
        return True

    @method("getFile")
    def get_file(self, p: TelegramParams) -> Json:
        file = self.files.by_id(p.text("file_id"))
        if file is None:
            raise bad("invalid file_id")
        if len(file.data) > DOWNLOAD_BYTES_MAX:
            raise bad("file is too big")
        return {**file.about(), "file_path": file.path}

    # Parts --------------------------------------------------------------------------------------

    def _post(self, p: TelegramParams, content: Json) -> Json:
        chat_id = self._chat_id(p)
        thread_id = self._thread(p, chat_id)
        replied = self._replied(p, chat_id)
        markup = self._markup(p)
        # The last of the checks: a message that is refused takes nothing from the bucket.
        self._pace(chat_id)
        chat = self.chats.about.get(chat_id) or {
            "id": chat_id,
            "type": "private" if chat_id > 0 else "group",
        }
        message: Json = {
            "message_id": self.chats.next_message_id(chat_id),
            "from": {key: self.bot[key] for key in ("id", "is_bot", "first_name", "username")},
            "chat": chat,
            "date": int(time.time()),
            **content,
        }
        if thread_id:
            message |= {"message_thread_id": thread_id, "is_topic_message": True}
        if replied is not None:
            message["reply_to_message"] = without_reply(replied)
        if markup and "inline_keyboard" in markup:
            message["reply_markup"] = markup
        self.chats.keep(message, is_bot=True)
        shown = dict(message)
        self.sent.append(shown)
        return shown

    def _note_preview(self, p: TelegramParams, message: Json) -> None:
        """A text in which the real server looks for an address to open, with or without one."""
        wanted = p.parsed("link_preview_options", "link preview options")
        is_off = isinstance(wanted, dict) and wanted.get("is_disabled") is True
        if not (is_off or p.flag("disable_web_page_preview")):
            self.previewed.append({"chat_id": message["chat"]["id"], "text": message["text"]})

    def _formatted(self, p: TelegramParams, name: str, entities: str) -> Parsed:
        text = p.text(name)
        mode = p.text("parse_mode").lower()
        try:
            if mode == "html":
                return trimmed(parse_html(text))
            if mode not in {"", "markdown", "markdownv2"}:
                raise bad("unsupported parse_mode")
        except MarkupError as wrong:
            raise bad(f"can't parse entities: {wrong}") from None
        given = p.parsed(entities, "entities") or []
        return trimmed(Parsed(text=text, entities=tuple(given)))

    def _chat_id(self, p: TelegramParams) -> int:
        given = p.text("chat_id")
        if not given:
            raise bad("chat_id is empty")
        chat_id = p.number("chat_id")
        if chat_id == 0:
            raise bad("chat not found")
        if chat_id in self.blocked:
            raise ApiError(403, "Forbidden: bot was blocked by the user")
        return chat_id

    def _thread(self, p: TelegramParams, chat_id: int) -> int:
        thread_id = p.number("message_thread_id")
        known = chat_id not in self.chats.about or thread_id in self.chats.topics[chat_id]
        if thread_id and not known:
            raise bad("message thread not found")
        return thread_id

    def _replied(self, p: TelegramParams, chat_id: int) -> Json | None:
        wanted = p.parsed("reply_parameters", "reply parameters") or {}
        message_id = int(wanted.get("message_id") or p.number("reply_to_message_id"))
        if not message_id:
            return None
        kept = self.chats.find(int(wanted.get("chat_id") or chat_id), message_id)
        if kept is None:
            lenient = wanted.get("allow_sending_without_reply")
            if lenient or p.flag("allow_sending_without_reply"):
                return None
            raise bad("message to be replied not found")
        return kept.message

    def _markup(self, p: TelegramParams) -> Json | None:
        markup = p.parsed("reply_markup", "reply keyboard markup")
        if markup is None:
            return None
        if not isinstance(markup, dict):
            raise bad("object expected as reply markup")
        rows = markup.get("inline_keyboard", ())
        for row in rows:
            for button in row:
                _check_button(button)
        # What the real server does with more is nowhere said; here it is refused.
        if sum(map(len, rows)) > INLINE_BUTTONS_MAX or any(len(r) > INLINE_ROW_MAX for r in rows):
            raise bad("reply markup is too long")
        if markup.get("inline_keyboard") == []:
            return None
        return markup

    def _pace(self, chat_id: int) -> None:
        """The documented limits: 1/s in a chat after a short burst, 20/min in a group, 30/s."""
        in_chat = (chat_id, 20 / 60, 20.0) if chat_id < 0 else (chat_id, 1.0, 3.0)
        if self.limited and (wait_s := self._buckets.wait_s([("all", 30.0, 30.0), in_chat])):
            raise too_many_requests(wait_s)


def _text(parsed: Parsed) -> Json:
    entities = list(parsed.entities)
    return {"text": parsed.text} | ({"entities": entities} if entities else {})


def _check_photo(data: bytes) -> None:
    """The rules of sendPhoto: a picture, not too large, not too long in one direction."""
    if len(data) > PHOTO_BYTES_MAX:
        raise bad("file is too big for a photo")
    picture = picture_of(data)
    if picture is None or picture.shown == "gif" or not picture.width:
        raise bad("IMAGE_PROCESS_FAILED")
    sides = sorted((picture.width, picture.height))
    if sum(sides) > PHOTO_SIDES_MAX or sides[1] > PHOTO_RATIO_MAX * sides[0]:
        raise bad("PHOTO_INVALID_DIMENSIONS")


def _check_button(button: Json) -> None:
    if not button.get("text"):
        raise bad("can't parse inline keyboard button: Text must be non-empty")
    kinds = set(button) - {"text", "style", "icon_custom_emoji_id"}
    if len(kinds) != 1:
        raise bad("can't parse inline keyboard button: Text buttons are unallowed")
    data = button.get("callback_data")
    if data is not None and not 1 <= len(data.encode()) <= CALLBACK_BYTES_MAX:
        raise bad("BUTTON_DATA_INVALID")
    if button.get("style", "primary") not in BUTTON_STYLES:
        raise bad("can't parse inline keyboard button: invalid button style specified")


def too_many_requests(retry_after: int) -> ApiError:
    """The 429 of the flood limits."""
    said = f"Too Many Requests: retry after {retry_after}"
    return ApiError(429, said, {"retry_after": retry_after})
