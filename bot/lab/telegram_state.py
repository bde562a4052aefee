"""Memory of the Telegram stand-in: chats, files, pending updates, and the webhook that posts them.

Called by `bot.lab.telegram` and `bot.lab.telegram_api`. It lives as long as a test or a rehearsal,
so nothing is dropped.
"""

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

Json = dict[str, Any]

# Without a wish of the bot, these kinds are not sent.
UNASKED = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
# The real queue takes an offset further ahead for a mistake, and starts from its head again.
OFFSET_AHEAD_MAX = 10
WEBHOOK_TIMEOUT_S = 30.0
WEBHOOK_BACKOFF_S, WEBHOOK_BACKOFF_S_MAX = 0.05, 5.0


class ApiError(Exception):
    """A refusal in the words of the Bot API."""

    def __init__(self, status: int, description: str, parameters: Json | None = None) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters

    @property
    def payload(self) -> Json:
        """The body of the answer."""
        body: Json = {"ok": False, "error_code": self.status, "description": self.description}
        return {**body, "parameters": self.parameters} if self.parameters else body


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenInTelegram:
    """A message as a person would see it now."""

    chat_id: int
    message_id: int
    text: str
    entities: tuple[Json, ...]
    markup: Json | None
    is_bot: bool
    edits: int
    reply_to: int | None
    thread_id: int | None
    reaction: tuple[Json, ...]
    file_name: str | None
    file_id: str | None
    is_photo: bool


@dataclass(slots=True, kw_only=True)
class TelegramMessage:
    """A message in a chat, as the Bot API would show it, and what it does not tell."""

    message: Json
    is_bot: bool
    edits: int = 0
    reaction: list[Json] = field(default_factory=list)

    def seen(self) -> SeenInTelegram:
        message = self.message
        replied = message.get("reply_to_message")
        text = message.get("text") or message.get("caption") or ""
        entities = message.get("entities") or message.get("caption_entities") or ()
        # A picture in its largest size. Raw updates hold anything.
        shown = message.get("document") or (message.get("photo") or [{}])[-1]
        file_id = shown.get("file_id") if isinstance(shown, dict) else None
        return SeenInTelegram(
            chat_id=message["chat"]["id"],
            message_id=message["message_id"],
            text=text,
            entities=tuple(entities),
            markup=message.get("reply_markup"),
            is_bot=self.is_bot,
            edits=self.edits,
            reply_to=replied["message_id"] if replied else None,
            thread_id=message.get("message_thread_id"),
            reaction=tuple(self.reaction),
            file_name=message.get("document", {}).get("file_name"),
            file_id=str(file_id) if file_id else None,
            is_photo="photo" in message,
        )


class TelegramChats:
    """Every chat's messages, by their numbers."""

    def __init__(self) -> None:
        self.about: dict[int, Json] = {}
        self.topics: defaultdict[int, set[int]] = defaultdict(set)
        self._messages: defaultdict[int, dict[int, TelegramMessage]] = defaultdict(dict)
        self._last_id: defaultdict[int, int] = defaultdict(int)

    def meet(self, chat: Json, thread_id: int | None) -> None:
        """Note that this chat exists, and its topic."""
        self.about[chat["id"]] = {**self.about.get(chat["id"], {}), **chat}
        if thread_id is not None:
            self.topics[chat["id"]].add(thread_id)

    def next_message_id(self, chat_id: int) -> int:
        self._last_id[chat_id] += 1
        return self._last_id[chat_id]

    def keep(self, message: Json, *, is_bot: bool) -> None:
        """Add a message to its chat."""
        chat_id, message_id = message["chat"]["id"], message["message_id"]
        self._messages[chat_id][message_id] = TelegramMessage(message=message, is_bot=is_bot)
        self._last_id[chat_id] = max(self._last_id[chat_id], message_id)

    def find(self, chat_id: int, message_id: int) -> TelegramMessage | None:
        return self._messages[chat_id].get(message_id)

    def delete(self, chat_id: int, message_id: int) -> bool:
        return self._messages[chat_id].pop(message_id, None) is not None

    def seen(self, chat_id: int) -> list[SeenInTelegram]:
        return [kept.seen() for kept in self._messages[chat_id].values()]


