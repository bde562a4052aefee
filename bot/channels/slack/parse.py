"""A stored event of Slack as a message: what was said, where, and whether it is for us.

Called by `bot.channels.slack.channel`, again after a crash: everything that decides stands in the
event itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bot.channels.base import Ignored, Pressed, Understood, aside_to, is_for_all
from bot.channels.slack.wire import EventKind, SlackPayload, mentions, shared_with, thread_of
from bot.channels.wire import Json, is_direct, needed_id, needed_ts, part, text_of
from bot.commands.table import find, lone_word
from memory.records.messages import (
    QUOTE_CHARS_MAX,
    Address,
    Attachment,
    IncomingMessage,
    forwarded_from,
)

GroupPolicy = Literal["mention", "all", "off"]

DELETED = "(The person deleted this message.)"
FILES_MAX = 20

ON_HOME = "home:"
"""How the message id of a press begins under which there is no message. Each such press has one of
its own: there are many buttons on a home."""

_CODED = re.compile(r"<([^<>]*)>")
_BETWEEN = re.compile(r"[/:@]|(?<=\w)\.(?=\w\w)")
"""What makes an address of a name. Most names that Slack shows hold a dot, as `ada.lovelace` does:
behind the @ that is no address, and only further on in a name it would be."""

_USER = re.compile(r"[UW][A-Z0-9]{1,30}")
_KINDS = {"image": "photo", "audio": "audio", "video": "video"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackParser:
    """How events are read: by which rule in groups, and by which names."""

    policy: GroupPolicy
    us: str
    our_name: str
    name_of: Callable[[str, str], str]
    parent_of: Callable[[str, str], str] = lambda channel, ts: ""
    """What a message replies to, by its channel and ts, where that is not in its conversation."""
    title_of: Callable[[str, str], str] = lambda team, user: ""

    def understand(self, stored: SlackPayload) -> Understood:
        """Raises ValueError when it cannot be read."""
        match stored.kind:
            case EventKind.POST | EventKind.EDIT | EventKind.DELETION:
                return self._post(stored)
            case EventKind.COMMAND:
                return self._command(stored)
            case EventKind.BUTTON:
                return self._press(stored)
            case EventKind.HOME:
                return Ignored(reason="home opened")

    # --- each kind ---------------------------------------------------------------------------

    def _post(self, stored: SlackPayload) -> Understood:
        """Read what was said, edited or deleted."""
        match stored.kind:
            case EventKind.EDIT:
                message = dict(part(stored.body, "message"))
            case EventKind.DELETION:
                ts = needed_ts(stored.body, "deleted_ts")
                message = {"ts": ts, **part(stored.body, "previous_message")}
            case _:
                message = dict(stored.body)
        us = stored.us or self.us
        addressed = mentions(text_of(message, "text"), us)
        reason = self._reason(stored, message, us, addressed=addressed)
        if message.get("type") == "app_mention" and not addressed:
            # The post itself came as `message` too: this one counts only where that one did not.
            if not reason:
                return Ignored(reason="the post itself counts")
            addressed = True
            reason = self._reason(stored, message, us, addressed=True)
        if reason:
            return Ignored(reason=reason)
        if stored.kind is EventKind.DELETION:
            kept = ("ts", "thread_ts", "user")
            message = {name: message[name] for name in kept if name in message}
            message["text"] = DELETED
        return self._message(stored, message, addressed=addressed)

    def _command(self, stored: SlackPayload) -> Understood:
        """`/hearth status` is `/status`, and any single word is taken for a command (it may be
        mistyped: `bot.commands.table.given`); what else is none is said to the assistant. In
        a channel a command is answered to its person alone, unless it concerns all."""
        channel = needed_id(stored.body, "channel_id")
        if not is_direct(channel) and self.policy == "off":
            return Ignored(reason="groups are off")
        words = self.plain(text_of(stored.body, "text"), stored).strip() or "help"
        as_command = words if words.startswith("/") else f"/{words}"
        found = find(as_command)
        is_command = found is not None or lone_word(as_command)
        user = needed_id(stored.body, "user_id")
        address = _address(stored, channel, None)
        concerns_all = is_for_all(found[0].name, found[1]) if found else not is_command
        if not is_direct(channel) and not concerns_all:
            address = aside_to(address, user)
        return IncomingMessage(
            address=address,
            message_id=text_of(stored.body, "trigger_id"),
            sender_id=f"{stored.home}:{user}",
            sender_name=self.name_of(stored.home, user),
            text=as_command if is_command else words,
            is_group=not is_direct(channel),
            mentions_bot=True,
        )

    def _press(self, stored: SlackPayload) -> Understood:
        body = stored.body
        channel, value = needed_id(body, "channel"), text_of(body, "value")
        if not value or not text_of(body, "ts"):
            return Ignored(reason="no such button")
        if not is_direct(channel) and self.policy == "off":
            return Ignored(reason="groups are off")
        return Pressed(
            address=_address(stored, channel, text_of(body, "thread") or None),
            message_id=f"{ON_HOME if body.get('home') is True else ''}{needed_ts(body, 'ts')}",
            sender=f"slack:{stored.home}:{needed_id(body, 'user')}",
            data=value,
            press_id=text_of(body, "id"),
        )

    # --- parts of them -------------------------------------------------------------------------

    def _reason(self, stored: SlackPayload, message: Json, us: str, *, addressed: bool) -> str:
        """Why a post is left alone; empty when it is for us. A reply below a post of ours is."""
        if us and message.get("user") == us:
            return "ours"
        if is_direct(needed_id(stored.body, "channel")):
            return ""
        match self.policy:
            case "off":
                return "groups are off"
            case "all":
                return ""
            case "mention":
                replied = bool(us) and message.get("parent_user_id") == us
                return "" if addressed or replied else "not addressed"

    def _message(self, stored: SlackPayload, message: Json, *, addressed: bool) -> Understood:
        channel, edited = needed_id(stored.body, "channel"), stored.kind is not EventKind.POST
        text = text_of(message, "text")
        if us := stored.us or self.us:
            # The mention that a post in a channel begins with only calls us, so that
            # `@hearth /stop` is a command.
            text = re.sub(rf"^(?:[\s,:]*<@{us}(?:\|[^<>]*)?>)+[\s,:]*", "", text)
        text = self.plain(text, stored)
        files = message.get("files")
        # Files that were deleted, or that the workspace's plan hides, are named all the same.
        attachments = tuple(
            _attachment(file, text_of(message, "user"))
            for file in (files[:FILES_MAX] if isinstance(files, list) else ())
            if isinstance(file, dict) and file.get("mode") not in ("tombstone", "hidden_by_limit")
        )
        shared = (text_of(one, "text") or text_of(one, "fallback") for one in shared_with(message))
        quote = "\n".join(self.plain(text, stored) for text in shared if text)[:QUOTE_CHARS_MAX]
        if not quote and not edited:
            parent = self.parent_of(channel, text_of(message, "ts"))
            quote = self.plain(parent, stored)[:QUOTE_CHARS_MAX]
        if not text and not attachments and not quote:
            return Ignored(reason="nothing to read in it")
        user, ts = needed_id(message, "user"), needed_ts(message, "ts")
        thread = thread_of(message, channel)
        return IncomingMessage(
            address=_address(stored, channel, thread),
            message_id=ts,
            sender_id=f"{stored.home}:{user}",
            sender_name=self.name_of(stored.home, user),
            sender_title=self.title_of(stored.home, user) if is_direct(channel) else "",
            text=text,
            attachments=attachments,
            quote=quote,
            sent_at_ms=int(float(ts) * 1000),
            is_group=not is_direct(channel),
            mentions_bot=addressed,
            edited=edited,
            forwarded=self._forwarded(message, stored),
            # What begins a thread is what is replied to in it: Slack has no other replies.
            reply_to=thread if thread is not None and thread != ts else "",
        )

    def plain(self, text: str, stored: SlackPayload) -> str:
        """Slack's codes as they are seen: names, channels and addresses instead of ids."""
        pieces: list[str] = []
        at = 0
        for found in _CODED.finditer(text):
            pieces += [_unescaped(text[at : found.start()]), self._decoded(found[1], stored)]
            at = found.end()
        return "".join([*pieces, _unescaped(text[at:])])

    def _decoded(self, code: str, stored: SlackPayload) -> str:
        target, _, label = code.partition("|")
        label = _unescaped(label)
        if target.startswith("@"):
            user = target[1:]
            is_us = user == (stored.us or self.us)
            name = self.our_name if is_us else self.name_of(stored.team, user)
            return f"@{_no_address(label or name or user)}"
        if target.startswith("#"):
            return f"#{label or target[1:]}"
        if target.startswith("!"):
            word = target[1:].partition("^")[0]
            return label or f"@{word}"
        address = _unescaped(target)
        bare = address.removeprefix("mailto:").removeprefix("tel:")
        if not label or label in {address, bare} or address.partition("://")[2] == label:
            return label if label == bare else address
        return f"{label} ({address})"

    def _forwarded(self, message: Json, stored: SlackPayload) -> str:
        """Whose the message is that was shared with this one; empty when none was."""
        for one in shared_with(message):
            name = text_of(one, "author_name") or text_of(one, "author_subname")
            if not name and _USER.fullmatch(text_of(one, "author_id")):
                name = self.name_of(stored.team, text_of(one, "author_id"))
            return forwarded_from(name or text_of(one, "channel_name"))
        return ""


