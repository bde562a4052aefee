"""The Channel port: one way to reach people. `bot.app` starts channels, `bot.outbox.outbox`
sends."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from bot.channels.health import ChannelTrouble
from bot.channels.odd_json import is_direct
from memory.records.messages import Address, Attachment, IncomingMessage
from memory.records.rows import Button, ButtonRows, NewMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePart:
    """One platform message: `markup` for the platform, `source` as the plain fallback.

    `mark` is the outbox's own name of it, never given twice; it travels along, unseen, where the
    platform has a place for it. Empty: none. `keyboard` are texts to be sent with one tap, shown
    where the platform has a place for them. `buttons` stand under the message; an edit says anew
    which there are. `loses_buttons`: this edit takes away those that the message has.
    """

    markup: str
    source: str
    mark: str = ""
    keyboard: tuple[str, ...] = ()
    buttons: ButtonRows = ()
    loses_buttons: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOut:
    """A file as a platform gets it. `path` is where it stood in the workspace; `ref` what the
    platform calls it, where it was given ahead of the message (`UploadsAhead`)."""

    name: str
    path: str
    content: bytes
    ref: str = ""


# --- what became of a send -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage:
    """It arrived, as the platform's message of this id."""

    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSent:
    """It certainly did not arrive, and may be tried again after `retry_after_s` (None: back off).

    `is_ours`: the platform refuses the bot (its token, a scope), not the message. Nothing goes out
    there until the owner has mended that.
    """

    reason: str
    retry_after_s: float | None = None
    is_ours: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InDoubt:
    """Nobody knows whether it arrived."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """It did not arrive and never will: blocked, chat gone."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploaded:
    """The platform has the file, under this name, and shows it nowhere yet."""

    ref: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reacted:
    """The reaction stands there; `shown` is how the platform shows it."""

    shown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageGone:
    """An edit found its message deleted or no longer editable."""


Delivery = SentMessage | NotSent | InDoubt | Refused
EditOutcome = SentMessage | NotSent | InDoubt | Refused | MessageGone
LookedUp = SentMessage | NotSent | InDoubt | Refused
Upload = Uploaded | NotSent | Refused
Reaction = Reacted | NotSent | Refused


# --- what an event says ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """An event that starts nothing, by rule. `reply` is what its sender is told, who has to be let
    in still."""

    reason: str
    sender: str = ""
    reply: NewMessage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlbumPart:
    """One photo of several that were sent as one; `album` is the platform's id of them all.

    In a group the words that address the bot stand on one part alone.
    """

    message: IncomingMessage
    album: str
    addressed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressed:
    """Somebody pressed a button under the message `message_id`; `sender` is their address.

    `data` is what their client says was pressed: nothing vouches that such a button was there.
    `press_id` is the platform's name of this press.
    """

    address: Address
    message_id: str
    sender: str
    data: str
    press_id: str


Understood = IncomingMessage | AlbumPart | Pressed | Ignored


class Channel(Protocol):
    """One channel. Every method may be called by many tasks at once.

    `send` and `edit` never raise for what the platform or the network does: they say what became
    of it. They fall back to the plain source themselves where markup is refused.
    """

    @property
    def name(self) -> str: ...

    def stream_every(self, address: Address) -> float | None:
        """Seconds between edits of a streamed reply in this chat; None: no streaming."""

    def understand(self, payload: str) -> Understood:
        """A stored event as a message. Raises ValueError when it cannot be read."""

    def parts(self, text: str) -> Sequence[MessagePart]:
        """Markdown as platform messages, in order. Joined sources equal the text."""

    async def ready(self, address: Address) -> None:
        """Waits until the platform's limits allow one more message in this chat."""

    async def send(self, address: Address, part: MessagePart) -> Delivery:
        """One new message."""

    async def edit(self, address: Address, message_id: str, part: MessagePart) -> EditOutcome:
        """Makes a message read so; may be repeated without harm."""

    async def typing(self, address: Address) -> None:
        """Shows for a few seconds that an answer is being made; failures are ignored."""


