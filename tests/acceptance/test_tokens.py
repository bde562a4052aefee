"""A token that a platform refuses, under the real program: the start ends with a sentence, later it
is waited out and told by the other channel; and what ends the bot stands in its log file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.rig import Home, Running, Slack, Telegram, until
from tests.acceptance.test_slack_kills import free_address
from tests.acceptance.tool_words import reads

ANN, SLACK_ANN = 7, "U0ANN"
UNAUTHORIZED = {
    "kind": "answer",
    "status": 401,
    "body": {"ok": False, "error_code": 401, "description": "Unauthorized"},
}


def serving_both(home: Home, telegram: Telegram, slack: Slack) -> Running:
    """A bot whose owner has written to it on both platforms."""
    home.serve_slack(slack)
    home.approve(ANN)
    running = home.start()
    until(running.serving)
    until(lambda: slack.ask("sockets"))
    telegram.says(ANN, "/link")
    code = re.search(r"/link ([A-Z0-9]{8})", reads(telegram, ANN, "/link"))
    assert code is not None
    in_slack(slack, f"/link {code[1]}")
    slack_reads(slack, "belongs to you too")
    in_slack(slack, "hello")
    slack_reads(slack, "You said: hello")
    return running


def in_slack(slack: Slack, text: str) -> None:
    slack.ask("post", text=text, user=SLACK_ANN)


def slack_reads(slack: Slack, words: str) -> str:
    """The last of the bot's posts in the owner's direct messages with these words, once it is
    there."""
    direct = slack.ask("direct", user=SLACK_ANN)

    def found() -> list[str]:
        posts = slack.ask("chat", channel=direct)
        return [post["text"] for post in posts if post["is_bot"] and words in post["text"]]

    until(found, about=lambda: str(slack.ask("chat", channel=direct)))
    return found()[-1]


def notices(slack: Slack) -> list[str]:
    posts = slack.ask("chat", channel=slack.ask("direct", user=SLACK_ANN))
    return [p["text"] for p in posts if p["is_bot"] and "does not accept the token" in p["text"]]


def status(home: Home) -> str:
    return "\n".join(json.loads(home.run("status", "--json").stdout)["lines"])


def process_found(home: Home) -> dict[str, Any]:
    """What doctor finds out about the running bot."""
    checks = json.loads(home.run("doctor", "--json").stdout)["checks"]
    (found,) = [one for one in checks if one["name"] == "process"]
    return dict(found)


# --- Telegram ------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 404])
def test_a_stray_refusal_of_a_poll_ends_nothing(
    home: Home, telegram: Telegram, status: int
) -> None:
    home.approve(ANN)
    running = home.start()
    until(running.serving)
    body = {"ok": False, "error_code": status, "description": "Unauthorized"}
    answer = {"kind": "answer", "status": status, "body": body}
    telegram.ask("fault", method="getUpdates", action=answer, times=2)

    telegram.says(ANN, "hello")
    telegram.says(ANN, "again")
    reads(telegram, ANN, "You said: again")

    assert running.said().count("telegram.token_refused") == 2, "told once, and that it is over"
    assert running.end() == 0


def test_a_token_that_is_refused_for_long_is_told_elsewhere_and_waited_out(
    home: Home, telegram: Telegram, slack: Slack
) -> None:
    running = serving_both(home, telegram, slack)
    telegram.ask("fault", method="getUpdates", action=UNAUTHORIZED, times=None)
    telegram.says(ANN, "/help")
    notice = slack_reads(slack, "does not accept the token")
    shown = status(home)
    in_slack(slack, "/status")
    elsewhere = slack_reads(slack, "up ")
    examined = process_found(home)
    telegram.says(ANN, "still there?")
    telegram.behave()
    reads(telegram, ANN, "You said: still there?")
    over = slack_reads(slack, "accepts my token again")

    print("\n" + notice + "\n" + over + "\n" + json.dumps(examined))
    assert "I receive nothing from Telegram" in notice
    assert "@BotFather" in notice
    for told in (shown, elsewhere, examined["text"]):
        assert "No messages from Telegram for" in told
        assert "does not accept my token" in told
    assert examined["level"] == "warn"
    assert len(notices(slack)) == 1, "told once"
    assert "No messages from" not in status(home)
    assert running.end() == 0


def test_a_webhook_that_is_refused_after_the_bot_was_known_is_set_later_and_anew(
    home: Home, telegram: Telegram
) -> None:
    listen, secret = free_address(), "a-secret-of-the-webhook"
    home.approve(ANN)
    home.env |= {
        "HEARTHBOT_TELEGRAM__MODE": "webhook",
        "HEARTHBOT_TELEGRAM__WEBHOOK_URL": "https://bot.example/tg",
        "HEARTHBOT_TELEGRAM__WEBHOOK_LISTEN": listen,
        "HEARTHBOT_TELEGRAM__WEBHOOK_SECRET": secret,
    }
    telegram.ask("fault", method="setWebhook", action=UNAUTHORIZED, times=2)
    running = home.start()
    until(lambda: telegram.received("setWebhook") == 3)
    telegram.ask("fault", method="sendMessage", action=UNAUTHORIZED, times=1)
    ann = {"id": ANN, "is_bot": False, "first_name": "Ann"}
    message = {"message_id": 1, "date": 10, "chat": {**ann, "type": "private"}, "from": ann}
    posted = httpx.post(
        f"http://{listen}/tg",
        json={"update_id": 1, "message": {**message, "text": "/help"}},
        headers={"X-Telegram-Bot-Api-Secret-Token": secret},
        trust_env=False,
    )

    until(lambda: telegram.received("setWebhook") == 4)
    assert posted.status_code == 200
    assert running.end() == 0


# --- Slack ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["invalid_auth", "account_inactive", "token_revoked"])
def test_a_socket_that_slack_refuses_to_open_again_is_waited_out(
    home: Home, telegram: Telegram, slack: Slack, word: str
) -> None:
    running = serving_both(home, telegram, slack)
    refusal = {"kind": "answer", "status": 200, "body": {"ok": False, "error": word}}
    slack.ask("fault", method="apps.connections.open", action=refusal, times=None)
    slack.ask("cut")
    notice = reads(telegram, ANN, "does not accept the token")
    telegram.says(ANN, "/status")
    shown = reads(telegram, ANN, "Channels: ")
    in_slack(slack, "still there?")
    slack.behave()
    slack_reads(slack, "You said: still there?")
    reads(telegram, ANN, "accepts my token again")

    assert "I receive nothing from Slack" in notice
    assert f"(apps.connections.open: {word})" in shown
    assert running.end() == 0


def test_a_bot_token_that_slack_takes_back_is_noticed_by_the_next_reply(
    home: Home, telegram: Telegram, slack: Slack
) -> None:
    running = serving_both(home, telegram, slack)
    slack.ask("set", token_error="account_inactive")
    in_slack(slack, "still there?")
    reads(telegram, ANN, "does not accept the token")
    shown = status(home)
    slack.ask("set", token_error=None)
    reads(telegram, ANN, "accepts my token again")

    assert "(auth.test: account_inactive)" in shown
    assert running.end() == 0


# --- at the start --------------------------------------------------------------------------------


def test_a_platform_that_refuses_the_start_beside_another_is_tried_again(
    home: Home, telegram: Telegram, slack: Slack
) -> None:
    running = serving_both(home, telegram, slack)
    running.kill()
    telegram.ask("fault", method="getMe", action=UNAUTHORIZED, times=None)
    running = home.start()
    slack_reads(slack, "does not accept the token")

    assert "No messages from Telegram for" in status(home)
    assert running.end() == 0


def test_one_stray_refusal_of_the_start_ends_nothing(home: Home, telegram: Telegram) -> None:
    home.approve(ANN)
    telegram.ask("fault", method="getMe", action=UNAUTHORIZED, times=1)
    running = home.start()
    telegram.says(ANN, "hello")
    reads(telegram, ANN, "You said: hello")

    assert running.end() == 0


# --- the last words ------------------------------------------------------------------------------


def last_line(home: Home) -> dict[str, Any]:
    return dict(json.loads(home.log.splitlines()[-1]))


def wrong_token(home: Home) -> str:
    home.env["HEARTHBOT_TELEGRAM__TOKEN"] = "123456:WRONGWRONG"
    return "@BotFather"


def wrong_settings(home: Home) -> str:
    (home.path / "config.toml").write_text("[telegram]\nallow_form = [5]\n")
    return "allow_form"


def damaged_database(home: Home) -> str:
    home.database.write_bytes(b"not a database" * 1000)
    return "cannot be used"


def nothing_set_up(home: Home) -> str:
    home.env.pop("HEARTHBOT_TELEGRAM__TOKEN")
    return "No channel is configured"


@pytest.mark.parametrize("spoil", [wrong_token, wrong_settings, damaged_database, nothing_set_up])
def test_what_ends_the_start_stands_in_the_log_file(home: Home, spoil: Any) -> None:
    home.approve(ANN)
    words = spoil(home)

    done = home.run("run")

    assert done.returncode in {1, 2}
    assert words in done.stderr
    assert last_line(home)["event"] == "bot.ended"
    assert words in last_line(home)["why"]
    assert "WRONGWRONG" not in home.log


def test_the_unit_starts_it_again_but_for_wrong_settings_and_never_gives_up() -> None:
    unit = (Path(__file__).parents[2] / "docs" / "hearthbot.service").read_text("utf-8")
    options = dict(line.split("=", 1) for line in unit.splitlines() if re.match(r"\w+=", line))

    assert options["Restart"] == "always"
    assert options["RestartPreventExitStatus"] == "2"
    assert options["StartLimitIntervalSec"] == "0", "no number of failures is the last"
    assert int(options["RestartSec"]) >= 10
    assert int(options["RestartMaxDelaySec"]) > int(options["RestartSec"])
