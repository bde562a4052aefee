"""In which form a picture that came is shown to a model: as it is, as a smaller copy, or not.

The copy is kept beside the picture and read for every later request, so that the same bytes are
sent each time. Called by `agent.files.attachments`.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import structlog

from agent.files.scaler import (
    INSTALL,
    PictureDamaged,
    PictureTooLarge,
    PillowScaler,
)
from agent.files.sniff import Signature
from agent.files.values import size_of
from agent.tools.tool import Caller
from agent.tools.workspace import Workspace
from memory.records.errors import AssistantError, Temporary
from memory.records.messages import RunId, TurnInput
from memory.records.transcript import Entry, Note, Picture

PICTURE_BYTES_MAX = 3_750_000
PICTURE_SIDE_MAX = 8_000
"""What every provider takes of one picture."""

_MARKS = (b"Exif\0\0", b"eXIf", b"EXIF", b"ns.adobe.com/xap", b"adobe.xmp", b"Photoshop 3.0")
"""Where it was taken, when, by which camera, and which side is up."""
_MOVES = {"image/gif": b"NETSCAPE2.0", "image/webp": b"ANIM"}
"""Of several frames: not every provider takes such pictures."""

_ENDINGS = {"image/png": ".shown.png", "image/jpeg": ".shown.jpg"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFile:
    """What became of a file: `said` about it, and what it holds. `text` is from outside, and may be
    read on at `rest`; `beside` is where a smaller copy of the picture lies; `transcript` are the
    person's own words; `kept` are the files that it takes in the workspace."""

    said: str
    name: str = ""
    text: str = ""
    rest: str = ""
    picture: Picture | None = None
    picture_bytes: int = 0
    beside: str = ""
    transcript: str = ""
    kept: tuple[str, ...] = ()


class PicturesShown:
    """Pictures in the form in which models get them. Without a `scaler` none is made smaller."""

    def __init__(self, workspace: Workspace, scaler: PillowScaler | None, *, side_max: int) -> None:
        self._workspace = workspace
        self._scaler = scaler
        self._side_max = side_max

    async def shown(
        self, path: str, content: bytes, found: Signature, caller: Caller
    ) -> OpenedFile:
        """Return what goes on with the sentence about the picture at `path`, and in which form it
        is shown. May be repeated. Raises AssistantError where a copy cannot be kept."""
        about = f", {found.width} by {found.height} pixels"
        moves = _MOVES.get(found.media_type)
        wants_copy = (
            len(content) > PICTURE_BYTES_MAX
            or max(found.width, found.height) > self._side_max
            or (moves is not None and moves in content)
            or _tells(content)
        )
        if self._scaler is None or not wants_copy:
            return _as_it_is(path, found, about=about, size=len(content))
        try:
            made = await self._scaler.scaled(
                content, side_max=self._side_max, bytes_max=PICTURE_BYTES_MAX
            )
        except PictureDamaged as error:
            return OpenedFile(said=f"{about}. {error}, and cannot be shown")
        except (PictureTooLarge, Temporary) as error:
            if _fits(found, len(content)) and not _tells(content):
                return _as_it_is(path, found, about=about, size=len(content))
            return OpenedFile(
                said=f"{about}. {error}, so you cannot see it: ask for a smaller copy"
            )
        beside = f"{path}{_ENDINGS[made.media_type]}"
        await asyncio.to_thread(
            self._workspace.write, beside, made.content, caller, bytes_max=PICTURE_BYTES_MAX
        )
        picture = Picture(
            path=beside, media_type=made.media_type, width=made.width, height=made.height
        )
        if max(made.width, made.height) < max(found.width, found.height):
            about += f", made smaller for you ({made.width} by {made.height})"
        return OpenedFile(
            said=about, picture=picture, picture_bytes=len(made.content), beside=beside
        )


def _fits(found: Signature, size: int) -> bool:
    return size <= PICTURE_BYTES_MAX and max(found.width, found.height) <= PICTURE_SIDE_MAX


def _tells(content: bytes) -> bool:
    """Return whether it holds notes of a camera or program, which no provider needs to have. By the
    bytes alone: what only looks like a note costs a copy."""
    return any(mark in content for mark in _MARKS)


def _as_it_is(path: str, found: Signature, *, about: str, size: int) -> OpenedFile:
    if not _fits(found, size):
        return OpenedFile(
            said=f"{about}. It is too large to be shown to you (at most "
            f"{size_of(PICTURE_BYTES_MAX)} and {PICTURE_SIDE_MAX:,} pixels a side): ask for a "
            f"smaller copy. Where the owner runs {INSTALL} larger ones are made smaller"
        )
    picture = Picture(
        path=path, media_type=found.media_type, width=found.width, height=found.height
    )
    return OpenedFile(said=about, picture=picture, picture_bytes=size)


# --- pictures -----------------------------------------------------------------------------------
#
# Reads the pictures of a conversation from the workspace, in the form in which models get them.
#
# Called by the step `model`, each time a request is built: only where they lie is stored.

log = structlog.get_logger()


def caller_of(run_id: RunId, turn: TurnInput) -> Caller:
    """For whom the files of a turn's messages are kept and read."""
    return Caller(
        person_id=turn.person_id,
        role=turn.role,
        address=turn.message.address,
        conversation=turn.conversation,
        run_id=run_id,
        is_group=turn.message.is_group,
    )


class KeptPictures:
    """The pictures in a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def urls(self, entries: Iterable[Entry], caller: Caller) -> Mapping[str, str]:
        """A `data:` URL for each picture by its path; empty for one that is gone or closed."""
        notes = (entry for entry in entries if isinstance(entry, Note))
        wanted = [picture for note in notes for picture in note.pictures]

        def url(picture: Picture) -> str:
            try:
                content = self._workspace.read(picture.path, caller)
            except AssistantError as error:
                log.info("picture.gone", why=str(error))
                return ""
            return f"data:{picture.media_type};base64,{base64.b64encode(content).decode()}"

        # One after the other, in a thread: a picture has megabytes.
        return await asyncio.to_thread(lambda: {one.path: url(one) for one in wanted})
