"""How a command ends: exit codes, one message, and a traceback that goes to the log alone."""

from __future__ import annotations

import json
import os
from pathlib import Path
from subprocess import PIPE

import pytest
import structlog
import typer

from bot.cli.context import FAILED, Opened, exit_for, logged_apart, opened
from bot.settings.home import Home, prepare
from memory.records.errors import HomeBusy, SettingsWrong, StorageFull
from tests.fork_server import plain_env, start


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "home"
    monkeypatch.setenv("HEARTHBOT_HOME", str(path))
    monkeypatch.setenv("HEARTHBOT_TELEGRAM__TOKEN", "123456:SECRETSECRET")
    return path


def ended_by(error: BaseException) -> int:
    with pytest.raises(typer.Exit) as ended, exit_for(), opened(log_to_terminal=True):
        raise error
    return ended.value.exit_code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StorageFull("No space."), 1),
        (HomeBusy("Busy."), 1),
        (SettingsWrong("A key is wrong."), 2),
        (ExceptionGroup("", [ExceptionGroup("", [SettingsWrong("A key is wrong.")])]), 2),
    ],
)
def test_what_goes_wrong_on_purpose_is_said_in_its_own_words(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended_by(error) == code

    assert capsys.readouterr().err in {"No space.\n", "Busy.\n", "A key is wrong.\n"}


@pytest.mark.case("SE-13")
@pytest.mark.parametrize("grouped", [False, True])
def test_a_fault_is_one_sentence_and_the_log_has_the_traceback_without_secrets(
    home: Path, grouped: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = RuntimeError("https://api.example/bot123456:SECRETSECRET/getMe")

    code = ended_by(
        ExceptionGroup("tasks", [fault, StorageFull("No space.")]) if grouped else fault
    )

    said = capsys.readouterr().err
    logged = (home / "logs" / "hearthbot.log").read_text()
    assert code == 1
    assert said.count("\n") == 1
    assert "RuntimeError" in said
    assert str(home / "logs" / "hearthbot.log") in said
    assert "Traceback" in logged
    assert "api.example" in logged
    assert "SECRETSECRET" not in said + logged


def test_a_fault_without_a_log_file_is_told_on_the_terminal(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "logs" / "hearthbot.log").mkdir(parents=True)

    assert ended_by(RuntimeError("nobody foresaw this")) == 1

    assert "nobody foresaw this" in capsys.readouterr().err


def test_lines_of_a_home_inside_of_another_stay_there_and_its_fault_is_told_outside(
    home: Path, tmp_path: Path
) -> None:
    copy = Home(tmp_path / "copy")
    prepare(copy)
    log = structlog.get_logger("rehearsal")

    def rehearse() -> None:
        with exit_for(), opened(log_to_terminal=False) as outer:
            log.info("outside.before")
            inner = Opened(home=copy, settings=outer.settings, env=outer.env, digest=outer.digest)
            with logged_apart(inner):
                log.info("inside")
            log.info("outside.after")
            with logged_apart(inner):
                raise RuntimeError("nobody foresaw this")

    with pytest.raises(typer.Exit):
        rehearse()

    outside = [json.loads(line) for line in (home / "logs/hearthbot.log").read_text().splitlines()]
    inside = [json.loads(line) for line in copy.log_file.read_text().splitlines()]
    assert [line["event"] for line in outside] == ["outside.before", "outside.after", "crashed"]
    assert [line["event"] for line in inside] == ["inside"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_being_interrupted_is_no_fault(error: BaseException, home: Path) -> None:
    with pytest.raises(type(error)), exit_for(), opened(log_to_terminal=True):
        raise error

    assert "crashed" not in (home / "logs" / "hearthbot.log").read_text()


# --- output that nobody reads --------------------------------------------------------------------


def ended_unread(*words: str, typed: bytes = b"") -> tuple[int, bytes]:
    """A real process whose output nobody reads any more: its exit code and what it complains of."""
    read, write = os.pipe()
    os.close(read)
    try:
        env = plain_env(HEARTHBOT_HOME=os.environ["HEARTHBOT_HOME"])
        with start("bot", words, env=env, stdin=PIPE, stdout=write, stderr=PIPE) as one:
            _, complaint = one.communicate(typed, timeout=60)
    finally:
        os.close(write)
    return one.returncode, complaint


def test_a_conversation_whose_output_nobody_reads_any_more_ends_quietly(home: Path) -> None:
    code, complaint = ended_unread("chat", typed=b"/help\n")

    assert code == FAILED
    assert complaint.startswith(b"Hearthbot"), "which model answers"
    assert not any(word in complaint for word in (b"stopped", b"fault", b"Error"))
    assert "crash" not in (home / "logs" / "hearthbot.log").read_text()


def test_a_list_whose_output_nobody_reads_any_more_ends_quietly() -> None:
    assert ended_unread("skills", "list") == (FAILED, b"")


def test_another_pipe_that_breaks_is_a_fault(capfd: pytest.CaptureFixture[str]) -> None:
    assert ended_by(ExceptionGroup("tasks", [BrokenPipeError(32, "Broken pipe")])) == FAILED

    assert "BrokenPipeError" in capfd.readouterr().err
