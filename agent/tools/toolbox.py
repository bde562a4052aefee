"""The list of tools, written out in `bot.app`: found by name, and offered by role and agent.

Called by the loop and by whoever builds a request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Protocol

import structlog
from pydantic import BaseModel

from agent.tools.arguments import ArgumentsWrong, parse_arguments
from agent.tools.discovery import resolved
from agent.tools.tool import (
    Caller,
    ChangedFile,
    Effect,
    FileResult,
    OwnWords,
    Tool,
    ToolCard,
    Trust,
    may_call,
)
from memory.records.errors import AssistantError
from memory.records.messages import DEFAULT_AGENT, Role
from memory.records.ports import Clock, Redo
from memory.records.text import clean, cut_middle
from memory.records.transcript import ToolCall, ToolResult, ToolSpec

# --- call ---------------------------------------------------------------------------------------
#
# How one call of a tool is run to its one result, and the one place where a failure is caught.
#
# Called by the step `tool` of a turn. What goes wrong becomes a ToolResult that is not ok.

RESULT_CHARS_MAX = 16_000
TIMEOUT_S = 60.0

NO_OUTPUT = "(no output)"
"""What a result without words reads."""

CUT_OFF = (
    "The call was cut off by the output limit; nothing was done. Use smaller steps: "
    "write a long text in several parts."
)

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResult:
    """Where a long result is kept; `whole` is False when even that place was too small."""

    path: str
    whole: bool = True


KeepResult = Callable[[str, Caller], Awaitable[StoredResult]]
"""Keeps a result that is too long to be sent. Raises AssistantError; the same text twice in a run
gives the same path, so that equal results stay equal."""


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
    keep: KeepResult | None = None,
    redact: Callable[[str], str] | None = None,
) -> ToolResult:
    """Runs a call that may be run (`agent.policy.gate`) to its one result, clean text within the
    limits. Raises nothing but CancelledError. `redact` takes secrets out of whatever it gives.

    Of a tool that reads the outside the words are untrusted, save our own sentence on a failure.
    """
    card = tool.card
    started = clock.monotonic()
    text, ok = await _attempt(tool, arguments, caller, limits)
    is_ours = isinstance(text, OwnWords)
    is_others = tool.trust(caller) is Trust.UNTRUSTED
    of_file = text.of if isinstance(text, FileResult) else ChangedFile()
    elapsed_ms = round((clock.monotonic() - started) * 1000)
    _log.info("tool_ran", tool=card.name, ok=ok, ms=elapsed_ms, chars=len(text))
    if redact is not None:
        text = redact(text)
    content = await fitted(text, caller, chars_max=limits.result_chars_max, keep=keep)
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
    is_pure = card.effect is Effect.NONE
    try:
        async with asyncio.timeout(timeout_s) as limit:
            text: object = await tool.run(arguments, caller)
        if isinstance(text, str):
            return text, True
        kind = type(text).__name__
        _log.error("tool_gave_no_text", tool=card.name, type=kind)
        doubt = "" if is_pure else " It may have taken effect: check before trying again."
        return f"{card.name} failed: it gave no text ({kind}).{doubt}", False
    except AssistantError as error:
        return f"{card.name}: {error}", False
    except Exception as error:  # noqa: BLE001 - a tool's call, one of the three places
        if isinstance(error, TimeoutError) and limit.expired():
            _log.warning("tool_timed_out", tool=card.name, timeout_s=timeout_s)
            doubt = " Whether it took effect is unknown: check before trying again."
            sentence = f"{card.name} did not finish within {timeout_s:g} s and was stopped."
            return sentence if is_pure else sentence + doubt, False
        _log.error("tool_failed", tool=card.name, exc_info=True)
        # An unforeseen message can hold anything: paths, addresses, keys.
        why = f"an unforeseen error ({type(error).__name__})"
        if isinstance(error, OSError) and error.strerror:
            why = error.strerror
        return f"{card.name} failed: {why}.", False


async def fitted(text: str, caller: Caller, *, chars_max: int, keep: KeepResult | None) -> str:
    """Return clean text, cut in the middle with a pointer to the whole where it is kept."""
    cleaned = clean(text)
    if not cleaned.strip():
        return NO_OUTPUT
    if len(cleaned) <= chars_max:
        return cleaned
    pointer = "the rest was not kept"
    if keep is not None:
        try:
            kept = await keep(cleaned, caller)
            share = "all of it" if kept.whole else "its beginning (the rest was too long to keep)"
            pointer = f"read_file has {share} in {kept.path}"
        except AssistantError as error:
            _log.warning("result_not_kept", reason=type(error).__name__)
            pointer = "the rest could not be kept"
    return cut_middle(cleaned, chars_max=chars_max, pointer=pointer)


NEAREST_MAX = 3
NAMES_SHOWN_MAX = 10


FOREIGN_READY_S = 5.0
"""How long a turn waits for a server that is just starting; later turns have its tools."""


class ForeignTools(Protocol):
    """Tools of others, such as those of MCP servers; `agent.mcp.servers` is one."""

    @property
    def version(self) -> int:
        """Another one whenever `tools` has changed."""

    def tools(self) -> Sequence[Tool]:
        """Return what there is now."""

    def wake(self) -> None:
        """Starts what is not started. Returns at once."""

    async def settled(self, *, limit_s: float) -> None:
        """Waits until each of them is up or has failed once, but no longer than this."""


class Toolbox:
    """Tools in the order in which they are offered: our own, then those of others.

    Those of others may change while the program runs; a turn that is running keeps the names it
    was offered, and is told when one is gone. Raises ValueError when a name of ours is doubled; of
    those of others only the first of a name is kept, as no turn may fail by what a server lists.
    """

    def __init__(self, tools: Sequence[Tool], foreign: ForeignTools | None = None) -> None:
        self._own = _by_name(tools)
        self._source = foreign
        self._version: int | None = None
        self._known: dict[str, Tool] = {}
        self._specs: dict[str, ToolSpec] = {}

    def add(self, tools: Sequence[Tool]) -> None:
        """Put further tools of ours behind those that are there. Raises ValueError."""
        self._own = _by_name([*self._own.values(), *tools])

    def tools(self) -> Sequence[Tool]:
        """All of them."""
        return [*self._own.values(), *self._foreign.values()]

    def cards(self) -> Sequence[ToolCard]:
        """Those of all tools."""
        return [tool.card for tool in self.tools()]

    async def ready(self) -> None:
        """Sees to it that the tools of others are there, as far as they come up soon."""
        if self._source is not None:
            self._source.wake()
            await self._source.settled(limit_s=FOREIGN_READY_S)

    @property
    def names(self) -> Collection[str]:
        """Of all tools."""
        return (self._own | self._foreign).keys()

    @property
    def is_described_by_others(self) -> bool:
        """Return whether a tool has the description of a server that the owner does not trust."""
        return any(tool.card.trust is Trust.UNTRUSTED for tool in self._foreign.values())

    def get(self, name: str) -> Tool | None:
        """The tool of this name."""
        return self._own.get(name) or self._foreign.get(name)

    def named(self, names: Iterable[str]) -> tuple[ToolSpec, ...]:
        """The tools of these names, in the order given; unknown names are left out."""
        specs: list[ToolSpec] = []
        for name in names:
            if (tool := self.get(name)) is not None:
                if name not in self._specs:
                    self._specs[name] = tool.card.spec()
                specs.append(self._specs[name])
        return tuple(specs)

    def redo(self, call: ToolCall) -> Redo:
        """Return what a kill in mid-call permits. A call of an unknown tool does nothing."""
        tool = self._called(call)
        return tool.card.redo if tool else "repeat"

    def is_pure(self, call: ToolCall) -> bool:
        """Return whether it changes nothing, so that several may run at once."""
        tool = self._called(call)
        return tool is None or tool.card.effect is Effect.NONE

    def resolved(self, call: ToolCall) -> ToolCall | ToolResult:
        """The call that is meant: that within a tool_call, or what is wrong with it."""
        try:
            return resolved(call)
        except ArgumentsWrong as error:
            content = f"{call.name} was not run: {error}"
            return ToolResult(call_id=call.id, content=content, ok=False)

    @property
    def _foreign(self) -> dict[str, Tool]:
        """Those of others as they are now. A name of ours is never taken over."""
        if self._source is not None and self._source.version != self._version:
            self._version = self._source.version
            self._known = {}
            left_out: list[str] = []
            for tool in self._source.tools():
                name = tool.card.name
                if name in self._own or name in self._known:
                    left_out.append(name)
                else:
                    self._known[name] = tool
            if left_out:
                names = left_out[:NAMES_SHOWN_MAX]
                _log.warning("tools.name_taken", tools=names, left_out=len(left_out))
            self._specs = {}
        return self._known

    def _called(self, call: ToolCall) -> Tool | None:
        inner = self.resolved(call)
        return None if isinstance(inner, ToolResult) else self.get(inner.name)

    def cut_off(self, call: ToolCall) -> ToolResult:
        """The result of a call whose answer was cut by the output limit: nothing was done."""
        return ToolResult(call_id=call.id, content=CUT_OFF, ok=False)

    def unknown(self, call: ToolCall, offered: Sequence[str]) -> ToolResult:
        """The result of a call of a tool that this run does not have; `offered` are those that it
        was shown."""
        near = get_close_matches(call.name.lower(), offered, n=NEAREST_MAX, cutoff=0.5)
        advice = f" Nearest: {', '.join(near)}." if near else ""
        if not offered:
            advice = " No tools are available: answer in text."
        what = f"There is no tool {call.name[:64]!r}"
        if self.get(call.name) is not None:
            what = f"{call.name[:64]!r} may not be used in this run"
        content = f"{what}; nothing was done.{advice}"
        return ToolResult(call_id=call.id, content=content, ok=False)


def _by_name(tools: Sequence[Tool]) -> dict[str, Tool]:
    names = [tool.card.name for tool in tools]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two tools have the same name: {', '.join(doubled)}")
    return dict(zip(names, tools, strict=True))


# --- access -------------------------------------------------------------------------------------
#
# Which tools a run may have at all: by role, agent and kind of run. Offered or not, no call
# reaches further (SPEC §6). Called where tools are selected, looked up and run.

UNATTENDED_ALONE = frozenset({"nothing_to_report"})
"""Tools that make sense only where nobody is there."""

ATTENDED_ALONE = frozenset({"send_message", "send_file", "react"})
"""What the host does in a run that nobody watches: it delivers the result itself (SPEC §5)."""

MAKES_JOBS = frozenset({"schedule_job", "remind_me", "update_job", "run_job", "record_event"})
"""A job makes no jobs (SPEC §11)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachOptions:
    """Glob lists of the agent: an empty `allowed` means all, and `denied` wins. With
    `members_approve_outside` members may wish for tools that act outside, and are asked."""

    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    members_approve_outside: bool = False


