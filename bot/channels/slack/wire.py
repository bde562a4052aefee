"""What Slack sends before anything is trusted: which of it is kept, under which key, and of whom.

Called by `bot.channels.slack.channel` for every payload, from strangers too. Nothing here trusts a
shape: an odd payload must neither stop the intake nor spoil what comes after it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from bot.channels.wire import (
    ID,
    WORD,
    Json,
    is_direct,
    link_code,
    needed,
    needed_direct,
    needed_id,
    needed_ts,
    part,
    read_json,
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


class EventKind(StrEnum):
    """What a stored event is."""

    POST = "post"
    EDIT = "edit"
    DELETION = "deletion"
    COMMAND = "command"
    BUTTON = "button"
    HOME = "home"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackPayload:
    """What the inbox keeps of an event. `us` is the bot's own user id, as far as Slack says it.

    `team` is the workspace in which we are installed, `home` the sender's: people of other
    workspaces write in shared channels too.
    """

    kind: EventKind
    team: str
    home: str
    us: str
    body: Json

    def to_json(self) -> str:
        """Return the stored text."""
        kept = {"kind": self.kind, "team": self.team, "home": self.home, "us": self.us}
        return json.dumps({**kept, "body": self.body}, ensure_ascii=False)

    @classmethod
    def of(cls, payload: str) -> SlackPayload:
        """Read a stored text. Raise ValueError."""
        found = read_json(payload)
        if not isinstance(found, dict):
            raise ValueError("not a stored event")
        team = needed_id(found, "team")
        return cls(
            kind=EventKind(text_of(found, "kind")),
            team=team,
            home=text_of(found, "home") or team,  # stored by a version that had no `home`
            us=text_of(found, "us"),
            body=part(found, "body"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackEvent:
    """One event that may be for us: its key, place and sender.

    `thread` is the thread that the event belongs to: in channels every post begins one, in a
    direct message only a reply is in one. `link` is the code of a `/link CODE` and nothing else: of
    a stranger's words, no other is looked at.
    """

    payload: SlackPayload
    event_id: str
    channel: str
    sender: str
    thread: str | None = None
    link: str = ""

    @property
    def source(self) -> str:
        """The inbox's name for the events of this workspace."""
        return f"slack:{self.payload.team}"

    @property
    def chat_id(self) -> str:
        """The conversation, as `Address` holds it: `:` would part it."""
        return f"{self.payload.team}.{self.channel}"

    @property
    def is_group(self) -> bool:
        """Return whether others read along."""
        return not is_direct(self.channel)

    @property
    def person(self) -> str:
        """The sender's address. An id alone names nobody: it is one of the sender's workspace."""
        return f"slack:{self.payload.home}:{self.sender}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedPane:
    """Somebody opened a thread of the assistant's pane; `sender` is their address."""

    channel: str
    thread: str
    sender: str


def opened(payload: Json) -> OpenedPane | None:
    """Return which thread was opened, if that is what a payload says. Never raises."""
    event = payload.get("event")
    if not isinstance(event, dict) or event.get("type") != "assistant_thread_started":
        return None
    thread = event.get("assistant_thread")
    if not isinstance(thread, dict):
        return None
    try:
        home = _installed(payload).home_of({})
        return OpenedPane(
            channel=needed_id(thread, "channel_id"),
            thread=needed_ts(thread, "thread_ts"),
            sender=f"slack:{home}:{needed_id(thread, 'user_id')}",
        )
    except ValueError:
        return None


