"""The step that fixes a prompt: the prefix over many turns, the budget, the steps of history, the
guard that names what changed, and what follows from a message beside its prompt."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.history.window import shorten_before, shortening_step
from agent.prompt.prefix_cache import compare, part_of
from agent.prompt.scene import PromptOccasion
from agent.prompt.tokens import estimate_tokens, text_of
from agent.skills.rules import Rule
from agent.skills.skill import AutoInvoke
from bot.settings.home import shipped
from memory.records.errors import ContextTooLong
from memory.records.facts import Coming, Fact, Recalled, RecallWanted
from memory.records.messages import RunId
from memory.records.ports import StoredEntry
from memory.records.section import LayersSettings
from memory.records.transcript import (
    Answered,
    Context,
    Entry,
    ModelTraits,
    Said,
    ToolCall,
    ToolResult,
)
from memory.stores.traces import SqliteTraces
from tests.agent.house import (
    MEMBER,
    MEMBER_IN_GROUP,
    OWNER,
    OWNER_IN_GROUP,
    FakeTool,
    House,
    assert_grows,
    context,
    model,
    sent_bytes,
)
from tests.agent.scenes import turn_of
from tests.fakes import START, calls
from tests.thorough import rounds


class ScriptedRecall:
    """Implements `memory.records.ports.Recall`: something else each time, as the chance has it."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.wanted: list[RecallWanted] = []

    async def recall(self, wanted: RecallWanted) -> Recalled:
        self.wanted.append(wanted)
        chance = self._chance
        facts = [Fact(id=str(n), text=f"Fact number {n}.") for n in range(12)]
        coming = [Coming(id=str(n), when=wanted.now, text=f"Event {n}") for n in range(3)]
        return Recalled(
            profile=f"Name: Ada\nMood: {chance.randint(0, 2)}",
            facts=tuple(chance.sample(facts, chance.randint(0, 5))),
            coming=tuple(chance.sample(coming, chance.randint(0, 2))),
            pins=(f"Pin {chance.randint(0, 3)}",),
        )


class FixedRecall:
    """Implements `memory.records.ports.Recall`: always the same."""

    def __init__(self, recalled: Recalled) -> None:
        self._recalled = recalled

    async def recall(self, wanted: RecallWanted) -> Recalled:
        return self._recalled


def add_playbook(house: House, name: str, keywords: str, text: str) -> None:
    folder = house.workspace / "skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        f"---\nname: {name}\ndescription: d\nmetadata:\n  keywords: {keywords}\n---\n{text}\n"
    )


async def echo(text: str) -> str:
    return f"did {text}"


# --- the prefix ----------------------------------------------------------------------------------


@pytest.mark.case("PR-01")
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_each_request_of_fifty_turns_begins_with_the_whole_former_one(
    house: House, seed: int
) -> None:
    chance = random.Random(seed)
    house.recalled = ScriptedRecall(seed)
    house.tools = [FakeTool("work", echo)]
    for n in range(4):
        add_playbook(house, f"book-{n}", f"topic{n}", f"Begin of book {n}. " + "A step. " * 40)
    lines: list[Any] = []
    said = []
    for turn in range(50):
        said.append(f"turn {turn}: explain topic{chance.randint(0, 9)} please")
        if chance.random() < 0.3:
            lines.append(calls(("work", json.dumps({"text": str(turn)}))))
        lines.append(f"Answer {turn}.")
    script = model(*lines)

    async with house.opened(script):
        for words in said:
            house.clock.move(chance.choice([1, 30, 3_600]))
            await house.say(words)
        prefixes = await recorded_prefixes(house)

    assert_grows(script.asked, house)
    assert all(prefix["intact"] for prefix in prefixes)
    # A playbook is written out once, however often its keyword comes.
    whole = sent_bytes(script.asked[-1], house).decode()
    for n in range(4):
        assert whole.count(f"Begin of book {n}.") <= 1
    assert whole.count("Begin of book") >= 3


