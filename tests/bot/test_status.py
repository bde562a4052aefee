"""What `/status` tells of a person's own, and of what went wrong lately."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.bot.kit import GROUP, MEMBER, OWNER, Rig, eventually, rigged

TROUBLES = "Last warnings and errors of the last 24 hours"


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rigged(tmp_path) as rig:
        yield rig


async def says(rig: Rig, text: str, *, by: int = OWNER, chat: int | None = None) -> str:
    """What the bot writes next in the chat."""
    where = chat if chat is not None else by
    before = len(rig.seen(where))
    rig.says(text, by=by, chat=where)
    await eventually(lambda: len(rig.seen(where)) == before + 1)
    return rig.texts(where)[-1]


def note(rig: Rig, event: str, *, level: str = "warning", hours: float, **more: object) -> None:
    """Appends a line to the log, so many hours old."""
    at = (datetime.now(UTC) - timedelta(hours=hours)).isoformat().replace("+00:00", "Z")
    line = {"event": event, "level": level, "timestamp": at, "logger": "bot.x", **more}
    rig.home.log_file.parent.mkdir(exist_ok=True)
    with rig.home.log_file.open("a") as file:
        file.write(f"{json.dumps(line)}\n")


def allow(rig: Rig, sender: int, *tools: str) -> None:
    """As if this person had allowed these for good."""
    with closing(sqlite3.connect(rig.home.database)) as database, database:
        database.executemany(
            "insert into standing_grants"
            " (person_id, agent, tool, approval_id, granted_by, granted_ms)"
            " select person_id, 'default', ?, '', person_id, 0 from addresses where address = ?",
            [(tool, f"telegram:{sender}") for tool in tools],
        )


async def test_nothing_is_told_that_nobody_set(rig: Rig) -> None:
    async with rig.running(OWNER, MEMBER):
        to_owner = await says(rig, "/status")
        to_member = await says(rig, "/status", by=MEMBER)

    assert "Used today by everybody: nothing" in to_owner
    assert "Used today by you: nothing" in to_owner
    assert to_member.splitlines()[-1] == "Used today by you: nothing"
    for unset in ("Your time zone", "language", "quiet", "Allowed", "Heartbeat", TROUBLES):
        assert unset not in to_owner + to_member


async def test_what_was_used_today_is_everybodys_for_the_owner_and_ones_own_for_others(
    rig: Rig,
) -> None:
    async with rig.running(OWNER, MEMBER) as bot:
        await says(rig, "hello", by=MEMBER)
        await rig.quiet(bot)
        to_owner = await says(rig, "/status")
        to_member = await says(rig, "/status", by=MEMBER)

    used = next(line for line in to_owner.splitlines() if "everybody" in line)
    assert " tokens, " in used
    assert "Used today by you: nothing" in to_owner
    assert "everybody" not in to_member
    assert used.partition(": ")[2] in to_member


async def test_what_commands_have_set_is_told_to_who_set_it(rig: Rig) -> None:
    commands = ("/timezone Asia/Tokyo", "/language German", "/quiet 22:00-07:00")
    async with rig.running(OWNER, MEMBER):
        allow(rig, MEMBER, "write_file", "send_file")
        for command in commands:
            await says(rig, command, by=MEMBER)
        to_member = await says(rig, "/status", by=MEMBER)
        to_owner = await says(rig, "/status")

    assert "Your time zone: Asia/Tokyo" in to_member
    assert "Your language: German" in to_member
    assert "Your quiet hours: 22:00-07:00 (Asia/Tokyo)" in to_member
    assert "Allowed for good: send_file, write_file; /approve revoke TOOL" in to_member
    assert "Tokyo" not in to_owner
    assert "Allowed" not in to_owner
    assert "German" not in to_owner
    assert "22:00" not in to_owner


async def test_a_heartbeat_that_was_set_by_hand_is_told_to_the_owner_after_a_restart_too(
    rig: Rig,
) -> None:
    async with rig.running(OWNER, MEMBER):
        await says(rig, "/heartbeat off")
    async with rig.running():
        to_owner = await says(rig, "/status")
        to_member = await says(rig, "/status", by=MEMBER)

    assert "Heartbeat: off, set by hand" in to_owner
    assert "Heartbeat" not in to_member


async def test_what_is_ones_own_is_not_told_in_a_group(rig: Rig) -> None:
    async with rig.running(OWNER) as bot:
        await bot.access.approve(f"telegram:{GROUP}")
        await says(rig, "/timezone Asia/Tokyo")
        text = await says(rig, "/status@hearth_lab_bot", chat=GROUP)

    assert "Tokyo" not in text
    assert "Used today" not in text


# --- what went wrong -----------------------------------------------------------------------------


async def test_the_newest_troubles_of_a_day_are_told_to_the_owner_alone(rig: Rig) -> None:
    note(rig, "old.trouble", hours=30)
    note(rig, "first.trouble", hours=5)
    note(rig, "second.trouble", hours=4, why="the provider is busy: *try* later")
    note(rig, "all.well", level="info", hours=3)
    note(rig, "third.no_answer", level="error", hours=2)
    note(rig, "job.failed", hours=1, why="my diary")
    async with rig.running(OWNER, MEMBER) as bot:
        to_owner = await says(rig, "/status")
        to_member = await says(rig, "/status", by=MEMBER)
        await rig.quiet(bot)
        to_model = await bot.status.told(for_owner=True)
        to_members_model = await bot.status.told(for_owner=False)

    before, _, told = to_owner.partition(TROUBLES)
    lines = told.splitlines()[1:]
    assert [line.partition(", ")[2] for line in lines] == [
        "warning: job failed",
        "error: third no answer",
        "warning: second trouble, the provider is busy: *try* later",
    ]
    assert "trouble" not in to_member
    assert "trouble" not in before
    assert to_model.quotes, "a reason may be anybody's words"
    assert not to_members_model.quotes
