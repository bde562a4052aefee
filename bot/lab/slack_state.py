"""Workspace of the Slack stand-in, and its rules: scopes, pace, parameters and sizes.

Called by `bot.lab.slack` and its parts. Scopes and tiers are those of the public reference.
"""

import itertools
import mimetypes
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp.web_request import BaseRequest

from bot.lab.server import RequestParams

Json = dict[str, Any]
Kind = Literal["im", "channel", "group", "mpim"]

TEAM, DOMAIN, APP, BOT, BOT_USER, BOT_NAME = (
    *("T0LAB", "lab", "A0LAB", "B0LAB", "U0LABBOT"),
    "hearth_lab_bot",
)
EPHEMERAL_KEPT = 10_000
_KINDS: dict[str, Kind] = {"D": "im", "C": "channel", "G": "group"}


class SlackRefusal(Exception):
    """A refusal in the words of the Web API: HTTP 200 with `ok: false`, or 429."""

    def __init__(
        self,
        error: str,
        *,
        messages: Sequence[str] = (),
        status: int = 200,
        retry_after: int | None = None,
        **more: Any,
    ) -> None:
        super().__init__(error)
        self.error = error
        self.status = status
        self.retry_after = retry_after
        self.payload: Json = {"ok": False, "error": error, **more}
        if messages:
            shown = [f"[ERROR] {message}" for message in messages]
            self.payload["response_metadata"] = {"messages": shown}


@dataclass(slots=True, kw_only=True)
class User:
    """A person or a bot, with what `users.info` tells."""

    id: str
    name: str
    real_name: str = "Ann Example"
    title: str = ""
    tz: str = "Europe/Berlin"
    tz_label: str = "Central European Time"
    tz_offset: int = 3600
    locale: str = "en-GB"
    is_bot: bool = False
    deleted: bool = False
    team: str = TEAM
    """Another workspace's id for somebody in a shared channel."""

    def shown(self) -> Json:
        """A person as the Web API shows one."""
        return {
            "id": self.id,
            "team_id": self.team,
            "name": self.name,
            "deleted": self.deleted,
            "real_name": self.real_name,
            "tz": self.tz,
            "tz_label": self.tz_label,
            "tz_offset": self.tz_offset,
            "is_bot": self.is_bot,
            "profile": {
                "title": self.title,
                "real_name": self.real_name,
                "display_name": self.name,
            },
        }


@dataclass(slots=True, kw_only=True)
class Conversation:
    """A channel, a group or a direct message."""

    id: str
    kind: Kind
    name: str = ""
    members: set[str] = field(default_factory=set)
    is_archived: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenInSlack:
    """A message as a person would see it now."""

    channel: str
    ts: str
    thread_ts: str | None
    is_reply: bool
    user: str
    text: str
    blocks: tuple[Json, ...]
    metadata: Json | None
    is_bot: bool
    edits: int
    reactions: dict[str, tuple[str, ...]]
    files: tuple[str, ...]
    only_for: str | None


@dataclass(slots=True, kw_only=True)
class SlackMessage:
    """A message in its conversation, in Slack's JSON, and what that does not tell."""

    channel: str
    message: Json
    is_bot: bool
    edits: int = 0
    metadata: Json | None = None
    reactions: dict[str, list[str]] = field(default_factory=dict)

    @property
    def ts(self) -> str:
        return str(self.message["ts"])

    @property
    def thread_ts(self) -> str | None:
        """The parent's ts of a reply, and of a parent that has replies."""
        return self.message.get("thread_ts")

    @property
    def is_reply(self) -> bool:
        return self.thread_ts not in {None, self.ts}

    def seen(self, *, only_for: str | None = None) -> SeenInSlack:
        return SeenInSlack(
            channel=self.channel,
            ts=self.ts,
            thread_ts=self.thread_ts,
            is_reply=self.is_reply,
            user=str(self.message.get("user", "")),
            text=str(self.message.get("text", "")),
            blocks=tuple(self.message.get("blocks", ())),
            metadata=self.metadata,
            is_bot=self.is_bot,
            edits=self.edits,
            reactions={name: tuple(users) for name, users in self.reactions.items()},
            files=tuple(str(file["name"]) for file in self.message.get("files", ())),
            only_for=only_for,
        )


@dataclass(slots=True, kw_only=True)
class SlackFile:
    """A file of the workspace; the bytes of an upload still have to come."""

    id: str
    name: str
    user: str
    created: int
    title: str
    data: bytes | None = None
    length: int = 0

    @property
    def mime_type(self) -> str:
        return mimetypes.guess_type(self.name)[0] or "application/octet-stream"

    @property
    def path(self) -> str:
        return f"/files-pri/{TEAM}-{self.id}/{self.name}"


@dataclass(slots=True, kw_only=True)
class ResponseUrl:
    """Where an app may answer a command or a click, five times within thirty minutes."""

    channel: str
    user: str
    at: float
    uses: int = 0


