"""What is due by the clock, and the real program killed at any moment of it, or started twice by
mistake: nothing is lost, and nothing comes twice without a word (case SC-09; SPEC §11, §16)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Literal

import pytest

from memory.records.jobs import JobKind
from tests.acceptance.rig import Home, Model, Running, Telegram, until
from tests.acceptance.schedule_words import ANN, BOB, Kept, keep, ordered, started
from tests.acceptance.test_kills import MARK, Found, kill_and_look, later, settled
from tests.acceptance.tool_words import reads
from tests.thorough import rounds

PEOPLE = (ANN, BOB, 9, 10)
HOUR = timedelta(hours=1)
STATES = "select state, count(*) from job_runs join jobs on jobs.id = job_id group by state"
UNKNOWN = "select text from outbox where state = 'unknown'"

IN_A_ROW = 5
"""Kills between two rests. A run that ends the program more than ten times in a row is given up as
the cause of it, `agent.turn.engine.RESUMES_MAX`."""

Moment = Literal["before it answers", "while it is sent", "once it was sent"]


def thing(number: int) -> str:
    return f"thing {number:04d}"


def named(text: str) -> str:
    """The reminder, or the job, that a message is of."""
    found = re.search(r"thing \d{4}", text)
    assert found, text
    return found.group()


def limited(home: Home, telegram: Telegram) -> None:
    """The limits of the platform are enforced, and the bot goes by them as it is shipped."""
    for name in ("RATE_PER_CHAT", "RATE_PER_GROUP_MINUTE", "RATE_TOTAL"):
        del home.env[f"HEARTHBOT_TELEGRAM__{name}"]
    telegram.ask("set", limits=True)


def statuses(telegram: Telegram) -> list[int | None]:
    """What each sent message was answered with; 429 for one that came too fast."""
    return [entry["status"] for entry in telegram.ask("log", method="sendMessage")]


# --- reminders that were missed -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_each_missed_reminder_comes_once_in_order_whatever_is_killed_meanwhile(
    home: Home, telegram: Telegram
) -> None:
    chance, many, missed = Random(3), rounds(60, 1000), rounds(20, 200)
    begin = datetime.now(UTC) - HOUR
    dues = [begin + timedelta(seconds=n) + (0 if n < missed else 24) * HOUR for n in range(many)]
    home.approve(*PEOPLE, role="owner")
    limited(home, telegram)
    order = chance.sample(range(many), many)
    keep(home, [Kept(text=thing(n), due=dues[n], chat=PEOPLE[n % 4]) for n in order])

    found = killed_while_it_makes_up(home, telegram, chance, missed=missed)
    home.start()
    until(lambda: told(home) == missed and settled(home), timeout_s=300)

    doubles, unseen, unknown = 0, 0, [named(text) for (text,) in home.ask_database(UNKNOWN)]
    for place, chat in enumerate(PEOPLE):
        wanted = [thing(n) for n in range(missed) if n % 4 == place]
        shown = [text for text in telegram.shown(chat) if text.startswith("thing")]
        doubles += check_once(shown, wanted, unknown)
        unseen += len(set(wanted) - set(map(named, shown)))
        assert all("(late by " in text for text in shown), shown
    assert doubles <= found.in_the_window
    assert home.ask_database(STATES) == [("told", missed)]
    ((waiting,),) = home.ask_database(
        "select count(*) from jobs where enabled and next_ms is not null and kind = 'message'"
    )
    assert waiting == many - missed
    too_fast = statuses(telegram).count(429)
    assert too_fast <= found.kills * len(PEOPLE), "only a new process may not know what was sent"
    print(
        f"\n{found.kills} kills while {missed} of {many} were made up for: "
        f"{found.in_the_window} sends under way, {doubles} came twice, marked, "
        f"{len(unknown)} are of unknown fate ({unseen} did not come); {too_fast} were too fast"
    )


def killed_while_it_makes_up(
    home: Home, telegram: Telegram, chance: Random, *, missed: int
) -> Found:
    """First while due times are taken, then while messages are sent."""
    found = Found()
    for round_number in range(rounds(4, 20)):
        running = home.start()
        already = taken(home)
        if already < missed:
            until_taken(home, chance.randint(already + 1, missed))
        elif round_number % 3 == 2:
            later(chance)()
        else:
            hold_a_send(telegram, after=round_number % 2 == 0)
            until_sending(home, telegram, telegram.received("sendMessage") + chance.randint(1, 3))
        kill_and_look(home, running, found)
        goes_on(telegram)
    return found


def goes_on(telegram: Telegram) -> None:
    """No faults from now on, and what was held has its answer; also a refusal is one."""
    telegram.ask("clear_faults")
    telegram.ask("release")
    until(lambda: None not in statuses(telegram))


def until_taken(home: Home, number: int) -> None:
    until(lambda: taken(home) >= number)


def hold_a_send(telegram: Telegram, *, after: bool) -> None:
    hold = {"kind": "hold", "seconds": 0.4, "after": after}
    telegram.ask("fault", method="sendMessage", action=hold, times=3)


def until_sending(home: Home, telegram: Telegram, number: int) -> None:
    """Or nothing is left to be sent."""
    until(lambda: telegram.received("sendMessage") >= number or settled(home))


def taken(home: Home) -> int:
    """Due times that were set going."""
    ((count,),) = home.ask_database("select count(*) from job_runs where state <> 'skipped'")
    return int(count)


def told(home: Home) -> int:
    """Due times whose message, or result, is on its way."""
    ((count,),) = home.ask_database("select count(*) from job_runs where state = 'told'")
    return int(count)


def check_once(shown: list[str], wanted: list[str], unknown: list[str]) -> int:
    """Each once, in order; a second one only with a mark. Returns how many came twice."""
    names = [named(text) for text in shown]
    lost = set(wanted) - set(names) - set(unknown)
    assert not lost, (lost, shown)
    assert list(dict.fromkeys(names)) == [name for name in wanted if name in names], shown
    for name in set(names):
        mine = [text for text in shown if named(text) == name]
        # Each kill in the middle of a send is a doubt, and worth one more copy.
        assert all(MARK in text for text in mine[1:]), mine
    return len(names) - len(set(names))


# --- runs -----------------------------------------------------------------------------------------


@pytest.mark.case("SC-09")
@pytest.mark.parametrize("moment", ["before it answers", "while it is sent", "once it was sent"])
def test_a_job_that_was_killed_in_its_run_is_finished_and_told_once(
    home: Home, telegram: Telegram, model: Model, moment: Moment
) -> None:
    home.approve(ANN)
    bot = started(home)
    key = ordered(home, "look for rain\n!say It rains.", when="in 2 seconds")
    reached(moment, home, telegram, model)
    bot.kill()
    telegram.behave()
    model.behave()

    started(home)
    reads(telegram, ANN, "It rains.")
    until(lambda: settled(home))

    told = [text for text in telegram.shown(ANN) if "It rains." in text]
    assert len([text for text in told if MARK not in text]) == 1, told
    assert len(told) == 1 or moment == "while it is sent", told
    assert len(told) <= 2, told
    sql = f"select state from job_runs where job_id = {key.removeprefix('j')}"
    assert home.ask_database(sql) == [("told",)]


def reached(moment: Moment, home: Home, telegram: Telegram, model: Model) -> None:
    """Waits for it; what is held does not go on by itself."""
    match moment:
        case "before it answers":
            model.ask("fault", method="chat", action={"kind": "hold", "after": False})
            until(lambda: model.received("chat") >= 1)
        case "while it is sent":
            telegram.ask("fault", method="sendMessage", action={"kind": "hold", "after": True})
            until(lambda: telegram.received("sendMessage") >= 1)
        case "once it was sent":
            reads(telegram, ANN, "It rains.")
            until(lambda: settled(home))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_slot_runs_twice_and_none_is_lost_with_two_processes_and_kills(
    home: Home, telegram: Telegram, model: Model
) -> None:
    chance, kills, each = Random(9), rounds(3, 20), 3
    home.approve(ANN)
    in_runs, found = 0, Found()
    for number in range(kills):
        keep(home, [work(number * each + n) for n in range(each)])
        skip, before = chance.randrange(each), model.received("chat")
        hold = {"kind": "hold", "after": number % 2 == 0}
        model.ask("fault", method="chat", action=hold, skip=skip, times=2)
        running = both_started(home)
        until_asked(model, before + skip + 1)
        in_runs += open_runs(home)
        kill_and_look(home, running, found)
        telegram.behave()
        model.behave()
        if number % IN_A_ROW == IN_A_ROW - 1:
            running = both_started(home)
            until(lambda: settled(home), timeout_s=120)
            running.kill()
    both_started(home)
    wanted = [thing(n) for n in range(kills * each)]
    until(lambda: told(home) == len(wanted) and settled(home), timeout_s=120)

    shown = telegram.shown(ANN)
    unknown = [named(text) for (text,) in home.ask_database(UNKNOWN)]
    results = sorted((text for text in shown if text.startswith("Found")), key=named)
    doubles = check_once(results, wanted, unknown)
    assert doubles <= found.in_the_window
    assert home.ask_database(STATES) == [("told", len(wanted))]
    turns = home.ask_database("select count(*), count(distinct run_id) from turns")
    assert turns == [(len(wanted), len(wanted))]
    print(f"\n{kills} kills, {in_runs} runs under way at them; {doubles} came twice, marked")


def work(number: int) -> Kept:
    """Instructions that are due since an hour."""
    due = datetime.now(UTC) - HOUR + timedelta(seconds=number)
    text = f"{thing(number)}\n!say Found {thing(number)}."
    return Kept(text=text, due=due, kind=JobKind.AGENT)


def both_started(home: Home) -> Running:
    """The one that serves; the other one must end by itself, and say why."""
    both = home.start(), home.start()

    def ended() -> list[Running]:
        return [one for one in both if one.process.poll() is not None]

    until(ended)
    (other,) = ended()
    assert other.wait() == 1
    assert "Another Hearthbot runs on" in other.said()
    (running,) = (one for one in both if one is not other)
    return running


def until_asked(model: Model, number: int) -> None:
    until(lambda: model.received("chat") >= number)


def open_runs(home: Home) -> int:
    ((count,),) = home.ask_database("select count(*) from job_runs where state = 'taken'")
    return int(count)
