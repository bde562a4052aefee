"""What a slash command is: how it came, what it acts on, who may use it, and what it says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING

from bot.people.timezone import zone_of
from memory.records.messages import IncomingMessage, Role
from memory.records.ports import Clock
from memory.records.rows import ButtonRows, Person

if TYPE_CHECKING:  # most of them are loaded when they are first asked for
    from agent.budget.service import UsageService
    from agent.history.compaction import SqliteCompactor
    from agent.models.router import Router
    from agent.prompt.snippets import Snippets
    from agent.skills.service import SkillService
    from agent.subagents.subagents import Subagents
    from agent.tools.workspace import Workspace
    from agent.turn.engine import LocalEngine
    from bot.commands.jobs.commands import JobCommands
    from bot.commands.jobs.heartbeat import HeartbeatCommands
    from bot.commands.logs import LogReader
    from bot.commands.memory.commands import MemoryCommands
    from bot.commands.people import PeopleCommands
    from bot.commands.status import BotStatus
    from bot.commands.trace.prompts import Prompts
    from bot.commands.trace.why import WhyCommand
    from bot.people.approvals import ApprovalService
    from memory.service import MemoryService
    from memory.stores.compactions import SqliteCompactions
    from memory.stores.conversations import SqliteConversations


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command says, and the buttons under it."""

    text: str
    buttons: ButtonRows = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCall:
    """A command as it came: who, where, and what stands behind the word."""

    message: IncomingMessage
    person: Person
    rest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What commands act on."""

    clock: Clock
    host_zone: str
    """The zone of people who have none."""
    engine: LocalEngine
    conversations: SqliteConversations
    compactor: SqliteCompactor
    compactions: SqliteCompactions
    subagents: Subagents
    workspace: Workspace
    status: BotStatus
    prompts: Prompts
    why: Callable[[], WhyCommand]
    """Loads it when somebody first asks."""
    logs: LogReader
    models: Router
    skills: SkillService
    usage: UsageService
    approvals: ApprovalService
    memory: MemoryService
    memories: MemoryCommands
    schedule: JobCommands
    heartbeat: HeartbeatCommands
    people: PeopleCommands
    snippets: Snippets

    def zone(self, person: Person) -> tzinfo:
        """Return the person's time zone, else this machine's."""
        return zone_of(person.time_zone or self.host_zone) or UTC


EVERYBODY = frozenset(Role)
MEMBERS = frozenset({Role.OWNER, Role.MEMBER})
OWNER_ALONE = frozenset({Role.OWNER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One row of the table. One that `waits` runs beside what comes in after it.

    `roles` may use it, in groups `group_roles` of them; what is `private` shows or changes what
    is nobody else's business, and is answered in a private chat alone.
    """

    name: str
    help: str
    run: Callable[[Tools, CommandCall], Awaitable[str | Answer]]
    offers: bool = False
    """Whether the answer comes with the quick-insert texts, in a private chat."""
    roles: frozenset[Role] = field(default=EVERYBODY)
    group_roles: frozenset[Role] = field(default=EVERYBODY)
    private: bool = False
    waits: bool = False
    is_ours: bool = True
    """Whether commands that stand in the answer are there to be typed where it is read."""
    named_to: frozenset[Role] = field(default=EVERYBODY)
    """Of those who may use it, to whom /help names it: to others it only says that they may not."""
    is_bare: bool = False
    """Whether it takes no words: those behind it are named in front of the answer."""
    instead: str = ""
    """What is said to words behind it, and nothing done: they ask for something else than it
    does."""
