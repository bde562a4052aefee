"""Buttons in the terminal: by their numbers, alone or with the command, and after a restart."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, redirect_stderr
from pathlib import Path
from typing import Any

import pytest

from bot.app.run import terminal_operations
from bot.channels.base import MessagePart, Pressed, SentMessage
from bot.channels.console import ADDRESS, HOW_TO_PRESS, SENDER, ConsoleChannel, press_line
from bot.cli.terminal.chat import WAITED, Buttons, OwnAnswer, _say, _say_once, _show
from bot.cli.terminal.screen import PlainScreen
from bot.inbox.commands import NO_LONGER, Press
from bot.inbox.intake import InboundEvent
from bot.rpc import ControlClient, ControlServer
from memory.records.rows import Button, NewMessage
from memory.stores.approvals import SqliteCards
from scheduler.clock.machine import SystemClock
from tests.bot.press_kit import ALLOW, CARD, DENY, OUTCOME, ROWS, Process, Question, process

CARD_SHOWN = f"{CARD}\n\n[1] Allow once\n[2] Deny\n\n{HOW_TO_PRESS}"
PART = MessagePart(markup=CARD, source=CARD, buttons=ROWS)


class Terminal:
    """What `hearthbot chat` does with lines from a pipe."""

    def __init__(self, client: ControlClient, out: io.StringIO, buttons: Buttons) -> None:
        self._client = client
        self._out = out
        self._screen = PlainScreen(out)
        self._buttons = buttons

    async def follow(self, ready: asyncio.Event) -> None:
        await _show(self._client, self._screen, self._buttons, ready, show=self._screen.show)

    async def types(self, line: str) -> str:
        """What the person reads for it."""
        self._out.seek(0)
        self._out.truncate()
        await _say(self._client, self._screen, self._buttons.meant(line))
        return self._out.getvalue()


@asynccontextmanager
async def chatting(
    folder: Path, presses: Mapping[str, Press], *, attended: bool = True
) -> AsyncIterator[tuple[Process, Terminal]]:
    """A process with a terminal on its socket, or with one that is not there yet."""
    console = ConsoleChannel()
    async with process(folder, console, presses) as bot:
        console.others = SqliteCards(bot.database).others

        async def settled(lane: str) -> None:
            await bot.door.idle()
            await bot.outbox.idle(lane)

        operations = terminal_operations(
            console, bot.access, bot.door, settled, clock=SystemClock(), greeting={}
        )
        socket = folder / "s"
        async with ControlServer(socket, operations), ControlClient(socket) as client:
            terminal, ready = Terminal(client, io.StringIO(), Buttons()), asyncio.Event()
            async with asyncio.timeout(10), asyncio.TaskGroup() as group:
                following = group.create_task(terminal.follow(ready) if attended else ready.wait())
                if attended:
                    await ready.wait()
                yield bot, terminal
                following.cancel()


@pytest.fixture
def question() -> Question:
    return Question()


# --- one message, one answer ----------------------------------------------------------------------


async def _answered_once(
    folder: Path, bot: Process, text: str, meanwhile: Callable[[], Awaitable[object]]
) -> tuple[str, str]:
    """What `hearthbot chat -m` prints beside a running bot, and says besides."""
    out, buttons, ready = io.StringIO(), Buttons(), asyncio.Event()
    own = OwnAnswer(PlainScreen(out))
    async with ControlClient(folder / "s") as client, asyncio.TaskGroup() as group:
        following = group.create_task(_show(client, own.screen, buttons, ready, show=own.show))
        await ready.wait()
        await meanwhile()
        with redirect_stderr(io.StringIO()) as besides:
            await _say_once(client, own, buttons.meant(text))
        following.cancel()
    return out.getvalue(), besides.getvalue()


async def test_one_message_gets_what_belongs_to_it_and_no_other_cards(
    tmp_path: Path, question: Question
) -> None:
    async with chatting(tmp_path, {"ask": question.press}) as (bot, _):
        before = await bot.card(ADDRESS.key, "An older card")

        async def meanwhile() -> None:
            await bot.card(ADDRESS.key, "Another card")
            await bot.outbox.say(NewMessage(lane=ADDRESS.key, text="A reminder"))
            await bot.revised(before, "The older card expired.")

        read, besides = await _answered_once(tmp_path, bot, "/press 4", meanwhile)

    assert (read, besides) == ("Noted.\n", "")


async def test_what_had_waited_for_a_terminal_stands_beside_the_answer(
    tmp_path: Path, question: Question
) -> None:
    async with chatting(tmp_path, {"ask": question.press}, attended=False) as (bot, _):
        await bot.outbox.say(NewMessage(lane=ADDRESS.key, text="A reminder"))

        read, besides = await _answered_once(tmp_path, bot, "/press x ask:1:yes", bot.sent)

    assert read == "Noted.\n"
    assert besides == f"{WAITED}\nA reminder\n"


# --- through the socket ---------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["1", "[1]", " 1 ", "/press 1", "/press  [1]"])
async def test_a_number_right_after_the_card_presses_its_button(
    tmp_path: Path, question: Question, line: str
) -> None:
    async with chatting(tmp_path, {"ask": question.press}) as (bot, terminal):
        await bot.card(ADDRESS.key)
        read = await terminal.types(line)
        events = await bot.events()

    assert read == f"{CARD_SHOWN}\nNoted.\n"
    assert question.answers == [ALLOW]
    assert events == [("command", "button", 0)]
    assert (question.calls[0].address, question.calls[0].sender) == (ADDRESS, SENDER)


async def test_a_card_becomes_its_outcome_and_its_numbers_are_words_again(
    tmp_path: Path, question: Question
) -> None:
    async with chatting(tmp_path, {"ask": question.press}) as (bot, terminal):
        card = await bot.card(ADDRESS.key)

        async def answer(pressed: Pressed, person: Any) -> str:
            await bot.outbox.revise(card, OUTCOME)
            return ""

        bot.door.presses.by_prefix = {"ask": answer}
        read = await terminal.types("1")
        later = await terminal.types("/press 1")
        meant = terminal._buttons.meant("1")

    assert read == f"{OUTCOME}\n"
    assert later == f"{NO_LONGER}\n"
    assert meant == "1"


async def test_an_open_card_is_pressed_after_a_restart_and_from_another_terminal(
    tmp_path: Path, question: Question
) -> None:
    async with chatting(tmp_path, {}) as (bot, _):
        await bot.card(ADDRESS.key)

    async with chatting(tmp_path, {"ask": question.press}) as (bot, terminal):
        [waiting] = terminal._buttons.waiting()
        read = await terminal.types("/press 2")

    assert (waiting["kind"], waiting["text"]) == ("message", CARD_SHOWN)
    assert read == "Noted.\n"
    assert question.answers == [DENY]


async def test_a_press_that_was_stored_and_not_acted_on_is_done_by_the_next_process(
    tmp_path: Path, question: Question
) -> None:
    presses = {"ask": question.press}
    async with process(tmp_path, ConsoleChannel(), presses) as bot:
        await bot.access.owner_of_this_machine()
        line = press_line("some-1", ALLOW)
        await bot.door.store(
            [
                InboundEvent(
                    source="console",
                    event_id="m1",
                    address=ADDRESS,
                    sender=SENDER,
                    is_group=False,
                    payload=ConsoleChannel.payload(line, "m1", now_ms=1),
                )
            ]
        )
        assert question.calls == []

    async with process(tmp_path, ConsoleChannel(), presses) as bot:
        events = await bot.events()

    assert question.answers == [ALLOW]
    assert events == [("command", "button", 0)]


# --- the channel alone ----------------------------------------------------------------------------


async def sent(console: ConsoleChannel, part: MessagePart = PART) -> str:
    outcome = await console.send(ADDRESS, part)
    assert isinstance(outcome, SentMessage)
    return outcome.message_id


def understood(console: ConsoleChannel, text: str) -> Pressed:
    found = console.understand(ConsoleChannel.payload(text, "m1", now_ms=1))
    assert isinstance(found, Pressed)
    return found


async def test_each_open_button_has_a_number_of_its_own_and_keeps_it() -> None:
    console, shown = ConsoleChannel(), list[dict[str, Any]]()
    console.attach(shown.append)

    first = await sent(console)
    second = await sent(console)
    await console.edit(ADDRESS, second, PART)
    await console.edit(ADDRESS, first, MessagePart(markup="", source="over"))
    await console.edit(ADDRESS, second, MessagePart(markup="", source="over"))
    await sent(console)

    numbers = [list(event.get("buttons", {})) for event in shown]
    assert numbers == [["1", "2"], ["3", "4"], ["3", "4"], [], [], ["1", "2"]]
    assert understood(console, "/press 2").data == DENY


async def test_messages_of_two_processes_have_different_ids() -> None:
    ids = []
    for console in (ConsoleChannel(), ConsoleChannel()):
        console.attach(lambda event: None)
        ids.append(await sent(console))

    assert ids[0] != ids[1]


def test_other_words_that_begin_like_it_are_said() -> None:
    said = ConsoleChannel().understand(ConsoleChannel.payload("/pressing on", "m1", now_ms=1))

    assert not isinstance(said, Pressed)


# --- what a typed number means -----------------------------------------------------------------


def card(card_id: str, **buttons: str) -> dict[str, Any]:
    numbered = {number.removeprefix("n"): data for number, data in buttons.items()}
    return {"kind": "message", "id": card_id, "text": "?", "buttons": numbered}


def test_a_number_alone_is_meant_for_the_card_until_something_else_is_typed() -> None:
    buttons = Buttons()
    buttons.see(card("c1", n1="ask:1", n2="ask:2"))

    assert buttons.meant("3") == "3"
    buttons.see(card("c1", n1="ask:1", n2="ask:2"))
    assert buttons.meant("2") == press_line("c1", "ask:2")
    assert buttons.meant("give me two examples") == "give me two examples"
    assert buttons.meant("2") == "2"
    assert buttons.meant("/press 2") == press_line("c1", "ask:2")


def test_a_card_that_was_open_before_is_named_by_the_command_until_it_is_shown() -> None:
    buttons = Buttons()
    buttons.see({**card("c1", n4="ask:1"), "kind": "open"})

    assert buttons.meant("4") == "4"
    assert buttons.meant("/press 4") == press_line("c1", "ask:1")
    assert [event["kind"] for event in buttons.waiting()] == ["message"]
    assert buttons.meant("4") == press_line("c1", "ask:1")
    buttons.see({"kind": "edit", "id": "c1", "text": "over"})
    assert (buttons.waiting(), buttons.meant("/press 4")) == ([], "/press 4")


# --- the value ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data", ["", "ask", ":1", "ask:" + "x" * 57, "ask:ü", "ask:\n", "ask:\x00"]
)
def test_data_that_does_not_fit_everywhere_is_refused(data: str) -> None:
    with pytest.raises(ValueError):
        Button(label="Yes", data=data)


def test_a_button_has_a_label_and_a_message_not_too_many_of_them() -> None:
    button = Button(label="Yes", data="ask:" + "x" * 56)

    with pytest.raises(ValueError):
        Button(label="  ", data="ask:1")
    with pytest.raises(ValueError):
        NewMessage(lane=ADDRESS.key, text="?", buttons=((button,) * 21, (button,) * 20))
