"""The workspace folder, and the one place where its paths are opened (threat T10, case SE-09).

A path is checked as text first, then walked folder by folder from a handle on the root: no step
follows a link, so nothing that is swapped in meanwhile can lead outside. Called by the file tools;
every other reader or writer of workspace files on somebody's behalf goes through here too.
Methods block: call them in a thread.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import stat
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path
from urllib.parse import quote, unquote

from agent.tools.edits import (
    TooMuchBeside,
    id_of,
    is_leftover,
    is_same,
    many_named,
    replace,
)
from agent.tools.tool import Caller
from memory.records.errors import Permanent, StorageFull, StorageReadOnly
from memory.records.messages import Role

READ_BYTES_MAX = 5_000_000
WRITE_BYTES_MAX = 1_000_000
ENTRIES_MAX = 500
FILES_BELOW_MAX = 10_000
DEPTH_MAX = 32

RESULTS = ("files", "results")
"""Where long tool results are kept, in one folder for each chat."""

STEERING_FILES = frozenset(
    {"agents.md", "soul.md", "user.md", "identity.md", "tools.md", "heartbeat.md"}
)
NOTES = "memory"
"""The folder of notes, which become part of prompts."""

STEERING_FOLDERS = frozenset({"prompts", "skills", "agents"})
"""What the assistant is made of. Writing it always asks (SPEC §6)."""
STEERS = "steers the assistant"

UNBIDDEN = frozenset({"sitecustomize", "usercustomize"})
"""Modules that Python runs at each start, whatever it was started for; so it does with `.pth`
files.

