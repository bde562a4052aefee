"""Private copies of files on their way out: what a person changes meanwhile changes nothing of it.

Called by `bot.outbox.outbox`. A copy is named by its content, and goes once nothing needs it any
more. All functions block: call them in a thread.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from memory.records.errors import Permanent, StorageFull, StorageReadOnly

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME = re.compile(r"[0-9a-f]{64}|\.[0-9a-f]{16}\.part")


class CopyGone(Permanent):
    """The copy of a file is not there any more, or is not what it was."""


class OutgoingFiles:
    """The copies in one folder, which is nobody else's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, content: bytes) -> str:
        """Makes a copy; its digest. On the disk before this returns.

        Raises StorageFull, StorageReadOnly.
        """
        digest = hashlib.sha256(content).hexdigest()
        part = self._folder / f".{secrets.token_hex(8)}.part"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(part, _CREATE, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._folder / digest)
            folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            with suppress(OSError):
                part.unlink()
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                raise StorageFull("the disk is full; the file was not sent") from error
            raise StorageReadOnly(
                f"a file cannot be copied to be sent ({error.strerror}); see that the folder data "
                "of the home can be written"
            ) from error
        return digest

    def read(self, digest: str) -> bytes:
        """The content of a copy. Raises CopyGone."""
        gone = CopyGone("my copy of it is gone; ask me to send it anew")
        if _NAME.fullmatch(digest) is None:
            raise gone
        try:
            with os.fdopen(os.open(self._folder / digest, _READ), "rb") as file:
                content = file.read()
        except OSError as error:
            raise gone from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise CopyGone("my copy of it is damaged; ask me to send it anew")
        return content

    def sweep(self, needed: Collection[str]) -> int:
        """Removes all but these, and what a kill left half made; how many went. What cannot be
        removed now is tried again the next time."""
        swept = 0
        with suppress(OSError):
            for path in self._folder.iterdir():
                if path.name not in needed and _NAME.fullmatch(path.name):
                    with suppress(OSError):
                        path.unlink()
                        swept += 1
        return swept
