"""Every log line goes through one pipe, and no secret comes out of it."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import socket
import stat
import subprocess
import sys
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from bot.settings.logging import Logs, Redactor, set_up
from bot.settings.schema.settings import LoggingSettings

TOKEN = "123456:SECRETSECRET"
KEY = 'k3y/with "odd" chars+é'
CHECKOUT = Path(__file__).parents[2]

JSON_DEBUG = LoggingSettings(level="debug", format="json")
JSON_INFO = LoggingSettings(level="info", format="json")
CONSOLE = LoggingSettings(level="debug", format="console")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def start(stream: io.StringIO, tmp_path: Path) -> Iterator[Callable[[LoggingSettings], Logs]]:
    started: list[Logs] = []

    def start(settings: LoggingSettings) -> Logs:
        started.append(
            set_up(settings, secrets=[TOKEN, KEY], stream=stream, file=tmp_path / "bot.log")
        )
        return started[-1]

    yield start
    for logs in reversed(started):
        logs.close()


Start = Callable[[LoggingSettings], Logs]


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


# --- the lines ---------------------------------------------------------------------------------


def test_a_line_has_time_level_logger_event_and_bound_facts(
    start: Start, stream: io.StringIO
) -> None:
    start(JSON_INFO)

    structlog.get_logger("bot.intake").bind(turn="t1").info("turn_started", steps=2, name="é")

    (line,) = lines(stream)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", line.pop("timestamp"))
    assert line == {
        "event": "turn_started",
        "level": "info",
        "logger": "bot.intake",
        "turn": "t1",
        "steps": 2,
        "name": "é",
    }


def test_a_line_is_the_same_in_the_file_whatever_the_stream_shows(tmp_path: Path) -> None:
    for name, settings in {"console": CONSOLE, "json": JSON_DEBUG}.items():
        file = tmp_path / name
        with set_up(settings, secrets=[KEY], stream=Terminal(), file=file):
            logging.getLogger("elsewhere").warning("one", extra={"chat": 7, "key": KEY})
            logging.getLogger("elsewhere").warning("two")
            structlog.get_logger("bot.intake").info("three")
        written = [json.loads(line) for line in file.read_text().splitlines()]

        common = {"timestamp", "level", "logger", "event"}
        assert [line["event"] for line in written] == ["one", "two", "three"]
        assert [set(line) - common for line in written] == [{"chat", "key"}, set(), set()]
        assert "\\u001b" not in file.read_text()


@pytest.mark.parametrize(("level", "count"), [("debug", 4), ("warning", 2)])
def test_the_level_holds_for_both(stream: io.StringIO, level: Any, count: int) -> None:
    settings = LoggingSettings(level=level, format="json")

    with set_up(settings, secrets=[], stream=stream, file=None):
        for log in (structlog.get_logger("a"), logging.getLogger("b")):
            for method in (log.debug, log.info, log.warning, log.error):
                method("event")

    assert len(lines(stream)) == 2 * count


def test_auto_is_console_with_colours_in_a_terminal_and_json_elsewhere() -> None:
    auto, terminal, pipe = LoggingSettings(), Terminal(), io.StringIO()

    for stream in (terminal, pipe):
        with set_up(auto, secrets=[], stream=stream, file=None):
            structlog.get_logger().info("started", port=1)

    assert "\x1b[" in terminal.getvalue()
    assert lines(pipe)[0]["event"] == "started"


# --- the file ----------------------------------------------------------------------------------


def test_the_file_is_private_even_where_an_older_one_was_not(
    stream: io.StringIO, tmp_path: Path
) -> None:
    file = tmp_path / "bot.log"
    file.touch(0o644)

    with set_up(JSON_INFO, secrets=[], stream=stream, file=file):
        pass

    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_file_is_turned_over_and_three_are_kept(stream: io.StringIO, tmp_path: Path) -> None:
    file = tmp_path / "bot.log"

    with set_up(JSON_INFO, secrets=[], stream=stream, file=file):
        for number in range(22):
            structlog.get_logger().info("filling", number=number, text="x" * 900_000)

    files = sorted(tmp_path.iterdir())
    assert [found.name for found in files] == ["bot.log", "bot.log.1", "bot.log.2"]
    assert all(found.stat().st_size <= 5_000_000 for found in files)
    assert all(stat.S_IMODE(found.stat().st_mode) == 0o600 for found in files)


def test_a_file_that_cannot_be_opened_costs_a_warning_not_the_start(
    stream: io.StringIO, tmp_path: Path
) -> None:
    with set_up(JSON_INFO, secrets=[], stream=stream, file=tmp_path / "missing" / "bot.log"):
        structlog.get_logger().info("started")

    first, second = lines(stream)
    assert first["event"] == "log_file_unusable"
    assert first["reason"] == "No such file or directory"
    assert second["event"] == "started"


def test_a_full_disk_is_told_once_and_does_not_stop_the_bot(
    stream: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = set_up(JSON_INFO, secrets=[TOKEN], stream=stream, file=Path("/dev/full"))
    for _ in range(3):
        logging.getLogger("bot").info("event %s", TOKEN)
    logs.close()

    told = capsys.readouterr().err
    assert told.count("A log line of bot could not be written (OSError)") == 1
    assert "SECRETSECRET" not in told
    assert len(lines(stream)) == 3


def test_a_line_that_cannot_be_formatted_does_not_show_its_arguments(
    start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    start(JSON_INFO)

    logging.getLogger("odd").info("%d", TOKEN)

    assert "A log line of odd could not be written (TypeError)" in capsys.readouterr().err


# --- secrets -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        TOKEN,
        "SECRETSECRET",
        f"https://api.telegram.org/bot{TOKEN}/getMe",
        "bot123456%3ASECRETSECRET",
        "bot123456%3aSECRETSECRET",
        KEY,
        urllib.parse.quote(KEY),
        urllib.parse.quote(KEY, safe=""),
        urllib.parse.quote(KEY, safe="").lower(),
        urllib.parse.quote_plus(KEY),
        json.dumps({"key": KEY}),
        json.dumps({"key": KEY}, ensure_ascii=False),
        repr([KEY]),
    ],
)
def test_a_secret_is_cut_out_in_each_way_it_may_be_written(text: str) -> None:
    cleaned = Redactor([TOKEN, KEY]).clean(f"before {text} after")

    assert cleaned.startswith("before ")
    assert cleaned.endswith(" after")
    assert "[redacted]" in cleaned
    assert "SECRETSECRET" not in cleaned
    assert "k3y" not in cleaned


def test_text_without_a_secret_is_left_alone() -> None:
    text = "bot 123456 says: short"

    assert Redactor([TOKEN, "short", "", "  "]).clean(text) == text
    assert Redactor([]).clean(text) == text


@given(
    secret=st.text(min_size=6).filter(lambda text: len(text.strip()) >= 6),
    before=st.text(),
    after=st.text(),
)
def test_no_secret_survives(secret: str, before: str, after: str) -> None:
    secret = secret.strip()
    redactor = Redactor([secret])

    assert secret not in redactor.clean(before + secret + after).replace("[redacted]", "\x00\x01")


@pytest.mark.case("SE-13")
@pytest.mark.parametrize("settings", [JSON_DEBUG, JSON_INFO, CONSOLE])
@pytest.mark.threat("T16")
def test_secrets_are_in_no_event_fact_argument_or_traceback(
    start: Start, stream: io.StringIO, tmp_path: Path, settings: LoggingSettings
) -> None:
    start(settings)
    log, plain = structlog.get_logger("a"), logging.getLogger("b")

    log.error(
        f"event {TOKEN}",
        url=f"x/bot{TOKEN}",
        deep={"a": [KEY], TOKEN: (KEY,)},
        error=ValueError(KEY),
    )
    log.error("bytes", body=TOKEN.encode(), kept={TOKEN})
    plain.error("%s", TOKEN, extra={"key": KEY, "address": httpx.URL(f"https://h/bot{TOKEN}")})
    for complain in (log.exception, plain.exception):
        try:
            try:
                raise ValueError(TOKEN)
            except ValueError as error:
                raise RuntimeError(KEY) from error
        except RuntimeError:
            complain("failed")

    for text in (stream.getvalue(), (tmp_path / "bot.log").read_text()):
        assert text.count("RuntimeError") >= 2
        assert "[redacted]" in text
        assert "SECRETSECRET" not in text
        assert "k3y" not in text


@pytest.mark.case("SE-13")
@pytest.mark.parametrize(("settings", "loud"), [(JSON_INFO, False), (CONSOLE, True)])
@pytest.mark.threat("T16")
async def test_the_http_client_does_not_log_the_token(
    start: Start, stream: io.StringIO, tmp_path: Path, settings: LoggingSettings, loud: bool
) -> None:
    start(settings)
    if loud:  # somebody turned them up to look for a fault
        logging.getLogger("httpx").setLevel(logging.DEBUG)
        logging.getLogger("httpcore").setLevel(logging.DEBUG)
    server = await asyncio.start_server(_answer_500, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async with server, httpx.AsyncClient(trust_env=False) as client:
        for address in (f"http://127.0.0.1:{_closed_port()}", f"http://127.0.0.1:{port}"):
            try:
                response = await client.get(f"{address}/bot{TOKEN}/getMe")
                response.raise_for_status()
            except httpx.HTTPError:
                structlog.get_logger("bot.telegram").exception("call_failed")

    for text in (stream.getvalue(), (tmp_path / "bot.log").read_text()):
        assert "ConnectError" in text
        assert "HTTPStatusError" in text
        assert "bot[redacted]/getMe" in text
        assert "SECRETSECRET" not in text
        assert ("HTTP Request: GET" in text) == loud


async def _answer_500(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    writer.close()
    await writer.wait_closed()


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


CRASH = """
import asyncio, sys, threading, warnings
from pathlib import Path
import httpx
from bot.settings.schema.settings import LoggingSettings
from bot.settings.logging import set_up

