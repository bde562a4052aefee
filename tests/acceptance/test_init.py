"""`hearthbot init` at a real terminal, against the stand-ins, as somebody new would use it."""

from __future__ import annotations

import stat
from collections.abc import Iterator

import pytest

from tests.acceptance.rig import TOKEN, Home, Model, StandIn, Telegram, until
from tests.acceptance.terminal import CTRL_C, ENTER, Terminal

KEY = "sk-canary-0123456789"
XOXB, XAPP = "xoxb-canary-1", "xapp-canary-1"
ANN = 4242


@pytest.fixture
def slack() -> Iterator[StandIn]:
    stand_in = StandIn("bot.lab.slack", "--token", XOXB, "--app-token", XAPP)
    yield stand_in
    stand_in.close()


@pytest.fixture
def fresh(bare_home: Home, telegram: Telegram, model: Model) -> Home:
    """Nothing is set but where the stand-ins are, which stand for the real addresses."""
    bare_home.env |= {
        "HEARTHBOT_TELEGRAM__BASE_URL": telegram.url,
        "HEARTHBOT_TELEGRAM__STREAMING": "false",
        "TZ": "Europe/Berlin",
    }
    return bare_home


def by_address(terminal: Terminal, model: Model, *, key: str = KEY) -> None:
    """Picks the stand-in as "another server"."""
    terminal.expect("Which one?")
    terminal.type(number_of(terminal, "another server") + ENTER)
    terminal.expect("Address")
    terminal.type(f"{model.url}/v1" + ENTER)
    terminal.expect("Its key")
    terminal.type(key + ENTER)
    terminal.expect("Which of its models?")
    terminal.type(ENTER)


def number_of(terminal: Terminal, words: str) -> str:
    """The number in front of the last line that holds these words."""
    lines = [line for line in terminal.text.splitlines() if words in line]
    return lines[-1].split()[0]


def written(home: Home) -> str:
    return (home.path / "config.toml").read_text()


def test_an_empty_home_leads_to_an_answered_message(
    fresh: Home, telegram: Telegram, model: Model
) -> None:
    with Terminal(fresh, "init") as terminal:
        by_address(terminal, model)
        terminal.expect("lab-model answered after")
        terminal.expect("https://t.me/BotFather")
        terminal.expect("Token")
        terminal.type(TOKEN + ENTER)
        terminal.expect("https://t.me/hearth_lab_bot")
        terminal.expect("Waiting for your message")
        telegram.ask("message", chat_id=ANN, text="hello there", first_name="Ann")
        terminal.expect(f"telegram:{ANN}. Is that you?")
        terminal.type(ENTER)
        terminal.expect("Do you want it in Slack")
        terminal.type(ENTER)
        terminal.expect("What should it call you?")
        terminal.type("Annie" + ENTER)
        terminal.expect("[Europe/Berlin]")
        terminal.type("Lisbon" + ENTER)
        terminal.expect("Language?")
        terminal.type(ENTER)
        terminal.expect("Save this in")
        terminal.type(ENTER)
        terminal.expect("Start it now?")
        terminal.type(ENTER)
        until(lambda: "You said: hello there" in telegram.shown(ANN))
        terminal.type(CTRL_C)
        assert terminal.ends() == 0
        print(terminal.text)
        shown = terminal.raw

    people = fresh.ask_database("select role, name, time_zone from people")
    assert people == [("owner", "Annie", "Europe/Lisbon")]
    assert telegram.shown(ANN) == ["You said: hello there"]
    assert f'token = "{TOKEN}"' in written(fresh)
    assert stat.S_IMODE((fresh.path / "config.toml").stat().st_mode) == 0o600
    for secret in (TOKEN, KEY):
        assert secret not in shown + fresh.log