class Reach:
    """The tools of a toolbox that a caller can use."""

    def __init__(
        self,
        toolbox: Toolbox,
        options: ReachOptions | None = None,
        others: Mapping[str, ReachOptions] = MappingProxyType({}),
    ) -> None:
        """`options` are those of the agent `default`, `others` those of further agents."""
        self._toolbox = toolbox
        self._options = options or ReachOptions()
        self._others = others

    def cards(self, caller: Caller) -> Sequence[ToolCard]:
        """All that this run may have, in the order of the toolbox."""
        return self.cards_of(
            caller.role,
            unattended=caller.unattended,
            jobs=caller.makes_jobs,
            agent=caller.agent,
        )

    def cards_of(
        self,
        role: Role,
        *,
        unattended: bool = False,
        jobs: bool = False,
        agent: str = DEFAULT_AGENT,
    ) -> Sequence[ToolCard]:
        """All that a run for a person of this role may have, in the order of the toolbox. With
        `jobs` also one that nobody watches may make jobs."""
        withheld = ATTENDED_ALONE if jobs else ATTENDED_ALONE | MAKES_JOBS
        withheld = withheld if unattended else UNATTENDED_ALONE
        options = self._others.get(agent, self._options)
        return [
            tool.card
            for tool in self._toolbox.tools()
            if tool.card.name not in withheld and _may(tool.card, role, options)
        ]

    def names(self, role: Role, *, unattended: bool = False) -> list[str]:
        """The same, by name."""
        return [card.name for card in self.cards_of(role, unattended=unattended)]

    def tool(self, name: str, caller: Caller) -> Tool | None:
        """One of them."""
        is_there = any(card.name == name for card in self.cards(caller))
        return self._toolbox.get(name) if is_there else None


def _may(card: ToolCard, role: Role, options: ReachOptions) -> bool:
    if options.allowed and not _matches(card.name, options.allowed):
        return False
    if _matches(card.name, options.denied):
        return False
    if may_call(role, card.effect):
        return True
    asks = options.members_approve_outside and card.group != "exec"
    return asks and role is Role.MEMBER and card.effect is Effect.OUTSIDE


def _matches(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)
