"""What a request is made of, from plans and from recorded turns, and what differs between two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.prompt.assemble import assemble
from agent.prompt.context import PromptContext
from agent.prompt.effort import Thinking, ThinkingRule
from agent.prompt.prefix_cache import compare, entry_parts, tools_part
from agent.prompt.scene import Scene
from agent.prompt.templates import PersonaSettings, PromptLibrary
from agent.prompt.tokens import estimate_tokens
from agent.tools.selection import Selection
from agent.trace.inspect import (
    DIFF_LINES_MAX,
    Change,
    PromptView,
    bill,
    diff,
    former_of,
    view_of_plan,
    view_of_trace,
)
from agent.trace.sent import (
    WORDS,
    CacheState,
    NotRecorded,
    StoredTexts,
    Where,
    recorded,
)
from agent.turn.steps.plan import PromptPlan, PromptTokens, plan_as_json
from bot.settings.home import shipped
from memory.records.facts import Fact, Recalled
from memory.records.messages import PersonId, RunId
from memory.records.ports import History, InUse, StoredEntry, WaitingNote
from memory.records.rows import PromptTrace
from memory.records.section import LayersSettings
from memory.records.transcript import Answered, Context, Entry, ModelTraits, Said, ToolSpec, Usage
from tests.agent.house import OWNER
from tests.agent.scenes import full, scene, skill, turn_of

READ = ToolSpec(name="read_file", description="Reads.", parameters={"type": "object"})
WRITE = ToolSpec(name="write_file", description="Writes.", parameters={"type": "object"})
ANSWER_MAX = 8_192


@pytest.fixture
def library(tmp_path: Path) -> PromptLibrary:
    return PromptLibrary(shipped("prompts"), tmp_path, PersonaSettings())


# --- hand-made ---------------------------------------------------------------------------------


def plan_of(
    where: Scene,
    *,
    text: str = "hello",
    entries: Sequence[Entry] = (),
    tools: tuple[ToolSpec, ...] = (READ,),
    layers: LayersSettings | None = None,
    room: int | None = None,
    notes: tuple[WaitingNote, ...] = (),
    sent_from: int | None = None,
) -> PromptPlan:
    where = replace(where, turn=turn_of(OWNER, text))
    stored = tuple(
        StoredEntry(id=n, run_id=RunId("in-1"), entry=entry) for n, entry in enumerate(entries, 1)
    )
    prompt = assemble(
        where,
        sent_contexts=[entry for entry in entries if isinstance(entry, Context)],
        settings=layers or LayersSettings(),
        room_tokens=room,
    )
    return PromptPlan(
        model=InUse(name="scripted", traits=ModelTraits()),
        gathered=PromptContext(
            scene=where,
            thinking=Thinking(needed=False, rule=ThinkingRule.NOTHING),
            picked=(("playbook:harbour", "keyword boat"),),
        ),
        prompt=prompt,
        history=History(entries=stored, notes=notes),
        sent=stored,
        sent_from=sent_from,
        shortened_to=0,
        tools=tools,
        selection=Selection(),
        tokens=PromptTokens(
            prompt=prompt.tokens,
            tools=tools_part(tools).tokens if tools else 0,
            history=sum(part.tokens for part in entry_parts(entries)),
            words=estimate_tokens(text),
            room=room or 60_000,
            window=100_000,
        ),
    )


def trace_of(
    plan: PromptPlan,
    *,
    run_id: str = "in-1",
    former: PromptTrace | None = None,
    usage: Usage | None = None,
    **begin: Any,
) -> PromptTrace:
    """The steps that a turn with this plan records."""
    *_, parts = recorded(plan)
    before = None if former is None else str(former.asked[-1]["digests"]).split()
    prefix = compare(before, parts)
    return PromptTrace(
        run_id=RunId(run_id),
        lane="telegram:5",
        person_id=PersonId("p1"),
        started_ms=1,
        begin={**plan_as_json(plan), **begin},
        asked=(
            {
                "prefix": {
                    "first_changed": prefix.first_changed,
                    "kept": prefix.kept_tokens,
                    "tokens": prefix.tokens,
                    "intact": prefix.intact,
                },
                "digests": " ".join(part.digest for part in parts),
                "answer": {"text": "Hi.", "model": "lab", "usage": asdict(usage or Usage())},
            },
        ),
    )


def now(plan: PromptPlan, former: PromptTrace | None = None) -> PromptView:
    return view_of_plan(plan, former=former, answer_tokens_max=ANSWER_MAX)


def then(trace: PromptTrace, former: PromptTrace | None = None, **known: Any) -> PromptView:
    return view_of_trace(
        trace, former=former, answer_tokens_max=ANSWER_MAX, known=StoredTexts(**known)
    )


def said_before(plan: PromptPlan, answer: str = "Hi.") -> list[Entry]:
    """The history after a turn with this plan."""
    text = plan.gathered.scene.turn.message.text
    return [
        *plan.entries(),
        Said(text=text),
        Context(text=plan.prompt.context),
        Answered(text=answer),
    ]


def states(view: PromptView) -> dict[str, CacheState]:
    return {row.name: row.cache for row in view.rows}


# --- rows --------------------------------------------------------------------------------------


def test_what_is_not_as_it_was_sent_is_not_shown(library: PromptLibrary) -> None:
    plan = plan_of(full(library=library))

    view = then(
        trace_of(plan),
        system=plan.prompt.system.replace("harbour", "garden"),
        tools=(WRITE,),
        turn=(Said(text="another"), Context(text=plan.prompt.context)),
    )

    texts = {row.name: row.text for row in view.rows}
    assert texts["tools"] is None
    assert texts[WORDS] is None
    assert texts["base"] is not None, "what was not touched can be proven"
    assert texts["daily notes"] is not None, "the block stands in the trace itself"


# --- the cache ---------------------------------------------------------------------------------


VESLA = {"notes": "Vesla.", "notes_source": "memory/MEMORY.md"}


@pytest.mark.parametrize(
    ("before", "after", "told", "changed"),
    [
        (
            {"listed": (skill("boats"),)},
            {"listed": (skill("boats"), skill("code-review"))},
            "skills: skill:code-review came",
            "skills",
        ),
        (
            VESLA,
            {},
            "long-term notes: no longer there, so that what follows moved up",
            "",
        ),
        (
            {},
            {"recalled": Recalled(persona_prompt="You are a pirate.")},
            "base: its text is from profile: persona.system_prompt now, not from prompts/system.md",
            "base",
        ),
    ],
)
def test_what_broke_the_prefix_is_named_and_what_follows_is_behind(
    library: PromptLibrary, before: Any, after: Any, told: str, changed: str
) -> None:
    first = plan_of(scene(OWNER, library, **before))
    where = scene(OWNER, library, **after)

    view = now(plan_of(where, entries=said_before(first)), trace_of(first))

    assert view.broke == told
    assert not changed or states(view)[changed] is CacheState.CHANGED
    assert states(view)["language and format"] is states(view)["history"] is CacheState.BEHIND


@pytest.mark.parametrize(
    ("tools", "reason"),
    [
        ((READ, WRITE), "tools: write_file came"),
        ((WRITE,), "tools: write_file came, read_file went"),
        ((replace(READ, description="Other."),), "tools: a description or parameter changed"),
        ((), "tools: read_file went"),
    ],
)
def test_tools_that_changed_are_named(
    tools: tuple[ToolSpec, ...], reason: str, library: PromptLibrary
) -> None:
    first = plan_of(scene(OWNER, library))

    view = now(
        plan_of(scene(OWNER, library), tools=tools, entries=said_before(first)), trace_of(first)
    )

    assert view.broke == reason
    assert view.cached_tokens == 0
    assert states(view)["base"] is CacheState.BEHIND


def test_time_in_the_system_message_is_told_as_what_it_is(library: PromptLibrary) -> None:
    layers = LayersSettings(turn_layers="system")
    where = scene(OWNER, library)
    first = plan_of(where, layers=layers)
    later = replace(where, now=where.now.replace(hour=13))

    view = now(plan_of(later, layers=layers, entries=said_before(first)), trace_of(first))

    assert view.broke.startswith("date and time: it changes with every minute")
    assert states(view)["date and time"] is CacheState.CHANGED
    assert states(view)["current chat"] is CacheState.BEHIND


def test_a_window_that_moved_is_told(library: PromptLibrary) -> None:
    where = scene(OWNER, library)
    first = plan_of(where, entries=[Said(text="a"), Answered(text="b")])

    view = now(plan_of(where, entries=said_before(plan_of(where)), sent_from=3), trace_of(first))

    assert view.broke == "history: older messages are no longer sent, for there was no room"


def test_a_history_that_was_summed_up_is_told(library: PromptLibrary) -> None:
    first = plan_of(scene(OWNER, library), entries=[Said(text="a"), Answered(text="b")])
    where = scene(OWNER, library, recalled=Recalled(summary="They spoke of boats."))
    left = said_before(plan_of(scene(OWNER, library)))

    view = now(plan_of(where, entries=left, sent_from=3), trace_of(first))

    assert view.broke == "history: older messages are no longer sent, for they were summed up"


def test_the_turn_before_is_one_of_the_same_conversation_that_asked(library: PromptLibrary) -> None:
    plan = plan_of(scene(OWNER, library))
    third, second, first = (trace_of(plan, run_id=f"in-{n}") for n in (3, 2, 1))
    elsewhere = replace(second, begin={**second.begin, "conversation": "c2"})
    silent = replace(second, asked=())

    assert former_of(third, [third, second, first]) is second
    assert former_of(third, [third, elsewhere, first]) is first
    assert former_of(third, [third, silent, first]) is first
    assert former_of(first, [third, second, first]) is None


@given(data=st.data())
def test_the_cache_serves_a_prefix_of_the_rows_and_no_more(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    library = PromptLibrary(shipped("prompts"), tmp_path_factory.getbasetemp(), PersonaSettings())
    some = st.lists(st.sampled_from(["boats", "harbour", "mail"]), unique=True)
    tools = st.sampled_from([(), (READ,), (READ, WRITE)])

    def made(entries: Sequence[Entry] = ()) -> PromptPlan:
        listed = tuple(skill(name) for name in data.draw(some))
        notes = data.draw(st.sampled_from(["", "Vesla."]))
        facts = tuple(Fact(id=name, text=f"Knows {name}.") for name in data.draw(some))
        where = scene(OWNER, library, listed=listed, notes=notes, recalled=Recalled(facts=facts))
        return plan_of(where, tools=data.draw(tools), entries=entries)

    first = made()
    view = now(made(said_before(first)), trace_of(first))

    whole = [row.cached_tokens == row.tokens for row in view.rows]
    assert whole == sorted(whole, reverse=True)
    assert all(0 <= row.cached_tokens <= row.tokens for row in view.rows)
    assert [row.cached_tokens for row in view.rows if not row.cached_tokens] == [0] * sum(
        row.cache in {CacheState.NEW, CacheState.CHANGED, CacheState.BEHIND} for row in view.rows
    )
    system_served = all(
        row.cached_tokens for row in view.rows if row.where in {Where.TOOLS, Where.SYSTEM}
    )
    assert bool(view.broke) is not system_served


# --- records of other times --------------------------------------------------------------------


def test_a_turn_of_a_version_without_layers_is_refused_in_a_sentence(
    library: PromptLibrary,
) -> None:
    trace = trace_of(plan_of(scene(OWNER, library)))
    old = {key: value for key, value in trace.begin.items() if key not in {"layers", "tokens"}}

    with pytest.raises(NotRecorded, match="in-1 ran under a version that did not note its layers"):
        then(replace(trace, begin=old))


# --- money -------------------------------------------------------------------------------------


def two_cents(usage: Usage) -> float:
    return (usage.prompt - usage.cached) * 0.02 + usage.cached * 0.002 + usage.completion * 0.08


def test_money_is_shared_out_by_tokens(library: PromptLibrary) -> None:
    where = scene(OWNER, library)
    first = plan_of(where)
    view = now(plan_of(where, entries=said_before(first)), trace_of(first))

    costs = bill(view, two_cents)

    assert costs is not None
    assert costs.whole == pytest.approx(view.tokens * 0.02)
    assert sum(costs.rows) == pytest.approx(costs.whole)
    assert costs.with_cache == pytest.approx(costs.whole - view.cached_tokens * 0.018)
    assert costs.counted is None


def test_what_the_provider_counted_is_paid_with_the_answer(library: PromptLibrary) -> None:
    trace = trace_of(
        plan_of(scene(OWNER, library)), usage=Usage(prompt=1_000, completion=10, cached=900)
    )

    costs = bill(then(trace), two_cents)

    assert costs is not None
    assert costs.counted == pytest.approx(100 * 0.02 + 900 * 0.002 + 10 * 0.08)


# --- differences -------------------------------------------------------------------------------


def test_a_diff_names_what_came_went_and_changed(library: PromptLibrary) -> None:
    where = scene(OWNER, library, listed=(skill("boats"),))
    first = plan_of(where)
    later = replace(
        scene(OWNER, library, notes="Vesla.", notes_source="memory/MEMORY.md"),
        now=where.now.replace(hour=13),
    )
    second = plan_of(later, tools=(WRITE,), entries=said_before(first))

    found = diff(now(first), now(second, trace_of(first)))

    changes = {one.name: one.change for one in found.layers}
    assert changes == {
        "long-term notes": Change.CAME,
        "date and time": Change.CHANGED,
        "skills": Change.WENT,
        "routing": Change.WENT,
        "current chat": Change.SPARED,
    }
    assert (found.tools_came, found.tools_went) == (("write_file",), ("read_file",))
    assert found.history_tokens == second.tokens.history
    assert found.tokens == now(second).tokens - now(first).tokens
    assert found.broke == "tools: write_file came, read_file went"
    assert not found.is_empty


def test_a_diff_is_bounded(library: PromptLibrary) -> None:
    where = scene(OWNER, library, notes_source="memory/MEMORY.md")
    before = now(plan_of(replace(where, notes="a\n" * 2_000)))
    after = now(plan_of(replace(where, notes="b\n" * 2_000 + "c" * 5_000)))

    (change,) = diff(before, after).layers

    assert change.lines is not None
    assert len(change.lines) == DIFF_LINES_MAX + 1
    assert change.lines[-1] == "… and more"
