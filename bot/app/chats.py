"""What jobs, tools and the budget know of chats, and how they reach them: who may hear what where,
messages besides the answer, and notices to the owner.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from zoneinfo import ZoneInfo

import structlog

from agent.tools.groups.messages import FileToSend, OwnChat
from agent.turn.agents import Bindings
from bot.markup.command_text import as_typed
from bot.outbox.outbox import NewFile, Outbox
from bot.people.access import Access
from bot.people.approvals import is_shared
from bot.people.timezone import zone_of
from bot.settings.options import host_zone
from memory.records.messages import Address, PersonId
from memory.records.rows import Button, NewMessage, Person
from memory.records.usage import NOBODY, Notice
from memory.stores.conversations import SqliteConversations

log = structlog.get_logger()

NOTED = "You sent this to the person with send_message, from another place: "
NOTED_FILE = "You sent this file to the person with send_file, from another place: "


class Chats:
    """Implements `scheduler.notify.delivery.People`: who is
    let in, and which chats are whose. Looked at each time: people go."""

    def __init__(self, access: Access, bindings: Bindings) -> None:
        self._access = access
        self._bindings = bindings
        self._private: dict[PersonId, frozenset[str]] = {}

    async def load(self) -> None:
        """Read which chats are whose alone. Raise StorageError."""
        for person in self._access.directory.people:
            chats = await self._access.private_chats(person.id)
            self._private[person.id] = frozenset(chats)

    def person(self, person_id: PersonId) -> Person | None:
        """See People."""
        return self._access.person(person_id)

    def may_hear(self, person_id: PersonId, lane: str) -> bool:
        """Own private chats, the terminal of whoever is at it, and groups that are admitted."""
        found = self._access.person(person_id)
        try:
            address = Address.parse(lane)
        except ValueError:
            return False
        if found is None:
            return False
        if address.channel == "console":
            return self._access.is_at_terminal(person_id)
        if is_shared(lane):
            return self._access.is_admitted(address)
        return lane in found.addresses or lane in self._private.get(person_id, ())

    def heard(self, person_id: PersonId, lane: str) -> None:
        """This person wrote in this private chat."""
        # Where somebody wrote alone once, they may hear what is theirs from then on.
        if not is_shared(lane):
            self._private[person_id] = self._private.get(person_id, frozenset()) | {lane}

    def is_group(self, lane: str) -> bool:
        """Return whether others read along there."""
        return is_shared(lane)

    def agent_at(self, lane: str) -> str:
        """Return the name of the agent that answers there."""
        return self._bindings.agent_of(lane)

    def zone(self, person_id: PersonId) -> ZoneInfo:
        """Return the person's, else this machine's."""
        found = self._access.person(person_id)
        named = zone_of(found.time_zone) if found is not None and found.time_zone else None
        return named or zone_of(host_zone()) or ZoneInfo("UTC")

    def owner(self) -> PersonId | None:
        """None before there is one."""
        return self._access.owner_id()

    async def home_of(self, person_id: PersonId) -> str:
        """Return the private chat that unasked words go to; empty where there is none. Raise
        StorageError."""
        chats = await self._access.private_chats(person_id)
        self._private[person_id] = frozenset(chats) | self._private.get(person_id, frozenset())
        return next(iter(chats), "")


class BotMessenger:
    """Implements `agent.tools.groups.messages.Messenger` over the outbox."""

    def __init__(
        self, access: Access, conversations: SqliteConversations, outbox: Callable[[], Outbox]
    ) -> None:
        """`outbox` builds it with the first message: a command that only lists tools needs none,
        nor the libraries of the channels."""
        self._access = access
        self._conversations = conversations
        self._outbox = outbox

    async def chats(self, person_id: PersonId) -> Sequence[OwnChat]:
        """Return where this person alone reads; the terminal is no place that waits."""
        return [OwnChat(lane=lane) for lane in await self._access.private_chats(person_id)]

    async def send(self, lane: str, text: str, *, untrusted: bool) -> None:
        """The note lets the person answer it there: the next turn knows what was sent."""
        await self._outbox().say(NewMessage(lane=lane, text=text))
        conversation = await self._conversations.current(lane)
        await self._conversations.note(conversation, f"{NOTED}{text}", untrusted=untrusted)

    async def send_file(
        self, lane: str, file: FileToSend, *, caption: str, untrusted: bool | None
    ) -> None:
        """Noted as `send` does, unless `untrusted` is None."""
        new = NewFile(name=file.name, path=file.path, content=file.content)
        await self._outbox().post_file(lane, new, caption=caption)
        if untrusted is not None:
            conversation = await self._conversations.current(lane)
            words = f"\n\n{caption}" if caption else ""
            text = f"{NOTED_FILE}{file.path}{words}"
            await self._conversations.note(conversation, text, untrusted=untrusted)


class OwnerNotices:
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
