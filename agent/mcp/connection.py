"""One connection to an MCP server: opened, held and closed by one task. Beside `wire` the only file
that knows the SDK, which is loaded when the first server is needed (a third of a second, 35 MB).

`Connection.run` is that task; calls come from anywhere. Whatever a server does ends here: as a
ServerDown or ServerRefused of the call, and as a restart after a growing pause.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import math
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import structlog

from agent.mcp.process import program, server_env
from agent.mcp.values import (
    Health,
    RareWarnings,
    ServerDown,
    ServerHealth,
    ServerOptions,
    ServerRefused,
    ServerTool,
    Timing,
)
from agent.mcp.wire import MESSAGE_BYTES_MAX, BoundedBodies, StderrTail, spoken_to, watched
from agent.version import VERSION

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client import Transport
    from mcp_types import CallToolResult

PAGES_MAX = 50
TOOLS_MAX = 500
REASON_CHARS_MAX = 300
SECRET_CHARS_MIN = 6
CLOSED = -32000
SDK = "mcp"

HERE = frozenset({"localhost", "127.0.0.1", "::1"})

_log = structlog.get_logger(__name__)

Listed = Callable[[Sequence[ServerTool]], Awaitable[None]]


class Connection:
    """One server. Calls may come at any time and from any task of the loop."""

    def __init__(
        self,
        options: ServerOptions,
        *,
        folder: Callable[[], Path],
        env: Mapping[str, str],
        listed: Listed,
        timing: Timing,
    ) -> None:
        """`folder` makes the folder in which a command runs (it blocks, and may raise
        ServerDown), `env` is the environment of which it gets a little. `listed` hears of the
        tools each time they were read."""
        self._options = options
        self._make_folder = folder
        self._env = env
        self._listed = listed
        self._timing = timing
        self._warnings = RareWarnings(options.name, timing)
        self._client: Client | None = None
        self._health = Health.IDLE
        self._trouble = ""
        self._excess = ""
        self._retry_at = 0.0
        self._server = ""
        self._nudge = asyncio.Event()
        self._wanted = self._lost = self._stale = self._closing = False
        self.settled = asyncio.Event()
        """Set once a start has come to an end, good or bad."""

    @property
    def health(self) -> ServerHealth:
        """Return how it is at this moment."""
        left = None
        if self._health is Health.DOWN:
            left = max(0.0, self._retry_at - asyncio.get_running_loop().time())
        return ServerHealth(
            health=self._health, trouble=self._trouble, retry_s=left, server=self._server
        )

    @property
    def is_wanted(self) -> bool:
        """Return whether it was asked for."""
        return self._wanted

    def want(self) -> None:
        """From now on it is to be there. Returns at once."""
        self._wanted = True
        self._nudge.set()

    def close(self) -> None:
        """Ends `run`, after the server was ended."""
        self._closing = True
        self._nudge.set()

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """One call, by the name that the server gave. Raises ServerDown, ServerRefused.

        A call that is cancelled is cancelled at the server too.
        """
        client = self._client
        if client is None or self._lost:
            self.want()
            how = "is being started: try again in a moment"
            if self._health is Health.DOWN:
                why = f" ({self._trouble})" if self._trouble else ""
                left = self.health.retry_s or 0.0
                how = f"is not available{why}; it is tried again in {left:.0f} s"
            raise ServerDown(f"{self._options.name} {how}; nothing was done")
        try:
            async with asyncio.timeout(self._options.timeout_s):
                return await self._asked(client, tool, arguments)
        except TimeoutError:
            self._nudged(stale=True)  # a server that hangs is found out by its list
            raise ServerDown(
                f"{self._options.name} did not answer within {self._options.timeout_s:g} s. "
                "Whether it took effect is unknown: check before trying again"
            ) from None

    async def _asked(
        self, client: Client, tool: str, arguments: Mapping[str, Any]
    ) -> CallToolResult:
        """Not by `Client.call_tool`, which refuses results that do not fit the tool's own word on
        them; what there is of them is worth more to a model."""
        from mcp import CallToolRequest, MCPError
        from mcp_types import CallToolRequestParams, CallToolResult
        from pydantic import ValidationError

        request = CallToolRequest(
            params=CallToolRequestParams(name=tool, arguments=dict(arguments))
        )
        try:
            return await client.session.send_request(request, CallToolResult)
        except MCPError as error:
            said = _short(error.message)
            if error.code == CLOSED or "session terminated" in said.lower():
                self._nudged(lost=True)
                raise self._gone() from error
            raise ServerRefused(
                said or f"the server refused the call (code {error.code})"
            ) from error
        except ValidationError as error:
            raise ServerRefused("the server's answer does not follow the protocol") from error
        except _trouble() as error:
            self._nudged(lost=True)
            raise self._gone() from error

    def _gone(self) -> ServerDown:
        why = f" ({self._excess})" if self._excess else ""
        return ServerDown(
            f"the connection to {self._options.name} broke during the call{why}, and is made anew. "
            "Whether it took effect is unknown: check before trying again"
        )

    # --- the task ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Holds the connection until `close`. Raises nothing but CancelledError."""
        failures = 0
        loop = asyncio.get_running_loop()
        while not self._closing:
            if not self._wanted:
                await self._nudged_within(None)
                continue
            began = loop.time()
            trouble = await self._held()
            # A server's last words can hold the keys that it was given.
            for secret in (*self._options.env.values(), *self._options.headers.values()):
                if len(secret) >= SECRET_CHARS_MIN:
                    trouble = trouble.replace(secret, "***")
            self._client = None
            if self._closing:
                break
            failures = 1 if loop.time() - began > self._timing.steady_s else failures + 1
            pause_s = self._timing.pause_s(failures)
            self._health, self._trouble = Health.DOWN, trouble
            self._retry_at = loop.time() + pause_s
            self.settled.set()
            _log.warning(
                "mcp.down",
                server=self._options.name,
                reason=trouble,
                failures=failures,
                retry_s=pause_s,
            )
            while not self._closing and (left := self._retry_at - loop.time()) > 0:
                await self._nudged_within(left)
        self._health = Health.IDLE
        self.settled.set()

    async def _held(self) -> str:
        """Opens the connection and keeps its list fresh until it breaks; says why it did."""
        self._health = Health.STARTING
        self._lost = self._stale = False
        self._excess = ""
        words = StderrTail()
        try:
            # In a thread: the loop has other things to do meanwhile.
            await asyncio.to_thread(importlib.import_module, SDK)
            for name in (SDK, "httpx2"):
                # Its own log would hold what servers and tools say.
                logging.getLogger(name).setLevel(logging.CRITICAL)
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._timing.connect_s):
                    client = await stack.enter_async_context(await self._opened(stack, words))
                    tools = await self._tools(client)
                await stack.enter_async_context(self._listening(client))
                info = client.server_info
                self._server = _short(f"{info.name} {info.version}") if info is not None else ""
                await self._listed(tools)
                self._client = client
                self._health, self._trouble = Health.UP, ""
                self.settled.set()
                _log.info("mcp.up", server=self._options.name, tools=len(tools))
                try:
                    await self._kept_fresh(client)
                finally:
                    self._client = None
        except ServerDown as error:
            return str(error)
        except TimeoutError:
            return _with_words(self._excess or "it did not answer in time", words)
        except _trouble() as error:
            return _with_words(self._excess or _reason(error), words)
        return _with_words(self._excess or "it ended the connection", words)

    async def _kept_fresh(self, client: Client) -> None:
        loop = asyncio.get_running_loop()
        read_at = -math.inf
        due = loop.time() + self._options.refresh_s
        while not (self._closing or self._lost):
            next_s = read_at + self._timing.reread_s if self._stale else due
            await self._nudged_within(min(due, next_s) - loop.time())
            now = loop.time()
            is_changed = self._stale and now >= read_at + self._timing.reread_s
            if self._closing or self._lost or not (is_changed or now >= due):
                continue
            read_at = now
            self._stale = False
            async with asyncio.timeout(self._timing.list_s):
                tools = await self._tools(client)
            await self._listed(tools)
            due = loop.time() + self._options.refresh_s

    async def _nudged_within(self, seconds: float | None) -> None:
        if seconds is not None and seconds <= 0:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._nudge.wait()
        except TimeoutError:
            return
        self._nudge.clear()

    def _nudged(self, *, lost: bool = False, stale: bool = False) -> None:
        self._lost = self._lost or lost
        self._stale = self._stale or stale
        self._nudge.set()

    # --- with the SDK --------------------------------------------------------------------------

    async def _opened(self, stack: AsyncExitStack, words: StderrTail) -> Client:
        """A client that is not entered yet. Raises ServerDown when the command is not there."""
        from mcp import Client
        from mcp_types import Implementation

        async def heard(message: Any) -> None:
            if getattr(message, "method", "") == "notifications/tools/list_changed":
                self._nudged(stale=True)

        opened = self._of_command(stack, words) if self._options.command else self._of_url(stack)
        transport = await opened
        return Client(
            watched(transport, lambda: self._nudged(lost=True)),
            message_handler=heard,
            client_info=Implementation(name="hearthbot", version=VERSION),
            read_timeout_seconds=self._options.timeout_s + self._timing.list_s,
            cache=None,
        )

    async def _of_command(self, stack: AsyncExitStack, words: StderrTail) -> Transport:
        env = server_env(self._options, self._env)
        found = which(self._options.command, path=env.get("PATH", os.defpath))
        if found is None:
            raise ServerDown(f"the command {_short(self._options.command)} was not found")
        if not Path(found).is_absolute():
            raise ServerDown(
                f"the command {_short(self._options.command)} is a relative path: write the whole "
                f"one in mcp.{self._options.name}.command"
            )
        folder = await asyncio.to_thread(self._make_folder)
        errors = await stack.enter_async_context(words.listening())
        running = await stack.enter_async_context(
            program((found, *self._options.args), env=env, folder=folder, errors=errors)
        )
        return spoken_to(running, self._exceeded)

    def _exceeded(self, why: str) -> None:
        self._excess = why
        self._nudged(lost=True)

    async def _of_url(self, stack: AsyncExitStack) -> Transport:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        http = httpx2.AsyncClient(
            headers={"Accept-Encoding": "identity", **self._options.headers},
            event_hooks={"response": [BoundedBodies(bytes_max=MESSAGE_BYTES_MAX)]},
            timeout=httpx2.Timeout(30.0, read=300.0),
            trust_env=urlsplit(self._options.url).hostname not in HERE,
        )
        await stack.enter_async_context(http)
        return streamable_http_client(
            self._options.url, http_client=http, max_sse_event_size=MESSAGE_BYTES_MAX
        )

    async def _tools(self, client: Client) -> list[ServerTool]:
        """All pages of the list. Raises what the SDK raises."""
        found: list[ServerTool] = []
        cursor: str | None = None
        for _ in range(PAGES_MAX):
            page = await client.list_tools(cursor=cursor)
            for one in page.tools:
                hints = one.annotations
                found.append(
                    ServerTool(
                        name=one.name,
                        description=one.description or one.title or "",
                        schema=one.input_schema,
                        read_only=bool(hints and hints.read_only_hint),
                        idempotent=bool(hints and hints.idempotent_hint),
                    )
                )
            cursor = page.next_cursor
            if cursor is None or len(found) >= TOOLS_MAX:
                break
        if len(found) > TOOLS_MAX:
            now = asyncio.get_running_loop().time()
            self._warnings.warn("mcp.too_many_tools", now=now, tools=len(found))
        return found[:TOOLS_MAX]

    @asynccontextmanager
    async def _listening(self, client: Client) -> AsyncIterator[None]:
        """Hears of changes by the protocol of 2026, where a client has to ask for them."""
        import anyio
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        async def listen() -> None:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._nudged(stale=True)
            except (MCPError, ListenNotSupportedError, SubscriptionLost, TimeoutError):
                _log.debug("mcp.not_listening", server=self._options.name)

        async with anyio.create_task_group() as group:
            if client.session.discover_result is not None:
                group.start_soon(listen)
            yield
            group.cancel_scope.cancel()


def _trouble() -> tuple[type[Exception], ...]:
    """Return what a connection can raise: its own errors, those below it, and slips of the SDK on
    what a server sent. A group holds what its tasks raised."""
    import anyio
    import httpx2
    from mcp import MCPError

    return (
        MCPError,
        httpx2.HTTPError,
        httpx2.InvalidURL,
        httpx2.StreamError,
        OSError,
        ValueError,
        RuntimeError,
        LookupError,
        TypeError,
        AttributeError,
        anyio.BrokenResourceError,
        anyio.ClosedResourceError,
        anyio.EndOfStream,
        ExceptionGroup,
    )


def _reason(error: BaseException) -> str:
    """One sentence about what is within: the first that is not a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, OSError) and error.strerror:
        return _short(error.strerror.lower())
    if type(error).__module__.startswith(("mcp", "httpx2")) and str(error):
        return _short(str(error))
    return f"the connection failed ({type(error).__name__})"


def _with_words(reason: str, words: StderrTail) -> str:
    return _short(f"{reason}; its last words: {words.last}") if words.last else reason


def _short(text: str) -> str:
    return " ".join(text.split())[:REASON_CHARS_MAX]