def _address(stored: SlackPayload, channel: str, thread: str | None) -> Address:
    return Address(channel="slack", chat_id=f"{stored.team}.{channel}", thread_id=thread)


def _unescaped(text: str) -> str:
    # Not `html.unescape`: Slack writes these three alone, and shows any other as it stands.
    for code, char in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = text.replace(code, char)
    return text


def _no_address(name: str) -> str:
    """A name that its bearer chose, in the words of somebody else: whoever mentions them names no
    address by that (threat T12)."""
    first = re.match(r"[\w.%-]*", name)
    at = first.end() if first is not None else 0
    return name[:at] + _BETWEEN.sub("·", name[at:])


def _attachment(file: Json, sender: str) -> Attachment:
    """A clip that another recorded and this one shares is a sound like any other: only what the
    sender spoke are the sender's words (threat T12)."""
    kind = text_of(file, "mimetype").partition("/")[0]
    is_own = bool(sender) and text_of(file, "user") == sender
    voice = is_own and text_of(file, "subtype") == "slack_audio"
    return Attachment(
        kind="voice" if voice else _KINDS.get(kind, "document"),
        ref=needed_id(file, "id"),
        name=text_of(file, "name")[:255],
        size_bytes=_number(file.get("size")),
        seconds=_number(file.get("duration_ms")) // 1000,
    )


def _number(value: object) -> int:
    return value if type(value) is int and 0 <= value < 2**53 else 0