class Updates:
    """The queue of one bot, with the redelivery rules of the real one."""

    def __init__(self) -> None:
        self.next_id = 1
        self._allowed: frozenset[str] | None = None
        self._pending: deque[Json] = deque()
        self._again: list[Json] = []
        self._confirmed: dict[int, Json] = {}

    def count_from(self, update_id: int) -> None:
        """Give the next update this id, which may be a lower one."""
        self.next_id = update_id

    def allow(self, kinds: list[str] | None) -> None:
        """Which kinds are queued from now on; None keeps what was said before."""
        if kinds is not None:
            self._allowed = frozenset(kinds) or None

    @property
    def allowed(self) -> list[str]:
        return sorted(self._allowed or ())

    def push(self, update: Json) -> int:
        """Queue an update under its own id or the next one; a kind not allowed is dropped."""
        update_id = int(update.get("update_id", self.next_id))
        self.next_id = update_id + 1
        kinds = set(update) - {"update_id"}
        # Three kinds come only on demand; all others unless they are left out.
        if self._allowed is None:
            wanted = not kinds & UNASKED
        else:
            wanted = bool(kinds & self._allowed) or not kinds
        if wanted:
            self._pending.append({**update, "update_id": update_id})
        return update_id

    def batch(self, offset: int, limit: int) -> list[Json]:
        """Confirm what lies below the offset, and show what is left."""
        if offset < 0:
            while len(self._pending) > -offset:
                self._confirm()
        elif offset <= self.next_id + OFFSET_AHEAD_MAX:
            while self._pending and self._pending[0]["update_id"] < offset:
                self._confirm()
        return [*self._again, *self._pending][:limit]

    def given(self, shown: list[Json]) -> None:
        """Those shown once more on demand are not shown a third time."""
        if self._again:
            self._again = [update for update in self._again if update not in shown]

    def redeliver(self, update_id: int) -> None:
        """Show a confirmed update once more, whatever the offset."""
        self._again.append(self._confirmed[update_id])
        self._again.sort(key=lambda update: int(update["update_id"]))

    def first(self) -> Json | None:
        return self._again[0] if self._again else self._pending[0] if self._pending else None

    def done(self, update: Json) -> None:
        """The webhook took it."""
        if self._again and self._again[0] is update:
            del self._again[0]
        elif self._pending and self._pending[0] is update:
            self._confirm()

    def clear(self) -> None:
        self._pending.clear()
        self._again.clear()

    def pending(self) -> list[int]:
        return [update["update_id"] for update in self._pending]

    def __len__(self) -> int:
        return len(self._pending) + len(self._again)

    def _confirm(self) -> None:
        update = self._pending.popleft()
        self._confirmed[update["update_id"]] = update


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramFile:
    """The bytes behind a file id."""

    file_id: str
    path: str
    data: bytes

    def about(self) -> Json:
        return {
            "file_id": self.file_id,
            "file_unique_id": f"u{self.file_id}",
            "file_size": len(self.data),
        }


class StoredFiles:
    """Files that people sent or the bot sent."""

    def __init__(self) -> None:
        self._by_id: dict[str, TelegramFile] = {}

    def add(self, data: bytes, *, folder: str, ending: str) -> TelegramFile:
        number = len(self._by_id) + 1
        path = f"{folder}/file_{number}{ending}"
        file = TelegramFile(file_id=f"FILE{number:06d}", path=path, data=data)
        self._by_id[file.file_id] = file
        return file

    def by_id(self, file_id: str) -> TelegramFile | None:
        return self._by_id.get(file_id)

    def by_path(self, path: str) -> TelegramFile | None:
        return next((file for file in self._by_id.values() if file.path == path), None)


class WebhookSender:
    """Posts the pending updates one by one, in order, each until it is taken."""

    def __init__(self, updates: Updates, *, changed: Callable[[], None]) -> None:
        self.url = ""
        self._secret = ""
        self._updates = updates
        self._changed = changed
        self._more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._error: Json = {}

    def point(self, url: str, secret: str) -> None:
        """Send to this address from now on; an empty one stops."""
        self._stop()
        self.url, self._secret, self._error = url, secret, {}
        if url:
            # Owned by this object: ended in `_stop`, awaited in `close`.
            self._task = asyncio.get_running_loop().create_task(self._run())

    def wake(self) -> None:
        self._more.set()

    def info(self) -> Json:
        plain: Json = {
            "url": self.url,
            "has_custom_certificate": False,
            "pending_update_count": len(self._updates),
        }
        if self._updates.allowed:
            plain["allowed_updates"] = self._updates.allowed
        return plain | self._error

    async def close(self) -> None:
        task = self._task
        self._stop()
        if task is not None:
            await asyncio.wait([task], timeout=5.0)

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        limit = aiohttp.ClientTimeout(total=WEBHOOK_TIMEOUT_S)
        wait_s = WEBHOOK_BACKOFF_S
        updates = self._updates
        async with aiohttp.ClientSession(timeout=limit) as session:
            while True:
                update = updates.first()
                if update is None:
                    self._more.clear()
                    await self._more.wait()
                elif await self._post(session, update):
                    updates.done(update)
                    wait_s = WEBHOOK_BACKOFF_S
                    self._changed()
                else:
                    await asyncio.sleep(wait_s)
                    wait_s = min(WEBHOOK_BACKOFF_S_MAX, wait_s * 2)

    async def _post(self, session: aiohttp.ClientSession, update: Json) -> bool:
        headers = {"X-Telegram-Bot-Api-Secret-Token": self._secret} if self._secret else {}
        try:
            async with session.post(self.url, json=update, headers=headers) as response:
                await response.read()
            if 200 <= response.status < 300:
                return True
            why = f"Wrong response from the webhook: {response.status} {response.reason}"
        except (aiohttp.ClientError, TimeoutError) as wrong:
            why = f"Connection failed: {wrong}"
        self._error = {"last_error_date": int(time.time()), "last_error_message": why}
        self._changed()
        return False


def without_reply(message: Mapping[str, Any]) -> Json:
    """A message as it stands inside another one, which the platform nests only once."""
    return {key: value for key, value in message.items() if key != "reply_to_message"}
