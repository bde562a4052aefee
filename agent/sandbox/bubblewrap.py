"""Confines a program by bubblewrap: namespaces of its own, no network, and the folders it is given.

`Bubblewrap` finds out once whether that works on this machine; `confined` writes the options.
They go to bubblewrap through a pipe, so that a key given to a skill is in no list of processes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import structlog

from agent.sandbox.environment import SYSTEM_PATH, base_python

PROBE_S = 5.0
TMP_BYTES_MAX = 256 * 1024 * 1024
"""Of the sandbox's own /tmp, which is memory."""

_log = structlog.get_logger(__name__)

_SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix/store", "gnu/store")
_SETTINGS = (
    "alternatives",
    "fonts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "timezone",
)
"""All of /etc that programs get: what they are found, linked and drawn with. No accounts, no
keys, no settings of other programs, for the bot may run as root and could read them all."""

_ALWAYS = ("--unshare-all", "--die-with-parent", "--new-session")
_ATTEMPTS: tuple[tuple[str, ...], ...] = (
    ("--unshare-user", "--disable-userns", "--proc", "/proc"),
    ("--unshare-user", "--proc", "/proc"),
    ("--unshare-user", "--disable-userns"),
    ("--unshare-user",),
)
"""From strong to weak. Containers often allow no new /proc: then programs have none at all."""

_NOTHING = "/dev/null"

_PROC_FOLDERS = ("acpi", "asound", "bus", "driver", "fs", "irq", "pressure", "scsi", "sys")
_PROC_FILES = (
    "cmdline",
    "kcore",
    "keys",
    "kmsg",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "mtrr",
    "sched_debug",
    "sysrq-trigger",
    "timer_list",
)
"""What a new /proc still has of the machine as a whole. Its files obey their owner, who is root:
a bot that runs as root could else set `kernel.core_pattern`, with no capability at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What a program may see and change. Absolute paths, without links in them.

    `workspace` may be written, `readable` be read. Within the workspace `fixed` cannot be changed,
    `covered` look empty, and `opened` show through where they lie below something covered
    (`opened_fixed`: to be read alone). `pinned` are folders that keep their place, as something
    below them is covered. `secret` is never shown, though it lie within something readable.
    `instead` shows one file in the place of another.
    """

    workspace: Path
    readable: tuple[Path, ...] = ()
    secret: tuple[Path, ...] = ()
    pinned: tuple[Path, ...] = ()
    fixed: tuple[Path, ...] = ()
    covered: tuple[Path, ...] = ()
    opened: tuple[Path, ...] = ()
    opened_fixed: tuple[Path, ...] = ()
    instead: Mapping[Path, Path] | None = None


class Bubblewrap:
    """Whether and how bubblewrap works here. Found out at the first question, which takes some
    milliseconds and blocks; later ones are answered from memory."""

    def __init__(self, *, program: str = "bwrap", is_wanted: bool = True) -> None:
        self._program = program
        self._is_wanted = is_wanted
        self._lock = Lock()
        self._is_known = False
        self._path = ""
        self._flags: tuple[str, ...] = ()
        self._why = ""

    def works(self) -> bool:
        """Return whether programs can be confined."""
        self._find_out()
        return bool(self._path)

    @property
    def why_not(self) -> str:
        """In words, when it does not work; else empty."""
        self._find_out()
        return self._why

    def argv(self, command: Sequence[str], options_fd: int, told_fd: int) -> Sequence[str]:
        """The command line of a confined program, whose options come through `options_fd`. Into
        `told_fd` bubblewrap writes, a JSON object a line, which process is the first one inside
        (`child-pid`), and how the program ended (`exit-code`), once all was set up for it."""
        assert self.works(), "asked for before it was known to work"
        # What must never be missing stands here: the pipe could end early.
        return (
            self._path,
            *_ALWAYS,
            "--cap-drop",
            "ALL",
            "--json-status-fd",
            str(told_fd),
            "--args",
            str(options_fd),
            "--",
            *command,
        )

    def options(
        self, confinement: Confinement, environment: Mapping[str, str], *, folder: Path
    ) -> bytes:
        """Return what is to be written into the pipe. Looks at the disk: call it in a thread."""
        parts = [*self._flags, *confined(confinement), *_proc_covers(self._flags)]
        parts += ["--chdir", str(folder)]
        for name, value in environment.items():
            parts += ["--setenv", name, value]
        return b"".join(os.fsencode(part) + b"\0" for part in parts)

    def _find_out(self) -> None:
        with self._lock:
            if self._is_known:
                return
            self._is_known = True
            path = shutil.which(self._program)
            if not self._is_wanted:
                self._why = "the sandbox is switched off in the settings"
            elif sys.platform != "linux":
                self._why = "there is a sandbox for programs on Linux alone"
            elif path is None:
                self._why = "bubblewrap is not installed (apt install bubblewrap)"
            else:
                self._why = (
                    "bubblewrap is installed, but too old, or this system lets it make no sandbox"
                )
                for flags in _ATTEMPTS:
                    if _succeeds(path, flags):
                        self._path, self._flags, self._why = path, flags, ""
                        break
            _log.info("sandbox", works=bool(self._path), why=self._why, flags=self._flags)