class SlackWorkspace:
    """All that stands in the workspace now. It lives as long as a test, so nothing is dropped."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.users = {BOT_USER: User(id=BOT_USER, name=BOT_NAME, real_name="Hearth", is_bot=True)}
        self.conversations: dict[str, Conversation] = {}
        self.messages: dict[str, dict[str, SlackMessage]] = {}
        """By channel and ts, in the order of their ts, for each new one is the highest."""
        self.ephemeral: deque[SeenInSlack] = deque(maxlen=EPHEMERAL_KEPT)
        self.files: dict[str, SlackFile] = {}
        self.triggers: dict[str, float] = {}
        """When a click or a command gave the right to open one view."""
        self.response_urls: dict[str, ResponseUrl] = {}
        self.views: dict[str, Json] = {}
        self.homes: dict[str, Json] = {}
        self.statuses: dict[tuple[str, str], str] = {}
        self.titles: dict[tuple[str, str], str] = {}
        self.prompts: dict[tuple[str, str], list[Json]] = {}
        self._counter = itertools.count(1)
        self._last_ts = 0

    def next_id(self, prefix: str) -> str:
        """An id that was not given before, such as `Ev0000000007`."""
        return f"{prefix}{next(self._counter):010d}"

    def next_ts(self) -> str:
        """A message timestamp: the time, and unique in the workspace."""
        # Two posts of one moment would share a ts, which is a message's only name.
        self._last_ts = max(self._last_ts + 100, int(time.time() * 1_000_000))
        return f"{self._last_ts // 1_000_000}.{self._last_ts % 1_000_000:06d}"

    # People and conversations -------------------------------------------------------------------

    def user(self, user_id: str) -> User:
        """This person, met on first sight under a plain name."""
        return self.users.setdefault(user_id, User(id=user_id, name=f"user_{user_id.lower()}"))

    def conversation(self, channel_id: str) -> Conversation:
        """This conversation, met on first sight: `D` a direct message, `C` a channel, `G` a group.

        The bot is a member of what is met in this way.
        """
        if channel_id not in self.conversations:
            kind = _KINDS.get(channel_id[:1])
            if kind is None:
                raise LookupError(f"{channel_id!r} is not a conversation's id (D…, C… or G…)")
            name = "" if kind == "im" else channel_id.lower()
            found = Conversation(id=channel_id, kind=kind, name=name, members={BOT_USER})
            self.conversations[channel_id] = found
        return self.conversations[channel_id]

    def direct(self, user_id: str) -> Conversation:
        """The direct message between the bot and this person."""
        found = self.conversation(f"D{user_id[1:]}")
        found.members.add(user_id)
        return found

    # Messages -----------------------------------------------------------------------------------

    def keep(self, channel: str, message: Json, *, is_bot: bool) -> SlackMessage:
        """Add a message; what it replies to becomes the parent of a thread."""
        kept = SlackMessage(channel=channel, message=message, is_bot=is_bot)
        self.messages.setdefault(channel, {})[kept.ts] = kept
        if kept.is_reply and (parent := self.find(channel, kept.thread_ts)) is not None:
            parent.message["thread_ts"] = parent.ts
        return kept

    def find(self, channel: str, ts: str | None) -> SlackMessage | None:
        return self.messages.get(channel, {}).get(ts or "")

    def replies(self, channel: str, parent_ts: str) -> list[SlackMessage]:
        """Below this parent, without it."""
        there = self.messages.get(channel, {}).values()
        return [kept for kept in there if kept.thread_ts == parent_ts and kept.is_reply]

    def parent_of(self, channel: str, ts: str) -> SlackMessage | None:
        """Where a reply to this ts would stand: the message itself, or the parent of a reply."""
        kept = self.find(channel, ts)
        return self.find(channel, kept.thread_ts) if kept is not None and kept.is_reply else kept

    def shown(self, kept: SlackMessage, *, metadata: bool = False) -> Json:
        """A message as the Web API shows it."""
        message = dict(kept.message)
        if kept.reactions:
            message["reactions"] = [
                {"name": name, "users": list(users), "count": len(users)}
                for name, users in kept.reactions.items()
            ]
        if metadata and kept.metadata is not None:
            message["metadata"] = kept.metadata
        if kept.is_reply:
            if (parent := self.find(kept.channel, kept.thread_ts)) is not None:
                message["parent_user_id"] = parent.message.get("user", "")
        elif replies := self.replies(kept.channel, kept.ts):
            message |= {"thread_ts": kept.ts, "reply_count": len(replies)}
        return message

    def seen(self, channel: str) -> list[SeenInSlack]:
        """Return what stands in the conversation, each thread below its parent."""
        there = self.messages.get(channel, {}).values()
        return [
            k.seen() for k in sorted(there, key=lambda kept: (kept.thread_ts or kept.ts, kept.ts))
        ]

    def whisper(self, channel: str, user: str, message: Json) -> SeenInSlack:
        """A message that one person sees, and that is not kept by Slack."""
        seen = SlackMessage(channel=channel, message=message, is_bot=True).seen(only_for=user)
        self.ephemeral.append(seen)
        return seen

    # Files, triggers, response URLs -------------------------------------------------------------

    def add_file(self, name: str, *, user: str, data: bytes | None, length: int) -> SlackFile:
        file = SlackFile(
            id=self.next_id("F"),
            name=name,
            title=name,
            user=user,
            created=int(time.time()),
            data=data,
            length=length,
        )
        self.files[file.id] = file
        return file

    def trigger(self) -> str:
        """A fresh trigger id in the form that Slack gives."""
        trigger_id = f"{self.next_id('')}.{self.next_id('')}.{'f' * 16}"
        self.triggers[trigger_id] = self.clock()
        return trigger_id

    def response_url(self, channel: str, user: str) -> str:
        """The path under which this command or click can be answered."""
        path = f"/actions/{TEAM}/{self.next_id('')}"
        self.response_urls[path] = ResponseUrl(channel=channel, user=user, at=self.clock())
        return path

    def stored_view(self, view: Json, view_id: str) -> Json:
        """A view with what Slack adds to it."""
        # Slack sends these even where the app gave none.
        blank: Json = {"private_metadata": "", "callback_id": "", "external_id": ""}
        ours = {"id": view_id, "team_id": TEAM, "app_id": APP, "bot_id": BOT}
        return {**blank, **view, **ours, "state": {"values": {}}, "hash": self.next_id("h")}


# Rules ----------------------------------------------------------------------------------------

BLOCK_CHARS_MAX = {"section": 3000, "header": 150, "markdown": 12_000}
BLOCKS_CHARS_MAX = 13_200

CONNECT = "apps.connections.open"
FAMILIES = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}


BOT_SCOPES = """
    app_mentions:read assistant:write channels:history chat:write commands files:read files:write
    groups:history im:history mpim:history reactions:read reactions:write users:read
