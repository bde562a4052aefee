"""Troubles that pass: the bot says so, keeps what it has, goes on by itself (promises P4, P5)."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bot.inbox.full_disk import DISK_FULL
from tests.acceptance.rig import Home, Model, Running, Telegram, until
from tests.thorough import rounds

COMMANDS = (
    "status",
    "chat -m hello",
    "schedule add tomorrow tea --yes",
    "schedule list",
    "memory list",
    "usage",
    "access list",
    "sessions list",
    "skills list",
    "model list",
)
"""Commands beside the bot, some that read and some that store."""

CPU_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_s(running: Running) -> float:
    """CPU seconds of the process so far."""
    fields = Path(f"/proc/{running.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CPU_TICKS_A_SECOND


def does_not_spin(running: Running) -> None:
    """Waiting costs next to nothing: far less than a loop without pauses would take."""
    before = cpu_s(running)
    time.sleep(2)
    used_s = cpu_s(running) - before
    assert used_s < 1.0, f"{used_s} s of CPU in 2 s"


def ends_well(running: Running) -> None:
    assert running.end() == 0
    assert "Traceback" not in running.said()


# --- the model -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code", "owner_reads"),
    [(401, "invalid_api_key", "key"), (404, "model_not_found", "lab-model")],
)
def test_a_model_that_refuses_costs_a_notice_not_the_bot(
    home: Home, telegram: Telegram, model: Model, status: int, code: str, owner_reads: str
) -> None:
    body = {"error": {"message": f"refused: lab-model {code}", "type": "x", "code": code}}
    refusal = {"kind": "answer", "status": status, "body": body}
    home.approve(7)
    model.ask("fault", method="chat", action=refusal)
    telegram.says(7, "hello")
    running = home.start()

    (notice,) = until(lambda: telegram.shown(7))
    telegram.says(7, "and now")
    until(lambda: len(telegram.shown(7)) == 2)

    print("\n" + notice)
    assert owner_reads in notice
    assert telegram.shown(7)[1].startswith("You said: ")
    ends_well(running)


# --- a bot that hangs ----------------------------------------------------------------------------


@pytest.mark.slow
def test_commands_beside_a_bot_that_hangs_say_so_and_end(home: Home, telegram: Telegram) -> None:
    home.approve(7)
    running = home.start()
    until(running.serving)
    running.process.send_signal(signal.SIGSTOP)
    try:
        for command in ("status", "usage", "memory list", "schedule list", "access list"):
            done = home.run(*command.split())

            assert done.returncode == 1, command
            assert "not responding: no answer for 5 s" in done.stderr
            assert f"kill -9 {running.pid}" in done.stderr
            assert "Traceback" not in done.stderr
        assert home.run("access", "approve", "telegram:9").returncode == 1
        doctor = home.run("doctor", "--offline")
    finally:
        running.process.send_signal(signal.SIGCONT)

    assert doctor.returncode == 1
    assert f"kill -9 {running.pid}" in doctor.stdout
    assert home.run("status").returncode == 0
    assert "telegram:9" not in home.run("access", "list").stdout, "nothing is done afterwards"
    ends_well(running)


def test_a_home_with_a_long_path_is_found_whatever_the_temporary_folder(
    telegram: Telegram, model: Model, tmp_path: Path
) -> None:
    home = Home(tmp_path / ("d" * 60) / ("e" * 60))
    home.path.parent.mkdir(parents=True)
    temporary = [tmp_path / "one", tmp_path / "other"]
    for folder in temporary:
        folder.mkdir()
    home.serve_with(telegram, model, TMPDIR=str(temporary[0]))
    elsewhere = {"TMPDIR": str(temporary[1])}
    try:
        running = home.start()
        until(running.serving)

        assert "up " in home.run("status", env=elsewhere).stdout
        assert "a bot runs on this home" in home.run("doctor", "--offline", env=elsewhere).stdout
        running.kill()
        assert "No bot is running" in home.run("status").stderr
        again = home.start()
        until(again.serving)
        ends_well(again)
    finally:
        home.close()

    assert [list(folder.glob("hearthbot*")) for folder in temporary] == [[], []]
    assert not list((home.path / "data").glob("*.sock"))


# --- the network ---------------------------------------------------------------------------------


def test_being_offline_is_told_once_and_costs_no_cpu(home: Home) -> None:
    home.env["HEARTHBOT_TELEGRAM__BASE_URL"] = "http://127.0.0.1:9"
    running = home.start()
    until(lambda: "telegram.unreachable" in running.said())

    does_not_spin(running)

    assert running.said().count("telegram.unreachable") == 1
    ends_well(running)


# --- the database --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [1, rounds(6, 20)])
def test_a_locked_database_delays_and_loses_nothing(
    home: Home, telegram: Telegram, seconds: int
) -> None:
    home.approve(7)
    running = home.start()
    until(running.serving)

    with closing(sqlite3.connect(home.database, isolation_level=None)) as other:
        other.execute("begin immediate")
        for number in range(3):
            telegram.says(7, f"message {number}")
        ends = time.monotonic() + seconds
        does_not_spin(running)
        time.sleep(max(0.0, ends - time.monotonic()))
        other.execute("rollback")
    until(lambda: len(telegram.shown(7)) >= 3)

    assert telegram.shown(7) == [f"You said: message {number}" for number in range(3)]
    ends_well(running)


def test_a_database_that_is_locked_at_the_start_is_named(home: Home) -> None:
    home.approve(7)
    with closing(sqlite3.connect(home.database, isolation_level=None)) as other:
        other.execute("begin immediate")

        done = home.run("run")

    assert done.returncode == 1
    assert "holds the write lock" in done.stderr
    assert "Traceback" not in done.stderr


# --- the disk ------------------------------------------------------------------------------------


@contextmanager
def small_disk(folder: Path, *, size: str) -> Iterator[None]:
    folder.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("this machine lets us mount nothing")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def answers(telegram: Telegram) -> list[str]:
    """What is not about the disk."""
    return [text for text in telegram.shown(7) if text != DISK_FULL]


def fill(folder: Path) -> Path:
    """Takes all the space that is left."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return ballast


