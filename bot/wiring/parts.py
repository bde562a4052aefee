"""Objects that more than one opening needs, built in one place: what is stored, and what makes a
prompt. Called by `bot.app` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from agent.budget.budget import Budget
from agent.budget.rate_limit import RateBuckets
from agent.files.attachments import AttachedFiles
from agent.files.images import KeptPictures
from agent.models.catalog import PriceTable
from agent.policy.gate import Gate
from agent.policy.tool_access import Reach
from agent.prompt.context import Gathering
from agent.prompt.templates import Library, TextFiles
from agent.skills.library import SkillShelf
from agent.skills.lifecycle import Workshop
from agent.subagents.subagents import Subagents
from agent.tools.files import KeptResults
from agent.tools.ranking import Choosing
from agent.tools.routes import RouteFile
from agent.tools.tool import Caller, Tool
from agent.tools.toolbox import ForeignTools
from agent.tools.workspace import Workspace
from agent.turn.assistant import Assistant
from agent.turn.loop import Loop
from agent.turn.steps.begin import Beginning
from agent.turn.steps.model import Asking, AskingOptions, Payment
from agent.turn.steps.tools import Doing
from bot.commands.model_names import Configured, NameFinder
from bot.commands.model_trial import client_of
from bot.commands.prompts import Prompts
from bot.commands.table import as_typed
from bot.people.access import Access
from bot.people.approval_messages import plain
from bot.people.approvals import ApprovalDesk
from bot.people.linking import Deliver
from bot.people.zone_question import AssumedZones
from bot.settings.home import shipped
from bot.wiring.calendar import Calendar
from bot.wiring.memories import Memories, household_of, memories_of, remembering_tools
from bot.wiring.model_pool import ModelPool
from bot.wiring.options import (
    allowed_of,
    bindings_of,
    gathering_options_of,
    paces_of,
    places_of,
    policy_of,
    prompt_options_of,
    rules_of,
    selection_options_of,
    steering_of,
    subagent_limits_of,
    texts_of,
    tool_limits_of,
)
from bot.wiring.schedules import skill_finder
from bot.wiring.spending import Workplace
from bot.wiring.tools import Doors, Made, Materials, tools_of
from memory.database.connection import Database
from memory.records.facts import Coming, Compactor, RecallWanted
from memory.records.messages import DEFAULT_AGENT
from memory.records.ports import Drafts, Models
from memory.search.vectors import ranker_maker
from memory.stores.conversations import SqliteConversations
from memory.stores.people import SqlitePeople
from memory.stores.switches import SqliteChosenModels, SqliteSkillRecords
from memory.stores.traces import SqliteTraces
from memory.stores.turns import SqliteJournal
from memory.stores.undo import SqliteFormerFiles
from scheduler.jobs.events import EventService
from scheduler.jobs.tool_calls import ToolCalls
from scheduler.jobs.tools import schedule_tools


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

    agenda: EventService | None = None

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
    zones = calendar.zones
    stores.upcoming.agenda = calendar.events
    former = SqliteFormerFiles(stores.database)
    household = replace(household_of(place, access, stores.conversations), noted=zones.noted)
    reached = _LateReach()
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
                *schedule_tools(
                    calendar.jobs,
                    calendar.events,
                    household,
                    ToolCalls(reached.tool, policy=policy_of(settings)),
                    skill=skill_finder(shelf),
                ),
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


# --- thinking -----------------------------------------------------------------------------------
#
# Puts together what thinks: the models, what each of their calls must pass, and the assistant that
# the engine runs. Called by `bot.wiring.assembly` and whoever needs the models alone.


def pool_of(place: Workplace, models: Configured, database: Database) -> ModelPool:
    """The models that there are."""
    llm = place.settings.llm
    return ModelPool(
        models,
        SqliteChosenModels(database),
        partial(client_of, timeout_s=llm.timeout_s),
        finder=NameFinder(place.settings, place.env),
        clock=place.clock,
        output_tokens_max=llm.max_output_tokens,
        bindings=bindings_of(place.settings),
    )


def payment_of(place: Workplace, budget: Budget) -> Payment:
    """What every model call has to pass, those behind the scenes too."""
    paces = paces_of(place.settings)
    return Payment(budget=budget, rates=RateBuckets(paces, place.clock) if paces else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """What stands between a model's wish and the world."""

    approvals: ApprovalDesk
    payment: Payment
    redact: Callable[[str], str]


def assistant_of(
    place: Workplace,
    models: Models,
    drafts: Drafts,
    stores: Stores,
    abilities: Abilities,
    prompting: Prompting,
    checks: Checks,
    *,
    files: AttachedFiles,
) -> Assistant:
    """The program that the engine runs."""
    settings, tools = place.settings, abilities.tools
    agents = settings.agents.by_name
    return Assistant(
        begin=prompting.beginning,
        model=Asking(
            models,
            stores.conversations,
            drafts,
            stores.traces,
            toolbox=tools.toolbox,
            library=prompting.library,
            options=AskingOptions(
                temperature=agents[DEFAULT_AGENT].temperature,
                temperatures={name: agent.temperature for name, agent in agents.items()},
                max_output_tokens=settings.llm.max_output_tokens,
                redact=checks.redact,
                pictures=KeptPictures(abilities.workspace),
                cheap_model=settings.llm.cheap_model,
            ),
            payment=checks.payment,
        ),
        tool=Doing(
            tools.toolbox,
            tools.reach,
            drafts,
            Gate(policy_of(settings), checks.approvals, stores.conversations),
            clock=place.clock,
            keep=KeptResults(abilities.workspace),
            limits=tool_limits_of(settings),
            redact=checks.redact,
        ),
        loop=Loop(
            tools.toolbox,
            steps_max=agents[DEFAULT_AGENT].max_steps,
            others={name: agent.max_steps for name, agent in agents.items()},
            claims=prompting.library.texts()["words_claims"],
        ),
        drafts=drafts,
        files=files,
        typed=lambda text, where: as_typed(text, where.key),
        named=plain,
    )