"""
SUBSCRIPTIONS = """
    app_home_opened app_mention assistant_thread_context_changed assistant_thread_started
    file_shared member_left_channel message.channels message.groups message.im message.mpim
    reaction_added
"""


@dataclass(slots=True, kw_only=True)
class SlackRules:
    """How the stand-in behaves; each may be changed while it runs."""

    bot_scopes: set[str] = field(default_factory=lambda: set(BOT_SCOPES.split()))
    app_scopes: set[str] = field(default_factory=lambda: {"connections:write"})
    subscribed: set[str] = field(default_factory=lambda: set(SUBSCRIPTIONS.split()))
    limits: bool = False
    token_error: str | None = None
    """What every use of the bot token gets, such as `token_revoked` or `account_inactive`."""
    ack_s: float = 3.0
    """Within which the app has to take what it is sent."""
    retry_scale: float = 1.0
    """Of the minutes after which Slack sends an event again."""
    retries_max: int = 3

    def change(self, **wanted: Any) -> None:
        """Set by name; lists become sets. Raise TypeError on other names."""
        for name, value in wanted.items():
            if name not in self.__dataclass_fields__:
                raise TypeError(f"no such setting: {name}")
            setattr(self, name, set(value) if isinstance(value, list) else value)


class SlackParams(RequestParams):
    """The arguments of a method of the Web API."""

    token = ""

    def needed(self, name: str) -> str:
        """Return this text; refuse the request in Slack's way when it is missing."""
        if value := self.text(name):
            return value
        raise SlackRefusal("invalid_arguments", messages=[f"missing required field: {name}"])

    def number(self, name: str, default: int) -> int:
        try:
            return int(self.get(name, default))
        except (TypeError, ValueError):
            raise SlackRefusal("invalid_arguments", messages=[f"invalid {name}"]) from None

    def parsed(self, name: str, wrong: str) -> Any:
        return self.nested(name, SlackRefusal(wrong))

    async def receive(self, request: BaseRequest) -> None:
        """Take in what comes, and the token from the header or a form; JSON carries none."""
        await super().receive(request)
        given = self.pop("token", "")
        header = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        self.token = header or ("" if request.content_type == "application/json" else str(given))


def check_blocks(blocks: Any, *, most: int) -> None:
    """Refuse what Slack cuts or counts; what else may be wrong, its own library judges in tests."""
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise SlackRefusal("invalid_blocks_format")
    found: list[str] = []
    if len(blocks) > most:
        found.append(f"no more than {most} items allowed [json-pointer:/blocks]")
    for index, block in enumerate(blocks):
        limit = BLOCK_CHARS_MAX.get(str(block.get("type")))
        chars = len(_words(block.get("text")))
        if limit is not None and "text" in block and not 0 < chars <= limit:
            place = f"[json-pointer:/blocks/{index}/text/text]"
            found.append(f"must be less than {limit + 1} characters {place}")
    if found:
        raise SlackRefusal("invalid_blocks", messages=found, errors=found)
    if sum(len(_words(block)) for block in blocks) > BLOCKS_CHARS_MAX:
        raise SlackRefusal("msg_blocks_too_long")


def _words(node: Any) -> str:
    """All texts within a block."""
    if isinstance(node, str):
        return node
    if isinstance(node, dict):
        return "".join(_words(v) for k, v in node.items() if k == "text" or not isinstance(v, str))
    return "".join(map(_words, node)) if isinstance(node, list) else ""
