"""People, their addresses and roles: who is let in (SPEC §4). Called by the inbox and the CLI.

Closed by default, but for the allow list of the settings (`allow_from`). An address
is a channel and a numeric id; names are never identity. The whole directory is small and stands in
memory; every change goes through the store first.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import structlog

from bot.people.linking import Deliver, Linking, LinkRefused, Redeemed, if_it_is_you
from bot.people.pairing import ANSWER_EVERY_MS, Pairings, UnknownCode, is_group
from bot.people.register import (
    CODE_ALPHABET,
    CODE_CHARS,
    CONSOLE_ADDRESS,
    Register,
    called,
    gone,
    new_code,
    shown,
)
from bot.people.timezone import zone_of
from memory.records.errors import Permanent
from memory.records.languages import language_of
from memory.records.messages import Address, PersonId, Role
from memory.records.ports import Clock
from memory.records.rows import Person
from memory.stores.people import SqlitePeople

__all__ = [
    "ADMITTED",
    "ANSWER_EVERY_MS",
    "CODE_ALPHABET",
    "CODE_CHARS",
    "CONSOLE_ADDRESS",
    "DENIED",
    "Access",
    "Approved",
    "LastOwner",
    "OwnerFirst",
    "Policy",
    "UnknownCode",
    "UnknownPerson",
    "UnnamedPerson",
]

log = structlog.get_logger()

Policy = Literal["pairing", "allowlist", "open"]

HINT_EVERY_MS = 3_600_000
"""The owner gets at most one hint about a chat in this time."""

ADMITTED, DENIED = "admitted", "denied"
PEOPLE_NAMED_MAX = 10


class OwnerFirst(Permanent):
    """There is no owner yet, so nobody can be given another role."""


class UnknownPerson(Permanent):
    """Nobody who is let in has this address or id."""


class UnnamedPerson(Permanent):
    """Nobody is called so, or several people are; the text says who there is."""


class LastOwner(Permanent):
    """One owner is always there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """What an approval did."""

    address: str
    person: Person | None
    text: str
    is_new: bool = False
    """Whether a person was let in who was not before."""


