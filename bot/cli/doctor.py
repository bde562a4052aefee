"""`hearthbot doctor`: everything that can be wrong, with what to do about it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli.context import FAILED
from bot.lean import load_without
from memory.records.errors import SettingsWrong, StorageError

if TYPE_CHECKING:
    from bot.doctor.base import DoctorCheck, Finding, Result
    from bot.settings.home import Home
    from bot.settings.schema.settings import Settings
    from memory.database.checkup import Checkup

COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}
MARKS = {"ok": "✓", "warn": "!", "fail": "✗"}

STORED_S = 4.0
"""How long the database is checked; a larger one is checked by the daily backup."""


def doctor(
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Mend what can be mended safely: modes, folders, leftovers."),
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask neither the model nor a platform.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check everything: settings, files, database, model, tokens, clock; each with its fix."""
    load_without("click", "httpx")
    from bot.cli.console_terminal import silent_logs
    from bot.doctor.base import is_well, mend_all
    from bot.settings.home import find_home

    env = dict(os.environ)
    home = find_home(env)
    with silent_logs():
        found = _examined(home, env, offline=offline, quiet=as_json)
    results = _cleaned(found, home, env)
    if fix:
        results = mend_all(results)
    if as_json:
        typer.echo(json.dumps(_as_json(results), ensure_ascii=False))
    elif sys.stdout.isatty():
        _print_table(results)
    else:
        for line in _plain(results):
            typer.echo(line)
    if not is_well(results):
        raise typer.Exit(FAILED)


# --- what is checked ------------------------------------------------------------------------------


def _examined(
    home: Home, env: Mapping[str, str], *, offline: bool, quiet: bool
) -> Sequence[Result]:
    from bot.doctor.base import run_checks

    settings = _settings(home, env)
    checks = list(_checks(home, settings, env, offline=offline))
    if quiet or not sys.stdout.isatty():
        return asyncio.run(run_checks(checks))
    from rich.console import Console

    left = {check.name for check in checks}
    with Console().status("") as status:

        def done(name: str) -> None:
            left.discard(name)
            waited = ", ".join(sorted(left)[:3])
            status.update(f"{len(checks) - len(left)} of {len(checks)} checks done; {waited} …")

        return asyncio.run(run_checks(checks, done=done))


def _settings(home: Home, env: Mapping[str, str]) -> Settings | None:
    from bot.settings.load import load

    try:
        return load(home.path, env)
    except SettingsWrong:
        return None  # the check of that name says what is wrong


def _checks(
    home: Home, settings: Settings | None, env: Mapping[str, str], *, offline: bool
) -> Iterator[DoctorCheck]:
    from bot.doctor import home as doctor_home
    from bot.doctor import machine as doctor_machine
    from bot.doctor.base import DoctorCheck, blocking

    yield blocking("python", doctor_machine.python)
    yield blocking("installation", doctor_machine.installation)
    yield blocking("settings", partial(doctor_home.settings, home, env))
    yield blocking("folders", partial(doctor_home.folders, home))
    yield blocking("modes", partial(doctor_home.modes, home))
    yield blocking("leftovers", partial(doctor_home.leftovers, home))
    yield blocking("log", partial(doctor_home.log_files, home))
    yield blocking("disk", partial(doctor_machine.disk, home.path))
    yield blocking("memory", doctor_machine.memory)
    yield blocking("embedded model", doctor_machine.embedded_model)
    yield DoctorCheck(name="process", look=lambda: doctor_home.process(home))
    yield DoctorCheck(name="housekeeping", look=lambda: doctor_home.housekeeping(home))
    yield from _stored(home)
    if settings is None:
        yield blocking("model, channels, prompts, skills", _not_without_settings)
        return
    yield from _texts(home, settings)
    yield from _reach(home, settings, env, offline=offline)


def _not_without_settings() -> Iterator[Finding]:
    from bot.doctor.base import warn

    yield warn("not checked, as the settings cannot be used", "Correct the settings first.")


def _texts(home: Home, settings: Settings) -> Iterator[DoctorCheck]:
    from bot.doctor import machine as doctor_machine
    from bot.doctor import stored as doctor_texts
    from bot.doctor.base import blocking

    yield blocking("prompts", partial(doctor_texts.prompts, home, settings))
    yield blocking("skills", partial(doctor_texts.skills, home, settings))
    yield blocking("pictures", partial(doctor_machine.pictures, settings.attachments.picture_side))
    yield blocking(
        "sandbox",
        partial(
            doctor_machine.sandbox,
            is_wanted=settings.exec.sandbox,
            is_used=settings.exec.enabled,
        ),
    )


