"""Strangers who asked to be let in, and who was shut out. Used by `bot.people.access`.

A stranger gets a code to give to the owner. Nothing of what they wrote is looked at or kept.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from dataclasses import replace

import structlog

from bot.people.register import Register
from memory.records.errors import Permanent
from memory.records.rows import Pairing

log = structlog.get_logger()

CODE_VALID_MS = 3_600_000
PENDING_MAX = 3
"""Codes that may be open in one channel at a time (SPEC §4)."""

ANSWER_EVERY_MS = 3_600_000
"""A stranger gets at most one answer in this time."""

FORGET_AFTER_MS = 24 * 3_600_000
"""Who asked and was not let in is forgotten after this time."""

_ADDRESS = re.compile(
    r"[a-z]+:-?[0-9]{1,19}|slack:[TE][A-Z0-9]{1,30}(?::[UW]|\.[CG])[A-Z0-9]{1,30}"
)
_GROUP = re.compile(r"[a-z]+:-[0-9]+|slack:[TE][A-Z0-9]+\.[CG][A-Z0-9]+")
"""Telegram's group and channel ids are negative; Slack's begin with a letter of their own."""


class UnknownCode(Permanent):
    """No open pairing has this code or address."""


class Pairings:
    """Who asked, by address. Raises StorageError."""

    def __init__(self, register: Register, *, new_code: Callable[[], str]) -> None:
        self._register = register
        self._new_code = new_code
        self._full_told_ms = 0

    async def answer(self, sender: str) -> str | None:
        """Return what a stranger is told, or None: at most one answer an hour, and three codes
        open."""
        now_ms = self._register.now_ms()
        known = self._of(sender)
        if known is not None and (
            known.state == "denied" or now_ms - known.answered_ms < ANSWER_EVERY_MS
        ):
            return None
        channel = sender.partition(":")[0]
        if sum(pairing.channel == channel for pairing in self.open()) >= PENDING_MAX:
            if now_ms - self._full_told_ms >= ANSWER_EVERY_MS:
                self._full_told_ms = now_ms
                log.warning("access.too_many_pending", channel=channel)
            return None
        old = [
            one.address
            for one in self._all()
            if one.state == "pending" and now_ms - one.created_ms > FORGET_AFTER_MS
        ]
        if old:
            await self._register.store.remove_pairings(*old)
        pairing = Pairing(
            address=sender,
            channel=channel,
            code=self._new_code(),
            state="pending",
            created_ms=now_ms,
            expires_ms=now_ms + CODE_VALID_MS,
            answered_ms=now_ms,
        )
        await self._register.store.put_pairing(pairing)
        await self._register.load()
        log.info("access.stranger", address=sender)
        return (
            "This is a private assistant, and we have not met. If its owner knows you, give them "
            f"this code: {pairing.code}\nIt is valid for one hour. What you wrote was not kept."
        )

    def open(self) -> list[Pairing]:
        """Who asks and has a code that is valid, oldest first."""
        now_ms = self._register.now_ms()
        return [p for p in self._all() if p.state == "pending" and p.expires_ms > now_ms]

    def of_code(self, code: str) -> Pairing | None:
        """Who was given this code and is not let in; also where it is past, or they are shut
        out."""
        wanted = code.encode()
        found = (one for one in self._all() if one.code)
        return next((p for p in found if secrets.compare_digest(p.code.encode(), wanted)), None)

    def shut_out(self) -> list[str]:
        """The addresses that were shut out."""
        return [pairing.address for pairing in self._all() if pairing.state == "denied"]

    def is_denied(self, address: str) -> bool:
        """Return whether this address was shut out."""
        pairing = self._of(address)
        return pairing is not None and pairing.state == "denied"

    def denied(self, address: str) -> Pairing:
        """Return what is stored for an address in order to shut it out."""
        now_ms = self._register.now_ms()
        known = self._of(address)
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

    def address_of(self, wanted: str) -> str:
        """The address meant by a code or an address. Raises UnknownCode."""
        text = wanted.strip()
        for pairing in self._all():
            if pairing.state == "pending" and secrets.compare_digest(
                pairing.code.encode(), text.upper().encode()
            ):
                if pairing.expires_ms <= self._register.now_ms():
                    raise UnknownCode(
                        f"The code {text} was valid for one hour and is past. "
                        "Let them write to the bot again for a new one."
                    )
                return pairing.address
        if _ADDRESS.fullmatch(text) or self._register.who(text) is not None:
            return text
        raise UnknownCode(
            f"No open code and no address is {text!r}. `hearthbot access list` shows them; "
            "an address looks like telegram:123456789 (a number: names can change hands)."
        )

    def _all(self) -> tuple[Pairing, ...]:
        return self._register.directory.pairings

    def _of(self, address: str) -> Pairing | None:
        return next((p for p in self._all() if p.address == address), None)


def is_group(address: str) -> bool:
    """Return whether this is a group chat's address, and no person's."""
    return _GROUP.fullmatch(address) is not None
