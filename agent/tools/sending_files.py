"""`send_file`, of the group `message`: a file of the workspace, to a chat that the person owns.

What leaves is read through the same confinement as by the file tools, and looked at first: hidden
files, settings, databases and whatever holds a secret stay (threats T10 and T12).
"""

from __future__ import annotations

import asyncio
import io
import lzma
import re
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from pydantic import Field

from agent.errors import Permanent
from agent.messages import PersonId
from agent.tools.arguments import Arguments
from agent.tools.own_chats import OwnChat, chosen_chat, is_others_words
from agent.tools.tool import Caller, Effect, Needs, ToolCard, Trust
from agent.tools.workspace import Workspace

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """How a file joins a history; `untrusted` as in `Conversations.note`."""

    untrusted: bool


class FileSender(Protocol):
    """Sends files for the assistant. Raises AssistantError."""

    async def chats(self, person_id: PersonId) -> Sequence[OwnChat]:
        """The private chats of this person, in all channels."""

    async def send_file(
        self, lane: str, file: FileToSend, *, caption: str, noted: Noted | None
    ) -> None:
        """Copied and stored, then on its way; with `noted` it joins the history of its chat."""


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
            _check_name(name, path)
        content = self._workspace.read(path, caller, bytes_max=self._bytes_max)
        if not content:
            raise FileStays(f"{path!r} is empty: there is nothing to send")
        if content.startswith(_DATABASE):
            raise FileStays(f"{path!r} is a database, and databases are not sent")
        if self._has_secret(content) or self._clean(names[-1]) != names[-1]:
            raise FileStays(
                f"{path!r} holds a key, a token or a password, and is not sent: tell the person "
                "where it is, so that they can look themselves"
            )
        return FileToSend(path="/".join(names), name=_shown_name(names[-1]), content=content)

    def _has_secret(self, content: bytes) -> bool:
        return any(self._shows_secret(part) for part in (content, *_packed(content)))

    def _shows_secret(self, content: bytes) -> bool:
        if _PRIVATE_KEY.search(content):
            return True
        # Without the zeros what was written with two or four bytes a letter reads like the rest.
        forms = (content, content.replace(b"\0", b"")) if b"\0" in content else (content,)
        return any(self._clean(text) != text for form in forms for text in _slices(form))


def _slices(content: bytes) -> Iterator[str]:
    """The content as text, piece by piece, so that nobody else waits for a large file."""
    for start in range(0, len(content), SLICE_BYTES):
        piece = content[start : start + SLICE_BYTES + SECRET_BYTES_MAX]
        yield piece.decode("utf-8", errors="replace")


def _packed(content: bytes) -> Iterator[bytes]:
    """What is in an archive, as documents of an office are, within bounds."""
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


class SendFileArguments(Arguments):
    """Which file, with which words, and where to."""

    path: str = Field(min_length=1, max_length=PATH_CHARS_MAX, description="in the workspace")
    caption: str = Field(
        default="", max_length=CAPTION_CHARS_MAX, description="words that go with it, in Markdown"
    )
    chat: str = Field(default="", description="such as slack or telegram:42; empty: this chat")


class SendFile:
    """A file of the workspace, to this chat or to another of the person's private chats.

    A chat that is wrong or missing becomes the current one, as for `send_message`; in a group it
    is refused, for others would read what was meant for one.
    """

    card = ToolCard(
        name="send_file",
        description=(
            "Send a file or picture of the workspace to the person, here or to another private "
            "chat of theirs. Write it first if it does not exist yet."
        ),
        arguments=SendFileArguments,
        group="message",
        effect=Effect.PERSON,
        redo="once",
        trust=Trust.OURS,
        status="sending a file …",
    )

    def __init__(self, sender: FileSender, files: SendableFiles) -> None:
        self._sender = sender
        self._files = files

    def needs(self, arguments: SendFileArguments, caller: Caller) -> Needs:
        """See SaysNeeds: a group is others too; after outside text another chat is a new target."""
        wanted = arguments.chat.strip()
        if wanted not in {"", caller.address.key}:
            return Needs(target=wanted)
        if caller.is_group:
            return Needs(asks="everybody in this group gets the file", once_only=True)
        return Needs()

    async def run(self, arguments: SendFileArguments, caller: Caller) -> str:
        """What is on its way, and where to."""
        chats = await self._sender.chats(caller.person_id)
        here, wanted = caller.address.key, arguments.chat.strip()
        lane = chosen_chat(wanted, chats)
        if caller.is_group and not lane and wanted not in {"", here}:
            raise NoSuchChat(
                f"the person has no private chat {wanted!r}; leave chat empty to send the file to "
                "this group"
            )
        lane = lane or here
        file = await asyncio.to_thread(self._files.read, arguments.path, caller)
        # In its own chat the call itself stands in the history.
        noted = None if lane == here else Noted(untrusted=is_others_words(caller, lane))
        await self._sender.send_file(lane, file, caption=arguments.caption.strip(), noted=noted)
        size = f"{len(file.content):,} bytes"
        if lane == here:
            return f"{file.name} ({size}) is on its way to this chat."
        return f"{file.name} ({size}) is on its way to {lane}."


def _check_name(name: str, path: str) -> None:
    """Raises FileStays for what is hidden, sets something, or keeps data of a program."""
    folded = unicodedata.normalize("NFKC", name).casefold().rstrip(". ")
    if folded.startswith("."):
        raise FileStays(f"{path!r} is hidden, and hidden files are not sent")
    if folded in _CLOSED_NAMES or folded.endswith(_CLOSED_ENDINGS):
        raise FileStays(f"{path!r} may hold settings, keys or a database, and is not sent")


def _shown_name(name: str) -> str:
    """A name without what nobody sees: a mark that turns the direction can hide an ending."""
    seen = "".join(letter for letter in name if letter.isprintable())
    stem, dot, ending = seen.rpartition(".")
    if not dot or len(ending) > NAME_CHARS_MAX // 4:
        return seen[:NAME_CHARS_MAX] or "file"
    return f"{stem[: NAME_CHARS_MAX - len(ending) - 1]}.{ending}"
