"""Tools: what the model and the gate know of one, how one is written, and how a call is run.

A tool is an async method with a decorator, on a class that holds what the group acts through:

    class KnowledgeTools:
        def __init__(self, documents: Documents) -> None:
            self._documents = documents

        @tool(
            group="knowledge",
            effect=Effect.PERSON,
            redo="idempotent",
            needs=Needs(risk="it removes what was saved, and cannot be undone"),
            status="removing a document …",
        )
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

        @tool(…, needs=_renamed)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from inspect import getdoc, iscoroutinefunction, signature
from typing import Any, TypeVar

import structlog
from pydantic import BaseModel

from agent.tools.arguments import (
    ArgumentsWrong,
    Parameters,
    Signature,
    parse_arguments,
    schema_of,
)
from memory.records.errors import AssistantError
from memory.records.messages import DEFAULT_AGENT, Address, ConversationId, PersonId, Role, RunId
from memory.records.ports import Clock, Redo
from memory.records.request import ToolSpec
from memory.records.text import clean, cut_middle
from memory.records.transcript import ToolCall, ToolResult

RESULT_CHARS_MAX = 16_000
TIMEOUT_S = 60.0

NO_OUTPUT = "(no output)"
"""What a result without words reads."""

CUT_OFF = (
    "The call was cut off by the output limit; nothing was done. Use smaller steps: "
    "write a long text in several parts."
)

_log = structlog.get_logger(__name__)


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
    arguments: type[BaseModel] | Parameters
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
            name=self.name, description=self.description, parameters=schema_of(self.arguments)
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


class OursAlone(str):
    """A result in which nobody else's words are, of a tool whose card is the wary case."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OfFile:
    """The protected file that a call changed (`agent.tools.former_files`), and what its person is
    told of that; both may be empty."""

    path: str = ""
    lost: str = ""


MOST_IS_GONE = (
    "That removed most of what it said. The person is told so below your answer, and can put it "
    "back with `/undo`."
)


