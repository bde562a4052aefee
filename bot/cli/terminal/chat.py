"""`hearthbot chat`: talk in the terminal."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import typer

from bot.channels.console import HOW_TO_PRESS, PRESS, press_line
from bot.cli.context import FAILED, Opened, exit_for, opened
from bot.cli.terminal.screen import Event, PlainScreen, RichScreen, Screen
from bot.rpc import ControlClient

LEAVE = frozenset({"/quit", "/exit"})
"""Typed or piped, in a chat or in the lab, they end it."""

PRESS_ONCE = f'To press one: hearthbot chat -m "{PRESS} 1"'

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
            show = own.show if message else screen.show
            showing = group.create_task(_show(client, screen, buttons, ready, show=show))
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
    """Call `act` at each such signal; the event tells whether there was one."""
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
    client: ControlClient,
    screen: Screen,
    buttons: Buttons,
    ready: asyncio.Event,
    *,
    show: Callable[[Event], None],
) -> None:
    """Follow what the bot shows in this terminal until cancelled."""
    async for kind, event in client.follow("attach"):
        if kind == "event":
            buttons.see(event)
        if kind == "event" and event["kind"] == "attached":
            screen.attached(event)
            ready.set()
        elif kind == "event":
            show(event)


async def _say(client: ControlClient, screen: Screen, text: str) -> bool:
    """Send a message and wait until all that comes of it is shown; Ctrl-C stops the turn.

    False when what was shown is a notice of failure.
    """
    answer = await _sent(client, screen, text)
    screen.settle()
    return answer.get("state") != "failed"


async def _say_once(client: ControlClient, own: OwnAnswer, text: str) -> bool:
    """Do the same for what belongs to this message alone. What had waited for a terminal and is
    shown nowhere else goes beside the answer: it does not come again."""
    own.asks(text)
    answer = await _sent(client, own.screen, text, once=True)
    waited = own.leave_out(answer.get("others", ()))
    own.screen.settle()
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
    """Answer line by line what is piped in, until it ends or a line leaves."""
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


READ_BYTES_MAX = 65_536

# --- lines of a pipe or a file ------------------------------------------------------------------
#
# A person at a terminal types into prompt_toolkit instead. Reading never holds up the end of the
# program.


async def typed_lines(descriptor: int = 0) -> AsyncIterator[str]:
    """Yield each line as it comes, without its end, until there are no more."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()

    def read() -> None:
        rest = b""
        while piece := os.read(descriptor, READ_BYTES_MAX):
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                put(line)
        if rest:
            put(rest)
        tell(None)

    def put(line: bytes) -> None:
        tell(line.decode("utf-8", "replace").removesuffix("\r"))

    def tell(line: str | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(lines.put_nowait, line)

    # A read cannot be cancelled. asyncio's own threads are waited for at the end of the program,
    # and sys.stdin would be locked by it; so a thread that may be left behind reads the bytes.
    threading.Thread(target=read, name="standard input", daemon=True).start()
    while (line := await lines.get()) is not None:
        yield line


# --- numbers of buttons -------------------------------------------------------------------------

_TYPED = re.compile(rf"(?P<press>{PRESS}\s+)?\[?(?P<number>[0-9]{{1,4}})\]?")


class Buttons:
    """Those that can be pressed now, by their numbers; events are those of `bot.channels.console`.

    A number alone counts until something else is typed: then it may be meant for the assistant.
    """

    def __init__(self) -> None:
        self._open: dict[str, dict[str, str]] = {}
        self._fresh: set[str] = set()
        self._waiting: list[dict[str, Any]] = []

    def see(self, event: dict[str, Any]) -> None:
        """A message, an edit, or a card that is open already."""
        if event["kind"] not in {"message", "edit", "open"}:
            return
        card = str(event["id"])
        buttons = event.get("buttons")
        if not buttons:
            self._open.pop(card, None)
            return
        self._open[card] = {str(number): str(data) for number, data in buttons.items()}
        if event["kind"] == "open":
            self._waiting.append(event)
        else:
            self._fresh.add(card)

    def waiting(self) -> list[dict[str, Any]]:
        """Cards that were open when this terminal came, as messages; a number alone is good for
        them from now on."""
        found = [event for event in self._waiting if event["id"] in self._open]
        self._fresh.update(str(event["id"]) for event in found)
        return [{**event, "kind": "message"} for event in found]

    def meant(self, line: str) -> str:
        """Return what is to be said for a typed line."""
        typed = _TYPED.fullmatch(line.strip())
        if typed is not None:
            for card, buttons in self._open.items():
                data = buttons.get(typed["number"].lstrip("0"))
                if data is not None and (typed["press"] or card in self._fresh):
                    return press_line(card, data)
        self._fresh.clear()
        return line


# --- the answer to one message ------------------------------------------------------------------
#
# For `hearthbot chat -m`: the rest of the conversation is left out. A card of another turn comes to
# every terminal that is there; a script that asked one thing wants the answer to that.


class OwnAnswer:
    """Shows on a screen what this terminal saw begin, and drops what turns out to be of something
    else."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self._begun: dict[str, Event] = {}
        self._pressed = ""

    def asks(self, text: str) -> None:
        """Note what is said: the outcome of a card that it presses a button of is an answer to
        it."""
        match text.split(" "):
            case [press, card, _, *_] if press == PRESS:
                self._pressed = card

    def show(self, event: Event) -> None:
        """Show an event, unless it is of a message that was there before."""
        match event["kind"]:
            case "message":
                self._begun[event["id"]] = event
            case "edit" if event["id"] not in {*self._begun, self._pressed}:
                return
        # The program ends with the answer: a number is pressed by the next one.
        self.screen.show({**event, "text": event["text"].replace(HOW_TO_PRESS, PRESS_ONCE)})

    def leave_out(self, others: Collection[str]) -> list[str]:
        """Drop these messages. Return the texts of those without buttons: the others are shown
        again to whoever comes to talk."""
        found = [event for id, event in self._begun.items() if id in others]
        for event in found:
            self.screen.drop(event["id"])
        return [event["text"] for event in found if not event.get("buttons")]
