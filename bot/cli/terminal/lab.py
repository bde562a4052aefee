"""`hearthbot lab`: the bot with this home's settings against stand-ins, to rehearse it."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bot.channels.console import PRESS, OpenQuestions
from bot.cli.context import Opened, exit_for, logged_apart, opened
from bot.cli.terminal.chat import LEAVE, Buttons, typed_lines
from memory.records.messages import DEFAULT_AGENT
from memory.records.rows import Button

if TYPE_CHECKING:
    from bot.app.app import App
    from bot.lab.telegram import FakeTelegram
    from bot.lab.telegram_state import SeenInTelegram
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
    """Return the settings with the stand-ins, by their addresses, in place of all that is
    elsewhere: no Slack, no other model, no MCP server and no web."""
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


# --- the chat at the terminal -------------------------------------------------------------------

PICTURE = "picture"
"""What stands for a photo's name: Telegram keeps none."""


class LabChat:
    """One person's private chat with the bot at the stand-in."""

    def __init__(self, telegram: FakeTelegram, person: int) -> None:
        self._telegram = telegram
        self._person = person
        self._cards = OpenQuestions()
        self._buttons = Buttons()
        self._shown: dict[int, str] = {}
        self._reactions: dict[int, str] = {}
        self._answered: set[str] = set()
        self._notices: list[str] = []

    def types(self, line: str) -> None:
        """A line of the person: a number or `/press` with one presses, all else is a message."""
        meant = self._buttons.meant(line)
        word, _, rest = meant.partition(" ")
        if word != PRESS:
            self._telegram.message(chat_id=self._person, user_id=self._person, text=line)
            return
        card, _, data = rest.partition(" ")
        if not data or not card.isdecimal():
            from bot.inbox.commands import NO_LONGER

            self._notices.append(NO_LONGER)
            return
        self._telegram.callback(
            chat_id=self._person, message_id=int(card), data=data, user_id=self._person
        )

    def news(self) -> Iterator[str]:
        """Return what the chat shows that it did not show before, as text for a terminal."""
        yield from self._notices
        self._notices.clear()
        for answer in self._telegram.answers():
            if answer["callback_query_id"] not in self._answered:
                self._answered.add(answer["callback_query_id"])
                if answer["text"]:
                    yield answer["text"]
        there = self._telegram.chat(self._person)
        for message_id in self._shown.keys() - {message.message_id for message in there}:
            # A message that was deleted has no buttons any more.
            del self._shown[message_id]
            self._buttons.see(self._cards.event("edit", str(message_id), text="", buttons=()))
        for message in there:
            if message.is_bot:
                yield from self._message(message)
            emoji = " ".join(str(one.get("emoji", "")) for one in message.reaction).strip()
            if self._reactions.get(message.message_id, "") != emoji:
                self._reactions[message.message_id] = emoji
                if emoji:
                    yield emoji

    def _message(self, message: SeenInTelegram) -> Iterator[str]:
        message_id = message.message_id
        kind = "edit" if message_id in self._shown else "message"
        file = f"📎 {message.file_name or PICTURE}" if message.file_id else ""
        text = "\n\n".join(part for part in (file, message.text) if part)
        # A card that did not change keeps its numbers, so asking for it anew is harmless.
        event = self._cards.event(kind, str(message_id), text=text, buttons=_buttons(message))
        if self._shown.get(message_id) != event["text"]:
            self._shown[message_id] = event["text"]
            self._buttons.see(event)
            yield event["text"]


def _buttons(message: SeenInTelegram) -> list[Button]:
    rows = (message.markup or {}).get("inline_keyboard", ())
    return [
        Button(label=str(one["text"]), data=str(one["callback_data"]))
        for row in rows
        for one in row
        if "callback_data" in one
    ]
