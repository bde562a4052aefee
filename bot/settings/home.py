"""The home: the one folder that holds a bot's settings, workspace and data.

The command line finds it, prepares it and takes its lock; `bot.app` gets the paths from it.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import resource
import shlex
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from bot.settings.load import holds_secret
from bot.settings.schema.settings import CONFIG_NAME, ENV_HOME, ENV_PREFIX
from memory.records.errors import AssistantError, HomeBusy, SettingsWrong, StorageError, StorageFull

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


@dataclass(frozen=True, slots=True)
class Home:
    """Where everything of one bot lies. `path` is absolute, without links."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / CONFIG_NAME

    @property
    def workspace(self) -> Path:
        return self.path / "workspace"

    @property
    def prompts(self) -> Path:
        """Templates that win over the shipped ones of the same name."""
        return self.workspace / "prompts"

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def database(self) -> Path:
        return self.data / "hearthbot.db"

    @property
    def backups(self) -> Path:
        return self.data / "backups"

    @property
    def servers(self) -> Path:
        """Where MCP servers run, each in a folder of its own, of which it alone knows the files."""
        return self.data / "mcp"

    @property
    def lock(self) -> Path:
        return self.data / "hearthbot.lock"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def log_file(self) -> Path:
        return self.logs / "hearthbot.log"

    @property
    def socket(self) -> Path:
        """The private socket; `bot.rpc` reaches it however long the path is."""
        return self.data / "hearthbot.sock"


OPEN_FILES = 256
"""Open files that a bot needs: 85, connections included, while 64 turns ran on two platforms
(measured 2026-11-29). Each MCP server and each program that runs takes three or four more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeProblem:
    """Something that works but should not stay so, and what to do about it."""

    problem: str
    fix: str


def find_home(env: Mapping[str, str]) -> Home:
    """HEARTHBOT_HOME, or ~/.hearthbot. Creates nothing."""
    user_folder = Path(env["HOME"]) if env.get("HOME") else Path.home()
    wanted = env.get(ENV_HOME) or "~/.hearthbot"
    if wanted == "~" or wanted.startswith("~/"):
        return Home((user_folder / wanted[2:]).resolve())
    return Home(Path(wanted).resolve())


def prepare(home: Home) -> list[HomeProblem]:
    """Creates what is missing, and says what is readable by others.

    May be called at any time, beside a running bot and on a full disk too; whether the home can be
    written shows when the lock is taken. Raises SettingsWrong when the home cannot be used.
    """
    for folder in (home.path, home.workspace, home.data, home.logs):
        try:
            folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        except OSError as error:
            raise _trouble(folder, error) from error
    # Without a database it is the first run; later, a checklist that is gone was removed on
    # purpose.
    checklist = home.workspace / "HEARTBEAT.md"
    if not home.database.exists() and not checklist.exists():
        try:
            write_private(checklist, shipped("HEARTBEAT.md").read_bytes())
        except OSError as error:
            raise _trouble(checklist, error) from error
    return list(_open_to_others(home))


def shipped(name: str) -> Path:
    """A file or folder that comes with the program: `prompts`, `skills`, `HEARTBEAT.md`."""
    package = Path(__file__).parents[1]
    checkout = package.parent
    # Beside an installed package lie other people's folders, so a bare `prompts` proves nothing.
    roots = [package / "shipped", *([checkout] if (checkout / "pyproject.toml").is_file() else [])]
    for root in roots:
        if (root / name).exists():
            return root / name
    raise SettingsWrong(f"The installation is incomplete: {name} is missing. Install it again.")


def write_private(path: Path, content: bytes) -> None:
    """Writes a file as a whole or not at all, readable by us alone."""
    # mkstemp makes it 0600, whatever the umask.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def ensure_open_files() -> None:
    """Lift the limit of open files to what a bot needs, if it is lower. Raises SettingsWrong if
    that is not allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= OPEN_FILES or soft == resource.RLIM_INFINITY:
        return
    if hard < OPEN_FILES and hard != resource.RLIM_INFINITY:
        raise SettingsWrong(
            f"This process may open only {hard} files at a time, and the bot needs {OPEN_FILES}. "
            f"Run `ulimit -n {OPEN_FILES}` before you start it, or put LimitNOFILE={OPEN_FILES} in "
            "its unit file."
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, hard))


# --- has the configuration changed since the start ---------------------------------------------


