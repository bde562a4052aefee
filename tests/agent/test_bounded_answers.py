"""One answer cannot take the machine, and what one round gave fits into the next request."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from agent.history.window import share_out
from agent.policy.gate import UNASKED_MAX
from agent.prompt.tokens import estimate_tokens, text_of
from agent.tools.tool import Effect
from agent.turn.loop import SURPLUS_GONE
from agent.turn.progress import CALLS_MAX
from agent.turn.steps.tools import NOT_SO_MANY, TOO_MANY
from memory.records.rows import Outcome
from memory.records.transcript import Answered, Entry, ModelTraits, Note, ToolResult
from tests.agent.house import FakeTool, House, model
from tests.agent.test_assistant import fill_history, results
from tests.fakes import calls

HUGE = ModelTraits(window=4_000_000)


async def echo(text: str) -> str:
    return text


def numbered(name: str, count: int) -> list[tuple[str, str]]:
    """Calls with the text 0, 1, 2 …"""
    return [(name, json.dumps({"text": str(n)})) for n in range(count)]


# --- calls ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", [Effect.NONE, Effect.PERSON])
async def test_of_ten_thousand_calls_the_first_run_and_each_has_its_result(
    house: House, effect: Effect
) -> None:
    look = FakeTool("look", echo, effect=effect)
    house.tools = [look]
    script = model(calls(*numbered("look", 10_000)), "Enough.", traits=HUGE)

    async with house.opened(script):
        assert await house.say_and_agree("go") == "Enough."
        kept = results(await house.entries())

    assert look.ran == kept[:CALLS_MAX] == [str(n) for n in range(CALLS_MAX)]
    assert kept[CALLS_MAX:] == [TOO_MANY] * (10_000 - CALLS_MAX)
    assert results(list(script.asked[1].entries)) == kept, "the model reads why of each"


async def test_many_calls_take_memory_by_their_number_and_not_by_its_square(house: House) -> None:
    house.tools = [FakeTool("look", echo)]
    script = model(traits=HUGE)
    peaks = []

    async with house.opened(script):
        for count in (500, 4_000):
            script.add(calls(*numbered("look", count)), "Enough.")
            tracemalloc.start()
            await house.say(f"go {count}")
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()

    assert peaks[1] < 16 * peaks[0], "8 times as many; by the square it is 64 times as much"


async def test_more_calls_than_fit_into_a_request_are_left_out_and_the_turn_is_answered(
    house: House,
) -> None:
    look = FakeTool("look", echo)
    house.tools = [look]
    script = model(
        calls(*numbered("look", 3_000)), "Enough.", "Yes.", traits=ModelTraits(window=32_000)
    )

    async with house.opened(script):
        assert await house.say("go") == "Enough."
        assert await house.say("really?") == "Yes."

    assert len(look.ran) == CALLS_MAX
    assert Note(text=SURPLUS_GONE) in script.asked[1].entries


# --- changes that nobody agreed to ---------------------------------------------------------------


async def test_the_twenty_first_change_of_one_answer_needs_a_tap(house: House) -> None:
    store = FakeTool("store", echo, effect=Effect.PERSON)
    house.tools = [store]
    script = model(
        calls(*numbered("store", UNASKED_MAX + 2)), calls(*numbered("store", 2)), "Stored."
    )

    async with house.opened(script):
        run = await house.submit("remember all of this")
        await house.engine.idle()
        assert len(store.ran) == UNASKED_MAX
        await house.answer_card(Outcome.ONCE)
        assert len(store.ran) == UNASKED_MAX + 1
        await house.answer_card(Outcome.ONCE)

        assert await house.reply(run) == "Stored."
    asked = list(house.approvals.asked.values())
    assert [one.why for one in asked] == ["It changes more than 20 things in one answer."] * 2
    assert all(one.once_only for one in asked)
    assert len(store.ran) == UNASKED_MAX + 4, "the next answer has its own"


async def test_reading_and_what_was_agreed_to_do_not_count_as_unasked(house: House) -> None:
    send = FakeTool("send", echo, effect=Effect.OUTSIDE)
    store = FakeTool("store", echo, effect=Effect.PERSON)
    house.tools = [send, store, FakeTool("look", echo)]
    wanted = [*numbered("look", 20), *numbered("send", 2), *numbered("store", UNASKED_MAX)]

    async with house.opened(model(calls(*wanted), "Done.")):
        assert await house.say_and_agree("do all of it") == "Done."

    assert len(house.approvals.asked) == len(send.ran) == 2
    assert len(store.ran) == UNASKED_MAX


@pytest.mark.parametrize("outcome", [Outcome.DENIED, Outcome.EXPIRED])
async def test_who_does_not_agree_to_so_many_changes_is_not_asked_about_each(
    house: House, outcome: Outcome
) -> None:
    store = FakeTool("store", echo, effect=Effect.PERSON)
    house.tools = [store, FakeTool("look", echo)]
    wanted = [*numbered("store", UNASKED_MAX + 9), ("look", '{"text": "seen"}')]

    async with house.opened(model(calls(*wanted), "Twenty are stored.")):
        await house.submit("remember all of this")
        await house.engine.idle()
        await house.answer_card(outcome)
        kept = results(await house.entries())

    assert len(house.approvals.asked) == 1
    assert len(store.ran) == UNASKED_MAX
    assert kept[UNASKED_MAX + 1 :] == [*[NOT_SO_MANY] * 8, "seen"]


# --- a round of large results --------------------------------------------------------------------

BIG = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"]


@pytest.mark.parametrize("turns", [0, 12])
async def test_a_round_of_results_that_are_too_large_together_is_cut_and_answered(
    house: House, turns: int
) -> None:
    async def fetch(name: str) -> str:
        lines = [f"{name} line {n}: some words of a long text that goes on" for n in range(1_300)]
        return "\n".join(lines)

    house.tools = [FakeTool("fetch", fetch)]
    window = 32_000
    script = model(traits=ModelTraits(window=window))

    async with house.opened(script):
        await fill_history(house, turns)
        fetches = [("fetch", json.dumps({"text": name})) for name in BIG]
        script.add(calls(*fetches), "Read all six.", "Yes.")
        first = await house.say("compare the six")
        kept = results(await house.entries())
        second = await house.say("is that so?")

    assert (first, second) == ("Read all six.", "Yes."), "nothing of the history had to go"
    for name, result in zip(BIG, kept, strict=True):
        assert f"{name} line 0:" in result
        assert "read_file has all of it in " in result
        assert len(result) > 4_000
    for request in script.asked:
        sizes = [estimate_tokens(text_of(entry)) for entry in request.entries]
        assert estimate_tokens(request.system) + sum(sizes) < window


def a_round(*sizes: int) -> list[Entry]:
    """An answer with results of so many words."""
    answer = calls(*numbered("look", len(sizes)))
    made = zip(answer.calls, sizes, strict=True)
    return [
        answer,
        *(ToolResult(call_id=call.id, content="some word " * (n // 2)) for call, n in made),
    ]


@pytest.mark.parametrize("tokens_max", [200, 1_000, 5_000, 20_000, 60_000])
def test_the_results_of_a_round_come_to_no_more_than_they_may(tokens_max: int) -> None:
    entries = a_round(100, 9_000, 40, 9_000, 9_000, 2_000, 9_000)

    cut = share_out(entries, tokens_max)

    least = sum(estimate_tokens("o" * 420) for _ in range(7))
    assert sum(estimate_tokens(text_of(one)) for one in cut[1:]) <= max(tokens_max, least) * 1.05
    assert share_out(cut, max(tokens_max, least) * 2) == cut


def words_of(entries: tuple[Entry, ...]) -> list[int]:
    return [entry.content.count("o") for entry in entries if isinstance(entry, ToolResult)]


def test_results_that_were_answered_are_left_alone() -> None:
    before = [*a_round(9_000, 9_000), Answered(text="Read.")]
    entries = [*before, *a_round(9_000)]

    assert list(share_out(entries, 1_000))[: len(before)] == before


def test_short_results_stay_whole_and_what_they_leave_is_the_newest_ones() -> None:
    entries = a_round(3_000, 10, 3_000, 10, 3_000)

    first, second, third, fourth, fifth = words_of(share_out(entries, 6_000))

    assert (second, fourth) == (10, 10)
    assert abs(first - third) < 50
    assert fifth > first + 500
