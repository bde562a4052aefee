"""What is known of MCP servers: their options, the tools they list, what a call gave."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import structlog

from agent.tools.tool import Trust
from memory.records.errors import Permanent, Temporary
from memory.records.rows import ApprovedTool

CALL_S = 60.0
REFRESH_S = 600.0


class ServerStart(StrEnum):
    """When a server is started: with the bot, or when a message first has need of tools."""

    LAZY = "lazy"
    EAGER = "eager"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """One `[mcp.NAME]`. A `command` is run on this machine; else `url` is spoken to.

    `tools`: globs of what is offered, empty for all. `read_only` and `outside` are globs by which
    the owner corrects what the server says of its tools; `outside` wins. `trust` is of what it
    returns; with `is_trusted` it may be told whatever a conversation holds. `env` and `headers` may
    hold secrets. All globs are matched with the names as the server gives them. The list of tools
    is read again after `refresh_s`.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    about: str = ""
    tools: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    trust: Trust = Trust.UNTRUSTED
    is_trusted: bool = False
    timeout_s: float = CALL_S
    refresh_s: float = REFRESH_S
    start: ServerStart = ServerStart.LAZY


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds. A server that fails is started again after `backoff_s` x 2^n, n up to
    `backoff_doublings`; `steady_s` without trouble make n zero again.

    A list that is said to have changed is read at once, and again no sooner than after `reread_s`,
    however often that is said. A warning is not logged again within `warn_s`."""

    connect_s: float = 60.0
    list_s: float = 20.0
    backoff_s: float = 10.0
    backoff_doublings: int = 5
    steady_s: float = 60.0
    reread_s: float = 5.0
    warn_s: float = 60.0

    def pause_s(self, failures: int) -> float:
        """Return how long to wait after this many failures in a row (at least one)."""
        return float(self.backoff_s * 2 ** min(failures - 1, self.backoff_doublings))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTool:
    """A tool as its server lists it: nothing here is ours, and nothing of it was checked."""

    name: str
    description: str
    schema: Mapping[str, Any]
    read_only: bool = False
    idempotent: bool = False


class Health(StrEnum):
    """How a server is."""

    IDLE = "idle"
    STARTING = "starting"
    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerHealth:
    """The same with reasons: `trouble` is a sentence, `retry_s` when it is tried again."""

    health: Health
    trouble: str = ""
    retry_s: float | None = None
    server: str = ""
    """Name and version as the server gives them."""


class Decision(StrEnum):
    """Whether the owner let a tool be offered, as it is now."""

    APPROVED = "approved"
    NEW = "new"
    CHANGED = "changed"
    NOT_WANTED = "not wanted"
    """Left out by the globs of the settings."""


class ToolApprovals(Protocol):
    """Keeps which tools of which servers were approved. Raises StorageError."""

    async def approved(self, server: str) -> Mapping[str, ApprovedTool] | None:
        """By tool; None for a server that was never seen."""

    async def approve(self, server: str, tools: Sequence[ApprovedTool]) -> None:
        """Adds or replaces; from now on the server was seen, also with no tools."""


class ServerDown(Temporary):
    """The server cannot be reached now; the text says so, and when it is tried again."""


class ServerRefused(Permanent):
    """The server's own word that a call failed, or an answer of it that nobody can read."""


# --- listing ------------------------------------------------------------------------------------
#
# A server's list of tools, put right before the SDK reads it: there, one tool that is not quite
# to the letter makes the whole list unreadable (case TO-07). Pure.

HINTS = ("readOnlyHint", "idempotentHint")


def mended(result: object) -> int:
    """Mends the result of a `tools/list` in place; leaves any other as it is.

    Of each tool stays what we use: what it promises of its results is not held against it. Returns
    how many entries were left out, since nobody can read them.
    """
    if not isinstance(result, dict) or not isinstance(result.get("tools"), list):
        return 0
    tools: list[dict[str, Any]] = []
    for entry in (listed := result["tools"]):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            continue
        schema = entry.get("inputSchema")
        if not isinstance(schema, dict) or schema.get("type", "object") != "object":
            schema = {}  # Arguments are an object; the rest of a schema is looked at later.
        made = {"name": entry["name"], "inputSchema": {**schema, "type": "object"}}
        made |= {k: entry[k] for k in ("title", "description") if isinstance(entry.get(k), str)}
        if isinstance(hints := entry.get("annotations"), dict):
            made["annotations"] = {k: hints[k] for k in HINTS if isinstance(hints.get(k), bool)}
        tools.append(made)
    result["tools"] = tools
    return len(listed) - len(tools)


_log = structlog.get_logger(__name__)


class RareWarnings:
    """A log of what is wrong with one server, each kind once in so many seconds: a server may list
    the same trouble again and again."""

    def __init__(self, server: str, timing: Timing) -> None:
        self._server = server
        self._every_s = timing.warn_s
        self._said_at: dict[str, float] = {}

    def warn(self, event: str, *, now: float, **facts: Any) -> None:
        """Whatever is passed over is said with the first look after that time."""
        if now - self._said_at.get(event, -math.inf) >= self._every_s:
            self._said_at[event] = now
            _log.warning(event, server=self._server, **facts)
