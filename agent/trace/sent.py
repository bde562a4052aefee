"""What one request held, read from a plan or from the recorded steps of a turn: the same value for
both, so that what will be sent and what was sent are looked at alike.

Pure; called by `agent.trace.inspect`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent.history.window import estimate_tokens, repair
from agent.models.wire import messages
from agent.prompt.scene import PromptKind
from agent.prompt.templates import CONTEXT_CLOSE, CONTEXT_OPEN
from agent.trace.prefix_cache import TOOLS, Part, entry_parts, part_of, tools_part
from agent.turn.progress import heard
from agent.turn.steps.plan import PromptPlan
from memory.records.errors import Permanent
from memory.records.ports import Json
from memory.records.request import PromptLayer, ToolSpec
from memory.records.rows import PromptTrace
from memory.records.transcript import Context, Entry, Note

HISTORY, NOTES, WORDS, TASK = "history", "notes", "the person's words", "the task"
"""Names of the parts that are no layers; that of the tools is `agent.trace.prefix_cache.TOOLS`."""

BETWEEN_LAYERS = "\n\n"


class NotRecorded(Permanent):
    """What a turn sent was not noted in a way that can be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentLayer:
    """A layer as it was sent. `text` is None where it is not known any more."""

    name: str
    digest: str
    tokens: int
    chars: int
    in_system: bool
    sources: tuple[str, ...] = ()
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A part of a request that is no layer; `text` as for a layer."""

    tokens: int
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One request. `digests` are those of its parts as the guard compares them, `last_digests`
    those of the turn's last request; empty where nothing was asked yet.

    `words` is what the person wrote, or what stands in its place where nobody is there.
    """

    kind: str
    tool_names: tuple[str, ...]
    layers: tuple[SentLayer, ...]
    tools: Stretch
    history: Stretch
    notes: Stretch
    words: Stretch
    digests: tuple[str, ...] = ()
    last_digests: tuple[str, ...] = ()
    sent_from: int | None = None
    shortened_to: int = 0

    @property
    def in_system(self) -> tuple[SentLayer, ...]:
        """The layers of the system message."""
        return tuple(layer for layer in self.layers if layer.in_system)

    @property
    def in_block(self) -> tuple[SentLayer, ...]:
        """The layers of the block after the person's words."""
        return tuple(layer for layer in self.layers if not layer.in_system)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is still stored of a turn's texts. Each is shown only where its digest proves that it
    is what was sent. `history` is as it was sent, `turn` what this turn added to it."""

    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    history: tuple[Entry, ...] = ()
    turn: tuple[Entry, ...] = ()


NOTHING_KNOWN = Known()


# --- what would be sent --------------------------------------------------------------------------


def sent_by_plan(plan: PromptPlan) -> tuple[Sent, tuple[Part, ...]]:
    """What would be sent, and its parts as the guard compares them."""
    history = plan.entries()
    now = _entries_of_turn(plan)
    notes = [entry for entry in now if isinstance(entry, Note)]
    words = [entry for entry in now if not isinstance(entry, Note | Context)]
    tools = tools_part(plan.tools)
    parts = (tools, *plan.parts, *entry_parts(repair([*history, *now])))
    digests = tuple(part.digest for part in parts)
    in_place = estimate_tokens(plan.prompt.user) if plan.prompt.user else 0
    sent = Sent(
        kind=plan.gathered.scene.kind.value,
        tool_names=tuple(tool.name for tool in plan.tools),
        layers=tuple(
            _planned(layer, in_system=plan.in_system(layer)) for layer in plan.prompt.layers
        ),
        tools=Stretch(tokens=plan.tokens.tools, text=_tools_text(plan.tools)),
        history=Stretch(tokens=plan.tokens.history, text=_as_text(repair(history))),
        notes=Stretch(tokens=_tokens(notes), text=_as_text(notes, named=False)),
        words=Stretch(tokens=plan.tokens.words + in_place, text=_as_text(words, named=False)),
        digests=digests,
        last_digests=digests,
        sent_from=plan.sent_from,
        shortened_to=plan.shortened_to,
    )
    return sent, parts


def _planned(layer: PromptLayer, *, in_system: bool) -> SentLayer:
    text = layer.render()
    part = part_of(layer.name, text)
    return SentLayer(
        name=layer.name,
        digest=part.digest,
        tokens=part.tokens,
        chars=len(text),
        in_system=in_system,
        sources=layer.sources,
        text=text,
    )


def _entries_of_turn(plan: PromptPlan) -> list[Entry]:
    """What this turn would add to the history, as the assistant begins its log."""
    turn = plan.gathered.scene.turn
    if plan.prompt.user:
        turn = replace(turn, message=replace(turn.message, text=plan.prompt.user))
    notes = (Note(text=note.text, untrusted=note.untrusted) for note in plan.history.notes)
    return [*notes, *heard(turn, context=plan.prompt.context)]


# --- what was sent -------------------------------------------------------------------------------


def sent_by_trace(trace: PromptTrace, known: Known = NOTHING_KNOWN) -> Sent:
    """What was sent first in a turn. Raises NotRecorded."""
    try:
        return _read(trace, known)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise NotRecorded(
            f"The turn {trace.run_id} ran under a version that did not note its layers, so what "
            "it sent cannot be shown; look at a later turn."
        ) from error


def _read(trace: PromptTrace, known: Known) -> Sent:
    begin = trace.begin
    tokens: Mapping[str, int] = begin["tokens"]
    layers = tuple(_noted(noted) for noted in begin["layers"])
    digests = _digests(trace.asked[0]) if trace.asked else ()
    in_system = [layer for layer in layers if layer.in_system]
    in_block = [layer for layer in layers if not layer.in_system]
    block = begin["context"].removeprefix(f"{CONTEXT_OPEN}\n").removesuffix(f"\n{CONTEXT_CLOSE}")
    texts = _texts(known.system, in_system) | _texts(block, in_block)
    notes = [Note(text=note[1]) for note in begin["notes"]]
    words = [entry for entry in known.turn if not isinstance(entry, Note | Context)]
    entries = tuple(part.digest for part in entry_parts([*known.history, *known.turn]))
    proven = bool(entries) and entries == digests[1 + len(in_system) :]
    tools_proven = digests[:1] == (tools_part(known.tools).digest,)
    # Where nobody wrote a message, what stands in its place is counted with the prompt.
    in_place = max(0, tokens["prompt"] - sum(layer.tokens for layer in layers))
    return Sent(
        kind=begin.get("kind", PromptKind.CHAT.value),
        tool_names=tuple(begin["tools"]),
        layers=tuple(replace(layer, text=texts.get(layer.name)) for layer in layers),
        tools=Stretch(
            tokens=tokens["tools"], text=_tools_text(known.tools) if tools_proven else None
        ),
        history=Stretch(tokens=tokens["history"], text=_as_text(known.history) if proven else None),
        notes=Stretch(tokens=_tokens(notes), text=_as_text(notes, named=False)),
        words=Stretch(
            tokens=tokens["words"] + in_place,
            text=_as_text(words, named=False) if proven else None,
        ),
        digests=digests,
        last_digests=_digests(trace.asked[-1]) if trace.asked else (),
        sent_from=begin["sent_from"],
        shortened_to=begin.get("shortened_to", 0),
    )


def _noted(noted: Json) -> SentLayer:
    return SentLayer(
        name=noted["name"],
        digest=noted["digest"],
        tokens=noted["tokens"],
        chars=noted["chars"],
        in_system=noted["system"],
        sources=tuple(noted["sources"]),
    )


def _digests(step: Json) -> tuple[str, ...]:
    return tuple(str(step.get("digests", "")).split())


def _texts(joined: str, layers: Sequence[SentLayer]) -> dict[str, str]:
    """The layers' texts, cut out of the message by their lengths, as far as the digests agree."""
    found, at = {}, 0
    for layer in layers:
        text = joined[at : at + layer.chars]
        if part_of(layer.name, text).digest == layer.digest:
            found[layer.name] = text
        at += layer.chars + len(BETWEEN_LAYERS)
    return found


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
    """Entries as a model reads them; each message after the name of its role where `named`."""
    found = []
    for message in messages("", entries):
        content = _content(message)
        found.append(f"[{message['role']}]\n{content}" if named else content)
    return "\n\n".join(found)


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    parts = [part["text"] for part in content] if isinstance(content, list) else [content]
    for call in message.get("tool_calls", ()):
        parts.append(f"{call['function']['name']} {call['function']['arguments']}")
    return "\n\n".join(part for part in parts if part)