async def recorded_prefixes(house: House) -> list[dict[str, Any]]:
    traces = await SqliteTraces(house.database).prompts(OWNER.address.key, limit=1_000)
    return [asked["prefix"] for trace in reversed(traces) for asked in trace.asked]


async def test_the_guard_names_the_first_part_that_changed(house: House) -> None:
    (house.workspace / "AGENTS.md").write_text("Speak plainly.")
    script = model("One.", "Two.", "Three.")

    async with house.opened(script):
        await house.say("explain one")
        (house.workspace / "AGENTS.md").write_text("Speak in riddles.")
        await house.say("explain two")
        await house.say("explain three")
        first, second, third = await recorded_prefixes(house)

    assert (first["intact"], first["kept"]) == (True, 0)
    assert (second["intact"], second["first_changed"]) == (False, "bootstrap")
    assert 0 < second["kept"] < second["tokens"]
    assert (third["intact"], third["first_changed"]) == (True, "")
    assert third["kept"] > second["kept"]


@given(st.lists(st.text(max_size=3)), st.lists(st.text(max_size=3)))
def test_what_is_kept_is_the_common_beginning(before: list[str], after: list[str]) -> None:
    former = [part_of("x", text).digest for text in before]
    parts = [part_of(str(n), text) for n, text in enumerate(after)]

    prefix = compare(former, parts)

    same = next(
        (n for n, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]),
        min(len(before), len(after)),
    )
    assert prefix.kept_tokens == sum(part.tokens for part in parts[:same])
    assert prefix.intact == (same == len(before))
    if not prefix.intact and same < len(after):
        assert prefix.first_changed == str(same)


# --- the budget ----------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [2_500, 4_000, 6_000, 20_000])
async def test_a_request_never_exceeds_the_window(house: House, window: int) -> None:
    house.recalled = FixedRecall(
        Recalled(
            profile="profile " * 300,
            facts=tuple(Fact(id=str(n), text="fact " * 80) for n in range(5)),
            summary="summary",
        )
    )
    (house.workspace / "AGENTS.md").write_text("rule " * 3_000)
    add_playbook(house, "book", "topic", "step " * 2_000)
    traits = ModelTraits(window=window)
    script = model(*[f"Answer {n} " + "word " * 60 for n in range(12)], traits=traits)

    async with house.opened(script):
        for n in range(12):
            await house.say(f"explain topic {n}")

    room = window - traits.output_tokens(8_192)
    for request in script.asked:
        texts = [request.system, *(text_of(entry) for entry in request.entries)]
        texts += [json.dumps([tool.description, tool.parameters]) for tool in request.tools]
        assert sum(estimate_tokens(text) for text in texts) <= room
        assert f"explain topic {script.asked.index(request)}" in str(request.entries)


@pytest.mark.parametrize("pause_s", [0, 60])
async def test_when_the_history_has_to_go_what_it_spared_is_told_again(
    house: House, pause_s: int
) -> None:
    """Also where nothing was new, so that the turn had no block at all."""
    house.recalled = FixedRecall(Recalled(profile="Name: Ada", summary="They spoke of boats."))
    script = model("One.", "Two.", ContextTooLong("too long"), "Three.")

    async with house.opened(script):
        await house.say("explain one")
        await house.say("explain two")
        house.clock.move(pause_s)
        await house.say("explain three")

    before, after = (str(request.entries) for request in script.asked[-2:])
    assert before.count("They spoke of boats.") == after.count("They spoke of boats.") == 1
    assert "explain one" not in after
    assert "## Current Chat" in after
    assert "Name: Ada" in after


# --- old tool results ----------------------------------------------------------------------------


def stored(*entries: Entry) -> tuple[StoredEntry, ...]:
    return tuple(
        StoredEntry(id=n + 1, run_id=RunId("r"), entry=entry) for n, entry in enumerate(entries)
    )


def exchange(n: int, content: str) -> list[Entry]:
    call = ToolCall(id=f"c{n}", name="work", arguments="{}")
    return [
        Said(text=f"do {n}"),
        Answered(text="", calls=(call,), finish="tool_calls"),
        ToolResult(call_id=call.id, content=content),
        Answered(text=f"done {n}"),
    ]


