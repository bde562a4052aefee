"""Conversations in the Slack stand-in: who is where, what was said, and reactions to it.

Called by `bot.lab.slack_api` for each request.
"""

import base64
from collections.abc import Callable

from bot.lab.slack_params import SlackParams
from bot.lab.slack_state import Conversation, Json, SlackMessage, SlackRefusal, SlackWorkspace

PAGE_MAX = 999


class SlackConversations:
    """What the bot asks about conversations."""

    def __init__(self, workspace: SlackWorkspace) -> None:
        self._workspace = workspace
        self.methods: dict[str, Callable[[SlackParams], Json]] = {
            "conversations.history": self._history,
            "conversations.info": self._info,
            "conversations.join": self._join,
            "conversations.list": self._list,
            "conversations.members": self._members,
            "conversations.open": self._open,
            "conversations.replies": self._replies,
            "reactions.add": self._react,
            "reactions.remove": self._unreact,
        }

    # Conversations ------------------------------------------------------------------------------

    def _readable(self, p: SlackParams) -> Conversation:
        found = self._workspace.find_conversation(p.needed("channel"))
        inside = found is not None and self._workspace.identity.bot_user in found.members
        if found is None or (found.kind != "channel" and not inside):
            raise SlackRefusal("channel_not_found")
        return found

    def _inside(self, p: SlackParams) -> Conversation:
        found = self._readable(p)
        if self._workspace.identity.bot_user not in found.members:
            raise SlackRefusal("not_in_channel")
        return found

    def _info(self, p: SlackParams) -> Json:
        found = self._readable(p)
        more = {"num_members": len(found.members)} if p.flag("include_num_members") else {}
        return {"channel": self._about(found) | more}

    def _list(self, p: SlackParams) -> Json:
        wanted = (p.text("types") or "public_channel").split(",")
        kinds = {"public_channel": "channel", "private_channel": "group"}
        asked = {kinds.get(kind, kind) for kind in wanted}
        found = [c for c in self._workspace.conversations.values() if c.kind in asked]
        me = self._workspace.identity.bot_user
        shown = [self._about(c) for c in found if c.kind == "channel" or me in c.members]
        return {"channels": shown, "response_metadata": {"next_cursor": ""}}

    def _members(self, p: SlackParams) -> Json:
        members = sorted(self._readable(p).members)
        return {"members": members, "response_metadata": {"next_cursor": ""}}

    def _join(self, p: SlackParams) -> Json:
        found = self._readable(p)
        if found.kind != "channel":
            raise SlackRefusal("method_not_supported_for_channel_type")
        found.members.add(self._workspace.identity.bot_user)
        return {"channel": self._about(found)}

    def _open(self, p: SlackParams) -> Json:
        if channel := p.text("channel"):
            found = self._workspace.conversations.get(channel)
            if found is None or found.kind not in {"im", "mpim"}:
                raise SlackRefusal("channel_not_found")
            return {"channel": {"id": found.id}}
        users = [user for user in p.text("users").split(",") if user]
        if not users:
            raise SlackRefusal("users_list_not_supplied")
        if len(users) > 8:
            raise SlackRefusal("too_many_users")
        if any(user not in self._workspace.users for user in users):
            raise SlackRefusal("user_not_found")
        opened = self._workspace.direct(users[0]) if len(users) == 1 else self._group(users)
        shown = self._about(opened) if p.flag("return_im") else {"id": opened.id}
        return {"channel": shown}

    def _group(self, users: list[str]) -> Conversation:
        everyone = {*users, self._workspace.identity.bot_user}
        for conversation in self._workspace.conversations.values():
            if conversation.kind == "mpim" and conversation.members == everyone:
                return conversation
        opened = self._workspace.conversation(self._workspace.next_id("G"))
        opened.kind, opened.private, opened.members = "mpim", True, everyone
        return opened

    def _about(self, found: Conversation) -> Json:
        me = self._workspace.identity
        about: Json = {
            "id": found.id,
            "created": 0,
            "is_channel": found.kind == "channel",
            "is_group": found.kind == "group",
            "is_im": found.kind == "im",
            "is_mpim": found.kind == "mpim",
            "is_private": found.kind != "channel",
            "is_archived": found.is_archived,
            "context_team_id": me.team,
        }
        if found.kind == "im":
            other = next((user for user in found.members if user != me.bot_user), "")
            return about | {"user": other, "is_org_shared": False}
        is_member = me.bot_user in found.members
        return about | {"name": found.name, "is_member": is_member}

    # Reading ------------------------------------------------------------------------------------

    def _history(self, p: SlackParams) -> Json:
        found = self._inside(p)
        top = [
            kept
            for kept in self._workspace.messages(found.id)
            if not kept.is_reply or kept.message.get("subtype") == "thread_broadcast"
        ]
        page = self._page(_between(top, p)[::-1], p, default=100)
        return page | {"pin_count": 0, "channel_actions_ts": None, "channel_actions_count": 0}

    def _replies(self, p: SlackParams) -> Json:
        found = self._inside(p)
        parent = self._workspace.parent_of(found.id, p.text("ts"))
        if parent is None:
            raise SlackRefusal("thread_not_found")
        replies = _between(self._workspace.replies(found.id, parent.ts), p)
        return self._page([parent, *replies], p, default=1000)

    def _page(self, kept: list[SlackMessage], p: SlackParams, *, default: int) -> Json:
        limit = min(max(1, p.number("limit", default)), default if default > PAGE_MAX else PAGE_MAX)
        start = _start(kept, p.text("cursor"))
        page, rest = kept[start : start + limit], kept[start + limit :]
        metadata = p.flag("include_all_metadata")
        answer: Json = {
            "messages": [self._workspace.shown(one, metadata=metadata) for one in page],
            "has_more": bool(rest),
        }
        if rest:
            cursor = base64.b64encode(f"next_ts:{rest[0].ts}".encode()).decode()
            answer["response_metadata"] = {"next_cursor": cursor}
        return answer

    # Reactions ----------------------------------------------------------------------------------

    def _react(self, p: SlackParams) -> Json:
        kept, name, me = self._reacted(p)
        users = kept.reactions.setdefault(name, [])
        if me in users:
            raise SlackRefusal("already_reacted")
        users.append(me)
        return {}

    def _unreact(self, p: SlackParams) -> Json:
        kept, name, me = self._reacted(p)
        if me not in kept.reactions.get(name, ()):
            raise SlackRefusal("no_reaction")
        kept.reactions[name].remove(me)
        if not kept.reactions[name]:
            del kept.reactions[name]
        return {}

    def _reacted(self, p: SlackParams) -> tuple[SlackMessage, str, str]:
        name = p.needed("name").strip(":")
        if not name.replace("_", "").replace("-", "").replace("+", "").isalnum():
            raise SlackRefusal("invalid_name")
        if not p.text("channel") or not p.text("timestamp"):
            raise SlackRefusal("no_item_specified")
        found = self._inside(p)
        if found.is_archived:
            raise SlackRefusal("is_archived")
        kept = self._workspace.find(found.id, p.text("timestamp"))
        if kept is None:
            raise SlackRefusal("message_not_found")
        return kept, name, self._workspace.identity.bot_user


def _between(kept: list[SlackMessage], p: SlackParams) -> list[SlackMessage]:
    """Those within `oldest` and `latest`, the ends only if `inclusive`."""
    oldest, latest = _moment(p, "oldest"), _moment(p, "latest")
    inclusive = p.flag("inclusive")

    def inside(one: SlackMessage) -> bool:
        at = float(one.ts)
        after = oldest is None or at > oldest or (inclusive and at == oldest)
        before = latest is None or at < latest or (inclusive and at == latest)
        return after and before

    return [one for one in kept if inside(one)]


def _moment(p: SlackParams, name: str) -> float | None:
    try:
        return float(p.text(name)) if p.text(name) else None
    except ValueError:
        raise SlackRefusal(f"invalid_ts_{name}") from None


def _start(kept: list[SlackMessage], cursor: str) -> int:
    """Where the page begins that a cursor names by the ts of its first message."""
    if not cursor:
        return 0
    try:
        ts = base64.b64decode(cursor, validate=True).decode().removeprefix("next_ts:")
        float(ts)
    except ValueError:
        raise SlackRefusal("invalid_cursor") from None
    return next((i for i, one in enumerate(kept) if one.ts == ts), len(kept))
