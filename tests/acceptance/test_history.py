"""What of a conversation is sent, summed up, brought back and erased, through the real program
(SPEC §10)."""

from __future__ import annotations

from random import Random

import pytest

from tests.acceptance.memory_words import (
    PREVIOUS,
    SUMMING,
    SUMS_UP,
    answers,
    asked,
    asks,
    block,
    hold,
    moment,
    sent,
    summed,
)
from tests.acceptance.rig import Home, Model, Telegram, until
from tests.acceptance.tool_words import calling
from tests.thorough import rounds

ANN = 7
TRIP = ("The ferry is FX17.", "Cabin 4207 is ours.", "The dog is called Wombat.")
MORE = tuple(f"Sheep number {n} jumped over the old stone wall, and so on." * 3 for n in range(3))
LATER = ("Rain again today.", "The oven is warm.")
MADE = "select kind, undone_ms is null from compactions order by id"


def talks(telegram: Telegram) -> None:
    """Five exchanges, which are more messages than may be sent."""
    for text in (*TRIP, *LATER):
        asks(telegram, ANN, text)


def test_what_is_old_is_summed_up_told_found_and_brought_back(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.env |= SUMS_UP
    home.approve(ANN)
    answers(model, SUMMING, summed("A ferry trip with a cabin and a dog was planned."))
    home.start()
    talks(telegram)
    until(lambda: home.ask_database(MADE) == [("summarise", 1)])

    asks(telegram, ANN, "Good morning!")
    summed_up = sent(model)[-1]
    back = asks(telegram, ANN, "/restore")
    asks(telegram, ANN, "Good evening!")
    restored = sent(model)[-1]
    answers(model, SUMMING, summed("A ferry trip, and weather."))
    told = asks(telegram, ANN, "/compact")
    asks(telegram, ANN, calling("search_conversations", say="Search", query="ferry FX17"))
    searched = telegram.shown(ANN)[-1]

    assert len(asked(model, SUMMING)) == 2
    assert summed_up.count(PREVIOUS) == 1
    assert "A ferry trip with a cabin" in block(summed_up, PREVIOUS)
    assert not any(text in summed_up for text in TRIP)
    assert all(text in summed_up for text in LATER)
    assert "Taken back" in back
    assert all(text in restored for text in (*TRIP, *LATER))
    assert PREVIOUS not in restored.rpartition("Good evening!")[2]
    assert "I summed up what is older" in told
    assert "A ferry trip, and weather." in told
    assert "In the archive alone: 10 messages" in told
    assert "The ferry is FX17." in searched


def test_without_a_model_to_sum_up_a_list_takes_its_place(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.env |= SUMS_UP
    home.approve(ANN)
    answers(model, SUMMING, "I would rather not.", times=4)
    home.start()
    talks(telegram)
    until(lambda: home.ask_database(MADE) == [("digest", 1)])

    asks(telegram, ANN, "Good morning!")
    first = sent(model)[-1]
    nothing = asks(telegram, ANN, "/compact")
    for text in MORE:
        asks(telegram, ANN, text)
    told = asks(telegram, ANN, "/compact")
    asks(telegram, ANN, "Good evening!")
    back = [asks(telegram, ANN, "/restore") for _ in range(6)]
    asks(telegram, ANN, "Good night!")
    whole = sent(model)[-1]

    assert first.count(PREVIOUS) == 1
    assert "FX17" in block(first, PREVIOUS)
    assert "nothing to gain" in nothing
    assert "without a model to sum it up" in told
    assert "ferry is FX17" in told
    assert "Nothing was summed up" in back[-1]
    assert all(text in whole for text in (*TRIP, *LATER))


@pytest.mark.timeout(300)
def test_a_kill_while_it_is_summed_up_loses_nothing(
    home: Home, telegram: Telegram, model: Model
) -> None:
    chance = Random(20263)
    home.env |= SUMS_UP
    home.approve(ANN)
    for number in range(rounds(2, 10)):
        before = len(asked(model, SUMMING))
        made = len(home.ask_database(MADE)) if number else 0
        if number % 2 == 0:
            hold(model, SUMMING)
        bot = home.start()
        talks(telegram)
        until(lambda: len(asked(model, SUMMING)) > before)  # noqa: B023 - read at once
        moment(chance.uniform(0, 0.1))
        bot.kill()
        whole = home.ask_database("pragma integrity_check")
        model.behave()

        answers(model, SUMMING, summed("A ferry trip was planned."), times=3)
        bot = home.start()
        asks(telegram, ANN, "Good morning!")
        until(lambda: len(home.ask_database(MADE)) > made)  # noqa: B023 - read at once
        kept = home.ask_database("select count(*) from messages where body like '%Wombat%'")
        asks(telegram, ANN, "Good evening!")
        last = sent(model)[-1]
        asks(telegram, ANN, "/new")
        code = bot.end()

        assert whole == [("ok",)]
        assert kept[0][0] >= 2 * (number + 1)
        assert last.count(PREVIOUS) == 1
        assert code == 0


# --- on the command line -------------------------------------------------------------------------
