"""A whole core for tests: the assistant with its loop, the local engine and the real journal.

Only the model, the clock and what a person sees are stand-ins. `House` may be opened again over
the same folder, as after a restart.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from agent.history.compaction import SqliteCompactor
from agent.models.chat_request import body
from agent.policy.approval import Policy
from agent.policy.gate import Gate
from agent.prompt.context import ContextBuilder
from agent.prompt.templates import PersonaSettings, PromptLibrary
from agent.skills.library import SkillLibrary
from agent.skills.places import SkillFolders
from agent.skills.rules import Rule
from agent.subagents.subagents import PeopleDrafts
from agent.tools.arguments import Arguments, ToolSignature
from agent.tools.groups.files import FileTools, ResultStore
from agent.tools.selection import SelectionOptions, ToolSelector
from agent.tools.tool import Caller, Effect, Tool, ToolCard, Trust, tools_of
from agent.tools.toolbox import Reach, ReachOptions, Toolbox, ToolLimits
from agent.tools.workspace import Workspace
from agent.turn.assistant import Assistant
from agent.turn.engine import LocalEngine
from agent.turn.loop import Loop
from agent.turn.steps.begin import BeginStep
from agent.turn.steps.model import ModelStep, ModelStepOptions
from agent.turn.steps.tools import ToolStep
from bot.settings.home import shipped
from memory.database.connection import Database
from memory.facts.recall import SqliteRecall
from memory.records.messages import Address, IncomingMessage, PersonId, Role, RunId, TurnInput
from memory.records.ports import Journal, NewRun, Recall, Redo, waits_on
from memory.records.rows import NewApproval, NewEvent, Outcome
from memory.records.section import LayersSettings, TurnsSettings
from memory.records.transcript import Context, Entry, ModelRequest, Said
from memory.stores.conversations import SqliteConversations
from memory.stores.inbox import SqliteInbox
from memory.stores.people import AboutPeople
from memory.stores.switches import SqliteSkillRecords
from memory.stores.traces import SqliteTraces
from memory.stores.turns import SqliteJournal
from tests.agent.pairing import check_all
from tests.fakes import FixedClock, KeptApprovals, KeptReplies, OneModel, ScriptedModel
from tests.laid import lay


@dataclass(frozen=True, slots=True, kw_only=True)
class Somebody:
    id: str
    role: Role
    address: Address
    name: str = ""
    is_group: bool = False
    title: str = ""


OWNER = Somebody(
    id="p1", role=Role.OWNER, name="Ada", address=Address(channel="telegram", chat_id="5")
)
MEMBER = Somebody(
    id="p2", role=Role.MEMBER, name="Bob", address=Address(channel="telegram", chat_id="6")
)
GROUP = Address(channel="telegram", chat_id="-100")
OWNER_IN_GROUP = Somebody(
    id="p1", role=Role.OWNER, name="Ada", address=GROUP, is_group=True, title="Family"
)
MEMBER_IN_GROUP = Somebody(
    id="p2", role=Role.MEMBER, name="Bob", address=GROUP, is_group=True, title="Family"
)
ON_CONSOLE = Somebody(id="p1", role=Role.OWNER, address=Address(channel="console", chat_id="local"))


def of_model(model: type[Arguments]) -> ToolSignature:
    """Parameters by a model that a test wrote, in place of a method's signature."""
    made = ToolSignature(of_model)
    made.model = model
    return made


class Nothing(Arguments):
    """No arguments."""


class Words(Arguments):
    """Some text."""

    text: str = ""


@dataclass(slots=True)
class FakeTool(Tool):
    """`act` gets the text and makes the result."""

    name: str
    act: Callable[[str], Awaitable[str]]
    effect: Effect = Effect.NONE
    redo: Redo = "repeat"
    ran: list[str] = field(default_factory=list)
    card: ToolCard = field(init=False)

    def __post_init__(self) -> None:
        self.card = ToolCard(
            name=self.name,
            description=f"Does {self.name}.",
            arguments=of_model(Words),
            group="test",
            effect=self.effect,
            redo=self.redo,
            trust=Trust.OURS,
        )

    async def run(self, arguments: Any, caller: Caller) -> str:
        self.ran.append(arguments.text)
        return await self.act(arguments.text)


