"""The group `message`: words and files to a chat that the person owns, and reactions to what they
wrote. What is behind them is `bot`'s."""

from __future__ import annotations

import asyncio
import io
import lzma
import re
import unicodedata
import zipfile
import zlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Protocol

from pydantic import Field

from agent.tools.tool import Caller, Effect, Needs, tool
from agent.tools.workspace import Workspace
from memory.records.errors import Permanent
from memory.records.messages import Address, PersonId

# --- own chats ----------------------------------------------------------------------------------
#
# The chats that a person owns, and which of them a model means. Used by the tools that send.


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnChat:
    """A chat to which a person may have something sent. `lane` is its address key."""

    lane: str
    title: str = ""


def is_others_words(caller: Caller, lane: str) -> bool:
    """Return whether what this caller's turn sends to `lane` may be words of somebody else than
    whoever writes there next: what follows from outside text, what any one member has a group told,
    and in another chat also what names and descriptions may have brought about."""
    is_here = lane == caller.address.key
    return caller.tainted or (caller.is_group if is_here else caller.described)


def chosen_chat(wanted: str, chats: Sequence[OwnChat]) -> str:
    """Return the address key of the chat that is meant: by its address, or by its channel where the
    person has one chat there; empty where none is."""
    name = wanted.strip().casefold()
    if not name:
        return ""
    for chat in chats:
        if name in {chat.lane.casefold(), chat.title.casefold()}:
            return chat.lane
    of_channel = [chat.lane for chat in chats if chat.lane.partition(":")[0] == name]
    return of_channel[0] if len(of_channel) == 1 else ""


EMOJI_CHARS_MAX = 64
MESSAGE_ID_CHARS_MAX = 100


class NothingToReactTo(Permanent):
    """No message is being answered, and none was named."""


# --- sending files ------------------------------------------------------------------------------
#
# `send_file`, of the group `message`: a file of the workspace, to a chat that the person owns.
#
# What leaves is read through the same confinement as by the file tools, and looked at first: hidden
# files, settings, databases and whatever holds a secret stay (threats T10 and T12).

CAPTION_CHARS_MAX = 4_000
PATH_CHARS_MAX = 1_000
NAME_CHARS_MAX = 100
UNPACKED_BYTES_MAX = 50_000_000
MEMBERS_MAX = 2_000
"""Of an archive that is looked through for secrets."""
SLICE_BYTES = 500_000
SECRET_BYTES_MAX = 4_096
"""A secret may lie across two slices, so each reaches so far into the next."""

