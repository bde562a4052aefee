"""Builds the tools: each group with what it acts through. Called by `bot.parts` alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import structlog

from agent.errors import AssistantError, Permanent, SettingsWrong
from agent.mcp.values import ToolApprovals
from agent.messages import DEFAULT_AGENT, Address
from agent.ports import Conversations, NewRun
from agent.skills.shelf import SkillShelf
from agent.skills.workshop import Workshop
from agent.stored import NewMessage
from agent.subagents import Subagents
from agent.tools.agents import agent_tools
from agent.tools.buses import missing_for_hardware
from agent.tools.discovery import discovery_tools
from agent.tools.exec import Exec, Runner
from agent.tools.files import KeptResults, file_tools
from agent.tools.former_files import KeepsFormer
from agent.tools.message import message_tools
from agent.tools.ranking import MakeRanker, Rank, ToolRanking
from agent.tools.reach import Reach
from agent.tools.reactions import Reactor
from agent.tools.scripts import RunSkill
from agent.tools.sending_files import SendableFiles
from agent.tools.skills import skill_tools
from agent.tools.system import StatusTold, TellsStatus, system_tools
from agent.tools.tool import Caller, Tool, ToolCard
from agent.tools.toolbox import ForeignTools, Toolbox
from agent.tools.web import web_tools
from agent.tools.workspace import Workspace
from agent.web.client import ClientOptions, WebClient
from agent.web.search import search_service
from bot.access import Access
from bot.messenger import BotMessenger
from bot.options import reach_of, steering_of
from bot.options_tools import (
    allowed_hosts_of,
    exec_options_of,
    file_bytes_max_of,
    matching_nothing,
    search_options_of,
    servers_of,
)
from bot.outbox import NewFile
from bot.place import Workplace

if TYPE_CHECKING:
    from agent.mcp.servers import McpServers


log = structlog.get_logger()


class NoBotRuns(Permanent):
    """Something was to be done that only a running bot can do."""


class PostsFiles(Protocol):
    """See `bot.outbox.Outbox.post_file`."""

    async def __call__(self, lane: str, file: NewFile, *, caption: str) -> object: ...


@dataclass(slots=True)
class Doors:
    """What tools act through that is built after them: set once, before the first turn."""

    say: Callable[[NewMessage], Awaitable[None]] | None = None
    post: PostsFiles | None = None
    reactions: Reactor | None = None
    clean: Callable[[str], str] = str
    """Takes secrets out of what is shown."""
    submit: Callable[[NewRun], Awaitable[bool]] | None = None
    status: TellsStatus | None = None

    async def send(self, message: NewMessage) -> None:
        """To the outbox."""
        if self.say is None:
            raise NoBotRuns("No bot runs here, so nothing can be sent.")
        await self.say(message)

    async def send_file(self, lane: str, file: NewFile, *, caption: str) -> None:
        """To the outbox, by way of a copy."""
        if self.post is None:
            raise NoBotRuns("No bot runs here, so nothing can be sent.")
        await self.post(lane, file, caption=caption)

    async def react(self, address: Address, message_id: str, emoji: str) -> str:
        """To the channel of the chat; see Reactor."""
        if self.reactions is None:
            raise NoBotRuns("No bot runs here, so nothing can be shown.")
        return await self.reactions.react(address, message_id, emoji)

    def cleaned(self, text: str) -> str:
        """A text without what `clean` takes out of it."""
        return self.clean(text)

    async def begin(self, run: NewRun) -> bool:
        """To the turn engine."""
        if self.submit is None:
            raise NoBotRuns("No bot runs here, so nothing can be begun.")
        return await self.submit(run)

    async def told(self, *, for_owner: bool, lane: str = "") -> StatusTold:
        """How the bot is doing."""
        if self.status is None:
            raise NoBotRuns("No bot runs here.")
        return await self.status.told(for_owner=for_owner, lane=lane)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The tools, and what of them others need."""

    toolbox: Toolbox
    reach: Reach
    ranking: ToolRanking
    runner: Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class Materials:
    """What tools are made over."""

    shelf: SkillShelf
    workshop: Workshop
    workspace: Workspace
    former: KeepsFormer
    conversations: Conversations
    access: Access
    subagents: Subagents
    make_ranker: MakeRanker
    remembering: Sequence[Tool] = ()
    """The groups that reach what is remembered, and what happens by the clock."""
    doors: Doors = field(default_factory=Doors)
    servers: ForeignTools | None = None


