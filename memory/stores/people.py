"""People: who is let in, where, and by which accounts."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence

from memory.database.connection import Database
from memory.database.rows import first, named, record, records, to_row
from memory.facts.profile import persona_prompt, profile_in, profile_text
from memory.facts.recall import About
from memory.records.facts import RecallWanted
from memory.records.messages import OutboxId, PersonId, Role
from memory.records.rows import Directory, LinkCode, NewMessage, Pairing, Person
from memory.stores.outbox import add_message

_PEOPLE = """
select id, role, name, time_zone, language, language_hint from people order by created_ms, rowid
"""
_ADDRESSES = "select person_id, address from addresses order by created_ms, rowid"
_CHATS = "select chat, state from chats order by chat"
_PAIRINGS = """
select address, channel, code, state, created_ms, expires_ms, answered_ms from pairings
order by created_ms, address
"""
_ADD_PERSON = """
insert into people (id, role, name, time_zone, language, language_hint, created_ms)
values (:id, :role, :name, :time_zone, :language, :language_hint, :now_ms)
"""
_ADD_ADDRESS = "insert into addresses (address, person_id, created_ms) values (?, ?, ?)"
_REMOVE_ADDRESS = "delete from addresses where address = ?"
_SET_CHAT = """
insert into chats (chat, state, created_ms) values (?, ?, ?)
on conflict (chat) do update set state = excluded.state
"""
_PUT_PAIRING = """
insert into pairings (address, channel, code, state, created_ms, expires_ms, answered_ms)
values (:address, :channel, :code, :state, :created_ms, :expires_ms, :answered_ms)
on conflict (address) do update set
    channel = excluded.channel, code = excluded.code, state = excluded.state,
    created_ms = excluded.created_ms, expires_ms = excluded.expires_ms,
    answered_ms = excluded.answered_ms
"""
_REMOVE_PAIRING = "delete from pairings where address = ?"
_UPDATE_PERSON = """
update people set role = :role, name = :name, time_zone = :time_zone, language = :language,
    language_hint = :language_hint
where id = :id
"""
_REMOVE_ADDRESSES = "delete from addresses where person_id = ?"
_LINK_CODES = """
select code, person_id, address, lane, created_ms, expires_ms, used_by from link_codes
order by created_ms, rowid
"""
_PUT_LINK_CODE = """
insert into link_codes (code, person_id, address, lane, created_ms, expires_ms, used_by)
values (:code, :person_id, :address, :lane, :created_ms, :expires_ms, :used_by)
"""
_DROP_LINK_CODES = """
delete from link_codes where expires_ms <= ? or (person_id = ? and used_by = '')
"""
_REMOVE_LINK_CODES = "delete from link_codes where person_id = ?"
_USE_LINK_CODE = "update link_codes set used_by = ? where code = ? and used_by = ''"
_OTHER_HOLDER = """
select people.id, role, (select count(*) from addresses where person_id = people.id)
from addresses join people on people.id = addresses.person_id where address = ?
"""
_REMOVE_PERSON = "delete from people where id = ?"
# Every row that belongs to a person carries its id in a column of this name (SPEC §4), so that
# tables which come later are looked at without being named here.
_TABLES_OF_PEOPLE = """
select tables.name from sqlite_master as tables, pragma_table_info(tables.name) as columns
where tables.type = 'table' and columns.name = 'person_id'
and tables.name not in ('addresses', 'link_codes')
"""
_LAST_SEEN = """
select person_id, max(created_ms) from turns
where inbox_id is not null or message_id <> '' group by person_id
"""
_TELEGRAM_CHATS = """
select address from addresses
where person_id = ? and address glob 'telegram:[0-9]*' and not address glob 'telegram:*[^0-9]*'
order by created_ms, rowid
"""
# A member's address on Slack is not where they read: the chat is known once they have written.
_SLACK_LANES = """
select lane from (
    select lane, seq from turns where person_id = :person and lane glob 'slack:*.D*'
    union all
    select deliver_to, 0 from jobs where person_id = :person and deliver_to glob 'slack:*.D*'
)
group by lane order by max(seq) desc
"""
_OWNERS = "select id from people where role = 'owner' order by created_ms, rowid"


class SqlitePeople:
    """People, their addresses, group chats, and who asked to be let in.

    A person or an address that is known already is never moved or replaced: StorageError.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def directory(self) -> Directory:
        """Everybody and every chat, as of one moment."""

        def work(connection: sqlite3.Connection) -> Directory:
            addresses: defaultdict[str, list[str]] = defaultdict(list)
            for person_id, address in connection.execute(_ADDRESSES):
                addresses[person_id].append(address)
            return Directory(
                people=tuple(
                    record(Person, row, addresses=tuple(addresses[row["id"]]))
                    for row in named(connection.execute(_PEOPLE))
                ),
                chats=dict(connection.execute(_CHATS).fetchall()),
                pairings=tuple(records(Pairing, connection.execute(_PAIRINGS))),
                links=tuple(records(LinkCode, connection.execute(_LINK_CODES))),
            )

        return await self._database.read(work)

    async def add_person(self, person: Person) -> None:
        """Adds a person with its addresses, and removes their pairings."""
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_ADD_PERSON, {**to_row(person), "now_ms": now_ms})
            for address in person.addresses:
                _add_address(connection, person.id, address, now_ms=now_ms)

        await self._database.write(work)

    async def add_address(self, person_id: PersonId, address: str) -> None:
        """Joins one more address to a person, and removes its pairing."""
        now_ms = self._database.now_ms()
        await self._database.write(lambda c: _add_address(c, person_id, address, now_ms=now_ms))

    async def update_person(self, person: Person) -> None:
        """Stores role, name, time zone and languages anew; addresses are left as they are."""
        await self._database.execute(_UPDATE_PERSON, to_row(person))

    async def remove_person(self, person_id: PersonId, *, denied: Sequence[Pairing] = ()) -> None:
        """Takes all addresses and open codes of a person away, and stores who is shut out with
        it. What is kept of the person stays, under its id."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_REMOVE_ADDRESSES, (person_id,))
            connection.execute(_REMOVE_LINK_CODES, (person_id,))
            connection.executemany(_PUT_PAIRING, map(to_row, denied))

        await self._database.write(work)

    async def put_link_code(self, code: LinkCode) -> None:
        """Adds a code in place of the person's open one, and forgets those that are past."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_DROP_LINK_CODES, (code.created_ms, code.person_id))
            connection.execute(_PUT_LINK_CODE, to_row(code))

        await self._database.write(work)

    async def link(
        self,
        person_id: PersonId,
        address: str,
        *,
        notices: Sequence[NewMessage] = (),
        code: str = "",
    ) -> Sequence[OutboxId] | None:
        """Joins an address to a person, marks the code used, and adds the notices to the outbox.

        None, and nothing is changed, when the address belongs to another person of whom anything
        is kept, who has further addresses, or who is an owner; any other such person is gone.
        """
        now_ms = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> list[OutboxId] | None:
            if not _freed(connection, address):
                return None
            _add_address(connection, person_id, address, now_ms=now_ms)
            connection.execute(_USE_LINK_CODE, (address, code))
            return [add_message(connection, notice, now_ms=now_ms) for notice in notices]

        return await self._database.write(work)

    async def last_seen(self) -> Mapping[PersonId, int]:
        """When the newest message of each person was queued, in epoch milliseconds."""
        return dict(await self._database.rows(_LAST_SEEN))

    async def private_chats(self, person_id: PersonId) -> Sequence[str]:
        """Address keys of the chats that are this person's alone; the usual one first."""
        return await self._database.read(lambda c: private_chats(c, person_id))

    async def remove_address(self, address: str) -> None:
        """Takes an address away; the person's rows stay."""
        await self._database.execute(_REMOVE_ADDRESS, (address,))

    async def set_chat(self, chat: str, state: str) -> None:
        """`admitted` or `denied`."""
        await self._database.execute(_SET_CHAT, (chat, state, self._database.now_ms()))

    async def put_pairing(self, pairing: Pairing) -> None:
        """Adds or replaces the pairing of an address."""
        await self._database.execute(_PUT_PAIRING, to_row(pairing))

    async def remove_pairings(self, *addresses: str) -> None:
        """Forgets who asked."""
        await self._database.execute_many(_REMOVE_PAIRING, ((address,) for address in addresses))


