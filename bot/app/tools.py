"""Builds the tools and what opens the files of messages, each over what it acts through."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING

import structlog

from agent.budget.payment import Payment
from agent.files.attachments import AttachedFiles, PaidTranscriber
from agent.files.scaler import PillowScaler, is_installed
from agent.files.values import AttachedOptions
from agent.models.choose import beside
from agent.skills.library import SkillLibrary
from agent.skills.service import SkillService
from agent.subagents.subagents import Subagents
from agent.tools.discovery import DiscoveryTools, ToolRanking
from agent.tools.groups.agents import AgentTools, SystemTools
from agent.tools.groups.exec import ExecTools, Runner
from agent.tools.groups.files import FileTools, ResultStore
from agent.tools.groups.knowledge import KnowledgeTools
from agent.tools.groups.memory import FactTools, PersonContext
from agent.tools.groups.messages import MessageTools, SendableFiles
from agent.tools.groups.notes import Notes, NoteTools, ProfileTools
from agent.tools.groups.skills import ScriptTools, SkillTools
from agent.tools.groups.web import WebPages, WebSearch
from agent.tools.tool import Tool, tools_of
from agent.tools.toolbox import Reach, Toolbox
from agent.tools.workspace import Workspace
from agent.web.client import ClientOptions, WebClient
from agent.web.search import search_service
from bot.app.chats import BotMessenger
from bot.settings.options import (
    allowed_hosts_of,
    exec_options_of,
    file_bytes_max_of,
    host_zone,
    matching_nothing,
    places_of,
    policy_of,
    reach_of,
    rules_of,
    search_options_of,
    servers_of,
    steering_of,
)
from memory.records.errors import AssistantError, SettingsWrong
from memory.records.messages import DEFAULT_AGENT
from memory.search.vectors import ranker_maker
from memory.stores.switches import SqliteSkillRecords, SqliteToolApprovals
from memory.stores.traces import SqliteFormerFiles
from scheduler.jobs.times import ToolCalls
from scheduler.jobs.tools import schedule_tools

if TYPE_CHECKING:
    from agent.mcp.servers import McpServers
    from bot.app.app import App

log = structlog.get_logger()


class Abilities:
    """Tools and skills, and what they act in."""

    def __init__(self, app: App) -> None:
        self.app = app

    @cached_property
    def workspace(self) -> Workspace:
        """Return the folder in which tools act."""
        app = self.app
        steering = steering_of(app.home, app.settings)
        return Workspace(app.home.workspace, home=app.home.path, steering=steering)

    @cached_property
    def shelf(self) -> SkillLibrary:
        """Return the skills that there are."""
        app = self.app
        return SkillLibrary(
            places_of(app.home, app.settings),
            SqliteSkillRecords(app.database),
            clock=app.clock,
            env=app.env,
            given={name: skill.env for name, skill in app.settings.skills.by_name.items()},
        )

    @cached_property
    def skills(self) -> SkillService:
        """Return what shows, makes and changes skills."""
        app = self.app
        folder = app.home.workspace / "skills"
        records = SqliteSkillRecords(app.database)
        return SkillService(self.shelf, records, folder, rules_of(app.settings))

    @cached_property
    def subagents(self) -> Subagents:
        """Return what hands tasks on."""
        app = self.app
        return Subagents(
            app.journal,
            app.conversations,
            lambda run: app.engine.submit(run),
            limits=app.settings.subagents,
        )

    @cached_property
    def servers(self) -> McpServers | None:
        """Return the MCP servers; None if there are none: then nothing of them is loaded."""
        options = servers_of(self.app.settings)
        if not options:
            return None
        from agent.mcp.servers import McpServers, ServerFolders

        folders = ServerFolders(workspace=self.app.home.workspace, env=self.app.env)
        approvals = SqliteToolApprovals(self.app.database)
        return self.app.entered(McpServers(options, approvals, folders))

    @cached_property
    def runner(self) -> Runner:
        """Build what runs programs."""
        root, settings = self.app.home.workspace, self.app.settings
        return Runner(
            root,
            home=self.app.home.path,
            options=exec_options_of(settings),
            fixed=tuple(
                path for path in steering_of(self.app.home, settings) if root in path.parents
            ),
            own=self.app.env,
            keep=ResultStore(self.workspace),
        )

    @cached_property
    def ranking(self) -> ToolRanking:
        """Build what ranks tools by how well they fit a text."""
        settings = self.app.settings
        return ToolRanking(
            ranker_maker(
                meanings=settings.tools.embeddings,
                embedding=self.app.memories.embedding if settings.memory.embeddings else None,
            )
        )

    @cached_property
    def toolbox(self) -> Toolbox:
        """Build all tools, in the order in which they are offered. Raises SettingsWrong."""
        former = SqliteFormerFiles(self.app.database).keep
        messenger = BotMessenger(self.app.access, self.app.conversations, lambda: self.app.outbox)
        files = SendableFiles(
            self.workspace, bytes_max=file_bytes_max_of(self.app.settings), clean=self.app.redact
        )
        household = PersonContext(
            clock=self.app.clock,
            name_of=self.app.name_of,
            zone_of=self.app.chats.zone,
            is_private=self.app.conversations.is_private,
        )
        own: list[Tool] = [
            *tools_of(FileTools(self.workspace, former)),
            *tools_of(
                MessageTools(
                    messenger,
                    files,
                    # Asked for when called: a command that lists tools builds no channel.
                    lambda address, message_id, emoji: self.app.channels.react(
                        address, message_id, emoji
                    ),
                )
            ),
            *tools_of(SystemTools(lambda **of: self.app.status.told(**of))),
            *tools_of(SkillTools(self.shelf, self.skills)),
            *tools_of(AgentTools(self.subagents)),
            *tools_of(FactTools(self.app.memories.facts, self.app.memories.archive, household)),
            *tools_of(NoteTools(Notes(self.workspace, former), household)),
            *tools_of(ProfileTools(self.app.memories.profiles, household)),
            *tools_of(KnowledgeTools(self.app.memories.documents, self.workspace, household)),
            *schedule_tools(
                self.app.calendar.jobs,
                self.app.calendar.events,
                household,
                ToolCalls(
                    lambda name, caller: self.reach.tool(name, caller),
                    policy=policy_of(self.app.settings),
                ),
                shelf=self.shelf.current,
            ),
            *_web_tools(self.app),
        ]
        if self.app.settings.exec.enabled:
            given = {name: skill.env for name, skill in self.app.settings.skills.by_name.items()}
            timeout_s = self.runner.timeout_s
            own += tools_of(ExecTools(self.runner), timeout_s=timeout_s)
            own += tools_of(ScriptTools(self.shelf, self.runner, given), timeout_s=timeout_s)
        if all(map(find_spec, ("smbus2", "spidev"))):  # the extra `hardware`
            from agent.tools.groups.hardware import Buses, hardware_tools

            own += hardware_tools(Buses())
        toolbox = Toolbox(own, self.servers if self.app.is_running else None)
        toolbox.add(
            tools_of(
                DiscoveryTools(lambda caller: self.reach.cards(caller), toolbox.cards, self.ranking)
            )
        )
        for key, pattern in matching_nothing(self.app.settings, toolbox.names):
            log.warning("settings.no_such_tool", key=key, pattern=pattern)
        return toolbox

    @cached_property
    def reach(self) -> Reach:
        """Build what says which tools a run may have."""
        reaches = dict(reach_of(self.app.settings))
        return Reach(self.toolbox, reaches.pop(DEFAULT_AGENT), reaches)


def _web_tools(app: App) -> Sequence[Tool]:
    try:
        client = WebClient(ClientOptions(allowed=allowed_hosts_of(app.settings)))
        options = search_options_of(app.settings)
        search = None if options is None else search_service(options, client)
    except (ValueError, AssistantError) as error:
        raise SettingsWrong(f"[web] cannot be used: {error}") from error
    pages = tools_of(WebPages(client, app.clock, page_chars=app.settings.web.page_chars))
    return pages if search is None else (*pages, *tools_of(WebSearch(search)))


def attached_files_of(app: App) -> AttachedFiles:
    """Build the step that opens the files of messages."""
    wanted = app.settings.attachments
    return AttachedFiles(
        app.channels.fetch,
        app.abilities.workspace,
        app.models,
        clock=app.clock,
        options=AttachedOptions(
            bytes_max=int(wanted.max_mb * 1_000_000),
            text_chars_max=wanted.text_chars,
            picture_side_max=wanted.picture_side,
            host_zone=host_zone(),
        ),
        transcriber=_transcriber_of(app),
        scaler=PillowScaler() if is_installed() else None,
    )


def _transcriber_of(app: App) -> PaidTranscriber | None:
    """None where no model is set. Address and key are the main model's where it is of the same
    provider; else its provider's own, from the environment."""
    settings = app.settings
    name = settings.llm.transcription_model.strip()
    if not name:
        return None
    from agent.models.litellm import Speech

    main = settings.llm
    if "/" in main.model and "/" not in name:
        name = f"openai/{name}"  # a bare name is one of OpenAI's, or of the one server that is set
    wanted = beside(main, name)
    speech = Speech(
        name,
        api_base=wanted.api_base,
        api_key=wanted.api_key.get_secret_value(),
        timeout_s=settings.llm.timeout_s,
    )
    return PaidTranscriber(speech.name, speech.text, payment=Payment(budget=app.budget))