BIG = "words and more words " * 1_000


def test_old_results_are_shortened_in_one_batch_that_saves_enough() -> None:
    history = stored(*exchange(0, BIG), *exchange(1, BIG), *exchange(2, "small"), *exchange(3, BIG))

    step = shortening_step(history, 0)

    assert step == 9  # the third exchange from the end begins there
    sent = shorten_before(history, step)
    contents = [entry.content for entry in sent if isinstance(entry, ToolResult)]
    assert contents == [
        "[work: truncated, was 21000 chars]",
        "[work: truncated, was 21000 chars]",
        "small",
        BIG,
    ]


@given(
    st.lists(st.integers(0, 30_000), min_size=1, max_size=12),
    st.integers(0, 60),
    st.booleans(),
)
@settings(max_examples=rounds(50, 200))
def test_the_point_never_moves_back_and_leaves_the_last_two_exchanges(
    sizes: list[int], shortened_to: int, always: bool
) -> None:
    history = stored(*[entry for n, size in enumerate(sizes) for entry in exchange(n, "y" * size)])

    step = shortening_step(history, shortened_to, always=always)

    if step is not None:
        assert step > shortened_to
        assert step <= 4 * max(0, len(sizes) - 2) + 1
        # The same history asks for no further step.
        assert shortening_step(history, step) is None


async def test_a_long_conversation_with_tools_shortens_in_steps_and_grows_between_them(
    house: House,
) -> None:
    async def much(text: str) -> str:
        return f"{text} " + "result words " * 600

    house.tools = [FakeTool("work", much)]
    lines: list[Any] = []
    for n in range(12):
        lines += [calls(("work", json.dumps({"text": str(n)}))), f"Answer {n}."]
    script = model(*lines)

    async with house.opened(script):
        for n in range(12):
            await house.say(f"explain {n}")
        prefixes = await recorded_prefixes(house)

    broken = [prefix for prefix in prefixes if not prefix["intact"]]
    assert 1 <= len(broken) <= 6
    assert {prefix["first_changed"] for prefix in broken} == {"a tool result"}
    last = [entry for entry in script.asked[-1].entries if isinstance(entry, ToolResult)]
    assert sum("truncated, was" in result.content for result in last) >= 6
    assert all("result words" in result.content for result in last[-2:])


# --- what follows from the message ---------------------------------------------------------------


async def test_a_greeting_asks_for_directness_and_less_thinking(house: House) -> None:
    script = model("Hello!", "Because.", traits=ModelTraits(effort=True))

    async with house.opened(script):
        await house.say("hi there")
        await house.say("explain why the sky is blue")

    assert dict(script.asked[0].extra) == {"reasoning_effort": "low"}
    assert "answer directly" in context(script.asked[0])
    assert dict(script.asked[1].extra) == {}
    said = [entry for entry in script.asked[1].entries if isinstance(entry, Said)][-1]
    last = script.asked[1].entries[-1]
    assert last == said or "answer directly" not in getattr(last, "text", "")


async def test_the_reminder_comes_back_every_so_many_turns(house: House) -> None:
    (house.workspace / "prompts").mkdir()
    (house.workspace / "prompts" / "reminder.md").write_text("Keep your word.")
    house.layers = LayersSettings(reminder_turns=3)
    house.host_zone = "UTC"
    script = model(*["Yes."] * 8)

    async with house.opened(script):
        for n in range(8):
            await house.say(f"explain {n}")
        contexts = [e.text for e in await house.entries() if isinstance(e, Context)]

    asked = [str(request.entries[-1]) for request in script.asked]
    assert ["Keep your word." in text for text in asked] == [
        *(False, False, False, True, False, False, True, False)
    ]
    assert sum("Keep your word." in text for text in contexts) == 2