def settings_digest(home: Home, env: Mapping[str, str]) -> str:
    """Return what the settings were read from, as a mark to compare. Take it before `load`.

    For memory only: it is made from secrets, so it must not be written down.
    """
    try:
        content = home.config.read_bytes()
    except OSError:
        content = b""
    ours = sorted((name, value) for name, value in env.items() if name.startswith(ENV_PREFIX))
    digest = hashlib.sha256(content)
    digest.update(repr(ours).encode())
    return digest.hexdigest()


def settings_changed(home: Home, loaded_digest: str, env: Mapping[str, str]) -> bool:
    """Return whether a restart is due for the settings to take effect."""
    return settings_digest(home, env) != loaded_digest


# --- one running bot per home ------------------------------------------------------------------


class HomeLock:
    """Held by the one bot that runs on a home, from entering to leaving.

    The kernel lets go of it when the process ends, however it ends. Entering raises HomeBusy while
    another holds it.
    """

    def __init__(self, home: Home, *, started_at: datetime) -> None:
        self._home = home
        self._started_at = started_at
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        lock = self._home.lock
        signature = f"{os.getpid()} {self._started_at.isoformat(timespec='seconds')}\n"
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        except OSError as error:
            raise _trouble(lock, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, signature.encode(), 0)
            _probe(self._home.data)
        except BlockingIOError:
            holder = os.pread(descriptor, 200, 0).decode("ascii", "replace")
            os.close(descriptor)
            raise HomeBusy(_busy(self._home, holder)) from None
        except OSError as error:
            os.close(descriptor)
            raise _trouble(lock, error) from error
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._descriptor is None:
            return
        # The file stays: who removes it could remove one that another just locked.
        os.ftruncate(self._descriptor, 0)
        # Closing is not enough: a program that a thread is just starting has a copy until it runs.
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)
        self._descriptor = None


def _busy(home: Home, holder: str) -> str:
    if not (signed := re.match(r"(\d+) (\S+)", holder)):
        return f"Another Hearthbot runs on {home.path}. Stop it first."
    pid, since = signed.groups()
    return (
        f"Another Hearthbot runs on {home.path}: process {pid}, since {since}. Stop it with "
        f"`kill {pid}`, or give this one a home of its own ({ENV_HOME})."
    )


# --- the steps of prepare ----------------------------------------------------------------------


def is_held(home: Home) -> bool:
    """Return whether a process holds the home now. Never makes the lock file."""
    try:
        descriptor = os.open(home.lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # Shared, and given back at once: a bot that starts in this very moment would be refused.
        if not os.fstat(descriptor).st_size:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _probe(folder: Path) -> None:
    """Finds out now, not at the first message, whether a folder can be written."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"probe")
    except OSError as error:
        raise _trouble(folder, error) from error


def _open_to_others(home: Home) -> Iterator[HomeProblem]:
    if _mode(home.config) & 0o077 and holds_secret(home.config):
        mode = _mode(home.config)
        yield HomeProblem(
            problem=f"{home.config} holds a secret and others can read it (mode {mode:04o})",
            fix=f"chmod 600 {shlex.quote(str(home.config))}",
        )
    # The home itself may be seen, as it often is made by somebody else (a container, systemd);
    # who can write there could put in another config.toml.
    refused = {home.path: 0o022, home.workspace: 0o077, home.data: 0o077, home.logs: 0o077}
    for folder, bits in refused.items():
        if _mode(folder) & bits:
            yield HomeProblem(
                problem=f"{folder} is open to others (mode {_mode(folder):04o})",
                fix=f"chmod 700 {shlex.quote(str(folder))}",
            )


def _mode(path: Path) -> int:
    """The mode bits, 0 for what is not there."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return 0


def _trouble(path: Path, error: OSError) -> AssistantError:
    """Return what the operating system says, as a sentence with a way out."""
    elsewhere = f"or set {ENV_HOME} to another folder"
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return StorageFull(f"No space is left to write {path}. Free some, then try again.")
        case errno.ENOTDIR | errno.EEXIST:
            return SettingsWrong(f"{path} is not a folder. Move it away, {elsewhere}.")
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return SettingsWrong(
                f"{path} cannot be written ({error.strerror}). Make it this user's, {elsewhere}."
            )
        case _:
            return StorageError(f"{path} cannot be used: {error.strerror}.")
