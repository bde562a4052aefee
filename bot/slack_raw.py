"""What Slack sends before anything is trusted: which of it is kept, under which key, and of whom.

Called by `bot.slack` for every payload, from strangers too. Nothing here trusts a shape: an odd
payload must neither stop the intake nor spoil what comes after it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bot.linking import link_code
from bot.odd_json import read_json
from bot.slack_fields import (
    ID,
    WORD,
    Json,
    is_direct,
    needed,
    needed_direct,
    needed_id,
    needed_ts,
    part,
    text_of,
)

SLACKBOT = "USLACKBOT"
SPOKEN = frozenset({"", "file_share", "thread_broadcast", "me_message"})
"""Subtypes of a message that a person wrote; all others tell of something."""

SHARED_MAX = 100
"""Attachments that are looked at: Slack allows no more."""

VALUE_CHARS_MAX = 2_000
"""Slack lets a button carry no more."""

HOME_CHANNEL = "private_metadata"
"""Where a home keeps its person's direct message: a press on it names no conversation."""


class Kind(StrEnum):
    """What a stored event is."""

    POST = "post"
    EDIT = "edit"
    DELETION = "deletion"
    COMMAND = "command"
    BUTTON = "button"
    HOME = "home"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """One event that may be for us. `us` is the bot's own user id, as far as Slack says it.

    `thread` is the thread that the event belongs to: in channels every post begins one, in a
    direct message only a reply is in one. `link` is the code of a `/link CODE` and nothing else: of
    a stranger's words, no other is looked at.
    """

    kind: Kind
    team: str
    event_id: str
    channel: str
    thread: str | None
    sender: str
    us: str
    body: dict[str, Any]
    link: str = ""

    @property
    def source(self) -> str:
        """The inbox's name for the events of this workspace."""
        return f"slack:{self.team}"

    @property
    def chat_id(self) -> str:
        """The conversation, as `Address` holds it: `:` would part it."""
        return f"{self.team}.{self.channel}"

    @property
    def is_group(self) -> bool:
        """Whether others read along."""
        return not is_direct(self.channel)

    def to_payload(self) -> str:
        """What the inbox keeps."""
        kept = {"kind": self.kind, "team": self.team, "us": self.us, "body": self.body}
        return json.dumps(kept, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A payload read back."""

    kind: Kind
    team: str
    us: str
    body: dict[str, Any]

    @classmethod
    def of(cls, payload: str) -> Stored:
        """Raises ValueError."""
        found = read_json(payload)
        if not isinstance(found, dict) or not isinstance(found.get("body"), dict):
            raise ValueError("not a stored event")
        return cls(
            kind=Kind(text_of(found, "kind")),
            team=needed_id(found, "team"),
            us=text_of(found, "us"),
            body=found["body"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """Somebody opened a thread of the assistant's pane; `sender` is their address."""

    channel: str
    thread: str
    sender: str


def opened(payload: Json) -> Opened | None:
    """Which thread was opened, if that is what a payload says. Never raises."""
    event = payload.get("event")
    if not isinstance(event, dict) or event.get("type") != "assistant_thread_started":
        return None
    thread = event.get("assistant_thread")
    if not isinstance(thread, dict):
        return None
    try:
        team, _ = _installed(payload)
        return Opened(
            channel=needed_id(thread, "channel_id"),
            thread=needed_ts(thread, "thread_ts"),
            sender=f"slack:{team}:{needed_id(thread, 'user_id')}",
        )
    except ValueError:
        return None


def sketch(payload: Json) -> Sketch | None:
    """What a payload is, if it may be for us: not what we or other bots do, nor what was not
    said at all. Raises ValueError for one that claims to be something and is not."""
    match payload.get("type"):
        case "event_callback":
            return _event(payload)
        case "block_actions":
            return _button(payload)
        case None if "command" in payload:
            return _command(payload)
    return None


# --- posts ---------------------------------------------------------------------------------------


def _event(payload: Json) -> Sketch | None:
    event = payload.get("event")
    if not isinstance(event, dict):
        raise ValueError("an event without its body")
    kind = text_of(event, "type")
    if kind == "app_home_opened":
        return _home(payload, event)
    if kind not in {"message", "app_mention"}:
        return None
    team, us = _installed(payload)
    match text_of(event, "subtype"):
        case "message_changed":
            return _edit(event, team, us) if kind == "message" else None
        case "message_deleted":
            return _deletion(event, team, us) if kind == "message" else None
        case subtype if subtype in SPOKEN:
            return _post(event, team, us)
    return None


def _post(event: dict[str, Any], team: str, us: str) -> Sketch | None:
    if not _is_of_a_person(event, us):
        return None
    channel, ts = needed_id(event, "channel"), needed_ts(event, "ts")
    event_id = f"{channel}:{ts}"
    is_mention = event.get("type") == "app_mention"
    if is_mention and event.get("edited"):
        return None  # a mention that an edit brought: `message_changed` tells of it, too
    if is_mention and not mentions(text_of(event, "text"), us):
        # Slack says that we are meant and the text does not show it, so `message` alone would
        # not say it either: kept as an event of its own, which counts only where that did not.
        event_id = f"{event_id}:mention"
    return Sketch(
        kind=Kind.POST,
        team=team,
        event_id=event_id,
        channel=channel,
        thread=thread_of(event, channel),
        sender=needed_id(event, "user"),
        us=us,
        body=event,
        link="" if shared_with(event) else link_code(event.get("text")),
    )


def _edit(event: dict[str, Any], team: str, us: str) -> Sketch | None:
    now, before = event.get("message"), event.get("previous_message")
    if not isinstance(now, dict):
        raise ValueError("an edit without its message")
    if now.get("subtype") == "tombstone" and isinstance(before, dict):
        gone = {**event, "deleted_ts": now.get("ts"), "previous_message": before}
        return _deletion(gone, team, us)
    if not _is_of_a_person(now, us) or text_of(now, "subtype") not in SPOKEN:
        return None
    if isinstance(before, dict) and before.get("text") == now.get("text"):
        return None  # a preview of a link came, or the first reply
    channel = needed_id(event, "channel")
    ts = needed_ts(now, "ts")
    return Sketch(
        kind=Kind.EDIT,
        team=team,
        event_id=f"{channel}:{ts}:edit:{needed_ts(event, 'ts')}",
        channel=channel,
        thread=thread_of(now, channel),
        sender=needed_id(now, "user"),
        us=us,
        body=event,
    )


def _deletion(event: dict[str, Any], team: str, us: str) -> Sketch | None:
    before = event.get("previous_message")
    if not isinstance(before, dict) or not _is_of_a_person(before, us):
        return None
    if text_of(before, "subtype") not in SPOKEN:
        return None
    channel = needed_id(event, "channel")
    ts = needed_ts(event, "deleted_ts")
    return Sketch(
        kind=Kind.DELETION,
        team=team,
        event_id=f"{channel}:{ts}:deleted",
        channel=channel,
        thread=thread_of({"ts": ts, **before}, channel),
        sender=needed_id(before, "user"),
        us=us,
        body=event,
    )


def _installed(payload: Json) -> tuple[str, str]:
    """The workspace in which we are installed, which with shared channels is not always the one
    that the event comes from; and our user there, if Slack names it."""
    found = payload.get("authorizations")
    first = found[0] if isinstance(found, list) and found else None
    installed = first if isinstance(first, dict) else {}
    for holder, name in ((installed, "team_id"), (payload, "context_team_id")):
        if ID.fullmatch(text_of(holder, name)):
            return text_of(holder, name), _us(installed)
    return needed_id(payload, "team_id"), _us(installed)


def _us(installed: Json) -> str:
    us = text_of(installed, "user_id")
    return us if installed.get("is_bot") is True and ID.fullmatch(us) else ""


def _is_of_a_person(message: Json, us: str) -> bool:
    """Bolt's own filter stands behind ours, and lets other bots and deletions through."""
    user = message.get("user")
    return bool(user) and user not in (us, SLACKBOT) and not message.get("bot_id")


def thread_of(message: Json, channel: str) -> str | None:
    """The thread of a message. One that has replies names itself as its thread."""
    ts, thread = text_of(message, "ts"), text_of(message, "thread_ts")
    if thread and thread != ts:
        return needed_ts(message, "thread_ts")
    return None if is_direct(channel) else needed_ts(message, "ts")


def shared_with(message: Json) -> list[Json]:
    """The messages that were shared (forwarded) with this one, or that it shows by their link."""
    listed = message.get("attachments")
    return [
        one
        for one in (listed[:SHARED_MAX] if isinstance(listed, list) else ())
        if isinstance(one, dict) and (one.get("is_share") or one.get("is_msg_unfurl"))
    ]


def mentions(text: str, us: str) -> bool:
    """Whether a text addresses this user."""
    return bool(us) and re.search(rf"<@{us}(?:\|[^<>]*)?>", text) is not None


# --- the home tab --------------------------------------------------------------------------------


def _home(payload: Json, event: Json) -> Sketch | None:
    """Somebody looks at their home. The other tab is the chat, in which nothing was said."""
    if text_of(event, "tab") != "home":
        return None
    team, us = _installed(payload)
    channel, sender = needed_direct(event, "channel"), needed_id(event, "user")
    return Sketch(
        kind=Kind.HOME,
        team=team,
        event_id=f"home:{needed(payload, 'event_id', WORD)}",
        channel=channel,
        thread=None,
        sender=sender,
        us=us,
        body={"channel": channel, "user": sender},
    )


# --- commands and buttons ------------------------------------------------------------------------


def _command(payload: Json) -> Sketch:
    channel = needed_id(payload, "channel_id")
    # The rest are names, which can change, and addresses and tokens, which are no one's business.
    kept = ("command", "text", "user_id", "channel_id", "trigger_id")
    return Sketch(
        kind=Kind.COMMAND,
        team=needed_id(payload, "team_id"),
        event_id=f"command:{needed(payload, 'trigger_id', WORD)}",
        channel=channel,
        thread=None,
        sender=needed_id(payload, "user_id"),
        us="",
        body={name: text_of(payload, name) for name in kept},
        link=link_code(f"/{text_of(payload, 'text').strip().removeprefix('/')}"),
    )


def _button(payload: Json) -> Sketch | None:
    """Of the message above the button, its place alone is kept; and no address that is given with
    it, which lets whoever has it write in our name."""
    user, actions = part(payload, "user"), payload.get("actions")
    action = actions[0] if isinstance(actions, list) and actions else None
    if not isinstance(action, dict):
        raise ValueError("a button without its action")
    view = payload.get("view")
    on_home = isinstance(view, dict) and "message" not in payload
    if isinstance(view, dict) and on_home:
        if view.get("type") != "home":
            return None  # a form, of which we have none
        channel = needed_direct(view, HOME_CHANNEL)
    else:
        channel = needed_id(part(payload, "channel"), "id")
    sender = needed_id(user, "id")
    when = needed_ts(action, "action_ts")
    action_id = text_of(action, "action_id")
    message = payload.get("message")
    place = message if isinstance(message, dict) else {}
    ts, thread = text_of(place, "ts"), text_of(place, "thread_ts")
    in_thread = needed_ts(place, "thread_ts") if thread not in ("", ts) else None
    return Sketch(
        kind=Kind.BUTTON,
        team=needed_id(part(payload, "team"), "id"),
        event_id=f"button:{when}:{sender}:{action_id[:255]}",
        channel=channel,
        thread=in_thread,
        sender=sender,
        us="",
        body={
            "id": f"{when}:{sender}:{action_id[:255]}",
            "value": text_of(action, "value")[:VALUE_CHARS_MAX],
            "channel": channel,
            "user": sender,
            "ts": when if on_home else ts,
            "thread": in_thread,
            "home": on_home,
        },
    )
