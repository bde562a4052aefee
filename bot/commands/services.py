"""What the slash commands act on: a port each, and how a command comes. Filled by `bot.app`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agent.prompt.snippets import Snippets
from bot.commands.models import ModelCommand
from bot.commands.people import PeopleCommands
from bot.commands.usage import UsageCommand
from memory.records.messages import IncomingMessage
from memory.records.ports import TurnEngine
from memory.records.rows import ButtonRows, Person
from memory.stores.conversations import SqliteConversations

if TYPE_CHECKING:  # they import the table of commands, and it imports this
    from agent.skills.service import SkillService
    from bot.commands.memory import MemoryCommands, PrivateCommand
    from bot.commands.undo import UndoCommand


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command says, and the buttons under it."""

    text: str
    buttons: ButtonRows = ()


class Status(Protocol):
    """Says how the bot is doing; offered by `bot.app`."""

    async def lines(self, *, for_owner: bool, lane: str = "", person_id: str = "") -> list[str]: ...


class TellsContext(Protocol):
    """Says what the last prompt of a conversation was made of; `bot.commands.context` is one."""

    async def tell(self, message: IncomingMessage, person: Person) -> str: ...


class TellsWhy(Protocol):
    """Says what made an answer, or why something was sent; `bot.commands.why` is one."""

    async def tell(self, message: IncomingMessage, person: Person, rest: str) -> Answer: ...


class TellsLogs(Protocol):
    """Shows the last lines of the bot's own log; `bot.commands.logs` is one."""

    async def tell(self, person: Person, rest: str) -> str: ...


class TellsAgents(Protocol):
    """Says who works for a chat, and stops one; `bot.commands.conversation` is one."""

    async def tell(self, message: IncomingMessage, person: Person, rest: str) -> str: ...


class TellsApprovals(Protocol):
    """Says what waits for an answer, and takes one; `bot.people.approvals` is one."""

    async def tell(self, message: IncomingMessage, person: Person, rest: str) -> str: ...


class TellsCompacting(Protocol):
    """Sums up what is sent along, and takes that back; `bot.commands.conversation` is one."""

    async def compact(self, message: IncomingMessage, person: Person) -> str: ...

    async def restore(self, message: IncomingMessage, person: Person) -> str: ...


class TellsSchedule(Protocol):
    """Reminders, jobs, events, and hours of quiet; `bot.commands.jobs` is one."""

    async def remind(self, message: IncomingMessage, person: Person, rest: str) -> str: ...

    async def jobs(self, message: IncomingMessage, person: Person) -> str: ...

    async def job(self, message: IncomingMessage, person: Person, rest: str) -> str: ...

    async def quiet(self, message: IncomingMessage, person: Person, rest: str) -> str: ...


class TellsHeartbeat(Protocol):
    """Whether and why there is a heartbeat; `bot.commands.heartbeat` is one."""

    async def tell(self, message: IncomingMessage, person: Person, rest: str) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCall:
    """A command as it came: who, where, and what stands behind the word."""

    message: IncomingMessage
    person: Person
    rest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What commands act on."""

    engine: TurnEngine
    lanes: Callable[[], Collection[str]]
    """The addresses where a turn runs, or waits."""
    conversations: SqliteConversations
    status: Status
    context: TellsContext
    why: TellsWhy
    logs: TellsLogs
    models: ModelCommand
    skills: SkillService
    usage: UsageCommand
    agents: TellsAgents
    approvals: TellsApprovals
    compacting: TellsCompacting
    memory: MemoryCommands
    undo: UndoCommand
    private: PrivateCommand
    schedule: TellsSchedule
    heartbeat: TellsHeartbeat
    people: PeopleCommands
    snippets: Snippets
