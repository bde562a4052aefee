"""Reads the settings: environment over config.toml over defaults, every problem in one go.

`load` is called by the command line. The library's own sources stop at the first problem and
forget where a value came from, so the layers are laid over each other here.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import get_origin

from pydantic.fields import FieldInfo

from bot.settings.checks import Given, checked, secrets_in
from bot.settings.messages import dotted, nearest, path_of, variable
from bot.settings.schema.settings import CONFIG_NAME, ENV_DELIMITER, ENV_HOME, ENV_PREFIX, Settings
from bot.settings.tree import KeyPath, is_map, node_at, tables_of
from memory.records.errors import SettingsWrong

__all__ = ["dotted", "holds_secret", "load"]

DEPTH_MAX = 32
"""Tables and lists within each other; more is no configuration, and would fill the stack."""


def load(home: Path, env: Mapping[str, str]) -> Settings:
    """The settings of a home: environment over config.toml over defaults.

    Raises SettingsWrong, whose text names every problem in one go and never shows a secret.
    """
    file = home / CONFIG_NAME
    in_file, unreadable = _read_file(file)
    in_env, unknown_variables = _read_environment(env)
    given = Given(file=file, in_file=in_file, in_env=in_env)
    problems = [*unreadable, *unknown_variables]
    settings = Settings()
    if not unreadable:
        settings, wrong = checked(given)
        problems += wrong
    if problems:
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        lines = "".join(f"\n- {problem}" for problem in problems)
        raise SettingsWrong(f"The settings cannot be used: {count}.{lines}")
    return settings


def holds_secret(file: Path) -> bool:
    """Return whether a config.toml holds a secret, so that its mode matters."""
    values, unreadable = _read_file(file)
    return bool(unreadable) or any(secrets_in(values))


def _read_file(file: Path) -> tuple[dict[str, object], list[str]]:
    """The tables of a file, or why there are none. A file that is missing is empty."""
    try:
        # Some editors put a byte order mark in front, which TOML does not know.
        text = file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return {}, []
    except OSError as error:
        return {}, [f"{file}: cannot be read: {error.strerror}"]
    except UnicodeDecodeError as error:
        return {}, [f"{file}: is not UTF-8 text (byte {error.start + 1})"]
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return {}, [f"{file}, {_toml_position(str(error), text)}"]
    except ValueError:  # of int(), which the library lets through
        return {}, [f"{file}: holds a number with too many digits"]
    except RecursionError:
        return {}, [f"{file}: is nested too deeply"]
    if not _is_flat(values):
        return {}, [f"{file}: is nested too deeply"]
    # `[[bindings]]` at the top means `[[agents.bindings]]`, unless there are such too.
    agents = values.get("agents", {})
    if "bindings" in values and isinstance(agents, dict) and "bindings" not in agents:
        values["agents"] = {**agents, "bindings": values.pop("bindings")}
    return values, []


def _is_flat(value: object, depth: int = DEPTH_MAX) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth > 0 and all(_is_flat(item, depth - 1) for item in inner)


def _toml_position(message: str, text: str) -> str:
    reason, _, position = message.rpartition(" (at ")
    if numbers := re.fullmatch(r"line (\d+), column (\d+)\)", position):
        line, column = int(numbers[1]), int(numbers[2])
    else:
        line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
    return f"line {line}, column {column}: {reason or message}"


def _read_environment(env: Mapping[str, str]) -> tuple[dict[KeyPath, object], list[str]]:
    """Values by key, and a complaint for each variable that looks like ours and is not."""
    found: dict[KeyPath, object] = {}
    problems = []
    for name, text in env.items():
        path = path_of(name) if name.startswith(ENV_PREFIX) and name != ENV_HOME else None
        node = node_at(Settings, path) if path else None
        if path and isinstance(node, FieldInfo):
            try:
                found[path] = _decoded(text, node)
            except _NotJson as error:
                problems.append(f"environment variable {name}: {dotted(path)}: {error}")
        elif name.upper().startswith(ENV_PREFIX) and name != ENV_HOME:
            parts = name[len(ENV_PREFIX) :].split(ENV_DELIMITER)
            hint = ""
            if near := nearest(tuple(part.lower() for part in parts)):
                if near[-1] == parts[-1].lower():
                    near = (*near[:-1], parts[-1])  # may be the owner's own, whose case counts
                hint = f"; the nearest is {variable(near)}"
            problems.append(f"environment variable {name}: unknown{hint}")
    return found, problems


def _decoded(text: str, field: FieldInfo) -> object:
    """A variable's text as the type of its key, or as it is for the check to refuse."""
    if field.annotation is bool:
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
    if field.annotation in {int, float}:
        number = int if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else float
        return number(text) if re.fullmatch(r"[+-]?[0-9]{1,18}(\.[0-9]*)?", text) else text
    if tables_of(field) or is_map(field):
        empty: object = {} if is_map(field) else []
        return _json(text) if text.strip() else empty
    if get_origin(field.annotation) is not tuple:
        return text
    if text.lstrip().startswith("["):
        return _json(text)
    return [part.strip() for part in text.split(",")] if text.strip() else []


class _NotJson(ValueError):
    """What a variable holds cannot be read; the text quotes none of it, since it may be secret."""


def _json(text: str) -> object:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise _NotJson(f"not JSON: {error.msg} at character {error.pos + 1}") from None
    except ValueError:  # of int()
        raise _NotJson("holds a number with too many digits") from None
    except RecursionError:
        raise _NotJson("is nested too deeply") from None
    if not _is_flat(value):
        raise _NotJson("is nested too deeply")
    return value