def owner_address(connection: sqlite3.Connection) -> str | None:
    """The private chat where the owner can be told something, if there is one."""
    for (owner,) in connection.execute(_OWNERS).fetchall():
        for chat in private_chats(connection, owner):
            return chat
    return None


def private_chats(connection: sqlite3.Connection, person_id: str) -> list[str]:
    """Where this person alone reads: on Telegram by the verified address, on Slack where they have
    written in private, or set something up by a command."""
    found = [str(row[0]) for row in connection.execute(_TELEGRAM_CHATS, (person_id,))]
    lanes = (str(row[0]) for row in connection.execute(_SLACK_LANES, {"person": person_id}))
    # Who writes in threads alone, as in the assistant's pane, reads in the chat around them too.
    chats = dict.fromkeys(":".join(lane.split(":")[:2]) for lane in lanes)
    return [*found, *chats]


def _add_address(
    connection: sqlite3.Connection, person_id: PersonId, address: str, *, now_ms: int
) -> None:
    connection.execute(_ADD_ADDRESS, (address, person_id, now_ms))
    connection.execute(_REMOVE_PAIRING, (address,))


def _freed(connection: sqlite3.Connection, address: str) -> bool:
    """Return whether the address is nobody's now: a person who had it and nothing else is gone."""
    holder = connection.execute(_OTHER_HOLDER, (address,)).fetchone()
    if holder is None:
        return True
    whose, role, addresses = holder
    if role == Role.OWNER or addresses > 1:
        return False
    for (table,) in connection.execute(_TABLES_OF_PEOPLE).fetchall():
        # The name is one of our own migrations.
        sql = f'select 1 from "{table}" where person_id = ? limit 1'  # noqa: S608
        if connection.execute(sql, (whose,)).fetchone():
            return False
    connection.execute(_REMOVE_ADDRESSES, (whose,))
    connection.execute(_REMOVE_LINK_CODES, (whose,))
    connection.execute(_REMOVE_PERSON, (whose,))
    return True


# --- about --------------------------------------------------------------------------------------
#
# What a prompt says about a person: their row and their profile together. Asked by
# `memory.facts.recall`, in private chats alone.

_PERSON = "select id, role, name, time_zone, language from people where id = ?"


class AboutPeople:
    """The part `about` of `memory.facts.recall.SqliteRecall`. Nothing is kept between calls."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(self, wanted: RecallWanted) -> About:
        """Nothing for somebody unknown. Raises StorageError."""
        person, profile = await self._database.read(
            lambda c: (
                first(Person, c.execute(_PERSON, (wanted.person_id,))),
                profile_in(c, wanted.person_id),
            )
        )
        if person is None:
            return About()
        return About(profile=profile_text(person, profile), persona_prompt=persona_prompt(profile))
