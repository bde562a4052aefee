"""What is on the way to the first line of output: heavy libraries load on first use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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

UNASKED = (
    "PIL",
    "agent.trace.explanation",
    "agent.tools.groups.hardware",
    "bot.channels.slack.app_home",
    "bot.markup.slack",
    "bot.channels.slack.channel",
    "bot.channels.telegram.channel",
    "bot.commands.trace.why",
    "bot.commands.trace.why_messages",
    "html_to_markdown",
    "litellm",
    "markdown_it",
    "numpy",
    "pydantic_settings",
    "rich",
    "slack_bolt",
    "tiktoken",
    "wordllama",
    "xllamacpp",
)
"""What a bot without a channel has no use for until somebody asks for it."""

OPENED = """
import asyncio, sys
from bot.lean import load_without
load_without("rich", "structlog")
load_without("click", "httpx")
from bot.app.app import App
from scheduler.clock.machine import SystemClock
from bot.settings.load import load
from bot.settings.home import find_home, prepare

async def main():
    env = {"HEARTHBOT_HOME": sys.argv[1], "HEARTHBOT_LLM__MODEL": "openai/x", "OPENAI_API_KEY": "x"}
    home = find_home(env)
    prepare(home)
    settings = load(home.path, env)
    async with App(home, settings, env=env, clock=SystemClock()).running():
        print(*sys.modules)

asyncio.run(main())
"""


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


def test_the_app_loads_no_library_before_it_is_needed() -> None:
    loaded = loaded_by("import bot.app, bot.channels.telegram.channel, agent.models.embedded")

    assert {"litellm", "apscheduler", "slack_bolt", "xllamacpp"}.isdisjoint(loaded)


def test_a_bot_is_opened_without_what_only_a_rare_question_needs(tmp_path: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-c", OPENED, str(tmp_path / "home")],
        capture_output=True,
        text=True,
        check=True,
    )

    loaded = shown.stdout.split()
    assert "bot.app.commands" in loaded
    assert [name for name in UNASKED if name in loaded] == []
