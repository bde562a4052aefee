"""`hearthbot init` at a real terminal, against the stand-ins, as somebody new would use it."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.doctor.live_slack import wanted_scopes
from tests.acceptance.rig import TOKEN, Home, Model, StandIn, Telegram, until
from tests.acceptance.terminal import CTRL_C, CTRL_D, ENTER, Terminal
from tests.checkout import ROOT

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


# --- what does not work is said, and nothing of it is saved ---------------------------------------


def skip_model(terminal: Terminal) -> None:
    """Takes the embedded model, which is always there."""
    terminal.expect("Which one?")
    terminal.type(number_of(terminal, "small embedded model") + ENTER)
    terminal.expect("answered after")


def skip_to_the_end(terminal: Terminal) -> None:
    """Enter, from Slack on."""
    for question in ("Do you want it in Slack", "Language?"):
        terminal.expect(question)
        terminal.type(ENTER)


@pytest.mark.case("CF-01")
@pytest.mark.parametrize(
    ("at", "keys"), [("Which one?", CTRL_C), ("Token", CTRL_D), ("Save this in", CTRL_C)]
)
def test_leaving_early_leaves_everything_as_it_was(fresh: Home, keys: str, at: str) -> None:
    with Terminal(fresh, "init") as terminal:
        if at != "Which one?":
            skip_model(terminal)
        if at == "Save this in":
            terminal.expect("Token")
            terminal.type(ENTER)
            skip_to_the_end(terminal)
        terminal.expect(at)
        until(lambda: terminal.text.endswith((" ", ": ")))
        terminal.type(keys)
        terminal.expect("Nothing was changed.")
        assert terminal.ends() == 1
        assert terminal.modes() == terminal.modes_before

    assert not fresh.path.exists()


def test_ctrl_c_ends_it_in_the_middle_of_a_question_to_a_model(fresh: Home, model: Model) -> None:
    model.ask("fault", method="chat", action={"kind": "hold", "seconds": 60, "after": False})
    with Terminal(fresh, "init") as terminal:
        by_address(terminal, model)
        terminal.expect("Asking it one question")
        until(lambda: model.received("chat"))
        terminal.type(CTRL_C)
        terminal.expect("Nothing was changed.")
        assert terminal.ends() == 1
        assert terminal.modes() == terminal.modes_before

    assert not fresh.path.exists()


def test_wrong_answers_are_told_one_by_one(fresh: Home, model: Model) -> None:
    model.ask("named_fault", kind="401", times=1)
    with Terminal(fresh, "init") as terminal:
        by_address(terminal, model)
        terminal.expect("did not accept the API key")
        terminal.expect("Try another one?")
        terminal.type(ENTER)
        by_address(terminal, model)
        terminal.expect("lab-model answered after")
        terminal.expect("Token")
        terminal.type("not a token" + ENTER)
        terminal.expect("one looks like 123456:ABC-DEF")
        terminal.expect("Token")
        terminal.type("123456:WRONG" + ENTER)
        terminal.expect("Telegram does not accept the token")
        terminal.expect("Token")
        terminal.type(ENTER)
        skip_to_the_end(terminal)
        terminal.expect("Save this in")
        terminal.type(ENTER)
        terminal.expect("Start it now?")
        terminal.type("n" + ENTER)
        assert terminal.ends() == 0
        for secret in (KEY, "WRONG"):
            assert secret not in terminal.raw

    assert "token" not in written(fresh)
    assert KEY in written(fresh)


def test_an_address_without_its_version_is_mended(fresh: Home, model: Model) -> None:
    with Terminal(fresh, "init") as terminal:
        terminal.expect("Which one?")
        terminal.type(number_of(terminal, "another server") + ENTER)
        terminal.expect("Address")
        terminal.type(f"{model.url}/" + ENTER)
        terminal.expect("Its key")
        terminal.type(ENTER)
        terminal.expect("Take that address?")
        terminal.type("n" + ENTER)
        terminal.expect("Name of the model")
        terminal.type("lab-model" + ENTER)
        terminal.expect("It answers at")
        terminal.expect("Take that address?")
        terminal.type(ENTER)
        terminal.expect("Token")
        terminal.type(ENTER)
        skip_to_the_end(terminal)
        terminal.expect("Save this in")
        terminal.type(ENTER)
        terminal.expect("Start it now?")
        terminal.type("n" + ENTER)
        assert terminal.ends() == 0

    assert f'api_base = "{model.url}/v1"' in written(fresh)


def test_without_a_network_one_can_go_on(fresh: Home, model: Model) -> None:
    fresh.env["HEARTHBOT_TELEGRAM__BASE_URL"] = "http://127.0.0.1:9"
    with Terminal(fresh, "init") as terminal:
        terminal.expect("Which one?")
        terminal.type(number_of(terminal, "another server") + ENTER)
        terminal.expect("Address")
        terminal.type("http://127.0.0.1:9/v1" + ENTER)
        terminal.expect("Its key")
        terminal.type(ENTER)
        terminal.expect("Name of the model")
        terminal.type("some-model" + ENTER)
        terminal.expect("127.0.0.1:9 cannot be reached")
        terminal.expect("Try another one?")
        terminal.type("n" + ENTER)
        terminal.expect("Token")
        terminal.type(TOKEN + ENTER)
        terminal.expect("Telegram cannot be reached at 127.0.0.1:9 (no connection)")
        terminal.expect("Token")
        terminal.type(ENTER)
        skip_to_the_end(terminal)
        terminal.expect("Save this in")
        terminal.type("n" + ENTER)
        terminal.expect("Nothing was changed.")
        assert terminal.ends() == 1
        assert TOKEN.partition(":")[2] not in terminal.raw


def test_a_stranger_who_writes_first_is_passed_over(fresh: Home, telegram: Telegram) -> None:
    with Terminal(fresh, "init") as terminal:
        skip_model(terminal)
        terminal.expect("Token")
        terminal.type(TOKEN + ENTER)
        terminal.expect("Waiting for your message")
        telegram.ask("message", chat_id=666, text="let me in", first_name="Mal\x1b[31mlory")
        terminal.expect("Mallory wrote, telegram:666. Is that you?")
        terminal.type("n" + ENTER)
        terminal.expect("Waiting for your message")
        telegram.ask("message", chat_id=ANN, text="hello", first_name="Ann")
        terminal.expect(f"telegram:{ANN}. Is that you?")
        terminal.type(ENTER)
        terminal.expect("Do you want it in Slack")
        terminal.type(ENTER)
        for question in ("call you?", "time zone", "Language?", "Save this in"):
            terminal.expect(question)
            terminal.type(ENTER)
        terminal.expect("Start it now?")
        terminal.type("n" + ENTER)
        assert terminal.ends() == 0

    assert fresh.ask_database("select address from addresses") == [(f"telegram:{ANN}",)]
    assert fresh.ask_database("select name, time_zone from people") == [("Ann", "Europe/Berlin")]
    assert fresh.ask_database("select count(*) from inbox") == [(0,)]


# --- Slack ---------------------------------------------------------------------------------------


def test_slack_is_set_up_from_its_manifest_and_answers(
    fresh: Home, slack: StandIn, model: Model
) -> None:
    fresh.env["HEARTHBOT_SLACK__BASE_URL"] = f"{slack.url}/api/"
    slack.ask("set", bot_scopes=["chat:write"])
    with Terminal(fresh, "init") as terminal:
        by_address(terminal, model)
        terminal.expect("Token")
        terminal.type(ENTER)
        terminal.expect("Do you want it in Slack")
        terminal.type("y" + ENTER)
        terminal.expect("https://api.slack.com/apps")
        terminal.expect("slack-manifest.yaml")
        terminal.expect("Bot token")
        terminal.type("xoxb-wrong" + ENTER)
        terminal.expect("Slack does not accept the bot token")
        terminal.expect("Bot token")
        terminal.type(XOXB + ENTER)
        terminal.expect("lacks the scopes app_mentions:read")
        slack.ask("set", bot_scopes=sorted(wanted_scopes(ROOT / "slack-manifest.yaml")))
        terminal.expect("Bot token")
        terminal.type(XOXB + ENTER)
        terminal.expect("This is @")
        terminal.expect("connections:write")
        terminal.expect("App-level token")
        terminal.type(XAPP + ENTER)
        terminal.expect("would open a socket")
        terminal.expect("Waiting for your message")
        until(lambda: slack.ask("sockets"))
        slack.ask("post", text="hello there", user="U0ANN")
        terminal.expect("Is that you?")
        terminal.type(ENTER)
        for question in ("call you?", "time zone", "Language?", "Save this in"):
            terminal.expect(question)
            terminal.type(ENTER)
        terminal.expect("Start it now?")
        terminal.type("n" + ENTER)
        assert terminal.ends() == 0
        for secret in (XOXB, XAPP):
            assert secret not in terminal.raw

    ((address, role),) = fresh.ask_database(
        "select address, role from addresses join people on people.id = person_id"
    )
    assert (role, address.startswith("slack:"), address.endswith(":U0ANN")) == ("owner", True, True)
    assert f'bot_token = "{XOXB}"' in written(fresh)
    assert f'app_token = "{XAPP}"' in written(fresh)


# --- again ---------------------------------------------------------------------------------------

CONFIG = f"""\
# my notes
[telegram]
token   =  '{TOKEN}'   # of March