class House:
    """Everything that a turn needs, in one folder."""

    engine: LocalEngine
    model: ScriptedModel
    conversations: SqliteConversations
    database: Database

    def __init__(self, path: Path) -> None:
        self.path = path
        self.workspace = path / "workspace"
        self.workspace.mkdir(exist_ok=True)
        self.clock = FixedClock()
        self.seen = KeptReplies()
        self.tools: list[Tool] = []
        self.core: tuple[str, ...] = ()
        self.steps_max = 8
        self.limits = TurnsSettings()
        self.layers = LayersSettings()
        self.host_zone = "Europe/Berlin"
        self.rules: list[Rule] = []
        self.recalled: Recall | None = None
        self.shipped_skills = path / "shipped-skills"
        self.persona = PersonaSettings()
        self.result_chars_max = 16_000
        self.reach = ReachOptions()
        self.policy = Policy()
        self.approvals = KeptApprovals()
        self.redact: Callable[[str], str] = str
        self.journal: Callable[[Database], Journal] = SqliteJournal
        self.compactor: Callable[[House], SqliteCompactor] | None = None
        self._events = 0
        lay(path / "hearthbot.db")

    @asynccontextmanager
    async def opened(self, model: ScriptedModel) -> AsyncIterator[House]:
        """A life of the process, at the end of which the model's script must be used up."""
        self.model = model
        async with Database.open(self.path / "hearthbot.db", clock=self.clock) as database:
            self.database = database
            self.conversations = SqliteConversations(database)
            async with LocalEngine(
                self.journal(database),
                self._assistant(model),
                clock=self.clock,
                deliver=lambda rows: None,
                limits=self.limits,
            ) as engine:
                self.engine = engine
                await engine.start()
                yield self
                await engine.stop(0)
        assert not self.seen.open_now, "a draft was left open"
        model.check()

    async def submit(
        self, text: str, *, by: Somebody = OWNER, message_id: str = "", **more: Any
    ) -> RunId:
        """Hands a message in, as the intake does."""
        self._events += 1
        name = f"m{self._events}"
        lane = by.address.key
        event = NewEvent(source="telegram:1", event_id=name, lane=lane, payload="{}")
        (stored,) = await SqliteInbox(self.database).store([event])
        message = IncomingMessage(
            address=by.address,
            message_id=message_id or name,
            sender_id=by.id,
            sender_name=by.name,
            text=text,
            is_group=by.is_group,
            chat_title=by.title,
            sent_at_ms=1_700_000_000_123,
            **more,
        )
        turn = TurnInput(
            message=message,
            conversation=await self.conversations.current(lane),
            person_id=PersonId(by.id),
            role=by.role,
            person_name=by.name,
        )
        run = NewRun(
            run_id=RunId(name),
            lane=lane,
            by=PersonId(by.id),
            payload=turn.to_json(),
            message_id=message.message_id,
            inbox_id=stored.id,
        )
        await self.engine.submit(run)
        return RunId(name)

    async def say(self, text: str, *, by: Somebody = OWNER, **more: Any) -> str:
        """A message, and what is replied to it in the end."""
        run_id = await self.submit(text, by=by, **more)
        await self.engine.idle()
        return await self.reply(run_id)

    async def answer_card(self, outcome: Outcome) -> NewApproval:
        """Somebody answers the newest card; what waits for it has gone on when this returns."""
        approval = list(self.approvals.asked.values())[-1]
        self.approvals.outcomes[approval.id] = outcome
        await self.engine.signal(waits_on(approval.id), {"outcome": outcome.value})
        await self.engine.idle()
        return approval

    async def say_and_agree(self, text: str, *, unless: str = "", **more: Any) -> str:
        """A message whose every card is answered with yes, save those for the tool `unless`."""
        run_id = await self.submit(text, **more)
        await self.engine.idle()
        while open_now := [a for a in self.approvals.asked.values()
                           if a.id not in self.approvals.outcomes]:  # fmt: skip
            denied = open_now[-1].tool == unless
            await self.answer_card(Outcome.DENIED if denied else Outcome.ONCE)
        return await self.reply(run_id)

    async def reply(self, run_id: str) -> str:
        """The text in the outbox; empty when nothing is said."""
        rows = await self.rows("select text from outbox where run_id = ?", run_id)
        return "" if not rows else str(rows[0][0])

    async def state(self, run_id: str) -> str:
        """Where the message is in the inbox."""
        sql = "select state from inbox where run_id = ? or event_id = ?"
        return str((await self.rows(sql, run_id, run_id))[0][0])

    async def entries(self, by: Somebody = OWNER) -> list[Entry]:
        """The history, as it is stored."""
        conversation = await self.conversations.current(by.address.key)
        return [stored.entry for stored in (await self.conversations.history(conversation)).entries]

    async def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return await self.database.read(lambda c: c.execute(sql, values).fetchall())

    def _assistant(self, model: ScriptedModel) -> Assistant:
        workspace = Workspace(self.workspace)
        toolbox = Toolbox([*tools_of(FileTools(workspace)), *self.tools])
        reach = Reach(toolbox, self.reach)
        library = PromptLibrary(shipped("prompts"), self.workspace, self.persona)
        self.shelf = SkillLibrary(
            SkillFolders(workspace=self.workspace / "skills", shipped=self.shipped_skills),
            SqliteSkillRecords(self.database),
            clock=self.clock,
            env={},
        )
        selector = ToolSelector(
            toolbox,
            reach,
            SqliteTraces(self.database),
            options=SelectionOptions(core=self.core or tuple(toolbox.names)),
        )
        gate = Gate(self.policy, self.approvals, self.conversations)
        claims = library.texts()["words_claims"]
        return self._of_parts(model, library, toolbox, reach, selector, gate, workspace, claims)

    def _of_parts(
        self,
        model: Any,
        library: PromptLibrary,
        toolbox: Toolbox,
        reach: Reach,
        selector: ToolSelector,
        gate: Gate,
        workspace: Workspace,
        claims: str = "",
    ) -> Assistant:
        gathering = ContextBuilder(
            library,
            self.shelf,
            self.recalled or SqliteRecall(about=AboutPeople(self.database)),
            clock=self.clock,
            rules=self.rules,
            settings=self.layers,
            host_zone=self.host_zone,
        )
        self.beginning = BeginStep(
            self.conversations,
            gathering,
            toolbox,
            selector,
            OneModel(model),
            output_tokens_max=8_192,
            compactor=self.compactor(self) if self.compactor else None,
        )
        drafts = PeopleDrafts(self.seen)
        return Assistant(
            begin=self.beginning,
            model=ModelStep(
                OneModel(model),
                self.conversations,
                drafts,
                SqliteTraces(self.database),
                toolbox=toolbox,
                library=library,
                options=ModelStepOptions(redact=self.redact),
            ),
            tool=ToolStep(
                toolbox,
                reach,
                drafts,
                gate,
                clock=self.clock,
                keep=ResultStore(workspace),
                limits=ToolLimits(result_chars_max=self.result_chars_max),
                redact=self.redact,
            ),
            loop=Loop(toolbox, steps_max=self.steps_max, claims=claims),
            drafts=self.seen,
        )


