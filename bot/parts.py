"""Objects that more than one opening needs, built in one place: what is stored, and what makes a
prompt. Called by `bot.app` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.beginning import Beginning
from agent.budget import Budget
from agent.choosing import Choosing
from agent.gathering import Gathering
from agent.library import Library, TextFiles
from agent.models.prices import PriceTable
from agent.recalled import Coming, RecallWanted
from agent.remembering import Compactor
from agent.skills.shelf import SkillShelf
from agent.skills.workshop import Workshop
from agent.subagents import Subagents
from agent.tools.reach import Reach
from agent.tools.routes import RouteFile
from agent.tools.schedule import schedule_tools
from agent.tools.scheduling import Abilities as Scheduling
from agent.tools.tool import Caller, Tool
from agent.tools.toolbox import ForeignTools
from agent.tools.workspace import Workspace
from bot.access import Access
from bot.assumed_zones import AssumedZones
from bot.home import shipped
from bot.job_calendar import Calendar
from bot.linking import Deliver
from bot.memories import Memories, household_of, memories_of, remembering_tools
from bot.model_pool import ModelPool
from bot.options import (
    allowed_of,
    bindings_of,
    gathering_options_of,
    host_zone,
    places_of,
    prompt_options_of,
    rules_of,
    steering_of,
    subagent_limits_of,
    texts_of,
)
from bot.options_tools import policy_of, selection_options_of
from bot.place import Workplace
from bot.prompts import Prompts
from bot.schedules import ShelfSkills
from bot.toolmaking import Doors, Made, Materials, tools_of
from memory.assumed_zones import SqliteAssumedZones
from memory.conversations import SqliteConversations
from memory.database import Database
from memory.former_files import SqliteFormerFiles
from memory.journal import SqliteJournal
from memory.people import SqlitePeople
from memory.playbooks import SqliteSkillRecords
from memory.ranking import ranker_maker
from memory.traces import SqliteTraces
from scheduler.agenda import EventAgenda


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """What is stored, by who asks for it."""

    database: Database
    conversations: SqliteConversations
    records: SqliteSkillRecords
    memories: Memories
    upcoming: Upcoming
    traces: SqliteTraces
    journal: SqliteJournal


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """Skills, and the tools by which they and all else are reached."""

    shelf: SkillShelf
    workshop: Workshop
    workspace: Workspace
    subagents: Subagents
    tools: Made
    routes: RouteFile
    calendar: Calendar
    zones: AssumedZones


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompting:
    """What makes a prompt, and what shows it."""

    library: Library
    beginning: Beginning
    prompts: Prompts


@dataclass(slots=True)
class Upcoming:
    """What is to come of a person, for a prompt; set once the people are known."""

    agenda: EventAgenda | None = None

    async def __call__(self, wanted: RecallWanted) -> Sequence[Coming]:
        """Raises StorageError."""
        return () if self.agenda is None else await self.agenda.coming(wanted)


def stores_of(place: Workplace, database: Database) -> Stores:
    """Over one open database."""
    conversations, upcoming = SqliteConversations(database), Upcoming()
    return Stores(
        database=database,
        upcoming=upcoming,
        conversations=conversations,
        records=SqliteSkillRecords(database),
        memories=memories_of(place, database, coming=upcoming, erased=conversations.reread),
        traces=SqliteTraces(database),
        journal=SqliteJournal(database),
    )


def _nobody_waits(rows: object) -> None:
    """Where no outbox runs, what was stored to be sent goes out at the next start."""


async def access_of(
    place: Workplace, database: Database, *, deliver: Deliver = _nobody_waits
) -> Access:
    """Who may talk to the bot, read from the database. Raises StorageError."""
    settings = place.settings
    access = Access(
        SqlitePeople(database),
        policy=settings.access.policy,
        allowed=allowed_of(settings),
        clock=place.clock,
        deliver=deliver,
    )
    await access.load()
    return access


def library_of(place: Workplace) -> Library:
    """The texts of prompts, checked. Raises SettingsWrong."""
    library = texts_of(place.home, place.settings)
    library.check()
    return library


def abilities_of(
    place: Workplace,
    stores: Stores,
    access: Access,
    doors: Doors,
    servers: ForeignTools | None = None,
) -> Abilities:
    """What the assistant can do. Raises SettingsWrong."""
    settings = place.settings
    workspace = Workspace(
        place.home.workspace, home=place.home.path, steering=steering_of(place.home, settings)
    )
    shelf = SkillShelf(
        places_of(place.home, settings),
        stores.records,
        clock=place.clock,
        env=place.env,
        given={name: skill.env for name, skill in settings.skills.by_name.items()},
    )
    workshop = Workshop(shelf, stores.records, place.home.workspace / "skills")
    subagents = Subagents(
        stores.journal, stores.conversations, doors.begin, limits=subagent_limits_of(settings)
    )
    routes = RouteFile(
        shipped("prompts"), place.home.workspace, read=TextFiles(within=place.home.workspace).read
    )
    routes.check()
    calendar = Calendar(place, stores.database, access)
    zones = AssumedZones(
        SqliteAssumedZones(stores.database),
        access,
        zone=host_zone(),
        is_anywhere=calendar.clerk.is_anywhere,
    )
    calendar.clerk.hears = zones
    stores.upcoming.agenda = calendar.agenda
    former = SqliteFormerFiles(stores.database)
    household = replace(household_of(place, access, stores.conversations), noted=zones.noted)
    reached = _LateReach()
    scheduling = Scheduling(
        reached=reached.tool, skill=ShelfSkills(shelf).work, policy=policy_of(settings)
    )
    tools = tools_of(
        place,
        Materials(
            shelf=shelf,
            workshop=workshop,
            workspace=workspace,
            former=former,
            conversations=stores.conversations,
            access=access,
            subagents=subagents,
            remembering=[
                *remembering_tools(stores.memories, workspace, former, household=household),
                *schedule_tools(calendar.clerk, calendar.agenda, household, scheduling),
            ],
            make_ranker=ranker_maker(
                meanings=settings.tools.embeddings,
                embedding=stores.memories.embedding if settings.memory.embeddings else None,
            ),
            doors=doors,
            servers=servers,
        ),
    )
    reached.reach = tools.reach
    return Abilities(
        calendar=calendar,
        zones=zones,
        shelf=shelf,
        workshop=workshop,
        workspace=workspace,
        subagents=subagents,
        tools=tools,
        routes=routes,
    )


class _LateReach:
    """Which tools a run may have, for a tool that is one of them."""

    reach: Reach

    def tool(self, name: str, caller: Caller) -> Tool | None:
        """One of them."""
        return self.reach.tool(name, caller)


def prompting_of(
    place: Workplace,
    stores: Stores,
    abilities: Abilities,
    *,
    access: Access,
    models: ModelPool,
    library: Library | None = None,
    budget: Budget | None = None,
    compactor: Compactor | None = None,
) -> Prompting:
    """What makes a prompt for the model that answers. Raises SettingsWrong."""
    settings, tools = place.settings, abilities.tools
    library = library or library_of(place)
    gathering = Gathering(
        library,
        abilities.shelf,
        stores.memories.recall,
        clock=place.clock,
        rules=rules_of(settings),
        servers=tuple(
            f"{name}: {server.about}" if server.about else name
            for name, server in settings.mcp.by_name.items()
        ),
        options=gathering_options_of(settings),
    )
    beginning = Beginning(
        stores.conversations,
        gathering,
        tools.toolbox,
        Choosing(
            tools.toolbox,
            tools.reach,
            stores.traces,
            ranking=tools.ranking,
            routes=abilities.routes,
            options=selection_options_of(settings),
        ),
        models,
        options=prompt_options_of(settings),
        budget=budget,
        compactor=compactor,
    )
    prompts = Prompts(
        beginning,
        stores.traces,
        stores.conversations,
        access,
        toolbox=tools.toolbox,
        prices=PriceTable(),
        models=models,
        bindings=bindings_of(settings),
    )
    return Prompting(library=library, beginning=beginning, prompts=prompts)
