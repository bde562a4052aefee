"""Puts the budget together, and carries what it has to say to people. Called by `bot.app`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from zoneinfo import ZoneInfo

import structlog

from agent.brake import Brakes
from agent.budget import Budget
from agent.messages import Role
from agent.models.prices import Price, PriceTable
from agent.ports import Clock
from agent.spending import NOBODY, Notice, Scope, UsageLedger, zone_for
from agent.stored import Button, NewMessage
from bot.access import Access
from bot.cards import Cards
from bot.channel import Pressed
from bot.commands import as_typed
from bot.model_pool import ModelPool
from bot.options import host_zone
from bot.options_tools import brake_options_of, budget_options_of
from bot.place import Workplace
from bot.ports import Person
from bot.usage import NOT_PAUSED, UsageDesk

log = structlog.get_logger()

TOO_OLD = "That was taken care of already."
GOING_ON = "Going on since {since}."


class PricesOfPool:
    """Implements `agent.spending.FindsPrices`: a model of the pool under its name in the table."""

    def __init__(self, pool: ModelPool) -> None:
        self._pool = pool
        self._table = PriceTable()

    async def find(self, model: str) -> Price | None:
        """None: the table does not know it."""
        return await self._table.find(self._pool.priced_as(model))


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


def budget_of(place: Workplace, ledger: UsageLedger, pool: ModelPool, *, tell: Telling) -> Budget:
    """Of the settings."""
    clock: Clock = place.clock
    return Budget(
        ledger,
        PricesOfPool(pool),
        Brakes(brake_options_of(place.settings), clock),
        options=budget_options_of(place.settings),
        clock=clock,
        host_zone=ZoneInfo(host_zone()),
        tell=tell,
    )


def pressed_by(
    desk: UsageDesk, cards: Cards, *, clock: Clock
) -> Callable[[Pressed, Person], Awaitable[str]]:
    """What the brake's button does: only for those who may resume. Its card then says so."""

    async def press(pressed: Pressed, person: Person) -> str:
        said = await desk.pressed(pressed.data, person)
        if said is None or person.role is not Role.OWNER:
            return said or TOO_OLD
        zone = zone_for(Scope.PERSON, person.time_zone, ZoneInfo(host_zone()))
        since = clock.now().astimezone(zone)
        outcome = TOO_OLD if said == NOT_PAUSED else GOING_ON.format(since=f"{since:%H:%M}")
        await cards.close(pressed, outcome)
        return said

    return press
