"""Builds the way in: intake, what stands behind commands and buttons, and what `/status` sees."""

from __future__ import annotations

from datetime import datetime
from shutil import disk_usage
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from agent.budget.service import UsageService
from bot.commands.command import Tools
from bot.commands.jobs.commands import JobCommands, TimeQuestions
from bot.commands.jobs.heartbeat import HeartbeatCommands
from bot.commands.pairing import PairingQuestions
from bot.commands.people import PeopleCommands
from bot.commands.status import BotStatus
from bot.commands.usage import brake_pressed, names_of
from bot.inbox.admission import MessageRateLimiter
from bot.inbox.intake import Intake, IntakeHooks
from bot.outbox.edits import QuestionMessages
from bot.settings.options import bindings_of, host_zone
from memory.records.messages import PersonId
from memory.stores.approvals import SqliteApprovals, SqliteCards
from memory.stores.compactions import SqliteCompactions
from memory.stores.inbox import SqliteInbox
from memory.stores.schedule import SqliteIdle
from scheduler.kinds.idle import IdleReset

if TYPE_CHECKING:
    from bot.app.app import App
    from bot.commands.trace.why import WhyCommand


def usage_of(app: App) -> UsageService:
    """Build what answers about cost, pauses and resumes."""
    access = app.access
    return UsageService(
        app.usage_store,
        # Without a running bot nothing is being spent: what is stored says it all.
        app.budget if app.is_running else None,
        lambda: access.directory.people,
        name_of=names_of(lambda: access.directory.people),
        clock=app.clock,
        host_zone=host_zone(),
        resumed=app.calendar.changed,
        trust=app.clock.trust,
    )


def status_of(app: App) -> BotStatus:
    """Build what says how the bot is doing."""
    return BotStatus(
        clock=app.clock,
        since_s=app.clock.monotonic(),
        usage=app.usage,
        choice=app.choice,
        models=app.models,
        access=app.access,
        channels=app.channels.by_name,
        engine=app.engine,
        outbox=app.outbox,
        budget=app.budget,
        servers=app.mcp,
        runner=app.abilities.runner,
        next_lines=app.calendar.schedules.next_lines,
        bindings=bindings_of(app.settings),
        troubles=app.housekeeping.troubles,
        jobs=app.calendar.jobs,
        heartbeats=app.calendar.heartbeats,
        grants=SqliteApprovals(app.database).grants,
        log=app.logs,
        free_bytes=lambda: disk_usage(app.home.data).free,
        host_zone=ZoneInfo(host_zone()),
        is_changed=app.are_settings_changed,
    )


def pairing_of(app: App) -> PairingQuestions:
    """Build what asks the owner about strangers who got a code."""

    async def after_quiet(person_id: PersonId, moment: datetime) -> datetime:
        # Strangers write at night as well: the owner is asked once their quiet hours are over.
        hours = await app.calendar.jobs.quiet_hours(person_id)
        return moment if hours is None else hours.end(moment, app.calendar.times.zone(person_id))

    return PairingQuestions(app.access, _cards(app), after_quiet, clock=app.clock)


def job_commands_of(app: App) -> JobCommands:
    """Build what answers commands about jobs and events."""
    cards, jobs = _cards(app), app.calendar.jobs
    questions = TimeQuestions(jobs, cards, clock=app.clock)
    await_zone = app.calendar.zones.await_zone
    return JobCommands(jobs, app.calendar.events, questions, cards, await_zone=await_zone)


def why_of(app: App) -> WhyCommand:
    """Build what answers `/why`."""
    from bot.commands.trace.why import WhyCommand
    from memory.stores.traces import SqliteTraces

    def server_of(name: str) -> str:
        tool = app.abilities.toolbox.get(name)
        return tool.card.server if tool is not None else ""

    return WhyCommand(
        records=SqliteTraces(app.database),
        memory=app.memories.service,
        questions=app.memories.questions,
        jobs=app.calendar.store,
        counted=app.budget.flush,
        texts=app.library.texts,
        name_of=app.name_of,
        server_of=server_of,
        redact=app.redact,
        host_zone=host_zone(),
    )


def tools_of_commands(app: App, schedule: JobCommands) -> Tools:
    """Build what slash commands act on."""
    return Tools(
        clock=app.clock,
        host_zone=host_zone(),
        engine=app.engine,
        conversations=app.conversations,
        compactor=app.memories.compactor,
        compactions=SqliteCompactions(app.database),
        subagents=app.abilities.subagents,
        workspace=app.abilities.workspace,
        status=app.status,
        prompts=app.prompts,
        why=lambda: app.why,
        logs=app.logs,
        models=app.models,
        skills=app.abilities.skills,
        usage=app.usage,
        approvals=app.approvals,
        memory=app.memories.service,
        questions=app.memories.questions,
        schedule=schedule,
        heartbeat=HeartbeatCommands(app.calendar.jobs, app.calendar.heartbeats),
        people=PeopleCommands(
            app.access,
            clock=app.clock,
            host_zone=host_zone(),
            language=app.settings.prompt.language,
            asking=app.pairing,
        ),
        snippets=app.snippets,
    )


def intake_of(app: App) -> Intake:
    """Build the way in of every message, command and press."""
    schedule = job_commands_of(app)
    per_minute = app.settings.access.messages_per_minute
    return Intake(
        SqliteInbox(app.database),
        app.access,
        app.engine,
        app.conversations,
        app.outbox,
        command_tools=tools_of_commands(app, schedule),
        clock=app.clock,
        hooks=IntakeHooks(
            presses={
                "ok": app.approvals.press,
                "brake": lambda pressed, person: brake_pressed(
                    app.usage, _cards(app), pressed, person, clock=app.clock
                ),
                "mem": app.memories.questions.press,
                "job": schedule.press,
                "why": lambda pressed, person: app.why.press(pressed, person),  # loaded when asked
                "zone": app.calendar.zones.press,
                "pair": app.pairing.press,
            },
            bindings=bindings_of(app.settings),
            limiter=MessageRateLimiter(app.clock, per_minute=per_minute),
            full_disk=app.full_disk,
            freshen=IdleReset(
                SqliteIdle(app.database),
                app.conversations.start_new,
                app.clock,
                after_hours=app.settings.history.idle_reset_hours,
                busy=app.engine.busy,
            ),
            acknowledge=app.channels.acknowledge if app.settings.telegram.ack_reaction else None,
            stranger=app.pairing.asked,
            heard=app.chats.heard,
            answered=app.calendar.zones.after,
        ),
    )


def _cards(app: App) -> QuestionMessages:
    return QuestionMessages(app.outbox, SqliteCards(app.database))
