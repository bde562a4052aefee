"""Puts together what looks at jobs beforehand. Called by `bot.wiring.assembly` and `bot.cli`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent.budget.ledger import UsageSums
from agent.models.catalog import PriceTable
from agent.skills.library import SkillShelf
from agent.trace.dry_run import Priced, Rehearsing, RehearsingOptions
from agent.turn.steps.model import Payment
from bot.wiring.calendar import Calendar
from bot.wiring.model_pool import ModelPool
from bot.wiring.parts import Prompting
from bot.wiring.spending import Workplace
from memory.records.transcript import Usage
from scheduler.jobs.forecast import Forecaster, Rules
from scheduler.jobs.skill_jobs import SkillJobs
from scheduler.kinds.dry_run import JobDryRuns, JobTurns, PastCosts
from scheduler.notify.quiet_hours import read_hours


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a rehearsal of a job needs. Without `payment` its calls are neither counted nor
    bounded; without `usage` nothing is known of what runs took."""

    prompting: Prompting
    shelf: SkillShelf
    pool: ModelPool
    redact: Callable[[str], str]
    payment: Payment | None = None
    usage: UsageSums | None = None


def dry_runs_of(
    place: Workplace, calendar: Calendar, stage: Stage, *, skills: SkillJobs
) -> JobDryRuns:
    """What jobs would do and cost."""
    settings, clock, store = place.settings, place.clock, calendar.store
    turns = JobTurns(calendar.chats, stage.shelf.current, place.home.workspace)

    async def rules() -> Rules:
        return Rules(
            daily_max=settings.scheduler.daily_max,
            heartbeats=await turns.have_tasks(settings.agents.by_name),
            hours=read_hours(settings.heartbeat.active_hours),
        )

    options = RehearsingOptions(
        output_tokens_max=settings.llm.max_output_tokens, redact=stage.redact
    )
    priced = priced_by(stage.pool)
    past = None
    if stage.usage is not None:
        past = PastCosts(store, stage.usage, priced, payment=stage.payment)
    return JobDryRuns(
        calendar.jobs,
        Forecaster(store, calendar.notifications, calendar.chats.zone, clock=clock, rules=rules),
        turns,
        Rehearsing(
            stage.prompting.beginning,
            stage.pool,
            priced,
            options=options,
            payment=stage.payment,
        ),
        skills,
        clock=clock,
        past=past,
    )


def skill_jobs_of(place: Workplace, calendar: Calendar, shelf: SkillShelf) -> SkillJobs:
    """Skills that run by the clock, as jobs."""
    return SkillJobs(
        calendar.store, shelf.current, calendar.chats, clock=place.clock, changed=calendar.changed
    )


def priced_by(pool: ModelPool) -> Priced:
    """What a call costs at an address."""
    prices = PriceTable()

    async def priced(lane: str, usage: Usage) -> float | None:
        name = (await pool.answering(lane)).priced_as
        price = await prices.find(name) if name else None
        return None if price is None else price.cost(usage)

    return priced
