"""Writes single keys of config.toml, and leaves every other byte of the file as it was.

Called by `hearthbot init`. The file is the owner's: comments, order and odd forms stay. What is
written is read back before it takes the old file's place; a form that cannot be changed safely is
refused, with the line that the owner can write instead.
"""

from __future__ import annotations

import codecs
import copy
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from bot.settings.home import write_private
from bot.settings.messages import dotted
from bot.settings.tree import KeyPath
from memory.records.errors import SettingsWrong

Value = str | int | float | bool | list[str] | None
"""What can be written; None takes the key out."""

BACKUP_ENDING = ".bak"
"""The former file stays beside the new one under this ending, until the next change."""

NEW_FILE = """\
# Settings of Hearthbot, written by `hearthbot init`. You may edit this file; `init` changes single
# keys and leaves the rest. config.example.toml shows every key with its default.
"""

_HEADER = re.compile(r"\s*\[")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def change(text: str, changes: Mapping[KeyPath, Value]) -> str:
    """The text of a config.toml with these keys changed. Raises SettingsWrong.

    A key that has that value already is left as it stands, so that nothing to do changes nothing.
    """
    for path, value in changes.items():
        values = _read(text)
        wanted = _with(values, path, value)
        if wanted == values:
            continue
        for made in _attempts(text, path, value):
            # What is written is read back: a way that changes more than the key is none.
            try:
                is_right = tomllib.loads(made) == wanted
            except tomllib.TOMLDecodeError:
                continue
            if is_right:
                text = made
                break
        else:
            raise SettingsWrong(
                f"config.toml has {dotted(path)} in a form that cannot be changed without touching "
                "the rest, so it was left alone. Change that key there yourself."
            )
    return text


def write(file: Path, changes: Mapping[KeyPath, Value]) -> bool:
    """Changes keys of a file, or makes it; mode 0600, whole or not at all. Whether it changed.

    The folder must be there. A link is followed, so that it stays one. Raises SettingsWrong when
    the file cannot be read or changed, OSError when it cannot be written.
    """
    file = file.resolve()
    before = file.read_bytes() if file.exists() else None
    mark = codecs.BOM_UTF8 if before and before.startswith(codecs.BOM_UTF8) else b""
    after = mark + change(decoded(file), changes).encode()
    if after == before:
        return False
    if before is not None:
        write_private(file.with_name(file.name + BACKUP_ENDING), before)
    write_private(file, after)
    return True


def decoded(file: Path) -> str:
    """The text of a config.toml, line ends as they are; where there is none, that of a new one.

    Raises SettingsWrong.
    """
    try:
        return file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return NEW_FILE
    except UnicodeDecodeError as error:
        raise SettingsWrong(f"{file}: is not UTF-8 text (byte {error.start + 1})") from error


def _attempts(text: str, path: KeyPath, value: Value) -> Iterator[str]:
    """Ways to change one key, the one that looks best in the file first."""
    if value is not None and not _is_there(_read(text), path):
        yield _inserted(text, path, value)
    try:
        yield _by_library(text, path, value)
    except (TOMLKitError, KeyError, TypeError, ValueError):
        return


def _read(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsWrong(f"config.toml cannot be read, so it was left alone: {error}") from error


def _is_there(values: Any, path: KeyPath) -> bool:
    for name in path:
        if not isinstance(values, dict) or name not in values:
            return False
        values = values[name]
    return True


def _with(values: dict[str, object], path: KeyPath, value: Value) -> dict[str, object]:
    """Return what reading the changed file has to give."""
    wanted = copy.deepcopy(values)
    if value is None and not _is_there(wanted, path):
        return wanted
    table = wanted
    for name in path[:-1]:
        inner = table.setdefault(name, {})
        if not isinstance(inner, dict):
            raise SettingsWrong(
                f"config.toml has a value where the section of {dotted(path)} belongs."
            )
        table = inner
    if value is None:
        del table[path[-1]]
    else:
        table[path[-1]] = value
    return wanted


def _by_library(text: str, path: KeyPath, value: Value) -> str:
    document = tomlkit.parse(text)
    table: Any = document
    for name in path[:-1]:
        if value is not None and name not in table:
            table[name] = tomlkit.table()
        table = table[name]
    if value is None:
        del table[path[-1]]
    else:
        table[path[-1]] = value
    return tomlkit.dumps(document)


# --- where a new line looks as if the owner had written it -------------------------------------


def _inserted(text: str, path: KeyPath, value: Value) -> str:
    """The key as a line of its own: below its commented-out example, else at the section's end,
    else in a new section at the end of the file."""
    end = "\r\n" if "\r\n" in text else "\n"
    lines = _LINE.findall(text)
    line = f"{path[-1]} = {_toml(value)}{end}"
    section = ".".join(path[:-1])
    header = re.compile(rf"\s*\[\s*{re.escape(section)}\s*\]\s*(#.*)?")
    start = next((n for n, one in enumerate(lines) if header.fullmatch(one.rstrip())), None)
    if start is None:
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += end
        gap = [end] if lines and lines[-1].strip() else []
        return "".join([*lines, *gap, f"[{section}]{end}", line])
    at = _place(lines, start, path[-1])
    if not lines[at].endswith("\n"):
        lines[at] += end
    return "".join([*lines[: at + 1], line, *lines[at + 1 :]])


def _place(lines: list[str], start: int, key: str) -> int:
    """The line after which a new one belongs."""
    following = range(start + 1, len(lines))
    end = next((n for n in following if _HEADER.match(lines[n])), len(lines))
    within = range(start + 1, end)
    example = re.compile(rf"#\s?{re.escape(key)}\s*=")
    commented = [n for n in within if example.match(lines[n])]
    # Comments at a section's end often speak of the next one.
    set_here = [n for n in within if lines[n].strip() and not lines[n].lstrip().startswith("#")]
    return commented[0] if commented else max([start, *set_here])


def _toml(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's form of a text is also TOML's, save for DEL and halves of surrogate pairs.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return repr(value)
