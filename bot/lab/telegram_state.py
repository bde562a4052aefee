"""What the Telegram stand-in remembers: chats, pending updates, files, and how fast one may send.

Called by `bot.lab.telegram` and `bot.lab.telegram_api`; plain data without any network.
"""

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

# Without a wish of the bot, these kinds are not sent.
UNASKED = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
CONFIRMED_KEPT = 10_000
FILES_KEPT = 500
# The real queue takes an offset further ahead for a mistake, and starts from its head again.
OFFSET_AHEAD_MAX = 10


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
    """A message as a person would see it now; `order` counts all messages of the server."""

    chat_id: int
    message_id: int
    text: str
    entities: tuple[Json, ...]
    markup: Json | None
    is_bot: bool
    edits: int
    reply_to: int | None
    thread_id: int | None
    order: int
    parse_mode: str | None
    reaction: tuple[Json, ...]
    file_name: str | None
    file_id: str | None
    is_photo: bool


@dataclass(slots=True, kw_only=True)
class TelegramMessage:
    """A message in a chat, as the Bot API would show it, and what it does not tell."""

    message: Json
    is_bot: bool
    order: int
    edits: int = 0
    parse_mode: str | None = None
    reaction: list[Json] = field(default_factory=list)

    def seen(self) -> SeenInTelegram:
        message = self.message
        replied = message.get("reply_to_message")
        text = message.get("text") or message.get("caption") or ""
        entities = message.get("entities") or message.get("caption_entities") or ()
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
            order=self.order,
            parse_mode=self.parse_mode,
            reaction=tuple(self.reaction),
            file_name=message.get("document", {}).get("file_name"),
            file_id=_file_of(message),
            is_photo="photo" in message,
        )


def _file_of(message: Json) -> str | None:
    """The id of what a message shows, a picture in its largest size. Raw updates hold anything."""
    shown = message.get("document") or (message.get("photo") or [{}])[-1]
    file_id = shown.get("file_id") if isinstance(shown, dict) else None
    return str(file_id) if file_id else None


class TelegramChats:
    """Every chat's messages; the oldest of all are forgotten beyond `cap`."""

    def __init__(self, cap: int) -> None:
        self.about: dict[int, Json] = {}
        self.topics: dict[int, set[int]] = {}
        self._messages: dict[int, dict[int, TelegramMessage]] = {}
        self._next_id: dict[int, int] = {}
        self._by_age: deque[tuple[int, int]] = deque()
        self._cap = cap
        self._order = 0

    def meet(self, chat: Json, thread_id: int | None) -> None:
        """Note that this chat exists, and its topic."""
        self.about[chat["id"]] = {**self.about.get(chat["id"], {}), **chat}
        if thread_id is not None:
            self.topics.setdefault(chat["id"], set()).add(thread_id)

    def next_message_id(self, chat_id: int) -> int:
        message_id = self._next_id.get(chat_id, 1)
        self._next_id[chat_id] = message_id + 1
        return message_id

    def keep(
        self, message: Json, *, is_bot: bool, parse_mode: str | None = None
    ) -> TelegramMessage:
        """Add a message to its chat."""
        chat_id, message_id = message["chat"]["id"], message["message_id"]
        self._order += 1
        kept = TelegramMessage(
            message=message, is_bot=is_bot, order=self._order, parse_mode=parse_mode
        )
        self._messages.setdefault(chat_id, {})[message_id] = kept
        self._next_id[chat_id] = max(self._next_id.get(chat_id, 1), message_id + 1)
        self._by_age.append((chat_id, message_id))
        if len(self._by_age) > self._cap:
            old_chat, old_id = self._by_age.popleft()
            self._messages[old_chat].pop(old_id, None)
        return kept

    def find(self, chat_id: int, message_id: int) -> TelegramMessage | None:
        return self._messages.get(chat_id, {}).get(message_id)

    def delete(self, chat_id: int, message_id: int) -> bool:
        return self._messages.get(chat_id, {}).pop(message_id, None) is not None

    def seen(self, chat_id: int) -> list[SeenInTelegram]:
        return [kept.seen() for kept in self._messages.get(chat_id, {}).values()]


class Updates:
    """The queue of one bot, with the redelivery rules of the real one."""

    def __init__(self, next_id: int) -> None:
        self.next_id = next_id
        self._allowed: frozenset[str] | None = None
        self._pending: deque[Json] = deque()
        self._again: list[Json] = []
        self._confirmed: OrderedDict[int, Json] = OrderedDict()

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
        shown = list(self._again)
        for update in self._pending:
            if len(shown) >= limit:
                break
            shown.append(update)
        return shown[:limit]

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
        if len(self._confirmed) > CONFIRMED_KEPT:
            self._confirmed.popitem(last=False)


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
    """Files that people sent or the bot sent; only the last few hundred are kept."""

    def __init__(self) -> None:
        self._by_id: OrderedDict[str, TelegramFile] = OrderedDict()
        self._count = 0

    def add(self, data: bytes, *, folder: str, ending: str) -> TelegramFile:
        self._count += 1
        path = f"{folder}/file_{self._count}{ending}"
        file = TelegramFile(file_id=f"FILE{self._count:06d}", path=path, data=data)
        self._by_id[file.file_id] = file
        if len(self._by_id) > FILES_KEPT:
            self._by_id.popitem(last=False)
        return file

    def by_id(self, file_id: str) -> TelegramFile | None:
        return self._by_id.get(file_id)

    def by_path(self, path: str) -> TelegramFile | None:
        return next((file for file in self._by_id.values() if file.path == path), None)


@dataclass(slots=True)
class _TelegramBucket:
    level: float
    at: float


class TelegramLimits:
    """The documented limits: 1/s in a chat with a short burst, 20/min in a group, 30/s in all."""

    PRIVATE = (1.0, 3.0)
    GROUP = (20.0 / 60.0, 20.0)
    OVERALL = (30.0, 30.0)
    BUCKETS_MAX = 10_000

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[int | str, _TelegramBucket] = {}

    def wait_s(self, chat_id: int) -> int:
        """Take one send, or say in how many whole seconds it may be tried again."""
        now = self._clock()
        in_chat = self.GROUP if chat_id < 0 else self.PRIVATE
        asked: list[tuple[int | str, tuple[float, float]]] = [
            ("all", self.OVERALL),
            (chat_id, in_chat),
        ]
        wait = 0.0
        taken = []
        for key, (rate, burst) in asked:
            bucket = self._bucket(key, burst=burst, now=now)
            bucket.level = min(burst, bucket.level + (now - bucket.at) * rate)
            bucket.at = now
            wait = max(wait, (1.0 - bucket.level) / rate)
            taken.append(bucket)
        if wait > 1e-9:
            return max(1, math.ceil(wait))
        for bucket in taken:
            bucket.level -= 1.0
        return 0

    def _bucket(self, key: int | str, *, burst: float, now: float) -> _TelegramBucket:
        if key not in self._buckets and len(self._buckets) > self.BUCKETS_MAX:
            idle = [name for name, bucket in self._buckets.items() if now - bucket.at > 60.0]
            for name in idle:
                del self._buckets[name]
        return self._buckets.setdefault(key, _TelegramBucket(burst, now))


def without_reply(message: Mapping[str, Any]) -> Json:
    """A message as it stands inside another one, which the platform nests only once."""
    return {key: value for key, value in message.items() if key != "reply_to_message"}