def tools_of(place: Workplace, of: Materials) -> Made:
    """All tools, in the order in which they are offered. Raises SettingsWrong."""
    settings, root = place.settings, place.home.workspace
    runner = Runner(
        root,
        home=place.home.path,
        options=exec_options_of(settings),
        fixed=tuple(path for path in steering_of(place.home, settings) if root in path.parents),
        own=place.env,
        keep=KeptResults(of.workspace),
    )
    made: list[Tool] = [
        *file_tools(of.workspace, of.former),
        *_message_tools(place, of),
        *system_tools(of.doors),
        *skill_tools(of.shelf, of.workshop),
        *agent_tools(of.subagents),
        *of.remembering,
        *_web(place),
        *_programs(place, of, runner),
        *_hardware(),
    ]
    return _put_together(place, of, made, runner)


def _hardware() -> Sequence[Tool]:
    if missing_for_hardware():
        return ()
    from agent.tools.hardware import hardware_tools

    return hardware_tools().tools


def _web(place: Workplace) -> Sequence[Tool]:
    settings = place.settings
    try:
        client = WebClient(ClientOptions(allowed=allowed_hosts_of(settings)))
        options = search_options_of(settings)
        search = None if options is None else search_service(options, client)
    except (ValueError, AssistantError) as error:
        raise SettingsWrong(f"[web] cannot be used: {error}") from error
    return web_tools(client, search, place.clock, page_chars=settings.web.page_chars)


def _message_tools(place: Workplace, of: Materials) -> Sequence[Tool]:
    doors = of.doors
    messenger = BotMessenger(of.access, of.conversations, doors.send, doors.send_file)
    files = SendableFiles(
        of.workspace, bytes_max=file_bytes_max_of(place.settings), clean=doors.cleaned
    )
    return message_tools(messenger, messenger, files, doors)


def _programs(place: Workplace, of: Materials, runner: Runner) -> Sequence[Tool]:
    if not place.settings.exec.enabled:
        return ()
    given = {name: skill.env for name, skill in place.settings.skills.by_name.items()}
    return Exec(runner), RunSkill(of.shelf, runner, given)


class _LateReach:
    """Implements `agent.tools.discovery.Available` for tools that are in the toolbox themselves."""

    toolbox: Toolbox
    reach: Reach

    def cards(self, caller: Caller) -> Sequence[ToolCard]:
        return self.reach.cards(caller)

    def all_cards(self) -> Sequence[ToolCard]:
        return [tool.card for tool in self.toolbox.tools()]


def _put_together(place: Workplace, of: Materials, made: Sequence[Tool], runner: Runner) -> Made:
    """Tools that look for tools see all that there are, themselves among them."""
    ranking = ToolRanking(of.make_ranker)
    late = _LateReach()
    found = Rank(ranking, late.all_cards)
    toolbox = Toolbox([*made, *discovery_tools(late, found)], of.servers)
    reaches = dict(reach_of(place.settings))
    late.reach = Reach(toolbox, reaches.pop(DEFAULT_AGENT), reaches)
    late.toolbox = toolbox
    for key, pattern in matching_nothing(place.settings, toolbox.names):
        log.warning("settings.no_such_tool", key=key, pattern=pattern)
    return Made(toolbox=toolbox, reach=late.reach, ranking=ranking, runner=runner)


async def opened_servers(
    stack: AsyncExitStack, place: Workplace, approvals: ToolApprovals
) -> McpServers | None:
    """The MCP servers, those that are eager on their way; None where there are none: then nothing
    of it is loaded."""
    options = servers_of(place.settings)
    if not options:
        return None
    from agent.mcp.servers import Home, McpServers

    home = Home(workspace=place.home.workspace, env=place.env)
    return await stack.enter_async_context(McpServers(options, approvals, home))
