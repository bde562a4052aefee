"""What the Slack stand-in remembers: people, conversations, messages in threads, files, triggers.

Called by `bot.lab.slack` and its parts; plain data without any network.
"""

import itertools
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]
Kind = Literal["im", "channel", "group", "mpim"]

FILES_KEPT = 500
TRIGGERS_KEPT = 1000
RESPONSE_URL_USES = 5
TOMBSTONE_TEXT = "This message was deleted."
_PREFIXES: dict[str, Kind] = {"D": "im", "C": "channel", "G": "group"}


class SlackRefusal(Exception):
    """A refusal in the words of the Web API: HTTP 200 with `ok: false`, or 429."""

    def __init__(
        self,
        error: str,
        *,
        messages: list[str] | None = None,
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
            self.payload |= {"response_metadata": {"messages": shown}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The app in its workspace, by the ids that Slack uses."""

    team: str = "T0LAB"
    team_name: str = "Lab"
    domain: str = "lab"
    app: str = "A0LAB"
    app_name: str = "hearth_lab_bot"
    bot: str = "B0LAB"
    bot_user: str = "U0LABBOT"


@dataclass(slots=True, kw_only=True)
class User:
    """A person or a bot, with what `users.info` tells."""

    id: str
    name: str
    real_name: str
    title: str = ""
    tz: str = "Europe/Berlin"
    tz_label: str = "Central European Time"
    tz_offset: int = 3600
    locale: str = "en-GB"
    is_bot: bool = False
    deleted: bool = False
    team: str = ""
    """The other workspace of somebody in a shared channel; empty: our own."""


@dataclass(slots=True, kw_only=True)
class Conversation:
    """A channel, a group or a direct message."""

    id: str
    kind: Kind
    name: str = ""
    members: set[str] = field(default_factory=set)
    is_archived: bool = False
    private: bool = False


@dataclass(slots=True)
class Stream:
    """Native streaming of one message: which of the two forms was used, and whether it goes on."""

    mode: str | None = None
    begun_at: float = 0.0
    stopped_by_user: bool = False
    tasks: dict[str, Json] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class SlackMessage:
    """A message in its conversation, in Slack's JSON, and what that does not tell."""

    channel: str
    message: Json
    order: int
    is_bot: bool
    edits: int = 0
    metadata: Json | None = None
    reactions: dict[str, list[str]] = field(default_factory=dict)
    stream: Stream | None = None
    tombstone: bool = False

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenInSlack:
    """A message as a person would see it now; `order` counts all messages of the workspace."""

    channel: str
    ts: str
    thread_ts: str | None
    user: str
    text: str
    blocks: tuple[Json, ...]
    metadata: Json | None
    is_bot: bool
    edits: int
    reactions: dict[str, tuple[str, ...]]
    files: tuple[str, ...]
    streaming: bool
    only_for: str | None
    order: int

    @property
    def is_reply(self) -> bool:
        return self.thread_ts not in {None, self.ts}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackFile:
    """A file of the workspace; its bytes may still have to come."""

    id: str
    name: str
    title: str
    mime_type: str
    user: str
    created: int
    data: bytes | None = None
    length: int = 0


@dataclass(slots=True, kw_only=True)
class Trigger:
    """What a click or a command gives for three seconds: the right to open one view."""

    user: str
    at: float
    used: bool = False


@dataclass(slots=True, kw_only=True)
class ResponseUrl:
    """Where an app may answer a command or a click, five times within thirty minutes."""

    channel: str
    user: str
    message_ts: str | None
    at: float
    uses: int = 0


class SlackWorkspace:
    """All that stands in the workspace now."""

    def __init__(
        self,
        identity: Identity,
        *,
        cap: int,
        clock: Callable[[], float],
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.identity = identity
        self.clock = clock
        self.wall = wall
        self.users: dict[str, User] = {}
        self.conversations: dict[str, Conversation] = {}
        self.ephemeral: deque[SeenInSlack] = deque(maxlen=cap)
        self.files: OrderedDict[str, SlackFile] = OrderedDict()
        self.triggers: OrderedDict[str, Trigger] = OrderedDict()
        self.response_urls: OrderedDict[str, ResponseUrl] = OrderedDict()
        self.views: dict[str, Json] = {}
        self.homes: dict[str, Json] = {}
        self.statuses: dict[tuple[str, str], str] = {}
        self.titles: dict[tuple[str, str], str] = {}
        self.prompts: dict[tuple[str, str], list[Json]] = {}
        # All in the order of their ts, for each new one is the highest.
        self._messages: dict[str, dict[str, SlackMessage]] = {}
        self._replies: dict[tuple[str, str], dict[str, SlackMessage]] = {}
        self._by_age: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._cap = cap
        self._counter = itertools.count(1)
        self._order = itertools.count(1)
        self._last_ts = 0
        bot = User(id=identity.bot_user, name=identity.app_name, real_name="Hearth", is_bot=True)
        self.users[bot.id] = bot

    # Ids ----------------------------------------------------------------------------------------

    def next_id(self, prefix: str) -> str:
        """An id that was not given before, such as `Ev0000000007`."""
        return f"{prefix}{next(self._counter):010d}"

    def next_ts(self) -> str:
        """A message timestamp: the time, and unique in the workspace."""
        self._last_ts = max(self._last_ts + 100, int(self.wall() * 1_000_000))
        return f"{self._last_ts // 1_000_000}.{self._last_ts % 1_000_000:06d}"

    # People and conversations -------------------------------------------------------------------

    def user(self, user_id: str) -> User:
        """This person, met on first sight under a plain name."""
        if user_id not in self.users:
            name = f"user_{user_id.lower()}"
            self.users[user_id] = User(id=user_id, name=name, real_name="Ann Example")
        return self.users[user_id]

    def team_of(self, user_id: str) -> str:
        """The workspace of a person."""
        return self.user(user_id).team or self.identity.team

    def conversation(self, channel_id: str) -> Conversation:
        """This conversation, met on first sight: `D` a direct message, `C` a channel, `G` a group.

        The bot is a member of what is met in this way.
        """
        if channel_id not in self.conversations:
            kind = _PREFIXES.get(channel_id[:1])
            if kind is None:
                raise LookupError(f"{channel_id!r} is not a conversation's id (D…, C… or G…)")
            found = Conversation(id=channel_id, kind=kind, private=kind == "group")
            found.name = "" if kind == "im" else channel_id.lower()
            found.members.add(self.identity.bot_user)
            self.conversations[channel_id] = found
        return self.conversations[channel_id]

    def direct(self, user_id: str) -> Conversation:
        """The direct message between the bot and this person."""
        for conversation in self.conversations.values():
            if conversation.kind == "im" and user_id in conversation.members:
                return conversation
        found = self.conversation(f"D{user_id[1:]}")
        found.members.add(user_id)
        return found

    def find_conversation(self, named: str) -> Conversation | None:
        """By id, or by a channel's name with or without the sign before it."""
        if named in self.conversations:
            return self.conversations[named]
        name = named.removeprefix("#")
        named_so = (c for c in self.conversations.values() if c.name and c.name == name)
        return next(named_so, None)

    # Messages -----------------------------------------------------------------------------------

    def keep(self, channel: str, message: Json, *, is_bot: bool) -> SlackMessage:
        """Add a message; the oldest of all is forgotten beyond the cap."""
        kept = SlackMessage(
            channel=channel, message=message, order=next(self._order), is_bot=is_bot
        )
        self._messages.setdefault(channel, {})[kept.ts] = kept
        self._by_age[(channel, kept.ts)] = None
        if kept.is_reply:
            self._replies.setdefault((channel, str(kept.thread_ts)), {})[kept.ts] = kept
            parent = self.find(channel, str(kept.thread_ts))
            if parent is not None:
                parent.message["thread_ts"] = parent.ts
        if len(self._by_age) > self._cap:
            (old_channel, old_ts), _ = self._by_age.popitem(last=False)
            self._forget(self._messages[old_channel][old_ts])
        return kept

    def find(self, channel: str, ts: str) -> SlackMessage | None:
        return self._messages.get(channel, {}).get(ts)

    def delete(self, kept: SlackMessage) -> bool:
        """Take a message away; a parent with replies leaves a tombstone, and that says True."""
        replies = self.replies(kept.channel, kept.ts)
        if not kept.is_reply and replies:
            kept.tombstone = True
            kept.metadata = None
            kept.message = {
                "type": "message",
                "subtype": "tombstone",
                "text": TOMBSTONE_TEXT,
                "user": "USLACKBOT",
                "hidden": True,
                "ts": kept.ts,
                "thread_ts": kept.ts,
            }
            return True
        self._by_age.pop((kept.channel, kept.ts), None)
        self._forget(kept)
        if kept.is_reply:
            self._bury(kept.channel, str(kept.thread_ts))
        return False

    def messages(self, channel: str) -> Iterator[SlackMessage]:
        """In the order of their ts."""
        return iter(self._messages.get(channel, {}).values())

    def replies(self, channel: str, parent_ts: str) -> list[SlackMessage]:
        """Below this parent, without it."""
        return list(self._replies.get((channel, parent_ts), {}).values())

    def parent_of(self, channel: str, ts: str) -> SlackMessage | None:
        """Where a reply to this ts would stand: the message itself, or the parent of a reply."""
        kept = self.find(channel, ts)
        if kept is not None and kept.is_reply:
            return self.find(channel, str(kept.thread_ts))
        return kept

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
            parent = self.find(kept.channel, str(kept.thread_ts))
            if parent is not None:
                message["parent_user_id"] = parent.message.get("user", "")
        elif replies := self.replies(kept.channel, kept.ts):
            users = list(dict.fromkeys(str(r.message.get("user", "")) for r in replies))
            message |= {
                "thread_ts": kept.ts,
                "reply_count": len(replies),
                "reply_users": users,
                "reply_users_count": len(users),
                "latest_reply": replies[-1].ts,
                "is_locked": False,
                "subscribed": False,
            }
        return message

    def seen(self, channel: str) -> list[SeenInSlack]:
        """What stands in the conversation, each thread below its parent."""
        found: list[SlackMessage] = []
        for kept in self.messages(channel):
            if not kept.is_reply:
                found += [kept, *self.replies(channel, kept.ts)]
            elif self.find(channel, str(kept.thread_ts)) is None:
                found.append(kept)
        return [_seen(kept) for kept in found]

    def whisper(self, channel: str, user: str, message: Json) -> SeenInSlack:
        """A message that one person sees, and that is not kept by Slack."""
        kept = SlackMessage(channel=channel, message=message, order=next(self._order), is_bot=True)
        seen = _seen(kept, only_for=user)
        self.ephemeral.append(seen)
        return seen

    # Files, triggers, response URLs -------------------------------------------------------------

    def add_file(self, file: SlackFile) -> SlackFile:
        self.files[file.id] = file
        if len(self.files) > FILES_KEPT:
            self.files.popitem(last=False)
        return file

    def trigger(self, user: str) -> str:
        """A fresh trigger id in the form that Slack gives."""
        trigger_id = f"{self.next_id('')}.{self.next_id('')}.{'f' * 16}"
        self.triggers[trigger_id] = Trigger(user=user, at=self.clock())
        if len(self.triggers) > TRIGGERS_KEPT:
            self.triggers.popitem(last=False)
        return trigger_id

    def response_url(self, channel: str, user: str, message_ts: str | None) -> str:
        """The path under which this command or click can be answered."""
        path = f"/actions/{self.identity.team}/{self.next_id('')}"
        self.response_urls[path] = ResponseUrl(
            channel=channel, user=user, message_ts=message_ts, at=self.clock()
        )
        if len(self.response_urls) > TRIGGERS_KEPT:
            self.response_urls.popitem(last=False)
        return path

    def _forget(self, kept: SlackMessage) -> None:
        self._messages[kept.channel].pop(kept.ts, None)
        thread = (kept.channel, str(kept.thread_ts))
        if kept.is_reply and thread in self._replies:
            self._replies[thread].pop(kept.ts, None)
            if not self._replies[thread]:
                del self._replies[thread]

    def _bury(self, channel: str, parent_ts: str) -> None:
        parent = self.find(channel, parent_ts)
        if parent is None or self.replies(channel, parent_ts):
            return
        if parent.tombstone:
            self._by_age.pop((channel, parent_ts), None)
            self._forget(parent)
        elif parent.message.get("subtype") != "assistant_app_thread":
            parent.message.pop("thread_ts", None)


def _seen(kept: SlackMessage, *, only_for: str | None = None) -> SeenInSlack:
    message = kept.message
    return SeenInSlack(
        channel=kept.channel,
        ts=kept.ts,
        thread_ts=kept.thread_ts,
        user=str(message.get("user", "")),
        text=str(message.get("text", "")),
        blocks=tuple(message.get("blocks", ())),
        metadata=kept.metadata,
        is_bot=kept.is_bot,
        edits=kept.edits,
        reactions={name: tuple(users) for name, users in kept.reactions.items()},
        files=tuple(str(file["name"]) for file in message.get("files", ())),
        streaming=kept.stream is not None,
        only_for=only_for,
        order=kept.order,
    )
