"""What would be sent for an occasion, and how the step `begin` records it.

Made by `agent.turn.steps.begin`; looked at by whoever shows what will be sent.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from agent.history.window import shorten_before
from agent.policy.taint import OTHERS_FACTS, REMEMBERED_LAYERS, fenced, rests_on_memory, tainted_by
from agent.prompt.assemble import Prompt
from agent.prompt.context import PromptContext
from agent.prompt.prefix_cache import PrefixPart, part_of
from agent.tools.selection import Selection, temperature
from memory.records.ports import History, InUse, Json, StoredEntry
from memory.records.transcript import (
    Answered,
    Entry,
    PromptLayer,
    Said,
    Stability,
    ToolSpec,
    changed_once,
    once,
)

RESULT_WINDOW_SHARE = 2
"""A tool result has at most half as many characters as the model's window has tokens, so that one
alone never fills a small window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTokens:
    """Estimated tokens by where they go, and the room there was for the prompt."""

    prompt: int = 0
    tools: int = 0
    history: int = 0
    words: int = 0
    room: int = 0
    window: int = 0

    @property
    def total(self) -> int:
        """Of the whole request."""
        return self.prompt + self.tools + self.history + self.words


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPlan:
    """What would be sent for an occasion, and of what it is made. Nothing is stored by making one.

    `model` is whom it is made for. `sent` is the history that goes along, `parts` those of the
    system message for the guard; `sent_from` is set when its start moves, `shortened_to` says
    from where old results are whole. `history_max` is how many tokens of history there was room
    for, where not all of it was. `prompt` and `tokens` are empty until it is known to fit.
    """

    model: InUse
    gathered: PromptContext
    history: History
    sent_from: int | None
    sent: tuple[StoredEntry, ...] = ()
    shortened_to: int = 0
    history_max: int | None = None
    tools: tuple[ToolSpec, ...] = ()
    selection: Selection = field(default_factory=Selection)
    prompt: Prompt = field(default_factory=Prompt)
    tokens: PromptTokens = field(default_factory=PromptTokens)

    @property
    def since(self) -> int:
        """The id of the first entry that goes along; past the last one where none does."""
        return self.sent[0].id if self.sent else (self.sent_from or 0)

    @property
    def parts(self) -> tuple[PrefixPart, ...]:
        """The layers of the system message, in order."""
        return tuple(
            part_of(layer.name, layer.render())
            for layer in self.prompt.layers
            if self.in_system(layer)
        )

    def in_system(self, layer: PromptLayer) -> bool:
        """Return whether a layer stands in the system message."""
        return layer.stability is Stability.STATIC or not self.prompt.context

    def entries(self) -> tuple[Entry, ...]:
        """The history as it is sent."""
        return tuple(map(as_sent, shorten_before(self.sent, self.shortened_to)))

    @property
    def tainted(self) -> str:
        """Return what untrusted text is in what is sent before the turn has done anything."""
        turn = self.gathered.scene.turn
        if turn.report is not None:
            return "what a background task found"
        if turn.task is not None and turn.task.tainted:
            return "what was read before this task was given"
        names = {layer.name for layer in self.prompt.layers}
        message = turn.message
        if message.is_group and "memories" in names:
            return OTHERS_FACTS
        if message.is_group and self.gathered.scene.recalled.summary:
            return "what was said before in this group, summed up"
        compaction = self.history.compaction
        if "previous conversation" in names and compaction is not None and compaction.tainted:
            return "a summary of what was read from outside"
        brought = Said(text="", quote=message.quote, forwarded=bool(message.forwarded))
        return tainted_by([*self.entries(), brought], person_id=turn.person_id) or (
            "a saved document" if "knowledge" in names else ""
        )

    @property
    def remembered(self) -> bool:
        """Return whether what is remembered of the person is in what is sent, or may be: a subagent
        is told of it by whoever gave it its task."""
        names = {layer.name for layer in self.prompt.layers}
        return (
            bool(names & REMEMBERED_LAYERS)
            or self.gathered.scene.turn.task is not None
            or any(map(_rests_on_memory, self.entries()))
        )


as_sent = changed_once(fenced)
"""An entry as it is sent: what is not ours stands in a marked block."""


@once
def _rests_on_memory(entry: Entry) -> bool:
    return rests_on_memory([entry])


def plan_as_json(plan: PromptPlan) -> Json:
    """Return what the step `begin` records: all of the plan, by ids and digests."""
    prompt = plan.prompt
    # The model that a person of this conversation heard last, as far as it is still sent.
    entries = (stored.entry for stored in plan.history.entries)
    answered = [entry for entry in entries if isinstance(entry, Answered)]
    return {
        "conversation": plan.gathered.scene.turn.conversation,
        "model": plan.model.name,
        "answered_last": answered[-1].model if answered else "",
        "upto": plan.history.entries[-1].id if plan.history.entries else 0,
        "since": plan.since,
        "sent_from": plan.sent_from,
        "shortened_to": plan.shortened_to,
        "notes": [[note.id, note.text, note.untrusted] for note in plan.history.notes],
        "system": prompt.digest,
        "context": prompt.context,
        "user": prompt.user,
        "whole_context": prompt.whole_context,
        "tools": [tool.name for tool in plan.tools],
        "offered": [
            [one.name, one.reason.value, round(one.cosine, 3)] for one in plan.selection.picked
        ],
        "left_out": list(plan.selection.left_out),
        "result_chars": plan.model.traits.window // RESULT_WINDOW_SHARE,
        "cooler": temperature(plan.selection, None),
        "kind": plan.gathered.scene.kind.value,
        "direct": plan.gathered.scene.direct,
        "auto_invoke": [
            {"tool": one.tool, "args": dict(one.args)} for one in plan.gathered.auto_invoke
        ],
        "tainted": plan.tainted,
        "remembered": plan.remembered,
        # What a background task did is told in a turn that does nothing itself.
        "claims": bool(plan.tools) and plan.gathered.scene.turn.report is None,
        "layers": layers_as_json(plan),
        "spared": list(prompt.spared),
        "cuts": [asdict(cut) for cut in prompt.cuts],
        "picked": [list(pick) for pick in plan.gathered.picked],
        "tokens": asdict(plan.tokens),
    }


def layers_as_json(plan: PromptPlan) -> list[Json]:
    """Each layer that is sent: its name, size, place, sources and digest."""
    found = []
    for layer in plan.prompt.layers:
        text = layer.render()
        part = part_of(layer.name, text)
        found.append(
            {
                "name": layer.name,
                "tokens": part.tokens,
                "chars": len(text),
                "digest": part.digest,
                "system": plan.in_system(layer),
                "sources": list(layer.sources),
            }
        )
    return found
