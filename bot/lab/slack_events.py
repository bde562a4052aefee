"""What Slack tells an app: events in their wrapper, commands, clicks and forms.

Called by the people's side of the stand-in and by its Web API, which makes the bot's own messages
come back as events. Whether an event is sent depends on scopes and subscriptions, as in Slack.
"""

import json
import uuid
from collections.abc import Callable
from typing import Any

from bot.lab.slack_rules import SlackRules
from bot.lab.slack_state import Conversation, Json, SlackMessage, SlackWorkspace, User

VERIFICATION_TOKEN = "lab-verification"  # noqa: S105 - the long outdated one; nobody checks it
_MESSAGE_EVENT = {
    "im": ("message.im", "im:history"),
    "channel": ("message.channels", "channels:history"),
    "group": ("message.groups", "groups:history"),
    "mpim": ("message.mpim", "mpim:history"),
}
_EVENT_SCOPES = {
    "app_mention": "app_mentions:read",
    "assistant_thread_started": "assistant:write",
    "assistant_thread_context_changed": "assistant:write",
    "file_shared": "files:read",
    "reaction_added": "reactions:read",
    "reaction_removed": "reactions:read",
}

Deliver = Callable[[str, Json], str]
"""Hands a payload of this kind to the app; returns the delivery's id."""