def sketch(payload: Json) -> SlackEvent | None:
    """Return what a payload is, if it may be for us: not what we or other bots do, nor what was not
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


def _event(payload: Json) -> SlackEvent | None:
    event = payload.get("event")
    if not isinstance(event, dict):
        raise ValueError("an event without its body")
    kind = text_of(event, "type")
    if kind == "app_home_opened":
        return _home(payload, event)
    if kind not in {"message", "app_mention"}:
        return None
    here = _installed(payload)
    match text_of(event, "subtype"):
        case "message_changed":
            return _edit(event, here) if kind == "message" else None
        case "message_deleted":
            return _deletion(event, here) if kind == "message" else None
        case subtype if subtype in SPOKEN:
            return _post(event, here)
    return None


def _post(event: dict[str, Any], here: _Installation) -> SlackEvent | None:
    if not _is_of_a_person(event, here):
        return None
    channel, ts = needed_id(event, "channel"), needed_ts(event, "ts")
    event_id = f"{channel}:{ts}"
    is_mention = event.get("type") == "app_mention"
    if is_mention and event.get("edited"):
        return None  # a mention that an edit brought: `message_changed` tells of it, too
    if is_mention and not mentions(text_of(event, "text"), here.us):
        # Slack says that we are meant and the text does not show it, so `message` alone would
        # not say it either: kept as an event of its own, which counts only where that did not.
        event_id = f"{event_id}:mention"
    return SlackEvent(
        payload=here.payload(EventKind.POST, event, by=event),
        event_id=event_id,
        channel=channel,
        thread=thread_of(event, channel),
        sender=needed_id(event, "user"),
        link="" if shared_with(event) else link_code(event.get("text")),
    )


def _edit(event: dict[str, Any], here: _Installation) -> SlackEvent | None:
    now, before = event.get("message"), event.get("previous_message")
    if not isinstance(now, dict):
        raise ValueError("an edit without its message")
    if now.get("subtype") == "tombstone" and isinstance(before, dict):
        gone = {**event, "deleted_ts": now.get("ts"), "previous_message": before}
        return _deletion(gone, here)
    if not _is_of_a_person(now, here) or text_of(now, "subtype") not in SPOKEN:
        return None
    if isinstance(before, dict) and before.get("text") == now.get("text"):
        return None  # a preview of a link came, or the first reply
    channel = needed_id(event, "channel")
    ts = needed_ts(now, "ts")
    return SlackEvent(
        payload=here.payload(EventKind.EDIT, event, by=now),
        event_id=f"{channel}:{ts}:edit:{needed_ts(event, 'ts')}",
        channel=channel,
        thread=thread_of(now, channel),
        sender=needed_id(now, "user"),
    )


def _deletion(event: dict[str, Any], here: _Installation) -> SlackEvent | None:
    before = event.get("previous_message")
    if not isinstance(before, dict) or not _is_of_a_person(before, here):
        return None
    if text_of(before, "subtype") not in SPOKEN:
        return None
    channel = needed_id(event, "channel")
    ts = needed_ts(event, "deleted_ts")
    return SlackEvent(
        payload=here.payload(EventKind.DELETION, event, by=before),
        event_id=f"{channel}:{ts}:deleted",
        channel=channel,
        thread=thread_of({"ts": ts, **before}, channel),
        sender=needed_id(before, "user"),
    )


class _Installation(NamedTuple):
    """Where we are installed: the workspace, its organisation if it has one, our user there as far
    as Slack names it, and our app. With shared channels an event may come from elsewhere
    (`came_from`)."""

    team: str
    org: str
    us: str
    app: str
    came_from: str

    def payload(self, kind: EventKind, body: Json, *, by: Json) -> SlackPayload:
        """Return what is kept of an event whose author wrote the message `by`."""
        return SlackPayload(kind=kind, team=self.team, home=self.home_of(by), us=self.us, body=body)

    def home_of(self, message: Json) -> str:
        """Return the workspace, or organisation, of whoever wrote a message. `team` and `user_team`
        name the author's workspace, or the organisation if it has several
        (docs.slack.dev/apis/slack-connect and slack_bolt's `extract_actor_team_id`, as of
        2026-11-29). One id is one person throughout an organisation, so a member of ours is at home
        here. An event that names neither comes from the workspace in which it happened."""
        named = (text_of(message, name) for name in ("user_team", "source_team", "team"))
        home = next(filter(None, named), "") or self.came_from or self.team
        return self.team if home == self.org else needed_id({"team": home}, "team")


def _installed(payload: Json) -> _Installation:
    found = payload.get("authorizations")
    first = found[0] if isinstance(found, list) and found else None
    installed = first if isinstance(first, dict) else {}
    named = (text_of(installed, "team_id"), text_of(payload, "context_team_id"))
    team = next(filter(ID.fullmatch, named), "") or needed_id(payload, "team_id")
    us = text_of(installed, "user_id")
    return _Installation(
        team=team,
        org=text_of(installed, "enterprise_id") or text_of(payload, "context_enterprise_id"),
        us=us if installed.get("is_bot") is True and ID.fullmatch(us) else "",
        app=text_of(payload, "api_app_id"),
        came_from=text_of(payload, "team_id"),
    )


def _is_of_a_person(message: Json, here: _Installation) -> bool:
    """Return whether a person wrote it, not we and no other bot. Bolt's own filter comes after ours
    and lets other bots and deletions through. What a bot posts has its `bot_id` or `bot_profile`,
    and what we post our `app_id`, even if a person's id is there too (docs.slack.dev/messaging and
    docs.slack.dev/reference/events/message/bot_message, as of 2026-11-29)."""
    user, app = message.get("user"), text_of(message, "app_id")
    is_ours = user == here.us or (bool(app) and app == here.app)
    is_bots = bool(message.get("bot_id") or message.get("bot_profile"))
    return bool(user) and user != SLACKBOT and not is_ours and not is_bots


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
    """Return whether a text addresses this user."""
    return bool(us) and re.search(rf"<@{us}(?:\|[^<>]*)?>", text) is not None


# --- the home tab --------------------------------------------------------------------------------


def _home(payload: Json, event: Json) -> SlackEvent | None:
    """Somebody looks at their home. The other tab is the chat, in which nothing was said."""
    if text_of(event, "tab") != "home":
        return None
    here = _installed(payload)
    channel, sender = needed_direct(event, "channel"), needed_id(event, "user")
    return SlackEvent(
        payload=here.payload(EventKind.HOME, {"channel": channel, "user": sender}, by={}),
        event_id=f"home:{needed(payload, 'event_id', WORD)}",
        channel=channel,
        sender=sender,
    )


# --- commands and buttons ------------------------------------------------------------------------


def _command(payload: Json) -> SlackEvent:
    channel = needed_id(payload, "channel_id")
    # The rest are names, which can change, and addresses and tokens, which are no one's business.
    kept = ("command", "text", "user_id", "channel_id", "trigger_id")
    team = needed_id(payload, "team_id")
    return SlackEvent(
        payload=SlackPayload(
            kind=EventKind.COMMAND,
            team=team,
            home=team,  # only our own members are offered the command
            us="",
            body={name: text_of(payload, name) for name in kept},
        ),
        event_id=f"command:{needed(payload, 'trigger_id', WORD)}",
        channel=channel,
        sender=needed_id(payload, "user_id"),
        link=link_code(f"/{text_of(payload, 'text').strip().removeprefix('/')}"),
    )


class Presser(NamedTuple):
    """Who pressed a button or sent a form: `team` is where we are installed, `home` the workspace
    of the person."""

    team: str
    home: str
    user: str


def presser(payload: Json) -> Presser:
    """Raises ValueError. `user.team_id` names the workspace of the person, or the organisation
    where that has several; `team` is null where we are installed for all of one, and names the
    person's own workspace where our message was read elsewhere: then the message's counts, and of
    a form `app_installed_team_id` (docs.slack.dev/reference/interaction-payloads/
    block_actions-payload and view-interactions-payload, as of 2026-11-29)."""
    user = part(payload, "user")
    place, org, view, post = (
        found if isinstance(found := payload.get(name), dict) else {}
        for name in ("team", "enterprise", "view", "message")
    )
    home = text_of(user, "team_id")
    team = text_of(view, "app_installed_team_id") or text_of(place, "id")
    if home == team != text_of(post, "team") and text_of(post, "team").startswith("T"):
        team = text_of(post, "team")
    team = team or (home if home.startswith("T") else text_of(view, "team_id"))
    orgs = {text_of(org, "id"), text_of(place, "enterprise_id")}
    if not home or home in orgs:
        home = text_of(place, "id") or team
    who = {"team": team, "home": home}
    return Presser(
        team=needed_id(who, "team"), home=needed_id(who, "home"), user=needed_id(user, "id")
    )


def _button(payload: Json) -> SlackEvent | None:
    """Of the message above the button, its place alone is kept; and no address that is given with
    it, which lets whoever has it write in our name."""
    actions = payload.get("actions")
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
    who = presser(payload)
    when = needed_ts(action, "action_ts")
    action_id = text_of(action, "action_id")
    message = payload.get("message")
    place = message if isinstance(message, dict) else {}
    ts, thread = text_of(place, "ts"), text_of(place, "thread_ts")
    in_thread = needed_ts(place, "thread_ts") if thread not in ("", ts) else None
    press_id = f"{when}:{who.user}:{action_id[:255]}"
    body = {
        "id": press_id,
        "value": text_of(action, "value")[:VALUE_CHARS_MAX],
        "channel": channel,
        "user": who.user,
        "ts": when if on_home else ts,
        "thread": in_thread,
        "home": on_home,
    }
    return SlackEvent(
        payload=SlackPayload(kind=EventKind.BUTTON, team=who.team, home=who.home, us="", body=body),
        event_id=f"button:{press_id}",
        channel=channel,
        thread=in_thread,
        sender=who.user,
    )
