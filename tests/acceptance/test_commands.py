"""The other commands of the command line: help, people, status, the lab; and what stays secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.rig import TOKEN, Home, Model, Telegram, until
from tests.acceptance.terminal import Terminal


@pytest.mark.parametrize("command", ["", "access approve"])
def test_every_command_explains_itself(bare_home: Home, command: str) -> None:
    done = bare_home.run(*command.split(), "--help")

    assert done.returncode == 0
    assert "Usage: " in done.stdout
    assert done.stderr == ""
    assert not bare_home.path.exists()


@pytest.mark.parametrize(
    "wrong",
    ["fly", "access approve telegram:1 --role king"],
)
def test_wrong_usage_has_its_own_exit_code(bare_home: Home, wrong: str) -> None:
    done = bare_home.run(*wrong.split())

    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr


def test_the_version_is_said(bare_home: Home) -> None:
    assert bare_home.run("--version").stdout.startswith("hearthbot ")


def test_people_are_let_in_and_shut_out(home: Home, telegram: Telegram) -> None:
    running = home.start()
    until(running.serving)

    first = home.run("access", "approve", "telegram:7")
    second = home.run("access", "approve", "telegram:8", "--json")
    denied = home.run("access", "deny", "telegram:9")
    unknown = home.run("access", "approve", "NOSUCHCODE")
    listed = json.loads(home.run("access", "list", "--json").stdout)
    plain = home.run("access", "list").stdout

    assert first.stdout == "telegram:7 is now owner.\n"
    assert json.loads(second.stdout)["address"] == "telegram:8"
    assert denied.returncode == 0
    assert unknown.returncode == 1
    assert unknown.stdout == ""
    assert "Traceback" not in unknown.stderr
    assert {p["role"]: p["addresses"] for p in listed["people"]} == {
        "owner": ["telegram:7"],
        "member": ["telegram:8"],
    }
    assert "telegram:9" in listed["denied"]
    assert plain.splitlines()[0] == "policy\tpairing"
    assert all("\t" in line for line in plain.splitlines())
    telegram.says(8, "hello")
    until(lambda: telegram.shown(8) == ["You said: hello"])
    assert running.end() == 0


def test_people_can_be_let_in_although_the_model_is_not_set_up(home: Home) -> None:
    home.env |= {"HEARTHBOT_LLM__API_KEY": "", "HEARTHBOT_LLM__API_BASE": ""}

    assert home.run("access", "approve", "telegram:7").returncode == 0


@pytest.mark.case("CF-07")
def test_status_needs_a_running_bot_and_says_when_a_restart_is_due(home: Home) -> None:
    alone = home.run("status")
    running = home.start()
    until(running.serving)
    fresh = home.run("status", "--json")
    (home.path / "config.toml").write_text('[turns]\nqueue = "collect"\n')
    changed = home.run("status")

    assert alone.returncode == 1
    assert alone.stderr == "No bot is running on this home.\n"
    assert fresh.returncode == 0
    assert not any("restart" in line for line in json.loads(fresh.stdout)["lines"])
    assert "a restart is due" in changed.stdout
    assert running.end() == 0


@pytest.mark.case("SE-13", "CF-01")
def test_no_secret_is_in_any_file_or_line(home: Home, telegram: Telegram) -> None:
    home.env["HEARTHBOT_LOGGING__LEVEL"] = "debug"
    home.approve(7)
    bad = {"kind": "answer", "status": 500, "body": {"ok": False}}
    telegram.ask("fault", method="getUpdates", action=bad)
    telegram.ask("fault", method="sendMessage", action={"kind": "drop"})
    telegram.says(7, "hello")
    running = home.start()
    until(lambda: telegram.shown(7))
    command_line = Path(f"/proc/{running.pid}/cmdline").read_bytes().decode()
    assert running.end() == 0

    files = [file for file in home.path.rglob("*") if file.is_file()]
    written = [file.read_bytes() for file in files] + [running.said().encode()]
    for secret in (TOKEN, TOKEN.partition(":")[2], "lab-key"):
        assert not any(secret.encode() in content for content in written)
        assert secret not in command_line
    assert all(file.stat().st_mode & 0o077 == 0 for file in files if "skills" not in file.parts)


def test_the_lab_rehearses_without_touching_the_home(bare_home: Home) -> None:
    bare_home.path.mkdir()
    (bare_home.path / "config.toml").write_text('[turns]\nqueue = "followup"\n')

    said = 'hello\n!call list_dir {"path": "."}\n/status\n/logs 200\n/quit\nmore\n'
    done = bare_home.run("lab", typed=said)

    assert done.returncode == 0, done.stderr
    assert "You said: hello" in done.stdout
    assert "more" not in done.stdout
    assert "HEARTBEAT.md (" in done.stdout
    assert "Channels: console, telegram" in done.stdout
    assert "bot.started" in done.stdout, "the lab's own log"
    assert (bare_home.path / "logs" / "hearthbot.log").read_text() == ""
    assert not bare_home.database.exists()


def test_hearthbot_alone_with_a_token_serves(home: Home, telegram: Telegram) -> None:
    home.approve(7)
    telegram.says(7, "hello")
    with Terminal(home) as terminal:
        terminal.expect("Model: lab-model.")
        terminal.expect("Ctrl-C stops.")
        until(lambda: telegram.shown(7))
        terminal.type("\x03")

        assert terminal.ends() == 0
        assert terminal.modes() == terminal.modes_before


def test_a_message_that_could_not_be_answered_ends_with_one(home: Home, model: Model) -> None:
    model.ask("named_fault", kind="401", times=None)

    failed = home.run("chat", "-m", "hello")
    model.ask("clear_faults")
    answered = home.run("chat", "-m", "hello again")

    assert (failed.returncode, answered.returncode) == (1, 0)
    assert "does not accept my key" in failed.stdout
    assert "You said:" in answered.stdout