def as_typed(text: str, *, bot_user: str, bot_name: str) -> str:
    """What a person typed, as Slack writes it: `&`, `<`, `>` escaped and `@bot` a mention."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace(f"@{bot_name}", f"<@{bot_user}>")


class Events:
    """Makes the payloads of one workspace's app, and passes on what it is subscribed to."""

    def __init__(self, workspace: SlackWorkspace, rules: SlackRules, deliver: Deliver) -> None:
        self._workspace = workspace
        self._rules = rules
        self._deliver = deliver

    # Messages -----------------------------------------------------------------------------------

    def posted(self, kept: SlackMessage) -> list[str]:
        """A message stands there now: `message`, and `app_mention` if it names the bot."""
        event = self._workspace.shown(kept)
        ids = self._message(kept, event)
        return ids + self._mention(kept, event)

    def changed(self, kept: SlackMessage, previous: Json) -> list[str]:
        """A message was edited; a mention in it makes Slack send `app_mention` once more."""
        now = self._workspace.shown(kept)
        ts = self._workspace.next_ts()
        event = {
            "type": "message",
            "subtype": "message_changed",
            "message": now,
            "previous_message": previous,
            "hidden": True,
            "ts": ts,
        }
        return self._message(kept, event) + self._mention(kept, now)

    def deleted(self, kept: SlackMessage, previous: Json) -> list[str]:
        """A message is gone; under a parent with replies a tombstone stays."""
        if kept.tombstone:
            return self.changed(kept, previous)
        event = {
            "type": "message",
            "subtype": "message_deleted",
            "previous_message": previous,
            "deleted_ts": kept.ts,
            "hidden": True,
            "ts": self._workspace.next_ts(),
        }
        return self._message(kept, event)

    def _message(self, kept: SlackMessage, event: Json) -> list[str]:
        conversation = self._workspace.conversations[kept.channel]
        if kept.is_bot and not self._rules.echo:
            return []
        if self._workspace.identity.bot_user not in conversation.members:
            return []
        name, scope = _MESSAGE_EVENT[conversation.kind]
        whole = {**event, "channel": kept.channel, "event_ts": event["ts"]}
        return self._event(name, scope, whole | {"channel_type": conversation.kind})

    def _mention(self, kept: SlackMessage, shown: Json) -> list[str]:
        conversation = self._workspace.conversations[kept.channel]
        mention = f"<@{self._workspace.identity.bot_user}>"
        there = self._workspace.identity.bot_user in conversation.members
        if kept.is_bot or conversation.kind == "im" or not there:
            return []
        if mention not in str(shown.get("text", "")):
            return []
        event = {**shown, "type": "app_mention", "channel": kept.channel, "event_ts": kept.ts}
        return self._event("app_mention", _EVENT_SCOPES["app_mention"], event)

    # Other events -------------------------------------------------------------------------------

    def plain(self, event: Json) -> list[str]:
        """Any other event, named by its type."""
        name = str(event.get("type"))
        whole = {"event_ts": self._workspace.next_ts(), **event}
        return self._event(name, _EVENT_SCOPES.get(name), whole)

    def raw(self, event: Json, **wrapper: Any) -> str:
        """This event as it is, whatever is subscribed; the wrapper's fields may be overridden."""
        return self._deliver("events_api", self._wrapped(event) | wrapper)

    def _event(self, name: str, scope: str | None, event: Json) -> list[str]:
        if name not in self._rules.subscribed:
            return []
        if scope is not None and scope not in self._rules.bot_scopes:
            return []
        payload = self._wrapped(event)
        self._deliver("events_api", payload)
        return [str(payload["event_id"])]

    def _wrapped(self, event: Json) -> Json:
        me = self._workspace.identity
        user = event.get("user") or event.get("assistant_thread", {}).get("user_id")
        installed = {
            "enterprise_id": None,
            "team_id": me.team,
            "user_id": me.bot_user,
            "is_bot": True,
            "is_enterprise_install": False,
        }
        context = f"4-{json.dumps({'et': event.get('type'), 'tid': me.team, 'aid': me.app})}"
        # A copy: what is sent again must not show what happened meanwhile.
        return {
            "token": VERIFICATION_TOKEN,
            "team_id": self._workspace.team_of(user) if isinstance(user, str) else me.team,
            "context_team_id": me.team,
            "context_enterprise_id": None,
            "api_app_id": me.app,
            "event": json.loads(json.dumps(event)),
            "type": "event_callback",
            "event_id": self._workspace.next_id("Ev"),
            "event_time": int(self._workspace.wall()),
            "authorizations": [installed],
            "is_ext_shared_channel": "user_team" in {**event, **event.get("message", {})},
            "event_context": context,
        }

    # Commands, clicks, forms --------------------------------------------------------------------

    def command(self, user: User, conversation: Conversation, command: str, text: str) -> Json:
        """A slash command, as form fields."""
        me = self._workspace.identity
        name = "directmessage" if conversation.kind == "im" else conversation.name
        return {
            "token": VERIFICATION_TOKEN,
            "team_id": self._workspace.team_of(user.id),
            "team_domain": me.domain,
            "channel_id": conversation.id,
            "channel_name": name,
            "user_id": user.id,
            "user_name": user.name,
            "command": command,
            "text": text,
            "api_app_id": me.app,
            "is_enterprise_install": "false",
            "trigger_id": self._workspace.trigger(user.id),
        }

    def actions(self, user: User, actions: list[Json]) -> Json:
        """Clicks on elements; where they stand is added by the caller."""
        return self._interaction("block_actions", user) | {
            "actions": actions,
            "state": {"values": {}},
        }

    def view(self, kind: str, user: User, view: Json) -> Json:
        """A form sent (`view_submission`) or closed (`view_closed`)."""
        more: Json = {"response_urls": []} if kind == "view_submission" else {"is_cleared": False}
        return self._interaction(kind, user) | {"view": view} | more

    def _interaction(self, kind: str, user: User) -> Json:
        me, home = self._workspace.identity, self._workspace.team_of(user.id)
        return {
            "type": kind,
            "user": {"id": user.id, "username": user.name, "name": user.name, "team_id": home},
            "api_app_id": me.app,
            "token": VERIFICATION_TOKEN,
            "trigger_id": self._workspace.trigger(user.id),
            "team": {"id": me.team, "domain": me.domain},
            "enterprise": None,
            "is_enterprise_install": False,
        }


def person_message(user: str, text: str, *, ts: str, team: str) -> Json:
    """A person's message as Slack stores it."""
    words = [{"type": "text", "text": text}]
    block: Json = {
        "type": "rich_text",
        "block_id": f"b{ts[-4:]}",
        "elements": [{"type": "rich_text_section", "elements": words}],
    }
    return {
        "client_msg_id": str(uuid.uuid4()),
        "type": "message",
        "text": text,
        "user": user,
        "ts": ts,
        "blocks": [block] if text else [],
        "team": team,
    }
