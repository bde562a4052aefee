"""What the private socket of a home offers to the terminal and to other commands.

Served by `bot.rpc`. The socket is the owner's alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bot.channels.console import ADDRESS, SENDER, ConsoleChannel
from bot.commands.conversation import session_operations
from bot.commands.job_service import job_operations
from bot.commands.mcp import mcp_operations
from bot.commands.models import model_operations
from bot.commands.prompts import prompt_operations
from bot.commands.services import Status
from bot.commands.skills import skill_operations
from bot.commands.usage import usage_operations
from bot.inbox.intake import InboundEvent, Intake
from bot.people.access import Access
from bot.rpc import Emit, Operation
from memory.records.messages import Role
from memory.records.ports import Clock

if TYPE_CHECKING:
    from bot.app import App

Request = dict[str, Any]


def access_operations(access: Access) -> Mapping[str, Operation]:
    """Who may talk to the bot."""

    async def list_access(request: Request, emit: Emit) -> Request:
        return access.as_json(await access.last_seen())

    async def approve(request: Request, emit: Emit) -> Request:
        role = Role(request["role"]) if request["role"] else None
        done = await access.approve(request["who"], role=role)
        return {"text": done.text, "address": done.address}

    async def deny(request: Request, emit: Emit) -> Request:
        return {"text": await access.deny(request["who"])}

    async def role(request: Request, emit: Emit) -> Request:
        return {"text": await access.set_role(request["who"], Role(request["role"]))}

    async def remove(request: Request, emit: Emit) -> Request:
        return {"text": await access.remove(request["who"])}

    async def link(request: Request, emit: Emit) -> Request:
        return {"text": await access.link(request["who"], request["address"])}

    return {
        "access.list": list_access,
        "access.approve": approve,
        "access.deny": deny,
        "access.role": role,
        "access.remove": remove,
        "access.link": link,
    }


def status_operations(
    status: Status, troubles: Callable[[], Sequence[str]]
) -> Mapping[str, Operation]:
    """How the bot is doing, and what housekeeping has to tell the doctor."""

    async def lines(request: Request, emit: Emit) -> Request:
        return {"lines": await status.lines(for_owner=True)}

    async def house(request: Request, emit: Emit) -> Request:
        return {"lines": list(troubles())}

    return {"status": lines, "house": house}


def terminal_operations(
    console: ConsoleChannel,
    access: Access,
    door: Intake,
    settled: Callable[[str], Awaitable[None]],
    *,
    clock: Clock,
    greeting: Mapping[str, str],
) -> Mapping[str, Operation]:
    """A conversation in the terminal. `settled` returns once nothing of a lane runs, waits or is on
    its way."""

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
        """`state`; to who wants its answer alone (`once`) also the ids of `others`, messages that
        do not belong to it, and whether these are shown elsewhere (`shared`)."""
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
        await door.handle(console, await door.store([inbound]))
        await settled(ADDRESS.key)
        answer: Request = {"state": await door.state_of(inbound) or ""}
        if request.get("once") and console.others is not None:
            others = await console.others(ADDRESS.key, "console", number)
            answer.update(others=sorted(others), shared=console.shared)
        return answer

    return {"attach": attach, "say": say}


def operations_of(app: App) -> Mapping[str, Operation]:
    """All that the private socket of a running bot offers."""
    return {
        **access_operations(app.access),
        **status_operations(app.status, app.housekeeping.troubles),
        **prompt_operations(app.prompts),
        **skill_operations(app.abilities.skills),
        **model_operations(app.models),
        **usage_operations(app.usage),
        **mcp_operations(app.mcp),
        **app.memories.operations.served(),
        **session_operations(app.sessions),
        **job_operations(app.calendar.jobs, app.calendar.dry_runs),
        **terminal_operations(
            app.channels.console,
            app.access,
            app.intake,
            app.settled,
            clock=app.clock,
            greeting={"model": app.choice.model, "why": app.choice.why},
        ),
    }
