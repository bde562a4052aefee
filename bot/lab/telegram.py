"""A stand-in for the Telegram Bot API: in a test's event loop, or as a process of its own.

`async with FakeTelegram(token=…) as tg` for tests; `python -m bot.lab.telegram` for black boxes.
People speak through `message`, `edit`, `callback`; what they then see is `chat` and `sent`.
"""

import asyncio
import base64
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from aiohttp import web
from aiohttp.web_request import BaseRequest

from bot.lab.entities import written_entities
from bot.lab.faults import FaultAction, answer
from bot.lab.server import (
    LabServer,
    StandInAnswer,
    client_there,
    common_options,
    json_answer,
    serve_until_interrupted,
)
from bot.lab.telegram_api import METHODS, BotApi, TelegramParams, bad, too_many_requests
from bot.lab.telegram_state import (
    ApiError,
    Json,
    SeenInTelegram,
    TelegramChats,
    Updates,
    WebhookSender,
    without_reply,
)

ChatType = Literal["private", "group", "supergroup", "channel"]

LONG_POLL_S_MAX = 50
_PATH = re.compile(r"/bot(?P<token>[^/]+)/(?P<method>[^/]+)/?")
_FILE_PATH = re.compile(r"/file/bot(?P<token>[^/]+)/(?P<path>.+)")
_TOKEN = re.compile(r"[0-9]+:[A-Za-z0-9_-]+")
_SECRET = re.compile(r"[A-Za-z0-9_-]{0,256}")
_CONFLICT = {
    "poll": "Conflict: terminated by other getUpdates request;"
    " make sure that only one bot instance is running",
    "webhook": "Conflict: terminated by setWebhook request",
    "active": "Conflict: can't use getUpdates method while webhook is active;"
    " use deleteWebhook to delete the webhook first",
}


def refusal(status: int, description: str, *, after: bool = False) -> FaultAction:
    """A fault: the Bot API refuses in its own shape."""
    return answer(status, ApiError(status, description).payload, after=after)


def flood(retry_after: int) -> FaultAction:
    """A fault: 429 with `parameters.retry_after`, as the flood limits give it."""
    return answer(429, too_many_requests(retry_after).payload)


def refuse_markup() -> FaultAction:
    """A fault: 400 whenever parse_mode is set; plain text passes."""
    return FaultAction(kind="refuse_markup", after=True)


