"""People over the real store, by a clock that is told the time. For tests of access and linking."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from bot.commands.people import PeopleCommands
from bot.people.access import Access, Policy
from memory.database.connection import Database
from memory.records.messages import Address, IncomingMessage, OutboxId, Role
from memory.records.rows import Person
from memory.stores.outbox import SqliteOutbox
from memory.stores.people import SqlitePeople
from tests.memory.kit import StillClock

OWNER, MEMBER, GUEST, STRANGER = "telegram:1", "telegram:2", "telegram:3", "telegram:9"


class Codes:
    """Codes and ids in a known order."""

    def __init__(self) -> None:
        self._count = 0

    def code(self) -> str:
        self._count += 1
        return f"CODE{self._count:04d}"

    def id(self) -> str:
        self._count += 1
        return f"p{self._count}"


@dataclass(slots=True, kw_only=True)
class House:
    """Access and reception over one database, with what was handed to the outbox."""

    path: Path
    database: Database
    access: Access
    reception: PeopleCommands
    clock: StillClock
    codes: Codes
    delivered: list[tuple[str, OutboxId]] = field(default_factory=list)

    def person(self, address: str) -> Person:
        """Somebody who is known."""
        person = self.access.who(address)
        assert person is not None
        return person

    async def link(self, address: str, rest: str = "") -> str:
        """What `/link REST` says in the private chat of an address."""
        message = IncomingMessage(
            address=Address.parse(address), message_id="1", sender_id=address.partition(":")[2]
        )
        return await self.reception.link(self.person(address), message, rest)

    async def offered(self, address: str) -> str:
        """A code that was asked for by /link."""
        text = await self.link(address)
        return text.partition("/link ")[2][:8]

    async def told(self) -> list[tuple[str, str]]:
        """What is on its way to people: address and text."""
        return [(row.lane, row.text) for row in await SqliteOutbox(self.database).open_rows()]


async def housed(
    path: Path,
    database: Database,
    clock: StillClock,
    *,
    policy: Policy = "pairing",
    allowed: tuple[str, ...] = (),
    codes: Codes | None = None,
) -> House:
    """A house on this database, as after a start."""
    codes = codes or Codes()
    delivered: list[tuple[str, OutboxId]] = []
    access = Access(
        SqlitePeople(database),
        policy=policy,
        allowed=allowed,
        clock=clock,
        deliver=delivered.extend,
        new_id=codes.id,
        new_code=codes.code,
    )
    await access.load()
    return House(
        path=path,
        database=database,
        access=access,
        reception=PeopleCommands(access, clock=clock, host_zone="Europe/Vienna"),
        clock=clock,
        codes=codes,
        delivered=delivered,
    )


async def let_in(house: House) -> None:
    """An owner, a member and a guest."""
    await house.access.approve(OWNER)
    await house.access.approve(MEMBER)
    await house.access.approve(GUEST, role=Role.GUEST)