def _reach(
    home: Home, settings: Settings, env: Mapping[str, str], *, offline: bool
) -> Iterator[DoctorCheck]:
    from agent.mcp.servers import ServerFolders
    from bot.doctor import machine as doctor_machine
    from bot.doctor import reach as doctor_mcp
    from bot.doctor import reach as doctor_reach
    from bot.settings.options import servers_of

    where = ServerFolders(workspace=home.workspace, env=env)
    yield from doctor_mcp.checks(servers_of(settings), where, offline=offline)
    from bot.cli.init import manifest
    from bot.doctor.base import DoctorCheck
    from bot.settings.home import is_held

    yield DoctorCheck(name="channels", look=lambda: doctor_reach.channels(settings))
    if offline:
        return
    limit_s = doctor_reach.MODEL_S + doctor_reach.VERSION_S + 5
    yield DoctorCheck(name="model", look=lambda: doctor_reach.model(settings, env), limit_s=limit_s)
    for name in doctor_reach.other_models(settings):
        yield DoctorCheck(
            name=f"model {name}",
            look=lambda name=name: doctor_reach.model(settings, env, name),  # type: ignore[misc]
            limit_s=limit_s,
        )
    if settings.telegram.token.get_secret_value():
        yield DoctorCheck(name="Telegram", look=lambda: doctor_reach.telegram_token(settings))
        yield DoctorCheck(
            name="Telegram webhook", look=lambda: doctor_reach.telegram_webhook(settings)
        )
        if not is_held(home):
            yield DoctorCheck(
                name="Telegram conflict",
                look=lambda: doctor_reach.telegram_conflict(settings),
                limit_s=2.5 * doctor_reach.CONFLICT_S,
            )
    if settings.slack.bot_token.get_secret_value():
        yield DoctorCheck(name="Slack", look=lambda: doctor_reach.slack_bot(settings, manifest()))
        if settings.slack.mode == "socket":
            yield DoctorCheck(name="Slack socket", look=lambda: doctor_reach.slack_socket(settings))
    if source := doctor_reach.clock_source(settings):
        url, who = source
        yield DoctorCheck(name="clock", look=lambda: doctor_machine.clock(url, who=who))


class _DatabaseLook:
    """The database is looked at once, for all checks that want to know."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock = asyncio.Lock()
        self._is_done = False
        self._found: Checkup | None = None
        self._trouble = ""

    async def database(self) -> Sequence[Finding]:
        """The file itself."""
        from bot.doctor import stored as doctor_stored
        from bot.doctor.base import in_thread, ok
        from memory.database.checkup import good_backup, newest_backup

        home = self._home
        if not home.database.exists() or not home.database.stat().st_size:
            if newest_backup(home.database, home.backups) is None:
                return [ok("none yet; the first start makes it")]
            self._trouble = f"{home.database} is missing or empty, though there are backups"
        found = await self._looked()
        is_good = found and found.ours and not found.trouble and found.version <= found.newest

        def saved() -> list[Path | None]:
            return [None if is_good else good_backup(home.database, home.backups)]

        (backup,) = await in_thread(saved)
        if found is None:
            return [doctor_stored.damaged(home, self._trouble, good_backup=backup)]
        return list(doctor_stored.database(home, found, good_backup=backup))

    async def backup(self) -> Sequence[Finding]:
        """The daily copies."""
        from bot.doctor import stored as doctor_stored
        from memory.database.checkup import newest_backup

        home = self._home
        if not home.database.exists():
            return []
        newest = newest_backup(home.database, home.backups)
        return list(doctor_stored.backups(home, newest, now=datetime.now(UTC)))

    async def inbox(self) -> Sequence[Finding]:
        """Messages that came."""
        from bot.doctor import stored as doctor_stored
        from bot.settings.home import is_held

        found = await self._looked()
        if found is None:
            return []
        now, is_running = datetime.now(UTC), is_held(self._home)
        return list(doctor_stored.inbox(found, now=now, is_running=is_running))

    async def outbox(self) -> Sequence[Finding]:
        """Replies on their way."""
        from bot.doctor import stored as doctor_stored
        from bot.settings.home import is_held

        found = await self._looked()
        if found is None:
            return []
        now, is_running = datetime.now(UTC), is_held(self._home)
        return list(doctor_stored.outbox(found, now=now, is_running=is_running))

    async def schedule(self) -> Sequence[Finding]:
        """What runs by the clock."""
        from bot.doctor import stored as doctor_stored
        from bot.doctor.base import ok
        from bot.settings.home import is_held

        found = await self._looked()
        if found is None:
            return [ok("no job is set")]
        now, is_running = datetime.now(UTC), is_held(self._home)
        return list(doctor_stored.schedule(found, now=now, is_running=is_running))

    async def pause(self) -> Sequence[Finding]:
        """Whether it stands still on purpose."""
        from zoneinfo import ZoneInfo

        from bot.doctor import stored as doctor_stored
        from bot.settings.options import host_zone

        found = await self._looked()
        if found is None:
            return []
        return list(doctor_stored.pause(found, host_zone=ZoneInfo(host_zone())))

    async def owner(self) -> Sequence[Finding]:
        """Whether there is one."""
        from bot.doctor import stored as doctor_stored
        from bot.doctor.base import warn

        found = await self._looked()
        if found is not None:
            return list(doctor_stored.owner(found))
        if self._home.database.exists():
            return []
        return [warn("nobody is the owner yet", "hearthbot init")]

    async def time_zone(self) -> Sequence[Finding]:
        """This machine's zone, and those of people."""
        from bot.doctor import machine as doctor_machine
        from bot.settings.options import host_zone

        found = await self._looked()
        return list(doctor_machine.time_zone(host_zone(), found.zones if found else ()))

    async def _looked(self) -> Checkup | None:
        from bot.doctor.base import in_thread
        from memory.database.checkup import look

        async with self._lock:
            file = self._home.database
            if self._is_done or self._trouble or not file.exists() or not file.stat().st_size:
                return self._found
            self._is_done = True
            now_ms = int(datetime.now(UTC).timestamp() * 1000)

            def work() -> list[Checkup]:
                return [look(file, limit_s=STORED_S, now_ms=now_ms)]

            try:
                (self._found,) = await in_thread(work)
            except StorageError as error:
                self._trouble = str(error)
            return self._found


