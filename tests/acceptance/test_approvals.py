"""What acts outside runs after exactly one tap of the right person, whatever is killed meanwhile:
the real program, its cards in Telegram, Slack and the terminal (SPEC §4, §6)."""

from __future__ import annotations

import re
import time
from random import Random

import pytest

from tests.acceptance.rig import SLACK_TEAM, Card, Home, Model, Slack, Telegram, until
from tests.acceptance.test_kills import settled
from tests.acceptance.tool_words import (
    ALWAYS,
    DENY,
    ONCE,
    UNKNOWN,
    alive_with,
    effects,
    leaves_a_mark,
    only_card,
    reads,
    running,
    slack_card,
    told,
)
from tests.agent.sandbox.given import needs_sandbox
from tests.thorough import rounds

ANN, BOB, STRANGER, GROUP = 7, 8, 99, -100
SLACK_ANN = "U0ANN"


# --- one question ------------------------------------------------------------------------------


@needs_sandbox
def test_always_is_good_for_the_next_call_but_not_once_text_of_others_is_there(
    home: Home, telegram: Telegram
) -> None:
    home.approve(ANN)
    home.start()
    telegram.says(ANN, running(leaves_a_mark("one"), say="first"))
    telegram.press(ANN, only_card(telegram, ANN), ALWAYS)
    reads(telegram, ANN, "| first")

    telegram.says(ANN, running(leaves_a_mark("two"), say="second"))
    tainted = only_card(telegram, ANN)
    telegram.press(ANN, tainted, DENY)
    reads(telegram, ANN, "| second")
    telegram.says(ANN, "/new")
    telegram.says(ANN, running(leaves_a_mark("three"), say="third"))
    answer = reads(telegram, ANN, "| third")
    telegram.says(ANN, "/approve revoke exec")
    reads(telegram, ANN, "Taken back")
    telegram.says(ANN, "/new")
    telegram.says(ANN, running(leaves_a_mark("four"), say="fourth"))
    asked = only_card(telegram, ANN)

    assert "text from others is in this conversation" in tainted.text
    assert ALWAYS not in tainted.buttons
    assert "exit code 0" in answer
    assert effects(home) == ["one", "three"]
    assert leaves_a_mark("four") in asked.text


