"""People, their addresses and roles: who is let in (SPEC §4). Called by the door and the CLI.

Closed by default. An address is a channel and a numeric id; names are never identity. The whole
directory is small and stands in memory; every change goes through the store first.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import structlog

from agent.errors import Permanent
from agent.messages import Address, PersonId, Role
from agent.ports import Clock
from bot.ports import Directory, Pairing, PeopleStore, Person

log = structlog.get_logger()

Policy = Literal["pairing", "allowlist", "open"]

CODE_ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
"""Without letters and digits that look alike."""

CODE_CHARS = 8
CODE_VALID_MS = 3_600_000
PENDING_MAX = 3
"""Codes that may be open in one channel at a time (SPEC §4)."""

ANSWER_EVERY_MS = 3_600_000
"""A stranger gets at most one answer in this time, and the owner one hint about a chat."""

FORGET_AFTER_MS = 24 * 3_600_000
"""Who asked and was not let in is forgotten after this time."""

_ADDRESS = re.compile(r"[a-z]+:-?[0-9]{1,19}")

CONSOLE_ADDRESS = "console:local"
"""Whoever can read the home's files is its owner."""

ADMITTED, DENIED = "admitted", "denied"


class UnknownCode(Permanent):
    """No open pairing has this code or address."""


class OwnerFirst(Permanent):
    """There is no owner yet, so nobody can be given another role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """What an approval did."""

    address: str
    person: Person | None
    text: str


class Access:
    """Who may speak, and how a stranger becomes a person."""

    def __init__(
        self,
        store: PeopleStore,
        *,
        policy: Policy,
        allowed: Sequence[str],
        clock: Clock,
        new_id: Callable[[], str] = lambda: f"p_{secrets.token_hex(8)}",
        new_code: Callable[[], str] = lambda: "".join(
            secrets.choice(CODE_ALPHABET) for _ in range(CODE_CHARS)
        ),
    ) -> None:
        self._store = store
        self._policy = policy
        self._allowed = frozenset(allowed)
        self._clock = clock
        self._new_id = new_id
        self._new_code = new_code
        self._by_address: dict[str, Person] = {}
        self._directory = Directory(people=(), chats={}, pairings=())
        self._hinted_ms: dict[str, int] = {}
        self._full_told_ms = 0

    async def load(self) -> None:
        """Reads the directory; again after each change."""
        self._directory = await self._store.directory()
        self._by_address = {
            address: person for person in self._directory.people for address in person.addresses
        }

    @property
    def directory(self) -> Directory:
        """Everybody and every chat, as last read."""
        return self._directory

    # --- at the door --------------------------------------------------------------------------

    def who(self, sender: str) -> Person | None:
        """The person behind an address; None is a stranger."""
        return self._by_address.get(sender)

    def is_admitted(self, chat: Address) -> bool:
        """Whether the owner admitted this group chat (all its topics)."""
        return self._directory.chats.get(_chat_key(chat)) == ADMITTED

    def hint_is_due(self, chat: Address) -> bool:
        """Whether the owner may be told that this chat is not admitted: once an hour, and never
        of one that was shut out. Counts as told."""
        key, now_ms = _chat_key(chat), self._now_ms()
        told_ms = self._hinted_ms.get(key)
        if self._directory.chats.get(key) == DENIED:
            return False
        if told_ms is not None and now_ms - told_ms < ANSWER_EVERY_MS:
            return False
        self._hinted_ms = {
            other: ms for other, ms in self._hinted_ms.items() if now_ms - ms < ANSWER_EVERY_MS
        }
        self._hinted_ms[key] = now_ms
        return True

    async def recognise(self, sender: str, *, is_group: bool) -> Person | None:
        """As `who`; somebody whom the settings let in becomes a person at the first message.

        Members by `allow_from`, guests by `policy = "open"` (private chats alone); nobody whom
        the owner shut out.
        """
        known = self.who(sender)
        if known is not None or self._is_denied(sender):
            return known
        if sender in self._allowed:
            return await self._add(sender, Role.MEMBER)
        if self._policy == "open" and not is_group:
            return await self._add(sender, Role.GUEST)
        return None

    async def answer_stranger(self, sender: str) -> str | None:
        """What a stranger is told, or None: at most one answer an hour, and three codes open.

        Nothing of the stranger's message is looked at.
        """
        if self._policy != "pairing" or self._is_denied(sender):
            return None
        now_ms = self._now_ms()
        known = self._pairing(sender)
        if known is not None and now_ms - known.answered_ms < ANSWER_EVERY_MS:
            return None
        channel = sender.partition(":")[0]
        if self._pending(channel, now_ms) >= PENDING_MAX:
            if now_ms - self._full_told_ms >= ANSWER_EVERY_MS:
                self._full_told_ms = now_ms
                log.warning("access.too_many_pending", channel=channel)
            return None
        await self._forget_old(now_ms)
        pairing = Pairing(
            address=sender,
            channel=channel,
            code=self._new_code(),
            state="pending",
            created_ms=now_ms,
            expires_ms=now_ms + CODE_VALID_MS,
            answered_ms=now_ms,
        )
        await self._store.put_pairing(pairing)
        await self.load()
        log.info("access.stranger", address=sender)
        return (
            "This is a private assistant, and we have not met. If its owner knows you, give them "
            f"this code: {pairing.code}\nIt is valid for one hour. What you wrote was not kept."
        )

    # --- for the owner ------------------------------------------------------------------------

    async def owner_of_this_machine(self) -> Person:
        """The person of the terminal: the owner, made when there is none yet."""
        if self.who(CONSOLE_ADDRESS) is None:
            await self.load()  # an earlier try may have been ended between its write and this
        known = self.who(CONSOLE_ADDRESS)
        if known is not None:
            return known
        owner = self._owner()
        if owner is None:
            return await self._add(CONSOLE_ADDRESS, Role.OWNER)
        await self._store.add_address(owner.id, CONSOLE_ADDRESS)
        await self.load()
        return self._by_address[CONSOLE_ADDRESS]

    async def approve(self, wanted: str, *, role: Role | None = None) -> Approved:
        """Lets somebody in by code or address, or admits a group chat (`telegram:-100123`).

        The first address approved belongs to the owner; later ones are members unless a role is
        named. Raises UnknownCode, OwnerFirst.
        """
        address = self._resolve(wanted)
        if _is_group(address):
            await self._store.set_chat(address, ADMITTED)
            await self.load()
            return Approved(address=address, person=None, text=f"Admitted the chat {address}.")
        known = self.who(address)
        if known is not None:
            return Approved(
                address=address, person=known, text=f"{address} is {known.role} already."
            )
        if self._owner_is_away():
            if role not in {None, Role.OWNER}:
                raise OwnerFirst(
                    f"The first one approved becomes the owner, so {address} cannot be a {role} "
                    "yet. Approve your own address first: write to the bot, and approve the code "
                    "that it gives you."
                )
            person = await self._make_owner(address)
        else:
            person = await self._add(address, role or Role.MEMBER)
        return Approved(address=address, person=person, text=f"{address} is now {person.role}.")

    def _owner_is_away(self) -> bool:
        """Whether the owner has no address yet but this machine's terminal."""
        owner = self._owner()
        return owner is None or set(owner.addresses) <= {CONSOLE_ADDRESS}

    async def _make_owner(self, address: str) -> Person:
        owner = self._owner()
        if owner is None:
            return await self._add(address, Role.OWNER)
        await self._store.add_address(owner.id, address)
        await self.load()
        return self._by_address[address]

    async def deny(self, wanted: str) -> str:
        """Shuts somebody out, or a group chat. Raises UnknownCode."""
        address = self._resolve(wanted)
        if _is_group(address):
            await self._store.set_chat(address, DENIED)
        else:
            known = self.who(address)
            if known is not None and known.role is Role.OWNER and len(known.addresses) == 1:
                raise Permanent(f"{address} is the owner's only address; it stays.")
            await self._store.remove_address(address)
            await self._store.put_pairing(self._denied(address))
        await self.load()
        return f"{address} is shut out."

    def as_json(self) -> dict[str, Any]:
        """The directory for a table or `--json`; codes that are past are left out."""
        now_ms = self._now_ms()
        return {
            "policy": self._policy,
            "allow_from": sorted(self._allowed),
            "people": [
                {"id": person.id, "role": person.role.value, "addresses": list(person.addresses)}
                for person in self._directory.people
            ],
            "chats": dict(self._directory.chats),
            "asking": [
                {"address": p.address, "code": p.code, "expires_ms": p.expires_ms}
                for p in self._directory.pairings
                if p.state == "pending" and p.expires_ms > now_ms
            ],
            "denied": [p.address for p in self._directory.pairings if p.state == "denied"],
        }

    # --- inside -------------------------------------------------------------------------------

    async def _add(self, address: str, role: Role) -> Person:
        person = Person(id=PersonId(self._new_id()), role=role, addresses=(address,))
        await self._store.add_person(person)
        await self.load()
        log.info("access.person", address=address, role=role.value)
        return self._by_address[address]

    def _owner(self) -> Person | None:
        return next((p for p in self._directory.people if p.role is Role.OWNER), None)

    def _pairing(self, address: str) -> Pairing | None:
        return next((p for p in self._directory.pairings if p.address == address), None)

    async def _forget_old(self, now_ms: int) -> None:
        old = [
            pairing.address
            for pairing in self._directory.pairings
            if pairing.state == "pending" and now_ms - pairing.created_ms > FORGET_AFTER_MS
        ]
        if old:
            await self._store.remove_pairings(*old)

    def _is_denied(self, address: str) -> bool:
        pairing = self._pairing(address)
        return pairing is not None and pairing.state == "denied"

    def _pending(self, channel: str, now_ms: int) -> int:
        return sum(
            1
            for pairing in self._directory.pairings
            if pairing.channel == channel
            and pairing.state == "pending"
            and pairing.expires_ms > now_ms
        )

    def _resolve(self, wanted: str) -> str:
        """The address meant by a code or an address."""
        text = wanted.strip()
        now_ms = self._now_ms()
        for pairing in self._directory.pairings:
            if pairing.state == "pending" and secrets.compare_digest(
                pairing.code.encode(), text.upper().encode()
            ):
                if pairing.expires_ms <= now_ms:
                    raise UnknownCode(
                        f"The code {text} was valid for one hour and is past. "
                        "Let them write to the bot again for a new one."
                    )
                return pairing.address
        if _ADDRESS.fullmatch(text) or text in self._by_address:
            return text
        raise UnknownCode(
            f"No open code and no address is {text!r}. `hearthbot access list` shows them; "
            "an address looks like telegram:123456789 (a number: names can change hands)."
        )

    def _denied(self, address: str) -> Pairing:
        now_ms = self._now_ms()
        known = self._pairing(address)
        if known is not None:
            return replace(known, state="denied", expires_ms=now_ms)
        return Pairing(
            address=address,
            channel=address.partition(":")[0],
            code="",
            state="denied",
            created_ms=now_ms,
            expires_ms=now_ms,
            answered_ms=0,
        )

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)


def _chat_key(chat: Address) -> str:
    """Of the chat as a whole, with all its topics."""
    return f"{chat.channel}:{chat.chat_id}"


def _is_group(address: str) -> bool:
    """Telegram's group and channel ids are negative."""
    return address.partition(":")[2].startswith("-")
