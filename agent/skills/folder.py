"""The folder of a skill on the disk: which files it has, whether they changed, what they hold.

No link is followed, and nothing but regular files is opened. Called by the shelf and by
`installing`. Everything here blocks: call it in a thread.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from agent.skills.front_matter import Unreadable

SKILL_FILE = "SKILL.md"
FILES_MAX = 2_000
BYTES_MAX = 20_000_000
DEPTH_MAX = 16

LEFT_OUT = frozenset({".git", "__pycache__", ".DS_Store", "Thumbs.db", "__MACOSX"})
"""What systems and interpreters leave behind: no part of a skill."""

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Stamp = tuple[str, int, int, int, int]
"""A file below the folder: path with slashes, size in bytes, times of content and inode, inode.

A plain tuple, for these are made and compared by the hundred every two seconds.
"""


def stamps(folder: str, *, files_max: int = FILES_MAX) -> tuple[Stamp, ...]:
    """All files, by path. Of more than `files_max`, that many and one.

    Raises Unreadable for links, devices and folders that are too deep, and OSError.
    """
    found: list[Stamp] = []
    waiting = [("", folder)]
    while waiting and len(found) <= files_max:
        prefix, path = waiting.pop()
        if prefix.count("/") > DEPTH_MAX:
            raise Unreadable(f"its folders are more than {DEPTH_MAX} deep")
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name in LEFT_OUT:
                    continue
                name = prefix + entry.name
                if entry.is_symlink():
                    raise Unreadable(f"{shown(name)} is a link, and links are not followed")
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((name + "/", entry.path))
                elif entry.is_file(follow_symlinks=False):
                    found.append(_stamp(name, entry.stat(follow_symlinks=False)))
                else:
                    raise Unreadable(f"{shown(name)} is neither a file nor a folder")
    return tuple(sorted(found))


def read_file(path: str, *, bytes_max: int) -> bytes:
    """A regular file's content, at most `bytes_max` and one byte. Raises OSError, Unreadable."""
    handle = os.open(path, _READ)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Unreadable(f"{shown(Path(path).name)} is not a regular file")
        return file.read(bytes_max + 1)


def digest(
    folder: str, files: tuple[Stamp, ...], *, instead: Mapping[str, bytes] | None = None
) -> str:
    """Names the content of all files, wherever the folder stands. Empty for a folder too large.

    `instead` holds content that counts in place of a file's. Raises OSError and Unreadable.
    """
    if len(files) > FILES_MAX or sum(stamp[1] for stamp in files) > BYTES_MAX:
        return ""
    sums = sha256()
    for part in _content(folder, files, instead or {}):
        sums.update(len(part).to_bytes(8, "big") + part)
    return sums.hexdigest()


def shown(name: str) -> str:
    """A name from the disk as text that is safe in a log and in a prompt."""
    return name if name.isprintable() else ascii(name)


def _content(
    folder: str, files: tuple[Stamp, ...], instead: Mapping[str, bytes]
) -> Iterator[bytes]:
    room = BYTES_MAX
    for name, *_ in files:
        content = instead.get(name)
        if content is None:
            content = read_file(f"{folder}/{name}", bytes_max=room)
        room -= len(content)
        if room < 0:
            raise Unreadable("it grew while it was read")
        yield os.fsencode(name)
        yield content


def _stamp(name: str, found: os.stat_result) -> Stamp:
    return (name, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
