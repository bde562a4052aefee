"""The start of a running bot, in order, and what its private socket offers to the terminal and to
other commands. The socket is the owner's alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import structlog

from agent.sandbox.environment import close_to_others
from agent.skills.install import sweep
from agent.version import VERSION
from bot.channels.console import ADDRESS, SENDER, ConsoleChannel
from bot.inbox.intake import InboundEvent, Intake
from bot.people.access import Access
from bot.rpc import ControlServer, Emit, Operation, call_method
from memory.records.ports import Clock

if TYPE_CHECKING:
    from bot.app.app import App

log = structlog.get_logger()

Request = dict[str, Any]


async def start(app: App) -> None:
    """Open every part, and take up what a former process left.

    Raise StorageError, SettingsWrong.
    """
    settings = app.settings
    tokens = (settings.telegram.token, settings.slack.bot_token)
    is_told = any(token.get_secret_value() for token in tokens)
    app.clock.compare(await app.database.newest_ms(), is_told=is_told)
    await app.ready(app.access, app.models)
    await app.models.open()
    await app.ready(app.channels, app.outbox, app.full_disk)
    await asyncio.to_thread(sweep, app.home.workspace / "skills")
    close_to_others()
    await app.ready(app.mcp, app.abilities.toolbox, app.budget)
    await app.ready(app.approvals, app.aftermath, app.engine)
    await app.ready(app.memories.questions, app.pairing, app.status, app.intake)
    log.info("bot.started", version=VERSION, model=app.choice.model, why=app.choice.why)
    await app.outbox.start()
    await app.engine.start()
    await app.approvals.start()
    app.memories.questions.start()
    await app.memories.service.private.sweep()
    await app.ready(app.entered(app.calendar.schedules.running()))
    if settings.memory.extraction.enabled:
        await app.ready(app.entered(app.memories.idle_timers()))
    await app.intake.resume(app.channels.by_name)
    await app.ready(app.entered(ControlServer(app.home.socket, operations_of(app))))


def terminal_operations(
    console: ConsoleChannel,
    access: Access,
    intake: Intake,
    settled: Callable[[str], Awaitable[None]],
    *,
    clock: Clock,
    greeting: Mapping[str, str],
) -> Mapping[str, Operation]:
    """Build what a conversation in the terminal asks for. `settled` returns once nothing of a chat
    runs, waits or is on its way."""

    async def attach(request: Request, emit: Emit) -> Request:
        await access.owner_of_this_machine()
        # Who is told that it is attached knows the open cards: what is typed next may press one.
        console.attach(emit)
        emit({"kind": "attached", **greeting})
        try:
            await asyncio.Event().wait()
        finally:
            console.detach(emit)
        return {}

    async def say(request: Request, emit: Emit) -> Request:
        """Return `state`; to who wants its answer alone (`once`) also the ids of `others`, messages
        that do not belong to it, and whether these are shown elsewhere (`shared`)."""
        if not str(request["text"]).strip():
            return {}
        await access.owner_of_this_machine()
        number = str(request["message_id"])
        now_ms = int(clock.now().timestamp() * 1000)
        inbound = InboundEvent(
            source="console",
            event_id=number,
            address=ADDRESS,
            sender=SENDER,
            is_group=False,
            payload=ConsoleChannel.payload(str(request["text"]), number, now_ms=now_ms),
        )
        await intake.handle(console, await intake.store([inbound]))
        await settled(ADDRESS.key)
        answer: Request = {"state": await intake.state_of(inbound) or ""}
        if request.get("once") and console.others is not None:
            others = await console.others(ADDRESS.key, "console", number)
            answer.update(others=sorted(others), shared=console.shared)
        return answer

    return {"attach": attach, "say": say}


def operations_of(app: App) -> Mapping[str, Operation]:
    """Return all that the private socket of a running bot offers."""
    return {
        "call": lambda request, emit: call_method(app, request, emit),
        **terminal_operations(
            app.channels.console,
            app.access,
            app.intake,
            app.settled,
            clock=app.clock,
            greeting={"model": app.choice.model, "why": app.choice.why},
        ),
    }
