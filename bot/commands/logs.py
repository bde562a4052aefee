"""What `/logs` does: the last lines of the bot's own log, for its owner, in a private chat.

They are read from the log file, whose lines have lost every secret by their values. Of each line
stand here its time, its level, its event and what names or counts something: never what people,
models or pages said, which no line should hold in the first place.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

from bot.markup.command_text import bare
from bot.settings.logging import LOG_FILES_MAX

if TYPE_CHECKING:
    from bot.commands.command import CommandCall, Tools

LINES, LINES_MAX = 20, 200
BLOCK_BYTES = 65_536
LOOKED_AT_BYTES_MAX = 4_000_000
"""So far back lines are looked for: some ten thousand of them."""

LATELY = timedelta(days=1)
LATELY_LINES = 3
LATELY_BYTES_MAX = 1_000_000
"""How far back, how many, and within how much of the file `/status` looks for trouble."""

WHY_CHARS = 160
VALUE_CHARS = 60

USE = (
    f"`/logs` shows the last {LINES} lines of my log, `/logs 50` more (at most {LINES_MAX}), "
    "`/logs errors` warnings and errors alone, `/logs in-12` what belongs to one turn."
)
NO_FILE = "There is no log file at {file} to read. Its lines may go to the terminal alone."
UNREADABLE = "The log file {file} cannot be read: {why}."

LOUD = frozenset({"warning", "error", "critical"})
NAMED = ("turn", "run", "job", "conversation")
"""By which values of a line it belongs to a turn."""

SHOWN = (
    *("turn", "run", "conversation", "job", "slot", "lane", "chat", "inbox", "outbox", "person"),
    *("channel", "command", "model", "kind", "tool", "tools", "server", "skill", "state", "status"),
    *("finish", "calls", "tokens", "prompt_tokens", "completion_tokens", "cached_tokens", "chars"),
    *("cacheable", "changed", "count", "tries", "failures", "late_s", "step", "row", "part"),
    *("version", "code", "method"),
)
"""What of a line is shown, as it names or counts something. Texts are not among them."""

_EVENT = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*")
_RAISED = re.compile(r"^([A-Za-z_][\w.]*?)(?::|$)")
_PLACE = re.compile(r'^\s*File "([^"]*)", line ([0-9]+)', re.MULTILINE)
_TURN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:+/-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    """Which lines are asked for: so many of the last ones, of warnings and errors alone where
    `loud`, of one `turn` where that is named."""

    lines: int = LINES
    loud: bool = False
    turn: str = ""
    since: datetime | None = None
    """Nothing older; lines stand in their order, so the first older one ends the search."""

    @classmethod
    def of(cls, rest: str) -> LogQuery | None:
        """As it is typed behind the command; None for what means nothing."""
        words = rest.split()
        number = next((word for word in words if word.isascii() and word.isdecimal()), "")
        others = [word for word in words if word != number]
        if len(others) > 1 or (number and not 0 < int(number[:6]) <= 999_999):
            return None
        lines = min(int(number[:6]), LINES_MAX) if number else LINES
        if not others:
            return cls(lines=lines)
        if others[0].lower() in {"error", "errors"}:
            return cls(lines=lines, loud=True)
        if _TURN.fullmatch(others[0]) is None:
            return None
        return cls(lines=lines if number else LINES_MAX, turn=others[0])

    def takes(self, line: Mapping[str, object]) -> bool:
        """Return whether this line is one of those."""
        if self.loud:
            return line.get("level") in LOUD
        return not self.turn or any(line.get(name) == self.turn for name in NAMED)

    def is_over(self, line: Mapping[str, object]) -> bool:
        """Return whether this line, and with it each before it, is older than what is wanted."""
        at = _at(str(line.get("timestamp", ""))) if self.since is not None else None
        return at is not None and self.since is not None and at < self.since


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLines:
    """The lines, oldest first; `since` is the time of the oldest line that was looked at."""

    lines: tuple[Mapping[str, object], ...]
    since: str


class LogReader:
    """Answers `/logs`, and tells `/status` of trouble."""

    def __init__(self, file: Path, redact: Callable[[str], str]) -> None:
        """`redact` takes out secrets that came to be known after a line was written."""
        self._file = file
        self._redact = redact

    async def text(self, rest: str, zone: tzinfo) -> str:
        """Return the lines that are asked for, by this time zone."""
        wanted = LogQuery.of(rest)
        if wanted is None:
            return USE
        try:
            found = await asyncio.to_thread(find, self._file, wanted)
        except FileNotFoundError:
            return NO_FILE.format(file=bare(str(self._file)))
        except OSError as error:
            why = error.strerror or type(error).__name__
            return UNREADABLE.format(file=bare(str(self._file)), why=why)
        reach = f"I looked back to {_time(found.since, zone)} ({zone})."
        if not found.lines:
            return f"The log has nothing of that. {reach}"
        lines = [self._redact(line_text(line, zone)) for line in found.lines]
        return "\n".join(["```text", *lines, "```", reach])

    async def lately(self, now: datetime, zone: tzinfo) -> list[str]:
        """Return the newest warnings and errors of the last day for `/status`, the newest first,
        each in plain words without markup; a log that cannot be read is said to be so."""
        wanted = LogQuery(lines=LATELY_LINES, loud=True, since=now - LATELY)
        try:
            found = await asyncio.to_thread(
                find, self._file, wanted, looked_at_bytes_max=LATELY_BYTES_MAX
            )
        except FileNotFoundError:
            return []  # its lines may go to the terminal alone
        except OSError as error:
            why = error.strerror or type(error).__name__
            return [UNREADABLE.format(file=bare(str(self._file)), why=why)]
        return [bare(self._redact(plain_line(line, zone))) for line in reversed(found.lines)]


async def logs(tools: Tools, asked: CommandCall) -> str:
    """Show the last lines of the log."""
    return await tools.logs.text(asked.rest, tools.zone(asked.person))


# --- the file -----------------------------------------------------------------------------------


def find(
    file: Path,
    wanted: LogQuery,
    *,
    looked_at_bytes_max: int = LOOKED_AT_BYTES_MAX,
    block_bytes: int = BLOCK_BYTES,
) -> FoundLines:
    """Return the last lines that are wanted, of the log file and those that it was turned over to.

    Blocks. Raises FileNotFoundError where there is no log file, OSError where it cannot be read.
    What is no line of ours is passed over.
    """
    found: list[Mapping[str, object]] = []
    since = ""
    left = looked_at_bytes_max
    older = (file.with_name(f"{file.name}.{number}") for number in range(1, LOG_FILES_MAX))
    for path in [file, *(path for path in older if path.exists())]:
        for raw in _backwards(path, left, block_bytes=block_bytes):
            left -= len(raw) + 1
            try:
                line = json.loads(raw)
            except (ValueError, RecursionError):
                continue
            if not isinstance(line, dict):
                continue
            if wanted.is_over(line):
                return FoundLines(lines=tuple(reversed(found)), since=since)
            since = str(line.get("timestamp", since))
            if wanted.takes(line):
                found.append(line)
                if len(found) == wanted.lines:
                    return FoundLines(lines=tuple(reversed(found)), since=since)
        if left <= 0:
            break
    return FoundLines(lines=tuple(reversed(found)), since=since)


def _backwards(path: Path, bytes_max: int, *, block_bytes: int) -> Iterator[bytes]:
    """Return the lines of a file from its end, as far as `bytes_max` reach."""
    with path.open("rb") as opened:
        at = opened.seek(0, os.SEEK_END)
        end = max(0, at - max(0, bytes_max))
        rest = b""
        while at > end:
            start = max(end, at - block_bytes)
            opened.seek(start)
            block = opened.read(at - start) + rest
            first, *lines = block.split(b"\n")
            yield from reversed([line for line in lines if line])
            rest, at = first, start
        if rest and end == 0:
            yield rest


# --- as text ------------------------------------------------------------------------------------


def line_text(line: Mapping[str, object], zone: tzinfo) -> str:
    """Return `28 Nov 17:03:09 warning model.error turn=in-12 model=gpt-4.1`: one line without
    markup."""
    parts = [_time(str(line.get("timestamp", "")), zone), _plain(line.get("level"))]
    parts.append(_event(line))
    for name in SHOWN:
        value = line.get(name)
        is_list = isinstance(value, list) and all(isinstance(one, str | int) for one in value)
        if value not in (None, "", []) and (is_list or isinstance(value, str | int | float)):
            parts.append(f"{name}={_plain(value)}")
    if raised := _raised(line):
        parts.append(raised)
    elif why := _why(line):
        parts.append(f"why={why}")
    return " ".join(part for part in parts if part)


def plain_line(line: Mapping[str, object], zone: tzinfo) -> str:
    """Return `28 Nov 17:03:09, warning: model error, the provider is busy`: for people who only
    want to know whether all is well."""
    said = _event(line)
    if not said.startswith("("):
        said = said.replace(".", " ").replace("_", " ")
    # What a server said last stands in its own line of `/status`, and is not ours.
    is_servers = str(line.get("event", "")).startswith("mcp.")
    more = _raised(line).replace("raised=", "raised ") or ("" if is_servers else _why(line))
    head = f"{_time(str(line.get('timestamp', '')), zone)}, {_plain(line.get('level'))}"
    return f"{head}: {said}, {more}" if more else f"{head}: {said}"


def _event(line: Mapping[str, object]) -> str:
    """Return its fixed name. What libraries log is a text of theirs, with anything in it."""
    event = line.get("event")
    if isinstance(event, str) and _EVENT.fullmatch(event):
        return event
    return f"(a line of {_plain(line.get('logger')) or 'a library'}: see the file)"


def _why(line: Mapping[str, object]) -> str:
    """Return a reason, which is a sentence of ours about what went wrong. That of a job may be what
    its run said."""
    why = line.get("why") or line.get("reason")
    if line.get("level") not in LOUD or str(line.get("event", "")).startswith("job."):
        return ""
    return _plain(why, chars_max=WHY_CHARS) if isinstance(why, str) else ""


def _raised(line: Mapping[str, object]) -> str:
    """Return what was raised, and where: its words may be anybody's."""
    traceback = line.get("exception")
    if not isinstance(traceback, str):
        return ""
    last = traceback.strip().rsplit("\n", 1)[-1]
    kind = _RAISED.match(last)
    places = _PLACE.findall(traceback)
    at = f" at {Path(places[-1][0]).name}:{places[-1][1]}" if places else ""
    return f"raised={_plain(kind[1]) if kind else 'an error'}{at}"


def _plain(value: object, *, chars_max: int = VALUE_CHARS) -> str:
    """On one line, and not able to end the block of code that it stands in."""
    if isinstance(value, list):
        value = ",".join(map(str, value))
    text = " ".join(str("" if value is None else value).split()).replace("`", "'")
    text = "".join(char if char.isprintable() else "?" for char in text)
    return text if len(text) <= chars_max else f"{text[:chars_max]}…"


def _at(timestamp: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _time(timestamp: str, zone: tzinfo) -> str:
    at = _at(timestamp)
    if at is None:
        return "(no time)"
    local = at.astimezone(zone)
    return f"{local.day} {local:%b %H:%M:%S}"
