"""What a program is told of its surroundings: a short list, never what the bot itself was given.

Called by whoever starts a program. Of the bot's own variables only those that say how to find
programs and how to write pass, so that no key reaches a program (threat T18, case SE-15).
"""

from __future__ import annotations

import ctypes
import os
import re
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

from pydantic import SecretStr

from memory.records.errors import Permanent

SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
"""Where programs are looked for inside the sandbox."""

PASSED = ("LANG", "LC_ALL", "LC_CTYPE", "TZ")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEERS_LOADING = re.compile(r"LD_|DYLD_|PATH$|HOME$|BASH_ENV$|ENV$|PYTHON(?!DONT)|GLIBC_|MALLOC_")
_PR_SET_DUMPABLE = 4


class EnvironmentWrong(Permanent):
    """A variable that the owner set for a skill cannot be handed to a program."""


Given = Mapping[str, SecretStr | str]
"""Variables that the owner gave to one skill, by name."""


def base_python() -> Path:
    """The interpreter without the bot's own libraries: what scripts run with."""
    return Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def confined_environment(workspace: Path, own: Mapping[str, str]) -> Mapping[str, str]:
    """Return what a program in the sandbox sees. `own` are the variables of this process."""
    path = (*SYSTEM_PATH, str(base_python().parent))
    return _environment(workspace, own, path=os.pathsep.join(path))


def open_environment(workspace: Path, own: Mapping[str, str]) -> Mapping[str, str]:
    """Return what a program without sandbox sees: the same, with the PATH that its owner is used
    to."""
    return _environment(workspace, own, path=own.get("PATH") or os.pathsep.join(SYSTEM_PATH))


def given_variables(given: Given) -> Mapping[str, str]:
    """The variables of one skill, as its process gets them.

    Raises EnvironmentWrong for a name that is none, or that would change how programs are found
    and loaded: a setting for a key is not the place for that.
    """
    return {name: _plain(name, value) for name, value in given.items()}


def close_to_others() -> bool:
    """Keeps other processes of the same user from reading this one's memory and environment.

    True where the system could do so (Linux). To be called once, at start: a program that runs
    without sandbox could else read `/proc/PID/environ` of the bot. Against root nothing helps.
    """
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)


def _environment(workspace: Path, own: Mapping[str, str], *, path: str) -> Mapping[str, str]:
    passed = {name: own[name] for name in PASSED if own.get(name)}
    return {
        "LANG": "C.UTF-8",
        **passed,
        "PATH": path,
        "HOME": str(workspace),
        "TMPDIR": "/tmp",  # noqa: S108 - its own, in the sandbox
        "USER": "assistant",
        "LOGNAME": "assistant",
        "TERM": "dumb",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _plain(name: str, value: SecretStr | str) -> str:
    if not _NAME.fullmatch(name) or _STEERS_LOADING.match(name):
        raise EnvironmentWrong(
            f"the setting skills.*.env names {name[:64]!r}, which a skill may not be given; "
            "choose another name for it"
        )
    text = value if isinstance(value, str) else value.get_secret_value()
    if "\0" in text:
        raise EnvironmentWrong(f"the value of {name} in skills.*.env has a NUL character; mend it")
    return text


# --- placeholders -------------------------------------------------------------------------------
#
# Empty files and folders that stand in the workspace while programs run in the sandbox.
#
# What does not exist cannot be covered: a program could make its own SOUL.md. So each protected
# name is there while any program runs, and gone again behind the last one. Methods block.


class Placeholders:
    """Shared by all programs of one bot that run at a time. May be called from many threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._holders = 0
        self._made: dict[Path, None] = {}

    def hold(self, *, files: Sequence[Path], folders: Sequence[Path]) -> None:
        """Sees to it that all are there, outer ones first. `release` must follow. Raises OSError,
        and then holds nothing."""
        with self._lock:
            self._holders += 1
            try:
                for folder in folders:
                    with suppress(FileExistsError):
                        folder.mkdir(mode=0o700)
                        self._made[folder] = None
                for file in files:
                    self._make_file(file)
            except OSError:
                self._release()
                raise

    def release(self) -> None:
        """Behind the last holder, what was made and is still empty goes."""
        with self._lock:
            self._release()

    def _release(self) -> None:
        self._holders -= 1
        if self._holders:
            return
        for path in reversed(self._made):
            with suppress(OSError):
                _remove_empty(path)
        self._made.clear()

    def _make_file(self, path: Path) -> None:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            status = path.lstat()
            # Left behind by a kill: empty, and dated as no file of a person's is.
            if stat.S_ISREG(status.st_mode) and status.st_size == status.st_mtime_ns == 0:
                self._made[path] = None
            return
        with os.fdopen(handle, "wb"):
            os.utime(handle, (0, 0))
        self._made[path] = None


def _remove_empty(path: Path) -> None:
    if path.is_dir():
        path.rmdir()
    elif path.lstat().st_size == 0:
        path.unlink()
