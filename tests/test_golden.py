"""What people and models can see, as golden files: an equal list means that nothing was lost.

Each list is made anew and compared with its file in `tests/golden/`. One that is changed on purpose
is written anew when it is deleted; the test then fails once. Each list is made by one function, and
what it takes from the product is imported there, so that moved code changes one line here.
"""

from __future__ import annotations

import difflib
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from enum import Enum
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from tests.golden.fixture_home import DATABASE, lay, pragmas_of, schema_of

GOLDEN = Path(__file__).parent / "golden"
LINES_SHOWN_MAX = 40

Json = dict[str, Any]


def check(name: str, text: str) -> None:
    """Compare with a golden file; write one that is not there, and fail all the same."""
    golden = GOLDEN / name
    if not golden.exists():
        golden.write_text(text, encoding="utf-8")
        pytest.fail(f"{golden.name} was not there and has been written: review it")
    was = golden.read_text(encoding="utf-8")
    if text == was:
        return
    lines = list(
        difflib.unified_diff(was.splitlines(), text.splitlines(), "golden", "now", lineterm="", n=1)
    )
    more = len(lines) - LINES_SHOWN_MAX
    shown = [*lines[:LINES_SHOWN_MAX], *([f"… {more} lines more"] if more > 0 else [])]
    pytest.fail(
        "\n".join(
            [
                f"tests/golden/{name} does not say what there is now:",
                *shown,
                "Where this is meant, delete the file, run this test twice, and review the change.",
            ]
        ),
        pytrace=False,
    )


def pretty(value: object) -> str:
    """Return JSON for reading."""
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


# --- slash commands -----------------------------------------------------------------------------


def slash_commands() -> list[Json]:
    """Return the table of commands, by name: help, other names, who may use them and where."""
    from bot.commands.table import ALIASES, COMMANDS

    return [
        {
            "name": command.name,
            "help": command.help,
            "aliases": _listed(alias for alias, name in ALIASES.items() if name == command.name),
            "words": _takes_words(command),
            "roles": _listed(command.roles),
            "roles in groups": ""
            if command.private
            else _listed(command.roles & command.group_roles),
            "named to": _listed(command.roles & command.named_to),
            "beside others": command.waits,
            "offers snippets": command.offers,
        }
        for command in sorted(COMMANDS, key=lambda command: command.name)
    ]


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))


def _takes_words(command: Any) -> str:
    if command.is_bare:
        return "left out"
    return f"refused: {command.instead}" if command.instead else "taken"


def test_the_slash_commands_are_those_that_were_written_down() -> None:
    check("slash_commands.json", pretty(slash_commands()))


UNKNOWN = "frobnicate"
NO_USE_SAID = {"logs", "model", "remember", "skills"}
"""What says other things to a word that it does not know: a path, providers, that it is kept."""


async def slash_uses(folder: Path) -> Json:
    """Return what the commands say that take words, to one that they do not know: their use."""
    from tests.bot.kit import OWNER, eventually, rigged

    names = [one["name"] for one in slash_commands() if one["words"] == "taken"]
    typed = [f"/{name} {UNKNOWN}" for name in names if name not in NO_USE_SAID]
    async with rigged(folder) as rig:
        rig.set(memory__embeddings="false", tools__embeddings="false")
        said: Json = {}
        async with rig.running(OWNER):
            for number, text in enumerate(["/help", "/job", *typed], start=1):
                rig.says(text)
                await eventually(partial(rig.wrote, number))
                said[text] = rig.texts()[-1].splitlines()
    return said


async def test_the_uses_of_slash_commands_are_those_that_were_written_down(tmp_path: Path) -> None:
    check("slash_uses.json", pretty(await slash_uses(tmp_path)))


# --- tools --------------------------------------------------------------------------------------


