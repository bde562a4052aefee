"""Jobs where no bot runs: the database and the files alone, opened for one command."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from bot.commands.job_service import job_operations
from bot.commands.model_names import configured
from bot.rpc import Operation
from bot.settings.home import Home, HomeLock
from bot.settings.logging import Redactor, secrets_of
from bot.settings.schema.settings import Settings
from bot.wiring.assembly import opened_database
from bot.wiring.jobs import Stage, dry_runs_of, skill_jobs_of
from bot.wiring.parts import abilities_of, access_of, pool_of, prompting_of, stores_of
from bot.wiring.spending import Workplace
from bot.wiring.tools import Doors
from memory.records.ports import Clock
from memory.stores.usage import SqliteUsage


@asynccontextmanager
async def open_jobs(
    home: Home, settings: Settings, *, env: Mapping[str, str], clock: Clock
) -> AsyncIterator[Mapping[str, Operation]]:
    """What can be asked about jobs where no bot runs; none is run.

    Raises HomeBusy, StorageError, SettingsWrong.
    """
    place = Workplace(home=home, settings=settings, clock=clock, env=env)
    async with AsyncExitStack() as stack:
        stack.enter_context(HomeLock(home, started_at=clock.now()))
        database = await opened_database(stack, place)
        models = await configured(settings, env)
        pool = await stack.enter_async_context(pool_of(place, models, database))
        stores, access = stores_of(place, database), await access_of(place, database)
        abilities = abilities_of(place, stores, access, Doors())
        prompting = prompting_of(place, stores, abilities, access=access, models=pool)
        calendar, shelf = abilities.calendar, abilities.shelf
        await calendar.chats.load()
        redact = Redactor((*secrets_of(settings, env), *models.keys())).clean
        stage = Stage(
            prompting=prompting,
            shelf=shelf,
            pool=pool,
            redact=redact,
            usage=SqliteUsage(database),
        )
        skills = skill_jobs_of(place, calendar, shelf)
        yield job_operations(calendar.jobs, dry_runs_of(place, calendar, stage, skills=skills))
