"""Puts the budget together, and carries what it has to say to people. Called by `bot.app`."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import structlog

from agent.budget.budget import Budget
from agent.budget.circuit_breaker import Brakes
from agent.models.router import Router
from agent.tools.arguments import ArgumentsWrong, parse_arguments
from agent.tools.exec import Order, Runner
from agent.tools.tool import Caller, Effect
from agent.tools.toolbox import Toolbox
from agent.web.client import WebClient, WebRequest
from bot.channels.base import Pressed
from bot.commands.table import as_typed
from bot.commands.usage import NOT_PAUSED, UsageCommand
from bot.outbox.edits import QuestionMessages
from bot.people.access import Access
from bot.settings.home import Home
from bot.settings.options import brake_options_of, budget_options_of, host_zone
from bot.settings.schema.settings import Settings
from memory.records.errors import Permanent
from memory.records.messages import Address, ConversationId, PersonId, Role, RunId
from memory.records.ports import Clock
from memory.records.rows import Button, NewMessage, Person
from memory.records.spending import NOBODY, Notice, Scope, zone_for
from memory.stores.usage import SqliteUsage

# --- check means --------------------------------------------------------------------------------
#
# What the cheap checks of the heartbeat act through: the guarded web client, tools that change
# nothing, and programs in the sandbox. The owner named them in the settings.

COMMAND_TIMEOUT_S = 30.0
_EXIT_CODE = re.compile(r"exit code (\d+)")


class CheckNotMade(Permanent):
    """A check cannot be made; the sentence says why."""


class CheckMeans:
    """Fetches, calls and runs for checks. Everything raises AssistantError."""

    def __init__(
        self,
        client: WebClient,
        toolbox: Toolbox,
        runner: Runner,
        *,
        owner: Callable[[], PersonId | None],
    ) -> None:
        self._client = client
        self._toolbox = toolbox
        self._runner = runner
        self._owner = owner

    async def fetch(self, url: str) -> str:
        """The text of a page, as it came."""
        fetched = await self._client.fetch(WebRequest(url=url))
        if fetched.status >= 400:
            raise CheckNotMade(f"the page answered with HTTP status {fetched.status}")
        return fetched.body.decode(fetched.charset or "utf-8", "replace")

    async def call(self, name: str) -> str:
        """What a tool that changes nothing says, called without arguments."""
        await self._toolbox.ready()
        tool = self._toolbox.get(name)
        if tool is None:
            raise CheckNotMade(f"there is no tool {name[:64]!r}")
        if tool.card.effect is not Effect.NONE:
            raise CheckNotMade(f"{name} changes something, so it is no check")
        try:
            arguments = parse_arguments(tool.card.arguments, json.dumps({}))
        except ArgumentsWrong as error:
            raise CheckNotMade(f"{name} cannot be called without arguments: {error}") from error
        return await tool.run(arguments, self._caller())

    async def run(self, command: str) -> int:
        """The exit code of a program, run as `exec` runs one."""
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise CheckNotMade(f"{command[:80]!r} cannot be read: {error}") from error
        order = Order(command=words, folder=self._runner.root, timeout_s=COMMAND_TIMEOUT_S)
        found = _EXIT_CODE.search(await self._runner.run(order, self._caller()))
        if found is None:
            raise CheckNotMade("the program did not end by itself")
        return int(found[1])

    def _caller(self) -> Caller:
        owner = self._owner()
        if owner is None:
            raise CheckNotMade("nobody owns this bot yet")
        return Caller(
            person_id=owner,
            role=Role.OWNER,
            address=Address(channel="job", chat_id="check"),
            conversation=ConversationId("check"),
            run_id=RunId("check"),
            unattended=True,
            agreed=True,
        )


# --- place --------------------------------------------------------------------------------------
#
# What every part of the wiring may be given.


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """The home, its settings, the time and the environment."""

    home: Home
    settings: Settings
    clock: Clock
    env: Mapping[str, str]


log = structlog.get_logger()

TOO_OLD = "That was taken care of already."
GOING_ON = "Going on since {since}."


class Telling:
    """Tells a person, or the owner, in a private chat: stored before it is on its way."""

    def __init__(self, access: Access, say: Callable[[NewMessage], Awaitable[None]]) -> None:
        self._access = access
        self._say = say

    async def __call__(self, notice: Notice) -> None:
        """Raises StorageError. Somebody who has no chat that waits is told by /usage alone."""
        person = self._access.owner_id() if notice.person_id == NOBODY else notice.person_id
        chats = [] if person is None else await self._access.ways_to(person)
        if not chats:
            log.warning("usage.untold", key=notice.key)
            return
        row = tuple(Button(label=one.label, data=one.data) for one in notice.buttons)
        text = as_typed(notice.text, chats[0])
        await self._say(NewMessage(lane=chats[0], text=text, buttons=(row,) if row else ()))


def budget_of(place: Workplace, ledger: SqliteUsage, pool: Router, *, tell: Telling) -> Budget:
    """Of the settings."""
    clock: Clock = place.clock
    return Budget(
        ledger,
        pool.price,
        Brakes(brake_options_of(place.settings), clock),
        options=budget_options_of(place.settings),
        clock=clock,
        host_zone=ZoneInfo(host_zone()),
        tell=tell,
    )


def pressed_by(
    usage: UsageCommand, cards: QuestionMessages, *, clock: Clock
) -> Callable[[Pressed, Person], Awaitable[str]]:
    """What the brake's button does: only for those who may resume. Its card then says so."""

    async def press(pressed: Pressed, person: Person) -> str:
        said = await usage.pressed(pressed.data, person)
        if said is None or person.role is not Role.OWNER:
            return said or TOO_OLD
        zone = zone_for(Scope.PERSON, person.time_zone, ZoneInfo(host_zone()))
        since = clock.now().astimezone(zone)
        outcome = TOO_OLD if said == NOT_PAUSED else GOING_ON.format(since=f"{since:%H:%M}")
        await cards.close(pressed, outcome)
        return said

    return press
