"""Tools: what the model and the gate know of one, how one is written, and how a group is made.

A tool is an async method with a decorator, on a class that holds what the group acts through:

    class KnowledgeTools:
        def __init__(self, documents: Documents) -> None:
            self._documents = documents

        @tool("knowledge", Effect.PERSON, redo="idempotent", status="removing a document …")
        async def remove_document(
            self, caller: Caller, name: Annotated[str, Field(max_length=120)]
        ) -> str:
            '''Remove a saved document; the file that it was made from stays.'''
            ...

    toolbox = Toolbox(tools_of(KnowledgeTools(documents)))

Its name, its parameters behind `caller` and its docstring are what a model is shown; notes for
programmers are comments. Pydantic reads the arguments by the signature (`agent.tools.arguments`):
limits and descriptions stand in `Annotated[…, Field(…)]`. A plain method, without `async`, runs in
a thread. What it raises becomes a result that the model reads.

What differs from call to call is said by hooks, methods written above the tool and handed to the
decorator: `needs` (what a call needs to be allowed, and what its card shows), `cost` (a row of the
card), `trust` (whose words come back). They get the instance and the caller, and by name those
arguments that they have a parameter for:

        def _renamed(self, caller: Caller, name: str) -> Needs:
            return Needs(shows=(f"becomes: {name}",))

        @tool("knowledge", Effect.PERSON, redo="once", needs=_renamed)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from inspect import getdoc, iscoroutinefunction, signature
from typing import Any, TypeVar

from pydantic import BaseModel

from agent.tools.arguments import Parameters, ToolSignature
from memory.records.messages import DEFAULT_AGENT, Address, ConversationId, PersonId, Role, RunId
from memory.records.ports import Redo
from memory.records.transcript import ToolSpec


class Effect(StrEnum):
    """What a call changes: nothing, workspace files, the person's own data, or the world."""

    NONE = "none"
    WORKSPACE = "workspace"
    PERSON = "person"
    OUTSIDE = "outside"


