"""What a record tells of a turn, whatever version wrote it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.trace.explanation import (
    BY_RULE,
    CUT_BACK,
    Explained,
    ExplainedCall,
    Thought,
    explained,
)
from memory.records.messages import PersonId, RunId
from memory.records.ports import Json
from memory.records.transcript import Answered, Entry, Said, ToolCall, ToolResult
from memory.records.turns import RecordedStep, TurnRecord

TEXTS = {
    "hint_empty": "The last answer was empty.",
    "hint_claim": 'Your last answer says "{{DETAIL}}", but nothing did that.',
    "system": "You are an assistant.",
}
BEGIN: Json = {
    "model": "lab",
    "direct": False,
    "layers": [
        {"name": "base", "sources": ["system.md"]},
        {"name": "memories", "sources": ["fact:f12", "fact:x", "fact:f3"]},
        {"name": "knowledge", "sources": ["chunk:1", "chunk:2"]},
        {"name": "date and time", "sources": []},
    ],
    "picked": [["playbook:mail", "keyword inbox"]],
    "offered": [["send", "core", 0.0], ["read", "fits", 0.4], ["list", "fits", 0.3]],
}
ANSWER: Json = {"answer": {"kind": "answered", "text": "yes"}, "sent_from": None}


def step(
    name: str, output: Json | None, *, began: int = 0, ended: int | None = None
) -> RecordedStep:
    return RecordedStep(
        name=name, output=output, started_ms=began, ended_ms=began if ended is None else ended
    )


def record(
    *steps: RecordedStep, entries: tuple[Entry, ...] = (), before: tuple[Json, ...] = ()
) -> TurnRecord:
    return TurnRecord(
        run_id=RunId("in-1"),
        person_id=PersonId("p1"),
        started_ms=0,
        ended_ms=9,
        steps=steps,
        entries=entries,
        before=before,
    )


def told(of: TurnRecord) -> Explained:
    found = explained(of, TEXTS)
    assert found is not None
    return found


def called(name: str, *, call_id: str = "c1", arguments: str = "{}") -> Answered:
    return Answered(text="", calls=(ToolCall(id=call_id, name=name, arguments=arguments),))


def test_it_tells_what_was_shown_picked_and_offered() -> None:
    found = told(record(step("begin", BEGIN), step("model", ANSWER)))

    assert found.facts == (12, 3)
    assert found.read == {"base": 1, "knowledge": 2}
    assert found.picked == (("playbook:mail", "keyword inbox"),)
    assert found.offered == {"core": 1, "fits": 2}
    assert found.thought == Thought(usual="lab", answered="lab")
    assert (found.requests, found.errors, found.acted, found.calls) == (1, (), (), ())


def test_who_answered_in_whose_place_is_told() -> None:
    answers = (Said(text="hello"), Answered(text="yes", model="spare"))
    stood_in = step("model", {**ANSWER, "stand_in": ["spare", "lab"]})
    cheaper = step("model", {**ANSWER, "cheaper": "small"})

    assert told(record(step("begin", BEGIN), stood_in, entries=answers)).thought == Thought(
        usual="lab", answered="spare", stand_in="spare"
    )
    assert told(record(step("begin", BEGIN), cheaper)).thought.cheaper == "small"


def test_what_acted_on_the_way_is_named() -> None:
    found = told(
        record(
            step("begin", BEGIN),
            step("model", {"error": {"kind": "ContextTooLong", "text": "x"}, "sent_from": 7}),
            step("model", {**ANSWER, "hint": "The last answer was empty."}),
            step("model", {**ANSWER, "hint": 'Your last answer says "sent it", but …'}),
            step("model", {**ANSWER, "hint": "Something else."}),
        )
    )

    assert found.errors == ("ContextTooLong",)
    assert found.acted == (CUT_BACK, "hint_empty", "hint_claim", "")
    assert found.requests == 4


def test_calls_have_their_results_also_where_ids_come_again() -> None:
    entries = (
        called("read", arguments='{"path": "a"}'),
        ToolResult(call_id="c1", content="one"),
        called("tool_call", arguments='{"name": "send", "arguments": {}}'),
        ToolResult(call_id="c1", content="no", ok=False),
        called("list", call_id="auto-1"),
        ToolResult(call_id="auto-1", content="three"),
        ToolResult(call_id="nobodys", content="x"),
    )

    found = told(record(step("begin", BEGIN), entries=entries))

    assert found.calls == (
        ExplainedCall(name="read", arguments='{"path": "a"}', content="one", ok=True),
        ExplainedCall(
            name="send", arguments='{"name": "send", "arguments": {}}', content="no", ok=False
        ),
        ExplainedCall(name="list", arguments="{}", content="three", ok=True, by_rule=True),
    )
    assert found.acted == (BY_RULE,)


def test_it_tells_how_long_tools_ran_beside_and_after_one_another() -> None:
    together = Answered(
        text="",
        calls=tuple(ToolCall(id=name, name=name, arguments="{}") for name in ("a", "b")),
    )
    entries = (
        together,
        ToolResult(call_id="a", content="same"),
        ToolResult(call_id="b", content="same"),
        called("once"),
        ToolResult(call_id="c1", content="done"),
        called("lost"),
        ToolResult(call_id="c1", content="nobody noted this one"),
    )
    steps = (
        step("begin", BEGIN, began=10),
        step("model", ANSWER, began=1_000),
        step("tool", {"content": "same"}, began=1_400),
        step("tool", {"content": "same"}, began=1_300),
        step("gate", {}, began=2_000),
        step("tool", {"content": "done"}, began=5_000, ended=5_250),
        step("tool", None, began=6_000),
    )

    found = told(record(*steps, entries=entries))

    assert [call.took_ms for call in found.calls] == [400, 300, 250, None]


odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
keys = st.sampled_from(
    [*BEGIN, "answer", "error", "hint", "stand_in", "cheaper", "sent_from", "content"]
)
outputs = st.dictionaries(keys, odd, max_size=5)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["begin", "model", "tool", "wait"]), outputs), max_size=5)
)
def test_no_recorded_step_breaks_it(steps: list[tuple[str, Json]]) -> None:
    explained(
        record(
            *(step(name, output) for name, output in steps), before=(steps[0][1],) if steps else ()
        ),
        TEXTS,
    )
