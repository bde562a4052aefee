"""What is sent of a conversation: mended for every provider, cut between turns, shortened."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from agent.history.window import MISSING, repair, shorten, window
from agent.prompt.tokens import estimate_tokens, text_of
from memory.records.messages import RunId
from memory.records.ports import StoredEntry
from memory.records.transcript import (
    Answered,
    Context,
    Entry,
    Note,
    Said,
    ToolCall,
    ToolResult,
    check_pairs,
)
from tests.agent.pairing import check_all


def said(text: str) -> Entry:
    return Said(text=text)


def answer(text: str = "", *ids: str) -> Entry:
    calls = tuple(ToolCall(id=id, name=f"tool_{id}", arguments="{}") for id in ids)
    return Answered(text=text, calls=calls)


def result(id: str, content: str = "done") -> Entry:
    return ToolResult(call_id=id, content=content)


def missing(id: str) -> Entry:
    return ToolResult(call_id=id, content=MISSING, ok=False)


# --- repair ------------------------------------------------------------------------------------


@pytest.mark.case("HI-01")
def test_a_result_without_a_call_is_dropped_and_the_words_before_it_stay() -> None:
    history = [said("q1"), answer("", "A"), result("A"), said("q2"), result("B")]

    assert repair(history) == tuple(history[:4])


@pytest.mark.case("AG-07")
def test_a_call_without_a_result_gets_a_note_instead() -> None:
    history = [said("q"), answer("", "a", "b"), result("b"), said("hello")]

    repaired = repair(history)

    assert repaired == (said("q"), answer("", "a", "b"), missing("a"), result("b"), said("hello"))


def test_results_are_moved_right_after_their_answer_in_the_order_of_its_calls() -> None:
    history = [answer("", "a", "b"), said("more"), result("b", "B"), answer("so"), result("a", "A")]

    assert repair(history) == (
        answer("", "a", "b"),
        result("a", "A"),
        result("b", "B"),
        said("more"),
        answer("so"),
    )


def test_an_id_that_comes_again_is_made_unique_with_its_result() -> None:
    history = [
        answer("", "c", "c"),
        result("c", "1"),
        result("c", "2"),
        answer("", "c"),
        result("c", "3"),
    ]

    repaired = repair(history)

    ids = [call.id for entry in repaired if isinstance(entry, Answered) for call in entry.calls]
    results = [
        (entry.call_id, entry.content) for entry in repaired if isinstance(entry, ToolResult)
    ]
    assert ids == ["c", "c-2", "c-3"]
    assert results == [("c", "1"), ("c-2", "2"), ("c-3", "3")]


def test_a_result_belongs_to_the_latest_answer_that_waits_for_it() -> None:
    repaired = repair([answer("", "c"), said("q"), answer("", "c"), result("c", "new")])

    assert [entry.content for entry in repaired if isinstance(entry, ToolResult)] == [
        MISSING,
        "new",
    ]


# --- properties of random histories ------------------------------------------------------------


def random_history(rng: random.Random) -> list[Entry]:
    """Turns as they come, then damaged: entries lost, doubled, swapped, ids reused."""
    entries: list[Entry] = []
    for _ in range(rng.randint(1, 4)):
        if rng.random() < 0.9:
            entries.append(said(rng.choice(["q", "more", ""])))
        if rng.random() < 0.5:
            entries.append(Context(text="block"))
        for _ in range(rng.randint(0, 3)):
            ids = [rng.choice(["a", "b", "c", "d", ""]) for _ in range(rng.randint(0, 3))]
            entries.append(answer(rng.choice(["", " ", "text"]), *ids))
            entries.extend(result(id) for id in ids)
            if rng.random() < 0.2:
                entries.append(rng.choice([said("steer"), Note(text="edited")]))
        entries.append(answer("so"))
    for _ in range(rng.randint(0, 4)):
        place = rng.randrange(len(entries))
        match rng.randint(0, 3):
            case 0 if len(entries) > 1:
                del entries[place]
            case 1:
                entries.insert(rng.randrange(len(entries)), entries[place])
            case 2:
                other = rng.randrange(len(entries))
                entries[place], entries[other] = entries[other], entries[place]
            case _:
                entries.insert(place, result(rng.choice("abcdx")))
    return entries


@pytest.mark.case("HI-03", "HI-01")
def test_every_repaired_history_passes_every_provider_and_keeps_all_words() -> None:
    rng = random.Random(11)
    for _ in range(10_000):
        history = random_history(rng)

        repaired = repair(history)

        check_pairs(repaired)
        check_all(repaired)
        assert [e for e in repaired if isinstance(e, Said)] == [
            e for e in history if isinstance(e, Said)
        ]
        assert repair(repaired) == repaired


def test_what_is_appended_changes_nothing_before_it() -> None:
    rng = random.Random(12)
    for _ in range(1_000):
        before = list(repair(random_history(rng)))

        after = repair([*before, said("next"), answer("", "a", "b"), result("a"), result("b")])

        assert after[: len(before)] == tuple(before)


# --- window ------------------------------------------------------------------------------------


def stored(*turns: Sequence[Entry], first_id: int = 1) -> list[StoredEntry]:
    """Entries with growing ids that have gaps, as a shared table gives them."""
    entries = [(number, entry) for number, turn in enumerate(turns) for entry in turn]
    return [
        StoredEntry(id=first_id + 3 * place, run_id=RunId(f"run-{number}"), entry=entry)
        for place, (number, entry) in enumerate(entries)
    ]


def cut(history: Sequence[StoredEntry], messages: int, tokens: int = 10**9) -> int | None:
    return window(history, messages_max=messages, tokens_max=tokens)


def sent(history: Sequence[StoredEntry], start: int | None) -> list[StoredEntry]:
    return [one for one in history if one.id >= (start or 0)]


PLAIN = [said("q"), answer("a")]


def test_a_cut_leaves_half_of_the_limit_free_so_that_many_turns_only_append() -> None:
    turns = [PLAIN] * 26
    history = stored(*turns)

    start = cut(history, 50)

    assert len(sent(history, start)) == 24
    for more in range(1, 14):
        longer = sent(stored(*turns, *[PLAIN] * more), start)
        assert (cut(longer, 50) is None) == (len(longer) <= 50)


@pytest.mark.case("HI-03")
@pytest.mark.parametrize("size", range(1, 9))
def test_a_window_of_any_size_passes_every_provider_and_keeps_the_last_words(size: int) -> None:
    chain = [
        said("q"),
        answer("", "a", "b"),
        result("a"),
        result("b"),
        answer("", "c"),
        result("c"),
        answer("so"),
    ]
    history = stored(PLAIN, chain)

    kept = [one.entry for one in sent(history, cut(history, size))]
    request = repair([*kept, said("last")])

    check_all(request)
    assert request[-1] == said("last")
    assert request[0] == said("q")
    assert len(kept) in {7, 9}


@pytest.mark.case("HI-05")
def test_one_long_turn_is_never_cut_inside() -> None:
    chain: list[Entry] = [said("the request")]
    for number in range(40):
        chain += [answer("", f"c{number}"), result(f"c{number}", "x" * 400)]
    history = stored(PLAIN, chain)
    whole = sum(estimate_tokens(text_of(entry)) for entry in chain)

    kept = [one.entry for one in sent(history, cut(history, 50, whole))]
    dropped = sent(history, cut(history, 50, whole // 2))

    assert kept == chain
    assert dropped == []


def test_a_turn_too_large_for_the_limit_leaves_an_empty_history_and_a_place_to_go_on() -> None:
    history = stored(PLAIN, [said("q"), answer("x" * 100_000)])

    start = cut(history, 50, 1_000)

    assert start == history[-1].id + 1
    assert sent(stored(PLAIN, [said("q"), answer("x" * 100_000)], PLAIN), start) != []


@pytest.mark.case("HI-03")
def test_every_cut_of_a_random_history_is_between_turns_within_the_limits_and_valid() -> None:
    rng = random.Random(13)
    for _ in range(3_000):
        turns = [list(repair(random_history(rng))) for _ in range(rng.randint(1, 6))]
        history = stored(*[turn for turn in turns if turn], first_id=rng.randint(1, 99))
        messages, tokens = rng.randint(1, 30), rng.randint(1, 200)

        start = cut(history, messages, tokens)
        kept = sent(history, start)

        check_all(repair([*(one.entry for one in kept), said("now")]))
        edge = len(history) - len(kept)
        if 0 < edge < len(history):
            assert history[edge - 1].run_id != history[edge].run_id
        assert sum(estimate_tokens(text_of(one.entry)) for one in kept) <= tokens
        if start is not None:
            assert cut(kept, messages, tokens) is None


# --- shortening --------------------------------------------------------------------------------

LONG = "x" * 1_000


def test_answered_results_are_shortened_and_the_newest_are_not_touched() -> None:
    history = [
        said("q"),
        answer("", "a"),
        result("a", LONG),
        answer("", "b", "c"),
        result("b", LONG),
        result("c", "short"),
    ]

    shortened = shorten(history, 100)

    assert shortened[2] == result("a", "[tool_a: truncated, was 1000 chars]")
    assert shortened[3:] == tuple(history[3:])
    assert shorten(shortened, 100) == shortened


@pytest.mark.parametrize(("kept", "long"), [(0, 0), (1, 1), (2, 2), (3, 3), (9, 3)])
def test_the_last_exchanges_stay_whole(kept: int, long: int) -> None:
    history: list[Entry] = []
    for id in "abc":
        history += [said("q"), said("and"), answer("", id), result(id, LONG), answer("so")]

    shortened = shorten(history, 100, exchanges_kept=kept)

    assert sum(isinstance(e, ToolResult) and e.content == LONG for e in shortened) == long
    assert len(shortened) == len(history)


def test_shortening_keeps_every_history_valid_and_settles_at_once() -> None:
    rng = random.Random(14)
    for _ in range(500):
        history = repair(random_history(rng))

        shortened = shorten(history, 0, exchanges_kept=rng.randint(0, 3))

        check_all(shortened)
        assert repair(shortened) == shortened


# --- counting ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "chars_per_token_max", "chars_per_token_min"),
    [
        ("The rain began to fall again in the afternoon, and nobody was surprised. " * 9, 4.5, 3),
        ('[{"id": 7919, "url": "https://example.org/a/7919", "ok": true}, ' * 9, 2.6, 1.5),
        ("今天天气很好，我们去市场买了新鲜的蔬菜和水果。" * 9, 0.9, 0.7),
        ("Завтра утром мы поедем на вокзал встречать бабушку. " * 9, 1.8, 0.8),
        ("🎉👍🏽😀🔥🚀" * 9, 0.5, 0.3),
        ("half a pair \ud83d " * 9, 4.5, 2),
    ],
)
def test_tokens_are_estimated_by_the_kind_of_text(
    text: str, chars_per_token_max: float, chars_per_token_min: float
) -> None:
    assert chars_per_token_min < len(text) / estimate_tokens(text) <= chars_per_token_max