_CLOSED_NAMES = frozenset({"config.toml", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"})
_CLOSED_ENDINGS = (".db", ".sqlite", ".sqlite3", ".db-wal", ".db-journal", ".env", ".pem", ".key")
_DATABASE = b"SQLite format 3\x00"
_PRIVATE_KEY = re.compile(rb"-----BEGIN [A-Z ]{0,40}PRIVATE KEY", re.IGNORECASE)
_ARCHIVE = b"PK\x03\x04"
_NO_ARCHIVE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(EOFError, NotImplementedError, OSError, RuntimeError, ValueError),
)
"""What the library raises for archives that are broken, encrypted, or of unknown kinds."""


class FileStays(Permanent):
    """A file that is not sent to anybody; the text says why, for the model."""


class NoSuchChat(Permanent):
    """In a group another chat was named that is none of the person's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileToSend:
    """A file as it is now. `name` is what people see."""

    path: str
    name: str
    content: bytes


class SendableFiles:
    """Reads files that may leave. Its methods block: call them in a thread."""

    def __init__(
        self, workspace: Workspace, *, bytes_max: int, clean: Callable[[str], str]
    ) -> None:
        """`clean` takes the secrets that are known out of a text: what it changes stays."""
        self._workspace = workspace
        self._bytes_max = bytes_max
        self._clean = clean

    def read(self, path: str, caller: Caller) -> FileToSend:
        """A file that may leave. Raises PathRefused, FileStays."""
        names = self._workspace.names(path)
        for name in names:
            # Raises FileStays for what is hidden, sets something, or keeps data of a program.
            folded = unicodedata.normalize("NFKC", name).casefold().rstrip(". ")
            if folded.startswith("."):
                raise FileStays(f"{path!r} is hidden, and hidden files are not sent")
            if folded in _CLOSED_NAMES or folded.endswith(_CLOSED_ENDINGS):
                raise FileStays(f"{path!r} may hold settings, keys or a database, and is not sent")
        content = self._workspace.read(path, caller, bytes_max=self._bytes_max)
        if not content:
            raise FileStays(f"{path!r} is empty: there is nothing to send")
        if content.startswith(_DATABASE):
            raise FileStays(f"{path!r} is a database, and databases are not sent")
        parts = (content, *_packed(content))
        if any(map(self._shows_secret, parts)) or self._clean(names[-1]) != names[-1]:
            raise FileStays(
                f"{path!r} holds a key, a token or a password, and is not sent: tell the person "
                "where it is, so that they can look themselves"
            )
        return FileToSend(path="/".join(names), name=_shown_name(names[-1]), content=content)

    def _shows_secret(self, content: bytes) -> bool:
        if _PRIVATE_KEY.search(content):
            return True
        # Without the zeros what was written with two or four bytes a letter reads like the rest.
        forms = (content, content.replace(b"\0", b"")) if b"\0" in content else (content,)
        for form in forms:
            # Piece by piece, so that nobody else waits for a large file.
            for start in range(0, len(form), SLICE_BYTES):
                piece = form[start : start + SLICE_BYTES + SECRET_BYTES_MAX]
                text = piece.decode("utf-8", errors="replace")
                if self._clean(text) != text:
                    return True
        return False


def _packed(content: bytes) -> Iterator[bytes]:
    """Yield what is in an archive, as documents of an office are, within bounds."""
    if not content.startswith(_ARCHIVE):
        return
    left = UNPACKED_BYTES_MAX
    with suppress(*_NO_ARCHIVE), zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist()[:MEMBERS_MAX]:
            with archive.open(member) as file:
                part = file.read(left)
            yield part
            left -= len(part)
            if left <= 0:
                return


def _shown_name(name: str) -> str:
    """A name without what nobody sees: a mark that turns the direction can hide an ending."""
    seen = "".join(letter for letter in name if letter.isprintable())
    stem, dot, ending = seen.rpartition(".")
    if not dot or len(ending) > NAME_CHARS_MAX // 4:
        return seen[:NAME_CHARS_MAX] or "file"
    return f"{stem[: NAME_CHARS_MAX - len(ending) - 1]}.{ending}"


MESSAGE_CHARS_MAX = 8_000


React = Callable[[Address, str, str], Awaitable[str]]
"""Puts an emoji on a message, by address and id; gives what is shown now: the emoji, or the nearest
that the platform has. May be called twice with the same. Raises AssistantError."""


class Messenger(Protocol):
    """Sends for the assistant: stored, then on its way. Raises AssistantError."""

    async def chats(self, person_id: PersonId) -> Sequence[OwnChat]:
        """The private chats of this person, in all channels."""

    async def send(self, lane: str, text: str, *, untrusted: bool) -> None:
        """A message joins the history of its chat; `untrusted` marks it there, as in
        `SqliteConversations.note`."""

    async def send_file(
        self, lane: str, file: FileToSend, *, caption: str, untrusted: bool | None
    ) -> None:
        """A copy of the file; it joins the history of its chat unless `untrusted` is None."""


Chat = Annotated[str, Field(description="such as slack or telegram:42; empty: this chat")]


class MessageTools:
    """Sends words and files, and reacts.

    A chat id that is wrong or missing becomes the current one (SPEC §6): a model must never be able
    to pick a stranger by a slip.
    """

    def __init__(self, messenger: Messenger, files: SendableFiles, react: React) -> None:
        self._messenger = messenger
        self._files = files
        self._react = react

    def _send_message_needs(self, caller: Caller, chat: str) -> Needs:
        """After outside text, another chat than this one is a new target."""
        wanted = chat.strip()
        return Needs(target="" if wanted in {"", caller.address.key} else wanted)

    @tool(
        "message",
        Effect.PERSON,
        redo="once",
        needs=_send_message_needs,
        status="sending a message …",
    )
    async def send_message(
        self,
        caller: Caller,
        text: Annotated[str, Field(min_length=1, max_length=MESSAGE_CHARS_MAX)],
        chat: Chat = "",
    ) -> str:
        """Send a message to another private chat of the person, or an extra one here. Your answer
        itself is delivered without it."""
        chats = await self._messenger.chats(caller.person_id)
        lane = chosen_chat(chat, chats) or caller.address.key
        untrusted = is_others_words(caller, lane)
        await self._messenger.send(lane, text, untrusted=untrusted)
        if lane == caller.address.key:
            return "Sent to this chat. Do not repeat it in your answer."
        return f"Sent to {lane}."

    def _send_file_needs(self, caller: Caller, chat: str) -> Needs:
        """A group is others too; after outside text another chat is a new target."""
        wanted = chat.strip()
        if wanted not in {"", caller.address.key}:
            return Needs(target=wanted)
        if caller.is_group:
            return Needs(asks="everybody in this group gets the file", once_only=True)
        return Needs()

    # In a group a chat that is wrong is refused, for others would read what was meant for one.
    @tool("message", Effect.PERSON, redo="once", needs=_send_file_needs, status="sending a file …")
    async def send_file(
        self,
        caller: Caller,
        path: Annotated[
            str, Field(min_length=1, max_length=PATH_CHARS_MAX, description="in the workspace")
        ],
        caption: Annotated[
            str,
            Field(max_length=CAPTION_CHARS_MAX, description="words that go with it, in Markdown"),
        ] = "",
        chat: Chat = "",
    ) -> str:
        """Send a file or picture of the workspace to the person, here or to another private chat
        of theirs. Write it first if it does not exist yet."""
        chats = await self._messenger.chats(caller.person_id)
        here, wanted = caller.address.key, chat.strip()
        lane = chosen_chat(wanted, chats)
        if caller.is_group and not lane and wanted not in {"", here}:
            raise NoSuchChat(
                f"the person has no private chat {wanted!r}; leave chat empty to send the file to "
                "this group"
            )
        lane = lane or here
        file = await asyncio.to_thread(self._files.read, path, caller)
        # In its own chat the call itself stands in the history.
        untrusted = None if lane == here else is_others_words(caller, lane)
        await self._messenger.send_file(lane, file, caption=caption.strip(), untrusted=untrusted)
        size = f"{len(file.content):,} bytes"
        if lane == here:
            return f"{file.name} ({size}) is on its way to this chat."
        return f"{file.name} ({size}) is on its way to {lane}."

    # In the current chat, and in no other.
    @tool("message", Effect.PERSON, redo="idempotent", status="reacting …")
    async def react(
        self,
        caller: Caller,
        emoji: Annotated[
            str, Field(min_length=1, max_length=EMOJI_CHARS_MAX, description="such as 👍")
        ],
        message: Annotated[
            str,
            Field(
                max_length=MESSAGE_ID_CHARS_MAX,
                description="id of another message of this chat; empty: the one that is being "
                "answered",
            ),
        ] = "",
    ) -> str:
        """Put an emoji reaction on the message that is being answered, such as 👍 for a thing that
        is noted or done. It comes beside your answer, which is sent all the same."""
        message_id = message.strip() or caller.message_id
        if not message_id:
            raise NothingToReactTo(
                "no message is being answered here, so there is none to react to"
            )
        shown = await self._react(caller.address, message_id, emoji.strip())
        return f"The reaction {shown} stands under the message."