def _stored(home: Home) -> Iterator[DoctorCheck]:
    from bot.doctor.base import DoctorCheck

    stored, limit_s = _DatabaseLook(home), 2 * STORED_S
    for name, look in (
        ("database", stored.database),
        ("backup", stored.backup),
        ("inbox", stored.inbox),
        ("outbox", stored.outbox),
        ("schedule", stored.schedule),
        ("pause", stored.pause),
        ("owner", stored.owner),
        ("time zone", stored.time_zone),
    ):
        yield DoctorCheck(name=name, look=look, limit_s=limit_s)


# --- what is shown --------------------------------------------------------------------------------


def _cleaned(results: Sequence[Result], home: Home, env: Mapping[str, str]) -> list[Result]:
    """No check means to show a secret; this makes sure of it."""
    from bot.settings.logging import Redactor, secrets_of

    settings = _settings(home, env)
    kept = (
        secrets_of(settings, env)
        if settings
        else [
            value
            for name, value in env.items()
            if name.endswith(("TOKEN", "_KEY", "SECRET")) and value
        ]
    )
    clean = Redactor(kept).clean
    return [
        replace(
            one,
            finding=replace(one.finding, text=clean(one.finding.text), fix=clean(one.finding.fix)),
        )
        for one in results
    ]


def _as_json(results: Sequence[Result]) -> dict[str, Any]:
    from bot.doctor.base import is_well

    return {
        "ok": is_well(results),
        "checks": [
            {
                "name": one.check,
                "level": one.finding.level.value,
                "text": one.finding.text,
                "fix": "" if one.mended else one.finding.fix,
                "fixed": one.mended,
            }
            for one in results
        ],
    }


def _plain(results: Sequence[Result]) -> Iterator[str]:
    """A line each, parted by tabs: level, check, what was found, what to do."""
    for one in results:
        finding = one.finding
        fields = [finding.level.value, one.check, finding.text]
        fields.append(f"fixed: {one.mended}" if one.mended else finding.fix)
        yield "\t".join(" ".join(field.split()) for field in fields).rstrip("\t")


def _print_table(results: Sequence[Result]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from memory.records.text import clean

    table = Table(show_header=False, box=None, pad_edge=False)
    for one in results:
        level, finding = one.finding.level.value, one.finding
        said = Text(clean(finding.text))
        if one.mended:
            said.append(f"\n→ fixed: {clean(one.mended)}", style="green")
        elif finding.fix:
            said.append(f"\n→ {clean(finding.fix)}", style=COLOURS[level])
        table.add_row(Text(f"{MARKS[level]} {level}", style=COLOURS[level]), one.check, said)
    console = Console()
    console.print(table)
    counts = Counter(one.finding.level.value for one in results)
    words = {"fail": "failed", "warn": "to look at", "ok": "well"}
    console.print(
        "\n"
        + ", ".join(f"{counts[level]} {word}" for level, word in words.items() if counts[level])
    )
    if any(one.finding.mend is not None and not one.mended for one in results):
        console.print("hearthbot doctor --fix mends some of it.")
