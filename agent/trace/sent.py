"""Reads what one request held from the recorded steps of a turn; a plan is read as if it had been
recorded, so that what will be sent and what was sent are looked at alike.

Pure; called by `agent.trace.inspect`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from agent.history.window import repair
from agent.models.chat_request import messages
from agent.prompt.prefix_cache import TOOLS, PrefixPart, entry_parts, part_of, tools_part
from agent.prompt.scene import PromptKind
from agent.prompt.templates import CONTEXT_CLOSE, CONTEXT_OPEN
from agent.turn.progress import heard
from agent.turn.steps.plan import PromptPlan, plan_as_json
from memory.records.errors import Permanent
from memory.records.messages import RunId
from memory.records.ports import Json
from memory.records.rows import PromptTrace
from memory.records.transcript import Context, Entry, Note, ToolSpec

HISTORY, NOTES, WORDS, TASK = "history", "notes", "the person's words", "the task"
"""Names of the parts that are no layers; that of the tools is `agent.prompt.prefix_cache.TOOLS`."""

BETWEEN_LAYERS = "\n\n"


class NotRecorded(Permanent):
    """What a turn sent was not noted in a way that can be shown."""


class Where(StrEnum):
    """In which part of a request something stands, in the order in which they are sent."""

    TOOLS = "tools"
    SYSTEM = "system"
    HISTORY = "history"
    WORDS = "words"
    BLOCK = "block"


class CacheState(StrEnum):
    """What a provider's cache can do for a part of a request."""

    CACHED = "cached"
    """It stands in the former request's prefix."""
    PARTLY = "partly"
    """Its older part does: a history that grew."""
    BEHIND = "behind"
    """The same text as before, but something before it changed: it is read anew."""
    CHANGED = "changed"
    """It stood there with another text."""
    NEW = "new"
    """It was not in the former request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRow:
    """One part of a request. `sources` say where its words are from; of the tools, their names.

    `text` is as sent; None where it is not known any more.
    """

    name: str
    where: Where
    tokens: int
    cache: CacheState = CacheState.NEW
    cached_tokens: int = 0
    digest: str = ""
    sources: tuple[str, ...] = ()
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """One request, its rows in the order in which they are sent; what has no tokens is left out.

    `last_digests` are those of the parts of the turn's last request; empty where nothing was asked
    yet.
    """

    kind: str
    tool_names: tuple[str, ...]
    rows: tuple[PromptRow, ...]
    last_digests: tuple[str, ...] = ()
    sent_from: int | None = None
    shortened_to: int = 0

    @property
    def in_system(self) -> tuple[PromptRow, ...]:
        """The layers of the system message."""
        return tuple(row for row in self.rows if row.where is Where.SYSTEM)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTexts:
    """What is still stored of a turn's texts. Each is shown only where its digest proves that it
    is what was sent. `history` is as it was sent, `turn` what this turn added to it."""

    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    history: tuple[Entry, ...] = ()
    turn: tuple[Entry, ...] = ()


NOTHING_KNOWN = StoredTexts()


# --- what was sent, and what would be ------------------------------------------------------------


def recorded(plan: PromptPlan) -> tuple[PromptTrace, StoredTexts, tuple[PrefixPart, ...]]:
    """Return a plan as its turn would record it, with all texts and the parts of its request.

    So that what would be sent is read in the one way in which what was sent is.
    """
    turn = plan.gathered.scene.turn
    if plan.prompt.user:
        turn = replace(turn, message=replace(turn.message, text=plan.prompt.user))
    notes = (Note(text=note.text, untrusted=note.untrusted) for note in plan.history.notes)
    now = (*notes, *heard(turn, context=plan.prompt.context))
    history = repair(plan.entries())
    parts = (tools_part(plan.tools), *plan.parts, *entry_parts(repair([*history, *now])))
    trace = PromptTrace(
        run_id=RunId(""),
        lane=turn.message.address.key,
        person_id=turn.person_id,
        started_ms=0,
        begin=plan_as_json(plan),
        asked=({"digests": " ".join(part.digest for part in parts)},),
    )
    texts = StoredTexts(system=plan.prompt.system, tools=plan.tools, history=history, turn=now)
    return trace, texts, parts


def sent_by_trace(trace: PromptTrace, known: StoredTexts = NOTHING_KNOWN) -> SentRequest:
    """Return what was sent first in a turn. Raise NotRecorded."""
    try:
        return _read(trace, known)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise NotRecorded(
            f"The turn {trace.run_id} ran under a version that did not note its layers, so what "
            "it sent cannot be shown; look at a later turn."
        ) from error


def _read(trace: PromptTrace, known: StoredTexts) -> SentRequest:
    begin = trace.begin
    tokens: Mapping[str, int] = begin["tokens"]
    tool_names = tuple(begin["tools"])
    digests = _digests(trace.asked[0]) if trace.asked else ()
    in_system = [noted for noted in begin["layers"] if noted["system"]]
    in_block = [noted for noted in begin["layers"] if not noted["system"]]
    block = begin["context"].removeprefix(f"{CONTEXT_OPEN}\n").removesuffix(f"\n{CONTEXT_CLOSE}")
    system_rows = list(_noted(known.system, in_system, where=Where.SYSTEM))
    block_rows = list(_noted(block, in_block, where=Where.BLOCK))
    notes = [Note(text=note[1]) for note in begin["notes"]]
    words = [entry for entry in known.turn if not isinstance(entry, Note | Context)]
    entries = tuple(part.digest for part in entry_parts([*known.history, *known.turn]))
    proven = bool(entries) and entries == digests[1 + len(in_system) :]
    tools_proven = digests[:1] == (tools_part(known.tools).digest,)
    # Where nobody wrote a message, what stands in its place is counted with the prompt.
    layered = sum(layer.tokens for layer in (*system_rows, *block_rows))
    in_place = max(0, tokens["prompt"] - layered)
    kind = begin.get("kind", PromptKind.CHAT.value)
    rows = (
        PromptRow(
            name=TOOLS,
            where=Where.TOOLS,
            tokens=tokens["tools"],
            digest="".join(digests[:1]),
            sources=tool_names,
            text=_tools_text(known.tools) if tools_proven else None,
        ),
        *system_rows,
        PromptRow(
            name=HISTORY,
            where=Where.HISTORY,
            tokens=tokens["history"],
            text=_as_text(known.history) if proven else None,
        ),
        PromptRow(
            name=NOTES,
            where=Where.WORDS,
            tokens=sum(part.tokens for part in entry_parts(notes)),
            text=_as_text(notes, named=False),
        ),
        PromptRow(
            name=WORDS if kind == PromptKind.CHAT else TASK,
            where=Where.WORDS,
            tokens=tokens["words"] + in_place,
            text=_as_text(words, named=False) if proven else None,
        ),
        *block_rows,
    )
    return SentRequest(
        kind=kind,
        tool_names=tool_names,
        rows=tuple(row for row in rows if row.tokens),
        last_digests=_digests(trace.asked[-1]) if trace.asked else (),
        sent_from=begin["sent_from"],
        shortened_to=begin.get("shortened_to", 0),
    )


def _noted(joined: str, layers: Sequence[Json], *, where: Where) -> Iterator[PromptRow]:
    """Return the layers of one message. Their texts are cut out of it by their lengths, as far as
    the digests agree."""
    at = 0
    for noted in layers:
        text = joined[at : at + noted["chars"]]
        is_known = part_of(noted["name"], text).digest == noted["digest"]
        at += noted["chars"] + len(BETWEEN_LAYERS)
        yield PromptRow(
            name=noted["name"],
            where=where,
            digest=noted["digest"],
            tokens=noted["tokens"],
            sources=tuple(noted["sources"]),
            text=text if is_known else None,
        )


def _digests(step: Json) -> tuple[str, ...]:
    return tuple(str(step.get("digests", "")).split())


# --- as text -------------------------------------------------------------------------------------


def _tools_text(tools: Iterable[ToolSpec]) -> str:
    """A tool a line, as a provider gets it."""
    return "\n".join(
        json.dumps(
            {"name": one.name, "description": one.description, "parameters": dict(one.parameters)},
            ensure_ascii=False,
        )
        for one in tools
    )


def _as_text(entries: Sequence[Entry], *, named: bool = True) -> str:
    """Return entries as a model reads them; each message after the name of its role where
    `named`."""
    found = []
    for message in messages("", entries):
        content = message.get("content") or ""
        parts = [part["text"] for part in content] if isinstance(content, list) else [content]
        for call in message.get("tool_calls", ()):
            parts.append(f"{call['function']['name']} {call['function']['arguments']}")
        text = "\n\n".join(part for part in parts if part)
        found.append(f"[{message['role']}]\n{text}" if named else text)
    return "\n\n".join(found)


# --- breaking -----------------------------------------------------------------------------------
#
# Why a provider's cache could serve less than the whole former request: in plain words.
#
# Pure; called by `agent.trace.inspect`, on what two requests held.

DATE_AND_TIME = "date and time"

SOME = 4
"""Of many names, so many are told."""


def why(changed: str, now: SentRequest, former: SentRequest | None) -> str:
    """Return which part broke the prefix, and why, as far as the two requests say; empty for none.

    `changed` is what the guard named (`agent.prompt.prefix_cache.Prefix.first_changed`).
    """
    if not changed:
        return ""
    if former is None:
        return f"{changed}: another text than in the request before"
    if changed == TOOLS:
        if moved := _came_and_went(now.tool_names, former.tool_names):
            return f"{TOOLS}: {moved}"
        if former.last_digests and former.last_digests[0] == tools_part(()).digest:
            return f"{TOOLS}: the request before offered none, for it asked to sum up"
        if now.tool_names != former.tool_names:
            return f"{TOOLS}: they stand in another order"
        return f"{TOOLS}: a description or parameter changed"
    layer = next((one for one in now.in_system if one.name == changed), None)
    before = next((one for one in former.in_system if one.name == changed), None)
    if layer is not None and (before is None or before.digest != layer.digest):
        return f"{layer.name}: {_why_layer(layer, before)}"
    names = {one.name for one in now.in_system}
    if gone := [one.name for one in former.in_system if one.name not in names]:
        return f"{_some(gone)}: no longer there, so that what follows moved up"
    if layer is not None:
        return f"{layer.name}: it stands in another place"
    if now.sent_from is not None:
        summed_up = any(row.name == "previous conversation" for row in now.rows)
        reason = "they were summed up" if summed_up else "there was no room"
        return f"{HISTORY}: older messages are no longer sent, for {reason}"
    if now.shortened_to != former.shortened_to:
        return f"{HISTORY}: old tool results are sent shortened from now on"
    return f"{HISTORY}: {changed} differs from what was sent before"


def _why_layer(layer: PromptRow, before: PromptRow | None) -> str:
    if before is None:
        return "it was not there before"
    if layer.name == DATE_AND_TIME:
        return (
            "it changes with every minute, and stands before the history "
            '(prompt.turn_layers = "system")'
        )
    moved = _came_and_went(layer.sources, before.sources)
    if len(layer.sources) == len(before.sources) == 1 and moved:
        return f"its text is from {layer.sources[0]} now, not from {before.sources[0]}"
    return moved or f"its text changed ({_some(layer.sources)})"


def _came_and_went(now: Sequence[str], before: Sequence[str]) -> str:
    came = [name for name in now if name not in before]
    went = [name for name in before if name not in now]
    parts = [f"{_some(names)} {verb}" for names, verb in ((came, "came"), (went, "went")) if names]
    return ", ".join(parts)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SOME} more" if len(names) > SOME else ""
    return ", ".join(names[:SOME]) + more if names else "no source"
