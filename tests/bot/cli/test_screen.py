"""What a conversation looks like: piped, and at a terminal."""

from __future__ import annotations

import asyncio
import re
from io import StringIO

import pytest
from rich.console import Console

from bot.channels.console import HOW_TO_PRESS
from bot.cli.terminal.chat import OwnAnswer
from bot.cli.terminal.screen import PlainScreen, RichScreen
from bot.lab.model_script import prose
from tests.acceptance.terminal import seen


def at_a_terminal(height: int = 20) -> tuple[RichScreen, StringIO]:
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=80, height=height, color_system=None)
    return RichScreen(console), out


def test_a_pipe_gets_each_message_once_as_it_was_at_last() -> None:
    out = StringIO()
    screen = PlainScreen(out)

    with screen.busy():
        screen.show({"kind": "doing", "text": "reading a file …"})
        screen.show({"kind": "message", "id": "1", "text": "hel"})
        screen.show({"kind": "edit", "id": "1", "text": "hello"})
        screen.show({"kind": "message", "id": "2", "text": "bye"})
        before = out.getvalue()
    screen.settle()

    assert before == ""
    assert out.getvalue() == "hello\nbye\n"


def test_a_pipe_gets_which_model_answers_beside_the_answers_if_at_all() -> None:
    event = {"kind": "attached", "model": "lab", "why": "llm.model says so."}
    out, notes = StringIO(), StringIO()

    PlainScreen(out, notes).attached(event)
    PlainScreen(out).attached(event)

    assert out.getvalue() == ""
    assert notes.getvalue() == "Hearthbot · lab\nllm.model says so.\n"


async def test_a_long_text_shows_its_end_while_it_grows_and_all_of_it_afterwards() -> None:
    screen, out = at_a_terminal(height=12)
    text = "\n\n".join(f"line {number}." for number in range(50))

    with screen.busy():
        screen.show({"kind": "message", "id": "1", "text": text})
        screen.show({"kind": "doing", "text": ""})
        growing = out.getvalue()
    screen.settle()

    assert "line 49." in growing
    assert "line 0." not in growing
    assert "line 0." in out.getvalue()


@pytest.mark.parametrize("height", [4, 24])
async def test_nothing_of_the_growing_text_is_left_above_the_finished_one(height: int) -> None:
    growing, out = at_a_terminal(height)
    at_once, expected = at_a_terminal(height)
    code = "\n".join(["```", *["code"] * 40, "```"])
    text = "\n\n".join([prose(1500), "a long line " * 300, code, prose(400)])

    with growing.busy():
        for end in (*range(100, len(text), 400), len(text)):
            growing.show({"kind": "message", "id": "1", "text": text[:end]})
            growing.show({"kind": "doing", "text": ""})
    growing.settle()
    at_once.show({"kind": "message", "id": "1", "text": text})
    at_once.settle()

    assert seen(out.getvalue(), rows=height, columns=80) == seen(
        expected.getvalue(), rows=height, columns=80
    )


async def test_words_in_brackets_stay() -> None:
    screen, out = at_a_terminal()
    said = "write /model <provider>/<name>, <b>or</b> [name]\n\n<div>\n\n[name]: <what it is>"

    screen.attached({"kind": "attached", "model": "lab[1]", "why": "llm.model says [so]."})
    with screen.busy():
        screen.show({"kind": "doing", "text": "reading [/tmp] <x> …"})
        screen.show({"kind": "message", "id": "1", "text": said})
    screen.settle()

    shown = out.getvalue()
    assert "lab[1]\nllm.model says [so].\n" in shown
    assert "reading [/tmp] <x> …" in shown
    for part in said.split("\n\n"):
        assert part in shown


async def test_what_comes_unasked_is_shown_once_it_no_longer_grows() -> None:
    screen, out = at_a_terminal()

    screen.show({"kind": "message", "id": "1", "text": "hel"})
    screen.show({"kind": "edit", "id": "1", "text": "hello"})
    async with asyncio.timeout(10):
        while "hello" not in out.getvalue():
            await asyncio.sleep(0.01)

    assert out.getvalue().count("hel") == 1


def test_the_card_in_the_one_answer_of_a_command_says_how_the_next_command_presses_it() -> None:
    out = StringIO()
    own = OwnAnswer(PlainScreen(out))
    card = f"May I?\n\n[1] Yes\n\n{HOW_TO_PRESS}"

    own.show({"kind": "message", "id": "1", "text": card, "buttons": {"1": "ask:1:yes"}})
    own.screen.settle()

    assert out.getvalue().endswith('[1] Yes\n\nTo press one: hearthbot chat -m "/press 1"\n')


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[bank.org](https://evil.org/x)", "bank.org (https://evil.org/x)"),
        ("**[https://*bank*.org](https://evil.org/x)**", "https://bank.org (https://evil.org/x)"),
        ("![bank.org](https://evil.org/x)", "bank.org (https://evil.org/x)"),
    ],
)
@pytest.mark.threat("T12")
def test_a_link_that_wears_another_address_says_where_it_leads(text: str, shown: str) -> None:
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=80, height=20, color_system="standard")
    screen = RichScreen(console)

    with screen.busy():
        screen.show({"kind": "message", "id": "1", "text": f"- {text}\n- [docs](https://x.org)"})
    screen.settle()

    assert shown in _CODES.sub("", out.getvalue())
    assert _hidden_links(out.getvalue()) == {"https://x.org"}


_CODES = re.compile(r"\x1b\][^\x1b]*\x1b\\|\x1b\[[0-9;?]*[A-Za-z]")


def _hidden_links(written: str) -> set[str]:
    """Where words lead that a terminal shows in place of an address."""
    return {found for found in re.findall(r"\x1b\]8;[^;]*;([^\x1b]*)\x1b", written) if found}
