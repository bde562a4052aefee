"""Where the program of an MCP server lives: a folder of its own, which no tool can write to.

Called by `agent.mcp.servers` and the doctor. Not the workspace: of the folder in which a program
is started Python takes modules, and npm packages, and in the workspace a tool may write a file
without being asked to: a page could have its words run outside of any sandbox (threat T23).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.mcp.values import ServerDown, ServerOptions

PRIVATE_FOLDER = 0o700
INHERITED = ("PATH", "HOME", "LANG")
SAFE_PATH = "PYTHONSAFEPATH"
"""With it Python takes no modules from the folder in which it was started."""

SCRIPTS = (".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", ".pl", ".jar")
CODE_FROM = ("PATH", "PYTHONPATH", "NODE_PATH")
SHOWN_CHARS = 100


def quarters(servers: Path, name: str, *, workspace: Path) -> Path:
    """The folder of one server in that of all, made when it is not there, for the bot's user alone.
    Blocks. Raises ServerDown when it is none, or leads elsewhere.
    """
    folder = servers / name
    for each in (servers, folder):
        _private(each)
    if folder.resolve().is_relative_to(workspace.resolve()):
        raise ServerDown(f"its folder {folder} is in the workspace: move {servers.parent} out")
    return folder


def _private(folder: Path) -> None:
    try:
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        status = folder.lstat()
        if stat.S_ISDIR(status.st_mode) and status.st_mode & 0o077:
            folder.chmod(PRIVATE_FOLDER)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise ServerDown(f"its folder {folder} cannot be used ({why}): move it away") from error
    if not stat.S_ISDIR(status.st_mode):
        raise ServerDown(f"its folder {folder} is a link: put a folder in its place")


def surroundings(options: ServerOptions, env: Mapping[str, str]) -> dict[str, str]:
    """The environment of its program. What the settings name wins.

    A script that is named by its file keeps its neighbours: Python would not find them with
    PYTHONSAFEPATH, and looks beside the script in place of the folder in which it was started.
    """
    given = {name: env[name] for name in INHERITED if name in env}
    if not any(one.endswith(".py") for one in (options.command, *options.args)):
        given[SAFE_PATH] = "1"
    return given | dict(options.env)


def misplaced(options: ServerOptions, workspace: Path) -> Iterator[tuple[str, str]]:
    """What of its settings may be meant for another folder, or lets a tool change its program: each
    as what is wrong, and what to do. Blocks."""
    section = f"mcp.{options.name}"
    for one in _named(options):
        if one.path.is_absolute():
            if one.is_run and _is_within(one.path, workspace):
                yield (
                    f"{one.said} has it run what is in the workspace, which tools write unasked",
                    f"Move that out of {workspace}, and correct {section}.{one.key}.",
                )
        elif _exists(whole := workspace / one.path):
            yield (
                f"{one.said} is also a path in the workspace, where the server does not run",
                f"If it is meant, write {os.path.normpath(whole)} in {section}.{one.key}.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """What may be a path, and the key where it stands; `is_run` when it is or holds a program."""

    key: str
    said: str
    path: Path
    is_run: bool


def _named(options: ServerOptions) -> Iterator[_Named]:
    """Of a variable its value is not told. A command that is one word is looked for in PATH."""
    if os.sep in options.command:
        said = f"the command {options.command[:SHOWN_CHARS]}"
        yield _Named(key="command", said=said, path=Path(options.command), is_run=True)
    for arg in options.args if options.command else ():
        value = arg.partition("=")[2] if arg.startswith("-") else arg
        if value:
            said, path = f"the argument {arg[:SHOWN_CHARS]}", Path(value)
            yield _Named(key="args", said=said, path=path, is_run=path.suffix.lower() in SCRIPTS)
    for name, values in options.env.items() if options.command else ():
        for value in filter(None, values.split(os.pathsep)):
            said, is_run = f"a value of {name}", name in CODE_FROM
            yield _Named(key="env", said=said, path=Path(value), is_run=is_run)


def _is_within(path: Path, workspace: Path) -> bool:
    try:
        return path.resolve().is_relative_to(workspace.resolve())
    except (OSError, ValueError, RuntimeError):  # no path at all, or one that leads to itself
        return False


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a text that is no path
        return False
