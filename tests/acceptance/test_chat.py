"""`hearthbot chat`, piped and at a real terminal, alone and beside a running bot."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.acceptance.rig import Home, Model, StandIn, Telegram, until
from tests.acceptance.terminal import CTRL_C, CTRL_D, ENTER, UP, Terminal


@pytest.fixture
def model() -> Iterator[Model]:
    stand_in = Model()
    yield stand_in
    stand_in.close()


@pytest.fixture
def alone(bare_home: Home, model: Model) -> Home:
    """A home with a model and without any channel."""
    bare_home.env |= {
        "HEARTHBOT_LLM__MODEL": "openai/lab-model",
        "HEARTHBOT_LLM__API_BASE": f"{model.url}/v1",
        "HEARTHBOT_LLM__API_KEY": "lab-key",
    }
    return bare_home


def hold(stand_in: StandIn, method: str) -> None:
    action = {"kind": "hold", "seconds": 60, "after": False}
    stand_in.ask("fault", method=method, action=action)


# --- piped ---------------------------------------------------------------------------------------


def test_piped_lines_are_answered_in_order(alone: Home) -> None:
    done = alone.run("chat", typed="one\n\n/status\r\nthree")

    first, *status, last = done.stdout.splitlines()
    assert done.returncode == 0
    assert (first, last) == ("You said: one", "You said: three")
    assert status[0].startswith("Hearthbot ")


@pytest.mark.parametrize("command", [["chat"], []])
def test_a_piped_line_leaves_as_a_typed_one_and_the_model_is_named_beside_the_answers(
    alone: Home, command: list[str]
) -> None:
    done = alone.run(*command, typed="one\n /quit \nthree\n")

    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "You said: one")
    assert done.stderr.startswith("Hearthbot · lab-model\n")


def test_what_was_said_is_remembered_by_the_next_chat(alone: Home, model: Model) -> None:
    alone.run("chat", "-m", "my cat is called Tom")
    alone.run("chat", "-m", "what is my cat called?")

    last = model.ask("requests")[-1]
    assert "my cat is called Tom" in str(last["messages"])


def test_a_piped_chat_ends_with_its_bot(home: Home) -> None:
    """Also while its input stays open: nothing waits for a line that may never come."""
    running = home.start()
    until(running.serving)
    reading, writing = os.pipe()
    try:
        chat = home.start("chat", stdin=reading)
        # Only an answer proves that it is this bot's: before that it might open one of its own.
        os.write(writing, b"hello\n")
        until(lambda: "You said: hello" in chat.said())
        running.kill()

        assert chat.wait() == 1
        said = chat.said().strip().splitlines()
        assert said[-2:] == ["You said: hello", "The bot went away."]
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.slow
def test_with_nothing_configured_the_embedded_model_answers(bare_home: Home) -> None:
    pytest.importorskip("xllamacpp")

    done = bare_home.run("chat", "-m", "Say hello.", timeout_s=110)

    assert done.returncode == 0, done.stderr
    assert len(done.stdout.strip()) > 1


# --- at a terminal -------------------------------------------------------------------------------


def test_a_conversation_at_a_terminal(alone: Home, model: Model) -> None:
    with Terminal(alone, "chat") as terminal:
        terminal.expect("Hearthbot · lab-model")
        terminal.expect("you>")
        terminal.type("hello" + ENTER)
        terminal.expect("You said: hello")
        terminal.expect("you>")
        terminal.type("/quit" + ENTER)

        assert terminal.ends() == 0
        assert terminal.modes() == terminal.modes_before

    with Terminal(alone, "chat") as terminal:
        terminal.expect("you>")
        terminal.type(UP + UP)  # past /quit
        terminal.expect("hello")
        terminal.type(ENTER)
        terminal.expect("You said: hello")
        terminal.expect("you>")
        terminal.type(CTRL_D)

        assert terminal.ends() == 0
        assert terminal.modes() == terminal.modes_before
    assert (alone.path / "data" / "terminal_history").stat().st_mode & 0o077 == 0
    assert model.user_texts() == ["hello", "hello"]


def test_an_answer_taller_than_the_window_leaves_nothing_of_its_growing_behind(
    alone: Home, model: Model
) -> None:
    model.ask("set", chunk_delay_s=0.02, chunk_size=60)
    with Terminal(alone, "chat") as terminal:
        terminal.expect("you>")
        terminal.type("!long 3000" + ENTER)
        terminal.expect("thinking")
        terminal.expect("you>")
        terminal.type("/model nonsense" + ENTER)
        terminal.expect("names no provider")
        terminal.expect("you>")
        terminal.type(CTRL_D)
        assert terminal.ends() == 0

        answer, model_said = terminal.screen.partition("!long 3000")[2].split("you>")[:2]

    points = [line for line in answer.splitlines() if "first point of" in line]
    assert answer.split()[:2] == ["Part", "0"]
    assert len(points) > 3
    assert len(points) == len(set(points))
    assert "<provider>" in model_said


def test_the_running_tool_is_named_while_there_is_no_text(alone: Home, model: Model) -> None:
    with Terminal(alone, "chat") as terminal:
        terminal.expect("you>")
        model.ask("call", name="list_dir", arguments={"path": "."})
        terminal.type("look through the files" + ENTER)
        terminal.expect("looking through the files")
        terminal.expect("done:")
        terminal.expect("you>")
        terminal.type(CTRL_D)
        assert terminal.ends() == 0


def test_ctrl_c_stops_the_turn_and_not_the_chat_as_often_as_wanted(
    alone: Home, model: Model
) -> None:
    with Terminal(alone, "chat") as terminal:
        for number in range(3):
            terminal.expect("you>")
            hold(model, "chat")
            terminal.type("think long" + ENTER)
            until(lambda n=number: model.received("chat") > n)  # type: ignore[misc]
            terminal.type(CTRL_C)
            terminal.expect("Stopped.")
        terminal.expect("you>")
        terminal.type("hello" + ENTER)
        terminal.expect("You said: ")
        terminal.expect("you>")
        terminal.type(CTRL_C)

        assert terminal.ends() == 0
        assert terminal.modes() == terminal.modes_before
        assert "Traceback" not in terminal.text


def test_a_terminal_is_put_in_order_when_the_chat_is_terminated(alone: Home, model: Model) -> None:
    with Terminal(alone, "chat") as terminal:
        terminal.expect("you>")
        hold(model, "chat")
        terminal.type("think long" + ENTER)
        until(lambda: model.received("chat"))
        terminal.process.send_signal(signal.SIGTERM)

        assert terminal.ends() == 128 + signal.SIGTERM
        assert terminal.modes() == terminal.modes_before
        assert terminal.raw.rindex("\x1b[?25h") > terminal.raw.rindex("\x1b[?25l")
        assert "Traceback" not in terminal.text


# --- beside a running bot, and after a kill ------------------------------------------------------


def test_a_chat_beside_a_running_bot_is_the_same_bot(home: Home, telegram: Telegram) -> None:
    home.approve(7)
    running = home.start()
    until(running.serving)

    done = home.run("chat", "-m", "hello")
    with Terminal(home, "chat") as terminal:
        terminal.expect("you>")
        terminal.type("/status" + ENTER)
        terminal.expect("Channels: console, telegram")
        terminal.expect("you>")
        terminal.type(CTRL_D)
        assert terminal.ends() == 0

    assert done.stdout == "You said: hello\n"
    assert running.end() == 0


@pytest.mark.parametrize("beside_a_bot", [True, False])
def test_a_reply_whose_terminal_was_killed_is_shown_by_the_next(
    home: Home, model: Model, beside_a_bot: bool
) -> None:
    running = home.start() if beside_a_bot else None
    if running is not None:
        until(running.serving)
    hold(model, "chat")
    with Terminal(home, "chat") as terminal:
        terminal.expect("you>")
        terminal.type("important question" + ENTER)
        until(lambda: model.received("chat"))
        terminal.hang_up()
    model.ask("clear_faults")
    model.ask("release")

    once = home.run("run", "--once") if not beside_a_bot else None
    with Terminal(home, "chat") as terminal:
        terminal.expect("You said: important question")
        terminal.expect("you>")
        terminal.type(CTRL_D)
        assert terminal.ends() == 0

    assert once is None or once.returncode == 0
    assert model.received("chat") == (1 if beside_a_bot else 2)
    if running is not None:
        assert running.end() == 0


def test_a_streamed_reply_whose_terminal_was_killed_is_shown_whole_by_the_next(
    home: Home, model: Model
) -> None:
    model.ask("set", chunk_delay_s=0.1, chunk_size=30)
    running = home.start()
    until(running.serving)
    with Terminal(home, "chat") as terminal:
        terminal.expect("you>")
        terminal.type('!call list_dir {"path": "."}' + ENTER)
        terminal.expect("done:")
        terminal.expect("you>")
        model.ask("say", text=f"It begins. {'And goes on. ' * 60} THE-END")
        terminal.type("tell me" + ENTER)
        terminal.expect("And goes on.")
        terminal.hang_up()

    until(lambda: model.ask("log", method="chat")[-1]["ended_at"])
    with Terminal(home, "chat") as terminal:
        terminal.expect("It begins.")
        terminal.expect("THE-END")
        terminal.expect("you>")
        terminal.type(CTRL_D)
        assert terminal.ends() == 0
    assert running.end() == 0
