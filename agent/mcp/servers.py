"""All MCP servers of one bot, and the tools that they bring. Built by `bot.app`.

Each server has a connection with a task of its own, so that one can fail without the others. What
a server lists is offered once its content was approved: what a server lists when it is first seen
is, since the owner configured it; whatever it adds or changes later waits (threat T23).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import structlog

from agent.mcp.connection import Connection
from agent.mcp.process import misplaced_paths, server_folder
from agent.mcp.schema import ShownTool, effect_of, former_parameters, is_vouched_for, shown_tools
from agent.mcp.tools import ForeignTool, is_hidden, is_wanted, shown_name
from agent.mcp.values import (
    Decision,
    Health,
    RareWarnings,
    ServerHealth,
    ServerOptions,
    ServerStart,
    ServerTool,
    Timing,
    ToolApprovals,
)
from agent.mcp.wire import ResultReader
from agent.tools.tool import Caller, Effect, Tool, ToolCard
from agent.tools.workspace import Workspace
from memory.records.errors import Permanent, StorageError
from memory.records.rows import ApprovedTool

GROUP = "mcp"
LATE_S = 5.0
"""How much later than the connection the tool's own limit comes: the connection says more."""

CLOSING_S = 6.0
"""As long as a server gets to end by itself; then its processes are killed."""

TIMING = Timing()

_log = structlog.get_logger(__name__)


