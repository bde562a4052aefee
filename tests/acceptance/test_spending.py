"""What model calls may cost, under the real program: warned once, refused politely, braked, paused,
and told of, also over a restart."""

from __future__ import annotations

import json
from functools import partial

from tests.acceptance.rig import Home, Model, Telegram, until
from tests.acceptance.tool_words import reads

ANN, BOB = 7, 8


def with_budget(home: Home, tokens: int) -> None:
    limit = {"scope": "person", "period": "day", "tokens": tokens}
    home.env["HEARTHBOT_BUDGET__LIMITS"] = json.dumps([limit])


def used_up(telegram: Telegram, chat: int, *, messages_max: int = 40) -> list[str]:
    """Writes until a message is not answered; what was shown then."""
    for number in range(messages_max):
        telegram.says(chat, f"hello {number}")
        until(partial(has_an_end, telegram, chat, number + 1))
        if refused(telegram, chat):
            return telegram.shown(chat)
    raise AssertionError(f"never refused: {telegram.shown(chat)}")


def has_an_end(telegram: Telegram, chat: int, count: int) -> bool:
    return bool(refused(telegram, chat)) or len(answers(telegram, chat)) == count


def answers(telegram: Telegram, chat: int) -> list[str]:
    return [text for text in telegram.shown(chat) if text.startswith("You said:")]


def refused(telegram: Telegram, chat: int) -> list[str]:
    return [text for text in telegram.shown(chat) if "used up:" in text or "no room" in text]


def warnings(telegram: Telegram, chat: int) -> list[str]:
    """What was told of a budget that is nearly used up."""
    shown = telegram.shown(chat)
    return [text for text in shown if "% used" in text and "/usage shows more" in text]


def test_a_budget_warns_once_and_then_refuses_that_person_alone(
    home: Home, telegram: Telegram, model: Model
) -> None:
    with_budget(home, 40_000)
    home.approve(ANN, BOB)
    bot = home.start()

    shown = used_up(telegram, ANN)
    asked = len(model.user_texts())
    telegram.says(BOB, "hello")
    reads(telegram, BOB, "You said: hello")
    telegram.says(ANN, "/usage")
    usage = reads(telegram, ANN, "Budgets:")
    bot.kill()
    home.start()
    telegram.says(ANN, "once more")
    until(lambda: len(refused(telegram, ANN)) == 2)

    warned = partial(warnings, telegram, ANN)
    until(warned)
    assert len(warned()) == 1
    assert "It is free again tomorrow at" in shown[-1]
    assert "40,000 tokens" in usage
    assert len(model.user_texts()) == asked + 1


def test_usage_is_the_same_beside_the_bot_and_without_it(home: Home, telegram: Telegram) -> None:
    home.approve(ANN)
    bot = home.start()
    telegram.says(ANN, "hello")
    reads(telegram, ANN, "You said: hello")

    beside = home.run("usage", "--json")
    bot.end()
    without = home.run("usage", "--json")

    assert (beside.returncode, without.returncode) == (0, 0), beside.stderr + without.stderr
    one, other = json.loads(beside.stdout), json.loads(without.stdout)
    assert one["total"] == other["total"]
    assert one["by"] == other["by"]
    assert one["total"]["calls"] == 1
    assert [row["name"] for row in one["by"]["model"]] == ["lab-model"]


def test_the_brake_holds_over_a_restart_until_the_owner_says_so(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.env["HEARTHBOT_BUDGET__BRAKE"] = "true"
    home.env["HEARTHBOT_BUDGET__BRAKE_HOUR_TOKENS"] = "1000"
    home.approve(ANN, BOB)
    bot = home.start()
    telegram.says(ANN, "hello")
    notice = reads(telegram, ANN, "I have stopped asking models")

    bot.kill()
    home.start()
    telegram.says(ANN, "are you there")
    own = reads(telegram, ANN, "I have paused myself")
    telegram.says(BOB, "and for me")
    others = reads(telegram, BOB, "pausing for the moment")
    asked = len(model.user_texts())
    *_, card = telegram.cards(ANN)  # one whose sending fell into the kill may stand twice
    telegram.press(ANN, card, "Go on")
    until(lambda: any("I go on" in text for text in told_of(telegram)))
    telegram.says(ANN, "and now")
    until(lambda: len(answers(telegram, ANN)) == 2)

    assert "the limit is 1,000" in notice
    assert "/resume" in own
    assert "/resume" not in others
    assert asked == 1
    assert "and now" in json.dumps(model.ask("requests")[-1]["messages"][-1])


def told_of(telegram: Telegram) -> list[str]:
    return [*telegram.shown(ANN), *telegram.popped_up()]


def test_a_pause_keeps_what_is_written_and_works_it_off_afterwards_also_after_a_kill(
    home: Home, telegram: Telegram, model: Model
) -> None:
    home.env["HEARTHBOT_TURNS__QUEUE"] = "followup"
    home.approve(ANN, BOB)
    bot = home.start()
    telegram.says(ANN, "/pause")
    reads(telegram, ANN, "Paused.")
    for number in range(3):
        telegram.says(ANN, f"mine {number}")
        telegram.says(BOB, f"theirs {number}")
    until(lambda: not telegram.ask("pending"))
    until(lambda: home.ask_database("select count(*) from turns") == [(6,)])

    bot.kill()
    bot = home.start()
    until(bot.serving)
    asked = len(model.user_texts())
    telegram.says(ANN, "/resume")
    for chat, whose in ((ANN, "mine"), (BOB, "theirs")):
        reads(telegram, chat, f"You said: {whose} 2")

        assert answers(telegram, chat) == [f"You said: {whose} {number}" for number in range(3)]
    assert asked == 0
