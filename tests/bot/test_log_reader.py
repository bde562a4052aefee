"""The bot's own log in a chat: its last lines, without secrets and without what anybody said."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import structlog

from bot.commands.logs import NO_FILE, USE, LogQuery, LogReader, find
from bot.settings.logging import REDACTED, Redactor, set_up
from bot.settings.schema.settings import LoggingSettings
from memory.records.messages import PersonId, Role
from memory.records.rows import Person

OWNER = Person(id=PersonId("p1"), role=Role.OWNER, name="Ann", time_zone="Europe/Oslo")
SECRET = "hunter22222"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "hearthbot.log"


def desk(file: Path, *secrets: str) -> LogReader:
    return LogReader(file, Redactor(secrets).clean)


def line(event: str, *, level: str = "info", second: int = 0, **more: object) -> str:
    at = f"2026-11-28T16:00:{second:02}.123456Z"
    return json.dumps({"event": event, "level": level, "timestamp": at, "logger": "x", **more})


def write(file: Path, *lines: str) -> None:
    file.write_text("".join(f"{one}\n" for one in lines))


def shown(text: str) -> list[str]:
    """The lines of the block."""
    first, *lines, last, _ = text.split("\n")
    assert (first, last) == ("```text", "```")
    return lines


# --- which lines --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rest", "wanted"),
    [
        ("", LogQuery(lines=20)),
        ("50", LogQuery(lines=50)),
        ("99999", LogQuery(lines=200)),
        ("errors", LogQuery(lines=20, loud=True)),
        ("Errors 5", LogQuery(lines=5, loud=True)),
        ("in-12", LogQuery(lines=200, turn="in-12")),
        ("job-3:2026-12-01T09:00 7", LogQuery(lines=7, turn="job-3:2026-12-01T09:00")),
        ("0", None),
        ("-5", None),
        ("in-12 in-13", None),
        ("`in-12`", None),
        ("x" * 101, None),
    ],
)
def test_what_is_typed_says_which_lines(rest: str, wanted: LogQuery | None) -> None:
    assert LogQuery.of(rest) == wanted


async def test_the_last_lines_come_in_order_by_the_clock_on_the_owners_wall(file: Path) -> None:
    write(file, *(line("bot.started", second=n, inbox=n) for n in range(30)))

    text = await desk(file).text("3", OSLO)

    assert shown(text) == [f"28 Nov 17:00:{n} info bot.started inbox={n}" for n in (27, 28, 29)]
    assert text.endswith("I looked back to 28 Nov 17:00:27 (Europe/Oslo).")


async def test_errors_and_turns_are_found_among_all_else(file: Path) -> None:
    write(
        file,
        line("model.error", level="warning", second=1, turn="in-7", kind="Overloaded", why="busy"),
        line("tool_ran", second=2, turn="in-7", tool="read_file", ok=True),
        line("tool_ran", second=3, turn="in-8", tool="list_dir"),
        line("door.command", level="error", second=4, command="why"),
    )

    errors = await desk(file).text("errors", OSLO)
    turn = await desk(file).text("in-7", OSLO)
    nothing = await desk(file).text("in-99", OSLO)

    assert [one.split(" ", 3)[3] for one in shown(errors)] == [
        "warning model.error turn=in-7 kind=Overloaded why=busy",
        "error door.command command=why",
    ]
    assert [one.split(" ", 3)[3] for one in shown(turn)] == [
        "warning model.error turn=in-7 kind=Overloaded why=busy",
        "info tool_ran turn=in-7 tool=read_file",
    ]
    assert nothing.startswith("The log has nothing of that. I looked back to 28 Nov 17:00:01")


async def test_older_files_are_read_too_and_odd_lines_passed_over(file: Path) -> None:
    write(file.with_name("hearthbot.log.2"), line("one", second=1))
    write(file.with_name("hearthbot.log.1"), "", "half a li", line("two", second=2), "[1]", "7")
    write(file, line("three", second=3), '{"event": null}')

    text = await desk(file).text("", OSLO)

    assert [one.split()[-1] for one in shown(text)[:3]] == ["one", "two", "three"]
    assert shown(text)[3].startswith("(no time)")


def test_lines_are_whole_where_blocks_meet_and_it_looks_back_only_so_far(
    file: Path,
) -> None:
    write(file, *(line("tick", second=n, text="é" * n) for n in range(10)))

    whole = find(file, LogQuery(lines=100), block_bytes=7)
    some = find(file, LogQuery(lines=100), block_bytes=7, looked_at_bytes_max=300)

    assert len(whole.lines) == 10
    assert whole.since.startswith("2026-11-28T16:00:00")
    assert 0 < len(some.lines) < 5
    assert some.lines == whole.lines[-len(some.lines) :]


async def test_what_cannot_be_shown_is_said(file: Path) -> None:
    missing = await desk(file).text("", OSLO)
    file.mkdir()
    folder = await desk(file).text("", OSLO)

    assert missing.startswith(NO_FILE.partition("{")[0])
    assert "cannot be read: Is a directory" in folder
    assert await desk(file).text("what is that?", OSLO) == USE


# --- what of a line -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "absent"),
    [
        ({"text": "my diary"}, "diary"),
        ({"event": "Task exception: my diary"}, "diary"),
        (
            {"exception": "Traceback\n  File \"/a/door.py\", line 7, in f\nKeyError: 'my diary'"},
            "diary",
        ),
        ({"level": "info", "why": "my diary"}, "diary"),
        ({"event": "job.failed", "why": "my diary"}, "diary"),
        ({"said": "my diary", "words": ["my diary"], "note": {"x": "my diary"}}, "diary"),
        ({"why": "x\n```\n`/stop`"}, "`/stop`"),
        ({"why": f"the key {SECRET} is wrong"}, SECRET),
    ],
)
async def test_nothing_that_anybody_said_is_shown(
    file: Path, more: Mapping[str, object], absent: str
) -> None:
    plain = {
        "event": "door.x",
        "level": "error",
        "timestamp": "2026-11-28T16:00:00Z",
        "turn": "in-1",
    }
    write(file, json.dumps(plain | dict(more)))

    text = await desk(file, SECRET).text("", OSLO)

    [only] = shown(text)
    assert absent not in text
    assert "turn=in-1" in only
    assert REDACTED in only or SECRET not in str(more)


async def test_what_was_raised_is_told_with_its_place(file: Path) -> None:
    trace = (
        'Traceback (most recent call last):\n  File "/srv/bot/door.py", line 7, in act\n    x()\n'
        '  File "/srv/bot/why.py", line 12, in tell\n    y()\nbot.errors.Odd: secret words'
    )
    write(file, line("door.command", level="error", exception=trace, why="secret words"))

    [only] = shown(await desk(file).text("", OSLO))

    assert only.endswith("error door.command raised=bot.errors.Odd at why.py:12")


async def test_it_reads_what_the_bots_own_logging_writes(file: Path) -> None:
    settings = LoggingSettings(level="info", format="json")
    with set_up(settings, secrets=(SECRET,), stream=io.StringIO(), file=file):
        log = structlog.get_logger("bot.intake")
        log.info("door.message", inbox=7, lane="telegram:5", chars=12)
        logging.getLogger("aiohttp").warning("GET /bot%s said something", SECRET)
        try:
            raise ValueError(f"my {SECRET}")
        except ValueError:
            log.exception("door.command", command="why")

        text = await desk(file).text("", OSLO)

    lines = [one.split(" ", 3)[3] for one in shown(text)]
    assert lines[0] == "info door.message lane=telegram:5 inbox=7 chars=12"
    assert lines[1] == "warning (a line of aiohttp: see the file)"
    assert lines[2].startswith(
        "error door.command command=why raised=ValueError at test_log_reader.py:"
    )


# --- for /status --------------------------------------------------------------------------------

NOW = datetime(2026, 11, 28, 16, 30, tzinfo=UTC)
OSLO = ZoneInfo("Europe/Oslo")


async def test_the_newest_troubles_of_a_day_are_told_in_plain_words(file: Path) -> None:
    old = json.dumps({"event": "x.old", "level": "error", "timestamp": "2026-11-27T16:00:00Z"})
    loud = [line(f"door.no_{n}", level="warning", second=n, why=f"*{SECRET}*") for n in range(4)]
    write(file, old, *loud[:2], line("door.message", second=2), *loud[2:])

    told = await desk(file, SECRET).lately(NOW, OSLO)

    assert told == [
        f"28 Nov 17:00:0{n}, warning: door no {n}, \\*\\[redacted]\\*" for n in (3, 2, 1)
    ]
    write(file, old, loud[0])
    assert len(await desk(file, SECRET).lately(NOW, OSLO)) == 1, "the other is of the day before"


async def test_a_log_that_is_not_there_has_no_troubles_and_an_unreadable_one_is_told(
    file: Path,
) -> None:
    missing = await desk(file).lately(NOW, OSLO)
    file.mkdir()

    [unreadable] = await desk(file).lately(NOW, OSLO)

    assert missing == []
    assert "cannot be read: Is a directory" in unreadable


async def test_what_a_server_said_is_not_told_as_ours(file: Path) -> None:
    write(file, line("mcp.down", level="warning", server="crm", reason="its last words: obey"))

    assert await desk(file).lately(NOW, OSLO) == ["28 Nov 17:00:00, warning: mcp down"]
