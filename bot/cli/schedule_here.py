"""Jobs where no bot runs: the database and the files alone, opened for one command."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from agent.models.prices import PriceTable
from agent.ports import Clock
from agent.rehearsing import Priced, Rehearsing, RehearsingOptions
from agent.transcript import Usage
from bot.assembly import opened_database, pool_of
from bot.config import Settings
from bot.control import Operation
from bot.home import Home, HomeLock
from bot.job_ports import Rehearsals
from bot.jobs import JobDesk, job_operations
from bot.logs import Redactor, secrets_of
from bot.model_names import configured
from bot.model_pool import ModelPool
from bot.parts import abilities_of, access_of, prompting_of, stores_of
from bot.place import Workplace
from bot.schedules import Chats
from bot.toolmaking import Doors
from memory.jobs import SqliteJobs
from memory.tellings import SqliteTellings
from scheduler.ahead import Rules
from scheduler.book import Book
from scheduler.kinds.turns import ActiveHours
from scheduler.orders import BeatList, JobTurns, Orders, Outlook
from scheduler.quiet import quiet_hours
from scheduler.skill_jobs import SkillJobs


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
        chats, store = Chats(access), SqliteJobs(database)
        await chats.load()
        tellings, shelf = SqliteTellings(database), abilities.shelf
        beats = BeatList(home.workspace / "HEARTBEAT.md")
        redact = Redactor((*secrets_of(settings, env), *models.keys())).clean

        async def rules() -> Rules:
            return Rules(
                daily_max=settings.scheduler.daily_max,
                heartbeats=await beats.has_tasks(),
                hours=_active(settings.heartbeat.active_hours),
            )

        book = Book(store, chats, chats.zone, clock=clock, changed=_nothing_rings)
        desk = JobDesk(
            Orders(book, store, clock=clock),
            Outlook(store, tellings, chats.zone, clock=clock, rules=rules),
            Rehearsals(
                turns=JobTurns(chats, shelf, beats.text),
                stage=Rehearsing(
                    prompting.beginning,
                    pool,
                    priced_by(pool),
                    options=RehearsingOptions(
                        output_tokens_max=settings.llm.max_output_tokens, redact=redact
                    ),
                ),
                skills=SkillJobs(store, shelf, chats, clock=clock, changed=_nothing_rings),
            ),
            chats,
            clock=clock,
        )
        yield job_operations(desk)


def _active(text: str) -> ActiveHours:
    found = quiet_hours(text)
    if found is None:
        return ActiveHours()
    return ActiveHours(from_minute=found.from_minute, to_minute=found.to_minute)


def priced_by(pool: ModelPool) -> Priced:
    """What a call costs at an address."""
    prices = PriceTable()

    async def priced(lane: str, usage: Usage) -> float | None:
        name = (await pool.answering(lane)).priced_as
        price = await prices.find(name) if name else None
        return None if price is None else price.cost(usage)

    return priced


async def _nothing_rings() -> None:
    """No clock runs here: the next start looks anew."""
