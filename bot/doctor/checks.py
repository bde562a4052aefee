"""All checks of `hearthbot doctor`, in the order in which they are shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

from agent.mcp.servers import ServerFolders
from bot.doctor import home as of_home
from bot.doctor import machine, reach, stored
from bot.doctor.base import DoctorCheck, Finding, blocking, in_thread, ok, warn
from bot.doctor.live_slack import MANIFEST
from bot.settings.home import Home, is_held, shipped
from bot.settings.options import host_zone, servers_of
from bot.settings.schema.settings import Settings
from memory.database.backup import all_backups, newest_good
from memory.database.checkup import Checkup, look
from memory.records.errors import SettingsWrong, StorageError

LookAt = Callable[[Checkup], Iterable[Finding]]
STORED_S = 4.0
"""How long the database is checked; a larger one is checked by the daily backup."""


def manifest() -> Path:
    """Return the manifest of the Slack app that ships with the program. Where it is missing, which
    the doctor tells, scopes are not compared."""
    try:
        return shipped(MANIFEST)
    except SettingsWrong:
        return Path(MANIFEST)


def all_checks(
    home: Home, settings: Settings | None, env: Mapping[str, str], *, offline: bool
) -> Iterator[DoctorCheck]:
    """Yield them; `settings` None: they cannot be used, which a check says."""
    yield blocking("python", machine.python)
    yield blocking("installation", machine.installation)
    yield blocking("settings", partial(of_home.settings, home, env))
    yield blocking("folders", partial(of_home.folders, home))
    yield blocking("modes", partial(of_home.modes, home))
    yield blocking("leftovers", partial(of_home.leftovers, home))
    yield blocking("log", partial(of_home.log_files, home))
    yield blocking("disk", partial(machine.disk, home.path))
    yield blocking("memory", machine.memory)
    yield blocking("embedded model", machine.embedded_model)
    yield DoctorCheck(name="process", look=lambda: of_home.process(home))
    yield DoctorCheck(name="housekeeping", look=lambda: of_home.housekeeping(home))
    yield from _DatabaseLook(home).checks()
    if settings is None:
        unknown = warn("not checked, as the settings cannot be used", "Correct the settings first.")
        yield blocking("model, channels, prompts, skills", lambda: [unknown])
        return
    yield blocking("prompts", partial(stored.prompts, home, settings))
    yield blocking("skills", partial(stored.skills, home, settings))
    yield blocking("pictures", partial(machine.pictures, settings.attachments.picture_side))
    exec_ = settings.exec
    sandbox = partial(machine.sandbox, is_wanted=exec_.sandbox, is_used=exec_.enabled)
    yield blocking("sandbox", sandbox)
    where = ServerFolders(workspace=home.workspace, env=env)
    yield from reach.checks(servers_of(settings), where, offline=offline)
    yield DoctorCheck(name="channels", look=lambda: reach.channels(settings))
    if not offline:
        yield from _platforms(home, settings, env)


def _platforms(home: Home, settings: Settings, env: Mapping[str, str]) -> Iterator[DoctorCheck]:
    limit_s = reach.MODEL_S + reach.VERSION_S + 5
    for name in ("", *reach.other_models(settings)):
        yield DoctorCheck(
            name=f"model {name}".strip(),
            look=partial(reach.model, settings, env, *([name] if name else [])),
            limit_s=limit_s,
        )
    if settings.telegram.token.get_secret_value():
        yield DoctorCheck(name="Telegram", look=lambda: reach.telegram_token(settings))
        yield DoctorCheck(name="Telegram webhook", look=lambda: reach.telegram_webhook(settings))
        if not is_held(home):
            yield DoctorCheck(
                name="Telegram conflict",
                look=lambda: reach.telegram_conflict(settings),
                limit_s=2.5 * reach.CONFLICT_S,
            )
    if settings.slack.bot_token.get_secret_value():
        yield DoctorCheck(name="Slack", look=lambda: reach.slack_bot(settings, manifest()))
        if settings.slack.mode == "socket":
            yield DoctorCheck(name="Slack socket", look=lambda: reach.slack_socket(settings))
    if source := reach.clock_source(settings):
        url, who = source
        yield DoctorCheck(name="clock", look=lambda: machine.clock(url, who=who))


class _DatabaseLook:
    """Looks at the database once, for all checks that want to know."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock = asyncio.Lock()
        self._is_done = False
        self._found: Checkup | None = None
        self._trouble = ""

    def checks(self) -> Iterator[DoctorCheck]:
        """Yield the checks of what is stored."""
        home, zone = self._home, host_zone()
        ownerless = warn("nobody is the owner yet", "hearthbot init")

        def working(look_at: Callable[..., Iterable[Finding]]) -> LookAt:
            return lambda found: look_at(found, now=datetime.now(UTC), is_running=is_held(home))

        looks: Sequence[tuple[str, LookAt, Sequence[Finding]]] = (
            ("inbox", working(stored.inbox), []),
            ("outbox", working(stored.outbox), []),
            ("schedule", working(stored.schedule), [ok("no job is set")]),
            ("pause", partial(stored.pause, host_zone=ZoneInfo(zone)), []),
            ("owner", stored.owner, [] if home.database.exists() else [ownerless]),
            (
                "time zone",
                lambda found: machine.time_zone(zone, found.zones),
                list(machine.time_zone(zone)),
            ),
        )
        yield DoctorCheck(name="database", look=self._database, limit_s=2 * STORED_S)
        yield DoctorCheck(name="backup", look=self._backup, limit_s=2 * STORED_S)
        for name, look_at, nothing in looks:
            look_in = partial(self._look_in, look_at, nothing)
            yield DoctorCheck(name=name, look=look_in, limit_s=2 * STORED_S)

    async def _database(self) -> Sequence[Finding]:
        """The file itself."""
        home = self._home
        if not home.database.exists() or not home.database.stat().st_size:
            if not all_backups(home.database, home.backups):
                return [ok("none yet; the first start makes it")]
            self._trouble = f"{home.database} is missing or empty, though there are backups"
        found = await self._looked()
        is_good = found and found.ours and not found.trouble and found.version <= found.newest

        def saved() -> list[Path | None]:
            return [None if is_good else newest_good(home.database, home.backups)]

        (backup,) = await in_thread(saved)
        if found is None:
            return [stored.damaged(home, self._trouble, good_backup=backup)]
        return list(stored.database(home, found, good_backup=backup))

    async def _backup(self) -> Sequence[Finding]:
        """The daily copies."""
        home = self._home
        if not home.database.exists():
            return []
        newest = next(iter(all_backups(home.database, home.backups)), None)
        return list(stored.backups(home, newest, now=datetime.now(UTC)))

    async def _look_in(self, look_at: LookAt, nothing: Sequence[Finding]) -> Sequence[Finding]:
        """Look at what the database says; `nothing` is found where there is none."""
        found = await self._looked()
        return nothing if found is None else list(look_at(found))

    async def _looked(self) -> Checkup | None:
        async with self._lock:
            file = self._home.database
            if self._is_done or self._trouble or not file.exists() or not file.stat().st_size:
                return self._found
            self._is_done = True
            now_ms = int(datetime.now(UTC).timestamp() * 1000)
            try:
                (self._found,) = await in_thread(
                    lambda: [look(file, limit_s=STORED_S, now_ms=now_ms)]
                )
            except StorageError as error:
                self._trouble = str(error)
            return self._found
