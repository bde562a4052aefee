"""What made a message of ours: what is recorded of its turn, or of the due time that sent it, read
for the person who asks why.

`memory.stores.traces` finds the records, `bot.commands.trace.why` says what they tell. Nothing here
asks a model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.guards.tool_call_text import called_name
from memory.records.facts import FACT_SOURCE, fact_id_of
from memory.records.ports import Json
from memory.records.transcript import Answered, ToolCall, ToolResult
from memory.records.turns import RecordedStep, TurnRecord

HINT = "hint_"
"""How the names of the texts begin that ask for an answer once more
(`agent.prompt.layers.knowledge`)."""

MEMORIES = "memories"
"""The layer that shows facts."""

SUMMED_UP = "summed_up"
CUT_BACK = "cut_back"
BY_RULE = "by_rule"
"""What acted on a turn, beside the hints and the errors of its requests."""


# --- what it tells ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedCall:
    """One call with what came of it. `took_ms` None: not recorded. `by_rule`: a rule made it."""

    name: str
    arguments: str
    content: str
    ok: bool
    took_ms: int | None = None
    by_rule: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """Who answered. `stand_in` names the one that did in place of `usual`, `cheaper` the one that
    was asked because a budget was near its end; empty: that was not so. `direct`: the message
    asked for no thinking."""

    usual: str
    answered: str
    stand_in: str = ""
    cheaper: str = ""
    direct: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """What a turn was made of. `facts` are those that its prompt showed; `facts_before` stood in
    the history that was sent along, where an earlier turn of the conversation had shown them.

    `read` counts the sources of each other layer; `offered` counts tools by reason
    (`agent.tools.selection.Reason`). `acted` names what had to be done on the way, in order: a
    hint, CUT_BACK, SUMMED_UP, BY_RULE; `errors` are the kinds of failed requests.
    """

    facts: tuple[int, ...]
    facts_before: tuple[int, ...]
    read: Mapping[str, int]
    picked: tuple[tuple[str, str], ...]
    offered: Mapping[str, int]
    calls: tuple[ExplainedCall, ...]
    thought: Thought
    requests: int
    errors: tuple[str, ...] = ()
    acted: tuple[str, ...] = ()


def explained(record: TurnRecord, texts: Mapping[str, str]) -> Explained | None:
    """Return what the steps tell; None where they are not kept. `texts` are the library's
    templates.

    Reads what any version wrote: what it does not find is left out.
    """
    begins = [step.output for step in record.steps if step.name == "begin" and step.output]
    asked = [step.output for step in record.steps if step.name == "model" and step.output]
    if not begins:
        return None
    begin = begins[-1]  # the history may have been summed up on the way
    sources = _sources(begin)
    facts = _facts(sources.pop(MEMORIES, ()))
    before = [fact for one in record.before for fact in _facts(_sources(one).get(MEMORIES, ()))]
    models = [one.model for one in record.entries if isinstance(one, Answered) and one.model]
    stood_in = [pair[0] for one in asked if (pair := _texts(one.get("stand_in")))]
    cheaper = [str(one["cheaper"]) for one in asked if one.get("cheaper")]
    usual = str(begin.get("model", ""))
    return Explained(
        facts=facts,
        facts_before=tuple(fact for fact in dict.fromkeys(before) if fact not in facts),
        read={name: len(found) for name, found in sources.items() if found},
        picked=tuple((str(one[0]), str(one[1])) for one in _rows(begin.get("picked"), 2)),
        offered=Counter(str(one[1]) for one in _rows(begin.get("offered"), 2)),
        calls=tuple(_calls(record)),
        thought=Thought(
            usual=usual,
            answered=models[-1] if models else usual,
            stand_in=stood_in[-1] if stood_in else "",
            cheaper=cheaper[-1] if cheaper else "",
            direct=bool(begin.get("direct")),
        ),
        requests=len(asked),
        errors=tuple(
            str(error.get("kind", ""))
            for one in asked
            if isinstance(error := one.get("error"), dict) and error.get("kind")
        ),
        acted=tuple(_acted(record, asked, len(begins), texts)),
    )


def _sources(begin: Json) -> dict[str, tuple[str, ...]]:
    """Return what each layer is from."""
    layers = begin.get("layers")
    return {
        str(layer.get("name")): _texts(layer.get("sources"))
        for layer in (layers if isinstance(layers, list) else ())
        if isinstance(layer, dict)
    }


def _facts(sources: Sequence[str]) -> tuple[int, ...]:
    keys = (one.removeprefix(FACT_SOURCE) for one in sources if one.startswith(FACT_SOURCE))
    return tuple(found for key in keys if (found := fact_id_of(key)) is not None)


def _acted(
    record: TurnRecord, asked: Sequence[Json], begun: int, texts: Mapping[str, str]
) -> Iterator[str]:
    for one in asked:
        if one.get("sent_from") is not None:
            yield CUT_BACK
        if hint := str(one.get("hint") or ""):
            # Which template it was made of; empty where that was another one then.
            heads = (
                (name, template.strip().partition("{{")[0])
                for name, template in texts.items()
                if name.startswith(HINT)
            )
            yield next((name for name, head in heads if head and hint.startswith(head)), "")
    if begun > 1:
        yield SUMMED_UP
    if any(call.by_rule for call in _calls(record)):
        yield BY_RULE


# --- calls --------------------------------------------------------------------------------------


def _calls(record: TurnRecord) -> Iterator[ExplainedCall]:
    """Each call with its result, in order; ids may come again from one answer to the next."""
    times = _Times(record.steps)
    calls: Mapping[str, ToolCall] = {}
    for entry in record.entries:
        if isinstance(entry, Answered):
            calls = {call.id: call for call in entry.calls}
        elif isinstance(entry, ToolResult) and (call := calls.get(entry.call_id)) is not None:
            yield ExplainedCall(
                name=called_name(call),
                arguments=call.arguments,
                content=entry.content,
                ok=entry.ok,
                took_ms=times.of(entry.content),
                by_rule=call.id.startswith("auto-"),
            )


class _Times:
    """How long tools ran. A step does not say which call it was for: the first one with the same
    result that is not taken yet is meant."""

    def __init__(self, steps: Sequence[RecordedStep]) -> None:
        self._left: list[tuple[str, int]] = []
        before_ms: int | None = None
        for step in steps:
            if step.name != "tool":
                before_ms = step.ended_ms
                continue
            content = (step.output or {}).get("content")
            # Only what may not be repeated is written down before it runs.
            known = step.ended_ms is not None and step.started_ms < step.ended_ms
            start_ms = step.started_ms if known else before_ms
            if isinstance(content, str) and step.ended_ms is not None and start_ms is not None:
                self._left.append((content, max(0, step.ended_ms - start_ms)))

    def of(self, content: str) -> int | None:
        """Milliseconds; None where nobody noted it."""
        for place, (result, took_ms) in enumerate(self._left):
            if result == content:
                del self._left[place]
                return took_ms
        return None


# --- JSON of any version ------------------------------------------------------------------------


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list) else ()


def _rows(value: object, width: int) -> list[list[object]]:
    rows = value if isinstance(value, list) else []
    return [one for one in rows if isinstance(one, list) and len(one) >= width]
