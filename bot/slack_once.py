"""What Slack brings within a moment, read once: for `run --once`. Called by `bot.slack`."""

from __future__ import annotations

import asyncio
from asyncio import FIRST_COMPLETED

from agent.errors import Temporary
from agent.ports import Clock
from bot.slack_intake import Intake
from bot.slack_socket import Sockets

QUIET_S = 2.0
"""Slack says nothing of how much waits, so this long without news means none."""


async def read_once(intake: Intake, sockets: Sockets, *, clock: Clock, greeted_s: float) -> None:
    """Takes in what comes until there is nothing new for a moment, and acts on it.

    Raises Temporary when no socket opens within `greeted_s`, and what `sockets` raises.
    """
    working = asyncio.create_task(intake.work())
    reading = asyncio.create_task(sockets.run())
    try:
        await _until_quiet(sockets, reading, clock=clock, greeted_s=greeted_s)
        await intake.idle()
    finally:
        for task in (reading, working):
            task.cancel()
        await asyncio.gather(reading, working, return_exceptions=True)


async def _until_quiet(
    sockets: Sockets, reading: asyncio.Task[None], *, clock: Clock, greeted_s: float
) -> None:
    greeted = asyncio.create_task(sockets.greeted.wait())
    await asyncio.wait({greeted, reading}, timeout=greeted_s, return_when=FIRST_COMPLETED)
    greeted.cancel()
    if not sockets.greeted.is_set() and not reading.done():
        raise Temporary("Slack opened no socket within the time that a send may take.")
    while not reading.done():
        if clock.monotonic() - sockets.heard_at >= QUIET_S:
            return
        await clock.sleep(QUIET_S / 8)
    await _alone(reading)


async def _alone(task: asyncio.Task[None]) -> None:
    """The one error of a task group, as itself."""
    try:
        await task
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors
