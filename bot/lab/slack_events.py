"""What Slack tells an app: events in their wrapper, commands, clicks and forms.

Called by `bot.lab.slack` and by its Web API, which makes the bot's own messages come back as
events. Whether an event is sent depends on the subscriptions, as in Slack.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from bot.lab.slack_state import (
    APP,
    BOT_USER,
    DOMAIN,
    TEAM,
    Conversation,
    Json,
    SlackMessage,
    SlackWorkspace,
    User,
)

VERIFICATION_TOKEN = "lab-verification"  # noqa: S105 - the long outdated one; nobody checks it
_MESSAGE_EVENTS = {
    "im": "message.im",
    "channel": "message.channels",
    "group": "message.groups",
    "mpim": "message.mpim",
}

Deliver = Callable[[str, Json], str]
"""Hands a payload of this kind to the app; returns the delivery's id."""


class Events:
    """Makes the payloads of one workspace's app, and passes on what it is subscribed to."""

    def __init__(
        self, workspace: SlackWorkspace, subscribed: Callable[[], set[str]], deliver: Deliver
    ) -> None:
        self._workspace = workspace
        self._subscribed = subscribed
        self._deliver = deliver

    def posted(self, kept: SlackMessage) -> None:
        """A message stands there now: `message`, and `app_mention` if it names the bot."""
        event = self._workspace.shown(kept)
        self._message(kept, event)
        self._mention(kept, event)

    def changed(self, kept: SlackMessage, previous: Json) -> None:
        """A message was edited; a mention in it makes Slack send `app_mention` once more."""
        now = self._workspace.shown(kept)
        hidden = {"hidden": True, "ts": self._workspace.next_ts()}
        both = {"subtype": "message_changed", "message": now, "previous_message": previous}
        self._message(kept, {"type": "message", **both, **hidden})
        self._mention(kept, now)

    def deleted(self, kept: SlackMessage, previous: Json) -> None:
        """A message is gone."""
        hidden = {"hidden": True, "ts": self._workspace.next_ts()}
        gone = {"subtype": "message_deleted", "previous_message": previous, "deleted_ts": kept.ts}
        self._message(kept, {"type": "message", **gone, **hidden})

    def _message(self, kept: SlackMessage, event: Json) -> None:
        conversation = self._workspace.conversations[kept.channel]
        if BOT_USER in conversation.members:
            where = {"channel": kept.channel, "channel_type": conversation.kind}
            event = {**event, **where, "event_ts": event["ts"]}
            self._event(_MESSAGE_EVENTS[conversation.kind], event)

    def _mention(self, kept: SlackMessage, shown: Json) -> None:
        conversation = self._workspace.conversations[kept.channel]
        heard = BOT_USER in conversation.members and conversation.kind != "im"
        if heard and not kept.is_bot and f"<@{BOT_USER}>" in str(shown.get("text", "")):
            event = {**shown, "type": "app_mention", "channel": kept.channel, "event_ts": kept.ts}
            self._event("app_mention", event)

    def plain(self, event: Json) -> None:
        """Any other event, named by its type."""
        self._event(str(event["type"]), {"event_ts": self._workspace.next_ts(), **event})

    def raw(self, event: Json, **wrapper: Any) -> str:
        """This event as it is, whatever is subscribed; the wrapper's fields may be overridden."""
        return self._deliver("events_api", self._wrapped(event) | wrapper)

    def _event(self, name: str, event: Json) -> None:
        if name in self._subscribed():
            self._deliver("events_api", self._wrapped(event))

    def _wrapped(self, event: Json) -> Json:
        user = event.get("user") or event.get("assistant_thread", {}).get("user_id")
        installed = {"team_id": TEAM, "user_id": BOT_USER, "is_bot": True, "enterprise_id": None}
        return {
            "token": VERIFICATION_TOKEN,
            "team_id": self._workspace.user(user).team if isinstance(user, str) else TEAM,
            "context_team_id": TEAM,
            "api_app_id": APP,
            # A copy: what is sent again must not show what happened meanwhile.
            "event": json.loads(json.dumps(event)),
            "type": "event_callback",
            "event_id": self._workspace.next_id("Ev"),
            "event_time": int(time.time()),
            "authorizations": [{**installed, "is_enterprise_install": False}],
            "is_ext_shared_channel": "user_team" in {**event, **event.get("message", {})},
        }

    # Commands, clicks, forms --------------------------------------------------------------------

    def command(self, user: User, conversation: Conversation, command: str, text: str) -> Json:
        """A slash command, as form fields."""
        return {
            "token": VERIFICATION_TOKEN,
            "team_id": user.team,
            "team_domain": DOMAIN,
            "channel_id": conversation.id,
            "channel_name": conversation.name or "directmessage",
            "user_id": user.id,
            "user_name": user.name,
            "command": command,
            "text": text,
            "api_app_id": APP,
            "is_enterprise_install": "false",
            "trigger_id": self._workspace.trigger(),
        }

    def interaction(self, kind: str, user: User) -> Json:
        """A click (`block_actions`) or a form sent (`view_submission`); the caller adds where."""
        return {
            "type": kind,
            "user": {"id": user.id, "username": user.name, "name": user.name, "team_id": user.team},
            "api_app_id": APP,
            "token": VERIFICATION_TOKEN,
            "trigger_id": self._workspace.trigger(),
            "team": {"id": TEAM, "domain": DOMAIN},
            "enterprise": None,
            "is_enterprise_install": False,
        }


def person_message(user: User, text: str, *, ts: str) -> Json:
    """A person's message as Slack stores it."""
    words = [{"type": "text", "text": text}]
    section = {"type": "rich_text_section", "elements": words}
    block: Json = {"type": "rich_text", "block_id": f"b{ts[-4:]}", "elements": [section]}
    message = {
        "client_msg_id": str(uuid.uuid4()),
        "type": "message",
        "text": text,
        "user": user.id,
        "ts": ts,
        "blocks": [block] if text else [],
        "team": user.team,
    }
    return message if user.team == TEAM else message | {"user_team": user.team}


def action_from(blocks: Iterable[Json], action_id: str, *, at: str) -> Json:
    """The entry of `actions` for this element; raise LookupError if it is not there."""
    for block in blocks:
        for element in _elements(block):
            if element.get("action_id") == action_id:
                action = {
                    "action_id": action_id,
                    "block_id": block.get("block_id", ""),
                    "type": element["type"],
                    "action_ts": at,
                }
                return action | _chosen(element, None)
    raise LookupError(f"no element {action_id!r} in these blocks")


def form_state(blocks: Iterable[Json], values: Mapping[str, Mapping[str, Any]]) -> Json:
    """The `state.values` of a form: what is given, and for all other fields nothing."""
    state: Json = {}
    for block in blocks:
        block_id = str(block.get("block_id", ""))
        for element in _elements(block):
            action_id = str(element.get("action_id", ""))
            given = values.get(block_id, {}).get(action_id)
            chosen = {"type": element["type"], **_chosen(element, given)}
            state.setdefault(block_id, {})[action_id] = chosen
    return state


def _elements(block: Json) -> Iterator[Json]:
    yield from block.get("elements", ())
    for name in ("accessory", "element"):
        if name in block:
            yield block[name]


def _chosen(element: Json, value: Any) -> Json:
    if element["type"] == "button":
        return {name: element[name] for name in ("text", "value") if name in element}
    return {"value": value}