def test_two_taps_at_once_run_it_once_and_the_first_stands(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.approve(ANN)
    home.start()
    telegram.says(ANN, running(leaves_a_mark("one"), say="first"))
    card = only_card(telegram, ANN)

    for label in (ONCE, ONCE, DENY, ONCE):
        telegram.press(ANN, card, label)
    reads(telegram, ANN, "| first")
    until(lambda: len(telegram.popped_up()) == 4)

    assert effects(home) == ["one"]
    assert all("Allowed once" in said for said in telegram.popped_up())
    assert len(told(model)) == 1


def test_a_stop_while_it_waits_ends_the_turn_and_a_later_tap_does_nothing(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.approve(ANN)
    home.start()
    telegram.says(ANN, running(leaves_a_mark("one"), say="first"))
    card = only_card(telegram, ANN)

    telegram.says(ANN, "/stop")
    reads(telegram, ANN, "Stopped")
    telegram.press(ANN, card, ONCE)
    until(telegram.popped_up)
    telegram.says(ANN, "hello")
    reads(telegram, ANN, "You said: hello")
    until(lambda: not telegram.cards(ANN))

    assert "stopped before anybody answered" in telegram.popped_up()[0]
    assert effects(home) == []
    assert settled(home)
    assert model.user_texts()[-1].startswith("hello")


# --- whose answer counts -----------------------------------------------------------------------


@needs_sandbox
def test_in_slack_it_is_asked_by_blocks_and_pressed_once(
    home: Home, slack: Slack, model: Model
) -> None:
    home.serve_slack(slack)
    admitted = home.run("access", "approve", f"slack:{SLACK_TEAM}:{SLACK_ANN}")
    assert admitted.returncode == 0, admitted.stderr
    home.start()
    until(lambda: slack.ask("sockets"))
    slack.ask("post", text=running(leaves_a_mark("one"), say="first"), user=SLACK_ANN)
    direct = slack.ask("direct", user=SLACK_ANN)
    card = slack_card(slack, direct)

    slack.press(direct, card, ONCE, by=SLACK_ANN)
    slack.press(direct, card, ONCE, by=SLACK_ANN)
    until(lambda: [p for p in slack.ask("chat", channel=direct) if "| first" in p["text"]])
    until(lambda: not slack.cards(direct))

    shown = [post["text"] for post in slack.ask("chat", channel=direct) if post["is_bot"]]
    assert set(card.buttons) == {ONCE, DENY, ALWAYS}
    assert any("Allowed once" in text and leaves_a_mark("one") in _plain(text) for text in shown)
    assert effects(home) == ["one"]
    assert len(told(model)) == 1


def _plain(text: str) -> str:
    return text.replace("&gt;", ">")


# --- killed meanwhile --------------------------------------------------------------------------


def asks_for_one(home: Home, telegram: Telegram, script: str) -> None:
    home.approve(ANN)
    telegram.says(ANN, running(script, say="first"))


@pytest.mark.parametrize(("stand_in", "method"), [("model", "chat"), ("telegram", "sendMessage")])
@pytest.mark.parametrize("after", [False, True])
def test_killed_before_the_card_is_known_to_be_sent_it_is_asked_and_runs_once(
    home: Home, telegram: Telegram, model: Model, stand_in: str, method: str, *, after: bool
) -> None:
    held = model if stand_in == "model" else telegram
    held.ask("fault", method=method, action={"kind": "hold", "after": after})
    asks_for_one(home, telegram, leaves_a_mark("one"))

    killed = home.start()
    until(lambda: held.received(method))
    killed.kill()
    held.behave()
    home.start()
    until(lambda: settled_but_for_questions(home) and telegram.cards(ANN))
    for card in telegram.cards(ANN):
        telegram.press(ANN, card, ONCE)
    reads(telegram, ANN, "| first")

    assert effects(home) == ["one"]
    assert len(telegram.cards(ANN)) <= 1
    assert all(len(said) == 1 for said in told(model).values())


def settled_but_for_questions(home: Home) -> bool:
    return home.ask_database("select count(*) from outbox where ended_ms is null") == [(0,)]


def test_a_tap_while_it_is_down_is_good_after_the_start(home: Home, telegram: Telegram) -> None:
    asks_for_one(home, telegram, leaves_a_mark("one"))
    killed = home.start()
    card = only_card(telegram, ANN)
    # Killed before its id is stored, it would be sent again, and the first copy keeps its buttons.
    until(lambda: home.ask_database("select id from outbox where buttons <> '' and state = 'sent'"))

    killed.kill()
    telegram.press(ANN, card, ONCE)
    before = effects(home)
    home.start()
    reads(telegram, ANN, "| first")
    until(lambda: not telegram.cards(ANN))

    assert before == []
    assert effects(home) == ["one"]


def test_a_question_outlives_a_kill_and_expires_while_it_is_down(
    home: Home, telegram: Telegram
) -> None:
    home.env["HEARTHBOT_TOOLS__APPROVAL_MINUTES"] = "0.02"
    asks_for_one(home, telegram, leaves_a_mark("one"))
    killed = home.start()
    card = only_card(telegram, ANN)

    killed.kill()
    time.sleep(1.3)
    telegram.press(ANN, card, ONCE)
    home.start()
    answer = reads(telegram, ANN, "| first")
    reads(telegram, ANN, "Expired: not run.")

    assert "nobody agreed to it in time" in answer
    assert effects(home) == []


@needs_sandbox
@pytest.mark.slow
def test_killed_soon_after_the_tap_it_ran_once_or_nobody_says_that_it_did(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.approve(ANN)
    running_bot = home.start()
    until(running_bot.serving)
    fates = []
    kills = rounds(4, 12)
    for number in range(kills):
        name = f"m-{number:02d}"
        telegram.says(ANN, running(leaves_a_mark(name), say=name))
        card = card_about(telegram, name)
        telegram.press(ANN, card, ONCE)
        time.sleep(number * 0.12 / kills)
        running_bot.kill()
        running_bot = home.start()
        answer = reads(telegram, ANN, f"| {name}")
        until(lambda: settled(home), about=lambda: str(telegram.shown(ANN)))
        fates.append("unknown" if UNKNOWN in answer else "ran")
        runs = effects(home).count(name)
        assert runs == 1 if "exit code 0" in answer else (UNKNOWN in answer and runs <= 1)

    print(f"\n{kills} kills within 0.12 s of the tap: {fates}")
    assert all(len(said) == 1 for said in told(model).values())


def card_about(telegram: Telegram, name: str) -> Card:
    """The question of one message. An older one whose sending was cut off may still stand."""

    def found() -> list[Card]:
        return [card for card in telegram.cards(ANN) if name in card.text]

    return until(found)[0]


def test_killed_in_the_middle_it_is_not_run_again_and_both_hear_that_its_fate_is_unknown(
    home: Home, telegram: Telegram, model: Model
) -> None:
    asks_for_one(home, telegram, leaves_a_mark("one", then="sleep 3141"))
    killed = home.start()
    telegram.press(ANN, only_card(telegram, ANN), ONCE)

    until(lambda: effects(home))
    killed.kill()
    until(lambda: not alive_with("sleep 3141"))
    home.start()
    answer = reads(telegram, ANN, "| first")
    telegram.says(ANN, "hello")
    reads(telegram, ANN, "You said: hello")

    assert effects(home) == ["one"]
    assert UNKNOWN in answer
    ((result,),) = told(model).values()
    assert result.startswith(UNKNOWN)


def test_killed_in_the_middle_the_person_is_told_by_code_where_the_model_is_silent(
    home: Home, telegram: Telegram, model: Model
) -> None:
    asks_for_one(home, telegram, leaves_a_mark("one", then="sleep 3142"))
    killed = home.start()
    telegram.press(ANN, only_card(telegram, ANN), ONCE)

    until(lambda: effects(home))
    killed.kill()
    until(lambda: not alive_with("sleep 3142"))
    model.ask("say", text="The weather is fine.")
    home.start()
    answer = reads(telegram, ANN, "The weather is fine.")
    until(lambda: settled(home))

    assert "I was stopped while trying to run a program (command: sh -c echo one" in answer
    assert "I do not know whether it was done" in answer
    assert sum("I was stopped" in text for text in telegram.shown(ANN)) == 1
    assert effects(home) == ["one"]


def test_killed_after_the_run_the_reply_still_comes_and_nothing_runs_again(
    home: Home, telegram: Telegram, model: Model
) -> None:
    asks_for_one(home, telegram, leaves_a_mark("one"))
    model.ask("fault", method="chat", action={"kind": "hold", "after": False}, skip=1)
    killed = home.start()
    telegram.press(ANN, only_card(telegram, ANN), ONCE)

    until(lambda: model.received("chat") == 2)
    killed.kill()
    model.behave()
    home.start()
    answer = reads(telegram, ANN, "| first")

    assert "exit code 0" in answer
    assert effects(home) == ["one"]
    assert telegram.cards(ANN) == []


OWNERS = range(1, 6)
ROUNDS = rounds(5, 20)
TAPS_MAX = 3
UNANSWERED = """
select turns.run_id, turns.status, turns.waits_for, approvals.state from turns
left join approvals on approvals.run_id = turns.run_id where turns.ended_ms is null
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_call_runs_twice_and_none_without_a_tap_whatever_is_killed(
    home: Home, telegram: Telegram, model: Model
) -> None:
    chance = Random(4711)
    home.env |= {"HEARTHBOT_TURNS__QUEUE": "followup", "HEARTHBOT_BUDGET__BRAKE": "false"}
    home.approve(*OWNERS, role="owner")
    taps: dict[str, list[str]] = {}

    running_bot = home.start()
    for number in range(ROUNDS):
        for chat in OWNERS:
            name = f"m-{chat:02d}-{number:02d}"
            is_plain = chance.random() < 0.3
            asked = name if is_plain else running(leaves_a_mark(name), say=name)
            telegram.says(chat, asked)
        ends = time.monotonic() + chance.uniform(0.3, 1.5)
        while time.monotonic() < ends:
            press_some(telegram, chance, taps)
        running_bot.kill()
        press_some(telegram, chance, taps)
        running_bot = home.start()
    ends = time.monotonic() + 120
    while not all_answered(telegram) or telegram.ask("pending") or not settled(home):
        assert running_bot.process.poll() is None, running_bot.said()[-2000:]
        assert time.monotonic() < ends, home.ask_database(UNANSWERED)
        press_some(telegram, chance, taps)
    code = running_bot.end()

    ran = effects(home)
    results = told(model)
    unknown = [call for call, said in results.items() if said[0].startswith(UNKNOWN)]
    allowed = {name for name, labels in taps.items() if ONCE in labels}
    for chat in OWNERS:
        for name in (f"m-{chat:02d}-{number:02d}" for number in range(ROUNDS)):
            check_fate(telegram.shown(chat), name, runs=ran.count(name), taps=taps.get(name, []))
    print(
        f"\n{ROUNDS} kills over {len(OWNERS) * ROUNDS} messages and {len(taps)} questions: "
        f"{len(allowed)} allowed, {len(ran)} ran, {len(unknown)} of unknown fate"
    )
    assert code == 0
    assert set(ran) <= allowed
    assert all(len(said) == 1 for said in results.values())
    assert home.ask_database("pragma integrity_check") == [("ok",)]


def press_some(telegram: Telegram, chance: Random, taps: dict[str, list[str]]) -> None:
    """People look at their cards and tap, now and then twice, or both."""
    for chat in OWNERS:
        for card in telegram.cards(chat):
            tapped = taps.setdefault(_asked_in(card), [])
            if len(tapped) < TAPS_MAX and chance.random() < 0.5:
                label = ONCE if chance.random() < 0.75 else DENY
                telegram.press(chat, card, label)
                tapped.append(label)


def _asked_in(card: Card) -> str:
    return str(re.findall(r"m-\d\d-\d\d", card.text)[0])


def answers_to(shown: list[str], name: str) -> list[str]:
    """The replies to one message: not the card, nor its outcome."""
    return [text for text in shown if f"| {name}" in text or f"You said: {name}" in text]


def all_answered(telegram: Telegram) -> bool:
    return all(
        answers_to(shown, f"m-{chat:02d}-{number:02d}")
        for chat in OWNERS
        for shown in [telegram.shown(chat)]
        for number in range(ROUNDS)
    )


def check_fate(shown: list[str], name: str, *, runs: int, taps: list[str]) -> None:
    """One message: answered, and run exactly as often as its answer says."""
    answers = answers_to(shown, name)
    assert answers, name
    assert runs <= 1, name
    if ONCE not in taps:
        assert runs == 0, name
    for answer in answers:
        if "exit code 0" in answer:
            assert runs == 1, answer
        elif UNKNOWN not in answer:
            assert runs == 0, answer