@pytest.mark.slow
def test_a_full_disk_loses_nothing_and_space_mends_it(
    home: Home, telegram: Telegram, model: Model
) -> None:
    with small_disk(home.path, size="16m"):
        home.approve(7)
        running = home.start()
        until(running.serving)
        telegram.says(7, "before")
        # Stored as sent too: else it may come again, marked.
        until(lambda: "outbox.ended" in running.said())
        until(lambda: list(home.path.glob("data/backups/*.db")))

        ballast = fill(home.path)
        for number in range(60):  # enough that the file must grow
            telegram.says(7, f"message {number} " + "x" * 2000)
        until(lambda: "No space is left" in running.said())
        does_not_spin(running)
        running.kill()
        at_start = home.run("run")
        ballast.unlink()
        again = home.start()
        until(lambda: len(answers(telegram)) >= 61)

        texts = [text.rstrip("x").rstrip() for text in answers(telegram)]
        assert texts == ["You said: before", *(f"You said: message {n}" for n in range(60))]
        assert at_start.returncode == 1
        assert "No space is left" in at_start.stderr
        assert "Traceback" not in at_start.stderr + running.said()
        ends_well(again)
        assert home.ask_database("pragma integrity_check") == [("ok",)]


@pytest.mark.slow
def test_on_a_full_disk_whoever_writes_is_told_once_and_commands_are_answered(
    home: Home, telegram: Telegram
) -> None:
    with small_disk(home.path, size="16m"):
        home.approve(7, 8)
        running = home.start()
        until(running.serving)
        until(lambda: list(home.path.glob("data/backups/*.db")))

        ballast = fill(home.path)
        for number in range(60):
            telegram.says(7, f"message {number} " + "x" * 2000)
        until(lambda: DISK_FULL in telegram.shown(7))
        telegram.says(8, "/status")
        until(lambda: DISK_FULL in telegram.shown(8))
        telegram.says(7, "/usage")
        until(lambda: telegram.shown(7).count(DISK_FULL) == 2)
        beside = [home.run(*command.split()) for command in COMMANDS]
        ballast.unlink()
        until(lambda: sum(text.startswith("You said: ") for text in answers(telegram)) == 60)
        until(lambda: telegram.shown(8)[-1].startswith("Hearthbot "))

        assert telegram.shown(7).count(DISK_FULL) == 2, "once for 60 messages, once for a command"
        assert telegram.shown(8).count(DISK_FULL) == 1
        for done in beside:
            print(done.args, done.returncode, done.stdout[-300:], done.stderr)
            assert "Traceback" not in done.stderr
            assert done.returncode == 0 or "No space is left" in done.stderr
        assert beside[0].returncode == 0, "how the bot is doing is told"
        assert "The disk is full or nearly full" in beside[0].stdout
        ends_well(running)


