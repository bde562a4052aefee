"""`hearthbot chat`: talk in the terminal."""

from __future__ import annotations

import asyncio
import secrets
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer

from bot.cli.opening import Opened, exit_for, opened
from bot.control import ControlClient

LEAVE = frozenset({"/quit", "/exit"})


def chat(
    message: Annotated[
        str, typer.Option("-m", "--message", help="Answer this once and exit.")
    ] = "",
) -> None:
    """Talk in the terminal: same assistant, memory and commands. /quit or Ctrl-D leaves."""
    with exit_for(), opened(log_to_terminal=False) as home:
        asyncio.run(converse(home, message))


async def converse(home: Opened, message: str) -> None:
    from bot.cli.asking import reach
    from bot.cli.screen import PlainScreen, RichScreen

    screen = RichScreen() if sys.stdout.isatty() else PlainScreen(sys.stdout)
    async with reach(home) as client, asyncio.TaskGroup() as group:
        ready = asyncio.Event()
        showing = group.create_task(_show(client, screen, ready))
        await ready.wait()
        if message:
            await _say(client, screen, message)
        elif sys.stdin.isatty():
            screen.greet()
            await _converse(home, client, screen)
        else:
            while line := await asyncio.to_thread(sys.stdin.readline):
                if line.strip():
                    await _say(client, screen, line.rstrip("\n"))
        showing.cancel()


async def _show(client: ControlClient, screen: Any, ready: asyncio.Event) -> None:
    """Follows what the bot shows in this terminal until cancelled."""
    try:
        async for kind, event in client.follow("attach"):
            if kind == "event" and event["kind"] == "attached":
                screen.attached(event)
                ready.set()
            elif kind == "event":
                screen.show(event)
    finally:
        ready.set()


async def _say(client: ControlClient, screen: Any, text: str) -> None:
    """Sends a message and waits until all that comes of it is shown; Ctrl-C stops the turn."""
    saying = asyncio.ensure_future(client.ask("say", text=text, message_id=secrets.token_hex(8)))
    with screen.busy():
        try:
            await asyncio.shield(saying)
        except asyncio.CancelledError:
            asyncio.current_task().uncancel()  # type: ignore[union-attr]
            await client.ask("say", text="/stop", message_id=secrets.token_hex(8))
            await saying
    screen.settle()


async def _converse(home: Opened, client: ControlClient, screen: Any) -> None:
    """Lines with history and editing, until the person leaves."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.patch_stdout import patch_stdout

    history = home.home.data / "terminal_history"
    history.touch(mode=0o600)
    session: PromptSession[str] = PromptSession(history=FileHistory(str(history)))
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            with patch_stdout(raw=True):
                line = (await session.prompt_async("you> ")).strip()
            if line in LEAVE:
                return
            if line:
                await _say(client, screen, line)
