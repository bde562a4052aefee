"""Objects that more than one opening needs, built in one place: what is stored, and what makes a
prompt. Called by `bot.app` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent.beginning import Beginning
from agent.gathering import Gathering
from agent.library import Library
from agent.models.prices import PriceTable
from agent.ports import Clock
from agent.skills.shelf import SkillShelf
from agent.skills.workshop import Workshop
from agent.tools.files import file_tools
from agent.tools.reach import Reach
from agent.tools.skills import skill_tools
from agent.tools.toolbox import Toolbox
from agent.tools.workspace import Workspace
from bot.access import Access
from bot.config import Settings
from bot.home import Home, shipped
from bot.linking import Deliver
from bot.model_pool import ModelPool
from bot.options import (
    allowed_of,
    gathering_options_of,
    persona_of,
    places_of,
    prompt_options_of,
    reach_of,
    rules_of,
)
from bot.prompts import Prompts
from memory.conversations import SqliteConversations
from memory.database import Database
from memory.people import SqlitePeople
from memory.playbooks import SqliteSkillRecords
from memory.recall import SqliteRecall
from memory.traces import SqliteTraces


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """What every part may be given: the home, its settings, the time and the environment."""

    home: Home
    settings: Settings
    clock: Clock
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """What is stored, by who asks for it."""

    conversations: SqliteConversations
    records: SqliteSkillRecords
    recall: SqliteRecall
    traces: SqliteTraces


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """Skills, and the tools by which they and the files of the workspace are reached."""

    shelf: SkillShelf
    workshop: Workshop
    workspace: Workspace
    toolbox: Toolbox
    reach: Reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompting:
    """What makes a prompt, and what shows it."""

    library: Library
    beginning: Beginning
    prompts: Prompts


def stores_of(database: Database) -> Stores:
    """Over one open database."""
    return Stores(
        conversations=SqliteConversations(database),
        records=SqliteSkillRecords(database),
        recall=SqliteRecall(database),
        traces=SqliteTraces(database),
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
    library = Library(
        shipped("prompts"), place.home.workspace, persona_of(place.home, place.settings)
    )
    library.check()
    return library


def abilities_of(place: Workplace, stores: Stores) -> Abilities:
    """What the assistant can do."""
    settings = place.settings
    shelf = SkillShelf(
        places_of(place.home, settings),
        stores.records,
        clock=place.clock,
        env=place.env,
        given={name: skill.env for name, skill in settings.skills.by_name.items()},
    )
    workshop = Workshop(shelf, stores.records, place.home.workspace / "skills")
    workspace = Workspace(place.home.workspace)
    toolbox = Toolbox([*file_tools(workspace), *skill_tools(shelf, workshop)])
    return Abilities(
        shelf=shelf,
        workshop=workshop,
        workspace=workspace,
        toolbox=toolbox,
        reach=Reach(toolbox, reach_of(settings)),
    )


def prompting_of(
    place: Workplace, stores: Stores, abilities: Abilities, *, access: Access, models: ModelPool
) -> Prompting:
    """What makes a prompt for the model that answers. Raises SettingsWrong."""
    settings = place.settings
    library = library_of(place)
    gathering = Gathering(
        library,
        abilities.shelf,
        stores.recall,
        clock=place.clock,
        rules=rules_of(settings),
        options=gathering_options_of(settings),
    )
    beginning = Beginning(
        stores.conversations,
        gathering,
        abilities.toolbox,
        abilities.reach,
        models,
        options=prompt_options_of(settings),
    )
    prompts = Prompts(
        beginning,
        stores.traces,
        stores.conversations,
        access,
        toolbox=abilities.toolbox,
        prices=PriceTable(),
        models=models,
    )
    return Prompting(library=library, beginning=beginning, prompts=prompts)
