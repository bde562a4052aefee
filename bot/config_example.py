"""config.example.toml, written from the settings so that it cannot go stale.

`python -m bot.config_example > config.example.toml` renews it; a test compares the two.
"""

from __future__ import annotations

import json
import sys
import textwrap

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from bot.config import KEYS, SECTIONS, KeyPath, Settings, section_of
from bot.config_reading import allowed, dotted

COMMENT_CHARS_MAX = 90

_HEAD = """\
Settings of Hearthbot. Copy this file to config.toml in the bot's home (HEARTHBOT_HOME,
~/.hearthbot unless set), with mode 0600 if it holds a token, and remove the # before what you
want to change; what stands here is the default.

The environment wins over this file: llm.model is HEARTHBOT_LLM__MODEL, and a list is written
as 99,100. A value like ${NAME} is not filled in. Settings are read at start: a change asks for
a restart.
"""


def example_toml() -> str:
    """Every key, commented out, with its default and what it is for."""
    head = "\n".join(f"# {line}".rstrip() for line in _HEAD.splitlines())
    return "\n\n".join([head, *(_section(path) for path in SECTIONS)]) + "\n"


def _section(section: KeyPath) -> str:
    lines = [_comment(_about(section)), f"[{dotted(section)}]"]
    for path, field in KEYS.items():
        if path[:-1] == section:
            lines += ["", _comment(_explained(field)), f"#{path[-1]} = {_toml(field)}"]
    return "\n".join(lines)


def _explained(field: FieldInfo) -> str:
    takes = allowed(field)
    return f"{field.description}" if takes == "text" else f"{field.description} ({takes})"


def _about(section: KeyPath) -> str:
    model: type[BaseModel] = Settings
    for name in section:
        model = section_of(model.model_fields[name]) or model
    return " ".join((model.__doc__ or "").split())


def _comment(text: str) -> str:
    return textwrap.fill(
        text, COMMENT_CHARS_MAX, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )


def _toml(field: FieldInfo) -> str:
    """The default. Numbers, texts, true, false and lists read the same in JSON and TOML."""
    value = field.default
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    sys.stdout.write(example_toml())