@pytest.mark.slow
def test_a_wal_deleted_under_the_bot_ends_it_and_the_owner_is_told(
    home: Home, telegram: Telegram
) -> None:
    home.approve(7)
    running = home.start()
    until(running.serving)
    telegram.says(7, "before")
    until(lambda: telegram.shown(7))

    home.database.with_name("hearthbot.db-wal").unlink()
    code = running.wait()
    telegram.says(7, "after")
    again = home.start()
    until(lambda: "You said: after" in telegram.shown(7))

    assert code == 1
    assert "Traceback" not in running.said()
    (told,) = [text for text in telegram.shown(7) if "was deleted while the bot ran" in text]
    assert "All that was stored is saved in" in told
    assert "You said: before" in telegram.shown(7)
    ends_well(again)
    assert home.ask_database("pragma integrity_check") == [("ok",)]


# --- the program's own files ---------------------------------------------------------------------


def test_too_few_open_files_are_refused_at_the_start_and_a_low_limit_is_raised(
    home: Home, telegram: Telegram
) -> None:
    home.approve(7)
    few = home.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
    assert few.wait() == 2
    assert "may open only 64 files at a time, and the bot needs 256" in few.said()
    assert "Traceback" not in few.said()

    low = home.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 512)))
    telegram.says(7, "hello")
    until(lambda: telegram.shown(7))
    assert resource.prlimit(low.pid, resource.RLIMIT_NOFILE) == (256, 512)
    ends_well(low)


def test_a_prompt_that_is_missing_is_named(home: Home, tmp_path: Path) -> None:
    checkout = Path(__file__).parents[2]
    program = tmp_path / "program"
    for name in ("agent", "bot", "memory", "scheduler", "prompts", "skills"):
        shutil.copytree(checkout / name, program / name)
    for name in ("pyproject.toml", "HEARTBEAT.md"):
        shutil.copy(checkout / name, program / name)
    (program / "prompts" / "system.md").unlink()

    done = subprocess.run(
        [*home.command(), "run"],
        cwd=program,
        env={**home.env, "PYTHONPATH": str(program)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 2
    assert "system.md: this prompt is missing" in done.stderr
    assert "Traceback" not in done.stderr


def broken_by(home: Home, tmp_path: Path, fault: str) -> None:
    """Has the next process meet a fault that nobody foresaw."""
    (tmp_path / "fault").mkdir()
    (tmp_path / "fault" / "sitecustomize.py").write_text(fault)
    home.env["PYTHONPATH"] = str(tmp_path / "fault")


@pytest.mark.parametrize(
    "broken",
    [
        "channels.telegram.api.TelegramWeb.get_updates",
        "channels.telegram.channel.TelegramChannel.understand",
    ],
)
def test_a_fault_of_its_own_is_one_sentence_and_the_log_has_the_rest(
    home: Home, telegram: Telegram, tmp_path: Path, broken: str
) -> None:
    home.approve(7)
    telegram.says(7, "hello")
    sound = dict(home.env)
    broken_by(
        home,
        tmp_path,
        "import bot.channels.telegram.channel\n"
        "def fault(*args, **kwargs): raise ZeroDivisionError('nobody foresaw this')\n"
        f"bot.{broken} = fault\n",
    )

    running = home.start()
    code = running.wait()
    home.env = sound
    again = home.start()
    until(lambda: telegram.shown(7))

    sentence = running.said().splitlines()[-1]
    print("\n" + sentence)
    assert code == 1
    assert "fault of its own (ZeroDivisionError)" in sentence
    assert "Traceback" not in running.said()
    assert "nobody foresaw this" in home.log
    assert telegram.shown(7)[0].startswith("You said: hello")
    ends_well(again)


def test_a_fault_in_sending_costs_one_chat_its_answer_until_the_next_start(
    home: Home, telegram: Telegram, tmp_path: Path
) -> None:
    home.approve(7, 8)
    sound = dict(home.env)
    broken_by(
        home,
        tmp_path,
        "import bot.channels.telegram.channel\n"
        "send = bot.channels.telegram.channel.TelegramChannel.send\n"
        "async def fault(self, address, part):\n"
        "    if address.chat_id == '7': raise ZeroDivisionError('nobody foresaw this')\n"
        "    return await send(self, address, part)\n"
        "bot.channels.telegram.channel.TelegramChannel.send = fault\n",
    )
    running = home.start()
    telegram.says(7, "hello")
    until(lambda: "outbox.fault" in running.said())
    telegram.says(8, "and I?")
    until(lambda: telegram.shown(8))

    assert telegram.shown(7) == []
    assert running.end() == 0
    home.env = sound
    again = home.start()
    until(lambda: telegram.shown(7))

    assert telegram.shown(7)[0].startswith("You said: hello")
    ends_well(again)