@runtime_checkable
class SettlesDoubt(Protocol):
    """A channel that can look up what became of a send whose fate is unknown."""

    async def look_up(self, address: Address, mark: str, *, since_ms: int) -> LookedUp:
        """Whether a message with this mark stands there; none older than `since_ms` is meant.

        Sent: it does, under this id. NotSent: it surely does not. InDoubt: that cannot be looked
        up now, but perhaps later. Refused: nor ever.
        """


@runtime_checkable
class Removes(Protocol):
    """A channel that can take a message of ours away."""

    async def remove(self, address: Address, message_id: str) -> EditOutcome:
        """May be repeated without harm. Sent, MessageGone: it is not there any more."""


@runtime_checkable
class SendsFiles(Protocol):
    """A channel that can show a file. As `send`, its methods never raise for what the platform or
    the network does; the reason of a refusal is the end of a sentence for the person."""

    def captioned(self, text: str) -> Sequence[MessagePart]:
        """The caption of the file's own message, perhaps blank, and then as messages what finds no
        place in it. Joined sources equal the text."""

    async def send_file(self, address: Address, file: FileOut, part: MessagePart) -> Delivery:
        """One new message with the file; the part is its caption."""


@runtime_checkable
class UploadsAhead(Protocol):
    """A channel whose platform takes a file first and shows it by a second call, and can look up
    whether it does."""

    async def upload(self, address: Address, file: FileOut) -> Upload:
        """Hands the bytes over. Nobody sees them yet, so it may be repeated without harm."""

    async def look_up_file(self, address: Address, ref: str, *, since_ms: int) -> LookedUp:
        """Whether a message with this file stands there; see `SettlesDoubt.look_up`."""


@runtime_checkable
class Reacts(Protocol):
    """A channel that can put a reaction on a message. It may be repeated without harm."""

    async def react(self, address: Address, message_id: str, emoji: str) -> Reaction:
        """Shows this emoji under the message, or the nearest that the platform has. A reason is a
        sentence for the assistant."""


@runtime_checkable
class Acknowledges(Protocol):
    """A channel that can show at once that a message was taken in, where the settings say so."""

    async def acknowledge(self, message: IncomingMessage) -> None:
        """Failures are ignored."""


@runtime_checkable
class FetchesFiles(Protocol):
    """A channel by which people send files. Only of a message whose sender was let in is one ever
    fetched (SPEC §2.3)."""

    async def fetch(self, attachment: Attachment, *, bytes_max: int) -> bytes:
        """The whole file, which may be repeated. Raises FileUnavailable, also for more than
        `bytes_max`, and Temporary."""


@runtime_checkable
class ShowsWork(Protocol):
    """A channel that can show what is being done while there is no text yet."""

    def doing(self, address: Address, line: str) -> None:
        """In plain words; an empty line: nothing any more. Returns at once."""


@runtime_checkable
class TellsTrouble(Protocol):
    """A channel that knows whether its platform is heard."""

    @property
    def trouble(self) -> ChannelTrouble | None:
        """What keeps messages from coming in just now; None: nothing does."""


@runtime_checkable
class AnswersPresses(Protocol):
    """A channel that can tell the person who pressed a button what came of it, and nobody else."""

    async def answered(self, pressed: Pressed, text: str) -> None:
        """Shows the text; with an empty one, that the press was seen. Failures are ignored."""


@runtime_checkable
class RemembersButtons(Protocol):
    """A channel whose platform does not keep messages: after a restart it has to be told which of
    them have buttons."""

    def remember(self, address: Address, message_id: str, part: MessagePart) -> None:
        """This message of a former process can be pressed."""


