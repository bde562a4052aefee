"""Checks of the home: settings, who can read what, leftovers, the log, and who holds it."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bot.app.app import App
from bot.doctor.base import Finding, fail, ok, warn
from bot.rpc import ControlClient, NotAnswering, NotRunning
from bot.settings.edit import BACKUP_ENDING
from bot.settings.home import PRIVATE_FILE, PRIVATE_FOLDER, Home, is_held
from bot.settings.load import holds_secret, load
from bot.settings.schema.settings import ENV_HOME, ENV_PREFIX
from memory.records.errors import SettingsWrong

LOG_WARN_BYTES = 50 * 1024 * 1024
MODES_SHOWN_MAX = 20
HALF_WRITTEN = ("*.making", "*.creating", "*.upgrading")

RESTART_DUE = "restart is due"
UNHEARD = "No messages from"


def settings(home: Home, env: Mapping[str, str]) -> Iterator[Finding]:
    """Every problem of config.toml and of the environment."""
    try:
        load(home.path, env)
    except SettingsWrong as error:
        problems = [line[2:] for line in str(error).splitlines() if line.startswith("- ")]
        for problem in problems or [str(error)]:
            yield fail(problem, "Correct it; config.example.toml shows every key.")
        return
    by_environment = [name for name in env if name.startswith(ENV_PREFIX) and name != ENV_HOME]
    if home.config.exists():
        yield ok(f"{home.config} and the environment can be used")
    elif by_environment:
        yield ok(f"no {home.config.name}; {len(by_environment)} settings of the environment")
    else:
        yield warn(f"there is no {home.config}: all is as shipped", "hearthbot init")


def folders(home: Home) -> Iterator[Finding]:
    """Yield whether the folders are there and can be written."""
    if not home.path.exists():
        yield warn(
            f"{home.path} is not there yet", "hearthbot init", lambda: _made(_folders_of(home))
        )
        return
    wrong = False
    for folder in _folders_of(home):
        if not folder.exists():
            wrong = True
            yield warn(
                f"{folder} is missing",
                f"mkdir -m 700 {_quoted(folder)}",
                lambda folder=folder: _made([folder]),  # type: ignore[misc]
            )
        elif not folder.is_dir():
            wrong = True
            yield fail(f"{folder} is not a folder", f"mv {_quoted(folder)} {_quoted(folder)}.old")
        elif not os.access(folder, os.W_OK | os.X_OK):
            wrong = True
            yield fail(f"{folder} cannot be written", _own(folder))
    if not wrong:
        yield ok(str(home.path))


def modes(home: Home) -> Iterator[Finding]:
    """Yield whether others can read what is private."""
    found = list(_open_paths(home))
    yield from found[:MODES_SHOWN_MAX]
    if len(found) > MODES_SHOWN_MAX:
        more = len(found) - MODES_SHOWN_MAX
        yield warn(f"{more} more files are open to others", "hearthbot doctor --fix")
    if not found:
        yield ok("private")


def log_files(home: Home, *, warn_bytes: int = LOG_WARN_BYTES) -> Iterator[Finding]:
    """Yield whether the log can be written, and has not grown beyond its bound."""
    log = home.log_file
    if log.exists() and not (log.is_file() and os.access(log, os.W_OK)):
        yield fail(f"{home.log_file} cannot be written", _own(home.log_file))
        return
    files = [file for file in home.logs.glob("*") if file.is_file()] if home.logs.is_dir() else []
    size = sum(file.stat().st_size for file in files)
    shown = f"{size / 1024 / 1024:.1f} MB in {home.logs}"
    if size > warn_bytes:
        largest = max(files, key=lambda file: file.stat().st_size)
        yield warn(f"{shown}, most of it in {largest.name}", f"rm {_quoted(largest)}")
    else:
        yield ok(shown)


async def process(home: Home) -> list[Finding]:
    """Return whether a bot runs, listens, hears its platforms, and has the settings that are there
    now."""
    try:
        async with ControlClient(home.socket) as client:
            lines = await client.call(App.status.lines, for_owner=True)
    except (NotRunning, OSError):
        return [_silent(home)]
    except NotAnswering as hung:
        return [fail("the bot of this home is not responding", str(hung))]
    if any(RESTART_DUE in line for line in lines):
        return [warn("the settings were changed since the bot started", "Restart the bot.")]
    if unheard := [line for line in lines if line.startswith(UNHEARD)]:
        return [warn(what, fix) for what, _, fix in (line.partition(". ") for line in unheard)]
    return [ok(f"a bot runs on this home: {lines[0] if lines else ''}")]


async def housekeeping(home: Home) -> list[Finding]:
    """Return whether the running bot makes backups, removes what is old, and trusts its clock."""
    try:
        async with ControlClient(home.socket) as client:
            lines = await client.call(App.housekeeping.troubles)
    except (NotRunning, OSError):
        return [ok("not checked: no bot is running on this home")]
    fix = f"Search {home.log_file} for housekeeping and clock; failed tasks are tried again hourly."
    return [warn(line, fix) for line in lines] or [ok("all done")]


def _silent(home: Home) -> Finding:
    if is_held(home):
        try:
            holder = home.lock.read_text("ascii", "replace").partition(" ")[0]
        except OSError:
            holder = ""
        return fail(
            "a process holds this home but does not answer on its socket",
            f"Wait a little if it is just starting; else end it: kill {holder or 'PID'}",
        )
    if home.socket.exists() or home.socket.is_symlink():
        return warn(
            f"{home.socket} is left over from a bot that was killed",
            "The next start removes it.",
            lambda: _removed(home.socket),
        )
    return ok("no bot runs on this home")


def leftovers(home: Home) -> Iterator[Finding]:
    """Files that were half-written when a process was killed."""
    # A file that is being written now looks like one that was left over.
    if is_held(home):
        yield ok("not looked for while a bot runs")
        return
    found = list(home.path.glob(f".{home.config.name}.*"))
    written = [file for name in HALF_WRITTEN for file in home.data.glob(f"**/{name}")]
    found += [file for file in written if not file.is_relative_to(home.servers)]
    for file in found:
        yield warn(
            f"{file} was being written when a process was killed",
            f"rm {_quoted(file)}",
            lambda file=file: _removed(file),  # type: ignore[misc]
        )
    if not found:
        yield ok("none")


def _folders_of(home: Home) -> list[Path]:
    return [home.path, home.workspace, home.data, home.logs]


def _open_paths(home: Home) -> Iterator[Finding]:
    # The home itself may be seen, but who could write there could put in another config.toml.
    refused = {home.path: 0o022, home.workspace: 0o077, home.data: 0o077, home.logs: 0o077}
    for folder, bits in refused.items():
        mode = _mode(folder)
        if mode & bits:
            yield _open(folder, mode, PRIVATE_FOLDER, is_bad=bool(mode & 0o022))
    backup = home.config.with_name(home.config.name + BACKUP_ENDING)
    for file in (home.config, backup):
        mode = _mode(file)
        if mode & 0o077 and (mode & 0o022 or holds_secret(file)):
            yield _open(file, mode, PRIVATE_FILE, is_bad=True)
    for folder in (home.data, home.logs):
        for file in sorted(folder.glob("**/*")):
            if home.servers in file.parent.parents:
                continue  # a server's own, in a folder that is closed to others
            mode = _mode(file)
            if mode & 0o077 and not file.is_symlink():
                private = PRIVATE_FOLDER if file.is_dir() else PRIVATE_FILE
                yield _open(file, mode, private, is_bad=bool(mode & 0o022))


def _open(path: Path, mode: int, private: int, *, is_bad: bool) -> Finding:
    report = fail if is_bad else warn
    what = "be changed" if mode & 0o022 else "be read"
    return report(
        f"{path} can {what} by others (mode {mode:04o})",
        f"chmod {private:o} {_quoted(path)}",
        lambda: _made_private(path, private),
    )


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0


def _made(missing: Sequence[Path]) -> str:
    for folder in missing:
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    return f"made {', '.join(map(str, missing))}"


def _made_private(path: Path, mode: int) -> str:
    path.chmod(mode)
    return f"chmod {mode:o} {path}"


def _removed(path: Path) -> str:
    path.unlink(missing_ok=True)
    return f"removed {path}"


def _own(path: Path) -> str:
    return f"sudo chown -R $(id -un) {_quoted(path)} && chmod -R u+rwX {_quoted(path)}"


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
