"""What a program is told of its surroundings: a short list, never what the bot itself was given.

Called by whoever starts a program. Of the bot's own variables only those that say how to find
programs and how to write pass, so that no key reaches a program (threat T18, case SE-15).
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from agent.errors import Permanent

SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
"""Where programs are looked for inside the sandbox."""

PASSED = ("LANG", "LC_ALL", "LC_CTYPE", "TZ")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEERS_LOADING = re.compile(r"LD_|DYLD_|PATH$|HOME$|BASH_ENV$|ENV$|PYTHON(?!DONT)|GLIBC_|MALLOC_")
_PR_SET_DUMPABLE = 4


class EnvironmentWrong(Permanent):
    """A variable that the owner set for a skill cannot be handed to a program."""


class Hidden(Protocol):
    """A secret that tells its value only when asked, as the settings keep them."""

    def get_secret_value(self) -> str: ...


Given = Mapping[str, "Hidden | str"]
"""Variables that the owner gave to one skill, by name."""


def base_python() -> Path:
    """The interpreter without the bot's own libraries: what scripts run with."""
    return Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def confined_environment(workspace: Path, own: Mapping[str, str]) -> Mapping[str, str]:
    """What a program in the sandbox sees. `own` are the variables of this process."""
    path = (*SYSTEM_PATH, str(base_python().parent))
    return _environment(workspace, own, path=os.pathsep.join(path))


def open_environment(workspace: Path, own: Mapping[str, str]) -> Mapping[str, str]:
    """What a program without sandbox sees: the same, with the PATH that its owner is used to."""
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


def _plain(name: str, value: Hidden | str) -> str:
    if not _NAME.fullmatch(name) or _STEERS_LOADING.match(name):
        raise EnvironmentWrong(
            f"the setting skills.*.env names {name[:64]!r}, which a skill may not be given; "
            "choose another name for it"
        )
    text = value if isinstance(value, str) else value.get_secret_value()
    if "\0" in text:
        raise EnvironmentWrong(f"the value of {name} in skills.*.env has a NUL character; mend it")
    return text