def confined(confinement: Confinement) -> Iterator[str]:
    """The options for what is seen. Later ones lie over earlier ones. Looks at the disk."""
    yield from ("--hostname", "sandbox")
    yield from _system()
    yield from ("--dev", "/dev", "--size", str(TMP_BYTES_MAX), "--tmpfs", "/dev/shm")  # noqa: S108
    yield from ("--size", str(TMP_BYTES_MAX), "--tmpfs", "/tmp")  # noqa: S108
    yield from _readable(confinement)
    yield from ("--bind", str(confinement.workspace), str(confinement.workspace))
    for path in confinement.pinned:
        yield from ("--bind", str(path), str(path))
    for path in confinement.fixed:
        yield from ("--ro-bind", str(path), str(path))
    yield from _covered(confinement)
    for shown, source in (confinement.instead or {}).items():
        yield from ("--ro-bind", str(source), str(shown))
    # Without these what is made beside the mounts would fill memory.
    yield from ("--remount-ro", "/dev", "--remount-ro", "/")


def _system() -> Iterator[str]:
    for name in _SYSTEM:
        yield from _shown(Path("/") / name)
    for name in _SETTINGS:
        yield from _shown(Path("/etc") / name)


def _proc_covers(flags: Sequence[str]) -> Iterator[str]:
    if "--proc" not in flags:
        return
    proc = Path("/proc")
    for name in _PROC_FOLDERS:
        if (proc / name).is_dir():
            yield from ("--size", "4096", "--tmpfs", f"/proc/{name}", "--remount-ro")
            yield f"/proc/{name}"
    for name in _PROC_FILES:
        if (proc / name).exists():
            yield from ("--ro-bind", _NOTHING, f"/proc/{name}")


def _shown(path: Path) -> Iterator[str]:
    if path.is_symlink() and path.parent == Path("/"):
        yield from ("--symlink", str(path.readlink()), str(path))
    elif path.exists():
        yield from ("--ro-bind", str(path.resolve()), str(path))


def _readable(confinement: Confinement) -> Iterator[str]:
    """Secret folders lie over whatever shows them; what is readable within them over that."""
    # The base Python's own prefix, and never a whole disk.
    prefix = Path(sys.base_prefix).resolve()
    readable = (prefix if len(prefix.parts) > 2 else base_python(), *confinement.readable)
    within = [path for path in readable if _is_below(path, confinement.secret)]
    for path in readable:
        if path not in within:
            yield from ("--ro-bind", str(path), str(path))
    for path in confinement.secret:
        # Where nothing shows it this makes an empty folder, which does no harm.
        yield from ("--perms", "0755", "--size", "4096", "--tmpfs", str(path))
    for path in within:
        yield from ("--ro-bind", str(path), str(path))


def _covered(confinement: Confinement) -> Iterator[str]:
    """Covers, then what shows through them, then covers within that; at last none can be filled."""
    shown = (*confinement.opened, *confinement.opened_fixed)
    inner = [path for path in confinement.covered if _is_below(path, shown)]
    for path in confinement.covered:
        if path not in inner:
            yield from _cover(path)
    for path in confinement.opened:
        yield from ("--bind", str(path), str(path))
    for path in confinement.opened_fixed:
        yield from ("--ro-bind", str(path), str(path))
    for path in inner:
        yield from _cover(path)
    for path in confinement.covered:
        if path.is_dir():
            yield from ("--remount-ro", str(path))


def _cover(path: Path) -> Iterator[str]:
    if path.is_dir():
        yield from ("--perms", "0755", "--size", "65536", "--tmpfs", str(path))
    else:
        yield from ("--ro-bind", _NOTHING, str(path))


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _succeeds(bwrap: str, flags: Sequence[str]) -> bool:
    """Return whether a program runs with these flags, and with the folders that each one gets."""
    options = [*_ALWAYS, "--cap-drop", "ALL", *flags, *_system(), "--dev", "/dev"]
    options += _proc_covers(flags)
    options += ["--size", "4096", "--tmpfs", "/tmp", "--remount-ro", "/"]  # noqa: S108
    options += ["--setenv", "PATH", os.pathsep.join(SYSTEM_PATH)]
    try:
        done = subprocess.run(  # noqa: S603
            [bwrap, *options, "--", "sh", "-c", "exit 7"],
            env={},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=PROBE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 7
