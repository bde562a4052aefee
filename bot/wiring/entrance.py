"""Builds the way in of a running bot: the desks behind commands and buttons, what the status sees,
and last the door. Called by `bot.app.open_bot`, once all else stands.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from shutil import disk_usage
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from bot.channels.base import Pressed
from bot.commands.context import ContextTeller
from bot.commands.conversation import AgentsDesk, CompactingDesk
from bot.commands.heartbeat import HeartbeatCommands
from bot.commands.jobs import JobCommands, TimeQuestions
from bot.commands.logs import LogDesk
from bot.commands.models import ModelDesk
from bot.commands.pairing import PairDesk, SpokenTo
from bot.commands.people import Reception
from bot.commands.services import Answer, Tools
from bot.commands.status import BotStatus, Kept, Watched
from bot.commands.usage import UsageDesk
from bot.inbox.intake import Door
from bot.inbox.ports import Person
from bot.inbox.rate_limit import Flood
from bot.outbox.edits import Cards
from bot.wiring.assembly import Assembly
from bot.wiring.housekeeping import Housekeeping, tasks_of
from bot.wiring.memories import Rights, person_of, rights_of
from bot.wiring.options import bindings_of, host_zone
from bot.wiring.spending import Telling, Workplace, pressed_by
from bot.wiring.tools import Reactions
from memory.records.messages import IncomingMessage, PersonId
from memory.stores.approvals import SqliteApprovals
from memory.stores.inbox import SqliteInbox
from scheduler.jobs.service import JobService
from scheduler.kinds.idle import IdleReset

if TYPE_CHECKING:
    from bot.channels.slack.app_home import HomeView
    from bot.commands.why import WhyDesk


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrance:
    """The door, and the desks that others reach as well."""

    door: Door
    status: BotStatus
    spending: UsageDesk
    rights: Rights


async def opened_entrance(
    stack: AsyncExitStack, place: Workplace, whole: Assembly, *, changed: Callable[[], bool]
) -> Entrance:
    """Commands, buttons, and the way in. `changed` says whether the settings on the disk are
    others than those in use."""
    access = whole.access
    spending = UsageDesk(
        whole.usage,
        whole.budget,
        lambda: access.directory.people,
        clock=place.clock,
        host_zone=host_zone(),
        resumed=whole.schedules.timetable.changed,
        trust=whole.clock.trust,
    )
    rights = rights_of(
        place,
        whole.database,
        whole.stores.memories,
        whole.stores.conversations,
        access=access,
        outbox=whole.outbox,
        workspace=whole.abilities.workspace,
    )
    await stack.enter_async_context(rights.erasing)
    whole.housekeeping = Housekeeping(
        tasks_of(
            place.home,
            place.settings,
            whole.database,
            whole.clock,
            sessions=whole.stores.memories.sessions,
            others={
                "Sending what an error held up": whole.outbox.try_again,
                "Removing ended private conversations": rights.private.sweep,
            },
        ),
        whole.clock,
        tell=Telling(whole.access, whole.outbox.say),
        resumed=whole.schedules.timetable.changed,
    )
    models = ModelDesk(whole.pool)
    logs = LogDesk(place.home.log_file, whole.redact, host_zone=host_zone())
    status = BotStatus(_watched(place, whole, models, logs), clock=place.clock, changed=changed)
    whole.doors.status = status
    schedule = _schedule_desk(place, whole)
    calendar = whole.abilities.calendar
    cards = Cards(whole.outbox, calendar.cards)
    pairing = PairDesk(access, cards, _spoken_to(calendar.jobs), clock=place.clock)
    await stack.enter_async_context(pairing)
    if whole.channels.slack is not None:
        whole.channels.slack.tells_home = _home_view(place, whole)
    desks = _Desks(
        status=status,
        logs=logs,
        spending=spending,
        rights=rights,
        models=models,
        schedule=schedule,
        why=_LateWhy(partial(_why_desk, whole, rights)),
        pairing=pairing,
    )
    door = await stack.enter_async_context(_door(place, whole, desks))
    return Entrance(door=door, status=status, spending=spending, rights=rights)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Desks:
    """Those that more than one part of the way in asks."""

    status: BotStatus
    logs: LogDesk
    spending: UsageDesk
    rights: Rights
    models: ModelDesk
    schedule: JobCommands
    why: _LateWhy
    pairing: PairDesk


def _watched(place: Workplace, whole: Assembly, models: ModelDesk, logs: LogDesk) -> Watched:
    kept = Kept(
        jobs=whole.abilities.calendar.jobs,
        heartbeats=whole.abilities.calendar.heartbeats,
        grants=SqliteApprovals(whole.database).grants,
        sums=whole.usage,
        troubles=logs,
        free_bytes=lambda: disk_usage(place.home.data).free,
        host_zone=ZoneInfo(host_zone()),
    )
    return Watched(
        kept=kept,
        choice=whole.choice,
        models=models,
        access=whole.access,
        channels=whole.channels.by_name,
        engine=whole.engine,
        outbox=whole.outbox,
        budget=whole.budget,
        servers=whole.servers,
        runner=whole.abilities.tools.runner,
        clock=whole.schedules,
        bindings=bindings_of(place.settings),
        troubles=whole.housekeeping.troubles,
    )


def _tools(place: Workplace, whole: Assembly, desks: _Desks) -> Tools:
    return Tools(
        engine=whole.engine,
        lanes=whole.engine.lanes,
        conversations=whole.stores.conversations,
        status=desks.status,
        context=ContextTeller(whole.prompting.prompts),
        why=desks.why,
        logs=desks.logs,
        models=desks.models,
        skills=whole.skills,
        usage=desks.spending,
        agents=AgentsDesk(whole.abilities.subagents, whole.engine, clock=place.clock),
        approvals=whole.approvals,
        compacting=CompactingDesk(
            whole.afterthoughts.compactor,
            whole.stores.memories.compactions,
            whole.stores.conversations,
            busy=whole.engine.busy,
            host_zone=host_zone(),
        ),
        schedule=desks.schedule,
        heartbeat=HeartbeatCommands(
            whole.abilities.calendar.jobs, whole.abilities.calendar.heartbeats
        ),
        memory=desks.rights.desk,
        undo=desks.rights.undo,
        private=desks.rights.private,
        people=_reception(place, whole, desks),
        snippets=whole.snippets,
    )


def _door(place: Workplace, whole: Assembly, desks: _Desks) -> Door:
    door = Door(
        SqliteInbox(whole.database),
        whole.access,
        whole.engine,
        whole.stores.conversations,
        whole.outbox,
        command_tools=_tools(place, whole, desks),
        clock=place.clock,
        presses={
            "ok": whole.approvals.press,
            "brake": pressed_by(
                desks.spending,
                Cards(whole.outbox, whole.abilities.calendar.cards),
                clock=place.clock,
            ),
            "mem": desks.rights.desk.press,
            "job": desks.schedule.press,
            "why": desks.why.press,
            "zone": whole.zones.press,
            "pair": desks.pairing.press,
        },
    )
    door.full_disk = whole.full_disk
    door.bindings = bindings_of(place.settings)
    door.stranger = desks.pairing.asked
    door.heard = whole.abilities.calendar.chats.heard
    door.endings.afterwards = whole.zones.after
    if place.settings.telegram.ack_reaction:
        door.acknowledge = Reactions(whole.channels.by_name).acknowledge
    door.freshen = IdleReset(
        whole.stores.memories.idle,
        whole.stores.conversations.start_new,
        place.clock,
        after_hours=place.settings.history.idle_reset_hours,
        busy=whole.engine.busy,
    )
    door.backlog.flood = Flood(place.clock, per_minute=place.settings.access.messages_per_minute)
    return door


def _schedule_desk(place: Workplace, whole: Assembly) -> JobCommands:
    calendar, clock = whole.abilities.calendar, place.clock
    cards = Cards(whole.outbox, calendar.cards)
    return JobCommands(
        calendar.jobs,
        calendar.events,
        TimeQuestions(calendar.jobs, cards, clock=clock),
        cards,
    )


def _reception(place: Workplace, whole: Assembly, desks: _Desks) -> Reception:
    reception = Reception(
        whole.access,
        clock=place.clock,
        host_zone=host_zone(),
        language=place.settings.prompt.language,
    )
    reception.zones = whole.zones
    reception.asking = desks.pairing
    return reception


def _spoken_to(jobs: JobService) -> SpokenTo:
    async def after_quiet(person_id: PersonId, moment: datetime) -> datetime:
        hours = await jobs.quiet_hours(person_id)
        return moment if hours is None else hours.end(moment, jobs.times.zone(person_id))

    return after_quiet


class _LateWhy:
    """The desk of `/why`, loaded and made when somebody first asks."""

    def __init__(self, desk: Callable[[], WhyDesk]) -> None:
        self._desk = cache(desk)

    async def tell(self, message: IncomingMessage, person: Person, rest: str) -> Answer:
        return await self._desk().tell(message, person, rest)

    async def press(self, pressed: Pressed, person: Person) -> str:
        return await self._desk().press(pressed, person)


def _why_desk(whole: Assembly, rights: Rights) -> WhyDesk:
    from bot.commands.why import WhyDesk, WhySources
    from memory.stores.explained import SqliteTurnRecords

    access, toolbox = whole.access, whole.abilities.tools.toolbox

    def name_of(person_id: PersonId) -> str:
        person = person_of(access, person_id)
        return person.name if person is not None else ""

    def server_of(name: str) -> str:
        tool = toolbox.get(name)
        return tool.card.server if tool is not None else ""

    sources = WhySources(
        facts=whole.stores.memories.facts,
        jobs=whole.abilities.calendar.store,
        memory=rights.desk,
        counted=whole.budget.flush,
        texts=whole.library.texts,
        name_of=name_of,
        server_of=server_of,
        redact=whole.redact,
    )
    return WhyDesk(SqliteTurnRecords(whole.database), sources, host_zone=host_zone())


def _home_view(place: Workplace, whole: Assembly) -> HomeView:
    from bot.channels.slack.app_home import HomeView, Told

    calendar = whole.abilities.calendar
    told = Told(
        jobs=calendar.jobs,
        events=calendar.events,
        facts=whole.stores.memories.facts,
        sums=whole.usage,
        counted=whole.budget.flush,
        models=whole.pool,
        open_questions=SqliteApprovals(whole.database).open_ones,
    )
    zone = ZoneInfo(host_zone())
    return HomeView(whole.access, told, clock=place.clock, host_zone=zone)