# --- a person's own page ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeLine:
    """One thing on a page, in Markdown, with the buttons that belong to it."""

    text: str
    buttons: tuple[Button, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeSection:
    """Lines under a title; an empty title: none is shown."""

    lines: tuple[HomeLine, ...]
    title: str = ""


HAVE_FORMS = frozenset({"slack"})
"""Channels whose platform opens a form when a button is pressed."""

NEW_REMINDER = "form:reminder"
"""The data of a button that opens a form, on a platform that has forms."""

EDIT_FACT = "form:fact:"
"""How the data of one begins that is about a fact, whose key follows."""


class TellsHome(Protocol):
    """What a person reads on the page that is theirs alone, where a platform has one."""

    def knows(self, sender: str) -> bool:
        """Whether this address is somebody's who is let in. Makes nobody known."""

    async def sections(self, sender: str, lane: str) -> Sequence[HomeSection]:
        """The page of whoever has this address, and of nobody else; `lane` is their private chat.
        A stranger reads how to be let in. Raises StorageError."""


# --- channel threads ----------------------------------------------------------------------------
#
# A channel in which each mention opens a thread: what is typed at its root, and is about them.
#
# Slack's channels are such. Used by the commands, and by whoever looks up what holds for a thread.

OF_ONE_CONVERSATION = frozenset({"compact", "context", "new", "restore", "undo", "why"})
"""Commands that are about the conversation in which they are typed."""

_CHANNEL = "slack"


def is_root(message: IncomingMessage) -> bool:
    """Whether it was typed in such a channel, outside of its threads."""
    address = message.address
    return address.channel == _CHANNEL and message.is_group and address.thread_id is None


def around(lane: str) -> str:
    """The address of the channel around a thread; empty for what is no thread of such a one."""
    channel, *more = lane.split(":")
    if channel != _CHANNEL or len(more) != 2 or is_direct(more[0].partition(".")[2]):
        return ""
    return f"{channel}:{more[0]}"


def hint(name: str) -> str:
    """What is said of `/NAME` at the root, behind what it did there."""
    return (
        "Each thread here has a conversation of its own, which this is not about: in a thread, "
        f"write `@hearth /{name}`."
    )


def threads_of(channel: Address, lanes: Collection[str]) -> list[str]:
    """Those of these addresses that are threads of the channel."""
    root = replace(channel, thread_id=None).key
    return sorted(lane for lane in lanes if around(lane) == root)


# --- asides -------------------------------------------------------------------------------------
#
# What is said in a chat to one person alone, where a platform can do so: the place of it, which is
# the chat and who reads it there. Channels make such places and send there; commands never see one.

FOR_ALL = frozenset({"compact", "new", "restore", "stop", "undo"})
"""Commands whose answer all in a chat are to read: what they change, such as the conversation, is
everybody's there."""

FOR_ALL_WITH_WORDS = frozenset({"agents", "job", "model", "remind"})
"""Those that change such a thing with words behind them, and only show it without."""

_MARK = "~"
"""How the thread of such a place begins. No platform's thread does."""


def is_for_all(command: str, rest: str) -> bool:
    """Whether a command concerns everybody in the chat; `rest` is what stands behind its name. A
    new one is for its person alone until somebody decides otherwise above."""
    return command in FOR_ALL or (command in FOR_ALL_WITH_WORDS and bool(rest))


def aside_to(chat: Address, reader: str) -> Address:
    """The place in a chat where this person alone reads, by the platform's id of them."""
    assert chat.thread_id is None, "nobody can be spoken to aside in a thread"
    return replace(chat, thread_id=f"{_MARK}{reader}")


def reader_of(address: Address) -> str:
    """Who alone reads there; empty where it is no such place."""
    thread = address.thread_id or ""
    return thread.removeprefix(_MARK) if thread.startswith(_MARK) else ""


def chat_of(address: Address) -> Address:
    """The chat itself, whoever reads; any other address as it is."""
    return replace(address, thread_id=None) if reader_of(address) else address


def said_to_all(message: IncomingMessage) -> IncomingMessage:
    """The message as it is of the chat, whoever alone is answered."""
    return replace(message, address=chat_of(message.address))