class McpRefused(Permanent):
    """Something that the owner wanted of a server cannot be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolState:
    """One tool of a server, offered or not, with what a model reads of it. `former` is the
    description that was approved, where the tool is another one now, and `former_parameters` what
    was shown of its parameters then; None where that is not known."""

    name: str
    tool: str
    decision: Decision
    digest: str
    description: str
    parameters: Mapping[str, Any]
    effect: Effect
    former: str = ""
    former_parameters: Mapping[str, Any] | None = None

    @property
    def is_offered(self) -> bool:
        return self.decision is Decision.APPROVED


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """One server as it is now, with its tools by name."""

    options: ServerOptions
    health: ServerHealth
    tools: tuple[ToolState, ...]

    @property
    def waiting(self) -> tuple[ToolState, ...]:
        """Tools that are off until they are approved."""
        return tuple(one for one in self.tools if one.decision in {Decision.NEW, Decision.CHANGED})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFolders:
    """Where servers live: beside the workspace, in which the files that they send are kept. Of the
    environment a command gets PATH, HOME and LANG."""

    workspace: Path
    env: Mapping[str, str]

    @property
    def servers(self) -> Path:
        """Holds the folder of each server."""
        return self.workspace.parent / "data" / "mcp"


class McpServers:
    """An async context manager: in it the servers run, and at its end they are gone.

    `version` grows with each change of `tools()`.
    """

    def __init__(
        self,
        servers: Sequence[ServerOptions],
        approvals: ToolApprovals,
        home: ServerFolders,
        *,
        reserved: Collection[str] = (),
        timing: Timing = TIMING,
    ) -> None:
        """`reserved` are the names of built-in tools, which no server gets."""
        reader = ResultReader(Workspace(home.workspace))
        self._workspace = home.workspace
        self._servers = {
            one.name: _McpServer(one, approvals, home, reader, reserved, timing)
            for one in sorted(servers, key=lambda one: one.name)
        }
        self._group: asyncio.TaskGroup | None = None

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._warn)
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()
        for server in self._servers.values():
            server.begin(self._group)
            if server.options.start is ServerStart.EAGER:
                server.connection.want()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._group is not None, "it was entered"
        await asyncio.gather(*(server.end() for server in self._servers.values()))
        # What was raised in here is not the servers' and goes its way as it is.
        await self._group.__aexit__(None, None, None)

    def _warn(self) -> None:
        """Of settings that were good as long as servers ran in the workspace."""
        for server in self._servers.values():
            for problem, fix in misplaced_paths(server.options, self._workspace):
                name = server.options.name
                _log.warning("mcp.path_in_workspace", server=name, reason=problem, fix=fix)

    @property
    def version(self) -> int:
        """Another one whenever `tools()` has changed."""
        return sum(server.version for server in self._servers.values())

    def tools(self) -> tuple[Tool, ...]:
        """Return what is offered now, by server and name. The tools of a server that is down stay,
        so that a prompt keeps its beginning; a call of one says that it is down."""
        return tuple(tool for server in self._servers.values() for tool in server.offered)

    def states(self) -> tuple[ServerState, ...]:
        """All servers, by name."""
        return tuple(server.state for server in self._servers.values())

    def wake(self) -> None:
        """Starts the lazy ones. Returns at once; for each message."""
        for server in self._servers.values():
            server.connection.want()

    async def settled(self, *, limit_s: float) -> None:
        """Waits until each wanted server is up or has failed once, but no longer than this."""
        waits = [
            server.connection.settled.wait()
            for server in self._servers.values()
            if server.connection.is_wanted
        ]
        try:
            async with asyncio.timeout(limit_s):
                await asyncio.gather(*waits)
        except TimeoutError:
            _log.info("mcp.not_settled", limit_s=limit_s)

    async def approve(
        self, server: str, tool: str = "", *, digests: Mapping[str, str] | None = None
    ) -> tuple[str, ...]:
        """Approves one tool, by the server's name for it or ours; all that wait without one.

        With `digests` (by the server's names) only exactly what was looked at. Returns the names
        of those that were approved. Raises McpRefused, StorageError.
        """
        found = self._servers.get(server)
        if found is None:
            known = ", ".join(self._servers) or "none"
            raise McpRefused(f"there is no MCP server {server[:64]!r} (there are: {known})")
        return await found.approve(tool, digests)


class _McpServer:
    """One server: its connection, and what became of its tools."""

    def __init__(
        self,
        options: ServerOptions,
        approvals: ToolApprovals,
        home: ServerFolders,
        reader: ResultReader,
        reserved: Collection[str],
        timing: Timing,
    ) -> None:
        self.options = options
        self.offered: tuple[Tool, ...] = ()
        self.version = 0
        self.connection = Connection(
            options,
            folder=partial(server_folder, home.servers, options.name, workspace=home.workspace),
            env=home.env,
            listed=self._listed,
            timing=timing,
        )
        self._approvals = approvals
        self._reader = reader
        self._reserved = reserved
        self._warnings = RareWarnings(options.name, timing)
        self._found: Mapping[str, ShownTool] = {}
        self._states: tuple[ToolState, ...] = ()
        self._task: asyncio.Task[None] | None = None
        self._deciding = asyncio.Lock()

    def begin(self, group: asyncio.TaskGroup) -> None:
        """Starts the task; whether it connects is another matter."""
        self._task = group.create_task(self.connection.run(), name=f"mcp {self.options.name}")

    async def end(self) -> None:
        """Ends the server; one that will not end is ended."""
        assert self._task is not None, "it was begun"
        self.connection.close()
        if self.connection.health.health is Health.STARTING:
            self._task.cancel()  # nobody waits for it any more
        await asyncio.wait([self._task], timeout=CLOSING_S)
        self._task.cancel()

    @property
    def state(self) -> ServerState:
        return ServerState(options=self.options, health=self.connection.health, tools=self._states)

    async def approve(self, tool: str, digests: Mapping[str, str] | None) -> tuple[str, ...]:
        async with self._deciding:
            chosen = [one for one in self._states if not tool or tool in {one.tool, one.name}]
            if tool and not chosen:
                raise McpRefused(f"{self.options.name} has no tool {tool[:64]!r}")
            waiting = [one for one in chosen if not one.is_offered]
            waiting = [one for one in waiting if one.decision is not Decision.NOT_WANTED]
            for one in waiting:
                if digests is not None and digests.get(one.tool) != one.digest:
                    raise McpRefused(
                        f"{one.name} has changed since you looked at it: look at it again"
                    )
            approved = [self._found[one.tool].approved() for one in waiting]
            await self._approvals.approve(self.options.name, approved)
            await self._decide()
            return tuple(one.name for one in waiting)

    async def _listed(self, tools: Sequence[ServerTool]) -> None:
        """The server's list, new or again. What cannot be decided now stays as it was."""
        async with self._deciding:
            shown, unreadable = await asyncio.to_thread(shown_tools, tools, self._found)
            if unreadable:
                self._warn("mcp.unreadable", unreadable)
            # By their own names. Of two that would be called the same here, the later one is left
            # out; one that is not wanted takes no name from one that is.
            found: dict[str, ShownTool] = {}
            taken: set[str] = set()
            left_out: list[str] = []
            visible = [tool for tool in shown if not is_hidden(tool.listed.name)]
            for tool in sorted(visible, key=lambda one: not self._wants(one)):
                own = tool.listed.name
                name = self._name(own)
                if own not in found and name in taken:
                    left_out.append(name)
                elif own not in found:
                    found[own] = tool
                    taken.add(name)
            if left_out:
                self._warn("mcp.name_taken", left_out)
            self._found = found
            try:
                await self._decide()
            except StorageError as error:
                _log.warning("mcp.not_decided", server=self.options.name, reason=str(error))

    def _name(self, tool: str) -> str:
        return shown_name(self.options.name, tool, reserved=self._reserved)

    def _warn(self, event: str, tools: Sequence[str]) -> None:
        self._warnings.warn(event, now=asyncio.get_running_loop().time(), tools=tools)

    def _wants(self, tool: ShownTool) -> bool:
        return is_wanted(tool.listed.name, self.options.tools)

    async def _decide(self) -> None:
        approved = await self._approvals.approved(self.options.name)
        if approved is None:  # the owner has just configured it
            wanted = [tool for tool in self._found.values() if self._wants(tool)]
            first = await asyncio.to_thread(lambda: [tool.approved() for tool in wanted])
            await self._approvals.approve(self.options.name, first)
            approved = {one.tool: one for one in first}
        states = [self._state(tool, approved) for tool in self._found.values()]
        self._states = tuple(sorted(states, key=lambda one: one.name))
        # The former one, where neither a model nor the gate would see a difference.
        former = {tool.card.name: tool for tool in self.offered}
        offered: list[Tool] = []
        for state in self._states:
            if state.is_offered:
                tool = self._tool(state)
                old, new = former.get(state.name, tool), tool.card
                is_same = old.card.spec() == new.spec()
                is_same &= (old.card.effect, old.card.redo) == (new.effect, new.redo)
                offered.append(old if is_same else tool)
        if tuple(offered) != self.offered:
            self.offered = tuple(offered)
            self.version += 1
        waiting = [one.name for one in self.state.waiting]
        if waiting:
            self._warn("mcp.waits_for_approval", waiting)

    def _state(self, tool: ShownTool, approved: Mapping[str, ApprovedTool]) -> ToolState:
        known = approved.get(tool.listed.name)
        if not self._wants(tool):
            decision = Decision.NOT_WANTED
        elif known is None:
            decision = Decision.NEW
        elif known.digest != tool.digest:
            decision = Decision.CHANGED
        else:
            decision = Decision.APPROVED
        former = known if decision is Decision.CHANGED else None
        return ToolState(
            name=self._name(tool.listed.name),
            tool=tool.listed.name,
            decision=decision,
            digest=tool.digest,
            description=tool.description,
            parameters=tool.parameters,
            effect=effect_of(tool.listed, self.options),
            former=former.description if former else "",
            former_parameters=former_parameters(former) if former else None,
        )

    def _tool(self, state: ToolState) -> Tool:
        found, options = self._found[state.tool], self.options
        tool = found.listed
        is_harmless = state.effect is Effect.NONE
        card = ToolCard(
            name=state.name,
            description=state.description,
            arguments=found.arguments,
            group=GROUP,
            effect=state.effect,
            redo="repeat" if is_harmless else "idempotent" if tool.idempotent else "once",
            trust=options.trust,
            timeout_s=options.timeout_s + LATE_S,
            server=options.name,
            server_about=options.about,
            status=f"asking {options.name}",
            hinted=is_harmless and not is_vouched_for(tool, options),
        )

        async def call(arguments: dict[str, Any], caller: Caller) -> str:
            result = await self.connection.call(state.tool, arguments)
            return await self._reader.text(result, caller)

        return ForeignTool(card, call)
