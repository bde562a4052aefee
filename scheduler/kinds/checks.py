"""Cheap looks at whether a heartbeat is worth a model call: a file or page changed, something is
unread, a command says so. Each implements `scheduler.kinds.agent_turn.Check`.

They act on the world only through what they are given: pages come from the guarded client, commands
run where the owner's tools run.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import structlog

from memory.records.errors import AssistantError, Permanent
from scheduler.kinds.agent_turn import Check

log = structlog.get_logger()

FILE_BYTES_MAX = 20_000_000
"""Of a file whose content is compared; of a larger one, size and time."""

FOLDER_ENTRIES_MAX = 2_000

TARGET_CHARS_MAX = 2_000

NOTHING_UNREAD = frozenset({"", "0", "none", "null", "no", "[]", "{}", "false", "(no output)"})
"""What a tool answers that has nothing new."""

YES, NO = 0, 1
"""What a command says by its exit code; any other one is trouble."""


class CheckFailed(Permanent):
    """A check could not be made, or is written wrongly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSpec:
    """A check as the settings name it: `file:notes/todo.md`, `url:https://…`, `tool:mail__unread`,
    `command:test -s /var/mail/me`."""

    kind: str
    target: str

    @property
    def name(self) -> str:
        """As it was written; the key of its mark too."""
        return f"{self.kind}:{self.target}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What checks act through. `folder` is where files are looked for. `fetch` gives the text of a
    page, `call` what a tool answers, `run` the exit code of a command; all raise AssistantError.
    """

    folder: Path
    fetch: Callable[[str], Awaitable[str]]
    call: Callable[[str], Awaitable[str]]
    run: Callable[[str], Awaitable[int]]


def read_check(text: str) -> CheckSpec:
    """Raises CheckFailed, with what is allowed."""
    kind, _, target = text.strip().partition(":")
    target = target.strip()
    if kind not in KINDS or not target or len(target) > TARGET_CHARS_MAX:
        raise CheckFailed(
            f"{text[:80]!r} is no check. It takes file:PATH, url:ADDRESS, tool:NAME or "
            "command:COMMAND."
        )
    if kind == "url" and not target.startswith(("https://", "http://")):
        raise CheckFailed(f"{text[:80]!r}: the address of a page begins with https://.")
    return CheckSpec(kind=kind, target=target)


KINDS = ("file", "url", "tool", "command")


def checks_of(specs: Sequence[CheckSpec], means: Means, marks: FileMarks) -> tuple[Check, ...]:
    """One for each spec. None of them raises: what cannot be looked at has not changed."""
    return tuple(Patient(_check(spec, means, marks)) for spec in specs)


def _check(spec: CheckSpec, means: Means, marks: FileMarks) -> Check:
    match spec.kind:
        case "file":
            return FileChanged(spec.name, means.folder / spec.target, marks)
        case "url":
            return PageChanged(spec.name, spec.target, means.fetch, marks)
        case "tool":
            return Unread(spec.name, spec.target, means.call, marks)
        case "command":
            return CommandSays(spec.name, spec.target, means.run)
        case _:
            raise CheckFailed(f"{spec.name[:80]!r} is no check.")


class Patient:
    """A check whose trouble is logged, once until it works again, and counts as no change: a page
    that does not answer must not stop the heartbeat."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._is_troubled = False

    @property
    def name(self) -> str:
        """Of the check."""
        return self._check.name

    async def __call__(self) -> bool:
        """Whether something has changed."""
        try:
            changed = await self._check()
        except AssistantError as trouble:
            if not self._is_troubled:
                log.warning("heartbeat.check", check=self.name, why=str(trouble))
            self._is_troubled = True
            return False
        self._is_troubled = False
        return changed


class FileChanged:
    """A file has another content than before, or a folder holds other files."""

    def __init__(self, name: str, path: Path, marks: FileMarks) -> None:
        self.name = name
        self._path = path
        self._marks = marks

    async def __call__(self) -> bool:
        """Raises CheckFailed where it may not be read. What is not there has not changed."""
        return await asyncio.to_thread(self._look)

    def _look(self) -> bool:
        try:
            state = _folder_state(self._path) if self._path.is_dir() else _file_state(self._path)
        except FileNotFoundError:
            state = ""
        except OSError as error:
            raise CheckFailed(f"{self._path} cannot be read: {error.strerror}.") from error
        # What was deleted is forgotten, so that it is news when it comes again.
        return _is_new(self._marks, self.name, state) and bool(state)


class PageChanged:
    """A page says something else than before; blanks and their number do not count."""

    def __init__(
        self, name: str, address: str, fetch: Callable[[str], Awaitable[str]], marks: FileMarks
    ) -> None:
        self.name = name
        self._address = address
        self._fetch = fetch
        self._marks = marks

    async def __call__(self) -> bool:
        """Raises what `fetch` raises, CheckFailed."""
        text = " ".join((await self._fetch(self._address)).split())
        if not text:
            return False
        return await asyncio.to_thread(_is_new, self._marks, self.name, _digest(text))


class Unread:
    """A tool names something that waits: a number above 0, a list with entries, words. Told again
    only when that is another one."""

    def __init__(
        self, name: str, tool: str, call: Callable[[str], Awaitable[str]], marks: FileMarks
    ) -> None:
        self.name = name
        self._tool = tool
        self._call = call
        self._marks = marks

    async def __call__(self) -> bool:
        """Raises what `call` raises, CheckFailed."""
        answer = (await self._call(self._tool)).strip()
        state = "" if is_nothing(answer) else _digest(answer)
        return await asyncio.to_thread(_is_new, self._marks, self.name, state) and bool(state)


class CommandSays:
    """A command ends with 0 where there is something to see to, and with 1 where there is not."""

    def __init__(self, name: str, command: str, run: Callable[[str], Awaitable[int]]) -> None:
        self.name = name
        self._command = command
        self._run = run

    async def __call__(self) -> bool:
        """Raises what `run` raises, and CheckFailed for any other exit code."""
        code = await self._run(self._command)
        if code not in {YES, NO}:
            raise CheckFailed(
                f"{self._command[:80]!r} ended with {code}: it takes 0 for something to see to, "
                "and 1 for nothing."
            )
        return code == YES


def is_nothing(answer: str) -> bool:
    """Whether a tool says that nothing waits: no words, 0, an empty list, or JSON whose one number
    is 0."""
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


def _is_new(marks: FileMarks, key: str, state: str) -> bool:
    """Whether it was another one the last time; then it is kept."""
    if marks.get(key) == state:
        return False
    marks.put(key, state)
    return True


def _file_state(path: Path) -> str:
    found = path.stat()
    if found.st_size > FILE_BYTES_MAX:
        return f"{found.st_size} {found.st_mtime_ns}"
    return sha256(path.read_bytes()).hexdigest()


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
