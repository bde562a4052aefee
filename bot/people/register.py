"""Everybody who is let in, as last read, and how that is changed."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from memory.records.messages import PersonId, Role
from memory.records.ports import Clock
from memory.records.rows import Directory, Person
from memory.stores.people import SqlitePeople

CODE_ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
"""Without letters and digits that look alike."""

CODE_CHARS = 8

NAME_CHARS_MAX = 60

CONSOLE_ADDRESS = "console:local"
"""Whoever can read the home's files is its owner."""


def new_code() -> str:
    """A code that nobody can guess."""
    return "".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_CHARS))


class Register:
    """The directory in memory. It is small; every change goes through the store first.

    Whoever looks something up in order to change it holds `changing` meanwhile: otherwise two
    changes at a time could each leave the other one's owner, and so none.
    """

    def __init__(self, store: SqlitePeople, clock: Clock) -> None:
        self.store = store
        self.changing = asyncio.Lock()
        self._clock = clock
        self._directory = Directory(people=(), chats={}, pairings=())
        self._by_address: dict[str, Person] = {}

    async def load(self) -> None:
        """Reads the directory; again after each change. Raises StorageError."""
        found = await self.store.directory()
        # What is kept of those who were removed hangs on their id, but nobody meets them.
        present = tuple(person for person in found.people if person.addresses)
        self._directory = replace(found, people=present)
        self._by_address = {
            address: person for person in self._directory.people for address in person.addresses
        }

    @property
    def directory(self) -> Directory:
        """Everybody and every chat, as last read."""
        return self._directory

    def who(self, address: str) -> Person | None:
        """The person behind an address; None is a stranger."""
        return self._by_address.get(address)

    def person(self, person_id: PersonId) -> Person | None:
        """The person with this id."""
        return next((one for one in self._directory.people if one.id == person_id), None)

    def find(self, wanted: str) -> Person | None:
        """A person by an address or an id."""
        text = wanted.strip()
        return self.who(text) or self.person(PersonId(text))

    def owners(self) -> list[Person]:
        """All owners, oldest first."""
        return [person for person in self._directory.people if person.role is Role.OWNER]

    def now_ms(self) -> int:
        """Epoch milliseconds."""
        return int(self._clock.now().timestamp() * 1000)


def plain_name(person: Person) -> str:
    """A name is somebody's own words: it makes no markup and no lines in ours."""
    return plain_words(person.name)


def plain_words(name: str) -> str:
    """The same of any name."""
    letters = (one if one.isalnum() or one in ".'-" else " " for one in name)
    return " ".join("".join(letters).split())[:NAME_CHARS_MAX]


def shown(person: Person) -> str:
    """A person as the owner reads of them: by the name, if there is one, and an address."""
    name = plain_name(person)
    return f"{name} ({person.addresses[0]})" if name else person.addresses[0]


def called(people: Sequence[Person]) -> Mapping[PersonId, str]:
    """Return what each is called where the owner reads of several: the name, with the id behind it
    where another has the same one; without a name the address, and the owner is always `the
    owner`."""
    names = {
        person.id: plain_name(person)
        or ("the owner" if person.role is Role.OWNER else "")
        or next(iter(person.addresses), gone(person.id))
        for person in people
    }
    taken = Counter(name.casefold() for name in names.values())
    return {
        id: name if taken[name.casefold()] == 1 else f"{name} ({id})" for id, name in names.items()
    }


def gone(person_id: str) -> str:
    """Somebody whom the directory does not know any more: by the id alone they can be named."""
    return f"somebody who was removed ({person_id})"
