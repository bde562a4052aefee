"""The people's side of the Slack stand-in: what they do, and what they then see.

Called by `bot.lab.slack`, which adds the HTTP side. Every act is a keyword call, so that it can be
ordered over `/lab/NAME` too.
"""

import asyncio
import base64
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from bot.lab.faults import Fault, FaultAction, FaultTable
from bot.lab.server import LabServer
from bot.lab.slack_answers import SlackResponses
from bot.lab.slack_api import Tokens, WebApi
from bot.lab.slack_delivery import Deliveries, Delivery
from bot.lab.slack_events import Events, person_message
from bot.lab.slack_forms import action_from, form_state
from bot.lab.slack_rules import SlackRules
from bot.lab.slack_sockets import SocketInfo, Sockets
from bot.lab.slack_state import (
    Conversation,
    Identity,
    Json,
    Kind,
    SeenInSlack,
    SlackMessage,
    SlackWorkspace,
    User,
)

EVENT = "event"
"""The name under which faults strike what is sent to the app, instead of what it asks."""

ANN = "U0ANN"


class PeopledSlack(LabServer):
    """A workspace with people in it."""

    def __init__(
        self,
        token: str,
        app_token: str,
        *,
        identity: Identity | None = None,
        rules: SlackRules | None = None,
        seed: int = 0,
        host: str = "127.0.0.1",
        port: int = 0,
        log_cap: int = 200_000,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(host=host, port=port, log_cap=log_cap, clock=clock)
        self.rules = rules or SlackRules()
        self.identity = identity or Identity()
        self._tokens = Tokens(bot=token, app=app_token)
        self._event_faults = FaultTable()
        self._workspace = SlackWorkspace(self.identity, cap=log_cap, clock=clock, wall=wall)
        self._deliveries = Deliveries(
            faults=self._event_faults,
            hold=self.hold,
            changed=self.changed,
            cap=log_cap,
            clock=clock,
        )
        self._sockets = Sockets(
            app_id=self.identity.app, changed=self.changed, clock=clock, seed=seed
        )
        self._deliveries.way = self._sockets
        self._events = Events(self._workspace, self.rules, self._deliveries.deliver)
        self._api = WebApi(
            self._workspace,
            self.rules,
            self._events,
            tokens=self._tokens,
            connect=self._socket_url,
        )
        self._answers = SlackResponses(self._workspace, self._api.chat)
        self._deliveries.answered = self._answers.to

    # Who and where ------------------------------------------------------------------------------

    def add_user(self, *, user: str = ANN, **about: Any) -> User:
        """A person, or new words about one: name, real_name, title, tz, tz_offset, locale, …"""
        self._workspace.users[user] = replace(self._workspace.user(user), **about)
        return self._workspace.users[user]

    def add_channel(
        self,
        *,
        channel: str,
        name: str = "",
        kind: Kind = "channel",
        members: Iterable[str] = (),
        bot_inside: bool = True,
        archived: bool = False,
    ) -> Conversation:
        """A conversation, or a new state of one."""
        found = self._workspace.conversation(channel)
        found.kind, found.private, found.is_archived = kind, kind != "channel", archived
        found.name = name or found.name
        found.members |= set(members)
        if not bot_inside:
            found.members.discard(self.identity.bot_user)
        return found

    # What people do -----------------------------------------------------------------------------

    def post(
        self,
        *,
        text: str = "",
        channel: str | None = None,
        user: str = ANN,
        thread_ts: str | None = None,
        broadcast: bool = False,
        files: Mapping[str, bytes | str] | None = None,
        subtype: str | None = None,
        shares: Mapping[str, str] | None = None,
    ) -> str:
        """A person writes; returns the message's ts. Without a channel: to the bot directly.

        The text is as Slack writes it: `&`, `<`, `>` escaped, mentions as `<@U…>` (see `as_typed`).
        Files are bytes by name, or base64 over HTTP. `shares` names the `channel` and `ts` of a
        message that is forwarded with it.
        """
        place = self._place(channel, user)
        self._workspace.user(user)
        place.members.add(user)
        ts = self._workspace.next_ts()
        message = person_message(user, text, ts=ts, team=self._workspace.team_of(user))
        if (home := message["team"]) != self.identity.team:
            message |= {"user_team": home, "source_team": home}
        if thread_ts is not None:
            message["thread_ts"] = thread_ts
        if broadcast:
            message["subtype"] = "thread_broadcast"
        if subtype is not None:
            message["subtype"] = subtype
        if shares is not None:
            message["attachments"] = [self._shared(self._kept(**shares))]
        shared = [
            self._api.files.add(name, _bytes(data), user=user)
            for name, data in (files or {}).items()
        ]
        if shared:
            about = [self._api.files.about(file) for file in shared]
            message |= {"subtype": "file_share", "files": about, "upload": False}
            message["display_as_bot"] = False
        kept = self._workspace.keep(place.id, message, is_bot=False)
        self._events.posted(kept)
        for file in shared:
            shown = {"file_id": file.id, "user_id": user, "file": {"id": file.id}}
            self._events.plain({"type": "file_shared", "channel_id": place.id, **shown})
        self.changed()
        return ts

    def bot_post(
        self,
        *,
        channel: str,
        text: str,
        bot_id: str = "B0OTHER",
        name: str = "other",
        thread_ts: str | None = None,
    ) -> str:
        """Another app writes."""
        place = self._workspace.conversation(channel)
        message: Json = {
            "type": "message",
            "subtype": "bot_message",
            "text": text,
            "ts": self._workspace.next_ts(),
            "username": name,
            "bot_id": bot_id,
        }
        if thread_ts is not None:
            message["thread_ts"] = thread_ts
        self._events.posted(self._workspace.keep(place.id, message, is_bot=False))
        self.changed()
        return str(message["ts"])

    def edit(self, *, channel: str, ts: str, text: str) -> None:
        """A person edits their message."""
        kept = self._kept(channel, ts)
        if kept.is_bot:
            raise LookupError(f"message {ts} in {channel} is not a person's")
        previous = self._workspace.shown(kept)
        user = str(kept.message.get("user", ""))
        edited = person_message(user, text, ts=ts, team=self._workspace.team_of(user))
        kept.message = kept.message | {"text": text, "blocks": edited["blocks"]}
        kept.message["edited"] = {"user": user, "ts": self._workspace.next_ts()}
        kept.edits += 1
        self._events.changed(kept, previous)
        self.changed()

    def delete(self, *, channel: str, ts: str) -> None:
        """A person deletes a message; of the bot's too, as an admin can."""
        self._api.chat.remove(self._kept(channel, ts))
        self.changed()

    def react(self, *, channel: str, ts: str, name: str = "eyes", user: str = ANN) -> None:
        """A person adds a reaction."""
        kept = self._kept(channel, ts)
        kept.reactions.setdefault(name, []).append(user)
        self._reaction("reaction_added", kept, name, user)

    def unreact(self, *, channel: str, ts: str, name: str = "eyes", user: str = ANN) -> None:
        """A person takes a reaction back."""
        kept = self._kept(channel, ts)
        kept.reactions[name].remove(user)
        if not kept.reactions[name]:
            del kept.reactions[name]
        self._reaction("reaction_removed", kept, name, user)

    def invite(self, *, channel: str, user: str | None = None, inviter: str = ANN) -> None:
        """Somebody, or the bot, is taken into a channel."""
        who = user or self.identity.bot_user
        self._workspace.conversation(channel).members.add(who)
        self._membership("member_joined_channel", channel, who, inviter=inviter)

    def leave(self, *, channel: str, user: str | None = None) -> None:
        """Somebody, or the bot, leaves a channel."""
        who = user or self.identity.bot_user
        self._membership("member_left_channel", channel, who)
        self._workspace.conversation(channel).members.discard(who)

    def open_home(self, *, user: str = ANN, tab: str = "home") -> None:
        """A person opens the app's home, or its messages."""
        self._workspace.user(user)
        event: Json = {
            "type": "app_home_opened",
            "user": user,
            "channel": self._workspace.direct(user).id,
            "tab": tab,
        }
        if tab == "home" and user in self._workspace.homes:
            event["view"] = self._workspace.homes[user]
        self._events.plain(event)

    def start_assistant(self, *, user: str = ANN, context: str | None = None) -> str:
        """A person opens a new assistant thread in the direct message; returns its thread_ts."""
        self._workspace.user(user)
        place = self._workspace.direct(user)
        ts = self._workspace.next_ts()
        root: Json = {
            "type": "message",
            "subtype": "assistant_app_thread",
            "text": "New Assistant Thread",
            "user": self.identity.bot_user,
            "bot_id": self.identity.bot,
            "ts": ts,
            "thread_ts": ts,
            "assistant_app_thread": {"title": "New Assistant Thread"},
        }
        self._workspace.keep(place.id, root, is_bot=True)
        self._assistant("assistant_thread_started", user, ts, context)
        return ts

    def change_context(self, *, thread_ts: str, context: str, user: str = ANN) -> None:
        """A person looks at another channel beside the open assistant thread."""
        self._assistant("assistant_thread_context_changed", user, thread_ts, context)

    def command(
        self,
        *,
        text: str = "",
        command: str = "/hearth",
        channel: str | None = None,
        user: str = ANN,
    ) -> str:
        """A person types a slash command; returns the delivery's id."""
        place = self._place(channel, user)
        payload = self._events.command(self._workspace.user(user), place, command, text)
        path = self._workspace.response_url(place.id, user, None)
        payload["response_url"] = self.base_url + path
        return self._deliveries.deliver("slash_commands", payload)

    def press(
        self,
        *,
        action_id: str,
        channel: str | None = None,
        ts: str | None = None,
        view_id: str | None = None,
        user: str = ANN,
        value: str | None = None,
    ) -> str:
        """A person presses a button, or picks `value` in a menu; returns the delivery's id."""
        person = self._workspace.user(user)
        if channel is not None and ts is not None:
            kept = self._kept(channel, ts)
            blocks, more = kept.message.get("blocks", []), self._on_message(kept, user)
        else:
            view = self._view(view_id, user)
            container = {"type": "view", "view_id": view["id"]}
            blocks, more = view["blocks"], {"view": view, "container": container}
        action = action_from(blocks, action_id, value, at=self._workspace.next_ts())
        payload = self._events.actions(person, [action]) | more
        return self._deliveries.deliver("interactive", payload)

    def submit(
        self, *, view_id: str, values: Mapping[str, Mapping[str, Any]], user: str = ANN
    ) -> str:
        """A person sends a form: values by block_id and action_id; returns the delivery's id."""
        view = self._view(view_id, user)
        filled = {**view, "state": {"values": form_state(view["blocks"], values)}}
        payload = self._events.view("view_submission", self._workspace.user(user), filled)
        return self._deliveries.deliver("interactive", payload)

    def close_view(self, *, view_id: str, user: str = ANN) -> str | None:
        """A person closes a form; the app is told only if it wished so."""
        view = self._workspace.views.pop(view_id)
        if not view.get("notify_on_close"):
            return None
        payload = self._events.view("view_closed", self._workspace.user(user), view)
        return self._deliveries.deliver("interactive", payload)

    def stop_stream(self, *, channel: str, ts: str) -> None:
        """A person stops a message that is being streamed."""
        stream = self._kept(channel, ts).stream
        if stream is None:
            raise LookupError(f"message {ts} in {channel} is not being streamed")
        stream.stopped_by_user = True

    def event(self, *, event: Mapping[str, Any], **wrapper: Any) -> str:
        """A raw event in the usual wrapper, whose fields may be overridden; returns its id."""
        return self._events.raw(dict(event), **wrapper)

    # What people see ----------------------------------------------------------------------------

    def chat(self, channel: str) -> list[SeenInSlack]:
        """What stands in a conversation now, in order, each thread below its parent."""
        return self._workspace.seen(channel)

    def file(self, name: str) -> bytes:
        """The bytes of the newest file of this name."""
        for file in reversed(self._workspace.files.values()):
            if file.name == name and file.data is not None:
                return file.data
        raise LookupError(f"no file {name}")

    def thread(self, channel: str, ts: str) -> list[SeenInSlack]:
        """A thread's messages, its parent first."""
        return [seen for seen in self.chat(channel) if ts in {seen.ts, seen.thread_ts}]

    def shown(self, channel: str) -> str:
        """The conversation as text, replies indented; files by their names, reactions behind."""
        lines = []
        for seen in self.chat(channel):
            who = "bot" if seen.is_bot else seen.user or "app"
            indent = "    " if seen.is_reply else ""
            files = " ".join(f"📎 {name}" for name in seen.files)
            body = "\n".join(part for part in (files, seen.text) if part)
            body = body.replace("\n", f"\n{indent}  ")
            signs = "".join(f" :{name}:" for name in seen.reactions)
            lines.append(f"{indent}{who}: {body}" + " (edited)" * bool(seen.edits) + signs)
        return "\n".join(lines)

    def ephemeral(self, user: str | None = None) -> list[SeenInSlack]:
        """What single persons saw: ephemeral messages and answers to commands."""
        return [seen for seen in self._workspace.ephemeral if user in {None, seen.only_for}]

    def sent(self, channel: str | None = None) -> list[Json]:
        """The messages that the bot sent, in order, each as it was at first."""
        return [m for m in self._api.chat.sent if channel in {None, m["channel"]}]

    def previewed(self) -> list[Json]:
        """The posts of the bot, each as `channel` and `text`, in which Slack would have opened an
        address by itself for a preview. It looks when a message is posted, not when one is edited,
        and at none that one person alone sees."""
        return list(self._api.chat.previewed)

    def direct(self, user: str = ANN) -> str:
        """The id of the direct message between this person and the bot."""
        return self._workspace.direct(user).id

    def home(self, user: str = ANN) -> Json | None:
        """What a person's home tab shows."""
        return self._workspace.homes.get(user)

    def views(self) -> list[Json]:
        """The open forms, the newest last."""
        return list(self._workspace.views.values())

    def status(self, channel: str, thread_ts: str) -> str | None:
        """The status line under an assistant thread."""
        return self._workspace.statuses.get((channel, thread_ts))

    def prompts(self, channel: str, thread_ts: str) -> list[Json]:
        """The prompts suggested in an assistant thread."""
        return self._workspace.prompts.get((channel, thread_ts), [])

    def title(self, channel: str, thread_ts: str) -> str | None:
        """An assistant thread's title."""
        return self._workspace.titles.get((channel, thread_ts))

    # What is told to the app --------------------------------------------------------------------

    def deliveries(self, kind: str | None = None, *, ts: str | None = None) -> list[Delivery]:
        """All payloads in order, with their attempts; those about the message `ts` alone."""
        found = [d for d in self._deliveries.all if kind in {None, d.kind}]
        return [d for d in found if ts in {None, d.about.get("ts")}]

    def delivery(self, delivery_id: str) -> Delivery:
        """By id; raises LookupError."""
        return self._deliveries.find(delivery_id)

    def pending(self) -> list[str]:
        """The ids of what is neither taken nor given up."""
        return list(self._deliveries.pending)

    def lost(self) -> list[str]:
        """The ids of what Slack has given up."""
        return [d.id for d in self._deliveries.all if d.state == "lost"]

    def redeliver(self, delivery_id: str) -> None:
        """Send something once more although it was taken or given up."""
        self._deliveries.again(delivery_id)

    async def settled(self, *, timeout_s: float = 5.0) -> None:
        """Wait until nothing is on its way to the app."""
        await self.until(lambda: not self.pending(), timeout_s=timeout_s)

    def sockets(self) -> list[SocketInfo]:
        """The open sockets."""
        return self._sockets.info()

    def refresh(
        self, *, reason: str = "refresh_requested", socket: int | None = None, after_s: float = 0.0
    ) -> list[int]:
        """Send `disconnect` over one socket or all, and close them so much later."""
        return self._sockets.disconnect(reason=reason, socket=socket, after_s=after_s)

    @property
    def connection_s(self) -> float:
        """How long a socket opened from now on lives; ten seconds before, it is warned."""
        return self._sockets.connection_s

    @connection_s.setter
    def connection_s(self, seconds: float) -> None:
        self._sockets.connection_s = seconds

    def cut(self, *, socket: int | None = None) -> list[int]:
        """Break sockets without a word."""
        return self._sockets.cut(socket=socket)

    def fault(
        self,
        method: str = "*",
        *,
        action: FaultAction,
        times: int | None = 1,
        skip: int = 0,
        when: Mapping[str, Any] | None = None,
    ) -> Fault:
        """As in every stand-in; the method `event` strikes what is sent to the app.

        Kinds for it: `hold`, `drop`, and those of `bot.lab.slack_delivery`.
        """
        if method != EVENT:
            return super().fault(method, action=action, times=times, skip=skip, when=when)
        fault = Fault(action=action, method=EVENT, times=times, skip=skip, when=when or {})
        self._event_faults.add(fault)
        return fault

    def clear_faults(self) -> None:
        super().clear_faults()
        self._event_faults.clear()

    # Inside -------------------------------------------------------------------------------------

    def _socket_url(self) -> str:
        root = self.base_url.replace("http", "ws", 1)
        return f"{root}/link/?ticket={self._sockets.ticket()}&app_id={self.identity.app}"

    def _place(self, channel: str | None, user: str) -> Conversation:
        if channel is None:
            return self._workspace.direct(user)
        return self._workspace.conversation(channel)

    def _kept(self, channel: str, ts: str) -> SlackMessage:
        kept = self._workspace.find(channel, ts)
        if kept is None:
            raise LookupError(f"no message {ts} in {channel}")
        return kept

    def _shared(self, kept: SlackMessage) -> Json:
        """A message as it stands in another one with which it was shared."""
        author, place = (
            str(kept.message.get("user", "")),
            self._workspace.conversations[kept.channel],
        )
        name, text = self._workspace.user(author).real_name, str(kept.message.get("text", ""))
        return {
            "id": 1,
            "ts": kept.ts,
            "channel_id": kept.channel,
            "channel_team": self.identity.team,
            "channel_name": place.name,
            "author_id": author,
            "author_name": name,
            "author_subname": name,
            "text": text,
            "fallback": f"{name}: {text}",
            "footer": f"Posted in #{place.name}",
            "is_share": True,
            "is_msg_unfurl": True,
            "mrkdwn_in": ["text"],
        }

    def _view(self, view_id: str | None, user: str) -> Json:
        home = self._workspace.homes.get(user)
        if home is not None and view_id in {None, home["id"]}:
            return home
        if view_id is None:
            raise LookupError(f"{user} has no home tab")
        return self._workspace.views[view_id]

    def _on_message(self, kept: SlackMessage, user: str) -> Json:
        place = self._workspace.conversations[kept.channel]
        path = self._workspace.response_url(place.id, user, kept.ts)
        container: Json = {
            "type": "message",
            "message_ts": kept.ts,
            "channel_id": place.id,
            "is_ephemeral": False,
        }
        if kept.thread_ts is not None:
            container["thread_ts"] = kept.thread_ts
        return {
            "container": container,
            "channel": {"id": place.id, "name": place.name or "directmessage"},
            "message": self._workspace.shown(kept),
            "response_url": self.base_url + path,
        }

    def _reaction(self, kind: str, kept: SlackMessage, name: str, user: str) -> None:
        item = {"type": "message", "channel": kept.channel, "ts": kept.ts}
        owner = kept.message.get("user", "")
        event = {"type": kind, "user": user, "reaction": name, "item": item, "item_user": owner}
        self._events.plain(event)
        self.changed()

    def _membership(self, kind: str, channel: str, user: str, **more: str) -> None:
        place = {"channel": channel, "channel_type": channel[:1], "team": self.identity.team}
        self._events.plain({"type": kind, "user": user, **place, **more})

    def _assistant(self, kind: str, user: str, thread_ts: str, context: str | None) -> None:
        about: Json = {
            "user_id": user,
            "channel_id": self._workspace.direct(user).id,
            "thread_ts": thread_ts,
            "context": {},
        }
        if context is not None:
            team = {"team_id": self.identity.team, "enterprise_id": None}
            about["context"] = {"channel_id": context, **team}
        self._events.plain({"type": kind, "assistant_thread": about})

    async def _close_ways(self) -> None:
        await self._deliveries.close()
        await self._sockets.close()
        # Handlers of closed sockets end one turn of the loop later.
        await asyncio.sleep(0)


def _bytes(data: bytes | str) -> bytes:
    return base64.b64decode(data) if isinstance(data, str) else data
