"""Reads the settings: environment over config.toml over defaults, every problem in one go.

`load` is called by the command line. The library's own sources stop at the first problem and
forget where a value came from, so the layers are laid over each other here.
"""

from __future__ import annotations

import copy
import difflib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, MaxLen, MinLen
from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from agent.errors import SettingsWrong
from bot.config import (
    CONFIG_NAME,
    ENV_DELIMITER,
    ENV_HOME,
    ENV_PREFIX,
    KEYS,
    SECTIONS,
    KeyPath,
    Loc,
    Settings,
    is_secret,
)

SHOWN_CHARS_MAX = 60
"""Characters of a wrong value that a complaint quotes."""
_SECRET_LOOK = re.compile(
    r"[0-9]{3,}:[\w-]{8,}|\b(?:sk|pk|gsk|xox[a-z]|xapp|AIza)[-_]?\w{8,}|://[^/\s]*@"
)
"""A token in the wrong place: of Telegram, Slack, a provider, or a password in an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """What was set, before it is checked, and where."""

    file: Path
    in_file: dict[str, Any]
    in_env: dict[KeyPath, object]

    def merged(self) -> dict[str, Any]:
        """The environment laid over the file."""
        merged = copy.deepcopy(self.in_file)
        for path, value in self.in_env.items():
            table = merged
            for name in path[:-1]:
                table = table.setdefault(name, {})
                if not isinstance(table, dict):
                    break  # the file has a value where a section belongs: that is the complaint
            else:
                table[path[-1]] = value
        return merged

    def place(self, path: KeyPath, loc: Loc = ()) -> str:
        """Where a key's value came from, and which one it is; `loc` may name one item of it."""
        source = f"environment variable {_variable(path)}" if path in self.in_env else self.file
        return f"{source}: {dotted(loc or path)}"


def load(home: Path, env: Mapping[str, str]) -> Settings:
    """The settings of a home: environment over config.toml over defaults.

    Raises SettingsWrong, whose text names every problem in one go and never shows a secret.
    """
    file = home / CONFIG_NAME
    in_file, unreadable = _read_file(file)
    in_env, unknown_variables = _read_environment(env)
    given = _Given(file=file, in_file=in_file, in_env=in_env)
    problems = [*unreadable, *unknown_variables, *_unknown_keys(given)]
    settings = Settings()
    if not unreadable:
        settings, wrong = _checked(given)
        problems += wrong
    if problems:
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        lines = "".join(f"\n- {problem}" for problem in problems)
        raise SettingsWrong(f"The settings cannot be used: {count}.{lines}")
    return settings


def holds_secret(file: Path) -> bool:
    """Whether a config.toml holds a secret, so that its mode matters."""
    values, unreadable = _read_file(file)
    return bool(unreadable) or any(_secrets_in(values))


def _read_file(file: Path) -> tuple[dict[str, Any], list[str]]:
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
        return tomllib.loads(text), []
    except tomllib.TOMLDecodeError as error:
        return {}, [f"{file}, {_toml_position(str(error), text)}"]
    except RecursionError:
        return {}, [f"{file}: is nested too deeply"]


def _toml_position(message: str, text: str) -> str:
    reason, _, position = message.rpartition(" (at ")
    if numbers := re.fullmatch(r"line (\d+), column (\d+)\)", position):
        line, column = int(numbers[1]), int(numbers[2])
    else:
        line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
    return f"line {line}, column {column}: {reason or message}"


def _read_environment(env: Mapping[str, str]) -> tuple[dict[KeyPath, object], list[str]]:
    """Values by key, and a complaint for each variable that looks like ours and is not."""
    known = {_variable(path): path for path in KEYS}
    found: dict[KeyPath, object] = {}
    problems = []
    for name, text in env.items():
        if path := known.get(name):
            found[path] = _decoded(text, KEYS[path])
        elif name.upper().startswith(ENV_PREFIX) and name != ENV_HOME:
            path = tuple(name[len(ENV_PREFIX) :].lower().split(ENV_DELIMITER))
            nearest = _nearest(path)
            hint = f"; the nearest is {_variable(nearest)}" if nearest else ""
            problems.append(f"environment variable {name}: unknown{hint}")
    return found, problems