[turns]  # odd
queue='collect'
"""


@pytest.mark.case("CF-01")
def test_run_again_it_shows_what_is_set_and_enter_keeps_it(
    fresh: Home, model: Model, telegram: Telegram
) -> None:
    fresh.path.mkdir()
    file = fresh.path / "config.toml"
    file.write_text(CONFIG + f'[llm]\nmodel = "m"\napi_base = "{model.url}/v1"\n')
    before = file.read_bytes()
    fresh.approve(ANN)
    with Terminal(fresh, "init") as terminal:
        terminal.expect("m, as it is now")
        terminal.expect("Which one?")
        terminal.type(ENTER)
        terminal.expect("m answered after")
        terminal.expect("This is Hearth")
        terminal.expect("Enter keeps the one that is set")
        terminal.type(ENTER)
        terminal.expect(f"The owner there is telegram:{ANN}.")
        terminal.expect("Do you want it in Slack")
        terminal.type(ENTER)
        for question in ("call you?", "time zone", "Language?"):
            terminal.expect(question)
            terminal.type(ENTER)
        terminal.expect("Nothing new")
        terminal.expect("Start it now?")
        terminal.type("n" + ENTER)
        assert terminal.ends() == 0
        assert TOKEN.partition(":")[2] not in terminal.raw

    assert file.read_bytes() == before
    assert not (fresh.path / "config.toml.bak").exists()


@pytest.mark.case("CF-01")
def test_a_change_touches_its_own_line_and_secrets_of_the_environment_stay_there(
    fresh: Home, model: Model
) -> None:
    fresh.path.mkdir()
    (fresh.path / "config.toml").write_text(CONFIG)
    fresh.env |= {
        "HEARTHBOT_LLM__MODEL": "openai/lab-model",
        "HEARTHBOT_LLM__API_BASE": f"{model.url}/v1",
        "HEARTHBOT_LLM__API_KEY": KEY,
    }
    with Terminal(fresh, "init") as terminal:
        terminal.expect("HEARTHBOT_LLM__MODEL")
        terminal.expect("wins over config.toml")
        terminal.expect("lab-model answered after")
        terminal.expect("Enter keeps the one that is set")
        terminal.type(ENTER)
        terminal.expect("Waiting for your message")
        terminal.type(ENTER)
        terminal.expect("Do you want it in Slack")
        terminal.type(ENTER)
        terminal.expect("Language?")
        terminal.type("deutsch" + ENTER)
        terminal.expect('prompt.language = "German"')
        terminal.expect("Save this in")
        terminal.type(ENTER)
        terminal.expect("Start it now?")
        terminal.type("n" + ENTER)
        assert terminal.ends() == 0

    assert written(fresh) == CONFIG + '\n[prompt]\nlanguage = "German"\n'
    assert (fresh.path / "config.toml.bak").read_text() == CONFIG
    files = [file.read_bytes() for file in fresh.path.rglob("*") if file.is_file()]
    assert not any(KEY.encode() in content for content in files)


def test_beside_a_running_bot_it_says_that_a_restart_is_due(home: Home, model: Model) -> None:
    home.approve(ANN)
    running = home.start()
    until(running.serving)
    with Terminal(home, "init") as terminal:
        terminal.expect("lab-model answered after")
        terminal.expect("is from the environment")
        terminal.expect(f"The owner there is telegram:{ANN}.")
        terminal.expect("Do you want it in Slack")
        terminal.type(ENTER)
        terminal.expect("/timezone")
        terminal.expect("Language?")
        terminal.type("French" + ENTER)
        terminal.expect("Save this in")
        terminal.type(ENTER)
        terminal.expect("restart it for the new settings")
        assert terminal.ends() == 0

    assert "restart is due" in home.run("status").stdout
    assert running.end() == 0


# --- without questions ----------------------------------------------------------------------------


def test_yes_tests_what_the_environment_sets_and_asks_nothing(home: Home) -> None:
    done = home.run("init", "--yes")

    assert done.returncode == 0, done.stderr
    assert "Telegram: @hearth_lab_bot" in done.stdout
    assert "lab-model answered" in done.stdout
    assert "-m bot run" in done.stdout or "hearthbot run" in done.stdout
    assert (home.path / "workspace" / "HEARTBEAT.md").is_file()
    assert stat.S_IMODE((home.path / "config.toml").stat().st_mode) == 0o600
    assert all(secret not in written(home) + done.stdout for secret in (TOKEN, "lab-key"))
    assert home.run("init", "--yes").returncode == 0


def test_yes_names_what_is_missing(bare_home: Home) -> None:
    done = bare_home.run("init", "--yes")

    assert done.returncode == 2
    assert "HEARTHBOT_TELEGRAM__TOKEN" in done.stderr
    assert "HEARTHBOT_SLACK__BOT_TOKEN" in done.stderr
    assert not bare_home.path.exists()


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ({"HEARTHBOT_TELEGRAM__TOKEN": "1:WRONG"}, 2, "does not accept the token"),
        ({"HEARTHBOT_LLM__API_BASE": "http://127.0.0.1:9/v1"}, 1, "cannot be reached"),
        ({"HEARTHBOT_TURNS__PARALEL": "3"}, 2, "PARALEL"),
    ],
)
def test_yes_saves_nothing_that_does_not_work(
    home: Home, settings: dict[str, str], code: int, words: str
) -> None:
    home.env |= settings

    done = home.run("init", "--yes")

    assert done.returncode == code
    assert words in done.stderr
    assert not home.path.exists()


def test_without_a_terminal_it_names_the_other_way(bare_home: Home) -> None:
    done = bare_home.run("init")

    assert done.returncode == 2
    assert "hearthbot init --yes" in done.stderr
    assert not bare_home.path.exists()


# --- completion -----------------------------------------------------------------------------------


def test_completion_knows_the_commands(bare_home: Home) -> None:
    program = Path(sys.executable).with_name("hearthbot")
    asked = {
        "_HEARTHBOT_COMPLETE": "complete_bash",
        "COMP_WORDS": "hearthbot do",
        "COMP_CWORD": "1",
    }

    done = subprocess.run(
        [program], env={**bare_home.env, **asked}, capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["doctor"]
