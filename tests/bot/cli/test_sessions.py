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

from bot.cli.main import app
from bot.cli.sessions_shown import list_table
from bot.commands.conversation import SessionCommands
from bot.rpc import ControlServer
from bot.settings.home import Home, prepare
from memory.database.connection import Database
from memory.records.transcript import Answered, Context, Entry, Note, Said, ToolCall, ToolResult
from memory.stores.conversations import SqliteConversations
from memory.stores.sessions import SqliteSessions
from scheduler.clock.machine import SystemClock
from tests.bot.remote_kit import offered
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
            desk = SessionCommands(SqliteSessions(database))
            async with ControlServer(home.socket, offered(sessions=desk)):
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


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_gets_two_lines_each_whatever_is_long(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    answer = json.loads(said("list", "--json"))
    summary = "They spoke of \x1b[31mboats [and] 船. " * 9
    answer["sessions"][0] |= {"summary": summary, "private": True, "people": ["Ada [b]Lovelace"]}
    answer["sessions"][0] |= {"tokens": 1_234_567, "id": "c_0123456789abcdef"}

    list_table(answer)
    list_table({"sessions": []})

    shown = capsys.readouterr().out
    heading, first, about, second, _, nothing = shown.splitlines()
    assert heading.split() == ["Id", "Last", "Msgs", "Tokens", "State", "Chat"]
    assert first.startswith("c_0123456789abcdef  ")
    assert first.rstrip().endswith(f"1,234,567  open    {LANE}")
    assert about.startswith("  memory off · Ada [b]Lovelace · They spoke of boats [and] 船.")
    assert about.endswith("…")
    assert second.startswith("c_old ")
    assert max(map(len, shown.splitlines())) <= width
    assert "\x1b" not in shown
    assert nothing == "No conversation is kept here yet."


def test_a_narrow_terminal_still_names_the_chat(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")

    list_table(json.loads(said("list", "--json")))

    shown = capsys.readouterr().out.splitlines()
    assert [line.startswith(f"  {LANE}") for line in shown] == [False, False, True, False, True]
    assert max(map(len, shown)) <= 50


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


def test_a_long_one_is_exported_whole(home: Home) -> None:
    async def fill() -> None:
        async with Database.open(home.database, clock=SystemClock()) as database:
            conversation = await SqliteConversations(database).current(LANE)
            many = [talk(f"q{n}", "x" * 2_000) for n in range(503)]
            await add_turns(database, conversation, many)

    asyncio.run(fill())

    with beside_a_bot(home):
        answer = json.loads(said("export", "c_now"))

    texts = [one["text"] for one in answer["entries"] if one["kind"] == "said"]
    assert texts == ["newer", *[f"q{n}" for n in range(503)]]


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
        from memory.stores.turns import SqliteJournal

        async with Database.open(home.database, clock=SystemClock()) as database:
            await SqliteJournal(database).submit(run("m1"))

    asyncio.run(begin())

    with way(home):
        assert "nothing was erased" in refused("clear", "c_old", "--yes")

    assert len(said("list").splitlines()) == 2
