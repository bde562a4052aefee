"""What `prompt show` and `/context` say, against what the model really got."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from pydantic_core import to_jsonable_python

from agent.budget.messages import money, percent
from agent.prompt.scene import PromptKind
from agent.trace.inspect import Bill, PromptView
from agent.trace.sent import CacheState, PromptRow, Where
from bot.app.app import App
from bot.cli.prompt import diff_json, prompt_json
from bot.commands.trace.prompts import (
    UnknownTurn,
    context_text,
)
from memory.records.messages import PersonId, Role
from tests.bot.kit import GROUP, MEMBER, OWNER, US, Rig, eventually

Shown = dict[str, Any]
CHAT = f"telegram:{OWNER}"


async def shown(bot: App, *, chat: str = CHAT, kind: str = "chat", **asked: Any) -> Shown:
    """What `prompt show --full --json` prints."""
    found = await bot.prompts.show(chat, kind=PromptKind(kind), **asked)
    answer: dict[str, Any] = to_jsonable_python(prompt_json(found, full=True))
    json.dumps(answer)
    return answer


async def differs(bot: App, before: str, after: str, *, chat: str = CHAT) -> Shown:
    found = await bot.prompts.compare(chat, before, after)
    answer: dict[str, Any] = to_jsonable_python(diff_json(found))
    return answer


async def talks(rig: Rig, bot: App, *texts: str, **more: Any) -> None:
    """Each is answered before the next is said."""
    for text in texts:
        asked = len(rig.model.requests)
        rig.says(text, **more)
        await eventually(partial(_asked_more, rig, asked))
        await rig.quiet(bot)


def _asked_more(rig: Rig, than: int) -> bool:
    return len(rig.model.requests) > than


def texts_of(answer: Shown, where: str) -> list[str]:
    return [part["text"] for part in answer["parts"] if part["where"] == where]


def assert_is(answer: Shown, request: dict[str, Any]) -> None:
    """What is shown is what the model got, in its order and to the byte."""
    system, *others, last = request["messages"]
    assert "\n\n".join(texts_of(answer, "system")) == system["content"]
    (tools,) = texts_of(answer, "tools")
    assert [json.loads(line) for line in tools.split("\n")] == [
        tool["function"] for tool in request["tools"]
    ]
    words, *blocks = [part["text"] for part in last["content"]]
    assert texts_of(answer, "words") == [words]
    block = "\n\n".join(texts_of(answer, "block"))
    assert blocks == ([f"<context>\n{block}\n</context>"] if block else [])
    history = "\n\n".join(f"[{one['role']}]\n{_content(one)}" for one in others)
    assert texts_of(answer, "history") == ([history] if history else [])
    order = ["tools", "system", "history", "words", "block"]
    places = [part["where"] for part in answer["parts"]]
    assert places == sorted(places, key=order.index)


def _content(message: dict[str, Any]) -> str:
    content = message["content"]
    parts = content if isinstance(content, list) else [{"text": content}]
    return "\n\n".join(part["text"] for part in parts)


# --- what was sent -----------------------------------------------------------------------------


async def test_a_turn_is_shown_as_the_model_got_it(rig: Rig) -> None:
    (rig.home.workspace / "AGENTS.md").write_text("Speak plainly.\n\n\nAlways.\n")
    async with rig.running(OWNER) as bot:
        await talks(rig, bot, "please draft an email to Tom", "thank you for that")
        first = await shown(bot, turn="2")
        second = await shown(bot, turn="1")

    assert_is(first, rig.model.requests[0])
    assert_is(second, rig.model.requests[1])


async def test_the_record_says_what_a_cache_could_serve_and_what_the_provider_counted(
    rig: Rig,
) -> None:
    rig.set(agents__default__allowed_tools="read_file,write_file,edit_file,list_dir")
    async with rig.running(OWNER) as bot:
        await talks(rig, bot, "one", "two")
        first = await shown(bot, turn="2")
        second = await shown(bot, turn="1")

    assert first["first"]
    assert (first["cached_tokens"], first["broke"]) == (0, "")
    assert not second["first"]
    assert second["broke"] == ""
    assert 0.8 < second["cacheable"] < 1
    assert {part["cache"] for part in second["parts"] if part["where"] == "system"} == {"cached"}
    (asked,) = second["requests"]
    assert asked["counted"]["prompt"] > 0
    assert asked["model"]


async def test_a_turn_with_a_tool_shows_its_first_request_and_counts_all(rig: Rig) -> None:
    (rig.home.workspace / "a.txt").write_text("secret of the file")
    rig.model.call("read_file", {"path": "a.txt"})
    async with rig.running(OWNER) as bot:
        rig.says("read it")
        await eventually(lambda: len(rig.model.requests) == 2)
        await rig.quiet(bot)
        answer = await shown(bot, turn="1")

    assert_is(answer, rig.model.requests[0])
    assert len(answer["requests"]) == 2
    assert answer["requests"][1]["cached_tokens"] > answer["requests"][0]["cached_tokens"]


# --- what would be sent ------------------------------------------------------------------------


async def test_what_would_be_sent_is_what_is_sent_then(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        await talks(rig, bot, "please draft an email to Tom", first_name="Ada")
        foreseen = await shown(bot, message="and one to Eve, draft an email too")
        await talks(rig, bot, "and one to Eve, draft an email too", first_name="Ada")
        sent = await shown(bot, turn="1")

    assert _timeless(foreseen) == _timeless(sent)
    assert "current chat" in foreseen["spared"], "a name is known from the history"


def _timeless(answer: Shown) -> list[Shown]:
    """The minute may have passed in between."""
    return [part for part in answer["parts"] if part["name"] != "date and time"]


async def test_looking_sends_nothing_and_stores_nothing(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        await talks(rig, bot, "one")
        # What the call came to is written a moment later.
        await eventually(lambda: rig.rows("select 1 from usage where state <> 'open'"))
        before = _stored(rig)
        await shown(bot, message="two")
        await shown(bot, turn="1")
        await shown(bot, chat=f"telegram:{MEMBER}")
        await shown(bot, chat="console:local")
        await shown(bot, kind="heartbeat", task="Water the plants")
        await differs(bot, "1", "now")
        after = _stored(rig)

    assert after == before
    assert len(rig.model.requests) == 1


def _stored(rig: Rig) -> dict[str, list[tuple[Any, ...]]]:
    tables = [row[0] for row in rig.rows("select name from sqlite_master where type = 'table'")]
    return {table: rig.rows(f"select * from {table}") for table in tables}


async def test_the_terminal_of_a_home_that_nobody_used_yet_has_a_prompt(rig: Rig) -> None:
    async with rig.opened() as bot:
        answer = await shown(bot, chat="console:local")

    assert answer["first"]
    assert [part["where"] for part in answer["parts"]][:2] == ["tools", "system"]
    assert rig.rows("select count(*) from conversations") == [(0,)]


async def test_a_group_that_was_admitted_has_a_prompt_without_private_parts(rig: Rig) -> None:
    (rig.home.workspace / "USER.md").write_text("Ada likes tea.")
    async with rig.running(OWNER) as bot:
        await bot.access.approve(f"telegram:{GROUP}")
        answer = await shown(bot, chat=f"telegram:{GROUP}")

    assert "Ada likes tea." not in str(answer)
    assert "group chat" in str(texts_of(answer, "block"))


# --- what cannot be shown ----------------------------------------------------------------------


async def test_a_turn_that_is_not_there_is_refused_with_those_that_are(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        await talks(rig, bot, "one")
        known = (await shown(bot, turn="1"))["turn"]
        with pytest.raises(UnknownTurn, match=rf"No turn 'in-99' .* begin with {known}"):
            await shown(bot, turn="in-99")
        with pytest.raises(UnknownTurn, match=r"Only 1 turn is recorded .* no turn 2 back"):
            await shown(bot, turn="2")


async def test_a_turn_whose_steps_are_gone_is_told_from_one_that_never_was(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        await talks(rig, bot, "one")
        old = (await shown(bot, turn="1"))["turn"]
        later = bot.clock.now() + timedelta(seconds=1)
        await bot.journal.prune(int(later.timestamp() * 1000))
        await talks(rig, bot, "two")

        with pytest.raises(UnknownTurn, match=f"turn {old} is no longer recorded"):
            await shown(bot, turn=old)


# --- differences -------------------------------------------------------------------------------


async def test_a_diff_says_what_came_between_two_turns(rig: Rig) -> None:
    agents = rig.home.workspace / "AGENTS.md"
    agents.write_text("Speak plainly.\n")
    rig.set(agents__default__allowed_tools="read_file,write_file,edit_file,list_dir")
    async with rig.running(OWNER) as bot:
        await talks(rig, bot, "please draft an email to Tom")
        agents.write_text("Speak in rhymes.\n")
        await talks(rig, bot, "what is the time")
        answer = await differs(bot, "2", "1")
        foreseen = await differs(bot, "1", "now")

    layers = {layer["name"]: layer for layer in answer["layers"]}
    assert layers["bootstrap"]["change"] == "changed"
    assert "-Speak plainly." in layers["bootstrap"]["diff"]
    assert "+Speak in rhymes." in layers["bootstrap"]["diff"]
    assert layers["workflow guidance"]["change"] == "went"
    assert answer["broke"] == "bootstrap: its text changed (AGENTS.md)"
    assert answer["history_tokens"] > 0
    assert (answer["tools_came"], answer["tools_went"]) == ([], [])
    assert foreseen["after"]["turn"] is None
    assert foreseen["broke"] == ""


# --- in a chat ---------------------------------------------------------------------------------


async def test_context_says_what_went_to_the_model(rig: Rig) -> None:
    rig.set(agents__default__allowed_tools="read_file,write_file,edit_file,list_dir")
    async with rig.running(OWNER) as bot:
        await talks(rig, bot, "please draft an email to Tom", "thank you for that")
        answer = await shown(bot, turn="1")
        rig.says("/context")
        await eventually(partial(rig.wrote, 3))
        await rig.quiet(bot)

    text = rig.texts()[-1]
    assert text.startswith(f"{answer['tokens']:,} tokens went to the model (estimated)")
    biggest = sorted(answer["parts"], key=lambda part: -part["tokens"])[:5]
    named = re.findall(r"^• (.+?): ([\d,]+) \(", text, re.MULTILINE)
    assert named[:5] == [(part["name"], f"{part['tokens']:,}") for part in biggest]
    assert sum(int(tokens.replace(",", "")) for _, tokens in named[:6]) == answer["tokens"]
    assert f"A cache can serve {percent(answer['cacheable'])} of it." in text
    assert "Nothing broke the prefix" in text
    counted = answer["requests"][0]["counted"]["prompt"]
    assert f"The provider counted {counted:,} tokens" in text
    assert "What it cost is not known" in text
    assert len(rig.model.requests) == 2, "no model is asked"


async def test_context_in_a_new_conversation_has_nothing_to_say(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        await talks(rig, bot, "one")
        rig.says("/new")
        rig.says("/context")
        await eventually(partial(rig.wrote, 3))
        await rig.quiet(bot)

    assert rig.texts()[-1].startswith("Nothing is recorded of what went to the model")


async def test_context_in_a_group_tells_sizes_and_names_alone(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        await bot.access.approve(f"telegram:{GROUP}")
        await talks(rig, bot, f"@{US} please draft an email", chat=GROUP)
        rig.says(f"/context@{US}", chat=GROUP)
        await eventually(partial(rig.wrote, 2, chat=GROUP))
        await rig.quiet(bot)

    text = rig.texts(GROUP)[-1]
    assert "tokens went to the model" in text
    assert "workflow guidance" in text
    assert "keyword" not in text
    assert "cost" not in text


async def test_context_tells_a_guest_sizes_and_names_alone(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        await bot.access.approve(f"telegram:{MEMBER}", role=Role.GUEST)
        await talks(rig, bot, "please draft an email", by=MEMBER)
        rig.says("/context", by=MEMBER)
        await eventually(partial(rig.wrote, 2, chat=MEMBER))
        await rig.quiet(bot)

    text = rig.texts(MEMBER)[-1]
    assert "tokens went to the model" in text
    assert "Picked" not in text
    assert "cost" not in text


# --- in words ----------------------------------------------------------------------------------


def view(**more: Any) -> PromptView:
    def row(name: str, where: Where, tokens: int, cached: int = 0) -> PromptRow:
        state = CacheState.CACHED if cached else CacheState.NEW
        return PromptRow(name=name, where=where, tokens=tokens, cache=state, cached_tokens=cached)

    made: dict[str, Any] = {
        "kind": "chat",
        "lane": CHAT,
        "person_id": PersonId("p1"),
        "window": 10_000,
        "answer_tokens_max": 1_000,
        "rows": (
            row("tools", Where.TOOLS, 400, 400),
            row("base", Where.SYSTEM, 100, 100),
            row("skills", Where.SYSTEM, 90, 90),
            row("history", Where.HISTORY, 300, 300),
            row("the person's words", Where.WORDS, 10),
            row("memories", Where.BLOCK, 80),
            row("date and time", Where.BLOCK, 20),
        ),
        **more,
    }
    return PromptView(**made)


def test_context_reads_well() -> None:
    from agent.prompt.assemble import LayerCut

    cuts = (
        LayerCut(layer="knowledge", tokens_before=900, tokens_after=0),
        LayerCut(layer="memories", tokens_before=300, tokens_after=80),
    )
    picked = (("playbook:harbour", "keyword boat"),)
    costs = Bill(rows=(), whole=0.0012, with_cache=0.00035)

    text = context_text(view(cuts=cuts, picked=picked), costs, detailed=True)

    assert text == (
        "**1,000 tokens went to the model** (estimated), 10 % of what it can take (10,000).\n\n"
        "- tools: 400 (40 %)\n"
        "- history: 300 (30 %)\n"
        "- base: 100 (10 %)\n"
        "- skills: 90 (9.0 %)\n"
        "- memories: 80 (8.0 %)\n"
        "- 2 smaller parts: 30 (3.0 %)\n\n"
        "A cache can serve 89 % of it. Nothing broke the prefix (memories, date and time are not "
        "in the prefix: they follow).\n\n"
        "Cut:\n"
        "- knowledge 900 tokens, left out: no room\n"
        "- memories 300 → 80 tokens: no room\n\n"
        "Picked for this message:\n"
        "- playbook:harbour: keyword boat\n\n"
        "It costs about $0.0012, with a cache $0.00035."
    )


def test_who_is_not_told_details_still_learns_which_part_broke_the_prefix() -> None:
    broken = view(broke="skills: skill:private came", picked=(("rule:x", "the pattern y fits"),))

    text = context_text(broken, None, detailed=False)

    assert "What broke the prefix: skills." in text
    assert "private" not in text
    assert "pattern" not in text


@pytest.mark.parametrize(
    ("dollars", "said"),
    [
        (0, "$0"),
        (0.0000068, "$0.0000068"),
        (0.00071, "$0.00071"),
        (0.0123, "$0.012"),
        (0.5, "$0.50"),
        (0.999, "$1.00"),
        (1234.5, "$1,234.50"),
        (1e-15, "$0.000000000000"),
    ],
)
def test_money_has_two_figures_that_count(dollars: float, said: str) -> None:
    assert money(dollars) == said


@pytest.mark.parametrize(
    ("share", "said"),
    [(0, "0 %"), (0.0003, "0.03 %"), (0.017, "1.7 %"), (0.42, "42 %"), (1, "100 %")],
)
def test_a_share_is_said_in_percent(share: float, said: str) -> None:
    assert percent(share) == said
