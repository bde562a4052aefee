"""People of the Slack stand-in: what they do, what they then see, and what the app is told.

Called by `bot.lab.slack`, which adds the server. Every act is a keyword call, so that it can be
ordered over `/lab/NAME` too.
"""

import base64
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from bot.lab.server import LabServer
from bot.lab.slack_api import WebApi
from bot.lab.slack_delivery import Deliveries, Delivery, HttpOut, SocketInfo, Sockets
from bot.lab.slack_events import Events, action_from, form_state, person_message
from bot.lab.slack_state import (
    BOT,
    BOT_USER,
    TEAM,
    Conversation,
    Json,
    Kind,
    SeenInSlack,
    SlackMessage,
    SlackRules,
    SlackWorkspace,
    User,
)

ANN = "U0ANN"


class PeopledSlack(LabServer):
    """A workspace with one app and people in it."""

    def __init__(
        self,
        token: str,
        app_token: str,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        log_cap: int = 200_000,
        clock: Callable[[], float] = time.monotonic,
        **rules: Any,
    ) -> None:
        """`rules` are those of `SlackRules`, by name."""
        super().__init__(host=host, port=port, log_cap=log_cap, clock=clock)
        self.rules = SlackRules(**rules)
        self._workspace = SlackWorkspace(clock=clock)
        self._sockets = Sockets(changed=self.changed)
        self._http: list[HttpOut] = []
        self._by_http = False
        self._deliveries = Deliveries(
            rules=self.rules,
            way=lambda: self._http[-1] if self._by_http else self._sockets,
            faults=self._faults,
            hold=self.hold,
            answered=self._answered,
            changed=self.changed,
            cap=log_cap,
        )
        self._events = Events(
            self._workspace, lambda: self.rules.subscribed, self._deliveries.deliver
        )
        self._api = WebApi(
            self._workspace,
            self.rules,
            self._events,
            token=token,
            app_token=app_token,
            root=lambda: self.base_url,
            tickets=self._sockets.tickets,
        )

    # What people do -----------------------------------------------------------------------------

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
        found.kind, found.is_archived, found.name = kind, archived, name or found.name
        found.members |= set(members)
        if not bot_inside:
            found.members.discard(BOT_USER)
        return found

    def post(
        self,
        *,
        text: str = "",
        channel: str | None = None,
        user: str = ANN,
        thread_ts: str | None = None,
        files: Mapping[str, bytes | str] | None = None,
        subtype: str | None = None,
        shares: Mapping[str, str] | None = None,
    ) -> str:
        """A person writes; return the message's ts. Without a channel: to the bot directly.

        The text is as Slack writes it: `&`, `<`, `>` escaped, mentions as `<@U…>`. Files are bytes
        by name, or base64 over HTTP. `shares` names the `channel` and `ts` of a message that is
        forwarded with it.
        """
        place = self._place(channel, user)
        # Who writes somewhere is there, also where a test did not say so.
        place.members.add(user)
        ts = self._workspace.next_ts()
        message = person_message(self._workspace.user(user), text, ts=ts)
        if thread_ts is not None:
            message["thread_ts"] = thread_ts
        if subtype is not None:
            message["subtype"] = subtype
        if shares is not None:
            message["attachments"] = [self._shared(self._kept(**shares))]
        if files:
            about = []
            for name, given in files.items():
                data = base64.b64decode(given) if isinstance(given, str) else given
                file = self._workspace.add_file(name, user=user, data=data, length=len(data))
                about.append(self._api.about_file(file))
            message |= {"subtype": "file_share", "files": about, "upload": False}
        self._events.posted(self._workspace.keep(place.id, message, is_bot=False))
        self.changed()
        return ts

    def bot_post(self, *, channel: str, text: str) -> str:
        """Another app writes."""
        place = self._workspace.conversation(channel)
        message: Json = {
            "type": "message",
            "subtype": "bot_message",
            "text": text,
            "ts": self._workspace.next_ts(),
            "username": "other",
            "bot_id": "B0OTHER",
        }
        self._events.posted(self._workspace.keep(place.id, message, is_bot=False))
        self.changed()
        return str(message["ts"])

    def edit(self, *, channel: str, ts: str, text: str) -> None:
        """A person edits their message."""
        kept = self._kept(channel, ts)
        if kept.is_bot:
            raise LookupError(f"message {ts} in {channel} is not a person's")
        previous = self._workspace.shown(kept)
        user = self._workspace.user(str(kept.message["user"]))
        edited = {"user": user.id, "ts": self._workspace.next_ts()}
        again = person_message(user, text, ts=ts)
        kept.message |= {"text": text, "blocks": again["blocks"], "edited": edited}
        kept.edits += 1
        self._events.changed(kept, previous)
        self.changed()

    def delete(self, *, channel: str, ts: str) -> None:
        """A person deletes a message; of the bot's too, as an admin can."""
        self._api.remove(self._kept(channel, ts))
        self.changed()

    def react(self, *, channel: str, ts: str, name: str = "eyes", user: str = ANN) -> None:
        """A person adds a reaction."""
        kept = self._kept(channel, ts)
        kept.reactions.setdefault(name, []).append(user)
        item = {"type": "message", "channel": kept.channel, "ts": kept.ts}
        self._events.plain({"type": "reaction_added", "user": user, "reaction": name, "item": item})
        self.changed()

    def leave(self, *, channel: str, user: str | None = None) -> None:
        """Somebody, or the bot, leaves a channel."""
        who = user or BOT_USER
        self._events.plain({"type": "member_left_channel", "user": who, "channel": channel})
        self._workspace.conversation(channel).members.discard(who)

    def open_home(self, *, user: str = ANN, tab: str = "home") -> None:
        """A person opens the app's home, or its messages."""
        place = self._workspace.direct(self._workspace.user(user).id)
        event: Json = {"type": "app_home_opened", "user": user, "channel": place.id, "tab": tab}
        if tab == "home" and user in self._workspace.homes:
            event["view"] = self._workspace.homes[user]
        self._events.plain(event)

    def start_assistant(self, *, user: str = ANN) -> str:
        """A person opens a new assistant thread in the direct message; return its thread_ts."""
        place = self._workspace.direct(self._workspace.user(user).id)
        ts = self._workspace.next_ts()
        root: Json = {
            "type": "message",
            "subtype": "assistant_app_thread",
            "text": "New Assistant Thread",
            "user": BOT_USER,
            "bot_id": BOT,
            "ts": ts,
            "thread_ts": ts,
        }
        self._workspace.keep(place.id, root, is_bot=True)
        about = {"user_id": user, "channel_id": place.id, "thread_ts": ts, "context": {}}
        self._events.plain({"type": "assistant_thread_started", "assistant_thread": about})
        return ts

    def command(
        self,
        *,
        text: str = "",
        command: str = "/hearth",
        channel: str | None = None,
        user: str = ANN,
    ) -> str:
        """A person types a slash command; return the delivery's id."""
        place = self._place(channel, user)
        payload = self._events.command(self._workspace.user(user), place, command, text)
        path = self._workspace.response_url(place.id, user)
        return self._deliveries.deliver(
            "slash_commands", payload | {"response_url": self.base_url + path}
        )

    def press(
        self,
        *,
        action_id: str,
        channel: str | None = None,
        ts: str | None = None,
        view_id: str | None = None,
        user: str = ANN,
    ) -> str:
        """A person presses a button of a message or a view; return the delivery's id."""
        if channel is not None and ts is not None:
            kept = self._kept(channel, ts)
            place = self._workspace.conversations[channel]
            path = self._workspace.response_url(channel, user)
            blocks = kept.message.get("blocks", [])
            container = {"type": "message", "message_ts": ts, "channel_id": channel}
            if kept.thread_ts is not None:
                container["thread_ts"] = kept.thread_ts
            more: Json = {
                "container": container,
                "channel": {"id": place.id, "name": place.name or "directmessage"},
                "message": self._workspace.shown(kept),
                "response_url": self.base_url + path,
            }
        else:
            view = self._view(view_id, user)
            blocks, container = view["blocks"], {"type": "view", "view_id": view["id"]}
            more = {"view": view, "container": container}
        action = action_from(blocks, action_id, at=self._workspace.next_ts())
        payload = self._events.interaction("block_actions", self._workspace.user(user))
        payload |= {"actions": [action], "state": {"values": {}}, **more}
        return self._deliveries.deliver("interactive", payload)

    def submit(
        self, *, view_id: str, values: Mapping[str, Mapping[str, Any]], user: str = ANN
    ) -> str:
        """A person sends a form: values by block_id and action_id; return the delivery's id."""
        view = self._view(view_id, user)
        filled = {**view, "state": {"values": form_state(view["blocks"], values)}}
        payload = self._events.interaction("view_submission", self._workspace.user(user))
        return self._deliveries.deliver("interactive", payload | {"view": filled})

    def event(self, *, event: Mapping[str, Any], **wrapper: Any) -> str:
        """A raw event in the usual wrapper, whose fields may be overridden; return its id."""
        return self._events.raw(dict(event), **wrapper)

    # What people see ----------------------------------------------------------------------------

    def chat(self, channel: str) -> list[SeenInSlack]:
        """Return what stands in a conversation now, in order, each thread below its parent."""
        return self._workspace.seen(channel)

    def thread(self, channel: str, ts: str) -> list[SeenInSlack]:
        """A thread's messages, its parent first."""
        return [seen for seen in self.chat(channel) if ts in {seen.ts, seen.thread_ts}]

    def file(self, name: str) -> bytes:
        """The bytes of the newest file of this name."""
        for file in reversed(self._workspace.files.values()):
            if file.name == name and file.data is not None:
                return file.data
        raise LookupError(f"no file {name}")

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
        """Return what single persons saw: ephemeral messages and answers to commands."""
        return [seen for seen in self._workspace.ephemeral if user in {None, seen.only_for}]

    def sent(self, channel: str | None = None) -> list[Json]:
        """The messages that the bot sent, in order, each as it was at first."""
        return [m for m in self._api.sent if channel in {None, m["channel"]}]

    def previewed(self) -> list[Json]:
        """The posts of the bot, each as `channel` and `text`, in which Slack would have opened an
        address by itself for a preview. It looks when a message is posted, not when one is edited,
        and at none that one person alone sees."""
        return list(self._api.previewed)

    def direct(self, user: str = ANN) -> str:
        """The id of the direct message between this person and the bot."""
        return self._workspace.direct(user).id

    def home(self, user: str = ANN) -> Json | None:
        """Return what a person's home tab shows."""
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
        """By id; raise LookupError."""
        for delivery in reversed(self._deliveries.all):
            if delivery.id == delivery_id:
                return delivery
        raise LookupError(f"nothing was delivered under {delivery_id!r}")

    def pending(self) -> list[str]:
        """The ids of what is neither taken nor given up."""
        return [d.id for d in self._deliveries.all if d.state == "pending"]

    def lost(self) -> list[str]:
        """The ids of what Slack has given up."""
        return [d.id for d in self._deliveries.all if d.state == "lost"]

    def redeliver(self, delivery_id: str) -> None:
        """Send something once more although it was taken or given up."""
        self._deliveries.start(self.delivery(delivery_id))

    async def settled(self, *, timeout_s: float = 5.0) -> None:
        """Wait until nothing is on its way to the app."""
        await self.until(lambda: not self.pending(), timeout_s=timeout_s)

    def sockets(self) -> list[SocketInfo]:
        """The open sockets."""
        return self._sockets.info()

    def refresh(self, *, reason: str = "refresh_requested", after_s: float = 0.0) -> list[int]:
        """Send `disconnect` over all sockets, and close them so much later."""
        return self._sockets.disconnect(reason, after_s=after_s)

    def cut(self) -> list[int]:
        """Break the sockets without a word."""
        return self._sockets.cut()

    # Parts --------------------------------------------------------------------------------------

    def _answered(self, delivery: Delivery) -> None:
        """A command or form was taken, or not: the person sees which."""
        asked = delivery.payload
        said = delivery.answer if isinstance(delivery.answer, dict) else {}
        if delivery.kind == "slash_commands":
            if delivery.state == "lost":
                timed_out = "timeout" in delivery.attempts[-1].failure
                error = "operation_timeout" if timed_out else "dispatch_failed"
                text = f'{asked["command"]} failed with the error "{error}"'
                said = {"text": text, "user": "USLACKBOT"}
            if said.get("text") or said.get("blocks"):
                self._api.answer(str(asked["channel_id"]), str(asked["user_id"]), said)
        elif asked.get("type") == "view_submission" and delivery.state == "taken":
            # What is made up by hand, as anything may be, has no form that could be changed.
            view_id = str((asked.get("view") or {}).get("id"))
            match said.get("response_action"):
                case None:
                    self._workspace.views.pop(view_id, None)
                case "clear":
                    self._workspace.views.clear()
                case "update":
                    view = self._workspace.stored_view(said["view"], view_id)
                    self._workspace.views[view_id] = view

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
        author = self._workspace.user(str(kept.message.get("user", "")))
        place = self._workspace.conversations[kept.channel]
        return {
            "id": 1,
            "ts": kept.ts,
            "channel_id": kept.channel,
            "channel_team": TEAM,
            "channel_name": place.name,
            "author_id": author.id,
            "author_name": author.real_name,
            "author_subname": author.real_name,
            "text": str(kept.message.get("text", "")),
            "footer": f"Posted in #{place.name}",
            "is_share": True,
            "is_msg_unfurl": True,
        }

    def _view(self, view_id: str | None, user: str) -> Json:
        home = self._workspace.homes.get(user)
        if home is not None and view_id in {None, home["id"]}:
            return home
        if view_id is None:
            raise LookupError(f"{user} has no home tab")
        return self._workspace.views[view_id]