TOKEN = sys.stdin.readline().strip()
port, file, level = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
settings = LoggingSettings(level=level, format=sys.argv[4])
set_up(settings, secrets=[TOKEN], stream=sys.stderr, file=file)

def call():
    httpx.get(f"http://127.0.0.1:{port}/bot{TOKEN}/getMe", trust_env=False)

class Careless:
    def __del__(self):
        raise ValueError(TOKEN)

async def forget():
    failing = asyncio.create_task(asyncio.to_thread(call))
    while not failing.done():
        await asyncio.sleep(0.01)

warnings.warn(f"careful with {TOKEN}")
thread = threading.Thread(target=call)
thread.start()
thread.join()
Careless()
asyncio.run(forget())
call()
"""


@pytest.mark.case("SE-13")
@pytest.mark.parametrize(("level", "form"), [("info", "json"), ("debug", "console")])
@pytest.mark.threat("T16")
def test_a_process_that_crashes_does_not_show_the_token(
    tmp_path: Path, level: str, form: str
) -> None:
    file = tmp_path / "bot.log"

    result = subprocess.run(
        [sys.executable, "-c", CRASH, str(_closed_port()), str(file), level, form],
        input=f"{TOKEN}\n",
        capture_output=True,
        text=True,
        cwd=CHECKOUT,
        check=False,
        timeout=60,
    )

    assert result.returncode == 1
    for text in (result.stderr, file.read_text()):
        for event in ("careful with", "thread_crashed", "error_in_cleanup", "crashed"):
            assert event in text
        assert "exception was never retrieved" in text
        assert text.count("ConnectError") >= 3
        assert "SECRETSECRET" not in text
    assert result.stdout == ""


def test_an_interrupt_is_a_line_without_a_traceback(start: Start, stream: io.StringIO) -> None:
    start(JSON_INFO)
    interrupt = KeyboardInterrupt()
    interrupt.__context__ = ValueError(TOKEN)

    sys.excepthook(KeyboardInterrupt, interrupt, None)

    (line,) = lines(stream)
    assert line["event"] == "interrupted"
    assert "exception" not in line


# --- what it costs to import ---------------------------------------------------------------------