async def tool_schemas(folder: Path) -> list[Json]:
    """Return every built-in tool as a model gets it, by name; buses are there on some machines."""
    from tests.bot.kit import rigged
    from tests.bot.test_toolmaking import MAY_BE_ABSENT, cards_of

    async with rigged(folder) as rig:
        rig.set(memory__embeddings="false", tools__embeddings="false")
        specs = [card.spec() for card in await cards_of(rig)]
    return [
        {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
        for spec in sorted(specs, key=lambda spec: spec.name)
        if spec.name not in MAY_BE_ABSENT
    ]


async def test_the_tools_are_those_that_were_written_down(tmp_path: Path) -> None:
    check("tools.json", pretty(await tool_schemas(tmp_path)))


# --- command line -------------------------------------------------------------------------------


def command_line() -> Any:
    """Return the whole command line."""
    from bot.cli.main import app

    return app


def _described(name: str, command: Any) -> Iterator[str]:
    """Yield a command with its parameters, a line each, then those behind it."""
    yield f"{name}{' (hidden)' if command.hidden else ''} – {_one_line(command.help)}"
    # Arguments stand in the order in which they are typed.
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    yield from (f"    {_parameter(one)}" for one in arguments)
    yield from sorted(f"    {_parameter(one)}" for one in options)
    for word, below in sorted(getattr(command, "commands", {}).items()):
        yield from _described(f"{name} {word}", below)


def _parameter(of: Any) -> str:
    is_option = of.param_type_name == "option"
    default = getattr(of.default, "value", of.default)
    notes = [
        "|".join(_taken(of.type_descriptor.annotation)),
        *(["argument"] if not is_option else []),
        *(["flag"] if getattr(of, "is_flag", False) else []),
        *(["required"] if of.required else []),
        *(["several"] if of.multiple or of.nargs == -1 else []),
        *(["hidden"] if of.hidden else []),
        *([f"min {of.min}"] if of.min is not None else []),
        *([f"max {of.max}"] if of.max is not None else []),
        *([f"default {default!r}"] if default not in {None, False} else []),
    ]
    name = "/".join((*of.opts, *of.secondary_opts)) if is_option else of.name.upper()
    shown = f"{name} {of.metavar}" if is_option and of.metavar else name
    return f"{shown} ({', '.join(notes)}) – {_one_line(of.help)}"


def _taken(kind: Any) -> list[str]:
    """Return the values or types that a parameter takes."""
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(choice.value) for choice in kind]
    parts = [part for part in get_args(kind) if part is not NoneType]
    if isinstance(kind, type) or not parts:
        return [getattr(kind, "__name__", str(kind))]
    return [word for part in parts for word in ([part] if isinstance(part, str) else _taken(part))]


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def test_the_command_line_is_the_one_that_was_written_down() -> None:
    root = get_command(command_line())

    check("command_line.txt", "\n".join(_described("hearthbot", root)) + "\n")


# --- settings -----------------------------------------------------------------------------------


def settings_schema() -> Json:
    """Return all settings with their types, bounds and defaults, as a JSON schema."""
    from bot.settings.schema.settings import Settings

    return Settings.model_json_schema()


def _keys(node: Json, schema: Json, path: str = "") -> Iterator[str]:
    """Yield each key with what it takes; `[]` is an item of a list, `NAME` a name to choose."""
    node = _resolved(node, schema)
    inner = node.get("properties", {})
    named = node.get("additionalProperties")
    for name, below in inner.items():
        yield from _keys(below, schema, f"{path}.{name}".lstrip("."))
    if isinstance(named, dict):
        yield from _keys(named, schema, f"{path}.NAME")
    items = node.get("items", {})
    if "$ref" in items:
        yield from _keys(items, schema, f"{path}[]")
    if not inner and not (isinstance(named, dict) and "$ref" in named):
        said = {key: value for key, value in node.items() if key not in _WORDS}
        if "$ref" in items:
            said.pop("items")
        yield f"{path} {json.dumps(said, ensure_ascii=False, sort_keys=True)}"


_WORDS = {"title", "description", "examples", "propertyNames"}
"""What `config.example.toml` says as well, which has a test of its own."""


def _resolved(node: Json, schema: Json) -> Json:
    if "$ref" not in node:
        return node
    found: Json = schema["$defs"][node["$ref"].rpartition("/")[2]]
    return found


def test_the_settings_are_those_that_were_written_down() -> None:
    schema = settings_schema()

    check("settings.txt", "\n".join(sorted(_keys(schema, schema))) + "\n")


# --- database -----------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command line looks for its home; nothing is there yet, and no service is."""
    path = tmp_path / "home"
    monkeypatch.setenv("HEARTHBOT_HOME", str(path))
    monkeypatch.setenv("HEARTHBOT_MEMORY__EMBEDDINGS", "false")
    monkeypatch.setenv("HEARTHBOT_TOOLS__EMBEDDINGS", "false")
    monkeypatch.setenv("HEARTHBOT_LLM__MODEL", "openai/lab-model")
    monkeypatch.setenv("HEARTHBOT_LLM__API_BASE", "http://127.0.0.1:9/v1")
    return path


