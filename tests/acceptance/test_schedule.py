"""What happens by the clock under the real program: reminders, jobs, and what was missed, each told
once (cases SC-07, SC-11, SC-17, CO-03; SPEC §11, §17)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.acceptance.rig import Home, Model, Telegram, until
from tests.acceptance.schedule_words import (
    ANN,
    BOB,
    Kept,
    asked_for,
    card_that,
    jobs,
    keep,
    only_job,
    ordered,
    reminded,
    run_to_its_end,
    started,
)
from tests.acceptance.test_kills import settled
from tests.acceptance.tool_words import calling, only_card, reads
from tests.thorough import rounds

OFF_CARD = "While I was off"


# --- reminders -----------------------------------------------------------------------------------


@pytest.mark.case("SC-07")
def test_a_reminder_is_agreed_to_comes_once_and_is_answered_by_taps(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.approve(ANN, BOB)
    started(home)
    telegram.says(ANN, "/remind in 5 seconds drink water")
    asked = only_card(telegram, ANN)
    telegram.press(ANN, asked, "Save", by=BOB)
    telegram.press(ANN, asked, "Save")
    telegram.press(ANN, asked, "Save")
    saved = reads(telegram, ANN, "Saved as j")

    due = card_that(telegram, "drink water", button="Done")
    telegram.press(ANN, due, "in 10 min", by=BOB)
    telegram.press(ANN, due, "in 10 min")
    put_off = reads(telegram, ANN, "Again ")
    telegram.press(ANN, due, "in 10 min")
    telegram.press(ANN, due, "Done")
    until(lambda: len(telegram.popped_up()) >= 7)

    assert "Next: " in asked.text
    assert saved.count("Saved as j") == 1
    assert set(due.buttons) == {"Done", "in 10 min", "in 1 h", "tomorrow"}
    assert "late" not in due.text
    assert put_off.count("Again ") == 1
    waiting = [job for job in jobs(home).values() if job["next"]]
    assert len(waiting) == 1, "put off once"
    assert [text for text in telegram.shown(ANN) if text.startswith("drink water")] == [put_off]
    assert model.user_texts() == [], "no model reads a reminder"


def test_what_was_missed_is_told_late_on_a_card(home: Home, telegram: Telegram) -> None:
    home.approve(ANN)
    keep(home, [Kept(text="call Bob", due=datetime.now(UTC) - timedelta(hours=2))])

    home.start()
    card = reads(telegram, ANN, OFF_CARD)
    told = reads(telegram, ANN, "late by 2 h")
    until(lambda: settled(home))

    assert "call Bob" in card
    assert told.startswith("call Bob")
    assert len(telegram.shown(ANN)) == 2


# --- jobs that a model works on -------------------------------------------------------------------


def test_instructions_go_alone_and_their_result_is_answered_to(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.approve(ANN)
    home.start()
    telegram.says(ANN, "something else")
    reads(telegram, ANN, "You said: something else")
    key = ordered(home, "look for rain\n!say Rain at noon: shall I move the picnic?")
    home.run("schedule", "run", key)
    reads(telegram, ANN, "Rain at noon")
    telegram.says(ANN, "do that")
    reads(telegram, ANN, "You said: do that")

    (asked,) = asked_for(model, "look for rain")
    said = json.dumps(asked["messages"])
    offered = {tool["function"]["name"] for tool in asked["tools"]}
    assert "something else" not in said
    assert "nothing_to_report" in offered
    assert not offered & {"send_message", "schedule_job", "remind_me", "update_job", "run_job"}
    assert "Rain at noon" in json.dumps(asked_for(model, "do that")[-1]["messages"])
    assert [t for t in telegram.shown(ANN) if "Rain" in t] == [
        "Rain at noon: shall I move the picnic?"
    ]


def test_a_job_of_the_assistant_is_asked_about(home: Home, telegram: Telegram) -> None:
    home.approve(ANN)
    home.start()
    telegram.says(ANN, "/timezone Berlin")
    reads(telegram, ANN, "Your time zone is Europe/Berlin")
    text = calling(
        "schedule_job",
        say="first",
        name="rain",
        when="every Monday at 18:00",
        instructions="look for rain",
    )
    telegram.says(ANN, text)
    card = only_card(telegram, ANN)
    before = jobs(home)
    telegram.press(ANN, card, "Allow once")
    reads(telegram, ANN, "| first")

    assert "look for rain" in card.text
    assert before == {}
    assert list(jobs(home)) == ["rain"]


WRAPPED = (
    "HEARTBEAT_OK",
    "**HEARTBEAT_OK**",
    "HEARTBEAT_OK\n\nNothing needs attention.",
    "`HEARTBEAT_OK`",
    "HEARTBEAT_OK.",
    '"HEARTBEAT_OK"',
    "<b>HEARTBEAT_OK</b>",
    "heartbeat_ok",
    "  HEARTBEAT_OK 👍",
)


@pytest.mark.case("SC-17", "CO-03")
def test_a_model_with_nothing_to_say_is_not_heard_at_all(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.env["HEARTHBOT_TELEGRAM__STREAMING"] = "true"
    home.approve(ANN)
    started(home)
    key = ordered(home, "look around")
    wrapped = WRAPPED[: rounds(3, len(WRAPPED))]
    for number, words in enumerate(wrapped, start=1):
        model.ask("say", text=words)
        run_to_its_end(home, key, "silent", count=number)
    for _ in range(5):
        model.ask("call", name="nothing_to_report", arguments={})
    run_to_its_end(home, key, "silent", count=len(wrapped) + 1)

    assert telegram.shown(ANN) == []
    assert telegram.received("sendChatAction") == 0
    assert len(asked_for(model, "look around")) == len(wrapped) + 1


def test_five_failures_in_a_row_stop_a_job_until_a_tap(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.approve(ANN)
    started(home)
    key = ordered(home, "look around\n!fault 400 always")
    for number in range(1, 6):
        run_to_its_end(home, key, "failed", count=number)

    card = card_that(telegram, "I stopped the job", button="Go on")
    stopped = only_job(home)["state"]
    telegram.press(ANN, card, "Go on")
    telegram.press(ANN, card, "Go on")
    reads(telegram, ANN, "It goes on.")

    assert "failed 5 times" in str(stopped)
    assert len(telegram.shown(ANN)) == 1, "one notice, and none for each failure"
    assert only_job(home)["state"] == "on"


# --- beside a running bot -------------------------------------------------------------------------


def test_a_pause_holds_what_asks_a_model_and_reminders_still_come(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.approve(ANN)
    started(home)
    telegram.says(ANN, "/pause")
    promised = reads(telegram, ANN, "Paused.")
    ordered(home, "look for rain\n!say Rain at noon.", when="in 1 second")
    nagging = home.run("schedule", "add", "in 1 second", "pill", "--nag", "10", "--yes")
    reminded(home, "thing", seconds=2)

    card = card_that(telegram, "thing", button="Done")
    pill = card_that(telegram, "pill", button="Done")
    telegram.press(ANN, card, "in 10 min")
    telegram.press(ANN, pill, "Done")
    reads(telegram, ANN, "Again ")
    reads(telegram, ANN, "Done.")
    held = model.user_texts()
    telegram.says(ANN, "/resume")
    reads(telegram, ANN, "Rain at noon.")
    until(lambda: settled(home))

    assert "Reminders still come." in promised
    assert nagging.returncode == 0, nagging.stderr
    assert held == [], "no model is asked before /resume"
    for once in ("thing", "pill"):
        assert sum(text.startswith(once) for text in telegram.shown(ANN)) == 1


def test_a_reminder_comes_also_where_the_pause_is_older_than_the_process(
    home: Home, telegram: Telegram
) -> None:
    home.approve(ANN)
    bot = started(home)
    telegram.says(ANN, "/pause")
    reads(telegram, ANN, "Paused.")
    bot.kill()
    keep(home, [Kept(text="thing", due=datetime.now(UTC))])

    home.start()

    card_that(telegram, "thing", button="Done")
