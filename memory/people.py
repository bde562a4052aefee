"""Who is let in, and where: the `PeopleStore` that the doors need."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from typing import Any

from agent.messages import PersonId, Role
from agent.stored import Directory, Pairing, Person
from memory.database import Database
from memory.stored_text import storable

_PEOPLE = "select id, role, name, time_zone, language from people order by created_ms, rowid"
_ADDRESSES = "select person_id, address from addresses order by created_ms, rowid"
_CHATS = "select chat, state from chats order by chat"
_PAIRINGS = """
select address, channel, code, state, created_ms, expires_ms, answered_ms from pairings
order by created_ms, address
"""
_ADD_PERSON = """
insert into people (id, role, name, time_zone, language, created_ms) values (?, ?, ?, ?, ?, ?)
"""
_ADD_ADDRESS = "insert into addresses (address, person_id, created_ms) values (?, ?, ?)"
_REMOVE_ADDRESS = "delete from addresses where address = ?"
_SET_CHAT = """
insert into chats (chat, state, created_ms) values (?, ?, ?)
on conflict (chat) do update set state = excluded.state
"""
_PUT_PAIRING = """
insert into pairings (address, channel, code, state, created_ms, expires_ms, answered_ms)
values (?, ?, ?, ?, ?, ?, ?)
on conflict (address) do update set
    channel = excluded.channel, code = excluded.code, state = excluded.state,
    created_ms = excluded.created_ms, expires_ms = excluded.expires_ms,
    answered_ms = excluded.answered_ms
"""
_REMOVE_PAIRING = "delete from pairings where address = ?"
_OWNER_ADDRESS = """
select address from addresses join people on people.id = addresses.person_id
where role = 'owner' and address glob 'telegram:[0-9]*' and not address glob 'telegram:*[^0-9]*'
order by addresses.created_ms, addresses.rowid limit 1
"""


class SqlitePeople:
    """Implements `bot.ports.PeopleStore`.

    A person or an address that is known already is never moved or replaced: StorageError.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def directory(self) -> Directory:
        """Everybody and every chat, as of one moment."""
        return await self._database.read(_directory)

    async def add_person(self, person: Person) -> None:
        """Adds a person with its addresses, and removes their pairings."""
        now_ms = self._database.now_ms()
        words = (storable(person.name), person.time_zone, person.language)

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_ADD_PERSON, (person.id, person.role, *words, now_ms))
            for address in person.addresses:
                _add_address(connection, person.id, address, now_ms=now_ms)

        await self._database.write(work)

    async def add_address(self, person_id: PersonId, address: str) -> None:
        """Joins one more address to a person, and removes its pairing."""
        now_ms = self._database.now_ms()
        await self._database.write(lambda c: _add_address(c, person_id, address, now_ms=now_ms))

    async def remove_address(self, address: str) -> None:
        """Takes an address away; the person's rows stay."""
        await self._change(_REMOVE_ADDRESS, (address,))

    async def set_chat(self, chat: str, state: str) -> None:
        """`admitted` or `denied`."""
        await self._change(_SET_CHAT, (chat, state, self._database.now_ms()))

    async def put_pairing(self, pairing: Pairing) -> None:
        """Adds or replaces the pairing of an address."""
        times = (pairing.created_ms, pairing.expires_ms, pairing.answered_ms)
        values = (pairing.address, pairing.channel, pairing.code, pairing.state, *times)
        await self._change(_PUT_PAIRING, values)

    async def remove_pairings(self, *addresses: str) -> None:
        """Forgets who asked."""
        await self._change(_REMOVE_PAIRING, *((address,) for address in addresses))

    async def _change(self, sql: str, *rows: tuple[object, ...]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(sql, rows)

        await self._database.write(work)


def owner_address(connection: sqlite3.Connection) -> str | None:
    """The private chat where the owner can be told something, if there is one."""
    row = connection.execute(_OWNER_ADDRESS).fetchone()
    return None if row is None else str(row[0])


def _add_address(
    connection: sqlite3.Connection, person_id: PersonId, address: str, *, now_ms: int
) -> None:
    connection.execute(_ADD_ADDRESS, (address, person_id, now_ms))
    connection.execute(_REMOVE_PAIRING, (address,))


def _directory(connection: sqlite3.Connection) -> Directory:
    addresses: defaultdict[str, list[str]] = defaultdict(list)
    for person_id, address in connection.execute(_ADDRESSES):
        addresses[person_id].append(address)
    people = tuple(
        Person(
            id=PersonId(person_id),
            role=Role(role),
            name=name,
            addresses=tuple(addresses[person_id]),
            time_zone=time_zone,
            language=language,
        )
        for person_id, role, name, time_zone, language in connection.execute(_PEOPLE)
    )
    pairings = tuple(_pairing(row) for row in connection.execute(_PAIRINGS))
    return Directory(
        people=people, chats=dict(connection.execute(_CHATS).fetchall()), pairings=pairings
    )


def _pairing(row: tuple[Any, ...]) -> Pairing:
    address, channel, code, state, created_ms, expires_ms, answered_ms = row
    return Pairing(
        address=address,
        channel=channel,
        code=code,
        state=state,
        created_ms=created_ms,
        expires_ms=expires_ms,
        answered_ms=answered_ms,
    )