async def test_a_rule_brings_its_instruction_and_skill(house: House) -> None:
    house.shipped_skills = shipped("skills")
    house.rules = [
        Rule(
            source="prompt.force_include[0]",
            patterns=(r"\bship it\b",),
            skills=("commit-message",),
            instruction="Ask which branch.",
        )
    ]
    script = model("Which branch?", "Fine.")

    async with house.opened(script):
        await house.say("Now SHIP IT, would you explain?")
        await house.say("explain what a ship is")

    block = context(script.asked[0])
    assert block.rstrip().endswith("## Instruction for this request\nAsk which branch.\n</context>")
    assert "<relevant_skills>\n- commit-message:" in block
    assert "Ask which branch." not in str(script.asked[1].entries[-1])


# --- auto_invoke ---------------------------------------------------------------------------------


def auto(*wishes: AutoInvoke) -> list[Rule]:
    return [Rule(source="r", patterns=("weather",), auto_invoke=wishes)]


UNHELPFUL = "I cannot look that up."
ASK = AutoInvoke(tool="work", args={"text": "q: {{query}}"})


async def test_an_unhelpful_reply_is_replaced_by_what_the_tool_says(house: House) -> None:
    house.tools = [FakeTool("work", echo)]
    house.rules = auto(ASK)
    script = model(UNHELPFUL, "Yes, take one.")

    async with house.opened(script):
        assert await house.say(" the weather? ") == "did q: the weather?"
        await house.say("so, explain: an umbrella?")

    assert UNHELPFUL not in str(script.asked[1].entries)
    assert "did q: the weather?" in str(script.asked[1].entries)


async def test_the_first_that_works_wins(house: House) -> None:
    async def broken(text: str) -> str:
        raise OSError(5, "no line")

    house.tools = [FakeTool("bad", broken), FakeTool("work", echo), FakeTool("other", echo)]
    house.rules = auto(
        AutoInvoke(tool="missing"),
        AutoInvoke(tool="bad", args={"text": "x"}),
        ASK,
        AutoInvoke(tool="other", args={"text": "y"}),
    )

    async with house.opened(model(UNHELPFUL)):
        assert await house.say("the weather") == "did q: the weather"

    assert isinstance(house.tools[2], FakeTool)
    assert house.tools[2].ran == []


@pytest.mark.parametrize(
    "reply",
    [
        "Rain until noon, then dry.",
        "You cannot use that here, but there is another way to go about it, and it goes like this: "
        "open the settings, choose the second page, and set the city you want to see there.",
    ],
)
async def test_a_helpful_reply_is_left_alone(house: House, reply: str) -> None:
    tool = FakeTool("work", echo)
    house.tools = [tool]
    house.rules = auto(ASK)

    async with house.opened(model(reply)):
        assert await house.say("the weather") == reply

    assert tool.ran == []


async def test_an_empty_output_keeps_the_models_text(house: House) -> None:
    async def nothing(text: str) -> str:
        return " "

    house.tools = [FakeTool("work", nothing)]
    house.rules = auto(ASK)

    async with house.opened(model(UNHELPFUL)):
        assert await house.say("the weather") == UNHELPFUL


# --- a plan is not a turn ------------------------------------------------------------------------


# --- privacy -------------------------------------------------------------------------------------


@pytest.mark.case("SE-17")
async def test_notes_are_shown_to_their_person_alone(house: House) -> None:
    notes: dict[str, Path] = {
        "owner canary": house.workspace / "memory" / "MEMORY.md",
        "owner day canary": house.workspace / "memory" / "202608" / "20260803.md",
        "member canary": house.workspace / "memory" / "people" / "p2" / "MEMORY.md",
    }
    for text, path in notes.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert START.date().isoformat() == "2026-08-03"

    seen = {}
    async with house.opened(model("x")):
        await house.say("explain one")
        for name, by in {
            "owner": OWNER,
            "member": MEMBER,
            "owner in a group": OWNER_IN_GROUP,
            "member in a group": MEMBER_IN_GROUP,
        }.items():
            plan = await house.beginning.plan(PromptOccasion(turn=turn_of(by, "explain two")))
            whole = plan.prompt.system + plan.prompt.context
            seen[name] = {text for text in notes if text in whole}

    assert seen == {
        "owner": {"owner canary", "owner day canary"},
        "member": {"member canary"},
        "owner in a group": set(),
        "member in a group": set(),
    }
