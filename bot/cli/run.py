"""`hearthbot run`, and `hearthbot` alone: the bot itself."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Annotated

import typer

from bot.cli.opening import Opened, exit_for, opened


def run(
    once: Annotated[
        bool, typer.Option("--once", help="Work off what is waiting, then exit.")
    ] = False,
) -> None:
    """Start every configured channel; Ctrl-C or SIGTERM drains and stops."""
    with exit_for(), opened(log_to_terminal=True) as home:
        asyncio.run(_run(home, once=once))


def start() -> None:
    """What `hearthbot` alone does: serve Telegram if a token is set, else chat here."""
    with exit_for(), opened(log_to_terminal=True) as home:
        has_channel = bool(home.settings.telegram.token.get_secret_value())
    if has_channel:
        run()
        return
    typer.echo("No Telegram token is set (telegram.token), so here is a chat in this terminal.\n")
    from bot.cli.chat import chat

    chat()


def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """How the running bot is doing."""
    from bot.cli.asking import ask_running

    with exit_for(), opened(log_to_terminal=True) as home:
        answer = asyncio.run(ask_running(home, "status"))
    if as_json:
        import json

        typer.echo(json.dumps(answer, ensure_ascii=False))
        return
    for line in answer["lines"]:
        typer.echo(line)


async def _run(home: Opened, *, once: bool) -> None:
    from bot.app import open_bot
    from bot.clock import SystemClock

    if not home.settings.telegram.token.get_secret_value() and not once:
        typer.secho(
            "No channel is configured. Set telegram.token in "
            f"{home.home.config} (or HEARTHBOT_TELEGRAM__TOKEN), or talk here: hearthbot chat",
            err=True,
            fg="yellow",
        )
        raise typer.Exit(2)
    async with open_bot(
        home.home, home.settings, env=home.env, digest=home.digest, clock=SystemClock()
    ) as bot:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, bot.stopping.set)
        if once:
            await bot.once()
            return
        if sys.stderr.isatty():
            typer.secho(f"Model: {bot.choice.model}. {bot.choice.why}", err=True)
            typer.secho("Serving Telegram. Ctrl-C stops.", err=True)
        await bot.serve()
