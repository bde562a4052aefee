"""`hearthbot lab`: the bot with this home's settings against stand-ins, to rehearse it."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bot.cli.chat import LEAVE
from bot.cli.chat_io import typed_lines
from bot.cli.context import Opened, exit_for, logged_apart, opened
from memory.records.messages import DEFAULT_AGENT

if TYPE_CHECKING:
    from bot.app.app import App
    from bot.lab.telegram import FakeTelegram
    from bot.settings.schema.settings import Settings

PERSON = 1001
"""The Telegram id under which the terminal speaks in the lab."""

LAB_TOKEN = "1:lab"  # noqa: S105 - accepted by the stand-in alone
LAB_MODEL = "openai/lab-model"


def lab() -> None:
    """Rehearse: your settings, a stand-in Telegram and a scripted model; nothing leaves here.

    Works on a copy in a temporary folder: your conversations are not touched. Every line you type
    arrives as a Telegram message. `!call read_file {"path": "…"}` has the model call a tool,
    `!long 9000` answer at length, `!fault 429 always` fail.
    A number presses a button; /quit leaves.
    """
    with exit_for(), opened(log_to_terminal=False) as home:
        asyncio.run(_rehearse(home))


async def _rehearse(home: Opened) -> None:
    from bot.app.app import App
    from bot.lab.model import ScriptedModel
    from bot.lab.telegram import FakeTelegram
    from bot.settings.home import Home, prepare, settings_digest
    from bot.settings.load import load
    from scheduler.clock.machine import SystemClock

    with tempfile.TemporaryDirectory(prefix="hearthbot-lab-") as folder:
        copy = Home(Path(folder))
        if home.home.config.exists():
            (copy.path / home.home.config.name).write_bytes(home.home.config.read_bytes())
        prepare(copy)
        async with FakeTelegram(token=LAB_TOKEN) as telegram, ScriptedModel() as model:
            env = home.env
            digest = settings_digest(copy, env)
            settings = rehearsed(
                load(copy.path, env), telegram=telegram.base_url, model=model.api_base
            )
            with logged_apart(Opened(home=copy, settings=settings, env=env, digest=digest)):
                app = App(copy, settings, env=env, digest=digest, clock=SystemClock())
                async with app.running() as bot:
                    await bot.access.approve(f"telegram:{PERSON}")
                    stopping = asyncio.Event()
                    async with asyncio.TaskGroup() as group:
                        group.create_task(bot.serve(stopping))
                        await _converse(bot, telegram)
                        stopping.set()


def rehearsed(settings: Settings, *, telegram: str, model: str) -> Settings:
    """The settings with the stand-ins, by their addresses, in place of all that is elsewhere: no
    Slack, no other model, no MCP server and no web."""
    from pydantic import SecretStr

    from bot.settings.schema.settings import SlackSettings
    from bot.settings.schema.tools import McpSettings

    agents = settings.agents
    alone = {
        name: agent.model_copy(
            update={
                "model": "",
                "fallbacks": (),
                "denied_tools": (*agent.denied_tools, "web_*"),
            }
        )
        for name, agent in agents.by_name.items()
    }
    here = agents.model_copy(update={"default": alone.pop(DEFAULT_AGENT)})
    here.__pydantic_extra__.update(alone)
    llm = {
        "model": LAB_MODEL,
        "api_base": model,
        "api_key": SecretStr("lab"),
        "fallbacks": (),
        "cheap_model": "",
        "transcription_model": "",
    }
    stand_in = {"token": SecretStr(LAB_TOKEN), "base_url": telegram, "mode": "polling"}
    return settings.model_copy(
        update={
            "llm": settings.llm.model_copy(update=llm),
            "telegram": settings.telegram.model_copy(update=stand_in),
            "slack": SlackSettings(),
            "agents": here,
            "mcp": McpSettings(),
            "web": settings.web.model_copy(update={"search": "off"}),
        }
    )


async def _converse(bot: App, telegram: FakeTelegram) -> None:
    """Lines in, and whatever the chat then shows out, until a line leaves or there are no more."""
    from bot.cli.lab_shown import LabChat

    typer.echo("The lab: a stand-in Telegram, a scripted model, a copy of your settings.")
    typer.echo("Slack, other models, MCP servers and the web are off: nothing leaves this machine.")
    typer.echo("Type a message; /quit or Ctrl-D leaves.")
    chat = LabChat(telegram, PERSON)
    _ask()
    async for line in typed_lines():
        if line.strip() in LEAVE:
            return
        if line.strip():
            chat.types(line.strip())
            await telegram.until(lambda: not telegram.pending(), timeout_s=30)
            await bot.settled()
            for shown in chat.news():
                typer.echo(shown)
        _ask()


def _ask() -> None:
    if sys.stdin.isatty():
        typer.echo("telegram> ", nl=False)
