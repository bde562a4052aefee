"""What of a conversation is sent, summed up, brought back and erased, through the real program
(SPEC §10)."""

from __future__ import annotations

import json
from random import Random

import pytest

from tests.acceptance.memory_words import (
    PREVIOUS,
    QUICK,
    SUMMING,
    SUMS_UP,
    answers,
    asked,
    asks,
    block,
    facts_of,
    hold,
    holders,
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


@pytest.mark.parametrize("beside", [True, False])
def test_memory_is_seen_and_changed_on_the_command_line(
    home: Home, telegram: Telegram, *, beside: bool
) -> None:
    home.env |= QUICK
    home.approve(ANN)
    bot = home.start()
    asks(telegram, ANN, "/remember I live in Oslo.")
    asks(telegram, ANN, "/remember My boat is called Quokka.")
    if not beside:
        bot.end()

    listed = json.loads(home.run("memory", "list", "--json").stdout)
    plain = home.run("memory", "list").stdout
    searched = json.loads(home.run("memory", "search", "boat", "--json").stdout)
    edited = home.run("memory", "edit", "f1", "Ann lives in Bergen.")
    shown = json.loads(home.run("memory", "show", "f3", "--json").stdout)
    past = json.loads(home.run("memory", "list", "--past", "--json").stdout)
    missing = home.run("memory", "show", "f99")
    file = home.path.parent / "ann.json"
    exported = home.run("memory", "export", "--out", str(file))
    printed = home.run("memory", "export", "--format", "md")
    unasked = home.run("memory", "forget", "f2")
    forgotten = home.run("memory", "forget", "f2", "--yes", "--json")
    imported = home.run("memory", "import", str(file), "--json")
    after = facts_of(home)
    left = holders(home, "Quokka")
    file.write_text("{")
    broken = home.run("memory", "import", str(file))

    assert {fact["key"] for fact in listed["facts"]} == {"f1", "f2"}
    assert [len(line.split("\t")) for line in plain.splitlines()] == [7, 7]
    assert searched["facts"][0]["text"] == "My boat is called Quokka."
    assert edited.returncode == 0, edited.stderr
    assert shown["fact"]["text"] == "Ann lives in Bergen."
    assert [fact["text"] for fact in past["facts"]] == ["I live in Oslo."]
    assert (missing.returncode, missing.stdout) == (1, "")
    assert exported.returncode == 0, exported.stderr
    assert "My boat is called Quokka." in printed.stdout
    assert unasked.returncode == 2
    assert forgotten.returncode == 0, forgotten.stderr
    assert json.loads(forgotten.stdout)["ok"] is True
    assert imported.returncode == 0, imported.stderr
    assert json.loads(imported.stdout)
    assert after == ["Ann lives in Bergen."]
    assert left == []
    assert broken.returncode == 1
    assert "Traceback" not in broken.stderr
    assert facts_of(home) == after


@pytest.mark.parametrize("beside", [True, False])
def test_conversations_are_seen_and_erased_on_the_command_line(
    home: Home, telegram: Telegram, model: Model, *, beside: bool
) -> None:
    home.env |= QUICK
    home.approve(ANN)
    bot = home.start()
    asks(telegram, ANN, "The boat is called Quokka.")
    asks(telegram, ANN, "/new")
    asks(telegram, ANN, "Rain again today.")
    if not beside:
        bot.end()

    listed = json.loads(home.run("sessions", "list", "--json").stdout)["sessions"]
    plain = home.run("sessions", "list").stdout
    old = listed[-1]["id"]
    shown = json.loads(home.run("sessions", "show", old, "--json").stdout)
    exported = json.loads(home.run("sessions", "export", old).stdout)
    markdown = home.run("sessions", "export", old[:8], "--format", "md")
    unasked = home.run("sessions", "clear", old)
    cleared = home.run("sessions", "clear", old, "--yes", "--json")
    again = home.run("sessions", "show", old)
    left = json.loads(home.run("sessions", "list", "--json").stdout)["sessions"]
    if not beside:
        home.start()
    asks(telegram, ANN, "What was the boat called?")

    assert len(listed) == len(plain.splitlines()) == 2
    assert shown["session"]["lane"] == f"telegram:{ANN}"
    assert [entry["kind"] for entry in exported["entries"]] == ["said", "context", "answered"]
    assert "The boat is called Quokka." in markdown.stdout
    assert unasked.returncode == 2
    assert cleared.returncode == 0, cleared.stderr
    assert old in json.loads(cleared.stdout)["text"]
    assert (again.returncode, again.stdout) == (1, "")
    assert [one["id"] for one in left] == [listed[0]["id"]]
    assert "Quokka" not in sent(model)[-1]
    # Daily backups keep what they hold until they are replaced.
    assert [file for file in holders(home, "Quokka") if "backups" not in file] == []