class Trust(StrEnum):
    """Whose words a tool returns. Untrusted text is fenced before a model reads it."""

    OURS = "ours"
    UNTRUSTED = "untrusted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCard:
    """What is known of a tool without running it. `arguments` reads what a call gives by the
    signature of our function or by somebody else's schema.

    `server` and `server_about` say where a foreign tool comes from; `timeout_s` None means the
    time that all tools get (`tools.timeout_s`).
    """

    name: str
    description: str
    arguments: Parameters
    group: str
    effect: Effect
    redo: Redo
    trust: Trust
    timeout_s: float | None = None
    server: str = ""
    server_about: str = ""
    status: str = ""
    """What a person reads while it runs, in plain words; empty: that something is being done."""
    hinted: bool = False
    """That it changes nothing is the word of its server alone."""

    def spec(self) -> ToolSpec:
        """The tool as a model sees it."""
        return ToolSpec(
            name=self.name, description=self.description, parameters=self.arguments.schema()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """For whom, and where, a tool is called. Tools decide by this, never by their arguments.

    `tainted`: untrusted text is in what was sent, so the wish may be somebody else's (SPEC §15).
    `described`: there are tools that servers describe which the owner does not trust, or the chat
    has a title that somebody gave it.
    `unattended`: nobody is there, as in a heartbeat or a job. `agreed`: a person agreed to exactly
    this call. `agent` is the name in the settings. `makes_jobs`: the run of a job whose skill makes
    jobs. `message_id` is the message that is being answered, by the platform's name.
    """

    person_id: PersonId
    role: Role
    address: Address
    conversation: ConversationId
    run_id: RunId
    is_group: bool = False
    tainted: bool = False
    described: bool = False
    unattended: bool = False
    agreed: bool = False
    agent: str = DEFAULT_AGENT
    makes_jobs: bool = False
    parent: ConversationId | None = None
    """Of a subagent: the conversation that gave it its task."""
    message_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What one call needs beyond what its tool needs anyway (SPEC §6, §15).

    `asks`: why a person has to agree, whatever the rules allow: the owner, unless `is_own` says
    that it is the business of whose turn it is alone. `refused`: why it is not done at all, not
    even with a tap. `target`: where something goes by this call, such as a URL or a chat:
    in a tainted turn it must stand word for word in what was read or said, or a person has to
    agree. `risk`: what it could do for somebody else, after "it": asked about in a tainted turn.
    `once_only`: "always" may not be chosen. `whole`: why it is refused where no card can show all
    of it (`agent.policy.presentation.needs_of` looks). `shows`: what will happen, exactly, in rows
    for the person who is asked, beside the arguments. Each row begins with words of ours; whatever
    follows them may hold line breaks, and stays in its row.
    """

    asks: str = ""
    is_own: bool = False
    refused: str = ""
    target: str = ""
    risk: str = ""
    once_only: bool = False
    whole: str = ""
    shows: tuple[str, ...] = ()


COMMAND = "$ "
"""Stands before a command line, which could begin with any words."""


class OwnWords(str):
    """A result in which nobody else's words are, of a tool whose card is the wary case."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """The protected file that a call changed (`agent.tools.groups.files`), and what its person is
    told of that; both may be empty."""

    path: str = ""
    lost: str = ""


MOST_IS_GONE = (
    "That removed most of what it said. The person is told so below your answer, and can put it "
    "back with `/undo`."
)


class FileResult(str):
    """A result that also carries what happened to a protected file."""

    __slots__ = ("of",)
    of: ChangedFile

    def __new__(cls, text: str, of: ChangedFile) -> FileResult:
        # The model is not shown the lines that went: they are the file's words, not ours.
        made = super().__new__(cls, f"{text} {MOST_IS_GONE}" if of.lost else text)
        made.of = of
        return made


class Tool:
    """One thing that the assistant can do, with its card. May be called for many turns at once.

    All but `run` may be asked at any time, and changes nothing. `arguments` are those that
    `card.arguments` has read.
    """

    card: ToolCard

    async def run(self, arguments: Any, caller: Caller) -> str:
        """Return text for the model. Raise AssistantError with a sentence that the model may read,
        or anything else: `run_parsed` catches it."""
        raise NotImplementedError

    def needs(self, arguments: Any, caller: Caller) -> Needs:
        """Return what this call needs. Raise AssistantError as `run` does.

        Whoever decides asks `agent.policy.presentation.needs_of`, which looks at `whole` too.
        """
        return Needs()

    async def cost(self, arguments: Any, caller: Caller) -> str:
        """Return a row of the card on what goes on costing something, in some tenths of a second;
        empty where nobody can tell. Raise nothing."""
        return ""

    def trust(self, caller: Caller) -> Trust:
        """Return whose words it returns here."""
        return self.card.trust


# --- functions as tools -------------------------------------------------------------------------

Function = TypeVar("Function", bound=Callable[..., Any])
NeedsHook = Callable[..., Needs]
CostHook = Callable[..., Awaitable[str]]
TrustHook = Callable[..., Trust]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Definition:
    """What `@tool` notes of a function."""

    function: Callable[..., Any]
    card: ToolCard
    needs: Needs | NeedsHook
    cost: CostHook | None
    trust: TrustHook | None


def tool(  # noqa: PLR0913 - what a tool is, by name
    group: str,
    effect: Effect,
    *,
    redo: Redo | None = None,
    trust: Trust | TrustHook = Trust.OURS,
    needs: Needs | NeedsHook = Needs(),
    cost: CostHook | None = None,
    status: str = "",
    timeout_s: float | None = None,
    description: str = "",
) -> Callable[[Function], Function]:
    """Mark a method as a tool: see the top of this module, and ToolCard for what the words mean.

    `redo` may be left out where nothing is changed: that may be repeated. With a hook for `trust`,
    the card says the wary case. `description` is for words that are not
    known before the program runs, in the place of the docstring.
    """

    if redo is None and effect is not Effect.NONE:
        raise TypeError("redo has to be said of a tool that changes something")

    def mark(function: Function) -> Function:
        card = ToolCard(
            name=function.__name__,
            description=description or " ".join((getdoc(function) or "").split()),
            arguments=ToolSignature(function),
            group=group,
            effect=effect,
            redo=redo or "repeat",
            trust=trust if isinstance(trust, Trust) else Trust.UNTRUSTED,
            timeout_s=timeout_s,
            status=status,
        )
        _DEFINITIONS[function] = _Definition(
            function=function,
            card=card,
            needs=needs,
            cost=cost,
            trust=None if isinstance(trust, Trust) else trust,
        )
        return function

    return mark


_DEFINITIONS: dict[object, _Definition] = {}


def tools_of(group: object, *, timeout_s: float | None = None) -> tuple[FunctionTool, ...]:
    """Return the tools of an instance in the order of its class, all with `timeout_s` if given."""
    found = [
        _DEFINITIONS[member]
        for member in vars(type(group)).values()
        if callable(member) and member in _DEFINITIONS
    ]
    return tuple(
        FunctionTool(
            group,
            one,
            card=one.card if timeout_s is None else replace(one.card, timeout_s=timeout_s),
        )
        for one in found
    )


class FunctionTool(Tool):
    """A method that was marked by `@tool`, with the instance that it is called on."""

    def __init__(self, group: object, definition: _Definition, *, card: ToolCard) -> None:
        self.card = card
        self.group = group
        self._definition = definition

    def of(self, group: object) -> FunctionTool:
        """The same method of another instance."""
        return FunctionTool(group, self._definition, card=self.card)

    async def run(self, arguments: BaseModel, caller: Caller) -> str:
        """Call the method; one without `async` in a thread."""
        function = self._definition.function
        values = {name: getattr(arguments, name) for name in type(arguments).model_fields}
        if iscoroutinefunction(function):
            text: str = await function(self.group, caller, **values)
        else:
            text = await asyncio.to_thread(function, self.group, caller, **values)
        return text

    def needs(self, arguments: BaseModel, caller: Caller) -> Needs:
        """Ask the hook, if there is one."""
        needs = self._definition.needs
        if isinstance(needs, Needs):
            return needs
        return needs(self.group, caller, **_taken(needs, arguments))

    async def cost(self, arguments: BaseModel, caller: Caller) -> str:
        """Ask the hook, if there is one."""
        cost = self._definition.cost
        return "" if cost is None else await cost(self.group, caller, **_taken(cost, arguments))

    def trust(self, caller: Caller) -> Trust:
        """Ask the hook, if there is one."""
        trust = self._definition.trust
        return self.card.trust if trust is None else trust(self.group, caller)


def others_in_groups(_: object, caller: Caller) -> Trust:
    """A hook for `trust`: in a group it may be others whose words were stored."""
    return Trust.UNTRUSTED if caller.is_group else Trust.OURS


def _taken(hook: Callable[..., Any], arguments: BaseModel) -> dict[str, Any]:
    return {name: getattr(arguments, name) for name in _parameters(hook)}


@lru_cache(maxsize=256)
def _parameters(hook: Callable[..., Any]) -> tuple[str, ...]:
    """Names behind the instance and the caller."""
    return tuple(signature(hook).parameters)[2:]


_MAY_CALL = {
    Role.OWNER: set(Effect),
    Role.MEMBER: {Effect.NONE, Effect.PERSON},
    Role.GUEST: {Effect.NONE},
}
"""By SPEC §4. `agent.policy.approval` says which of it a person is asked about first."""


def may_call(role: Role, effect: Effect) -> bool:
    """Return whether a person of this role may call a tool of this effect."""
    return effect in _MAY_CALL[role]