class FakeTelegram(LabServer):
    """One bot's Bot API server."""

    def __init__(
        self,
        token: str = "123456:TEST",  # noqa: S107 - the stand-in's own, known to all
        *,
        username: str = "hearth_lab_bot",
        limits: bool = False,
        host: str = "127.0.0.1",
        port: int = 0,
        log_cap: int = 200_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(host=host, port=port, log_cap=log_cap, clock=clock)
        self.token = token
        self._updates = Updates()
        self._chats = TelegramChats()
        digits = token.partition(":")[0]
        bot = {
            "id": int(digits) if digits.isdigit() else 1,
            "is_bot": True,
            "first_name": "Hearth",
            "username": username,
            "can_join_groups": True,
            "can_read_all_group_messages": False,
            "supports_inline_queries": False,
        }
        self._api = BotApi(bot=bot, chats=self._chats, limits=limits, clock=clock)
        self._poll: asyncio.Future[str] | None = None
        self._webhook = WebhookSender(self._updates, changed=self.changed)

    async def __aexit__(self, *_: object) -> None:
        self._end_poll("over")
        await self._webhook.close()
        await super().__aexit__()

    @property
    def blocked(self) -> set[int]:
        """Chats that answer 403, as after a person blocked the bot; may be changed."""
        return self._api.blocked

    def change(self, *, next_update_id: int | None = None, limits: bool | None = None) -> None:
        """Put the flood limits in force or not, or count updates from another id on, also
        downwards, as Telegram does after a week."""
        if next_update_id is not None:
            self._updates.count_from(next_update_id)
        if limits is not None:
            self._api.limit(limits)

    # What people do -----------------------------------------------------------------------------

    def message(
        self,
        *,
        chat_id: int,
        text: str | None = None,
        user_id: int | None = None,
        username: str | None = None,
        first_name: str = "Ann",
        chat_type: ChatType | None = None,
        thread_id: int | None = None,
        reply_to: int | Mapping[str, Any] | None = None,
        caption: str | None = None,
        photo: bytes | str | None = None,
        document: bytes | str | None = None,
        voice: bytes | str | None = None,
        file_name: str = "file.txt",
        mime_type: str = "text/plain",
        media_group_id: str | None = None,
        forwarded: str | Mapping[str, Any] | None = None,
        language_code: str = "en",
    ) -> int:
        """A person writes; returns the update's id. Files are bytes, or base64 over HTTP.

        Without `chat_type`, a negative chat id is a supergroup. `user_id` is the chat's own id in
        private chats. `forwarded` is a `forward_origin`, or the name of somebody who hides.
        """
        kind = chat_type or ("private" if chat_id > 0 else "supergroup")
        sender = _person(user_id or abs(chat_id), first_name, username, language_code)
        message: Json = {
            "message_id": self._chats.next_message_id(chat_id),
            "from": sender,
            "chat": _chat(chat_id, kind, sender, forum=thread_id is not None),
            "date": int(time.time()),
        }
        if thread_id is not None:
            message |= {"message_thread_id": thread_id, "is_topic_message": True}
        if reply_to is not None:
            message["reply_to_message"] = self._quoted(chat_id, reply_to)
        if forwarded is not None:
            hidden = {"type": "hidden_user", "sender_user_name": forwarded}
            origin = hidden if isinstance(forwarded, str) else forwarded
            message["forward_origin"] = {"date": message["date"], **origin}
        if media_group_id is not None:
            message["media_group_id"] = media_group_id
        files = self._api.files
        if photo is not None:
            file = files.add(_bytes(photo), folder="photos", ending=".jpg")
            message["photo"] = [{**file.about(), "width": 800, "height": 600}]
        if document is not None:
            ending = "." + file_name.rpartition(".")[2] if "." in file_name else ""
            file = files.add(_bytes(document), folder="documents", ending=ending)
            message["document"] = {**file.about(), "file_name": file_name, "mime_type": mime_type}
        if voice is not None:
            file = files.add(_bytes(voice), folder="voice", ending=".oga")
            message["voice"] = {**file.about(), "duration": 3, "mime_type": "audio/ogg"}
        message |= _worded("text", text) | _worded("caption", caption)
        return self.update({"message": message})

    def edit(
        self,
        *,
        chat_id: int,
        message_id: int,
        text: str | None = None,
        caption: str | None = None,
    ) -> int:
        """A person edits their message."""
        kept = self._chats.find(chat_id, message_id)
        if kept is None or kept.is_bot:
            raise LookupError(f"no message {message_id} of a person in chat {chat_id}")
        stale = {"entities"} if text is not None else {"caption_entities"}
        edited = {key: value for key, value in kept.message.items() if key not in stale}
        edited |= _worded("text", text) | _worded("caption", caption)
        edited["edit_date"] = int(time.time())
        # A new object: updates that were sent already show the text as it was.
        kept.message = edited
        kept.edits += 1
        return self.update({"edited_message": edited})

    def callback(
        self,
        *,
        chat_id: int,
        message_id: int,
        data: str,
        user_id: int | None = None,
        username: str | None = None,
        first_name: str = "Ann",
    ) -> int:
        """A person presses a button under a message of the bot."""
        kept = self._chats.find(chat_id, message_id)
        if kept is None:
            raise LookupError(f"no message {message_id} in chat {chat_id}")
        query_id = f"{self._updates.next_id}{len(self._api.queries):06d}"
        self._api.queries[query_id] = False
        query: Json = {
            "id": query_id,
            "from": _person(user_id or abs(chat_id), first_name, username),
            "message": dict(kept.message),
            "chat_instance": str(chat_id),
            "data": data,
        }
        return self.update({"callback_query": query})

    def update(self, raw: Mapping[str, Any]) -> int:
        """Queue a raw update; its `update_id` is kept if it has one. Messages enter their chats."""
        for name in ("message", "channel_post"):
            message = raw.get(name)
            # One that was broken on purpose is sent, but stands in no chat.
            chat = message.get("chat") if isinstance(message, dict) else None
            whole = isinstance(chat, dict) and isinstance(chat.get("id"), int)
            if message and whole and isinstance(message.get("message_id"), int):
                self._chats.meet(message["chat"], message.get("message_thread_id"))
                self._chats.keep(message, is_bot=False)
        update_id = self._updates.push(dict(raw))
        self._wake()
        return update_id

    def redeliver(self, update_id: int) -> None:
        """Send a confirmed update once more at the next poll, whatever its offset."""
        self._updates.redeliver(update_id)
        self._wake()

    # What people see ----------------------------------------------------------------------------

    def chat(self, chat_id: int) -> list[SeenInTelegram]:
        """The messages of a chat as a person would see them now, in their order."""
        return self._chats.seen(chat_id)

    def file(self, file_id: str) -> bytes:
        """The bytes of what a message shows."""
        found = self._api.files.by_id(file_id)
        if found is None:
            raise LookupError(f"no file {file_id}")
        return found.data

    def sent(self, chat_id: int | None = None) -> list[Json]:
        """The messages that the bot sent, in order, each as it was at first."""
        return [m for m in self._api.sent if chat_id in {None, m["chat"]["id"]}]

    def previewed(self) -> list[Json]:
        """The texts of the bot, each as `chat_id` and `text`, in which Telegram would have opened
        an address by itself for a preview, if there was one."""
        return list(self._api.previewed)

    def pending(self) -> list[int]:
        """The ids of the updates that are not yet confirmed."""
        return self._updates.pending()

    def actions(self, chat_id: int | None = None) -> list[str]:
        """The chat actions ("typing") shown so far."""
        return [what for where, what in self._api.actions if chat_id in {None, where}]

    def answers(self) -> list[Json]:
        """Return what the bot answered to callback queries, in order: `text` and `show_alert`."""
        return list(self._api.answers)

    def forget_queries(self) -> None:
        """All callback queries are too old to be answered, as after some minutes."""
        self._api.queries.clear()

    # The server ---------------------------------------------------------------------------------

    def controls(self) -> dict[str, Callable[..., Any]]:
        return {"update": lambda **raw: self.update(raw), "set": self.change}

    async def serve(self, request: BaseRequest) -> web.StreamResponse:
        if match := _FILE_PATH.fullmatch(request.path):
            return await self._download(request, match["token"], match["path"])
        match = _PATH.fullmatch(request.path)
        if match is None:
            return web.json_response(ApiError(404, "Not Found").payload, status=404)
        params = TelegramParams()
        await params.receive(request)
        method = match["method"]

        async def effect(action: FaultAction | None) -> StandInAnswer:
            try:
                if not _TOKEN.fullmatch(match["token"]):
                    raise ApiError(404, "Not Found")
                if match["token"] != self.token:
                    raise ApiError(401, "Unauthorized")
                if action is not None and action.kind == "refuse_markup" and "parse_mode" in params:
                    raise bad("can't parse entities: refused on demand at byte offset 0")
                match method.lower():
                    case "getupdates":
                        result: Any = await self._get_updates(params, request)
                    case "setwebhook" | "deletewebhook":
                        result = self._set_webhook(method.lower(), params)
                    case "getwebhookinfo":
                        result = self._webhook.info()
                    case name if name in METHODS:
                        result = METHODS[name](self._api, params)
                    case _:
                        raise ApiError(404, "Not Found: method not found")
            except ApiError as wrong:
                return json_answer(wrong.payload, status=wrong.status)
            return json_answer({"ok": True, "result": result})

        return await self.perform(request, method, params, effect)

    async def _get_updates(self, p: TelegramParams, request: BaseRequest) -> list[Json]:
        if self._webhook.url:
            raise ApiError(409, _CONFLICT["active"])
        self._updates.allow(p.parsed("allowed_updates", "allowed updates"))
        offset = p.number("offset")
        limit = min(100, max(1, p.number("limit", 100)))
        timeout_s = min(LONG_POLL_S_MAX, max(0, p.number("timeout")))
        batch = self._updates.batch(offset, limit)
        if not batch and timeout_s:
            await self._wait_for_updates(timeout_s)
            batch = self._updates.batch(max(0, offset), limit)
        # Whoever hung up while it waited has not got them: they come again.
        if client_there(request):
            self._updates.given(batch)
        return batch

    async def _wait_for_updates(self, timeout_s: float) -> None:
        self._end_poll("poll")
        mine = self._poll = asyncio.get_running_loop().create_future()
        self.changed()
        try:
            async with asyncio.timeout(timeout_s):
                reason = await mine
        except TimeoutError:
            return
        finally:
            if self._poll is mine:
                self._poll = None
        if reason in _CONFLICT:
            raise ApiError(409, _CONFLICT[reason])

    @property
    def polling(self) -> bool:
        """Return whether a long poll is waiting right now."""
        return self._poll is not None

    def _end_poll(self, reason: str) -> None:
        if self._poll is not None and not self._poll.done():
            self._poll.set_result(reason)

    def _wake(self) -> None:
        if len(self._updates):
            self._end_poll("updates")
            self._webhook.wake()
        self.changed()

    def _set_webhook(self, method: str, p: TelegramParams) -> bool:
        url = p.text("url") if method == "setwebhook" else ""
        secret = p.text("secret_token")
        if url and not re.match(r"https?://", url):
            raise bad("invalid webhook URL specified")
        if len(secret) > 256:
            raise bad("secret token is too long")
        if not _SECRET.fullmatch(secret):
            raise bad("secret token contains unallowed characters")
        if p.flag("drop_pending_updates"):
            self._updates.clear()
        self._updates.allow(p.parsed("allowed_updates", "allowed updates"))
        # The real server ends a poll that is under way when a webhook is set.
        if url:
            self._end_poll("webhook")
        self._webhook.point(url, secret)
        self._webhook.wake()
        return True

    async def _download(self, request: BaseRequest, token: str, path: str) -> web.StreamResponse:
        async def effect(_: FaultAction | None) -> StandInAnswer:
            file = self._api.files.by_path(path) if token == self.token else None
            if file is None:
                return json_answer(ApiError(404, "Not Found").payload, status=404)
            headers = {"Content-Type": "application/octet-stream"}
            return StandInAnswer(body=file.data, headers=headers, shown=f"{len(file.data)} bytes")

        return await self.perform(request, "file", {"path": path}, effect)

    def _quoted(self, chat_id: int, reply_to: int | Mapping[str, Any]) -> Json:
        if not isinstance(reply_to, int):
            return without_reply(reply_to)
        kept = self._chats.find(chat_id, reply_to)
        if kept is None:
            raise LookupError(f"no message {reply_to} in chat {chat_id}")
        return without_reply(kept.message)


def _person(user_id: int, first_name: str, username: str | None, language: str = "en") -> Json:
    person: Json = {"id": user_id, "is_bot": False, "first_name": first_name}
    return {**person, **({"username": username} if username else {}), "language_code": language}


def _chat(chat_id: int, kind: ChatType, sender: Json, *, forum: bool) -> Json:
    """The chat of a message; a private one bears its person's name."""
    if kind == "private":
        named: Json = {key: sender[key] for key in ("first_name", "username") if key in sender}
        return {"id": chat_id, "type": kind, **named}
    chat: Json = {"id": chat_id, "type": kind, "title": f"Group {abs(chat_id)}"}
    return {**chat, "is_forum": True} if forum else chat


def _worded(name: str, text: str | None) -> Json:
    """Text or caption, with the entities that Telegram finds in it."""
    if text is None:
        return {}
    entities = written_entities(text)
    key = "entities" if name == "text" else "caption_entities"
    return {name: text, key: entities} if entities else {name: text}


def _bytes(data: bytes | str) -> bytes:
    return base64.b64decode(data) if isinstance(data, str) else data


def main() -> None:
    """Run as a process of its own."""
    parser = common_options("A stand-in for the Telegram Bot API on a loopback port.")
    parser.add_argument("--token", default="123456:TEST")
    parser.add_argument("--username", default="hearth_lab_bot")
    parser.add_argument("--limits", action="store_true", help="enforce the flood limits")
    given = vars(parser.parse_args())
    serve_until_interrupted(lambda: FakeTelegram(**given))


if __name__ == "__main__":
    main()
