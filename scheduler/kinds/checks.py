"""Cheap looks at whether a heartbeat is worth a model call: a file or page changed, something is
unread, a command says so.

They act on the world only through what they are given: pages come from the guarded client, commands
run where the owner's tools run.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path

import structlog

from agent.tools.arguments import ArgumentsWrong, parse_arguments
from agent.tools.groups.exec import Order, Runner
from agent.tools.tool import Caller, Effect
from agent.tools.toolbox import Toolbox
from agent.web.client import WebClient, WebRequest
from memory.records.errors import AssistantError, Permanent
from memory.records.messages import Address, ConversationId, PersonId, Role, RunId

log = structlog.get_logger()

FILE_BYTES_MAX = 20_000_000
"""Of a file whose content is compared; of a larger one, size and time."""

FOLDER_ENTRIES_MAX = 2_000

TARGET_CHARS_MAX = 2_000

NOTHING_UNREAD = frozenset({"", "0", "none", "null", "no", "[]", "{}", "false", "(no output)"})
"""What a tool answers that has nothing new."""

COMMAND_TIMEOUT_S = 30.0
_EXIT_CODE = re.compile(r"exit code (\d+)")

KINDS = ("file", "url", "tool", "command")


class CheckFailed(Permanent):
    """A check could not be made, or is written wrongly."""


class CheckMeans:
    """What checks act through: the `folder` where files are looked for, pages, tools, commands.
    Everything raises AssistantError."""

    def __init__(
        self,
        folder: Path,
        client: WebClient,
        toolbox: Toolbox,
        runner: Runner,
        *,
        owner: Callable[[], PersonId | None],
    ) -> None:
        self.folder = folder
        self._client = client
        self._toolbox = toolbox
        self._runner = runner
        self._owner = owner

    async def fetch(self, url: str) -> str:
        """Return the text of a page, as it came."""
        fetched = await self._client.fetch(WebRequest(url=url))
        if fetched.status >= 400:
            raise CheckFailed(f"the page answered with HTTP status {fetched.status}")
        return fetched.body.decode(fetched.charset or "utf-8", "replace")

    async def call(self, name: str) -> str:
        """Return what a tool that changes nothing says, called without arguments."""
        await self._toolbox.ready()
        tool = self._toolbox.get(name)
        if tool is None:
            raise CheckFailed(f"there is no tool {name[:64]!r}")
        if tool.card.effect is not Effect.NONE:
            raise CheckFailed(f"{name} changes something, so it is no check")
        try:
            arguments = parse_arguments(tool.card.arguments, "{}")
        except ArgumentsWrong as error:
            raise CheckFailed(f"{name} cannot be called without arguments: {error}") from error
        return await tool.run(arguments, self._caller())

    async def run(self, command: str) -> int:
        """Return the exit code of a program, run as `exec` runs one."""
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise CheckFailed(f"{command[:80]!r} cannot be read: {error}") from error
        order = Order(command=words, folder=self._runner.root, timeout_s=COMMAND_TIMEOUT_S)
        found = _EXIT_CODE.search(await self._runner.run(order, self._caller()))
        if found is None:
            raise CheckFailed("the program did not end by itself")
        return int(found[1])

    def _caller(self) -> Caller:
        owner = self._owner()
        if owner is None:
            raise CheckFailed("nobody owns this bot yet")
        return Caller(
            person_id=owner,
            role=Role.OWNER,
            address=Address(channel="job", chat_id="check"),
            conversation=ConversationId("check"),
            run_id=RunId("check"),
            unattended=True,
            agreed=True,
        )


class Check:
    """A look, as the settings name it: `file:notes/todo.md` has another content than before, or a
    folder other files; `url:https://…` says something else, blanks aside; `tool:mail__unread` names
    something that waits, and something else than before; `command:test -s /var/mail/me` ends with 0
    for something to see to, with 1 for nothing.

    Never raises: a page that does not answer must not stop the heartbeat. Trouble is logged, once
    until it works again, and counts as no change.
    """

    def __init__(self, text: str, means: CheckMeans, marks: FileMarks) -> None:
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
            with os.scandir(path) as entries:
                stats = {
                    entry.name: entry.stat(follow_symlinks=False)
                    for entry in islice(entries, FOLDER_ENTRIES_MAX)
                }
            seen = [f"{name}\0{one.st_size}\0{one.st_mtime_ns}" for name, one in stats.items()]
            return _digest("\n".join(sorted(seen)))
        found = path.stat()
        if found.st_size > FILE_BYTES_MAX:
            return f"{found.st_size} {found.st_mtime_ns}"
        return sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise CheckFailed(f"{path} cannot be read: {error.strerror}.") from error


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
