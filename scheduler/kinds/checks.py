"""Cheap looks at whether a heartbeat is worth a model call: a file or page changed, something is
unread, a command says so.

They act on the world only through what they are given: pages come from the guarded client, commands
run where the owner's tools run.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import structlog

from memory.records.errors import AssistantError, Permanent

log = structlog.get_logger()

FILE_BYTES_MAX = 20_000_000
"""Of a file whose content is compared; of a larger one, size and time."""

FOLDER_ENTRIES_MAX = 2_000

TARGET_CHARS_MAX = 2_000

NOTHING_UNREAD = frozenset({"", "0", "none", "null", "no", "[]", "{}", "false", "(no output)"})
"""What a tool answers that has nothing new."""

KINDS = ("file", "url", "tool", "command")


class CheckFailed(Permanent):
    """A check could not be made, or is written wrongly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What checks act through. `folder` is where files are looked for. `fetch` gives the text of a
    page, `call` what a tool answers, `run` the exit code of a command; all raise AssistantError.
    """

    folder: Path
    fetch: Callable[[str], Awaitable[str]]
    call: Callable[[str], Awaitable[str]]
    run: Callable[[str], Awaitable[int]]


class Check:
    """A look, as the settings name it: `file:notes/todo.md` has another content than before, or a
    folder other files; `url:https://…` says something else, blanks aside; `tool:mail__unread` names
    something that waits, and something else than before; `command:test -s /var/mail/me` ends with 0
    for something to see to, with 1 for nothing.

    Never raises: a page that does not answer must not stop the heartbeat. Trouble is logged, once
    until it works again, and counts as no change.
    """

    def __init__(self, text: str, means: Means, marks: FileMarks) -> None:
        """Raise CheckFailed, with what is allowed."""
        self._kind, _, target = text.strip().partition(":")
        self._target = target.strip()
        if self._kind not in KINDS or not 0 < len(self._target) <= TARGET_CHARS_MAX:
            raise CheckFailed(
                f"{text[:80]!r} is no check. It takes file:PATH, url:ADDRESS, tool:NAME or "
                "command:COMMAND."
            )
        if self._kind == "url" and not self._target.startswith(("https://", "http://")):
            raise CheckFailed(f"{text[:80]!r}: the address of a page begins with https://.")
        self.name = f"{self._kind}:{self._target}"
        self._means = means
        self._marks = marks
        self._is_troubled = False

    async def __call__(self) -> bool:
        """Return whether something has changed since the last time it said so."""
        try:
            changed = await self._look()
        except AssistantError as trouble:
            if not self._is_troubled:
                log.warning("heartbeat.check", check=self.name, why=str(trouble))
            self._is_troubled = True
            return False
        self._is_troubled = False
        return changed

    async def _look(self) -> bool:
        match self._kind:
            case "command":
                code = await self._means.run(self._target)
                if code not in {0, 1}:
                    raise CheckFailed(
                        f"{self._target[:80]!r} ended with {code}: it takes 0 for something to see "
                        "to, and 1 for nothing."
                    )
                return code == 0
            case "url":
                text = " ".join((await self._means.fetch(self._target)).split())
                if not text:
                    return False  # a page without words is a page that did not load
                state = _digest(text)
            case "tool":
                answer = (await self._means.call(self._target)).strip()
                state = "" if is_nothing(answer) else _digest(answer)
            case _:
                state = await asyncio.to_thread(_state_of, self._means.folder / self._target)
        # What is gone is forgotten, so that it is news when it comes again.
        return await asyncio.to_thread(self._marks.is_new, self.name, state) and bool(state)


def is_nothing(answer: str) -> bool:
    """Return whether a tool says that nothing waits: no words, 0, an empty list, or JSON whose one
    number is 0."""
    if answer.casefold().rstrip(".") in NOTHING_UNREAD:
        return True
    try:
        said = json.loads(answer)
    except (ValueError, RecursionError):
        return False
    if isinstance(said, Mapping):
        counts = [one for one in said.values() if isinstance(one, int) and one is not True]
        lists = [one for one in said.values() if isinstance(one, list)]
        return bool(counts or lists) and not any(counts) and not any(lists)
    return not said


# --- what was seen ---------------------------------------------------------------------------


class FileMarks:
    """What checks saw when they last said that something has changed, in a small JSON file. May
    block. One that cannot be read counts as empty: the worst that follows is one model call too
    many."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, str] | None = None

    def get(self, key: str) -> str:
        """Return what was seen; empty: nothing ever."""
        if self._known is None:
            self._known = self._read()
        return self._known.get(key, "")

    def put(self, key: str, value: str) -> None:
        """Keep it whole, or not at all. Raise CheckFailed."""
        known = {**(self._read() if self._known is None else self._known), key: value}
        new = self._path.with_suffix(".new")
        try:
            handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(known, file)
            new.replace(self._path)
        except OSError as error:
            with suppress(OSError):
                new.unlink()
            raise CheckFailed(f"{self._path} cannot be written: {error.strerror}.") from error
        self._known = known

    def _read(self) -> dict[str, str]:
        try:
            said = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            log.warning("heartbeat.marks", file=str(self._path), why=f"{error}"[:200])
            return {}
        if not isinstance(said, dict):
            return {}
        return {key: value for key, value in said.items() if isinstance(value, str)}

    def is_new(self, key: str, state: str) -> bool:
        """Return whether it was another one the last time; then keep it. Raise CheckFailed."""
        if self.get(key) == state:
            return False
        self.put(key, state)
        return True


def _state_of(path: Path) -> str:
    """Return what a file or a folder holds, as a digest; empty where there is none. Raise
    CheckFailed where it may not be read."""
    try:
        if path.is_dir():
            return _folder_state(path)
        found = path.stat()
        if found.st_size > FILE_BYTES_MAX:
            return f"{found.st_size} {found.st_mtime_ns}"
        return sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise CheckFailed(f"{path} cannot be read: {error.strerror}.") from error


def _folder_state(path: Path) -> str:
    seen = []
    with os.scandir(path) as entries:
        for number, entry in enumerate(entries):
            if number >= FOLDER_ENTRIES_MAX:
                break
            found = entry.stat(follow_symlinks=False)
            seen.append(f"{entry.name}\0{found.st_size}\0{found.st_mtime_ns}")
    return _digest("\n".join(sorted(seen)))


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