class AboutFile(str):
    """A result that also carries what happened to a protected file."""

    __slots__ = ("of",)
    of: OfFile

    def __new__(cls, text: str, of: OfFile) -> AboutFile:
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
        """Return what this call needs. Raise AssistantError as `run` does."""
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
    *,
    group: str,
    effect: Effect,
    redo: Redo,
    trust: Trust | TrustHook = Trust.OURS,
    needs: Needs | NeedsHook = Needs(),
    cost: CostHook | None = None,
    status: str = "",
    timeout_s: float | None = None,
    description: str = "",
) -> Callable[[Function], Function]:
    """Mark a method as a tool: see the top of this module, and ToolCard for what the words mean.

    With a hook for `trust`, the card says the wary case. `description` is for words that are not
    known before the program runs, in the place of the docstring.
    """

    def mark(function: Function) -> Function:
        card = ToolCard(
            name=function.__name__,
            description=description or " ".join((getdoc(function) or "").split()),
            arguments=Signature(function),
            group=group,
            effect=effect,
            redo=redo,
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
    found = [_DEFINITIONS[one] for one in vars(type(group)).values() if _is_tool(one)]
    return tuple(
        FunctionTool(
            group,
            one,
            card=one.card if timeout_s is None else replace(one.card, timeout_s=timeout_s),
        )
        for one in found
    )


def _is_tool(member: object) -> bool:
    return callable(member) and member in _DEFINITIONS


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
        function, values = self._definition.function, _values(arguments)
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


def _values(arguments: BaseModel) -> dict[str, Any]:
    return {name: getattr(arguments, name) for name in type(arguments).model_fields}


def _taken(hook: Callable[..., Any], arguments: BaseModel) -> dict[str, Any]:
    return {name: getattr(arguments, name) for name in _parameters(hook)}


@lru_cache(maxsize=256)
def _parameters(hook: Callable[..., Any]) -> tuple[str, ...]:
    """Names behind the instance and the caller."""
    return tuple(signature(hook).parameters)[2:]


# --- running ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Where a long result is kept; `whole` is False when even that place was too small."""

    path: str
    whole: bool = True


KeepWhole = Callable[[str, Caller], Awaitable[Kept]]
"""Keeps a result that is too long to be sent. Raises AssistantError; the same text twice in a run
gives the same path, so that equal results stay equal."""


_MAY_CALL = {
    Role.OWNER: set(Effect),
    Role.MEMBER: {Effect.NONE, Effect.PERSON},
    Role.GUEST: {Effect.NONE},
}
"""By SPEC §4. `agent.policy.approval` says which of it a person is asked about first."""


def may_call(role: Role, effect: Effect) -> bool:
    """Whether a person of this role may call a tool of this effect."""
    return effect in _MAY_CALL[role]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLimits:
    """Seconds of one call, and characters of its result that are sent."""

    timeout_s: float = TIMEOUT_S
    result_chars_max: int = RESULT_CHARS_MAX


_LIMITS = ToolLimits()


def arguments_of(card: ToolCard, call: ToolCall, *, limits: ToolLimits = _LIMITS) -> Any:
    """The parsed arguments of a call, or the ToolResult that says what is wrong with them."""
    try:
        return parse_arguments(card.arguments, call.arguments)
    except ArgumentsWrong as error:
        words = clean(f"{card.name} was not run: {error}")
        content = cut_middle(words, chars_max=limits.result_chars_max, pointer="")
        return ToolResult(call_id=call.id, content=content, ok=False)


async def run_parsed(
    tool: Tool,
    arguments: Any,
    call: ToolCall,
    caller: Caller,
    *,
    clock: Clock,
    limits: ToolLimits = _LIMITS,
    keep: KeepWhole | None = None,
    redact: Callable[[str], str] | None = None,
) -> ToolResult:
    """Runs a call that may be run (`agent.policy.gate`) to its one result, clean text within the
    limits. Raises nothing but CancelledError. `redact` takes secrets out of whatever it gives.

    Of a tool that reads the outside the words are untrusted, save our own sentence on a failure.
    """
    card = tool.card
    started = clock.monotonic()
    text, ok = await _attempt(tool, arguments, caller, limits)
    is_ours = isinstance(text, OursAlone)
    is_others = tool.trust(caller) is Trust.UNTRUSTED
    of_file = text.of if isinstance(text, AboutFile) else OfFile()
    elapsed_ms = round((clock.monotonic() - started) * 1000)
    _log.info("tool_ran", tool=card.name, ok=ok, ms=elapsed_ms, chars=len(text))
    if redact is not None:
        text = redact(text)
    content = await _fitted(text, caller, chars_max=limits.result_chars_max, keep=keep)
    return ToolResult(
        call_id=call.id,
        content=content,
        ok=ok,
        untrusted=not is_ours and is_others and (ok or bool(card.server)),
        effect=card.effect.value if ok and card.effect is not Effect.NONE else "",
        file=of_file.path,
        lost=of_file.lost if redact is None else redact(of_file.lost),
    )


async def _attempt(
    tool: Tool, arguments: BaseModel, caller: Caller, limits: ToolLimits
) -> tuple[str, bool]:
    """The tool's text, or one plain sentence about its failure."""
    card = tool.card
    timeout_s = limits.timeout_s if card.timeout_s is None else card.timeout_s
    try:
        async with asyncio.timeout(timeout_s) as limit:
            text: object = await tool.run(arguments, caller)
        if isinstance(text, str):
            return text, True
        _log.error("tool_gave_no_text", tool=card.name, type=type(text).__name__)
        return _no_text(card, text), False
    except AssistantError as error:
        return f"{card.name}: {error}", False
    except Exception as error:  # noqa: BLE001 - a tool's call, one of the three places
        if isinstance(error, TimeoutError) and limit.expired():
            _log.warning("tool_timed_out", tool=card.name, timeout_s=timeout_s)
            return _too_slow(card, timeout_s), False
        _log.error("tool_failed", tool=card.name, exc_info=True)
        return f"{card.name} failed: {_plain_reason(error)}.", False


def _no_text(card: ToolCard, given: object) -> str:
    sentence = f"{card.name} failed: it gave no text ({type(given).__name__})."
    if card.effect is Effect.NONE:
        return sentence
    return f"{sentence} It may have taken effect: check before trying again."


def _too_slow(card: ToolCard, timeout_s: float) -> str:
    sentence = f"{card.name} did not finish within {timeout_s:g} s and was stopped."
    if card.effect is Effect.NONE:
        return sentence
    return f"{sentence} Whether it took effect is unknown: check before trying again."


def _plain_reason(error: Exception) -> str:
    """What may be told. An unforeseen message can hold anything: paths, addresses, keys."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"an unforeseen error ({type(error).__name__})"


async def _fitted(text: str, caller: Caller, *, chars_max: int, keep: KeepWhole | None) -> str:
    cleaned = clean(text)
    if not cleaned.strip():
        return NO_OUTPUT
    if len(cleaned) <= chars_max:
        return cleaned
    pointer = await _pointer(cleaned, caller, keep)
    return cut_middle(cleaned, chars_max=chars_max, pointer=pointer)


async def _pointer(text: str, caller: Caller, keep: KeepWhole | None) -> str:
    """Where the rest of a cut text is, in words for the model."""
    if keep is None:
        return "the rest was not kept"
    try:
        kept = await keep(text, caller)
    except AssistantError as error:
        _log.warning("result_not_kept", reason=type(error).__name__)
        return "the rest could not be kept"
    share = "all of it" if kept.whole else "its beginning (the rest was too long to keep)"
    return f"read_file has {share} in {kept.path}"
