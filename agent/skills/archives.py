"""Takes a skill's files out of a folder or an archive, with distrust (threat T20, case SE-21).

Nothing that an archive says of itself is believed: names are checked, sizes counted while
unpacking, links and devices refused; files are only ever made new, by name, below one folder.
Called by `agent.skills.install`. Everything here blocks: call it in a thread.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import struct
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from agent.skills.parser import Unreadable
from agent.skills.places import LEFT_OUT, shown, stamps
from memory.records.errors import Permanent

UNPACKED_BYTES_MAX = 10_000_000
ENTRIES_MAX = 500
ARCHIVE_BYTES_MAX = 12_000_000
PATH_BYTES_MAX = 512
NAME_BYTES_MAX = 200
DEPTH_MAX = 12
PIECE_BYTES = 65_536

_TAR_OVERHEAD_MAX = 4_000_000
"""Headers and padding of a tar file, beside what its files hold."""
_ZIP_ENTRY = b"PK\x01\x02"
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SPOILT = (
    gzip.BadGzipFile,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    LookupError,
    OverflowError,
    RecursionError,
    NotImplementedError,
    RuntimeError,
)
"""What the readers of the library raise over a damaged archive, beside OSError."""


class InstallRefused(Permanent):
    """A skill that is not taken in; the text says why, and what to do."""


Read = Callable[[int], bytes]
"""Gives at most so many bytes of a file; none at its end."""


@dataclass(slots=True)
class NewFolder:
    """A folder that is being filled: each name once, in any case of letters, within the caps."""

    path: Path
    _room: int = UNPACKED_BYTES_MAX
    _count: int = 0
    _kinds: dict[tuple[str, ...], tuple[tuple[str, ...], bool]] = field(default_factory=dict)

    def add_folder(self, raw: str) -> None:
        self._counted()
        parts = checked_name(raw)
        if parts and not LEFT_OUT.intersection(parts):
            self._claim(parts, is_file=False)

    def add_file(self, raw: str, read: Read) -> None:
        """Writes a file, without any right to be run. Raises InstallRefused, OSError."""
        self._counted()
        parts = checked_name(raw)
        if not parts:
            raise InstallRefused("an entry of the archive has no name")
        if LEFT_OUT.intersection(parts) or parts[-1].startswith("._"):
            return
        self._claim(parts, is_file=True)
        target = self.path.joinpath(*parts)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(target, _CREATE, 0o600), "wb") as file:
            while piece := read(PIECE_BYTES):
                self._room -= len(piece)
                if self._room < 0:
                    raise InstallRefused(f"it is larger than {UNPACKED_BYTES_MAX:,} bytes unpacked")
                file.write(piece)

    def _counted(self) -> None:
        self._count += 1
        if self._count > ENTRIES_MAX:
            raise InstallRefused(f"it has more than {ENTRIES_MAX} files and folders")

    def _claim(self, parts: tuple[str, ...], *, is_file: bool) -> None:
        """Refuses a name that is there already, also where only the case of letters differs."""
        for n in range(1, len(parts) + 1):
            part, is_leaf = parts[:n], is_file and n == len(parts)
            key = tuple(unicodedata.normalize("NFKC", name).casefold() for name in part)
            before = self._kinds.setdefault(key, (part, is_leaf))
            is_new = before[0] is part
            if not is_new and (before != (part, is_leaf) or is_leaf):
                names = f"{shown('/'.join(part))} and {shown('/'.join(before[0]))}"
                raise InstallRefused(f"it holds two entries that are one: {names}")


def checked_name(raw: str) -> tuple[str, ...]:
    """An entry's name as folders and file below the new folder. Raises InstallRefused."""
    parts = tuple(part for part in raw.split("/") if part not in {"", "."})
    why = ""
    if not raw.isprintable() or "\ufffd" in raw:
        why = "has characters that no name may have"
    elif raw.startswith("/") or re.match(r"[A-Za-z]:", raw) or raw.startswith("~"):
        why = "does not lie below the archive"
    elif "\\" in raw or ":" in raw:
        why = "has a backslash or a colon"
    elif ".." in parts:
        why = "leads out of the archive"
    elif len(parts) > DEPTH_MAX or len(raw.encode()) > PATH_BYTES_MAX:
        why = "is too long or too deep"
    elif any(
        part != part.strip() or part.endswith(".") or len(part.encode()) > NAME_BYTES_MAX
        for part in parts
    ):
        why = "has a name that some systems cannot keep"
    elif any(map(_RESERVED.fullmatch, parts)):
        why = "has a name that some systems keep for devices"
    if why:
        raise InstallRefused(f"the entry {shown(raw[:80])} {why}")
    return parts