def _decoded(text: str, field: FieldInfo) -> object:
    """A variable's text as the type of its key, or as it is for the check to refuse."""
    if field.annotation is bool:
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
    if field.annotation in {int, float}:
        number = int if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else float
        return number(text) if re.fullmatch(r"[+-]?[0-9]{1,18}(\.[0-9]*)?", text) else text
    if get_origin(field.annotation) is tuple:
        return _decoded_list(text)
    return text


def _decoded_list(text: str) -> object:
    """`["a", "b"]` as JSON, or `a, b`."""
    if text.lstrip().startswith("["):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return [part.strip() for part in text.split(",")] if text.strip() else []


# --- checking, and what is said ----------------------------------------------------------------


def allowed(field: FieldInfo) -> str:
    """What a key takes, in words."""
    kind = field.annotation
    if get_origin(kind) is Literal:
        return " | ".join(get_args(kind))
    if get_origin(kind) is tuple:
        return "a list"
    if kind is bool:
        return "true or false"
    if kind in {int, float}:
        return ("a whole number" if kind is int else "a number") + _bounds(field)
    return "text" + _lengths(field)


def _bounds(field: FieldInfo) -> str:
    least = next((mark.ge for mark in field.metadata if isinstance(mark, Ge)), None)
    most = next((mark.le for mark in field.metadata if isinstance(mark, Le)), None)
    above = next((mark.gt for mark in field.metadata if isinstance(mark, Gt)), None)
    if above is not None:
        return f" above {above}"
    return f" from {least} to {most}" if most is not None else f", at least {least}"


def _lengths(field: FieldInfo) -> str:
    most = next((mark.max_length for mark in field.metadata if isinstance(mark, MaxLen)), None)
    if most is not None:
        return f", 1 to {most} characters"
    return ", not empty" if any(isinstance(mark, MinLen) for mark in field.metadata) else ""


