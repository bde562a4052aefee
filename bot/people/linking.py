"""One more address for a person, by a code that is asked for on one side and sent from the other.

Used by `bot.people.access` (the intake) and `bot.commands.people` (`/link`). The code is a proof:
whoever sends it is taken for the person who asked for it. So it is short-lived, good for one use,
never logged, compared in constant time, and guessing ends after three wrong ones an hour.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from enum import StrEnum

import structlog

from bot.markup.command_text import slash
from bot.people.register import CONSOLE_ADDRESS, Register, shown
from memory.records.errors import Permanent
from memory.records.messages import Address, OutboxId, Role
from memory.records.rows import LinkCode, NewMessage, Person

log = structlog.get_logger()

LINK_VALID_MS = 600_000
TRIES_MAX = 3
TRIES_MS = 3_600_000
"""Wrong codes that an address may send in this time; after that none is looked at."""

TRIERS_MAX = 500
"""Addresses whose wrong codes are remembered. Beyond it nobody new is listened to: an attack costs
a bounded amount of memory, and ends by itself within the hour."""

ADDRESSES_MAX = 8
"""Addresses of one person."""

_CODE = re.compile(r"[A-Z0-9]{8}")

Deliver = Callable[[Sequence[tuple[str, OutboxId]]], None]
"""Takes outbox rows (address key, id) that are ready to be sent."""


def read_code(text: str) -> str:
    """Return what somebody typed as a code, fit to be compared; empty when it cannot be one."""
    code = text.strip().upper()
    return code if _CODE.fullmatch(code) else ""


class Redeemed(StrEnum):
    """What became of a code that somebody sent."""

    LINKED = "linked"
    UNKNOWN = "unknown"
    TOO_MANY = "too many tries"
    OWN = "own address"
    TAKEN = "belongs to another person"
    FULL = "too many addresses"


class LinkRefused(Permanent):
    """Two addresses cannot be joined, or one cannot be taken away."""


class Tries:
    """Wrong codes by address. The same one again is no further guess. In memory: whoever guesses
    cannot restart the bot."""

    def __init__(self) -> None:
        self._wrong: dict[str, dict[str, int]] = {}

    def allows(self, address: str, code: str, *, now_ms: int) -> bool:
        """Return whether a code from here is looked at."""
        for other, tried in list(self._wrong.items()):
            kept = {code: ms for code, ms in tried.items() if now_ms - ms < TRIES_MS}
            if kept:
                self._wrong[other] = kept
            else:
                del self._wrong[other]
        wrong = self._wrong.get(address)
        if wrong is None:
            return len(self._wrong) < TRIERS_MAX
        return len(wrong) < TRIES_MAX or code in wrong

    def count(self, address: str, code: str, *, now_ms: int) -> None:
        """Notes a wrong one."""
        wrong = self._wrong.setdefault(address, {})
        wrong.setdefault(code, now_ms)
        if len(wrong) == TRIES_MAX:
            log.warning("access.link_tries_used_up", address=address)


class Linking:
    """Codes given out, and addresses joined and parted. Raises StorageError."""

    def __init__(
        self,
        register: Register,
        *,
        deliver: Deliver,
        new_code: Callable[[], str],
    ) -> None:
        self._register = register
        self._deliver = deliver
        self._new_code = new_code
        # Apart, so that a crowd of strangers does not shut those out who are let in.
        self._tries = Tries()
        self._tries_of_strangers = Tries()

    # --- by code ------------------------------------------------------------------------------

    async def offer(self, person: Person, *, sender: str, chat: Address) -> str:
        """A code for this person, in place of one that is still open. `chat` is told of the
        link when it is made. Raises LinkRefused."""
        async with self._register.changing:
            current = self._register.person(person.id) or person
            if len(current.addresses) >= ADDRESSES_MAX:
                raise LinkRefused(_full())
            now_ms = self._register.now_ms()
            made = LinkCode(
                code=self._new_code(),
                person_id=person.id,
                address=sender,
                lane=chat.key,
                created_ms=now_ms,
                expires_ms=now_ms + LINK_VALID_MS,
            )
            await self._register.store.put_link_code(made)
            await self._register.load()
            return made.code

    async def redeem(self, sender: str, code: str) -> Redeemed:
        """Joins `sender` to the person whose code it sends. Sent again (after a crash, say), the
        same code from the same address is LINKED again, and nobody is told twice."""
        async with self._register.changing:
            now_ms = self._register.now_ms()
            known = self._register.who(sender)
            tries = self._tries if known else self._tries_of_strangers
            if not tries.allows(sender, code, now_ms=now_ms):
                return Redeemed.TOO_MANY
            found = None
            # Every open code is compared, and all of each: the time taken tells nothing.
            for one in self._register.directory.links:
                is_same = secrets.compare_digest(one.code.encode(), code.encode())
                if is_same and one.expires_ms > now_ms:
                    found = one
            person = self._register.person(found.person_id) if found else None
            if (
                found is None
                or person is None
                or person.role is Role.GUEST
                or found.used_by not in {"", sender}
                or (found.used_by == sender and sender not in person.addresses)
            ):
                tries.count(sender, code, now_ms=now_ms)
                return Redeemed.UNKNOWN
            if found.used_by:
                return Redeemed.LINKED
            if sender in person.addresses:
                return Redeemed.OWN
            if len(person.addresses) >= ADDRESSES_MAX:
                return Redeemed.FULL
            notice = NewMessage(lane=found.lane, text=_told(sender, found.lane))
            joined = await self._join(person, sender, [notice], code=found.code)
            return Redeemed.LINKED if joined else Redeemed.TAKEN

    # --- by the owner, and back ---------------------------------------------------------------

    async def link(self, known: str, other: str) -> str:
        """Joins the address `other` to the person of `known`, without a code: for the owner.

        Both are told, where that is a private chat. Raises LinkRefused.
        """
        async with self._register.changing:
            person = self._register.find(known)
            if person is None:
                raise LinkRefused(
                    f"Nobody here has the address {known}, so {other} cannot be joined to it. "
                    f"Let them in first: hearthbot access approve {known}"
                )
            if other in person.addresses:
                return f"{other} belongs to {shown(person)} already."
            if len(person.addresses) >= ADDRESSES_MAX:
                raise LinkRefused(_full())
            # Telegram's private chats have the number of the person; of others nothing is known.
            told = (*person.addresses, other)
            lanes = [lane for lane in told if re.fullmatch(r"telegram:[0-9]+", lane)]
            notices = [NewMessage(lane=lane, text=_told(other, lane)) for lane in lanes]
            if not await self._join(person, other, notices):
                raise LinkRefused(taken(other))
            return f"{other} now belongs to {shown(person)} too."

    async def unlink(self, person: Person, address: str) -> str:
        """Takes one of a person's own addresses away; it is a stranger's from now on. Raises
        LinkRefused."""
        async with self._register.changing:
            if address == CONSOLE_ADDRESS:
                raise LinkRefused(
                    "The terminal belongs to whoever can read this bot's files; it stays."
                )
            current = self._register.person(person.id) or person
            if address not in current.addresses:
                raise LinkRefused(f"{address} is none of your addresses. `/link list` shows them.")
            if not set(current.addresses) - {address, CONSOLE_ADDRESS}:
                raise LinkRefused(f"{address} is your only address; it stays.")
            await self._register.store.remove_address(address)
            await self._register.load()
            log.info("access.unlinked", address=address, person=person.id)
            return f"{address} no longer belongs to you."

    async def _join(
        self, person: Person, address: str, notices: Sequence[NewMessage], *, code: str = ""
    ) -> bool:
        rows = await self._register.store.link(person.id, address, notices=notices, code=code)
        if rows is None:
            return False
        await self._register.load()
        log.info("access.linked", address=address, person=person.id)
        self._deliver([(notice.lane, row) for notice, row in zip(notices, rows, strict=True)])
        return True


def taken(address: str) -> str:
    """Why an address is not joined, and what can be done."""
    return (
        f"{address} belongs to another person here, of whom something is kept, and two people are "
        f"never made one. The owner can remove that person first (`/access remove {address}`); "
        "then it is a new address."
    )


def if_it_is_you(address: str, owners: Sequence[Person]) -> str:
    """Return what undoes that an owner who came by a second channel was made a second person; empty
    where an owner has an address of that channel."""
    channels = {one.partition(":")[0] for owner in owners for one in owner.addresses}
    if address.partition(":")[0] in channels:
        return ""
    return (
        f"\n\nIf this is you, undo it with `hearthbot access remove {address}` (in a chat: "
        f"`/access remove {address}`). Then write `/link` in the chat where I know you, and send "
        f"the code that it gives you from the other one, as `{slash(address)}link CODE`: so you "
        "stay one person."
    )


def _full() -> str:
    return f"{ADDRESSES_MAX} addresses of one person are the most; `/link remove` takes one away."


def _told(address: str, lane: str) -> str:
    """For the person, in a chat of theirs."""
    return (
        f"**{address} now belongs to you too.** What is remembered of you is known there as well; "
        "each chat keeps a conversation of its own.\n\n"
        f"If that was not you: `{slash(lane)}link remove {address}`"
    )
