"""How one call of a tool is run to its one result, and the one place where a failure is caught.

Called by the step `tool` of a turn. What goes wrong becomes a ToolResult that is not ok.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog
from pydantic import BaseModel

from agent.tools.arguments import ArgumentsWrong, parse_arguments
from agent.tools.tool import (
    Caller,
    ChangedFile,
    Effect,
    FileResult,
    OwnWords,
    Tool,
    ToolCard,
    Trust,
)
from memory.records.errors import AssistantError
from memory.records.ports import Clock
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
    pointer = await _pointer(cleaned, caller, keep)
    return cut_middle(cleaned, chars_max=chars_max, pointer=pointer)


async def _pointer(text: str, caller: Caller, keep: KeepResult | None) -> str:
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