def dotted(path: Loc) -> str:
    """A key path as one would write it: `telegram.allow_from[1]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else json.dumps(part)
            text += f".{name}" if text else name
    return text


def _variable(path: KeyPath) -> str:
    return ENV_PREFIX + ENV_DELIMITER.join(path).upper()


def _unknown_keys(given: _Given) -> list[str]:
    agents = given.in_file.get("agents")
    other_agents = [
        ("agents", name)
        for name, value in (agents if isinstance(agents, dict) else {}).items()
        if isinstance(value, dict) and name != "default"
    ]
    unknown = [
        path
        for path in _leaves(given.in_file)
        if path not in KEYS
        and path[:2] not in other_agents
        and not any(known[: len(path)] == path for known in SECTIONS)
    ]
    return [
        *(f"{given.place(path)}: unknown key; {_known_hint(path)}" for path in unknown),
        *(
            f"{given.place(path)}: this version serves one agent, agents.default"
            for path in other_agents
        ),
    ]


def _leaves(values: Mapping[str, Any], path: KeyPath = ()) -> Iterator[KeyPath]:
    """The paths that a file sets; a table where a key belongs is one, and so is an empty table."""
    for name, value in values.items():
        here = (*path, name)
        if isinstance(value, dict) and value and here not in KEYS:
            yield from _leaves(value, here)
        else:
            yield here


def _known_hint(path: KeyPath) -> str:
    if nearest := _nearest(path):
        return f"the nearest is {dotted(nearest)}"
    if section := next((known for known in SECTIONS if path[: len(known)] == known), None):
        names = [known[-1] for known in KEYS if known[:-1] == section]
        return f"[{dotted(section)}] takes {', '.join(names)}"
    return f"there are the sections {', '.join(dotted(known) for known in SECTIONS)}"


def _nearest(path: KeyPath) -> KeyPath | None:
    """The known key with the most similar name, rather one of the same section."""

    def same_name(known: KeyPath) -> float:
        # A lone name may be a whole path that was joined wrongly: HEARTHBOT_TELEGRAM_TOKEN.
        whole = _ratio(dotted(path), dotted(known)) if len(path) == 1 else 0.0
        return max(whole, _ratio(path[-1], known[-1]))

    def likeness(known: KeyPath) -> float:
        same_section = 0.2 if path[:-1] == known[:-1] else 0.0
        return same_name(known) + same_section + _ratio(dotted(path), dotted(known)) / 10

    best = max(KEYS, key=likeness)
    return best if same_name(best) > 0.6 else None


def _ratio(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one.lower(), other.lower()).ratio()


def _checked(given: _Given) -> tuple[Settings, list[str]]:
    """The settings, and what is wrong with the values (then the settings mean nothing)."""
    merged = given.merged()
    references = list(_references(merged))
    details: list[ErrorDetails] = []
    settings = Settings()
    try:
        # Known sections alone: the library takes arguments such as _cli_parse_args here too.
        settings = Settings(
            **{name: merged[name] for name in Settings.model_fields if name in merged}
        )
    except ValidationError as error:
        details = error.errors(include_url=False)
    # Outside of the `except`, so that the error raised at the end does not drag along one that
    # holds the input, secrets included.
    return settings, [
        *(_reference_refused(given, loc) for loc in references),
        *(
            _complaint(given, merged, detail)
            for detail in details
            # _unknown_keys says it better
            if detail["type"] != "extra_forbidden" and detail["loc"] not in references
        ),
    ]


def _references(merged: Mapping[str, Any]) -> Iterator[Loc]:
    """Where a value is written `${NAME}`, as other programs would fill in."""
    for path in KEYS:
        value = _found(merged, path)
        if _is_reference(value):
            yield path
        for at, item in enumerate(value if isinstance(value, list) else []):
            if _is_reference(item):
                yield (*path, at)


def _is_reference(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"\s*\$\{[^{}]*\}\s*", value) is not None


def _reference_refused(given: _Given, loc: Loc) -> str:
    path = _key_of(loc)
    return (
        f"{given.place(path, loc)}: a reference like ${{NAME}} is not read here; "
        f"set the environment variable {_variable(path)} instead"
    )


def _complaint(given: _Given, merged: dict[str, Any], detail: ErrorDetails) -> str:
    path = _key_of(detail["loc"])
    place = given.place(path, detail["loc"])
    field = KEYS.get(path)
    if field is None:
        return f"{place}: found a value; allowed: a section, [{dotted(path)}]"
    found = _shown(merged, path, detail["input"]) if _found(merged, path) != "" else "nothing"
    own_words = detail.get("ctx", {}).get("error")
    return f"{place}: found {found}; {own_words or f'allowed: {allowed(field)}'}"


def _key_of(loc: Loc) -> KeyPath:
    return tuple(part for part in loc if isinstance(part, str))


def _shown(merged: dict[str, Any], path: KeyPath, value: object) -> str:
    """A value that may be shown to whoever reads the log."""
    if isinstance(value, SecretStr) or is_secret(KEYS[path]):
        return "a value that is kept secret"
    if isinstance(value, dict):
        return "a table"
    text = repr(value)
    if any(secret in text for secret in _secrets_in(merged)) or _SECRET_LOOK.search(text):
        return "a value that looks like a secret"
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}…"


def _secrets_in(values: Mapping[str, Any]) -> Iterator[str]:
    for path, field in KEYS.items():
        value = _found(values, path)
        if is_secret(field) and isinstance(value, str) and value:
            yield value


def _found(values: Any, path: KeyPath) -> Any:
    """What stands at a path, "" where there is nothing."""
    for name in path:
        values = values.get(name, "") if isinstance(values, dict) else ""
    return values