def unpack(source: Path, into: NewFolder) -> None:
    """All files of a folder, a zip or a tar archive. Raises InstallRefused and OSError."""
    found = source.lstat()
    if stat.S_ISDIR(found.st_mode):
        _copy(source, into)
        return
    if not stat.S_ISREG(source.stat().st_mode):
        raise InstallRefused(f"{source} is neither a folder nor an archive")
    with source.open("rb") as file:
        data = file.read(ARCHIVE_BYTES_MAX + 1)
    if len(data) > ARCHIVE_BYTES_MAX:
        raise InstallRefused(f"{source.name} is larger than {ARCHIVE_BYTES_MAX:,} bytes")
    try:
        if data.startswith(b"PK\x03\x04"):
            _unzip(data, into)
        elif data.startswith(b"\x1f\x8b"):
            _untar(gzip.GzipFile(fileobj=io.BytesIO(data)).read, into)
        elif data[257:262] == b"ustar":
            _untar(io.BytesIO(data).read, into)
        else:
            raise InstallRefused(f"{source.name} is no folder, zip, tar or tar.gz archive")
    except _SPOILT as error:
        raise InstallRefused(f"{source.name} is damaged, or no archive: {error}") from error


def _copy(source: Path, into: NewFolder) -> None:
    try:
        files = stamps(str(source), files_max=ENTRIES_MAX)
    except Unreadable as error:
        raise InstallRefused(f"{source.name}: {error}") from error
    for name, *_ in files:
        handle = os.open(source / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise InstallRefused(f"{shown(name)} is not a regular file")
            into.add_file(name, file.read)


def _unzip(data: bytes, into: NewFolder) -> None:
    # Counted before the library makes an object of each.
    if data.count(_ZIP_ENTRY) > 4 * ENTRIES_MAX:
        raise InstallRefused(f"it has more than {ENTRIES_MAX} files and folders")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            name = shown(entry.orig_filename[:80])
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
                raise InstallRefused(f"{name} is a link or a device")
            if entry.flag_bits & 0x1:
                raise InstallRefused(f"{name} is encrypted")
            if entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                raise InstallRefused(
                    f"{name} is packed in a way that is not read here; use plain zip"
                )
            if entry.is_dir():
                into.add_folder(entry.orig_filename)
            else:
                with archive.open(entry) as content:
                    into.add_file(entry.orig_filename, content.read)


def _untar(read: Read, into: NewFolder) -> None:
    bounded = _BoundedStream(read)
    with tarfile.open(fileobj=bounded, mode="r|", errorlevel=2) as archive:  # type: ignore[call-overload]
        for entry in archive:
            name = shown(entry.name[:80])
            if entry.isdir():
                into.add_folder(entry.name)
            elif not entry.isreg() or entry.issparse():
                raise InstallRefused(f"{name} is a link or a device")
            else:
                content = archive.extractfile(entry)
                if content is None:
                    raise InstallRefused(f"{name} cannot be read")
                into.add_file(entry.name, content.read)


@dataclass(slots=True)
class _BoundedStream:
    """A stream that ends with a refusal: headers alone can claim gigabytes."""

    source: Read
    _room: int = UNPACKED_BYTES_MAX + _TAR_OVERHEAD_MAX

    def read(self, size: int) -> bytes:
        piece = self.source(min(size, self._room + 1))
        self._room -= len(piece)
        if self._room < 0:
            raise InstallRefused(f"it is larger than {UNPACKED_BYTES_MAX:,} bytes unpacked")
        return piece
