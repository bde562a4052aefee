"""The Channel port: one way to reach people. `bot.app` starts channels, `bot.outbox.outbox`
sends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType

import structlog

from agent.files.values import FileUnavailable
from bot.channels.wire import is_direct
from memory.records.messages import Address, Attachment, IncomingMessage
from memory.records.ports import Clock
from memory.records.rows import ButtonRows, NewMessage


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
    platform calls it, where it was given ahead of the message (`Channel.upload`)."""

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
class DeliveryRefused:
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


Delivery = SentMessage | NotSent | InDoubt | DeliveryRefused
EditOutcome = SentMessage | NotSent | InDoubt | DeliveryRefused | MessageGone
LookedUp = SentMessage | NotSent | InDoubt | DeliveryRefused
Upload = Uploaded | NotSent | DeliveryRefused
Reaction = Reacted | NotSent | DeliveryRefused

NOBODY_CAN_TELL = "nobody can tell"
"""Why a send stays in doubt where the platform lets nobody look."""

NO_REACTIONS = "there are no reactions in this chat; say it in your answer"
"""To the assistant."""


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


class Channel(ABC):
    """One channel. Every method may be called by many tasks at once.

    What a method does to a message may be repeated without harm, but for `send` and `send_file`.
    None raises for what the platform or the network does: each says what became of it. `send` and
    `edit` fall back to the plain source themselves where markup is refused.

    What only some platforms can do has a default here, which says that this one cannot.
    """

    name: str

    @property
    def trouble(self) -> ChannelTrouble | None:
        """Return what keeps messages from coming in just now; None: nothing does."""
        return None

    # --- coming in ------------------------------------------------------------------------------

    @abstractmethod
    def understand(self, payload: str) -> Understood:
        """Return what a stored event says. Raise ValueError when it cannot be read."""

    async def fetch(self, attachment: Attachment, *, bytes_max: int) -> bytes:
        """Return the whole file of a message, whose sender was let in (SPEC §2.3). Raise
        FileUnavailable, also for more than `bytes_max`, and Temporary."""
        raise FileUnavailable("files cannot be fetched where this message came from")

    async def acknowledge(self, message: IncomingMessage) -> None:  # noqa: B027
        """Show at once that a message was taken in, where the settings say so."""

    # --- going out ------------------------------------------------------------------------------

    @abstractmethod
    def stream_every(self, address: Address) -> float | None:
        """Return the seconds between edits of a streamed reply; None: no streaming."""

    @abstractmethod
    def parts(self, text: str) -> Sequence[MessagePart]:
        """Return Markdown as platform messages, in order. Joined sources equal the text."""

    @abstractmethod
    async def ready(self, address: Address) -> None:
        """Wait until the platform's limits allow one more message in this chat."""

    @abstractmethod
    async def send(self, address: Address, part: MessagePart) -> Delivery:
        """Send one new message."""

    @abstractmethod
    async def edit(self, address: Address, message_id: str, part: MessagePart) -> EditOutcome:
        """Make a message read so."""

    async def remove(self, address: Address, message_id: str) -> EditOutcome:
        """Take a message of ours away. SentMessage, MessageGone: it is not there any more."""
        return DeliveryRefused(reason="it cannot be taken away there")

    async def look_up(self, address: Address, mark: str, *, since_ms: int) -> LookedUp:
        """Return whether a message with this mark, not older than `since_ms`, stands there.

        SentMessage: it does, under this id. NotSent: it surely does not. InDoubt: that cannot be
        looked up now, but perhaps later. DeliveryRefused: nor ever.
        """
        return DeliveryRefused(reason=NOBODY_CAN_TELL)

    async def typing(self, address: Address) -> None:  # noqa: B027
        """Show for a few seconds that an answer is being made."""

    def doing(self, address: Address, line: str) -> None:  # noqa: B027
        """Show what is being done while there is no text yet; empty: nothing. Returns at once."""

    # --- files, reactions and buttons ---------------------------------------------------------

    def captioned(self, text: str) -> Sequence[MessagePart]:
        """Return the caption of a file's own message, perhaps blank, and then as messages what
        finds no place in it. Joined sources equal the text."""
        return ()

    async def upload(self, address: Address, file: FileOut) -> Upload:
        """Hand the bytes over, where the platform takes them ahead of the message. Nobody sees
        them yet."""
        return Uploaded(ref="")

    async def send_file(self, address: Address, file: FileOut, part: MessagePart) -> Delivery:
        """Send one new message with the file; the part is its caption. The reason of a refusal is
        the end of a sentence for the person."""
        return DeliveryRefused(reason="no files can be sent there")

    async def look_up_file(self, address: Address, ref: str, *, since_ms: int) -> LookedUp:
        """As `look_up`, for a message with an uploaded file."""
        return DeliveryRefused(reason=NOBODY_CAN_TELL)

    async def react(self, address: Address, message_id: str, emoji: str) -> Reaction:
        """Show this emoji under the message, or the nearest that the platform has. A reason is a
        sentence for the assistant."""
        return DeliveryRefused(reason=NO_REACTIONS)

    async def answered(self, pressed: Pressed, text: str) -> None:  # noqa: B027
        """Tell whoever pressed a button what came of it, and nobody else; with an empty text, that
        the press was seen."""

    def remember(self, address: Address, message_id: str, part: MessagePart) -> None:  # noqa: B027
        """Note that this message of a former process can be pressed, where the platform does not
        keep messages itself."""