What a program names itself, or is known to take (a Makefile, tests and their conftest.py, modules
of its own folder), is not asked about: who agrees to `make` agrees to the Makefile that is there.
"""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_INNER_FOLDER = _FOLDER | os.O_NOFOLLOW
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Parts = tuple[str, ...]


class PathRefused(Permanent):
    """A path that may not, or cannot, be used; the text says why, for the model."""


class PathMissing(PathRefused):
    """There is nothing under this path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderEntry:
    """One name in a folder. `kind` is file, folder, link or other."""

    name: str
    kind: str
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The first entries of a folder by name; `total` counts all that the caller may see."""

    entries: tuple[FolderEntry, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """What a file held; `status` is None where there was none."""

    content: bytes
    status: os.stat_result | None


class Workspace:
    """Reads, writes and lists below `root` for a Caller, and nowhere else.

    Raises PathRefused with a sentence for the model, StorageFull and StorageReadOnly.
    """

    def __init__(
        self, root: Path, *, home: Path | None = None, steering: Iterable[Path] = ()
    ) -> None:
        """What lies in `home` beside the root is not read either by a hard link to it. `steering`
        are files and folders that settings make part of prompts; those outside of the root, and the
        root itself, count for nothing here."""
        self._root = root.resolve()
        self._home = None if home is None else home.resolve()
        self._named_roots = (self._root, Path(os.path.abspath(root)))  # noqa: PTH100 - keeps links
        # Whether a file is still the same is looked at, and it is replaced, in one go.
        self._replacing = threading.Lock()
        self.changing = asyncio.Lock()
        """Held from the look at a file until it is replaced: changes wait for each other."""
        self._steering = frozenset(found for path in steering for found in self._named(path))

    def read(
        self,
        path: str,
        caller: Caller,
        *,
        bytes_max: int = READ_BYTES_MAX,
        missing: bytes | None = None,
    ) -> bytes:
        """The whole content of a regular file; `missing` where there is none, if it is given."""
        parts = self._allowed(path, caller, writing=False)
        return self._read(path, parts, bytes_max=bytes_max, missing=missing).content

    def _read(self, path: str, parts: Parts, *, bytes_max: int, missing: bytes | None) -> FileRead:
        with _in_plain_words(path):
            if not parts:
                raise IsADirectoryError
            try:
                with self._folder(parts[:-1]) as folder:
                    _check_kind(os.lstat(parts[-1], dir_fd=folder), path)
                    handle = os.open(parts[-1], _READ, dir_fd=folder)
            except FileNotFoundError:
                if missing is None:
                    raise
                return FileRead(content=missing, status=None)
            with os.fdopen(handle, "rb") as file:
                # Before it is read: what another program writes meanwhile makes it another file.
                status = os.fstat(handle)
                _check_kind(status, path)
                self._check_names(status, path)
                content = file.read(bytes_max + 1)  # a file can grow while it is read
        if len(content) > bytes_max:
            raise PathRefused(
                f"{_shown(path)} is too large to read: {status.st_size:,} bytes "
                f"(at most {bytes_max:,})"
            )
        return FileRead(content=content, status=status)

    def _check_names(self, status: os.stat_result, path: str) -> None:
        """Hard links of a package store or of git are fine; one to our own database is not."""
        if self._home is None or status.st_nlink == 1:
            return
        try:
            is_beside = id_of(status) in many_named(self._home, self._root)
        except TooMuchBeside:
            is_beside = True
        if is_beside:
            raise PathRefused(f"{_shown(path)} is a second name of a file outside the workspace")

    def write(
        self, path: str, content: bytes, caller: Caller, *, bytes_max: int = WRITE_BYTES_MAX
    ) -> bool:
        """Makes or replaces a file as a whole, with its folders; True if it is new.

        After a kill or a full disk there is the old content or the new one, never a part.
        """
        _check_size(content, bytes_max)
        parts = self._allowed(path, caller, writing=True)
        with _in_plain_words(path), self._replacing:
            if not parts:
                raise IsADirectoryError
            with self._folder(parts[:-1], make=True) as folder:
                is_new = False
                try:
                    _check_kind(os.lstat(parts[-1], dir_fd=folder), path)
                except FileNotFoundError:
                    is_new = True
                replace(parts[-1], folder, content, is_due=lambda _: True)
                return is_new

    def look(self, path: str, caller: Caller, *, missing: bytes | None = None) -> FileRead:
        """Read a file that is about to be replaced by `swap`."""
        parts = self._allowed(path, caller, writing=True)
        return self._read(path, parts, bytes_max=READ_BYTES_MAX, missing=missing)

    def swap(self, path: str, caller: Caller, content: bytes, *, former: FileRead) -> bool:
        """Replace a file, as `write` does, if it is still what `look` found; True if it is new.

        Raise ChangedMeanwhile where it is not, and then nothing was written.
        """
        _check_size(content, WRITE_BYTES_MAX)
        parts = self._allowed(path, caller, writing=True)
        is_new = former.status is None
        with (
            _in_plain_words(path),
            self._replacing,
            self._folder(parts[:-1], make=is_new) as folder,
        ):
            replace(parts[-1], folder, content, is_due=lambda now: is_same(now, former.status))
        return is_new

    def steering(self, path: str, caller: Caller) -> str:
        """Why a person has to agree before a call writes here; empty when nobody has to.

        Raises PathRefused as `write` does.
        """
        parts = self._parts(path)
        if why := closed_to(caller, parts):
            raise PathRefused(f"{_shown(path)} {why}")
        what = self._what_it_does(parts)
        return f"{_shown(path)} {what}" if what else ""

    def kept(self, path: str) -> str:
        """Return the path below the workspace of a file that is protected like facts (notes, and
        what steers the assistant); empty for any other. Raises PathRefused if it leads outside."""
        parts = self._parts(path)
        is_note = bool(parts) and _folded(parts[0]) == NOTES
        return "/".join(parts) if is_note or self._what_it_does(parts) == STEERS else ""

    def names(self, path: str) -> Parts:
        """The path as names below the root. Raises PathRefused where it leads outside."""
        return self._parts(path)

    def lasting(self, path: str) -> str:
        """Return what writing here does for later prompts; empty when none is made of it."""
        parts = self._parts(path)
        return "it is remembered for good" if parts and _folded(parts[0]) == NOTES else ""

    def entries(self, path: str, caller: Caller, *, entries_max: int = ENTRIES_MAX) -> Listing:
        """Return what is in a folder, without what the caller may not see."""
        parts = self._allowed(path, caller, writing=False)
        with _in_plain_words(path), self._folder(parts) as folder, os.scandir(folder) as found:
            names = [
                entry.name
                for entry in found
                if not closed_to(caller, (*parts, entry.name)) and not is_leftover(entry.name)
            ]
            first = nsmallest(entries_max, names)
            return Listing(
                entries=tuple(_described(name, folder) for name in first), total=len(names)
            )

    def files_below(self, path: str, caller: Caller) -> FilesBelow:
        """The regular files below a folder that the caller may read."""
        return FilesBelow(self, path.strip("/") or ".", caller)

    def _allowed(self, path: str, caller: Caller, *, writing: bool) -> Parts:
        parts = self._parts(path)
        if why := closed_to(caller, parts):
            raise PathRefused(f"{_shown(path)} {why}")
        if writing and not caller.agreed and (what := self._what_it_does(parts)):
            raise PathRefused(
                f"{_shown(path)} {what}, and is written only once the owner has agreed"
            )
        return parts

    def _what_it_does(self, parts: Parts) -> str:
        """Of what is written here, beyond being there; empty for what is asked about nowhere."""
        names = tuple(_folded(part) for part in parts)
        if steers(parts) or any(names[:depth] in self._steering for depth in range(len(names) + 1)):
            return STEERS
        # Programs take it in although nobody named it to them: hidden files and folders hold what
        # shells, git and others are set up by.
        is_unbidden = any(
            name.startswith(".") or name.endswith(".pth") or name.partition(".")[0] in UNBIDDEN
            for name in names
        )
        return "may change what programs do later" if is_unbidden else ""

    def _named(self, path: Path) -> Iterator[Parts]:
        """A path of the settings as names below the root, with its links and without them."""
        for place in (Path(os.path.abspath(path)), path.resolve()):  # noqa: PTH100 - keeps links
            for root in self._named_roots:
                if place != root and place.is_relative_to(root):
                    yield tuple(_folded(part) for part in place.relative_to(root).parts)

    def _parts(self, path: str) -> Parts:
        """The path as names below the root, by its text alone. Empty for the root itself."""
        if re.search("[\x00-\x1f\x7f\\\\\ud800-\udfff]", path):
            raise PathRefused(f"{_shown(path)} has characters that no path here may have")
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/|file:", path, re.IGNORECASE):
            raise PathRefused(f"{_shown(path)} is a URL: give a path in the workspace")
        if path.startswith("~"):
            raise PathRefused(f"{_shown(path)} is outside the workspace: '~' is not available")
        if any(unquote(part) == ".." for part in path.split("/")):
            raise PathRefused(f"{_shown(path)} may not contain '..'")
        below = path
        if path.startswith("/"):
            root = next((one for one in self._named_roots if Path(path).is_relative_to(one)), None)
            if root is None:
                raise PathRefused(
                    f"{_shown(path)} is outside the workspace: give a path relative to it"
                )
            below = str(Path(path).relative_to(root))
        parts = tuple(part for part in below.split("/") if part not in {"", "."})
        if len(parts) > DEPTH_MAX:
            raise PathRefused(f"{_shown(path)} is too deep (at most {DEPTH_MAX} folders)")
        return parts

    @contextmanager
    def _folder(self, parts: Parts, *, make: bool = False) -> Iterator[int]:
        """A handle on a folder, reached name by name; `make` makes those that are missing."""
        handle = os.open(self._root, _FOLDER)
        try:
            for part in parts:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=handle)
                outer, handle = handle, os.open(part, _INNER_FOLDER, dir_fd=handle)
                os.close(outer)
            yield handle
        finally:
            os.close(handle)


class FilesBelow:
    """One walk below a folder: folder by folder, by name. Only the first folder can refuse it."""

    def __init__(self, workspace: Workspace, top: str, caller: Caller) -> None:
        self._workspace = workspace
        self._top = top
        self._caller = caller
        self.passed_over = 0
        """Folders further in that could not be listed: too deep, oddly named, closed or gone."""

    def __iter__(self) -> Iterator[str]:
        waiting = [self._top]
        while waiting:
            folder = waiting.pop()
            inner = []
            try:
                found = self._workspace.entries(folder, self._caller, entries_max=FILES_BELOW_MAX)
            except PathRefused:
                if folder == self._top:
                    raise
                self.passed_over += 1
                continue
            for entry in found.entries:
                below = entry.name if folder == "." else f"{folder}/{entry.name}"
                if entry.kind == "folder":
                    inner.append(below)
                elif entry.kind == "file":
                    yield below
            waiting.extend(reversed(inner))


def closed_to(caller: Caller, parts: Parts) -> str:
    """Why this caller may neither see nor change a path; empty if it may (cases SE-09, SE-17).

    Notes and USER.md are the owner's, `memory/people/<id>/` is that person's, both in private
    chats alone. A kept result is open in the chat where it arose. Secrets are nobody's.
    """
    names = tuple(_folded(part) for part in parts)
    if any(name == ".env" or name.startswith(".env.") for name in names):
        return "may hold secrets, and is closed"
    if names[:1] == ("user.md",) or names[:1] == ("memory",):
        if caller.is_group:
            return "is private, and closed in group chats"
        if names[:2] == ("memory", "people") and len(parts) > 2:
            return "" if parts[2] == caller.person_id else "belongs to another person"
        return "" if caller.role is Role.OWNER else "is for the owner alone"
    if names[:2] == RESULTS and len(parts) > 2 and parts[2] != results_folder(caller):
        return "belongs to another chat"
    return ""


def steers(parts: Parts) -> bool:
    """Return whether a path steers the assistant by its name alone."""
    first = _folded(parts[0]) if parts else ""
    return first in STEERING_FILES or first in STEERING_FOLDERS


def results_folder(caller: Caller) -> str:
    """The folder's name for long results of the caller's chat: `telegram+42`."""
    return "+".join(quote(part, safe="") for part in caller.address.key.split(":"))


def _folded(name: str) -> str:
    """A name as the most lenient file system compares it: case, width, marks, trailing dots."""
    text = unicodedata.normalize("NFKC", name).casefold()
    text = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    return text.rstrip(". ") or text


def _check_kind(status: os.stat_result, path: str) -> None:
    """Refuses all but regular files, before an open that could have effects of its own."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError
    if stat.S_ISLNK(status.st_mode):
        raise PathRefused(f"{_shown(path)} is a link, and links are not followed")
    if not stat.S_ISREG(status.st_mode):
        raise PathRefused(f"{_shown(path)} is not a regular file")