def _tokens(entries: Sequence[Entry]) -> int:
    return sum(part.tokens for part in entry_parts(entries))


# --- breaking -----------------------------------------------------------------------------------
#
# Why a provider's cache could serve less than the whole former request: in plain words.
#
# Pure; called by `agent.trace.inspect`, on what two requests held.

DATE_AND_TIME = "date and time"

SOME = 4
"""Of many names, so many are told."""


def why(changed: str, now: Sent, former: Sent | None) -> str:
    """Which part broke the prefix, and why, as far as the two requests say; empty for none.

    `changed` is what the guard named (`agent.trace.prefix_cache.Prefix.first_changed`).
    """
    if not changed:
        return ""
    if former is None:
        return f"{changed}: another text than in the request before"
    if changed == TOOLS:
        return f"{TOOLS}: {_why_tools(now, former)}"
    layer = next((one for one in now.in_system if one.name == changed), None)
    before = next((one for one in former.in_system if one.name == changed), None)
    if layer is not None and (before is None or before.digest != layer.digest):
        return f"{layer.name}: {_why_layer(layer, before)}"
    names = {one.name for one in now.in_system}
    if gone := [one.name for one in former.in_system if one.name not in names]:
        return f"{_some(gone)}: no longer there, so that what follows moved up"
    if layer is not None:
        return f"{layer.name}: it stands in another place"
    return f"{HISTORY}: {_why_history(changed, now, former)}"


def _why_tools(now: Sent, former: Sent) -> str:
    if moved := _came_and_went(now.tool_names, former.tool_names):
        return moved
    if former.last_digests and former.last_digests[0] == tools_part(()).digest:
        return "the request before offered none, for it asked to sum up"
    if now.tool_names != former.tool_names:
        return "they stand in another order"
    return "a description or parameter changed"


def _why_layer(layer: SentLayer, before: SentLayer | None) -> str:
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


def _why_history(changed: str, now: Sent, former: Sent) -> str:
    if now.sent_from is not None:
        summed_up = any(layer.name == "previous conversation" for layer in now.layers)
        why = "they were summed up" if summed_up else "there was no room"
        return f"older messages are no longer sent, for {why}"
    if now.shortened_to != former.shortened_to:
        return "old tool results are sent shortened from now on"
    return f"{changed} differs from what was sent before"


def _came_and_went(now: Sequence[str], before: Sequence[str]) -> str:
    came = [name for name in now if name not in before]
    went = [name for name in before if name not in now]
    parts = [f"{_some(names)} {verb}" for names, verb in ((came, "came"), (went, "went")) if names]
    return ", ".join(parts)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SOME} more" if len(names) > SOME else ""
    return ", ".join(names[:SOME]) + more if names else "no source"