def strict(request: ModelRequest) -> None:
    """What the strictest provider demands, and that somebody's words are there."""
    check_all(request.entries)
    assert any(isinstance(entry, Said) for entry in request.entries), "nobody said anything"


def model(*lines: Any, **more: Any) -> ScriptedModel:
    """A scripted model that is as strict as the strictest provider."""
    return ScriptedModel(*lines, judge=strict, **more)


def said(request: ModelRequest) -> list[str]:
    """The words of persons in a request."""
    return [entry.text for entry in request.entries if isinstance(entry, Said)]


def context(request: ModelRequest) -> str:
    """The last block of turn layers."""
    return [entry.text for entry in request.entries if isinstance(entry, Context)][-1]


def sent_bytes(request: ModelRequest, house: House) -> bytes:
    """As an OpenAI-compatible server gets it."""
    return body("scripted", request, traits=house.model.traits)


def assert_grows(requests: Sequence[ModelRequest], house: House) -> None:
    """Each request has the whole former one as its prefix, but for the brackets at the end."""
    bodies = [sent_bytes(request, house) for request in requests]
    for n, (former, later) in enumerate(pairwise(bodies)):
        start = former.removesuffix(b"]}").removesuffix(b"]}")
        assert later.startswith(start), f"request {n + 1} does not begin like the one before"


async def forever(text: str) -> str:
    await asyncio.Event().wait()
    return text
