"""Checks of the machine and of the installation: Python, packages, disk, memory, time."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import available_timezones

from agent.files.images import PICTURE_BYTES_MAX, PICTURE_SIDE_MAX
from agent.files.scaler import INSTALL, is_installed
from agent.files.values import size_of
from agent.models.embedded import weights
from agent.sandbox.bubblewrap import Bubblewrap
from bot.doctor.base import Finding, fail, ok, warn
from bot.doctor.live import ask
from bot.people.timezone import zone_of
from bot.settings.home import shipped
from bot.settings.schema.tools import ExecSettings
from memory.records.errors import ModelRefused, SettingsWrong

OUR_PACKAGES = ("bot", "agent", "memory", "scheduler")
OUR_DATA = ("prompts", "skills", "HEARTBEAT.md", "slack-manifest.yaml")
PYTHON_MIN = (3, 11)

MB = 1024 * 1024
DISK_FAIL_BYTES, DISK_WARN_BYTES = 100 * MB, 1024 * MB
MEMORY_WARN_MB = 150
"""The bot takes about 100 MB; below this the machine begins to swap or to kill."""

SKEW_WARN_S, SKEW_FAIL_S = 30.0, 240.0
"""Slack refuses what is five minutes off; reminders are off by as much as the clock is."""


def python(version: tuple[int, ...] = sys.version_info[:3]) -> Iterator[Finding]:
    """Yield whether this Python will do."""
    shown = ".".join(map(str, version))
    if version < PYTHON_MIN:
        yield fail(
            f"Python {shown} is too old",
            "Install Python 3.11 or later, then: make clean && make PYTHON=python3.11 setup",
        )
    else:
        yield ok(f"Python {shown}")


def installation(
    claims: Mapping[str, Sequence[str]] | None = None, data: Sequence[str] = OUR_DATA
) -> Iterator[Finding]:
    """Yield whether all is there, and whether nobody else's package stands in the way of ours."""
    claims = importlib.metadata.packages_distributions() if claims is None else claims
    strangers = {
        owner: name
        for name in OUR_PACKAGES
        for owner in claims.get(name, ())
        if owner != "hearthbot"
    }
    for owner, name in strangers.items():
        yield fail(
            f"the package {owner} also brings modules called {name}, which may replace ours",
            f"{sys.executable} -m pip uninstall {owner}, then install Hearthbot again; it wants an "
            "environment of its own",
        )
    missing = []
    for name in data:
        try:
            shipped(name)
        except SettingsWrong:
            missing.append(name)
    if missing:
        yield fail(f"the installation lacks {', '.join(missing)}", "make setup")
    if not strangers and not missing:
        yield ok("complete, and alone under its names")


def embedded_model() -> Iterator[Finding]:
    """Yield whether the model for the case of need is there."""
    try:
        path = weights("embedded")
    except ModelRefused as error:
        yield warn(str(error).partition(":")[0], "make setup")
        return
    yield ok(f"{path.name} is installed")


def disk(folder: Path, *, warn_bytes: int = DISK_WARN_BYTES) -> Iterator[Finding]:
    """Yield whether there is room to write."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    fix = f"Free some space on the disk of {there}."
    if free < min(DISK_FAIL_BYTES, warn_bytes):
        yield fail(f"only {free // MB} MB are free", fix)
    elif free < warn_bytes:
        yield warn(f"only {free // MB} MB are free", fix)
    else:
        yield ok(f"{free / MB / 1024:.1f} GB are free")


def sandbox(programs: ExecSettings) -> Iterator[Finding]:
    """Yield whether programs that the assistant runs are confined."""
    if not programs.enabled:
        yield ok("exec is off, so no program is run")
        return
    bubblewrap = Bubblewrap(is_wanted=programs.sandbox)
    if bubblewrap.works():
        yield ok("programs run confined, by bubblewrap")
    elif not programs.sandbox:
        yield warn(
            "switched off: each program is asked about, and none is run after outside text",
            "Set exec.sandbox = true.",
        )
    else:
        yield warn(
            f"programs run without one ({bubblewrap.why_not}): each is asked about, and none is "
            "run after outside text",
            "On Debian and Ubuntu: apt install bubblewrap.",
        )


def memory(source: Path = Path("/proc/meminfo")) -> Iterator[Finding]:
    """Yield whether the machine has memory left."""
    try:
        lines = source.read_text("ascii").splitlines()
    except OSError:
        yield ok("not told by this system")
        return
    available = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), "")
    if not available.isdecimal():
        yield ok("not told by this system")
        return
    free_mb = int(available) // 1024
    if free_mb < MEMORY_WARN_MB:
        yield warn(
            f"only {free_mb} MB are available",
            "End other programs, or give the machine more memory or swap.",
        )
    else:
        yield ok(f"{free_mb:,} MB are available")


def time_zone(
    host: str, people: Sequence[str] = (), env: Mapping[str, str] | None = None
) -> Iterator[Finding]:
    """Yield whether zones can be read: this machine's, and those of people."""
    if not available_timezones():
        yield fail(
            "this machine has no list of time zones", "Install the package tzdata of your system."
        )
        return
    wanted = (os.environ if env is None else env).get("TZ", "").lstrip(":")
    unknown = [zone for zone in people if zone_of(zone) is None]
    for zone in unknown:
        yield fail(
            f"a person's zone, {zone}, is not known here",
            "Install the package tzdata of your system, or set another with /timezone.",
        )
    if wanted and wanted != host:
        yield warn(f"TZ is {wanted}, which no zone is called, so {host} is used", "Correct TZ.")
    elif not unknown:
        yield ok(host)


async def clock(url: str, *, who: str) -> list[Finding]:
    """Return whether our clock agrees with a server's. Raises Unreachable."""
    before = datetime.now(UTC)
    answer = await ask(url, who=who)
    after = datetime.now(UTC)
    if answer.date is None:
        return [ok(f"not compared: {who} does not tell the time")]
    # The server told its time somewhere in between, and in whole seconds.
    ahead = max((before - answer.date).total_seconds() - 1, 0.0)
    behind = max((answer.date - after).total_seconds(), 0.0)
    skew = ahead or -behind
    if abs(skew) < SKEW_WARN_S:
        return [ok(f"agrees with {who}")]
    side = "ahead of" if skew > 0 else "behind"
    text = f"this machine's clock is {abs(skew):.0f} s {side} {who}"
    fix = "sudo timedatectl set-ntp true"
    return [fail(text, fix) if abs(skew) >= SKEW_FAIL_S else warn(text, fix)]


def pictures(side_max: int, *, installed: bool | None = None) -> Iterator[Finding]:
    """Yield whether large pictures are made smaller: a hint, never a fault."""
    if is_installed() if installed is None else installed:
        yield ok(f"larger ones are shown as copies of {side_max:,} pixels a side")
    else:
        yield ok(
            f"those of more than {size_of(PICTURE_BYTES_MAX)} or {PICTURE_SIDE_MAX:,} pixels a "
            f"side are not shown to the model; to have them made smaller: {INSTALL}"
        )
