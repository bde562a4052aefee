"""`hearthbot chat`: talk in the terminal."""

from __future__ import annotations

import asyncio
import secrets
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import typer

from bot.cli.chat_io import Buttons, OwnAnswer
from bot.cli.context import FAILED, Opened, exit_for, opened
from bot.cli.screen import PlainScreen, RichScreen, Screen
from bot.rpc import ControlClient

LEAVE = frozenset({"/quit", "/exit"})
"""Typed or piped, in a chat or in the lab, they end it."""

WAITED = "Not about this, but it had waited for a terminal:"

ENDED_BY_SIGTERM = 128 + signal.SIGTERM


def chat(
    message: Annotated[
        str, typer.Option("-m", "--message", help="Answer this once and exit.")
    ] = "",
) -> None:
    """Talk in the terminal: same assistant, memory and commands. /quit or Ctrl-D leaves."""
    with exit_for(), opened(log_to_terminal=False) as home:
        asyncio.run(converse(home, message))


async def converse(home: Opened, message: str) -> None:
    """One answer to `message`; without one, to whatever is typed until the person leaves."""
    from bot.cli.client import reach

    # One answer to one message is for a script: nothing is said beside it.
    notes = None if message else sys.stderr
    screen: Screen = RichScreen() if sys.stdout.isatty() else PlainScreen(sys.stdout, notes)
    own = OwnAnswer(screen)
    with _leaving_cleanly():
        async with reach(home) as client, asyncio.TaskGroup() as group:
            ready = asyncio.Event()
            buttons = Buttons()
            seen = own if message else screen
            showing = group.create_task(_show(client, seen, buttons, ready))
            await ready.wait()
            worked = True
            if message:
                worked = await _say_once(client, own, buttons.meant(message))
            elif sys.stdin.isatty():
                screen.greet()
                await _converse(home, client, screen, buttons)
            else:
                await _work_off(client, screen, buttons)
            showing.cancel()
        if not worked:
            raise typer.Exit(FAILED)


@contextmanager
def _leaving_cleanly() -> Iterator[None]:
    """SIGTERM ends the conversation as leaving it does, so that the terminal is put in order."""
    task = asyncio.current_task()
    assert task is not None
    with _on_signal(signal.SIGTERM, task.cancel) as came:
        try:
            yield
        except asyncio.CancelledError:
            if not came.is_set():
                raise
            raise typer.Exit(ENDED_BY_SIGTERM) from None


@contextmanager
def _on_signal(number: int, act: Callable[[], object]) -> Iterator[asyncio.Event]:
    """Calls `act` at each such signal; the event tells whether there was one."""
    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    before = signal.getsignal(number)

    def handle() -> None:
        came.set()
        act()

    loop.add_signal_handler(number, handle)
    try:
        yield came
    finally:
        loop.remove_signal_handler(number)
        signal.signal(number, before)


async def _show(
    client: ControlClient, screen: Screen, buttons: Buttons, ready: asyncio.Event
) -> None:
    """Follows what the bot shows in this terminal until cancelled."""
    async for kind, event in client.follow("attach"):
        if kind == "event":
            buttons.see(event)
        if kind == "event" and event["kind"] == "attached":
            screen.attached(event)
            ready.set()
        elif kind == "event":
            screen.show(event)


async def _say(client: ControlClient, screen: Screen, text: str) -> bool:
    """Sends a message and waits until all that comes of it is shown; Ctrl-C stops the turn.

    False when what was shown is a notice of failure.
    """
    answer = await _sent(client, screen, text)
    screen.settle()
    return answer.get("state") != "failed"


async def _say_once(client: ControlClient, own: OwnAnswer, text: str) -> bool:
    """The same, of what belongs to this message alone. What had waited for a terminal and is shown
    nowhere else goes beside the answer: it does not come again."""
    own.asks(text)
    answer = await _sent(client, own, text, once=True)
    waited = own.leave_out(answer.get("others", ()))
    own.settle()
    if waited and not answer.get("shared"):
        typer.echo("\n".join([WAITED, *waited]), err=True)
    return answer.get("state") != "failed"


async def _sent(
    client: ControlClient, screen: Screen, text: str, *, once: bool = False
) -> dict[str, Any]:
    async with asyncio.TaskGroup() as group:

        def stop() -> None:
            group.create_task(client.ask("say", text="/stop", message_id=secrets.token_hex(8)))

        with screen.busy(), _on_signal(signal.SIGINT, stop):
            number = secrets.token_hex(8)
            return await client.ask("say", text=text, message_id=number, once=once)


async def _work_off(client: ControlClient, screen: Screen, buttons: Buttons) -> None:
    """Answers line by line what is piped in, until it ends or a line leaves."""
    from bot.cli.chat_io import typed_lines

    async for line in typed_lines():
        if line.strip() in LEAVE:
            return
        if line.strip():
            await _say(client, screen, buttons.meant(line))


async def _converse(home: Opened, client: ControlClient, screen: Screen, buttons: Buttons) -> None:
    """Lines with history and editing, until the person leaves."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.patch_stdout import patch_stdout

    history = home.home.data / "terminal_history"
    history.touch(mode=0o600)
    session: PromptSession[str] = PromptSession(history=FileHistory(str(history)))
    for event in buttons.waiting():
        screen.show(event)
    screen.settle()
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            with patch_stdout(raw=True):
                line = (await session.prompt_async("you> ")).strip()
            if line in LEAVE:
                return
            if line:
                await _say(client, screen, buttons.meant(line))
