"""config.example.toml, written from the settings so that it cannot go stale.

`python -m bot.settings.example > config.example.toml` renews it; a test compares the two.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Mapping

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from bot.settings.messages import allowed, dotted
from bot.settings.schema.settings import KEYS, SECTIONS, Settings
from bot.settings.tree import KeyPath, node_at, tables_by_name, tables_of

COMMENT_CHARS_MAX = 90
EXAMPLE_NAMES: Mapping[KeyPath, str] = {
    ("skills",): "weather",
    ("mcp",): "memory",
    ("agents",): "work",
}
"""What the owner might call a table, for each section that takes them by name."""
_INDENT = "#  "
"""In front of the lines of a table that one may add: who takes the # away has TOML."""

_HEAD = """\
Settings of Hearthbot. Copy this file to config.toml in the bot's home (HEARTHBOT_HOME,
~/.hearthbot unless set), with mode 0600 if it holds a token, and remove the # before what you
want to change; what stands here is the default. Lines that are indented behind the # are an
example of a table that one may add.

The environment wins over this file: llm.model is HEARTHBOT_LLM__MODEL, and a list is written
as 99,100. A value like ${NAME} is not filled in. Settings are read at start: a change asks for
a restart.
"""


def example_toml() -> str:
    """Every key, commented out, with its default and what it is for."""
    head = "\n".join(f"# {line}".rstrip() for line in _HEAD.splitlines())
    return "\n\n".join([head, *(_section(path) for path in SECTIONS)]) + "\n"


def _section(section: KeyPath) -> str:
    model = node_at(Settings, section)
    assert isinstance(model, type)
    lines = [_comment(_about(model)), f"[{dotted(section)}]"]
    keys = {path: field for path, field in KEYS.items() if path[:-1] == section}
    for path, field in keys.items():
        value = field.get_default(call_default_factory=True)
        shown = value.get_secret_value() if isinstance(value, SecretStr) else value
        lines += ["", _comment(_explained(field)), f"#{path[-1]} = {_toml(shown)}"]
    # Behind the keys, since what follows the head of a table belongs to that table.
    for path, field in keys.items():
        if table := tables_of(field):
            instead = f"In place of {path[-1]} = [] above, once for each."
            lines += ["", *_example(table, f"[[{dotted(path)}]]", instead)]
    if table := tables_by_name(model):
        name = EXAMPLE_NAMES[section]
        lines += ["", *_example(table, f"[{dotted((*section, name))}]", f"Here: {name}.")]
    return "\n".join(lines)


def _example(table: type[BaseModel], head: str, how: str) -> list[str]:
    """A table that one may add, with an example for every key."""
    lines = [_comment(f"{_about(table)} {how}"), f"{_INDENT}{head}"]
    for name, field in table.model_fields.items():
        example = (field.examples or [None])[0]
        lines += [_comment(_explained(field)), f"{_INDENT}{name} = {_toml(example)}"]
    return lines


def _explained(field: FieldInfo) -> str:
    takes = allowed(field)
    return f"{field.description}" if takes == "text" else f"{field.description} ({takes})"


def _about(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split())


def _comment(text: str) -> str:
    return textwrap.fill(
        text, COMMENT_CHARS_MAX, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )


def _toml(value: object) -> str:
    """A value on one line. Numbers, texts, true and false read the same in JSON and TOML."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{name} = {_toml(item)}" for name, item in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(item) for item in value)}]"
    if isinstance(value, str) and "\\" in value and "'" not in value:
        return f"'{value}'"  # a pattern is hard enough to read without doubled backslashes
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    sys.stdout.write(example_toml())
