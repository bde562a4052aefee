"""`hearthbot sessions`, as somebody types it: where no bot runs, and beside one that does."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from agent.transcript import Answered, Context, Entry, Note, Said, ToolCall, ToolResult
from bot.cli.main import app
from bot.cli.sessions_shown import list_table
from bot.clock import SystemClock
from bot.control import ControlServer
from bot.home import Home, prepare
from bot.sessions import PAGE_ENTRIES_MAX, SessionDesk, session_operations
from memory.conversations import SqliteConversations
from memory.database import Database
from memory.sessions import SqliteSessions
from tests.memory.history_kit import add_turns, talk
from tests.memory.kit import LANE, run

CALL = ToolCall(id="c", name="read_file", arguments="{}")
FIRST: list[Entry] = [
    Note(text="a note"),
    Said(text="Hello\x1b[31m there", sender="Ada\tB"),
    Context(text="<context>\nblock words\n</context>"),
    Answered(text="", calls=(CALL,)),
    ToolResult(call_id="c", content="long " * 100),
    Answered(text="Hi Ada."),
]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    home = Home(tmp_path / "home")
    monkeypatch.setenv("HEARTHBOT_HOME", str(home.path))
    prepare(home)
    asyncio.run(_filled(home))
    return home


async def _filled(home: Home) -> None:
    async with Database.open(home.database, clock=SystemClock()) as database:
        conversations = SqliteConversations(database, new_id=iter(("c_old", "c_now")).__next__)
        old = await conversations.current(LANE)
        await add_turns(database, old, [FIRST, talk("wöchentlich 你好")])
        now = await conversations.start_new(LANE)
        await add_turns(database, now, [talk("newer")])


def typed(*words: str, given: str | None = None) -> Result:
    return CliRunner().invoke(app, ["sessions", *words], input=given, catch_exceptions=False)


def said(*words: str) -> str:
    result = typed(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*words: str, code: int = 1) -> str:
    result = typed(*words)
    assert result.exit_code == code, result.output
    return result.stderr or result.stdout


@contextmanager
def alone(home: Home) -> Iterator[None]:
    """No bot runs."""
    yield


@contextmanager
def beside_a_bot(home: Home) -> Iterator[None]:
    """A bot as far as this command knows it: its socket, and its database."""
    ready, stopping = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with Database.open(home.database, clock=SystemClock()) as database:
            desk = SessionDesk(SqliteSessions(database))
            async with ControlServer(home.socket, session_operations(desk)):
                ready.set()
                await stopping.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(60)
        yield
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join(30)
        loop.close()


Beside = Callable[[Home], Any]
both_ways = pytest.mark.parametrize("way", [alone, beside_a_bot])


@both_ways
def test_they_are_listed_one_a_line_and_as_json(home: Home, way: Beside) -> None:
    with way(home):
        lines = said("list").splitlines()
        answer = json.loads(said("list", "--json"))

    assert [line.split("\t")[0] for line in lines] == ["c_now", "c_old"]
    assert [line.split("\t")[6] for line in lines] == ["open", "closed"]
    assert lines[1].split("\t")[4] == "6"
    now, old = answer["sessions"]
    assert (now["id"], now["lane"], now["closed_ms"]) == ("c_now", LANE, None)
    assert old["messages"] == 6
    assert len(said("list", "--limit", "1").splitlines()) == 1


def test_a_terminal_gets_a_table(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    answer = json.loads(said("list", "--json"))
    answer["sessions"][0] |= {"summary": "They spoke of \x1b[31mboats. " * 9, "private": True}

    list_table(answer)
    list_table({"sessions": []})

    shown = capsys.readouterr().out
    assert "c_now" in shown
    assert "Tokens" in shown
    assert "memory off" in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown
    assert "No conversation is kept here yet." in shown


@both_ways
def test_one_is_shown_with_what_was_said_last(home: Home, way: Beside) -> None:
    with way(home):
        whole = said("show", "c_o")
        last = said("show", "c_old", "--limit", "1")
        answer = json.loads(said("show", "c_old", "--json"))

    assert "Ada B: Hello there" in whole
    assert "assistant: [calls read_file]" in whole
    assert "note: a note" in whole
    assert "block words" not in whole
    assert "Hello" not in last
    assert [one["kind"] for one in answer["entries"][:2]] == ["note", "said"]
    assert answer["entries"][-1]["text"] == "Fine."


@pytest.mark.parametrize("words", [("show", "x"), ("export", "x"), ("clear", "x", "--yes")])
def test_an_unknown_id_is_told_with_a_way_out(words: tuple[str, ...]) -> None:
    assert "hearthbot sessions list" in refused(*words)


def test_an_id_that_several_begin_with_is_not_guessed() -> None:
    assert "c_now, c_old" in refused("show", "c_")


@both_ways
def test_all_of_one_is_exported_as_json_and_as_markdown(home: Home, way: Beside) -> None:
    with way(home):
        answer = json.loads(said("export", "c_old"))
        text = said("export", "c_old", "--format", "md")

    assert len(answer["entries"]) == 8
    assert answer["entries"][4]["content"] == "long " * 100
    assert answer["entries"][6]["text"] == "wöchentlich 你好"
    assert text.startswith("# Conversation c_old\n")
    assert "Ada B: Hello there" in text
    assert "wöchentlich 你好" in text
    assert "block words" not in text
    assert "--format" in refused("export", "c_old", "--format", "xml", code=2)


def test_a_long_one_is_exported_page_by_page(home: Home) -> None:
    async def fill() -> None:
        async with Database.open(home.database, clock=SystemClock()) as database:
            conversation = await SqliteConversations(database).current(LANE)
            many = [talk(f"q{n}", "x" * 2_000) for n in range(PAGE_ENTRIES_MAX + 3)]
            await add_turns(database, conversation, many)

    asyncio.run(fill())

    with beside_a_bot(home):
        answer = json.loads(said("export", "c_now"))

    texts = [one["text"] for one in answer["entries"] if one["kind"] == "said"]
    assert texts == ["newer", *[f"q{n}" for n in range(PAGE_ENTRIES_MAX + 3)]]


@both_ways
def test_one_is_erased_for_good_and_another_begins(home: Home, way: Beside) -> None:
    with way(home):
        told = said("clear", "c_now", "--yes")
        left = json.loads(said("list", "--json"))["sessions"]

    assert told.startswith(f"Erased c_now of {LANE}: 2 messages")
    assert "A new one begins there." in told
    assert [one["id"] for one in left] == ["c_old"]


def test_nothing_is_erased_unasked() -> None:
    assert "--yes" in refused("clear", "c_old", code=2)
    assert len(said("list").splitlines()) == 2


@both_ways
def test_none_is_erased_while_something_is_being_done_there(home: Home, way: Beside) -> None:
    async def begin() -> None:
        from memory.journal import SqliteJournal

        async with Database.open(home.database, clock=SystemClock()) as database:
            await SqliteJournal(database).submit(run("m1"))

    asyncio.run(begin())

    with way(home):
        assert "nothing was erased" in refused("clear", "c_old", "--yes")

    assert len(said("list").splitlines()) == 2
