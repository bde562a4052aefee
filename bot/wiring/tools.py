"""Builds the tools: each group with what it acts through. Called by `bot.wiring.parts` alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, assert_never

import structlog

from agent.budget.budget import Budget
from agent.files.attachments import AttachedFiles, Means
from agent.files.images import PICTURE_BYTES_MAX, PICTURE_SIDE_MAX
from agent.files.messages import size_of
from agent.files.ports import AttachedOptions, FileUnavailable, Transcriber
from agent.files.scaling import INSTALL, PillowScaler, is_installed
from agent.files.transcription import PaidTranscriber
from agent.mcp.values import ToolApprovals
from agent.models.choose import beside
from agent.policy.tool_access import Reach
from agent.skills.library import SkillLibrary
from agent.skills.service import SkillService
from agent.subagents.subagents import Subagents
from agent.tools.agents import AgentTools, StatusTold, SystemTools, TellsStatus
from agent.tools.buses import LinuxBuses, missing_for_hardware
from agent.tools.discovery import DiscoveryTools
from agent.tools.exec import ExecTools, Runner
from agent.tools.files import FileTools, KeptResults
from agent.tools.former_files import KeepsFormer
from agent.tools.messages import FileToSend, MessageTools, OwnChat, React, SendableFiles
from agent.tools.ranking import MakeRanker, Rank, ToolRanking
from agent.tools.scripts import ScriptTools
from agent.tools.skills import SkillTools
from agent.tools.tool import Tool, tools_of
from agent.tools.toolbox import ForeignTools, Toolbox
from agent.tools.web import WebPages, WebSearch
from agent.tools.workspace import Workspace
from agent.web.client import ClientOptions, WebClient
from agent.web.search import search_service
from bot.channels.base import (
    Acknowledges,
    Channel,
    DeliveryRefused,
    FetchesFiles,
    NotSent,
    Reacted,
    Reacts,
)
from bot.outbox.outbox import NewFile
from bot.people.access import Access
from bot.settings.options import (
    allowed_hosts_of,
    exec_options_of,
    file_bytes_max_of,
    host_zone,
    matching_nothing,
    reach_of,
    search_options_of,
    servers_of,
    steering_of,
    wish_of,
)
from bot.settings.schema.settings import Settings
from bot.wiring.spending import Workplace
from memory.records.errors import AssistantError, Permanent, SettingsWrong, Temporary
from memory.records.messages import DEFAULT_AGENT, Address, Attachment, IncomingMessage, PersonId
from memory.records.ports import Conversations, Models, NewRun
from memory.records.rows import NewMessage

if TYPE_CHECKING:
    from agent.mcp.servers import McpServers
    from bot.doctor.base import Finding


# --- reactions ----------------------------------------------------------------------------------
#
# Reactions that the assistant puts on messages: what stands behind the tool `react`.


class NoReaction(Permanent):
    """A reaction that is not shown, and will not be."""


class NoReactionNow(Temporary):
    """A reaction that is not shown now."""


class Reactions:
    """Sets them at once: a reaction that comes late says nothing any more."""

    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._channels = channels

    async def react(self, address: Address, message_id: str, emoji: str) -> str:
        """What is shown now. Raises NoReaction, NoReactionNow."""
        channel = self._channels.get(address.channel)
        if not isinstance(channel, Reacts):
            raise NoReaction("there are no reactions in this chat; say it in your answer")
        match await channel.react(address, message_id, emoji):
            case Reacted(shown=shown):
                return shown
            case NotSent(reason=reason, retry_after_s=after_s):
                raise NoReactionNow(
                    f"the reaction could not be set now ({reason}); go on without it",
                    retry_after_s=after_s,
                )
            case DeliveryRefused(reason=reason):
                raise NoReaction(reason)
            case other:
                assert_never(other)

    async def acknowledge(self, message: IncomingMessage) -> None:
        """Shows that it was taken in, where its channel does so."""
        channel = self._channels.get(message.address.channel)
        if isinstance(channel, Acknowledges):
            await channel.acknowledge(message)


# --- messenger ----------------------------------------------------------------------------------
#
# What the assistant sends besides its answer, for the tools of the group `message`.

Say = Callable[[NewMessage], Awaitable[None]]

NOTED = "You sent this to the person with send_message, from another place: "
NOTED_FILE = "You sent this file to the person with send_file, from another place: "


class PostFile(Protocol):
    """Copied and stored, then on its way. Raises StorageError."""

    async def __call__(self, lane: str, file: NewFile, *, caption: str) -> None: ...


class BotMessenger:
    """Implements `agent.tools.messages.Messenger` over the outbox."""

    def __init__(
        self, access: Access, conversations: Conversations, say: Say, post_file: PostFile
    ) -> None:
        self._access = access
        self._conversations = conversations
        self._say = say
        self._post_file = post_file

    async def chats(self, person_id: PersonId) -> Sequence[OwnChat]:
        """Where this person alone reads; the terminal is no place that waits."""
        return [OwnChat(lane=lane) for lane in await self._access.private_chats(person_id)]

    async def send(self, lane: str, text: str, *, untrusted: bool) -> None:
        """The note lets the person answer it there: the next turn knows what was sent."""
        await self._say(NewMessage(lane=lane, text=text))
        conversation = await self._conversations.current(lane)
        await self._conversations.note(conversation, f"{NOTED}{text}", untrusted=untrusted)

    async def send_file(
        self, lane: str, file: FileToSend, *, caption: str, untrusted: bool | None
    ) -> None:
        """Noted as `send` does, unless `untrusted` is None."""
        new = NewFile(name=file.name, path=file.path, content=file.content)
        await self._post_file(lane, new, caption=caption)
        if untrusted is not None:
            conversation = await self._conversations.current(lane)
            words = f"\n\n{caption}" if caption else ""
            text = f"{NOTED_FILE}{file.path}{words}"
            await self._conversations.note(conversation, text, untrusted=untrusted)


log = structlog.get_logger()


class NoBotRuns(Permanent):
    """Something was to be done that only a running bot can do."""


class PostsFiles(Protocol):
    """See `bot.outbox.outbox.Outbox.post_file`."""

    async def __call__(self, lane: str, file: NewFile, *, caption: str) -> object: ...


@dataclass(slots=True)
class Doors:
    """What tools act through that is built after them: set once, before the first turn."""

    say: Callable[[NewMessage], Awaitable[None]] | None = None
    post: PostsFiles | None = None
    reactions: React | None = None
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
        """To the channel of the chat."""
        if self.reactions is None:
            raise NoBotRuns("No bot runs here, so nothing can be shown.")
        return await self.reactions(address, message_id, emoji)

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
        return await self.status(for_owner=for_owner, lane=lane)


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

    shelf: SkillLibrary
    skills: SkillService
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


def toolbox_of(place: Workplace, of: Materials) -> Made:
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
        *tools_of(FileTools(of.workspace, of.former)),
        *_message_tools(place, of),
        *tools_of(SystemTools(of.doors.told)),
        *tools_of(SkillTools(of.shelf, of.skills)),
        *tools_of(AgentTools(of.subagents)),
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

    return hardware_tools(LinuxBuses())


def _web(place: Workplace) -> Sequence[Tool]:
    settings = place.settings
    try:
        client = WebClient(ClientOptions(allowed=allowed_hosts_of(settings)))
        options = search_options_of(settings)
        search = None if options is None else search_service(options, client)
    except (ValueError, AssistantError) as error:
        raise SettingsWrong(f"[web] cannot be used: {error}") from error
    pages = tools_of(WebPages(client, place.clock, page_chars=settings.web.page_chars))
    return pages if search is None else (*pages, *tools_of(WebSearch(search)))


def _message_tools(place: Workplace, of: Materials) -> Sequence[Tool]:
    doors = of.doors
    messenger = BotMessenger(of.access, of.conversations, doors.send, doors.send_file)
    files = SendableFiles(
        of.workspace, bytes_max=file_bytes_max_of(place.settings), clean=doors.cleaned
    )
    return tools_of(MessageTools(messenger, files, doors.react))


def _programs(place: Workplace, of: Materials, runner: Runner) -> Sequence[Tool]:
    if not place.settings.exec.enabled:
        return ()
    given = {name: skill.env for name, skill in place.settings.skills.by_name.items()}
    return (
        *tools_of(ExecTools(runner), timeout_s=runner.timeout_s),
        *tools_of(ScriptTools(of.shelf, runner, given), timeout_s=runner.timeout_s),
    )


def _put_together(place: Workplace, of: Materials, made: Sequence[Tool], runner: Runner) -> Made:
    """Tools that look for tools see all that there are, themselves among them."""
    ranking = ToolRanking(of.make_ranker)
    toolbox = Toolbox(made, of.servers)
    reaches = dict(reach_of(place.settings))
    reach = Reach(toolbox, reaches.pop(DEFAULT_AGENT), reaches)
    toolbox.add(tools_of(DiscoveryTools(reach.cards, Rank(ranking, toolbox.cards))))
    for key, pattern in matching_nothing(place.settings, toolbox.names):
        log.warning("settings.no_such_tool", key=key, pattern=pattern)
    return Made(toolbox=toolbox, reach=reach, ranking=ranking, runner=runner)


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


# --- fetching -----------------------------------------------------------------------------------
#
# Where the files of messages are fetched: at the channel by which the message came.


class ChannelFiles:
    """Implements `agent.files.ports.FileSource` over the channels, by name."""

    def __init__(self, channels: Callable[[], Mapping[str, Channel]]) -> None:
        self._channels = channels

    async def fetch(self, address: Address, attachment: Attachment, *, bytes_max: int) -> bytes:
        """The whole of it. Raises FileUnavailable, Temporary."""
        channel = self._channels().get(address.channel)
        if not isinstance(channel, FetchesFiles):
            raise FileUnavailable("files cannot be fetched where this message came from")
        return await channel.fetch(attachment, bytes_max=bytes_max)


# --- attaching ----------------------------------------------------------------------------------
#
# Puts together what opens the files of messages: where they are fetched, and how they are read.
#
# Called by `bot.wiring.assembly`; the command `doctor` asks it about pictures.


def files_of(
    place: Workplace,
    channels: Callable[[], Mapping[str, Channel]],
    workspace: Workspace,
    models: Models,
    *,
    budget: Budget,
) -> AttachedFiles:
    """The step that opens files, by the settings."""
    wanted = place.settings.attachments
    return AttachedFiles(
        ChannelFiles(channels),
        workspace,
        models,
        clock=place.clock,
        options=AttachedOptions(
            bytes_max=int(wanted.max_mb * 1_000_000),
            text_chars_max=wanted.text_chars,
            picture_side_max=wanted.picture_side,
            host_zone=host_zone(),
        ),
        means=Means(
            transcriber=_transcriber_of(place.settings, budget),
            scaler=PillowScaler() if is_installed() else None,
        ),
    )


def pictures_check(side_max: int, *, installed: bool | None = None) -> Iterator[Finding]:
    """Whether large pictures are made smaller: a hint for `hearthbot doctor`, never a fault."""
    from bot.doctor.base import ok  # which a bot that runs has no need of

    if is_installed() if installed is None else installed:
        yield ok(f"larger ones are shown as copies of {side_max:,} pixels a side")
    else:
        yield ok(
            f"those of more than {size_of(PICTURE_BYTES_MAX)} or {PICTURE_SIDE_MAX:,} pixels a "
            f"side are not shown to the model; to have them made smaller: {INSTALL}"
        )


def _transcriber_of(settings: Settings, budget: Budget) -> Transcriber | None:
    """None where no model is set. Address and key are the main model's where it is of the same
    provider; else its provider's own, from the environment."""
    name = settings.llm.transcription_model.strip()
    if not name:
        return None
    from agent.models.speech import Speech

    main = wish_of(settings)
    if "/" in main.model and "/" not in name:
        name = f"openai/{name}"  # a bare name is one of OpenAI's, or of the one server that is set
    wanted = beside(main, name)
    speech = Speech(
        name,
        api_base=wanted.api_base,
        api_key=wanted.api_key,
        timeout_s=settings.llm.timeout_s,
    )
    return PaidTranscriber(speech, budget)