def _check_size(content: bytes, bytes_max: int) -> None:
    if len(content) > bytes_max:
        raise PathRefused(
            f"{len(content):,} bytes are too many for one file (at most {bytes_max:,})"
        )


def _described(name: str, folder: int) -> FolderEntry:
    try:
        status = os.lstat(name, dir_fd=folder)
    except OSError:  # gone since the scan, or in a folder that tells names alone
        return FolderEntry(name=name, kind="other")
    if stat.S_ISDIR(status.st_mode):
        return FolderEntry(name=name, kind="folder")
    if stat.S_ISREG(status.st_mode):
        return FolderEntry(name=name, kind="file", size_bytes=status.st_size)
    return FolderEntry(name=name, kind="link" if stat.S_ISLNK(status.st_mode) else "other")


_SENTENCES = {
    errno.ENOENT: "does not exist in the workspace",
    errno.EISDIR: "is a folder, not a file",
    errno.ENOTDIR: "is not a folder, or leads through a link (links are not followed)",
    errno.ELOOP: "is a link, and links are not followed",
    errno.ENAMETOOLONG: "has a name that is too long",
    errno.EACCES: "may not be opened by the assistant",
    errno.EPERM: "may not be opened by the assistant",
    errno.ENXIO: "is not a regular file",
}


@contextmanager
def _in_plain_words(path: str) -> Iterator[None]:
    try:
        yield
    except IsADirectoryError as error:
        raise PathRefused(f"{_shown(path)} {_SENTENCES[errno.EISDIR]}") from error
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise StorageFull("the disk is full; nothing was written") from error
        if error.errno == errno.EROFS:
            raise StorageReadOnly("the workspace cannot be written; nothing was changed") from error
        sentence = _SENTENCES.get(error.errno or 0, f"cannot be used ({error.strerror})")
        refused = PathMissing if error.errno == errno.ENOENT else PathRefused
        raise refused(f"{_shown(path)} {sentence}") from error


def _shown(path: str) -> str:
    return repr(path if len(path) <= 200 else path[:200] + "…")
