"""Checks: bounded, side by side, and what each says of a machine that is not this one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from bot.doctor import home as doctor_home
from bot.doctor import machine as doctor_machine
from bot.doctor.base import (
    DoctorCheck,
    Finding,
    FindingLevel,
    blocking,
    is_well,
    mend_all,
    ok,
    run_checks,
    warn,
)
from bot.doctor.live import Unreachable
from bot.doctor.stored import backups, pause, schedule
from bot.lab.faults import answer
from bot.lab.telegram import FakeTelegram
from bot.settings.home import Home, prepare
from memory.database.checkup import Checkup
from memory.records.errors import Overloaded, SettingsWrong
from memory.records.usage import Pause, Paused

TOKEN = "123456:TESTTESTTEST"


async def test_a_check_that_hangs_is_given_up_and_holds_up_no_other() -> None:
    released = threading.Event()

    def hang() -> Sequence[Finding]:
        released.wait(60)
        return [ok("late")]

    started = time.monotonic()
    checks = [
        blocking("slow disk", hang, limit_s=0.2),
        blocking("quick", lambda: [ok("fine")]),
    ]
    ended: list[str] = []
    slow, quick = await run_checks(checks, done=ended.append)

    assert time.monotonic() - started < 30
    assert slow.finding.level is FindingLevel.WARN
    assert "did not finish within 0.2 s" in slow.finding.text
    assert quick.finding == ok("fine")
    assert ended == ["quick", "slow disk"]
    released.set()
    await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("error", "text", "fix"),
    [
        (SettingsWrong("It is wrong. Set the right one."), "It is wrong", "Set the right one."),
        (SettingsWrong("It is wrong: set llm.model"), "It is wrong", "Set llm.model"),
        (Overloaded("It sleeps."), "It sleeps.", "Try again in a few minutes."),
        (PermissionError(13, "Permission denied"), "cannot be checked: Permission denied", "Look"),
    ],
)
async def test_what_a_check_raises_is_a_failure_with_a_way_out(
    error: Exception, text: str, fix: str
) -> None:
    async def look() -> Sequence[Finding]:
        raise error

    (result,) = await run_checks([DoctorCheck(name="it", look=look)])

    assert result.finding.level is FindingLevel.FAIL
    assert result.finding.text == text
    assert result.finding.fix.startswith(fix)
    assert not is_well([result])


async def test_a_platform_that_cannot_be_reached_is_told_once() -> None:
    async def away() -> Sequence[Finding]:
        raise Unreachable("Telegram cannot be reached. Check the network.")

    async def wrong() -> Sequence[Finding]:
        raise SettingsWrong("It is wrong.")

    found = await run_checks(
        [
            *(DoctorCheck(name=name, look=away) for name in ("Telegram", "webhook", "clock")),
            *(DoctorCheck(name=name, look=wrong) for name in ("one", "other")),
        ]
    )

    assert [one.check for one in found] == ["Telegram", "one", "other"]


async def test_what_cannot_be_mended_stays_and_says_why() -> None:
    def refuse() -> str:
        raise PermissionError(1, "Operation not permitted")

    findings = [warn("open", "chmod", refuse), warn("left", "rm", lambda: "removed it")]
    stays, goes = mend_all(await run_checks([blocking("files", lambda: findings)]))

    assert stays.finding.level is FindingLevel.WARN
    assert "mending it failed (Operation not permitted)" in stays.finding.text
    assert (goes.finding.level, goes.mended) == (FindingLevel.OK, "removed it")


# --- the machine -----------------------------------------------------------------------------


def test_a_package_that_claims_our_names_is_named() -> None:
    claims = {"bot": ["hearthbot", "chatbot-kit"], "memory": ["hearthbot"], "other": ["x"]}

    (finding,) = doctor_machine.installation(claims, data=())

    assert finding.level is FindingLevel.FAIL
    assert "chatbot-kit also brings modules called bot" in finding.text
    assert "uninstall chatbot-kit" in finding.fix


def test_shipped_data_that_is_missing_is_named() -> None:
    (finding,) = doctor_machine.installation({}, data=("prompts", "no-such-thing"))

    assert (finding.level, finding.text) == (
        FindingLevel.FAIL,
        "the installation lacks no-such-thing",
    )


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    (little,) = doctor_machine.disk(tmp_path / "not" / "there", warn_bytes=2**62)
    (enough,) = doctor_machine.disk(tmp_path, warn_bytes=1)

    assert little.level in {FindingLevel.WARN, FindingLevel.FAIL}
    assert str(tmp_path) in little.fix
    assert enough.level is FindingLevel.OK


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("MemTotal: 9 kB\nMemAvailable:     51200 kB\n", FindingLevel.WARN),
        ("MemAvailable:  9951200 kB\n", FindingLevel.OK),
        ("something else", FindingLevel.OK),
    ],
)
def test_little_memory_is_named(tmp_path: Path, text: str, level: FindingLevel) -> None:
    (tmp_path / "meminfo").write_text(text)

    (finding,) = doctor_machine.memory(tmp_path / "meminfo")

    assert finding.level is level


@pytest.mark.parametrize(
    ("days", "level"), [(0, FindingLevel.OK), (0.001, FindingLevel.WARN), (-30, FindingLevel.FAIL)]
)
async def test_a_clock_is_compared_with_a_server(days: float, level: FindingLevel) -> None:
    told = datetime.now(UTC) - timedelta(days=days)
    date = f"{told:%a, %d %b %Y %H:%M:%S} GMT"
    async with FakeTelegram(token=TOKEN) as telegram:
        telegram.fault(action=answer(200, {}, headers={"Date": date}))

        (finding,) = await doctor_machine.clock(
            f"{telegram.base_url}/bot{TOKEN}/getMe", who="Telegram"
        )

    assert finding.level is level
    if days:
        assert ("ahead of" if days > 0 else "behind") in finding.text


# --- the home -----------------------------------------------------------------------------


def test_many_open_files_are_counted_and_not_all_listed(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    prepare(home)
    for number in range(30):
        (home.logs / f"{number}.log").touch()
        (home.logs / f"{number}.log").chmod(0o644)

    found = list(doctor_home.modes(home))

    assert len(found) == doctor_home.MODES_SHOWN_MAX + 1
    assert "10 more files" in found[-1].text


def test_what_a_server_keeps_in_its_own_folder_is_its_own(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    prepare(home)
    kept = home.servers / "notes" / "some.making"
    kept.parent.mkdir(mode=0o700, parents=True)
    kept.touch()
    kept.chmod(0o644)
    home.servers.chmod(0o700)

    modes, leftovers = list(doctor_home.modes(home)), list(doctor_home.leftovers(home))

    assert [one.level for one in (*modes, *leftovers)] == [FindingLevel.OK, FindingLevel.OK]


def test_a_database_without_any_backup_for_days_is_named(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    prepare(home)
    home.database.write_bytes(b"")
    now = datetime.now(UTC)

    (fresh,) = backups(home, None, now=now)
    (old,) = backups(home, None, now=now + timedelta(days=3))

    assert (fresh.level, old.level) == (FindingLevel.OK, FindingLevel.WARN)


WELL = Checkup(ours=True, version=1, newest=1, inbox={}, outbox={})


@pytest.mark.parametrize(
    ("jobs", "due_in_min", "is_running", "level", "words"),
    [
        ({}, None, True, FindingLevel.OK, "no job is set"),
        ({"on": 2}, 90, True, FindingLevel.OK, "2 jobs, the next in 1 h 30 min"),
        ({"on": 2}, 60 * 49, False, FindingLevel.OK, "2 jobs, the next in 2 d 1 h"),
        ({"on": 1}, -30, False, FindingLevel.OK, "1 job, the next is due now"),
        ({"on": 1}, -30, True, FindingLevel.WARN, "a job is overdue"),
        (
            {"on": 1, "stopped": 1},
            5,
            True,
            FindingLevel.WARN,
            "1 job was stopped, as it kept failing",
        ),
    ],
)
def test_what_runs_by_the_clock_is_told_and_what_stands_still_is_named(
    jobs: Mapping[str, int],
    due_in_min: int | None,
    is_running: bool,
    level: FindingLevel,
    words: str,
) -> None:
    now = datetime(2026, 6, 1, tzinfo=UTC)
    due = None if due_in_min is None else now + timedelta(minutes=due_in_min)
    due_ms = None if due is None else int(due.timestamp() * 1000)
    found = replace(WELL, jobs=jobs, next_job_ms=due_ms)

    findings = list(schedule(found, now=now, is_running=is_running))

    assert findings[0].level is level
    assert words in findings[0].text


# --- why it stands still --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paused", "level", "words", "fix"),
    [
        (None, FindingLevel.OK, "not paused", ""),
        (
            Pause.HAND,
            FindingLevel.WARN,
            "the owner paused the bot, since 1 Jun 2026, 14:30",
            "/resume",
        ),
        (
            Pause.BRAKE,
            FindingLevel.WARN,
            "since 1 Jun 2026, 14:30: far too fast",
            "hearthbot usage",
        ),
    ],
)
def test_a_pause_is_told_with_its_reason_and_how_to_go_on(
    paused: Pause | None, level: FindingLevel, words: str, fix: str
) -> None:
    at = datetime(2026, 6, 1, 12, 30, tzinfo=UTC)
    since_ms = int(at.timestamp() * 1000)
    pauses = (Paused(kind=paused, since_ms=since_ms, words="far too fast"),) if paused else ()

    [finding] = pause(replace(WELL, pauses=pauses), host_zone=ZoneInfo("Europe/Berlin"))

    assert finding.level is level
    assert words in finding.text
    assert fix in finding.fix