# --- forms -------------------------------------------------------------------------------------

HAVE_FORMS = frozenset({"slack"})
"""Channels whose platform opens a form when a button is pressed."""

NEW_REMINDER = "form:reminder"
"""The data of a button that opens a form, on a platform that has forms."""

EDIT_FACT = "form:fact:"
"""How the data of one begins that is about a fact, whose key follows."""


# --- channel threads ----------------------------------------------------------------------------
#
# A channel in which each mention opens a thread: what is typed at its root, and is about them.
#
# Slack's channels are such. Used by the commands, and by whoever looks up what holds for a thread.

OF_ONE_CONVERSATION = frozenset({"compact", "context", "new", "restore", "undo", "why"})
"""Commands that are about the conversation in which they are typed."""

_CHANNEL = "slack"


def is_root(message: IncomingMessage) -> bool:
    """Return whether it was typed in such a channel, outside of its threads."""
    address = message.address
    return address.channel == _CHANNEL and message.is_group and address.thread_id is None


def around(lane: str) -> str:
    """The address of the channel around a thread; empty for what is no thread of such a one."""
    channel, *more = lane.split(":")
    if channel != _CHANNEL or len(more) != 2 or is_direct(more[0].partition(".")[2]):
        return ""
    return f"{channel}:{more[0]}"


def hint(name: str) -> str:
    """Return what is said of `/NAME` at the root, behind what it did there."""
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
    """Return whether a command concerns everybody in the chat; `rest` is what stands behind its
    name. A new one is for its person alone until somebody decides otherwise above."""
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


# --- what keeps a channel from working -----------------------------------------------------------

log = structlog.get_logger()

PAUSES_S = (1.0, 2.0, 5.0, 10.0, 30.0)

PAUSE_MAX_S = 7 * 86_400.0
"""The longest pause that a platform is believed to ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelTrouble:
    """What is wrong just now, and since when; for `hearthbot status`."""

    since: datetime
    why: str
    """A few words, without addresses that hold a secret."""


class Outage:
    """Told when it begins and when it is over; the pauses in between grow."""

    def __init__(self, event: str, clock: Clock, *, pauses_s: Sequence[float] = PAUSES_S) -> None:
        self._event = event
        self._pauses_s = pauses_s
        self._clock = clock
        self.tries = 0
        self.trouble: ChannelTrouble | None = None
        """None: all is well."""

    def tell(self, why: str, **facts: str) -> None:
        """Says so, if it is new."""
        if self.tries == 0:
            log.warning(self._event, why=why, **facts)
            self.trouble = ChannelTrouble(since=self._clock.now(), why=why)
        self.tries += 1

    async def wait(
        self,
        why: str,
        *,
        at_least_s: float = 0.0,
        wished_s: float | None = None,
        facts: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Says so, if it is new, and waits; longer where the platform names a time, or for just
        as long as it wishes."""
        pause_s = self._pauses_s[min(self.tries, len(self._pauses_s) - 1)]
        self.tell(why, **facts)
        await self._clock.sleep(max(pause_s, at_least_s) if wished_s is None else wished_s)

    def over(self) -> None:
        """It went well."""
        if self.tries:
            log.info(f"{self._event}.over", tries=self.tries)
        self.forget()

    def forget(self) -> None:
        """It is over, which is told in other words."""
        self.tries = 0
        self.trouble = None