class Access(Register):
    """Who may speak, and how a stranger becomes a person."""

    def __init__(
        self,
        store: SqlitePeople,
        *,
        policy: Policy,
        allowed: Sequence[str],
        clock: Clock,
        deliver: Deliver = lambda rows: None,
        new_id: Callable[[], str] = lambda: f"p_{secrets.token_hex(8)}",
        new_code: Callable[[], str] = new_code,
    ) -> None:
        """`deliver` sends rows that are stored."""
        super().__init__(store, clock)
        self.policy: Policy = policy
        """What becomes of strangers."""
        self._allowed = frozenset(allowed)
        self._new_id = new_id
        self._hinted_ms: dict[str, int] = {}
        self.pairings = Pairings(self, new_code=new_code)
        self.linking = Linking(self, deliver=deliver, new_code=new_code)

    # --- who is let in ------------------------------------------------------------------------

    def is_at_terminal(self, person_id: PersonId) -> bool:
        """Return whether this person talks in the terminal of this machine."""
        person = self.person(person_id)
        return person is not None and CONSOLE_ADDRESS in person.addresses

    def owner_id(self) -> PersonId | None:
        """The first owner's id; None before there is one."""
        return next((owner.id for owner in self.owners()), None)

    def is_admitted(self, chat: Address) -> bool:
        """Return whether the owner admitted this group chat (all its topics)."""
        return self.directory.chats.get(_chat_key(chat)) == ADMITTED

    def hint_is_due(self, chat: Address) -> bool:
        """Return whether the owner may be told that this chat is not admitted: once an hour, and
        never of one that was shut out. Counts as told."""
        key, now_ms = _chat_key(chat), self.now_ms()
        told_ms = self._hinted_ms.get(key)
        if self.directory.chats.get(key) == DENIED:
            return False
        if told_ms is not None and now_ms - told_ms < HINT_EVERY_MS:
            return False
        self._hinted_ms = {
            other: ms for other, ms in self._hinted_ms.items() if now_ms - ms < HINT_EVERY_MS
        }
        self._hinted_ms[key] = now_ms
        return True

    async def recognise(self, sender: str, *, is_group: bool, link: str = "") -> Person | None:
        """As `who`; somebody whom the settings let in becomes a person at the first message.

        Members by `allow_from`, guests by `policy = "open"` (private chats alone); nobody whom the
        owner shut out. `link` is the code when the message is `/link CODE` and nothing else
        (`bot.channels.wire.link_code`): in a private chat it makes the address one of the person
        who asked for it. It is not stored here, and nothing else of a stranger's words is looked
        at.
        """
        known = self.who(sender)
        if known is not None or self.pairings.is_denied(sender):
            return known
        if link and not is_group:
            outcome = await self.linking.redeem(sender, link)
            if outcome is Redeemed.LINKED:
                return self.who(sender)
        if sender in self._allowed:
            return await self._add(sender, Role.MEMBER)
        if self.policy == "open" and not is_group:
            return await self._add(sender, Role.GUEST)
        return None

    async def answer_stranger(self, sender: str) -> str | None:
        """Return what a stranger is told, or None: at most one answer an hour, and three codes
        open.

        Nothing of the stranger's message is looked at.
        """
        return await self.pairings.answer(sender) if self.policy == "pairing" else None

    # --- for the owner ------------------------------------------------------------------------

    async def owner_of_this_machine(self) -> Person:
        """The person of the terminal: the owner, made when there is none yet."""
        async with self.changing:
            if self.who(CONSOLE_ADDRESS) is None:
                await self.load()  # an earlier try may have been ended between its write and this
            known = self.who(CONSOLE_ADDRESS)
            if known is not None:
                return known
            return await self._make_owner(CONSOLE_ADDRESS)

    async def approve(self, wanted: str, *, role: Role | None = None) -> Approved:
        """Lets somebody in by code or address, or admits a group chat (`telegram:-100123`).

        The first address approved belongs to the owner; later ones are members unless a role is
        named. Raises UnknownCode, OwnerFirst.
        """
        async with self.changing:
            address = self.pairings.address_of(wanted)
            if is_group(address):
                await self.store.set_chat(address, ADMITTED)
                await self.load()
                return Approved(address=address, person=None, text=f"Admitted the chat {address}.")
            known = self.who(address)
            if known is not None:
                return Approved(
                    address=address, person=known, text=f"{address} is {known.role} already."
                )
            # The terminal of this machine alone makes no owner who can be reached.
            if all(set(owner.addresses) <= {CONSOLE_ADDRESS} for owner in self.owners()):
                if role not in {None, Role.OWNER}:
                    raise OwnerFirst(
                        f"The first one approved becomes the owner, so {address} cannot be a "
                        f"{role} yet. Approve your own address first: write to the bot, and "
                        "approve the code that it gives you."
                    )
                person = await self._make_owner(address)
            else:
                person = await self._add(address, role or Role.MEMBER)
            text = f"{address} is now {person.role}."
            if not self._lets_in(address):
                text += if_it_is_you(address, self.owners())
            return Approved(address=address, person=person, text=text, is_new=True)

    async def _make_owner(self, address: str) -> Person:
        owners = self.owners()
        if not owners:
            return await self._add(address, Role.OWNER)
        await self.store.add_address(owners[0].id, address)
        await self.load()
        return self._find(address)

    async def deny(self, wanted: str) -> str:
        """Shuts somebody out, or a group chat. Raises UnknownCode."""
        async with self.changing:
            address = self.pairings.address_of(wanted)
            known = self.who(address)
            if is_group(address):
                await self.store.set_chat(address, DENIED)
            else:
                if known is not None and known.role is Role.OWNER and len(known.addresses) == 1:
                    raise LastOwner(f"{address} is the owner's only address; it stays.")
                await self.store.remove_address(address)
                await self.store.put_pairing(self.pairings.denied(address))
            await self.load()
            others = [other for other in known.addresses if other != address] if known else []
            if not others:
                return f"{address} is shut out."
            return (
                f"{address} is shut out. Its person still has {' and '.join(others)}; "
                f"`hearthbot access remove {others[0]}` takes everything away."
            )

    async def set_role(self, wanted: str, role: Role) -> str:
        """Gives somebody another role, from their next message on. `wanted` is an address or an
        id. Raises UnknownPerson, LastOwner."""
        async with self.changing:
            person = self._find(wanted)
            if person.role is role:
                return f"{shown(person)} is {role} already."
            if person.role is Role.OWNER:
                await self._step_down(person, so_that_not=f"be a {role}")
            await self.store.update_person(replace(person, role=role))
            await self.load()
            log.info("access.role", person=person.id, was=person.role.value, role=role.value)
            return f"{shown(person)} is now {role} (was {person.role}), from the next message on."

    async def remove(self, wanted: str) -> str:
        """Makes a person a stranger again, with all their addresses. What they were let in for
        (turns that run or wait) goes on to its end; nothing new begins. Where the settings would
        let them in again at once, they are shut out. Raises UnknownPerson, LastOwner."""
        async with self.changing:
            person = self._find(wanted)
            if person.role is Role.OWNER:
                await self._step_down(person, so_that_not="be removed")
            back = [address for address in person.addresses if self._lets_in(address)]
            denied = [self.pairings.denied(address) for address in back]
            await self.store.remove_person(person.id, denied=denied)
            await self.load()
            log.info("access.removed", person=person.id)
        text = f"{shown(person)} is a stranger again, from the next message on."
        if back:
            text += f" The settings would let {' and '.join(back)} in, so that is shut out."
        return (
            f"{text} What is remembered of them is kept, and what they said in groups is still "
            f"known there: `hearthbot memory list --person {person.id}` shows it, and "
            f"`hearthbot memory forget everything --person {person.id}` erases it."
        )

    def _lets_in(self, address: str) -> bool:
        """Return whether the settings make a stranger of this address a person at the first
        message."""
        return address in self._allowed or (self.policy == "open" and address != CONSOLE_ADDRESS)

    async def _step_down(self, owner: Person, *, so_that_not: str) -> None:
        """An owner may go when another is there, who gets the terminal with it."""
        if len(self.owners()) == 1:
            raise LastOwner(
                f"{shown(owner)} is the only owner and cannot {so_that_not}. Make somebody else "
                "an owner first: hearthbot access role WHO owner"
            )
        if CONSOLE_ADDRESS in owner.addresses:
            await self.store.remove_address(CONSOLE_ADDRESS)
            await self.load()

    async def link(self, known: str, other: str) -> str:
        """Joins `other`, an address or the code that it was given, to the person of `known`.
        Raises LinkRefused, UnknownCode."""
        address = self.pairings.address_of(other)
        if is_group(address):
            raise LinkRefused(f"{address} is a group chat: it belongs to nobody.")
        return await self.linking.link(known.strip(), address)

    async def set_time_zone(self, person: Person, zone: str) -> None:
        """Keeps an IANA name; empty goes back to the machine's. Raises UnknownPerson."""
        async with self.changing:
            current = self._find(person.id)
            await self.store.update_person(replace(current, time_zone=zone))
            await self.load()

    async def set_language(self, person: Person, language: str) -> None:
        """Keeps a code of `memory.records.languages`, or AUTO; empty goes back to what is set for
        all. Raises UnknownPerson."""
        async with self.changing:
            current = self._find(person.id)
            await self.store.update_person(replace(current, language=language))
            await self.load()

    async def introduce(
        self, address: str, *, name: str = "", time_zone: str = "", language: str = ""
    ) -> None:
        """What a platform says of a person: name and zone are kept where nothing is known yet, and
        only if the zone is one; the language as it is now, for a hint. A stranger's is not kept.
        Raises StorageError."""
        zone = time_zone if zone_of(time_zone) is not None else ""
        async with self.changing:
            known = self.who(address)
            if known is None:
                return
            # Of several platforms that of the oldest address has the say on the language: a hint
            # that went to and fro would change the prompts.
            heard, hint = language_of(language), known.language_hint
            platforms = [one for one in known.addresses if one != CONSOLE_ADDRESS]
            if heard is not None and (not hint or address in platforms[:1]):
                hint = heard.code
            told = replace(
                known,
                name=known.name or name,
                time_zone=known.time_zone or zone,
                language_hint=hint,
            )
            if told != known:
                await self.store.update_person(told)
                await self.load()

    async def last_seen(self) -> Mapping[PersonId, int]:
        """When each person last wrote something that was not a command, in epoch ms."""
        return await self.store.last_seen()

    async def private_chats(self, person_id: PersonId) -> Sequence[str]:
        """Address keys of the chats that are this person's alone; the usual one first."""
        return await self.store.private_chats(person_id)

    async def ways_to(self, person_id: PersonId) -> list[str]:
        """Return where this person alone reads: the usual chat first, the terminal last, which
        shows it when it is opened next. Raises StorageError."""
        chats = [*await self.private_chats(person_id)]
        return [*chats, CONSOLE_ADDRESS] if self.is_at_terminal(person_id) else chats

    async def alone_in(self, lane: str) -> PersonId | None:
        """Whose private chat this is, or a thread of it; None where others read along, or nobody
        is known to. Raises StorageError."""
        chat = ":".join(lane.split(":")[:2])
        for person in self.directory.people:
            if chat in person.addresses or chat in await self.private_chats(person.id):
                return person.id
        return None

    async def overview(self) -> dict[str, Any]:
        """Return the directory for a table or `--json`; codes that are past are left out. Raise
        StorageError."""
        seen_ms = await self.last_seen()
        return {
            "policy": self.policy,
            "allow_from": sorted(self._allowed),
            "people": [
                {
                    "id": person.id,
                    "role": person.role.value,
                    "name": person.name,
                    "addresses": list(person.addresses),
                    "time_zone": person.time_zone,
                    "last_seen_ms": seen_ms.get(person.id),
                }
                for person in self.directory.people
            ],
            "chats": dict(self.directory.chats),
            "asking": [
                {"address": p.address, "code": p.code, "expires_ms": p.expires_ms}
                for p in self.pairings.open()
            ],
            "denied": self.pairings.shut_out(),
        }

    # --- for the command line -------------------------------------------------------------------

    async def named(self, wanted: str) -> Person:
        """Return somebody by id, address or name; the owner where nobody is named. Raise
        UnnamedPerson."""
        people = self.directory.people
        if not wanted:
            if owners := self.owners():
                return owners[0]
            raise UnnamedPerson(
                "Nobody owns this bot yet, so nothing is remembered. Talk with it here "
                "(`hearthbot chat`), or set up Telegram or Slack (`hearthbot init`): the first "
                "one who is let in is its owner."
            )
        exact = [one for one in people if wanted == one.id or wanted in one.addresses]
        named = [one for one in people if one.name.casefold() == wanted.casefold()]
        if len(found := exact or named) == 1:
            return found[0]
        names = called(people)
        known = ", ".join(names[one.id] for one in (named or people)[:PEOPLE_NAMED_MAX])
        if named:
            raise UnnamedPerson(
                f"{wanted[:64]!r}: more than one person is called that. Name an address, or one of "
                f"the ids: {known}"
            )
        raise UnnamedPerson(
            f"{wanted[:64]!r}: nobody is called that. There are: {known}. `hearthbot access list` "
            "has their addresses, which do as well."
        )

    async def called(self, person_id: PersonId) -> str:
        """Return what somebody is called where the owner reads of several."""
        return called(self.directory.people).get(person_id) or gone(person_id)

    # --- inside -------------------------------------------------------------------------------

    def _find(self, wanted: str) -> Person:
        person = self.find(wanted)
        if person is None:
            raise UnknownPerson(
                f"Nobody here is {wanted.strip()!r}. `hearthbot access list` (in a "
                "chat: `/access`) shows everybody; an address looks like "
                "telegram:123456789 (a number: names can change hands)."
            )
        return person

    async def _add(self, address: str, role: Role) -> Person:
        person = Person(id=PersonId(self._new_id()), role=role, addresses=(address,))
        await self.store.add_person(person)
        await self.load()
        log.info("access.person", address=address, role=role.value)
        return self._find(address)


def _chat_key(chat: Address) -> str:
    """Of the chat as a whole, with all its topics."""
    return f"{chat.channel}:{chat.chat_id}"