def run(*words: str, code: int = 0) -> str:
    """Return what a command prints."""
    done = CliRunner().invoke(command_line(), words, catch_exceptions=False)
    assert done.exit_code == code, (words, done.output)
    return done.stdout


def test_a_new_database_is_made_as_was_written_down(home: Path) -> None:
    run("access", "list")

    with closing(sqlite3.connect(home / DATABASE)) as connection:
        pragmas = [f"pragma {name} = {value};" for name, value in pragmas_of(connection).items()]
        check("database.sql", "\n\n".join([*pragmas, *schema_of(connection)]) + "\n")


# --- JSON on the command line -------------------------------------------------------------------

SHOWING = (
    "access list",
    "doctor --offline",
    "mcp list",
    "memory export",
    "memory list",
    "memory search tea",
    "memory show f1",
    "model list",
    "model test",
    "prompt show --full --message tea",
    "schedule list",
    "schedule show j3",
    "schedule simulate 7d",
    "schedule test j3",
    "schedule when tomorrow",
    "sessions list",
    "sessions show CONVERSATION",
    "skills list",
    "skills show tea-time",
    "skills test commit-message",
    "skills validate tea-time",
    "skills why tea",
    "usage",
)
CHANGING = (
    "access approve telegram:98",
    "access link telegram:98 telegram:97",
    "access role telegram:98 guest",
    "access deny telegram:96",
    "access remove telegram:98",
    "memory edit f1 tea",
    "memory forget f3 --yes",
    "memory import EXPORTED",
    "schedule add tomorrow rain --yes",
    "schedule edit j3 --name fern --yes",
    "schedule pause j3",
    "schedule resume j3",
    "schedule remove j3",
    "sessions clear CONVERSATION --yes",
    "skills enable morning-briefing --yes",
    "skills disable morning-briefing",
    "skills remove tea-time",
    "skills playbook set sums --description Sums",
    "skills playbook remove sums",
)
ELSEWHERE = {
    "mcp approve",  # needs a server
    "model pull",  # needs a site
    "schedule run",  # needs a bot that runs
    "skills approve",  # needs a skill that waits
    "skills install",  # needs an archive
    "status",  # needs a bot that runs
}
"""What takes `--json` and is not run here."""


def answered(*words: str) -> object:
    """Return what a command says as JSON; whether it found something wrong does not matter."""
    done = CliRunner().invoke(command_line(), [*words, "--json"], catch_exceptions=False)
    assert done.stdout.strip(), (words, done.output)
    return json.loads(done.stdout)


def key_paths(value: object, path: str = "") -> set[str]:
    """Return where something stands in an answer; `[]` is any item of a list."""
    if isinstance(value, dict) and value:
        return {found for key in value for found in key_paths(value[key], f"{path}.{key}")}
    if isinstance(value, list) and value:
        return {found for one in value for found in key_paths(one, f"{path}[]")}
    return {path.lstrip(".")}


def _take_json(command: Any, name: str = "") -> Iterator[str]:
    if any("--json" in one.opts for one in command.params):
        yield name.strip()
    for word, below in getattr(command, "commands", {}).items():
        yield from _take_json(below, f"{name} {word}")


def test_every_answer_in_json_has_the_keys_that_were_written_down(
    home: Path, tmp_path: Path
) -> None:
    lay(home, made_ms=int(time.time() * 1000))
    exported = tmp_path / "exported.json"
    run("memory", "export", "--out", str(exported))
    conversation = json.loads(run("sessions", "list", "--json"))["sessions"][-1]["id"]
    named = {"CONVERSATION": str(conversation), "EXPORTED": str(exported)}

    found = {
        words: sorted(key_paths(answered(*(named.get(word, word) for word in words.split()))))
        for words in (*SHOWING, *CHANGING)
    }

    check("json_keys.json", pretty(found))


def test_every_command_that_speaks_json_is_among_them() -> None:
    names = set(_take_json(get_command(command_line())))

    missing = [
        name
        for name in names
        if not any(f"{w} ".startswith(f"{name} ") for w in SHOWING + CHANGING)
    ]

    assert sorted(missing) == sorted(ELSEWHERE)
