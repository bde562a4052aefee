"""What is on the way to the first line of output: heavy libraries load on first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "aiohttp",
    "aiosqlite",
    "apscheduler",
    "httpx",
    "litellm",
    "markdown_it",
    "prompt_toolkit",
    "pydantic",
    "slack_bolt",
    "telegram",
    "xllamacpp",
)


def loaded_by(program: str) -> list[str]:
    """The heavy libraries that a fresh interpreter has loaded after running a program."""
    shown = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in HEAVY if name in shown.stdout.split()]


def test_the_command_line_loads_nothing_heavy() -> None:
    assert loaded_by("import bot.cli.main") == []


@pytest.mark.parametrize("library", ["litellm", "apscheduler", "slack_bolt", "xllamacpp"])
def test_the_wiring_loads_no_library_before_it_is_needed(library: str) -> None:
    assert library not in loaded_by("import bot.app, bot.telegram, agent.models.embedded")
