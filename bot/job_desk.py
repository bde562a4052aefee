"""Puts the desk of jobs together (`hearthbot schedule`), for a running bot and for one command
without one. Called by `bot.assembly` and `bot.cli`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent.asking import Payment
from agent.models.prices import PriceTable
from agent.rehearsing import Priced, Rehearsing, RehearsingOptions
from agent.skills.shelf import SkillShelf
from agent.transcript import Usage
from bot.job_ports import Rehearsals
from bot.jobs import JobDesk
from bot.model_pool import ModelPool
from bot.parts import Prompting
from bot.place import Workplace
from bot.schedules import Calendar, active_hours_of
from scheduler.ahead import Rules
from scheduler.orders import BeatList, JobTurns, Orders, Outlook
from scheduler.skill_jobs import SkillJobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a rehearsal of a job needs. Without `payment` its calls are neither counted nor
    bounded."""

    prompting: Prompting
    shelf: SkillShelf
    pool: ModelPool
    redact: Callable[[str], str]
    payment: Payment | None = None


def job_desk_of(
    place: Workplace, calendar: Calendar, stage: Stage, *, skills: SkillJobs
) -> JobDesk:
    """Over the calendar; what needs a running bot says so where none is."""
    settings, clock = place.settings, place.clock
    beats = BeatList(place.home.workspace / "HEARTBEAT.md")

    async def rules() -> Rules:
        return Rules(
            daily_max=settings.scheduler.daily_max,
            heartbeats=await beats.has_tasks(),
            hours=active_hours_of(settings.heartbeat.active_hours),
        )

    options = RehearsingOptions(
        output_tokens_max=settings.llm.max_output_tokens, redact=stage.redact
    )
    return JobDesk(
        Orders(calendar.book, calendar.jobs, clock=clock, timetable=calendar.timetable),
        Outlook(calendar.jobs, calendar.tellings, calendar.chats.zone, clock=clock, rules=rules),
        Rehearsals(
            turns=JobTurns(calendar.chats, stage.shelf, beats.text),
            stage=Rehearsing(
                stage.prompting.beginning,
                stage.pool,
                priced_by(stage.pool),
                options=options,
                payment=stage.payment,
            ),
            skills=skills,
        ),
        calendar.chats,
        clock=clock,
    )


def skill_jobs_of(place: Workplace, calendar: Calendar, shelf: SkillShelf) -> SkillJobs:
    """Skills that run by the clock, as jobs."""
    return SkillJobs(
        calendar.jobs, shelf, calendar.chats, clock=place.clock, changed=calendar.changed
    )


def priced_by(pool: ModelPool) -> Priced:
    """What a call costs at an address."""
    prices = PriceTable()

    async def priced(lane: str, usage: Usage) -> float | None:
        name = (await pool.answering(lane)).priced_as
        price = await prices.find(name) if name else None
        return None if price is None else price.cost(usage)

    return priced
